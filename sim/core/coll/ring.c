/* Ring. All-gather and reduce-scatter take n - 1 steps in which every rank sends S/n bytes to its
 * neighbour; all-reduce is a reduce-scatter and an all-gather. Of n - 1 hops N - 1 are inter-node
 * (NCCL counts them so: tuning.cc). Broadcast and reduce are pipelined in slices down the ring: n -
 * 1 steps of latency, S bytes over each link.
 *
 * A rank starts a step when it has finished its previous one and has received the data that it
 * sends. So the time is the longest path through all steps, which is the longest of three bounds:
 *
 * - The serial work of the busiest rank (busiest_s). A rank with an intra-node hop spends, in each
 *   step, the hop (its block waits for a flag, adds, posts) and the bytes. A rank with an
 *   inter-node hop spends only the bytes on the NIC, because proxy and network work meanwhile. So
 *   NICs slower than NVLink hide the intra-node hops: 3 x 8 A100 with 4 NICs take 518 us for 22
 *   MiB; bytes on the NICs are 504, and 46 intra-node hops would add 87 (NVIDIA/nccl-tests#119).
 * - One trip of a piece of data around the ring (trip_s): all hops, and the bytes that each rank
 *   stores before it forwards them. Simple stores one slice of a chunk. LL and LL128 forward line
 *   by line: they store nothing on an intra-node hop, and everything where the proxy sends.
 *
 * - The buffer of the connection that leaves a node (turns_s). Its places hold two chunks of
 *   Simple, in slices. A place is free again when its slice has crossed, the receiver has read it
 *   and said so, so n - 1 steps take as many turns, halved: linear in ranks, not nodes. Of 16 ranks
 *   on 2 nodes one hop crosses, but 15 chunks do. Seen where a network answers late: two tables of
 *   A3 High on 2 nodes agree only with it (calibrate fit nccl). Posts of other channels queue
 *   beside a turn and are not in it: with them NREL's rings of 64 (Slingshot, left out) would take
 *   twice as long at 64 MiB as they do. LL and LL128 have eight chunks; no table shows their end
 *   (p3dn's rings of 16 by LL would be twice too slow), so it is not modelled. With
 *   nccl_flow_control stop_and_wait a chunk leaves when the last has crossed and its place is free
 *   again, so n - 1 steps take all their bytes and as many turns: all_gathers of 1 GiB on 16 to 512
 *   GPUs of p5 (EFA, NCCL 2.18) take the bytes at 400 GB/s and 39 us a rank. Why is not known; NCCL
 *   2.31 on B300's EFA does not show it.
 *
 * In a node blocks copy at the rate of the ring, one step after the other, and after the last step
 * the result still has to be there: nccl_ring_tail steps more, whose bytes are on no link. So few
 * ranks get a smaller busbw: 1 / busbw is x + x tail / steps. Of 512 MiB all_gathers (NCCL 2.29;
 * measured/collectives.csv) on 2, 4, 8 B200 get 438, 566, 617 GB/s; from the first two follow x = 1
 * / 663, tail 0.51 and 617 for the third. H100 258, 318, 335: 360, 0.40, 340; A100 150, 192, 205:
 * 223, 0.49, 209. About one slice of a chunk of two. LL and LL128 forward lines.
 *
 * tests/fabric/chunks.h, cut as NCCL cuts, does the same for Simple, with places enough. The tables
 * fitted do not determine how sharp the knee between the bounds is (a round one, by exponents of 2
 * to 12, fits as well). The one table of 128 nodes does (NVIDIA/nccl-tests #322, LL128, 19.4, 20.2,
 * 25.4, 47.1, 93.5 ms from 1 to 16 GiB): 9 % off with hypot(), 2 % with the longer of the two.
 *
 * The pipeline of a broadcast or reduce fills once, so nothing is hidden: all hops, and on each
 * inter-node hop a slot of every channel, which the proxy sends when it is complete. NCCL's own
 * estimate leaves slots out (unestimated_s), so they do not change its choice of protocol, though
 * those of LL128 are 18 times as large as those of LL. No table of nccl-tests checks this;
 * InternEvo's broadcasts of weights to 16 to 1,024 GPUs do, roughly (`flopcast validate --open`).
 * Ignored: the slots of Simple on intra-node hops, which are sent at once. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

enum { STEPS = 8 }; /* NCCL_STEPS: slots of a connection's buffer */

