/* Private to scenario: what loops over points and over their samples share. */
#ifndef FLOPCAST_SCENARIO_JOBS_H
#define FLOPCAST_SCENARIO_JOBS_H

#include "scenario/scenario.h"

struct jobs {
    const struct scenario_work *work;
    int done, total; /* of this loop: known ones are done, those left to others do not count */
    bool *skipped;
    struct crew_loop loop; /* to fill: order, self, job; for crew_run() */
};

/* The points of a set, largest first. An array of set->n_points, for free(). */
int *jobs_order(const struct scenario_set *set);

void jobs_begin(struct jobs *jobs, int n, const struct scenario_work *work);
/* For crew_loop.ended of whoever has the struct: keeps the result, reports the progress. */
bool jobs_ended(struct jobs *jobs, int job, enum status status);
void jobs_end(struct jobs *jobs);

#endif
