/* NVLS, all-reduce inside one NVLink domain: the switch adds and multicasts (NVLink SHARP), so a
 * GPU sends its message once and receives it once: S bytes each way, whatever n (busbw 480, 460,
 * 440, 420 GB/s on 8, 7, 6, 5 H100, NVIDIA/nccl#1455; a ring stays at 365 to 370). NCCL asks for
 * three GPUs in a domain (ncclNvlsInit of src/transport/nvls.cc, quoted from memory): of two, each
 * sends its message to the other anyway.
 *
 * The message passes in steps: each GPU is the head of one part, and in a step every channel of
 * every head takes one chunk. Three groups of warps work on three steps at a time: they copy into
 * the buffers that the switch sees, let it add and multicast, and copy out; so a message of k steps
 * takes as long as k + 2. Steps are large: 16 channels of 8 heads with chunks of 128 KiB are 16
 * MiB, 57 us, and of 72 heads in a rack far more, which is why a rack needs GiBs to be fast.
 * Smaller chunks for smaller messages are seen as bends: from 128 MiB on the busbw of 8 H100 grows
 * by 5.4, 3.4, 6.8 and 1.5 % with each doubling, where chunks go from 64 to 128 KiB at 1 GiB
 * (NVIDIA/dgxc-benchmarking). */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

bool coll_over_switch(struct coll_cost *cost, const struct coll_query *query)
{
    static const int fewest = 3;
    if (query->kind != COLL_ALL_REDUCE || query->protocol != COLL_SIMPLE ||
        !quantity_is_set(query->hw->node.nvls_efficiency) || query->shape.per_node < fewest)
        return false;
    cost->gpu_out_factor = query->bytes / cost->bus_bytes;
    cost->hbm_bytes = 2 * query->bytes;
    cost->sms = nccl_nvls_channels(query->shape.nodes > 1, query->hw);
    return true;
}

struct coll_switch coll_switch_steps(const struct coll_query *query)
{
    const struct hw_node *node = &query->hw->node;
    struct coll_switch steps = {
        .step_bytes =
            fmin(nccl_nvls_step_bytes(query->bytes, query->shape, query->hw), query->bytes)};
    double switch_Bps = node->gpu_bandwidth.value * node->nvls_efficiency.value;
    steps.step_s = steps.step_bytes / switch_Bps + node->nvls_step_latency.value;
    return steps;
}

bool coll_nvls(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->shape.nodes > 1 || !coll_over_switch(cost, query))
        return false;
    struct coll_switch steps = coll_switch_steps(query);
    cost->max_rate_Bps = cost->bus_bytes / (query->bytes / steps.step_bytes * steps.step_s);
    cost->rate_bound = coll_link_bound(query->hw, false);
    cost->latency_s = query->hw->node.nvls_latency.value + 2 * steps.step_s;
    return true;
}
