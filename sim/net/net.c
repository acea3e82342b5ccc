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
    vec_free(&net->capacity);
    vec_free(&net->carried);
    vec_free(&net->flows);
    vec_free(&net->active);
    vec_free(&net->problem);
    vec_free(&net->rates);
    vec_free(&net->scratch);
}

int net_add_link(struct net *net, double capacity_Bps)
{
    BUG_IF(!(capacity_Bps > 0), "link of %g B/s", capacity_Bps);
    vec_push(&net->capacity, capacity_Bps);
    vec_push(&net->carried, 0.0);
    return net->capacity.n - 1;
}

int net_add_slot(struct net *net)
{
    vec_push(&net->flows, (struct net_flow){.active = false});
    return net->flows.n - 1;
}

/* Move every flow's bytes up to now. */
static void settle(struct net *net)
{
    double elapsed_s = s_from_ps(net->engine->now - net->settled_at);
    net->settled_at = net->engine->now;
    if (elapsed_s == 0)
        return;
    for (int i = 0; i < net->active.n; i++) {
        struct net_flow *flow = &net->flows.at[net->active.at[i]];
        double moved = fmin(flow->rate * elapsed_s, flow->bytes_left);
        flow->bytes_left -= moved;
        for (int u = 0; u < flow->n_uses; u++)
            net->carried.at[flow->uses[u].link] += flow->uses[u].weight * moved;
    }
}

static void solve_soon(struct net *net)
{
    if (net->solve_pending)
        return;
    net->solve_pending = true;
    engine_at(net->engine, net->engine->now, net->solve_kind, 0, 0);
}

void net_start(struct net *net, int slot, double bytes, double bound_Bps, const struct maxmin_use *uses, int n_uses,
    struct net_listener listener)
{
    struct net_flow *flow = &net->flows.at[slot];
    BUG_IF(flow->active, "slot %d is in use", slot);
    BUG_IF(!(bytes > 0), "flow of %g bytes", bytes);
    settle(net);
    *flow = (struct net_flow){.active = true,
        .epoch = flow->epoch + 1,
        .bytes_left = bytes,
        .bound = bound_Bps,
        .uses = uses,
        .n_uses = n_uses,
        .listener = listener};
    int i = net->active.n;
    vec_push(&net->active, slot);
    for (; i > 0 && net->active.at[i - 1] > slot; i--)
        net->active.at[i] = net->active.at[i - 1];
    net->active.at[i] = slot;
    solve_soon(net);
}

static void on_solve(void *self, const struct event *event)
{
    (void)event;
    struct net *net = self;
    net->solve_pending = false;
    settle(net);
    int n = net->active.n, n_links = net->capacity.n;
    vec_reserve(&net->problem, n);
    vec_reserve(&net->rates, n);
    vec_reserve(&net->scratch, 2 * n_links);
    for (int i = 0; i < n; i++) {
        const struct net_flow *flow = &net->flows.at[net->active.at[i]];
        net->problem.at[i] = (struct maxmin_flow){flow->bound, flow->uses, flow->n_uses};
    }
    maxmin_solve(
        net->rates.at, net->problem.at, n, net->capacity.at, n_links, net->scratch.at, net->scratch.at + n_links);
    for (int i = 0; i < n; i++) {
        int slot = net->active.at[i];
        struct net_flow *flow = &net->flows.at[slot];
        if (flow->rate == net->rates.at[i])
            continue; /* its end stands */
        flow->rate = net->rates.at[i];
        ps_t end = net->engine->now + ps_from_s(flow->bytes_left / flow->rate);
        engine_at(net->engine, end, net->end_kind, (uint32_t)slot, ++flow->epoch);
    }
}

static void on_end(void *self, const struct event *event)
{
    struct net *net = self;
    struct net_flow *flow = &net->flows.at[event->target];
    if (!flow->active || flow->epoch != event->arg)
        return;
    settle(net);
    flow->active = false;
    flow->rate = 0;
    int kept = 0;
    for (int i = 0; i < net->active.n; i++)
        if (net->active.at[i] != (int)event->target)
            net->active.at[kept++] = net->active.at[i];
    net->active.n = kept;
    if (kept > 0)
        solve_soon(net);
    engine_at(net->engine, net->engine->now, flow->listener.kind, flow->listener.target, 0);
}

double net_carried(struct net *net, int link)
{
    settle(net);
    return net->carried.at[link];
}
