/* Megatron-FSDP: bytes gathered and reduced a step, memory, and what is refused, in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

enum { RANKS = 4, MICRO_BATCHES = 3 };

static struct strategy_options units(int sharding)
{
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.precision = PRECISION_BF16_MIXED;
    options.train.attention = ATTENTION_FLASH;
    options.train.grad_accum = MICRO_BATCHES;
    options.megatron.use_megatron_fsdp = true;
    options.megatron.data_parallel_sharding_strategy = sharding;
    options.megatron.overlap_grad_reduce = options.megatron.overlap_param_gather = true;
    options.megatron.suggested_communication_unit_size = 1;
    return options;
}

static void compile_sound(struct compiled *out, const struct strategy_options *options,
    const struct model_shape *shape, int gpus)
{
    char why[512] = "";
    compile(out, options, shape, gpus);
    if (!plan_check(&out->plan, why, sizeof why))
        fail_msg("%s", why);
}

/* Elements of blocks, and of all else. */
static double in_blocks(const struct model *model)
{
    double elements = 0;
    for (int t = 0; t < model->n_tensors; t++)
        elements += model->tensors[t].layer != 0 ? (double)model->tensors[t].numel : 0;
    return elements;
}

/* Of the executed ops, by kind: a collective of the plan may be issued often. */
static double issued(const struct plan *plan, enum coll_kind kind)
{
    double bytes = 0;
    const struct plan_program *program = &plan->programs[0];
    for (int i = 0; i < program->ops.n; i++)
        if (program->ops.at[i].kind == OP_COLLECTIVE) {
            const struct plan_collective *at = &plan->collectives.at[program->ops.at[i].index];
            bytes += at->kind == kind ? at->bytes : 0;
        }
    return bytes;
}

static int buffers_named(const struct plan_program *program, const char *part, int kind)
{
    int n = 0;
    for (int i = 0; i < program->ops.n; i++)
        n += program->ops.at[i].kind == kind && program->ops.at[i].name &&
             strstr(program->ops.at[i].name, part);
    return n;
}

/* Weights of blocks: twice a micro-batch; the others once. Gradients: in each micro-batch, or in
 * the last. FP32. */
static void bytes_follow_what_is_sharded(void **state)
{
    (void)state;
    for (int sharding = SHARD_NOTHING; sharding <= SHARD_OPTIM_GRADS_PARAMS; sharding++) {
        struct compiled c;
        struct strategy_options options = units(sharding);
        compile_sound(&c, &options, &small_llama, RANKS);
        double all = (double)c.model.params, blocks = in_blocks(&c.model);
        double gathered = sharding == SHARD_OPTIM_GRADS_PARAMS
                              ? 2 * MICRO_BATCHES * blocks + (all - blocks)
                          : sharding == SHARD_NOTHING ? 0
                                                      : all;
        double scattered = sharding >= SHARD_OPTIM_GRADS ? MICRO_BATCHES * all
                           : sharding == SHARD_OPTIM     ? all
                                                         : 0;
        assert_near(issued(&c.plan, COLL_ALL_GATHER), 2 * gathered, 1);
        assert_near(issued(&c.plan, COLL_REDUCE_SCATTER), 4 * scattered, 1);
        if (sharding == SHARD_NOTHING)
            assert_true(issued(&c.plan, COLL_ALL_REDUCE) >= 4 * all);
        drop(&c);
    }
}

static double kept(const struct plan *plan, int category)
{
    double bytes = 0;
    const struct plan_program *program = &plan->programs[0];
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        bytes += buffer->category == category ? (double)buffer->bytes : 0;
    }
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_KEEP && program->buffers.at[op->index].category == category)
            bytes += (double)program->buffers.at[op->index].bytes;
    }
    return bytes;
}

/* BF16 weights, FP32 gradients, FP32 copies and two moments of each element. */
static void memory_is_shared_out(void **state)
{
    (void)state;
    for (int sharding = SHARD_NOTHING; sharding <= SHARD_OPTIM_GRADS_PARAMS; sharding++) {
        struct compiled c;
        struct strategy_options options = units(sharding);
        compile_sound(&c, &options, &small_llama, RANKS);
        double all = (double)c.model.params;
        assert_near(kept(&c.plan, HBM_PARAMETERS),
            2 * all / (sharding >= SHARD_OPTIM_GRADS_PARAMS ? RANKS : 1), 4 * RANKS);
        assert_near(kept(&c.plan, HBM_GRADIENTS),
            4 * all / (sharding >= SHARD_OPTIM_GRADS ? RANKS : 1), 4 * RANKS);
        assert_near(kept(&c.plan, HBM_OPTIMIZER), 12 * all / (sharding >= SHARD_OPTIM ? RANKS : 1),
            16 * RANKS);
        drop(&c);
    }
}

