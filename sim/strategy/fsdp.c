/* PyTorch's FullyShardedDataParallel (FSDP1) as a plan, and fully_shard (FSDP2) by what it does differently. Source:
 * torch/distributed/fsdp/{_runtime_utils,flat_param,_limiter_utils}.py of PyTorch 2.0, restated; FSDP2:
 * torch/distributed/_composable/fsdp/_fsdp_{collectives,param_group}.py of PyTorch 2.5.
 *
 * A unit is a model layer: unit 0 is the root (what no block owns), the others are blocks (transformer auto-wrap
 * policy). Its parameters are one flat parameter, padded to the sharding group. unshard: [rate limiter: the host waits
 * for the oldest pending free] cast of the shard on the unshard stream, all-gather. forward: FULL_SHARD frees the
 * gathered parameters after it, the root keeps them, SHARD_GRAD_OP too. backward: BACKWARD_PRE gathers the next unit
 * before, BACKWARD_POST after the kernels of this one; autograd puts the flat gradient together (cat) before any hook
 * runs; then the parameters are freed (under no_sync SHARD_GRAD_OP keeps them to the last micro-step), BACKWARD_POST
 * gathers, and the gradient is divided by one part of the number of ranks, reduce-scattered, divided by the other, cast
 * to the master precision. All-gathers and reduce-scatters share one process group, hence one NCCL stream: they run in
 * issue order. HYBRID_SHARD adds an all-reduce of the shard over
 * the replicas on a second group; NO_SHARD all-reduces instead. LOMO updates a unit's shard as soon as its gradient is
 * reduced, on the post-backward stream (optimizer in backward). CPU offload: a shard is copied to the GPU before it is
 * cast or gathered, its gradient back to the host after reduction, and the host steps. Frozen parameters (adapters
 * beside them) are gathered with those that are trained, in one collective a unit, as FSDP2 does; FSDP1 with peft's
 * wrapping policy would make a unit of every adapter. Under autocast alone (no param_dtype) a unit is gathered in FP32
 * and its matrices are cast for each pass (autograd keeps the copies for backward); its gradients are FP32. Ignored:
 * use_orig_params, buffers.
 *
 * fully_shard shards every parameter along its rows. What was gathered lies rank by rank and is copied, on the compute
 * stream, into the parameters; gradients are copied straight into what is reduced, in the format of the reduction, on
 * the compute stream too; NCCL divides. The host waits for no limiter: a gather comes after the copy out of the buffer
 * before the last. Ignored: padding by rows, NCCL's own record_stream (TORCH_NCCL_AVOID_RECORD_STREAMS=1, as torchtitan
 * sets it). */
#include "strategy/fsdp.h"

static bool reshards_after_forward(const struct fsdp *fsdp)
{
    int strategy = fsdp->options->sharding_strategy;
    return strategy == FULL_SHARD || strategy == HYBRID_SHARD;
}

void fsdp_stream_kernel(struct fsdp *fsdp, enum plan_stream stream, enum kernel_kind kind, int layer, const char *name,
    double reads, double writes)
{
    emit_stream_kernel(fsdp->emit, stream, kind, emit_name(fsdp->emit, layer, name), reads, writes);
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

/* Where an unshard begins: with the cast or the copy from the host, or with the all-gather itself. */
static enum plan_stream unshard_stream(const struct fsdp *fsdp)
{
    return fsdp_casts(fsdp) || fsdp_offloads(fsdp) ? STREAM_UNSHARD : STREAM_COMM;
}

static bool gathers(const struct fsdp *fsdp)
{
    return fsdp_shards(fsdp) || fsdp_casts(fsdp) || fsdp_offloads(fsdp);
}

/* _wait_for_computation_stream, in the root's forward pass: nothing is unsharded before all that was computed is done.
 * In the first micro-step that is the optimizer of the step before (its op is set by emit_link_steps), in others the
 * backward pass with its last reduction, which the final callback has made the compute stream wait for. */
static void wait_for_computation(struct fsdp *fsdp)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    enum plan_stream stream = unshard_stream(fsdp);
    if (!gathers(fsdp))
        return;
    plan_stream_wait(builder, stream, fsdp->emit->on_first ? EMIT_LAST_STEP : plan_last_op(builder, STREAM_COMPUTE));
    if (!fsdp->emit->on_first)
        plan_stream_wait(builder, stream, plan_last_op(builder, STREAM_POST));
}

