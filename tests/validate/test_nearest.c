/* Distances worked by hand; which rows are found, and their statistics; that the distance is worth something. */
#include "validate/nearest.h"

#include <gsl/gsl_statistics_double.h>
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
    "A100-SXM4-80GB", "composer", "FULL_SHARD", "DP", "bf16_mixed", .params = 8e9, .gpus = 64, .arch = "Ampere"};

static void test_distance(void **state)
{
    (void)state;
    double terms[NEAREST_TERMS];
    assert_near(nearest_distance(terms, &job, &job), 0, EXACT);
    /* a variant 0.5, another stack 1, TP and PP more 2, 4 x the parameters 2 x 0.5, an eighth of the GPUs 3 x 0.5 */
    struct nearest_job other = {
        "A100-SXM4-40GB", "nanotron", "FULL_SHARD", "TP+PP+DP", "bf16_mixed", .params = 32e9, .gpus = 8};
    assert_near(nearest_distance(terms, &job, &other), 0.5 + 1 + 2 + 1 + 1.5, EXACT);
    assert_near(terms[NEAREST_GPU], 0.5, EXACT);
    assert_near(terms[NEAREST_LAYOUT], 2, EXACT);
    assert_near(terms[NEAREST_STRATEGY], 0, EXACT);
    assert_near(nearest_distance(terms, &other, &job), 6, EXACT);
    other.gpu = "A10-24GB"; /* no variant of the A100: the name up to the first '-' is another */
    other.params = 0;       /* not known */
    assert_near(nearest_distance(terms, &job, &other), 1 + 1 + 2 + 1.5, EXACT);
}

static void test_layout(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    assert_string_equal(nearest_layout(&arena, (const int64_t[]){2, 1, 1, 4, 8}), "TP+PP+DP");
    assert_string_equal(nearest_layout(&arena, (const int64_t[]){1, 1, 1, 1, 1}), "one GPU");
    arena_release(&arena);
}

enum { MADE = 30 };

/* Rows of 64 * 2^r GPUs with an error of r %, every third in a fit. */
static void test_find(void **state)
{
    (void)state;
    struct nearest_job jobs[MADE];
    struct nearest_runs runs = {.jobs = jobs};
    for (int r = 0; r < MADE; r++) {
        jobs[r] = job;
        jobs[r].gpus = 64LL << r;
        vec_push(&runs.table.rows, (struct validate_row){.source = r == 1 ? "one" : "others",
                                       .used_in_fit = r % 3 == 2 ? "a.yaml" : "",
                                       .same = r == 4 ? 3 : r,
                                       .has_error = r != 6,
                                       .error = (r % 2 ? -0.01 : 0.01) * r});
    }
    struct nearest found;
    nearest_find(&found, &runs, &job, NULL);
    /* Of 30 rows 10 are in a fit, row 4 is the same run as row 3, row 6 has no error: 18 are left, 0 1 3 7 9 10 12 ...
     * 27 28. Row r is at a distance of r / 2, so 0 1 3 are nearer than NEAREST_FAR: their median is 1 %, 90 % lie at
     * 0.9 x 2 = 1.8: 1 + 0.8 x 2. Row 29 is in a fit, and further away than row 28: 9 fitted rows are as near. */
    assert_int_equal(found.n, 18);
    assert_int_equal(found.runs[0].row, 0);
    assert_int_equal(found.runs[17].row, 28);
    assert_near(found.runs[17].distance, 14, EXACT);
    assert_int_equal(found.n_near, 3);
    assert_near(found.median, 0.01, EXACT);
    assert_near(found.p90, 0.026, EXACT);
    assert_int_equal(found.n_fitted, 9);
    nearest_find(&found, &runs, &job, "one");
    assert_int_equal(found.n, 17);
    nearest_find(&found, &runs, &job, "others");
    assert_int_equal(found.n, 1);
    assert_near(found.bias, -0.01, EXACT);
    /* GPUs of another generation and other precisions are never near. */
    jobs[0].arch = "Hopper";
    jobs[3].precision = "fp8_mixed";
    nearest_find(&found, &runs, &job, NULL);
    assert_int_equal(found.n, 16);
    assert_int_equal(found.runs[0].row, 1);
    vec_free(&runs.table.rows);
    vec_free(&runs.table.files);
}

/* Rows of this row's source with an error: their number before it, and in all. */
static int place_in_source(const struct nearest_runs *runs, int row, int *all)
{
    const struct validate_row *rows = runs->table.rows.at;
    int before = 0;
    *all = 0;
    for (int r = 0; r < runs->table.rows.n; r++) {
        bool counts = rows[r].has_error && strcmp(rows[r].source, rows[row].source) == 0;
        *all += counts;
        before += counts && r < row;
    }
    return before;
}

/* Of the published runs: a row's nearest rows are off as it is itself. Without a distance (any 20 rows) the correlation
 * is about 0. Some rows of each source, so that no source outweighs the others. */
static void test_worth(void **state)
{
    (void)state;
    enum { OF_A_SOURCE = 8 };
    static const double LEAST = 0.4; /* 0.45 today */
    struct nearest_runs runs;
    struct diag diag = DIAG_INIT;
    assert_true(nearest_load(&runs, FLOPCAST_SOURCE_DIR "/results/validated.csv", &diag));
    VEC(double) expected = {0}, seen = {0};
    int sizes = 0, rows = 0;
    for (int r = 0; r < runs.table.rows.n; r++) {
        struct validate_row *row = &runs.table.rows.at[r];
        int all, place = row->has_error ? place_in_source(&runs, r, &all) : 0;
        sizes += row->has_error && runs.jobs[r].params > 0;
        rows += row->has_error;
        if (row->has_error && strcmp(row->model, "nemo-llama3-70b") == 0) /* as published, between rows of 1B and 80B */
            assert_near(runs.jobs[r].params, 70.6e9, 0.1e9);
        if (!row->has_error || place % (1 + all / OF_A_SOURCE) != 0)
            continue;
        struct nearest found;
        row->has_error = false; /* itself */
        nearest_find(&found, &runs, &runs.jobs[r], NULL);
        row->has_error = true;
        vec_push(&expected, found.median);
        vec_push(&seen, fabs(row->error));
    }
    double *work = xcalloc(2 * (size_t)seen.n, sizeof *work);
    double correlation = gsl_stats_spearman(expected.at, 1, seen.at, 1, (size_t)seen.n, work);
    printf("rank correlation %.2f of %d rows\n", correlation, seen.n);
    free(work);
    vec_free(&expected);
    vec_free(&seen);
    nearest_release(&runs);
    assert_true(rows > 1000);
    assert_int_equal(sizes, rows); /* every model file is found */
    assert_true(correlation > LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distance), cmocka_unit_test(test_layout),
        cmocka_unit_test(test_find), cmocka_unit_test(test_worth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
