/* PyTorch's FullyShardedDataParallel (FSDP1) as a plan. Source:
 * torch/distributed/fsdp/{_runtime_utils,flat_param,_limiter_utils}.py of PyTorch 2.0, restated.
 *
 * A unit is a model layer: unit 0 is the root (what no block owns), the others are blocks (transformer auto-wrap
 * policy). Its parameters are one flat parameter, padded to the sharding group. unshard: [rate limiter: the host waits
 * for the oldest pending free] cast of the shard on the unshard stream, all-gather. forward: FULL_SHARD frees the
 * gathered parameters after it, the root keeps them, SHARD_GRAD_OP too. backward: BACKWARD_PRE gathers the next unit
 * before, BACKWARD_POST after the kernels of this one; then the parameters are freed, the flat gradient is put together
 * (autograd's cat), divided, reduce-scattered, cast to the master precision. All-gathers and reduce-scatters share one
 * process group, hence one NCCL stream: they run in issue order. HYBRID_SHARD adds an all-reduce of the shard over the
 * replicas on a second group; NO_SHARD all-reduces instead. LOMO updates a unit's shard as soon as its gradient is
 * reduced, on the post-backward stream (optimizer in backward). CPU offload: a shard is copied to the GPU before it is
 * cast or gathered, its gradient back to the host after reduction, and the host steps. Frozen parameters (adapters
 * beside them) are gathered with those that are trained, in one collective a unit, as FSDP2 does; FSDP1 with peft's
 * wrapping policy would make a unit of every adapter. Ignored: use_orig_params, buffers.
 */
#include "strategy/emit.h"
#include "strategy/limiter.h"

struct unit {
    int64_t padded, shard;          /* elements that are trained */
    int64_t kept_shard, used_shard; /* bytes of this rank's part of all parameters: as kept, as gathered */
    int gathered;                   /* buffer of the unsharded low-precision parameters, or PLAN_NO_OP */
    bool ready;                     /* unsharded, or on the way */
    plan_wait ready_op;             /* what compute has to wait for */
    int unsharded_grad;             /* buffer kept under no_sync */
    int sharded_grad;               /* buffer of the accumulated gradient shard */
};

struct fsdp {
    struct emit *emit;
    const struct fsdp_options *options;
    struct unit *units;
    struct optimizer_tensor *shards; /* of units that are trained: flat, what the optimizer sees */
    int n_shards;
    int *tensor_grads; /* by tensor: buffer of its gradient before the flat gradient is put together */
    int shard_group, replicate_group;
    int64_t shard_ranks, replicas;
    int64_t reduce_bytes; /* an element of a gradient on the wire */
    struct limiter limiter;
    bool first_unshard; /* none yet in this step */
    bool synchronises;  /* this micro-step communicates gradients */
};

static bool shards(const struct fsdp *fsdp)
{
    return fsdp->shard_ranks > 1;
}
static bool casts(const struct fsdp *fsdp)
{
    return fsdp->emit->param_bytes != fsdp->emit->master_bytes;
}

static bool offloads(const struct fsdp *fsdp)
{
    return fsdp->options->cpu_offload;
}

static bool reshards_after_forward(const struct fsdp *fsdp)
{
    int strategy = fsdp->options->sharding_strategy;
    return strategy == FULL_SHARD || strategy == HYBRID_SHARD;
}

static void stream_kernel(struct fsdp *fsdp, enum plan_stream stream, enum kernel_kind kind, int layer,
    const char *name, double reads, double writes)
{
    struct emit *emit = fsdp->emit;
    plan_kernel(&emit->builder, stream, emit_name(emit, layer, name), kernel_stream(kind, reads, writes, 0),
        emit->options->host.kernel_issue_s);
}

/* The shard comes from the host: into a buffer for the cast or the all-gather, or into what kernels use. */
static int fetch_shard(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    int64_t bytes = fsdp->units[layer].kept_shard;
    int buffer =
        plan_alloc(&emit->builder, STREAM_UNSHARD, emit_name(emit, layer, "shard_from_host"), bytes, HBM_GATHERED);
    emit_host_copy(emit, STREAM_UNSHARD, emit_name(emit, layer, "host_to_device"), (double)bytes);
    return buffer;
}

