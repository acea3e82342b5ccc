/* A log of nccl-tests beside what the model predicts for it: one line of "how good is this topology
 * file". */
#ifndef FLOPCAST_CALIBRATE_NCCL_CHECK_H
#define FLOPCAST_CALIBRATE_NCCL_CHECK_H

#include "calibrate/fit.h"
#include "import/nccl.h"
#include "coll/coll.h"
#include "store/store.h"

/* On how many of the cluster's nodes ranks ran that a log has on `logged` (0: it does not say). A
 * rack of trays that NVLink joins is one node of a cluster, and a launcher calls each tray one:
 * where the ranks of a log's nodes fit a host (node.hosts), its nodes are hosts, and fill the
 * racks. */
int nccl_nodes(int ranks, int logged, const struct hw *hw);

/* The same of racks whose file has no hosts: warns where the log's ranks would fit on fewer. */
void nccl_warn_of_trays(
    const char *log, int ranks, int nodes, const struct hw *hw, struct diag *diag);

/* nccl_read() of the log at path. Rows whose results were wrong, which it leaves out, are warned
 * of. */
enum status nccl_load(struct nccl_log *out, const char *path, const struct nccl_options *options,
    struct arena *arena, struct diag *diag);

#define NCCL_FULL_BYTES                                                                            \
    0x1p28 /* assumed: from here on latency is below a tenth of a healthy all_reduce of some nodes \
            */

struct nccl_checked {
    double bytes, measured_s; /* out of place where there is such a figure, else in place */
    struct coll_cost predicted;
};

struct nccl_check {
    const char *collective;
    const char *other_gpu; /* what the log calls its GPUs, when that is not the cluster's model;
                              else NULL */
    const char
        *as_said; /* what of NCCL's own settings is predicted with, in words; NULL: nothing */
    struct nccl_settings said; /* by the log, or the file of NCCL_DEBUG */
    int ranks, nodes,
        logged_nodes; /* nodes of the cluster; what the log calls nodes, 0: it does not say */
    double channels;  /* that are predicted */
    double errors[COLL_ALGORITHM_COUNT]; /* as nccl_explaining() takes them; none where an algorithm
                                            was forced */
    VEC(struct nccl_checked) rows;
};

/* Puts into hw what NCCL says of its settings on that number of nodes: channels, NVLS off, version.
 * What of it, in words, or NULL. What contradicts hw and is not put in is warned of at path. */
const char *nccl_settle(struct hw *hw, const struct nccl_settings *said, int nodes,
    const char *path, struct arena *arena, struct diag *diag);

/* log: what was read of a file of nccl-tests, path, of one collective on one group. Where it does
 * not say the number of nodes, it is the fewest of the topology's nodes that can hold the ranks.
 * The network is the cluster file's (fabric/isolated.h). What force leaves open is as the log's
 * NCCL_ALGO and NCCL_PROTO say, else NCCL's choice. A collective that is not modelled, or a group
 * that the topology cannot hold, is STATUS_INPUT. Texts live in the arena. Free with
 * vec_free(&out->rows), also after an error. */
enum status nccl_check(struct nccl_check *out, const struct nccl_log *log, const char *path,
    const struct hw *hw, struct coll_force force, struct arena *arena, struct diag *diag);

/* The algorithm of NCCL's as which a log agrees where NCCL's choice does not: the one with the
 * least error, if that is within NCCL_LARGE_WANTED and less than two thirds of the error of NCCL's
 * choice, which is beyond. Else COLL_ANY. errors: median of |predicted / measured - 1| over sizes
 * of 1 MiB and more with each algorithm forced; below 0: it is not possible. */
int nccl_explaining(double chosen_error, const double errors[COLL_ALGORITHM_COUNT]);

/* What the sizes say of a cluster, in a few sentences; NULL without sizes of 1 MiB and more. Small
 * sizes (below 1 MiB), middle ones and large ones (NCCL_FULL_BYTES) are judged apart: where the
 * large ones meet the prediction, the links are as they should be, and no hardware is suspected. */
const char *nccl_check_verdict(const struct nccl_check *check, struct arena *arena);

/* The check as rows of the database, for `flopcast plot check`. */
enum status nccl_check_store(const struct nccl_check *check, const char *log, const char *topology,
    const struct hw *hw, struct store *store, struct diag *diag);

/* |predicted / measured - 1| over sizes from min_bytes to below max_bytes. */
struct fit_error nccl_check_error(
    const struct nccl_check *check, double min_bytes, double max_bytes);

#endif
