/* Private to strategy/: DeepSpeed's ZeRO, of which zero.c is gradients and the step, zero_fetch.c
 * the weights of stage 3. */
#ifndef FLOPCAST_STRATEGY_ZERO_H
#define FLOPCAST_STRATEGY_ZERO_H

#include "strategy/buckets.h"

struct gathered {
    int buffer;         /* or PLAN_NO_OP */
    plan_wait ready_op; /* compute has to wait for it, once */
};

/* __max_ongoing_fetch_events, __max_param_reduce_events */
enum { ONGOING = 2 };

/* Ops of which the host lets only the last few be unfinished. */
struct ongoing {
    plan_wait ops[ONGOING + 1]; /* a ring */
    int n;
};

struct zero {
    struct emit *emit;
    const struct zero_options *options;
    int group, ranks; /* all ranks */
    int64_t owned;    /* elements of this rank's part of everything */
    bool overlaps;
    struct buckets buckets; /* in elements */
    int owned_grads;        /* buffer of the owned part of the gradients, or PLAN_NO_OP */
    int reduced;            /* of buckets, or of gradients where each is reduced alone */
    /* stage 3 */
    struct gathered *weights; /* by tensor */
    VEC(int) uses;            /* tensors in the order in which kernels of a micro-step use them */
    int at;                   /* in uses */
    int64_t live;             /* elements gathered now */
    struct ongoing fetches;   /* gathers that kernels came to */
    struct ongoing reductions;
};

/* Stage 0: zero_off.c. */
extern const struct data_parallel zero_off_hooks;
/* PipelineEngine's _aggregate_total_loss: the mean over the ranks of data parallelism on the last
 * stage, of which the others then learn; the host waits for it. */
void zero_aggregate_loss(struct emit *emit, int group);

/* Does every rank keep the whole of a tensor; its bytes as kernels see it. */
bool zero_persists(const struct zero *zero, int tensor);
int64_t zero_weight_bytes(const struct zero *zero, int tensor);

/* Stage 3 as before DeepSpeed 0.6. */
bool zero_blocks(const struct zero *zero);
/* Python's loops over the ranks: for each, this number of views, and of copies that c10d makes of
 * them. */
double zero_loop_s(const struct zero *zero, double views, double copies);
/* The list of a collective and the flat tensor that NCCL wants, one copied into the other when
 * after is done. */
plan_wait zero_copy_list(struct zero *zero, int stream, double bytes, plan_wait after);
/* torch.cuda.synchronize */
void zero_synchronize(struct zero *zero);
/* The host goes on when all but the last few are done. */
void zero_keep_ongoing(struct zero *zero, struct ongoing *ongoing, const char *name, plan_wait op);

/* Stage 3: weights come and go with their use, of which the order in a micro-batch is laid down
 * before. */
void zero_trace_uses(struct zero *zero);
void zero_param_needed(struct emit *emit, int tensor);
void zero_param_used(struct emit *emit, int tensor);
/* After the step: the parameters that every rank keeps whole. */
void zero_gather_whole(struct zero *zero);

#endif
