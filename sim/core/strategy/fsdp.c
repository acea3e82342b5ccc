/* PyTorch's FullyShardedDataParallel (FSDP1) as a plan, and fully_shard (FSDP2) by what it does
 * differently. Source: torch/distributed/fsdp/{_runtime_utils,flat_param,_limiter_utils}.py of
 * PyTorch 2.0, restated; FSDP2:
 * torch/distributed/_composable/fsdp/_fsdp_{collectives,param_group}.py of PyTorch 2.5.
 *
 * A unit is a model layer: unit 0 is the root (what no block owns), the others are blocks
 * (transformer auto-wrap policy). Its parameters are one flat parameter, padded to the sharding
 * group. unshard: cast of the shard on the pre-unshard stream, [rate limiter: the host waits for
 * the oldest pending free] all-gather (_unshard). The unshard stream has nothing but all-gathers,
 * so its place and its pool of blocks are STREAM_COMM's. forward: FULL_SHARD frees the gathered
 * parameters after it, the root keeps them, SHARD_GRAD_OP too. backward: BACKWARD_PRE gathers the
 * next unit before, BACKWARD_POST after the kernels of this one; autograd puts the flat gradient
 * together (cat) before any hook runs; then the parameters are freed (under no_sync SHARD_GRAD_OP
 * keeps them to the last micro-step), BACKWARD_POST gathers, and the gradient is divided by one
 * part of the number of ranks, reduce-scattered, divided by the other, cast to the master
 * precision. All-gathers and reduce-scatters share one process group, hence one NCCL stream: they
 * run in issue order. HYBRID_SHARD adds an all-reduce of the shard over the replicas on a second
 * group; NO_SHARD all-reduces instead. LOMO updates a unit's shard as soon as its gradient is
 * reduced, on the post-backward stream (optimizer in backward). CPU offload: a shard is copied to
 * the GPU before it is cast or gathered, its gradient back to the host after reduction, and the
 * host steps. Frozen parameters (adapters beside them) are gathered with those that are trained, in
 * one collective a unit, as FSDP2 does; FSDP1 with peft's wrapping policy would make a unit of
 * every adapter. Under autocast alone (no param_dtype) a unit is gathered in FP32 and its matrices
 * are cast for each pass (autograd keeps the copies for backward); its gradients are FP32. Ignored:
 * use_orig_params, buffers.
 *
 * Expert parallelism: the experts of a block are a unit apart, sharded over the ranks that hold the
 * same (torchtitan's dp_shard_mod_ep, Megatron-FSDP's expert data parallelism), all others over all
 * ranks of data parallelism. Both are gathered when the block begins; its experts are waited for
 * when they are needed, and reduced when the block is done.
 *
 * fully_shard shards every parameter along its rows. What was gathered lies rank by rank and is
 * copied, on the compute stream, into the parameters; gradients are copied straight into what is
 * reduced, in the format of the reduction, on the compute stream too; NCCL divides. The host waits
 * for no limiter: a gather comes after the copy out of the buffer before the last. Ignored: padding
 * by rows, NCCL's own record_stream (TORCH_NCCL_AVOID_RECORD_STREAMS=1, as torchtitan sets it).
 *
 * In a pipeline every model chunk is a root with the blocks in it, and of the model's root what its
 * end needs, both ends of one stage apart (torchtitan; torch/distributed/pipelining/stage.py of
 * PyTorch 2.6, backward_maybe_with_nosync). No backward pass reshards or communicates; behind the
 * last one of a chunk the hooks of all its units are run one after the other, so each unit is
 * reduced once a step, beside nothing of its chunk. Until then gradients are kept unsharded in the
 * format of the reduction, and added to by a kernel for each parameter
 * (to_accumulated_grad_if_needed; differs: under no_sync without a pipeline they are one flat
 * gradient, as FSDP1's). By default forward does not reshard either (reshard_after_forward), so
 * that a unit is gathered once a step, too. */
#include "strategy/fsdp.h"

/* ---- the rate limiter ---- */

