/* Private to trace_plan.c and its trace_*.c: a step of a trace in the order of its host. */
#ifndef FLOPCAST_EXCHANGE_TRACE_ITEMS_H
#define FLOPCAST_EXCHANGE_TRACE_ITEMS_H

#include "exchange/trace_plan.h"

enum item_kind {
    ITEM_LAUNCH,
    ITEM_HOST, /* host work that is nobody's */
    ITEM_WAIT, /* the host waits */
};

/* Times are the trace's. */
struct item {
    enum item_kind kind;
    const struct trace_activity *activity; /* of a launch */
    const struct trace_wait *wait;         /* of ITEM_WAIT; NULL: for the item before */
    ps_t issued, returned;                 /* by the host */
    ps_t start, end;                       /* on the GPU, or of the wait */
    ps_t host;                             /* time of the host that is the item's */
    ps_t idle;     /* of a launch: its stream does nothing before it, for no reason that is seen */
    ps_t dispatch; /* of a launch: between what it waited for and its start, up to 15 us */
    int stream;    /* place in streams; -1: none */
    int op;        /* the number of its last op in the plan, by items_order() */
};

/* What an item waits for: as an event says, then as an item, of the step before with PLAN_PREVIOUS_STEP. */
struct item_wait {
    int item;
    const struct trace_wait *said; /* NULL: `on` was found otherwise */
    plan_wait on;
};

struct item_stream {
    int32_t number; /* in the trace */
    ps_t busy;      /* kernels, in the step */
    bool collectives;
    int queue;
};

struct items {
    const struct trace *trace;
    int step;
    ps_t host_start, host_end; /* PS_NEVER: the trace has no launches */
    ps_t period;               /* of the host, from step to step; the last one has none after it: to its end */
    ps_t cycle;                /* from step to step, also of the last one, by its GPU */
    VEC(struct item) list;
    VEC(struct item_wait) waits; /* by item */
    VEC(struct item_stream) streams;
    int compute;   /* place in streams */
    bool recorded; /* collectives and messages take the time that they took */
};

/* Messages of one kernel, each of which is an op before the item's own; 0: it has one or none. */
static inline int item_batch(const struct items *items, const struct item *item)
{
    bool batch = item->kind == ITEM_LAUNCH && item->activity->n_messages > 1 && !items->recorded;
    return batch ? item->activity->n_messages : 0;
}

/* trace_items.c: the items, with what events say that they wait for. */
void items_make(struct items *items, const struct trace *trace, int step);
void items_free(struct items *items);

/* trace_order.c: adds what they wait for by rule, where the trace does not say it; then numbers the ops. */
void items_order(struct items *items);

#endif
