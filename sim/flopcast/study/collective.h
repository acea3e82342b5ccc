/* A collective alone on a cluster, size by size: of one group of GPUs, or of all groups of an axis of a mesh at once
 * (fabric/isolated.h), with NCCL's choice of algorithm and protocol or a forced one. */
#ifndef FLOPCAST_STUDY_COLLECTIVE_H
#define FLOPCAST_STUDY_COLLECTIVE_H

#include "base/vec.h"
#include "fabric/isolated.h"
#include "mesh/mesh.h"

/* A grid of ranks and one group of its axes. */
struct collective_mesh {
    struct mesh mesh; /* ranks 0: --mesh is not given */
    const char *axis; /* --group; NULL: not given */
    struct mesh_group group;
};

struct collective {
    const char *degraded; /* as cluster.degraded_links; NULL: none */
    struct collective_mesh mesh;
    int kind, gpus, nodes; /* of the group, or of each group of the mesh; nodes 0: the fewest that hold it, set */
    double min_bytes, max_bytes, factor;
    struct coll_force force;
};

struct collective_size {
    double bytes;
    struct coll_cost cost;
    char link[ISOLATED_LINK]; /* that binds it, "": all alike */
};
struct collective_sizes {
    VEC(struct collective_size) list;
};

/* From min_bytes to max_bytes by the factor. STATUS_INPUT: the cluster does not have such groups, or cannot do it as is
 * forced. The list is to be freed with vec_free(), also after an error. */
enum status collective_predict(struct collective_sizes *out, struct collective *asked, const struct hw *hw,
    struct arena *arena, struct diag *diag);

#endif
