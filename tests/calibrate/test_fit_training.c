/* The fit to training runs finds the numbers that runs were simulated with. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "calibrate/fit_training.h"

#include <gsl/gsl_errno.h>

#define QUANTITY(x) "{value: " #x ", kind: fitted, std_error: 0.1, source: test}"
#define STACK(gemm, pointwise)                                                                                         \
    "name: x\nrates: {Volta: {gemm_sustained: " QUANTITY(gemm) ", pointwise_efficiency: " QUANTITY(pointwise) "}}\n"

static const char base_yaml[] = "name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
                                "train: {micro_batch: 64, seq_len: 512, precision: fp16_mixed}\nstrategy: ddp\n"
                                "stack: stack.yaml\nrun: {steps: 1, warmup_steps: 0}\n"
                                "noise: {kernel_jitter: 0, host_jitter: 0}\n";
static const char *const batches[] = {"16", "64", "64", "128", "256"}, *const lengths[] = {
                                                                           "512", "512", "128", "64", "512"};
enum { RUNS = 5 };

/* A table of runs whose speeds are those of the simulation with the stack as it stands. */
static void write_runs(void)
{
    FILE *out = fopen("runs.csv", "w");
    assert_non_null(out);
    fputs("id,model,topology,gpus,micro_batch,seq_len,used_in_fit,tokens_per_s_per_gpu\n", out);
    for (int i = 0; i < RUNS; i++) {
        const struct scenario_override set[] = {{"train.micro_batch", batches[i]}, {"train.seq_len", lengths[i]}};
        struct loaded *loaded = load_text(base_yaml, set, 2);
        struct scenario_result result;
        assert_string_equal(loaded->diag.text, "");
        scenario_simulate(&result, &loaded->set.points[0], &loaded->arena, &loaded->diag);
        fprintf(out, "r%d,tiny.json,cluster.yaml,8,%s,%s,stack.yaml,%.17g\n", i, batches[i], lengths[i],
            result.tokens_per_s_per_gpu);
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
    assert_int_equal(fit.parameters.n, 2);
    assert_int_equal(fit.parameters.at[0].rows, RUNS);
    assert_int_equal(training_fit_solve(&fit, &diag), STATUS_OK);
    assert_string_equal(fit.parameters.at[0].key, "gemm_sustained");
    assert_near(fit.parameters.at[0].fitted.value, 0.8, 1e-4);
    assert_string_equal(fit.parameters.at[1].key, "pointwise_efficiency");
    assert_near(fit.parameters.at[1].fitted.value, 0.4, 1e-4);
    assert_true(fit.parameters.at[0].fitted.std_error < 0.02);
    training_fit_free(&fit);
}

static void too_few_rows_determine_nothing(void **state)
{
    (void)state;
    write_text("stack.yaml", STACK(0.9, 0.5));
    write_text("base.yaml", base_yaml);
    write_text("few.csv", "id,model,topology,gpus,tokens_per_s_per_gpu\na,tiny.json,cluster.yaml,8,100\n");
    struct training_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(training_fit_load(&fit, "few.csv", "base.yaml", NULL, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "few.csv: error: 1 rows to fit 2 parameters with"));
    training_fit_free(&fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_finds_what_the_runs_were_made_with),
        cmocka_unit_test(too_few_rows_determine_nothing),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