/* Seconds that the bytes of the message take on the links inside a node and between nodes. */
struct wire_time {
    double intra_s, inter_s;
};

static bool is_pipeline(enum coll_kind kind)
{
    return kind == COLL_BROADCAST || kind == COLL_REDUCE;
}

/* Of a step of the rank that sends to another node, what its connection's buffer leaves. */
static double turn_s(const struct coll_query *query, double step_bytes, double step_bytes_s)
{
    if (query->protocol != COLL_SIMPLE)
        return 0;
    double chunk_bytes =
        STEPS / nccl_chunks * nccl_slot_bytes[COLL_SIMPLE] * coll_sms(query->shape, query->hw);
    double credits_s = ceil(step_bytes / chunk_bytes) * coll_credit_s(query->hw);
    return query->hw->cluster.nccl_flow_control == HW_STOP_AND_WAIT
               ? credits_s + step_bytes_s
               : (credits_s + step_bytes_s / nccl_slices) / nccl_chunks;
}

static double hops_and_bytes_s(const struct coll_cost *cost, const struct coll_query *query,
    struct wire_time bytes, double steps, double inter_hops)
{
    double hop_s = coll_intra_hop_s(query, COLL_RING);
    if (inter_hops == 0) {
        bool waits = query->protocol == COLL_SIMPLE && !is_pipeline(query->kind);
        return steps * hop_s +
               bytes.intra_s * (1 + (waits ? query->hw->node.nccl_ring_tail.value / steps : 0));
    }
    double inter_hop_s = coll_inter_hop_s(query, COLL_RING);
    double others_s =
        (steps - inter_hops) * hop_s + (inter_hops - 1) * inter_hop_s; /* all but the last */
    if (is_pipeline(query->kind))
        return inter_hop_s + others_s + fmax(bytes.intra_s, bytes.inter_s);
    bool simple = query->protocol == COLL_SIMPLE;
    double stored_intra = simple ? 1 / nccl_slices : 0, stored_inter = simple ? 1 / nccl_slices : 1;
    double stored_s = ((steps - inter_hops) * stored_intra * bytes.intra_s +
                          inter_hops * stored_inter * bytes.inter_s +
                          (1 - stored_inter) * bytes.inter_s) / /* the rest of the last chunk */
                      steps;
    double turns_s = (steps - 1) * turn_s(query, cost->bus_bytes / steps, bytes.inter_s / steps);
    double trip_s = others_s + stored_s, busiest_s = fmax(bytes.inter_s, turns_s);
    if (query->shape.per_node > 1) {
        double step_s = hop_s + bytes.intra_s / steps,
               stored_step_s = stored_inter * bytes.inter_s / steps;
        busiest_s =
            fmax(busiest_s, (steps - 1) * step_s + fmax(stored_step_s, step_s - inter_hop_s));
    }
    return inter_hop_s + fmax(busiest_s, trip_s);
}

bool coll_ring(struct coll_cost *cost, const struct coll_query *query)
{
    if (query->kind >= COLL_ALL_TO_ALL)
        return false;
    int nodes = query->shape.nodes;
    double most_Bps = query->protocol == COLL_LL ? nccl_ll_max_Bps(query->hw, nodes) : HUGE_VAL;
    struct coll_rate intra = coll_intra_rate(cost, query, nccl_ring_share(query->protocol, 1));
    struct coll_rate inter = coll_inter_rate(cost, query, nccl_ring_share(query->protocol, nodes));
    const struct wire_time bytes = {
        cost->bus_bytes / fmin(intra.Bps, most_Bps), cost->bus_bytes / fmin(inter.Bps, most_Bps)};
    cost->max_rate_Bps = cost->bus_bytes / fmax(bytes.intra_s, bytes.inter_s);
    cost->rate_bound =
        query->protocol == COLL_LL ? COLL_BOUND_PROTOCOL : coll_slower(inter, intra).bound;
    double rounds = query->kind == COLL_ALL_REDUCE ? 2 : 1;
    double steps = rounds * (query->shape.ranks - 1), inter_hops = rounds * (nodes - 1);
    cost->latency_s = coll_base_s(query, COLL_RING) +
                      hops_and_bytes_s(cost, query, bytes, steps, inter_hops) - coll_bytes_s(cost);
    cost->unestimated_s =
        is_pipeline(query->kind) ? inter_hops * coll_slot_s(query, bytes.inter_s) : 0;
    cost->latency_s += cost->unestimated_s;
    return true;
}
