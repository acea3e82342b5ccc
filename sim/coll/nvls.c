/* NVLS, all-reduce inside one NVLink domain: the switch adds and multicasts (NVLink SHARP), so a GPU sends its message
 * once and receives it once: S bytes each way, whatever n (busbw 480, 460, 440, 420 GB/s on 8, 7, 6, 5 H100,
 * NVIDIA/nccl#1455; a ring stays at 365 to 370). */
#include "coll/algorithm.h"

bool coll_over_switch(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind != COLL_ALL_REDUCE || query->protocol != COLL_SIMPLE ||
        !quantity_is_set(query->hw->node.nvls_efficiency) || query->shape.per_node == 1)
        return false;
    cost->gpu_out_factor = query->bytes / cost->bus_bytes;
    cost->hbm_bytes = 2 * query->bytes;
    return true;
}

double coll_switch_share(const struct hw *hw)
{
    return hw->node.nvls_efficiency.value / hw->node.nccl_efficiency.value;
}

bool coll_nvls(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->shape.nodes > 1 || !coll_over_switch(cost, query))
        return false;
    coll_set_rate(cost, query, coll_switch_share(query->hw), 1);
    cost->latency_s = query->hw->node.nvls_latency.value;
    return true;
}
