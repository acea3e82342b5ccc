/* Private to strategy/: what megatron.c (DistributedDataParallel, the optimizers) and
 * megatron_fsdp.c share. What is modelled stands in these two. */
#ifndef FLOPCAST_STRATEGY_MEGATRON_H
#define FLOPCAST_STRATEGY_MEGATRON_H

#include "strategy/emit.h"

enum { DENSE, EXPERT, N_CLASSES };
enum { NO_BUCKET = -1 };

/* Gradients that are reduced together, and their weights that are gathered together. Megatron-FSDP:
 * what a unit has of a class, or a part of the root. */
struct bucket {
    int class, layer;
    int64_t elements, fp8; /* fp8: of weights that multiply in FP8 */
    int tensors, left;     /* gradients; of them those that are not ready yet */
    plan_wait reduced;
    bool gathering;     /* or gathered */
    plan_wait gathered; /* PLAN_NO_OP: not yet, or waited for */
    /* Megatron-FSDP: buffers of what is unsharded now, or PLAN_NO_OP: weights, what is made of them
     * to multiply in FP8, gradients. */
    int weights, copies, grads;
    bool whole;              /* this instance has the step's weights from the others */
    bool filling, under_way; /* gradients of this pass; of the one before, to their reduction */
};

struct megatron {
    struct emit *emit;
    const struct megatron_options *options;
    bool scatters; /* the optimizer's state is sharded, so gradients are reduce-scattered */
    bool by_unit, cuts_grads, cuts_weights;   /* Megatron-FSDP; what is sharded beside that state */
    int64_t grad_bytes;                       /* of main_grad's elements */
    int group[N_CLASSES], ranks[N_CLASSES];   /* that share what is sharded, or have all */
    int replicas, replicate_group[N_CLASSES]; /* instances of that, Megatron-FSDP */
    bool cuts_outer;                          /* the optimizer's state is sharded over these, too */
    int64_t elements[N_CLASSES];              /* on this rank, that are trained */
    struct optimizer_tensor *tensors;         /* that this rank steps on */
    int n_tensors;
    int64_t fp8;                /* elements of weights that multiply in FP8 */
    int64_t frozen_fp8;         /* the same of what is not trained */
    int64_t scaled;             /* matrices whose largest values are all-reduced */
    VEC(struct bucket) buckets; /* in the order in which they are reduced */
    int *bucket, *segment;      /* by tensor, NO_BUCKET: frozen; the segment whose backward pass
                                   completes its gradient */
    bool *fused;                /* by tensor: its gradient comes from a GEMM */
    double window; /* Megatron-FSDP: elements that are gathered at once, or whose gradients are
                      reduced */
    VEC(int)
    reducing; /* buckets whose gradients are on their way; of them the first that is not over: */
    int first_reducing;
};

/* Bytes of elements of weights that multiply in FP8 or NVFP4, in it. */
double megatron_narrow_bytes(const struct megatron *self, double elements);
/* Bytes of a bucket's weights, as they are gathered. */
double megatron_unsharded_bytes(const struct megatron *self, const struct bucket *bucket);
/* Gradients are divided by a pass over them. */
bool megatron_is_scaled(const struct megatron *self, int class);

/* Hooks that both have. */
void megatron_setup(struct emit *emit);
void megatron_step_begins(struct emit *emit);
void megatron_step_ends(struct emit *emit);
void megatron_reduce_amax_forward(struct emit *emit, int segment); /* megatron_amax.c */
void megatron_reduce_amax_backward(struct emit *emit);
void megatron_grad_begins(struct emit *emit, int tensor);
void megatron_grad_ready(struct emit *emit, int tensor);

/* megatron_fsdp.c */
extern const struct data_parallel megatron_fsdp_hooks;
/* Bytes of this rank's part of a bucket's weights. */
double megatron_fsdp_shard_bytes(const struct megatron *self, const struct bucket *bucket);

#endif
