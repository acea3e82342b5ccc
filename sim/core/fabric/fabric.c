/* The list of links: how many of each kind, their order, names and capacities.
 *
 * A link is a number. Kinds lie one after the other (first_nic, first_leaf, first_pod, first_pair),
 * so the kind of a link follows from comparisons, and its owner from a division. Kinds that a job
 * has none of take no numbers: on one node there are only NVLinks, in a pooled network no switches.
 * Leaves are counted by asking for the leaf of every NIC, since wiring and placement decide which
 * of them a job reaches.
 *
 * Capacities are what NCCL reaches of each link. Under adaptive routing a link stands for all
 * cables between a switch and the level above, so its capacity is their sum. An event scales the
 * capacity from the file, never what an earlier event left.
 *
 * Subtle: links between pairs of GPUs of a node exist for all ranks as soon as one kind of node has
 * them. */
#include "fabric/fabric.h"

#include <string.h>

static void count_shared_links(struct fabric *fabric)
{
    const struct hw_network *network = &fabric->hw->cluster.network;
    fabric->nodes = (fabric->ranks + fabric->gpus - 1) / fabric->gpus;
    fabric->first_nic = fabric->n_links = fabric->ranks;
    if (fabric->nodes > 1) {
        fabric->nics = fabric_is_pooled(fabric) ? 1 : (int)fabric->hw->node.nics.value;
        fabric->n_links += 2 * fabric->nodes * fabric->nics;
    }
    fabric->first_leaf = fabric->first_pod = fabric->n_links;
    if (fabric->nodes == 1 || fabric_is_pooled(fabric))
        return;
    for (int i = 0; i < fabric->nodes * fabric->nics; i++) {
        int leaf = fabric_leaf_of(fabric, i / fabric->nics, i % fabric->nics);
        if (leaf >= fabric->leaves)
            fabric->leaves = leaf + 1;
    }
    bool pool = network->routing == HW_ADAPTIVE;
    fabric->leaf_links = pool ? 1 : hw_network_leaf_cables(network);
    fabric->first_pod = fabric->n_links += 2 * fabric->leaves * fabric->leaf_links;
    int pod_cables = hw_network_pod_cables(network);
    if (pod_cables == 0)
        return;
    fabric->pods = hw_network_pod(network, fabric->leaves - 1) + 1;
    fabric->pod_links = pool ? 1 : pod_cables;
    fabric->n_links += 2 * fabric->pods * fabric->pod_links;
}

static bool has_pairs(const struct hw *hw)
{
    return hw->node.gpus.value > 1 && coll_pair_Bps(hw, 0, 1) > 0;
}

static void count_links(struct fabric *fabric)
{
    count_shared_links(fabric);
    fabric->first_pair = fabric->n_links;
    if (has_pairs(fabric->hw))
        fabric->n_links += fabric->ranks * fabric->gpus;
}

int fabric_node_of(const struct fabric *fabric, int link)
{
    if (link >= fabric->first_pair)
        return (link - fabric->first_pair) / fabric->gpus / fabric->gpus;
    return link < fabric->first_nic ? link / fabric->gpus
                                    : (link - fabric->first_nic) / 2 / fabric->nics;
}

int fabric_cables(const struct fabric *fabric, int link)
{
    const struct hw_network *network = &fabric->hw->cluster.network;
    if (link < fabric->first_leaf || link >= fabric->first_pair)
        return 1;
    return link < fabric->first_pod ? hw_network_leaf_cables(network) / fabric->leaf_links
                                    : hw_network_pod_cables(network) / fabric->pod_links;
}

static void switch_cable_name(
    char *buffer, size_t n, const struct fabric *fabric, int link, int cable)
{
    bool leaf = link < fabric->first_pod;
    int of = leaf ? link - fabric->first_leaf : link - fabric->first_pod;
    int links = leaf ? fabric->leaf_links : fabric->pod_links;
    snprintf(buffer, n, "%s%d.%s%d", leaf ? "leaf" : "pod", of / links / 2,
        of / links % 2 ? "down" : "up", of % links + cable);
}

static void pair_name(char *buffer, size_t n, const struct fabric *fabric, int link)
{
    int pair = link - fabric->first_pair, from = pair / fabric->gpus;
    snprintf(
        buffer, n, "gpu%d.nvlink to gpu%d", from, from - from % fabric->gpus + pair % fabric->gpus);
}

