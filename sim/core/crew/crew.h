/* Independent jobs, done by threads of this process and, under MPI, by threads of other ranks. What comes out does not
 * depend on who did what.
 *
 * MPI: every rank runs the same command. In a loop, rank 0 hands out the jobs, takes the results as bytes (pack.h) and
 * alone prints and stores; the others serve. When a rank dies, mpirun ends all: what rank 0 has stored is kept, and the
 * same command goes on from there. Ranks other than 0 have no output. The calls of MPI are in a plugin (mpi.h), which
 * the program loads when it is started by mpirun. */
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

/* Under mpirun MPI begins: an error where its plugin is not found. On failure *out is NULL. */
enum status crew_begin(struct crew **out, struct diag *diag);
/* Under MPI a rank other than 0 does not return from it before rank 0 has called it. NULL is fine. */
void crew_end(struct crew *crew);
/* Whether this process prints and stores. True of NULL. */
bool crew_is_owner(const struct crew *crew);

struct crew_loop {
    int n;
    const int *order;  /* of beginning: crew_order() */
    const bool *known; /* left out; NULL: none */
    bool everyone;     /* under MPI every rank takes all results, as what it does next depends on them */
    void *self;
    /* From any thread, or in another rank. */
    enum status (*job)(void *self, int job, struct diag *diag);
    /* What job() made, to another rank, and from there into this one. pack NULL: only this process can do it. */
    void (*pack)(void *self, int job, struct pack *out);
    void (*unpack)(void *self, int job, struct unpack *from);
    /* After each job, one at a time, in the order of their ends. False: no further one is begun. NULL: go on. Of ranks
     * other than 0 it is not called. */
    bool (*ended)(void *self, int job, enum status status);
};

/* Runs the loop, with as many threads as base/threads.h says. crew NULL: without MPI. The worst status; what jobs say
 * goes into diag in their order. */
enum status crew_run(struct crew *crew, const struct crew_loop *loop, struct diag *diag);

/* The n jobs, those with the highest cost first, of equal ones the last first, as sweeps mostly grow: one that is begun
 * last and takes long would leave the other workers idle. For free(). */
int *crew_order(const double *cost, int n);

/* The jobs of shard `shard` of `shards` (from 1), so that every shard costs about the same: each job, largest first,
 * goes to the shard that has least; of equal ones to the first. mine: an entry a job. Together the jobs may be bound to
 * others by `with` (NULL: none): job i goes to the shard of job with[i] <= i. */
void crew_shard(bool *mine, const double *cost, const int *with, int n, int shard, int shards);

#endif
