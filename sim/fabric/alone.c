#include "fabric/alone.h"

#include "fabric/fabric.h"

#include <math.h>

struct alone {
    struct coll_group group;
    struct coll_shape shape;
    struct fabric fabric;
    struct link_weight *uses; /* room for all links */
    struct coll_cost rated;   /* whose rate_Bps over the slowest link is known; of no bytes: none yet */
    double rate_Bps;
    int slowest;
};

int alone_fewest_nodes(const struct hw *hw, int ranks)
{
    return coll_shape((struct coll_group){0, 1, ranks}, hw_gpus_per_node(hw)).nodes;
}

struct alone *alone_new(const struct hw *hw, int ranks, int nodes, const char *degraded, struct source_pos at,
    struct arena *arena, struct diag *diag)
{
    int gpus = hw_gpus_per_node(hw), per_node = nodes > 0 && ranks % nodes == 0 ? ranks / nodes : 0;
    double most = hw->cluster.nodes.value;
    if (nodes > most) {
        diag_input(diag, at,
            "%d ranks on %d node%s, but the cluster has %g of %d GPU%s; take at most %.0f ranks, or give it more nodes",
            ranks, nodes, plural(nodes), most, gpus, plural(gpus), most * gpus);
        return NULL;
    }
    if (per_node < 1 || per_node > gpus) {
        diag_input(diag, at,
            "%d ranks on %d node%s of %d GPU%s are not as many on each; take a multiple of the nodes up to %d times "
            "their number",
            ranks, nodes, plural(nodes), gpus, plural(gpus), gpus);
        return NULL;
    }
    struct alone *alone = ARENA_NEW(arena, struct alone);
    alone->group = (struct coll_group){0, nodes > 1 ? gpus / per_node : 1, ranks};
    alone->shape = (struct coll_shape){ranks, nodes, per_node};
    if (fabric_build(&alone->fabric, hw, nodes > 1 ? nodes * gpus : ranks, degraded, at, arena, diag) != STATUS_OK)
        return NULL;
    if (!fabric_is_uniform(&alone->fabric) && nodes > 1 && gpus % per_node != 0) {
        diag_input(diag, at,
            "%d ranks are not spread evenly over a node's %d GPUs, as links that differ ask for; take a divisor",
            per_node, gpus);
        return NULL;
    }
    alone->uses = ARENA_ARRAY(arena, struct link_weight, alone->fabric.n_links);
    return alone;
}

/* What its links let through of such a collective, HUGE_VAL where they are all alike; the first of the slowest, or -1.
 * Sizes mostly load links alike, and finding the links of an all_to_all takes the square of the nodes. */
static double link_rate_Bps(struct alone *alone, const struct coll_cost *cost, int *slowest)
{
    const struct fabric *fabric = &alone->fabric;
    if (alone->rated.bus_bytes == 0 || !fabric_uses_alike(&alone->rated, cost)) {
        int n = fabric_is_uniform(fabric) ? 0 : fabric_uses(alone->uses, &alone->fabric, alone->group, cost, 0);
        alone->rated = *cost;
        alone->rate_Bps = HUGE_VAL;
        alone->slowest = -1;
        for (int i = 0; i < n; i++) { /* the max-min rate of a flow that has the links to itself */
            double rate_Bps = fabric->capacity_Bps[alone->uses[i].link] / alone->uses[i].weight;
            if (rate_Bps < alone->rate_Bps) {
                alone->rate_Bps = rate_Bps;
                alone->slowest = alone->uses[i].link;
            }
        }
    }
    *slowest = alone->slowest;
    return alone->rate_Bps;
}

struct coll_cost alone_cost(struct alone *alone, enum coll_kind kind, double bytes, struct coll_force force, char *link)
{
    int slowest;
    struct coll_cost cost = coll_choose(kind, bytes, alone->shape, alone->fabric.hw, force);
    double link_Bps = link_rate_Bps(alone, &cost, &slowest);
    if (link)
        *link = '\0';
    if (link_Bps < cost.max_rate_Bps) {
        cost.max_rate_Bps = link_Bps;
        cost.rate_bound = fabric_link_bound(&alone->fabric, slowest);
        if (link)
            fabric_link_name(link, ALONE_LINK, &alone->fabric, slowest);
    }
    return cost;
}
