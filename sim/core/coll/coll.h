/* Collectives: what they cost and what they load, as NCCL would run them. Pure functions of kind,
 * bytes, group and hardware.
 *
 * Isolated time = latency_s + bus_bytes / max_rate_Bps. exec/ lets latency_s pass and then moves
 * bus_bytes as a flow that shares links (net/), with max_rate_Bps as its rate cap. So latency_s is
 * the part that bytes do not hide; it is smaller for a large message than for a small one. How
 * latency and bytes combine depends on the algorithm (each file says why, calibrate/nccl_fit.h what
 * it was checked on). W is bus_bytes / max_rate_Bps:
 *
 * - Ring in one node: base + hops + W, and what its end takes (ring.c). Over nodes: base + the last
 *   inter-node hop + the longest of three bounds, the serial work of the busiest rank or NIC, a
 *   trip around the ring with all hops, and the turns of the buffer to another node, whose places
 *   are free again late (Simple; ring.c). Broadcast and reduce, a pipeline that fills once: base +
 *   hops + a slot on every inter-node hop + W.
 * - Tree: base + hops + W / correction: NCCL's own form, with its table of corrections by size.
 * - NVLS, NVLSTree: a pipeline of steps, with two or more steps to fill it (nvls.c).
 * - CollNet, PAT: base + hops + W. P2P (all_to_all, send_recv): also a part of a first chunk; W by
 *   the channels that a peer gets (p2p.c).
 * - Hierarchical: a ring in the node, one between nodes, one in the node; not NCCL's, only when
 *   forced.
 *
 * topologies/ state some constants: base and hop of Simple, efficiencies, NVLS (node); latency of
 * the network and of posting to it, efficiency, channels, copies through host memory without
 * GPUDirect (cluster). All others are NCCL's own (nccl.h).
 *
 * What is chosen: NCCL's choice, also where it is not the fastest: the least of NCCL's estimates
 * (coll/tuner.h), by the cluster's nccl_version; AWS's plugin has a say (coll/tuner_aws.c). All
 * choices that logs state come out so (tests/coll/test_logs.c). Where that estimate is not known,
 * the shortest isolated time.
 *
 * Two laws stand above it, which are a choice of this model and not NCCL's: NCCL's estimates know
 * little of the network, so by them a faster NIC could be slower (by up to 13 times) and more ranks
 * faster. Here a collective takes no longer than NCCL's choice and channels would take with slower
 * NICs in the same machine, as NCCL_ALGO, NCCL_PROTO and NCCL_MAX_NCHANNELS can force them; nor, on
 * whole nodes or the same number of GPUs of several, than the same message takes on more nodes, up
 * to eight times as many (2, 3, 4, 6, 8, 12, ...). Inside a node more ranks may be faster, as
 * measured: three and more can use NVLS. Numbers that are fitted to tables are fitted to NCCL's own
 * choice, without the laws (coll_nccl_choice()).
 *
 * Modelled: Ring for all kinds except all_to_all and send_recv; Tree, NVLS (one node), NVLSTree and
 * CollNet (SHARP) for all_reduce; PAT for all_gather and reduce_scatter with one rank a node; LL
 * and LL128 for Ring and Tree. Rings enter and leave each node once and are rotated over its NICs.
 * A group of some GPUs of an NVLink mesh uses the links among these, taken to be spread evenly over
 * all pairs; a message uses those of its pair. The two GPUs that an NVLink bridge joins use it
 * where they are alone in the node (bridge.c). Ignored: CollNet and NVLS for other kinds (on H100
 * NVLS reaches what the ring reaches), the exact search for rings. */
#ifndef FLOPCAST_COLL_COLL_H
#define FLOPCAST_COLL_COLL_H

#include "hw/hw.h"

/* peer_copy: as send_recv, but not NCCL's: each rank's copy engine writes into the memory of the
 * next rank of its node (cudaMemcpyAsync between peers), which no SM takes part in. */
enum coll_kind {
    COLL_ALL_REDUCE,
    COLL_ALL_GATHER,
    COLL_REDUCE_SCATTER,
    COLL_BROADCAST,
    COLL_REDUCE,
    COLL_ALL_TO_ALL,
    COLL_SEND_RECV,
    COLL_PEER_COPY,
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
    COLL_DEEPEP, /* what is routed, and nothing else: coll_routed() */
    COLL_ALGORITHM_COUNT
};
extern const char
    *const coll_algorithm_names[COLL_ALGORITHM_COUNT + 1]; /* "Ring", ..., as NCCL_ALGO; NULL */
