/* FSDP: the way of gradients out of a unit. See fsdp.c. */
#include "strategy/fsdp.h"

/* FSDP1 divides gradients by a power of two before the sum over so many ranks, and by the rest after it, so that
 * neither overflows (DefaultState._get_gradient_predivide_factor); what is divided by one is left alone. fully_shard
 * lets NCCL divide. */
struct division {
    bool before, after;
};

static struct division division_of(const struct fsdp *fsdp)
{
    int ranks = (int)(fsdp->shard_ranks * fsdp->replicas), factor = 1;
    while (ranks % factor == 0 && ranks / factor > factor)
        factor *= 2;
    bool divides = !fsdp_by_parameter(fsdp);
    return (struct division){divides && factor > 1, divides && ranks > factor};
}

static void drop_tensor_grads(struct fsdp *fsdp, int layer)
{
    const struct model_layer *at = &fsdp->emit->model->layers[layer];
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        plan_free(&fsdp->emit->builder, fsdp->tensor_grads[t], PLAN_NO_OP);
        fsdp->tensor_grads[t] = PLAN_NO_OP;
    }
}

/* The gradients of the unit's tensors become one flat gradient (backward of the split into views). */
static int flat_gradient(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    struct fsdp_unit *unit = &fsdp->units[layer];
    double bytes = (double)(unit->padded * fsdp->gather_bytes);
    /* Without sharding and casting the flat gradient is what the optimizer reads. */
    bool is_final = !fsdp_shards(fsdp) && !fsdp_casts(fsdp) && fsdp->reduce_bytes == emit->master_bytes;
    int flat = plan_alloc(&emit->builder, STREAM_COMPUTE, emit_name(emit, layer, "flat_grad"),
        unit->padded * fsdp->gather_bytes, is_final ? HBM_GRADIENTS : HBM_GATHERED);
    fsdp_stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_COPY, layer, "cat_grads", bytes, bytes);
    drop_tensor_grads(fsdp, layer);
    if (unit->unsharded_grad != PLAN_NO_OP) { /* accumulated without communication before */
        fsdp_stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_ELEMENTWISE, layer, "accumulate", 2 * bytes, bytes);
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
    if (fsdp->replicas == 1 || !fsdp_shards(fsdp))
        return scattered;
    plan_stream_wait(&emit->builder, STREAM_REPLICATE, scattered);
    return plan_collective(&emit->builder, STREAM_REPLICATE, emit_name(emit, layer, "all_reduce"), COLL_ALL_REDUCE,
        (double)(fsdp->units[layer].shard * fsdp->reduce_bytes), fsdp->replicate_group,
        emit->options->host.collective_issue_s);
}

/* The reduced shard, divided by what it was not divided by before, in the precision of the parameters, added to what
 * earlier micro-steps left. */
