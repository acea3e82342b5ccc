#include "report/report.h"

#include "../store/check.h"
#include "../store/sample.h"

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void write_figure(const char *sql, const char *gp)
{
    write_text("fig.sql", sql);
    write_text("fig.gp", gp);
}

/* The file's text, or NULL when there is no such file. */
static char *read_text(const char *path, size_t *n)
{
    char *text = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    FILE *copy = open_memstream(&text, n);
    int c;
    while ((c = getc(file)) != EOF)
        putc(c, copy);
    fclose(copy);
    fclose(file);
    return text;
}

static enum status plot(const char *out, bool keep_script, struct diag *diag)
{
    struct report_plot what = {
        .folder = ".", .figure = "fig", .db = "sample.db", .out = out, .keep_script = keep_script};
    *diag = DIAG_INIT;
    return report_plot(&what, diag);
}

static const char points_sql[] =
    "-- name: points\nSELECT gpus, tflops_per_gpu AS tflops FROM v_scaling ORDER BY gpus\n";
static const char points_gp[] = "plot $points using \"gpus\":\"tflops\" with lines\n";

static int set_up(void **state)
{
    struct sample sample;
    if (enter_folder(state) != 0)
        return -1;
    struct diag diag = DIAG_INIT;
    struct store *store = must_open("sample.db", STORE_WRITE);
    sample_put(store, sample_init(&sample), &diag);
    store_close(store);
    assert_string_equal(diag.text, "");
    return 0;
}

