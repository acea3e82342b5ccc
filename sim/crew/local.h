/* Private to sim/crew: worker processes of this machine. */
#ifndef FLOPCAST_CREW_LOCAL_H
#define FLOPCAST_CREW_LOCAL_H

#include "crew/crew.h"

#include <sys/types.h>

struct local_worker {
    pid_t pid; /* 0: none yet */
    int fd;    /* its end of the socket */
    int job;   /* -1: idle */
};

struct local {
    const struct crew_loop *loop;
    struct local_worker *workers;
    int n, next; /* next: whose answer is looked for first */
};

/* An answer of a worker, or that there will be none. */
struct answer {
    int worker, job;
    bool lost;
    int ended_by;      /* lost: the signal, or 0 when it exited */
    struct pack bytes; /* of answer_pack(); kept from one call to the next */
};

/* Processes are forked as they are needed, with what the caller's memory then holds. */
void local_begin(struct local *local, int n, const struct crew_loop *loop);
void local_give(struct local *local, int worker, int job);
/* The next answer, for which it waits at most so long (below 0: for ever; with no worker at work, as well). False: none
 * came. */
bool local_next(struct local *local, double timeout_s, struct answer *out);
void local_end(struct local *local);

/* A job done in this process, with its status and messages, as bytes. */
void answer_pack(struct pack *out, const struct crew_loop *loop, int job);
/* The same of a job that is done. */
void answer_pack_made(
    struct pack *out, const struct crew_loop *loop, int job, enum status status, const struct diag *diag);
enum status answer_unpack(const struct pack *bytes, const struct crew_loop *loop, int job, struct diag *diag);

/* Standard error as it was before crew_set_up(), or -1: it is that still. */
int crew_error_output(void);

#endif
