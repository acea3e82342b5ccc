/* Laws of whole simulations: whatever the model and the strategy. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../point.h"

#include <math.h>
#include <string.h>

#define SCENARIO FLOPCAST_SOURCE_DIR "/scenarios/sharding_strategies_7b.yaml"
#define MODELS FLOPCAST_SOURCE_DIR "/scenarios/models/"
#define MODEL MODELS "gpt2.yaml"

static const struct strategy_case {
    const char *strategy, *sharding, *checkpointing, *grad_accum;
} cases[] = {
    {"fsdp", "FULL_SHARD", "none", "1"}, {"fsdp", "FULL_SHARD", "full", "2"},
    {"fsdp", "SHARD_GRAD_OP", "full", "1"}, {"fsdp", "HYBRID_SHARD", "none", "2"},
    {"fsdp", "_HYBRID_SHARD_ZERO2", "none", "1"}, {"fsdp", "NO_SHARD", "none", "1"},
    {"ddp", "FULL_SHARD", "none", "2"}, {"deepspeed", "NO_SHARD", "none", "1"}, /* stage 1 */
    {"internevo", "NO_SHARD", "none", "2"}, /* the last: node_local_owners_lose_less */
};
enum { N_CASES = sizeof cases / sizeof *cases };

enum { MOST = 24 };

/* gpt2 under a strategy on 32 GPUs without noise, then more overrides. */
static struct scenario_result simulate(const struct strategy_case *at,
    const struct scenario_override *more, int n, struct arena *arena)
{
    struct scenario_override list[MOST] = {{"model", MODEL}, {"cluster.gpus", "32"},
        {"strategy", at->strategy}, {"fsdp.sharding_strategy", at->sharding},
        {"train.activation_checkpointing", at->checkpointing}, {"train.grad_accum", at->grad_accum},
        {"train.micro_batch", "4"}, {"train.seq_len", "1024"}, {"run.steps", "2"},
        {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"},
        {"train.precision", strcmp(at->strategy, "internevo") == 0 ? "bf16_master" : "bf16_mixed"}};
    int used = 14;
    for (int i = 0; i < n; i++)
        list[used++] = more[i];
    return simulate_point(SCENARIO, list, used, arena);
}

/* Without noise ranks are alike: one simulated for all gives the very bits that all of them give.
 */
static void folding_changes_nothing(void **state)
{
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        struct arena arena = ARENA_INIT;
        const struct scenario_override off[] = {{"run.fold", "off"}};
        struct scenario_result folded = simulate(&cases[c], NULL, 0, &arena),
                               all = simulate(&cases[c], OVERRIDES(off), &arena);
        assert_int_equal(folded.exec.ranks_simulated, 1);
        assert_int_equal(all.exec.ranks_simulated, 32);
        assert_true(folded.exec.step_time_s == all.exec.step_time_s);
        assert_true(folded.exec.nic_utilisation == all.exec.nic_utilisation);
        assert_true(folded.exec.nvlink_utilisation == all.exec.nvlink_utilisation);
        assert_memory_equal(&folded.exec.memory, &all.exec.memory, sizeof folded.exec.memory);
        /* Means over ranks are sums of 32 equal numbers: rounding only. */
        assert_true(fabs(folded.exec.breakdown.compute_s - all.exec.breakdown.compute_s) < 1e-12);
        assert_true(fabs(folded.exec.breakdown.comm_s - all.exec.breakdown.comm_s) < 1e-12);
        arena_release(&arena);
    }
}

/* Every second of a step is accounted for: computing, waiting for a collective, for the host, or
 * for something else. */
