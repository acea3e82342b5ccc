/* DeepSpeed without ZeRO (stage 0) as a plan: BF16_Optimizer, or the fused FP16_Optimizer. Source:
 * deepspeed/runtime/{bf16_optimizer,fp16/fused_optimizer,engine,utils}.py of v0.7.0, restated. A
 * stack of micro-batches as PipelineEngine runs it: all reductions come after the last backward
 * pass, first of a tied table, and nothing overlaps them.
 *
 * bf16_mixed, BF16_Optimizer: gradients add up in one FP32 buffer, by a kernel for each tensor
 * behind each micro-batch. The buffer of each parameter group (matrices decay, the rest does not)
 * is one bucket, since a tensor is never cut: it is cast to BF16, all-reduced, scaled and cast
 * back. FP32 weights and moments are cut over the ranks, as in ZeRO-1; the new weights are gathered
 * into a list of the ranks' parts, allgather_bucket_size elements at a time. The norm is a kernel
 * for each tensor, for which the host waits.
 *   fp16_mixed, FP16_Optimizer: autograd adds up 16-bit gradients. They are all-reduced in buckets
 *   of
 * reduce_bucket_size elements, joined before and copied back behind. Every rank has all FP32
 * weights and moments, and nothing is gathered. The search for inf and nan is a kernel for each
 * tensor, for which the host waits. So are they with TF32 and FP32, of which DeepSpeed has no
 * optimizer apart.
 *   Either adds the norm up over tensor and pipeline ranks, and ends with the mean of the losses,
 *   which the last stage
 * sends to the others.
 *
 * Ignored: communication_data_type, gradient_predivide_factor, FP32 gradients under FP16, padding
 * of parts. */
#include "strategy/zero.h"

enum { MATRICES, VECTORS, N_GROUPS };

struct zero_off {
    struct emit *emit;
    bool bf16;
    int group, ranks;           /* of data parallelism */
    int64_t elements[N_GROUPS]; /* that are trained, by parameter group */
    int64_t all;
    int64_t stepped; /* on which this rank steps */
};

static bool is_trained(const struct emit *emit, int tensor)
{
    return !emit->model->tensors[tensor].frozen;
}

/* ---- gradients ---- */

static void zero_off_grad_ready(struct emit *emit, int tensor)
{
    const struct zero_off *self = emit->state;
    if (!self->bf16 && !emit->on_first)
        emit_accumulate_grad(emit, tensor, emit->options->host.backward_issue_s);
}

/* update_hp_grads */
static void zero_off_backward_ends(struct emit *emit)
{
    const struct zero_off *self = emit->state;
    for (int t = 0; t < emit->model->n_tensors && self->bf16; t++) {
        if (!is_trained(emit, t) || emit->grads[t] == PLAN_NO_OP)
            continue;
        emit_tensor_kernel(emit, t, KERNEL_ELEMENTWISE, "fp32_grad.add_",
            emit->param_bytes + FLOAT_BYTES, FLOAT_BYTES, emit->options->host.kernel_issue_s);
        emit_free(emit, &emit->grads[t], PLAN_NO_OP);
    }
}

/* One flat bucket: a copy before, the reduction, a pass that divides, a copy back. kept: bytes of
 * an element where gradients lie. */
static void zero_off_reduce_bucket(struct zero_off *self, int64_t elements, int64_t kept)
{
    struct emit *emit = self->emit;
    double n = (double)elements, flat = n * (double)emit->param_bytes, from = n * (double)kept;
    if (self->ranks == 1 || elements == 0)
        return;
    int bucket = plan_alloc(
        &emit->builder, STREAM_COMPUTE, "bucket/flat", elements * emit->param_bytes, HBM_BUFFERS);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "bucket/flatten", from, flat);
    emit_all_reduce(emit, "bucket/all_reduce", flat, self->group, PARALLEL_DATA);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "bucket/mul_", flat, flat);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "bucket/copy_back", flat, from);
    plan_free(&emit->builder, bucket, PLAN_NO_OP);
}

