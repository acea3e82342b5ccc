/* What NCCL's tuner itself estimates, by version. It decides the choice of algorithm and protocol,
 * and is never a duration of this model.
 *
 * Each estimate is the latency of steps plus bytes over a bandwidth. Constants and factors change
 * with the version; each difference is a comparison of the minor version beside it. tuner_known()
 * says whether all algorithms that NCCL weighs have an estimate here; else the choice goes by this
 * model's times (choice.c). */
#include "coll/tuner.h"

#include "coll/nccl.h"

#include <math.h>
#include <string.h>

#define US 1e-6
#define GB 1e9

/* Latencies of a version and those that follow it, until the next: once for a collective; of a step
 * over NVLink, PCIe and between nodes. [Ring, Tree][LL, LL128, Simple], us. */
static const struct constants {
    int version;
    double base[2][COLL_PROTOCOL_COUNT];
    double hop[2][NCCL_LINK_COUNT][COLL_PROTOCOL_COUNT];
    double nvls_base, nvls_hop, nvls_tree_net; /* nvls_tree_net: of a level */
} versions[] = {
    {28, {{6.6, 14, 8.4}, {6.8, 14, 8.4}},
        {{{.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}}, {{.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}}},
        0, 25, 20.9},
    {23, {{6.6, 14, 8.4}, {6.8, 14, 8.4}},
        {{{.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}}, {{.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}}},
        0, 25, 14},
    {20, {{6.6, 14, 8.4}, {6.8, 14, 0}},
        {{{.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}},
            {{.6, 1.25, 28}, {1, 1.9, 28}, {5, 8.5, 28}}},
        0, 23, 14},
    {18, {{6.6, 14, 8.4}, {6.8, 14, 0}},
        {{{.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}}, {{.6, 1.25, 4}, {1, 1.9, 6}, {5, 8.5, 14}}},
        23, 0, 19},
    {10, {{3.6, 10, 8.4}, {4.4, 4.4, 0}},
        {{{.47, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 9.6}},
            {{.52, 1.25, 28}, {1, 1.9, 28}, {5, 8.5, 28}}},
        0, 0, 0},
};

static const struct constants *find_constants(int version)
{
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (version >= versions[i].version)
            return &versions[i];
    return NULL;
}

/* Bound of the busbw of LL: of the newest GPUs the row of the generation before, in versions before
 * they had one. */
static double ll_max_Bps(const struct hw *hw, int nodes, int version)
{
    static const double ampere = 87.7 * GB, hopper = 141 * GB; /* one node */
    double known = nccl_ll_max_Bps(hw, nodes);
    if (nodes > 1)
        return known;
    return version < 23 ? fmin(known, ampere) : version < 26 ? fmin(known, hopper) : known;
}

/* busbw, as the tuner counts it, of a ring or tree; of a tree bytes of the message go at half of
 * it. */
static double bus_Bps(const struct coll_query *query, enum coll_algorithm algorithm, int version)
{
    static const double older_ring_ll = 0.25, older_ring_ll_gather = 1 / 3., older_ll128 = 20 * GB,
                        older_ampere = 235 * GB;
    const struct nccl_arch *arch = nccl_arch(query->hw);
    int nodes = query->shape.nodes, column = nccl_column(nodes);
    const struct nccl_graph graph = nccl_graph(algorithm, query->shape, query->hw);
    double Bps = graph.channels * (nodes <= 2 ? graph.inside_Bps : graph.across_Bps);
    double ll_Bps = ll_max_Bps(query->hw, nodes, version);
    if (version < 18 && strcmp(arch->name, "Ampere") == 0)
        Bps = fmin(Bps, older_ampere);
    if (algorithm == COLL_RING) {
        double ll = version >= 23 ? 0.5
                    : nodes > 1 || query->kind == COLL_ALL_REDUCE || query->kind == COLL_REDUCE
                        ? older_ring_ll
                        : older_ring_ll_gather;
        double ll128_Bps = graph.channels * (version < 18 ? older_ll128 : arch->ring_ll128);
        double ll128 = version < 23 && query->shape.per_node < 2 ? 0.7 : 0.92;
        return query->protocol == COLL_LL      ? fmin(ll_Bps, Bps * ll)
               : query->protocol == COLL_LL128 ? fmin(Bps * ll128, ll128_Bps)
                                               : Bps;
    }
    Bps = fmin(0.92 * Bps, graph.channels * arch->tree[column]);
    double ll128_Bps = graph.channels * (version < 18 ? older_ll128 : arch->tree_ll128[column]);
    return query->protocol == COLL_LL ? fmin(Bps / 3.8, ll_Bps)
           : query->protocol == COLL_LL128
               ? fmin(Bps * (nodes == 1 ? 7 / 9. : 120 / 128.), ll128_Bps)
               : Bps;
}

