/* Fits what topologies/ say about NCCL to tables of nccl-tests.
 *
 * results/measured/nccl_tables.csv lists every table of collectives.csv: the cluster file that
 * describes its machine, and its use: fit, left_out (predicted, never fitted) or bad (outside what
 * is modelled; the note says why), by the rule at its head. What is fitted stands in the files
 * themselves: every quantity of kind fitted in the node and cluster files of these clusters.
 * Quantities with the same key and the same id, "nccl/hopper-nodes" say, are one parameter of a
 * hardware family, however many files have it.
 *
 * Residuals: log(model / measured) of the time out of place, all sizes from the table's min_bytes
 * on; robust (calibrate/fit.h). The model is coll_choose(), of which the table may force algorithm,
 * protocol and channels, as the environment of the run did, and state NCCL's version, plus
 * launch_us: what one process that launches on eight GPUs in turn adds.
 *
 * Errors of a table: median of |model / measured - 1| over its sizes from 1 MiB and below 64 KiB.
 *
 * The claim is about tables whose hardware was seen: a fitted table has the same compute
 * capability, the same kind of NIC with its transport (column hardware) and as many GPUs in a node
 * of its topology. The rule looks at no error; it was written down when the errors of most tables
 * were known, but before anything was counted by it. */
#ifndef FLOPCAST_CALIBRATE_NCCL_FIT_H
#define FLOPCAST_CALIBRATE_NCCL_FIT_H

#include "calibrate/fit.h"
#include "coll/coll.h"

#include <stdbool.h>
#include <stdio.h>

enum nccl_use { NCCL_FIT, NCCL_LEFT_OUT, NCCL_BAD, NCCL_USE_COUNT };
extern const char *const nccl_use_names[NCCL_USE_COUNT + 1]; /* "fit", "left_out", "bad" */

struct nccl_point {
    double bytes, measured_s;
    int place; /* of its case; set by nccl_fit_solve() */
};

/* A table and what it is compared with. Texts live in the arena. */
struct nccl_case {
    const char *source, *gpu, *note, *topology;
    const char *family; /* of hardware; "" for bad ones that no cluster describes */
    const char
        *hardware; /* compute capability, and what carries bytes between nodes; "" for bad ones */
    enum coll_kind kind;
    int nodes, ranks; /* nodes: NVLink domains, where one spans several machines */
    struct coll_force force;
    double channels; /* forced, or 0 */
    int version;     /* of hw_nccl_versions; COLL_ANY: the cluster file's */
    double launch_s;
    double min_bytes; /* sizes below are left out: they say something else */
    enum nccl_use use;
    int system; /* into systems, -1: none describes it */
    VEC(struct nccl_point) points;
};

struct nccl_fit {
    VEC(struct nccl_case) cases;
    VEC(struct hw) systems;
    struct fit fit; /* parameters of the hardware families; what no fitted table has is fixed */
};

/* clusters: the folder of cluster files. Free with nccl_fit_free(), also after an error. */
enum status nccl_fit_load(struct nccl_fit *out, const char *measured, const char *clusters,
    struct arena *arena, struct diag *diag);
void nccl_fit_free(struct nccl_fit *fit);

/* Fits; systems then have the fitted values. start: what the filed values are multiplied with for a
 * start (1: near enough to weigh the rows by it). STATUS_INPUT when the tables do not determine the
 * parameters. */
enum status nccl_fit_solve(struct nccl_fit *nccl, double start, struct diag *diag);

/* The parameter that a quantity of this key and id is, or NULL. */
const struct fit_parameter *nccl_fit_find(
    const struct nccl_fit *fit, const char *key, const char *id);

/* Calls visit for every fitted quantity of the node and cluster. */
void nccl_each_fitted(struct hw *hw,
    void (*visit)(void *self, const char *key, enum dimension dimension, struct quantity *q),
    void *self);

/* A visitor: a parameter of the nccl_fit self, where it is not one already. */
void nccl_add_parameter(void *self, const char *name, enum dimension dimension, struct quantity *q);

struct coll_cost nccl_case_cost(
    const struct nccl_fit *fit, const struct nccl_case *which, double bytes);
double nccl_case_predict_s(const struct nccl_fit *fit, const struct nccl_case *which, double bytes);

#define NCCL_LARGE_BYTES 0x1p20
#define NCCL_SMALL_BYTES 0x1p16
/* What left-out tables are to reach: the claim of the project, in issue 3. */
#define NCCL_LARGE_WANTED 0.10
#define NCCL_SMALL_WANTED 0.25
struct fit_error nccl_case_error(
    const struct nccl_fit *fit, const struct nccl_case *which, double min_bytes, double max_bytes);

/* Whether a fitted table has the hardware of this one, which is not bad. */
bool nccl_case_seen(const struct nccl_fit *fit, const struct nccl_case *which);

/* Another table of the same machine, collective, group and settings, neither of them bad, that says
 * something so different that no prediction is within NCCL_LARGE_WANTED of both: their times are
 * 1.1 / 0.9 apart, 22 %, in the median over the sizes from min_bytes to below max_bytes
 * (interpolated between the other's). Or one of the same, but of another number of nodes, two or
 * more, where the fewer nodes take longer by as much: no algorithm has less to do for more nodes
 * with as many ranks each. Looks at no prediction, but this second half was written when the errors
 * were known: it flags two tables, both of NVIDIA/nccl#235. with: the one furthest away, NULL when
 * none contradicts. */
struct nccl_contradiction {
    const struct nccl_case *with;
    double factor; /* median of what lies between their times, whichever is the longer: 1 or more */
};
struct nccl_contradiction nccl_case_contradiction(
    const struct nccl_fit *fit, const struct nccl_case *which, double min_bytes, double max_bytes);

/* A solved fit as rows. measured: the folder, whose name is stored. */
struct store;
enum status nccl_fit_store(
    struct nccl_fit *fit, const char *measured, struct store *store, struct diag *diag);

/* The report of `flopcast calibrate fit nccl`. */
void nccl_fit_print(FILE *out, const struct nccl_fit *fit);

#endif
