/* Intervals of rows made of known errors: what is learned, from whom, and how many rows are covered. */
#include "validate/interval.h"
#include "validate/stored.h"

#include "base/rng.h"

#include <gsl/gsl_cdf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../near.h"

enum { FAMILIES = 40, ROWS = 5, K = 99 };
static const double NUMBERS = 0.02, LEFT_OUT = 0.05, SPEED = 1000;
static const struct discrepancy filed = {.of = {[DISCREPANCY_WITH_STACK] = {0.5, 0.1, QUANTITY_FITTED, "test", NULL},
                                             [DISCREPANCY_WITHOUT_STACK] = {0.6, 0.1, QUANTITY_FITTED, "test", NULL},
                                             [DISCREPANCY_PER_DOUBLING] = {0.7, 0.1, QUANTITY_FITTED, "test", NULL}},
    .waiting = {.value = 1}};

struct made {
    struct validate_table table;
    struct scenario_point points[FAMILIES * ROWS];
    char names[FAMILIES][24];
};

/* Rows whose samples are the percentiles of a log-normal distribution around SPEED, and whose measurement is off by
 * what `off` says. */
static struct made *make(int families, const char *stack, double (*off)(int family, int row))
{
    struct made *made = xcalloc(1, sizeof *made);
    for (int f = 0; f < families; f++) {
        snprintf(made->names[f], sizeof made->names[f], "family %d", f);
        for (int r = 0; r < ROWS; r++) {
            struct scenario_point *point = &made->points[f * ROWS + r];
            point->options.stack_path = stack;
            struct validate_row row = {.source = made->names[f],
                .model = "m",
                .gpu = "g",
                .used_in_fit = "",
                .reason = "",
                .gpus = 8LL << r,
                .curve = f * ROWS + r,
                .status = VALIDATE_OK,
                .has_error = true,
                .leaves_out = stack ? DISCREPANCY_WITH_STACK : DISCREPANCY_WITHOUT_STACK,
                .set = {.points = point, .n_points = 1},
                .n_samples = K};
            row.samples = xcalloc(K, sizeof *row.samples);
            for (int k = 0; k < K; k++)
                row.samples[k] = (struct scenario_sample){
                    true, {[SAMPLED_TOKENS] = SPEED * exp(gsl_cdf_gaussian_Pinv((k + 1) / (K + 1.0), NUMBERS))}};
            row.measured.tokens_per_s_per_gpu = SPEED * exp(off(f, r));
            vec_push(&made->table.rows, row);
        }
    }
    return made;
}

static void drop(struct made *made)
{
    validate_release(&made->table);
    free(made);
}

static double covered(const struct made *made)
{
    int n = 0;
    for (int i = 0; i < made->table.rows.n; i++)
        n += made->table.rows.at[i].interval.covers;
    return (double)n / made->table.rows.n;
}

static double from_the_model(int family, int row)
{
    struct rng_stream stream = rng_stream(1, 1, (uint64_t)family * ROWS + (uint64_t)row);
    return rng_gaussian(&stream, NUMBERS) + rng_gaussian(&stream, LEFT_OUT);
}

/* 200 measurements off by exactly what intervals are made for: 90 % are covered, give or take the luck of 200 (2.1 %),
 * and the discrepancy is found. */
static void what_is_drawn_from_the_model_is_covered(void **state)
{
    (void)state;
    struct made *made = make(FAMILIES, "stack.yaml", from_the_model);
    validate_intervals(&made->table, &filed);
    assert_near(covered(made), 0.9, 2 * 0.021);
    struct validate_discrepancy found = validate_discrepancy(&made->table, DISCREPANCY_WITH_STACK);
    assert_int_equal(found.rows, FAMILIES * ROWS);
    assert_int_equal(found.families, FAMILIES);
    assert_int_equal(found.sources, FAMILIES);
    /* the quantile of 90 % is known to sqrt(0.09 / 200) / density, 12 % of it */
    assert_near(found.value, LEFT_OUT, 2 * 0.12 * LEFT_OUT);
    assert_true(found.std_error > 0.04 * LEFT_OUT && found.std_error < 0.3 * LEFT_OUT);
    const struct validate_interval *first = &made->table.rows.at[0].interval;
    assert_true(first->all.low < first->numbers.low && first->numbers.high < first->all.high);
    assert_int_equal(validate_discrepancy(&made->table, DISCREPANCY_WITHOUT_STACK).rows, 0);
    drop(made);
}

static double far_off(int family, int row)
{
    return (row % 2 ? 1 : -1) * (family == 0 ? 3 : 0.1);
}

/* Family 0 is off by e^3, the others by e^0.1: it learns from the others alone and is not covered; they are, and its
 * error, beyond the 90 %, does not widen them. */
