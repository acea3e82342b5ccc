/* Dispatch and combine of a mixture of experts by DeepEP's kernels (or HybridEP's), not NCCL's: a
 * token goes once to each rank that one of its experts is on, however many of them are there. Over
 * nodes it goes once to each node, over the NIC of the rank that sends it to the rank of the same
 * place there, which hands it on over NVLink; the combine adds up in the reverse order. Source:
 * csrc/kernels/legacy/{layout,intranode,internode}.cu of deepseek-ai/DeepEP (dd758caf), restated.
 *
 * Of n ranks, p a node, a token reaches R ranks and M of N nodes on average (coll_reach()). A rank
 * then sends M (N-1)/N of its bytes over NICs and R (p-1)/p over NVLink, as of what lands in a node
 * one in p is where it has to be; both at once, as the kernel pipelines them. In one node that is R
 * (n-1)/n.
 *
 * Rates are those of the links that NCCL reaches, of NICs the share that DeepEP's own table has.
 * Published: 153 GB/s of 200 on 8 H800 of one node (NVLink at half of H100's); over NICs of 50
 * GB/s, counted with what stays in the node, 43 on 16 ranks, 58 and 57 (dispatch and combine) on
 * 32, 51 and 50 on 64 (docs/legacy.md). On 16 something else is in the way, which is not modelled.
 * Latency: as of ncclSend (assumed; no published table goes down to it). Ignored: the kernel that
 * counts ranks, indices and probabilities that travel along, that SMs could be too few. */
#include "coll/algorithm.h"

#include "base/status.h"

#include <math.h>

/* Of what NCCL's rings reach on InfiniBand (0.9888 of 50 GB/s): 57.5 x 3/4 = 43.1 GB/s on 4 nodes,
 * 50.5 x 7/8 = 44.2 on 8, 0.872 and 0.894. Kind: measured by its authors; their mean. */
static const double deepep_network_share = 0.883;

/* Of k that are chosen out of `all`, none is among these. */
static double missed(double all, double these, int k)
{
    double share = 1;
    for (int i = 0; i < k; i++)
        share *= fmax(all - these - i, 0) / (all - i);
    return share;
}

static double choices(int n, int k)
{
    double product = k >= 0 && k <= n;
    for (int i = 1; i <= k && product > 0; i++)
        product = product * (n - k + i) / i;
    return product;
}

double coll_reach(const struct coll_routing *routing, int units)
{
    double experts = routing->experts, reached = 0;
    int groups = routing->groups > 1 ? routing->groups : 1;
    int kept = groups > 1 && routing->kept_groups > 0 ? routing->kept_groups : groups;
    double pool = experts * kept / groups;
    int of_unit = units < groups ? groups / units : 1; /* groups on a unit; or units on a group */
    BUG_IF(units < 1 || routing->per_token > pool, "%d experts of a token out of %g on %d units",
        routing->per_token, pool, units);
    for (int j = 1; j <= of_unit && j <= kept; j++) {
        double chosen =
            choices(of_unit, j) * choices(groups - of_unit, kept - j) / choices(groups, kept);
        double there = units < groups ? j * experts / groups : experts / units;
        reached += chosen * (1 - missed(pool, there, routing->per_token));
    }
    return units * reached;
}

struct coll_cost coll_routed(
    double bytes, const struct coll_routing *routing, struct coll_shape shape, const struct hw *hw)
{
    const struct coll_query query = {COLL_ALL_TO_ALL, COLL_SIMPLE, bytes, shape, hw};
    struct coll_cost cost = {.algorithm = COLL_DEEPEP, .protocol = COLL_SIMPLE};
    double n = shape.ranks, nodes = shape.nodes, local = shape.per_node;
    int width = routing->width > 1 ? routing->width : 1;
    if (shape.ranks == 1)
        return cost;
    BUG_IF(!(bytes > 0) || shape.ranks % width, "%g bytes to experts on %d of %d ranks", bytes,
        width, shape.ranks);
    double ranks_reached = width * coll_reach(routing, shape.ranks / width);
    double nvlink = bytes * ranks_reached * (local - 1) / local;
    double network =
        shape.nodes > 1 ? bytes * coll_reach(routing, shape.nodes) * (nodes - 1) / nodes : 0;
    cost.bus_bytes = bytes * ranks_reached * (n - 1) / n;
    cost.gpu_out_factor = nvlink / cost.bus_bytes;
    cost.node_out_factor = local * network / cost.bus_bytes;
    cost.all_pairs = shape.nodes > 1;
    cost.hbm_bytes =
        bytes * (1 + ranks_reached); /* what leaves is read once, what arrives is written */
    cost.sms = routing->sms;
    coll_set_rate(&cost, &query, 1, deepep_network_share);
    double hop_s = coll_intra_hop_s(&query, COLL_RING);
    if (shape.nodes > 1)
        hop_s += coll_inter_hop_s(&query, COLL_TREE);
    cost.latency_s = coll_base_s(&query, COLL_RING) + hop_s;
    return cost;
}

struct coll_cost coll_of(enum coll_kind kind, double bytes, const struct coll_routing *routing,
    struct coll_shape shape, const struct hw *hw)
{
    return routing ? coll_routed(bytes, routing, shape, hw)
                   : coll_choose(kind, bytes, shape, hw, COLL_FREE);
}

/* NCCL knows no such thing. */
bool coll_deepep(struct coll_cost *cost, const struct coll_query *query)
{
    (void)cost;
    (void)query;
    return false;
}
