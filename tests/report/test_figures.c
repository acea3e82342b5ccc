/* Every figure of plots/ draws, without a complaint, whatever the newest run is. */
#include "report/report.h"

#include "../store/check.h"
#include "../store/sample.h"

#include "store/explanation.h"
#include "store/fit.h"
#include "store/validation.h"

#include <dirent.h>

/* A fit of one table of five sizes. */
static void put_fit(struct store *store, struct diag *diag)
{
    struct store_fit *fit;
    const struct record_cell table[] = {cell_int("place", 0), cell_text("use", "left_out"), cell_text("family", "f"),
        cell_text("source", "s"), cell_text("gpu", "g"), cell_text("topology", "t"),
        cell_text("collective", "all_reduce"), cell_int("nodes", 2), cell_int("ranks", 16), cell_text("note", ""),
        cell_real("large_error", true, 0.1), cell_real("small_error", false, 0)};
    store_fit_begin(&fit, store, "measured", diag);
    store_fit_put(fit, FIT_TABLE, table, sizeof table / sizeof *table, diag);
    for (int i = 0; i < 5; i++) {
        const struct record_cell point[] = {cell_int("place", 0), cell_int("bytes", 1 << (16 + i)),
            cell_real("measured_s", true, 1e-3), cell_real("predicted_s", true, 1.1e-3),
            cell_real("bus_bytes", true, 1e6), cell_text("algorithm", "Ring"), cell_text("protocol", "LL")};
        store_fit_put(fit, FIT_POINT, point, sizeof point / sizeof *point, diag);
    }
    store_fit_end(fit, STATUS_OK, diag);
}

static int set_up(void **state)
{
    static const char *const scenarios[] = {"t5_scaling", "t5_model_scale"}; /* what the figures ask for by name */
    struct sample sample;
    if (enter_folder(state) != 0)
        return -1;
    struct diag diag = DIAG_INIT;
    struct store *store = must_open("sample.db", STORE_WRITE);
    sample_init(&sample);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        sample.points[0].options.name = scenarios[i];
        store_put(store, &sample.set, sample.results, &diag);
    }
    struct validate_table runs = {0};
    for (int i = 0; i < 4; i++)
        vec_push(&runs.rows, (struct validate_row){.id = "a",
                                 .source = i < 2 ? "one" : "two",
                                 .model = "m",
                                 .gpu = "g",
                                 .strategy = "s",
                                 .used_in_fit = i % 2 ? "" : "x.yaml",
                                 .reason = "",
                                 .gpus = 8 << i,
                                 .has_error = true,
                                 .measured.tokens_per_s_per_gpu = 1000 + i,
                                 .predicted.tokens_per_s_per_gpu = 1100,
                                 .error = 0.1 - 0.01 * i});
    store_put_validation(store, &runs, "runs.csv", &diag);
    vec_free(&runs.rows);
    const struct scenario_waterfall waterfall = {.small = {100}, .large = {90}, .part = {2, 5, 0, 4, 0}, .rest = -1};
    store_put_explanation(store, &waterfall, "m", &sample.points[0], &sample.points[0], &diag);
    put_fit(store, &diag);
    store_close(store);
    assert_string_equal(diag.text, "");
    return 0;
}

static void every_figure_draws(void **state)
{
    static const char folder[] = FLOPCAST_SOURCE_DIR "/plots";
    int drawn = 0;
    (void)state;
    DIR *plots = opendir(folder);
    assert_non_null(plots);
    for (struct dirent *entry = readdir(plots); entry; entry = readdir(plots)) {
        char figure[256];
        snprintf(figure, sizeof figure, "%s", entry->d_name);
        char *dot = strrchr(figure, '.');
        if (!dot || strcmp(dot, ".sql") != 0)
            continue;
        *dot = '\0';
        struct diag diag = DIAG_INIT;
        struct report_plot plot = {folder, figure, "sample.db", "figure.svg", false};
        report_plot(&plot, &diag);
        assert_string_equal(diag.text, "");
        drawn++;
    }
    closedir(plots);
    assert_true(drawn >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_figure_draws)};
    return cmocka_run_group_tests(tests, set_up, leave_folder);
}