static void unshard(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    struct unit *unit = &fsdp->units[layer];
    if (unit->ready)
        return;
    unit->ready = true;
    unit->ready_op = PLAN_NO_OP;
    if (!shards(fsdp) && !casts(fsdp) && !offloads(fsdp))
        return;
    if (shards(fsdp) && fsdp->options->limit_all_gathers)
        limiter_all_gather(&fsdp->limiter, builder);
    enum plan_stream first = casts(fsdp) || offloads(fsdp) ? STREAM_UNSHARD : STREAM_COMM;
    if (fsdp->first_unshard) /* the optimizer of the step before has to be done; its op is set by emit_link_steps */
        plan_stream_wait(builder, first, EMIT_LAST_STEP);
    fsdp->first_unshard = false;
    int cast_shard = PLAN_NO_OP, fetched = offloads(fsdp) ? fetch_shard(fsdp, layer) : PLAN_NO_OP;
    if (offloads(fsdp))
        unit->ready_op = plan_last_op(builder, STREAM_UNSHARD);
    const char *gathered_name = emit_name(emit, layer, "unsharded_flat_param");
    if (casts(fsdp)) {
        const char *shard_name = emit_name(emit, layer, "mp_shard");
        if (shards(fsdp))
            cast_shard = plan_alloc(builder, STREAM_UNSHARD, shard_name, unit->used_shard, HBM_GATHERED);
        else
            unit->gathered = plan_alloc(builder, STREAM_UNSHARD, gathered_name, unit->used_shard, HBM_GATHERED);
        stream_kernel(
            fsdp, STREAM_UNSHARD, KERNEL_COPY, layer, "cast_shard", (double)unit->kept_shard, (double)unit->used_shard);
        unit->ready_op = plan_last_op(builder, STREAM_UNSHARD);
        plan_free(builder, fetched, PLAN_NO_OP);
    } else {
        cast_shard = fetched;
    }
    if (!shards(fsdp)) {
        unit->gathered = casts(fsdp) ? unit->gathered : fetched;
        return;
    }
    int64_t gathered_bytes = unit->used_shard * fsdp->shard_ranks;
    unit->gathered = plan_alloc(builder, STREAM_UNSHARD, gathered_name, gathered_bytes, HBM_GATHERED);
    plan_stream_wait(builder, STREAM_COMM, unit->ready_op);
    unit->ready_op = plan_collective(builder, STREAM_COMM, emit_name(emit, layer, "all_gather"), COLL_ALL_GATHER,
        (double)gathered_bytes, fsdp->shard_group, emit->options->host.collective_issue_s);
    plan_free(builder, cast_shard, unit->ready_op);
}

static void wait_unsharded(struct fsdp *fsdp, int layer)
{
    plan_stream_wait(&fsdp->emit->builder, STREAM_COMPUTE, fsdp->units[layer].ready_op);
    fsdp->units[layer].ready_op = PLAN_NO_OP; /* later kernels come after the one that waited */
}

static void reshard(struct fsdp *fsdp, int layer)
{
    struct unit *unit = &fsdp->units[layer];
    plan_wait last = plan_last_op(&fsdp->emit->builder, STREAM_COMPUTE);
    if (unit->gathered != PLAN_NO_OP)
        plan_free(&fsdp->emit->builder, unit->gathered, last);
    if (unit->gathered != PLAN_NO_OP && shards(fsdp))
        limiter_free(&fsdp->limiter, last);
    unit->gathered = PLAN_NO_OP;
    unit->ready = false;
}

static void hook(struct fsdp *fsdp, int layer, const char *name)
{
    struct emit *emit = fsdp->emit;
    plan_host(&emit->builder, emit_name(emit, layer, name), emit->options->host.unit_hook_s);
}

/* The next block after the given stage in the given direction, or 0. */
static int neighbour(const struct emit *emit, int stage, int direction)
{
    for (int s = stage + direction; s >= 0 && s < emit->stages.n; s += direction)
        if (emit->stages.at[s].layer != 0)
            return emit->stages.at[s].layer;
    return 0;
}

static void forward(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    emit->builder.phase = PHASE_FORWARD;
    hook(fsdp, 0, "pre_forward");
    unshard(fsdp, 0);
    wait_unsharded(fsdp, 0);
    for (int s = 0; s < emit->stages.n; s++) {
        int layer = emit->stages.at[s].layer;
        if (layer == 0) {
            emit_forward(emit, s);
            continue;
        }
        hook(fsdp, layer, "pre_forward");
        unshard(fsdp, layer);
        wait_unsharded(fsdp, layer);
        int next = fsdp->options->forward_prefetch ? neighbour(emit, s, 1) : 0;
        if (next)
            unshard(fsdp, next);
        emit_forward(emit, s);
        hook(fsdp, layer, "post_forward");
        if (reshards_after_forward(fsdp))
            reshard(fsdp, layer);
    }
}

