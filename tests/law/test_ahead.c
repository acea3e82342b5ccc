/* Kernels that follow each other without an event between them (exec/state.h, struct ahead) end
 * when they would have with one each: to the last bit, with noise and without. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "../point.h"
#include "draws.h"

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"
#define QUIET                                                                                      \
    {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"}, {"noise.network_jitter", "0"},  \
    {                                                                                              \
        "noise.host_jitter", "0"                                                                   \
    }

/* A mean over ranks of sums of times: equal, as each rank adds the same numbers in the same order.
 */
static void assert_same(const char *what, double a, double b)
{
    if (!(a == b))
        fail_msg("%s: %.17g, %.17g with an event for every kernel", what, a, b);
}

#define SAME(field) assert_same(#field, ahead->field, single->field)

static void assert_same_run(const struct exec_result *ahead, const struct exec_result *single)
{
    assert_int_equal(ahead->status, single->status);
    SAME(step_time_s);
    SAME(step_time_sd_s);
    SAME(step_time_p05_s);
    SAME(step_time_p95_s);
    SAME(breakdown.compute_s);
    SAME(breakdown.contention_s);
    SAME(breakdown.exposed_comm_s);
    SAME(breakdown.host_bound_s);
    SAME(breakdown.other_idle_s);
    SAME(breakdown.comm_s);
    SAME(breakdown.comm_latency_s);
    SAME(breakdown.comm_wait_s);
    SAME(memory.peak_allocated_bytes);
    SAME(memory.peak_reserved_bytes);
    SAME(memory.alloc_retries);
    SAME(memory.alloc_stall_s);
    SAME(nvlink_utilisation);
    SAME(nic_utilisation);
}

static void check(
    const char *scenario, const struct scenario_override *overrides, int n, double fewer)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    if (scenario_load(&set, scenario, overrides, n, &arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_result results[2];
    for (int single = 0; single < 2; single++) {
        struct scenario_point point = set.points[0];
        point.options.exec.one_by_one = single == 1;
        assert_int_equal(scenario_simulate(&results[single], &point, &arena, &diag), STATUS_OK);
    }
    const struct exec_result *ahead = &results[0].exec, *single = &results[1].exec;
    assert_same_run(ahead, single);
    if (!(ahead->events * fewer < single->events))
        fail_msg("%g events, %g with one for every kernel", ahead->events, single->events);
    arena_release(&arena);
}

/* The GPU is behind the host, which mostly waits for the launch queue. */
static void full_queue(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"train.micro_batch", "8"}};
    check(SCENARIOS "t5_scaling.yaml", OVERRIDES(set), 3);
}

static void some_are_slow(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"train.micro_batch", "8"},
        {"cluster.slow_gpus",
            "\"node1.gpu5=80 %, node0.gpu1=60 % at 3 s, node0.gpu1=1 at 4.5 s\""}};
    check(SCENARIOS "t5_scaling.yaml", OVERRIDES(set), 2);
}

static void host_is_behind(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"noise.host_jitter", "0.2"}};
    check(SCENARIOS "gpt2_ddp_v100.yaml", OVERRIDES(set), 1);
}

static void without_noise(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.gpus", "16"}, {"train.micro_batch", "8"}, QUIET};
    check(SCENARIOS "t5_scaling.yaml", OVERRIDES(set), 1);
}

/* Streams beside the compute stream end kernels that the host waits for, too. */
static void several_streams(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"model", SCENARIOS "models/gpt2.yaml"},
        {"strategy", "fsdp"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"train.seq_len", "1024"},
        {"train.grad_accum", "2"}};
    check(SCENARIOS "sharding_strategies_7b.yaml", OVERRIDES(set), 1);
}

/* DeepSpeed's optimizer waits for the GPU; stage 3 gathers on the way. */
static void zero_3(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"model", SCENARIOS "models/gpt2.yaml"},
        {"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "3"},
        {"train.seq_len", "1024"}, {"cluster.gpus", "8"}};
    check(SCENARIOS "zero_stages_7b.yaml", OVERRIDES(set), 1);
}

/* cudaMalloc fails, and the host waits until the GPU has run dry. */
static void allocator_retries(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.gpus", "128"}, {"train.micro_batch", "2"}, QUIET};
    check(SCENARIOS "allocator_retries.yaml", OVERRIDES(set), 1);
}

/* Attention takes as long as the documents of its micro-batch ask for. */
static void packed_sequences(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"model", SCENARIOS "models/gpt2.yaml"},
        {"train.seq_len", "1024"}, {"train.grad_accum", "2"}, {"train.document_mean", "500"},
        {"train.document_sd", "900"}};
    check(SCENARIOS "llama2_7b_h100_fsdp.yaml", OVERRIDES(set), 1);
}

/* Any strategy, model and options, with noise on the ranks of a node. */
static void drawn_cases(void **state)
{
    (void)state;
    enum { MOST_RANKS = 8 };
    int cases = law_draws(600);
    struct arena shared = ARENA_INIT;
    struct hw hw;
    int ran = 0;
    load_cluster(&hw, "a100-pcie-1x200g", &shared);
    for (int i = 0; i < cases; i++) {
        struct arena arena = ARENA_INIT;
        struct drawn drawn = draw(i);
        struct plan plan;
        struct exec_result results[2];
        struct exec_options options = exec_default_options();
        options.noise = (struct noise_options){.gpu_speed_spread = 0.02,
            .gpu_speed_spread_below = 0.006,
            .kernel_jitter = 0.01,
            .network_jitter = 0.02,
            .host_jitter = 0.05};
        bool compiles = compile_drawn(&plan, &drawn, &hw, &arena);
        for (int single = 0; compiles && plan.mesh.ranks <= MOST_RANKS && single < 2; single++) {
            options.one_by_one = single == 1;
            exec_run(&results[single], &plan, &hw, &options, &arena);
            if (single == 1) {
                assert_same_run(&results[0], &results[1]);
                ran++;
            }
        }
        plan_release(&plan);
        arena_release(&arena);
    }
    assert_true(ran > cases / 4);
    arena_release(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_queue),
        cmocka_unit_test(some_are_slow),
        cmocka_unit_test(host_is_behind),
        cmocka_unit_test(without_noise),
        cmocka_unit_test(several_streams),
        cmocka_unit_test(zero_3),
        cmocka_unit_test(allocator_retries),
        cmocka_unit_test(packed_sequences),
        cmocka_unit_test(drawn_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
