/* Every figure of plots/ draws at 1, 10 and 300 points, or says in a sentence how to choose
 * fewer; gnuplot has nothing to complain of. FLOPCAST_TEST_PICTURES=folder keeps the pictures, to
 * look at them. */
#include "report/report.h"

#include "../store/check.h"
#include "../store/sample.h"

#include "scenario/causes.h"
#include "scenario/sample.h"
#include "store/answer.h"
#include "store/run.h"

#include <dirent.h>
#include <math.h>

#define PUT(part, ...) store_answer_put(&answer, part, RECORD_CELLS(__VA_ARGS__), diag)

/* n tables of nccl-tests, fitted and left out in turn, of six sizes each. */
static void put_fit(struct store *store, int n, struct diag *diag)
{
    struct store_answer answer;
    store_answer_begin(
        &answer, store, "nccl", RECORD_CELLS(cell_text("measured", "measured")), diag);
    for (int place = 0; place < n; place++) {
        PUT("table", cell_int("place", place), cell_text("use", place % 2 ? "left_out" : "fit"),
            cell_text("family", "f"), cell_text("source", "s"), cell_text("gpu", "g"),
            cell_text("topology", "t"), cell_text("collective", "all_reduce"), cell_int("nodes", 2),
            cell_int("ranks", 16), cell_text("note", ""), cell_real("large_error", true, 0.1),
            cell_real("small_error", true, 0.2));
        for (int i = 0; i < 6; i++)
            PUT("point", cell_int("place", place), cell_int("bytes", 1 << (10 + 2 * i)),
                cell_real("measured_s", true, 1e-5 * (1 + i)),
                cell_real("predicted_s", true, (1.1 + 0.0001 * place) * 1e-5 * (1 + i)),
                cell_real("bus_bytes", true, 2 << (10 + 2 * i)), cell_text("algorithm", "Ring"),
                cell_text("protocol", "LL"));
    }
    store_answer_end(&answer, STATUS_OK, diag);
}

/* A log of n sizes. */
static void put_check(struct store *store, int n, struct diag *diag)
{
    struct store_answer answer;
    store_answer_begin(
        &answer, store, "nccl_check", RECORD_CELLS(cell_text("measured", "a log.txt")), diag);
    PUT("table", cell_text("topology", "t"), cell_text("gpu", "g"),
        cell_text("collective", "all_reduce"), cell_int("nodes", 2), cell_int("ranks", 16),
        cell_real("large_error", true, 0.1), cell_real("small_error", false, 0));
    for (int i = 0; i < n; i++)
        PUT("point", cell_int("bytes", (int64_t)1024 * (1 + 7 * i * i)),
            cell_real("measured_s", true, 1e-5 * (1 + i)),
            cell_real("predicted_s", true, (1.1 + 0.1 * (i % 3)) * 1e-5 * (1 + i)),
            cell_real("bus_bytes", true, 2048.0 * (1 + 7 * i * i)),
            cell_text("algorithm", 2 * i < n ? "Tree" : "Ring"), cell_text("protocol", "LL"));
    store_answer_end(&answer, STATUS_OK, diag);
}

/* n products; of each use where there are enough. */
static void put_gemm_fit(struct store *store, int n, struct diag *diag)
{
    static const char *const uses[] = {"fitted", "held out", "narrow"};
    struct store_answer answer;
    store_answer_begin(
        &answer, store, "gemm", RECORD_CELLS(cell_text("measured", "measured")), diag);
    for (int i = 0; i < n; i++)
        PUT("row", cell_text("gpu", i < 500 ? "g" : "h"),
            cell_text("dtype", i % 2 ? "fp16" : "bf16"),
            cell_text("use", n == 1 ? "held out" : uses[i / 2 % 3]), cell_int("m", 1024),
            cell_int("n", 1024), cell_int("k", 1024), cell_int("batch", 1 + i),
            cell_real("row_pieces", true, 0), cell_real("measured_s", true, 1e-5 * sqrt(1 + i)),
            cell_real("predicted_s", true, 9e-6 * sqrt(1 + i)));
    store_answer_end(&answer, STATUS_OK, diag);
}