static void the_parts_add_up_to_the_step(void **state)
{
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        struct arena arena = ARENA_INIT;
        struct scenario_result result = simulate(&cases[c], NULL, 0, &arena);
        const struct exec_breakdown *parts = &result.exec.breakdown;
        double sum = parts->compute_s + parts->exposed_comm_s + parts->bubble_s +
                     parts->host_bound_s + parts->other_idle_s;
        assert_true(fabs(sum - result.exec.step_time_s) < 1e-9);
        assert_true(parts->compute_s > 0 && parts->exposed_comm_s >= 0 &&
                    parts->host_bound_s >= 0 && parts->other_idle_s >= 0);
        assert_true(parts->contention_s >= 0 && parts->contention_s < parts->compute_s);
        assert_true(parts->comm_latency_s <= parts->comm_s);
        arena_release(&arena);
    }
}

/* The same seed gives the same bits; another seed another run. */
static void noise_is_a_function_of_the_seed(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    uint64_t digests[3];
    const char *seeds[] = {"5", "5", "6"};
    for (int i = 0; i < 3; i++) {
        const struct scenario_override noise[] = {{"noise.gpu_speed_spread", "0.01"},
            {"noise.kernel_jitter", "0.02"}, {"noise.network_jitter", "0.05"},
            {"noise.host_jitter", "0.1"}, {"run.seed", seeds[i]}};
        digests[i] = simulate(&cases[0], OVERRIDES(noise), &arena).exec.digest;
    }
    assert_true(digests[0] == digests[1]);
    assert_true(digests[0] != digests[2]);
    arena_release(&arena);
}

/* Stragglers only ever cost: the slowest GPU of a job sets its pace. */
static void spread_makes_a_step_longer(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double last = 0;
    const char *spreads[] = {"0", "0.01", "0.03"};
    for (int i = 0; i < 3; i++) {
        const struct scenario_override noise[] = {{"noise.gpu_speed_spread", spreads[i]}};
        double step_s = simulate(&cases[0], OVERRIDES(noise), &arena).exec.step_time_s;
        assert_true(step_s > last);
        last = step_s;
    }
    arena_release(&arena);
}

/* Recomputation costs time and saves memory. */
static void checkpointing_trades_time_for_memory(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const struct strategy_case none = {"fsdp", "FULL_SHARD", "none", "1"},
                               full = {"fsdp", "FULL_SHARD", "full", "1"};
    struct scenario_result keeps = simulate(&none, NULL, 0, &arena),
                           reruns = simulate(&full, NULL, 0, &arena);
    assert_true(reruns.exec.step_time_s > keeps.exec.step_time_s);
    assert_true(reruns.exec.memory.peak_allocated_bytes < keeps.exec.memory.peak_allocated_bytes);
    assert_true(reruns.hw_tflops_per_gpu * reruns.exec.step_time_s >
                keeps.hw_tflops_per_gpu * keeps.exec.step_time_s);
    arena_release(&arena);
}

/* Backward needs the input of a block's last matrix product, not its result. So recomputation that
 * stops early leaves one of MPT-1b's four products a block out: 2 x 4 d^2 flop a token, 24 blocks
 * with d = 2048, 4 x 1024 tokens. GPT-2 has dropout behind the product and keeps its mask: there
 * all must run. */
static void recomputation_stops_early(void **state)
{
    (void)state;
    const char *const models[] = {MODELS "mpt-1b.yaml", MODELS "gpt2.yaml"};
    const double left_out[] = {24.0 * 4096 * 8 * 2048 * 2048, 0};
    for (int m = 0; m < 2; m++) {
        struct arena arena = ARENA_INIT;
        const struct strategy_case full = {"fsdp", "FULL_SHARD", "full", "1"};
        const struct scenario_override stop[] = {{"model", models[m]}},
                                       whole[] = {{"model", models[m]},
                                           {"train.checkpoint_early_stop", "false"}};
        struct scenario_result early = simulate(&full, OVERRIDES(stop), &arena),
                               all = simulate(&full, OVERRIDES(whole), &arena);
        double more = all.hw_tflops_per_gpu * all.exec.step_time_s -
                      early.hw_tflops_per_gpu * early.exec.step_time_s;
        assert_near(more * 1e12, left_out[m], 1e3);
        arena_release(&arena);
    }
}