static void a_family_does_not_teach_itself(void **state)
{
    (void)state;
    struct made *made = make(FAMILIES, "stack.yaml", far_off);
    validate_intervals(&made->table, &filed);
    const struct validate_row *rows = made->table.rows.at;
    assert_false(rows[0].interval.covers);
    assert_true(rows[ROWS].interval.covers);
    assert_near(rows[0].interval.discrepancy.low, -rows[ROWS].interval.need, 1e-9);
    assert_near(rows[0].interval.discrepancy.high, rows[ROWS + 1].interval.need, 1e-9);
    assert_near(rows[ROWS].interval.discrepancy.low, rows[0].interval.discrepancy.low, 1e-9);
    drop(made);
}

/* Rows that a fit rests on teach nothing, and too few families leave the filed number. Where there is one source, its
 * families teach one another; had nothing else of it been known, the filed number held. */
static void too_little_to_learn_from(void **state)
{
    (void)state;
    struct made *made = make(VALIDATE_LEAST_UNITS, "stack.yaml", far_off);
    validate_intervals(&made->table, &filed);
    assert_near(made->table.rows.at[0].interval.discrepancy.low, 0.5, 0);
    drop(made);
    made = make(VALIDATE_LEAST_UNITS + 1, "stack.yaml", far_off);
    validate_intervals(&made->table, &filed);
    assert_true(made->table.rows.at[0].interval.discrepancy.low < 0.1);
    for (int r = 0; r < ROWS; r++)
        made->table.rows.at[ROWS + r].used_in_fit = "a file";
    validate_intervals(&made->table, &filed);
    assert_near(made->table.rows.at[0].interval.discrepancy.low, 0.5, 0);
    drop(made);
    made = make(FAMILIES, NULL, far_off);
    for (int i = 0; i < made->table.rows.n; i++) {
        made->table.rows.at[i].model = made->table.rows.at[i].source;
        made->table.rows.at[i].source = "one source";
    }
    validate_intervals(&made->table, &filed);
    assert_true(made->table.rows.at[0].interval.discrepancy.low < 0.1);
    assert_false(made->table.rows.at[0].interval.covers_as_new); /* e^3 by 0.6 */
    assert_true(made->table.rows.at[ROWS].interval.covers_as_new);
    assert_int_equal(validate_discrepancy(&made->table, DISCREPANCY_WITHOUT_STACK).sources, 1);
    assert_int_equal(validate_discrepancy(&made->table, DISCREPANCY_WITHOUT_STACK).families, FAMILIES);
    drop(made);
}

static double one_source_is_off(int family, int row)
{
    return (row % 2 ? 1 : -1) * (family < FAMILIES / 2 ? 0.3 : 0.1);
}

/* Half of the families are of one source and off by e^0.3, the others of a source each and off by e^0.1. The first half
 * learns from its own other families, 19 of them: with nine the others weigh nothing. The others weigh that source as
 * any other, one of 20, beyond the 95 % of each side. The filed value would be theirs. */
static void a_source_learns_from_its_other_families(void **state)
{
    (void)state;
    struct made *made = make(FAMILIES, "stack.yaml", one_source_is_off);
    for (int i = 0; i < FAMILIES / 2 * ROWS; i++) {
        made->table.rows.at[i].model = made->table.rows.at[i].source;
        made->table.rows.at[i].source = "one source";
    }
    validate_intervals(&made->table, &filed);
    const struct validate_row *off = &made->table.rows.at[0], *near = &made->table.rows.at[made->table.rows.n - 1];
    assert_near(off->interval.discrepancy.low, -off->interval.need, 1e-9);
    assert_true(off->interval.covers && !off->interval.covers_as_new);
    assert_near(near->interval.discrepancy.low, -near->interval.need, 1e-9);
    assert_true(near->interval.covers && near->interval.covers_as_new);
    struct validate_discrepancy found = validate_discrepancy(&made->table, DISCREPANCY_WITH_STACK);
    assert_int_equal(found.sources, FAMILIES / 2 + 1);
    assert_near(found.value, fabs(near->interval.need), 1e-9);
    drop(made);
}

/* A curve of 8 to 128 GPUs whose ratio is off by e^0.06 per root of a doubling: that is what is learned, and it grows
 * with the root of the doublings. */
static double curved(int family, int row)
{
    (void)family;
    return 0.06 * sqrt(row);
}

