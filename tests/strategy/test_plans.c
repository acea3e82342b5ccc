/* What strategies compile to: counts derived from PyTorch's rules. Laws of all plans:
 * tests/law/test_combinations.c. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

#include <math.h>
#include <string.h>

/* FULL_SHARD of u units (blocks and the root): every unit is gathered for forward, every block
 * again for backward (the root stays), every unit's gradient is scattered once. T5 here: 5 blocks
 * and the root. Bytes: all parameters once, blocks twice, in bf16, padded to 8 ranks; every shape
 * here divides by 8. */
static void full_shard_counts(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    struct compiled compiled;
    compile(&compiled, &options, &small_t5, 8);
    double all = (double)compiled.model.params,
           blocks = all - (double)compiled.model.layers[0].params;
    assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 6 + 5);
    assert_int_equal(count(&compiled.plan, COLL_REDUCE_SCATTER), 6);
    assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 0);
    assert_true(bytes_of(&compiled.plan, COLL_ALL_GATHER) == 2 * (all + blocks));
    assert_true(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER) == 2 * all);
    drop(&compiled);
}

/* FlatParamHandle._get_shard pads a unit so that all ranks have as many elements: on 56 ranks the
 * units' 2 bytes an element are gathered and scattered as 56 x ceil(params / 56). */
static void units_are_padded_to_the_ranks(void **state)
{
    (void)state;
    enum { RANKS = 56 };
    struct strategy_options options = options_of(FULL_SHARD);
    struct compiled compiled;
    compile(&compiled, &options, &small_t5, RANKS);
    int64_t padded = 0, padded_root = 0;
    for (int u = 0; u < compiled.model.n_layers; u++) {
        int64_t unit = (compiled.model.layers[u].params + RANKS - 1) / RANKS * RANKS;
        padded += unit;
        padded_root += u == 0 ? unit : 0;
    }
    assert_true(padded > compiled.model.params);
    assert_true(
        bytes_of(&compiled.plan, COLL_ALL_GATHER) == 2 * (double)(2 * padded - padded_root));
    assert_true(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER) == 2 * (double)padded);
    drop(&compiled);
}

/* Autocast without MixedPrecision: the same gathers in FP32, and gradients as they are or as
 * reduce_dtype says. */
static void autocast_gathers_fp32(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct strategy_options options = options_of(FULL_SHARD);
        options.train.autocast = true;
        options.fsdp.reduce_dtype = i ? REDUCE_BF16 : REDUCE_PARAM_DTYPE;
        struct compiled compiled;
        compile(&compiled, &options, &small_t5, 8);
        double all = (double)compiled.model.params,
               blocks = all - (double)compiled.model.layers[0].params;
        assert_true(bytes_of(&compiled.plan, COLL_ALL_GATHER) == 4 * (all + blocks));
        assert_true(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER) == (i ? 2 : 4) * all);
        drop(&compiled);
    }
}

/* SHARD_GRAD_OP keeps what forward gathered; HYBRID_SHARD adds an all-reduce of each shard over the
 * replicas (1/8 of the bytes on each rank of a node of 8); NO_SHARD all-reduces whole gradients. */
static void other_sharding_strategies_count(void **state)
{
    (void)state;
    struct compiled compiled;
    struct strategy_options options = options_of(SHARD_GRAD_OP);
    compile(&compiled, &options, &small_t5, 8);
    assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 6);
    drop(&compiled);

    options = options_of(HYBRID_SHARD);
    compile(&compiled, &options, &small_t5, 32);
    assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 11);
    assert_int_equal(count(&compiled.plan, COLL_REDUCE_SCATTER), 6);
    assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 6);
    assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) == 2 * (double)compiled.model.params / 8);
    drop(&compiled);

    /* reduce_dtype is the format of both reductions; gathers stay in that of the parameters
     * (_reduce_grad of torch/distributed/fsdp/_runtime_utils.py all-reduces what it has
     * reduce-scattered) */
    options.fsdp.reduce_dtype = REDUCE_FP32;
    compile(&compiled, &options, &small_t5, 32);
    double all = (double)compiled.model.params,
           blocks = all - (double)compiled.model.layers[0].params;
    assert_true(bytes_of(&compiled.plan, COLL_ALL_GATHER) == 2 * (all + blocks));
    assert_true(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER) == 4 * all);
    assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) == 4 * all / 8);
    drop(&compiled);

    options = options_of(NO_SHARD);
    compile(&compiled, &options, &small_t5, 8);
    assert_int_equal(count(&compiled.plan, COLL_ALL_GATHER), 0);
    assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 6);
    assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) == 2 * (double)compiled.model.params);
    drop(&compiled);
}

