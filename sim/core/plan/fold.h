/* A program as exec reads it: alike stretches of it are held once, and their order as data.
 *
 * A pipeline's step is mostly the same cells again: of 1.3 million ops of a stage of GPT-3 175B
 * with 768 micro-batches a few thousand differ. A stretch is a cell (struct plan_cell); those with
 * the same ops have one pattern. What an op has to do with another stretch (an op that it waits
 * for, a buffer that was allocated there) its pattern names by a slot, and each stretch says which
 * ones its slots are. So nothing is lost: plan_fold_wait() and plan_fold_buffer() give what the
 * program had, and sums of host time are those of adding up one by one, to the last bit.
 *
 * Ops keep their numbers. Buffers have others, and so have collectives, of which those that are
 * alike are one. */
#ifndef FLOPCAST_PLAN_FOLD_H
#define FLOPCAST_PLAN_FOLD_H

#include "base/index.h"
#include "plan/plan.h"

/* Arrays of n_ops or, marked +1, of one more, for what comes after the last op. */
struct plan_pattern {
    int32_t n_ops, n_slots, n_waits, n_buffers;
    /* position: of a device op among those of its queue in the stretch; of one that touches memory
     * -1 - the slot of the stretch that allocates the buffer; else -1. index: of a buffer among
     * those that are allocated there. */
    const struct plan_op *ops;
    const plan_wait *waits;            /* the number of the op in the stretch in the slot */
    const uint16_t *slots;             /* of waits; NULL: of this stretch, all of them */
    const struct plan_buffer *buffers; /* that its ops allocate */
    const double *host_s;              /* +1: host time of the ops before */
    const int32_t *launches;           /* +1: device ops before */
    const int32_t
        *next_block; /* +1: the first op at or after that blocks the host; n_ops: none does */
    const int32_t *next_memory;      /* +1: the same, ops that touch memory included */
    const int32_t *const *queue_ops; /* by queue: its ops */
    const int32_t *n_queue_ops;
};

struct plan_stretch {
    const struct plan_op *ops; /* these two are the pattern's */
    const double *sums_s;      /* host_s */
    const bool *awaited; /* by op: one of the program waits for it; equal ones are one array */
    const struct plan_pattern *pattern;
    int32_t first_op, first_buffer;
    int32_t launches;      /* device ops before */
    int32_t block, memory; /* the first op at or after first_op that blocks the host; that touches
                              memory, too */
    double host_s;         /* host time of the ops before */
    const int32_t *slots;  /* stretches; the first is this one */
    const int32_t *positions; /* by queue: its ops before */
};

enum { PLAN_FOLD_SHIFT = 6 };
struct plan_fold {
    int32_t n_ops, n_buffers, n_queues;
    int32_t n_stretches, n_patterns;
    const struct plan_pattern **patterns;
    struct plan_stretch *stretches; /* behind the last one of no ops, at the number of all */
    const int32_t *at;              /* of each 64 ops the stretch that the first of them is in */
    int32_t n_setup;
    const int32_t *setup; /* numbers of the buffers that live for the whole run: */
    const struct plan_buffer *setup_buffers;
};

/* A fold that grows op by op, of a program whose buffers for the whole run are there. A buffer of
 * the step is program->buffers[op.index] when OP_ALLOC or OP_KEEP is pushed, and after OP_FREE that
 * number may be another one's. What no plan may do is a BUG: a wait for a later op of the same step
 * or for one that runs on no stream, a buffer freed twice or never. */
struct plan_folding *plan_folding_begin(
    const struct plan *plan, const struct plan_program *program, struct arena *arena);
/* A stretch begins with the next op. */
void plan_folding_cut(struct plan_folding *folding);
/* Returns the number of the op, whose waits these are; first_wait, position: any. A wait may name
 * an op of the step before that comes later in the same stretch, and PLAN_LAST_STEP. */
int32_t plan_folding_push(
    struct plan_folding *folding, const struct plan_op *op, const plan_wait *waits);
int32_t plan_folding_ops(const struct plan_folding *folding);            /* so far */
int plan_folding_stream(const struct plan_folding *folding, int32_t op); /* of an op */
/* PLAN_LAST_STEP is this op. Needs nothing of the program afterwards but names; the folding is
 * gone. NULL: it cannot be held so, as sums of host time are rounded or a stretch has to do with
 * 65,535 others. */
struct plan_fold *plan_folding_end(struct plan_folding *folding, int32_t last);

/* The number of a collective that is like this one, or `next`, under which it is then known. */
int32_t plan_fold_collective(
    const struct plan *plan, struct index *known, const struct plan_collective *one, int32_t next);

/* Of a program that is complete. Collectives of the plan from `own` on are of this program alone:
 * those like one that is there (`known`) go, and the program has the new numbers. NULL: see
 * plan_folding_end(). */
struct plan_fold *plan_fold_make(struct plan *plan, struct plan_program *program, int own,
    struct index *known, struct arena *arena);
/* The whole program as one stretch, whose arrays are the program's. */
const struct plan_fold *plan_fold_flat(
    const struct plan *plan, const struct plan_program *program, struct arena *arena);

