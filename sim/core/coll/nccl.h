/* Private to coll/: NCCL's own constants, the defaults of everything that topologies/ do not state.
 *
 * Source, where nothing else is said: NVIDIA/nccl src/graph/tuning.cc, 2.30.7 (2026-06), figures
 * restated. Kind: NVIDIA's fit for choosing algorithms, not a measurement of any one machine. */
#ifndef FLOPCAST_COLL_NCCL_H
#define FLOPCAST_COLL_NCCL_H

#include "coll/coll.h"

/* What depends on the GPU: [1, 2, more nodes], B/s, of a channel unless said otherwise. The row of
 * the newest generation that is not newer: Ada (compute capability 8.9) has Ampere's, Turing (7.5)
 * the oldest. */
struct nccl_arch {
    const char *name;
    double ll_max[3]; /* of all channels; several nodes: by the CPU, Intel's row */
    double ring_ll128, tree[3], tree_ll128[3], nvls_tree[3];
    double nvls_share; /* what the tuner counts of a switch's bandwidth, 2.28 on */
};
const struct nccl_arch *nccl_arch(const struct hw *hw);
int nccl_column(int nodes);

enum nccl_link { NCCL_NVLINK, NCCL_PCI, NCCL_NET, NCCL_LINK_COUNT };

/* Ring and Tree, seconds: once for a collective, and of one step over a link. Simple's are measured
 * on each kind of node instead (hw.h); of Simple only the ratio of a tree's hop to a ring's, and
 * the network's, are used. */
extern const double nccl_base_s[2][COLL_PROTOCOL_COUNT];
extern const double nccl_hop_s[2][NCCL_LINK_COUNT][COLL_PROTOCOL_COUNT];

/* What a proxy takes to post a message: the tuner's overhead of the network on Intel's CPUs (AMD's:
 * twice as much). */
extern const double nccl_net_post_s;

/* Upper bound of the busbw of LL, B/s: on one node by the GPU, on several by the CPU (Intel's is
 * taken). */
double nccl_ll_max_Bps(const struct hw *hw, int nodes);

/* Share of Simple's bandwidth that a protocol reaches: LL sends 4 bytes of data with 4 of flag;
 * LL128 120 of 128, less inside a node. */
double nccl_ring_share(enum coll_protocol protocol, int nodes);
double nccl_tree_share(enum coll_protocol protocol, int nodes);

/* What the channels of a tree, or of NVLSTree (protocol Simple, nvls true), carry at most, B/s of
 * busbw: of Simple by a table, LL and LL128 their share of that, and LL128 no more than its own
 * table says. Trees have as many channels as GPUs of a node, at most 8 (assumed: one for each NIC
 * of the usual machines; NCCL's logs show 8). */
double nccl_tree_max_Bps(
    const struct hw *hw, enum coll_protocol protocol, bool nvls, struct coll_shape shape);

/* Channels of NVLS or NVLSTree, each of which holds an SM: NVLS_NCHANNELS_* of
 * src/transport/nvls.cc, on several nodes at least as many as the cluster's (NCCL_MIN_CTAS). Kind:
 * assumed, quoted from memory. */
double nccl_nvls_channels(bool several, const struct hw *hw);

/* Those that its search for NVLS asks for, whatever a cluster states. */
double nccl_nvls_search(const struct hw *hw);

/* coll_search() for a group of this shape, also inside one node. */
struct coll_search nccl_search(struct coll_shape shape, const struct hw *hw);

/* The graph that NCCL finds for an algorithm, before channels are doubled: what its tuner counts
 * with. Trees go faster inside a node than across where its links have room; NVLS has a channel for
 * each GPU of a domain, at most 32 (2.23 on), NVLSTree one for each NIC. Restated as coll_search();
 * NVLSTree's speeds are assumed: no log states them. */
struct nccl_graph {
    double channels, inside_Bps, across_Bps; /* of a channel */
};
struct nccl_graph nccl_graph(
    enum coll_algorithm algorithm, struct coll_shape shape, const struct hw *hw);

