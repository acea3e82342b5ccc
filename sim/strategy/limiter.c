#include "strategy/limiter.h"

void limiter_all_gather(struct limiter *limiter, struct plan_builder *builder)
{
    /* Op 0 stands in for the one that limiter_resolve finds. */
    int op = plan_host_wait(builder, "limit_all_gathers", 0, 0);
    vec_push(&limiter->events, (struct limiter_event){op, false});
}

void limiter_free(struct limiter *limiter, plan_wait last_use)
{
    vec_push(&limiter->events, (struct limiter_event){last_use, true});
}

/* An event in the FIFO: the op, and how many steps ago it was put there. */
struct pending {
    int32_t op, age;
};

void limiter_resolve(struct limiter *limiter, struct plan_program *program, int64_t max_inflight)
{
    /* The length at a step's end follows from that at its start and settles within a few steps: it grows only while
     * all-gathers find fewer than max_inflight. The last pass leaves its waits in the plan. */
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
            bool takes = fifo.n > first && fifo.n - first >= max_inflight, waits = takes && fifo.at[first].age < 2;
            /* What was freed two steps ago has long been done. */
            op->kind = waits ? OP_HOST_WAIT : OP_HOST;
            op->n_waits = waits;
            if (waits)
                program->waits.at[op->first_wait] = fifo.at[first].op | (fifo.at[first].age ? PLAN_PREVIOUS_STEP : 0);
            first += takes;
        }
    }
    vec_free(&fifo);
    vec_free(&limiter->events);
}
