/* Private to strategy/: what fsdp.c (parameters), fsdp_units.c and fsdp_reduce.c (gradients) share.
 * What is modelled stands in fsdp.c. */
#ifndef FLOPCAST_STRATEGY_FSDP_H
#define FLOPCAST_STRATEGY_FSDP_H

#include "strategy/emit.h"

/* Parameters that are sharded and all-gathered together: the tensors of a layer, or where ranks
 * share experts, those and the experts apart. */
struct shard_unit {
    int layer, first_tensor, n_tensors;
    bool experts;     /* of the tensors those that ranks of AXIS_EP share; else the others */
    int ranks, group; /* that share one copy; 1 rank: each has all */
    int replicas, replicate_group; /* that have the same shard */
    int64_t padded, shard;         /* elements that are trained */
    int64_t kept_shard,
        used_shard;     /* bytes of this rank's part of all parameters: as kept, as gathered */
    int gathered;       /* buffer of the unsharded parameters, or PLAN_NO_OP */
    int cast;           /* autocast: buffer of their low-precision copies, or PLAN_NO_OP */
    bool ready;         /* unsharded, or on the way */
    plan_wait ready_op; /* what compute has to wait for */
    int unsharded_grad; /* buffer: the flat gradient; what is not communicated yet, the sum of
                           earlier ones */
    int sharded_grad;   /* buffer of the accumulated gradient shard */
};

/* FSDP's rate limiter, limit_all_gathers (torch/distributed/fsdp/_limiter_utils.py, restated): a
 * FIFO of the events after which gathered parameters are free again. Before an all-gather the host,
 * when max_inflight or more of them stand in it, takes the oldest and waits for it. The FIFO goes
 * on from step to step, so what a step starts with is what the step before left. */
struct limiter_event {
    int32_t op; /* the waiting op of an all-gather, or the last op before a free */
    bool is_free;
};

struct limiter {
    VEC(struct limiter_event) events; /* of one step, in program order */
};

struct fsdp {
    struct emit *emit;
    const struct fsdp_options *options;
    struct shard_unit *units; /* by layer; then those of experts, by layer, without parameters where
                                 there are none */
    int n_units;
    struct shard_unit *head; /* of the root what the second chunk of a V has, the last unit; NULL:
                                units[0] has all */
    struct optimizer_tensor
        *shards; /* of units that are trained: flat, or muon's; what the optimizer sees */
    int n_shards;
    int64_t
        gather_bytes; /* a parameter that is trained, and its gradient, as the unit is gathered */
    int64_t reduce_bytes; /* an element of a gradient on the wire */
    int gathered; /* fully_shard: what has been copied out last, while it is kept, or PLAN_NO_OP */
    plan_wait copied_out;
    int scattering; /* fully_shard: the input of the reduce-scatter under way, or PLAN_NO_OP */
    plan_wait scattered;
    bool ends_chunk; /* in a pipeline: the last backward pass of a model chunk is over */
    struct limiter limiter;
};

/* A tensor between the first and the last of a unit is of it. */
static inline bool fsdp_holds(const struct shard_unit *unit, const struct model_tensor *tensor)
{
    return unit->experts == ((tensor->split & 1U << AXIS_EP) != 0);
}

/* A stage of a pipeline. */
static inline bool fsdp_is_staged(const struct fsdp *fsdp)
{
    return fsdp->emit->schedule.stages > 1;
}

/* This micro-batch's gradients are communicated. */
static inline bool fsdp_synchronises(const struct fsdp *fsdp)
{
    if (fsdp_is_staged(fsdp))
        return fsdp->ends_chunk;
    return !fsdp->options->no_sync || fsdp->emit->on_last;
}

static inline bool fsdp_shards(const struct shard_unit *unit)
{
    return unit->ranks > 1;
}

static inline bool fsdp_casts(const struct fsdp *fsdp)
{
    return fsdp->gather_bytes != fsdp->emit->master_bytes;
}

static inline bool fsdp_offloads(const struct fsdp *fsdp)
{
    return fsdp->options->cpu_offload;
}

/* fully_shard; unsharded it has nothing to copy. */
static inline bool fsdp_by_parameter(const struct fsdp *fsdp, const struct shard_unit *unit)
{
    return fsdp->options->version == 2 && fsdp_shards(unit);
}

void fsdp_lay_out_units(struct fsdp *fsdp);
/* The tensor is cast to FP8 before it is gathered (float8_all_gather). */
bool fsdp_gathers_in_fp8(const struct fsdp *fsdp, const struct model_tensor *tensor);

void fsdp_stream_kernel(struct fsdp *fsdp, int stream, enum kernel_kind kind,
    const struct shard_unit *unit, const char *name, double reads, double writes);

/* The gradients of a unit's tensors are all there: autograd joins them before any hook runs;
 * fully_shard only adds up what it does not communicate yet. */
void fsdp_join_gradients(struct fsdp *fsdp, struct shard_unit *unit);

/* The gradients of a unit, all of them there, on their way to what the optimizer steps on: put
 * together, reduced, added to those of earlier micro-batches. */
void fsdp_reduce(struct fsdp *fsdp, struct shard_unit *unit);
/* fully_shard keeps the input of a reduce-scatter until the compute stream waits for it: before the
 * next one, and when backward ends. */
void fsdp_free_scattered(struct fsdp *fsdp);

/* What the optimizer steps on: the unit's flat shard, of which muon takes the matrices apart. */
void fsdp_add_shards(struct fsdp *fsdp, const struct shard_unit *unit);

#endif
