/* DeepSpeed's ZeRO as a plan. Source:
 * deepspeed/runtime/zero/{stage_1_and_2,stage3,partitioned_param_coordinator}.py, restated.
 *
 * Weights and gradients are 16-bit (or FP32), the optimizer works on FP32 master weights of which
 * each rank holds 1/N.
 *   Gradients go into a contiguous bucket of reduce_bucket_size elements as they become ready; a
 *   full bucket is reduced
 * to the ranks that own its parts, or since 2023 all-reduced (stages 1 and 2, unless the option is
 * off). Stage 1 keeps all gradients until the last micro-step and reduces then (without
 * overlap_comm when its backward pass is over), stage 2 and 3 reduce in every one. Without
 * overlap_comm the compute stream waits for each reduction. Step: the owned gradients in FP32, the
 * optimizer on the owned part, the new weights cast, and (stages 1 and 2) gathered in buckets of
 * allgather_bucket_size; the next forward pass waits for that. The host waits where DeepSpeed's
 * does: when gradients have been reduced, and for their norm. Stage 3 shards the weights
 * (zero_fetch.c) and reduces as it gathers: on a separate stream, from the copies into the bucket
 * on, by reduce_scatter_coalesced, which cuts every gradient into a slice a rank, in Python, joins
 * them in another order and divides, while the host waits for all reductions but the last two; or
 * before 0.6 each gradient alone, by c10d's list of a tensor a rank. A gradient in the bucket is
 * given up for its place there (contiguous_gradients); one that does not fit is not copied.
 *
 * offload_optimizer: owned gradients go to the host as they are reduced, the CPU steps in one pass,
 * 16-bit weights come back. In a pipeline (stages 0 and 1: PipelineEngine) a tied table's gradient
 * goes before the others; the norm is added up over tensor and pipeline ranks. Frozen parameters
 * (adapters beside them) are weights like others, sharded and gathered, in NF4 where they lie so;
 * they have no gradient, no master copy and no state. Ignored: adding up the owned part over
 * micro-steps where it is offloaded, parameters on the host, ZeRO++, MiCS, round_robin_gradients.
 */
#include "strategy/zero.h"

/* ---- gradients ---- */

/* Stage 3 since 0.6 has a stream for gradients (reduce_and_partition_stream), which is the compute
 * stream's other name without overlap_comm. */
static bool has_own_stream(const struct zero *zero)
{
    return zero->options->stage == 3 && !zero_blocks(zero) && zero->overlaps;
}

/* Stage 3: what becomes of n gradients of `elements` in all before they are scattered. A single one
 * that divides evenly is cut as it lies; else the buffer that they are joined in is returned. */
static int cut_gradients(struct zero *zero, int64_t elements, int n)
{
    struct emit *emit = zero->emit;
    int64_t bytes = elements * emit->param_bytes;
    bool blocks = zero_blocks(zero), joins = blocks || n > 1 || elements % zero->ranks != 0;
    int joined = PLAN_NO_OP;
    plan_host(&emit->builder, "reduce_scatter/slices", zero_loop_s(zero, n, blocks ? n : 0));
    plan_stream_wait(&emit->builder, STREAM_POST, plan_last_op(&emit->builder, STREAM_COMPUTE));
    if (joins && !blocks)
        joined = plan_alloc(
            &emit->builder, STREAM_POST, "tensor_partition_flat_buffer", bytes, HBM_BUFFERS);
    if (joins)
        zero_copy_list(zero, STREAM_POST, (double)bytes, PLAN_NO_OP);
    if (!blocks)
        emit_stream_kernel(emit, STREAM_POST, KERNEL_ELEMENTWISE, "reduce_scatter/div",
            (double)bytes, (double)bytes);
    plan_stream_wait(&emit->builder, STREAM_COMM, plan_last_op(&emit->builder, STREAM_POST));
    return joined;
}

/* Stages 1 and 2, average_tensor: the bucket is divided, on a separate stream with overlap_comm,
 * and its parts are joined by the rank that owns them, or all of them
 * (use_multi_rank_bucket_allreduce), which is one part: another buffer is made either way. With
 * overlap_comm the compute stream waits for the bucket before, whose place the next one takes. */