/* buffered_allreduce_fallback: a bucket closes with the tensor that oversteps its size. */
static void reduce_in_buckets(struct zero_off *self)
{
    struct emit *emit = self->emit;
    int64_t filled = 0;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        filled += is_trained(emit, t) ? emit->model->tensors[t].numel : 0;
        if (filled <= emit->options->zero.reduce_bucket_size && t + 1 < emit->model->n_tensors)
            continue;
        zero_off_reduce_bucket(self, filled, emit->param_bytes);
        filled = 0;
    }
}

static void zero_off_reduce_gradients(struct zero_off *self)
{
    struct emit *emit = self->emit;
    int64_t kept = self->bf16 ? FLOAT_BYTES : emit->param_bytes,
            partial = emit_partial_elements(emit);
    if (partial > 0)
        emit_all_reduce(emit, "partial.grads/all_reduce", (double)(partial * kept),
            emit_group(emit, "tp", 1U << AXIS_TP), PARALLEL_TENSOR);
    emit_reduce_tied_embedding(emit, kept);
    if (!self->bf16) {
        reduce_in_buckets(self);
        return;
    }
    for (int g = 0; g < N_GROUPS; g++)
        zero_off_reduce_bucket(self, self->elements[g], FLOAT_BYTES);
}

/* ---- the step ---- */

static void host_reads(struct emit *emit, const char *name)
{
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, name, FLOAT_BYTES, FLOAT_BYTES);
    plan_host_wait(&emit->builder, name, plan_last_op(&emit->builder, STREAM_COMPUTE), 0);
}

/* A number of each stage and tensor rank, added up, and read by the host. */
static void add_up(struct emit *emit, const char *what)
{
    emit_add_over_model(emit, what, FLOAT_BYTES);
    host_reads(emit, arena_printf(emit->arena, "%s/item", what));
}

/* A number of each gradient, which the host reads: its norm, or whether all of it is finite. */
static void look_at_each(struct emit *emit, const char *name, int64_t reads)
{
    for (int t = 0; t < emit->model->n_tensors; t++) {
        if (!is_trained(emit, t))
            continue;
        emit_tensor_kernel(
            emit, t, KERNEL_NORM, name, reads, 0, emit->options->host.kernel_issue_s);
        host_reads(emit, "item");
    }
}

/* get_global_norm_of_tensors, clip_tensors_by_global_norm: over whole gradients, which every rank
 * has. */
static void zero_off_clip(struct zero_off *self)
{
    struct emit *emit = self->emit;
    double wide = (double)(self->all * FLOAT_BYTES);
    if (self->bf16) {
        look_at_each(emit, "grad_norm", FLOAT_BYTES);
    } else {
        look_at_each(emit, "overflow", emit->param_bytes);
        add_up(emit, "overflow");
        if (emit->param_bytes != emit->master_bytes)
            emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "optimizer/grads_to_fp32",
                (double)(self->all * emit->param_bytes), wide);
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_NORM, "grad_norm/norm", wide, 0);
    }
    add_up(emit, "grad_norm");
    if (emit->options->train.precision != PRECISION_FP16_MIXED) /* there emit_optimizer has it */
        emit_stream_kernel(
            emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "optimizer/clip_tensors", wide, wide);
}

/* all_gather_dp_groups: a part of each rank at a time, into a list, which is copied out of a flat
 * tensor. */
static void zero_off_gather_weights(struct zero_off *self)
{
    struct emit *emit = self->emit;
    if (!self->bf16 || self->ranks == 1)
        return;
    int64_t most = emit->options->zero.allgather_bucket_size;
    for (int64_t left = self->all; left > 0; left -= most) {
        double bytes = (double)((left < most ? left : most) * emit->param_bytes);
        plan_host(&emit->builder, "weights/slices", self->ranks * emit->options->host.view_s);
        plan_stream_wait(&emit->builder, STREAM_COMPUTE,
            emit_collective(emit, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE),
                "weights/all_gather", COLL_ALL_GATHER, bytes, self->group));
        plan_kernel(&emit->builder, STREAM_COMPUTE, "weights/copy_list",
            kernel_stream(KERNEL_COPY, bytes, bytes, 0),
            self->ranks * emit->options->host.backward_issue_s);
    }
}