static void unshard(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    struct fsdp_unit *unit = &fsdp->units[layer];
    if (unit->ready)
        return;
    unit->ready = true;
    unit->ready_op = PLAN_NO_OP;
    if (!gathers(fsdp))
        return;
    if (fsdp_shards(fsdp) && !fsdp_by_parameter(fsdp) && fsdp->options->limit_all_gathers)
        limiter_all_gather(&fsdp->limiter, builder);
    int cast_shard = PLAN_NO_OP, fetched = fsdp_offloads(fsdp) ? fetch_shard(fsdp, layer) : PLAN_NO_OP;
    if (fsdp_offloads(fsdp))
        unit->ready_op = plan_last_op(builder, STREAM_UNSHARD);
    const char *gathered_name = emit_name(emit, layer, "unsharded_flat_param");
    if (fsdp_casts(fsdp)) {
        const char *shard_name = emit_name(emit, layer, "mp_shard");
        if (fsdp_shards(fsdp))
            cast_shard = plan_alloc(builder, STREAM_UNSHARD, shard_name, unit->used_shard, HBM_GATHERED);
        else
            unit->gathered = plan_alloc(builder, STREAM_UNSHARD, gathered_name, unit->used_shard, HBM_GATHERED);
        fsdp_stream_kernel(
            fsdp, STREAM_UNSHARD, KERNEL_COPY, layer, "cast_shard", (double)unit->kept_shard, (double)unit->used_shard);
        unit->ready_op = plan_last_op(builder, STREAM_UNSHARD);
        plan_free(builder, fetched, PLAN_NO_OP);
    } else {
        cast_shard = fetched;
    }
    if (!fsdp_shards(fsdp)) {
        unit->gathered = fsdp_casts(fsdp) ? unit->gathered : fetched;
        return;
    }
    int64_t gathered_bytes = unit->used_shard * fsdp->shard_ranks;
    unit->gathered = plan_alloc(builder, STREAM_UNSHARD, gathered_name, gathered_bytes, HBM_GATHERED);
    plan_stream_wait(builder, STREAM_COMM, unit->ready_op);
    unit->ready_op = plan_collective(builder, STREAM_COMM, emit_name(emit, layer, "all_gather"), COLL_ALL_GATHER,
        (double)gathered_bytes, fsdp->shard_group, emit->options->host.collective_issue_s);
    plan_free(builder, cast_shard, unit->ready_op);
}

/* fully_shard: the streams of all-gathers wait until the gathered buffer has been copied out, then it is theirs again.
 */
static void let_go_of_gathered(struct fsdp *fsdp)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    if (fsdp->copied_out != PLAN_NO_OP)
        plan_stream_wait(builder, unshard_stream(fsdp), fsdp->copied_out);
    plan_free(builder, fsdp->gathered, PLAN_NO_OP);
    fsdp->gathered = fsdp->copied_out = PLAN_NO_OP;
}

/* fully_shard: from the order of the ranks into that of the parameters. In forward the gathered buffer is kept until
 * the next unit's comes to be copied (all_gather_state), so that its gather does not wait for this copy. */
static void copy_out(struct fsdp *fsdp, int layer)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    struct fsdp_unit *unit = &fsdp->units[layer];
    int64_t bytes = unit->used_shard * fsdp->shard_ranks;
    const char *name = emit_name(fsdp->emit, layer, "params");
    let_go_of_gathered(fsdp);
    int params = plan_alloc(builder, STREAM_COMPUTE, name, bytes, HBM_GATHERED);
    fsdp_stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_COPY, layer, "copy_out", (double)bytes, (double)bytes);
    fsdp->gathered = unit->gathered;
    fsdp->copied_out = plan_last_op(builder, STREAM_COMPUTE);
    if (builder->phase != PHASE_FORWARD)
        let_go_of_gathered(fsdp);
    unit->gathered = params;
}

