/* Ring. All-gather and reduce-scatter take n - 1 steps in which every rank sends S/n bytes to its neighbour; all-reduce
 * is a reduce-scatter and an all-gather. Of n - 1 steps N - 1 cross between nodes (NCCL counts them so: tuning.cc).
 * Broadcast and reduce are pipelined in slices down the ring: n - 1 steps of latency, S bytes over each link.
 *
 * Inside a node every step costs its hop and its bytes, as NCCL's tuner counts. A crossing between nodes overlaps with
 * bytes: a step ends when both the crossing and the chunk are through, so short chunks wait for crossings and long ones
 * hide them. hypot() is the soft maximum that describes the crossover; both on 2 x 8 ranks with Ring forced (157, 157,
 * 178, 178, 199, 274, 434, 796 us from 1 to 128 MiB, NVIDIA/nccl-tests#309) and on 128 x 8 with LL128
 * (19.3, 20.2, 25.4, 47.1, 93.5 ms from 1 to 16 GiB, nccl-tests#322), far from a sum. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

bool coll_ring(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind == COLL_ALL_TO_ALL || query->kind == COLL_SEND_RECV)
        return false;
    double share = nccl_ring_share(query->protocol, query->shape.nodes);
    coll_set_rate(cost, query, share, share);
    if (query->protocol == COLL_LL)
        cost->max_rate_Bps = fmin(cost->max_rate_Bps, nccl_ll_max_Bps(query->hw, query->shape.nodes));
    double across = query->shape.nodes - 1, inside = query->shape.ranks - 1 - across;
    double rounds = query->kind == COLL_ALL_REDUCE ? 2 : 1;
    double inside_s = rounds * inside * coll_hop_inside_s(query, COLL_RING);
    double across_s = across > 0 ? rounds * across * coll_hop_across_s(query, COLL_RING) : 0;
    double bytes_s = coll_bytes_s(cost);
    cost->latency_s = coll_base_s(query, COLL_RING) + inside_s + hypot(across_s, bytes_s) - bytes_s;
    return true;
}
