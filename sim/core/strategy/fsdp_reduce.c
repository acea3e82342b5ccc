/* FSDP: the way of gradients out of a unit. See fsdp.c for the rest.
 *
 * FSDP1 joins the gradients of a unit's tensors to a flat one, casts and divides it on the
 * post-backward stream, and reduce-scatters it. fully_shard copies the gradients of parameters into
 * the input of the reduce-scatter on the compute stream, and lets NCCL divide. Both then all-reduce
 * over replicas (HYBRID_SHARD) and end in keep_shard(): the shard is divided by the rest, cast, and
 * added to what earlier micro-batches left, or goes to the host, or is used up at once (LOMO).
 *
 * Subtle: which op a buffer is freed after decides the peak of memory. The input of fully_shard's
 * reduce-scatter is freed when the next unit needs one, and the compute stream waits for the
 * reduction first (fsdp_free_scattered()). */
#include "strategy/fsdp.h"
#include "strategy/muon.h"

/* FSDP1 divides gradients by a power of two before the sum over the ranks, and by the rest after
 * it, so that neither overflows (DefaultState._get_gradient_predivide_factor); what is divided by
 * one is left alone. fully_shard lets NCCL divide. */
struct division {
    bool before, after;
};

static struct division division_of(const struct fsdp *fsdp, const struct shard_unit *unit)
{
    int ranks = unit->ranks * unit->replicas, factor = 1;
    while (ranks % factor == 0 && ranks / factor > factor)
        factor *= 2;
    bool divides = !fsdp_by_parameter(fsdp, unit);
    return (struct division){divides && factor > 1, divides && ranks > factor};
}

static void drop_tensor_grads(struct fsdp *fsdp, const struct shard_unit *unit)
{
    for (int t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++)
        if (fsdp_holds(unit, &fsdp->emit->model->tensors[t]))
            emit_free(fsdp->emit, &fsdp->emit->grads[t], PLAN_NO_OP);
}

/* The gradients of the unit's tensors become one flat gradient (backward of the split into views).
 */
static int flat_gradient(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    int64_t bytes = unit->padded * fsdp->gather_bytes;
    /* Without sharding and casting the flat gradient is what the optimizer reads. */
    bool is_final =
        !fsdp_shards(unit) && !fsdp_casts(fsdp) && fsdp->reduce_bytes == emit->master_bytes;
    int flat = plan_alloc(&emit->builder, STREAM_COMPUTE, emit_name(emit, unit->layer, "flat_grad"),
        bytes, is_final ? HBM_GRADIENTS : HBM_GATHERED);
    fsdp_stream_kernel(
        fsdp, STREAM_COMPUTE, KERNEL_COPY, unit, "cat_grads", (double)bytes, (double)bytes);
    drop_tensor_grads(fsdp, unit);
    if (unit->unsharded_grad == PLAN_NO_OP)
        return flat;
    /* accumulated without communication before */
    fsdp_stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_ELEMENTWISE, unit, "accumulate",
        2 * (double)bytes, (double)bytes);
    plan_free(&emit->builder, flat, PLAN_NO_OP);
    return unit->unsharded_grad;
}

/* fully_shard in a pipeline: the gradients of a micro-batch go into the sum, a kernel each; the
 * first are cast, where the reduction has another format, and else stay. */
static void accumulate(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    bool first = unit->unsharded_grad == PLAN_NO_OP;
    if (first)
        unit->unsharded_grad = plan_alloc(&emit->builder, STREAM_COMPUTE,
            emit_name(emit, unit->layer, "unsharded_accumulated_grad"),
            unit->padded * fsdp->reduce_bytes, HBM_GRADIENTS);
    for (int t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct model_tensor *tensor = &emit->model->tensors[t];
        double made = (double)(tensor->numel * fsdp->gather_bytes),
               sum = (double)(tensor->numel * fsdp->reduce_bytes);
        if (!tensor->frozen && !(first && fsdp->reduce_bytes == fsdp->gather_bytes))
            fsdp_stream_kernel(fsdp, STREAM_COMPUTE, first ? KERNEL_COPY : KERNEL_ELEMENTWISE, unit,
                "accumulate_grad", first ? made : made + sum, sum);
    }
    drop_tensor_grads(fsdp, unit);
}

void fsdp_join_gradients(struct fsdp *fsdp, struct shard_unit *unit)
{
    bool by_parameter = fsdp_by_parameter(fsdp, unit);
    bool straight = by_parameter && fsdp_synchronises(fsdp) && unit->unsharded_grad == PLAN_NO_OP;
    if (unit->padded == 0 || straight)
        return;
    if (by_parameter && fsdp_is_staged(fsdp))
        accumulate(fsdp, unit);
    else
        unit->unsharded_grad = flat_gradient(fsdp, unit);
}