static void limiter_all_gather(struct limiter *limiter, struct plan_builder *builder)
{
    /* Op 0 stands in for the one that limiter_resolve finds. */
    int op = plan_host_wait(builder, "limit_all_gathers", 0, 0);
    vec_push(&limiter->events, (struct limiter_event){op, false});
}

static void limiter_free(struct limiter *limiter, plan_wait last_use)
{
    vec_push(&limiter->events, (struct limiter_event){last_use, true});
}

/* An event in the FIFO: the op, and how many steps ago it was put there. */
struct pending {
    int32_t op, age;
};

/* The step is complete: each all-gather learns what it waits for once steps follow each other
 * steadily. */
static void limiter_resolve(
    struct limiter *limiter, struct plan_program *program, int64_t max_inflight)
{
    /* The length at a step's end follows from that at its start and settles within a few steps: it
     * grows only while all-gathers find fewer than max_inflight. The last pass leaves its waits in
     * the plan. */
    enum { PASSES = 4 };
    VEC(struct pending) fifo = {0};
    int first = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        for (int i = first; i < fifo.n; i++)
            fifo.at[i].age++;
        for (int e = 0; e < limiter->events.n; e++) {
            struct limiter_event event = limiter->events.at[e];
            if (event.is_free) {
                vec_push(&fifo, (struct pending){event.op, 0});
                continue;
            }
            struct plan_op *op = &program->ops.at[event.op];
            bool takes = fifo.n > first && fifo.n - first >= max_inflight,
                 waits = takes && fifo.at[first].age < 2;
            /* What was freed two steps ago has long been done. */
            op->kind = waits ? OP_HOST_WAIT : OP_HOST;
            op->n_waits = waits;
            if (waits)
                program->waits.at[op->first_wait] =
                    fifo.at[first].op | (fifo.at[first].age ? PLAN_PREVIOUS_STEP : 0);
            first += takes;
        }
    }
    vec_free(&fifo);
    vec_free(&limiter->events);
}

/* After the optimizer's step: the largest values of all such matrices, one after the other, and of
 * all ranks together (precompute_float8_dynamic_scale_for_fsdp()). */
static void precompute_scales(struct fsdp *fsdp)
{
    struct emit *emit = fsdp->emit;
    int matrices = 0;
    double elements = 0;
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (fsdp_gathers_in_fp8(fsdp, &emit->model->tensors[t])) {
            matrices++;
            elements += (double)emit->model->tensors[t].numel / fsdp->units[0].ranks;
        }
    if (matrices == 0)
        return;
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_NORM, "float8_scales/amax",
        elements * (double)emit->master_bytes, matrices * FLOAT_BYTES);
    if (emit->norm_group != PLAN_NO_OP)
        emit_all_reduce(emit, "float8_scales/all_reduce", matrices * FLOAT_BYTES, emit->norm_group,
            PARALLEL_DATA);
}

/* ---- parameters ---- */

static bool reshards_after_forward(const struct fsdp *fsdp)
{
    int strategy = fsdp->options->sharding_strategy, policy = fsdp->options->reshard_after_forward;
    if (policy != RESHARD_DEFAULT)
        return policy == RESHARD_ALWAYS;
    return (strategy == FULL_SHARD || strategy == HYBRID_SHARD) && !fsdp_is_staged(fsdp);
}

void fsdp_stream_kernel(struct fsdp *fsdp, int stream, enum kernel_kind kind,
    const struct shard_unit *unit, const char *name, double reads, double writes)
{
    emit_stream_kernel(
        fsdp->emit, stream, kind, emit_name(fsdp->emit, unit->layer, name), reads, writes);
}

static int alloc_unsharded(
    struct fsdp *fsdp, int stream, const struct shard_unit *unit, const char *name, int64_t bytes)
{
    return plan_alloc(&fsdp->emit->builder, stream, emit_name(fsdp->emit, unit->layer, name), bytes,
        HBM_GATHERED);
}

/* Where an unshard begins: with the cast or the copy from the host, or with the all-gather itself.
 */
static int unshard_stream(const struct fsdp *fsdp)
{
    return fsdp_casts(fsdp) || fsdp_offloads(fsdp) ? STREAM_UNSHARD : STREAM_COMM;
}

