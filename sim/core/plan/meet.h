/* Private to plan/: where the programs of a plan meet, and whether they can all go on. */
#ifndef FLOPCAST_PLAN_MEET_H
#define FLOPCAST_PLAN_MEET_H

#include "plan/plan.h"

/* Ops of queues of communication by number over all programs: plan_meets_number(). Those that meet,
 * as the ranks that stand for their programs see it, have one leader, the lowest of them; an op
 * that meets no other is a leader too. Ranks of one program that meet among themselves (a group
 * inside it) are one op here; a send and a receive of one program are two. */
struct plan_meets {
    int *first; /* by program and queue */
    int total;
    int *leader; /* by op */
    int *n;      /* by leader: ops that meet */
};

/* What an op in which ranks meet is a part of: a group by its number, then the sends and the
 * receives of each channel. */
int plan_part_of(const struct plan *plan, const struct plan_op *op);

/* -1: the op is on no queue of communication. */
int plan_meets_number(const struct plan_meets *meets, const struct plan *plan, int program, int op);

/* False, and why, where a collective or a message has no counterpart. The arrays are for
 * plan_meets_release. */
bool plan_meets_find(struct plan_meets *out, const struct plan *plan, char *why, size_t n);
void plan_meets_release(struct plan_meets *meets);

/* Every op of a step gets its turn. As no program has a choice, going on wherever one can decides
 * it. */
bool plan_meets_go_on(const struct plan_meets *meets, const struct plan *plan, char *why, size_t n);

#endif
