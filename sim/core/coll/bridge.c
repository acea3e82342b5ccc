/* Two PCIe cards that an NVLink bridge joins (hw.h, nvlink_bridge). NCCL sends what stays between
 * them over the bridge, which is then all that they see of the node: a switch for two. Groups of
 * more GPUs of a node, or of others, have a ring with hops over PCIe, which bound it: 2 bridged
 * A100 reach 208 GB/s of busbw, 3 reach 20 (NVIDIA/nccl-tests#178); so do tokens of an all_to_all,
 * most of whose peers are behind PCIe.
 *
 * A ring reaches 0.8 of NVLinks' bandwidth, as NCCL itself counts (20 GB/s of 25,
 * src/graph/topo.h), and on A100 and Hopper without a bridge (0.803, 0.806: nccl/ampere-nodes,
 * nccl/hopper-nodes). Its end as on A100 (0.45 steps: topologies/nodes/perlmutter-a100.yaml), hops
 * and base NCCL's own, channels by its search. Kind: assumed for bridges. The two of #178 come out
 * at 196. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

static const double efficiency = 0.8, ring_tail = 0.45;

double coll_bridge_Bps(const struct hw *hw)
{
    return hw->node.nvlink_bridge.value * efficiency;
}

const struct hw *coll_hw_of(struct hw *bridge, struct coll_group group, const struct hw *hw)
{
    int gpus = hw_gpus_per_node(hw), first = group.first % gpus;
    if (coll_shape(group, gpus).per_node != 2 ||
        !hw_bridged(&hw->node, first, first + group.stride))
        return hw;
    *bridge = *hw;
    struct hw_node *node = &bridge->node;
    node->fabric = HW_NVSWITCH;
    node->gpu_bandwidth = node->nvlink_bridge;
    node->nccl_efficiency.value = efficiency;
    node->nccl_ring_tail.value = ring_tail;
    node->nccl_hop_latency.value = nccl_hop_s[COLL_RING][NCCL_NVLINK][COLL_SIMPLE];
    node->nccl_base_latency.value = nccl_base_s[COLL_RING][COLL_SIMPLE];
    node->nccl_channels.value = nccl_search((struct coll_shape){2, 1, 2}, bridge).channels;
    return bridge;
}
