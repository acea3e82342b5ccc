/* Collectives: what they cost and what they load, as NCCL would run them. Pure functions of kind, bytes, group and
 * hardware.
 *
 * Time alone on the network = latency_s + bus_bytes / max_rate_Bps. exec/ lets latency_s pass and then moves bus_bytes
 * as a flow that shares links (net/), bounded by max_rate_Bps; so latency_s is what bytes do not hide, and is smaller
 * for a large message than for a small one. How latency and bytes go together depends on the algorithm (each file says
 * why, and sim/calibrate/fit_nccl.h what it was checked on), W being bus_bytes / max_rate_Bps:
 *
 * - Ring, in one node: base + hops + W. Over nodes: base + the last crossing + the longer of what the busiest rank or
 * NIC does (all hops inside and bytes inside, or the bytes on the NICs) and of a way round with all hops and crossings;
 * ring.c says why. Broadcast and reduce, a pipeline that fills once: base + hops + a slot at every crossing + W.
 * - Tree: base + hops + W / correction: NCCL's own form, with its table of corrections by size.
 * - NVLS, NVLSTree: a pipeline of steps, two or more stages longer than the message has steps (nvls.c).
 * - CollNet, PAT: base + hops + W. P2P (all_to_all, send_recv): that, and a first chunk that the receiver waits for; W
 * by the channels that a peer gets (p2p.c).
 * - Hierarchical: a ring inside the node, one across, one inside; not NCCL's, only when forced.
 *
 * The constants are NCCL's own (nccl.h) but for those that topologies/ state: base and hop of Simple, efficiencies,
 * NVLS (node); latency of the network and of posting to it, efficiency, channels, copies through host memory where
 * there is no GPUDirect (cluster). Of algorithms and protocols the fastest by this estimate is taken, which is NCCL's
 * rule with calibrated instead of built-in constants; NCCL's own mistakes of choice are not imitated (tried:
 * results/NOTES.md), but for what its formulas leave out of a broadcast (ring.c).
 *
 * Modelled: Ring for all kinds but all_to_all and send_recv; Tree, NVLS (one node), NVLSTree and CollNet (SHARP) for
 * all_reduce; PAT for all_gather and reduce_scatter with one rank a node; LL and LL128 for Ring and Tree. Ignored:
 * CollNet and NVLS for other kinds (on H100 it reaches what the ring reaches), the exact search for rings. Rings are
 * laid so that each node is entered and left once per ring and the rings are rotated over the node's NICs. Part of a
 * mesh's GPUs have the links among themselves, taken to be spread evenly over all pairs. */
#ifndef FLOPCAST_COLL_COLL_H
#define FLOPCAST_COLL_COLL_H

#include "hw/hw.h"

enum coll_kind {
    COLL_ALL_REDUCE,
    COLL_ALL_GATHER,
    COLL_REDUCE_SCATTER,
    COLL_BROADCAST,
    COLL_REDUCE,
    COLL_ALL_TO_ALL,
    COLL_SEND_RECV,
    COLL_KIND_COUNT
};
extern const char *const coll_kind_names[COLL_KIND_COUNT + 1]; /* "all_reduce", ..., NULL */

enum coll_algorithm {
    COLL_RING,
    COLL_TREE,
    COLL_NVLS,
    COLL_NVLS_TREE,
    COLL_COLLNET_DIRECT,
    COLL_COLLNET_CHAIN,
    COLL_PAT,
    COLL_P2P,
    COLL_HIERARCHICAL,
    COLL_ALGORITHM_COUNT
};
extern const char *const coll_algorithm_names[COLL_ALGORITHM_COUNT + 1]; /* "Ring", ..., as NCCL_ALGO; NULL */

enum coll_protocol { COLL_LL, COLL_LL128, COLL_SIMPLE, COLL_PROTOCOL_COUNT };
extern const char
    *const coll_protocol_names[COLL_PROTOCOL_COUNT + 1]; /* "LL", "LL128", "Simple", as NCCL_PROTO has them */

/* What to insist on, as NCCL_ALGO and NCCL_PROTO do; COLL_ANY leaves the choice to NCCL's rule. */
enum { COLL_ANY = -1 };
struct coll_force {
    int algorithm, protocol;
};
static const struct coll_force COLL_FREE = {COLL_ANY, COLL_ANY};