/* The stretch that an op is in; behind the last op the one of no ops. */
static inline const struct plan_stretch *plan_fold_stretch(const struct plan_fold *fold, int32_t op)
{
    const struct plan_stretch *stretch = &fold->stretches[fold->at[op >> PLAN_FOLD_SHIFT]];
    while (stretch[1].first_op <= op)
        stretch++;
    return stretch;
}
static inline const struct plan_op *plan_fold_op(const struct plan_fold *fold, int32_t op)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    return &stretch->ops[op - stretch->first_op];
}
/* What op waits for, w from 0 on. */
static inline plan_wait plan_stretch_wait(const struct plan_fold *fold,
    const struct plan_stretch *stretch, const struct plan_op *op, int w)
{
    int at = op->first_wait + w, slot = stretch->pattern->slots ? stretch->pattern->slots[at] : 0;
    return stretch->pattern->waits[at] + fold->stretches[stretch->slots[slot]].first_op;
}
static inline plan_wait plan_fold_wait(const struct plan_fold *fold, int32_t op, int w)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    return plan_stretch_wait(fold, stretch, &stretch->ops[op - stretch->first_op], w);
}
/* The first op at or after it that blocks the host, that touches memory, too; n_ops: there is none.
 */
static inline int32_t plan_fold_block(const struct plan_fold *fold, int32_t op)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    int32_t next = stretch->pattern->next_block[op - stretch->first_op];
    return next < stretch->pattern->n_ops ? stretch->first_op + next : stretch[1].block;
}
static inline int32_t plan_stretch_memory(const struct plan_stretch *stretch, int32_t op)
{
    int32_t next = stretch->pattern->next_memory[op - stretch->first_op];
    return next < stretch->pattern->n_ops ? stretch->first_op + next : stretch[1].memory;
}
/* Host time, and device ops, before it. */
static inline double plan_fold_host_s(const struct plan_fold *fold, int32_t op)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    return stretch->host_s + stretch->sums_s[op - stretch->first_op];
}
static inline int32_t plan_fold_launches(const struct plan_fold *fold, int32_t op)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    return stretch->launches + stretch->pattern->launches[op - stretch->first_op];
}
/* The place of a device op in its queue. */
static inline int32_t plan_fold_position(const struct plan_fold *fold, int32_t op)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    const struct plan_op *at = &stretch->ops[op - stretch->first_op];
    return stretch->positions[at->stream] + at->position;
}
/* Of an op that touches memory. */
static inline const struct plan_buffer *plan_stretch_buffer(const struct plan_fold *fold,
    const struct plan_stretch *stretch, const struct plan_op *op, int32_t *number)
{
    const struct plan_stretch *home = &fold->stretches[stretch->slots[-1 - op->position]];
    *number = home->first_buffer + op->index;
    return &home->pattern->buffers[op->index];
}
static inline const struct plan_buffer *plan_fold_buffer(
    const struct plan_fold *fold, int32_t op, int32_t *number)
{
    const struct plan_stretch *stretch = plan_fold_stretch(fold, op);
    return plan_stretch_buffer(fold, stretch, &stretch->ops[op - stretch->first_op], number);
}

/* How many ops a queue has; queues that came with later programs have none. */
static inline int32_t plan_fold_queue_ops(const struct plan_fold *fold, int queue)
{
    return queue < fold->n_queues ? fold->stretches[fold->n_stretches].positions[queue] : 0;
}

/* An op of a queue, and the way to the next one. */
struct plan_cursor {
    const struct plan_stretch *stretch;
    const int32_t *ops; /* the queue's in the stretch, */
    int32_t n, at;      /* of them, and which this is */
    int32_t place;      /* of the op in the stretch */
};
static inline const struct plan_op *plan_cursor_op(const struct plan_cursor *cursor)
{
    return &cursor->stretch->ops[cursor->place];
}
static inline int32_t plan_cursor_number(const struct plan_cursor *cursor)
{
    return cursor->stretch->first_op + cursor->place;
}
static inline bool plan_cursor_awaited(const struct plan_cursor *cursor)
{
    return cursor->stretch->awaited[cursor->place];
}
/* Host time up to the end of the op. */
static inline double plan_cursor_host_s(const struct plan_cursor *cursor)
{
    return cursor->stretch->host_s + cursor->stretch->sums_s[cursor->place + 1];
}
/* From the stretch on to the first that has an op of the queue. */
static inline struct plan_cursor plan_cursor_enter(const struct plan_stretch *stretch, int queue)
{
    while (stretch->pattern->n_queue_ops[queue] == 0)
        stretch++;
    const int32_t *ops = stretch->pattern->queue_ops[queue];
    return (struct plan_cursor){stretch, ops, stretch->pattern->n_queue_ops[queue], 0, ops[0]};
}
/* Of a queue that has a next one. */
static inline void plan_cursor_next(struct plan_cursor *cursor, int queue)
{
    if (++cursor->at < cursor->n)
        cursor->place = cursor->ops[cursor->at];
    else
        *cursor = plan_cursor_enter(cursor->stretch + 1, queue);
}
/* At the first op of a queue that has any. */
static inline struct plan_cursor plan_cursor_first(const struct plan_fold *fold, int queue)
{
    return plan_cursor_enter(fold->stretches, queue);
}

#endif
