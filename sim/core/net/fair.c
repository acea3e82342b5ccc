/* Max-min fair rates found where something changed (fair.h has the reasoning).
 *
 * fair_solve() opens a flow that changed, with all that changed and share links with it, directly
 * or through others. fair_fill() gives the open flows rates beside the fixed ones of the others.
 * fair_widen() then looks at each link that has both: a flow outside whose share there is no longer
 * its rate, or that an open flow must now share with, is opened too, and filling starts again. This
 * ends, since flows are only ever opened; at worst all are, and it is maxmin_solve().
 *
 * Subtle: comparisons of rates and shares are exact, not within a tolerance: the same sums in the
 * same order give the same doubles, and a flow whose bottleneck did not move must not be touched.
 * `was` is the rate before the flow was opened; `fair` is UNFIXED only inside fair_fill(). */
#include "net/fair.h"

#include <math.h>

static const double UNFIXED = -1;

enum { NO_LINK = -1 }; /* the bottleneck of a flow at its rate cap */

void fair_set_changed(struct net *net, int id)
{
    struct net_flow *flow = &net->flows.at[id];
    if (flow->changed)
        return;
    flow->changed = true;
    vec_push(&net->changed, id);
}

void fair_relieved(struct net *net, int link)
{
    const struct net_link *relieved = &net->links.at[link];
    for (int k = 0; k < relieved->flows.n; k++)
        if (net->flows.at[relieved->flows.at[k].flow].bottleneck == link)
            fair_set_changed(net, relieved->flows.at[k].flow);
}

static void open_flow(struct net *net, int id)
{
    struct net_flow *flow = &net->flows.at[id];
    if (flow->open)
        return;
    flow->open = true;
    flow->changed = false;
    flow->was = flow->fair;
    vec_push(&net->open, id);
    if (flow->seen == net->solution)
        return;
    flow->seen = net->solution;
    vec_push(&net->solved, id);
}

/* The first, and those with it that the solution will move: others that changed and share a link
 * with it or with such ones, and those that a link holds which one comes to. */
static void open_changed(struct net *net, int first, bool more)
{
    open_flow(net, first);
    for (int i = 0; i < net->open.n; i++) {
        const struct net_flow *flow = &net->flows.at[net->open.at[i]];
        bool comes = flow->fair == 0;
        for (int w = 0; (more || comes) && w < flow->n_weights; w++) {
            int id = flow->weights[w].link;
            const struct net_link *link = &net->links.at[id];
            for (int k = 0; k < link->flows.n; k++) {
                const struct net_flow *other = &net->flows.at[link->flows.at[k].flow];
                if (other->changed || (comes && other->bottleneck == id))
                    open_flow(net, link->flows.at[k].flow);
            }
        }
    }
}

/* ---- rates of the open flows beside those of the others, by progressive filling as in maxmin.c
 * ---- */

/* What a link has for its open flows without a rate. The order of the sums is that of the flows'
 * ids. */
static void set_level(struct net *net, int id)
{
    struct net_link *link = &net->links.at[id];
    double left = net->capacity.at[id], load = 0;
    for (int k = 0; k < link->flows.n; k++) {
        const struct net_crossing *crossing = &link->flows.at[k];
        double fair = net->flows.at[crossing->flow].fair;
        if (fair == UNFIXED)
            load += crossing->weight;
        else
            left -= crossing->weight * fair;
    }
    link->stale = false;
    link->level = load > 0 ? left / load : HUGE_VAL;
}

/* The links of the open flows. */
static void fair_find_links(struct net *net)
{
    net->n_fills++;
    net->near.n = 0;
    for (int i = 0; i < net->open.n; i++) {
        struct net_flow *flow = &net->flows.at[net->open.at[i]];
        flow->fair = UNFIXED;
        for (int w = 0; w < flow->n_weights; w++) {
            struct net_link *link = &net->links.at[flow->weights[w].link];
            if (link->seen == net->n_fills)
                continue;
            link->seen = net->n_fills;
            link->stale = true;
            vec_push(&net->near, flow->weights[w].link);
        }
    }
}

