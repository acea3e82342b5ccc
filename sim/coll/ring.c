/* Ring. All-gather and reduce-scatter take n - 1 steps in which every rank sends S/n bytes to its neighbour; all-reduce
 * is a reduce-scatter and an all-gather. Of n - 1 steps N - 1 cross between nodes (NCCL counts them so: tuning.cc).
 * Broadcast and reduce are pipelined in slices down the ring: n - 1 steps of latency, S bytes over each link.
 *
 * A rank can take its step when it has sent the step before and has received what it sends. So the longest way through
 * all steps decides, and it is one of two:
 *
 * - Staying where it is busiest, then across once if that takes longer than another step: every step of a rank inside a
 * node takes its hop (the block waits for a flag, adds, posts the next: the hop keeps it busy) and its bytes; of one
 * that sends to another node, only the bytes on the NIC, because the proxy and the network do the rest meanwhile. So
 * NICs that are slower than NVLink hide the hops inside: 3 x 8 A100 with 4 NICs take 518 us for 22 MiB, of which bytes
 * on the NICs are 504 and 46 hops inside would be 87 (NVIDIA/nccl-tests#119).
 * - Round with the data: all hops and crossings, and the bytes that are stored before they go on: by Simple one slice
 * of a chunk, by LL and LL128, which pass data on line by line, none inside a node and all of them where the proxy
 * sends.
 *
 * fabric/detailed.h, cut as NCCL cuts, does the same for Simple. LL and LL128 round the knee between the two, hypot():
 * in the table fitted, 157, 157, 178, 178, 199, 274, 434, 796 us from 1 to 128 MiB on 2 x 8 H100
 * (NVIDIA/nccl-tests#309, Ring). Kind of that: assumed; exponents of 2 to 12 fit as well, and 128 x 8 (#322, left
 * out: 19.4, 20.2, 25.4, 47.1, 93.5 ms from 1 to 16 GiB) would like a sharper one.
 *
 * A broadcast's or reduce's pipeline fills once, so nothing hides: all hops and crossings, and at each crossing a slot
 * of every channel, which the proxy sends when it is complete. NCCL's own estimate counts no slots, so they do not
 * matter to its choice of protocol (unestimated_s), though LL128's are 18 times as large as LL's. No table of
 * nccl-tests checks this; InternEvo's broadcasts of weights to 16 to 1,024 GPUs do, roughly (`flopcast validate
 * --open`). Ignored: the slots of Simple inside a node, which are sent at once. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

/* Seconds that the message's bytes take on what a ring uses inside nodes, and between them. */
struct ways {
    double inside_s, across_s;
};

static bool is_pipeline(enum coll_kind kind)
{
    return kind == COLL_BROADCAST || kind == COLL_REDUCE;
}

/* What all channels send together between two nodes at a time. */
static double slot_s(const struct coll_query *query, struct ways bytes)
{
    double slots_bytes = nccl_slot_bytes[query->protocol] * coll_sms(query->shape, query->hw);
    return bytes.across_s * fmin(1, slots_bytes / query->bytes);
}

static double hops_and_bytes_s(const struct coll_query *query, struct ways bytes, double steps, double crossings)
{
    double hop_s = coll_hop_inside_s(query, COLL_RING);
    if (crossings == 0)
        return steps * hop_s + bytes.inside_s;
    double crossing_s = coll_hop_across_s(query, COLL_RING);
    double others_s = (steps - crossings) * hop_s + (crossings - 1) * crossing_s; /* but the last crossing */
    if (is_pipeline(query->kind))
        return crossing_s + others_s + fmax(bytes.inside_s, bytes.across_s);
    bool simple = query->protocol == COLL_SIMPLE;
    double stored_inside = simple ? 1 / nccl_slices : 0, stored_across = simple ? 1 / nccl_slices : 1;
    double stored_s =
        ((steps - crossings) * stored_inside * bytes.inside_s + crossings * stored_across * bytes.across_s +
            (1 - stored_across) * bytes.across_s) / /* the rest of the last chunk */
        steps;
    double travels_s = others_s + stored_s, stays_s = bytes.across_s;
    if (query->shape.per_node > 1) {
        double step_s = hop_s + bytes.inside_s / steps, crosses_s = stored_across * bytes.across_s / steps;
        stays_s = fmax(stays_s, (steps - 1) * step_s + fmax(crosses_s, step_s - crossing_s));
    }
    /* With one crossing both are the same way. */
    bool sharp = simple || crossings == 1;
    return crossing_s + (sharp ? fmax(stays_s, travels_s) : hypot(stays_s, travels_s));
}

bool coll_ring(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind == COLL_ALL_TO_ALL || query->kind == COLL_SEND_RECV)
        return false;
    int nodes = query->shape.nodes;
    double most_Bps = query->protocol == COLL_LL ? nccl_ll_max_Bps(query->hw, nodes) : HUGE_VAL;
    struct coll_rate inside = coll_inside(cost, query, nccl_ring_share(query->protocol, 1));
    struct coll_rate across = coll_across(cost, query, nccl_ring_share(query->protocol, nodes));
    const struct ways bytes = {
        cost->bus_bytes / fmin(inside.Bps, most_Bps), cost->bus_bytes / fmin(across.Bps, most_Bps)};
    cost->max_rate_Bps = cost->bus_bytes / fmax(bytes.inside_s, bytes.across_s);
    cost->rate_bound = query->protocol == COLL_LL ? COLL_BOUND_PROTOCOL : coll_slower(across, inside).bound;
    double rounds = query->kind == COLL_ALL_REDUCE ? 2 : 1;
    double steps = rounds * (query->shape.ranks - 1), crossings = rounds * (nodes - 1);
    cost->latency_s =
        coll_base_s(query, COLL_RING) + hops_and_bytes_s(query, bytes, steps, crossings) - coll_bytes_s(cost);
    cost->unestimated_s = is_pipeline(query->kind) ? crossings * slot_s(query, bytes) : 0;
    cost->latency_s += cost->unestimated_s;
    return true;
}
