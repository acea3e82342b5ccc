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
    struct footprint_options options = footprint_options_of(&point->options.strategy, point->options.cluster.gpus);
    return footprint_of(point->model.params, &point->model, &options, arena);
}

static void assert_agree(const char *scenario, const struct scenario_override *overrides, int n)
{
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    scenario_load(&set, scenario, overrides, n, &arena, diag);
    if (diag->n_errors > 0)
        fail_msg("%s", diag->text);
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
            fail_msg("%s, %s, %s, %d GPUs: simulated peak %.4g, closed form %.4g to %.4g bytes",
                point->model.shape.name, strategy_label(&point->options.strategy),
                optimizer_names[point->options.strategy.train.optimizer], (int)point->options.cluster.gpus, peak, least,
                most);
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

/* torch.compile keeps less for backward, and a loop that lets go of the logits has none of them there. */
static void what_lets_go_early(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "[none, full]"}, {"train.fusion", "[eager, inductor]"},
        {"train.drop_logits", "[false, true]"}, {"train.cross_entropy", "[eager, fused]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 6);
    /* 4 x 4,096 tokens of 128,256 words, 2 bytes each, are 4.2 GB of logits; the bounds are 1.6 GB (gradients and
     * gathered units) and a hundredth apart. */
    const struct scenario_override words[] = {{"cluster.gpus", "64"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/llama3.2-3b.yaml"}, {"train.micro_batch", "4"},
        {"train.activation_checkpointing", "full"}, {"train.drop_logits", "[false, true]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", words, 6);
}

/* Full checkpointing and a fused loss leave the fullest moment in backward, many GPUs little of gradients: what
 * DeepSpeed joins a bucket in, up to 1 GB beside 5, is then part of the peak. */
static void zero_joins_its_buckets(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"model", FLOPCAST_SOURCE_DIR "/scenarios/models/mpt-1b.yaml"},
        {"cluster.gpus", "64"}, {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "2"},
        {"train.seq_len", "2048"}, {"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "[2, 3]"},
        {"train.activation_checkpointing", "full"}, {"train.cross_entropy", "fused"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 9);
}

/* With few activations the step is the fullest moment: foreach AdamW makes a list like the parameters, bf16_master and
 * DeepSpeed gradients in FP32. */
static void the_step_is_the_fullest_moment(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"model", FLOPCAST_SOURCE_DIR "/scenarios/models/mpt-1b.yaml"},
        {"cluster.gpus", "[2, 8]"}, {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "1"},
        {"train.seq_len", "512"}, {"strategy", "[ddp, fsdp]"}, {"train.activation_checkpointing", "full"},
        {"train.precision", "[bf16_mixed, bf16_master]"}, {"train.optimizer", "[adamw, lion]"},
        {"train.optimizer_impl", "foreach"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 10);
    const struct scenario_override zero[] = {set[0], set[1], set[2], set[3], set[4], {"strategy", "deepspeed"},
        {"deepspeed.zero_optimization.stage", "[1, 2, 3]"}, set[6]};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", zero, 8);
}

/* What `tune` passes over by the closed form must not fit in a run, whatever the strategy and the optimizer. */
static void strategies_and_optimizers(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"adamw", "lion", "adam8bit", "adafactor", "sgd_momentum"};
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        const struct scenario_override shards[] = {{"model", FLOPCAST_SOURCE_DIR "/scenarios/models/llama3.2-1b.yaml"},
            {"cluster.gpus", "8"}, {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.optimizer", optimizers[o]},
            {"train.activation_checkpointing", "[none, full]"}, {"strategy", "[ddp, fsdp]"}};
        assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", shards, 6);
        const struct scenario_override stages[] = {shards[0], shards[1], shards[2], shards[3], shards[4],
            {"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "[1, 2, 3]"}};
        assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", stages, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ddp), cmocka_unit_test(fsdp_t5), cmocka_unit_test(fsdp_llama),
        cmocka_unit_test(adapters), cmocka_unit_test(fp8), cmocka_unit_test(dhen), cmocka_unit_test(what_lets_go_early),
        cmocka_unit_test(zero_joins_its_buckets), cmocka_unit_test(the_step_is_the_fullest_moment),
        cmocka_unit_test(strategies_and_optimizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
