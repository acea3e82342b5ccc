/* Months of training: what failures, checkpoints and restarts leave of the speed of a step.
 *
 * A node here is a host, a machine that fails and is replaced as one (hw/hw.h): of a rack a tray.
 *
 * Modelled: GPUs, nodes, links, switches and the software of each node fail at exponential times, a
 * random stream each. A failure ends the processes, which is noticed after detection_time; or it
 * hangs them (hang_share), and the other ranks wait in a collective until nccl_timeout. All work
 * since the last checkpoint that was written is lost. A node in which hardware failed is replaced
 * by a hot spare; where none is free, the job waits until another node has come (replacement_time),
 * and the spares fill up again in that time, too; a switch has no spare. The job then starts again
 * (restart_time, by the size of the job where it is 0) and loads the checkpoint. A failure in any
 * of these phases begins them anew. Planned maintenance first writes a checkpoint, so that no work
 * is lost.
 *
 * A checkpoint is begun after a number of whole steps and keeps training waiting: blocking, until
 * all is written; asynchronous, until all is in host memory. It is then written beside training, is
 * of use only when that is done, and the next one waits for it. Sharded: every rank writes its
 * share; else one rank writes all. A restart loads what was written at the speed at which all nodes
 * can read.
 *
 * Elastic (elastic_nodes > 0): where no spare is free, the job starts again without the node that
 * failed, and without those that make up a data-parallel replica with it, elastic_nodes in all;
 * when these are whole again, it writes a checkpoint and starts again with them. It trains with
 * fewer nodes at the same speed of a GPU, each step on fewer samples, at intervals of the same
 * time. Only with less than one replica left, and for a switch, it waits.
 *
 * Slow nodes (slow_node_mtbf > 0): a node becomes slow at an exponential time and stays so, and all
 * others wait for the slowest, so training takes 1 + slow_node_slowdown times as long while any
 * node of the job is slow. A slow node is found slow_node_detection_time later: the job writes a
 * checkpoint and starts again with a hot spare in its place, where none is free after
 * replacement_time. Where the job stands still at that moment, the node is replaced in passing.
 *
 * Ignored: a slow node that fails before it is found (it leaves the job only when it is found),
 * failures that come together (of a rack, of power), which rack a spare tray is in, infant
 * mortality and ageing, other costs of a step on fewer nodes, steps that are slower after a
 * restart, the first start of the job.
 *
 * Time in the engine is in nanoseconds here, not picoseconds: its horizon of 46 days is then 126
 * years. */
#ifndef FLOPCAST_GOODPUT_GOODPUT_H
#define FLOPCAST_GOODPUT_GOODPUT_H

#include "base/quantity.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

/* What fails; planned maintenance; nodes that are slow. */
enum goodput_cause {
    GOODPUT_GPU,
    GOODPUT_NODE, /* host: CPU, memory, disk, power supply, board */
    GOODPUT_LINK, /* NIC, cable, and the switch's port */
    GOODPUT_SWITCH,
    GOODPUT_SOFTWARE, /* of a node's processes */
    GOODPUT_PARTS,
    GOODPUT_MAINTENANCE = GOODPUT_PARTS,
    GOODPUT_SLOW_NODE,
    GOODPUT_CAUSES
};
extern const char *const goodput_cause_names[GOODPUT_CAUSES + 1]; /* "gpu", "node", ... */

/* Where the time goes; all of it is one of these. */
enum goodput_time {
    GOODPUT_TRAINING,   /* steps that count */
    GOODPUT_CHECKPOINT, /* training waits for a checkpoint */
    GOODPUT_LOST,       /* steps that were done again, or will be */
    GOODPUT_DETECTION,  /* until the failure is noticed; hangs */
    GOODPUT_WAITING,    /* for a node, as no spare was free */
    GOODPUT_RESTART,    /* processes start, the checkpoint is loaded */
    GOODPUT_SHRUNK,     /* elastic: what the nodes that are away would have trained */
    GOODPUT_SLOWED,     /* by how much training took longer beside a slow node */
    GOODPUT_TIMES
};
extern const char
    *const goodput_time_names[GOODPUT_TIMES + 1]; /* "training", "checkpoint", "lost_work", ... */

/* Section `goodput` of a scenario. Times in s, bytes, B/s. */
struct goodput_options {
    double mtbf_s[GOODPUT_PARTS]; /* of one GPU, node, link, switch, node's software; 0: it never
                                     fails */
    double detection_s[GOODPUT_PARTS];
    double maintenance_interval_s; /* mean time between interruptions that are planned; 0: none */
    double hang_share, nccl_timeout_s;
    double slow_node_mtbf_s; /* of a node, until it is slow; 0: none gets slow */
    double slow_node_slowdown, slow_node_detection_s; /* fraction; detection 0: never found */
    int64_t hot_spares;    /* nodes; GOODPUT_BY_SIZE: goodput_hot_spares() */
    int64_t elastic_nodes; /* nodes */
    double replacement_s;
    double restart_s;             /* 0: by the size of the job */
    double days;                  /* that a history lasts; 0: not said */
    double checkpoint_interval_s; /* 0: the best */
    double checkpoint_bytes;      /* 0: of the model's parameters and optimizer state */
    double checkpoint_bandwidth_Bps, checkpoint_node_bandwidth_Bps, checkpoint_copy_bandwidth_Bps;
    bool async_checkpoint, sharded_checkpoint;
};

