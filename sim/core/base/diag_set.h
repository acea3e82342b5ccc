/* Diagnostics of jobs that run on several threads. They come out in the order of the jobs, whatever
 * the order in which the jobs ended. */
#ifndef FLOPCAST_BASE_DIAG_SET_H
#define FLOPCAST_BASE_DIAG_SET_H

#include "base/status.h"

struct diag_set {
    struct diag **by_job; /* NULL: none */
    int n;
};

struct diag_set diag_set_begin(int n_jobs);
/* Copies the diagnostics of a job, if it has any; from any thread, once a job. */
void diag_set_keep(struct diag_set *set, int job, const struct diag *diag);
/* Appends all of them to diag. Returns the worst status of a job. Frees the set. */
enum status diag_set_end(struct diag_set *set, struct diag *diag);

#endif
