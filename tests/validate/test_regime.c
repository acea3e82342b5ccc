/* Regimes of jobs, weights worked by hand, digits of words; that the interval of a regime holds published runs. */
#include "validate/lessons.h"
#include "validate/regime.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../near.h"

static const double EXACT = 1e-12;
static const struct nearest_job job = {
    .gpu = "H100", .arch = "Hopper", .layout = "TP+PP+DP", .precision = "bf16_mixed", .framework = "", .strategy = ""};

static enum regime_rung rung_of(struct nearest_job other)
{
    assert_int_equal(regime_rung_of(&job, &other), regime_rung_of(&other, &job));
    return regime_rung_of(&job, &other);
}

static void test_rungs(void **state)
{
    (void)state;
    struct nearest_job other = job;
    other.layout = "TP+PP"; /* data parallelism does not count */
    other.precision = "fp16_mixed";
    assert_int_equal(rung_of(other), REGIME_ALIKE);
    other.layout = "CP+DP";
    assert_int_equal(rung_of(other), REGIME_SHARED);
    other.layout = "DP";
    assert_int_equal(rung_of(other), REGIME_PRECISION);
    other = job;
    other.experts = true;
    assert_int_equal(rung_of(other), REGIME_PRECISION);
    other.precision = "fp8_mixed";
    assert_int_equal(rung_of(other), REGIME_GENERATION);
    other.precision = "tf32";
    assert_int_equal(rung_of(other), REGIME_GENERATION);
    struct nearest_job eight = job, four = job;
    eight.precision = "fp8_mixed";
    four.precision = "fp4_mixed";
    assert_int_equal(regime_rung_of(&eight, &four), REGIME_GENERATION);
    other = job;
    other.arch = "Ampere";
    assert_int_equal(rung_of(other), REGIME_ALL);
}

enum { MADE = 40 };
struct made {
    struct nearest_job jobs[MADE];
    struct nearest_runs runs;
    char names[MADE][8];
};

/* A family more: predicted / measured - 1. */
static void add(struct made *made, const char *source, struct nearest_job of, double error)
{
    int r = made->runs.table.rows.n;
    snprintf(made->names[r], sizeof made->names[r], "m%d", r);
    made->jobs[r] = of;
    made->runs.jobs = made->jobs;
    vec_push(&made->runs.table.rows, (struct validate_row){.source = source,
                                         .gpu = "H100",
                                         .model = made->names[r],
                                         .used_in_fit = "",
                                         .same = r,
                                         .has_error = true,
                                         .error = error});
    nearest_number(&made->runs);
}

static void release(struct made *made)
{
    vec_free(&made->runs.table.rows);
    vec_free(&made->runs.table.files);
    arena_release(&made->runs.arena);
}

/* 20 families of the regime, one source, measured 1 to 20 % below the prediction: 95 % of the weight are the first 19
 * from below, so the lower end is at 1 / 1.19; nothing was faster than predicted. Those of other regimes do not count.
 */
static void test_alike(void **state)
{
    (void)state;
    struct made made = {0};
    struct nearest_job other = job;
    other.arch = "Ampere";
    for (int i = 1; i <= 20; i++) {
        add(&made, "one", job, 0.01 * i);
        add(&made, "two", other, -0.5);
    }
    struct regime regime;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, NULL);
    assert_true(regime.known && !regime.poor);
    assert_int_equal(regime.runs[REGIME_ALIKE], 20);
    assert_int_equal(regime.runs[REGIME_ALL], 20);
    assert_int_equal(regime.first, REGIME_ALIKE);
    assert_near(regime.median, 0.105, 1e-9);
    assert_near(regime.factors.low, 1 / 1.19, 1e-9);
    assert_near(regime.factors.high, 1, EXACT);
    made.runs.table.rows.at[0].used_in_fit = "a.yaml";
    made.runs.table.rows.at[2].same = 0;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, NULL);
    assert_int_equal(regime.runs[REGIME_ALIKE], 18);
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, "one");
    assert_int_equal(regime.first, REGIME_ALL);
    assert_true(regime.poor);
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, "two");
    assert_int_equal(regime.runs[REGIME_ALL], 0);
    release(&made);
}