/* The section, for scenario/table.c, and what it holds by default. */
extern const struct config_table goodput_table;
struct goodput_options goodput_default_options(void);

/* The default numbers, each with its kind and source; unit by the table. List ends with a key NULL.
 */
struct goodput_number {
    const char *key; /* "gpu_mtbf" */
    struct quantity number;
};
extern const struct goodput_number goodput_numbers[];

enum { GOODPUT_BY_SIZE = -1 };

/* Time of a restart by the number of GPUs: measured times, in between linear in its logarithm;
 * below the smallest measured job as that one, above the largest along the last two. */
double goodput_restart_s(int64_t gpus);

struct goodput_job {
    struct goodput_options options;
    int64_t parts[GOODPUT_PARTS]; /* how many there are of each */
    int64_t in_rack;              /* nodes in a rack that NVLink joins; 0 or 1: none are in one */
    double step_s;
    double
        state_bytes; /* parameters and optimizer state; read where options.checkpoint_bytes is 0 */
};

/* How many nodes stand by for a job: as options.hot_spares says, or by its size. ByteRobust counts
 * what is enough in 99 % of the time: 2 for 128 nodes, 4 for 1,024. In between and above linear in
 * the logarithm, to the nearest; below in proportion, whole nodes only, so that a job of fewer than
 * 64 nodes has none.
 *
 * In a rack only a tray of the same rack can take another's place at NVLink, so each has its own: 2
 * for 16, in proportion, whole ones only. Assumed: NVIDIA's recipes run 64 of the 72 GPUs of a rack
 * of 18 trays. */
int64_t goodput_hot_spares(const struct goodput_job *job);

/* What follows from the options, without chance. */
struct goodput_costs {
    double bytes;
    double stall_s; /* a checkpoint keeps training waiting */
    double write_s; /* asynchronous: then it is written so long; else 0 */
    double load_s, restart_s;
    double recovery_s; /* from a failure to the first step, in the mean over parts, where a spare is
                          free */
    double mtbf_s;     /* of the job, by all its parts; INFINITY: nothing fails */
};
struct goodput_costs goodput_costs(const struct goodput_job *job);

/* The interval in which checkpoints cost least: Young (CACM 17, 1974), sqrt(2 stall mtbf), and
 * Daly's higher order (FGCS 22, 2006, eq. 37). Of time between two checkpoints, without the stall.
 */
double goodput_young_s(const struct goodput_costs *costs);
double goodput_daly_s(const struct goodput_costs *costs);

/* The share of time that trains, in closed form (Daly 2006, eq. 20): blocking checkpoints, failures
 * of one rate at any time, each followed by one recovery of constant length. */
double goodput_daly_share(const struct goodput_costs *costs, double interval_s);

/* One history of the job. */
struct goodput_run {
    double elapsed_s;
    double time_s[GOODPUT_TIMES][GOODPUT_CAUSES +
                                 1]; /* the last column: of no cause; the sum of all is elapsed_s */
    int64_t interruptions[GOODPUT_CAUSES];
    int64_t hangs, checkpoints;
    uint64_t digest; /* of the engine */
};
enum { GOODPUT_NO_CAUSE = GOODPUT_CAUSES };

/* days > 0, at most GOODPUT_MAX_DAYS. The interval is rounded to whole steps, at least one. */
enum { GOODPUT_MAX_DAYS = 36500 };
void goodput_simulate(struct goodput_run *out, const struct goodput_job *job, double interval_s,
    double days, uint64_t seed);

double goodput_share(const struct goodput_run *run); /* that trains */
double goodput_lost_share(
    const struct goodput_run *run, enum goodput_time time); /* of all causes */

/* n histories with the seeds seed, seed + 1, ..., on all cores; the same on any number of them. */
void goodput_simulate_all(struct goodput_run *out, int n, const struct goodput_job *job,
    double interval_s, double days, uint64_t seed);

/* The interval with the largest mean share of n histories that are long enough to see
 * GOODPUT_SEARCH_FAILURES of them together: of intervals about Daly's, all with the same failures,
 * the top of a parabola in the logarithm. Where nothing fails, or a checkpoint costs nothing, days
 * or a step. Knows Daly's formula as a place to begin only; where checkpoints and lost work are
 * below 0.03 % of the time there (small checkpoints, few failures), it is that: histories of
 * millions of checkpoints would not tell it from its neighbours. */
enum { GOODPUT_SEARCH_FAILURES = 400 };
double goodput_search_s(const struct goodput_job *job, int n, double days, uint64_t seed);

/* Mean and the 5th and 95th percentile of n > 0 values, which it sorts. */
struct goodput_band {
    double mean, low, high;
};
struct goodput_band goodput_band(double *values, int n);

#endif
