/* Hierarchical, in the node and then between nodes: all-reduce as reduce-scatter inside, all-reduce
 * of each rank with its peers of the other nodes, all-gather inside; all-gather across and then
 * inside; reduce-scatter inside and then across. Every stage is a ring; the stages follow each
 * other. NCCL does not do this by itself (MSCCL, BlueConnect and hand-written code do), so it is
 * only taken when forced. */
#include "coll/algorithm.h"

#include "base/status.h"

#include <math.h>

struct stages {
    double latency_s, bytes_s, nvlink_bytes, network_bytes, hbm_bytes;
    double longest_s; /* of a stage's bytes */
    enum coll_bound bound;
};

static void hierarchical_add_stage(struct stages *stages, const struct coll_query *query,
    enum coll_kind kind, double bytes, struct coll_shape shape)
{
    struct coll_cost cost;
    bool possible = coll_cost(&cost, kind, COLL_RING, query->protocol, bytes, shape, query->hw);
    BUG_IF(!possible, "no ring for a stage of %s", coll_kind_names[kind]);
    stages->hbm_bytes += cost.hbm_bytes;
    stages->latency_s += cost.latency_s;
    double bytes_s = coll_bytes_s(&cost);
    if (shape.nodes == 1) {
        stages->nvlink_bytes += cost.bus_bytes;
    } else { /* the rings of all local ranks share the node's NICs */
        double together = query->shape.per_node * cost.bus_bytes;
        coll_bound_rate(&cost, cost.bus_bytes / (together / coll_node_Bps(query->hw)),
            coll_link_bound(query->hw, true));
        bytes_s = fmax(bytes_s, together / coll_node_Bps(query->hw));
        stages->network_bytes += together;
    }
    stages->bytes_s += bytes_s;
    if (bytes_s > stages->longest_s) {
        stages->longest_s = bytes_s;
        stages->bound = cost.rate_bound;
    }
}

bool coll_hierarchical(struct coll_cost *cost, const struct coll_query *query)
{
    int n = query->shape.nodes, p = query->shape.per_node;
    if (n == 1 || p == 1)
        return false;
    const struct coll_shape inside = {p, 1, p}, across = {n, n, 1};
    double part = query->bytes / p;
    struct stages stages = {0};
    if (query->kind == COLL_ALL_REDUCE || query->kind == COLL_REDUCE_SCATTER)
        hierarchical_add_stage(&stages, query, COLL_REDUCE_SCATTER, query->bytes, inside);
    else if (query->kind != COLL_ALL_GATHER)
        return false;
    hierarchical_add_stage(&stages, query, query->kind, part, across);
    if (query->kind != COLL_REDUCE_SCATTER)
        hierarchical_add_stage(&stages, query, COLL_ALL_GATHER, query->bytes, inside);
    cost->latency_s = stages.latency_s;
    cost->max_rate_Bps = cost->bus_bytes / stages.bytes_s;
    cost->rate_bound = stages.bound;
    cost->gpu_out_factor = stages.nvlink_bytes / cost->bus_bytes;
    cost->node_out_factor = stages.network_bytes / cost->bus_bytes;
    cost->hbm_bytes = stages.hbm_bytes;
    return true;
}