/* Six families are alike and weigh six; the other generation's ten weigh the three that lack, 0.3 each: of 9 in all,
 * 5 % on each side are 0.45. From above: 0.3 of +50 %, 0.6 with the next, so the second largest is enough. */
static void test_filled(void **state)
{
    (void)state;
    struct made made = {0};
    struct nearest_job other = job;
    other.arch = "Ampere";
    for (int i = 0; i < 6; i++)
        add(&made, "one", job, 0.0);
    for (int i = 1; i <= 10; i++)
        add(&made, "two", other, 0.05 * i);
    struct regime regime;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, NULL);
    assert_true(regime.known && regime.poor);
    assert_int_equal(regime.first, REGIME_ALIKE);
    assert_near(regime.factors.low, 1 / 1.45, 1e-9);
    /* All of one regime: ten weigh one each. */
    regime_find(&regime, &made.runs, &other, REGIME_OF_SPEED, 0, NULL);
    assert_false(regime.poor);
    assert_near(regime.factors.low, 1 / 1.5, 1e-9);
    release(&made);
}

/* Every source weighs the same: 30 families of one that is right, one of one that is 40 % off. */
static void test_sources(void **state)
{
    (void)state;
    struct made made = {0};
    for (int i = 0; i < 30; i++)
        add(&made, "one", job, 0);
    add(&made, "two", job, 0.4);
    struct regime regime;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, NULL);
    assert_near(regime.factors.low, 1 / 1.4, 1e-9);
    assert_near(regime.median, 0, EXACT);
    release(&made);
}

/* Three sources of one family each. Two are 10 % below the prediction, one 21 %: without itself each of the two has an
 * interval twice as wide as it needs, the third one half as wide. Nine of ten of three are all. A job that waits for
 * half of its step, where waiting is seven times as far off: hypot(0.5, 3.5) times as wide. */
static void test_new_source(void **state)
{
    (void)state;
    struct made made = {0};
    add(&made, "one", job, 0.1);
    add(&made, "two", job, 0.1);
    add(&made, "three", job, 0.21);
    regime_leave_out(&made.runs);
    assert_near(made.runs.new_source[REGIME_OF_SPEED][true], 2, 1e-9);
    assert_near(made.runs.new_source[REGIME_OF_SPEED][false], 0, 0);
    struct regime regime;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0.5, NULL);
    assert_near(regime.factors.low, pow(1.21, -2), 1e-9); /* how far off waiting is, is not known */
    made.runs.waiting = 7;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0.5, NULL);
    assert_near(regime.factors.low, pow(1.21, -2 * hypot(0.5, 3.5)), 1e-9);
    struct arena arena = ARENA_INIT;
    assert_non_null(strstr(regime_text(&arena, &regime, &job), " off what is predicted where 50 % of the step waits;"));
    assert_null(strstr(regime_text(&arena, &regime, &job), "none of them on"));
    struct nearest_job own = job;
    own.gpu = "My-H20";
    regime_find(&regime, &made.runs, &own, REGIME_OF_SPEED, 0.5, NULL);
    assert_non_null(strstr(regime_text(&arena, &regime, &own), ", none of them on My-H20"));
    arena_release(&arena);
    release(&made);
}

static void test_none(void **state)
{
    (void)state;
    struct made made = {0};
    struct regime regime;
    struct arena arena = ARENA_INIT;
    regime_find(&regime, &made.runs, &job, REGIME_OF_SPEED, 0, NULL);
    assert_false(regime.known);
    assert_non_null(strstr(regime_text(&arena, &regime, &job), "not known"));
    struct nearest_job other = job;
    other.precision = "fp8_mixed";
    other.experts = true;
    add(&made, "one", job, 0.1);
    regime_find(&regime, &made.runs, &other, REGIME_OF_SPEED, 0, NULL);
    const char *text = regime_text(&arena, &regime, &other);
    assert_non_null(strstr(text,
        "no run of this regime (Hopper, FP8, TP+PP, experts) was measured; the nearest (Hopper): 1 run of 1 source"));
    release(&made);
    arena_release(&arena);
}

