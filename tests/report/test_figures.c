/* Every figure of plots/ draws, without a complaint, whatever the newest run is. */
#include "report/report.h"

#include "../store/check.h"
#include "../store/sample.h"

#include "scenario/sample.h"
#include "store/explanation.h"
#include "store/fit.h"
#include "store/insert.h"
#include "store/validation.h"

#include <dirent.h>

#define PUT(table, ...)                                                                                                \
    store_fit_put(fit, table, (const struct record_cell[]){__VA_ARGS__},                                               \
        (int)(sizeof((const struct record_cell[]){__VA_ARGS__}) / sizeof(struct record_cell)), diag)

/* Two tables of nccl-tests, one fitted and one left out, of six sizes each. */
static void put_fit(struct store *store, struct diag *diag)
{
    struct store_fit *fit = NULL;
    store_fit_begin(&fit, store, STORE_FIT_NCCL, "measured", diag);
    for (int place = 0; place < 2; place++) {
        PUT(FIT_TABLE, cell_int("place", place), cell_text("use", place ? "left_out" : "fit"), cell_text("family", "f"),
            cell_text("source", "s"), cell_text("gpu", "g"), cell_text("topology", "t"),
            cell_text("collective", "all_reduce"), cell_int("nodes", 2), cell_int("ranks", 16), cell_text("note", ""),
            cell_real("large_error", true, 0.1), cell_real("small_error", true, 0.2));
        for (int i = 0; i < 6; i++)
            PUT(FIT_POINT, cell_int("place", place), cell_int("bytes", 1 << (10 + 2 * i)),
                cell_real("measured_s", true, 1e-5 * (1 + i)), cell_real("predicted_s", true, 1.1e-5 * (1 + i)),
                cell_real("bus_bytes", true, 2 << (10 + 2 * i)), cell_text("algorithm", "Ring"),
                cell_text("protocol", "LL"));
    }
    store_fit_end(fit, STATUS_OK, diag);
}

/* A log of six sizes. */
static void put_check(struct store *store, struct diag *diag)
{
    struct store_fit *fit = NULL;
    store_fit_begin(&fit, store, STORE_FIT_CHECK, "a log.txt", diag);
    PUT(FIT_CHECK_TABLE, cell_text("topology", "t"), cell_text("gpu", "g"), cell_text("collective", "all_reduce"),
        cell_int("nodes", 2), cell_int("ranks", 16), cell_real("large_error", true, 0.1),
        cell_real("small_error", false, 0));
    for (int i = 0; i < 6; i++)
        PUT(FIT_CHECK_POINT, cell_int("bytes", 1 << (10 + 2 * i)), cell_real("measured_s", true, 1e-5 * (1 + i)),
            cell_real("predicted_s", true, 1.1e-5 * (1 + i)), cell_real("bus_bytes", true, 2 << (10 + 2 * i)),
            cell_text("algorithm", i < 3 ? "Tree" : "Ring"), cell_text("protocol", "LL"));
    store_fit_end(fit, STATUS_OK, diag);
}

/* A product of each use. */
static void put_gemm_fit(struct store *store, struct diag *diag)
{
    static const char *const uses[] = {"fitted", "held out", "narrow"};
    struct store_fit *fit = NULL;
    store_fit_begin(&fit, store, STORE_FIT_GEMM, "measured", diag);
    for (int i = 0; i < 3; i++)
        PUT(FIT_GEMM_ROW, cell_text("gpu", "g"), cell_text("dtype", "bf16"), cell_text("use", uses[i]),
            cell_int("m", 1024), cell_int("n", 1024), cell_int("k", 1024), cell_int("batch", 1 + i),
            cell_real("row_pieces", true, 0), cell_real("measured_s", true, 1e-5),
            cell_real("predicted_s", true, 9e-6));
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
    /* a step of 2 s: a kernel, and a collective that waits for its last member from 0.5 to 1 s */
    struct exec_span spans[] = {
        {.end = PS_PER_S, .alone = PS_PER_S, .stream = STREAM_COMPUTE, .name = "k"}, {.start = PS_PER_S / 2,
                                                                                         .moving = PS_PER_S,
                                                                                         .end = 2 * PS_PER_S,
                                                                                         .is_collective = true,
                                                                                         .stream = STREAM_COMM,
                                                                                         .name = "c"}};
    struct scenario_sample samples[] = {{true, {100, 2, 10}}, {true, {110, 1.8, 11}}};
    sample.results[0].exec.spans = spans;
    sample.results[0].exec.n_spans = 2;
    sample.results[0].samples = samples;
    sample.results[0].n_samples = 2;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        sample.points[0].options.name = scenarios[i];
        sample_put(store, &sample, &diag);
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
    for (int command = 0; command < 2; command++) { /* the newest has two curves */
        int64_t first = 0;
        for (int curve = 0; curve <= command; curve++)
            store_put_explanation(store, &waterfall, command ? curve ? "c2" : "c1" : "old", &sample.points[0],
                &sample.points[0], &first, &diag);
    }
    put_fit(store, &diag);
    put_gemm_fit(store, &diag);
    put_check(store, &diag);
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
        struct report_plot plot = {.folder = folder, .figure = figure, .db = "sample.db", .out = "figure.svg"};
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
