/* fully_shard in the stages of a pipeline (torchtitan): what is gathered and reduced, and when; how
 * blocks are split. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

enum { RANKS = 8, STAGES = 2, MICRO_BATCHES = 4, BLOCKS = 8, ROOTS = 2 };

static struct model_shape deep_llama(void)
{
    struct model_shape shape = small_llama;
    shape.n_layers = BLOCKS;
    return shape;
}

static struct strategy_options staged(void)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.fsdp.version = 2;
    options.fsdp.reduce_dtype = REDUCE_FP32;
    options.train.grad_accum = MICRO_BATCHES;
    options.parallelism.pipeline = STAGES;
    return options;
}

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* HBM traffic of the kernels of this name, in all programs. */
static double traffic(const struct plan *plan, const char *end)
{
    double bytes = 0;
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].ops.n; i++) {
            const struct plan_op *op = &plan->programs[p].ops.at[i];
            if (op->kind == OP_KERNEL && ends_with(op->name, end))
                bytes += plan->kernels.at[op->index].read_bytes +
                         plan->kernels.at[op->index].write_bytes;
        }
    return bytes;
}

/* Ops of these names, in all programs. */
static int issued(const struct plan *plan, const char *end)
{
    int n = 0;
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].ops.n; i++)
            n += ends_with(plan->programs[p].ops.at[i].name, end);
    return n;
}

/* Bytes of the collectives of all programs, each of which is one entry of the plan however often it
 * is issued. */
static double moved(const struct plan *plan, const char *end)
{
    double bytes = 0;
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].ops.n; i++) {
            const struct plan_op *op = &plan->programs[p].ops.at[i];
            if (op->kind == OP_COLLECTIVE && ends_with(op->name, end))
                bytes += plan->collectives.at[op->index].bytes;
        }
    return bytes;
}

/* However many micro-batches and chunks there are, a step gathers each unit once, 2 bytes a
 * parameter, and reduces it once, 4 bytes. A gradient is cast in the first micro-batch, 2 + 4
 * bytes, and added to in the others, 2 + 4 + 4; then it is copied into what is reduced, 4 + 4. */
static void a_step_gathers_once_and_reduces_once(void **state)
{
    (void)state;
    const struct model_shape shape = deep_llama();
    for (int chunks = 1; chunks <= 2; chunks++)
        for (int schedule = 0; schedule < SCHEDULE_COUNT; schedule++) {
            struct compiled c;
            struct strategy_options options = staged();
            if (schedule_is_v(schedule) ? chunks != SCHEDULE_V_CHUNKS
                                        : chunks > 1 && schedule != SCHEDULE_1F1B)
                continue;
            options.parallelism.virtual_stages = chunks;
            options.parallelism.schedule = schedule;
            compile(&c, &options, &shape, RANKS);
            double all = (double)c.model.params;
            assert_int_equal(issued(&c.plan, "/all_gather"), BLOCKS + ROOTS);
            assert_int_equal(issued(&c.plan, "/reduce_scatter"), BLOCKS + ROOTS);
            assert_true(moved(&c.plan, "/all_gather") == 2 * all);
            assert_true(moved(&c.plan, "/reduce_scatter") == 4 * all);
            assert_true(traffic(&c.plan, "/accumulate_grad") ==
                        (2 + 4 + (MICRO_BATCHES - 1) * (2 + 4 + 4)) * all);
            assert_true(traffic(&c.plan, "/copy_in") == (4 + 4) * all);
            drop(&c);
        }
}

/* always: backward gathers what forward let go of, forward only what backward has not left
 * gathered. Under 1F1B that is once more than there are micro-batches, on both stages; a stage's
 * part of the root stays. */
static void resharding_gathers_for_each_backward_pass(void **state)
{
    (void)state;
    const struct model_shape shape = deep_llama();
    struct compiled c;
    struct strategy_options options = staged();
    options.fsdp.reshard_after_forward = RESHARD_ALWAYS;
    compile(&c, &options, &shape, RANKS);
    assert_int_equal(issued(&c.plan, "/all_gather"), BLOCKS * (MICRO_BATCHES + 1) + ROOTS);
    assert_int_equal(issued(&c.plan, "/reduce_scatter"), BLOCKS + ROOTS);
    drop(&c);
}

/* Without a pipeline blocks are gathered twice by default, and once where they are not resharded.
 */
