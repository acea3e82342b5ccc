/* Which algorithm and protocol a collective takes, and how long that is: NCCL's choice, within two
 * laws of this model (coll.h): faster NICs are no slower, and a larger group is no faster. */
#include "coll/algorithm.h"
#include "coll/nccl.h"
#include "coll/tuner.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

/* What NCCL goes by: its own estimate, or as long as it takes, where that is not known. */
static double counted_s(const struct coll_cost *cost, const struct coll_query *query)
{
    double estimate_s;
    return nccl_estimate(&estimate_s, query, cost->algorithm)
               ? estimate_s
               : coll_isolated_s(*cost) - cost->unestimated_s;
}

static bool best(struct coll_cost *out, enum coll_kind kind, double bytes, struct coll_shape shape,
    const struct hw *hw, struct coll_force force)
{
    double least_s = HUGE_VAL;
    bool found = false;
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        for (int p = COLL_PROTOCOL_COUNT - 1; p >= 0; p--) {
            bool wanted =
                force.algorithm == COLL_ANY ? a != COLL_HIERARCHICAL : force.algorithm == a;
            struct coll_cost cost;
            if (!wanted || (force.protocol != COLL_ANY && force.protocol != p) ||
                !coll_cost(
                    &cost, kind, (enum coll_algorithm)a, (enum coll_protocol)p, bytes, shape, hw))
                continue;
            const struct coll_query query = {kind, (enum coll_protocol)p, bytes, shape, hw};
            double s = shape.ranks > 1 ? counted_s(&cost, &query) : 0;
            if (!found || s < least_s) {
                *out = cost;
                least_s = s;
            }
            found = true;
        }
    return found;
}

struct coll_cost coll_nccl_choice(enum coll_kind kind, double bytes, struct coll_shape shape,
    const struct hw *hw, struct coll_force force)
{
    struct coll_cost cost;
    const struct coll_query query = {.kind = kind, .bytes = bytes, .shape = shape, .hw = hw};
    if (force.algorithm == COLL_ANY && force.protocol == COLL_ANY)
        nccl_aws_choice(&force, &query);
    const struct coll_force tries[] = {
        force, {force.algorithm, COLL_ANY}, {COLL_ANY, force.protocol}, COLL_FREE};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (best(&cost, kind, bytes, shape, hw, tries[i]))
            return cost;
    BUG_IF(true, "nothing can do %s", coll_kind_names[kind]);
    return cost;
}

/* What a message could be sent with: any group and NICs. */
struct search {
    enum coll_kind kind;
    double bytes;
    struct coll_force force;
    struct hw hw; /* with the NICs looked at */
    double own_Bps;
    struct nccl_nics slower[NCCL_MOST_SLOWER];
    int n_slower;
    /* the shortest time so far, and the choice that takes it */
    double shortest_s, shortest_Bps;
    struct coll_force shortest;
};

/* No message takes less than half of its bytes take to leave a node. */
static void consider(struct search *search, struct coll_shape shape, double nic_Bps)
{
    search->hw.node.nic_bandwidth.value = nic_Bps;
    double node_Bps = coll_node_Bps(&search->hw) * coll_nic_share(shape, &search->hw);
    if (shape.nodes > 1 && search->bytes / 2 >= search->shortest_s * node_Bps)
        return;
    struct coll_cost cost =
        coll_nccl_choice(search->kind, search->bytes, shape, &search->hw, search->force);
    if (coll_isolated_s(cost) < search->shortest_s) {
        search->shortest_s = coll_isolated_s(cost);
        search->shortest = (struct coll_force){(int)cost.algorithm, (int)cost.protocol};
        search->shortest_Bps = nic_Bps;
    }
}

