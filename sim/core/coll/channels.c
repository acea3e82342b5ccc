/* The number of channels that NCCL lays across nodes: its search over speeds, restated for nodes
 * whose GPUs and NICs are all alike. Sources: NVIDIA/nccl src/graph/search.cc (ncclTopoCompute;
 * speedArrayInter, sm90SpeedArrayInter, sm100SpeedArrayInter), src/graph/connect.cc
 * (ncclTopoPostset, ncclTopoDupChannels), src/graph/topo.h (link bandwidths), 2.27.7, restated;
 * checked against logs of NCCL (header). */
#include "coll/coll.h"

#include "coll/algorithm.h"
#include "coll/nccl.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB 1e9

enum {
    MOST_SEARCHED = 32,
    MOST_CHANNELS = 64
}; /* MAXCHANNELS / 2, MAXCHANNELS (src/include/device.h, 2.26 on) */

/* What NCCL counts for a GPU's NVLinks, as a share of the data sheet's (topo.h: 20 GB/s a link
 * where that has 25, 20.6 and 40.1 where it has 25 and 50); and the speeds that it tries inside a
 * node and across nodes, from high to low. */
enum { MOST_SPEEDS = 20 };
struct generation {
    const char *arch;
    double nvlink_share;
    double inside_GBps[MOST_SPEEDS], across_GBps[MOST_SPEEDS]; /* 0 at the end */
};
static const struct generation older = {"", 20 / 25.,
    {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
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

/* topo.h counts 12 GB/s for a x16 slot of PCIe 3, whose raw rate is 15.75, and twice as much for
 * each generation. */
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

static struct links channels_find_links(struct coll_shape shape, const struct hw *hw)
{
    const struct hw_node *node = &hw->node;
    double gpus = node->gpus.value, near = fmax(1, node->nics.value / gpus),
           pcie_Bps = pcie_class_Bps(hw);
    double reached = coll_peers_share(shape.per_node - 1, hw);
    return (struct links){.gpus = shape.per_node,
        .nics = fmax(1, floor(node->nics.value / near * coll_nic_share(shape, hw))),
        .nic_Bps = fmin(near * node->nic_bandwidth.value, pcie_Bps),
        .gpu_Bps = node->fabric == HW_PCIE
                       ? pcie_Bps
                       : node->gpu_bandwidth.value * find_generation(hw)->nvlink_share * reached,
        .across = shape.nodes > 1};
}

/* Channels of this speed that the links have room for. A ring inside a node crosses the NVLinks of
 * all its GPUs, one across nodes those of all but one. */
static int channels_room(const struct links *links, double speed_Bps)
{
    static const double rounding = 1 + 1e-12;
    double by_gpu = floor(links->gpu_Bps / speed_Bps * rounding), by_nic = MOST_SEARCHED;
    if (links->across) {
        by_nic = links->nics * floor(links->nic_Bps / speed_Bps * rounding);
        by_gpu = links->gpus > 1 ? floor(links->gpus * by_gpu / (links->gpus - 1)) : MOST_SEARCHED;
    }
    return (int)fmin(fmin(by_nic, by_gpu), MOST_SEARCHED);
}

/* Rules that follow the search: on Hopper, from 2.27 on newer GPUs too, fast channels across nodes
 * are doubled once more (2.18 and 2.19: up to 32; later those that are fewer than 16). 2.20 to
 * 2.27: as many as NVLS has, where it has more. */
static int after_search(
    const struct coll_search *search, int laid, struct coll_shape shape, const struct hw *hw)
{
    static const int doubled_below = 16, doubled_to = 32;
    int version = hw_nccl_minor(hw);
    bool hopper = strcmp(hw->gpu.arch, "Hopper") == 0,
         blackwell = strcmp(hw->gpu.arch, "Blackwell") == 0;
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
    const struct links links = channels_find_links(shape, hw);
    struct coll_search search = {.nic_Bps = links.nic_Bps, .gpu_Bps = links.gpu_Bps};
    double near = fmax(1, hw->node.nics.value / hw->node.gpus.value);
    search.pcie = near * hw->node.nic_bandwidth.value > links.nic_Bps;
    const double *speeds = links.across ? generation->across_GBps : generation->inside_GBps;
    for (int i = 0; i < MOST_SPEEDS && speeds[i] > 0 && !search.full; i++) {
        double speed_Bps = speeds[i] * GB;
        if (search.found > 0 && speed_Bps <= 0.49 * search.speed_Bps)
            break;
        int found = channels_room(&links, speed_Bps);
        if (found * speed_Bps > search.found * search.speed_Bps) {
            search.found = found;
            search.speed_Bps = speed_Bps;
        }
        search.full =
            search.found == MOST_SEARCHED || search.found * search.speed_Bps >= search.gpu_Bps;
    }
    int laid = search.found > 0 ? search.found : 1;
    bool after_ampere = generation != &older || strcmp(hw->gpu.arch, "Ada") == 0;
    search.split =
        search.speed_Bps >= 25 * GB && !(after_ampere && search.speed_Bps < 50 * GB && laid > 4);
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

struct nccl_graph nccl_graph(
    enum coll_algorithm algorithm, struct coll_shape shape, const struct hw *hw)
{
    static const double most_heads = 32;
    const struct generation *generation = find_generation(hw);
    const struct links links = channels_find_links(shape, hw);
    bool across = shape.nodes > 1;
    if (algorithm == COLL_NVLS || algorithm == COLL_NVLS_TREE) {
        double heads = across ? fmin(links.gpus, links.nics) : fmin(links.gpus, most_heads);
        double most_Bps = fmin(links.gpu_Bps / heads, across ? links.nic_Bps : HUGE_VAL);
        double inside_Bps =
            fastest_speed_Bps(across ? generation->across_GBps : generation->inside_GBps, most_Bps);
        double across_Bps =
            fastest_speed_Bps(generation->across_GBps, fmin(links.nic_Bps, 2 * inside_Bps));
        return (struct nccl_graph){
            heads, inside_Bps, across ? fmax(inside_Bps, across_Bps) : inside_Bps};
    }
    struct coll_search search = nccl_search(shape, hw);
    double parts = search.split ? 2 : 1, channels = fmax(search.found, 1) * parts;
    double speed_Bps = (search.found > 0 ? search.speed_Bps : links.nic_Bps) / parts,
           inside_Bps = speed_Bps;
    if (algorithm == COLL_TREE && across)
        inside_Bps = fmax(speed_Bps, fastest_speed_Bps(generation->inside_GBps,
                                         fmin(2 * speed_Bps, links.gpu_Bps / channels)));
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
            "%d channels: its search finds %d of %s%s, doubled (to it a NIC is %s%s, a GPU's links "
            "in the node %s)",
            search.channels, search.found,
            quantity_format(speed, sizeof speed, search.speed_Bps, DIM_BYTES_PER_S),
            search.split ? ", split in two" : "",
            quantity_format(nic, sizeof nic, search.nic_Bps, DIM_BYTES_PER_S),
            search.pcie ? " by its PCIe slot" : "",
            quantity_format(links, sizeof links, search.gpu_Bps, DIM_BYTES_PER_S));
    return buffer;
}

/* Everything that NCCL's choice and its channels depend on of the NICs. */
struct laid {
    int channels, of_nodes, found;
    double speed_Bps, nvls_Bps;
};

static struct laid find_laid(struct coll_shape shape, const struct hw *hw)
{
    struct coll_search search = nccl_search(shape, hw);
    bool whole =
        shape.per_node == (int)hw->node.gpus.value && !quantity_is_set(hw->cluster.nccl_channels);
    return (struct laid){search.channels, whole ? search.channels : (int)coll_channels(true, hw),
        search.found, search.speed_Bps, nccl_graph(COLL_NVLS_TREE, shape, hw).across_Bps};
}

static bool same_laid(const struct laid *a, const struct laid *b)
{
    return a->channels == b->channels && a->of_nodes == b->of_nodes && a->found == b->found &&
           a->speed_Bps == b->speed_Bps && a->nvls_Bps == b->nvls_Bps;
}

static int by_channels(const void *a, const void *b)
{
    const struct nccl_nics *x = a, *y = b;
    if (x->channels != y->channels)
        return x->channels < y->channels ? -1 : 1;
    return (x->nic_Bps < y->nic_Bps) - (x->nic_Bps > y->nic_Bps);
}

int nccl_slower_nics(
    struct nccl_nics out[NCCL_MOST_SLOWER], struct coll_shape shape, const struct hw *hw)
{
    static const double just_below = 1 - 1e-9;
    const struct generation *generation = find_generation(hw);
    struct laid laid[NCCL_MOST_SLOWER], own = find_laid(shape, hw);
    double near = fmax(1, hw->node.nics.value / hw->node.gpus.value);
    struct hw slower = *hw;
    int n = 0, most = (int)fmax(1, MOST_SEARCHED / hw->node.nics.value * near);
    for (int i = 0; i < MOST_SPEEDS && generation->across_GBps[i] > 0; i++)
        for (int k = 1; k <= most; k++) {
            double nic_Bps = k * generation->across_GBps[i] * GB / near * just_below;
            if (nic_Bps >= hw->node.nic_bandwidth.value)
                break;
            slower.node.nic_bandwidth.value = nic_Bps;
            struct laid here = find_laid(shape, &slower);
            int at = 0;
            while (at < n && !same_laid(&laid[at], &here))
                at++;
            if (same_laid(&here, &own) || at == NCCL_MOST_SLOWER)
                continue;
            if (at == n)
                out[n++] = (struct nccl_nics){
                    .channels = here.of_nodes, .own_channels = here.of_nodes == own.of_nodes};
            laid[at] = here;
            out[at].nic_Bps = fmax(out[at].nic_Bps, nic_Bps);
        }
    qsort(out, (size_t)n, sizeof *out, by_channels);
    for (int i = 0; i < n; i++)
        out[i].first = i == 0 || out[i - 1].channels != out[i].channels;
    return n;
}
