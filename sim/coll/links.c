/* What links give and hops take: the part of every algorithm that is read from the hardware. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

double coll_gpu_Bps(const struct hw *hw)
{
    return hw->node.gpu_bandwidth.value * hw->node.nccl_efficiency.value;
}

double coll_node_Bps(const struct hw *hw)
{
    return hw->node.nics.value * hw->node.nic_bandwidth.value * hw->cluster.nccl_efficiency.value /
           hw->cluster.oversubscription.value;
}

double coll_nic_share(struct coll_shape shape, const struct hw *hw)
{
    double nics = hw->node.nics.value, near = nics / hw->node.gpus.value;
    double used = shape.per_node * (near > 1 ? near : 1);
    return used < nics ? used / nics : 1;
}

static double channels(bool across, const struct hw *hw)
{
    bool own = across && quantity_is_set(hw->cluster.nccl_channels);
    return own ? hw->cluster.nccl_channels.value : hw->node.nccl_channels.value;
}

double coll_sms(struct coll_shape shape, const struct hw *hw)
{
    bool across = shape.nodes > 1;
    double share = across ? coll_nic_share(shape, hw) : 1;
    return fmax(1, round(channels(across, hw) * share));
}

/* A group of a mesh has only the links among its own GPUs. They are taken to be spread evenly over all pairs: of the
 * six of a V100 in DGX-1V two GPUs have one or two here and there, 6/7 so, and four have four, 18/7 so (topology matrix
 * in the README of PyTorch's DDP benchmark). */
static double mesh_share(struct coll_shape shape, const struct hw *hw)
{
    double peers = hw->node.gpus.value - 1;
    bool part = hw->node.fabric == HW_NVLINK_MESH && shape.per_node > 1 && shape.per_node - 1 < peers;
    return part ? (shape.per_node - 1) / peers : 1;
}

/* In a node data of these passes from GPU to GPU, so the channels laid across nodes carry all of it in there, too. */
static bool passes_from_gpu_to_gpu(enum coll_algorithm algorithm)
{
    return algorithm == COLL_RING || algorithm == COLL_TREE || algorithm == COLL_PAT;
}

/* What the node's default of channels reaches; across nodes, where data passes from GPU to GPU, what those channels
 * do. */
double coll_inside_Bps(const struct coll_cost *cost, const struct coll_query *query, double share)
{
    const struct hw *hw = query->hw;
    if (cost->gpu_out_factor == 0)
        return HUGE_VAL;
    double nvlink_Bps = coll_gpu_Bps(hw) * mesh_share(query->shape, hw);
    if (cost->node_out_factor > 0 && passes_from_gpu_to_gpu(cost->algorithm) &&
        quantity_is_set(hw->cluster.nccl_channel_bandwidth)) {
        double channels_Bps = channels(true, hw) * hw->cluster.nccl_channel_bandwidth.value;
        nvlink_Bps = fmin(channels_Bps, hw->node.gpu_bandwidth.value);
    }
    return nvlink_Bps * share / cost->gpu_out_factor;
}

/* Without GPUDirect the one proxy thread of a process moves all that it sends and receives through host memory. A ring
 * leaves a node from one process and enters it at another, if there are two; a tree's messages, up and down, are of one
 * process at each NIC; sends and receives to all are of every process. Seen on p3dn (NCCL 2.4): a ring of 16 processes
 * gets 5.5 GB/s over the one NIC, 2 processes 2.55 (aws-samples/eks-efa-examples), and on g4dn, 2 processes: 3.1 GB/s.
 */
static double staged_Bps(const struct coll_cost *cost, const struct coll_query *query)
{
    const struct hw *hw = query->hw;
    if (!quantity_is_set(hw->cluster.nccl_staging_bandwidth))
        return HUGE_VAL;
    double nics = hw->node.nics.value * coll_nic_share(query->shape, hw);
    double processes = cost->algorithm == COLL_P2P ? query->shape.per_node : nics;
    bool one_way = cost->algorithm == COLL_RING && query->shape.per_node > 1;
    return processes * hw->cluster.nccl_staging_bandwidth.value / (one_way ? 1 : 2);
}

double coll_across_Bps(const struct coll_cost *cost, const struct coll_query *query, double share)
{
    if (cost->node_out_factor == 0)
        return HUGE_VAL;
    double nics_Bps = coll_node_Bps(query->hw) * coll_nic_share(query->shape, query->hw) * share;
    return fmin(nics_Bps, staged_Bps(cost, query)) / cost->node_out_factor;
}

void coll_set_rate(struct coll_cost *cost, const struct coll_query *query, double nvlink_share, double network_share)
{
    cost->max_rate_Bps = fmin(coll_inside_Bps(cost, query, nvlink_share), coll_across_Bps(cost, query, network_share));
}

double coll_bytes_s(const struct coll_cost *cost)
{
    return cost->bus_bytes / cost->max_rate_Bps;
}

double coll_base_s(const struct coll_query *query, enum coll_algorithm like)
{
    return query->protocol == COLL_SIMPLE ? query->hw->node.nccl_base_latency.value
                                          : nccl_base_s[like][query->protocol];
}

static double hop_inside_s(enum coll_algorithm like, enum coll_protocol protocol, const struct hw *hw)
{
    enum nccl_link link = hw->node.fabric == HW_PCIE ? NCCL_PCI : NCCL_NVLINK;
    double builtin_s = nccl_hop_s[like][link][protocol];
    if (protocol != COLL_SIMPLE)
        return builtin_s + hw->node.nccl_link_latency.value;
    return hw->node.nccl_hop_latency.value * builtin_s / nccl_hop_s[COLL_RING][link][COLL_SIMPLE];
}

/* The tuner adds the network's own latency once, twice for Simple, which flushes. A step between nodes ends when the
 * proxy has posted for all channels: a ring's chunk of Simple in its slices, others in one piece. */
static double hop_across_s(enum coll_algorithm like, enum coll_protocol protocol, double bytes, const struct hw *hw)
{
    const struct hw_cluster *cluster = &hw->cluster;
    double times = protocol == COLL_SIMPLE ? 2 : 1;
    double slices = like == COLL_RING && protocol == COLL_SIMPLE ? nccl_slices : 1;
    double post_s =
        like == COLL_RING ? slices * cluster->nccl_ring_post_latency.value : cluster->nccl_tree_post_latency.value;
    return nccl_hop_s[like][NCCL_NET][protocol] + times * cluster->nccl_net_latency.value +
           post_s * nccl_channels(protocol, bytes, (int)channels(true, hw));
}

double coll_hop_s(
    enum coll_algorithm algorithm, enum coll_protocol protocol, double bytes, bool across, const struct hw *hw)
{
    if (algorithm == COLL_COLLNET_CHAIN) /* Simple flushes */
        return across ? nccl_collnet_chain_net_s + 2 * hw->cluster.nccl_net_latency.value : nccl_collnet_chain_hop_s;
    enum coll_algorithm like = algorithm == COLL_TREE ? COLL_TREE : COLL_RING;
    return across ? hop_across_s(like, protocol, bytes, hw) : hop_inside_s(like, protocol, hw);
}

double coll_hop_inside_s(const struct coll_query *query, enum coll_algorithm like)
{
    return coll_hop_s(like, query->protocol, query->bytes, false, query->hw);
}

double coll_hop_across_s(const struct coll_query *query, enum coll_algorithm like)
{
    return coll_hop_s(like, query->protocol, query->bytes, true, query->hw);
}

int coll_levels(int nodes)
{
    int levels = 0;
    for (; nodes > 1; nodes /= 2)
        levels++;
    return levels;
}