static bool fsdp_gathers(const struct fsdp *fsdp, const struct shard_unit *unit)
{
    return fsdp_shards(unit) || fsdp_casts(fsdp) || fsdp_offloads(fsdp);
}

/* _wait_for_computation_stream, in the root's forward pass: nothing is unsharded before all that
 * was computed is done. In the first micro-batch that is the optimizer of the step before (its op
 * is set by plan_link_steps), in others the backward pass with its last reduction, which the final
 * callback has made the compute stream wait for. */
static void wait_for_computation(struct fsdp *fsdp)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    int stream = unshard_stream(fsdp);
    if (!fsdp_gathers(fsdp, &fsdp->units[0]))
        return;
    plan_stream_wait(builder, stream,
        fsdp->emit->on_first ? PLAN_LAST_STEP : plan_last_op(builder, STREAM_COMPUTE));
    if (!fsdp->emit->on_first)
        plan_stream_wait(builder, stream, plan_last_op(builder, STREAM_POST));
}

/* This rank's part as the all-gather takes it: copied from the host, cast, or as it lies, which is
 * PLAN_NO_OP. */
static int prepare_shard(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    int shard = PLAN_NO_OP;
    if (fsdp_offloads(fsdp)) {
        shard = alloc_unsharded(fsdp, STREAM_UNSHARD, unit, "shard_from_host", unit->kept_shard);
        emit_host_copy(emit, STREAM_UNSHARD, emit_name(emit, unit->layer, "host_to_device"),
            (double)unit->kept_shard);
    }
    if (fsdp_casts(fsdp)) {
        int fetched = shard;
        const char *name = fsdp_shards(unit) ? "mp_shard" : "unsharded_flat_param";
        shard = alloc_unsharded(fsdp, STREAM_UNSHARD, unit, name, unit->used_shard);
        fsdp_stream_kernel(fsdp, STREAM_UNSHARD, KERNEL_COPY, unit, "cast_shard",
            (double)unit->kept_shard, (double)unit->used_shard);
        plan_free(&emit->builder, fetched, PLAN_NO_OP);
    }
    unit->ready_op =
        shard == PLAN_NO_OP ? PLAN_NO_OP : plan_last_op(&emit->builder, STREAM_UNSHARD);
    return shard;
}

static void fsdp_unshard(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    if (unit->ready)
        return;
    unit->ready = true;
    unit->ready_op = PLAN_NO_OP;
    if (!fsdp_gathers(fsdp, unit) || unit->used_shard == 0)
        return;
    bool flat = fsdp_shards(unit) && !fsdp_by_parameter(fsdp, unit);
    int shard = prepare_shard(fsdp, unit);
    if (flat && fsdp->options->limit_all_gathers)
        limiter_all_gather(&fsdp->limiter, builder);
    if (!fsdp_shards(unit)) {
        unit->gathered = shard;
        return;
    }
    int64_t bytes = unit->used_shard * unit->ranks;
    /* fully_shard makes what it casts and what it gathers on one stream */
    int stream = flat ? STREAM_COMM : STREAM_UNSHARD;
    unit->gathered = alloc_unsharded(fsdp, stream, unit, "unsharded_flat_param", bytes);
    unit->ready_op = emit_collective(fsdp->emit, STREAM_COMM, unit->ready_op,
        emit_name(fsdp->emit, unit->layer, "all_gather"), COLL_ALL_GATHER, (double)bytes,
        unit->group);
    plan_free(builder, shard, unit->ready_op);
}

/* fully_shard: the streams of all-gathers wait until the gathered buffer has been copied out, then
 * it is theirs again. */
static void free_gathered(struct fsdp *fsdp)
{
    if (fsdp->copied_out != PLAN_NO_OP)
        plan_stream_wait(&fsdp->emit->builder, unshard_stream(fsdp), fsdp->copied_out);
    fsdp->copied_out = PLAN_NO_OP;
    emit_free(fsdp->emit, &fsdp->gathered, PLAN_NO_OP);
}

