/* Mistakes of jobs that run on several threads, told in the order of the jobs, whatever the order in which they ended.
 */
#ifndef FLOPCAST_BASE_TOLD_H
#define FLOPCAST_BASE_TOLD_H

#include "base/status.h"

struct told {
    struct diag **of; /* by job, NULL: nothing */
    int n;
};

struct told told_begin(int n_jobs);
/* What a job says, copied where it says anything; from any thread, once a job. */
void told_keep(struct told *told, int job, const struct diag *diag);
/* All of it into diag. The worst status of a job. Frees told. */
enum status told_end(struct told *told, struct diag *diag);

#endif
