/* NCCL's own settings, as it says them, in the place of the cluster file's.
 *
 * Version, NVLS and channels are put into the hardware in this order, each with words for the
 * report where it changes something. Channels go into the cluster's number across nodes, into
 * the node's inside one. Bounds (NCCL_MIN_CTAS, NCCL_MAX_CTAS) cut the filed number; a number
 * that NCCL states replaces it, unless communicators differ in it. A version beyond the known
 * ones counts as the nearest of them.
 *
 * What cannot be put in is warned of: sockets, no GPUDirect RDMA, fewer NICs, P2P off. Channels
 * that are put in have kind measured. */
#include "calibrate/nccl_check.h"

#include <stdio.h>

static const char *nccl_settle_add(const char *before, const char *text, struct arena *arena)
{
    return before ? arena_printf(arena, "%s, %s", before, text) : text;
}

/* Channels that are said, or that bounds leave of the cluster's. */
static int nccl_settle_channels_of(const struct nccl_settings *said, int now)
{
    if (said->channels > 0)
        return said->channels_differ ? now : said->channels;
    int n = said->min_channels > now ? said->min_channels : now;
    return said->max_channels > 0 && said->max_channels < n ? said->max_channels : n;
}

static const char *settle_channels(struct hw *hw, const struct nccl_settings *said, int nodes,
    const char *words, struct arena *arena)
{
    bool across = nodes > 1;
    int now = (int)coll_channels(across, hw), n = nccl_settle_channels_of(said, now);
    if (n == now)
        return words;
    struct quantity *to = across ? &hw->cluster.nccl_channels : &hw->node.nccl_channels;
    *to = (struct quantity){.value = n, .kind = QUANTITY_MEASURED, .source = "what NCCL says"};
    return nccl_settle_add(words, arena_printf(arena, "%d channels instead of %d", n, now), arena);
}

static const char *settle_nvls(struct hw *hw, const struct nccl_settings *said, int nodes,
    const char *words, struct arena *arena)
{
    bool has = quantity_is_set(hw->node.nvls_efficiency) ||
               (nodes > 1 && quantity_is_set(hw->cluster.nvls_tree_latency));
    if (said->nvls != NCCL_OFF || !has)
        return words;
    hw->node.nvls_efficiency = hw->node.nvls_latency = hw->node.nvls_step_latency =
        hw->cluster.nvls_tree_latency = (struct quantity){0};
    return nccl_settle_add(words, "NVLS off", arena);
}

static const char *settle_version(
    struct hw *hw, const struct nccl_settings *said, const char *words, struct arena *arena)
{
    int major = 0, minor = 0;
    if (!said->version || sscanf(said->version, "%d.%d", &major, &minor) != 2 || major != 2)
        return words;
    int known = minor > HW_NCCL_NEWEST   ? HW_NCCL_NEWEST
                : minor < HW_NCCL_OLDEST ? HW_NCCL_OLDEST
                                         : minor;
    if (known == hw_nccl_minor(hw))
        return words;
    words = nccl_settle_add(words,
        arena_printf(
            arena, "NCCL 2.%d instead of %s", known, hw_nccl_versions[hw->cluster.nccl_version]),
        arena);
    hw->cluster.nccl_version = HW_NCCL_NEWEST - known;
    return words;
}

static void warn_of_network(
    const struct hw *hw, const struct nccl_settings *said, struct source_pos at, struct diag *diag)
{
    int nics = (int)hw->node.nics.value / hw_hosts_per_node(hw);
    if (said->rdma == NCCL_OFF)
        diag_warn(diag, at,
            "NCCL sends by sockets (TCP); the prediction is of the cluster file's NICs as "
            "InfiniBand, RoCE or a plugin use them");
    else if (said->gpudirect == NCCL_OFF && !quantity_is_set(hw->cluster.nccl_staging_bandwidth))
        diag_warn(diag, at,
            "NCCL has no GPUDirect RDMA (no GDRDMA); the cluster file has it: state "
            "cluster.nccl_staging_bandwidth, what a process copies through host memory");
    if (said->nics > 0 && said->nics < nics)
        diag_warn(diag, at,
            "NCCL uses %d NIC%s of a host, the cluster file has %d; try --set cluster.node.nics=%d",
            said->nics, plural(said->nics), nics, said->nics * hw_hosts_per_node(hw));
}

const char *nccl_settle(struct hw *hw, const struct nccl_settings *said, int nodes,
    const char *path, struct arena *arena, struct diag *diag)
{
    struct source_pos at = {.file = path};
    const char *words = settle_version(hw, said, NULL, arena);
    words = settle_nvls(hw, said, nodes, words, arena);
    words = settle_channels(hw, said, nodes, words, arena);
    if (said->channels_differ)
        diag_warn(diag, at,
            "NCCL has different numbers of channels in its communicators; taken as the cluster "
            "file says");
    if (said->p2p == NCCL_OFF)
        diag_warn(diag, at,
            "NCCL_P2P_DISABLE is set: GPUs of a node send through host memory, which is not "
            "predicted");
    if (nodes > 1)
        warn_of_network(hw, said, at, diag);
    return words;
}