/* Steps inside a node and between nodes: what the tuner adds to NCCL's table. */
struct hops {
    double inside_s, across_s;
};

static struct hops find_hops(const struct coll_query *query, enum coll_algorithm like, int version)
{
    const struct constants *constants = find_constants(version);
    const struct hw *hw = query->hw;
    enum nccl_link link = hw->node.fabric == HW_PCIE ? NCCL_PCI : NCCL_NVLINK;
    bool simple = query->protocol == COLL_SIMPLE, several = query->shape.nodes > 1,
         alone = query->shape.per_node == 1;
    enum coll_algorithm net = version >= 23 && alone ? COLL_TREE : like;
    struct hops hops = {constants->hop[like][link][query->protocol] * US,
        constants->hop[net][NCCL_NET][query->protocol] * US +
            (simple ? 2 : 1) * nccl_plugin_latency_s(hw)};
    if (several && version >= 18 && like == COLL_RING)
        hops.inside_s = fmax(hops.inside_s, (simple ? 3 : 1) * nccl_net_post_s);
    if (several && version < 18 && query->protocol == COLL_LL)
        hops.inside_s *= 1.8;
    return hops;
}

static double ring_s(const struct coll_query *query, int version)
{
    static const double plateau = 1.4, plateau_volta = 1.9, plateau_bytes = 64;
    const struct coll_shape *shape = &query->shape;
    double Bps = bus_Bps(query, COLL_RING, version),
           base_s = find_constants(version)->base[COLL_RING][query->protocol];
    struct hops hops = find_hops(query, COLL_RING, version);
    base_s *= US;
    bool several = shape->nodes > 1, simple = query->protocol == COLL_SIMPLE;
    if (query->kind == COLL_BROADCAST || query->kind == COLL_REDUCE) {
        /* All channels share one ring inside a node with an NVSwitch: one step. Across nodes they
         * do not. */
        double hop_s = several
                           ? simple ? find_hops(query, COLL_TREE, version).across_s : hops.across_s
                           : hops.inside_s;
        return base_s + (several ? shape->ranks : 1) * hop_s + query->bytes / Bps;
    }
    bool reduces = query->kind == COLL_ALL_REDUCE;
    double steps = (reduces ? 2 : 1) * (shape->ranks - 1),
           across = (reduces ? 2 : 1) * (shape->nodes - 1);
    if (several && reduces && version >= 14 && version < 23)
        across += 2;
    double latency_s = base_s + (steps - across) * hops.inside_s + across * hops.across_s;
    double channels = coll_channels(several, query->hw);
    if (reduces && simple && several && query->bytes / (channels * shape->ranks) >= plateau_bytes)
        latency_s *= strcmp(nccl_arch(query->hw)->name, "Volta") == 0 ? plateau_volta : plateau;
    return latency_s + query->bytes / (Bps * shape->ranks / steps);
}

static double tree_s(const struct coll_query *query, int version)
{
    struct hops hops = find_hops(query, COLL_TREE, version);
    double Bps = bus_Bps(query, COLL_TREE, version) / 2 *
                 nccl_tree_correction(query->protocol, query->bytes);
    return find_constants(version)->base[COLL_TREE][query->protocol] * US +
           2 * ((query->shape.per_node - 1) * hops.inside_s +
                   coll_levels(query->shape.nodes) * hops.across_s) +
           query->bytes / Bps;
}

