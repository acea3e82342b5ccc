/* Jobs with nodes of two kinds: the hardware as one kind sees it, and as a group of both meets it.
 *
 * hw_of_both() has one rule a number: the lower of bandwidths, efficiencies and channels, the
 * higher of latencies. A bridge and NVLink SHARP hold only if both kinds have them, as a collective
 * needs them on all its nodes. Architectures are compared by their place in hw_archs, from old to
 * new, with CDNA last; the order of that list matters. See hw_of_both() in hw.h for what NCCL
 * does. */
#include "hw/hw.h"

#include <string.h>

enum { LL128_FOR_MIXED = 30 }; /* from NCCL 2.30 on, Hopper and newer */

struct hw hw_of_second(const struct hw *hw)
{
    struct hw second = *hw;
    second.node = hw->second_node;
    second.gpu = hw->second_gpu;
    second.second_from = 0;
    second.second_node = hw->node; /* so that hw_of_both() of this is the same */
    second.second_gpu = hw->gpu;
    return second;
}

static struct quantity lower(struct quantity a, struct quantity b)
{
    return b.value < a.value ? b : a;
}

static struct quantity higher(struct quantity a, struct quantity b)
{
    return b.value > a.value ? b : a;
}

static int age(const char *arch)
{
    int at = 0;
    while (at < HW_ARCHS - 1 && strcmp(hw_archs[at], arch) != 0)
        at++;
    return at;
}

static void join_nodes(struct hw_node *node, const struct hw_node *other)
{
    if (other->fabric > node->fabric) /* from the fastest to the slowest */
        node->fabric = other->fabric;
    node->gpu_bandwidth = lower(node->gpu_bandwidth, other->gpu_bandwidth);
    node->nic_bandwidth = lower(node->nic_bandwidth, other->nic_bandwidth);
    node->pcie_bandwidth = lower(node->pcie_bandwidth, other->pcie_bandwidth);
    node->nccl_efficiency = lower(node->nccl_efficiency, other->nccl_efficiency);
    node->nccl_channels = lower(node->nccl_channels, other->nccl_channels);
    node->nccl_hop_latency = higher(node->nccl_hop_latency, other->nccl_hop_latency);
    node->nccl_base_latency = higher(node->nccl_base_latency, other->nccl_base_latency);
    node->nccl_link_latency = higher(node->nccl_link_latency, other->nccl_link_latency);
    node->nccl_ring_tail = higher(node->nccl_ring_tail, other->nccl_ring_tail);
    bool bridges = quantity_is_set(node->nvlink_bridge) && quantity_is_set(other->nvlink_bridge);
    node->nvlink_bridge = bridges ? lower(node->nvlink_bridge, other->nvlink_bridge) : (struct quantity){0};
    bool nvls = quantity_is_set(node->nvls_efficiency) && quantity_is_set(other->nvls_efficiency);
    node->nvls_efficiency = nvls ? lower(node->nvls_efficiency, other->nvls_efficiency) : (struct quantity){0};
    node->nvls_latency = nvls ? higher(node->nvls_latency, other->nvls_latency) : (struct quantity){0};
    node->nvls_step_latency = nvls ? higher(node->nvls_step_latency, other->nvls_step_latency) : (struct quantity){0};
}

struct hw hw_of_both(const struct hw *hw)
{
    struct hw both = *hw;
    both.second_from = 0;
    join_nodes(&both.node, &hw->second_node);
    int first = age(hw->gpu.arch), second = age(hw->second_gpu.arch);
    int older = first < second ? first : second;
    both.gpu.arch = hw_archs[older];
    if (first == second || (hw_nccl_minor(hw) >= LL128_FOR_MIXED && older >= age("Hopper")))
        return both;
    int *protocols = &both.cluster.nccl_protocols;
    bool ll = *protocols == HW_PROTOCOLS_ALL || *protocols == HW_PROTOCOLS_NO_LL128;
    *protocols = ll ? HW_PROTOCOLS_NO_LL128 : HW_PROTOCOLS_SIMPLE;
    return both;
}
