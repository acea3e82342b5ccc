/* DeepSpeed without ZeRO, its pipelines, and how their blocks go to stages. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

enum { RANKS = 8, STAGES = 4 };

static struct strategy_options stage_0(int precision)
{
    struct strategy_options options = zero_of(0);
    options.train.precision = precision;
    options.train.optimizer_impl = OPTIMIZER_FUSED;
    return options;
}

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static int named_in(const struct plan_program *program, const char *end)
{
    int n = 0;
    for (int i = 0; i < program->ops.n; i++)
        n += ends_with(program->ops.at[i].name, end);
    return n;
}

static int named(const struct plan *plan, const char *end)
{
    int n = 0;
    for (int p = 0; p < plan->n_programs; p++)
        n += named_in(&plan->programs[p], end);
    return n;
}

static double kept(const struct plan_program *program, enum hbm_category category)
{
    double bytes = 0;
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        bytes += buffer->category == category ? (double)buffer->bytes : 0;
    }
    return bytes;
}

/* Gradients travel in BF16, those of matrices and of the rest apart, and are kept in FP32; the new
 * weights are gathered in BF16. The loss is a number on one stage. Of an element: 2 bytes of
 * weights, 4 of gradients, 12 over the ranks. */
static void bf16_adds_up_in_fp32(void **state)
{
    (void)state;
    for (int accum = 1; accum <= 2; accum++) {
        struct strategy_options options = stage_0(PRECISION_BF16_MIXED);
        struct compiled compiled;
        options.train.grad_accum = accum;
        compile(&compiled, &options, &small_gpt, RANKS);
        const struct plan *plan = &compiled.plan;
        double params = (double)compiled.model.params;
        assert_true(bytes_of(plan, COLL_ALL_REDUCE) == 2 * params + FLOAT_BYTES);
        assert_int_equal(count(plan, COLL_ALL_REDUCE), 2 + 1);
        assert_true(bytes_of(plan, COLL_ALL_GATHER) == 2 * params);
        assert_int_equal(named(plan, "/fp32_grad.add_"), accum * compiled.model.n_tensors);
        assert_int_equal(named(plan, "/accumulate_grad"), 0);
        assert_true(kept(&plan->programs[0], HBM_PARAMETERS) == 2 * params);
        assert_true(kept(&plan->programs[0], HBM_GRADIENTS) == 4 * params);
        int64_t owned = (compiled.model.params + RANKS - 1) / RANKS;
        assert_true(kept(&plan->programs[0], HBM_OPTIMIZER) == 12 * (double)owned);
        drop(&compiled);
    }
}

/* Gradients add up in 16 bits and travel so in buckets; every rank has all 12 bytes of the
 * optimizer's. */
static void fp16_shards_nothing(void **state)
{
    (void)state;
    for (int accum = 1; accum <= 2; accum++) {
        struct strategy_options options = stage_0(PRECISION_FP16_MIXED);
        struct compiled compiled;
        options.train.grad_accum = accum;
        compile(&compiled, &options, &small_gpt, RANKS);
        const struct plan *plan = &compiled.plan;
        double params = (double)compiled.model.params;
        assert_true(bytes_of(plan, COLL_ALL_REDUCE) == 2 * params + FLOAT_BYTES);
        assert_int_equal(count(plan, COLL_ALL_REDUCE), 1 + 1);
        assert_int_equal(count(plan, COLL_ALL_GATHER), 0);
        assert_int_equal(named(plan, "/accumulate_grad"), (accum - 1) * compiled.model.n_tensors);
        assert_true(kept(&plan->programs[0], HBM_OPTIMIZER) == 12 * params);
        drop(&compiled);
        options.zero.reduce_bucket_size = 1;
        compile(&compiled, &options, &small_gpt, RANKS);
        assert_int_equal(named(&compiled.plan, "bucket/all_reduce"), compiled.model.n_tensors);
        drop(&compiled);
    }
}

static struct model_shape tall_gpt(void)
{
    struct model_shape shape = small_gpt;
    shape.n_layers = 2 * STAGES;
    return shape;
}

/* Stages 0 and 1: both ends reduce the tied table's gradient, once; every stage reduces its own
 * behind its last backward pass; all learn of the loss. */
