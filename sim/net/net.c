#include "net/net.h"

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
    vec_free(&net->component);
    vec_free(&net->solved);
    vec_free(&net->problem);
    vec_free(&net->rates);
    vec_free(&net->scratch);
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

static void move(struct net *net, struct net_flow *flow, double bytes)
{
    flow->settled_at = net->engine->now;
    flow->bytes_left -= bytes;
    for (int w = 0; w < flow->n_weights; w++)
        net->carried.at[flow->weights[w].link] += flow->weights[w].weight * bytes;
}

/* Move the flow's bytes up to now. */
static void settle(struct net *net, struct net_flow *flow)
{
    double elapsed_s = s_from_ps(net->engine->now - flow->settled_at);
    if (elapsed_s > 0)
        move(net, flow, fmin(flow->rate * elapsed_s, flow->bytes_left));
}

static void solve_soon(struct net *net)
{
    if (net->solve_pending)
        return;
    net->solve_pending = true;
    engine_at(net->engine, net->engine->now, net->solve_kind, 0, 0);
}

static void set_changed(struct net *net, int id)
{
    struct net_flow *flow = &net->flows.at[id];
    if (flow->changed)
        return;
    flow->changed = true;
    vec_push(&net->changed, id);
}

static void join_links(struct net *net, int id)
{
    const struct net_flow *flow = &net->flows.at[id];
    for (int w = 0; w < flow->n_weights; w++)
        vec_push(&net->links.at[flow->weights[w].link].flows, id);
}

/* Those that stay on the links get what is left. */
static void leave_links(struct net *net, int id)
{
    const struct net_flow *flow = &net->flows.at[id];
    for (int w = 0; w < flow->n_weights; w++) {
        struct net_link *link = &net->links.at[flow->weights[w].link];
        int i = 0;
        while (link->flows.at[i] != id)
            i++;
        link->flows.at[i] = link->flows.at[--link->flows.n];
        for (int k = 0; k < link->flows.n; k++)
            set_changed(net, link->flows.at[k]);
    }
}

void net_start(struct net *net, int id, double bytes, double rate_cap_Bps, const struct link_weight *weights,
    int n_weights, struct net_listener listener)
{
    struct net_flow *flow = &net->flows.at[id];
    BUG_IF(flow->active, "flow %d is under way", id);
    BUG_IF(!(bytes > 0), "flow of %g bytes", bytes);
    *flow = (struct net_flow){.active = true,
        .changed = flow->changed,
        .epoch = flow->epoch + 1,
        .seen = flow->seen,
        .settled_at = net->engine->now,
        .bytes_left = bytes,
        .rate_cap = rate_cap_Bps,
        .weights = weights,
        .n_weights = n_weights,
        .listener = listener};
    join_links(net, id);
    net->n_active++;
    set_changed(net, id);
    solve_soon(net);
}

void net_set_capacity(struct net *net, int link, double capacity_Bps)
{
    BUG_IF(!(capacity_Bps >= 0), "link of %g B/s", capacity_Bps);
    if (net->capacity.at[link] == capacity_Bps)
        return;
    net->capacity.at[link] = capacity_Bps;
    for (int k = 0; k < net->links.at[link].flows.n; k++)
        set_changed(net, net->links.at[link].flows.at[k]);
    solve_soon(net);
}

void net_reroute(struct net *net, int id, const struct link_weight *weights, int n_weights)
{
    struct net_flow *flow = &net->flows.at[id];
    BUG_IF(!flow->active, "flow %d is not under way", id);
    settle(net, flow);
    leave_links(net, id);
    flow->weights = weights;
    flow->n_weights = n_weights;
    join_links(net, id);
    set_changed(net, id);
    solve_soon(net);
}

static int ascending(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* Most lists are short or nearly in order. */
static void sort(int *ids, int n)
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

/* Every flow that shares a link with the first, with a flow that does, and so on. Flows are solved in the order of
 * their ids, so that sums do not depend on the way by which they were found. */
static void find_component(struct net *net, int first)
{
    net->component.n = 0;
    net->flows.at[first].seen = net->solution;
    vec_push(&net->component, first);
    for (int i = 0; i < net->component.n; i++) {
        const struct net_flow *flow = &net->flows.at[net->component.at[i]];
        for (int w = 0; w < flow->n_weights; w++) {
            struct net_link *link = &net->links.at[flow->weights[w].link];
            if (link->seen == net->solution)
                continue;
            link->seen = net->solution;
            for (int k = 0; k < link->flows.n; k++) {
                int id = link->flows.at[k];
                if (net->flows.at[id].seen == net->solution)
                    continue;
                net->flows.at[id].seen = net->solution;
                vec_push(&net->component, id);
            }
        }
    }
    sort(net->component.at, net->component.n);
}

static void solve_component(struct net *net)
{
    int n = net->component.n;
    vec_reserve(&net->problem, n);
    vec_reserve(&net->rates, n);
    for (int i = 0; i < n; i++) {
        const struct net_flow *flow = &net->flows.at[net->component.at[i]];
        net->problem.at[i] = (struct maxmin_flow){flow->rate_cap, flow->weights, flow->n_weights};
    }
    maxmin_solve(
        net->rates.at, net->problem.at, n, net->capacity.at, net->scratch.at, net->scratch.at + net->capacity.n);
    for (int i = 0; i < n; i++) {
        struct net_flow *flow = &net->flows.at[net->component.at[i]];
        if (flow->rate == net->rates.at[i])
            continue; /* its end stands */
        settle(net, flow);
        flow->rate = net->rates.at[i];
        vec_push(&net->solved, net->component.at[i]);
    }
}

static void on_solve(void *self, const struct event *event)
{
    (void)event;
    struct net *net = self;
    net->solve_pending = false;
    net->solution++;
    net->solved.n = 0;
    vec_reserve(&net->scratch, 2 * net->capacity.n);
    for (int i = 0; i < net->changed.n; i++) {
        struct net_flow *flow = &net->flows.at[net->changed.at[i]];
        flow->changed = false;
        if (!flow->active || flow->seen == net->solution)
            continue;
        find_component(net, net->changed.at[i]);
        solve_component(net);
    }
    net->changed.n = 0;
    sort(net->solved.at, net->solved.n);
    for (int i = 0; i < net->solved.n; i++) {
        struct net_flow *flow = &net->flows.at[net->solved.at[i]];
        ps_t end = net->engine->now + ps_from_s(flow->bytes_left / flow->rate);
        engine_at(net->engine, end, net->end_kind, (uint32_t)net->solved.at[i], ++flow->epoch);
    }
}

static void on_end(void *self, const struct event *event)
{
    struct net *net = self;
    int id = (int)event->target;
    struct net_flow *flow = &net->flows.at[id];
    if (!flow->active || flow->epoch != event->arg)
        return;
    move(net, flow, flow->bytes_left); /* to the last byte: the end was rounded to a picosecond */
    flow->active = false;
    flow->rate = 0;
    net->n_active--;
    leave_links(net, id);
    if (net->n_active > 0)
        solve_soon(net);
    engine_at(net->engine, net->engine->now, flow->listener.kind, flow->listener.target, 0);
}

double net_carried(struct net *net, int link)
{
    for (int k = 0; k < net->links.at[link].flows.n; k++)
        settle(net, &net->flows.at[net->links.at[link].flows.at[k]]);
    return net->carried.at[link];
}