/* The gradients of the unit's tensors become one flat gradient (backward of the split into views). */
static int flat_gradient(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    const struct model_layer *at = &emit->model->layers[layer];
    struct unit *unit = &fsdp->units[layer];
    double bytes = (double)(unit->padded * emit->param_bytes);
    /* Without sharding and casting the flat gradient is what the optimizer reads. */
    bool is_final = !shards(fsdp) && !casts(fsdp) && fsdp->reduce_bytes == emit->master_bytes;
    int flat = plan_alloc(&emit->builder, STREAM_COMPUTE, emit_name(emit, layer, "flat_grad"),
        unit->padded * emit->param_bytes, is_final ? HBM_GRADIENTS : HBM_GATHERED);
    stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_COPY, layer, "cat_grads", bytes, bytes);
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        plan_free(&emit->builder, fsdp->tensor_grads[t], PLAN_NO_OP);
        fsdp->tensor_grads[t] = PLAN_NO_OP;
    }
    if (unit->unsharded_grad != PLAN_NO_OP) { /* accumulated without communication before */
        stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_ELEMENTWISE, layer, "accumulate", 2 * bytes, bytes);
        plan_free(&emit->builder, flat, PLAN_NO_OP);
        flat = unit->unsharded_grad;
        unit->unsharded_grad = PLAN_NO_OP;
    }
    return flat;
}

/* Gradients over the replicas (HYBRID_SHARD), after the reduce-scatter. */
static plan_wait reduce_replicas(struct fsdp *fsdp, int layer, plan_wait scattered)
{
    struct emit *emit = fsdp->emit;
    if (fsdp->replicas == 1 || !shards(fsdp))
        return scattered;
    plan_stream_wait(&emit->builder, STREAM_REPLICATE, scattered);
    return plan_collective(&emit->builder, STREAM_REPLICATE, emit_name(emit, layer, "all_reduce"), COLL_ALL_REDUCE,
        (double)(fsdp->units[layer].shard * fsdp->reduce_bytes), fsdp->replicate_group,
        emit->options->host.collective_issue_s);
}

/* The reduced shard in the precision of the parameters, added to what earlier micro-steps left. */
static void keep_shard(struct fsdp *fsdp, int layer, int reduced, plan_wait last)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    struct unit *unit = &fsdp->units[layer];
    double master = (double)(unit->shard * emit->master_bytes);
    int kept = reduced;
    plan_stream_wait(builder, STREAM_POST, last);
    if (fsdp->reduce_bytes != emit->master_bytes) {
        kept = plan_alloc(builder, STREAM_POST, emit_name(emit, layer, "sharded_grad"),
            unit->shard * emit->master_bytes, HBM_GRADIENTS);
        stream_kernel(fsdp, STREAM_POST, KERNEL_COPY, layer, "cast_sharded_grad",
            (double)(unit->shard * fsdp->reduce_bytes), master);
        plan_free(builder, reduced, last);
    } else {
        stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, layer, "postdivide", master, master);
    }
    if (unit->sharded_grad != PLAN_NO_OP) {
        stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, layer, "accumulate_shard", 2 * master, master);
        plan_free(builder, kept, PLAN_NO_OP);
    } else {
        unit->sharded_grad = kept;
    }
    if (offloads(fsdp)) {
        emit_host_copy(emit, STREAM_POST, emit_name(emit, layer, "device_to_host"), master);
        plan_free(builder, unit->sharded_grad, plan_last_op(builder, STREAM_POST));
        unit->sharded_grad = PLAN_NO_OP;
    }
    if (emit_updates_in_backward(emit)) {
        emit_update(emit, STREAM_POST, unit->shard);
        plan_free(builder, unit->sharded_grad, plan_last_op(builder, STREAM_POST));
        unit->sharded_grad = PLAN_NO_OP;
    }
}