/* Whether some algorithm and protocol, chosen by NCCL or not, takes less than the shortest time. */
static bool could_be_shorter(struct search *search, struct coll_shape shape, double nic_Bps)
{
    static const double rounding = 1 - 1e-9;
    const struct coll_force *force = &search->force;
    struct coll_cost cost;
    search->hw.node.nic_bandwidth.value = nic_Bps;
    for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
        for (int p = 0; p < COLL_PROTOCOL_COUNT; p++)
            if (a != COLL_HIERARCHICAL && (force->algorithm == COLL_ANY || force->algorithm == a) &&
                (force->protocol == COLL_ANY || force->protocol == p) &&
                coll_cost(&cost, search->kind, (enum coll_algorithm)a, (enum coll_protocol)p,
                    search->bytes, shape, &search->hw) &&
                coll_isolated_s(cost) < search->shortest_s * rounding)
                return true;
    return false;
}

/* A group with its NICs, and with slower ones. Among those with as many channels none is faster
 * than the fastest NIC lets any algorithm be. false: no algorithm helps, neither here nor in a
 * larger group. */
static bool consider_group(struct search *search, struct coll_shape shape)
{
    consider(search, shape, search->own_Bps);
    bool could = could_be_shorter(search, shape, search->own_Bps), of_these = could;
    for (int i = 0; i < search->n_slower && shape.nodes > 1; i++) {
        const struct nccl_nics *slower = &search->slower[i];
        if (slower->first)
            of_these =
                slower->own_channels ? could : could_be_shorter(search, shape, slower->nic_Bps);
        could |= of_these;
        if (of_these)
            consider(search, shape, slower->nic_Bps);
    }
    return could;
}

/* The next larger group: 2, 3, 4, 6, 8, 12, ... nodes. */
static struct coll_shape choice_larger(struct coll_shape shape)
{
    int next = 2;
    while (next <= shape.nodes)
        next = next == 2 ? 3 : next % 3 == 0 ? next / 3 * 4 : next / 2 * 3;
    return (struct coll_shape){next * shape.per_node, next, shape.per_node};
}

/* The cost, but that it takes as long as this. */
static struct coll_cost choice_lasting(struct coll_cost cost, double s)
{
    cost.latency_s += s - coll_isolated_s(cost);
    if (cost.latency_s < 0) {
        cost.latency_s = 0;
        cost.max_rate_Bps = cost.bus_bytes / s;
    }
    return cost;
}

struct coll_cost coll_choose(enum coll_kind kind, double bytes, struct coll_shape shape,
    const struct hw *hw, struct coll_force force)
{
    enum { MOST_LARGER = 6 }; /* up to eight times as large */
    struct coll_cost cost;
    bool free_choice = force.algorithm == COLL_ANY && force.protocol == COLL_ANY;
    if (free_choice &&
        coll_copy_engine(&cost, &(struct coll_query){kind, COLL_SIMPLE, bytes, shape, hw}))
        return cost;
    cost = coll_nccl_choice(kind, bytes, shape, hw, force);
    double own_s = coll_isolated_s(cost);
    if (shape.ranks == 1 || kind == COLL_PEER_COPY)
        return cost;
    struct search search = {.kind = kind,
        .bytes = bytes,
        .force = force,
        .hw = *hw,
        .own_Bps = hw->node.nic_bandwidth.value,
        .shortest_s = own_s};
    struct coll_shape group = shape;
    bool grows = kind != COLL_SEND_RECV &&
                 (shape.nodes > 1 || shape.per_node == (int)hw->node.gpus.value),
         could = true;
    for (int i = 0; i <= MOST_LARGER && (i == 0 || (grows && (could || i == 1))); i++) {
        if (group.nodes > 1 && could && search.n_slower == 0)
            search.n_slower = nccl_slower_nics(search.slower, group, hw);
        could = consider_group(&search, group);
        group = choice_larger(group);
    }
    if (!(search.shortest_s < own_s))
        return cost;
    search.hw.node.nic_bandwidth.value = search.shortest_Bps;
    return choice_lasting(
        coll_nccl_choice(kind, bytes, shape, &search.hw, search.shortest), search.shortest_s);
}