static int divide_bucket(struct zero *zero, int64_t elements)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    int64_t bytes = elements * emit->param_bytes;
    plan_wait before = plan_last_op(builder, STREAM_POST);
    plan_stream_wait(builder, STREAM_POST, plan_last_op(builder, STREAM_COMPUTE));
    if (zero->overlaps)
        plan_stream_wait(builder, STREAM_COMPUTE, before);
    emit_stream_kernel(
        emit, STREAM_POST, KERNEL_ELEMENTWISE, "average_tensor/div", (double)bytes, (double)bytes);
    int joined = plan_alloc(builder, STREAM_POST, "average_tensor/flatten", bytes, HBM_BUFFERS);
    emit_stream_kernel(
        emit, STREAM_POST, KERNEL_COPY, "average_tensor/flatten", (double)bytes, (double)bytes);
    plan_stream_wait(builder, STREAM_COMM, plan_last_op(builder, STREAM_POST));
    return joined;
}

/* n tensors of the bucket, `elements` in all. What comes of it is copied to where the rank's part
 * lies. */
static plan_wait zero_reduce(struct zero *zero, int64_t elements, int n)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    double bytes = (double)(elements * emit->param_bytes);
    bool sharded = zero->options->stage == 3,
         all = !sharded && zero->options->use_multi_rank_bucket_allreduce;
    int joined = PLAN_NO_OP;
    if (zero->ranks > 1)
        joined = sharded ? cut_gradients(zero, elements, n) : divide_bucket(zero, elements);
    const char *name = arena_printf(
        emit->arena, all ? "bucket.%d/all_reduce" : "bucket.%d/reduce_scatter", zero->reduced++);
    plan_wait op = emit_collective(emit, STREAM_COMM, PLAN_NO_OP, name,
        all ? COLL_ALL_REDUCE : COLL_REDUCE_SCATTER, bytes, zero->group);
    if (op != PLAN_NO_OP && !sharded) {
        plan_stream_wait(builder, STREAM_POST, op);
        emit_stream_kernel(emit, STREAM_POST, KERNEL_COPY, "average_tensor/copy_owned",
            bytes / zero->ranks, bytes / zero->ranks);
        op = plan_last_op(builder, STREAM_POST);
    }
    plan_free(builder, joined, sharded ? op : PLAN_NO_OP);
    if (has_own_stream(zero))
        plan_stream_wait(builder, STREAM_POST, op);
    if (!zero->overlaps)
        plan_stream_wait(builder, STREAM_COMPUTE, op);
    if (zero->options->offload_optimizer) {
        plan_stream_wait(
            builder, STREAM_POST, op != PLAN_NO_OP ? op : plan_last_op(builder, STREAM_COMPUTE));
        emit_host_copy(emit, STREAM_POST, "owned_grads/device_to_host", bytes / zero->ranks);
    }
    return op;
}

/* It was copied into the bucket, unless it does not fit there (extra_large_param_to_reduce of
 * stages 1 and 2). */
static bool is_copied(const struct zero *zero, int tensor)
{
    return zero->emit->model->tensors[tensor].numel <= zero->options->reduce_bucket_size;
}

static plan_wait zero_reduce_bucket(struct emit *emit, const int *tensors, int n, int64_t elements)
{
    struct zero *zero = emit->state;
    plan_wait op = PLAN_NO_OP;
    plan_host(&emit->builder, "reduce_ipg_grads", emit->options->host.unit_hook_s);
    for (int i = 0; i < n && zero_blocks(zero); i++)
        op = zero_reduce(zero, emit->model->tensors[tensors[i]].numel, 1);
    if (!zero_blocks(zero))
        op = zero_reduce(zero, elements, n);
    if (zero->options->stage == 3 && !zero_blocks(zero))
        zero_keep_ongoing(zero, &zero->reductions, "param_reduce_events", op);
    for (int i = 0; i < n && zero->options->stage >= 2; i++) /* those too large for the bucket */
        emit_free(emit, &emit->grads[tensors[i]], op);
    return op;
}

/* contiguous_gradients: the gradient is given up for its place in the bucket. */
static void copy_to_bucket(struct zero *zero, int tensor, double bytes)
{
    struct emit *emit = zero->emit;
    int stream = has_own_stream(zero) ? STREAM_POST : STREAM_COMPUTE;
    const char *name =
        arena_printf(emit->arena, "%s/copy_to_bucket", emit->model->tensors[tensor].name);
    if (stream != STREAM_COMPUTE)
        plan_stream_wait(&emit->builder, stream, plan_last_op(&emit->builder, STREAM_COMPUTE));
    emit_stream_kernel(emit, stream, KERNEL_COPY, name, bytes, bytes);
    emit_free(emit, &emit->grads[tensor],
        stream != STREAM_COMPUTE ? plan_last_op(&emit->builder, stream) : PLAN_NO_OP);
}

