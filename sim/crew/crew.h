/* Independent jobs, done by workers: threads of this process, processes of this machine, or both on several machines
 * under MPI. One dispatcher (dispatch.h) hands them out. What comes out does not depend on who did what.
 *
 * A worker process is a fork of the program as it is when the loop begins, so that a job is a number. What it makes
 * comes back as bytes (pack.h). A worker that dies (kill -9, out of memory, a fault of ours) gives its job back, and
 * the others go on.
 *
 * MPI: every rank runs the same command. In a loop, rank 0 hands out the jobs, takes the results and alone prints and
 * stores; the others serve, each with worker processes that it forks: a job that dies does not take its rank with it.
 * When a rank itself dies, mpirun ends all: what rank 0 has stored is kept. Ranks other than 0 have no output. The
 * calls of MPI are in a plugin (mpi.h), which the program loads when it is started by mpirun. */
#ifndef FLOPCAST_CREW_CREW_H
#define FLOPCAST_CREW_CREW_H

#include "base/status.h"
#include "crew/pack.h"

struct crew;

/* Called by main(), first: under mpirun, whether this is another rank than 0, which then has no output, and one thread
 * is the default. */
void crew_set_up(void);
/* Ranks of MPI that mpirun, or another launcher, has started; 0: none. Of the environment alone. */
int crew_launched(void);

/* Workers of this machine: as many as threads (base/threads.h). Under mpirun MPI begins: an error where its plugin is
 * not found. On failure *out is NULL. */
enum status crew_begin(struct crew **out, struct diag *diag);
/* Under MPI a rank other than 0 does not return from it before rank 0 has called it. NULL is fine. */
void crew_end(struct crew *crew);
/* Whether this process prints and stores. True of NULL. */
bool crew_is_owner(const struct crew *crew);

/* Worker processes of this machine that a loop of it may have, and bytes that they share. 0: loops run on threads of
 * this process, or others hand out the jobs. */
int crew_workers(const struct crew *crew, double *bytes);

/* What is known before a loop's first job. */
struct crew_plan {
    const char *noun;       /* the loop's */
    int jobs;               /* to do */
    int ranks, workers;     /* of all machines */
    int at_once;            /* workers that can always run at a time, on the machine with the least memory a worker */
    int machine_workers;    /* that this machine has */
    double largest_bytes;   /* of a job at most, as estimated; 0: not estimated */
    double available_bytes; /* of that machine */
};

struct crew_loop {
    int n;
    const char *noun;    /* what a job is, for messages: "point" */
    const int *order;    /* of beginning: dispatch_order() */
    const bool *known;   /* left out; NULL: none */
    const double *bytes; /* that each takes at most; NULL: not estimated */
    bool everyone;       /* under MPI every rank takes all results, as what it does next depends on them */
    void *self;
    /* From any thread, or in a process that ends with the loop. */
    enum status (*job)(void *self, int job, struct diag *diag);
    /* What job() made, to another process, and from there into this one. pack NULL: threads alone can do it. */
    void (*pack)(void *self, int job, struct pack *out);
    void (*unpack)(void *self, int job, struct unpack *from);
    /* After each job, one at a time, in the order of their ends. False: no further one is begun. NULL: go on. Of ranks
     * other than 0 with `everyone` it is not called. */
    bool (*ended)(void *self, int job, enum status status);
    void (*plan)(void *self, const struct crew_plan *plan); /* before the first job; NULL: nobody asks */
};

/* Runs the loop. crew NULL: on threads of this process; a single job, too. The worst status; what jobs say goes into
 * diag in their order. A job that failed although it was tried several times (dispatch.h) is STATUS_IO. */
enum status crew_run(struct crew *crew, const struct crew_loop *loop, struct diag *diag);

/* Memory of this machine that new processes may take, bytes: what the kernel calls available, or less where a control
 * group (a container, a job of Slurm) limits it. */
double crew_memory_available(void);
/* As the kernel's files below a folder say it, in place of those below /. */
double crew_memory_below(const char *root);

/* The jobs of shard `shard` of `shards` (from 1), so that every shard costs about the same: each job, largest first,
 * goes to the shard that has least; of equal ones to the first. mine: an entry a job. Together the jobs may be bound to
 * others by `with` (NULL: none): job i goes to the shard of job with[i] <= i. */
void crew_shard(bool *mine, const double *cost, const int *with, int n, int shard, int shards);

#endif
