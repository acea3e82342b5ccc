/* Flows in flight: bytes that travel over links at max-min fair rates, on the engine's clock.
 *
 * A flow is one collective's traffic: it loads many links at once, each with its own weight (bytes
 * over the link per byte of the flow). When a flow starts or ends, the rates of those that this
 * touches are solved again and their ends moved (net/fair.h); the others stand. Several starts and
 * ends at one instant are settled by one solution. Ignored: packets, buffers, congestion beyond
 * fair sharing. */
#ifndef FLOPCAST_NET_NET_H
#define FLOPCAST_NET_NET_H

#include "engine/engine.h"
#include "net/maxmin.h"

/* When a flow ends, an event of this kind and target is scheduled, with arg 0. */
struct net_listener {
    uint32_t kind, target;
};

struct net_flow {
    bool active, changed, open; /* changed: listed in net.changed; open: in net.open */
    uint32_t epoch, seen;       /* seen: listed in net.solved of the solution of this number */
    int bottleneck;             /* the link that holds it at `fair`; -1: its rate cap does */
    ps_t settled_at;            /* bytes_left and what links have carried are those of this time */
    ps_t end, looks_at; /* at this rate; looks_at: the event of this epoch, which may come before */
    double bytes_left, rate, rate_cap;
    double fair, was; /* the rate that the solution finds; what it was before the flow was opened */
    const struct link_weight *weights;
    int n_weights;
    struct net_listener listener;
};

struct net_crossing {
    int flow;
    double weight;
};

struct net_link {
    uint32_t seen;                  /* listed in net.near of the filling of this number */
    bool stale;                     /* level must be found anew */
    double level;                   /* to which its flows without a rate can rise */
    VEC(struct net_crossing) flows; /* that cross it now, ascending */
};

struct net {
    struct engine *engine;
    uint32_t end_kind, solve_kind;
    bool solve_pending;
    uint32_t solution, n_fills; /* numbers of the last ones */
    VEC(double) capacity;       /* B/s */
    VEC(double) carried;        /* bytes that crossed each link so far */
    VEC(struct net_link) links;
    VEC(struct net_flow) flows;
    VEC(int) changed; /* flows whose rates the next solution must find */
    VEC(int) open;    /* flows whose rates are being found */
    VEC(int) near;    /* their links */
    VEC(int) solved;  /* flows of the last solution */
};

void net_init(struct net *net, struct engine *engine);
void net_release(struct net *net);

/* A link of 0 B/s has failed: no flow may cross it. */
int net_add_link(struct net *net, double capacity_Bps);
/* Returns the id of a new flow, which net_start starts. It can be started again when it has ended.
 * Flows are solved in the order of their ids, so that results do not depend on the order in which
 * they start. */
int net_add_flow(struct net *net);

/* From now on. Flows on the link are solved again. When it fails, they must be rerouted before the
 * next event. */
void net_set_capacity(struct net *net, int link, double capacity_Bps);

/* The flow goes on over other links with the bytes that it has left. weights as for net_start. */
void net_reroute(struct net *net, int id, const struct link_weight *weights, int n_weights);

/* Start a flow of bytes > 0 that is not under way. weights is borrowed until its end. */
void net_start(struct net *net, int id, double bytes, double rate_cap_Bps,
    const struct link_weight *weights, int n_weights, struct net_listener listener);

/* Bytes that have crossed a link until now. */
double net_carried(const struct net *net, int link);

#endif
