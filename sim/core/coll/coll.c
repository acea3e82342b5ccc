/* A collective's cost: what all algorithms have in common (bus bytes, HBM bytes, SMs), then the
 * algorithm's function, which sets latency and rate, or says that it cannot do this kind. A shape
 * says how ranks lie on nodes; below it no rank numbers are known. */
#include "coll/coll.h"

#include "coll/algorithm.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

const char *const coll_kind_names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
    "reduce", "all_to_all", "send_recv", "peer_copy", NULL};
const char *const coll_algorithm_names[] = {"Ring", "Tree", "NVLS", "NVLSTree", "CollNetDirect",
    "CollNetChain", "PAT", "P2P", "Hierarchical", "DeepEP", NULL};
const char *const coll_protocol_names[] = {"LL", "LL128", "Simple", NULL};

static bool (*const algorithms[COLL_ALGORITHM_COUNT])(
    struct coll_cost *cost, const struct coll_query *query) = {
    [COLL_RING] = coll_ring,
    [COLL_TREE] = coll_tree,
    [COLL_NVLS] = coll_nvls,
    [COLL_NVLS_TREE] = coll_nvls_tree,
    [COLL_COLLNET_DIRECT] = coll_collnet_direct,
    [COLL_COLLNET_CHAIN] = coll_collnet_chain,
    [COLL_PAT] = coll_pat,
    [COLL_P2P] = coll_p2p,
    [COLL_HIERARCHICAL] = coll_hierarchical,
    [COLL_DEEPEP] = coll_deepep,
};

struct coll_shape coll_shape(struct coll_group group, int gpus_per_node)
{
    BUG_IF(group.size < 1 || group.stride < 1 || gpus_per_node < 1, "group of %d ranks, stride %d",
        group.size, group.stride);
    if (group.first % gpus_per_node + (group.size - 1) * group.stride < gpus_per_node)
        return (struct coll_shape){group.size, 1, group.size};
    int per_node = group.stride >= gpus_per_node ? 1 : gpus_per_node / group.stride;
    if (per_node > group.size)
        per_node = group.size;
    return (struct coll_shape){group.size, (group.size + per_node - 1) / per_node, per_node};
}

/* NCCL's rule: LL and Simple always; LL128 where the GPUs of a node have NVLink and are of a
 * generation that the version knows (Hopper from 2.18 on, Blackwell from 2.26). Between nodes it
 * asks that NIC and GPU share a PCIe switch (from Hopper on, that some GPU of the node does: PXN);
 * where they do not, the cluster file says no_ll128. Then what the network plugin leaves: EFA and
 * Slingshot keep no 128 bytes in order. Source: NVIDIA/nccl src/graph/tuning.cc, 2.10 to 2.28,
 * restated. */
static bool knows_ll128(const struct hw *hw)
{
    int first = strcmp(hw->gpu.arch, "Hopper") == 0      ? 18
                : strcmp(hw->gpu.arch, "Blackwell") == 0 ? 26
                                                         : 0;
    return hw->node.fabric != HW_PCIE && hw_nccl_minor(hw) >= first;
}

static bool available(enum coll_protocol protocol, int nodes, const struct hw *hw)
{
    if (protocol == COLL_SIMPLE)
        return true;
    if (protocol == COLL_LL128 && !knows_ll128(hw))
        return false;
    static const int without[COLL_PROTOCOL_COUNT] = {
        [COLL_LL] = HW_PROTOCOLS_NO_LL, [COLL_LL128] = HW_PROTOCOLS_NO_LL128, [COLL_SIMPLE] = -1};
    int left = hw->cluster.nccl_protocols;
    return nodes == 1 || (left != HW_PROTOCOLS_SIMPLE && left != without[protocol]);
}

double coll_bus_factor(enum coll_kind kind, double ranks)
{
    switch (kind) {
    case COLL_ALL_REDUCE:
        return 2 * (ranks - 1) / ranks;
    case COLL_ALL_GATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_ALL_TO_ALL:
        return (ranks - 1) / ranks;
    case COLL_BROADCAST:
    case COLL_REDUCE:
    case COLL_SEND_RECV:
    case COLL_PEER_COPY:
    case COLL_KIND_COUNT:
        break;
    }
    return 1;
}

double coll_staged_bytes(enum coll_protocol protocol)
{
    static const double flags[] = {[COLL_LL] = 2, [COLL_LL128] = 128.0 / 120, [COLL_SIMPLE] = 1};
    return 2 * flags[protocol];
}

/* The first and the last step of a ring, which are not like the others: the rank's own part is
 * read, and written. */
static double ends(enum coll_kind kind, double ranks)
{
    static const double parts[COLL_KIND_COUNT + 1] = {
        [COLL_ALL_REDUCE] = 1, [COLL_ALL_GATHER] = 2, [COLL_REDUCE_SCATTER] = 2};
    return parts[kind] / (ranks - 1);
}

/* By bus byte: see coll_cost.hbm_bytes. */
static double hbm_factor(enum coll_kind kind, enum coll_protocol protocol, struct coll_shape shape)
{
    double leave = shape.nodes > 1 ? 1.0 / shape.per_node : 0;
    return (1 + leave) * coll_staged_bytes(protocol) + 1 + ends(kind, shape.ranks);
}

const char *const coll_bound_names[] = {"nothing", "latency", "protocol", "channels", "NVLink",
    "PCIe", "NIC", "network", "host memory", "shared links", NULL};

bool coll_cost(struct coll_cost *out, enum coll_kind kind, enum coll_algorithm algorithm,
    enum coll_protocol protocol, double bytes, struct coll_shape shape, const struct hw *hw)
{
    *out = (struct coll_cost){.algorithm = algorithm, .protocol = protocol};
    if (shape.ranks == 1)
        return true;
    BUG_IF(!(bytes > 0), "%s of %g bytes", coll_kind_names[kind], bytes);
    if (!available(protocol, shape.nodes, hw))
        return false;
    out->bus_bytes = coll_bus_factor(kind, shape.ranks) * bytes;
    out->gpu_out_factor = shape.per_node > 1 ? 1 : 0;
    /* Each ring leaves a node once, over one NIC; with R rings of 1/R of the bytes a node sends as
     * many bytes as one rank. */
    out->node_out_factor = shape.nodes > 1 ? 1 : 0;
    out->hbm_bytes = hbm_factor(kind, protocol, shape) * out->bus_bytes;
    out->sms = coll_sms(shape, hw);
    const struct coll_query query = {kind, protocol, bytes, shape, hw};
    return algorithms[algorithm](out, &query);
}

double coll_isolated_s(struct coll_cost cost)
{
    return cost.latency_s + (cost.bus_bytes > 0 ? coll_bytes_s(&cost) : 0);
}

double coll_hbm_Bps(struct coll_cost cost)
{
    return cost.bus_bytes > 0 ? cost.hbm_bytes / coll_bytes_s(&cost) : 0;
}

enum coll_bound coll_bound(const struct coll_cost *cost)
{
    bool waits = cost->bus_bytes > 0 && cost->latency_s > coll_bytes_s(cost);
    return waits ? COLL_BOUND_LATENCY : cost->rate_bound;
}
