/* Golden digests: the same inputs and seed give the same events at the same picosecond on every compiler, optimisation
 * level and thread count. tests/run builds this test with gcc and clang at -O0 and -O3. A digest that changes on
 * purpose (a model was improved) is put in here anew, and the commit says why: the failure prints the new one. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../point.h"

#include <inttypes.h>

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"

static void check(const char *scenario, const struct scenario_override *overrides, int n, uint64_t want)
{
    struct arena arena = ARENA_INIT;
    struct scenario_result result = simulate_point(scenario, overrides, n, &arena);
    if (result.exec.digest != want)
        fail_msg("%s: digest 0x%016" PRIx64 ", step %.17g s", scenario, result.exec.digest, result.exec.step_time_s);
    arena_release(&arena);
}

static void t5_full_shard_with_noise(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"train.micro_batch", "8"},
        {"train.precision", "bf16_mixed"}, {"run.steps", "1"}, {"run.seed", "42"}};
    check(SCENARIOS "t5_scaling.yaml", OVERRIDES(set), UINT64_C(0x14409e7a818065eb));
}

static void gpt2_hybrid_shard_folded(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"model", SCENARIOS "models/gpt2.yaml"}, {"strategy", "fsdp"},
        {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"train.seq_len", "1024"}, {"train.grad_accum", "2"},
        {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"}, {"noise.network_jitter", "0"},
        {"noise.host_jitter", "0"}};
    check(SCENARIOS "sharding_strategies_7b.yaml", OVERRIDES(set), UINT64_C(0xd092abfa84977813));
}

static void gpt2_ddp_with_noise(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"noise.host_jitter", "0.2"}};
    check(SCENARIOS "gpt2_ddp_v100.yaml", OVERRIDES(set), UINT64_C(0x1bf742b7111a0479));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t5_full_shard_with_noise),
        cmocka_unit_test(gpt2_hybrid_shard_folded),
        cmocka_unit_test(gpt2_ddp_with_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