static void reduce(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    struct unit *unit = &fsdp->units[layer];
    if (unit->padded == 0)
        return;
    int flat = flat_gradient(fsdp, layer);
    if (!fsdp->synchronises) {
        unit->unsharded_grad = flat;
        return;
    }
    plan_stream_wait(builder, STREAM_POST, plan_last_op(builder, STREAM_COMPUTE));
    double numel = (double)unit->padded;
    int wire = flat;
    if (fsdp->reduce_bytes != emit->param_bytes) {
        wire = plan_alloc(builder, STREAM_POST, emit_name(emit, layer, "reduce_dtype_grad"),
            unit->padded * fsdp->reduce_bytes, HBM_GATHERED);
        stream_kernel(fsdp, STREAM_POST, KERNEL_COPY, layer, "cast_grad", numel * (double)emit->param_bytes,
            numel * (double)fsdp->reduce_bytes);
    }
    stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, layer, "predivide", numel * (double)fsdp->reduce_bytes,
        numel * (double)fsdp->reduce_bytes);
    plan_wait divided = plan_last_op(builder, STREAM_POST), last = divided;
    int reduced = wire;
    if (shards(fsdp)) {
        bool is_master = fsdp->reduce_bytes == emit->master_bytes;
        reduced = plan_alloc(builder, STREAM_POST, emit_name(emit, layer, "reduced_shard"),
            unit->shard * fsdp->reduce_bytes, is_master ? HBM_GRADIENTS : HBM_GATHERED);
    }
    plan_stream_wait(builder, STREAM_COMM, divided);
    plan_wait op =
        plan_collective(builder, STREAM_COMM, emit_name(emit, layer, shards(fsdp) ? "reduce_scatter" : "all_reduce"),
            shards(fsdp) ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, numel * (double)fsdp->reduce_bytes,
            shards(fsdp) ? fsdp->shard_group : fsdp->replicate_group, emit->options->host.collective_issue_s);
    if (op != PLAN_NO_OP)
        last = op;
    if (wire != flat)
        plan_free(builder, flat, divided);
    if (reduced != wire)
        plan_free(builder, wire, last);
    last = reduce_replicas(fsdp, layer, last);
    keep_shard(fsdp, layer, reduced, last);
}

static void backward_block(struct fsdp *fsdp, int stage)
{
    struct emit *emit = fsdp->emit;
    int layer = emit->stages.at[stage].layer, next = neighbour(emit, stage, -1);
    hook(fsdp, layer, "pre_backward");
    unshard(fsdp, layer);
    wait_unsharded(fsdp, layer);
    if (next && fsdp->options->backward_prefetch == BACKWARD_PRE)
        unshard(fsdp, next);
    emit_backward(emit, stage);
    hook(fsdp, layer, "post_backward");
    reshard(fsdp, layer);
    if (next && fsdp->options->backward_prefetch == BACKWARD_POST)
        unshard(fsdp, next);
    reduce(fsdp, layer);
}

static void backward(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    emit->builder.phase = PHASE_BACKWARD;
    for (int s = emit->stages.n - 1; s >= 0; s--) {
        if (emit->stages.at[s].layer == 0)
            emit_backward(emit, s);
        else
            backward_block(fsdp, s);
    }
    hook(fsdp, 0, "post_backward");
    reshard(fsdp, 0);
    reduce(fsdp, 0);
    emit_drop_outputs(emit);
    /* The final callback: the compute stream waits for the post-backward stream. */
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, plan_last_op(&emit->builder, STREAM_POST));
}

static void grad_begins(void *self, int tensor)
{
    struct fsdp *fsdp = self;
    struct emit *emit = fsdp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    fsdp->tensor_grads[tensor] =
        plan_alloc(&emit->builder, STREAM_COMPUTE, at->name, at->numel * emit->param_bytes, HBM_GATHERED);
}

static void grad_ready(void *self, int tensor)
{
    (void)self;
    (void)tensor; /* the flat gradient is complete when the unit is: see flat_gradient */
}

static void setup_groups(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    int strategy = fsdp->options->sharding_strategy;
    bool hybrid = strategy == HYBRID_SHARD || strategy == HYBRID_SHARD_ZERO2;
    int64_t group =
        fsdp->options->sharding_group_size ? fsdp->options->sharding_group_size : hw_gpus_per_node(emit->hw);
    fsdp->shard_ranks = strategy == NO_SHARD ? 1 : hybrid && group < emit->gpus ? group : emit->gpus;
    fsdp->replicas = emit->gpus / fsdp->shard_ranks;
    if (shards(fsdp))
        fsdp->shard_group =
            plan_group(&emit->builder, fsdp->replicas > 1 ? "shard" : "world", (int)fsdp->shard_ranks, 1);
    if (fsdp->replicas > 1 || !shards(fsdp))
        fsdp->replicate_group = plan_group(
            &emit->builder, shards(fsdp) ? "replicate" : "world", (int)fsdp->replicas, (int)fsdp->shard_ranks);
    static const int64_t reduce_bytes[REDUCE_DTYPE_COUNT] = {[REDUCE_FP32] = 4, [REDUCE_BF16] = 2, [REDUCE_FP16] = 2};
    int reduce_dtype = fsdp->options->reduce_dtype;
    fsdp->reduce_bytes = reduce_dtype == REDUCE_PARAM_DTYPE ? emit->param_bytes : reduce_bytes[reduce_dtype];
}

