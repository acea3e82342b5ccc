/* The fit to scaling curves finds the variation that runs were simulated with, and says what they
 * do not determine. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "calibrate/cluster_fit.h"

/* The slowest GPU of 16 and 32 against that of 8 is what a curve loses. */
static const char base_yaml[] =
    "name: base\nmodel: tiny.json\ncluster: {topology: cluster.yaml, gpus: 8}\n"
    "train: {micro_batch: 256, seq_len: 512, precision: fp16_mixed}\nstrategy: ddp\n"
    "run: {steps: 1, warmup_steps: 0, seed: 1}\nnoise: {gpu_speed_spread: %s, "
    "gpu_speed_spread_below: %s, kernel_jitter: 0}\n";
static const char *const sizes[] = {"8", "16", "32"}, *const batches[] = {"128", "192", "256"};
enum { SIZES = 3, BATCHES = 3 };

static void write_runs(const char *spread)
{
    char text[sizeof base_yaml + 32];
    FILE *out = fopen("runs.csv", "w");
    assert_non_null(out);
    fputs("id,model,topology,gpus,micro_batch,used_in_fit,tokens_per_s_per_gpu\n", out);
    snprintf(text, sizeof text, base_yaml, spread, spread);
    for (int b = 0; b < BATCHES; b++)
        for (int s = 0; s < SIZES; s++) {
            const struct scenario_override set[] = {
                {"train.micro_batch", batches[b]}, {"cluster.gpus", sizes[s]}};
            struct loaded *loaded = load_text(text, set, 2);
            struct scenario_result result;
            assert_string_equal(loaded->diag.text, "");
            scenario_simulate(&result, &loaded->set.points[0], &loaded->arena, &loaded->diag);
            fprintf(out, "r%d_%d,tiny.json,cluster.yaml,%s,%s,x.yaml,%.17g\n", b, s, sizes[s],
                batches[b], result.tokens_per_s_per_gpu);
            unload(loaded);
        }
    fclose(out);
}

static void the_fit_finds_the_spread(void **state)
{
    (void)state;
    char text[sizeof base_yaml + 32];
    write_runs("3 %");
    snprintf(text, sizeof text, base_yaml, "2 %", "2 %"); /* as filed */
    write_text("base.yaml", text);
    struct cluster_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(cluster_fit_solve(&fit, "runs.csv", "base.yaml", &diag), STATUS_OK);
    assert_int_equal(fit.rows, BATCHES * (SIZES - 1));
    const struct cluster_parameter *spread = &fit.parameters[CLUSTER_SPREAD];
    assert_near(spread->filed, 0.02, 1e-12);
    assert_true(spread->determined);
    assert_near(spread->factor, 1.5, 0.05);
    assert_true(
        fit.before > 1e-7); /* the tiny model mostly waits for its host: little, but exact */
    assert_true(fit.after < 0.2 * fit.before);
    /* this cluster has no network_jitter: nothing can be said of it */
    assert_false(fit.parameters[CLUSTER_NETWORK].determined);
    assert_true(
        fabs(fit.parameters[CLUSTER_RANK].factor) < 0.1); /* nothing is missing but the spread */
}

static void curves_are_needed(void **state)
{
    (void)state;
    char text[sizeof base_yaml + 32];
    snprintf(text, sizeof text, base_yaml, "2 %", "2 %");
    write_text("base.yaml", text);
    write_text("runs.csv", "id,model,topology,gpus,used_in_fit,tokens_per_s_per_gpu\na,tiny.json,"
                           "cluster.yaml,8,x.yaml,100\n");
    struct cluster_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(cluster_fit_solve(&fit, "runs.csv", "base.yaml", &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "0 ratios to fit 4 parameters with"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_finds_the_spread),
        cmocka_unit_test(curves_are_needed),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
