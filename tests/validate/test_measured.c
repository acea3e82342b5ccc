/* Tables of results/measured hold measurements. Steps that differ in nothing but their batch are
 * close to a line over it, and runs are off that line by 0.2 % and more; a table whose steps lie on
 * it to their printed digits was summed up. results/calculated has one that was taken for
 * measurements until November 2026: the test must know it. */
#include "base/vec.h"
#include "config/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

struct step {
    const char *job; /* all settings but the batch */
    double batch, seconds;
};

/* Columns that do not tell jobs apart: what was measured, what is said about it, the batch. */
static const char *const beside[] = {"tokens_per_s_per_gpu", "tflops_per_gpu", "step_time_s",
    "peak_allocated_bytes", "peak_reserved_bytes", "oom", "id", "used_in_fit", "apart",
    "assumptions", "value_kind", "notes", "status", "suspected_cause", "first_sight", "grad_accum",
    "train.global_batch"};

static double number_of(const struct csv_table *table, int row, const char *name)
{
    struct diag diag = DIAG_INIT;
    double value;
    assert_int_equal(csv_number(table, row, csv_column(table, name), 0, &value, &diag), STATUS_OK);
    return value;
}

static struct step step_of(const struct csv_table *table, int row, struct arena *arena)
{
    struct step step = {.job = ""};
    for (int c = 0; c < csv_columns(table); c++) {
        bool is_beside = false;
        for (size_t b = 0; b < sizeof beside / sizeof *beside; b++)
            is_beside |= strcmp(csv_name(table, c), beside[b]) == 0;
        if (!is_beside)
            step.job = arena_printf(arena, "%s,%s", step.job, csv_cell(table, row, c));
    }
    double global = number_of(table, row, "train.global_batch"),
           rate = number_of(table, row, "tokens_per_s_per_gpu"),
           samples = fmax(1, number_of(table, row, "micro_batch")) *
                     fmax(1, number_of(table, row, "grad_accum"));
    step.batch = global > 0 ? global : samples;
    step.seconds = number_of(table, row, "step_time_s");
    if (step.seconds <= 0 && rate > 0)
        step.seconds = step.batch / rate; /* in the job's own unit */
    return step;
}

static int by_job_and_batch(const void *a, const void *b)
{
    const struct step *one = a, *other = b;
    int order = strcmp(one->job, other->job);
    return order ? order : (one->batch > other->batch) - (one->batch < other->batch);
}

/* In the median, how far steps are from the line between the job's smallest and largest batch, as
 * a fraction. *n: steps that lie between two others. */
static double off_the_line(const char *path, int *n)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct csv_table *table = NULL;
    VEC(struct step) steps = {0};
    VEC(double) off = {0};
    assert_int_equal(csv_load(&table, path, &diag), STATUS_OK);
    bool of_runs = csv_column(table, "topology") >= 0 && csv_column(table, "model") >= 0;
    for (int r = 0; of_runs && r < csv_rows(table); r++) {
        struct step step = step_of(table, r, &arena);
        if (step.seconds > 0)
            vec_push(&steps, step);
    }
    if (steps.n > 0)
        qsort(steps.at, (size_t)steps.n, sizeof *steps.at, by_job_and_batch);
    for (int first = 0, end; first < steps.n; first = end) {
        for (end = first + 1; end < steps.n && strcmp(steps.at[end].job, steps.at[first].job) == 0;)
            end++;
        const struct step *a = &steps.at[first], *b = &steps.at[end - 1];
        for (const struct step *s = a + 1; s < b; s++)
            if (s->batch > a->batch && s->batch < b->batch)
                vec_push(&off, fabs(s->seconds / (a->seconds + (b->seconds - a->seconds) *
                                                                   (s->batch - a->batch) /
                                                                   (b->batch - a->batch)) -
                                    1));
    }
    double median = INFINITY;
    if (off.n > 0)
        median = gsl_stats_median(off.at, 1, (size_t)off.n);
    *n = off.n;
    vec_free(&steps);
    vec_free(&off);
    csv_release(table);
    arena_release(&arena);
    return median;
}

enum { FEW = 5 }; /* steps between others, of which nothing is said */
#define PRINTED 2e-4

static void no_table_of_runs_was_summed_up(void **state)
{
    (void)state;
    glob_t found;
    int judged = 0;
    assert_int_equal(glob(FLOPCAST_SOURCE_DIR "/results/measured/*.csv", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int n;
        double off = off_the_line(found.gl_pathv[i], &n);
        judged += n >= FEW;
        if (n >= FEW && off < PRINTED)
            fail_msg("%s: %d steps are %.4f %% off a line over the batch: sums, not measurements",
                found.gl_pathv[i], n, 100 * off);
    }
    globfree(&found);
    assert_true(judged >= 2);
}

static void sums_are_known(void **state)
{
    (void)state;
    int n;
    double off = off_the_line(FLOPCAST_SOURCE_DIR "/results/calculated/vtrain_one_node.csv", &n);
    assert_true(n > 200);
    assert_true(off < PRINTED / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_table_of_runs_was_summed_up), cmocka_unit_test(sums_are_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