static void the_policy_holds_without_a_pipeline(void **state)
{
    (void)state;
    static const int gathers[RESHARD_COUNT] = {[RESHARD_DEFAULT] = 2 * BLOCKS + 1,
        [RESHARD_ALWAYS] = 2 * BLOCKS + 1,
        [RESHARD_NEVER] = BLOCKS + 1};
    const struct model_shape shape = deep_llama();
    for (int policy = 0; policy < RESHARD_COUNT; policy++) {
        struct compiled c;
        struct strategy_options options = staged();
        options.train.grad_accum = options.parallelism.pipeline = 1;
        options.fsdp.reshard_after_forward = policy;
        compile(&c, &options, &shape, RANKS);
        assert_int_equal(issued(&c.plan, "/all_gather"), gathers[policy]);
        drop(&c);
    }
}

/* The hooks run when the last backward pass of the stage is over, so reductions are beside none of
 * its kernels; one after the other: each copy_in waits for the reduction before. */
static void reductions_come_behind_the_last_backward_pass(void **state)
{
    (void)state;
    const struct model_shape shape = deep_llama();
    struct strategy_options options = staged();
    struct compiled c;
    compile(&c, &options, &shape, RANKS);
    for (int p = 0; p < c.plan.n_programs; p++) {
        const struct plan_program *program = &c.plan.programs[p];
        int first = -1, last = -1, waited = 0;
        plan_wait reduced = PLAN_NO_OP;
        for (int i = 0; i < program->ops.n; i++) {
            const struct plan_op *op = &program->ops.at[i];
            last = ends_with(op->name, ".wgrad") || ends_with(op->name, ".dgrad") ? i : last;
            for (int w = 0; w < op->n_waits && ends_with(op->name, "/copy_in"); w++)
                waited += reduced != PLAN_NO_OP && program->waits.at[op->first_wait + w] == reduced;
            if (!ends_with(op->name, "/reduce_scatter"))
                continue;
            first = first < 0 ? i : first;
            reduced = i;
        }
        assert_true(last > 0 && first > last);
        assert_int_equal(waited, (BLOCKS + ROOTS) / STAGES - 1);
    }
    drop(&c);
}

static void expect_blocks(int method, int blocks, int chunks, const int *expected)
{
    struct arena arena = ARENA_INIT;
    struct model_shape shape = small_llama;
    struct model model;
    struct hw hw = test_hw();
    struct strategy_options options = staged();
    shape.n_layers = blocks;
    model_build(&model, &shape, &arena);
    options.parallelism.partition_method = method;
    options.parallelism.pipeline = chunks;
    struct job job = strategy_job(&options, &model, &hw, chunks);
    for (int s = 0, next = 0; s < chunks; s++) {
        struct model_stage stage = strategy_stage(&job, s, &arena);
        assert_int_equal(stage.n_chunks, 1);
        assert_int_equal(stage.chunks[0].first, next);
        assert_int_equal(stage.chunks[0].n, expected[s]);
        next += expected[s];
    }
    arena_release(&arena);
}

/* 126 blocks as Llama 3.1 405B has them, 32 as the 8B; and what is left over where there is no
 * chunk between. */
