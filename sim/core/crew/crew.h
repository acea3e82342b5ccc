/* Independent jobs, done by threads of this process; which of them a shard does. What comes out
 * does not depend on who did what. */
#ifndef FLOPCAST_CREW_CREW_H
#define FLOPCAST_CREW_CREW_H

#include "base/status.h"

struct crew_loop {
    int n;
    const int *order;  /* of beginning: crew_order() */
    const bool *known; /* left out; NULL: none */
    void *self;
    enum status (*job)(void *self, int job, struct diag *diag); /* from any thread */
    /* After each job, one at a time, in the order of their ends. False: no further one is begun.
     * NULL: go on. */
    bool (*ended)(void *self, int job, enum status status);
};

/* Runs the loop, with as many threads as base/threads.h says. The worst status; what jobs say goes
 * into diag in their order. */
enum status crew_run(const struct crew_loop *loop, struct diag *diag);

/* The n jobs, those with the highest cost first, of equal ones the last first, as sweeps mostly
 * grow: one that is begun last and takes long would leave the other workers idle. For free(). */
int *crew_order(const double *cost, int n);

/* The jobs of shard `shard` of `shards` (from 1), so that every shard costs about the same: each
 * job, largest first, goes to the shard that has least; of equal ones to the first. mine: an entry
 * a job. Together the jobs may be bound to others by `with` (NULL: none): job i goes to the shard
 * of job with[i] <= i. */
void crew_shard(bool *mine, const double *cost, const int *with, int n, int shard, int shards);

#endif