static void stages_reduce_when_they_are_done(void **state)
{
    (void)state;
    const struct model_shape shape = tall_gpt();
    for (int stage = 0; stage <= 1; stage++) {
        struct strategy_options options =
            stage_0(stage == 0 ? PRECISION_BF16_MIXED : PRECISION_FP16_MIXED);
        struct compiled compiled;
        options.zero.stage = stage;
        options.zero.overlap_comm = OVERLAP_TRUE;
        options.train.grad_accum = 6;
        options.parallelism.pipeline = STAGES;
        options.parallelism.batch_p2p_sync = false;
        compile(&compiled, &options, &shape, RANKS);
        assert_int_equal(compiled.plan.n_programs, STAGES);
        for (int s = 0; s < STAGES; s++) {
            const struct plan_program *program = &compiled.plan.programs[s];
            bool end = s == 0 || s == STAGES - 1;
            assert_int_equal(named_in(program, "embedding.grad/all_reduce"), end);
            assert_int_equal(named_in(program, "loss/broadcast"), 1);
            assert_int_equal(named_in(program, "loss/all_reduce"), s == STAGES - 1);
            int sent = 0, reduced = -1;
            for (int i = 0; i < program->ops.n; i++) {
                if (ends_with(program->ops.at[i].name, "send_backward"))
                    sent = i;
                if (reduced < 0 && strncmp(program->ops.at[i].name, "bucket", 6) == 0)
                    reduced = i;
            }
            assert_true(reduced > sent);
        }
        drop(&compiled);
    }
}

/* Two tensor ranks send a half each of b s d activations of 2 bytes, behind a message of 7 + 2
 * numbers of 8 bytes (PartitionedTensor.to_meta(), a LongTensor), and gather what comes. Over one
 * border of 3 micro-batches: an activation and a gradient each, and the sender's own output. */
static void parts_are_sent_and_gathered(void **state)
{
    (void)state;
    struct model_shape shape = tall_gpt();
    for (int partitioned = 0; partitioned < 2; partitioned++) {
        struct strategy_options options = stage_0(PRECISION_BF16_MIXED);
        struct compiled compiled;
        options.train.grad_accum = 3;
        options.parallelism.pipeline = 2;
        options.parallelism.model.tensor = 2;
        options.parallelism.batch_p2p_sync = false;
        options.parallelism.pipe_partitioned = partitioned;
        compile(&compiled, &options, &shape, RANKS);
        const struct plan *plan = &compiled.plan;
        assert_int_equal(named(plan, "gather_received"), partitioned ? 2 * 3 : 0);
        assert_int_equal(named(plan, "gather_output"), partitioned ? 3 : 0);
        assert_int_equal(named(plan, "send_forward"), partitioned ? 2 * 3 : 3);
        assert_int_equal(named(plan, "PartitionedTensor.from_meta"), partitioned ? 3 * 3 : 0);
        const struct strategy_options *of = &options;
        double whole = 2.0 * (double)(of->train.micro_batch * of->train.seq_len * shape.d_model),
               sent = 0;
        for (int p = 0; p < plan->n_programs; p++)
            for (int i = 0; i < plan->programs[p].ops.n; i++)
                if (plan->programs[p].ops.at[i].kind == OP_SEND)
                    sent += plan->messages.at[plan->programs[p].ops.at[i].index].bytes;
        assert_true(sent == 2 * 3 * (partitioned ? whole / 2 + (7 + 2) * LONG_BYTES : whole));
        drop(&compiled);
    }
}

/* 70 blocks and two tables are 72, 6 a stage; without the tables 6 a stage leave 4 for the last. 78
 * blocks: 7 a stage and one. 72 blocks and two tables are 74, 7 a stage, which ten stages and a
 * half hold: the last keeps a block. */
