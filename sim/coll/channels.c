/* The number of channels that NCCL lays across nodes: its search over speeds, restated for nodes whose GPUs and NICs
 * are all alike. Sources: NVIDIA/nccl src/graph/search.cc (ncclTopoCompute; speedArrayInter, sm90SpeedArrayInter,
 * sm100SpeedArrayInter), src/graph/connect.cc (ncclTopoPostset, ncclTopoDupChannels), src/graph/topo.h (link
 * bandwidths), 2.27.7, restated; checked against logs of NCCL (header). */
#include "coll/coll.h"

#include "coll/algorithm.h"
#include "coll/nccl.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GB 1e9

enum { MOST_SEARCHED = 32, MOST_CHANNELS = 64 }; /* MAXCHANNELS / 2, MAXCHANNELS (src/include/device.h, 2.26 on) */

/* What NCCL counts for a GPU's NVLinks, as a share of the data sheet's (topo.h: 20 GB/s a link where that has 25, 20.6
 * and 40.1 where it has 25 and 50); and the speeds that it tries inside a node and across nodes, from high to low. */
enum { MOST_SPEEDS = 20 };
struct generation {
    const char *arch;
    double nvlink_share;
    double inside_GBps[MOST_SPEEDS], across_GBps[MOST_SPEEDS]; /* 0 at the end */
};
static const struct generation older = {"", 20 / 25., {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
    {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}};
static const struct generation newer[] = {
    {"Hopper", 20.6 / 25, {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
        {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
    {"Blackwell", 40.1 / 50, {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18},
        {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
};

static const struct generation *find_generation(const struct hw *hw)
{
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (strcmp(hw->gpu.arch, newer[i].arch) == 0)
            return &newer[i];
    return &older;
}

/* topo.h counts 12 GB/s for a x16 slot of PCIe 3, whose raw rate is 15.75, and twice as much for each generation. */
static double pcie_class_Bps(const struct hw *hw)
{
    static const double raw = 15.754 * GB, counted = 12 * GB;
    double generation = ceil(log2(hw->node.pcie_bandwidth.value / raw) - 1e-9);
    return hw->node.pcie_bandwidth.value > 0 ? counted * exp2(fmax(generation, 0)) : HUGE_VAL;
}

/* Links of the part of a node that a group is on. */
struct links {
    double gpus, nics, nic_Bps, gpu_Bps;
    bool across;
};

static struct links find_links(struct coll_shape shape, const struct hw *hw)
{
    const struct hw_node *node = &hw->node;
    double gpus = node->gpus.value, near = fmax(1, node->nics.value / gpus), pcie_Bps = pcie_class_Bps(hw);
    double reached = coll_peers_share(shape.per_node - 1, hw);
    return (struct links){.gpus = shape.per_node,
        .nics = fmax(1, floor(node->nics.value / near * coll_nic_share(shape, hw))),
        .nic_Bps = fmin(near * node->nic_bandwidth.value, pcie_Bps),
        .gpu_Bps = node->fabric == HW_PCIE ? pcie_Bps
                                           : node->gpu_bandwidth.value * find_generation(hw)->nvlink_share * reached,
        .across = shape.nodes > 1};
}

/* Channels of this speed that the links have room for. A ring inside a node crosses the NVLinks of all its GPUs, one
 * across nodes those of all but one. */
static int room(const struct links *links, double speed_Bps)
{
    static const double rounding = 1 + 1e-12;
    double by_gpu = floor(links->gpu_Bps / speed_Bps * rounding), by_nic = MOST_SEARCHED;
    if (links->across) {
        by_nic = links->nics * floor(links->nic_Bps / speed_Bps * rounding);
        by_gpu = links->gpus > 1 ? floor(links->gpus * by_gpu / (links->gpus - 1)) : MOST_SEARCHED;
    }
    return (int)fmin(fmin(by_nic, by_gpu), MOST_SEARCHED);
}

/* Rules that follow the search: on Hopper, from 2.27 on newer GPUs too, fast channels across nodes are doubled once
 * more (2.18 and 2.19: up to 32; later those that are fewer than 16). 2.20 to 2.27: as many as NVLS has, where it has
 * more. */
static int after_search(const struct coll_search *search, int laid, struct coll_shape shape, const struct hw *hw)
{
    static const int doubled_below = 16, doubled_to = 32;
    int version = hw_nccl_minor(hw);
    bool hopper = strcmp(hw->gpu.arch, "Hopper") == 0, blackwell = strcmp(hw->gpu.arch, "Blackwell") == 0;
    bool rule = (hopper && version >= 18) || (blackwell && version >= 27);
    bool room = version < 20 ? 2 * laid <= doubled_to : laid < doubled_below;
    if (rule && room && search->speed_Bps / (search->split ? 2 : 1) > 45 * GB)
        laid *= 2;
    bool nvls = quantity_is_set(hw->node.nvls_efficiency) && shape.per_node > 2;
    if (nvls && version >= 20 && version <= 27)
        laid = (int)fmax(laid, nccl_nvls_search(hw));
    return laid;
}

struct coll_search nccl_search(struct coll_shape shape, const struct hw *hw)
{
    const struct generation *generation = find_generation(hw);
    const struct links links = find_links(shape, hw);
    struct coll_search search = {.nic_Bps = links.nic_Bps, .gpu_Bps = links.gpu_Bps};
    double near = fmax(1, hw->node.nics.value / hw->node.gpus.value);
    search.pcie = near * hw->node.nic_bandwidth.value > links.nic_Bps;
    const double *speeds = links.across ? generation->across_GBps : generation->inside_GBps;
    for (int i = 0; i < MOST_SPEEDS && speeds[i] > 0 && !search.full; i++) {
        double speed_Bps = speeds[i] * GB;
        if (search.found > 0 && speed_Bps <= 0.49 * search.speed_Bps)
            break;
        int found = room(&links, speed_Bps);
        if (found * speed_Bps > search.found * search.speed_Bps) {
            search.found = found;
            search.speed_Bps = speed_Bps;
        }
        search.full = search.found == MOST_SEARCHED || search.found * search.speed_Bps >= search.gpu_Bps;
    }
    int laid = search.found > 0 ? search.found : 1;
    bool after_ampere = generation != &older || strcmp(hw->gpu.arch, "Ada") == 0;
    search.split = search.speed_Bps >= 25 * GB && !(after_ampere && search.speed_Bps < 50 * GB && laid > 4);
    if (search.split)
        laid *= 2;
    laid *= 2; /* ncclTopoDupChannels */
    if (links.across)
        laid = after_search(&search, laid, shape, hw);
    search.channels = laid < MOST_CHANNELS ? laid : MOST_CHANNELS;
    return search;
}

struct coll_search coll_search(const struct hw *hw)
{
    int gpus = (int)hw->node.gpus.value;
    return nccl_search((struct coll_shape){2 * gpus, 2, gpus}, hw);
}

/* The fastest speed of a table up to most_Bps, or most_Bps. */
static double fastest_speed_Bps(const double *speeds_GBps, double most_Bps)
{
    for (int i = 0; i < MOST_SPEEDS && speeds_GBps[i] > 0; i++)
        if (speeds_GBps[i] * GB <= most_Bps * (1 + 1e-12))
            return speeds_GBps[i] * GB;
    return most_Bps;
}

struct nccl_graph nccl_graph(enum coll_algorithm algorithm, struct coll_shape shape, const struct hw *hw)
{
    static const double most_heads = 32;
    const struct generation *generation = find_generation(hw);
    const struct links links = find_links(shape, hw);
    bool across = shape.nodes > 1;
    if (algorithm == COLL_NVLS || algorithm == COLL_NVLS_TREE) {
        double heads = across ? fmin(links.gpus, links.nics) : fmin(links.gpus, most_heads);
        double most_Bps = fmin(links.gpu_Bps / heads, across ? links.nic_Bps : HUGE_VAL);
        double inside_Bps = fastest_speed_Bps(across ? generation->across_GBps : generation->inside_GBps, most_Bps);
        double across_Bps = fastest_speed_Bps(generation->across_GBps, fmin(links.nic_Bps, 2 * inside_Bps));
        return (struct nccl_graph){heads, inside_Bps, across ? fmax(inside_Bps, across_Bps) : inside_Bps};
    }
    struct coll_search search = nccl_search(shape, hw);
    double parts = search.split ? 2 : 1, channels = fmax(search.found, 1) * parts;
    double speed_Bps = (search.found > 0 ? search.speed_Bps : links.nic_Bps) / parts, inside_Bps = speed_Bps;
    if (algorithm == COLL_TREE && across)
        inside_Bps =
            fmax(speed_Bps, fastest_speed_Bps(generation->inside_GBps, fmin(2 * speed_Bps, links.gpu_Bps / channels)));
    return (struct nccl_graph){channels, inside_Bps, speed_Bps};
}

double coll_channels(bool inter_node, const struct hw *hw)
{
    if (!inter_node)
        return hw->node.nccl_channels.value;
    const struct quantity *stated = &hw->cluster.nccl_channels;
    return quantity_is_set(*stated) ? stated->value : coll_search(hw).channels;
}

const char *coll_channels_words(char *buffer, size_t n, const struct hw *hw)
{
    char speed[64], nic[64], links[64];
    struct coll_search search = coll_search(hw);
    if (quantity_is_set(hw->cluster.nccl_channels))
        snprintf(buffer, n, "%g channels, as nccl_channels says", hw->cluster.nccl_channels.value);
    else
        snprintf(buffer, n,
            "%d channels: its search finds %d of %s%s, doubled (to it a NIC is %s%s, a GPU's links in the node %s)",
            search.channels, search.found, quantity_format(speed, sizeof speed, search.speed_Bps, DIM_BYTES_PER_S),
            search.split ? ", split in two" : "", quantity_format(nic, sizeof nic, search.nic_Bps, DIM_BYTES_PER_S),
            search.pcie ? " by its PCIe slot" : "",
            quantity_format(links, sizeof links, search.gpu_Bps, DIM_BYTES_PER_S));
    return buffer;
}

/* The fastest of all, whatever NCCL's estimate says. */
static struct coll_cost fastest(enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw)
{
    struct coll_cost fastest = coll_choose(kind, bytes, shape, hw, COLL_FREE), cost;
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        for (int p = 0; p < COLL_PROTOCOL_COUNT; p++)
            if (a != COLL_HIERARCHICAL &&
                coll_cost(&cost, kind, (enum coll_algorithm)a, (enum coll_protocol)p, bytes, shape, hw) &&
                coll_isolated_s(cost) < coll_isolated_s(fastest))
                fastest = cost;
    return fastest;
}

/* Of slower NICs, those with other channels: for each number of channels the fastest of them, B/s; 0: none. Room for
 * channels changes where a NIC has room for one more of some speed. */
static void slower_nics(double *fastest_Bps, const struct hw *hw)
{
    static const double just_below = 1 - 1e-9;
    const struct generation *generation = find_generation(hw);
    double near = fmax(1, hw->node.nics.value / hw->node.gpus.value);
    struct hw slower = *hw;
    for (int i = 0; i < MOST_SPEEDS && generation->across_GBps[i] > 0; i++)
        for (int k = 1; k <= MOST_SEARCHED; k++) {
            double nic_Bps = k * generation->across_GBps[i] * GB / near * just_below;
            if (nic_Bps >= hw->node.nic_bandwidth.value)
                break;
            slower.node.nic_bandwidth.value = nic_Bps;
            double *longest = &fastest_Bps[coll_search(&slower).channels];
            *longest = fmax(*longest, nic_Bps);
        }
}

struct coll_missed coll_missed(enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw)
{
    static const double matters = 0.99;
    struct coll_missed missed = {0};
    if (shape.ranks == 1)
        return missed;
    double chosen_s = coll_isolated_s(coll_choose(kind, bytes, shape, hw, COLL_FREE)), least_s = matters * chosen_s;
    double nic_Bps[MOST_CHANNELS + 1] = {0};
    bool laid = shape.nodes > 1 && !quantity_is_set(hw->cluster.nccl_channels);
    int channels = laid ? coll_search(hw).channels : 0;
    if (laid)
        slower_nics(nic_Bps, hw);
    nic_Bps[channels] = hw->node.nic_bandwidth.value;
    for (int c = 0; c <= MOST_CHANNELS; c++) {
        struct hw slower = *hw;
        slower.node.nic_bandwidth.value = nic_Bps[c];
        if (nic_Bps[c] == 0)
            continue;
        struct coll_cost cost = fastest(kind, bytes, shape, &slower);
        if (coll_isolated_s(cost) < least_s) {
            least_s = coll_isolated_s(cost);
            missed = (struct coll_missed){
                least_s, cost.algorithm, cost.protocol, c == channels ? 0 : c, c == channels ? 0 : nic_Bps[c]};
        }
    }
    return missed;
}
