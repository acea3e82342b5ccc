/* Between the kinds of context parallelism (tape_context.c, tape_ring.c): calls of the attention
 * kernel. */
#ifndef FLOPCAST_MODEL_TAPE_CONTEXT_H
#define FLOPCAST_MODEL_TAPE_CONTEXT_H

#include "model/tape_core.h"

static inline int64_t context_ranks(const struct tape *tape)
{
    return model_context_ranks(&tape->workload->parallel);
}

static inline double context_bytes(const struct tape *tape, int buffer)
{
    return (double)tape->buffers.at[buffer].life.bytes;
}

/* One call: of m of the rank's queries and n keys. */
struct context_part {
    int64_t m, n;
    double pairs; /* of a query and a key that are multiplied */
    double share; /* of the rank's model FLOP */
    bool causal;  /* the mask takes half of the square; where it takes less, pairs say so */
};

/* Of a step of a balanced ring: the diagonal; then the keys of ranks before this one, whose first
 * halves alone are before all queries; then those of ranks behind, before which the second half of
 * the queries alone is not. */
struct context_part context_ring_part(
    const struct tape *tape, const struct tape_op *op, int64_t step);

double context_key_bytes(
    const struct tape *tape, const struct tape_op *op, int64_t n); /* of n keys and their values */

/* The kernel, and in backward the three around it, tape_flash_alone()'s: of out times its gradient,
 * of zeros, of a cast. keys, and grads, of keys and values: one buffer or two; sums: logsumexps;
 * grad_q: of m queries. */
void context_launch(struct tape *tape, const char *name, const struct tape_op *op,
    struct context_part part, bool backward, const int *buffers);
void context_launch_backward(struct tape *tape, const struct tape_op *op, struct context_part part,
    const int *keys, int sums, int grad_q, const int *grads);

/* tape_flash_context() as PyTorch has it (context_kind ring_allgather, ring_alltoall); op without
 * backward, output and saved. */
int context_ring(struct tape *tape, struct tape_op op);

#endif