/* n published runs of some sources, without intervals. */
static void put_validation(struct store *store, int n, struct diag *diag)
{
    static const char *const sources[] = {"one", "two", "three", "four", "five", "six", "seven"};
    struct store_answer answer;
    store_answer_begin(
        &answer, store, "validation", RECORD_CELLS(cell_text("file", "runs.csv")), diag);
    for (int i = 0; i < n; i++) {
        const double measured = 1000 + 20 * i, error = 0.1 - 0.02 * (i % 9);
        PUT("row", cell_text("id", "a"), cell_text("source", sources[i / 2 % 7]),
            cell_text("model", "m"), cell_text("gpu", "g"), cell_text("strategy", "s"),
            cell_int("gpus", 8 << i % 6), cell_int("curve", 0),
            cell_text("used_in_fit", i % 2 ? "x.yaml" : ""), cell_text("status", "ok"),
            cell_text("reason", ""), cell_int("measured_oom", 0),
            cell_real("measured_tokens_per_s_per_gpu", true, measured),
            cell_real("predicted_tokens_per_s_per_gpu", true, measured * (1 + error)),
            cell_real("error", true, error));
    }
    store_answer_end(&answer, STATUS_OK, diag);
}

/* *first: of the first curve, which sets it. */
static void put_explanation(
    struct store *store, const char *label, int gpus, int64_t *first, struct diag *diag)
{
    static const double parts[CAUSE_COUNT + 1] = {2, 5, 0, 4, 0, [CAUSE_REST] = -1};
    struct store_answer answer;
    store_answer_begin(&answer, store, "explanation",
        RECORD_CELLS(cell_text("scenario", "a job"), cell_text("label", label),
            cell_int("small_gpus", 8), cell_int("large_gpus", gpus),
            cell_real("small_tflops_per_gpu", true, 100),
            cell_real("large_tflops_per_gpu", true, 90),
            *first > 0 ? cell_int("first_id", *first) : cell_text("first_id", NULL)),
        diag);
    for (int i = 0; i <= CAUSE_COUNT; i++)
        if (i != CAUSE_BUBBLE)
            PUT("row", cell_text("cause", scenario_causes[i].name),
                cell_real("lost_tflops_per_gpu", true, parts[i]));
    store_answer_end(&answer, STATUS_OK, diag);
    *first = *first > 0 ? *first : answer.id;
}

/* A step with n kernels, and half as many collectives that wait for their last member. */
static void put_spans(struct scenario_result *result, int n)
{
    int collectives = (n + 1) / 2;
    struct exec_span *spans = xcalloc((size_t)(n + collectives), sizeof *spans);
    for (int i = 0; i < n; i++)
        spans[i] = (struct exec_span){.start = i * PS_PER_S / n,
            .moving = i * PS_PER_S / n,
            .end = (i + 1) * PS_PER_S / n,
            .alone = PS_PER_S / n,
            .stream = STREAM_COMPUTE,
            .queue = "compute",
            .name = "k"};
    for (int i = 0; i < collectives; i++)
        spans[n + i] = (struct exec_span){.start = i * PS_PER_S / collectives,
            .moving = (2 * i + 1) * PS_PER_S / collectives / 2,
            .end = (i + 1) * PS_PER_S / collectives,
            .is_collective = true,
            .stream = STREAM_COMM,
            .queue = "comm",
            .name = "c"};
    result->exec.spans = spans;
    result->exec.n_spans = n + collectives;
}

/* A scenario of n points: sizes of the cluster, then micro-batches, then sequence lengths; every
 * eleventh is out of memory. */