static void draws_png_and_svg(void **state)
{
    struct diag diag;
    size_t n = 0;
    (void)state;
    write_figure(points_sql, points_gp);
    assert_int_equal(plot("a.png", false, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    char *picture = read_text("a.png", &n);
    /* a PNG begins with this signature and ends with the chunk IEND and its checksum */
    assert_true(n > 1000 && memcmp(picture, "\x89PNG\r\n\x1a\n", 8) == 0 &&
                memcmp(picture + n - 8, "IEND", 4) == 0);
    free(picture);
    assert_int_equal(plot("a.svg", false, &diag), STATUS_OK);
    picture = read_text("a.svg", &n);
    assert_non_null(strstr(picture, "<svg"));
    assert_non_null(strstr(picture, "</svg>"));
    free(picture);
}

static void kept_script_holds_the_data_and_draws_alone(void **state)
{
    struct diag diag;
    size_t n = 0, n_again = 0;
    (void)state;
    write_figure(points_sql, points_gp);
    assert_int_equal(plot("it's.svg", true, &diag), STATUS_OK);
    char *script = read_text("it's.svg.gp", &n);
    assert_non_null(strstr(
        script, "$points << EOD\n\"gpus\" \"tflops\"\n8 150.0\n16 125.0\n32 100.0\n64 NaN\nEOD\n"));
    assert_non_null(strstr(script, "set output 'it''s.svg'\n"));
    free(script);
    char *picture = read_text("it's.svg", &n);
    assert_int_equal(remove("it's.svg"), 0);
    assert_int_equal(system("gnuplot -d \"it's.svg.gp\""), 0);
    char *again = read_text("it's.svg", &n_again);
    assert_non_null(again);
    assert_true(n == n_again && memcmp(picture, again, n) == 0);
    free(picture);
    free(again);
}

/* Whatever a text of the database holds, gnuplot and the shell must take it for text. */
static void texts_are_only_texts(void **state)
{
    struct diag diag;
    size_t n = 0;
    (void)state;
    write_figure("-- name: points\nSELECT 1 AS x, 2 AS y,\n'`touch hacked` $(touch hacked) \" "
                 "system(\"touch hacked\") @x\n"
                 "EOD\n!touch hacked\n{/=50 big} a_b' AS label\nUNION ALL SELECT 2, 3, 'other'\n",
        "set title word($points[2], 3)\n"
        "plot $points using \"x\":\"y\":\"label\" with labels title word($points[2], 3)\n");
    assert_int_equal(plot("texts.svg", false, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    assert_int_equal(access("hacked", F_OK), -1);
    char *picture = read_text("texts.svg", &n);
    assert_non_null(strstr(picture, "`touch hacked` $(touch hacked)"));
    assert_non_null(strstr(picture, "{/=50 big} a_b"));
    free(picture);
}

static void failed_plot_leaves_the_old_picture(void **state)
{
    struct diag diag;
    size_t n = 0;
    (void)state;
    write_text("old.png", "old");
    write_figure(points_sql, "plot $nosuch using 1:2\n");
    assert_int_equal(plot("old.png", false, &diag), STATUS_IO);
    assert_non_null(strstr(diag.text, "gnuplot failed: "));
    assert_non_null(strstr(diag.text, "nosuch"));
    assert_int_equal(diag.n_errors, 1);
    char *picture = read_text("old.png", &n);
    assert_string_equal(picture, "old");
    free(picture);
    write_figure(points_sql, points_gp);
    assert_int_equal(plot("no/such/folder.png", false, &diag), STATUS_IO);
    assert_non_null(
        strstr(diag.text, "no/such/folder.png: error: cannot write: No such file or directory"));
    assert_int_equal(system("test -z \"$(ls | grep 'old.png.')\""), 0); /* no temporary file */
}

static void mistakes_are_reported_where_they_stand(void **state)
{
    static const struct {
        const char *sql, *out, *says;
    } cases[] = {
        {"-- a comment\n\n-- name: points\nSELECT nosuch FROM v_scaling\n", "a.png",
            "./fig.sql:3:1: error: SQL: no such column: nosuch"},
        {"-- name: one\nSELECT 1\n-- name: Two!\nSELECT 2\n", "a.png",
            "./fig.sql:3:1: error: 'Two!' cannot name a data block"},
        {"-- name: points\nSELECT 1 WHERE 0\n", "a.png",
            "nothing in this database is for figure 'fig', which shows: what its SQL selects. "
            "Store that first, with --db "},
        {"-- name: points\nSELECT :nosuch\n", "a.png",
            "./fig.sql:1:1: error: SQL: nothing gives the parameter ':nosuch' a value"},
        {"SELECT 1\n", "a.png", "write a line \"-- name: SERIES\" above each SELECT"},
        {"-- name: points\nSELECT 1\n", "a.jpg", "must end in .png, .svg or .pdf"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diag diag;
        write_figure(cases[i].sql, points_gp);
        assert_int_equal(plot(cases[i].out, false, &diag), STATUS_INPUT);
        assert_non_null(strstr(diag.text, cases[i].says));
    }
    struct diag diag = DIAG_INIT;
    struct report_plot absent = {.folder = ".", .figure = "fgi", .db = "sample.db", .out = "a.png"};
    assert_int_equal(report_plot(&absent, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "there is no figure 'fgi'; there are: fig\n"));
}

static void missing_gnuplot_is_reported_with_the_remedy(void **state)
{
    struct diag diag;
    (void)state;
    write_figure(points_sql, points_gp);
    const char *before = getenv("PATH");
    char *path = strdup(before ? before : "");
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    assert_int_equal(plot("b.png", false, &diag), STATUS_IO);
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
    assert_non_null(strstr(diag.text, "sudo apt install gnuplot-nox"));
    assert_int_equal(access("b.png", F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws_png_and_svg),
        cmocka_unit_test(kept_script_holds_the_data_and_draws_alone),
        cmocka_unit_test(texts_are_only_texts),
        cmocka_unit_test(failed_plot_leaves_the_old_picture),
        cmocka_unit_test(mistakes_are_reported_where_they_stand),
        cmocka_unit_test(missing_gnuplot_is_reported_with_the_remedy)};
    return cmocka_run_group_tests(tests, set_up, leave_folder);
}