/* DDP: FP32 gradients, each in exactly one bucket; a bucket closes when it holds first_bucket_bytes
 * (the first) or bucket_cap_bytes, so with caps of one byte every tensor has its own. */
static void ddp_buckets(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = STRATEGY_DDP;
    struct compiled compiled;
    compile(&compiled, &options, &small_gpt, 8);
    double all = 4 * (double)compiled.model.params;
    assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) == all);
    /* Some 200,000 parameters, 0.9 MB: less than the first bucket's 1 MiB, one bucket. */
    assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), 1);
    drop(&compiled);
    options.ddp.first_bucket_bytes = options.ddp.bucket_cap_bytes = 1;
    compile(&compiled, &options, &small_gpt, 8);
    assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), compiled.model.n_tensors);
    assert_true(bytes_of(&compiled.plan, COLL_ALL_REDUCE) == all);
    /* a bucket that is exactly full closes (reducer.cpp, compute_bucket_assignment_by_size: size >=
     * limit): caps of just the first and the second gradient give those two a bucket each */
    double first = compiled.plan.collectives.at[0].bytes,
           second = compiled.plan.collectives.at[1].bytes;
    drop(&compiled);
    options.ddp.first_bucket_bytes = first;
    options.ddp.bucket_cap_bytes = second;
    compile(&compiled, &options, &small_gpt, 8);
    assert_true(compiled.plan.collectives.at[0].bytes == first &&
                compiled.plan.collectives.at[1].bytes == second);
    drop(&compiled);
}

/* The order of issue is what backward_prefetch decides: BACKWARD_PRE gathers the next block before
 * this one's backward kernels, so before its reduce-scatter is issued too; with BACKWARD_POST and
 * None the gather comes after the kernels; None: only when it is needed, after the reduce-scatter.
 * In T5's backward of decoder.block.1 the next is decoder.block.0. */
static int op_named(const struct plan *plan, const char *name, int from)
{
    for (int i = from; i < plan->programs[0].ops.n; i++)
        if (strcmp(plan->programs[0].ops.at[i].name, name) == 0)
            return i;
    return -1;
}

static void prefetch_is_an_order_of_issue(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch < BACKWARD_PREFETCH_COUNT; prefetch++) {
        struct strategy_options options = options_of(FULL_SHARD);
        options.fsdp.backward_prefetch = prefetch;
        struct compiled compiled;
        compile(&compiled, &options, &small_t5, 8);
        const struct plan *plan = &compiled.plan;
        int start = op_named(plan, "decoder.block.1/pre_backward", 0);
        int kernels_end = op_named(plan, "decoder.block.1/post_backward", start);
        int gather = op_named(plan, "decoder.block.0/all_gather", start);
        int scatter = op_named(plan, "decoder.block.1/reduce_scatter", start);
        assert_true(start > 0 && kernels_end > start && gather > start && scatter > kernels_end);
        if (prefetch == BACKWARD_PRE)
            assert_true(gather < kernels_end);
        else if (prefetch == BACKWARD_POST)
            assert_true(gather > kernels_end && gather < scatter);
        else
            assert_true(gather > scatter);
        drop(&compiled);
    }
}

/* The limiter, by hand: a step has 11 gathers and 11 frees. The first starts with an empty FIFO: in
 * forward the root's and the first two blocks' gathers find fewer than two frees, three gathers
 * take one each, which leaves two; in backward decoder.block.0's finds one, the other four take one
 * each; 4 frees are left. From then on every gather takes one. The root and the first three blocks
 * take those four, decoder.block.0 takes encoder.block.0's, decoder.block.1 encoder.block.1's. */