static void put_run(struct store *store, const char *scenario, int n, struct diag *diag)
{
    struct sample sample;
    sample_init(&sample);
    struct scenario_point *points = xcalloc((size_t)n, sizeof *points);
    struct scenario_result *results = xcalloc((size_t)n, sizeof *results);
    struct scenario_sample samples[] = {{true, {100, 2, 10}}, {true, {110, 1.8, 11}}};
    struct exec_memory_sample timeline[2] = {
        {.reserved_bytes = 0x1p33}, {.time_s = 1, .reserved_bytes = 0x1p34}};
    timeline[1].category_bytes[HBM_PARAMETERS] = timeline[0].category_bytes[HBM_PARAMETERS] =
        0x1p32;
    timeline[1].category_bytes[HBM_ACTIVATIONS] = 0x1p33;
    for (int i = 0; i < n; i++) {
        int of = i % 11 == 10 ? SAMPLE_OOM : i % 4 % SAMPLE_OOM;
        points[i] = sample.points[of];
        results[i] = sample.results[of];
        points[i].options.name = scenario;
        points[i].options.cluster.gpus = 8 << i % 4;
        points[i].options.strategy.train.micro_batch = 1 << i / 4 % 5;
        points[i].options.strategy.train.seq_len = 128 * (1 + i / 20 % 5);
        points[i].options.strategy.train.grad_accum = 1 + i / 100 % 10;
        results[i].tokens_per_s_per_gpu = 1000 + i;
        results[i].exec.timeline = timeline;
        results[i].samples = i ? NULL : samples;
        results[i].n_samples = i ? 0 : 2;
    }
    put_spans(&results[0], n);
    struct scenario_set set = sample.set;
    set.points = points;
    set.n_points = n;
    struct store_run *run = NULL;
    struct scenario_result *unused = xcalloc((size_t)n, sizeof *unused);
    struct arena *arenas = xcalloc((size_t)n, sizeof *arenas);
    bool *known = xcalloc((size_t)n, sizeof *known);
    const struct scenario_uncertainty uncertainty = {0};
    const struct store_run_options options = {
        .set = &set, .again = true, .uncertainty = &uncertainty, .samples = 2};
    store_run_begin(&run, store, &options, unused, arenas, known, diag);
    for (int i = 0; i < n && diag->worst == STATUS_OK; i++)
        store_run_point(run, i, &results[i], diag);
    for (int k = 0; k < 2 && diag->worst == STATUS_OK; k++)
        store_run_sample(run, 0, k, &results[0], diag);
    store_run_end(run);
    free(unused);
    free(arenas);
    free(known);
    free((void *)results[0].exec.spans);
    free(points);
    free(results);
}

/* Months of training of n points on three curves, over GPUs. */
static void put_goodput(struct store *store, int n, struct diag *diag)
{
    static const char *const labels[] = {"a", "b", "c"};
    struct store_answer answer;
    store_answer_begin(&answer, store, "goodput",
        RECORD_CELLS(cell_text("scenario", "t5_scaling"), cell_int("histories", 20)), diag);
    for (int i = 0; i < n; i++)
        PUT("row", cell_text("label", labels[i % 3]), cell_int("gpus", 8 * (1 + i / 3)),
            cell_real("days", true, 30), cell_real("step_time_s", true, 1),
            cell_real("mtbf_s", false, 0), cell_real("checkpoint_interval_s", true, 600),
            cell_int("searched", 1), cell_real("goodput", true, 0.9 / (1 + 1e-3 * i)),
            cell_real("goodput_p05", true, 0.8 / (1 + 1e-3 * i)),
            cell_real("goodput_p95", true, 0.95 / (1 + 1e-3 * i)),
            cell_real("checkpoint_share", true, 0.02), cell_real("lost_work_share", true, 0.02),
            cell_real("detection_share", true, 0.02), cell_real("waiting_share", true, 0.02),
            cell_real("restart_share", true, 0.02), cell_real("shrunk_share", true, 0.02),
            cell_real("slowed_share", true, 0.02), cell_real("tflops_per_gpu", true, 400));
    store_answer_end(&answer, STATUS_OK, diag);
}

/* n numbers that a point depends on. */
static void put_sensitivity(struct store *store, int n, struct diag *diag)
{
    struct store_answer answer;
    store_answer_begin(&answer, store, "sensitivity",
        RECORD_CELLS(cell_text("scenario", "t5_scaling"), cell_text("label", "a point"),
            cell_real("tflops_per_gpu", true, 100), cell_real("independent", true, 0.1),
            cell_real("correlated", true, 0.1), cell_int("idle", 3)),
        diag);
    for (int i = 0; i < n; i++)
        PUT("row", cell_text("parameter", "gpu.x"), cell_text("kind", "fitted"),
            cell_real("spread", true, 0.1),
            cell_real("low_tflops_per_gpu", true, 99 - 10.0 / (1 + i)),
            cell_real("high_tflops_per_gpu", true, 101 + 10.0 / (1 + i)), cell_text("source", "s"));
    store_answer_end(&answer, STATUS_OK, diag);
}