/* fully_shard: from the order of the ranks into that of the parameters. In forward the gathered
 * buffer is kept until the next unit's comes to be copied (all_gather_state), so that its gather
 * does not wait for this copy. */
static void copy_out(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    int64_t bytes = unit->used_shard * unit->ranks;
    const char *name = emit_name(fsdp->emit, unit->layer, "params");
    free_gathered(fsdp);
    int params = plan_alloc(builder, STREAM_COMPUTE, name, bytes, HBM_GATHERED);
    fsdp_stream_kernel(
        fsdp, STREAM_COMPUTE, KERNEL_COPY, unit, "copy_out", (double)bytes, (double)bytes);
    fsdp->gathered = unit->gathered;
    fsdp->copied_out = plan_last_op(builder, STREAM_COMPUTE);
    if (builder->phase != PHASE_FORWARD)
        free_gathered(fsdp);
    unit->gathered = params;
}

static void wait_unsharded(struct fsdp *fsdp, struct shard_unit *unit)
{
    bool arrives = unit->ready_op != PLAN_NO_OP;
    plan_stream_wait(&fsdp->emit->builder, STREAM_COMPUTE, unit->ready_op);
    unit->ready_op = PLAN_NO_OP; /* later kernels come after the one that waited */
    if (arrives && fsdp_by_parameter(fsdp, unit))
        copy_out(fsdp, unit);
}

static void reshard(struct fsdp *fsdp, struct shard_unit *unit)
{
    plan_wait last = plan_last_op(&fsdp->emit->builder, STREAM_COMPUTE);
    bool limits = unit->gathered != PLAN_NO_OP && fsdp_shards(unit);
    /* fully_shard's parameters are the compute stream's own */
    emit_free(fsdp->emit, &unit->gathered, fsdp_by_parameter(fsdp, unit) ? PLAN_NO_OP : last);
    if (limits)
        limiter_free(&fsdp->limiter, last);
    unit->ready = false;
}

/* FSDP1's _should_free_in_backward: what stays gathered after forward stays so after a backward
 * pass without communication, too. */
static void reshard_after_backward(struct fsdp *fsdp, struct shard_unit *unit)
{
    bool kept = fsdp->options->version == 1 && fsdp_shards(unit) && !fsdp_synchronises(fsdp) &&
                !reshards_after_forward(fsdp);
    if (!kept)
        reshard(fsdp, unit);
}

static bool autocasts(const struct fsdp *fsdp)
{
    return fsdp->gather_bytes != fsdp->emit->param_bytes;
}

static void cast_unit(struct fsdp *fsdp, struct shard_unit *unit)
{
    if (autocasts(fsdp))
        unit->cast = emit_autocast_weights(fsdp->emit, unit->layer);
}

static void host_hook(struct fsdp *fsdp, const struct shard_unit *unit, const char *name)
{
    struct emit *emit = fsdp->emit;
    plan_host(&emit->builder, emit_name(emit, unit->layer, name), emit->options->host.unit_hook_s);
}

static struct shard_unit *unit_of(struct fsdp *fsdp, int segment)
{
    int layer = fsdp->emit->segments.at[segment].layer;
    return layer == 0 && fsdp->head && segment >= fsdp->emit->chunk_begin[1] ? fsdp->head
                                                                             : &fsdp->units[layer];
}

/* The experts of the same block; NULL: there are none apart. */
static struct shard_unit *experts_of(struct fsdp *fsdp, const struct shard_unit *unit)
{
    int at = fsdp->emit->model->n_layers + unit->layer;
    return at < fsdp->n_units && fsdp->units[at].used_shard > 0 ? &fsdp->units[at] : NULL;
}

/* A layer's parameters, and of its experts those that are apart. */
static void unshard_layer(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct shard_unit *experts = experts_of(fsdp, unit);
    fsdp_unshard(fsdp, unit);
    if (experts)
        fsdp_unshard(fsdp, experts);
}

/* The unit of the chunk's next block after a segment in a direction is gathered ahead, where it is
 * time for that. */
