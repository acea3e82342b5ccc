#include "fabric/fabric.h"

#include <string.h>

static void count_links(struct fabric *fabric)
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

/* A link's cables between switches have names of their own, whether they are pooled or not. */
static void cable_name(char *buffer, size_t n, const struct fabric *fabric, int link, int cable)
{
    bool leaf = link < fabric->first_pod;
    int of = leaf ? link - fabric->first_leaf : link - fabric->first_pod;
    int links = leaf ? fabric->leaf_links : fabric->pod_links;
    snprintf(buffer, n, "%s%d.%s%d", leaf ? "leaf" : "pod", of / links / 2, of / links % 2 ? "down" : "up",
        of % links + cable);
}

const char *fabric_link_name(char *buffer, size_t n, const struct fabric *fabric, int link)
{
    int nic = link - fabric->first_nic;
    if (link < fabric->first_nic)
        snprintf(buffer, n, "gpu%d.nvlink", link);
    else if (link >= fabric->first_leaf)
        cable_name(buffer, n, fabric, link, 0);
    else if (fabric_is_pooled(fabric))
        snprintf(buffer, n, "node%d.nics.%s", nic / 2, nic % 2 ? "in" : "out");
    else
        snprintf(buffer, n, "node%d.nic%d.%s", nic / 2 / fabric->nics, nic / 2 % fabric->nics, nic % 2 ? "in" : "out");
    return buffer;
}

enum coll_bound fabric_link_bound(const struct fabric *fabric, int link)
{
    return link >= fabric->first_leaf ? COLL_BOUND_NETWORK : coll_link_bound(fabric->hw, link >= fabric->first_nic);
}

/* Capacity of a GPU's or a NIC's link. */
static double end_Bps(const struct fabric *fabric, int link)
{
    const struct hw *hw = fabric->hw;
    if (link < fabric->first_nic)
        return coll_gpu_Bps(hw);
    return fabric_is_pooled(fabric) ? coll_node_Bps(hw) : coll_nic_Bps(hw);
}

static double cable_Bps(const struct hw *hw)
{
    struct quantity own = hw->cluster.network.cable_bandwidth;
    return (quantity_is_set(own) ? own.value : hw->node.nic_bandwidth.value) * hw->cluster.nccl_efficiency.value;
}

/* The capacities of a time. */
static enum status set_capacities(struct fabric *fabric, ps_t time, struct source_pos at, struct diag *diag)
{
    const struct hw_network *network = &fabric->hw->cluster.network;
    enum status status = STATUS_OK;
    char name[64];
    for (int l = 0; l < fabric->first_leaf; l++) {
        double share = degrade_share(fabric->degradation, fabric_link_name(name, sizeof name, fabric, l), NULL, time);
        fabric->capacity_Bps[l] = end_Bps(fabric, l) * share;
        fabric->degraded = fabric->degraded || share < 1;
        if (share == 0)
            status = diag_input(diag, at,
                "%s has failed at %g s: NCCL ends the job; leave its node out, or let some of its capacity stand", name,
                s_from_ps(time));
    }
    for (int l = fabric->first_leaf; l < fabric->n_links; l++) {
        bool leaf = l < fabric->first_pod;
        int cables = leaf ? hw_network_leaf_cables(network) / fabric->leaf_links
                          : hw_network_pod_cables(network) / fabric->pod_links;
        double left = 0;
        for (int c = 0; c < cables; c++) {
            cable_name(name, sizeof name, fabric, l, c);
            left += degrade_share(fabric->degradation, name, NULL, time);
        }
        fabric->capacity_Bps[l] = cable_Bps(fabric->hw) * left;
        fabric->degraded = fabric->degraded || left < cables;
    }
    return status;
}

/* Each leaf must reach each other. */
static enum status check_ways(struct fabric *fabric, ps_t time, struct source_pos at, struct diag *diag)
{
    bool ok = true;
    for (int from = 0; from < fabric->leaves && ok; from++)
        for (int to = 0; to < fabric->leaves && ok; to++)
            if (!(ok = fabric_add_between(fabric, from, to, 1, 0)))
                diag_input(diag, at, "the links that have failed at %g s leave no way from leaf%d to leaf%d",
                    s_from_ps(time), from, to);
    memset(fabric->weight, 0, sizeof *fabric->weight * (size_t)fabric->n_links);
    return ok ? STATUS_OK : STATUS_INPUT;
}

static enum status set_and_check(struct fabric *fabric, ps_t time, struct source_pos at, struct diag *diag)
{
    enum status status = set_capacities(fabric, time, at, diag);
    return status == STATUS_OK && fabric->degraded ? check_ways(fabric, time, at, diag) : status;
}

enum status fabric_build(struct fabric *out, const struct hw *hw, int ranks, const char *degraded, struct source_pos at,
    struct arena *arena, struct diag *diag)
{
    *out = (struct fabric){.hw = hw, .ranks = ranks, .gpus = hw_gpus_per_node(hw)};
    out->degradation = ARENA_NEW(arena, struct degradation);
    enum status status = degrade_parse(out->degradation, &degrade_link, degraded, at, arena, diag);
    if (status)
        return status;
    count_links(out);
    out->capacity_Bps = ARENA_ARRAY(arena, double, out->n_links);
    out->weight = ARENA_ARRAY(arena, double, out->n_links);
    /* Every moment is looked at before the run; the start comes last and stays. */
    for (int i = out->degradation->n_changes - 1; i >= 0 && status == STATUS_OK; i--)
        status = set_and_check(out, out->degradation->changes[i], at, diag);
    if (status == STATUS_OK)
        status = set_and_check(out, 0, at, diag);
    const struct degradation *degradation = out->degradation;
    for (int i = degrade_unmatched(degradation, 0); i < degradation->n; i = degrade_unmatched(degradation, i + 1))
        status = diag_input(diag, at,
            "no link is called '%s'; names are like gpu0.nvlink, node0.nic0.out, node0.nics.in (a pooled network), "
            "leaf0.up0, pod0.down0, and * stands for anything",
            degradation->list[i].pattern);
    return status;
}

void fabric_set_time(struct fabric *fabric, ps_t time)
{
    struct diag diag = DIAG_INIT;
    enum status status = set_capacities(fabric, time, (struct source_pos){0}, &diag);
    BUG_IF(status, "%s", diag.text);
}
