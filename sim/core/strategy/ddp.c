/* PyTorch's DistributedDataParallel as a plan, and (single_device) the module alone. Source:
 * torch/csrc/distributed/c10d/reducer.cpp of PyTorch 2, restated.
 *
 * Every rank holds the whole model, its gradients and optimizer state. Gradients go into buckets of
 * bucket_cap_bytes (the first first_bucket_bytes) in the order in which they become ready (the
 * order after the rebuild in the first step); a full bucket is all-reduced while backward goes on.
 * The buckets are a second copy of the gradients, which are copied out of them at the end; with
 * gradient_as_bucket_view a gradient is given up for its place in the bucket once it has been
 * copied there. (That it is copied follows from zero_grad(set_to_none=True): autograd makes a new
 * one in every step.)
 * - Mixed precision is autocast: FP32 parameters are cast for each use, gradients are FP32.
 * - With gradient accumulation only the last micro-step communicates (no_sync).
 * - LOMO goes without the reducer: each gradient is all-reduced alone, used and freed before
 *   backward goes on (lomo_optim/lomo.py, fuse_update).
 * - broadcast_buffers: before a step's first forward pass rank 0's statistics of BatchNorm go to
 *   all, joined by format, and are copied out one by one (broadcast_coalesced, c10d/comm.cpp).
 * - One rank goes through all of that: its buckets are filled and emptied like those of many. Only
 *   NCCL launches nothing for it, as the collectives work in place (ncclEnqueueCheck: nRanks == 1);
 *   the host pays for them.
 *
 * - divide_buckets: PyTorch before 1.6 divides a full bucket in place before it goes
 * (Reducer::mark_variable_ready); since then the copy into it does.
 * - zero_grad false: a training loop that never calls it adds each step's gradients to those before
 *   it.
 *
 * Ignored: find_unused_parameters, static_graph, zero_grad(set_to_none=False). */
#include "strategy/buckets.h"
#include "strategy/muon.h"

struct ddp {
    struct emit *emit;
    const struct ddp_options *options;
    int group;
    struct optimizer_tensor *tensors; /* that are trained, of muon's what this rank steps on */
    int n_tensors;
    int64_t dealt;          /* elements of the matrices that muon deals to ranks */
    struct buckets buckets; /* in bytes */
    int *casts;             /* by layer: autocast's copies of its weights, or PLAN_NO_OP */
    bool reducer;           /* there is one */
    bool views;             /* gradients live in the buckets */
};

/* A collective of DDP's; one rank has the host's part of it. */
static plan_wait collective(struct ddp *ddp, const char *name, enum coll_kind kind, double bytes)
{
    struct plan_builder *builder = &ddp->emit->builder;
    plan_wait op = emit_collective(ddp->emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
        name, kind, bytes, ddp->group);
    if (op == PLAN_NO_OP)
        plan_host(builder, name, ddp->emit->options->host.collective_issue_s);
    return op;
}

static void ddp_stream_kernel(struct ddp *ddp, enum kernel_kind kind, const char *tensor,
    const char *name, double reads, double writes)
{
    struct emit *emit = ddp->emit;
    plan_kernel(&emit->builder, STREAM_COMPUTE, arena_printf(emit->arena, "%s/%s", tensor, name),
        kernel_stream(kind, reads, writes, 0), emit->options->host.backward_issue_s);
}

static plan_wait ddp_reduce(struct emit *emit, const int *tensors, int n, int64_t bytes)
{
    struct ddp *ddp = emit->state;
    (void)tensors;
    (void)n;
    if (ddp->options->divide_buckets)
        ddp_stream_kernel(ddp, KERNEL_ELEMENTWISE, "bucket", "div_", (double)bytes, (double)bytes);
    plan_host(&emit->builder, "bucket_hook", emit->options->host.unit_hook_s);
    return collective(ddp, arena_printf(emit->arena, "bucket.%d/all_reduce", ddp->buckets.sent.n),
        COLL_ALL_REDUCE, (double)bytes);
}

static void ddp_grad_begins(struct emit *emit, int tensor)
{
    emit_alloc_grad(
        emit, tensor, emit->model->tensors[tensor].numel * emit->master_bytes, HBM_GRADIENTS);
}