static void fsdp_prefetch(struct fsdp *fsdp, int segment, int direction, bool now)
{
    const int *chunk = &fsdp->emit->chunk_begin[fsdp->emit->cell.chunk];
    for (int s = segment + direction; now && s >= chunk[0] && s < chunk[1]; s += direction)
        if (unit_of(fsdp, s)->layer != 0) {
            unshard_layer(fsdp, unit_of(fsdp, s));
            return;
        }
}

/* Of the chunk that the cell goes through: a segment of the model's root; -1: it has none. */
static int root_segment(const struct emit *emit)
{
    for (int s = emit->chunk_begin[emit->cell.chunk]; s < emit->chunk_begin[emit->cell.chunk + 1];
         s++)
        if (emit->segments.at[s].layer == 0 && emit->segments.at[s].kind != SEGMENT_BORDER)
            return s;
    return -1;
}

/* A chunk is its own root: gathers wait for what was computed, and what it has of the model's root
 * comes first. */
static void fsdp_forward_begins(struct emit *emit)
{
    struct fsdp *fsdp = emit->state;
    if (!fsdp_is_staged(fsdp))
        return;
    host_hook(fsdp, &fsdp->units[0], "pre_forward");
    wait_for_computation(fsdp);
    int root = root_segment(emit);
    if (root < 0)
        return;
    fsdp_unshard(fsdp, unit_of(fsdp, root));
    wait_unsharded(fsdp, unit_of(fsdp, root));
}

static void fsdp_before_forward(struct emit *emit, int segment)
{
    struct fsdp *fsdp = emit->state;
    struct shard_unit *unit = unit_of(fsdp, segment);
    if (!emit_opens_layer(emit, segment) || (unit->layer == 0 && fsdp_is_staged(fsdp)))
        return;
    host_hook(fsdp, unit, "pre_forward");
    if (unit->layer == 0)
        wait_for_computation(fsdp);
    unshard_layer(fsdp, unit);
    wait_unsharded(fsdp, unit);
    fsdp_prefetch(fsdp, segment, 1, unit->layer != 0 && fsdp->options->forward_prefetch);
    cast_unit(fsdp, unit);
}

static void fsdp_after_forward(struct emit *emit, int segment)
{
    struct fsdp *fsdp = emit->state;
    struct shard_unit *unit = unit_of(fsdp, segment);
    if (unit->layer != 0) {
        if (emit_recomputes(emit, segment))
            emit_free(emit, &unit->cast, PLAN_NO_OP);
        host_hook(fsdp, unit, "post_forward");
        if (reshards_after_forward(fsdp)) {
            reshard(fsdp, unit);
            if (experts_of(fsdp, unit))
                reshard(fsdp, experts_of(fsdp, unit));
        }
    }
    if (segment + 1 == emit->chunk_begin[emit->cell.chunk + 1])
        free_gathered(fsdp);
}

static void fsdp_before_backward(struct emit *emit, int segment)
{
    struct fsdp *fsdp = emit->state;
    struct shard_unit *unit = unit_of(fsdp, segment);
    if (unit->layer == 0) /* the root has stayed gathered */
        return;
    host_hook(fsdp, unit, "pre_backward");
    unshard_layer(fsdp, unit);
    wait_unsharded(fsdp, unit);
    fsdp_prefetch(fsdp, segment, -1, fsdp->options->backward_prefetch == BACKWARD_PRE);
    if (emit_recomputes(emit, segment))
        cast_unit(fsdp, unit);
}

static void fsdp_after_backward(struct emit *emit, int segment)
{
    struct fsdp *fsdp = emit->state;
    struct shard_unit *unit = unit_of(fsdp, segment);
    struct shard_unit *experts = experts_of(fsdp, unit);
    if (!emit_opens_layer(emit, segment) || emit->cell.kind == CELL_BACKWARD_INPUT)
        return;
    emit_free(emit, &unit->cast, PLAN_NO_OP);
    fsdp_join_gradients(fsdp, unit);
    if (experts)
        fsdp_join_gradients(fsdp, experts);
    host_hook(fsdp, unit, "post_backward");
    if (fsdp_is_staged(fsdp))
        return;
    reshard_after_backward(fsdp, unit);
    if (experts)
        reshard_after_backward(fsdp, experts);
    fsdp_prefetch(fsdp, segment, -1, fsdp->options->backward_prefetch == BACKWARD_POST);
    if (experts)
        fsdp_reduce(fsdp, experts);
    fsdp_reduce(fsdp, unit);
}

