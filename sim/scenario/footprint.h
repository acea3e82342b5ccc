/* Memory of this machine that the simulation of a point takes, known before it begins: an upper bound, of the process
 * that does nothing else.
 *
 * It is a sum over what was measured to grow (footprint.c has the numbers): the process, ops of the plan, GPUs of the
 * job with their links, ranks that are simulated, and the allocators that these ranks follow each for itself where
 * cudaMalloc fails (exec/exec.h). All of that is certain only when the plan is there. So there are two bounds: a loose
 * one that costs nothing, up to ten times too high, and a close one, about twice too high at most, that compiles a step
 * of few micro-batches, as ops grow in proportion with them. Where GPUs vary it also compiles the whole step and runs
 * one rank of it, as only that shows whether cudaMalloc fails.
 *
 * Left out: spans of a timeline (a traced point is simulated in the program itself), and results that are kept. */
#ifndef FLOPCAST_SCENARIO_FOOTPRINT_H
#define FLOPCAST_SCENARIO_FOOTPRINT_H

#include "scenario/scenario.h"

/* What the bytes are counted from. */
struct footprint {
    double ops;      /* of all programs */
    double programs; /* among which they are alike */
    double gpus;     /* of the job */
    double ranks;    /* simulated, at most */
    bool ledgers;    /* each with a separate allocator */
};
double footprint_bytes(const struct footprint *footprint);

/* Without a plan. */
struct footprint footprint_at_most(const struct scenario_point *point);
/* With one, which is freed. Not ok: the step cannot be compiled; *out is then footprint_at_most(). */
enum status footprint_find(struct footprint *out, const struct scenario_point *point, struct diag *diag);
/* Of a point and its plan, the whole one. */
struct footprint footprint_of_plan(const struct scenario_point *point, const struct plan *plan);

/* Of points, for workers that share `available` bytes: the loose bound of those that leave room for all workers
 * whatever runs beside them, the close one of the others. skipped: bytes stay 0; NULL: none. */
void footprint_each(double *bytes, const struct scenario_point *const *points, int n, const bool *skipped, int workers,
    double available);

#endif
