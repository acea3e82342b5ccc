/* PAT (parallel aggregated trees, NCCL 2.23): all-gather and reduce-scatter in log2 N rounds, for
 * groups with one rank a node. Latency and bandwidth as in NCCL's tuner. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

bool coll_pat(struct coll_cost *cost, const struct coll_query *query)
{
    bool kind = query->kind == COLL_ALL_GATHER || query->kind == COLL_REDUCE_SCATTER;
    if (!kind || query->protocol != COLL_SIMPLE || query->shape.per_node > 1)
        return false;
    coll_set_rate(cost, query, nccl_pat_share, nccl_pat_share);
    cost->latency_s =
        nccl_pat_base_s +
        coll_levels(query->shape.nodes) * nccl_pat_hop_share * coll_inter_hop_s(query, COLL_TREE) +
        query->shape.ranks * nccl_pat_rank_s;
    return true;
}