static void to_bucket(struct zero *zero, int tensor)
{
    int64_t numel = zero->emit->model->tensors[tensor].numel;
    if (zero->buckets.size + numel > zero->options->reduce_bucket_size)
        buckets_send(zero->emit, &zero->buckets);
    if (is_copied(zero, tensor))
        copy_to_bucket(zero, tensor, (double)zero_weight_bytes(zero, tensor));
    buckets_add(&zero->buckets, tensor, numel);
}

/* Stage 1 without overlap_comm, or in a pipeline, has no hooks: it goes through all gradients after
 * backward (reduce_gradients). */
static bool has_hooks(const struct zero *zero)
{
    return zero->options->stage > 1 || (zero->overlaps && zero->emit->schedule.stages == 1);
}

/* Gradients stay until the last micro-step, and autograd adds each one's to them: stage 1, and one
 * GPU, which has nothing to reduce. */
static bool adds_whole_gradients(const struct zero *zero)
{
    return zero->options->stage == 1 || (zero->ranks == 1 && !zero->options->offload_optimizer);
}

/* This micro-batch's gradients, unless they wait for those of the next. */
static bool reduces(const struct zero *zero)
{
    return (zero->ranks > 1 || zero->options->offload_optimizer) &&
           (zero->options->stage > 1 || zero->emit->on_last);
}

static void zero_grad_ready(struct emit *emit, int tensor)
{
    struct zero *zero = emit->state;
    if (adds_whole_gradients(zero) && !emit->on_first)
        emit_accumulate_grad(emit, tensor, emit->options->host.kernel_issue_s);
    if (reduces(zero) && has_hooks(zero))
        to_bucket(zero, tensor);
}

/* What this micro-step's reductions left, to that of those before: averaged_gradients of stage 2,
 * grad_buffer of stage 3. */
static void add_owned_gradients(struct zero *zero)
{
    double bytes = (double)(zero->owned * zero->emit->param_bytes);
    if (zero->owned_grads == PLAN_NO_OP || zero->options->stage == 1 || zero->emit->on_first)
        return;
    int stream = has_own_stream(zero) ? STREAM_POST : STREAM_COMPUTE;
    emit_stream_kernel(
        zero->emit, stream, KERNEL_ELEMENTWISE, "owned_grads/add_", 2 * bytes, bytes);
}

/* ---- the step ---- */

static void zero_gather_weights(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    plan_stream_wait(builder, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE));
    for (int64_t left = emit->model->trained, n = 0; left > 0;
         left -= zero->options->allgather_bucket_size, n++) {
        int64_t elements = left < zero->options->allgather_bucket_size
                               ? left
                               : zero->options->allgather_bucket_size;
        emit_collective(emit, STREAM_COMM, PLAN_NO_OP,
            arena_printf(emit->arena, "weights.%d/all_gather", (int)n), COLL_ALL_GATHER,
            (double)(elements * emit->param_bytes), zero->group);
    }
}

/* The step on the host, and the new weights back. */
static void offloaded_step(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct optimizer_tensor owned = optimizer_vector(zero->owned);
    emit_host_optimizer(emit, &owned, 1, true, plan_last_op(&emit->builder, STREAM_POST));
    emit_host_copy(
        emit, STREAM_COMPUTE, "weights/host_to_device", (double)(zero->owned * emit->param_bytes));
}

/* get_grad_norm_direct: every gradient of which the rank owns some is widened and summed up in
 * FP64, whether it is going to be clipped or not; the host waits for the sum over the ranks. Stages
 * 1 and 2: whole tensors, of n ranks about every n-th tensor; stage 3: a slice of each. */
static void grad_norm(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    int trained = 0;
    for (int t = 0; t < emit->model->n_tensors; t++)
        trained += !emit->model->tensors[t].frozen;
    int n = zero->options->stage == 3 ? trained : (trained + zero->ranks - 1) / zero->ranks;
    double numel = (double)zero->owned / n, wide = numel * (double)sizeof(double);
    for (int i = 0; i < n; i++) {
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "grad_norm/double",
            numel * (double)emit->param_bytes, wide);
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_NORM, "grad_norm/norm", wide, 0);
    }
    plan_wait op = emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
        "grad_norm/all_reduce", COLL_ALL_REDUCE, sizeof(double), zero->group);
    if (emit_degree(emit, 1U << AXIS_TP | 1U << AXIS_PP) > 1) {
        plan_stream_wait(builder, STREAM_COMPUTE, op);
        op = emit_add_over_model(emit, "grad_norm", sizeof(double));
    }
    plan_host_wait(builder, "grad_norm/item",
        op != PLAN_NO_OP ? op : plan_last_op(builder, STREAM_COMPUTE), 0);
}