/* Slower NICs in the same machine, for which NCCL finds other channels or counts with another
 * speed: of each such result the fastest. Those with as many channels stand together, the fastest
 * of them first. Returns their number. */
enum { NCCL_MOST_SLOWER = 128 };
struct nccl_nics {
    double nic_Bps; /* of each */
    int channels;   /* coll_channels() */
    bool first;     /* of its number of channels */
    bool own_channels;
};
int nccl_slower_nics(
    struct nccl_nics out[NCCL_MOST_SLOWER], struct coll_shape shape, const struct hw *hw);

/* Bytes of a message of NVLS or (on several nodes) NVLSTree that pass through the switch in one
 * step: a chunk of every channel of every head. Chunks: calcCollChunking of src/enqueue.cc, 2.20
 * on; channels: NVLS_NCHANNELS_* of src/transport/nvls.cc, at least NCCL_MIN_CTAS. Kind: assumed,
 * quoted from memory; measured bends stand where they put them (16 channels: 64 MiB on 2 x 8 H100,
 * 1 GiB on 8; 32 channels: 128 MiB on 2 x 8 B200). */
double nccl_nvls_step_bytes(double bytes, struct coll_shape shape, const struct hw *hw);

/* What the tuner multiplies the bandwidth of a tree all_reduce with, by size. */
double nccl_tree_correction(enum coll_protocol protocol, double bytes);

/* Channels that a message is spread over: all, unless each would get less than its threads are
 * worth. */
double nccl_channels(enum coll_protocol protocol, double bytes, int max_channels);

/* How a group of sends and receives is spread over channels: as many for each peer as parts of its
 * bytes are worth. More ranks leave fewer to each. Rule and sizes: src/enqueue.cc and src/init.cc,
 * 2.10 to 2.2x (NCCL_P2P_NVL_CHUNKSIZE, NCCL_P2P_NET_CHUNKSIZE). Kind: assumed, quoted from memory.
 * A block's rate: half of the tuner's bound of one channel of a tree, the lower of those on one and
 * two nodes (Hopper 19 GB/s, Blackwell 21: p2p.c has what was measured). */
struct nccl_p2p {
    double channels, all_channels; /* of one peer; of all of them */
    double channel_Bps;            /* what one of them sends, while it receives as much */
    double chunk_bytes;            /* at most, that a receiver waits for */
};
struct nccl_p2p nccl_p2p(
    enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw);

/* Slices of a chunk of a ring, protocol Simple (src/include/collectives.h: chunks of 4 steps,
 * slices of 2; assumed, quoted from memory). */
extern const double nccl_slices;

/* Chunks of a ring, protocol Simple, that a connection's buffer holds: NCCL_STEPS (8) over 4 steps
 * each, however small they are. */
extern const double nccl_chunks;

/* Data of a slot, what a channel's proxy sends at a time: an eighth (NCCL_STEPS) of its buffer; LL:
 * 8 lines for each of 512 threads, half of it data; LL128: 120 elements for each of 640 threads,
 * 15/16 data; Simple: of 4 MiB (src/include/device.h; assumed, quoted from memory). */
extern const double nccl_slot_bytes[COLL_PROTOCOL_COUNT];

/* Share of the NICs' bandwidth that NVLSTree reaches on three nodes or more: the tuner's, 2.20 to
 * 2.27. */
extern const double nccl_nvls_tree_share;

/* CollNet: of a hop inside a node; by GPU of it; of the way through the network. */
extern const double nccl_collnet_direct_hop_s, nccl_collnet_direct_gpu_s, nccl_collnet_direct_net_s;
extern const double nccl_collnet_chain_hop_s, nccl_collnet_chain_net_s;

/* PAT: once; a step, as a share of the network's; by rank; share of the ring's bandwidth. */
extern const double nccl_pat_base_s, nccl_pat_hop_share, nccl_pat_rank_s, nccl_pat_share;

#endif
