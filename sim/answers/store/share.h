/* What ranks of mpirun make, in one database: rank 0 has it, the others have theirs in memory. So a
 * command does its shard on every rank, and rank 0 then goes on as after `flopcast merge` of
 * databases of shards: what all have made is known. Ranks need no file system in common.
 *
 *     store_share     what rank 0 has, to all others
 *     store_gather    what the others have made since then, or since the last time, to rank 0
 *
 * All ranks call them in the same order. A database travels as SQLite's bytes of it, whole where it
 * is shared: every rank has room for a copy of rank 0's. ranks NULL: nothing is done. */
#ifndef FLOPCAST_STORE_SHARE_H
#define FLOPCAST_STORE_SHARE_H

#include "crew/ranks.h"
#include "store/store.h"

/* The database of this rank: path (NULL: in memory) on rank 0, on the others one in memory. */
enum status store_open_of_rank(
    struct store **out, const char *path, const struct ranks *ranks, struct diag *diag);

enum status store_share(struct store *store, struct ranks *ranks, struct diag *diag);
/* Rank 0: merged; the other ranks no longer have it. */
enum status store_gather(struct store *store, struct ranks *ranks, struct diag *diag);

#endif