/* FULL_SHARD holds 1/32 of the state, SHARD_GRAD_OP gathered parameters besides, NO_SHARD all of
 * it, DDP buckets on top. */
static void more_sharding_needs_less_memory(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const struct strategy_case order[] = {{"fsdp", "FULL_SHARD", "none", "1"},
        {"fsdp", "HYBRID_SHARD", "none", "1"}, {"fsdp", "NO_SHARD", "none", "1"},
        {"ddp", "NO_SHARD", "none", "1"}};
    double last = 0;
    for (int i = 0; i < 4; i++) {
        double peak = simulate(&order[i], NULL, 0, &arena).exec.memory.peak_allocated_bytes;
        assert_true(peak > last);
        last = peak;
    }
    arena_release(&arena);
}

/* The rate limiter bounds how many gathered units can pile up: FSDP paper, section 3.4. */
static void the_rate_limiter_saves_reserved_memory(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const struct scenario_override on[] = {{"fsdp.limit_all_gathers", "true"}},
                                   off[] = {{"fsdp.limit_all_gathers", "false"}};
    const struct strategy_case full = {"fsdp", "FULL_SHARD", "full", "1"};
    double limited = simulate(&full, OVERRIDES(on), &arena).exec.memory.peak_reserved_bytes;
    double unlimited = simulate(&full, OVERRIDES(off), &arena).exec.memory.peak_reserved_bytes;
    assert_true(limited < unlimited);
    arena_release(&arena);
}

static struct exec_result near_the_end(
    const char *batch, const char *gpus, bool limited, struct arena *arena)
{
    const struct scenario_override set[] = {{"train.micro_batch", batch}, {"cluster.gpus", gpus},
        {"fsdp.limit_all_gathers", limited ? "true" : "false"}};
    struct scenario_result result = simulate_point(
        FLOPCAST_SOURCE_DIR "/scenarios/allocator_retries.yaml", OVERRIDES(set), arena);
    assert_int_equal(result.exec.status, EXEC_OK);
    return result.exec;
}

/* FSDP paper, section 5.4: of batch 1 and 2 on 128 and 512 GPUs, batch 2 on 128 alone retries many
 * times (here: five times as often as any other, and stands as much longer for it). Section 3.4:
 * without the limiter more is reserved and all of them do, which costs time. */
static void batch_2_on_128_gpus_retries_unless_gathers_are_unlimited(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const char *const batches[] = {"2", "1", "2", "1"}, *const gpus[] = {
                                                            "128", "128", "512", "512"};
    struct exec_memory cliff = {0};
    for (int i = 0; i < 4; i++) {
        struct exec_result limited = near_the_end(batches[i], gpus[i], true, &arena),
                           unlimited = near_the_end(batches[i], gpus[i], false, &arena);
        const struct exec_memory *tame = &limited.memory, *wild = &unlimited.memory;
        if (i == 0)
            cliff = *tame;
        else
            assert_true(cliff.alloc_retries_a_step > 5 * tame->alloc_retries_a_step &&
                        cliff.alloc_stall_s > 5 * tame->alloc_stall_s);
        double more = i == 0 ? 1.2 : 5; /* the cliff retries with the limiter, too */
        assert_true(wild->alloc_retries_a_step > more * tame->alloc_retries_a_step &&
                    wild->alloc_stall_s > more * tame->alloc_stall_s);
        /* Of the whole run: of its four measured steps and of those before, in which segments are
         * first freed. */
        assert_true(wild->alloc_retries > 4 * wild->alloc_retries_a_step);
        assert_true(wild->peak_reserved_bytes >
                    0.99 * tame->peak_reserved_bytes); /* both may reach the end */
        /* the same tensors; in which blocks, and how much larger these are, differs */
        assert_near(wild->peak_allocated_bytes / tame->peak_allocated_bytes, 1, 0.005);
        assert_true(unlimited.step_time_s > 1.02 * limited.step_time_s);
    }
    arena_release(&arena);
}

