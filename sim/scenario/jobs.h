/* Private to sim/scenario: what loops over points on several threads share. */
#ifndef FLOPCAST_SCENARIO_JOBS_H
#define FLOPCAST_SCENARIO_JOBS_H

#include "base/diag_set.h"
#include "scenario/scenario.h"

#include <stdatomic.h>

struct jobs {
    const struct scenario_work *work;
    struct diag_set diags;
    int n, done; /* known ones are done */
    atomic_bool ended;
};

/* The points of a set, largest first: one that is begun last and takes long leaves the other threads idle. An array of
 * set->n_points, for free(). */
int *jobs_order(const struct scenario_set *set);

struct jobs jobs_begin(int n, const struct scenario_work *work);
/* Whether this one is to be done. From any thread, as the next. */
bool jobs_wants(struct jobs *jobs, int job);
void jobs_end_one(struct jobs *jobs, int job, enum status status, const struct diag *diag);
/* The worst status; what the jobs say goes into diag in their order. */
enum status jobs_end(struct jobs *jobs, struct diag *diag);

#endif
