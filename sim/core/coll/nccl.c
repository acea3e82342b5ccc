/* NCCL's constants and small rules, restated: latencies, bounds of rates by architecture, what
 * trees and protocols reach of a rate, channels, chunks.
 *
 * Tables are indexed as in NCCL: [ring or tree][link][protocol], and by one node, two, or more. An
 * architecture without a row has the first one, Volta's; Ada and CDNA have Ampere's. */
#include "coll/nccl.h"

#include <math.h>
#include <string.h>

#define US 1e-6

/* [Ring, Tree][LL, LL128, Simple] */
const double nccl_base_s[2][COLL_PROTOCOL_COUNT] = {
    [COLL_RING] = {6.6 * US, 14.0 * US, 8.4 * US},
    [COLL_TREE] = {6.8 * US, 14.0 * US, 8.4 * US},
};
const double nccl_hop_s[2][NCCL_LINK_COUNT][COLL_PROTOCOL_COUNT] = {
    [COLL_RING] = {[NCCL_NVLINK] = {0.6 * US, 1.9 * US, 3.4 * US},
        [NCCL_PCI] = {1.0 * US, 2.5 * US, 5.7 * US},
        [NCCL_NET] = {2.7 * US, 4.0 * US, 14.0 * US}},
    [COLL_TREE] = {[NCCL_NVLINK] = {0.6 * US, 1.25 * US, 4.0 * US},
        [NCCL_PCI] = {1.0 * US, 1.9 * US, 4.0 * US},
        [NCCL_NET] = {5.0 * US, 8.5 * US, 14.0 * US}},
};

const double nccl_net_post_s = 1.0 * US;

const double nccl_slices = 2;
const double nccl_chunks = 2;
const double nccl_slot_bytes[COLL_PROTOCOL_COUNT] = {0x1p15, 120 * 640 * 8 * 15. / 16, 0x1p19};

const double nccl_nvls_tree_share = 5. / 6;

const double nccl_collnet_direct_hop_s = 3.7 * US;
const double nccl_collnet_direct_gpu_s = 0.4 * US;
const double nccl_collnet_direct_net_s = 31 * US;
const double nccl_collnet_chain_hop_s = 2.8 * US;
const double nccl_collnet_chain_net_s = 30 * US;

const double nccl_pat_base_s = 8.0 * US;
const double nccl_pat_hop_share = 1 / 3.5;
const double nccl_pat_rank_s = 2.8 * US;
const double nccl_pat_share = 0.75;

static const struct nccl_arch archs[] = {
    {"Volta", {39.0e9, 39.0e9, 20.4e9}, 20e9, {26.5e9, 18.5e9, 10.0e9}, {20e9, 20e9, 20e9},
        {26.5e9, 18.5e9, 10.0e9}, 0},
    {"Ampere", {87.7e9, 39.0e9, 20.4e9}, 20e9, {24.0e9, 23.6e9, 17.8e9}, {20e9, 20e9, 20e9},
        {24.0e9, 23.6e9, 17.8e9}, 0},
    {"Hopper", {141e9, 39.0e9, 20.4e9}, 36.7e9, {38.7e9, 41.4e9, 36.0e9}, {36.7e9, 36.7e9, 29.0e9},
        {0, 57.7e9, 45.5e9}, 0.85},
    {"Blackwell", {282e9, 39.0e9, 20.4e9}, 40e9, {70e9, 42.8e9, 24e9}, {55.6e9, 31.67e9, 20e9},
        {0, 96e9, 80e9}, 0.74},
};

const struct nccl_arch *nccl_arch(const struct hw *hw)
{
    bool other = strcmp(hw->gpu.arch, "Ada") == 0 ||
                 strcmp(hw->gpu.arch, "CDNA") == 0; /* RCCL's are not at hand */
    const char *name = other ? "Ampere" : hw->gpu.arch;
    size_t n = sizeof archs / sizeof *archs;
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, archs[i].name) == 0)
            return &archs[i];
    return &archs[0];
}

int nccl_column(int nodes)
{
    return nodes > 2 ? 2 : nodes - 1;
}

double nccl_ll_max_Bps(const struct hw *hw, int nodes)
{
    return nccl_arch(hw)->ll_max[nccl_column(nodes)];
}

double nccl_tree_share(enum coll_protocol protocol, int nodes)
{
    static const double one_node[COLL_PROTOCOL_COUNT] = {0.92 / 3.8, 0.92 * 7 / 9, 0.92};
    static const double more[COLL_PROTOCOL_COUNT] = {0.92 / 3.8, 0.92 * 120 / 128, 0.92};
    return nodes > 1 ? more[protocol] : one_node[protocol];
}

double nccl_tree_max_Bps(
    const struct hw *hw, enum coll_protocol protocol, bool nvls, struct coll_shape shape)
{
    static const int most_channels = 8;
    const struct nccl_arch *arch = nccl_arch(hw);
    int c = nccl_column(shape.nodes);
    double reached =
        nccl_tree_share(protocol, shape.nodes) / nccl_tree_share(COLL_SIMPLE, shape.nodes);
    double each = nvls ? arch->nvls_tree[c] : arch->tree[c] * reached;
    if (protocol == COLL_LL128)
        each = fmin(each, arch->tree_ll128[c]);
    return each * (shape.per_node < most_channels ? shape.per_node : most_channels);
}