/* The least level of a link of the open flows. */
static double fair_least_level(struct net *net)
{
    double level = HUGE_VAL;
    for (int i = 0; i < net->near.n; i++) {
        const struct net_link *link = &net->links.at[net->near.at[i]];
        if (link->stale)
            set_level(net, net->near.at[i]);
        level = fmin(level, link->level);
    }
    return level;
}

static void fair_fix(struct net *net, struct net_flow *flow, double rate, int bottleneck)
{
    flow->fair = rate;
    flow->bottleneck = bottleneck;
    for (int w = 0; w < flow->n_weights; w++)
        net->links.at[flow->weights[w].link].stale = true;
}

/* Flows that their rate caps hold below all links' levels: all of them at once, as a flow that
 * takes less than its share leaves the others more, so no level falls. How many there are; least:
 * the least rate cap of the others. */
static int fair_fix_capped(struct net *net, double level, double *least)
{
    int n = 0;
    *least = HUGE_VAL;
    for (int i = 0; i < net->open.n; i++) {
        struct net_flow *flow = &net->flows.at[net->open.at[i]];
        if (flow->fair != UNFIXED)
            continue;
        if (flow->rate_cap * (1 + MAXMIN_SLACK) < level) {
            fair_fix(net, flow, flow->rate_cap, NO_LINK);
            n++;
        } else {
            *least = fmin(*least, flow->rate_cap);
        }
    }
    return n;
}

/* What allows a flow least: its rate cap or a link. */
static double fair_stop(const struct net *net, const struct net_flow *flow, int *bottleneck)
{
    double least = flow->rate_cap;
    *bottleneck = NO_LINK;
    for (int w = 0; w < flow->n_weights; w++)
        if (net->links.at[flow->weights[w].link].level < least) {
            least = net->links.at[flow->weights[w].link].level;
            *bottleneck = flow->weights[w].link;
        }
    return least;
}

/* Flows that rise no further than the level. */
static int fair_fix_at(struct net *net, double level)
{
    int n = 0, bottleneck;
    for (int i = 0; i < net->open.n; i++) {
        struct net_flow *flow = &net->flows.at[net->open.at[i]];
        if (flow->fair != UNFIXED || fair_stop(net, flow, &bottleneck) > level * (1 + MAXMIN_SLACK))
            continue;
        fair_fix(net, flow, level, bottleneck);
        n++;
    }
    return n;
}

static void fair_fill(struct net *net)
{
    fair_find_links(net);
    for (int left = net->open.n, fixed; left > 0; left -= fixed) {
        double level = fair_least_level(net), least;
        fixed = fair_fix_capped(net, level, &least);
        if (fixed > 0)
            continue;
        level = fmin(level, least);
        BUG_IF(isinf(level), "a flow crosses no link and has no rate cap");
        /* below 0 by rounding only: left over from links that are exactly full */
        fixed = fair_fix_at(net, fmax(level, 0));
        BUG_IF(fixed == 0, "max-min filling does not advance");
    }
}

/* ---- who else must be solved ---- */

/* The share of a link that flows of this rate and faster ones would get, beside the slower ones. */
static double fair_share_at(const struct net *net, int id, double rate)
{
    const struct net_link *link = &net->links.at[id];
    double left = net->capacity.at[id], load = 0;
    for (int k = 0; k < link->flows.n; k++) {
        const struct net_crossing *crossing = &link->flows.at[k];
        double fair = net->flows.at[crossing->flow].fair;
        if (fair < rate)
            left -= crossing->weight * fair;
        else
            load += crossing->weight;
    }
    return left / load;
}

/* The flows of a link that are as fast as this or faster. */
static void open_faster(struct net *net, int id, double rate)
{
    const struct net_link *link = &net->links.at[id];
    for (int k = 0; k < link->flows.n; k++)
        if (net->flows.at[link->flows.at[k].flow].fair >= rate * (1 - MAXMIN_SLACK))
            open_flow(net, link->flows.at[k].flow);
}

