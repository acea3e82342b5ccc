/* Tables of `flopcast validate` on rows by hand: what views.sql works out of them, classes, the
 * rule of thumb, what is newest. */
#include "rows/sheet.h"
#include "lab/validate_parts.h"
#include "validate/tables.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct store *opened(const struct validate_table *table)
{
    struct store *evidence = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(evidence_open(&evidence, table, &diag), STATUS_OK);
    return evidence;
}

struct value {
    int rows;
    double number;
    char text[1024];
};

static void take(void *self, int n, const struct store_value *values)
{
    struct value *value = self;
    assert_int_equal(n, 1);
    if (value->rows++ == 0)
        return;
    value->number = values[0].number;
    size_t used = strlen(value->text);
    snprintf(value->text + used, sizeof value->text - used, "%s%s", used ? "; " : "",
        values[0].text ? values[0].text : "NULL");
}

static struct value asked(struct store *evidence, const char *sql)
{
    struct value value = {0};
    struct diag diag = DIAG_INIT;
    if (store_query(evidence, sql, (struct source_pos){.file = "test"}, take, &value, &diag) !=
        STATUS_OK)
        fail_msg("%s: %s", sql, diag.text);
    return value;
}

static void run_sql(struct store *evidence, const char *sql)
{
    struct diag diag = DIAG_INIT;
    while (*sql)
        assert_int_equal(
            store_next(evidence, &sql, (struct source_pos){.file = "test"}, NULL, NULL, &diag),
            STATUS_OK);
}

/* What a script prints, for free(). */
static char *printed(struct store *evidence, const char *name)
{
    char *text = NULL;
    size_t n = 0;
    struct diag diag = DIAG_INIT;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(
        sheet_markdown(out, evidence, texts_find(validate_tables, name), &diag), STATUS_OK);
    fclose(out);
    return text;
}

/* A row of which nothing is known. */
static const struct validate_row blank = {.file = "t.csv",
    .id = "",
    .source = "",
    .model = "",
    .gpu = "",
    .strategy = "",
    .used_in_fit = "",
    .framework = "",
    .layout = "",
    .reason = "",
    .apart = "",
    .suspected_cause = "",
    .waiting_share = -1};

/* Eleven rows off by 0 to 10 %, from 8 % on downwards, and one of another source. Of 11 in order
 * the 6th is the median and the 10th the 90th percentile: 5 and 9 %; with their signs three are
 * below 0 and the 6th is 2 %. */
