/* One database out of several: those of shards (`flopcast run --shard`), or of machines that share
 * no disk.
 *
 * A run of the same scenario and the same points in the same order is the same run (run.sweep);
 * what the target has not of it is added, other runs are appended. So merging again adds nothing.
 * Rows are copied as they are: of a run that is put together of shards they are those of one that
 * was not, except what differs between any two such runs: when it was (run.created_utc), how long
 * points took (point.wall_s), and numbers of rows (id, run_id, point_id, hardware_id, model_id,
 * simulated_id).
 *
 * Each source is one transaction: when the program is killed, the target has all of a source or
 * nothing, and the same merge goes on. A source is not changed. Not merged, with a warning: what
 * other commands have stored (answers, measurements). */
#ifndef FLOPCAST_STORE_MERGE_H
#define FLOPCAST_STORE_MERGE_H

#include "store/store.h"

struct store_merged {
    int runs, points, samples, outcomes; /* added */
};

/* A point that both have, of the same run but with other results, is an error: nothing of the
 * source is then merged. */
enum status store_merge(
    struct store *into, const char *path, struct store_merged *out, struct diag *diag);

/* The same of SQLite's bytes of a database of this program. */
enum status store_merge_bytes(struct store *into, const unsigned char *bytes, size_t n,
    struct store_merged *out, struct diag *diag);

/* Runs of shards that have not all of their points: an error for each, which names the shards that
 * are missing or were stopped. */
enum status store_check_shards(struct store *store, struct diag *diag);

#endif
