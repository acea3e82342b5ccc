/* Bands: quantiles, and what they are wide from. */
#include "workspace.h"

#include "../near.h"
#include "scenario/sample.h"

#include <math.h>

#define QUIET "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}\n"
enum { K = 40 };
static const struct scenario_uncertainty uncertainty = {0};

struct sampled {
    struct loaded *loaded;
    struct arena arenas[2];
    struct scenario_result results[2];
};

/* A batch that makes the GPU, not the host, the bottleneck; without the first steps, in which the
 * host is in cudaMalloc. */
static struct sampled *begin(const char *text, int points)
{
    struct sampled *sampled = xcalloc(1, sizeof *sampled);
    static const struct scenario_override set[] = {
        {"train.micro_batch", "64"}, {"run.warmup_steps", "2"}};
    sampled->loaded = load_text(text, set, 2);
    assert_string_equal(sampled->loaded->diag.text, "");
    assert_int_equal(sampled->loaded->set.n_points, points);
    return sampled;
}

static void run(struct sampled *sampled)
{
    const struct scenario_set *set = &sampled->loaded->set;
    struct diag *diag = &sampled->loaded->diag;
    assert_int_equal(
        scenario_simulate_all(sampled->results, sampled->arenas, set, NULL, NULL, diag), STATUS_OK);
    const struct scenario_work work = {0};
    assert_int_equal(
        scenario_sample_some(sampled->results, sampled->arenas, set, &uncertainty, K, &work, diag),
        STATUS_OK);
}

static void end(struct sampled *sampled)
{
    arena_release(&sampled->arenas[0]);
    arena_release(&sampled->arenas[1]);
    unload(sampled->loaded);
    free(sampled);
}

/* Every number for certain: a datasheet's, in the eyes of a draw. */
static void know(struct quantity *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        q[i].std_error = 0;
        if (quantity_is_set(q[i]))
            q[i].kind = QUANTITY_DATASHEET;
    }
}
#define KNOW(first, last) know(&(first), (size_t)(&(last) - &(first)) + 1)

static void know_all(struct scenario_point *point)
{
    struct hw *hw = &point->hw;
    KNOW(hw->gpu.sms, hw->gpu.price);
    KNOW(hw->gpu.gemm[0].peak, hw->gpu.gemm[DTYPE_COUNT - 1].load_bandwidth);
    KNOW(hw->gpu.gemm_sustained, hw->gpu.overlap_traffic);
    KNOW(hw->node.gpu_bandwidth, hw->node.nvls_step_latency);
    KNOW(hw->cluster.nodes, hw->cluster.nvls_tree_latency);
    KNOW(hw->cluster.gpu_speed_spread, hw->cluster.host_jitter);
}

#define HOST_COSTS                                                                                 \
    "host: {kernel_issue: 10 us, backward_issue: 5 us, collective_issue: 30 us, unit_hook: 100 "   \
    "us, step: 1 ms}\n"

/* A machine of which everything is known, without noise, has no band. */
static void without_errors_and_noise_no_band(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET HOST_COSTS, 1);
    know_all(&sampled->loaded->set.points[0]);
    run(sampled);
    struct scenario_band band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    assert_int_equal(band.n, K);
    assert_near(band.low, sampled->results[0].exec.step_time_s, 0);
    assert_near(band.high, band.low, 0);
    end(sampled);
}

/* What is given in place of the files' numbers is a choice: it is not drawn. */
static void what_is_given_has_no_band(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET HOST_COSTS, 1);
    struct scenario_point *point = &sampled->loaded->set.points[0];
    point->options.cluster.given = point->hw;
    run(sampled);
    struct scenario_band band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    assert_near(band.low, sampled->results[0].exec.step_time_s, 0);
    assert_near(band.high, band.low, 0);
    end(sampled);
}

/* Costs of the host that the scenario leaves alone are as uncertain as any assumed number: on a
 * batch so small that the host is all that counts, 90 % of the steps are within 1.645 x 0.2 of the
 * median, in the logarithm. */