static void the_limiter_takes_the_oldest_free(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    struct compiled compiled;
    compile(&compiled, &options, &small_t5, 8);
    const struct plan *plan = &compiled.plan;
    int waits = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (plan->programs[0].ops.at[i].kind == OP_HOST_WAIT)
            waits++;
    assert_int_equal(waits, 11); /* every all-gather, once steps follow each other */
    int gather = op_named(plan, "decoder.block.1/all_gather", 0), wait = gather;
    while (plan->programs[0].ops.at[wait].kind != OP_HOST_WAIT)
        wait--;
    int32_t waited = plan->programs[0].waits.at[plan->programs[0].ops.at[wait].first_wait];
    assert_true(waited < wait);
    assert_non_null(strstr(plan->programs[0].ops.at[waited].name, "encoder.block.1/"));
    drop(&compiled);
}

/* Three blocks: intervals of 1, 2 and 4 run 3, 1 and 0 of them again. Selective checkpointing runs
 * c_proj of attention again and, recomputation ending early, not the MLP's: of four products a
 * block one, of d x d; where they have biases all three. GPT without dropout, 64 wide, 2 x 32
 * tokens; flash attention is kept. */
static void what_checkpointing_runs_again(void **state)
{
    (void)state;
    struct model_shape shape = small_gpt;
    shape.dropout = 0;
    const double products = 64.0 * 2 * 64 * 64, attention = 2 * 4.0 * 4 * 32 * 32 * 16 / 2;
    const struct {
        int checkpointing, interval;
        double flop;
        bool biases;
    } cases[] = {{CHECKPOINT_NONE, 1, 0, true},
        {CHECKPOINT_FULL, 1, 3 * (8 * products + attention), true},
        {CHECKPOINT_FULL, 2, 8 * products + attention, true}, {CHECKPOINT_FULL, 4, 0, true},
        {CHECKPOINT_SELECTIVE, 1, 3 * products, false}, {CHECKPOINT_SELECTIVE, 2, products, false},
        {CHECKPOINT_SELECTIVE, 2, 8 * products, true}};
    double none = 0;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct strategy_options options = options_of(FULL_SHARD);
        options.train.attention = ATTENTION_FLASH;
        options.train.activation_checkpointing = cases[c].checkpointing;
        options.train.checkpoint_interval = cases[c].interval;
        shape.biases = cases[c].biases;
        struct compiled compiled;
        compile(&compiled, &options, &shape, 8);
        none = c == 0 ? compiled.plan.programs[0].hardware_flop : none;
        assert_true(compiled.plan.programs[0].hardware_flop - none == cases[c].flop);
        drop(&compiled);
    }
}

/* A block's output is the next block's input: gone when that one's backward pass is over, before
 * its own begins. */
static void what_passes_between_blocks(void **state)
{
    (void)state;
    for (int checkpointing = 0; checkpointing < 2; checkpointing++) {
        struct strategy_options options = options_of(FULL_SHARD);
        options.train.activation_checkpointing = checkpointing ? CHECKPOINT_FULL : CHECKPOINT_NONE;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, 8);
        const struct plan *plan = &compiled.plan;
        int end = op_named(plan, "transformer.h.1/post_backward", 0);
        int gone = op_named(plan, "transformer.h.0/mlp.residual", 0);
        while (plan->programs[0].ops.at[gone].kind != OP_FREE)
            gone = op_named(plan, "transformer.h.0/mlp.residual", gone + 1);
        /* ln_1 is the last to read it. */
        assert_true(gone < end && gone > op_named(plan, "transformer.h.1/ln_1.wgrad", 0));
        /* Its gradient stays where block 1 left it: block 0 makes none. */
        assert_true(op_named(plan, "transformer.h.1/hidden_states.grad", 0) > 0);
        assert_int_equal(op_named(plan, "transformer.h.0/mlp.residual.grad", 0), -1);
        drop(&compiled);
    }
}

static double kernel_bytes(const struct plan *plan, enum kernel_kind kind, int stream)
{
    double bytes = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if (op->kind == OP_KERNEL && op->stream == stream &&
            plan->kernels.at[op->index].kind == kind)
            bytes += plan->kernels.at[op->index].read_bytes;
    }
    return bytes;
}

static double host_s(const struct plan *plan, const char *name)
{
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (strcmp(plan->programs[0].ops.at[i].name, name) == 0)
            return (double)plan->programs[0].ops.at[i].host_s;
    return -1;
}

