/* DHEN under FSDP: what the FSDP paper says of its figures 7a and 8a (arXiv 2304.11277, section
 * 5.4), in words: full sharding with resharding after forward (RAF) takes least memory and is
 * slowest, hybrid sharding without (NRAF) the opposite, and memory falls in every mode as GPUs are
 * added. Here that holds from 512 GPUs on; on few GPUs hybrid sharding is slower, because its
 * larger shards cost more in the optimizer and in the all_reduce. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../point.h"

#define SCENARIO FLOPCAST_SOURCE_DIR "/scenarios/dhen_sharding.yaml"

static struct scenario_result simulate(const char *sharding, const char *gpus, struct arena *arena)
{
    const struct scenario_override list[] = {{"fsdp.sharding_strategy", sharding},
        {"cluster.gpus", gpus}, {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    return simulate_point(SCENARIO, OVERRIDES(list), arena);
}

static void strategies_trade_memory_for_speed(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_result raf = simulate("FULL_SHARD", "512", &arena),
                           nraf = simulate("SHARD_GRAD_OP", "512", &arena);
    struct scenario_result hybrid_raf = simulate("HYBRID_SHARD", "512", &arena),
                           hybrid_nraf = simulate("_HYBRID_SHARD_ZERO2", "512", &arena);
    const struct scenario_result *between[] = {&nraf, &hybrid_raf};
    for (int i = 0; i < 2; i++) {
        assert_true(raf.samples_per_s < between[i]->samples_per_s);
        assert_true(between[i]->samples_per_s < hybrid_nraf.samples_per_s);
        assert_true(
            raf.exec.memory.peak_allocated_bytes < between[i]->exec.memory.peak_allocated_bytes);
        assert_true(between[i]->exec.memory.peak_allocated_bytes <
                    hybrid_nraf.exec.memory.peak_allocated_bytes);
    }
    arena_release(&arena);
}

static void memory_falls_with_gpus(void **state)
{
    (void)state;
    static const char *const strategies[] = {
        "FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"};
    static const char *const gpus[] = {"32", "64", "128"};
    for (int s = 0; s < 4; s++) {
        double before = 1e30;
        for (int g = 0; g < 3; g++) {
            struct arena arena = ARENA_INIT;
            struct scenario_result result = simulate(strategies[s], gpus[g], &arena);
            assert_int_equal(result.exec.status, EXEC_OK);
            assert_true(result.exec.memory.peak_allocated_bytes < before);
            before = result.exec.memory.peak_allocated_bytes;
            arena_release(&arena);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_trade_memory_for_speed),
        cmocka_unit_test(memory_falls_with_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