static void zero_off_optimizer_step(struct zero_off *self)
{
    struct emit *emit = self->emit;
    struct optimizer_tensor stepped = optimizer_vector(self->stepped);
    double wide = (double)(self->stepped * emit->master_bytes);
    int full = PLAN_NO_OP;
    if (!self->bf16 && emit->param_bytes != emit->master_bytes)
        full = plan_alloc(&emit->builder, STREAM_COMPUTE, "fp32_grads",
            self->all * emit->master_bytes, HBM_GRADIENTS);
    zero_off_clip(self);
    emit_optimizer(emit, &stepped, 1);
    plan_free(&emit->builder, full, PLAN_NO_OP);
    if (emit->param_bytes != emit->master_bytes)
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "optimizer/weights_from_fp32", wide,
            (double)(self->stepped * emit->param_bytes));
}

void zero_aggregate_loss(struct emit *emit, int group)
{
    const struct schedule *at = &emit->schedule;
    if (at->stage == at->stages - 1)
        emit_all_reduce(emit, "loss/all_reduce", FLOAT_BYTES, group, PARALLEL_DATA);
    emit_all_reduce(emit, "loss/broadcast", 2 * FLOAT_BYTES, emit_group(emit, "pp", 1U << AXIS_PP),
        PARALLEL_PIPELINE);
    host_reads(emit, "loss.item");
}

static void zero_off_step_ends(struct emit *emit)
{
    struct zero_off *self = emit->state;
    zero_off_reduce_gradients(self);
    emit->builder.phase = PHASE_OPTIMIZER;
    zero_off_optimizer_step(self);
    zero_off_gather_weights(self);
    if (self->bf16)
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "fp32_grads.zero_", 0,
            (double)(self->all * FLOAT_BYTES));
    zero_aggregate_loss(emit, self->group);
}

static void zero_off_setup(struct emit *emit)
{
    struct zero_off *self = emit->state;
    bool bf16 = emit->options->train.precision == PRECISION_BF16_MIXED;
    *self = (struct zero_off){.emit = emit,
        .bf16 = bf16,
        .group = emit_group(emit, "dp", AXES_DENSE),
        .ranks = emit_degree(emit, AXES_DENSE)};
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (is_trained(emit, t))
            self->elements[emit->model->tensors[t].cols > 1 ? MATRICES : VECTORS] +=
                emit->model->tensors[t].numel;
    self->all = self->elements[MATRICES] + self->elements[VECTORS];
    self->stepped = bf16 ? (self->all + self->ranks - 1) / self->ranks : self->all;
    bool copies = emit->param_bytes != emit->master_bytes;
    struct plan_builder *builder = &emit->builder;
    plan_keep(builder, "weights", emit->model->params * emit->param_bytes, HBM_PARAMETERS);
    plan_keep(builder, "fp32_grads", bf16 ? self->all * FLOAT_BYTES : 0, HBM_GRADIENTS);
    plan_keep(
        builder, "fp32_weights", copies ? self->stepped * emit->master_bytes : 0, HBM_OPTIMIZER);
    plan_keep(builder, "optimizer_state", emit_state_bytes(emit, optimizer_vector(self->stepped)),
        HBM_OPTIMIZER);
}

const struct data_parallel zero_off_hooks = {.state_size = sizeof(struct zero_off),
    .label = "ZeRO-0",
    .setup = zero_off_setup,
    .backward_ends = zero_off_backward_ends,
    .step_ends = zero_off_step_ends,
    .grad_begins = emit_begin_grad,
    .grad_ready = zero_off_grad_ready};