static void ratios(void **state)
{
    (void)state;
    struct made *made = make(FAMILIES, "stack.yaml", curved);
    for (int i = 0; i < made->table.rows.n; i++) {
        struct validate_row *row = &made->table.rows.at[i];
        row->curve = i / ROWS;
        row->smallest = row->curve * ROWS;
        row->has_ratio = true;
        row->predicted_ratio = 1;
        row->measured_ratio = row->measured.tokens_per_s_per_gpu / SPEED;
    }
    validate_intervals(&made->table, &filed);
    const struct validate_row *rows = made->table.rows.at;
    assert_false(rows[0].ratio_interval.known); /* the smallest of its curve */
    /* samples of a curve share their draws: the band of the ratio has no width, and all of the error is left out */
    double sigma = 1.6448536269514722;
    assert_near(rows[4].ratio_interval.numbers.high, 1, 1e-12);
    assert_near(rows[1].ratio_interval.need, 0.06 / sigma, 1e-9);
    assert_near(rows[4].ratio_interval.discrepancy.high, 2 * 0.06 / sigma, 1e-9);
    assert_near(rows[4].ratio_interval.all.low, 1, 1e-12); /* none was slower */
    assert_near(rows[4].ratio_interval.all.high, exp(0.12), 1e-9);
    assert_near(validate_discrepancy(&made->table, DISCREPANCY_PER_DOUBLING).value, 0.06 / sigma, 1e-9);
    drop(made);
}

/* What is read back is as wide as what was found: the file keeps the ends by errors of numbers, and the discrepancy
 * widens them again. */
static void intervals_that_are_read_back(void **state)
{
    (void)state;
    struct validate_table table;
    struct diag diag = DIAG_INIT;
    assert_true(validate_stored_read(&table, FLOPCAST_SOURCE_DIR "/results/validated.csv", "*DeepSpeed*", &diag));
    validate_widen(&table, &filed);
    int known = 0;
    for (int i = 0; i < table.rows.n; i++) {
        const struct validate_interval *interval = &table.rows.at[i].interval;
        known += interval->known;
        if (interval->known) /* 1.645 standard deviations of what is left out, at least */
            assert_true(interval->all.high >= interval->numbers.median * exp(1.64 * interval->discrepancy.high) &&
                        interval->all.low <= interval->numbers.median * exp(-1.64 * interval->discrepancy.low));
    }
    assert_true(known > 20);
    validate_release(&table);
}

static double all_are_slower(int family, int row)
{
    return -0.01 * (1 + (family * ROWS + row) % (2 * ROWS)); /* -0.01 to -0.1, as many of each */
}

/* Without samples all of the error is left out, and the interval begins at the prediction where nobody was faster. A
 * tenth are off by 0.1: of the side's 95 % these are needed. */
static void rows_without_samples_have_intervals(void **state)
{
    (void)state;
    struct made *made = make(FAMILIES, "stack.yaml", all_are_slower);
    for (int i = 0; i < made->table.rows.n; i++) {
        made->table.rows.at[i].n_samples = 0;
        made->table.rows.at[i].predicted.tokens_per_s_per_gpu = SPEED;
    }
    validate_intervals(&made->table, &filed);
    const struct validate_interval *first = &made->table.rows.at[0].interval;
    assert_near(first->numbers.low, SPEED, 0);
    assert_near(first->all.low, SPEED * exp(-0.1), 1e-6);
    assert_near(first->all.high, SPEED, 0);
    assert_near(covered(made), 1, 0);
    drop(made);
}

/* Of every framework with 50 open rows of results/validated.csv and more, 85 to 95 % are in their intervals. */
static void published_rows_are_covered(void **state)
{
    (void)state;
    enum { FRAMEWORKS = 40, LEAST = 50 };
    struct validate_table table;
    struct discrepancy read;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct counted {
        const char *framework;
        int rows, covered;
    } counted[FRAMEWORKS] = {{0}};
    assert_true(validate_stored_read(&table, FLOPCAST_SOURCE_DIR "/results/validated.csv", NULL, &diag));
    assert_int_equal(
        discrepancy_load(&read, FLOPCAST_SOURCE_DIR "/topologies/fitted/discrepancy.yaml", &arena, &diag), STATUS_OK);
    validate_widen(&table, &read);
    for (int r = 0; r < table.rows.n; r++) {
        const struct validate_row *row = &table.rows.at[r];
        int at = 0;
        while (at < FRAMEWORKS && counted[at].framework && strcmp(counted[at].framework, row->framework) != 0)
            at++;
        if (!row->interval.known || *row->used_in_fit || at == FRAMEWORKS)
            continue;
        counted[at].framework = row->framework;
        counted[at].rows++;
        counted[at].covered += row->interval.covers;
    }
    int many = 0;
    for (int i = 0; i < FRAMEWORKS; i++)
        if (counted[i].rows >= LEAST) {
            double percent = 100.0 * counted[i].covered / counted[i].rows;
            printf("%s: %.1f %% of %d\n", counted[i].framework, percent, counted[i].rows);
            assert_true(percent >= 85 && percent <= 95);
            many++;
        }
    assert_true(many >= 5);
    validate_release(&table);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_drawn_from_the_model_is_covered),
        cmocka_unit_test(a_family_does_not_teach_itself),
        cmocka_unit_test(too_little_to_learn_from),
        cmocka_unit_test(a_source_learns_from_its_other_families),
        cmocka_unit_test(ratios),
        cmocka_unit_test(intervals_that_are_read_back),
        cmocka_unit_test(rows_without_samples_have_intervals),
        cmocka_unit_test(published_rows_are_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