/* A regular group: ranks first, first + stride, ... (size of them), as many on each node that it touches. Every process
 * group of data-parallel training is one, where groups are of whole nodes or nodes of whole groups
 * (strategy_check()). */
struct coll_group {
    int first, stride, size;
};

/* What NCCL reaches of a GPU's NVLinks and of a node's NICs (behind an oversubscribed network: of its share of the
 * uplinks), B/s in one direction: the capacities of the links that flows share. */
double coll_gpu_Bps(const struct hw *hw);
double coll_node_Bps(const struct hw *hw);

/* How a group lies on the nodes. */
struct coll_shape {
    int ranks;    /* n */
    int nodes;    /* nodes touched */
    int per_node; /* ranks of the group on each of them */
};
struct coll_shape coll_shape(struct coll_group group, int gpus_per_node);

/* Share of a node's NICs that a group reaches: each GPU uses the NICs nearest to it, at least one. */
double coll_nic_share(struct coll_shape shape, const struct hw *hw);

/* A group's channels, each of which holds an SM on each GPU (NVLS has channels of its own: coll_cost.sms): the node's
 * inside it, the cluster's across nodes, where NCCL lays as many for each NIC; a group that reaches some of the NICs
 * has that part of them (logs of one GPU a node show two, recalled). Ignored: that small messages use fewer; and
 * posting (coll_hop_s) counts the whole cluster's, as a table of one GPU on each of two nodes asks for (Alps: 6 % off
 * so, 15 with the part). */
double coll_sms(struct coll_shape shape, const struct hw *hw);

/* Seconds of one step of a ring, a tree (COLL_TREE) or a chain (COLL_COLLNET_CHAIN), inside a node or between two.
 * bytes: of the whole message, which decides how many channels post. */
double coll_hop_s(
    enum coll_algorithm algorithm, enum coll_protocol protocol, double bytes, bool across, const struct hw *hw);

/* Share of coll_node_Bps() at which the network's switches add up. */
double coll_collnet_share(const struct hw *hw);

/* Share of the bandwidth of links that a tree's channels reach, protocol Simple. */
double coll_tree_share(int nodes);

struct coll_cost {
    enum coll_algorithm algorithm;
    enum coll_protocol protocol;
    double latency_s;       /* that bytes do not hide */
    double unforeseen_s;    /* part of it that NCCL's choice does not count */
    double bus_bytes;       /* message times the factor of busbw (nccl-tests doc/PERFORMANCE.md), whatever the wires
                               carry: all_reduce 2 (n-1)/n, all_gather, reduce_scatter, all_to_all (n-1)/n, others 1 */
    double gpu_out_factor;  /* bytes that leave each GPU over NVLink, per bus byte; at most 1, and 0 where
                               it is alone on its node */
    double node_out_factor; /* bytes that leave (and enter) each node over its NICs, per bus byte; 0 inside one node */
    bool all_pairs;         /* what leaves a node goes to all others alike, not along hops (coll/hops.h) */
    double max_rate_Bps;    /* of bus bytes: what NCCL's channels reach on these links at best */
    double hbm_bytes;       /* HBM traffic on each GPU, bytes: what compute kernels beside it lose */
    double sms;             /* SMs that its channels hold on each GPU */
};

/* bytes: of the whole message, S, as nccl-tests counts: all_gather the gathered size, reduce_scatter the size before
 * scattering, all_to_all all that a rank sends. A group of one costs nothing: all zero, and any algorithm can do it.
 * false: this algorithm or protocol cannot do the kind on this shape and hardware; *out is then not to be used. */
bool coll_cost(struct coll_cost *out, enum coll_kind kind, enum coll_algorithm algorithm, enum coll_protocol protocol,
    double bytes, struct coll_shape shape, const struct hw *hw);

/* Of what force leaves open, the algorithm and protocol that are fastest alone on the network. What is forced and not
 * possible is left open instead, the protocol first, as NCCL falls back. */
struct coll_cost coll_choose(
    enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw, struct coll_force force);

/* latency_s + bus_bytes / max_rate_Bps. */
double coll_alone_s(struct coll_cost cost);

#endif