/* FSDP, 8 ranks of one node: FP32 shards come up as they are gathered (blocks twice), FP32
 * gradients go down once; the host keeps 4 + 4 + 8 bytes a parameter. AdamW's loop moves 22
 * elements a parameter, of 8 ranks over 10^11 B/s; clip_grad_norm_ reads gradients for their norm,
 * and reads and writes them to scale them: 3 more. */
static void fsdp_offloads(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    options.fsdp.cpu_offload = true;
    struct compiled compiled;
    compile(&compiled, &options, &small_gpt, 8);
    double all = (double)compiled.model.params,
           blocks = all - (double)compiled.model.layers[0].params;
    assert_true(
        kernel_bytes(&compiled.plan, KERNEL_HOST_COPY, STREAM_UNSHARD) == 4 * (all + blocks) / 8);
    assert_true(kernel_bytes(&compiled.plan, KERNEL_HOST_COPY, STREAM_POST) == 4 * all / 8);
    assert_true(compiled.plan.programs[0].host_bytes == 16 * all / 8);
    assert_true(
        fabs(host_s(&compiled.plan, "optimizer/cpu_step") / (22 * 4 * all / 1e11) - 1) < 1e-6);
    assert_int_equal(compiled.plan.programs[0].setup.n, 0);
    drop(&compiled);
    options.train.clip_grad_norm = true;
    compile(&compiled, &options, &small_gpt, 8);
    assert_true(
        fabs(host_s(&compiled.plan, "optimizer/cpu_step") / (25 * 4 * all / 1e11) - 1) < 1e-6);
    drop(&compiled);
}

/* ZeRO-Offload: 16-bit gradients of the owned part go down, its 16-bit weights come up.
 * DeepSpeedCPUAdam moves 7 elements: reads weight, gradient and moments, writes all but the
 * gradient. */
static void zero_offloads(void **state)
{
    (void)state;
    for (int gpus = 1; gpus <= 8; gpus += 7) {
        struct strategy_options options = zero_of(2);
        options.zero.offload_optimizer = true;
        struct compiled compiled;
        compile(&compiled, &options, &small_gpt, gpus);
        double owned = (double)compiled.model.params / gpus;
        assert_true(
            fabs(kernel_bytes(&compiled.plan, KERNEL_HOST_COPY, STREAM_POST) - 2 * owned) < 1e-6);
        assert_true(kernel_bytes(&compiled.plan, KERNEL_HOST_COPY, STREAM_COMPUTE) == 2 * owned);
        assert_true(compiled.plan.programs[0].host_bytes == 16 * owned);
        assert_true(
            fabs(host_s(&compiled.plan, "optimizer/cpu_step") / (7 * 4 * owned * gpus / 1e11) - 1) <
            1e-6);
        drop(&compiled);
    }
}

static void offloading_where_it_cannot_be(void **state)
{
    (void)state;
    struct strategy_options options = options_of(FULL_SHARD);
    options.fsdp.cpu_offload = true;
    struct hw hw = test_hw();
    hw.node.host_memory.value = 1e6; /* 16 bytes for each of 216,128 parameters are more */
    refuse_plan(hw, &options, "use more GPUs");
    hw.node.gpus.value = 16;
    hw.node.host_memory.value =
        4e6; /* enough for 8 ranks in one, but they are in two of four hosts */
    hw.node.hosts = (struct quantity){4, 0, QUANTITY_ASSUMED, "", NULL};
    refuse_plan(hw, &options, "4 ranks offload 0 GiB each, but a host of");
    hw = test_hw();
    hw.node.host_memory = (struct quantity){0};
    refuse_plan(hw, &options, "give both");
    options.train.grad_accum = 2;
    refuse_plan(test_hw(), &options, "no_sync: true");
    options.train.optimizer = OPTIMIZER_LOMO;
    refuse_plan(test_hw(), &options, "LOMO");
}

static void images_that_cannot_be_decoded(void **state)
{
    (void)state;
    struct strategy_options options = strategy_default_options();
    options.kind = STRATEGY_DDP;
    options.train.decode_images = true;
    refuse_plan(test_hw(), &options, "takes no images");
    refuse_model(&small_resnet, test_hw(), &options, "has no image_time");
}

/* T5's decoder hands out keys and values of both attentions, 2 x (8 + 8) rows x 4 heads x 32 in
 * BF16 a sequence. Autograd keeps the copies that torch.matmul made of them: without checkpointing,
 * too, they are separate memory, unless one sequence needs no copies. */