/* Whether NCCL has it, so that a log can be of it. */
static inline bool coll_is_nccls(enum coll_algorithm algorithm)
{
    return algorithm != COLL_HIERARCHICAL && algorithm != COLL_DEEPEP;
}

enum coll_protocol { COLL_LL, COLL_LL128, COLL_SIMPLE, COLL_PROTOCOL_COUNT };
extern const char *const coll_protocol_names[COLL_PROTOCOL_COUNT + 1]; /* "LL", "LL128", "Simple",
                                                                          as NCCL_PROTO has them */

/* A forced algorithm and protocol, as NCCL_ALGO and NCCL_PROTO force them; COLL_ANY leaves the
 * choice to NCCL's rule. */
enum { COLL_ANY = -1 };
struct coll_force {
    int algorithm, protocol;
};
static const struct coll_force COLL_FREE = {COLL_ANY, COLL_ANY};

/* A regular group: ranks first, first + stride, ... (size of them), as many on each node that it
 * touches. Every process group of data-parallel training is one, where groups are of whole nodes or
 * nodes of whole groups (strategy_check()). */
struct coll_group {
    int first, stride, size;
};

/* What limits a collective: the term of its estimate that is largest.
 *
 *   latency      hops, steps and filling the pipeline take more than half of the time
 *   protocol     LL: half of what it sends is flags, and NCCL bounds its busbw
 *   channels     the rate at which the thread blocks of its channels copy and add, each on an SM
 *   NVLink       or PCIe, where GPUs of a node have no NVLink, or where a NIC is faster than its
 *                slot
 *   NIC          the NICs of a node that the group reaches
 *   network      oversubscribed uplinks, a cable between switches
 *   host memory  copies through it, without GPUDirect
 *   shared links in a run: it takes longer than isolated, beside other collectives on the same
 *   links (exec/) */
enum coll_bound {
    COLL_BOUND_NONE, /* a group of one */
    COLL_BOUND_LATENCY,
    COLL_BOUND_PROTOCOL,
    COLL_BOUND_CHANNELS,
    COLL_BOUND_NVLINK,
    COLL_BOUND_PCIE,
    COLL_BOUND_NIC,
    COLL_BOUND_NETWORK,
    COLL_BOUND_HOST_MEMORY,
    COLL_BOUND_SHARED_LINKS,
    COLL_BOUND_COUNT
};
extern const char
    *const coll_bound_names[COLL_BOUND_COUNT + 1]; /* "nothing", "latency", ..., NULL */

/* The link capacities that flows share, B/s in one direction: what NCCL reaches of a GPU's NVLinks,
 * of a NIC, and of a node's NICs (with an oversubscribed network: of the node's share of the
 * uplinks). If a NIC is faster than the PCIe slots between it and its GPU, its capacity is theirs
 * (pcie_bandwidth; assumed: as much as copies to the host get). */
double coll_gpu_Bps(const struct hw *hw);
double coll_nic_Bps(const struct hw *hw);
double coll_node_Bps(const struct hw *hw);

/* Of the links that only two GPUs of a node have between them, by their numbers in it: of a mesh
 * its even share of a GPU's NVLinks, of a bridged pair its bridge; 0: they share all that each of
 * them has. */
double coll_pair_Bps(const struct hw *hw, int a, int b);

/* The bound of a collective that the links between GPUs of a node, or those between nodes, limit.
 */
enum coll_bound coll_link_bound(const struct hw *hw, bool inter_node);

/* How a group lies on the nodes. */
struct coll_shape {
    int ranks;    /* n */
    int nodes;    /* nodes touched */
    int per_node; /* ranks of the group on each of them */
};
struct coll_shape coll_shape(struct coll_group group, int gpus_per_node);

/* The hardware that a group sees: hw or, where an NVLink bridge joins its two GPUs of each node
 * (bridge.c), in *bridge that. */
const struct hw *coll_hw_of(struct hw *bridge, struct coll_group group, const struct hw *hw);

/* Share of a node's NICs that a group reaches: each GPU uses the NICs nearest to it, at least one.
 */
double coll_nic_share(struct coll_shape shape, const struct hw *hw);

/* Links between nodes that a group sends over: the NICs that it reaches on all its nodes. In one
 * node: 1. */
double coll_links(struct coll_shape shape, const struct hw *hw);

