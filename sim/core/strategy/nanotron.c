/* nanotron's data parallelism and optimizer as a plan. Source: huggingface/nanotron of December
 * 2024 and January 2025 (trainer.py, optim/gradient_accumulator.py, optim/zero.py,
 * parallel/data_parallel, distributed.py), restated.
 *
 * Weights and gradients are in BF16, gradients add up in one FP32 buffer (accumulate_grad_in_fp32:
 * true), the optimizer keeps FP32 weights.
 *   zero_stage 0: PyTorch's DistributedDataParallel, with buckets of ddp_bucket_cap in BF16 (the
 *   first of 1 MiB).
 * Micro-batches but the last add each gradient to the FP32 buffer in a loop after their backward
 * pass (no_sync). In the last a full bucket's hook does so for its gradients, beside DDP's own
 * copies into and out of the bucket, and all-reduces the FP32 gradients: twice the bytes that the
 * bucket's size says. Compute waits for the last one only.
 *   zero_stage 1, or one rank: every micro-batch adds in the loop; when all are done, one
 *   all_reduce of the whole FP32
 * buffer, which the step waits for; each parameter is cut over the ranks for the optimizer; then
 * one all_gather of all weights, for which the host makes a slice and a copy for each parameter and
 * rank.
 *   CUDA_DEVICE_MAX_CONNECTIONS=1 (cuda_device_max_connections, 1): kernels are admitted in the
 *   order in which the host
 * issued them, so compute waits while an all_reduce waits for the one before: at most one is
 * pending. Inferred, not measured; 0 leaves it out.
 *   Step: gradients of what is on every rank of the TP group are all-reduced there, those of a tied
 *   table between the
 * first and the last stage; the norm of each gradient, added up over TP and PP; each is scaled.
 * AdamW has a group for each parameter, hence a kernel and the host's work for it (host.unit_hook),
 * and a cast to BF16. A step ends with a barrier over all ranks, for which the host waits
 * (loss.item()).
 *
 * Ignored: gradients that are not accumulated in FP32; that DDP's all_reduce of a bucket is one for
 * each gradient, in a group; the first two steps, in which buckets are laid out; that the norm is
 * added up over TP and PP in one all_reduce, not two; that slices of a parameter differ by one
 * element; kernels of a rank's slices are one kernel here, at the host's price of all. */
#include "strategy/buckets.h"

#include <math.h>

#define FIRST_BUCKET_BYTES                                                                         \
    0x1p20 /* kDefaultFirstBucketBytes of torch/csrc/distributed/c10d/reducer.hpp */

struct nanotron {
    struct emit *emit;
    const struct nanotron_options *options;
    int group, ranks; /* of data parallelism */
    int64_t elements; /* on this rank, that are trained */
    int tensors;      /* the same */
    bool ddp;
    VEC(int) ready;         /* tensors whose gradients of this micro-batch are not added yet */
    struct buckets buckets; /* in bytes */
};

/* ---- gradients ---- */

/* Python, in the loop after backward or in DDP's hook. */
static void add_to_fp32(struct emit *emit, int tensor)
{
    emit_tensor_kernel(emit, tensor, KERNEL_ELEMENTWISE, "fp32_grad.add_",
        emit->param_bytes + FLOAT_BYTES, FLOAT_BYTES, emit->options->host.kernel_issue_s);
}

static void copy_for_ddp(struct emit *emit, int tensor, const char *name)
{
    emit_tensor_kernel(emit, tensor, KERNEL_COPY, name, emit->param_bytes, emit->param_bytes,
        emit->options->host.backward_issue_s);
}

static plan_wait nanotron_reduce(struct emit *emit, const int *tensors, int n, int64_t bytes)
{
    struct nanotron *self = emit->state;
    struct plan_builder *builder = &emit->builder;
    int64_t reduced_bytes = bytes / emit->param_bytes * FLOAT_BYTES;
    plan_host(builder, "bucket_hook", emit->options->host.unit_hook_s);
    for (int i = 0; i < n; i++)
        add_to_fp32(emit, tensors[i]);
    plan_wait reduced = emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
        arena_printf(emit->arena, "bucket.%d/all_reduce", self->buckets.sent.n), COLL_ALL_REDUCE,
        (double)reduced_bytes, self->group);
    if (self->options->cuda_device_max_connections == 1)
        plan_stream_wait(builder, STREAM_COMPUTE, buckets_last(&self->buckets));
    return reduced;
}

static void nanotron_grad_ready(struct emit *emit, int tensor)
{
    struct nanotron *self = emit->state;
    if (!self->ddp || !emit->on_last) {
        vec_push(&self->ready, tensor);
        return;
    }
    copy_for_ddp(emit, tensor, "copy_to_bucket");
    buckets_add(&self->buckets, tensor, emit->model->tensors[tensor].numel * emit->param_bytes);
    double cap =
        self->buckets.sent.n == 0 ? FIRST_BUCKET_BYTES : self->options->ddp_bucket_cap_bytes;
    if ((double)self->buckets.size >= cap)
        buckets_send(emit, &self->buckets);
}