/* With a window of one element no unit is gathered ahead; two buffers are one ahead, whatever the
 * window. */
static void units_ahead_are_bounded(void **state)
{
    (void)state;
    static const struct {
        int64_t window;
        bool doubles;
        int most;
    } cases[] = {{1, false, 1}, {0, false, 3}, {0, true, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct compiled c;
        struct strategy_options options = units(SHARD_OPTIM_GRADS_PARAMS);
        options.megatron.suggested_communication_unit_size = cases[i].window;
        options.megatron.fsdp_double_buffer = cases[i].doubles;
        compile_sound(&c, &options, &small_llama, RANKS);
        const struct plan_program *program = &c.plan.programs[0];
        int now = 0, most = 0, held = buffers_named(program, "unsharded_grads", OP_ALLOC);
        for (int o = 0; o < program->ops.n; o++) {
            const struct plan_op *op = &program->ops.at[o];
            bool unit = op->name && strstr(op->name, "layers.");
            if (unit && op->kind == OP_COLLECTIVE && strstr(op->name, "all_gather"))
                most = ++now > most ? now : most;
            now -= unit && op->kind == OP_HOST &&
                   (strstr(op->name, "post_forward") || strstr(op->name, "post_backw"));
        }
        assert_int_equal(most, cases[i].most);
        assert_int_equal(now, 0);
        assert_int_equal(
            held > MICRO_BATCHES * 2, !cases[i].doubles); /* the root has buffers in any case */
        drop(&c);
    }
}

/* FP8 shards: a byte an element of what multiplies in it, gathered twice a micro-batch; without,
 * two bytes. */
static void fp8_halves_what_is_gathered(void **state)
{
    (void)state;
    double bytes[2], shards[2], fp8 = 0;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct compiled c;
        struct strategy_options options = units(SHARD_OPTIM_GRADS_PARAMS);
        options.train.precision = PRECISION_FP8_MIXED;
        options.train.fusion = FUSION_TRANSFORMER_ENGINE;
        options.megatron.fp8_param_gather = narrow;
        compile_sound(&c, &options, &small_llama, RANKS);
        bytes[narrow] = issued(&c.plan, COLL_ALL_GATHER);
        shards[narrow] = kept(&c.plan, HBM_PARAMETERS);
        fp8 = 0;
        for (int t = 0; t < c.model.n_tensors; t++)
            fp8 += model_is_block_matrix(&c.model, &c.model.tensors[t])
                       ? (double)c.model.tensors[t].numel
                       : 0;
        assert_int_equal(buffers_named(&c.plan.programs[0], "fp8_weights", OP_KERNEL),
            MICRO_BATCHES *
                small_llama.n_layers); /* both copies forward, or the transpose backward */
        drop(&c);
    }
    assert_near(bytes[0] - bytes[1], 2 * MICRO_BATCHES * fp8, 1);
    assert_near(shards[0] - shards[1], fp8 / RANKS, RANKS);
}

/* Experts are sharded over the ranks that hold the same; all else over all. */
static void experts_have_shards_of_fewer_ranks(void **state)
{
    (void)state;
    enum { EXPERT = 2 };
    struct compiled c;
    struct strategy_options options = units(SHARD_OPTIM_GRADS_PARAMS);
    options.parallelism.model.expert = EXPERT;
    compile_sound(&c, &options, &small_moe, RANKS);
    double experts = 0, dense = 0;
    for (int t = 0; t < c.model.n_tensors; t++)
        *(strstr(c.model.tensors[t].name, "experts.") && !strstr(c.model.tensors[t].name, "shared")
                ? &experts
                : &dense) += (double)c.model.tensors[t].numel;
    assert_true(experts > 0);
    assert_near(kept(&c.plan, HBM_PARAMETERS),
        2 * (dense / RANKS + experts / EXPERT / (RANKS / (double)EXPERT)), 64);
    drop(&c);
}

/* Two copies of what is sharded: the last micro-batch's shards are all-reduced between them. */
static void instances_meet_once_a_step(void **state)
{
    (void)state;
    enum { INSTANCES = 2 };
    struct compiled c;
    struct strategy_options options = units(SHARD_OPTIM_GRADS);
    options.megatron.num_distributed_optimizer_instances = INSTANCES;
    compile_sound(&c, &options, &small_llama, INSTANCES * RANKS);
    double all = (double)c.model.params, bytes = 0;
    for (int g = 0; g < c.plan.collectives.n; g++)
        if (strcmp(c.plan.groups.at[c.plan.collectives.at[g].group].name, "instances") == 0) {
            assert_int_equal(
                c.plan.groups.at[c.plan.collectives.at[g].group].ranks.size, INSTANCES);
            bytes += c.plan.collectives.at[g].bytes;
        }
    assert_near(bytes, 4 * all / RANKS, 64);
    assert_near(kept(&c.plan, HBM_GRADIENTS), 4 * all / RANKS, 64);
    drop(&c);
}