/* NCCL's search for channels across nodes (ncclTopoCompute, 2.27), for nodes whose GPUs and NICs
 * are all alike: the fastest speed of its table that gives most channels x speed, where a channel
 * takes its speed of a NIC and of the NVLinks of all GPUs of a node but one; it looks no further
 * when that fills what it counts for a GPU's NVLinks. Then fast channels are split in two and all
 * of them doubled. So NCCL mostly counts a faster NIC as faster channels, and their number grows
 * only where few NICs become fast (4 x 200 Gb/s: 8 channels; 4 x 400 Gb/s: 16) or on Blackwell (8 x
 * 800 Gb/s: 32). What it finds for 1, 2, 4 and 8 NICs of 100, 200 and 400 Gb/s beside V100, A100,
 * H100 and B200 is what logs of NCCL show (results/measured/nccl_channels.csv), but not for every
 * machine: a cluster file that states nccl_channels overrides it. By version: Hopper's fast
 * channels are doubled once more, up to 32, in 2.18 and 2.19; from 2.20 on, and from 2.27 on of
 * Blackwell too, where they are fewer than 16; 2.20 to 2.27 lay at least as many as NVLS has, 16 of
 * Hopper and 32 of Blackwell.
 *
 * Kind of what goes beyond those logs: assumed, that NICs of one GPU are used as one (dual ports
 * are merged by NCCL_IB_MERGE_NICS, EFA's by its plugin), that a mesh of NVLinks has room as a
 * switch has, and that the search finds the best there is. Ignored: paths between CPU sockets,
 * network devices that unpack TCP (twice as many), speeds that versions before 2.20 tried (Hopper's
 * before 2.18 are taken for all). */
struct coll_search {
    double nic_Bps, gpu_Bps; /* what NCCL counts for the NICs of a GPU (for a NIC, where GPUs share
                                it) and for its NVLinks */
    bool pcie;               /* nic_Bps is that of the PCIe slot: the NIC is faster */
    int found;               /* channels before they are split and doubled */
    double speed_Bps;        /* of each of them */
    bool full; /* the search ended because they fill a GPU's NVLinks, or are as many as can be */
    bool split;
    int channels; /* in the end */
};
struct coll_search coll_search(const struct hw *hw);

/* How many channels NCCL lays across nodes and why, into buffer, which it returns: "16 channels:
 * its search finds 8 of 48 GB/s, doubled (to it a NIC is 48 GB/s by its PCIe slot, a GPU's links in
 * the node 370.8 GB/s)". */
const char *coll_channels_words(char *buffer, size_t n, const struct hw *hw);

/* Channels of a collective of whole nodes: the node's inside one, across nodes the cluster's, or
 * what the search finds. */
double coll_channels(bool inter_node, const struct hw *hw);

/* Whether the channels across nodes also carry all data from GPU to GPU inside a node, and so bound
 * it there. */
bool coll_by_channels(enum coll_algorithm algorithm);

/* SMs that a group's channels hold on each GPU, one a channel (NVLS has other channels:
 * coll_cost.sms). A group in one node has the node's channels. A group over nodes has those across
 * nodes, of which NCCL lays the same number for each NIC; if it reaches only some of the NICs, it
 * has their share (logs of one GPU a node show two, recalled). Ignored: small messages use fewer.
 */
double coll_sms(struct coll_shape shape, const struct hw *hw);

/* Seconds of an intra- or inter-node hop of a ring, a tree (COLL_TREE) or a chain
 * (COLL_COLLNET_CHAIN). bytes: of the whole message, which decides how many channels it could fill,
 * c: a hop between nodes takes NCCL's own latency and a post latency x (1 - 1/c), whatever NCCL
 * lays. That more channels add more was the form before ((c - 1)^0.5); no table has two numbers of
 * channels, both forms fit all tables alike, and this one lets no faster NIC or further channel
 * make a hop longer. It puts 1,024 ranks with 32 channels 13 % too low at 1 and 2 GiB
 * (nccl-tests#322; before 4 %). */
double coll_hop_s(enum coll_algorithm algorithm, enum coll_protocol protocol, double bytes,
    bool inter_node, const struct hw *hw);

/* Share of coll_node_Bps() at which the network's switches add up. */
double coll_collnet_share(const struct hw *hw);

/* Share of the bandwidth of links that a tree's channels reach, protocol Simple. */
double coll_tree_share(int nodes);

