/* Several scenarios on one cluster at a time: how much each is slowed by the others (exec/together.h). */
#ifndef FLOPCAST_STUDY_TOGETHER_H
#define FLOPCAST_STUDY_TOGETHER_H

#include "exec/together.h"
#include "scenario/scenario.h"

/* Which nodes of the cluster a job gets that is given none. Packed: one job after the other. Interleaved: node by node
 * to each job in turn, as long as it needs one. Drawn: each job in turn takes free nodes by chance, in ascending order.
 */
enum together_placement { TOGETHER_PACKED, TOGETHER_INTERLEAVED, TOGETHER_DRAWN, TOGETHER_PLACEMENTS };
extern const char *const together_placement_names[TOGETHER_PLACEMENTS + 1];

struct together_job {
    const struct scenario_point *point;
    const char *given;                    /* nodes, as "0-3,8"; NULL: by the placement */
    int *nodes;                           /* that it has; in the arena */
    int n_nodes;                          /* that its GPUs need */
    struct scenario_result alone, beside; /* at the same place; results of a job that is out of memory are alike */
};

struct together_cluster {
    enum together_placement placement;
    uint64_t seed; /* of drawn */
    int nodes;     /* 0: as many as the jobs need, or as are given; then what they are */
};

/* Who gets which nodes. Wrong: nodes that do not exist, that two jobs are given, or too few. */
enum status together_place(
    struct together_job *jobs, int n_jobs, struct together_cluster *cluster, struct arena *arena, struct diag *diag);

/* Each alone, then all of them. A job measures run.steps steps, and more if the others take longer for theirs, so that
 * all are measured over about the same time. After together_place(). Wrong: links that differ between the jobs' files,
 * slow GPUs, degraded links, a network without switches, as jobs share nothing there. */
enum status scenario_together(struct together_job *jobs, int n_jobs, const struct together_cluster *cluster,
    struct arena *arena, struct diag *diag);

#endif
