/* A collective alone on a cluster (fabric/isolated.h), size by size: of one group, or of all groups
 * of an axis of a grid of ranks at the same time, which share the nodes' links. */
#ifndef FLOPCAST_STUDY_COLLECTIVE_H
#define FLOPCAST_STUDY_COLLECTIVE_H

#include "base/vec.h"
#include "fabric/isolated.h"
#include "mesh/mesh.h"

enum { COLLECTIVE_MAX_RANKS = 1 << 20 };

/* Who takes part. */
struct collective_ranks {
    struct mesh mesh;        /* ranks 0: there is one group */
    struct mesh_group group; /* of the mesh */
    int gpus, nodes;         /* of the group, or of each; nodes 0: the fewest that hold them */
};

/* The grid by its axes and their sizes, neighbours first, as "tp=8,dp=16,pp=4" ("dp": both axes of
 * data parallelism), and then the group by one of them, or by several side by side, as "cp+dp".
 * NULL, or what is wrong with the text. */
const char *collective_set_mesh(struct collective_ranks *ranks, const char *text);
const char *collective_set_group(struct collective_ranks *ranks, const char *text);

/* Sizes from min_bytes to max_bytes by factor, each at least a byte larger. */
struct collective {
    struct collective_ranks ranks;
    int kind; /* enum coll_kind */
    double min_bytes, max_bytes, factor;
    struct coll_force force;
    const char *degraded; /* as cluster.degraded_links; NULL: none */
};

struct collective_size {
    double bytes;
    struct coll_cost cost;
    char link[ISOLATED_LINK]; /* that binds it, "": all alike */
};
struct collective_sizes {
    VEC(struct collective_size) list;
};

/* Sets ranks.nodes, too. STATUS_INPUT: the cluster cannot hold such groups, or NCCL cannot do it as
 * force wishes; diag says so by the names of `flopcast collective`'s options. */
enum status collective_predict(struct collective_sizes *out, struct collective *asked,
    const struct hw *hw, struct arena *arena, struct diag *diag);

#endif