static void the_host_is_drawn(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET, 1);
    know_all(&sampled->loaded->set.points[0]);
    sampled->loaded->set.points[0].options.strategy.train.micro_batch = 1;
    sampled->loaded->set.points[0].options.strategy.host.step_s = 10;
    run(sampled);
    struct scenario_band band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    double width = log(band.high / band.low) / (2 * 1.645 * DRAW_ASSUMED);
    assert_true(width > 0.7 && width < 1.3); /* of 40 samples */
    end(sampled);
}

/* A cost that a stack profile states is drawn by its own error, 10 % of it: log-normal, as every
 * number is. What a scenario sets in its place is a choice. */
static void what_a_stack_states_of_the_host_is_drawn_by_its_error(void **state)
{
    (void)state;
    write_text("stack.yaml",
        "name: x\nhost: {step: {value: 10 s, kind: fitted, std_error: 1 s, source: test}}\n");
    struct sampled *sampled = begin(BASE QUIET "stack: stack.yaml\n", 1);
    know_all(&sampled->loaded->set.points[0]);
    run(sampled);
    struct scenario_band band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    double width = log(band.high / band.low) / (2 * 1.645 * 0.1);
    assert_true(width > 0.7 && width < 1.3); /* of 40 samples */
    end(sampled);
    sampled = begin(BASE QUIET "stack: stack.yaml\nhost: {step: 10 s}\n", 1);
    know_all(&sampled->loaded->set.points[0]);
    run(sampled);
    band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    assert_true(log(band.high / band.low) <
                0.01); /* what is left are kernels' launches, milliseconds of 10 s */
    end(sampled);
}

/* GEMMs slower by a share that is known to 10 % make a band about as wide as their part of the
 * step; 90 % of a normal distribution are within 1.645 sigma. */
static void errors_of_parameters_make_a_band(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET, 1);
    sampled->loaded->set.points[0].hw.gpu.gemm_sustained =
        (struct quantity){0.7, 0.07, QUANTITY_FITTED, "test", NULL};
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

/* What a cluster's own noise is fitted to is drawn; what the scenario sets stays. */
static double width_with_noise(const char *text, struct quantity kernel_jitter)
{
    struct sampled *sampled = begin(text, 1);
    struct scenario_point *point = &sampled->loaded->set.points[0];
    know_all(point);
    if (quantity_is_set(kernel_jitter))
        point->hw.cluster.kernel_jitter = kernel_jitter;
    run(sampled);
    struct scenario_band band = scenario_band(&sampled->results[0], SAMPLED_STEP_TIME);
    end(sampled);
    return band.high - band.low;
}

static void noise(void **state)
{
    (void)state;
    static const struct quantity as_filed, much = {0.4, 0.1, QUANTITY_FITTED, "test", NULL};
    double width = width_with_noise(BASE HOST_COSTS, as_filed);
    assert_true(width > 0);
    assert_true(width_with_noise(BASE HOST_COSTS, much) > 2 * width);
    assert_true(
        width_with_noise(BASE HOST_COSTS "noise: {kernel_jitter: 1 %}\n", much) < 2 * width);
}

/* Which samples are of a cluster with a slow host, and so of longer steps, a bit each. */
static uint64_t samples_with_slow_hosts(int nodes)
{
    struct sampled *sampled =
        begin(BASE HOST_COSTS "noise: {gpu_speed_spread: 1.0e-9, kernel_jitter: 0, host_jitter: "
                              "0, straggler_share: 0.1, straggler_slowdown: 1}\n",
            1);
    struct scenario_point *point = &sampled->loaded->set.points[0];
    uint64_t slow = 0;
    know_all(point);
    point->options.cluster.gpus = 8 * nodes;
    point->options.exec.noise.straggler_slowdown = 9;
    point->options.exec.no_memory = true;
    run(sampled);
    const struct scenario_result *result = &sampled->results[0];
    double between_s = (result->slow.none_s + result->slow.some_s) / 2;
    for (int k = 0; k < K; k++)
        slow |= (uint64_t)(result->samples[k].value[SAMPLED_STEP_TIME] > between_s) << k;
    end(sampled);
    return slow;
}

/* Of the first 8, 16 and 32 samples as many are of a cluster with a slow host as of all clusters,
 * rounded: 1 - 0.9^nodes of them. Jobs of other sizes have other luck. */
