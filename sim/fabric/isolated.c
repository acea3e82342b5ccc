#include "fabric/isolated.h"

#include "fabric/fabric.h"

#include <math.h>

struct isolated {
    struct coll_group group;
    struct coll_shape shape;
    struct fabric fabric;
    struct link_weight *weights; /* room for all links */
    struct coll_cost rated;      /* whose rate_Bps over the slowest link is known; of no bytes: none yet */
    double rate_Bps;
    int slowest;
};

int isolated_fewest_nodes(const struct hw *hw, int ranks)
{
    return coll_shape((struct coll_group){0, 1, ranks}, hw_gpus_per_node(hw)).nodes;
}

struct isolated *isolated_new(const struct hw *hw, int ranks, int nodes, const char *degraded, struct source_pos at,
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
    struct isolated *isolated = ARENA_NEW(arena, struct isolated);
    isolated->group = (struct coll_group){0, nodes > 1 ? gpus / per_node : 1, ranks};
    isolated->shape = (struct coll_shape){ranks, nodes, per_node};
    struct degrade_events events;
    int all = nodes > 1 ? nodes * gpus : ranks; /* GPUs of these nodes */
    if (degrade_links(&events, hw, all, degraded, at, arena, diag) != STATUS_OK)
        return NULL;
    fabric_build(&isolated->fabric, hw, all, &events, arena);
    if (!fabric_is_uniform(&isolated->fabric) && nodes > 1 && gpus % per_node != 0) {
        diag_input(diag, at,
            "%d ranks are not spread evenly over a node's %d GPUs, as links that differ ask for; take a divisor",
            per_node, gpus);
        return NULL;
    }
    isolated->weights = ARENA_ARRAY(arena, struct link_weight, isolated->fabric.n_links);
    return isolated;
}

/* What its links let through of such a collective, HUGE_VAL where they are all alike; the first of the slowest, or -1.
 * Sizes mostly load links alike, and finding the links of an all_to_all takes the square of the nodes. */
static double link_rate_Bps(struct isolated *isolated, const struct coll_cost *cost, int *slowest)
{
    const struct fabric *fabric = &isolated->fabric;
    if (isolated->rated.bus_bytes == 0 || !fabric_weights_alike(&isolated->rated, cost)) {
        int n = fabric_is_uniform(fabric)
                    ? 0
                    : fabric_weights(isolated->weights, &isolated->fabric, isolated->group, cost, 0);
        isolated->rated = *cost;
        isolated->rate_Bps = HUGE_VAL;
        isolated->slowest = -1;
        for (int i = 0; i < n; i++) { /* the max-min rate of a flow that has the links to itself */
            double rate_Bps = fabric->capacity_Bps[isolated->weights[i].link] / isolated->weights[i].weight;
            if (rate_Bps < isolated->rate_Bps) {
                isolated->rate_Bps = rate_Bps;
                isolated->slowest = isolated->weights[i].link;
            }
        }
    }
    *slowest = isolated->slowest;
    return isolated->rate_Bps;
}

struct coll_cost isolated_cost(
    struct isolated *isolated, enum coll_kind kind, double bytes, struct coll_force force, char *link)
{
    int slowest;
    struct coll_cost cost = coll_choose(kind, bytes, isolated->shape, isolated->fabric.hw, force);
    double link_Bps = link_rate_Bps(isolated, &cost, &slowest);
    if (link)
        *link = '\0';
    if (link_Bps < cost.max_rate_Bps) {
        cost.max_rate_Bps = link_Bps;
        cost.rate_bound = fabric_link_bound(&isolated->fabric, slowest);
        if (link)
            fabric_link_name(link, ISOLATED_LINK, &isolated->fabric, slowest);
    }
    return cost;
}