static void param_needed(struct emit *emit, int tensor)
{
    struct fsdp *fsdp = emit->state;
    for (int u = emit->model->n_layers; u < fsdp->n_units; u++) {
        struct shard_unit *unit = &fsdp->units[u];
        if (tensor >= unit->first_tensor && tensor < unit->first_tensor + unit->n_tensors &&
            fsdp_holds(unit, &emit->model->tensors[tensor]))
            wait_unsharded(fsdp, unit);
    }
}

static void post_backward(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct shard_unit *experts = experts_of(fsdp, unit);
    host_hook(fsdp, unit, "post_backward");
    reshard(fsdp, unit);
    if (experts) {
        reshard(fsdp, experts);
        fsdp_reduce(fsdp, experts);
    }
    fsdp_reduce(fsdp, unit);
}

/* run_post_backward(): the units of the chunk, its root first. */
static void reduce_chunk(struct fsdp *fsdp)
{
    const struct emit *emit = fsdp->emit;
    int begin = emit->chunk_begin[emit->cell.chunk], end = emit->chunk_begin[emit->cell.chunk + 1];
    int root = root_segment(emit);
    fsdp->ends_chunk = true;
    if (root >= 0)
        post_backward(fsdp, unit_of(fsdp, root));
    for (int s = begin; s < end; s++)
        if (emit->segments.at[s].layer != 0)
            post_backward(fsdp, unit_of(fsdp, s));
    fsdp->ends_chunk = false;
}

/* The final callback: the compute stream waits for the post-backward stream, and for what that has
 * waited for. */
static void fsdp_backward_ends(struct emit *emit)
{
    struct fsdp *fsdp = emit->state;
    if (emit->cell.kind == CELL_BACKWARD_INPUT)
        return;
    if (fsdp_is_staged(fsdp) && emit->on_last)
        reduce_chunk(fsdp);
    plan_stream_wait_stream(&emit->builder, STREAM_COMPUTE, STREAM_POST);
    fsdp_free_scattered(fsdp);
}

static void fsdp_grad_begins(struct emit *emit, int tensor)
{
    struct fsdp *fsdp = emit->state;
    emit_alloc_grad(
        emit, tensor, emit->model->tensors[tensor].numel * fsdp->gather_bytes, HBM_GATHERED);
}

/* The flat gradient is complete when the unit is: see flat_gradient. */
static void fsdp_grad_ready(struct emit *emit, int tensor)
{
    struct fsdp *fsdp = emit->state;
    const struct model_tensor *at = &emit->model->tensors[tensor];
    if (autocasts(fsdp)) /* backward of the cast; the product wrote low precision */
        plan_kernel(&emit->builder, STREAM_COMPUTE,
            arena_printf(emit->arena, "%s/cast_grad", at->name),
            kernel_stream(KERNEL_COPY, (double)(at->numel * emit->param_bytes),
                (double)(at->numel * fsdp->gather_bytes), 0),
            emit->options->host.backward_issue_s);
}

/* What a unit is gathered and reduced in. TorchRec and FSDP share the default process group, hence
 * a NCCL stream, unless FSDP makes separate groups. With those a model's communication takes the
 * stream of the replicas, which PyTorch would leave alone. */
static void setup_communication(struct fsdp *fsdp)
{
    static const int64_t reduce_bytes[REDUCE_DTYPE_COUNT] = {
        [REDUCE_FP32] = 4, [REDUCE_BF16] = 2, [REDUCE_FP16] = 2};
    struct emit *emit = fsdp->emit;
    int reduce_dtype = fsdp->options->reduce_dtype;
    fsdp->gather_bytes = emit->options->train.autocast ? emit->master_bytes : emit->param_bytes;
    fsdp->reduce_bytes =
        reduce_dtype == REDUCE_PARAM_DTYPE ? fsdp->gather_bytes : reduce_bytes[reduce_dtype];
    if (emit_degree(emit, AXES_SHARD) > 1 && emit_degree(emit, 1 << AXIS_DP_REPLICATE) > 1)
        emit->comm_queue = STREAM_REPLICATE;
}