/* A traced step on n numbers of GPUs. */
static void put_scaled(struct store *store, int n, struct diag *diag)
{
    static const char *const times[] = {"step_time_s", "step_time_sd_s", "step_time_low_s",
        "step_time_high_s", "traced_step_time_s", "compute_s", "contention_s", "exposed_comm_s",
        "rank_wait_s", "comm_s", "bubble_s", "host_bound_s", "other_idle_s"};
    enum { TIMES = sizeof times / sizeof *times, COLUMNS = TIMES + 2 };
    struct store_answer answer;
    store_answer_begin(&answer, store, "trace_scale",
        RECORD_CELLS(cell_text("scenario", "rank0.json"), cell_text("cluster", "a cluster"),
            cell_int("samples", 20)),
        diag);
    for (int i = 0; i < n; i++) {
        struct record_cell cells[COLUMNS] = {
            cell_int("gpus", 8 * (1 + i)), cell_int("traced_gpus", 8)};
        for (int t = 0; t < TIMES; t++)
            cells[2 + t] = cell_real(times[t], true, 1.0 / (1 + t));
        store_answer_put(&answer, "row", cells, COLUMNS, diag);
    }
    store_answer_end(&answer, STATUS_OK, diag);
}

/* A database with n of everything that figures show. */
static void put_all(const char *path, int n)
{
    static const char *const scenarios[] = {
        "t5_scaling", "t5_model_scale"}; /* what the figures ask for by name */
    struct diag diag = DIAG_INIT;
    struct store *store = must_open(path, STORE_WRITE);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        put_run(store, scenarios[i], n, &diag);
    put_validation(store, n, &diag);
    int64_t older = 0, first = 0;
    put_explanation(store, "old", 8, &older, &diag);
    for (int curve = 0; curve < n; curve++) {
        char label[32];
        snprintf(label, sizeof label, "m DDP, batch %d", curve);
        put_explanation(store, label, 32, &first, &diag);
    }
    put_fit(store, n, &diag);
    put_gemm_fit(store, n, &diag);
    put_check(store, n, &diag);
    put_goodput(store, n, &diag);
    put_sensitivity(store, n, &diag);
    put_scaled(store, n, &diag);
    store_close(store);
    assert_string_equal(diag.text, "");
}

static int by_name(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".sql") == 0;
}

static void every_figure_draws(int n)
{
    static const char folder[] = FLOPCAST_SOURCE_DIR "/plots";
    const char *kept = getenv("FLOPCAST_TEST_PICTURES");
    char *db = NULL;
    assert_true(asprintf(&db, "%s/%d.db", kept ? kept : ".", n) > 0);
    put_all(db, n);
    struct dirent **entries = NULL;
    int drawn = 0, count = scandir(folder, &entries, by_name, alphasort);
    assert_true(count >= 13);
    for (int i = 0; i < count; i++) {
        char figure[256], *out = NULL;
        snprintf(figure, sizeof figure, "%.*s", (int)strcspn(entries[i]->d_name, "."),
            entries[i]->d_name);
        assert_true(asprintf(&out, "%s/%s-%d.png", kept ? kept : ".", figure, n) > 0);
        struct diag diag = DIAG_INIT;
        struct report_plot plot = {.folder = folder, .figure = figure, .db = db, .out = out};
        if (report_plot(&plot, &diag) == STATUS_OK) {
            if (*diag.text)
                fail_msg("%s with %d points: %s", figure, n, diag.text);
            drawn++;
            plot.out = "page.svg";
            plot.hover = true; /* as on a page; gnuplot falls over labels without a place */
            if (n <= 10 && (report_plot(&plot, &diag) != STATUS_OK || *diag.text))
                fail_msg("%s with %d points, on a page: %s", figure, n, diag.text);
        } else { /* too many bars, or points of one bar */
            assert_true(n > 1);
            assert_non_null(strstr(diag.text, " are more than a figure has room for ("));
            assert_non_null(strstr(diag.text, "choose points with --where, as in --where \""));
        }
        free(out);
        free(entries[i]);
    }
    free(entries);
    free(db);
    assert_true(drawn >= (n > 1 ? count - 2 : count));
}

static void one_point(void **state)
{
    (void)state;
    every_figure_draws(1);
}

static void ten_points(void **state)
{
    (void)state;
    every_figure_draws(10);
}

static void hundreds_of_points(void **state)
{
    (void)state;
    every_figure_draws(300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_point), cmocka_unit_test(ten_points),
        cmocka_unit_test(hundreds_of_points)};
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
