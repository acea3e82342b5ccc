/* The inter-node hops of a collective, and NCCL's trees. Nodes are numbered within the group. */
#ifndef FLOPCAST_COLL_HOPS_H
#define FLOPCAST_COLL_HOPS_H

#include "coll/coll.h"

/* share: of what the busiest node sends (node_out_factor x bus bytes). */
struct coll_hop {
    int from, to;
    double share;
};

/* Ring: each node sends all to the next. Tree: both directions of every edge of both trees. Others
 * are laid out as a ring, which loads each node alike (an all_to_all has no hops:
 * coll_cost.all_pairs). hops has room for COLL_MAX_HOPS(nodes); returns how many. 0 for one node.
 */
#define COLL_MAX_HOPS(nodes) (4 * (nodes))
int coll_hops(struct coll_hop *hops, enum coll_algorithm algorithm, int nodes);

/* Parent of a node in tree 0 or 1 of NCCL's double binary tree; -1 for the root. A node inside one
 * tree is a leaf of the other: the second is the first mirrored (an even number of nodes) or
 * shifted by one (odd; then node 0, the root of the first with its one child, is inside both).
 * Source: the shape of ncclGetBtree and ncclGetDtree (NVIDIA/nccl src/graph/trees.cc), restated. */
int coll_tree_parent(int tree, int node, int nodes);

#endif
