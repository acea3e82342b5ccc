/* One collective alone, or one of several groups that begin it together, at the rate of the links
 * that it loads.
 *
 * The choice of algorithm and its cost come from coll/. Only the rate may be lower: the least
 * capacity over summed weights of all groups' links. For flows that ask for equal rates that is the
 * max-min share of the slowest, so no solver runs.
 *
 * Finding the links of an all_to_all takes the square of the nodes, and most sizes load the same
 * links: the rate of the last weights is kept and used again while fabric_weights_alike() says
 * so. */
#include "fabric/isolated.h"

#include "fabric/fabric.h"

#include <math.h>

struct isolated {
    const struct coll_group *groups; /* alike */
    int n_groups;
    struct coll_shape shape;
    const struct hw *hw; /* that the groups see */
    struct hw bridge;
    struct fabric fabric;
    struct link_weight *weights; /* room for all links */
    struct coll_cost
        rated; /* whose rate_Bps over the slowest link is known; of no bytes: none yet */
    double rate_Bps;
    int slowest;
};

int isolated_fewest_nodes(const struct hw *hw, int ranks)
{
    return coll_shape((struct coll_group){0, 1, ranks}, hw_gpus_per_node(hw)).nodes;
}

static struct isolated *create(const struct hw *hw, const struct coll_group *groups, int n,
    int ranks, const char *degraded, struct source_pos at, struct arena *arena, struct diag *diag)
{
    struct isolated *isolated = ARENA_NEW(arena, struct isolated);
    struct degrade_events events;
    int gpus = hw_gpus_per_node(hw);
    *isolated =
        (struct isolated){.groups = groups, .n_groups = n, .shape = coll_shape(groups[0], gpus)};
    isolated->hw = coll_hw_of(&isolated->bridge, groups[0], hw);
    if (degrade_links(&events, hw, ranks, degraded, at, arena, diag) != STATUS_OK)
        return NULL;
    fabric_build(&isolated->fabric, hw, ranks, &events, arena);
    isolated->weights = ARENA_ARRAY(arena, struct link_weight, isolated->fabric.n_links);
    return isolated;
}

static bool has_nodes(
    const struct hw *hw, int ranks, int nodes, struct source_pos at, struct diag *diag)
{
    int gpus = hw_gpus_per_node(hw);
    double most = hw->cluster.nodes.value;
    if (nodes > most)
        diag_input(diag, at,
            "%d ranks on %d node%s, but the cluster has %g of %d GPU%s; take at most %.0f ranks, "
            "or give it more nodes",
            ranks, nodes, plural(nodes), most, gpus, plural(gpus), most * gpus);
    return nodes <= most;
}

struct isolated *isolated_groups(const struct hw *hw, const struct coll_group *groups, int n,
    int ranks, const char *degraded, struct source_pos at, struct arena *arena, struct diag *diag)
{
    if (!has_nodes(hw, ranks, isolated_fewest_nodes(hw, ranks), at, diag))
        return NULL;
    return create(hw, groups, n, ranks, degraded, at, arena, diag);
}

struct isolated *isolated_new(const struct hw *hw, int ranks, int nodes, const char *degraded,
    struct source_pos at, struct arena *arena, struct diag *diag)
{
    int gpus = hw_gpus_per_node(hw), per_node = nodes > 0 && ranks % nodes == 0 ? ranks / nodes : 0;
    if (!has_nodes(hw, ranks, nodes, at, diag))
        return NULL;
    if (per_node < 1 || per_node > gpus) {
        diag_input(diag, at,
            "%d ranks on %d node%s of %d GPU%s are not as many on each; take a multiple of the "
            "nodes up to %d times their number",
            ranks, nodes, plural(nodes), gpus, plural(gpus), gpus);
        return NULL;
    }
    struct coll_group *group = ARENA_NEW(arena, struct coll_group);
    int all = nodes > 1 ? nodes * gpus : ranks; /* GPUs of these nodes */
    *group = (struct coll_group){0, nodes > 1 ? gpus / per_node : 1, ranks};
    struct isolated *isolated = create(hw, group, 1, all, degraded, at, arena, diag);
    if (!isolated)
        return NULL;
    isolated->shape = (struct coll_shape){ranks, nodes, per_node};
    if (!fabric_is_uniform(&isolated->fabric) && nodes > 1 && gpus % per_node != 0) {
        diag_input(diag, at,
            "%d ranks are not spread evenly over a node's %d GPUs, as links that differ ask for; "
            "take a divisor",
            per_node, gpus);
        return NULL;
    }
    return isolated;
}

/* The links of one group that has them to itself are not looked at where all are alike: coll/ knows
 * their rate. */
static bool is_alone_on_even_links(const struct isolated *isolated)
{
    return isolated->n_groups == 1 && fabric_is_uniform(&isolated->fabric);
}

/* How many links the groups load, which weights has. */
static int isolated_load(struct isolated *isolated, const struct coll_cost *cost)
{
    for (int g = 0; g < isolated->n_groups; g++)
        fabric_load_collective(&isolated->fabric, isolated->groups[g], cost, (uint64_t)g);
    return fabric_loaded(isolated->weights, &isolated->fabric);
}

/* What its links let through of such a collective, HUGE_VAL where they are all alike; the first of
 * the slowest, or -1. Sizes mostly load links alike, and finding the links of an all_to_all takes
 * the square of the nodes. */
static double link_rate_Bps(struct isolated *isolated, const struct coll_cost *cost, int *slowest)
{
    const struct fabric *fabric = &isolated->fabric;
    if (isolated->rated.bus_bytes == 0 || !fabric_weights_alike(&isolated->rated, cost)) {
        isolated->rated = *cost;
        isolated->rate_Bps = HUGE_VAL;
        isolated->slowest = -1;
        int n = is_alone_on_even_links(isolated) ? 0 : isolated_load(isolated, cost);
        for (int i = 0; i < n; i++) {
            int link = isolated->weights[i].link;
            double rate_Bps = fabric->capacity_Bps[link] / isolated->weights[i].weight;
            if (rate_Bps < isolated->rate_Bps) {
                isolated->rate_Bps = rate_Bps;
                isolated->slowest = link;
            }
        }
    }
    *slowest = isolated->slowest;
    return isolated->rate_Bps;
}

struct coll_cost isolated_cost(struct isolated *isolated, enum coll_kind kind, double bytes,
    struct coll_force force, char *link)
{
    int slowest;
    struct coll_cost cost = coll_choose(kind, bytes, isolated->shape, isolated->hw, force);
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
