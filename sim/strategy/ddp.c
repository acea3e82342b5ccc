/* PyTorch's DistributedDataParallel as a plan. Source: torch/csrc/distributed/c10d/reducer.cpp of PyTorch 2, restated.
 *
 * Every rank holds the whole model, its gradients and optimizer state. Gradients go into buckets of bucket_cap_bytes
 * (the first first_bucket_bytes) in the order in which they become ready (the order after the rebuild in the first
 * step); a full bucket is all-reduced while backward goes on. Without gradient_as_bucket_view the buckets are a second
 * copy of the gradients. Mixed precision is autocast: FP32 parameters are cast for each use, gradients are FP32. With
 * gradient accumulation only the last micro-step communicates (no_sync). LOMO goes without the reducer: each gradient
 * is all-reduced alone, used and freed before backward goes on (lomo_optim/lomo.py, fuse_update). Ignored:
 * find_unused_parameters, buffers' broadcast, static_graph. */
#include "strategy/emit.h"

struct ddp {
    struct emit *emit;
    const struct ddp_options *options;
    int group;
    int *grads;                       /* by tensor: buffer */
    struct optimizer_tensor *tensors; /* that are trained */
    int n_tensors;
    int64_t bucket_bytes; /* in the bucket that is filling */
    int buckets;          /* sent in this micro-step */
    bool first_micro_step, synchronises;
    bool views; /* gradients live in the buckets */
};

static void send_bucket(struct ddp *ddp)
{
    struct emit *emit = ddp->emit;
    if (ddp->bucket_bytes == 0)
        return;
    plan_host(&emit->builder, "bucket_hook", emit->options->host.unit_hook_s);
    plan_stream_wait(&emit->builder, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE));
    plan_collective(&emit->builder, STREAM_COMM, arena_printf(emit->arena, "bucket.%d/all_reduce", ddp->buckets++),
        COLL_ALL_REDUCE, (double)ddp->bucket_bytes, ddp->group, emit->options->host.collective_issue_s);
    ddp->bucket_bytes = 0;
}

static void grad_begins(void *self, int tensor)
{
    struct ddp *ddp = self;
    struct emit *emit = ddp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    if (ddp->grads[tensor] == PLAN_NO_OP && !ddp->views)
        ddp->grads[tensor] =
            plan_alloc(&emit->builder, STREAM_COMPUTE, at->name, at->numel * emit->master_bytes, HBM_GRADIENTS);
}

static void stream_kernel(
    struct ddp *ddp, enum kernel_kind kind, const char *tensor, const char *name, double reads, double writes)
{
    struct emit *emit = ddp->emit;
    plan_kernel(&emit->builder, STREAM_COMPUTE, arena_printf(emit->arena, "%s/%s", tensor, name),
        kernel_stream(kind, reads, writes, 0), emit->options->host.backward_issue_s);
}

/* LOMO: reduce, update, forget. */
static void update_now(struct ddp *ddp, int tensor)
{
    struct emit *emit = ddp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    plan_stream_wait(&emit->builder, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE));
    plan_wait reduced = plan_collective(&emit->builder, STREAM_COMM,
        arena_printf(emit->arena, "%s/all_reduce", at->name), COLL_ALL_REDUCE, (double)(at->numel * emit->master_bytes),
        ddp->group, emit->options->host.collective_issue_s);
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, reduced);
    emit_update(emit, STREAM_COMPUTE, at->numel);
    plan_free(&emit->builder, ddp->grads[tensor], PLAN_NO_OP);
    ddp->grads[tensor] = PLAN_NO_OP;
}

static void grad_ready(void *self, int tensor)
{
    struct ddp *ddp = self;
    struct emit *emit = ddp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    double low = (double)(at->numel * emit->param_bytes);
    int64_t bytes = at->numel * emit->master_bytes;
    if (emit->param_bytes != emit->master_bytes)
        stream_kernel(ddp, KERNEL_COPY, at->name, "cast_grad", low, (double)bytes);
    if (!ddp->first_micro_step)
        stream_kernel(ddp, KERNEL_ELEMENTWISE, at->name, "accumulate_grad", 2 * (double)bytes, (double)bytes);
    if (emit_updates_in_backward(emit)) {
        update_now(ddp, tensor);
        return;
    }
    if (!ddp->synchronises || emit->gpus == 1)
        return;
    if (!ddp->views)
        stream_kernel(ddp, KERNEL_COPY, at->name, "copy_to_bucket", (double)bytes, (double)bytes);
    ddp->bucket_bytes += bytes;
    double cap = ddp->buckets == 0 ? ddp->options->first_bucket_bytes : ddp->options->bucket_cap_bytes;
    if ((double)ddp->bucket_bytes >= cap)
        send_bucket(ddp);
}

