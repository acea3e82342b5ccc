/* A run in the database: every finished point is a transaction. A sweep that was stopped (Ctrl-C,
 * kill -9, full disk, no power) keeps the points that were finished, and the same command goes on
 * with the missing ones.
 *
 *     store_run_begin        what is known already into results
 *       store_run_samples    the same of samples, when they are asked for
 *       store_run_point      each point that was simulated
 *       store_run_sample     each sample
 *     store_run_given        what one's own measurements make of them
 *     store_run_end
 *
 * What is known: results of points with the same identity (scenario/identity.h), of whatever run,
 * are taken from the database. If the newest run of the scenario has the same points in the same
 * order and under the same names, it is continued, or left as it is if it has all of them.
 * Otherwise a run is added, with rows also for points whose results were taken; point.simulated_id
 * says from which. A run always has a point.
 *
 * While a run is written the database is in SQLite's WAL mode with synchronous = NORMAL, where that
 * works: a commit survives the end of the process and, as no commit is flushed for itself, without
 * power the last ones may be lost, but nothing else. In the end it is one file again, unless
 * another program has it open. Two programs may write to a database at a time, also the same sweep:
 * then each simulates what it does not find at its begin, and a point is stored once. */
#ifndef FLOPCAST_STORE_RUN_H
#define FLOPCAST_STORE_RUN_H

#include "scenario/sample.h"
#include "scenario/sure.h"
#include "store/store.h"

struct store_run;

struct store_run_options {
    const struct scenario_set *set;                 /* as the next: borrowed until store_run_end */
    const struct scenario_uncertainty *uncertainty; /* where samples > 0 */
    int samples;                                    /* a point */
    int shard, shards,
        shard_points; /* which shard of how many, and how many points are its; 0: all of the run */
    bool again; /* take nothing from the database: a run is added, with all points; also where a
                 * point is traced, as traces are not stored whole */
};

/* Fills results[i] (texts in arenas[i]; no timeline, no spans), sets known[i] for what is in the
 * database, and stores these as points of the run. On failure *out is NULL. */
enum status store_run_begin(struct store_run **out, struct store *store,
    const struct store_run_options *options, struct scenario_result *results, struct arena *arenas,
    bool *known, struct diag *diag);

/* Fills results[i].samples (in arenas[i]) with what is known, and known (options->samples places a
 * point). */
enum status store_run_samples(struct store_run *run, struct scenario_result *results,
    struct arena *arenas, bool *known, struct diag *diag);

/* A point with its result, in one transaction. */
enum status store_run_point(
    struct store_run *run, int point, const struct scenario_result *result, struct diag *diag);

/* Sample number `sample` of a point that is stored, in one transaction; with the last one of the
 * point its band. */
enum status store_run_sample(struct store_run *run, int point, int sample,
    const struct scenario_result *result, struct diag *diag);

/* One's own measurements beside points that are stored, in place of what the run had; in the order
 * of the points, NULL: nothing was measured. range.known false: not of this point. measured: of the
 * point itself, over what is simulated; 0: it was not. */
struct store_given {
    struct sure_range range;
    double measured;
};
enum status store_run_given(
    struct store_run *run, const struct store_given *given, struct diag *diag);

/* All points of this shard, and their samples, are stored. */
enum status store_run_shard_done(struct store_run *run, struct diag *diag);

void store_run_end(struct store_run *run); /* NULL is fine */

#endif