double nccl_ring_share(enum coll_protocol protocol, int nodes)
{
    static const double one_node[COLL_PROTOCOL_COUNT] = {0.5, 0.92, 1},
                        more[COLL_PROTOCOL_COUNT] = {0.5, 0.9375, 1};
    return nodes > 1 ? more[protocol] : one_node[protocol];
}

double coll_tree_share(int nodes)
{
    return nccl_tree_share(COLL_SIMPLE, nodes);
}

double nccl_tree_correction(enum coll_protocol protocol, double bytes)
{
    enum { SIZES = 23 }; /* 64 B, 128 B, ... 256 MiB */
    static const double table[COLL_PROTOCOL_COUNT][SIZES] = {
        [COLL_LL] = {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1,
            1, 1},
        [COLL_LL128] = {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9,
            .9, 1, 1},
        [COLL_SIMPLE] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7,
            .7, .8, .9, .9},
    };
    double size = floor(log2(bytes / 64));
    return size < 0 || size >= SIZES ? 1 : table[protocol][(int)size];
}

double nccl_nvls_search(const struct hw *hw)
{
    static const double hopper = 16, blackwell = 32, blackwell_rack = 24, most_of_a_board = 8;
    bool rack = hw->node.gpus.value > most_of_a_board;
    return strcmp(hw->gpu.arch, "Blackwell") != 0 ? hopper : rack ? blackwell_rack : blackwell;
}

double nccl_nvls_channels(bool several, const struct hw *hw)
{
    double channels = nccl_nvls_search(hw);
    return several && quantity_is_set(hw->cluster.nccl_channels)
               ? fmax(channels, hw->cluster.nccl_channels.value)
               : channels;
}

double nccl_nvls_step_bytes(double bytes, struct coll_shape shape, const struct hw *hw)
{
    /* A larger chunk is cut to `chunk` if the message has fewer than `steps` steps of it. */
    static const struct cut {
        double chunk, steps;
    } one_node[] = {{0x1p16, 64}, {0x1p15, 8}, {0x1p14, 2}},
      more[] = {{0x1p17, 16}, {0x1p16, 4}, {0x1p15, 1}};
    static const double most = 0x1p17, most_of_many_nodes = 0x1p16;
    bool several = shape.nodes > 1;
    double heads = nccl_nvls_channels(several, hw) * shape.per_node,
           chunk = shape.nodes >= 4 ? most_of_many_nodes : most;
    const struct cut *cuts = several ? more : one_node;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (chunk > cuts[i].chunk && bytes < cuts[i].steps * heads * chunk)
            chunk = cuts[i].chunk;
    return heads * chunk;
}

double nccl_channels(enum coll_protocol protocol, double bytes, int max_channels)
{
    /* Threads of a channel times bytes a thread: NCCL_*_MAX_NTHREADS and NCCL_*_THREAD_THRESHOLD of
     * src/include, 2.2x. Kind: assumed. They are quoted from memory, no copy of that file was at
     * hand; what depends on them is fitted. */
    static const double bytes_each[COLL_PROTOCOL_COUNT] = {512 * 8, 640 * 8, 512 * 64};
    return fmin(fmax(floor(bytes / bytes_each[protocol]), 1), max_channels);
}

/* A peer on another node has two channels, one where there are many ranks; all peers of the group
 * have the fewest. */
static int net_peer_channels(int ranks, int all)
{
    int channels = 2;
    while (channels * ranks > 4 * all && channels > 1)
        channels /= 2;
    return channels;
}

struct nccl_p2p nccl_p2p(
    enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw)
{
    static const double kib = 1024, nvlink_chunk = 512, network_chunk = 128;
    bool several = shape.nodes > 1;
    double chunk = kib * (several ? network_chunk : nvlink_chunk);
    double least = several ? chunk / 2 : chunk / 8,
           most = several ? chunk : chunk * 32; /* bytes of a part */
    double laid = coll_channels(several, hw);   /* a search: once */
    int all = 1;
    while (all < laid)
        all *= 2;
    bool few = several && kind == COLL_ALL_TO_ALL;
    int channels = few ? net_peer_channels(shape.ranks, all) : all, top = channels;
    while (channels * shape.ranks > all &&
           channels > 1) /* one channel does one send at a time, if they suffice */
        channels /= 2;
    while (top * shape.ranks > 4 * all && top > 1) /* and no more than four */
        top /= 2;
    while (bytes / channels > most && channels <= top / 2)
        channels *= 2;
    double parts = fmax(ceil(bytes / least), 1);
    return (struct nccl_p2p){.channels = fmin(channels, parts),
        .all_channels = all,
        .channel_Bps = fmin(nccl_arch(hw)->tree[0], nccl_arch(hw)->tree[1]) / 2,
        .chunk_bytes = chunk};
}