/* LOMO: reduce, update, forget. */
static void update_now(struct ddp *ddp, int tensor)
{
    struct emit *emit = ddp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    if (emit_degree(emit, AXES_DENSE) > 1)
        plan_stream_wait(&emit->builder, STREAM_COMPUTE,
            collective(ddp, arena_printf(emit->arena, "%s/all_reduce", at->name), COLL_ALL_REDUCE,
                (double)(at->numel * emit->master_bytes)));
    emit_update(emit, STREAM_COMPUTE, at->numel);
    emit_free(emit, &emit->grads[tensor], PLAN_NO_OP);
}

static void ddp_grad_ready(struct emit *emit, int tensor)
{
    struct ddp *ddp = emit->state;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    double low = (double)(at->numel * emit->param_bytes);
    int64_t bytes = at->numel * emit->master_bytes;
    if (emit->param_bytes != emit->master_bytes)
        ddp_stream_kernel(ddp, KERNEL_COPY, at->name, "cast_grad", low, (double)bytes);
    if (!emit->on_first || !ddp->options->zero_grad)
        ddp_stream_kernel(
            ddp, KERNEL_ELEMENTWISE, at->name, "accumulate_grad", 2 * (double)bytes, (double)bytes);
    if (!ddp->options->zero_grad)
        emit_free(emit, &emit->grads[tensor], PLAN_NO_OP);
    if (emit_updates_in_backward(emit)) {
        update_now(ddp, tensor);
        return;
    }
    if (!emit->on_last || !ddp->reducer)
        return;
    ddp_stream_kernel(ddp, KERNEL_COPY, at->name, "copy_to_bucket", (double)bytes, (double)bytes);
    if (ddp->views)
        emit_free(emit, &emit->grads[tensor], PLAN_NO_OP);
    buckets_add(&ddp->buckets, tensor, bytes);
    double cap = ddp->buckets.sent.n == 0 ? ddp->options->first_bucket_bytes
                                          : ddp->options->bucket_cap_bytes;
    if ((double)ddp->buckets.size >= cap)
        buckets_send(emit, &ddp->buckets);
}

/* n tensors of one format, `bytes` in all: joined, sent, copied out. */
static void broadcast(struct ddp *ddp, const char *name, int n, int64_t bytes)
{
    struct plan_builder *builder = &ddp->emit->builder;
    ddp_stream_kernel(ddp, KERNEL_COPY, name, "flatten", (double)bytes, (double)bytes);
    plan_stream_wait(builder, STREAM_COMPUTE,
        collective(ddp, arena_printf(ddp->emit->arena, "%s/broadcast", name), COLL_BROADCAST,
            (double)bytes));
    for (int i = 0; i < n; i++)
        ddp_stream_kernel(ddp, KERNEL_COPY, name, "copy", (double)bytes / n, (double)bytes / n);
}

static void ddp_step_begins(struct emit *emit)
{
    struct ddp *ddp = emit->state;
    const struct model *model = emit->model;
    if (!ddp->reducer || !ddp->options->broadcast_buffers || model->n_batch_norms == 0)
        return;
    emit->builder.phase = PHASE_FORWARD;
    broadcast(ddp, "running_statistics", 2 * model->n_batch_norms,
        2 * model->batch_norm_channels * (int64_t)sizeof(float));
    broadcast(ddp, "num_batches_tracked", model->n_batch_norms,
        model->n_batch_norms * (int64_t)sizeof(int64_t));
}

static void ddp_before_forward(struct emit *emit, int segment)
{
    struct ddp *ddp = emit->state;
    int layer = emit->segments.at[segment].layer;
    if (emit_opens_layer(emit, segment))
        ddp->casts[layer] = emit_autocast_weights(emit, layer);
}

static void ddp_after_backward(struct emit *emit, int segment)
{
    struct ddp *ddp = emit->state;
    if (emit_opens_layer(emit, segment))
        plan_free(&emit->builder, ddp->casts[emit->segments.at[segment].layer], PLAN_NO_OP);
}

/* finalize_backward: bucket by bucket the compute stream waits for its reduction and copies the
 * gradients back out of it, while later buckets are still on their way. */
