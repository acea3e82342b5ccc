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
    bool apart;    /* set by trace_plan.c: a collective or messages on a separate queue, which the
                      stream waits for */
    int op;        /* the number of its last op in the plan, by items_number() */
};

/* What an item waits for: as an event says, then as an item, of the step before with
 * PLAN_PREVIOUS_STEP. */
struct item_wait {
    int item;
    const struct trace_wait *said; /* NULL: `on` was found otherwise */
    plan_wait on;
};

struct item_stream {
    int32_t number;   /* in the trace */
    ps_t busy;        /* kernels and copies on the GPU, in the step */
    ps_t comm;        /* collectives */
    bool collectives; /* there are some: by the framework's stream, in its order (async_op=False,
                         PyTorch 2.8), or */
    bool nccl;        /* mostly these: NCCL's own stream */
    int queue;
};

struct items {
    const struct trace *trace;
    int step;
    ps_t host_start, host_end; /* PS_NEVER: the trace has no launches */
    ps_t period; /* of the host, from step to step; the last one has none after it: to its end */
    ps_t cycle;  /* from step to step, also of the last one, by its GPU */
    VEC(struct item) list;
    VEC(struct item_wait) waits; /* by item */
    VEC(struct item_stream) streams;
    int compute;   /* place in streams: the busiest with kernels */
    bool recorded; /* collectives and messages take the time that they took */
};

/* How many ops an item has on other queues before its own: the messages of one kernel, where there
 * are several, or what is apart. */
static inline int items_beside(const struct items *items, const struct item *item)
{
    int messages = item->kind == ITEM_LAUNCH && !items->recorded ? item->activity->n_messages : 0;
    return messages > 1 || (messages == 1 && item->apart) ? messages : item->apart;
}

/* trace_items.c: the items, with what events say that they wait for. */
void items_make(struct items *items, const struct trace *trace, int step);
void items_free(struct items *items);

/* trace_order.c: adds what they wait for by rule, where the trace does not say it. */
void items_order(struct items *items);
/* Numbers the ops. */
void items_number(struct items *items);

/* Of a wait of the host for an item (PLAN_NO_OP: it is not known for which): what the host took
 * once it could go on. */
ps_t items_after_wait(const struct items *items, const struct item *item, plan_wait on);
/* What the host takes for the step by itself, without what it is blocked for; 0: the trace has no
 * launches. */
ps_t items_host(const struct items *items);

#endif