static void wait_unsharded(struct fsdp *fsdp, int layer)
{
    struct fsdp_unit *unit = &fsdp->units[layer];
    bool arrives = unit->ready_op != PLAN_NO_OP;
    plan_stream_wait(&fsdp->emit->builder, STREAM_COMPUTE, unit->ready_op);
    unit->ready_op = PLAN_NO_OP; /* later kernels come after the one that waited */
    if (arrives && fsdp_by_parameter(fsdp))
        copy_out(fsdp, layer);
}

static void reshard(struct fsdp *fsdp, int layer)
{
    struct fsdp_unit *unit = &fsdp->units[layer];
    plan_wait last = plan_last_op(&fsdp->emit->builder, STREAM_COMPUTE);
    if (unit->gathered != PLAN_NO_OP) /* fully_shard's parameters are the compute stream's own */
        plan_free(&fsdp->emit->builder, unit->gathered, fsdp_by_parameter(fsdp) ? PLAN_NO_OP : last);
    if (unit->gathered != PLAN_NO_OP && fsdp_shards(fsdp))
        limiter_free(&fsdp->limiter, last);
    unit->gathered = PLAN_NO_OP;
    unit->ready = false;
}

/* FSDP1's _should_free_in_backward: what stays gathered after forward stays so after a backward pass without
 * communication, too. */
static void reshard_after_backward(struct fsdp *fsdp, int layer)
{
    bool kept =
        fsdp->options->version == 1 && fsdp_shards(fsdp) && !fsdp_synchronises(fsdp) && !reshards_after_forward(fsdp);
    if (!kept)
        reshard(fsdp, layer);
}

static bool autocasts(const struct fsdp *fsdp)
{
    return fsdp->gather_bytes != fsdp->emit->param_bytes;
}

static void cast_unit(struct fsdp *fsdp, int layer)
{
    if (autocasts(fsdp))
        fsdp->units[layer].cast = emit_autocast_weights(fsdp->emit, layer);
}

static void drop_cast(struct fsdp *fsdp, int layer)
{
    plan_free(&fsdp->emit->builder, fsdp->units[layer].cast, PLAN_NO_OP);
    fsdp->units[layer].cast = PLAN_NO_OP;
}

static void hook(struct fsdp *fsdp, int layer, const char *name)
{
    struct emit *emit = fsdp->emit;
    plan_host(&emit->builder, emit_name(emit, layer, name), emit->options->host.unit_hook_s);
}

/* The next block after the given segment in the given direction, or 0. */
static int neighbour(const struct emit *emit, int segment, int direction)
{
    for (int s = segment + direction; s >= 0 && s < emit->segments.n; s += direction)
        if (emit->segments.at[s].layer != 0)
            return emit->segments.at[s].layer;
    return 0;
}

static void before_forward(void *self, int segment)
{
    struct fsdp *fsdp = self;
    int unit = fsdp->emit->segments.at[segment].layer;
    if (!emit_opens_layer(fsdp->emit, segment))
        return;
    hook(fsdp, unit, "pre_forward");
    if (unit == 0)
        wait_for_computation(fsdp);
    unshard(fsdp, unit);
    wait_unsharded(fsdp, unit);
    int next = unit != 0 && fsdp->options->forward_prefetch ? neighbour(fsdp->emit, segment, 1) : 0;
    if (next)
        unshard(fsdp, next);
    cast_unit(fsdp, unit);
}

static void after_forward(void *self, int segment)
{
    struct fsdp *fsdp = self;
    int unit = fsdp->emit->segments.at[segment].layer;
    if (unit != 0) {
        if (emit_recomputes(fsdp->emit, segment))
            drop_cast(fsdp, unit);
        hook(fsdp, unit, "post_forward");
        if (reshards_after_forward(fsdp))
            reshard(fsdp, unit);
    }
    if (segment + 1 == fsdp->emit->segments.n)
        let_go_of_gathered(fsdp);
}