struct coll_cost {
    enum coll_algorithm algorithm;
    enum coll_protocol protocol;
    double latency_s;     /* that bytes do not hide */
    double unestimated_s; /* part of latency_s that NCCL leaves out of account where its estimate is
                             not known */
    double bus_bytes; /* message times the factor of busbw (nccl-tests doc/PERFORMANCE.md), whatever
                         the wires carry: all_reduce 2 (n-1)/n, all_gather, reduce_scatter,
                         all_to_all (n-1)/n, others 1 */
    double gpu_out_factor;  /* bytes that leave each GPU over NVLink, per bus byte; at most 1, and 0
                               where it is alone on its node */
    double node_out_factor; /* bytes that leave (and enter) each node over its NICs, per bus byte; 0
                               inside one node */
    bool all_pairs; /* a node sends the same to each other node, not along hops (coll/hops.h) */
    double max_rate_Bps; /* of bus bytes: what NCCL's channels reach on these links when isolated */
    enum coll_bound rate_bound; /* what limits max_rate_Bps */
    /* HBM traffic on each GPU, bytes, which compute kernels beside it lose. Of a ring, by byte that
     * arrives: a peer or NIC writes it into the rank's staging buffer, where a channel reads it
     * (coll_staged_bytes()), and the user's buffer is written, or, where it is summed, read; what
     * leaves the node is staged on the sender's side, too. So 3 bytes for each of busbw inside a
     * node (NCCL's maintainer on NVIDIA/nccl#1428: an all_gather's 300 GB/s cost 2 to 3 times as
     * much of HBM; staging alone is 2, user buffers make it 3). */
    double hbm_bytes;
    double sms; /* SMs that its channels hold on each GPU */
};

/* bytes: of the whole message, S, as nccl-tests counts: all_gather the gathered size,
 * reduce_scatter the size before scattering, all_to_all all that a rank sends. A group of one costs
 * nothing: all zero, and any algorithm can do it. false: this algorithm or protocol cannot do the
 * kind on this shape and hardware; *out is then not to be used. */
bool coll_cost(struct coll_cost *out, enum coll_kind kind, enum coll_algorithm algorithm,
    enum coll_protocol protocol, double bytes, struct coll_shape shape, const struct hw *hw);

/* Of what force leaves open, the algorithm and protocol that NCCL chooses. A forced one that is not
 * possible is left open instead, the protocol first, as NCCL falls back. */
struct coll_cost coll_nccl_choice(enum coll_kind kind, double bytes, struct coll_shape shape,
    const struct hw *hw, struct coll_force force);

/* The same within the two laws above: what a collective takes. */
struct coll_cost coll_choose(enum coll_kind kind, double bytes, struct coll_shape shape,
    const struct hw *hw, struct coll_force force);

/* Tokens of a mixture of experts on their way to the ranks of their experts, or back: an all_to_all
 * whose bytes are those of a rank's tokens, each once (coll/deepep.c). */
struct coll_routing {
    int experts, per_token;  /* of a block; those that a token goes through, all as likely */
    int groups, kept_groups; /* they lie in as many groups one after another, of which a token goes
                                to these; 1: one */
    int width;  /* ranks that share each expert, neighbours; its tokens go to all of them */
    double sms; /* that the kernels hold on each GPU */
};
/* On how many of a number of equal parts of the experts a token has one at least, on average. */
double coll_reach(const struct coll_routing *routing, int units);
struct coll_cost coll_routed(
    double bytes, const struct coll_routing *routing, struct coll_shape shape, const struct hw *hw);
/* That, or where routing is NULL what NCCL chooses. */
struct coll_cost coll_of(enum coll_kind kind, double bytes, const struct coll_routing *routing,
    struct coll_shape shape, const struct hw *hw);

/* latency_s + bus_bytes / max_rate_Bps. */
double coll_isolated_s(struct coll_cost cost);

/* Bus bytes a byte of the collective's size, as nccl-tests counts busbw. */
double coll_bus_factor(enum coll_kind kind, double ranks);

/* Written to and read from a staging buffer, by byte of data: LL stores 4 bytes of flag beside 4 of
 * data, LL128 8 beside 120. */
double coll_staged_bytes(enum coll_protocol protocol);

/* HBM traffic on each GPU while its bytes move, B/s; 0 of a group of one. */
double coll_hbm_Bps(struct coll_cost cost);

/* Latency where it is more than half of that, else what bounds the rate. */
enum coll_bound coll_bound(const struct coll_cost *cost);

#endif
