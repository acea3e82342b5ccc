/* The fit to training runs finds the numbers that runs were simulated with. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "calibrate/training_fit.h"
#include "hw/draw.h"
#include "scenario/stack.h"

#include <gsl/gsl_errno.h>

#define QUANTITY(x) "{value: " #x ", kind: fitted, std_error: 0.1, source: test}"
#define STACK(gemm, pointwise)                                                                     \
    "name: x\nrates: {Volta: {gemm_sustained: " QUANTITY(                                          \
        gemm) ", pointwise_efficiency: " QUANTITY(pointwise) "}}\n"

#define ROW_TIME(time)                                                                             \
    "name: x\nrates: {Volta: {norm_row_time: {value: " #time                                       \
    ", kind: fitted, std_error: 1 ns, source: test}}}\n"

static const char base_yaml[] =
    "name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
    "train: {micro_batch: 64, seq_len: 512, precision: fp16_mixed}\nstrategy: ddp\n"
    "stack: stack.yaml\nrun: {steps: 1, warmup_steps: 2}\n"
    "noise: {kernel_jitter: 0, host_jitter: 0}\n";
static const char *const batches[] = {"16", "64", "64", "128", "256"}, *const lengths[] = {"512",
                                                                           "512", "128", "64",
                                                                           "512"};
enum { RUNS = 5 };

/* A table of runs whose speeds are those of the simulation with the stack as it stands. */
static void write_runs(void)
{
    FILE *out = fopen("runs.csv", "w");
    assert_non_null(out);
    fputs("id,model,topology,gpus,micro_batch,seq_len,used_in_fit,tokens_per_s_per_gpu\n", out);
    for (int i = 0; i < RUNS; i++) {
        const struct scenario_override set[] = {
            {"train.micro_batch", batches[i]}, {"train.seq_len", lengths[i]}};
        struct loaded *loaded = load_text(base_yaml, set, 2);
        struct scenario_result result;
        assert_string_equal(loaded->diag.text, "");
        scenario_simulate(&result, &loaded->set.points[0], &loaded->arena, &loaded->diag);
        fprintf(out, "r%d,tiny.json,cluster.yaml,8,%s,%s,stack.yaml,%.17g\n", i, batches[i],
            lengths[i], result.tokens_per_s_per_gpu);
        unload(loaded);
    }
    fclose(out);
}

static void the_fit_finds_what_the_runs_were_made_with(void **state)
{
    (void)state;
    gsl_set_error_handler_off();
    write_text("stack.yaml", STACK(0.8, 0.4));
    write_runs();
    write_text("stack.yaml", STACK(0.9, 0.5)); /* the start */
    write_text("base.yaml", base_yaml);
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(training_fit_load(&fit, "runs.csv", "base.yaml", NULL, &diag), STATUS_OK);
    assert_int_equal(fit.fit.parameters.n, 2);
    assert_int_equal(fit.about.at[0].rows, RUNS);
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_string_equal(fit.fit.parameters.at[0].key, "gemm_sustained");
    assert_near(fit.fit.parameters.at[0].fitted.value, 0.8, 1e-4);
    assert_string_equal(fit.fit.parameters.at[1].key, "pointwise_efficiency");
    assert_near(fit.fit.parameters.at[1].fitted.value, 0.4, 1e-4);
    assert_true(fit.fit.parameters.at[0].fitted.std_error < 0.02);
    fit.fit.parameters.at[1].fitted.std_error =
        1; /* more than the number: where the search ended says nothing */
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    training_fit_print(out, &fit);
    fclose(out);
    assert_non_null(strstr(text, "0.5              -  (5 rows, not determined by these; keep it)"));
    training_fit_free(&fit);
}