static void keep_shard(struct fsdp *fsdp, int layer, int reduced, plan_wait last)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    struct fsdp_unit *unit = &fsdp->units[layer];
    double master = (double)(unit->shard * emit->master_bytes), wire = (double)(unit->shard * fsdp->reduce_bytes);
    int kept = reduced;
    plan_stream_wait(builder, STREAM_POST, last);
    if (division_of(fsdp).after)
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, layer, "postdivide", wire, wire);
    if (fsdp->reduce_bytes != emit->master_bytes) {
        kept = plan_alloc(builder, STREAM_POST, emit_name(emit, layer, "sharded_grad"),
            unit->shard * emit->master_bytes, HBM_GRADIENTS);
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_COPY, layer, "cast_sharded_grad", wire, master);
        plan_free(builder, reduced, last);
    }
    if (unit->sharded_grad != PLAN_NO_OP) {
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, layer, "accumulate_shard", 2 * master, master);
        plan_free(builder, kept, PLAN_NO_OP);
    } else {
        unit->sharded_grad = kept;
    }
    if (fsdp_offloads(fsdp)) {
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

/* A unit's gradients on their way to the reduction. */
struct outgoing {
    int grads, wire; /* buffers: as backward leaves them; as they travel, often the same */
    plan_wait ready; /* wire is complete */
};

/* The flat gradient in the format of the reduction, divided so that the sum does not overflow. */
static struct outgoing divide_flat(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    int flat = fsdp->units[layer].unsharded_grad;
    fsdp->units[layer].unsharded_grad = PLAN_NO_OP;
    struct outgoing out = {.grads = flat, .wire = flat, .ready = plan_last_op(&emit->builder, STREAM_COMPUTE)};
    plan_stream_wait(&emit->builder, STREAM_POST, out.ready);
    double numel = (double)fsdp->units[layer].padded, bytes = numel * (double)fsdp->reduce_bytes;
    bool casts = fsdp->reduce_bytes != fsdp->gather_bytes, divides = division_of(fsdp).before;
    if (casts) {
        out.wire = plan_alloc(
            &emit->builder, STREAM_POST, emit_name(emit, layer, "reduce_dtype_grad"), (int64_t)bytes, HBM_GATHERED);
        fsdp_stream_kernel(
            fsdp, STREAM_POST, KERNEL_COPY, layer, "cast_grad", numel * (double)fsdp->gather_bytes, bytes);
    }
    if (divides)
        fsdp_stream_kernel(fsdp, STREAM_POST, KERNEL_ELEMENTWISE, layer, "predivide", bytes, bytes);
    if (casts || divides)
        out.ready = plan_last_op(&emit->builder, STREAM_POST);
    return out;
}

void fsdp_let_go_of_input(struct fsdp *fsdp)
{
    if (fsdp->scattering != PLAN_NO_OP)
        plan_stream_wait(&fsdp->emit->builder, STREAM_COMPUTE, fsdp->scattered);
    plan_free(&fsdp->emit->builder, fsdp->scattering, PLAN_NO_OP);
    fsdp->scattering = PLAN_NO_OP;
}

/* fully_shard: the gradients of the parameters, rank by rank, in the format of the reduction. */
static struct outgoing copy_in(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    const char *name = emit_name(emit, layer, "reduce_scatter_input");
    int64_t padded = fsdp->units[layer].padded, from = padded * fsdp->gather_bytes, to = padded * fsdp->reduce_bytes;
    fsdp_let_go_of_input(fsdp);
    int wire = plan_alloc(&emit->builder, STREAM_COMPUTE, name, to, HBM_GATHERED);
    fsdp_stream_kernel(fsdp, STREAM_COMPUTE, KERNEL_COPY, layer, "copy_in", (double)from, (double)to);
    drop_tensor_grads(fsdp, layer);
    return (struct outgoing){wire, wire, plan_last_op(&emit->builder, STREAM_COMPUTE)};
}

void fsdp_join_gradients(struct fsdp *fsdp, int layer)
{
    struct fsdp_unit *unit = &fsdp->units[layer];
    bool straight = fsdp_by_parameter(fsdp) && fsdp_synchronises(fsdp) && unit->unsharded_grad == PLAN_NO_OP;
    if (unit->padded > 0 && !straight)
        unit->unsharded_grad = flat_gradient(fsdp, layer);
}

void fsdp_reduce(struct fsdp *fsdp, int layer)
{
    struct emit *emit = fsdp->emit;
    struct plan_builder *builder = &emit->builder;
    struct fsdp_unit *unit = &fsdp->units[layer];
    if (unit->padded == 0 || !fsdp_synchronises(fsdp))
        return;
    bool straight = unit->unsharded_grad == PLAN_NO_OP; /* see fsdp_join_gradients */
    struct outgoing out = straight ? copy_in(fsdp, layer) : divide_flat(fsdp, layer);
    bool is_master = fsdp->reduce_bytes == emit->master_bytes;
    int reduced = !fsdp_shards(fsdp) ? out.wire
                                     : plan_alloc(builder, STREAM_POST, emit_name(emit, layer, "reduced_shard"),
                                           unit->shard * fsdp->reduce_bytes, is_master ? HBM_GRADIENTS : HBM_GATHERED);
    plan_stream_wait(builder, STREAM_COMM, out.ready);
    const char *name = emit_name(emit, layer, fsdp_shards(fsdp) ? "reduce_scatter" : "all_reduce");
    plan_wait op = plan_collective(builder, STREAM_COMM, name,
        fsdp_shards(fsdp) ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, (double)(unit->padded * fsdp->reduce_bytes),
        fsdp_shards(fsdp) ? fsdp->shard_group : fsdp->replicate_group, emit->options->host.collective_issue_s);
    plan_wait last = op != PLAN_NO_OP ? op : out.ready;
    bool is_input = reduced != out.wire; /* of the reduction, not what it writes, too */
    bool gives_up = is_input || out.wire != out.grads, holds = !fsdp_by_parameter(fsdp);
    if (straight) {
        fsdp->scattering = out.wire;
        fsdp->scattered = last;
        gives_up = false;
    } else if (is_input && out.wire != out.grads) {
        plan_free(builder, out.wire, last);
    }
    if (gives_up && !holds)
        plan_free(builder, out.grads, last);
    last = reduce_replicas(fsdp, layer, last);
    keep_shard(fsdp, layer, reduced, last);
    /* FSDP1's hook holds autograd's gradient to its end and then gives it up to the post-backward stream
     * (record_stream), where by now all that follows the reduction has been issued. */
    plan_wait posted = plan_last_op(builder, STREAM_POST);
    if (gives_up && holds)
        plan_free(builder, out.grads, posted > last ? posted : last);
}