static void before_backward(void *self, int segment)
{
    struct fsdp *fsdp = self;
    int unit = fsdp->emit->segments.at[segment].layer, next = neighbour(fsdp->emit, segment, -1);
    if (unit == 0) /* the root has stayed gathered */
        return;
    hook(fsdp, unit, "pre_backward");
    unshard(fsdp, unit);
    wait_unsharded(fsdp, unit);
    if (next && fsdp->options->backward_prefetch == BACKWARD_PRE)
        unshard(fsdp, next);
    if (emit_recomputes(fsdp->emit, segment))
        cast_unit(fsdp, unit);
}

static void after_backward(void *self, int segment)
{
    struct fsdp *fsdp = self;
    int unit = fsdp->emit->segments.at[segment].layer, next = neighbour(fsdp->emit, segment, -1);
    if (!emit_opens_layer(fsdp->emit, segment))
        return;
    drop_cast(fsdp, unit);
    fsdp_join_gradients(fsdp, unit);
    hook(fsdp, unit, "post_backward");
    reshard_after_backward(fsdp, unit);
    if (next && fsdp->options->backward_prefetch == BACKWARD_POST)
        unshard(fsdp, next);
    fsdp_reduce(fsdp, unit);
}

/* The final callback: the compute stream waits for the post-backward stream. */
static void backward_ends(void *self)
{
    struct fsdp *fsdp = self;
    plan_stream_wait(&fsdp->emit->builder, STREAM_COMPUTE, plan_last_op(&fsdp->emit->builder, STREAM_POST));
    fsdp_let_go_of_input(fsdp);
}

static void grad_begins(void *self, int tensor)
{
    struct fsdp *fsdp = self;
    struct emit *emit = fsdp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    fsdp->tensor_grads[tensor] =
        plan_alloc(&emit->builder, STREAM_COMPUTE, at->name, at->numel * fsdp->gather_bytes, HBM_GATHERED);
}

/* The flat gradient is complete when the unit is: see flat_gradient. */
static void grad_ready(void *self, int tensor)
{
    struct fsdp *fsdp = self;
    struct emit *emit = fsdp->emit;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    if (autocasts(fsdp)) /* backward of the cast; the product wrote low precision */
        plan_kernel(&emit->builder, STREAM_COMPUTE, arena_printf(emit->arena, "%s/cast_grad", at->name),
            kernel_stream(
                KERNEL_COPY, (double)(at->numel * emit->param_bytes), (double)(at->numel * fsdp->gather_bytes), 0),
            emit->options->host.backward_issue_s);
}

static void setup_groups(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    fsdp->shard_ranks = emit_degree(emit, 1 << AXIS_DP_SHARD);
    fsdp->replicas = emit_degree(emit, 1 << AXIS_DP_REPLICATE);
    if (fsdp_shards(fsdp))
        emit->norm_group = fsdp->shard_group =
            emit_group(emit, fsdp->replicas > 1 ? "shard" : "world", 1 << AXIS_DP_SHARD);
    if (fsdp->replicas > 1 || !fsdp_shards(fsdp))
        fsdp->replicate_group = emit_group(emit, fsdp_shards(fsdp) ? "replicate" : "world", 1 << AXIS_DP_REPLICATE);
    /* TorchRec and FSDP share the default process group, hence a NCCL stream, unless FSDP makes groups of its own. With
     * those the exchange takes the stream of the replicas, which PyTorch would leave alone. */
    if (fsdp->replicas > 1 && fsdp_shards(fsdp))
        emit->comm_queue = STREAM_REPLICATE;
    static const int64_t reduce_bytes[REDUCE_DTYPE_COUNT] = {[REDUCE_FP32] = 4, [REDUCE_BF16] = 2, [REDUCE_FP16] = 2};
    int reduce_dtype = fsdp->options->reduce_dtype;
    fsdp->gather_bytes = emit->options->train.autocast ? emit->master_bytes : emit->param_bytes;
    fsdp->reduce_bytes = reduce_dtype == REDUCE_PARAM_DTYPE ? fsdp->gather_bytes : reduce_bytes[reduce_dtype];
}