/* autocast: low-precision copies of a layer's parameters, kept for its backward pass. */
static int cast_weights(struct ddp *ddp, int layer)
{
    struct emit *emit = ddp->emit;
    if (emit->param_bytes == emit->master_bytes)
        return PLAN_NO_OP;
    int64_t from = 0, to = 0;
    const struct model_layer *at = &emit->model->layers[layer];
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        int64_t kept = emit_kept_bytes(emit, &emit->model->tensors[t]);
        int64_t used = emit_used_bytes(emit, &emit->model->tensors[t]);
        from += kept != used ? kept : 0;
        to += kept != used ? used : 0;
    }
    if (to == 0)
        return PLAN_NO_OP;
    int copy = plan_alloc(&emit->builder, STREAM_COMPUTE, emit_name(emit, layer, "autocast_weights"), to, HBM_GATHERED);
    plan_kernel(&emit->builder, STREAM_COMPUTE, emit_name(emit, layer, "autocast"),
        kernel_stream(KERNEL_COPY, (double)from, (double)to, 0), emit->options->host.kernel_issue_s);
    return copy;
}

static void micro_step(struct ddp *ddp)
{
    struct emit *emit = ddp->emit;
    int *copies = ARENA_ARRAY(emit->arena, int, emit->model->n_layers);
    for (int u = 0; u < emit->model->n_layers; u++)
        copies[u] = PLAN_NO_OP;
    emit->builder.phase = PHASE_FORWARD;
    copies[0] = cast_weights(ddp, 0);
    for (int s = 0; s < emit->stages.n; s++) {
        int layer = emit->stages.at[s].layer;
        emit->builder.phase = PHASE_FORWARD;
        if (layer != 0)
            copies[layer] = cast_weights(ddp, layer);
        emit_forward(emit, s);
    }
    for (int s = emit->stages.n - 1; s >= 0; s--) {
        int layer = emit->stages.at[s].layer;
        emit_backward(emit, s);
        if (layer != 0)
            plan_free(&emit->builder, copies[layer], PLAN_NO_OP);
    }
    plan_free(&emit->builder, copies[0], PLAN_NO_OP);
    emit_drop_outputs(emit);
}

/* Everything reduced: the compute stream waits for the last bucket, and gradients are copied back out of the buckets.
 */
static void finish_backward(struct ddp *ddp)
{
    struct emit *emit = ddp->emit;
    if (emit->gpus == 1 || emit_updates_in_backward(emit))
        return;
    send_bucket(ddp);
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, plan_last_op(&emit->builder, STREAM_COMM));
    if (ddp->views)
        return;
    for (int t = emit->model->n_tensors - 1; t >= 0; t--) {
        if (emit->model->tensors[t].frozen)
            continue;
        double bytes = (double)(emit->model->tensors[t].numel * emit->master_bytes);
        stream_kernel(ddp, KERNEL_COPY, emit->model->tensors[t].name, "copy_from_bucket", bytes, bytes);
    }
}

static void setup_memory(struct ddp *ddp)
{
    struct emit *emit = ddp->emit;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        const struct model_tensor *at = &emit->model->tensors[t];
        plan_keep(&emit->builder, at->name, emit_kept_bytes(emit, at), HBM_PARAMETERS);
        ddp->grads[t] = PLAN_NO_OP;
        if (!at->frozen)
            ddp->tensors[ddp->n_tensors++] = (struct optimizer_tensor){at->rows, at->cols};
    }
    if (ddp->views || (emit->gpus > 1 && !emit_updates_in_backward(emit)))
        plan_keep(&emit->builder, "reducer/buckets", emit->model->trained * emit->master_bytes,
            ddp->views ? HBM_GRADIENTS : HBM_BUFFERS);
}

void compile_ddp(struct emit *emit)
{
    struct ddp ddp = {.emit = emit, .options = &emit->options->ddp};
    emit->self = &ddp;
    emit->grad_begins = grad_begins;
    emit->grad_ready = grad_ready;
    ddp.views = ddp.options->gradient_as_bucket_view && !emit_updates_in_backward(emit);
    ddp.grads = ARENA_ARRAY(emit->arena, int, emit->model->n_tensors);
    ddp.tensors = ARENA_ARRAY(emit->arena, struct optimizer_tensor, emit->model->n_tensors);
    ddp.group = plan_group(&emit->builder, "world", emit->gpus, 1);
    setup_memory(&ddp);
    plan_host(&emit->builder, "step", emit->options->host.step_s);
    int64_t micro_steps = emit->options->train.grad_accum;
    for (int64_t m = 0; m < micro_steps; m++) {
        ddp.first_micro_step = m == 0;
        ddp.synchronises = m + 1 == micro_steps;
        micro_step(&ddp);
    }
    finish_backward(&ddp);
    emit_first_state(emit, ddp.tensors, ddp.n_tensors);
    emit_optimizer(emit, ddp.tensors, ddp.n_tensors);
    for (int t = 0; t < emit->model->n_tensors; t++) /* zero_grad(set_to_none=True) */
        plan_free(&emit->builder, ddp.grads[t], PLAN_NO_OP);
}
