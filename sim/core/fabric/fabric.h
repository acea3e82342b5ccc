/* The links of a job's GPUs, NICs and switches, and which of them a collective crosses.
 *
 * Links, in this order: the NVLink out of each GPU; out and in of each NIC (pooled network: of each
 * node's NICs together); up and down of each leaf; up and down of each pod; from each GPU to each
 * other of its node, where pairs have separate links (coll_pair_Bps): what goes over those of a
 * mesh of NVLinks is part of what leaves the GPU, what goes over a bridge is not. Under adaptive
 * routing all cables between a switch and the level above are one link each way, under ECMP every
 * cable is its own. Capacities are what NCCL reaches (coll_gpu_Bps and the cluster's
 * nccl_efficiency).
 *
 * NIC affinity: GPU g of G sends through the NICs nearest to it, g I / G to (g + 1) I / G of the
 * node's I, the first of them at least. A group's rings (or trees) are rotated over the NICs of its
 * GPUs, each with its part of the data, and stay on their rail; each hop between two nodes is
 * `connections` connections a NIC.
 *
 * Degraded links (fabric/degrade.h) by the names gpu<rank>.nvlink, node<n>.nic<i>.out and .in
 * (pooled: node<n>.nics.out and .in), leaf<l>.up<k> and .down<k>, pod<p>.up<k> and .down<k>. A
 * failed cable between switches is routed around: adaptive routing has one cable less, ECMP hashes
 * anew; in the middle of a run traffic on its way is moved too, at once (no time for routes to
 * settle). A NVLink or NIC that fails is an error whenever it does, because NCCL ends the job, and
 * so is a failure that leaves two leaves without a way.
 *
 * Ignored: traffic from one NIC of a node to another (no algorithm here makes any). */
#ifndef FLOPCAST_FABRIC_FABRIC_H
#define FLOPCAST_FABRIC_FABRIC_H

#include "coll/coll.h"
#include "fabric/degrade.h"
#include "hw/hw.h"
#include "net/maxmin.h"

#include <stdbool.h>

#define FABRIC_WORDS(n_links) (((n_links) + 63) / 64)

struct fabric {
    const struct hw *hw;
    int ranks, nodes, gpus; /* gpus: a node */
    int nics;               /* links out (and as many in) of a node */
    int leaves, leaf_links; /* leaf_links: up (and as many down) of a leaf */
    int pods, pod_links;    /* the same of a pod; 0 when there is no level above */
    int first_nic, first_leaf, first_pod, first_pair, n_links;
    double *capacity_Bps; /* of each link, 0: failed */
    bool degraded;        /* some capacity is, at some time, not what the cluster file gives */
    double *weight;       /* of each link, since the last fabric_loaded(): 0 after it */
    uint64_t *loaded;     /* a bit for each link that has one */
};

/* With the capacities of the start. events (NULL: none) are of degrade_links() for this hardware
 * and number of ranks. Everything lives in the arena. */
void fabric_build(struct fabric *out, const struct hw *hw, int ranks,
    const struct degrade_events *events, struct arena *arena);

/* The events of this very time happen. Call net_reroute() for all flows afterwards. */
void fabric_set_time(struct fabric *fabric, const struct degrade_events *events, ps_t time);

/* A collective of the group loads its links, with bytes over each per bus byte. key: of the group,
 * for the hash of ECMP. */
void fabric_load_collective(
    struct fabric *fabric, struct coll_group group, const struct coll_cost *cost, uint64_t key);

/* Whether two collectives of one group load the same links with the same weights. */
static inline bool fabric_weights_alike(const struct coll_cost *a, const struct coll_cost *b)
{
    return a->algorithm == b->algorithm && a->node_out_factor == b->node_out_factor &&
           a->gpu_out_factor == b->gpu_out_factor && a->all_pairs == b->all_pairs;
}

/* How a message travels. */
enum fabric_way { FABRIC_WAY_NODE, FABRIC_WAY_NETWORK, FABRIC_WAY_BRIDGE, FABRIC_WAY_COUNT };
enum fabric_way fabric_way(const struct fabric *fabric, int from, int to);

/* One message from a rank to another loads its links, by all NICs of the group that it would use;
 * weights add to 1 on each way. */
void fabric_load_message(
    struct fabric *fabric, struct coll_group group, int from, int to, uint64_t key);

/* The links that were loaded since the last call, with the sum of the weights, in the order of
 * links; weights has room for n_links. Returns how many. */
int fabric_loaded(struct link_weight *weights, struct fabric *fabric);

/* The node that a link belongs to, which is none of a switch. */
int fabric_node_of(const struct fabric *fabric, int link);

/* How many cables a link stands for; a GPU's or a NIC's is one. */
int fabric_cables(const struct fabric *fabric, int link);

/* "leaf3.up0" into buffer, which it returns: of a cable of the link, or of the first. */
const char *fabric_cable_name(
    char *buffer, size_t n, const struct fabric *fabric, int link, int cable);
const char *fabric_link_name(char *buffer, size_t n, const struct fabric *fabric, int link);

/* What binds a collective where this link does. */
enum coll_bound fabric_link_bound(const struct fabric *fabric, int link);

/* The instances of a group are alike: one that spans nodes loads links that are like those of any
 * other. */
bool fabric_is_uniform(const struct fabric *fabric);

/* Add a connection's weight to the links from a leaf to another; false when there is no way. */
bool fabric_add_between(struct fabric *fabric, int from, int to, double weight, uint64_t key);

static inline bool fabric_is_pooled(const struct fabric *fabric)
{
    return fabric->hw->cluster.network.kind == HW_POOLED;
}

static inline int fabric_leaf_of(const struct fabric *fabric, int node, int nic)
{
    return hw_network_leaf(&fabric->hw->cluster.network, node, nic, fabric->nodes, fabric->nics);
}

/* Of two ranks of one node with separate links. */
static inline int fabric_pair_link(const struct fabric *fabric, int from, int to)
{
    return fabric->first_pair + from * fabric->gpus + to % fabric->gpus;
}

static inline int fabric_nic_link(const struct fabric *fabric, int node, int nic, int in)
{
    return fabric->first_nic + 2 * (node * fabric->nics + nic) + in;
}

static inline int fabric_leaf_link(const struct fabric *fabric, int leaf, int down, int cable)
{
    return fabric->first_leaf + (2 * leaf + down) * fabric->leaf_links + cable;
}

static inline int fabric_pod_link(const struct fabric *fabric, int pod, int down, int cable)
{
    return fabric->first_pod + (2 * pod + down) * fabric->pod_links + cable;
}

#endif