static struct unit lay_out(const struct fsdp *fsdp, int layer)
{
    const struct emit *emit = fsdp->emit;
    const struct model_layer *at = &emit->model->layers[layer];
    int64_t ranks = fsdp->shard_ranks, shard = (at->trained + ranks - 1) / ranks, kept = 0, used = 0;
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        const struct model_tensor *tensor = &emit->model->tensors[t];
        kept += tensor->frozen ? emit_kept_bytes(emit, tensor) : 0;
        used += tensor->frozen ? emit_used_bytes(emit, tensor) : 0;
    }
    return (struct unit){.padded = shard * ranks,
        .shard = shard,
        .kept_shard = shard * emit->master_bytes + (kept + ranks - 1) / ranks,
        .used_shard = shard * emit->param_bytes + (used + ranks - 1) / ranks,
        .gathered = PLAN_NO_OP,
        .ready_op = PLAN_NO_OP,
        .unsharded_grad = PLAN_NO_OP,
        .sharded_grad = PLAN_NO_OP};
}

static void setup_units(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    fsdp->shards = ARENA_ARRAY(emit->arena, struct optimizer_tensor, emit->model->n_layers);
    fsdp->units = ARENA_ARRAY(emit->arena, struct unit, emit->model->n_layers);
    for (int u = 0; u < emit->model->n_layers; u++) {
        struct unit *unit = &fsdp->units[u];
        *unit = lay_out(fsdp, u);
        struct optimizer_tensor shard = {unit->shard, 1};
        if (unit->shard > 0)
            fsdp->shards[fsdp->n_shards++] = shard;
        if (offloads(fsdp)) { /* the gradient has a place there, too */
            emit_keep_on_host(
                emit, unit->kept_shard + unit->shard * emit->master_bytes + emit_state_bytes(emit, shard));
            continue;
        }
        plan_keep(&emit->builder, emit_name(emit, u, "flat_param"), unit->kept_shard, HBM_PARAMETERS);
    }
    fsdp->tensor_grads = ARENA_ARRAY(emit->arena, int, emit->model->n_tensors);
    for (int t = 0; t < emit->model->n_tensors; t++)
        fsdp->tensor_grads[t] = PLAN_NO_OP;
}

void compile_fsdp(struct emit *emit)
{
    struct fsdp fsdp = {.emit = emit, .options = &emit->options->fsdp, .first_unshard = true};
    emit->self = &fsdp;
    emit->grad_begins = grad_begins;
    emit->grad_ready = grad_ready;
    setup_groups(&fsdp);
    setup_units(&fsdp);
    plan_host(&emit->builder, "step", emit->options->host.step_s);
    for (int64_t m = 0; m < emit->options->train.grad_accum; m++) {
        fsdp.synchronises = !fsdp.options->no_sync || m + 1 == emit->options->train.grad_accum;
        forward(&fsdp);
        backward(&fsdp);
    }
    if (offloads(&fsdp))
        emit_host_optimizer(emit, fsdp.shards, fsdp.n_shards, emit->options->train.optimizer_impl == OPTIMIZER_FUSED,
            plan_last_op(&emit->builder, STREAM_POST));
    else {
        emit_first_state(emit, fsdp.shards, fsdp.n_shards);
        emit_optimizer(emit, fsdp.shards, fsdp.n_shards);
    }
    for (int u = 0; u < emit->model->n_layers; u++) /* zero_grad(set_to_none=True) */
        plan_free(&emit->builder, fsdp.units[u].sharded_grad, plan_last_op(&emit->builder, STREAM_COMPUTE));
    bool on_compute = !emit_updates_in_backward(emit) && !offloads(&fsdp);
    emit_link_steps(emit, plan_last_op(&emit->builder, on_compute ? STREAM_COMPUTE : STREAM_POST));
    limiter_resolve(&fsdp.limiter, emit->builder.plan, fsdp.options->max_inflight_all_gathers);
}