static void fsdp_setup(struct emit *emit)
{
    struct fsdp *fsdp = emit->state;
    *fsdp = (struct fsdp){.emit = emit,
        .options = &emit->options->fsdp,
        .scattering = PLAN_NO_OP,
        .gathered = PLAN_NO_OP,
        .copied_out = PLAN_NO_OP};
    setup_communication(fsdp);
    fsdp_lay_out_units(fsdp);
}

static void fsdp_step_ends(struct emit *emit)
{
    struct fsdp *fsdp = emit->state;
    if (fsdp_offloads(fsdp))
        emit_host_optimizer(emit, fsdp->shards, fsdp->n_shards,
            emit->options->train.optimizer_impl == OPTIMIZER_FUSED,
            plan_last_op(&emit->builder, STREAM_POST));
    else {
        emit_first_state(emit, fsdp->shards, fsdp->n_shards);
        emit_optimizer(emit, fsdp->shards, fsdp->n_shards);
        precompute_scales(fsdp);
    }
    for (int u = 0; u < fsdp->n_units; u++) /* zero_grad(set_to_none=True) */
        plan_free(&emit->builder, fsdp->units[u].sharded_grad,
            plan_last_op(&emit->builder, STREAM_COMPUTE));
    bool on_compute = !emit_updates_in_backward(emit) && !fsdp_offloads(fsdp);
    plan_link_steps(
        &emit->builder, plan_last_op(&emit->builder, on_compute ? STREAM_COMPUTE : STREAM_POST));
    limiter_resolve(&fsdp->limiter, emit->builder.program, fsdp->options->max_inflight_all_gathers);
}

/* ---- settings ---- */

const char *const sharding_strategy_names[] = {
    "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", NULL};
const char *const backward_prefetch_names[] = {"BACKWARD_PRE", "BACKWARD_POST", "None", NULL};
const char *const reduce_dtype_names[] = {"param_dtype", "fp32", "bf16", "fp16", NULL};
const char *const reshard_after_forward_names[] = {"default", "always", "never", NULL};

static const struct config_field fsdp_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/fsdp_settings.h"
};
const struct config_table fsdp_table = CONFIG_TABLE("'fsdp'", fsdp_fields);

const struct fsdp_options fsdp_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "strategy/fsdp_settings.h"
};

static const char *fsdp_label_of(const struct strategy_options *options)
{
    return sharding_strategy_names[options->fsdp.sharding_strategy];
}

static int fsdp_shard_ranks(const struct strategy_options *options, const struct hw *hw, int ranks)
{
    int strategy = options->fsdp.sharding_strategy;
    bool hybrid = strategy == HYBRID_SHARD || strategy == HYBRID_SHARD_ZERO2;
    int64_t group = options->fsdp.sharding_group_size ? options->fsdp.sharding_group_size
                                                      : hw_gpus_per_node(hw);
    return strategy == NO_SHARD ? 1 : hybrid ? (int)group : ranks;
}

const struct data_parallel fsdp_hooks = {.state_size = sizeof(struct fsdp),
    .label_of = fsdp_label_of,
    .shard_ranks = fsdp_shard_ranks,
    .section = "fsdp",
    .takes = 1U << PARALLEL_TENSOR | 1U << PARALLEL_CONTEXT | 1U << PARALLEL_PIPELINE |
             1U << PARALLEL_EXPERT,
    .clips_by_option = true,
    .changes_ops = true,
    .setup = fsdp_setup,
    .forward_begins = fsdp_forward_begins,
    .before_forward = fsdp_before_forward,
    .after_forward = fsdp_after_forward,
    .before_backward = fsdp_before_backward,
    .after_backward = fsdp_after_backward,
    .backward_ends = fsdp_backward_ends,
    .step_ends = fsdp_step_ends,
    .param_needed = param_needed,
    .grad_begins = fsdp_grad_begins,
    .grad_ready = fsdp_grad_ready};