static void device_step(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    double owned = (double)zero->owned, master = owned * (double)emit->master_bytes;
    builder->phase = PHASE_OPTIMIZER;
    plan_stream_wait(builder, STREAM_COMPUTE, plan_last_op(builder, STREAM_COMM));
    plan_stream_wait(builder, STREAM_COMPUTE, plan_last_op(builder, STREAM_POST));
    grad_norm(zero);
    int full = PLAN_NO_OP;
    if (emit->param_bytes != emit->master_bytes) {
        full = plan_alloc(
            builder, STREAM_COMPUTE, "fp32_grads", zero->owned * emit->master_bytes, HBM_GRADIENTS);
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "optimizer/grads_to_fp32",
            owned * (double)emit->param_bytes, master);
    }
    if (emit->options->train.precision != PRECISION_FP16_MIXED) /* there emit_optimizer has it */
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_OPTIMIZER,
            "optimizer/unscale_and_clip_grads", master, master);
    struct optimizer_tensor stepped = optimizer_vector(zero->owned);
    emit_optimizer(emit, &stepped, 1);
    plan_free(builder, full, PLAN_NO_OP);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "optimizer/weights_from_fp32", master,
        owned * (double)emit->param_bytes);
}

static void keep_optimizer(struct zero *zero)
{
    struct emit *emit = zero->emit;
    bool master = emit->param_bytes != emit->master_bytes;
    plan_keep(&emit->builder, "fp32_master_weights", master ? zero->owned * emit->master_bytes : 0,
        HBM_OPTIMIZER);
    plan_keep(&emit->builder, "optimizer_state",
        emit_state_bytes(emit, optimizer_vector(zero->owned)), HBM_OPTIMIZER);
}

static int64_t zero_round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static void zero_setup_memory(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    int64_t n = zero->ranks, whole = 0, sharded = 0;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        zero->weights[t] = (struct gathered){PLAN_NO_OP, PLAN_NO_OP};
        *(zero_persists(zero, t) ? &whole : &sharded) += zero_weight_bytes(zero, t);
    }
    zero->owned = (emit->model->trained + n - 1) / n;
    plan_keep(builder, "weights", whole + zero_round_up(sharded, n * emit->param_bytes) / n,
        HBM_PARAMETERS);
    if (zero->options->offload_optimizer) /* FP32 weights and gradients, and the states */
        emit_keep_on_host(emit, 2 * zero->owned * emit->master_bytes +
                                    emit_state_bytes(emit, optimizer_vector(zero->owned)));
    else
        keep_optimizer(zero);
    /* one fills while the other is reduced; stage 3 waits instead since 0.6
     * (__ipg_bucket_flat_buffer) */
    int64_t buffers = zero->overlaps && (zero->options->stage < 3 || zero_blocks(zero)) ? 2 : 1;
    plan_keep(builder, "ipg_buckets",
        buffers * zero->options->reduce_bucket_size * emit->param_bytes, HBM_BUFFERS);
}

static void zero_setup(struct emit *emit)
{
    struct zero *zero = emit->state;
    const struct zero_options *options = &emit->options->zero;
    *zero = (struct zero){.emit = emit,
        .options = options,
        .group = emit_group(emit, "world", 1 << AXIS_DP_SHARD),
        .ranks = emit_degree(emit, 1 << AXIS_DP_SHARD),
        .overlaps = options->overlap_comm == OVERLAP_TRUE ||
                    (options->overlap_comm == OVERLAP_NULL && options->stage == 3),
        .weights = ARENA_ARRAY(emit->arena, struct gathered, emit->model->n_tensors),
        .buckets = {.reduce = zero_reduce_bucket},
        .owned_grads = PLAN_NO_OP};
    zero_setup_memory(zero);
}

/* Weights of the step before: gathered (stages 1 and 2), or at least written (stage 3). */
static void zero_step_begins(struct emit *emit)
{
    struct zero *zero = emit->state;
    if (zero->ranks > 1)
        plan_stream_wait(&emit->builder, zero->options->stage == 3 ? STREAM_COMM : STREAM_COMPUTE,
            PLAN_LAST_STEP);
}