/* Of the published runs, each with its own source left out, a source weighing one, nine of ten are inside. */
static void test_published(void **state)
{
    (void)state;
    struct nearest_runs runs;
    struct diag diag = DIAG_INIT;
    assert_true(nearest_load(&runs, FLOPCAST_SOURCE_DIR "/results/validated.csv", &diag));
    const struct validate_row *rows = runs.table.rows.at;
    double covered = 0, weight = 0;
    for (int r = 0; r < runs.table.rows.n; r++) {
        int of_source = 0, place = 0;
        for (int i = 0; i < runs.table.rows.n; i++) {
            bool counts = rows[i].has_error && !*rows[i].used_in_fit && strcmp(rows[i].source, rows[r].source) == 0;
            of_source += counts;
            place += counts && i < r;
        }
        int step = 1 + of_source / 20;
        if (!rows[r].has_error || *rows[r].used_in_fit || place % step != 0)
            continue;
        struct regime regime;
        regime_find(&regime, &runs, &runs.jobs[r], REGIME_OF_SPEED, rows[r].waiting_share, rows[r].source);
        double measured = 1 / (1 + rows[r].error);
        double share = (double)step / of_source;
        covered += measured >= regime.factors.low && measured <= regime.factors.high ? share : 0;
        weight += share;
    }
    printf("%.1f %% of the weight of sources is covered as new; widened %.2f, poorly known %.2f (peaks %.2f, %.2f)\n",
        100 * covered / weight, runs.new_source[REGIME_OF_SPEED][0], runs.new_source[REGIME_OF_SPEED][1],
        runs.new_source[REGIME_OF_PEAK][0], runs.new_source[REGIME_OF_PEAK][1]);
    assert_in_range(1000 * covered / weight, 850, 950);
    nearest_release(&runs);
}

/* From what is alike to all runs: each name leaves out what does not count there. */
static void test_names(void **state)
{
    (void)state;
    static const char *const shared[] = {"Hopper, 16 bit, TP+PP, experts",
        "Hopper, 16 bit, ranks that share a model, experts", "Hopper, 16 bit", "Hopper", "all runs"};
    static const char *const data[] = {"Hopper, 16 bit, data parallelism",
        "Hopper, 16 bit, one GPU or data parallelism", "Hopper, 16 bit", "Hopper", "all runs"};
    struct arena arena = ARENA_INIT;
    struct nearest_job experts = job, alone = job;
    experts.experts = true;
    alone.layout = "DP";
    for (int rung = 0; rung < REGIME_RUNGS; rung++) {
        assert_string_equal(regime_name(&arena, &experts, (enum regime_rung)rung), shared[rung]);
        assert_string_equal(regime_name(&arena, &alone, (enum regime_rung)rung), data[rung]);
    }
    arena_release(&arena);
}

/* Two containers of one maker are one source, and its model on a GPU one family. */
static void test_one_maker(void **state)
{
    (void)state;
    assert_true(lessons_same_source("Megatron-Bridge, NeMo container 26.04", "Megatron-Bridge, NeMo container 26.06"));
    assert_true(lessons_same_source("nanotron", "nanotron"));
    assert_false(lessons_same_source("MLPerf Training v5.0, bert", "MLPerf Training v5.1, bert"));
    assert_false(lessons_same_source("nano", "nanotron"));
    struct validate_row a = {.source = "Lab, 1", .gpu = "H100", .model = "m"}, b = a;
    b.source = "Lab, 2";
    assert_true(lessons_same_family(&a, &b));
    b.gpu = "B200";
    assert_false(lessons_same_family(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_maker),
        cmocka_unit_test(test_rungs),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_filled),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_new_source),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