/* What is complete after ready goes to the ranks that share the unit, or where nothing is sharded
 * to all. */
static plan_wait fsdp_reduce_scatter(
    struct fsdp *fsdp, const struct shard_unit *unit, plan_wait ready)
{
    bool shards = fsdp_shards(unit);
    plan_wait op = emit_collective(fsdp->emit, STREAM_COMM, ready,
        emit_name(fsdp->emit, unit->layer, shards ? "reduce_scatter" : "all_reduce"),
        shards ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, (double)(unit->padded * fsdp->reduce_bytes),
        shards ? unit->group : unit->replicate_group);
    return op != PLAN_NO_OP ? op : ready;
}

/* Gradients over the replicas (HYBRID_SHARD), after the reduce-scatter. */
static plan_wait reduce_replicas(
    struct fsdp *fsdp, const struct shard_unit *unit, plan_wait scattered)
{
    struct emit *emit = fsdp->emit;
    if (unit->replicas == 1 || !fsdp_shards(unit))
        return scattered;
    return emit_collective(emit, STREAM_REPLICATE, scattered,
        emit_name(emit, unit->layer, "all_reduce"), COLL_ALL_REDUCE,
        (double)(unit->shard * fsdp->reduce_bytes), unit->replicate_group);
}

static int alloc_reduced(struct fsdp *fsdp, const struct shard_unit *unit)
{
    bool is_master = fsdp->reduce_bytes == fsdp->emit->master_bytes;
    return plan_alloc(&fsdp->emit->builder, STREAM_POST,
        emit_name(fsdp->emit, unit->layer, "reduced_shard"), unit->shard * fsdp->reduce_bytes,
        is_master ? HBM_GRADIENTS : HBM_GATHERED);
}

/* The reduced shard, divided by what it was not divided by before, in the precision of the
 * parameters, added to what earlier micro-batches left. */
static void keep_shard(struct fsdp *fsdp, struct shard_unit *unit, int reduced, plan_wait last)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    double master = (double)(unit->shard * emit->master_bytes),
           wire = (double)(unit->shard * fsdp->reduce_bytes);
    int kept = reduced;
    plan_stream_wait(builder, STREAM_POST, last);
    if (division_of(fsdp, unit).after)
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, unit, "postdivide", wire, wire);
    if (fsdp->reduce_bytes != emit->master_bytes) {
        kept = plan_alloc(builder, STREAM_POST, emit_name(emit, unit->layer, "sharded_grad"),
            unit->shard * emit->master_bytes, HBM_GRADIENTS);
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_COPY, unit, "cast_sharded_grad", wire, master);
        plan_free(builder, reduced, last);
    }
    if (unit->sharded_grad != PLAN_NO_OP) {
        fsdp_stream_kernel(
            fsdp, STREAM_POST, KERNEL_ELEMENTWISE, unit, "accumulate_shard", 2 * master, master);
        plan_free(builder, kept, PLAN_NO_OP);
    } else {
        unit->sharded_grad = kept;
    }
    if (fsdp_offloads(fsdp))
        emit_host_copy(emit, STREAM_POST, emit_name(emit, unit->layer, "device_to_host"), master);
    else if (emit_updates_in_backward(emit))
        emit_update(emit, STREAM_POST, unit->shard);
    else
        return;
    emit_free(emit, &unit->sharded_grad, plan_last_op(builder, STREAM_POST));
}

/* A unit's gradients on their way to the reduction. */
struct outgoing {
    int grads, wire; /* buffers: as backward leaves them; as they travel, often the same */
    plan_wait ready; /* wire is complete */
};

/* The flat gradient in the format of the reduction, divided so that the sum does not overflow. */
static struct outgoing divide_flat(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    int flat = unit->unsharded_grad;
    unit->unsharded_grad = PLAN_NO_OP;
    struct outgoing out = {
        .grads = flat, .wire = flat, .ready = plan_last_op(&emit->builder, STREAM_COMPUTE)};
    plan_stream_wait(&emit->builder, STREAM_POST, out.ready);
    double numel = (double)unit->padded, bytes = numel * (double)fsdp->reduce_bytes;
    bool casts = fsdp->reduce_bytes != fsdp->gather_bytes, divides = division_of(fsdp, unit).before;
    if (casts) {
        out.wire = plan_alloc(&emit->builder, STREAM_POST,
            emit_name(emit, unit->layer, "reduce_dtype_grad"), (int64_t)bytes, HBM_GATHERED);
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_COPY, unit, "cast_grad",
            numel * (double)fsdp->gather_bytes, bytes);
    }
    if (divides)
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, unit, "predivide", bytes, bytes);
    if (casts || divides)
        out.ready = plan_last_op(&emit->builder, STREAM_POST);
    return out;
}