/* Nanoseconds are found as shares are, from a start of more than twice as many. */
static void the_fit_finds_a_time(void **state)
{
    (void)state;
    gsl_set_error_handler_off();
    write_text("stack.yaml", ROW_TIME(20 ns));
    write_runs();
    write_text("stack.yaml", ROW_TIME(45 ns)); /* the start */
    write_text("base.yaml", base_yaml);
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(training_fit_load(&fit, "runs.csv", "base.yaml", NULL, &diag), STATUS_OK);
    assert_int_equal(fit.fit.parameters.n, 1);
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_string_equal(fit.fit.parameters.at[0].key, "norm_row_time");
    assert_near(fit.fit.parameters.at[0].fitted.value, 20e-9, 1e-12);
    training_fit_free(&fit);
}

#define HOST(kernel, pass)                                                                         \
    "name: x\nhost: {kernel_issue: {value: " kernel                                                \
    ", kind: fitted, std_error: 1 us, source: test}, pass: {value: " pass                          \
    ", kind: fitted, std_error: 1 us, source: test}}\n"

/* Costs of the host, of runs so small that it is what they wait for: 60 us and 3 ms are found from
 * 20 us and 9 ms. Rates of the GPU file that are fitted stay, as the rows are for the host alone.
 */
static void the_fit_finds_costs_of_the_host(void **state)
{
    (void)state;
    gsl_set_error_handler_off();
    write_text("stack.yaml", HOST("60 us", "3 ms"));
    write_runs();
    write_text("stack.yaml", HOST("20 us", "9 ms"));
    write_text("base.yaml", base_yaml);
    FILE *out = fopen("host.csv", "w"), *in = fopen("runs.csv", "r");
    assert_non_null(out);
    assert_non_null(in);
    char line[512];
    while (fgets(line, sizeof line, in)) {
        char *cell = strstr(line, "stack.yaml,");
        fprintf(out, "%.*s%s%s", cell ? (int)(cell - line) : (int)strlen(line), line,
            cell ? "stack.yaml: host," : "", cell ? cell + strlen("stack.yaml,") : "");
    }
    fclose(in);
    fclose(out);
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    const char *const tables[] = {"host.csv"};
    assert_int_equal(training_fit_load_tables(&fit, tables, 1, "base.yaml", &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    assert_int_equal(fit.fit.parameters.n, 2);
    assert_false(training_fit_has(fit.fit.parameters.at[0].key) ||
                 training_fit_has(fit.fit.parameters.at[1].key));
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_string_equal(fit.fit.parameters.at[0].key, "kernel_issue");
    assert_near(fit.fit.parameters.at[0].fitted.value, 60e-6, 60e-6 * 1e-3);
    assert_string_equal(fit.fit.parameters.at[1].key, "pass");
    assert_near(fit.fit.parameters.at[1].fitted.value, 3e-3, 3e-3 * 1e-3);
    assert_int_equal(training_fit_write(&fit, ".", &diag), STATUS_OK); /* into the file itself */
    struct stack stack;
    struct arena arena = ARENA_INIT;
    assert_int_equal(stack_load(&stack, "stack.yaml", &arena, &diag), STATUS_OK);
    assert_near(stack.host[0].value, 60e-6, 60e-6 * 1e-3);
    assert_non_null(strstr(stack.host[0].source, "host.csv with used_in_fit: stack.yaml: host"));
    arena_release(&arena);
    training_fit_free(&fit);
}

/* At most four nodes and five numbers: a row on forty GPUs of eight a node, and a profile with six.
 */
static void costs_of_the_host_are_few_and_of_small_clusters(void **state)
{
    (void)state;
    static const char row[] =
        "id,model,topology,cluster.nodes,gpus,used_in_fit,tokens_per_s_per_gpu\n"
        "a,tiny.json,cluster.yaml,8,%d,stack.yaml: host,100\n"
        "b,tiny.json,cluster.yaml,8,8,stack.yaml: host,100\n"
        "c,tiny.json,cluster.yaml,8,16,stack.yaml: host,100\n"
        "d,tiny.json,cluster.yaml,8,24,stack.yaml: host,100\n"
        "e,tiny.json,cluster.yaml,8,8,stack.yaml: host,101\n"
        "f,tiny.json,cluster.yaml,8,8,stack.yaml: host,102\n"
        "g,tiny.json,cluster.yaml,8,8,stack.yaml: host,103\n";
    write_text("base.yaml", base_yaml);
    for (int many = 0; many < 2; many++) {
        char text[1024];
        snprintf(text, sizeof text, row, many ? 8 : 40);
        write_text("host.csv", text);
        write_text("stack.yaml", HOST("60 us", "3 ms"));
        if (many) {
            struct arena arena = ARENA_INIT;
            const char *list = "name: x\nhost:\n";
            for (int i = 0; i < TRAINING_FIT_NUMBERS + 1; i++)
                list = arena_printf(&arena,
                    "%s  %s: {value: 50 %s, kind: fitted, std_error: 1 %s, source: test}\n", list,
                    stack_host_table.fields[i].key,
                    stack_host_table.fields[i].dimension == DIM_FRACTION ? "%" : "us",
                    stack_host_table.fields[i].dimension == DIM_FRACTION ? "%" : "us");
            write_text("stack.yaml", list);
            arena_release(&arena);
        }
        struct training_fit fit;
        struct diag diag = DIAG_INIT;
        const char *const tables[] = {"host.csv"};
        assert_int_equal(
            training_fit_load_tables(&fit, tables, 1, "base.yaml", &diag), STATUS_INPUT);
        assert_non_null(strstr(diag.text,
            many ? "host.csv:2:1: error: 6 costs of the host of one profile would be fitted, "
                   "and at most 5 may"
                 : "host.csv:2:1: error: costs of the host are fitted on at most 4 nodes, "
                   "and this run is on 40 GPUs of 8 a node"));
        training_fit_free(&fit);
    }
}

/* A fit that begins with the numbers that the runs were made with. */
static void load_where_it_stands(struct training_fit *fit, struct diag *diag)
{
    gsl_set_error_handler_off();
    write_text("stack.yaml", STACK(0.8, 0.4));
    write_runs();
    write_text("base.yaml", base_yaml);
    assert_int_equal(training_fit_load(fit, "runs.csv", "base.yaml", NULL, diag), STATUS_OK);
}

/* Runs made with 0.8 and a prior of 0.7: the more certain it is, the nearer to it the fit ends. */
static void a_prior_counts_by_its_error(void **state)
{
    (void)state;
    static const struct {
        const char *error;
        double least, most;
    } cases[] = {{"1e-4", 0.6999, 0.7002}, {"30", 0.799, 0.8001}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct training_fit fit;
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        load_where_it_stands(&fit, &diag);
        write_text("priors.yaml",
            arena_printf(&arena,
                "priors:\n  - {fit: test, gemm_sustained: {value: 0.7, kind: measured, "
                "std_error: %s, source: test}}\n"
                "  - {fit: another, gemm_sustained: {value: 0.1, kind: measured, "
                "std_error: 0.001, source: test}}\n",
                cases[i].error));
        assert_int_equal(training_fit_priors(&fit, "priors.yaml", &arena, &diag), STATUS_OK);
        assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
        assert_string_equal(fit.fit.parameters.at[0].key, "gemm_sustained");
        assert_in_range(
            1e6 * fit.fit.parameters.at[0].fitted.value, 1e6 * cases[i].least, 1e6 * cases[i].most);
        training_fit_free(&fit);
        arena_release(&arena);
    }
}

static void a_prior_has_an_error(void **state)
{
    (void)state;
    struct training_fit fit = {0};
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    write_text("priors.yaml",
        "priors:\n  - {fit: test, gemm_sustained: {value: 0.7, kind: measured, source: test}}\n"
        "  - {fit: test, hbm_efficiency: {value: 0.7, kind: measured, std_error: 0.1, source: "
        "test}}\n");
    assert_int_equal(training_fit_priors(&fit, "priors.yaml", &arena, &diag), STATUS_INPUT);
    assert_non_null(strstr(
        diag.text, "priors.yaml:2:5: error: the prior of 'gemm_sustained' has no std_error"));
    struct diag other = DIAG_INIT;
    write_text("priors.yaml",
        "priors:\n  - {fit: test, hbm_efficiency: {value: 0.7, kind: measured, std_error: 0.1, "
        "source: test}}\n");
    assert_int_equal(training_fit_priors(&fit, "priors.yaml", &arena, &other), STATUS_INPUT);
    assert_non_null(strstr(other.text, "hbm_efficiency"));
    arena_release(&arena);
}

/* A row that is left out of the fit does not bend it, however wrong it is, and its error is
 * reported. */
static void rows_can_be_left_out(void **state)
{
    (void)state;
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    load_where_it_stands(&fit, &diag);
    fit.fit.rows.at[RUNS - 1].measured *= exp(-0.2); /* as if it had been measured slower */
    fit.fit.rows.at[RUNS - 1].left_out = true;
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_near(fit.fit.parameters.at[0].fitted.value, 0.8, 1e-4);
    assert_near(fit.fit.parameters.at[1].fitted.value, 0.4, 1e-4);
    assert_near(training_fit_residual(&fit, 0), 0, 1e-4);
    assert_near(training_fit_residual(&fit, RUNS - 1), 0.2, 1e-4);
    fit.fit.rows.at[RUNS - 1].left_out = false;
    fit.fit.rows.at[RUNS - 1].measured *=
        exp(0.15); /* one that is off by 5 % counts half, by 20 % next to nothing */
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_true(fabs(fit.fit.parameters.at[0].fitted.value - 0.8) > 1e-3 ||
                fabs(fit.fit.parameters.at[1].fitted.value - 0.4) > 1e-3);
    training_fit_free(&fit);
}

/* Of a row that says which key of a file rests on it, the fit takes what it fits. */
static void rows_say_what_rests_on_them(void **state)
{
    (void)state;
    write_text("used.csv", "id,used_in_fit\na,\nb,x.yaml\nc,x.yaml: gemm_sustained\nd,x.yaml: "
                           "image_time\ne,x.yaml: host\n");
    struct diag diag = DIAG_INIT;
    bool *rows = training_fit_rows("used.csv", &diag);
    assert_string_equal(diag.text, "");
    assert_false(rows[0]);
    assert_true(rows[1]);
    assert_true(rows[2]);
    assert_false(rows[3]);
    assert_true(rows[4]);
    free(rows);
}

/* The covariance at the filed values is that of a fit which ends there: the slopes are the same.
 * Residuals of nothing but rounding scale it, so correlations are compared. */
static void covariance_of_filed_values(void **state)
{
    (void)state;
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    load_where_it_stands(&fit, &diag);
    for (int i = 0; i < RUNS; i++) /* scatter, so that there is something to scale with */
        fit.fit.rows.at[i].measured *= exp(i % 2 ? 1e-3 : -1e-3);
    training_fit_filed(&fit);
    double filed = fit.fit.covariance[1] / sqrt(fit.fit.covariance[0] * fit.fit.covariance[3]);
    assert_near(fit.fit.parameters.at[0].fitted.value, 0.8, 1e-12);
    assert_true(fit.fit.parameters.at[0].fitted.std_error > 0);
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_near(
        fit.fit.covariance[1] / sqrt(fit.fit.covariance[0] * fit.fit.covariance[3]), filed, 0.02);
    assert_true(filed < -0.1); /* faster products and slower rest look alike */
    training_fit_free(&fit);
}

/* What is printed of two rows of covariance is what hw_fits_load reads: correlations of 4 / sqrt(16
 * x 4) = 0.5, and what goes with nothing is left out. */
static void correlations_are_what_the_sampler_reads(void **state)
{
    (void)state;
    struct fit_parameter parameters[] = {{.key = "a", .id = "one: \"fit\"", .number = 0},
        {.key = "b", .id = "one", .number = 1}, {.key = "c", .id = "one", .number = 2}};
    double covariance[] = {16, 0, 4, 0, 9, 0, 4, 0, 4};
    struct fit fit = {.n_free = 3, .covariance = covariance};
    fit.parameters.at = parameters;
    fit.parameters.n = 3;
    FILE *out = fopen("correlations.yaml", "w");
    assert_non_null(out);
    fputs("fits:\n", out);
    fit_print_correlations(out, &fit);
    fclose(out);
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_fits fits;
    hw_fits_load(&fits, "correlations.yaml", &arena, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(fits.n, 1);
    assert_int_equal(fits.list[0].n, 2);
    assert_string_equal(fits.list[0].keys[1], "c");
    assert_string_equal(fits.list[0].ids[0], "one: \"fit\"");
    assert_near(fits.list[0].factor[2], 0.5, 1e-12); /* Cholesky of [1 0.5; 0.5 1] */
    assert_near(fits.list[0].factor[3], sqrt(0.75), 1e-12);
    arena_release(&arena);
}

/* Speeds that only runs beyond the horizon would have: the search ends where nothing has a speed.
 */
static void what_rows_do_not_determine_is_reported(void **state)
{
    (void)state;
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    load_where_it_stands(&fit, &diag);
    for (int i = 0; i < RUNS; i++)
        fit.fit.rows.at[i].measured *= exp(-40);
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "the rows do not determine it"));
    training_fit_free(&fit);
}

static void too_few_rows_determine_nothing(void **state)
{
    (void)state;
    write_text("stack.yaml", STACK(0.9, 0.5));
    write_text("base.yaml", base_yaml);
    write_text(
        "few.csv", "id,model,topology,gpus,tokens_per_s_per_gpu\na,tiny.json,cluster.yaml,8,100\n");
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(training_fit_load(&fit, "few.csv", "base.yaml", NULL, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "few.csv: error: 1 rows to fit 2 parameters with"));
    training_fit_free(&fit);
    const bool none[1] = {false};
    assert_int_equal(training_fit_load(&fit, "few.csv", "base.yaml", none, &diag), STATUS_INPUT);
    assert_non_null(strstr(
        diag.text, "few.csv: error: no row to fit to; name the GPU file in column 'used_in_fit'"));
    training_fit_free(&fit);
}

/* Of a card of one's own, where nothing is of kind fitted, more rows are no help. */
static void what_is_to_be_fitted_is_of_that_kind(void **state)
{
    (void)state;
    write_text("stack.yaml", "name: s\n");
    write_text("base.yaml", base_yaml);
    write_text(
        "own.csv", "id,model,topology,gpus,tokens_per_s_per_gpu\na,tiny.json,cluster.yaml,8,100\n");
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(training_fit_load(&fit, "own.csv", "base.yaml", NULL, &diag), STATUS_INPUT);
    assert_non_null(
        strstr(diag.text, "own.csv: error: nothing to fit with 1 rows: none of gemm_sustained, "));
    assert_non_null(
        strstr(diag.text, "name one that is assumed there behind the file in used_in_fit"));
    training_fit_free(&fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_finds_what_the_runs_were_made_with),
        cmocka_unit_test(the_fit_finds_a_time),
        cmocka_unit_test(the_fit_finds_costs_of_the_host),
        cmocka_unit_test(costs_of_the_host_are_few_and_of_small_clusters),
        cmocka_unit_test(a_prior_counts_by_its_error),
        cmocka_unit_test(a_prior_has_an_error),
        cmocka_unit_test(rows_can_be_left_out),
        cmocka_unit_test(rows_say_what_rests_on_them),
        cmocka_unit_test(covariance_of_filed_values),
        cmocka_unit_test(correlations_are_what_the_sampler_reads),
        cmocka_unit_test(what_rows_do_not_determine_is_reported),
        cmocka_unit_test(too_few_rows_determine_nothing),
        cmocka_unit_test(what_is_to_be_fitted_is_of_that_kind),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
