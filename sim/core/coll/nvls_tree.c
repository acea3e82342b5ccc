/* NVLSTree, all-reduce on several nodes: NVLS in each node, a double binary tree between them, up
 * and down. Bytes on the NICs as in tree.c. The pipeline is that of NVLS (nvls.c) with a stage more
 * for each level up and each down. The slowest stage sets the rate.
 *
 * A level takes its latency and what the busiest NIC takes for the bytes of a step: on the way up a
 * node inside one tree receives from two children and sends to its parent, on the way down the
 * reverse, each time half of all that it sends and receives for that step. So both ways together
 * take what a step takes on the NICs, level by level.
 *
 * On three nodes and more NICs reach 5/6 of what they do in a ring: what NCCL 2.20 to 2.27 count
 * (half of the NICs, times 5/6). Why is not known: messages are of 64 KiB then, and a proxy handles
 * four for each of them. Not fitted. */
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
    struct coll_rate inter = coll_inter_rate(cost, query, nodes > 2 ? nccl_nvls_tree_share : 1);
    cost->max_rate_Bps = inter.Bps;
    cost->rate_bound = inter.bound;
    coll_bound_rate(cost, switch_Bps, coll_link_bound(query->hw, false));
    coll_bound_rate(
        cost, nccl_tree_max_Bps(query->hw, COLL_SIMPLE, true, query->shape), COLL_BOUND_CHANNELS);
    double share = steps.step_bytes / query->bytes, edges_s = share * cost->bus_bytes / inter.Bps;
    double level_s =
        cluster->nvls_tree_latency.value + 2 * cluster->nccl_net_latency.value; /* Simple flushes */
    /* The first step through all stages; of the others each as long as the slowest stage, which
     * coll_bytes_s() counts for the first one, too. */
    cost->latency_s = query->hw->node.nvls_latency.value + 3 * steps.step_s +
                      coll_levels(nodes) * (2 * level_s + edges_s) - share * coll_bytes_s(cost);
    return true;
}
