/* Ring. All-gather and reduce-scatter take n - 1 steps in which every rank sends S/n bytes to its neighbour; all-reduce
 * is a reduce-scatter and an all-gather. Of n - 1 steps N - 1 cross between nodes (NCCL counts them so: tuning.cc).
 * Broadcast is pipelined in slices down the ring: n - 1 steps of latency, S bytes over each link. */
#include "coll/algorithm.h"

void coll_ring(struct coll_cost *cost, enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw)
{
    double n = shape.ranks, across = shape.nodes - 1, inside = n - 1 - across;
    double rounds = kind == COLL_ALL_REDUCE ? 2 : 1;
    cost->latency_s = hw->node.nccl_base_latency.value +
                      rounds * (inside * hw->node.nccl_hop_latency.value + across * hw->cluster.nccl_hop_latency.value);
    cost->bus_bytes = kind == COLL_BROADCAST ? bytes : rounds * (n - 1) / n * bytes;
    /* Each ring leaves a node once, over one NIC; with R rings of 1/R of the bytes a node sends as many bytes as one
     * rank. */
    cost->node_out_factor = shape.nodes > 1 ? 1 : 0;
    /* A rank reads what it sends and writes what it receives; a reducing step reads its own operand too. */
    double reducing = kind == COLL_ALL_REDUCE ? 0.5 : kind == COLL_REDUCE_SCATTER ? 1 : 0;
    cost->hbm_bytes = cost->bus_bytes * (2 + reducing);
}
