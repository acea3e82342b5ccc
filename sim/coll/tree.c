/* Double binary tree, all-reduce only: a chain inside each node and two complementary binary trees between nodes, each
 * with half of the data, reduced up and broadcast down (Sanders, Speck, Traff 2009; NCCL 2.4). Latency 2 ((p - 1)
 * inside + floor(log2 N) across), as NCCL's tuner counts. Every rank but the roots sends S up and down: bus bytes 2
 * (n-1)/n S as for the ring, by convention. A node sends to one parent and two children in one tree and is a leaf in
 * the other: on average S (N - 1)/N up and as much down, each tree half; on two nodes only half of the data leaves a
 * node each way (that is why two nodes are special). */
#include "coll/algorithm.h"

#include "base/status.h"

/* Share of the ring's bandwidth that a tree's channels reach: NCCL's tuner, min(0.92 busBw, ...) for tree all-reduce
 * (NVIDIA/nccl src/graph/tuning.cc, 2.30.7). */
static const double TREE_SHARE = 0.92;

void coll_tree(struct coll_cost *cost, enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw)
{
    BUG_IF(kind != COLL_ALL_REDUCE, "trees are for all_reduce, not %s", coll_kind_names[kind]);
    double n = shape.ranks, depth = 0;
    cost->max_rate_Bps *= TREE_SHARE;
    for (int nodes = shape.nodes; nodes > 1; nodes /= 2)
        depth++;
    cost->latency_s = hw->node.nccl_base_latency.value + 2 * ((shape.per_node - 1) * hw->node.nccl_hop_latency.value +
                                                                 depth * hw->cluster.nccl_hop_latency.value);
    cost->bus_bytes = 2 * (n - 1) / n * bytes;
    /* Bytes out of a node: up S(N-1)/N in the mean and down S(N-1)/N, both trees together. */
    if (shape.nodes > 1)
        cost->node_out_factor = 2 * (shape.nodes - 1.0) / shape.nodes * bytes / cost->bus_bytes;
    cost->hbm_bytes = cost->bus_bytes * 2.5;
}
