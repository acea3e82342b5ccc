/* Double binary tree, all-reduce only: a chain inside each node and two complementary binary trees between nodes, each
 * with half of the data, reduced up and broadcast down (Sanders, Speck, Traff 2009; NCCL 2.4). Latency 2 ((p - 1)
 * inside + floor(log2 N) across), as NCCL's tuner counts. Bus bytes 2 (n-1)/n S as for the ring, by convention. A node
 * inside one tree (one parent, two children, half of the data: S/2 up, 2 S/2 down) is a leaf of the other (S/2 up): 2 S
 * leave it over its NICs. On two nodes each is the root of one tree and the leaf of the other: S/2 down and S/2 up,
 * half of that (why two nodes are special). */
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
    double leaving = shape.nodes > 2 ? 2 * bytes : shape.nodes == 2 ? bytes : 0;
    cost->node_out_factor = leaving / cost->bus_bytes;
    cost->hbm_bytes = cost->bus_bytes * 2.5;
}