static void finish_backward(struct ddp *ddp)
{
    struct emit *emit = ddp->emit;
    struct buckets *all = &ddp->buckets;
    buckets_send(emit, all);
    for (int b = 0; b < all->sent.n; b++) {
        int end = b + 1 < all->sent.n ? all->sent.at[b + 1].first : all->tensors.n;
        plan_stream_wait(&emit->builder, STREAM_COMPUTE, all->sent.at[b].reduced);
        for (int i = all->sent.at[b].first; i < end && !ddp->views; i++) {
            const struct model_tensor *tensor = &emit->model->tensors[all->tensors.at[i]];
            double bytes = (double)(tensor->numel * emit->master_bytes);
            ddp_stream_kernel(ddp, KERNEL_COPY, tensor->name, "copy_from_bucket", bytes, bytes);
        }
    }
}

static void ddp_setup_memory(struct ddp *ddp)
{
    struct emit *emit = ddp->emit;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        const struct model_tensor *at = &emit->model->tensors[t];
        plan_keep(&emit->builder, at->name, emit_kept_bytes(emit, at), HBM_PARAMETERS);
        if (!at->frozen && !ddp->options->zero_grad && !ddp->views)
            plan_keep(&emit->builder, at->name, at->numel * emit->master_bytes, HBM_GRADIENTS);
        if (!at->frozen)
            ddp->tensors[ddp->n_tensors++] =
                muon_tensor(emit->model, emit->options->train.optimizer, at);
        if (!at->frozen && muon_distributes(emit->options) &&
            model_block_matrices(emit->model, at) > 0)
            ddp->dealt += at->numel;
    }
    if (muon_distributes(emit->options))
        ddp->n_tensors = muon_deal(ddp->tensors, ddp->n_tensors, emit_degree(emit, AXES_DENSE));
    if (ddp->reducer)
        plan_keep(&emit->builder, "reducer/buckets", emit->model->trained * emit->master_bytes,
            ddp->views ? HBM_GRADIENTS : HBM_BUFFERS);
}

static void setup_single_device(struct emit *emit)
{
    struct ddp *ddp = emit->state;
    ddp->emit = emit;
    ddp->options = &emit->options->ddp;
    ddp->buckets.reduce = ddp_reduce;
    ddp->casts = ARENA_ARRAY(emit->arena, int, emit->model->n_layers);
    ddp->tensors = ARENA_ARRAY(emit->arena, struct optimizer_tensor, emit->model->n_tensors);
    ddp->group = emit_group(emit, "world", AXES_DENSE);
    ddp_setup_memory(ddp);
}

static void setup_ddp(struct emit *emit)
{
    struct ddp *ddp = emit->state;
    ddp->reducer = !emit_updates_in_backward(emit);
    ddp->views = ddp->reducer && emit->options->ddp.gradient_as_bucket_view;
    setup_single_device(emit);
}

static void ddp_step_ends(struct emit *emit)
{
    struct ddp *ddp = emit->state;
    finish_backward(ddp);
    emit_first_state(emit, ddp->tensors, ddp->n_tensors);
    emit_optimizer(emit, ddp->tensors, ddp->n_tensors);
    if (ddp->dealt > 0)
        muon_gather(emit, (double)(ddp->dealt * emit->master_bytes), ddp->group);
    buckets_free(&ddp->buckets);
}

/* ---- settings ---- */

static const struct config_field ddp_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/ddp_settings.h"
};
const struct config_table ddp_table = CONFIG_TABLE("'ddp'", ddp_fields);

const struct ddp_options ddp_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "strategy/ddp_settings.h"
};

const struct data_parallel ddp_hooks = {.state_size = sizeof(struct ddp),
    .label = "DDP",
    .section = "ddp",
    .takes = 1U << PARALLEL_TENSOR | 1U << PARALLEL_CONTEXT,
    .clips_by_option = true,
    .setup = setup_ddp,
    .step_begins = ddp_step_begins,
    .before_forward = ddp_before_forward,
    .after_backward = ddp_after_backward,
    .step_ends = ddp_step_ends,
    .grad_begins = ddp_grad_begins,
    .grad_ready = ddp_grad_ready};

const struct data_parallel single_device_hooks = {.state_size = sizeof(struct ddp),
    .label = "single device",
    .section = "ddp",
    .clips_by_option = true,
    .setup = setup_single_device,
    .before_forward = ddp_before_forward,
    .after_backward = ddp_after_backward,
    .step_ends = ddp_step_ends,
    .grad_begins = ddp_grad_begins,
    .grad_ready = ddp_grad_ready};
