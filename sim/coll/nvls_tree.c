/* NVLSTree, all-reduce on several nodes: NVLS in each node, a double binary tree between them, up and down. Bytes on
 * the NICs as in tree.c. The pipeline is that of NVLS (nvls.c) with a stage more for each level up and each down, in
 * which an edge of a tree carries its half of a step. The slowest stage sets the rate. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

bool coll_nvls_tree(struct coll_cost *cost, const struct coll_query *query)
{
    const struct hw_cluster *cluster = &query->hw->cluster;
    int nodes = query->shape.nodes;
    if (nodes < 2 || !quantity_is_set(cluster->nvls_tree_latency) || !coll_over_switch(cost, query))
        return false;
    struct coll_switch steps = coll_switch_steps(query);
    cost->node_out_factor = (nodes > 2 ? 2 : 1) * query->bytes / cost->bus_bytes;
    double switch_Bps = cost->bus_bytes / (query->bytes / steps.step_bytes * steps.step_s);
    struct coll_rate inter = coll_inter_rate(cost, query, 1);
    cost->max_rate_Bps = inter.Bps;
    cost->rate_bound = inter.bound;
    coll_bound_rate(cost, switch_Bps, coll_link_bound(query->hw, false));
    coll_bound_rate(cost, nccl_tree_max_Bps(query->hw, COLL_SIMPLE, true, query->shape), COLL_BOUND_CHANNELS);
    double edge_s = steps.step_bytes / 2 / (inter.Bps * cost->node_out_factor);
    double level_s =
        cluster->nvls_tree_latency.value + 2 * cluster->nccl_net_latency.value + edge_s; /* Simple flushes */
    cost->latency_s = query->hw->node.nvls_latency.value + 2 * steps.step_s + 2 * coll_levels(nodes) * level_s;
    return true;
}
