/* NVLSTree, all-reduce on several nodes: NVLS inside, a double binary tree between them, up and down. Bytes on the NICs
 * as in tree.c. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

bool coll_nvls_tree(struct coll_cost *cost, const struct coll_query *query)
{
    const struct hw_cluster *cluster = &query->hw->cluster;
    int nodes = query->shape.nodes;
    if (nodes < 2 || !quantity_is_set(cluster->nvls_tree_latency) || !coll_over_switch(cost, query))
        return false;
    cost->node_out_factor = (nodes > 2 ? 2 : 1) * query->bytes / cost->bus_bytes;
    coll_set_rate(cost, query, coll_switch_share(query->hw), 1);
    cost->max_rate_Bps = fmin(cost->max_rate_Bps, nccl_tree_max_Bps(query->hw, COLL_SIMPLE, true, query->shape));
    double level_s = cluster->nvls_tree_latency.value + 2 * cluster->nccl_net_latency.value; /* Simple flushes */
    cost->latency_s = query->hw->node.nvls_latency.value + 2 * coll_levels(nodes) * level_s;
    return true;
}
