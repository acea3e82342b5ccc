/* Which worker does which job next. It knows neither what a job is nor how it reaches a worker, and has no clock: local
 * processes, ranks of MPI and the simulated cluster of the test use the same one.
 *
 *   order   jobs are handed out largest first, by what they are estimated to cost: one that is begun last and takes
 *           long would leave the other workers idle
 *   memory  a machine has room for some bytes of jobs. A job that does not fit beside those that run there waits, and
 *           a smaller one comes first; on a machine where nothing runs every job may begin
 *   loss    the job of a worker that is lost goes to the next one. Lost a second time, perhaps for lack of memory, it
 *           is handed out last, while nothing else runs. After DISPATCH_TRIES it has failed */
#ifndef FLOPCAST_CREW_DISPATCH_H
#define FLOPCAST_CREW_DISPATCH_H

#include "base/vec.h"

#include <stdbool.h>

enum { DISPATCH_TRIES = 3, DISPATCH_NONE = -1 };

struct dispatch_machine {
    double bytes, used; /* that jobs may take; of those that run */
    int running;
};
struct dispatch_worker {
    int machine, job; /* job: DISPATCH_NONE when idle */
    bool gone;
};

struct dispatch {
    int n;
    const double *bytes;     /* by job; NULL: not known, nothing is limited */
    int *queue, first, last; /* not handed out yet: queue[first .. last - 1]; taken ones are NONE */
    VEC(int) again, alone;   /* lost once; lost more often */
    unsigned char *losses;   /* by job */
    VEC(struct dispatch_machine) machines;
    VEC(struct dispatch_worker) workers;
    int running;
    bool stopped;
};

/* The n jobs, those with the highest cost first, of equal ones the last first, as sweeps mostly grow. For free(). */
int *dispatch_order(const double *cost, int n);

/* order: as above; known: left out (NULL: none); bytes: what each job takes at most. order is copied, bytes borrowed.
 */
void dispatch_begin(struct dispatch *dispatch, int n, const int *order, const bool *known, const double *bytes);
int dispatch_add_machine(struct dispatch *dispatch, double bytes);
int dispatch_add_worker(struct dispatch *dispatch, int machine);

/* The next job of an idle worker, which then runs. DISPATCH_NONE: there is none that may begin now. */
int dispatch_next(struct dispatch *dispatch, int worker);
/* The worker's job is done, and the worker idle. Returns the job. */
int dispatch_done(struct dispatch *dispatch, int worker);
/* The worker's process ended before its job did; another one stands in for it, idle. Returns the job; *failed: it is
 * not tried again. */
int dispatch_lost(struct dispatch *dispatch, int worker, bool *failed);
/* The worker does not come back. Its job, if it has one, was lost before. */
void dispatch_remove(struct dispatch *dispatch, int worker);

/* Nothing more is handed out. */
void dispatch_stop(struct dispatch *dispatch);
/* Jobs that are not handed out. */
int dispatch_waiting(const struct dispatch *dispatch);
void dispatch_end(struct dispatch *dispatch);

/* How many jobs may run at a time on one machine with machine_bytes and that number of workers, whichever jobs they
 * are: as many of the largest ones as fit together. At least 1. */
int dispatch_at_once(const double *bytes, const bool *known, int n, int workers, double machine_bytes);

#endif
