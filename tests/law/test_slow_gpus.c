/* Laws of slow GPUs (cluster.slow_gpus): whatever the model and the strategy. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../point.h"

#include <string.h>

#define SCENARIO FLOPCAST_SOURCE_DIR "/scenarios/sharding_strategies_7b.yaml"
#define MODELS FLOPCAST_SOURCE_DIR "/scenarios/models/"

/* The share of a slow clock, in the settings and in a GPU file. */
#define CLOCK_TEXT "80 %"
static const double CLOCK = 0.8;

static const struct strategy_case {
    const char *model, *strategy, *sharding;
} cases[] = {{MODELS "gpt2.yaml", "fsdp", "FULL_SHARD"},
    {MODELS "gpt2.yaml", "fsdp", "HYBRID_SHARD"}, {MODELS "gpt2.yaml", "ddp", "FULL_SHARD"},
    {MODELS "gpt2.yaml", "deepspeed", "NO_SHARD"}},
  large = {MODELS "mpt-7b.yaml", "fsdp", "FULL_SHARD"};
enum { N_CASES = sizeof cases / sizeof *cases };

static void set_slow(struct scenario_point *point, const char *slow, struct arena *arena)
{
    struct diag *diag = ARENA_NEW(arena, struct diag);
    struct degrade_events *events = &point->options.exec.gpu_events;
    if (degrade_gpus(events, &point->hw, 32, slow, (struct source_pos){0}, arena, diag) !=
        STATUS_OK)
        fail_msg("%s", diag->text);
}

/* A model on 32 GPUs without noise, steady after three steps; slow may be NULL. */
static struct scenario_point load(
    const struct strategy_case *at, const char *slow, struct arena *arena)
{
    const struct scenario_override list[] = {{"model", at->model}, {"cluster.gpus", "32"},
        {"strategy", at->strategy}, {"fsdp.sharding_strategy", at->sharding},
        {"train.activation_checkpointing", "none"}, {"train.micro_batch", "8"},
        {"train.seq_len", "1024"}, {"train.precision", "bf16_mixed"}, {"run.steps", "2"},
        {"run.warmup_steps", "3"}, {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    struct diag *diag = ARENA_NEW(arena, struct diag);
    struct scenario_set set;
    if (scenario_load(&set, SCENARIO, OVERRIDES(list), arena, diag) != STATUS_OK)
        fail_msg("%s", diag->text);
    struct scenario_point point = set.points[0];
    set_slow(&point, slow, arena);
    return point;
}

static struct exec_result run(const struct scenario_point *point, struct arena *arena)
{
    struct scenario_result result;
    struct diag *diag = ARENA_NEW(arena, struct diag);
    assert_int_equal(scenario_simulate(&result, point, arena, diag), STATUS_OK);
    return result.exec;
}

static struct exec_result run_with(
    const struct strategy_case *at, const char *slow, struct arena *arena)
{
    struct scenario_point point = load(at, slow, arena);
    return run(&point, arena);
}

/* The same GPUs with a clock of their SMs that is lower by kind: every rate of theirs goes with it;
 * HBM, floors and the network stay. */
static struct exec_result run_slow_kind(const struct strategy_case *at, struct arena *arena)
{
    struct scenario_point point = load(at, NULL, arena);
    struct hw_gpu *gpu = &point.hw.gpu;
    gpu->vector_flops.value *= CLOCK;
    gpu->norm_row_time.value /= CLOCK;
    for (int math = 0; math < DTYPE_COUNT; math++) {
        gpu->gemm[math].peak.value *= CLOCK;
        gpu->gemm[math].load_bandwidth.value *= CLOCK;
    }
    return run(&point, arena);
}

/* The large model's products fill the SMs: none is split. Small ones are, and their partial sums go
 * through HBM, whose part of the product a slow GPU slows too. */
static void all_slow_is_a_slow_kind_of_gpu(void **state)
{
    (void)state;
    for (int c = 0; c <= N_CASES; c++) {
        const struct strategy_case *at = c < N_CASES ? &cases[c] : &large;
        struct arena arena = ARENA_INIT;
        struct exec_result kind = run_slow_kind(at, &arena),
                           slow = run_with(at, "*=" CLOCK_TEXT, &arena),
                           none = run_with(at, NULL, &arena);
        double ratio = slow.step_time_s / kind.step_time_s, picoseconds = 1e-9,
               sums = c < N_CASES ? 1e-3 : 0;
        assert_int_equal(slow.ranks_simulated, 1);
        assert_true(ratio > 1 - picoseconds && ratio < 1 + picoseconds + sums);
        assert_true(slow.step_time_s > 1.02 * none.step_time_s);
        assert_true(slow.step_time_s < none.step_time_s / CLOCK);
        arena_release(&arena);
    }
}

static void assert_same_times(const struct exec_result *a, const struct exec_result *b)
{
    assert_true(a->step_time_s == b->step_time_s);
    assert_true(a->step_time_sd_s == b->step_time_sd_s);
    assert_true(
        a->nvlink_utilisation == b->nvlink_utilisation && a->nic_utilisation == b->nic_utilisation);
    assert_memory_equal(&a->memory, &b->memory, sizeof a->memory);
}

static void as_slow_ranks_are_folded(void **state)
{
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        struct arena arena = ARENA_INIT;
        struct scenario_point point = load(&cases[c], "node*=70 %, * = 60 % at 0.15 s", &arena);
        struct exec_result folded = run(&point, &arena);
        point.options.exec.fold = FOLD_OFF;
        struct exec_result all = run(&point, &arena);
        assert_int_equal(folded.ranks_simulated, 1);
        assert_int_equal(all.ranks_simulated, 32);
        assert_same_times(&folded, &all);
        arena_release(&arena);
    }
}

/* One GPU of 32 holds all others up, by at most what it costs that all are as slow; a node of them
 * by no less. */
static void one_slow_gpu_slows_all(void **state)
{
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        struct arena arena = ARENA_INIT;
        double none_s = run_with(&cases[c], NULL, &arena).step_time_s,
               one_s = run_with(&cases[c], "node2.gpu5=" CLOCK_TEXT, &arena).step_time_s,
               node_s = run_with(&cases[c], "node2=" CLOCK_TEXT, &arena).step_time_s,
               all_s = run_with(&cases[c], "*=" CLOCK_TEXT, &arena).step_time_s;
        if (!(one_s > none_s && node_s > none_s && one_s <= all_s * (1 + 1e-9) &&
                node_s <= all_s * (1 + 1e-9)))
            fail_msg("%s %s: %g s without, %g with one, %g with a node, %g with all of them",
                cases[c].strategy, cases[c].sharding, none_s, one_s, node_s, all_s);
        arena_release(&arena);
    }
}

