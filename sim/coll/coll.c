#include "coll/algorithm.h"
#include "coll/coll.h"

#include "base/status.h"

const char *const coll_kind_names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", NULL};
const char *const coll_algorithm_names[] = {"Ring", "Tree", NULL};
const char *const coll_protocol_names[] = {"LL", "LL128", "Simple", NULL};

struct coll_shape coll_shape(struct coll_group group, int gpus_per_node)
{
    BUG_IF(group.size < 1 || group.stride < 1 || gpus_per_node < 1, "group of %d ranks, stride %d", group.size,
        group.stride);
    int per_node = group.stride >= gpus_per_node ? 1 : gpus_per_node / group.stride;
    if (per_node > group.size)
        per_node = group.size;
    return (struct coll_shape){group.size, (group.size + per_node - 1) / per_node, per_node};
}

double coll_gpu_Bps(const struct hw *hw)
{
    return hw->node.gpu_bandwidth.value * hw->node.nccl_efficiency.value;
}

double coll_node_Bps(const struct hw *hw)
{
    return hw->node.nics.value * hw->node.nic_bandwidth.value * hw->cluster.nccl_efficiency.value /
           hw->cluster.oversubscription.value;
}

double coll_nic_share(struct coll_shape shape, const struct hw *hw)
{
    double nics = hw->node.nics.value, near = nics / hw->node.gpus.value;
    double used = shape.per_node * (near > 1 ? near : 1);
    return used < nics ? used / nics : 1;
}

struct coll_cost coll_cost(
    enum coll_kind kind, enum coll_algorithm algorithm, double bytes, struct coll_shape shape, const struct hw *hw)
{
    if (shape.ranks == 1)
        return (struct coll_cost){.algorithm = algorithm};
    struct coll_cost cost = {
        .algorithm = algorithm,
        .protocol = COLL_SIMPLE,
        .max_rate_Bps = coll_gpu_Bps(hw),
        .sms = hw->node.nccl_channels.value,
    };
    if (algorithm == COLL_TREE)
        coll_tree(&cost, kind, bytes, shape, hw);
    else
        coll_ring(&cost, kind, bytes, shape, hw);
    if (cost.node_out_factor > 0) {
        double across_Bps = coll_node_Bps(hw) * coll_nic_share(shape, hw) / cost.node_out_factor;
        if (across_Bps < cost.max_rate_Bps)
            cost.max_rate_Bps = across_Bps;
    }
    return cost;
}

struct coll_cost coll_choose(
    enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw, struct coll_force force)
{
    struct coll_cost ring = coll_cost(kind, COLL_RING, bytes, shape, hw);
    if (kind != COLL_ALL_REDUCE || shape.ranks == 1 || force.algorithm == COLL_RING)
        return ring;
    struct coll_cost tree = coll_cost(kind, COLL_TREE, bytes, shape, hw);
    bool takes_tree = force.algorithm == COLL_TREE || coll_alone_s(tree) < coll_alone_s(ring);
    return takes_tree ? tree : ring;
}

double coll_alone_s(struct coll_cost cost)
{
    return cost.latency_s + (cost.bus_bytes > 0 ? cost.bus_bytes / cost.max_rate_Bps : 0);
}
