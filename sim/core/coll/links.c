/* Rates of links and times of hops: what every algorithm takes from the hardware.
 *
 * A rate is the least of several bounds (NVLink or PCIe, NICs, uplinks, channels, copies through
 * host memory), and keeps the name of the one that holds. A hop is NCCL's table plus what the
 * cluster's file adds, and posts of the proxies, which grow with the channels of the message. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <limits.h>
#include <math.h>

double coll_gpu_Bps(const struct hw *hw)
{
    return hw->node.gpu_bandwidth.value * hw->node.nccl_efficiency.value;
}

/* Paths over PCIe: one a NIC, or one a GPU if there are fewer. */
static double pcie_paths(const struct hw *hw)
{
    return fmin(hw->node.nics.value, hw->node.gpus.value);
}

static double pcie_Bps(const struct hw *hw)
{
    return quantity_is_set(hw->node.pcie_bandwidth) ? pcie_paths(hw) * hw->node.pcie_bandwidth.value
                                                    : HUGE_VAL;
}

/* Of all NICs of a node, not counting PCIe and uplinks. */
static double nics_Bps(const struct hw *hw)
{
    return hw->node.nics.value * hw->node.nic_bandwidth.value * hw->cluster.nccl_efficiency.value;
}

double coll_nic_Bps(const struct hw *hw)
{
    return fmin(hw->node.nic_bandwidth.value * hw->cluster.nccl_efficiency.value,
        pcie_Bps(hw) / hw->node.nics.value);
}

double coll_node_Bps(const struct hw *hw)
{
    return fmin(nics_Bps(hw), pcie_Bps(hw)) / hw->cluster.oversubscription.value;
}

static enum coll_bound node_bound(const struct hw *hw)
{
    if (hw->cluster.oversubscription.value > 1)
        return COLL_BOUND_NETWORK;
    return pcie_Bps(hw) < nics_Bps(hw) ? COLL_BOUND_PCIE : COLL_BOUND_NIC;
}

enum coll_bound coll_link_bound(const struct hw *hw, bool inter_node)
{
    if (inter_node)
        return node_bound(hw);
    return hw->node.fabric == HW_PCIE ? COLL_BOUND_PCIE : COLL_BOUND_NVLINK;
}

struct coll_rate coll_slower(struct coll_rate a, struct coll_rate b)
{
    return b.Bps < a.Bps ? b : a;
}

void coll_bound_rate(struct coll_cost *cost, double Bps, enum coll_bound bound)
{
    if (Bps < cost->max_rate_Bps) {
        cost->max_rate_Bps = Bps;
        cost->rate_bound = bound;
    }
}

double coll_nic_share(struct coll_shape shape, const struct hw *hw)
{
    double nics = hw->node.nics.value, near = nics / hw->node.gpus.value;
    double used = shape.per_node * (near > 1 ? near : 1);
    return used < nics ? used / nics : 1;
}

double coll_links(struct coll_shape shape, const struct hw *hw)
{
    double of_a_node = fmax(1, hw->node.nics.value * coll_nic_share(shape, hw));
    return shape.nodes > 1 ? shape.nodes * of_a_node : 1;
}

double coll_sms(struct coll_shape shape, const struct hw *hw)
{
    bool inter_node = shape.nodes > 1;
    double share = inter_node ? coll_nic_share(shape, hw) : 1;
    return fmax(1, round(coll_channels(inter_node, hw) * share));
}

/* NVLinks of a mesh are taken to be spread evenly over all pairs: of the six of a V100 in DGX-1V
 * two GPUs have one, two or none between them, here 6/7, and four GPUs have four, here 18/7
 * (topology matrix in the README of PyTorch's DDP benchmark). */
double coll_peers_share(int peers, const struct hw *hw)
{
    double others = hw->node.gpus.value - 1;
    bool part = hw->node.fabric == HW_NVLINK_MESH && peers > 0 && peers < others;
    return part ? peers / others : 1;
}

double coll_pair_Bps(const struct hw *hw, int a, int b)
{
    if (hw_bridged(&hw->node, a, b))
        return coll_bridge_Bps(hw);
    bool mesh = hw->node.fabric == HW_NVLINK_MESH && hw->node.gpus.value > 2;
    return mesh ? coll_gpu_Bps(hw) * coll_peers_share(1, hw) : 0;
}

/* Their data passes from GPU to GPU in a node, so the channels across nodes carry all of it there
 * too. */
bool coll_by_channels(enum coll_algorithm algorithm)
{
    return algorithm == COLL_RING || algorithm == COLL_TREE || algorithm == COLL_PAT;
}

/* In one node: what the node's own channels reach. Over nodes, if data passes from GPU to GPU: what
 * the channels across nodes reach. */
struct coll_rate coll_intra_rate(
    const struct coll_cost *cost, const struct coll_query *query, double share)
{
    const struct hw *hw = query->hw;
    if (cost->gpu_out_factor == 0)
        return (struct coll_rate){HUGE_VAL, COLL_BOUND_NONE};
    struct coll_rate rate = {coll_gpu_Bps(hw) * coll_peers_share(query->shape.per_node - 1, hw),
        coll_link_bound(hw, false)};
    if (cost->node_out_factor > 0 && coll_by_channels(cost->algorithm) &&
        quantity_is_set(hw->cluster.nccl_channel_bandwidth)) {
        double channels_Bps = coll_channels(true, hw) * hw->cluster.nccl_channel_bandwidth.value;
        rate.Bps = hw->node.gpu_bandwidth.value * coll_peers_share(query->shape.per_node - 1, hw);
        rate = coll_slower(rate, (struct coll_rate){channels_Bps, COLL_BOUND_CHANNELS});
    }
    rate.Bps = rate.Bps * share / cost->gpu_out_factor;
    return rate;
}