static void a_summary_by_hand(void **state)
{
    (void)state;
    enum { N = 12 };
    struct validate_table table = {0};
    struct validate_row row = blank;
    row.source = "s";
    row.has_error = true;
    for (int i = 0; i < N; i++) {
        row.error = (i < 8 ? 0.01 : -0.01) * i;
        vec_push(&table.rows, row);
    }
    struct validate_row *rows = table.rows.at;
    rows[N - 1].source = "another";
    /* Measured and predicted ratios; where both are 1 it is a curve's smallest row. Off by 0.05,
     * 0.1, 0.02. */
    const double measured[] = {1, 0.9, 0.8, 1}, predicted[] = {1, 0.95, 0.7, 0.98};
    for (int i = 0; i < 4; i++) {
        rows[i].has_ratio = true;
        rows[i].measured_ratio = measured[i];
        rows[i].predicted_ratio = predicted[i];
    }
    for (int i = 0; i < 6; i++) {
        rows[i].interval.known = i < 5;
        rows[i].interval.covers = i >= 2; /* three that are known */
    }
    /* Peaks of 10 bytes, predicted 20 % too low, 10 and 30 % too high; a fourth is not known. */
    const double peaks[] = {8, 11, 13, 0};
    for (int i = 0; i < 4; i++) {
        rows[i].measured_peak_bytes = 10;
        rows[i].predicted_peak_bytes = peaks[i];
    }
    /* Out of memory as measured, not as measured, and measured though it ran; one that did not run
     * says nothing. */
    rows[7].status = rows[8].status = VALIDATE_OOM;
    rows[7].measured_oom = rows[9].measured_oom = true;
    rows[10].status = VALIDATE_NOT_SIMULATED;
    for (int i = 5; i < 11;
         i++) /* two that fit, one that does not, one too many, one too few, one not simulated */
        rows[i].has_verdict = true;
    for (int i = 0; i < 5; i++) { /* 10, 20, ... 50 % wide */
        rows[i].predicted.tokens_per_s_per_gpu = 2;
        rows[i].interval.low = 2 - 0.1 * (i + 1);
        rows[i].interval.high = 2 + 0.1 * (i + 1);
    }
    /* The second row's curve begins on one whole node; the others' in a part of one, and on two. */
    rows[0].node_gpus = 8, rows[0].gpus = 8;
    rows[2].smallest = 4, rows[4].node_gpus = 1, rows[4].gpus = 1;
    rows[3].smallest = 5, rows[5].node_gpus = 8, rows[5].gpus = 16;
    /* Runs that were repeated: rows 0 and 6, 1 and 7, ... 4 and 10, and row 5 alone. */
    for (int i = 0; i < N; i++)
        rows[i].same = i % 6;
    /* Allocated off by 10, reserved by 40 %. */
    rows[1].measured.peak_allocated_bytes = rows[2].measured.peak_reserved_bytes = 10;
    rows[1].predicted.peak_allocated_bytes = 9, rows[2].predicted.peak_reserved_bytes = 14;
    struct store *evidence = opened(&table);
    run_sql(evidence, "INSERT INTO member SELECT 0, source, '', i FROM run;");
    /* measured over predicted of a pair is the mean of both: of 0 and 6 % 2 / (1 + 1 / 1.06) - 1 =
     * 2.91 % and so on */
    double three = 1 - 2 / (1 / 1.03 + 1 / 0.91), four = 1 - 2 / (1 / 1.04 + 1 / 0.9);
    const struct {
        const char *column;
        double wanted;
    } columns[] = {{"n", 11}, {"not_simulated", 1}, {"speeds", 11}, {"bias", 0.02},
        {"mad", 0.03}, /* from 2 %: 0 1 1 2 2 3 4 5 10 11 12 */
        {"median", 0.05}, {"p90", 0.09}, {"mean", 0.05}, {"runs", 6},
        {"runs_median", (three + four) / 2}, {"ratios", 3}, {"ratio_mean", 0.17 / 3},
        {"ratio_most", 0.1}, {"node_ratios", 1}, {"node_ratio_mean", 0.05},
        {"node_ratio_median", 0.05}, {"peaks", 3}, {"peak_median", 0.2}, {"allocated", 1},
        {"allocated_median", 0.1}, {"reserved", 1}, {"reserved_median", 0.4}, {"fits_right", 2},
        {"oom_right", 1}, {"false_fits", 1}, {"false_oom", 1}, {"intervals", 5}, {"covered", 0.6},
        {"width", 0.3}, {"first_sights", 0}, {"missed", 0}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT %s FROM summary WHERE part = 's'", columns[i].column);
        if (!(fabs(asked(evidence, sql).number - columns[i].wanted) < 1e-12))
            fail_msg("%s: %.17g, not %.17g", sql, asked(evidence, sql).number, columns[i].wanted);
    }
    assert_string_equal(
        asked(evidence, "SELECT first_sight_median FROM summary WHERE part = 's'").text, "NULL");
    store_close(evidence);
    vec_free(&table.rows);
}

static void classes_come_in_their_order(void **state)
{
    (void)state;
    static const struct {
        int64_t gpus;
        double waiting;
    } cases[] = {{1024, 0.5}, {8, -1}, {1, 0}, {9, 0.05}, {512, 0.3}, {65, 0.29}};
    struct validate_table table = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct validate_row row = blank;
        row.source = i % 2 ? "b" : "c";
        row.layout = i % 2 ? "TP+DP" : "";
        row.gpus = cases[i].gpus;
        row.waiting_share = cases[i].waiting;
        vec_push(&table.rows, row);
    }
    static const struct {
        const char *sql, *wanted;
    } questions[] = {
        {"SELECT part FROM class WHERE kind = 'gpus' ORDER BY i",
            "more than 512; 2 to 8; 1; 9 to 64; 65 to 512; 65 to 512"},
        {"SELECT part FROM class WHERE kind = 'waiting' ORDER BY i",
            "50 % and more; no step; under 5 %; 5 to 15 %; 30 to 50 %; 15 to 30 %"},
        {"SELECT DISTINCT part FROM class WHERE kind = 'gpus' ORDER BY place",
            "1; 2 to 8; 9 to 64; 65 to 512; more than 512"},
        {"SELECT DISTINCT part FROM class WHERE kind = 'source' ORDER BY place",
            "c; b"}, /* as they come */
        {"SELECT DISTINCT part FROM class WHERE kind = 'framework'", "no stack profile"},
        {"SELECT DISTINCT part FROM class WHERE kind = 'layout' ORDER BY part",
            "TP+DP; not simulated"},
    };
    struct store *evidence = opened(&table);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        assert_string_equal(asked(evidence, questions[i].sql).text, questions[i].wanted);
    char *page = printed(evidence, "page_gpus");
    assert_non_null(strstr(
        page, "| 65 to 512 | 2 | 0 | 0 |  |  |  |  | 0 |  | | 0 | 0 |\n| more than 512 | 1 |"));
    free(page);
    store_close(evidence);
    vec_free(&table.rows);
}

