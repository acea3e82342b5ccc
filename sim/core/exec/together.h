/* Several jobs on one cluster at a time: their collectives share the links of its network at max-min fair rates.
 *
 * Each job has nodes to itself, so only switches are shared; on a pooled network (hw/network.h) nothing is. A job that
 * has done its measured steps goes on, unmeasured, until all have done theirs, so that every measured step is taken
 * beside all other jobs. All begin at time 0; as their steps differ in length, they drift through each other's phases,
 * and the mean over steps is over these: measure several.
 *
 * Memory, and where the allocator stands in the host's way, is that of each job alone. A job that is out of memory
 * alone takes no part. Ignored: nodes, NICs and file systems that jobs share; latency by the number of switches
 * between a job's nodes. Not possible here: folded ranks, traces, slow GPUs and degraded links. */
#ifndef FLOPCAST_EXEC_TOGETHER_H
#define FLOPCAST_EXEC_TOGETHER_H

#include "exec/exec.h"

enum { EXEC_MAX_JOBS = 8 };

/* Where the nodes of a job are. */
struct exec_place {
    const int *nodes; /* the cluster's node of each of the job's, as many as its ranks need; borrowed */
    int cluster_nodes;
};

struct exec_job {
    const struct plan *plan;
    const struct hw *hw; /* of all jobs with the same links */
    const struct exec_options *options;
    struct exec_place place;
    struct exec_result *out;
};

/* Whether the links of that many nodes are the same by both. */
bool exec_links_alike(const struct hw *a, const struct hw *b, int nodes);

/* BUG on a plan that plan_check refuses, on a node that two jobs have, and on links that differ. One job alone: what it
 * would do at its place. */
void exec_run_together(const struct exec_job *jobs, int n_jobs, struct arena *arena);

#endif
