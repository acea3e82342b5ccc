/* The ranks of a program that mpirun has started. Every one runs the same command and does its
 * shards of the work; rank 0 alone has the database, takes what the others have made
 * (store/share.h), prints and stores. Ranks other than 0 have no output. The calls of MPI are in a
 * plugin (mpi.h), which the program loads when it is started by mpirun.
 *
 * A rank that ends before its work is done is said to have, and rank 0 does what it left. When one
 * dies, mpirun ends all: what rank 0 has stored is kept, and the same command goes on from there.
 */
#ifndef FLOPCAST_CREW_RANKS_H
#define FLOPCAST_CREW_RANKS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct ranks;

/* Called by main(), first: under mpirun, whether this is another rank than 0, which then has no
 * output, and one thread is the default. */
void ranks_set_up(void);
/* Ranks that mpirun, or another launcher, has started; 0: none. Of the environment alone. */
int ranks_launched(void);

/* Under mpirun MPI begins: an error where its plugin is not found, or where ranks are of another
 * build. *out is NULL on failure and without mpirun. */
enum status ranks_begin(struct ranks **out, struct diag *diag);
/* A rank other than 0 does not return from it before rank 0 has called it. NULL is fine. */
void ranks_end(struct ranks *ranks);

/* NULL is one rank, number 0. */
int ranks_count(const struct ranks *ranks);
int ranks_number(const struct ranks *ranks);
static inline bool ranks_is_first(const struct ranks *ranks)
{
    return ranks_number(ranks) == 0;
}

/* Rank 0: the bytes to all others that are still there. */
void ranks_give(struct ranks *ranks, const void *bytes, size_t n);
/* Another rank: what rank 0 gives next, for free(). Where rank 0 has ended, so does this process.
 */
unsigned char *ranks_take(struct ranks *ranks, size_t *n);

/* Another rank: bytes to rank 0. */
void ranks_deliver(struct ranks *ranks, const void *bytes, size_t n);
/* Rank 0: the bytes of one of the others, for free(); in whatever order, of each once. NULL: that
 * of each is there, and the next call begins anew. Of a rank that has ended none come, with a
 * warning the first time. */
unsigned char *ranks_collect(struct ranks *ranks, size_t *n, struct diag *diag);

#endif
