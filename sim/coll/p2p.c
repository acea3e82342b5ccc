/* ncclSend and ncclRecv in a group. all_to_all: every rank sends S/n to each of the n - 1 others, of which n - p are on
 * other nodes; the sends go out together, so the latency is that of one hop. send_recv (as nccl-tests has it): every
 * rank sends S to the next, so one rank of each node crosses, over the NICs near it. */
#include "coll/algorithm.h"
#include "coll/nccl.h"

#include <math.h>

bool coll_p2p(struct coll_cost *cost, const struct coll_query *query)
{
    if ((query->kind != COLL_ALL_TO_ALL && query->kind != COLL_SEND_RECV) || query->protocol != COLL_SIMPLE)
        return false;
    const struct coll_shape *shape = &query->shape;
    double hop_s = coll_hop_inside_s(query, COLL_RING);
    struct coll_query crossing = *query;
    if (query->kind == COLL_ALL_TO_ALL) {
        double peers = shape->ranks - 1, afar = shape->ranks - shape->per_node;
        cost->gpu_out_factor = (peers - afar) / peers;
        cost->node_out_factor = shape->per_node * afar / peers;
    } else {
        crossing.shape.per_node = 1;
    }
    coll_set_rate(cost, &crossing, 1, 1);
    if (shape->nodes > 1)
        hop_s = fmax(hop_s, coll_hop_across_s(query, COLL_TREE));
    cost->latency_s = coll_base_s(query, COLL_RING) + hop_s;
    cost->hbm_bytes = 2 * cost->bus_bytes; /* read where it leaves, written where it arrives */
    return true;
}
