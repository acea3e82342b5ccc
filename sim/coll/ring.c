/* Ring. All-gather and reduce-scatter take n - 1 steps in which every rank sends S/n bytes to its neighbour; all-reduce
 * is a reduce-scatter and an all-gather. Of n - 1 steps N - 1 cross between nodes (NCCL counts them so: tuning.cc).
 * Broadcast and reduce are pipelined in slices down the ring: n - 1 steps of latency, S bytes over each link.
 *
 * Inside a node every step costs its hop and its bytes, as NCCL's tuner counts. Crossings between nodes overlap with
 * bytes. Simple: a chunk is two slices, and while the first crosses the second is sent, so a step takes as long as the
 * chunk's bytes or as the crossing and one slice; only the last step has nothing to hide. exec/detailed.h, cut as NCCL
 * cuts, does the same. LL and LL128 pass data on line by line: crossing and bytes overlap wholly, and hypot() is the
 * knee that was measured: 157, 157, 178, 178, 199, 274, 434, 796 us from 1 to 128 MiB on 2 x 8 H100
 * (NVIDIA/nccl-tests#309, Ring). The last crossing is followed by no bytes that could hide it: with the one crossing of
 * an all_gather on two nodes latency and bytes add up (a3-mega: 166, 198, 290 us at 8, 16, 32 MiB, of which bytes are
 * 42, 84, 168). It also holds on 128 x 8 (#322): 19.3, 20.2, 25.4, 47.1, 93.5 ms from 1 to 16 GiB, far from a sum. A
 * broadcast's pipeline fills once, so nothing hides. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

/* What crossings and bytes hide of each other. */
static double hidden_s(const struct coll_query *query, double crossings, double steps, double bytes_s)
{
    if (query->shape.nodes == 1 || query->kind == COLL_BROADCAST || query->kind == COLL_REDUCE)
        return 0;
    double crossing_s = coll_hop_across_s(query, COLL_RING), across_s = crossings * crossing_s;
    double others_s = across_s - crossing_s; /* the last crossing has nothing to hide behind it */
    if (query->protocol != COLL_SIMPLE)
        return others_s + bytes_s - hypot(others_s, bytes_s);
    /* The first slice of a chunk waits for the crossing; the others of all steps but one are sent meanwhile. */
    double meanwhile = (1 - 1 / nccl_slices) * (steps - 1) / steps;
    return fmin(others_s, bytes_s * meanwhile);
}

bool coll_ring(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind == COLL_ALL_TO_ALL || query->kind == COLL_SEND_RECV)
        return false;
    double share = nccl_ring_share(query->protocol, query->shape.nodes);
    coll_set_rate(cost, query, share, share);
    if (query->protocol == COLL_LL)
        cost->max_rate_Bps = fmin(cost->max_rate_Bps, nccl_ll_max_Bps(query->hw, query->shape.nodes));
    double rounds = query->kind == COLL_ALL_REDUCE ? 2 : 1;
    double steps = rounds * (query->shape.ranks - 1), crossings = rounds * (query->shape.nodes - 1);
    cost->latency_s = coll_base_s(query, COLL_RING) + (steps - crossings) * coll_hop_inside_s(query, COLL_RING) -
                      hidden_s(query, crossings, steps, coll_bytes_s(cost));
    if (crossings > 0)
        cost->latency_s += crossings * coll_hop_across_s(query, COLL_RING);
    return true;
}