/* Without GPUDirect the proxy thread of a process copies all that it sends and receives through
 * host memory. A ring leaves a node from one process and enters it at another, if there are two; a
 * tree sends up and down from one process at each NIC; an all_to_all sends and receives in every
 * process. Seen on p3dn (NCCL 2.4): a ring of 16 processes gets 5.5 GB/s over the one NIC, 2
 * processes 2.55 (aws-samples/eks-efa-examples), and on g4dn, 2 processes: 3.1 GB/s. */
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

struct coll_rate coll_inter_rate(
    const struct coll_cost *cost, const struct coll_query *query, double share)
{
    const struct hw *hw = query->hw;
    if (cost->node_out_factor == 0)
        return (struct coll_rate){HUGE_VAL, COLL_BOUND_NONE};
    struct coll_rate rate =
        coll_slower((struct coll_rate){coll_node_Bps(hw) * coll_nic_share(query->shape, hw) * share,
                        coll_link_bound(hw, true)},
            (struct coll_rate){staged_Bps(cost, query), COLL_BOUND_HOST_MEMORY});
    rate.Bps /= cost->node_out_factor;
    return rate;
}

void coll_set_rate(struct coll_cost *cost, const struct coll_query *query, double nvlink_share,
    double network_share)
{
    struct coll_rate rate = coll_slower(
        coll_inter_rate(cost, query, network_share), coll_intra_rate(cost, query, nvlink_share));
    cost->max_rate_Bps = rate.Bps;
    cost->rate_bound = query->protocol == COLL_LL ? COLL_BOUND_PROTOCOL : rate.bound;
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

static double intra_hop_s(
    enum coll_algorithm like, enum coll_protocol protocol, const struct hw *hw)
{
    enum nccl_link link = hw->node.fabric == HW_PCIE ? NCCL_PCI : NCCL_NVLINK;
    double builtin_s = nccl_hop_s[like][link][protocol];
    if (protocol != COLL_SIMPLE)
        return builtin_s + hw->node.nccl_link_latency.value;
    return hw->node.nccl_hop_latency.value * builtin_s / nccl_hop_s[COLL_RING][link][COLL_SIMPLE];
}

/* Share of the posts of many channels that a message makes: of one channel nothing, of c all but
 * one of them. */
static double more_channels(enum coll_protocol protocol, double bytes)
{
    return 1 - 1 / nccl_channels(protocol, bytes, INT_MAX);
}

/* The tuner adds the network's own latency once, twice for Simple, which flushes. */
static double net_hop_s(enum coll_algorithm like, enum coll_protocol protocol, const struct hw *hw)
{
    double times = protocol == COLL_SIMPLE ? 2 : 1;
    return nccl_hop_s[like][NCCL_NET][protocol] + times * hw->cluster.nccl_net_latency.value;
}

double coll_credit_s(const struct hw *hw)
{
    struct quantity credit = hw->cluster.nccl_credit_latency;
    return quantity_is_set(credit) ? credit.value : net_hop_s(COLL_RING, COLL_SIMPLE, hw);
}

/* Beside the network the proxies take their time to send a step's pieces: a ring's chunk of Simple
 * in its slices, others in one piece. */
static double inter_hop_s(
    enum coll_algorithm like, enum coll_protocol protocol, double bytes, const struct hw *hw)
{
    const struct hw_cluster *cluster = &hw->cluster;
    double slices = like == COLL_RING && protocol == COLL_SIMPLE ? nccl_slices : 1;
    double post_s = like == COLL_RING ? slices * cluster->nccl_ring_post_latency.value
                                      : cluster->nccl_tree_post_latency.value;
    return net_hop_s(like, protocol, hw) + post_s * more_channels(protocol, bytes);
}

double coll_hop_s(enum coll_algorithm algorithm, enum coll_protocol protocol, double bytes,
    bool inter_node, const struct hw *hw)
{
    if (algorithm == COLL_COLLNET_CHAIN) /* Simple flushes */
        return inter_node ? nccl_collnet_chain_net_s + 2 * hw->cluster.nccl_net_latency.value
                          : nccl_collnet_chain_hop_s;
    enum coll_algorithm like = algorithm == COLL_TREE ? COLL_TREE : COLL_RING;
    return inter_node ? inter_hop_s(like, protocol, bytes, hw) : intra_hop_s(like, protocol, hw);
}

double coll_intra_hop_s(const struct coll_query *query, enum coll_algorithm like)
{
    return coll_hop_s(like, query->protocol, query->bytes, false, query->hw);
}

double coll_inter_hop_s(const struct coll_query *query, enum coll_algorithm like)
{
    return coll_hop_s(like, query->protocol, query->bytes, true, query->hw);
}

double coll_slot_s(const struct coll_query *query, double inter_s)
{
    double slots_bytes = nccl_slot_bytes[query->protocol] * coll_sms(query->shape, query->hw);
    return inter_s * fmin(1, slots_bytes / query->bytes);
}

int coll_levels(int nodes)
{
    int levels = 0;
    for (; nodes > 1; nodes /= 2)
        levels++;
    return levels;
}