/* Whether a link has flows that are not open, and open ones that have another rate than before, or
 * are held by it, which others must be then, too. */
static bool fair_is_border(const struct net *net, int id)
{
    const struct net_link *link = &net->links.at[id];
    bool moved = false, others = false;
    for (int k = 0; k < link->flows.n; k++) {
        const struct net_flow *flow = &net->flows.at[link->flows.at[k].flow];
        moved |= flow->open && (flow->fair != flow->was || flow->bottleneck == id);
        others |= !flow->open;
    }
    return moved && others;
}

/* On a link of this many flows all are solved at once: to look at each beside each would take
 * longer. */
enum { MANY = 16 };

static void widen_link(struct net *net, int id)
{
    const struct net_link *link = &net->links.at[id];
    if (!fair_is_border(net, id))
        return;
    for (int k = 0; k < link->flows.n; k++) {
        int crossing = link->flows.at[k].flow;
        const struct net_flow *flow = &net->flows.at[crossing];
        if (link->flows.n > MANY)
            open_flow(net, crossing);
        else if (!flow->open) {
            double share = fair_share_at(net, id, flow->fair);
            if (flow->bottleneck == id ? share != flow->fair : share < flow->fair)
                open_flow(net, crossing);
        } else if (flow->bottleneck == id && fair_share_at(net, id, flow->fair) != flow->fair)
            open_faster(net, id, flow->fair);
    }
}

/* True: more flows are open than before. */
static bool fair_widen(struct net *net)
{
    int before = net->open.n;
    for (int i = 0; i < net->near.n; i++)
        if (net->links.at[net->near.at[i]].flows.n > 1)
            widen_link(net, net->near.at[i]);
    return net->open.n > before;
}

/* Whether all flows of a link have room on it beside each other at their rate caps, with something
 * left. */
static bool fair_has_room(const struct net *net, int id)
{
    static const double FULL = 1 - 1e-6;
    const struct net_link *link = &net->links.at[id];
    double asked = 0;
    for (int k = 0; k < link->flows.n; k++)
        asked += link->flows.at[k].weight * net->flows.at[link->flows.at[k].flow].rate_cap;
    return asked < FULL * net->capacity.at[id];
}

/* A flow that has each of its links to itself, or shares it with flows that all have room there, as
 * most of a pipeline's have, rises to what allows least: the same as by filling. False: it has not.
 */
static bool solve_alone(struct net *net, int id)
{
    struct net_flow *flow = &net->flows.at[id];
    double level = flow->rate_cap;
    int bottleneck = NO_LINK;
    for (int w = 0; w < flow->n_weights; w++) {
        int link = flow->weights[w].link;
        double weight = flow->weights[w].weight;
        if (net->links.at[link].flows.n > 1) {
            if (net->links.at[link].flows.n > MANY || !fair_has_room(net, link))
                return false;
            continue;
        }
        if (weight > 0 && net->capacity.at[link] / weight < level) {
            level = net->capacity.at[link] / weight;
            bottleneck = link;
        }
    }
    BUG_IF(isinf(level), "a flow crosses no link and has no rate cap");
    flow->changed = false;
    flow->fair = level > 0 ? level : 0;
    flow->bottleneck = bottleneck;
    flow->seen = net->solution;
    vec_push(&net->solved, id);
    return true;
}

void fair_solve(struct net *net)
{
    net->solution++;
    net->solved.n = 0;
    for (int i = 0; i < net->changed.n; i++) {
        int id = net->changed.at[i];
        if (!net->flows.at[id].active)
            net->flows.at[id].changed = false;
        if (!net->flows.at[id].changed ||
            (net->flows.at[id].seen != net->solution && solve_alone(net, id)))
            continue;
        net->open.n = 0;
        open_changed(net, id, net->changed.n > 1);
        do
            fair_fill(net);
        while (fair_widen(net));
        for (int k = 0; k < net->open.n; k++)
            net->flows.at[net->open.at[k]].open = false;
    }
    net->changed.n = 0;
}
