/* Double binary tree, all-reduce only: a chain inside each node and two complementary binary trees
 * between nodes, each with half of the data, reduced up and broadcast down (Sanders, Speck, Traff
 * 2009; NCCL 2.4). Latency 2 ((p - 1) inside + floor(log2 N) across), as NCCL's tuner counts. A
 * node inside one tree (one parent, two children, half of the data: S/2 up, 2 S/2 down) is a leaf
 * of the other (S/2 up): 2 S leave it over its NICs. On two nodes each is the root of one tree and
 * the leaf of the other: S/2 down and S/2 up, half of that (why two nodes are special).
 *
 * Between nodes a proxy sends a slot when it is complete, up and down. Seen in the fitted tables:
 * without it their misfit is larger by a twelfth, and what a channel posts on InfiniBand, 0.14 +-
 * 0.32 us beside it, would be 0.26.
 *
 * Medium messages do not fill the tree's pipeline: the tuner's table of corrections says by how
 * much. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

/* Between two nodes of both trees: a hop, and what the proxy waits for. */
static double level_s(const struct coll_cost *cost, const struct coll_query *query, double share)
{
    double node_Bps = coll_inter_rate(cost, query, share).Bps * cost->node_out_factor;
    return coll_inter_hop_s(query, COLL_TREE) + coll_slot_s(query, query->bytes / node_Bps);
}

bool coll_tree(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind != COLL_ALL_REDUCE)
        return false;
    int nodes = query->shape.nodes;
    cost->node_out_factor = (nodes > 2 ? 2 : nodes == 2 ? 1 : 0) * query->bytes / cost->bus_bytes;
    double share = nccl_tree_share(query->protocol, nodes);
    coll_set_rate(cost, query, share, share);
    bool ll = query->protocol == COLL_LL;
    if (nodes > 1)
        coll_bound_rate(cost, nccl_tree_max_Bps(query->hw, query->protocol, false, query->shape),
            ll ? COLL_BOUND_PROTOCOL : COLL_BOUND_CHANNELS);
    if (ll)
        coll_bound_rate(cost, nccl_ll_max_Bps(query->hw, nodes), COLL_BOUND_PROTOCOL);
    double intra_s = (query->shape.per_node - 1) * coll_intra_hop_s(query, COLL_TREE);
    double inter_s = nodes > 1 ? coll_levels(nodes) * level_s(cost, query, share) : 0;
    double unfilled = 1 / nccl_tree_correction(query->protocol, query->bytes) - 1;
    cost->latency_s =
        coll_base_s(query, COLL_TREE) + 2 * (intra_s + inter_s) + unfilled * coll_bytes_s(cost);
    return true;
}