static void nanotron_backward_ends(struct emit *emit)
{
    struct nanotron *self = emit->state;
    for (int i = 0; i < self->ready.n; i++) {
        add_to_fp32(emit, self->ready.at[i]);
        emit_free(emit, &emit->grads[self->ready.at[i]], PLAN_NO_OP);
    }
    self->ready.n = 0;
}

/* What is left of DDP's, with finalize_backward's copies back; or all gradients at once. */
static void nanotron_reduce_gradients(struct nanotron *self)
{
    struct emit *emit = self->emit;
    if (self->elements == 0) /* a stage that hands on */
        return;
    if (!self->ddp) {
        emit_all_reduce(emit, "fp32_grads/all_reduce", (double)(self->elements * FLOAT_BYTES),
            self->group, PARALLEL_DATA);
        return;
    }
    buckets_send(emit, &self->buckets);
    for (int i = 0; i < self->buckets.tensors.n; i++)
        copy_for_ddp(emit, self->buckets.tensors.at[i], "copy_from_bucket");
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, buckets_last(&self->buckets));
}

/* ---- the step ---- */

static int64_t nanotron_owned(const struct nanotron *self, int64_t numel)
{
    int ranks = self->options->zero_stage == 1 ? self->ranks : 1;
    return (numel + ranks - 1) / ranks;
}

/* clip_grad_norm: over all gradients, whatever is sharded. */
static void nanotron_clip(struct nanotron *self)
{
    struct emit *emit = self->emit;
    double issue_s = emit->options->host.kernel_issue_s,
           norms = (double)(self->tensors * FLOAT_BYTES);
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (!emit->model->tensors[t].frozen)
            emit_tensor_kernel(emit, t, KERNEL_NORM, "grad_norm", FLOAT_BYTES, 0, issue_s);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "grad_norm/stack", norms, norms);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_NORM, "grad_norm/norm", norms, 0);
    emit_add_over_model(emit, "grad_norm", FLOAT_BYTES);
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (!emit->model->tensors[t].frozen)
            emit_tensor_kernel(
                emit, t, KERNEL_ELEMENTWISE, "grad_norm/mul_", FLOAT_BYTES, FLOAT_BYTES, issue_s);
}

static void nanotron_optimizer_step(struct nanotron *self)
{
    struct emit *emit = self->emit;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        const struct model_tensor *at = &emit->model->tensors[t];
        if (at->frozen)
            continue;
        struct optimizer_tensor slice = optimizer_vector(nanotron_owned(self, at->numel));
        plan_host(&emit->builder, "optimizer/param_group", emit->options->host.unit_hook_s);
        emit_optimizer(emit, &slice, 1);
        if (emit->param_bytes != emit->master_bytes)
            emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "optimizer/copy_to_weight",
                (double)(slice.rows * emit->master_bytes),
                (double)(slice.rows * emit->param_bytes));
    }
    if (self->elements > 0)
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "fp32_grads.zero_", 0,
            (double)(self->elements * FLOAT_BYTES));
}

/* all_gather_coalesced (nanotron/distributed.py) over lists: outputs and input are made flat,
 * gathered into a flat tensor, copied out of it, and each slice is copied to its place. So all
 * weights are there three times. */
static void nanotron_gather_weights(struct nanotron *self)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    const struct host_options *host = &emit->options->host;
    double all = (double)(self->elements * emit->param_bytes), part = all / self->ranks;
    if (self->options->zero_stage == 0 || self->ranks == 1 || self->elements == 0)
        return;
    int *parts = ARENA_ARRAY(emit->arena, int, self->ranks + 1);
    for (int r = 0; r <= self->ranks; r++) {
        plan_host(builder, "all_gather_coalesced/slices", self->tensors * host->view_s);
        parts[r] = plan_alloc(
            builder, STREAM_COMPUTE, "all_gather_coalesced/flat", (int64_t)ceil(part), HBM_BUFFERS);
        emit_stream_kernel(
            emit, STREAM_COMPUTE, KERNEL_COPY, "all_gather_coalesced/flatten", part, part);
    }
    int flat =
        plan_alloc(builder, STREAM_COMPUTE, "all_gather/flat", (int64_t)ceil(all), HBM_BUFFERS);
    plan_stream_wait(builder, STREAM_COMPUTE,
        emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
            "weights/all_gather", COLL_ALL_GATHER, all, self->group));
    for (int r = 0; r < self->ranks; r++) /* in C++, on the collective's stream */
        plan_kernel(builder, STREAM_COMPUTE, "all_gather/copy_out",
            kernel_stream(KERNEL_COPY, part, part, 0), host->backward_issue_s);
    plan_free(builder, flat, PLAN_NO_OP);
    for (int r = 0; r < self->ranks; r++) {
        plan_host(builder, "all_gather_coalesced/copy_slices",
            self->tensors * (host->view_s + host->kernel_issue_s));
        plan_kernel(builder, STREAM_COMPUTE, "all_gather_coalesced/copy_",
            kernel_stream(KERNEL_COPY, part, part, 0), 0);
    }
    for (int r = 0; r <= self->ranks; r++)
        plan_free(builder, parts[r], PLAN_NO_OP);
}