static void stages_are_filled_up(void **state)
{
    (void)state;
    static const struct {
        int method, blocks, stages, first, second, before_last, last;
    } cases[] = {
        {PARTITION_TRANSFORMER_EMBEDDING, 70, 12, 5, 6, 6, 5},
        {PARTITION_TRANSFORMER, 70, 12, 6, 6, 6, 4},
        {PARTITION_TRANSFORMER, 72, 12, 6, 6, 6, 6},
        {PARTITION_TRANSFORMER, 78, 12, 7, 7, 7, 1},
        {PARTITION_TRANSFORMER_EMBEDDING, 72, 12, 6, 7, 2, 1},
        {PARTITION_TRANSFORMER_EMBEDDING, 12, 12, 1, 1, 1, 1},
    };
    struct hw hw = test_hw();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct model_shape shape = small_gpt;
        struct model model;
        struct strategy_options options = stage_0(PRECISION_BF16_MIXED);
        shape.n_layers = cases[i].blocks;
        model_build(&model, &shape, &arena);
        options.parallelism.pipeline = cases[i].stages;
        options.parallelism.partition_method = cases[i].method;
        struct job job = strategy_job(&options, &model, &hw, cases[i].stages);
        const int of[][2] = {{0, cases[i].first}, {1, cases[i].second},
            {cases[i].stages - 2, cases[i].before_last}, {cases[i].stages - 1, cases[i].last}};
        for (int k = 0; k < 4; k++)
            assert_int_equal(strategy_stage(&job, of[k][0], &arena).chunks[0].n, of[k][1]);
        arena_release(&arena);
    }
}

/* 6 ranks of data parallelism on 6 nodes of 8, one each, beside 8 tensor ranks. */
static void tensor_ranks_set_groups_apart(void **state)
{
    (void)state;
    struct model_shape shape = small_gpt;
    struct strategy_options options = stage_0(PRECISION_FP16_MIXED);
    struct compiled compiled;
    shape.n_heads = shape.n_kv_heads = 8;
    shape.d_kv = 8;
    options.zero.stage = 1;
    options.parallelism.model.tensor = 8;
    compile(&compiled, &options, &shape, 6 * 8);
    assert_int_equal(compiled.plan.mesh.size[AXIS_DP_SHARD], 6);
    drop(&compiled);
}

/* Six micro-batches forward and backward through each stage: twelve passes of a second. */
static void passes_cost_the_host(void **state)
{
    (void)state;
    const struct model_shape shape = tall_gpt();
    struct strategy_options options = stage_0(PRECISION_BF16_MIXED);
    struct compiled compiled;
    options.train.grad_accum = 6;
    options.parallelism.pipeline = STAGES;
    options.host.pass_s = 1;
    compile(&compiled, &options, &shape, RANKS);
    for (int s = 0; s < STAGES; s++) {
        const struct plan_program *program = &compiled.plan.programs[s];
        double host_s = 0;
        for (int i = 0; i < program->ops.n; i++)
            if (strcmp(program->ops.at[i].name, "pass") == 0)
                host_s += (double)program->ops.at[i].host_s;
        assert_true(host_s == 12);
    }
    drop(&compiled);
}

static void what_pipelines_cannot(void **state)
{
    (void)state;
    struct strategy_options options = stage_0(PRECISION_BF16_MIXED);
    options.zero.offload_optimizer = true;
    refuse_plan(test_hw(), &options, "ZeRO-Offload is of stages 1 to 3");
    const struct model_shape shape = tall_gpt();
    options.zero.offload_optimizer = false;
    options.train.grad_accum = 4;
    options.parallelism.pipeline = 2;
    options.zero.stage = 2;
    refuse_model(&shape, test_hw(), &options, "DeepSpeed's pipelines take stage 1 at most, not 2");
    options.zero.stage = 1;
    options.parallelism.virtual_stages = 2;
    refuse_model(&shape, test_hw(), &options, "one model chunk a stage");
    options.parallelism.virtual_stages = 1;
    options.parallelism.partition_method = PARTITION_TRANSFORMER;
    options.parallelism.first_layers = 1;
    refuse_model(&shape, test_hw(), &options, "type:transformer decides");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_adds_up_in_fp32),
        cmocka_unit_test(fp16_shards_nothing),
        cmocka_unit_test(stages_reduce_when_they_are_done),
        cmocka_unit_test(parts_are_sent_and_gathered),
        cmocka_unit_test(stages_are_filled_up),
        cmocka_unit_test(tensor_ranks_set_groups_apart),
        cmocka_unit_test(passes_cost_the_host),
        cmocka_unit_test(what_pipelines_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