static struct fsdp_unit lay_out(const struct fsdp *fsdp, int layer)
{
    const struct emit *emit = fsdp->emit;
    const struct model_layer *at = &emit->model->layers[layer];
    int64_t ranks = fsdp->shard_ranks, shard = (at->trained + ranks - 1) / ranks, kept = 0, used = 0;
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        const struct model_tensor *tensor = &emit->model->tensors[t];
        kept += tensor->frozen ? emit_kept_bytes(emit, tensor) : 0;
        used += tensor->frozen ? emit_used_bytes(emit, tensor) : 0;
    }
    return (struct fsdp_unit){.padded = shard * ranks,
        .shard = shard,
        .kept_shard = shard * emit->master_bytes + (kept + ranks - 1) / ranks,
        .used_shard = shard * fsdp->gather_bytes + (used + ranks - 1) / ranks,
        .gathered = PLAN_NO_OP,
        .cast = PLAN_NO_OP,
        .ready_op = PLAN_NO_OP,
        .unsharded_grad = PLAN_NO_OP,
        .sharded_grad = PLAN_NO_OP};
}

static void setup_units(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    fsdp->shards = ARENA_ARRAY(emit->arena, struct optimizer_tensor, emit->model->n_layers);
    fsdp->units = ARENA_ARRAY(emit->arena, struct fsdp_unit, emit->model->n_layers);
    for (int u = 0; u < emit->model->n_layers; u++) {
        struct fsdp_unit *unit = &fsdp->units[u];
        *unit = lay_out(fsdp, u);
        struct optimizer_tensor shard = {unit->shard, 1};
        if (unit->shard > 0)
            fsdp->shards[fsdp->n_shards++] = shard;
        if (fsdp_offloads(fsdp)) { /* the gradient has a place there, too */
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

static void setup(void *self, struct emit *emit)
{
    struct fsdp *fsdp = self;
    *fsdp = (struct fsdp){.emit = emit,
        .options = &emit->options->fsdp,
        .scattering = PLAN_NO_OP,
        .gathered = PLAN_NO_OP,
        .copied_out = PLAN_NO_OP};
    setup_groups(fsdp);
    setup_units(fsdp);
}

static void step_ends(void *self)
{
    struct fsdp *fsdp = self;
    struct emit *emit = fsdp->emit;
    if (fsdp_offloads(fsdp))
        emit_host_optimizer(emit, fsdp->shards, fsdp->n_shards, emit->options->train.optimizer_impl == OPTIMIZER_FUSED,
            plan_last_op(&emit->builder, STREAM_POST));
    else {
        emit_first_state(emit, fsdp->shards, fsdp->n_shards);
        emit_optimizer(emit, fsdp->shards, fsdp->n_shards);
    }
    for (int u = 0; u < emit->model->n_layers; u++) /* zero_grad(set_to_none=True) */
        plan_free(&emit->builder, fsdp->units[u].sharded_grad, plan_last_op(&emit->builder, STREAM_COMPUTE));
    bool on_compute = !emit_updates_in_backward(emit) && !fsdp_offloads(fsdp);
    emit_link_steps(emit, plan_last_op(&emit->builder, on_compute ? STREAM_COMPUTE : STREAM_POST));
    limiter_resolve(&fsdp->limiter, emit->builder.program, fsdp->options->max_inflight_all_gathers);
}

static const char *label_of(const struct strategy_options *options)
{
    return sharding_strategy_names[options->fsdp.sharding_strategy];
}

static int shard_ranks(const struct strategy_options *options, const struct hw *hw, int ranks)
{
    int strategy = options->fsdp.sharding_strategy;
    bool hybrid = strategy == HYBRID_SHARD || strategy == HYBRID_SHARD_ZERO2;
    int64_t group = options->fsdp.sharding_group_size ? options->fsdp.sharding_group_size : hw_gpus_per_node(hw);
    return strategy == NO_SHARD ? 1 : hybrid && group < ranks ? (int)group : ranks;
}

const struct data_parallel fsdp_hooks = {.state_size = sizeof(struct fsdp),
    .label_of = label_of,
    .shard_ranks = shard_ranks,
    .clips_by_option = true,
    .setup = setup,
    .before_forward = before_forward,
    .after_forward = after_forward,
    .before_backward = before_backward,
    .after_backward = after_backward,
    .backward_ends = backward_ends,
    .step_ends = step_ends,
    .grad_begins = grad_begins,
    .grad_ready = grad_ready};