/* dist.barrier() and loss.item(). */
static void meet(struct emit *emit)
{
    emit_all_reduce(
        emit, "barrier", FLOAT_BYTES, emit_group(emit, "world", AXES_ALL), PARALLEL_DATA);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "loss", FLOAT_BYTES, FLOAT_BYTES);
    plan_host_wait(&emit->builder, "loss.item", plan_last_op(&emit->builder, STREAM_COMPUTE), 0);
}

static void nanotron_step_ends(struct emit *emit)
{
    struct nanotron *self = emit->state;
    nanotron_reduce_gradients(self);
    int64_t partial = emit_partial_elements(emit);
    if (partial > 0)
        emit_all_reduce(emit, "partial.grads/all_reduce", (double)(partial * FLOAT_BYTES),
            emit_group(emit, "tp", 1U << AXIS_TP), PARALLEL_TENSOR);
    emit_reduce_tied_embedding(emit, FLOAT_BYTES);
    emit->builder.phase = PHASE_OPTIMIZER;
    plan_wait loss =
        emit_collective(emit, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE),
            "loss/all_reduce", COLL_ALL_REDUCE, FLOAT_BYTES, self->group);
    nanotron_clip(self);
    nanotron_optimizer_step(self);
    nanotron_gather_weights(self);
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, loss);
    meet(emit);
    vec_free(&self->ready);
    buckets_free(&self->buckets);
}

static void nanotron_keep(
    struct emit *emit, const char *name, int64_t bytes, enum hbm_category category)
{
    plan_keep(&emit->builder, name, bytes, category);
}

static void nanotron_setup(struct emit *emit)
{
    struct nanotron *self = emit->state;
    int ranks = emit_degree(emit, AXES_DENSE);
    *self = (struct nanotron){.emit = emit,
        .options = &emit->options->nanotron,
        .group = emit_group(emit, "dp", AXES_DENSE),
        .ranks = ranks,
        .ddp = ranks > 1 && emit->options->nanotron.zero_stage == 0,
        .buckets = {.reduce = nanotron_reduce}};
    for (int t = 0; t < emit->model->n_tensors; t++) {
        const struct model_tensor *at = &emit->model->tensors[t];
        struct optimizer_tensor slice = optimizer_vector(nanotron_owned(self, at->numel));
        nanotron_keep(emit, at->name, at->numel * emit->param_bytes, HBM_PARAMETERS);
        if (at->frozen)
            continue;
        self->elements += at->numel;
        self->tensors++;
        nanotron_keep(emit, "fp32_weights",
            emit->param_bytes != emit->master_bytes ? slice.rows * emit->master_bytes : 0,
            HBM_OPTIMIZER);
        nanotron_keep(emit, "optimizer_state", emit_state_bytes(emit, slice), HBM_OPTIMIZER);
    }
    nanotron_keep(emit, "fp32_grads", self->elements * FLOAT_BYTES, HBM_GRADIENTS);
    nanotron_keep(
        emit, "reducer/buckets", self->ddp ? self->elements * emit->param_bytes : 0, HBM_BUFFERS);
}

/* ---- settings ---- */

static const struct config_field nanotron_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/nanotron_settings.h"
};
const struct config_table nanotron_table = CONFIG_TABLE("'nanotron'", nanotron_fields);

const struct nanotron_options nanotron_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "strategy/nanotron_settings.h"
};

static const char *nanotron_label_of(const struct strategy_options *options)
{
    return options->nanotron.zero_stage == 1 ? "nanotron ZeRO-1" : "nanotron ZeRO-0";
}

const struct data_parallel nanotron_hooks = {.state_size = sizeof(struct nanotron),
    .label_of = nanotron_label_of,
    .section = "nanotron",
    .takes = 1U << PARALLEL_TENSOR | 1U << PARALLEL_CONTEXT | 1U << PARALLEL_PIPELINE,
    .copies_as = "nanotron",
    .setup = nanotron_setup,
    .backward_ends = nanotron_backward_ends,
    .step_ends = nanotron_step_ends,
    .grad_begins = emit_begin_grad,
    .grad_ready = nanotron_grad_ready};