/* Sharded over both copies, the optimizer has a part of the shard; weights come back once a step,
 * and the gradients of the last micro-batch are scattered. */
static void instances_share_the_optimizer(void **state)
{
    (void)state;
    enum { INSTANCES = 2 };
    struct compiled c;
    struct strategy_options options = units(SHARD_OPTIM_GRADS_PARAMS);
    options.megatron.num_distributed_optimizer_instances = INSTANCES;
    options.megatron.outer_dp_sharding_strategy = SHARD_OPTIM;
    compile_sound(&c, &options, &small_llama, INSTANCES * RANKS);
    double all = (double)c.model.params, blocks = in_blocks(&c.model);
    double inner = 2 * MICRO_BATCHES * blocks + (all - blocks);
    assert_near(issued(&c.plan, COLL_ALL_GATHER), 2 * (inner + all / RANKS), 64);
    assert_near(issued(&c.plan, COLL_REDUCE_SCATTER), 4 * (MICRO_BATCHES * all + all / RANKS), 64);
    assert_near(kept(&c.plan, HBM_OPTIMIZER), 12 * all / (RANKS * INSTANCES), 256);
    assert_near(kept(&c.plan, HBM_PARAMETERS), 2 * all / RANKS, 64);
    drop(&c);
}

/* It writes what DDP adds to; recomputed layers, tensor parallelism and every switch make sound
 * plans. */
static void every_switch_makes_a_sound_plan(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        struct compiled c;
        struct strategy_options options = units(i % 4);
        options.train.activation_checkpointing = i / 4 % 2 ? CHECKPOINT_FULL : CHECKPOINT_NONE;
        options.megatron.overlap_param_gather = i / 8 % 2;
        options.megatron.overlap_grad_reduce = i / 16 % 2;
        options.megatron.grad_reduce_in_fp32 = i / 32 % 2;
        options.megatron.suggested_communication_unit_size = i % 3 == 0 ? 0 : 1;
        options.parallelism.model.tensor = 1 + i / 8 % 2;
        options.parallelism.model.sequence = options.parallelism.model.tensor > 1;
        compile_sound(&c, &options, i % 5 == 0 ? &small_gpt : &small_llama, 8);
        drop(&c);
    }
}

static void refused(void **state)
{
    (void)state;
    struct strategy_options options = units(SHARD_OPTIM_GRADS_PARAMS);
    options.parallelism.pipeline = 2;
    refuse_model(&small_llama, test_hw(), &options, "Megatron-FSDP is not simulated in a pipeline");
    options = units(SHARD_OPTIM_GRADS_PARAMS);
    options.train.lora_rank = 4;
    refuse_model(
        &small_llama, test_hw(), &options, "adapters are not simulated with Megatron-FSDP");
    options = units(SHARD_OPTIM);
    options.megatron.num_distributed_optimizer_instances = 2;
    refuse_model(
        &small_llama, test_hw(), &options, "several instances are simulated of Megatron-FSDP");
    options = units(SHARD_OPTIM_GRADS);
    options.megatron.num_distributed_optimizer_instances = 3;
    refuse_model(&small_llama, test_hw(), &options, "3 instances do not divide the 8 ranks");
    options.megatron.num_distributed_optimizer_instances = 2;
    options.megatron.outer_dp_sharding_strategy = SHARD_OPTIM;
    refuse_model(&small_llama, test_hw(), &options, "is sharded wholly within them");
    options = units(SHARD_OPTIM_GRADS_PARAMS);
    options.train.optimizer = OPTIMIZER_MUON;
    refuse_model(&small_llama, test_hw(), &options, "muon is not simulated with Megatron-FSDP");
    options = units(SHARD_OPTIM_GRADS_PARAMS);
    options.train.activation_checkpointing = CHECKPOINT_FULL;
    options.train.recompute_num_layers = 2;
    refuse_model(&small_llama, test_hw(), &options, "without use_megatron_fsdp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_follow_what_is_sharded),
        cmocka_unit_test(memory_is_shared_out),
        cmocka_unit_test(units_ahead_are_bounded),
        cmocka_unit_test(fp8_halves_what_is_gathered),
        cmocka_unit_test(experts_have_shards_of_fewer_ranks),
        cmocka_unit_test(instances_meet_once_a_step),
        cmocka_unit_test(instances_share_the_optimizer),
        cmocka_unit_test(every_switch_makes_a_sound_plan),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