static void luck_is_stratified_and_not_shared_by_sizes(void **state)
{
    (void)state;
    uint64_t of_size[5] = {0};
    for (int nodes = 1; nodes <= 4; nodes++) {
        of_size[nodes] = samples_with_slow_hosts(nodes);
        for (int n = 8; n <= 32; n *= 2) {
            int slow = __builtin_popcountll(of_size[nodes] & ((UINT64_C(1) << n) - 1));
            assert_true(fabs(slow - n * (1 - pow(0.9, nodes))) < 1);
        }
    }
    /* Slow are the samples at the end of the order: were it one for all, those of a smaller job
     * would be among those of each larger one, and here they are not. */
    bool shared = true;
    for (int nodes = 1; nodes < 4; nodes++)
        shared = shared && (of_size[nodes] & ~of_size[nodes + 1]) == 0;
    assert_false(shared);
}

/* A host stops for 1,000 s with a probability of about a half: some samples have that, some have
 * not. */
static void samples_have_different_luck(void **state)
{
    (void)state;
    struct sampled *sampled =
        begin(BASE HOST_COSTS "noise: {gpu_speed_spread: 0, kernel_jitter: 0, host_jitter: 0, "
                              "host_pause: 1000 s, host_pause_interval: 1 s}\n",
            1);
    struct scenario_point *point = &sampled->loaded->set.points[0];
    know_all(point);
    struct noise_options noise = point->options.exec.noise;
    point->options.exec.noise = (struct noise_options){0};
    struct scenario_result quiet = {0};
    assert_int_equal(
        scenario_simulate(&quiet, point, &sampled->arenas[1], &sampled->loaded->diag), STATUS_OK);
    enum { STEPS = 3, RANKS = 8 };
    noise.host_pause_interval_s = quiet.exec.step_time_s * STEPS * RANKS / log(2);
    point->options.exec.noise = noise;
    run(sampled);
    int paused = 0;
    for (int k = 0; k < K; k++)
        paused += sampled->results[0].samples[k].value[SAMPLED_STEP_TIME] > 100;
    assert_true(paused > K / 10 && paused < K - K / 10);
    end(sampled);
}

/* A GEMM rate that is known to 10 % slows both ends of a curve alike: the loss is known far better
 * than the ends. */
static void points_share_their_draws(void **state)
{
    (void)state;
    struct sampled *sampled = begin(BASE QUIET "sweep: [{cluster.gpus: [8, 32]}]\n", 2);
    for (int i = 0; i < 2; i++)
        sampled->loaded->set.points[i].hw.gpu.gemm_sustained =
            (struct quantity){0.7, 0.07, QUANTITY_FITTED, "test", NULL};
    run(sampled);
    struct scenario_band end_band = scenario_band(&sampled->results[1], SAMPLED_TFLOPS);
    struct scenario_band loss = scenario_ratio_band(&sampled->results[0], &sampled->results[1]);
    assert_int_equal(loss.n, K);
    assert_true(loss.high - loss.low < 0.5 * (end_band.high - end_band.low) / end_band.median);
    end(sampled);
}

/* Of 0 ... 20 by steps of 1, 5 % are at 1, the median at 10, 95 % at 19; what is out of memory does
 * not count. */
static void quantiles(void **state)
{
    (void)state;
    struct scenario_sample samples[22] = {0};
    for (int i = 0; i < 21; i++)
        samples[i] = (struct scenario_sample){
            true, {(i * 8) % 21, 0, 0}}; /* in any order: 8 and 21 are coprime */
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
        cmocka_unit_test(what_is_given_has_no_band),
        cmocka_unit_test(the_host_is_drawn),
        cmocka_unit_test(what_a_stack_states_of_the_host_is_drawn_by_its_error),
        cmocka_unit_test(errors_of_parameters_make_a_band),
        cmocka_unit_test(noise),
        cmocka_unit_test(luck_is_stratified_and_not_shared_by_sizes),
        cmocka_unit_test(samples_have_different_luck),
        cmocka_unit_test(points_share_their_draws),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
