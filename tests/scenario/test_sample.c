/* Bands: quantiles, and what they are wide from. */
#include "workspace.h"

#include "../near.h"
#include "scenario/sample.h"

#define QUIET "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}\n"
enum { K = 40 };

struct sampled {
    struct loaded *loaded;
    struct arena arenas[2];
    struct scenario_result results[2];
};

/* A batch that makes the GPU, not the host, the bottleneck; without the first step, in which the host is in cudaMalloc.
 */
static struct sampled *begin(const char *text, int points)
{
    struct sampled *sampled = xcalloc(1, sizeof *sampled);
    static const struct scenario_override set[] = {{"train.micro_batch", "64"}, {"run.warmup_steps", "1"}};
    sampled->loaded = load_text(text, set, 2);
    assert_string_equal(sampled->loaded->diag.text, "");
    assert_int_equal(sampled->loaded->set.n_points, points);
    return sampled;
}

static void run(struct sampled *sampled)
{
    const struct scenario_set *set = &sampled->loaded->set;
    struct diag *diag = &sampled->loaded->diag;
    assert_int_equal(scenario_simulate_all(sampled->results, sampled->arenas, set, NULL, NULL, diag), STATUS_OK);
    assert_int_equal(scenario_sample_all(sampled->results, sampled->arenas, set, K, NULL, NULL, diag), STATUS_OK);
}

static void end(struct sampled *sampled)
{
    arena_release(&sampled->arenas[0]);
    arena_release(&sampled->arenas[1]);
    unload(sampled->loaded);
    free(sampled);
}

/* A machine of which everything is known, without noise, has no band. */
static void without_errors_and_noise_no_band(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET, 1);
    struct hw *hw = &sampled->loaded->set.points[0].hw;
    /* V100 and the node of 4 NICs are fitted in part: take the errors away */
    struct quantity *numbers = (struct quantity *)(void *)&hw->gpu.gemm[0];
    for (int i = 0; i < DTYPE_COUNT * (int)(sizeof(struct hw_gemm) / sizeof(struct quantity)); i++)
        numbers[i].std_error = 0;
    hw->gpu.gemm_floor.std_error = hw->gpu.kernel_floor.std_error = 0;
    hw->node.nccl_efficiency.std_error = hw->node.nccl_hop_latency.std_error = 0;
    hw->node.nccl_base_latency.std_error = 0;
    run(sampled);
    struct scenario_band band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    assert_int_equal(band.n, K);
    assert_near(band.low, sampled->results[0].exec.step_time_s, 0);
    assert_near(band.high, band.low, 0);
    end(sampled);
}

/* GEMMs slower by a share that is known to 10 % make a band about as wide as their part of the step; 90 % of a normal
 * distribution are within 1.645 sigma. */
static void errors_of_parameters_make_a_band(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET, 1);
    sampled->loaded->set.points[0].hw.gpu.gemm_sustained = (struct quantity){0.7, 0.07, QUANTITY_FITTED, "test"};
    run(sampled);
    const struct scenario_result *result = &sampled->results[0];
    struct scenario_band band = scenario_band(result, SAMPLED_STEP_TIME);
    double share = (band.high - band.low) / band.median;
    assert_true(share > 0.01 && share < 2 * 1.645 * 0.1 * 1.5);
    assert_true(band.low < result->exec.step_time_s && result->exec.step_time_s < band.high);
    struct scenario_band tflops = scenario_band(result, SAMPLED_TFLOPS);
    assert_true(tflops.low < tflops.median && tflops.median < tflops.high);
    end(sampled);
}

/* What a cluster's own noise is fitted to is drawn; what the scenario sets stays. The first sample has the point's own
 * seed. */
static void noise(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE, 1);
    run(sampled);
    assert_true(scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).high >
                scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).low);
    double width = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).high -
                   scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).low;
    end(sampled);
    sampled = begin(BASE, 1);
    struct scenario_point *point = &sampled->loaded->set.points[0];
    point->hw.cluster.kernel_jitter = (struct quantity){0.4, 0.1, QUANTITY_FITTED, "test"};
    run(sampled);
    assert_true(scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).high -
                    scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).low >
                2 * width);
    end(sampled);
    sampled = begin(BASE "noise: {kernel_jitter: 1 %}\n", 1);
    point = &sampled->loaded->set.points[0];
    point->hw.cluster.kernel_jitter = (struct quantity){0.4, 0.1, QUANTITY_FITTED, "test"};
    run(sampled);
    assert_true(scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).high -
                    scenario_band(&sampled->results[0], SAMPLED_STEP_TIME).low <
                2 * width);
    end(sampled);
}

/* A GEMM rate that is known to 10 % slows both ends of a curve alike: the loss is known far better than the ends. */
static void points_share_their_draws(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET "sweep: [{cluster.gpus: [8, 32]}]\n", 2);
    for (int i = 0; i < 2; i++)
        sampled->loaded->set.points[i].hw.gpu.gemm_sustained = (struct quantity){0.7, 0.07, QUANTITY_FITTED, "test"};
    run(sampled);
    struct scenario_band end_band = scenario_band(&sampled->results[1], SAMPLED_TFLOPS);
    struct scenario_band loss = scenario_loss_band(&sampled->results[0], &sampled->results[1]);
    assert_int_equal(loss.n, K);
    assert_true(loss.high - loss.low < 0.5 * (end_band.high - end_band.low) / end_band.median);
    end(sampled);
}

/* Of 0 ... 20 by steps of 1, 5 % are at 1, the median at 10, 95 % at 19; what is out of memory does not count. */
static void quantiles(void **state)
{
    (void)state;
    struct scenario_sample samples[22] = {0};
    for (int i = 0; i < 21; i++)
        samples[i] = (struct scenario_sample){true, {(i * 8) % 21, 0, 0}}; /* in any order: 8 and 21 are coprime */
    const struct scenario_result result = {.samples = samples, .n_samples = 22};
    struct scenario_band band = scenario_band(&result, SAMPLED_TFLOPS);
    assert_int_equal(band.n, 21);
    assert_near(band.low, 1, 1e-12);
    assert_near(band.median, 10, 1e-12);
    assert_near(band.high, 19, 1e-12);
    const struct scenario_result none = {.samples = samples + 21, .n_samples = 1};
    assert_int_equal(scenario_band(&none, SAMPLED_TFLOPS).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_errors_and_noise_no_band),
        cmocka_unit_test(errors_of_parameters_make_a_band),
        cmocka_unit_test(noise),
        cmocka_unit_test(points_share_their_draws),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
