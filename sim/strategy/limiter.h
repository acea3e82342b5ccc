/* FSDP's rate limiter, limit_all_gathers (torch/distributed/fsdp/_limiter_utils.py, restated): a FIFO of the events
 * after which gathered parameters are free again. Before an all-gather the host, when max_inflight or more of them
 * stand in it, takes the oldest and waits for it. The FIFO goes on from step to step, so what a step starts with is
 * what the step before left. */
#ifndef FLOPCAST_STRATEGY_LIMITER_H
#define FLOPCAST_STRATEGY_LIMITER_H

#include "plan/plan.h"

struct limiter_event {
    int32_t op; /* the waiting op of an all-gather, or the last op before a free */
    bool is_free;
};

struct limiter {
    VEC(struct limiter_event) events; /* of one step, in program order */
};

void limiter_all_gather(struct limiter *limiter, struct plan_builder *builder);
void limiter_free(struct limiter *limiter, plan_wait last_use);

/* The step is complete: each all-gather learns what it waits for once steps follow each other steadily. */
void limiter_resolve(struct limiter *limiter, struct plan_program *program, int64_t max_inflight);

#endif