const char *fabric_cable_name(
    char *buffer, size_t n, const struct fabric *fabric, int link, int cable)
{
    int nic = link - fabric->first_nic;
    if (link < fabric->first_nic)
        snprintf(buffer, n, "gpu%d.nvlink", link);
    else if (link >= fabric->first_pair)
        pair_name(buffer, n, fabric, link);
    else if (link >= fabric->first_leaf)
        switch_cable_name(buffer, n, fabric, link, cable);
    else if (fabric_is_pooled(fabric))
        snprintf(buffer, n, "node%d.nics.%s", nic / 2, nic % 2 ? "in" : "out");
    else
        snprintf(buffer, n, "node%d.nic%d.%s", nic / 2 / fabric->nics, nic / 2 % fabric->nics,
            nic % 2 ? "in" : "out");
    return buffer;
}

const char *fabric_link_name(char *buffer, size_t n, const struct fabric *fabric, int link)
{
    return fabric_cable_name(buffer, n, fabric, link, 0);
}

enum coll_bound fabric_link_bound(const struct fabric *fabric, int link)
{
    if (link >= fabric->first_pair)
        return COLL_BOUND_NVLINK;
    return link >= fabric->first_leaf ? COLL_BOUND_NETWORK
                                      : coll_link_bound(fabric->hw, link >= fabric->first_nic);
}

static double whole_Bps(const struct fabric *fabric, int link)
{
    const struct hw *hw = fabric->hw;
    struct quantity cable = hw->cluster.network.cable_bandwidth;
    int pair = link - fabric->first_pair;
    if (pair >= 0)
        return coll_pair_Bps(hw, pair / fabric->gpus % fabric->gpus, pair % fabric->gpus);
    if (link < fabric->first_nic)
        return coll_gpu_Bps(hw);
    if (link < fabric->first_leaf)
        return fabric_is_pooled(fabric) ? coll_node_Bps(hw) : coll_nic_Bps(hw);
    double cable_Bps = quantity_is_set(cable) ? cable.value : hw->node.nic_bandwidth.value;
    return cable_Bps * hw->cluster.nccl_efficiency.value * fabric_cables(fabric, link);
}

void fabric_build(struct fabric *out, const struct hw *hw, int ranks,
    const struct degrade_events *events, struct arena *arena)
{
    *out = (struct fabric){.hw = hw, .ranks = ranks, .gpus = hw_gpus_per_node(hw)};
    count_links(out);
    out->capacity_Bps = ARENA_ARRAY(arena, double, out->n_links);
    out->weight = ARENA_ARRAY(arena, double, out->n_links);
    out->loaded = ARENA_ARRAY(arena, uint64_t, FABRIC_WORDS(out->n_links));
    for (int l = 0; l < out->n_links; l++)
        out->capacity_Bps[l] = whole_Bps(out, l);
    for (int i = 0; events && i < events->n; i++)
        out->degraded = out->degraded || events->list[i].share < 1;
    if (events)
        fabric_set_time(out, events, 0);
}

/* NVLinks of a mesh lead to the GPU's peers, as many to each. */
static void set_share(struct fabric *fabric, int link, double share)
{
    fabric->capacity_Bps[link] = whole_Bps(fabric, link) * share;
    bool mesh = link < fabric->first_nic && fabric->hw->node.fabric == HW_NVLINK_MESH;
    int first = fabric->first_pair + link * fabric->gpus;
    for (int pair = first;
         mesh && fabric->n_links > fabric->first_pair && pair < first + fabric->gpus; pair++)
        fabric->capacity_Bps[pair] = whole_Bps(fabric, pair) * share;
}

void fabric_set_time(struct fabric *fabric, const struct degrade_events *events, ps_t time)
{
    for (int i = 0; i < events->n; i++) {
        const struct degrade_event *event = &events->list[i];
        if (event->at != time)
            continue;
        BUG_IF(event->target >= fabric->n_links, "link %d of %d", event->target, fabric->n_links);
        set_share(fabric, event->target, event->share);
        fabric->degraded = fabric->degraded || event->share < 1;
    }
}
