/* Two ways to count memory agree to the byte: the peak of a plan in program order (exec/peak.h),
 * and the allocated bytes of the simulated caching allocator in a run of it. Both count each tensor
 * from when the host makes it until the host lets go of it, rounded alike, so nothing but a mistake
 * can come between them: where segments are expandable. Elsewhere a block of the large pool may be
 * up to 1 MiB larger than its tensor, and counts whole. */
#include "study/fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

/* Tensors of the large pool that are there at once at most, in these jobs. */
enum { MOST_LARGE = 2000 };

static void assert_same(
    const struct scenario_point *point, const struct exec_memory *memory, struct diag *diag)
{
    struct exec_peak peak;
    assert_int_equal(fit_peak(&peak, point, diag), STATUS_OK);
    double tensors = 0;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++) {
        if (peak.category_bytes[c] != memory->peak_category_bytes[c])
            fail_msg("%s, %s: %s take %.17g bytes in the plan, %.17g in the run",
                point->model.shape.name, strategy_label(&point->options.strategy),
                hbm_category_names[c], peak.category_bytes[c], memory->peak_category_bytes[c]);
        tensors += c == HBM_CONTEXT || c == HBM_NCCL ? 0 : peak.category_bytes[c];
        assert_true(peak.largest_category[c] >= peak.category_bytes[c]);
    }
    assert_true(tensors == memory->peak_allocated_bytes);
    assert_true(peak.total_bytes ==
                tensors + peak.category_bytes[HBM_CONTEXT] + peak.category_bytes[HBM_NCCL]);
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
        struct arena scratch = ARENA_INIT;
        struct scenario_result result;
        set.points[i].options.exec.allocator.expandable_segments = true;
        assert_int_equal(scenario_simulate(&result, &set.points[i], &scratch, diag), STATUS_OK);
        assert_int_equal(result.exec.status, EXEC_OK);
        assert_same(&set.points[i], &result.exec.memory, diag);
        double exact = result.exec.memory.peak_allocated_bytes;
        set.points[i].options.exec.allocator.expandable_segments = false;
        assert_int_equal(scenario_simulate(&result, &set.points[i], &scratch, diag), STATUS_OK);
        double larger = result.exec.memory.peak_allocated_bytes - exact;
        if (result.exec.status == EXEC_OK && (larger < 0 || larger > MOST_LARGE * 0x1p20))
            fail_msg("%s: blocks are %g bytes larger than tensors", set.points[i].model.shape.name,
                larger);
        arena_release(&scratch);
    }
    arena_release(&arena);
    free(diag);
}

static void ddp(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "[1, 8]"},
        {"train.micro_batch", "[1, 8]"}, {"train.activation_checkpointing", "[none, full]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/gpt2_ddp_v100.yaml", set, 3);
}

static void fsdp_t5(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.gpus", "[8, 64]"}, {"train.use_cache", "[false, true]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/t5_scaling.yaml", set, 2);
}

static void fsdp_llama(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "[8, 64]"},
        {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "[none, selective, full]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 3);
}

static void adapters(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.activation_checkpointing", "full"},
        {"strategy", "[ddp, fsdp]"}, {"train.lora_rank", "16"}, {"train.qlora", "[false, true]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 6);
}

static void fp8(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"},
        {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "[none, full]"}, {"train.precision", "fp8_mixed"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 4);
}

/* Tables of embeddings are there whatever is sharded. */
static void dhen(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "[32, 64]"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "[64, 1024]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/dhen_sharding.yaml", set, 3);
}

/* torch.compile keeps less for backward, and a loop that lets go of the logits has none of them
 * there. */
static void what_lets_go_early(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"},
        {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"train.activation_checkpointing", "[none, full]"}, {"train.fusion", "[eager, inductor]"},
        {"train.drop_logits", "[false, true]"}, {"train.cross_entropy", "[eager, fused]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 6);
    const struct scenario_override words[] = {{"cluster.gpus", "64"},
        {"fsdp.sharding_strategy", "FULL_SHARD"},
        {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/llama3.2-3b.yaml"},
        {"train.micro_batch", "4"}, {"train.activation_checkpointing", "full"},
        {"train.drop_logits", "[false, true]"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", words, 6);
}

/* Full checkpointing and a fused loss leave the fullest moment in backward: what DeepSpeed joins a
 * bucket in, up to 1 GB beside 5, is then part of the peak. */
static void zero_joins_its_buckets(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/mpt-1b.yaml"}, {"cluster.gpus", "64"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "2"},
        {"train.seq_len", "2048"}, {"strategy", "deepspeed"},
        {"deepspeed.zero_optimization.stage", "[2, 3]"}, {"train.activation_checkpointing", "full"},
        {"train.cross_entropy", "fused"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 9);
}

/* With few activations the step is the fullest moment: foreach AdamW makes a list like the
 * parameters, bf16_master and DeepSpeed gradients in FP32. */
static void the_step_is_the_fullest_moment(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/mpt-1b.yaml"}, {"cluster.gpus", "[2, 8]"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "1"},
        {"train.seq_len", "512"}, {"strategy", "[ddp, fsdp]"},
        {"train.activation_checkpointing", "full"},
        {"train.precision", "[bf16_mixed, bf16_master]"}, {"train.optimizer", "[adamw, lion]"},
        {"train.optimizer_impl", "foreach"}};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", set, 10);
    const struct scenario_override zero[] = {set[0], set[1], set[2], set[3], set[4],
        {"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "[1, 2, 3]"}, set[6]};
    assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", zero, 8);
}

static void strategies_and_optimizers(void **state)
{
    (void)state;
    static const char *const optimizers[] = {
        "adamw", "lion", "adam8bit", "adafactor", "sgd_momentum"};
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        const struct scenario_override shards[] = {
            {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/llama3.2-1b.yaml"},
            {"cluster.gpus", "8"}, {"fsdp.sharding_strategy", "FULL_SHARD"},
            {"train.optimizer", optimizers[o]}, {"train.activation_checkpointing", "[none, full]"},
            {"strategy", "[ddp, fsdp]"}};
        assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", shards, 6);
        const struct scenario_override stages[] = {shards[0], shards[1], shards[2], shards[3],
            shards[4], {"strategy", "deepspeed"},
            {"deepspeed.zero_optimization.stage", "[1, 2, 3]"}};
        assert_agree(FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", stages, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ddp), cmocka_unit_test(fsdp_t5),
        cmocka_unit_test(fsdp_llama), cmocka_unit_test(adapters), cmocka_unit_test(fp8),
        cmocka_unit_test(dhen), cmocka_unit_test(what_lets_go_early),
        cmocka_unit_test(zero_joins_its_buckets), cmocka_unit_test(the_step_is_the_fullest_moment),
        cmocka_unit_test(strategies_and_optimizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
