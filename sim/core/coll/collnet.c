/* CollNet, all-reduce by switches that add on the way (SHARP): each node sends its sum once, and
 * receives the sum of all once, whatever the number of nodes: S bytes out and S in over its NICs,
 * where a ring or a tree sends 2 S.
 *
 * Inside the node: Direct, every GPU sends each GPU that has a NIC its part, and that GPU sends
 * back what came (where there is an NVSwitch: src/graph/tuning.cc, quoted from memory); Chain, the
 * sum goes down a chain to it and back. Both: 2 (p - 1) / p S from each GPU over NVLink. Only where
 * the cluster says what its switches reach (nccl_collnet_efficiency), and protocol Simple.
 * Latencies and the loss of Direct by GPUs that share a NIC: NCCL's tuner.
 *
 * Checked on no table: that of ABCI (2 x 8 A100, SHARP) was measured with NCCL 2.8, whose CollNet
 * is neither of these; it reaches 56 GB/s of 100 that the NICs have. Ignored: limits of the
 * switches' trees and buffers, failing groups. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

double coll_collnet_share(const struct hw *hw)
{
    return hw->cluster.nccl_collnet_efficiency.value / hw->cluster.nccl_efficiency.value;
}

static bool over_network(struct coll_cost *cost, const struct coll_query *query, double share)
{
    const struct hw *hw = query->hw;
    if (query->kind != COLL_ALL_REDUCE || query->protocol != COLL_SIMPLE ||
        query->shape.nodes < 2 || !quantity_is_set(hw->cluster.nccl_collnet_efficiency))
        return false;
    double p = query->shape.per_node;
    cost->gpu_out_factor = 2 * (p - 1) / p * query->bytes / cost->bus_bytes;
    cost->node_out_factor = query->bytes / cost->bus_bytes;
    cost->hbm_bytes = 2 * query->bytes;
    coll_set_rate(cost, query, 1, share * coll_collnet_share(hw));
    return true;
}

bool coll_collnet_direct(struct coll_cost *cost, const struct coll_query *query)
{
    double p = query->shape.per_node,
           gpus_a_nic = fmax(1, query->hw->node.gpus.value / query->hw->node.nics.value);
    if (query->hw->node.fabric != HW_NVSWITCH ||
        !over_network(cost, query, 1 / (1 + (gpus_a_nic - 1) / 2)))
        return false;
    cost->latency_s =
        2 * (fmin(1, p - 1) * nccl_collnet_direct_hop_s + (p - 1) * nccl_collnet_direct_gpu_s) +
        nccl_collnet_direct_net_s +
        2 * query->hw->cluster.nccl_net_latency.value; /* Simple flushes */
    return true;
}

bool coll_collnet_chain(struct coll_cost *cost, const struct coll_query *query)
{
    if (!over_network(cost, query, 1))
        return false;
    cost->latency_s =
        2 * (query->shape.per_node - 1) * coll_intra_hop_s(query, COLL_COLLNET_CHAIN) +
        coll_inter_hop_s(query, COLL_COLLNET_CHAIN);
    return true;
}