static void zero_forward_begins(struct emit *emit)
{
    struct zero *zero = emit->state;
    if (reduces(zero) && !zero->options->offload_optimizer && zero->owned_grads == PLAN_NO_OP)
        zero->owned_grads = plan_alloc(&emit->builder, STREAM_COMPUTE, "owned_grads",
            zero->owned * emit->param_bytes,
            HBM_GRADIENTS); /* what the reductions leave, kept to the step */
    if (zero->options->stage == 3)
        zero_trace_uses(zero);
}

/* What is left of the reductions when backward is over. */
static void finish_reductions(struct zero *zero)
{
    struct emit *emit = zero->emit;
    for (int t = 0; t < emit->model->n_tensors && reduces(zero) && !has_hooks(zero); t++)
        if (!emit->model->tensors[t].frozen)
            to_bucket(zero, t);
    buckets_send(emit, &zero->buckets);
    /* independent_gradient_partition_epilogue */
    if (reduces(zero) && (zero->overlaps || zero->options->stage == 3))
        zero_synchronize(zero);
    add_owned_gradients(zero);
}

static bool is_piped(const struct zero *zero)
{
    return zero->emit->schedule.stages > 1;
}

static void zero_backward_ends(struct emit *emit)
{
    if (!is_piped(emit->state))
        finish_reductions(emit->state);
}

static void zero_step_ends(struct emit *emit)
{
    struct zero *zero = emit->state;
    struct plan_builder *builder = &emit->builder;
    if (is_piped(zero)) { /* PipelineEngine's ReduceTiedGrads and ReduceGrads */
        emit_reduce_tied_embedding(emit, emit->param_bytes);
        finish_reductions(zero);
    }
    if (zero->options->offload_optimizer)
        offloaded_step(zero);
    else
        device_step(zero);
    if (zero->options->stage < 3)
        zero_gather_weights(zero);
    else if (zero->ranks > 1)
        zero_gather_whole(zero);
    for (int t = 0; t < emit->model->n_tensors; t++) {
        emit_free(emit, &emit->grads[t], PLAN_NO_OP);
        plan_free(builder, zero->weights[t].buffer, plan_last_op(builder, STREAM_COMPUTE));
    }
    plan_free(builder, zero->owned_grads, PLAN_NO_OP);
    if (is_piped(zero))
        zero_aggregate_loss(emit, zero->group);
    plan_link_steps(&emit->builder,
        plan_last_op(builder, zero->options->stage == 3 ? STREAM_COMPUTE : STREAM_COMM));
    buckets_free(&zero->buckets);
    vec_free(&zero->uses);
}

/* ---- settings ---- */

const char *const stage3_fetch_names[] = {"trace", "blocking", NULL};
const char *const overlap_comm_names[] = {"null", "false", "true", NULL};

static const struct config_field zero_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/zero_settings.h"
};
static const struct config_table zero_optimization_table =
    CONFIG_TABLE("'zero_optimization'", zero_fields);
/* The one section of a section. */
_Static_assert(offsetof(struct zero_options, stage) == 0, "it begins where the options do");
static const struct config_field deepspeed_fields[] = {
    {CONFIG_FIELD("zero_optimization", FIELD_SECTION, struct zero_options, stage,
         "as in a DeepSpeed configuration"),
        .section = &zero_optimization_table},
};
const struct config_table zero_table = CONFIG_TABLE("'deepspeed'", deepspeed_fields);

const struct zero_options zero_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "strategy/zero_settings.h"
};

static const char *zero_label_of(const struct strategy_options *options)
{
    static const char *const labels[] = {"ZeRO-0", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
    return labels[options->zero.stage];
}

static const struct data_parallel *zero_variant(const struct strategy_options *options)
{
    return options->zero.stage == 0 ? &zero_off_hooks : &zero_hooks;
}

static int zero_shard_ranks(const struct strategy_options *options, const struct hw *hw, int ranks)
{
    (void)options;
    (void)hw;
    return ranks;
}

const struct data_parallel zero_hooks = {.state_size = sizeof(struct zero),
    .label_of = zero_label_of,
    .section = "deepspeed",
    .takes = 1U << PARALLEL_TENSOR | 1U << PARALLEL_PIPELINE,
    .copies_as = "DeepSpeed",
    .variant = zero_variant,
    .shard_ranks = zero_shard_ranks,
    .setup = zero_setup,
    .step_begins = zero_step_begins,
    .forward_begins = zero_forward_begins,
    .backward_ends = zero_backward_ends,
    .step_ends = zero_step_ends,
    .param_needed = zero_param_needed,
    .param_used = zero_param_used,
    .grad_begins = emit_begin_grad,
    .grad_ready = zero_grad_ready};