static void blocks_are_split_as_torchtitan_does(void **state)
{
    (void)state;
    expect_blocks(PARTITION_SPLIT_POINTS, 126, 8, (const int[]){15, 16, 16, 16, 16, 16, 16, 15});
    expect_blocks(PARTITION_SPLIT_POINTS, 126, 16,
        (const int[]){7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
    expect_blocks(PARTITION_SPLIT_POINTS, 7, 2, (const int[]){3, 4});
    expect_blocks(PARTITION_SPLIT_POINTS, 11, 4, (const int[]){2, 3, 3, 3});
    expect_blocks(PARTITION_WEIGHTED, 32, 8, (const int[]){4, 5, 4, 4, 4, 4, 4, 3});
    expect_blocks(PARTITION_WEIGHTED, 126, 8, (const int[]){15, 16, 16, 16, 16, 16, 16, 15});
}

static void what_a_pipeline_of_fully_shard_cannot(void **state)
{
    (void)state;
    const struct model_shape shape = deep_llama();
    struct hw hw = test_hw();
    struct strategy_options options = staged();
    options.fsdp.version = 1;
    refuse_model(&shape, hw, &options, "take fsdp.version: 2");
    options = staged();
    options.train.autocast = true;
    refuse_model(&shape, hw, &options, "under autocast weights are cast for each pass");
    options = staged();
    options.fsdp.cpu_offload = true;
    refuse_model(&shape, hw, &options, "offloading is not simulated in a pipeline");
    options = staged();
    refuse_plan(hw, &options, "has its embeddings tied");
    options.parallelism.partition_method = PARTITION_SPLIT_POINTS;
    options.parallelism.first_layers = 1;
    refuse_model(&shape, hw, &options, "split_points decides what each model chunk has");
    options = staged();
    options.parallelism.partition_method = PARTITION_WEIGHTED;
    options.parallelism.pipeline = RANKS;
    refuse_model(&shape, hw, &options, "take 5 at most");
}

/* FP8: matrices of blocks are gathered in 1 byte, the rest in 2; gradients are what they were.
 * Scales of all are found once a step, over 4 bytes of each rank's part. */
static void matrices_are_gathered_in_fp8(void **state)
{
    (void)state;
    const struct model_shape shape = deep_llama();
    struct hw hw = test_hw();
    struct compiled c;
    struct strategy_options options = staged();
    options.parallelism.pipeline = options.train.grad_accum = 1;
    options.train.precision = PRECISION_FP8_MIXED;
    options.train.fp8_recipe = FP8_TENSORWISE;
    options.fsdp.float8_all_gather = true;
    compile(&c, &options, &shape, RANKS);
    double matrices = 0, root = (double)c.model.layers[0].params,
           blocks = (double)c.model.params - root;
    for (int t = 0; t < c.model.n_tensors; t++)
        matrices += model_is_block_matrix(&c.model, &c.model.tensors[t])
                        ? (double)c.model.tensors[t].numel
                        : 0;
    assert_true(moved(&c.plan, "/all_gather") == 2 * root + 2 * (2 * blocks - matrices));
    assert_true(moved(&c.plan, "/reduce_scatter") == 4 * (double)c.model.params);
    assert_true(traffic(&c.plan, "float8_scales/amax") == 4 * matrices / RANKS + 4.0 * BLOCKS * 7);
    assert_true(moved(&c.plan, "float8_scales/all_reduce") == 4.0 * BLOCKS * 7);
    drop(&c);
    options.train.fp8_recipe = FP8_ROWWISE;
    refuse_model(
        &shape, hw, &options, "FP8 is gathered by fully_shard where each matrix has one scale");
    options.fsdp.float8_all_gather = false;
    options.train.precision = PRECISION_BF16_MIXED;
    refuse_model(
        &shape, hw, &options, "rowwise is a recipe of FP8; take train.precision: fp8_mixed");
    options = staged();
    options.parallelism.model.tensor = 2;
    options.parallelism.model.tensor_overlap = TENSOR_MICRO_PIPELINE;
    refuse_model(
        &shape, hw, &options, "take parallelism.sequence: true and at most 8 tensor ranks");
}

/* merge_outputs: the last stage keeps 2 x 32 tokens x 1000 words x 2 bytes of each micro-batch,
 * then reads and writes all of them; the others, and one without stages, nothing. An op each
 * allocates and frees. */
static void a_pipeline_merges_its_outputs(void **state)
{
    (void)state;
    const struct model_shape shape = deep_llama();
    const double logits = 2.0 * 32 * 1000 * 2;
    for (int chunks = 0; chunks <= 2; chunks++)
        for (int merges = 0; merges < 2; merges++) {
            struct compiled c;
            struct strategy_options options = staged();
            options.parallelism.pipeline = chunks == 0 ? 1 : STAGES;
            options.parallelism.virtual_stages = chunks == 0 ? 1 : chunks;
            options.parallelism.merge_outputs = merges;
            compile(&c, &options, &shape, RANKS);
            bool kept = merges && chunks > 0;
            assert_int_equal(issued(&c.plan, "output_chunks"), kept ? 2 * MICRO_BATCHES : 0);
            assert_true(
                traffic(&c.plan, "merge_outputs") == (kept ? 2 * MICRO_BATCHES * logits : 0));
            drop(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_gathers_once_and_reduces_once),
        cmocka_unit_test(resharding_gathers_for_each_backward_pass),
        cmocka_unit_test(the_policy_holds_without_a_pipeline),
        cmocka_unit_test(reductions_come_behind_the_last_backward_pass),
        cmocka_unit_test(blocks_are_split_as_torchtitan_does),
        cmocka_unit_test(matrices_are_gathered_in_fp8),
        cmocka_unit_test(what_a_pipeline_of_fully_shard_cannot),
        cmocka_unit_test(a_pipeline_merges_its_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