/* FSDP1, and what is not sharded. FSDP1's hook holds autograd's gradient to its end and then gives
 * it up to the post-backward stream (record_stream), where by now all that follows the reduction
 * has been issued. */
static void reduce_flat(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    bool shards = fsdp_shards(unit);
    struct outgoing out = divide_flat(fsdp, unit);
    int reduced = shards ? alloc_reduced(fsdp, unit) : out.wire;
    plan_wait last = fsdp_reduce_scatter(fsdp, unit, out.ready);
    if (shards && out.wire != out.grads)
        plan_free(builder, out.wire, last);
    last = reduce_replicas(fsdp, unit, last);
    keep_shard(fsdp, unit, reduced, last);
    plan_wait posted = plan_last_op(builder, STREAM_POST);
    if (shards || out.wire != out.grads)
        plan_free(builder, out.grads, posted > last ? posted : last);
}

void fsdp_free_scattered(struct fsdp *fsdp)
{
    if (fsdp->scattering != PLAN_NO_OP)
        plan_stream_wait(&fsdp->emit->builder, STREAM_COMPUTE, fsdp->scattered);
    emit_free(fsdp->emit, &fsdp->scattering, PLAN_NO_OP);
}

/* fully_shard: the gradients of the parameters, or in a pipeline their sums, rank by rank, in the
 * format of the reduction, which keeps them. */
static plan_wait copy_in(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct emit *emit = fsdp->emit;
    bool kept = unit->unsharded_grad != PLAN_NO_OP;
    int64_t to = unit->padded * fsdp->reduce_bytes,
            from = kept ? to : unit->padded * fsdp->gather_bytes;
    const char *name = emit_name(emit, unit->layer, "reduce_scatter_input");
    fsdp_free_scattered(fsdp);
    fsdp->scattering = plan_alloc(&emit->builder, STREAM_COMPUTE, name, to, HBM_GATHERED);
    fsdp_stream_kernel(
        fsdp, STREAM_COMPUTE, KERNEL_COPY, unit, "copy_in", (double)from, (double)to);
    drop_tensor_grads(fsdp, unit);
    emit_free(emit, &unit->unsharded_grad, PLAN_NO_OP);
    return plan_last_op(&emit->builder, STREAM_COMPUTE);
}

/* fully_shard. What was kept under no_sync is one flat gradient already. */
static void reduce_by_parameter(struct fsdp *fsdp, struct shard_unit *unit)
{
    struct plan_builder *builder = &fsdp->emit->builder;
    bool flat = unit->unsharded_grad != PLAN_NO_OP && !fsdp_is_staged(fsdp);
    struct outgoing out = {PLAN_NO_OP, PLAN_NO_OP, PLAN_NO_OP};
    if (flat)
        out = divide_flat(fsdp, unit);
    else
        out.ready = copy_in(fsdp, unit);
    int reduced = alloc_reduced(fsdp, unit);
    plan_wait last = fsdp_reduce_scatter(fsdp, unit, out.ready);
    if (!flat)
        fsdp->scattered = last;
    if (out.wire != out.grads)
        plan_free(builder, out.wire, last);
    plan_free(builder, out.grads, last);
    keep_shard(fsdp, unit, reduced, reduce_replicas(fsdp, unit, last));
}

void fsdp_reduce(struct fsdp *fsdp, struct shard_unit *unit)
{
    if (unit->padded == 0 || !fsdp_synchronises(fsdp))
        return;
    if (fsdp_by_parameter(fsdp, unit))
        reduce_by_parameter(fsdp, unit);
    else
        reduce_flat(fsdp, unit);
}

void fsdp_add_shards(struct fsdp *fsdp, const struct shard_unit *unit)
{
    const struct emit *emit = fsdp->emit;
    int64_t matrices = 0;
    for (int t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        struct optimizer_tensor tensor =
            muon_tensor(emit->model, emit->options->train.optimizer, &emit->model->tensors[t]);
        if (tensor.matrices == 0 || emit->model->tensors[t].frozen ||
            !fsdp_holds(unit, &emit->model->tensors[t]))
            continue;
        tensor.ranks = unit->ranks;
        tensor.group = unit->group;
        matrices += optimizer_numel(tensor);
        fsdp->shards[fsdp->n_shards++] = tensor;
    }
    if (unit->shard > matrices)
        fsdp->shards[fsdp->n_shards++] = optimizer_vector(unit->shard - matrices);
}