/* NVLS in one node, NVLSTree on several. Bandwidth of the message's bytes: from 2.28 on busbw like
 * that of a ring, of the switch twice its share of the links for all parts but one's own; before,
 * 5/6 of the slower graph. */
static double nvls_s(const struct coll_query *query, int version)
{
    const struct nccl_arch *arch = nccl_arch(query->hw);
    const struct constants *constants = find_constants(version);
    int nodes = query->shape.nodes;
    double n = query->shape.ranks;
    const struct nccl_graph graph =
        nccl_graph(nodes > 1 ? COLL_NVLS_TREE : COLL_NVLS, query->shape, query->hw);
    double inside_Bps = graph.inside_Bps, across_Bps = nodes > 1 ? graph.across_Bps : HUGE_VAL, Bps;
    if (version >= 28) {
        inside_Bps *= 2 * arch->nvls_share * (graph.channels - 1) / graph.channels;
        across_Bps =
            nodes > 1 ? fmin(across_Bps * (nodes == 2 ? 2 : 1), arch->nvls_tree[nccl_column(nodes)])
                      : HUGE_VAL;
        Bps = graph.channels * fmin(inside_Bps, across_Bps) * n / (2 * (n - 1));
    } else {
        double share = 5. / 6;
        if (version < 20 && nodes > 1)
            share = 0.7 * nodes / (2. * (nodes - 1));
        Bps = graph.channels * fmin(inside_Bps, nodes > 2 ? across_Bps / 2 : across_Bps) * share;
    }
    double levels = nodes == 1 ? 0 : version < 20 ? nodes - 1 : coll_levels(nodes);
    double level_s = constants->nvls_tree_net * US + 2 * nccl_plugin_latency_s(query->hw);
    return (constants->nvls_base + constants->nvls_hop) * US + 2 * levels * level_s +
           query->bytes / Bps;
}

static double pat_s(const struct coll_query *query, int version)
{
    double Bps = nccl_pat_share * bus_Bps(query, COLL_RING, version);
    return nccl_pat_base_s +
           coll_levels(query->shape.nodes) * nccl_pat_hop_share *
               find_hops(query, COLL_TREE, version).across_s +
           query->shape.ranks * nccl_pat_rank_s + query->bytes / Bps;
}

/* Whether all algorithms that NCCL weighs have an estimate here. */
static bool tuner_known(const struct coll_query *query)
{
    const struct hw_cluster *cluster = &query->hw->cluster;
    bool switch_adds =
        quantity_is_set(query->hw->node.nvls_efficiency) && query->kind == COLL_ALL_REDUCE;
    bool nvls_tree =
        switch_adds && query->shape.nodes > 1 && !quantity_is_set(cluster->nvls_tree_latency);
    return find_constants(hw_nccl_minor(query->hw)) &&
           !quantity_is_set(cluster->nccl_collnet_efficiency) && !nvls_tree &&
           query->kind < COLL_ALL_TO_ALL;
}

bool nccl_estimate(double *out_s, const struct coll_query *query, enum coll_algorithm algorithm)
{
    int version = hw_nccl_minor(query->hw);
    if (!tuner_known(query))
        return false;
    static const int first_nvls = 18, first_pat = 23;
    switch (algorithm) {
    case COLL_RING:
        *out_s = ring_s(query, version);
        return true;
    case COLL_TREE:
        *out_s = tree_s(query, version);
        return true;
    case COLL_NVLS:
    case COLL_NVLS_TREE:
        *out_s = version >= first_nvls ? nvls_s(query, version) : HUGE_VAL;
        return true;
    case COLL_PAT:
        *out_s = version >= first_pat ? pat_s(query, version) : HUGE_VAL;
        return true;
    case COLL_COLLNET_DIRECT:
    case COLL_COLLNET_CHAIN:
    case COLL_P2P:
    case COLL_HIERARCHICAL:
    case COLL_DEEPEP:
    case COLL_ALGORITHM_COUNT:
        break;
    }
    return false;
}
