/* Flows on the engine's clock: bytes that have moved, rates, and events of ends.
 *
 * A flow moves at a constant rate between solutions, so its bytes are brought up to date (settled)
 * only when its rate changes, it ends or is rerouted. A new rate moves its end. The engine cannot
 * take an event back: where the end is later than before, the event that is scheduled looks again
 * at its time and schedules another one; only where it is earlier a new event is scheduled at once
 * and the flow's epoch raised, as events of older epochs are ignored. On a busy link rates fall and
 * rise with each flow that comes and goes, so most ends that are moved cost no event. A rate that
 * differs by rounding only keeps its end.
 *
 * Starts, ends and changes of capacity at one instant are collected in `changed`, and one event at
 * that same instant solves for all, where there are any (solve_soon). Flows on a link are kept in
 * the order of their ids, and new rates are set in that order, so results do not depend on the
 * order of starts.
 *
 * Bytes that a link has carried are counted by whole ones, whose sums are the same in any order.
 *
 * Subtle: the end of a flow moves whatever is left, because its time was rounded to a picosecond.
 * A link of no capacity carries no flow: the caller reroutes before the next event. */
#include "net/net.h"

#include "net/fair.h"

#include <math.h>

static void on_end(void *self, const struct event *event);
static void on_solve(void *self, const struct event *event);

void net_init(struct net *net, struct engine *engine)
{
    *net = (struct net){.engine = engine};
    net->end_kind = engine_register(engine, on_end, net);
    net->solve_kind = engine_register(engine, on_solve, net);
}

void net_release(struct net *net)
{
    for (int l = 0; l < net->links.n; l++)
        vec_free(&net->links.at[l].flows);
    vec_free(&net->capacity);
    vec_free(&net->carried);
    vec_free(&net->links);
    vec_free(&net->flows);
    vec_free(&net->changed);
    vec_free(&net->open);
    vec_free(&net->near);
    vec_free(&net->solved);
}

int net_add_link(struct net *net, double capacity_Bps)
{
    BUG_IF(!(capacity_Bps >= 0), "link of %g B/s", capacity_Bps);
    vec_push(&net->capacity, capacity_Bps);
    vec_push(&net->carried, 0.0);
    vec_push(&net->links, (struct net_link){.seen = 0});
    return net->capacity.n - 1;
}

int net_add_flow(struct net *net)
{
    vec_push(&net->flows, (struct net_flow){.active = false});
    return net->flows.n - 1;
}

static void net_move(struct net *net, struct net_flow *flow, double bytes)
{
    flow->settled_at = net->engine->now;
    flow->bytes_left -= bytes;
    for (int w = 0; w < flow->n_weights; w++)
        net->carried.at[flow->weights[w].link] += rint(flow->weights[w].weight * bytes);
}

/* Since it was settled last, up to now. */
static double net_moved(const struct net *net, const struct net_flow *flow)
{
    return fmin(flow->rate * s_from_ps(net->engine->now - flow->settled_at), flow->bytes_left);
}

/* Move the flow's bytes up to now. */
static void net_settle(struct net *net, struct net_flow *flow)
{
    if (net->engine->now > flow->settled_at)
        net_move(net, flow, net_moved(net, flow));
}

static void solve_soon(struct net *net)
{
    if (net->solve_pending || net->changed.n == 0)
        return;
    net->solve_pending = true;
    engine_at(net->engine, net->engine->now, net->solve_kind, 0, 0);
}

/* Lists are short, and a new flow mostly has a late place in them. */
static void join_links(struct net *net, int id)
{
    const struct net_flow *flow = &net->flows.at[id];
    for (int w = 0; w < flow->n_weights; w++) {
        struct net_link *link = &net->links.at[flow->weights[w].link];
        vec_reserve(&link->flows, link->flows.n + 1);
        int hole = link->flows.n++;
        for (; hole > 0 && link->flows.at[hole - 1].flow > id; hole--)
            link->flows.at[hole] = link->flows.at[hole - 1];
        link->flows.at[hole] = (struct net_crossing){id, flow->weights[w].weight};
    }
}

/* Those that the link held back get what is left. */
static void leave_links(struct net *net, int id)
{
    const struct net_flow *flow = &net->flows.at[id];
    for (int w = 0; w < flow->n_weights; w++) {
        struct net_link *link = &net->links.at[flow->weights[w].link];
        int i = 0;
        while (link->flows.at[i].flow != id)
            i++;
        for (link->flows.n--; i < link->flows.n; i++)
            link->flows.at[i] = link->flows.at[i + 1];
        fair_relieved(net, flow->weights[w].link);
    }
}