/* Fitted ratios of 0.98 after one doubling and 0.92 after two: least squares through 0, (1 x 0.02 +
 * 2 x 0.08) / (1 + 4) = 0.036 a doubling. Another ratio of 0.9 after two doublings: the rule says
 * 0.928, the prediction 0.907. */
static void skill_is_what_a_rule_of_thumb_lacks(void **state)
{
    (void)state;
    struct validate_table table = {0};
    static const struct {
        int64_t gpus;
        const char *fit;
        double measured, predicted;
    } rows[] = {{8, "a.yaml", 1, 1}, {16, "a.yaml", 0.98, 0.5}, {32, "a.yaml", 0.92, 0.5},
        {8, "", 1, 1}, {32, "", 0.9, 0.907}};
    for (int i = 0; i < 5; i++) {
        struct validate_row row = blank;
        row.gpus = rows[i].gpus;
        row.used_in_fit = rows[i].fit;
        row.has_ratio = true;
        row.smallest = i < 3 ? 0 : 3;
        row.measured_ratio = rows[i].measured;
        row.predicted_ratio = rows[i].predicted;
        vec_push(&table.rows, row);
    }
    struct store *evidence = opened(&table);
    char *text = printed(evidence, "skill");
    assert_string_equal(text,
        "\na loss of 3.60 % with each doubling of the GPUs, fitted to 2 ratios that fits rest on, "
        "is 2.8 points off the other 1 in\nthe mean; predictions 0.7: a skill of 75 %\n");
    free(text);
    store_close(evidence);
    vec_free(&table.rows);
}

/* First sights of a day and of an older one: of the newest hundred are all of the first day that
 * has them, and none of an older day. */
static void newest_first_sights_are_of_whole_days(void **state)
{
    (void)state;
    struct validate_table table = {0};
    for (int i = 0; i < 150; i++) {
        struct validate_row row = blank;
        row.has_first_sight = true;
        row.first_sight_error = i < 20 ? 0.5 : i < 140 ? -0.1 : 0.2;
        row.first_sight_file = i < 20    ? "predictions/2026_11_22_a.csv"
                               : i < 140 ? "predictions/2026_11_23_b.csv"
                                         : "predictions/2026_11_26_c.csv";
        vec_push(&table.rows, row);
    }
    struct store *evidence = opened(&table);
    char *text = printed(evidence, "page_summary");
    assert_non_null(strstr(text,
        "150 published runs were predicted blind: median error 10.0 %, of the newest 130 10.0 %."));
    assert_non_null(strstr(text, "Today 0 that no fit rests on are at 0.0 %"));
    free(text);
    store_close(evidence);
    vec_free(&table.rows);
}

/* Each script runs, also without a row. */
static void every_table_can_be_asked(void **state)
{
    (void)state;
    struct validate_table table = {0};
    struct store *evidence = opened(&table);
    run_sql(evidence,
        "CREATE TABLE claims (simulator, what, error, source, kind); CREATE TABLE groups "
        "(\"group\", sources, gpus, in_fits);CREATE TABLE peers (sample, tool, version, id, "
        "step_time_s);CREATE TABLE nccl_tables (status, collective, nodes, gpu, source, "
        "suspected_cause);");
    int n = 0;
    for (const struct text *script = validate_tables; script->name; script++, n++)
        if (strcmp(script->name, "views") != 0)
            free(printed(evidence, script->name));
    assert_true(n > 20);
    store_close(evidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_summary_by_hand),
        cmocka_unit_test(classes_come_in_their_order),
        cmocka_unit_test(skill_is_what_a_rule_of_thumb_lacks),
        cmocka_unit_test(newest_first_sights_are_of_whole_days),
        cmocka_unit_test(every_table_can_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
