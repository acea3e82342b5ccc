/* The number of channels that NCCL lays across nodes: its search over speeds, restated for nodes whose GPUs and NICs
 * are all alike. Sources: NVIDIA/nccl src/graph/search.cc (ncclTopoCompute; speedArrayInter, sm90SpeedArrayInter,
 * sm100SpeedArrayInter), src/graph/connect.cc (ncclTopoPostset, ncclTopoDupChannels), src/graph/topo.h (link
 * bandwidths), 2.27.7, restated; checked against logs of NCCL (header). */
#include "coll/coll.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GB 1e9

enum { MOST_SEARCHED = 32, MOST_CHANNELS = 64 }; /* MAXCHANNELS / 2, MAXCHANNELS (src/include/device.h, 2.26 on) */

/* What NCCL counts for a GPU's NVLinks, as a share of the data sheet's (topo.h: 20 GB/s a link where that has 25, 20.6
 * and 40.1 where it has 25 and 50); and the speeds that it tries across nodes, from high to low. */
struct generation {
    const char *arch;
    double nvlink_share;
    int n_speeds;
    double speeds_GBps[20];
};
static const struct generation older = {
    "", 20 / 25., 19, {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}};
static const struct generation newer[] = {
    {"Hopper", 20.6 / 25, 17, {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
    {"Blackwell", 40.1 / 50, 18, {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
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

/* Channels of this speed that the links of a node have room for. A ring crosses G - 1 of the G GPUs' NVLinks. */
static int room(const struct coll_search *search, double speed_Bps, double gpus, double nics)
{
    double by_nic = nics * floor(search->nic_Bps / speed_Bps * (1 + 1e-12));
    double by_link =
        gpus > 1 ? floor(gpus * floor(search->gpu_Bps / speed_Bps * (1 + 1e-12)) / (gpus - 1)) : MOST_SEARCHED;
    return (int)fmin(fmin(by_nic, by_link), MOST_SEARCHED);
}

struct coll_search coll_search(const struct hw *hw)
{
    const struct hw_node *node = &hw->node;
    const struct generation *generation = find_generation(hw);
    double gpus = node->gpus.value, near = fmax(1, node->nics.value / gpus), nics = node->nics.value / near;
    double pcie_Bps = pcie_class_Bps(hw);
    struct coll_search search = {.nic_Bps = fmin(near * node->nic_bandwidth.value, pcie_Bps),
        .gpu_Bps = node->fabric == HW_PCIE ? pcie_Bps : node->gpu_bandwidth.value * generation->nvlink_share};
    search.pcie = near * node->nic_bandwidth.value > pcie_Bps;
    for (int i = 0; i < generation->n_speeds; i++) {
        double speed_Bps = generation->speeds_GBps[i] * GB;
        if (search.found > 0 && speed_Bps <= 0.49 * search.speed_Bps)
            break;
        int found = room(&search, speed_Bps, gpus, nics);
        if (found * speed_Bps > search.found * search.speed_Bps) {
            search.found = found;
            search.speed_Bps = speed_Bps;
        }
        search.full = search.found == MOST_SEARCHED || search.found * search.speed_Bps >= search.gpu_Bps;
        if (search.full)
            break;
    }
    int laid = search.found > 0 ? search.found : 1;
    bool hopper_on = generation != &older, after_ampere = hopper_on || strcmp(hw->gpu.arch, "Ada") == 0;
    search.split = search.speed_Bps >= 25 * GB && !(after_ampere && search.speed_Bps < 50 * GB && laid > 4);
    if (search.split)
        laid *= 2;
    laid *= 2; /* ncclTopoDupChannels */
    if (hopper_on && laid < 16 && search.speed_Bps / (search.split ? 2 : 1) > 45 * GB)
        laid *= 2;
    search.channels = laid < MOST_CHANNELS ? laid : MOST_CHANNELS;
    return search;
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
    for (int a = 0; a < COLL_ALGORITHM_COUNT && fastest.unestimated_s > 0; a++)
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
    for (int i = 0; i < generation->n_speeds; i++)
        for (int k = 1; k <= MOST_SEARCHED; k++) {
            double nic_Bps = k * generation->speeds_GBps[i] * GB / near * just_below;
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