void net_start(struct net *net, int id, double bytes, double rate_cap_Bps,
    const struct link_weight *weights, int n_weights, struct net_listener listener)
{
    struct net_flow *flow = &net->flows.at[id];
    BUG_IF(flow->active, "flow %d is under way", id);
    BUG_IF(!(bytes > 0), "flow of %g bytes", bytes);
    *flow = (struct net_flow){.active = true,
        .changed = flow->changed,
        .epoch = flow->epoch + 1,
        .seen = flow->seen,
        .bottleneck = -1,
        .settled_at = net->engine->now,
        .looks_at = INT64_MAX,
        .bytes_left = bytes,
        .rate_cap = rate_cap_Bps,
        .weights = weights,
        .n_weights = n_weights,
        .listener = listener};
    join_links(net, id);
    fair_set_changed(net, id);
    solve_soon(net);
}

void net_set_capacity(struct net *net, int link, double capacity_Bps)
{
    BUG_IF(!(capacity_Bps >= 0), "link of %g B/s", capacity_Bps);
    if (net->capacity.at[link] == capacity_Bps)
        return;
    net->capacity.at[link] = capacity_Bps;
    for (int k = 0; k < net->links.at[link].flows.n; k++)
        fair_set_changed(net, net->links.at[link].flows.at[k].flow);
    solve_soon(net);
}

void net_reroute(struct net *net, int id, const struct link_weight *weights, int n_weights)
{
    struct net_flow *flow = &net->flows.at[id];
    BUG_IF(!flow->active, "flow %d is not under way", id);
    net_settle(net, flow);
    leave_links(net, id);
    flow->weights = weights;
    flow->n_weights = n_weights;
    flow->fair = 0; /* on these links */
    join_links(net, id);
    fair_set_changed(net, id);
    solve_soon(net);
}

static int ascending(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* Most lists are short or nearly in order. */
static void net_sort(int *ids, int n)
{
    enum { SHORT = 32 };
    bool in_order = true;
    for (int i = 1; i < n && in_order; i++)
        in_order = ids[i - 1] < ids[i];
    if (in_order)
        return;
    if (n > SHORT) {
        qsort(ids, (size_t)n, sizeof *ids, ascending);
        return;
    }
    for (int i = 1; i < n; i++) {
        int id = ids[i], hole = i;
        for (; hole > 0 && ids[hole - 1] > id; hole--)
            ids[hole] = ids[hole - 1];
        ids[hole] = id;
    }
}

static void look_at(struct net *net, int id, ps_t time)
{
    struct net_flow *flow = &net->flows.at[id];
    flow->looks_at = time;
    engine_at(net->engine, time, net->end_kind, (uint32_t)id, flow->epoch);
}

/* The rate is the fair one from now on. */
static void set_rate(struct net *net, int id)
{
    struct net_flow *flow = &net->flows.at[id];
    net_settle(net, flow);
    flow->rate = flow->fair;
    flow->end = net->engine->now + ps_from_s(flow->bytes_left / flow->rate);
    if (flow->looks_at <= flow->end)
        return;
    flow->epoch++;
    look_at(net, id, flow->end);
}

static void on_solve(void *self, const struct event *event)
{
    (void)event;
    struct net *net = self;
    net->solve_pending = false;
    fair_solve(net);
    int n = 0;
    for (int i = 0; i < net->solved.n; i++) {
        const struct net_flow *flow = &net->flows.at[net->solved.at[i]];
        if (fabs(flow->rate - flow->fair) > MAXMIN_SLACK * flow->rate) /* else its end stands */
            net->solved.at[n++] = net->solved.at[i];
    }
    net->solved.n = n;
    net_sort(net->solved.at, n);
    for (int i = 0; i < n; i++)
        set_rate(net, net->solved.at[i]);
}

static void on_end(void *self, const struct event *event)
{
    struct net *net = self;
    int id = (int)event->target;
    struct net_flow *flow = &net->flows.at[id];
    if (!flow->active || flow->epoch != event->arg)
        return;
    if (flow->end > net->engine->now) {
        look_at(net, id, flow->end);
        return;
    }
    net_move(
        net, flow, flow->bytes_left); /* to the last byte: the end was rounded to a picosecond */
    flow->active = false;
    flow->rate = flow->fair = 0;
    leave_links(net, id);
    solve_soon(net);
    engine_at(net->engine, net->engine->now, flow->listener.kind, flow->listener.target, 0);
}

double net_carried(const struct net *net, int link)
{
    double bytes = net->carried.at[link];
    for (int k = 0; k < net->links.at[link].flows.n; k++) {
        const struct net_flow *flow = &net->flows.at[net->links.at[link].flows.at[k].flow];
        for (int w = 0; w < flow->n_weights; w++)
            bytes +=
                flow->weights[w].link == link ? flow->weights[w].weight * net_moved(net, flow) : 0;
    }
    return bytes;
}