static void the_cache_lives_beside_autograds_copies(void **state)
{
    (void)state;
    const double sequence = 2 * (8 + 8) * 4 * 32 * 2;
    for (int i = 0; i < 4; i++) {
        struct strategy_options options = options_of(FULL_SHARD);
        options.train.seq_len = 8;
        options.train.micro_batch = 1 + i % 2;
        options.train.use_cache = true;
        options.train.activation_checkpointing = i < 2 ? CHECKPOINT_NONE : CHECKPOINT_FULL;
        struct compiled compiled;
        compile(&compiled, &options, &small_t5, 8);
        double bytes = 0;
        for (int o = 0; o < compiled.plan.programs[0].ops.n; o++) {
            const struct plan_op *op = &compiled.plan.programs[0].ops.at[o];
            if (op->kind == OP_ALLOC && strstr(op->name, "past_key_values"))
                bytes += (double)compiled.plan.programs[0].buffers.at[op->index].bytes;
        }
        const double sequences[] = {0, 2, 1, 2}, blocks = 2;
        assert_true(bytes == blocks * sequences[i] * sequence);
        drop(&compiled);
    }
}

/* PyTorch's, DeepSpeed's, Megatron-LM's and nanotron's own defaults, from their documentation. */
static void defaults_are_those_of_the_frameworks(void **state)
{
    (void)state;
    struct strategy_options d = strategy_default_options();
    assert_true(d.ddp.bucket_cap_bytes == 25 << 20 && d.ddp.first_bucket_bytes == 1 << 20);
    assert_true(d.ddp.broadcast_buffers && d.ddp.zero_grad && !d.ddp.gradient_as_bucket_view &&
                !d.ddp.divide_buckets);
    assert_true(d.fsdp.limit_all_gathers && !d.fsdp.forward_prefetch && !d.fsdp.cpu_offload &&
                !d.fsdp.no_sync);
    assert_int_equal(d.fsdp.sharding_strategy, FULL_SHARD);
    assert_int_equal(d.fsdp.backward_prefetch, BACKWARD_PRE);
    assert_int_equal(d.fsdp.max_inflight_all_gathers, 2);
    assert_int_equal(d.zero.reduce_bucket_size, 500000000);
    assert_int_equal(d.zero.allgather_bucket_size, 500000000);
    assert_int_equal(d.zero.stage3_prefetch_bucket_size, 50000000);
    assert_int_equal(d.zero.stage3_param_persistence_threshold, 100000);
    assert_int_equal(d.zero.stage3_max_live_parameters, 1000000000);
    assert_int_equal(d.zero.stage3_max_reuse_distance, 1000000000);
    assert_true(d.zero.use_multi_rank_bucket_allreduce && !d.zero.offload_optimizer);
    assert_true(d.megatron.grad_reduce_in_fp32 && d.megatron.check_for_nan_in_grad);
    assert_true(!d.megatron.use_distributed_optimizer && !d.megatron.average_in_collective);
    assert_int_equal(d.train.moe_deepep_num_sms, 20);
    assert_int_equal(d.train.moe_hybridep_num_sms, 16);
    assert_true(d.train.moe_permute_fusion && d.train.checkpoint_early_stop &&
                d.train.expert_imbalance == 1);
    assert_true(
        d.nanotron.ddp_bucket_cap_bytes == 25 << 20 && d.nanotron.cuda_device_max_connections == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_frameworks),
        cmocka_unit_test(full_shard_counts),
        cmocka_unit_test(units_are_padded_to_the_ranks),
        cmocka_unit_test(autocast_gathers_fp32),
        cmocka_unit_test(other_sharding_strategies_count),
        cmocka_unit_test(ddp_buckets),
        cmocka_unit_test(prefetch_is_an_order_of_issue),
        cmocka_unit_test(the_limiter_takes_the_oldest_free),
        cmocka_unit_test(what_checkpointing_runs_again),
        cmocka_unit_test(what_passes_between_blocks),
        cmocka_unit_test(fsdp_offloads),
        cmocka_unit_test(zero_offloads),
        cmocka_unit_test(offloading_where_it_cannot_be),
        cmocka_unit_test(images_that_cannot_be_decoded),
        cmocka_unit_test(the_cache_lives_beside_autograds_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
