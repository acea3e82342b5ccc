/* Private to strategy/: gradients that are reduced in buckets. Tensors join the bucket that is
 * filling in the order in which their gradients become ready; the strategy says in which unit it
 * counts, and when a bucket goes. */
#ifndef FLOPCAST_STRATEGY_BUCKETS_H
#define FLOPCAST_STRATEGY_BUCKETS_H

#include "strategy/emit.h"

struct buckets {
    /* What becomes of n tensors, of this size together; the op that ends it. */
    plan_wait (*reduce)(struct emit *, const int *tensors, int n, int64_t size);
    VEC(int) tensors; /* of the step */
    VEC(struct sent_bucket {
        int first; /* in tensors; the bucket ends with the next one's */
        plan_wait reduced;
    })
    sent;
    int first;    /* in tensors, of the bucket that is filling */
    int64_t size; /* of that */
};

static inline void buckets_add(struct buckets *buckets, int tensor, int64_t size)
{
    vec_push(&buckets->tensors, tensor);
    buckets->size += size;
}

/* An empty one does not go. */
static inline void buckets_send(struct emit *emit, struct buckets *buckets)
{
    int first = buckets->first, n = buckets->tensors.n - first;
    if (n == 0)
        return;
    plan_wait reduced = buckets->reduce(emit, buckets->tensors.at + first, n, buckets->size);
    vec_push(&buckets->sent, ((struct sent_bucket){first, reduced}));
    buckets->first = buckets->tensors.n;
    buckets->size = 0;
}

/* The last that was sent, or PLAN_NO_OP. */
static inline plan_wait buckets_last(const struct buckets *buckets)
{
    return buckets->sent.n > 0 ? buckets->sent.at[buckets->sent.n - 1].reduced : PLAN_NO_OP;
}

static inline void buckets_free(struct buckets *buckets)
{
    vec_free(&buckets->tensors);
    vec_free(&buckets->sent);
}

#endif
