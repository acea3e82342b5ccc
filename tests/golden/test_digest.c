/* Golden digests: the same inputs and seed give the same events at the same picosecond on every
 * compiler, optimisation level and thread count. tests/run builds this test with gcc and clang at
 * -O0 and -O3. A digest that changes on purpose (a model was improved) is put in here anew, and the
 * commit says why: the failure prints the new one. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../point.h"

#include <inttypes.h>

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"

static void check(
    const char *scenario, const struct scenario_override *overrides, int n, uint64_t want)
{
    struct arena arena = ARENA_INIT;
    struct scenario_result result = simulate_point(scenario, overrides, n, &arena);
    if (result.exec.digest != want)
        fail_msg("%s: digest 0x%016" PRIx64 ", step %.17g s", scenario, result.exec.digest,
            result.exec.step_time_s);
    arena_release(&arena);
}

static void t5_full_shard_with_noise(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"train.micro_batch", "8"},
        {"train.precision", "bf16_mixed"}, {"cluster.nccl_protocols", "all"},
        {"cluster.nccl_ring_post_latency", "46.33 us"}, {"run.steps", "1"}, {"run.seed", "42"}};
    check(SCENARIOS "t5_scaling.yaml", OVERRIDES(set), UINT64_C(0xba43f14b1fc66477));
}

static void gpt2_hybrid_shard_folded(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"model", SCENARIOS "models/gpt2.yaml"},
        {"strategy", "fsdp"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"train.seq_len", "1024"},
        {"train.grad_accum", "2"}, {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    check(SCENARIOS "sharding_strategies_7b.yaml", OVERRIDES(set), UINT64_C(0xc4ea8a2f72d47857));
}

static void gpt2_ddp_with_noise(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"noise.host_jitter", "0.2"}};
    check(SCENARIOS "gpt2_ddp_v100.yaml", OVERRIDES(set), UINT64_C(0x7a23b3329b9c04c1));
}

/* Small batches: a few micro-batches go through all that a schedule does. */
static void megatron_interleaved_context(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "64"}, {"train.device_batch", "8"}};
    check(SCENARIOS "llama3_70b_nemo.yaml", OVERRIDES(set), UINT64_C(0x52b21e564f134408));
}

static void megatron_experts(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.gpus", "128"}, {"parallelism.expert_tensor", "2"}, {"train.global_batch", "64"}};
    check(SCENARIOS "mixtral_8x22b.yaml", OVERRIDES(set), UINT64_C(0x47c4b73631595b31));
}

static void deepep(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"train.moe_token_dispatcher_type", "flex"},
        {"train.expert_spread", "0.5"}, {"train.global_batch", "4096"}};
    check(SCENARIOS "deepseek_v3.yaml", OVERRIDES(set), UINT64_C(0xa65c354243381bea));
}

static void megatron_deepspeed_pipeline(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "96"}, {"train.device_batch", "32"}};
    check(SCENARIOS "bloom_176b.yaml", OVERRIDES(set), UINT64_C(0x8455ac80dfb00e87));
}

static void nanotron_with_noise(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "16"}, {"parallelism.tensor", "2"},
        {"parallelism.sequence", "true"}, {"parallelism.pipeline", "2"},
        {"nanotron.zero_stage", "1"}, {"train.micro_batch", "2"}, {"train.global_batch", "32"},
        {"parallelism.p2p_poll", "100 ms"}, {"host.collective_check", "0.32 ms"}};
    check(SCENARIOS "nanotron_8b_layouts.yaml", OVERRIDES(set), UINT64_C(0x1b2f9b375732aae2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t5_full_shard_with_noise),
        cmocka_unit_test(gpt2_hybrid_shard_folded),
        cmocka_unit_test(gpt2_ddp_with_noise),
        cmocka_unit_test(megatron_interleaved_context),
        cmocka_unit_test(megatron_experts),
        cmocka_unit_test(deepep),
        cmocka_unit_test(megatron_deepspeed_pipeline),
        cmocka_unit_test(nanotron_with_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
