/* Two ways to count memory agree: the closed form (strategy/footprint.h), and the peak of the simulated caching
 * allocator. The closed form adds up each kind of tensor at its own fullest moment, the run sees them together, so
 *     closed form - gradients - copies - buffers <= simulated peak <= closed form,
 * the left side because activations are fullest at the loss, when gradients need not be there yet. 1 % for the
 * allocator's rounding and what the closed form leaves out. */
#include "scenario/scenario.h"
#include "strategy/footprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

static struct footprint closed_form(const struct scenario_point *point, struct arena *arena)
{
    static const int dtypes[PRECISION_COUNT] = {
        [PRECISION_FP32] = FOOTPRINT_FP32,
        [PRECISION_TF32] = FOOTPRINT_FP32,
        [PRECISION_BF16_MIXED] = FOOTPRINT_BF16_MIXED,
        [PRECISION_FP16_MIXED] = FOOTPRINT_FP16_MIXED,
        [PRECISION_BF16] = FOOTPRINT_BF16,
        [PRECISION_FP8_MIXED] = FOOTPRINT_FP8_MIXED,
    };
    const struct train_options *train = &point->options.strategy.train;
    struct footprint_options options = {
        .dtype = dtypes[train->precision],
        .optimizer = OPTIMIZER_ADAMW,
        .strategy = point->options.strategy.kind == STRATEGY_DDP ? FOOTPRINT_DDP : FOOTPRINT_FSDP,
        .gpus = point->options.cluster.gpus,
        .micro_batch = train->micro_batch,
        .seq_len = train->seq_len,
        .decoder_seq_len = train->decoder_seq_len,
        .checkpointing = train->activation_checkpointing,
        .attention = train->attention,
        .lora_rank = train->lora_rank,
        .lora_targets = train->lora_targets,
        .base = train->qlora ? BASE_NF4 : BASE_HALF,
    };
    return footprint_of(point->model.params, &point->model, &options, arena);
}

static void assert_agree(const char *scenario, const struct scenario_override *overrides, int n)
{
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    scenario_load(&set, scenario, overrides, n, &arena, diag);
    assert_string_equal(diag->text, "");
    for (int i = 0; i < set.n_points; i++) {
        const struct scenario_point *point = &set.points[i];
        struct arena scratch = ARENA_INIT;
        struct scenario_result result;
        assert_int_equal(scenario_simulate(&result, point, &scratch, diag), STATUS_OK);
        assert_int_equal(result.exec.status, EXEC_OK);
        struct footprint f = closed_form(point, &scratch);
        double peak = result.exec.memory.peak_allocated_bytes, most = footprint_total(&f);
        double least = most - f.gradients - f.copies - f.buffers;
        if (!(peak <= 1.01 * most && peak >= 0.99 * least))
            fail_msg("%s, %d GPUs: simulated peak %.4g, closed form %.4g to %.4g bytes", point->model.shape.name,
                (int)point->options.cluster.gpus, peak, least, most);
        arena_release(&scratch);
    }
    arena_release(&arena);
    free(diag);
}

static void ddp(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "[1, 8]"}, {"train.micro_batch", "[1, 8]"},
        {"train.activation_checkpointing", "[none, full]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/gpt2_ddp_v100.yaml", set, 3);
}

static void fsdp_t5(void **state)
{
    (void)state;
    /* The closed form knows no past_key_values. */
    const struct scenario_override set[] = {{"cluster.gpus", "[8, 64]"}, {"train.use_cache", "false"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/t5_scaling.yaml", set, 2);
}

static void fsdp_llama(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "[8, 64]"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "[none, selective, full]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 3);
}

static void adapters(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "full"}, {"strategy", "[ddp, fsdp]"}, {"train.lora_rank", "16"},
        {"train.qlora", "[false, true]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 6);
}

static void fp8(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "[none, full]"}, {"train.precision", "fp8_mixed"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 4);
}

/* Tables of embeddings are there whatever is sharded. */
static void dhen(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.gpus", "[32, 64]"}, {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "[64, 1024]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/dhen_sharding.yaml", set, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ddp), cmocka_unit_test(fsdp_t5), cmocka_unit_test(fsdp_llama),
        cmocka_unit_test(adapters), cmocka_unit_test(fp8), cmocka_unit_test(dhen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