/* Hybrid ZeRO-1 that shares out inside nodes broadcasts over NVLink; over all GPUs, over the
 * network, from ever more owners: it is slower, and the more so the more GPUs there are (one
 * broadcast a tensor, each as many hops long). */
static void node_local_owners_lose_less(void **state)
{
    (void)state;
    double gap[2];
    for (int large = 0; large < 2; large++) {
        struct arena arena = ARENA_INIT;
        struct scenario_override more[] = {
            {"cluster.gpus", large ? "512" : "128"}, {"internevo.zero1", "-1"}};
        const struct strategy_case *internevo = &cases[N_CASES - 1];
        double all = simulate(internevo, OVERRIDES(more), &arena).exec.step_time_s;
        more[1].value = "8";
        gap[large] = all - simulate(internevo, OVERRIDES(more), &arena).exec.step_time_s;
        arena_release(&arena);
    }
    assert_true(gap[0] > 0);
    assert_true(gap[1] > 3 * gap[0]); /* 4 times the hops, of more broadcasts; bytes are the same */
}

/* MPT-13b on 8 GPUs of 40 GB, where cudaMalloc fails. Ranks that are not folded stand still where
 * the one that stands for all does; with noise each has a separate ledger, they drain at other
 * times than their neighbours, and all wait for whichever does. */
static struct exec_result thirteen(
    bool limited, const char *fold, const char *spread, struct arena *arena)
{
    const struct scenario_override set[] = {{"model", MODELS "mpt-13b.yaml"},
        {"cluster.topology", FLOPCAST_SOURCE_DIR "/topologies/clusters/a100-40gb-8x200g.yaml"},
        {"cluster.gpus", "8"}, {"train.attention", "flash"}, {"train.micro_batch", "2"},
        {"run.fold", fold}, {"fsdp.limit_all_gathers", limited ? "true" : "false"},
        {"noise.gpu_speed_spread", spread}};
    struct scenario_result result = simulate_point(
        FLOPCAST_SOURCE_DIR "/scenarios/allocator_retries.yaml", OVERRIDES(set), arena);
    assert_int_equal(result.exec.status, EXEC_OK);
    assert_true(result.exec.memory.alloc_retries_a_step > 0);
    return result.exec;
}

static void every_rank_has_the_stalls_of_its_ledger(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double slower[2];
    for (int limited = 0; limited < 2; limited++) {
        struct exec_result one = thirteen(limited, "auto", "0", &arena),
                           all = thirteen(limited, "off", "0", &arena),
                           noisy = thirteen(limited, "auto", "0.015", &arena);
        assert_int_equal(one.ranks_simulated, 1);
        assert_int_equal(all.ranks_simulated, 8);
        assert_true(one.step_time_s == all.step_time_s);
        assert_memory_equal(&one.memory, &all.memory, sizeof one.memory);
        assert_true(one.breakdown.host_bound_s > 0);
        assert_near(all.breakdown.host_bound_s, one.breakdown.host_bound_s, 1e-12);
        slower[limited] = noisy.step_time_s / one.step_time_s;
    }
    assert_true(slower[0] > 1.1 * slower[1]); /* the more, the more of them there are */
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_changes_nothing),
        cmocka_unit_test(the_parts_add_up_to_the_step),
        cmocka_unit_test(noise_is_a_function_of_the_seed),
        cmocka_unit_test(spread_makes_a_step_longer),
        cmocka_unit_test(checkpointing_trades_time_for_memory),
        cmocka_unit_test(recomputation_stops_early),
        cmocka_unit_test(more_sharding_needs_less_memory),
        cmocka_unit_test(node_local_owners_lose_less),
        cmocka_unit_test(the_rate_limiter_saves_reserved_memory),
        cmocka_unit_test(batch_2_on_128_gpus_retries_unless_gathers_are_unlimited),
        cmocka_unit_test(every_rank_has_the_stalls_of_its_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