/* Bit for bit, with noise and without. */
static void all_of_the_speed_changes_nothing(void **state)
{
    (void)state;
    for (int noise = 0; noise < 2; noise++) {
        struct arena arena = ARENA_INIT;
        struct scenario_point point = load(&cases[0], NULL, &arena);
        if (noise)
            point.options.exec.noise = (struct noise_options){.gpu_speed_spread = 0.02,
                .gpu_speed_spread_below = 0.006,
                .kernel_jitter = 0.01,
                .network_jitter = 0.01,
                .host_jitter = 0.05};
        struct exec_result none = run(&point, &arena);
        set_slow(&point, "node1.gpu3=100 %, node2=1", &arena);
        struct exec_result full = run(&point, &arena);
        assert_int_equal(full.ranks_simulated, noise ? 32 : 1);
        assert_true(full.digest == none.digest && full.events == none.events);
        assert_same_times(&full, &none);
        assert_memory_equal(&full.breakdown, &none.breakdown, sizeof full.breakdown);
        arena_release(&arena);
    }
}

/* What begins after the last step, or concerns nodes that the job has not, leaves every time as it
 * was. */
static void too_late_changes_nothing(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load(&cases[0], NULL, &arena);
    point.options.exec.noise.gpu_speed_spread = 0.02;
    struct exec_result none = run(&point, &arena);
    static const char *const late[] = {
        "node1.gpu3=50 % at 1000 s", "*=50 % at 1000 s", "node9.gpu3=50 %"};
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        set_slow(&point, late[i], &arena);
        struct exec_result slow = run(&point, &arena);
        assert_same_times(&slow, &none);
        assert_memory_equal(&slow.breakdown, &none.breakdown, sizeof slow.breakdown);
    }
    arena_release(&arena);
}

/* The later it begins, the less it costs; from the start it is what it is without a time. */
static void later_costs_less(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double last_s = run_with(&cases[0], "node1.gpu3=50 %", &arena).step_time_s;
    assert_true(run_with(&cases[0], "node1.gpu3=50 % at 0 s", &arena).step_time_s == last_s);
    struct exec_result none = run_with(&cases[0], NULL, &arena);
    double end_s = s_from_ps(none.last_step_end);
    for (int left = 9; left > 0; left--) { /* tenths of the two measured steps that are left */
        double at_s = end_s - 2 * none.step_time_s * left / 10;
        const char *slow = arena_printf(&arena, "node1.gpu3=50 %% at %g s", at_s);
        double step_s = run_with(&cases[0], slow, &arena).step_time_s;
        assert_true(step_s < last_s);
        last_s = step_s;
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_slow_is_a_slow_kind_of_gpu),
        cmocka_unit_test(as_slow_ranks_are_folded),
        cmocka_unit_test(one_slow_gpu_slows_all),
        cmocka_unit_test(all_of_the_speed_changes_nothing),
        cmocka_unit_test(too_late_changes_nothing),
        cmocka_unit_test(later_costs_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
