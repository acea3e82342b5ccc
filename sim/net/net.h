/* Flows in flight: bytes that travel over links at max-min fair rates, on the engine's clock.
 *
 * A flow is one collective's traffic: it loads many links at once, each with its own weight (bytes over the link per
 * byte of the flow). When a flow starts or ends, the rates of those that it can touch (the connected component of flows
 * and links around it) are solved again and their ends moved; the others stand. Several starts and ends at one instant
 * are settled by one solution. Ignored: packets, buffers, congestion beyond fair sharing. */
#ifndef FLOPCAST_NET_NET_H
#define FLOPCAST_NET_NET_H

#include "engine/engine.h"
#include "net/maxmin.h"

/* Who is told that a flow has ended: an event of this kind and target, arg 0. */
struct net_listener {
    uint32_t kind, target;
};

struct net_flow {
    bool active, changed; /* changed: listed in net.changed */
    uint32_t epoch, seen; /* seen: in the solution of this number */
    ps_t settled_at;      /* bytes_left and what links have carried are those of this time */
    double bytes_left, rate, bound;
    const struct maxmin_use *uses;
    int n_uses;
    struct net_listener listener;
};

struct net_link {
    uint32_t seen;
    VEC(int) flows; /* slots that are crossing it, in no order */
};

struct net {
    struct engine *engine;
    uint32_t end_kind, solve_kind;
    bool solve_pending;
    uint32_t solution; /* number of the last one */
    int n_active;
    VEC(double) capacity; /* B/s */
    VEC(double) carried;  /* bytes that crossed each link so far */
    VEC(struct net_link) links;
    VEC(struct net_flow) flows;
    VEC(int) changed;   /* slots whose rates the next solution must find */
    VEC(int) component; /* slots, ascending */
    VEC(int) solved;    /* slots of the last solution, ascending */
    VEC(struct maxmin_flow) problem;
    VEC(double) rates;
    VEC(double) scratch;
};

void net_init(struct net *net, struct engine *engine);
void net_release(struct net *net);

/* A link of 0 B/s has failed: no flow may cross it. */
int net_add_link(struct net *net, double capacity_Bps);
/* A slot for flows; one flow at a time uses it. Slots keep the order of solutions, hence results, independent of
 * timing. */
int net_add_slot(struct net *net);

/* From now on. Flows on the link are solved anew; when it fails they must be moved before the next event. */
void net_set_capacity(struct net *net, int link, double capacity_Bps);

/* The flow in a slot goes on over other links, with the bytes that it has left. uses as for net_start. */
void net_reroute(struct net *net, int slot, const struct maxmin_use *uses, int n_uses);

/* Start bytes > 0 in a free slot. uses is borrowed until the end. */
void net_start(struct net *net, int slot, double bytes, double bound_Bps, const struct maxmin_use *uses, int n_uses,
    struct net_listener listener);

/* Bytes that have crossed a link until now. */
double net_carried(struct net *net, int link);

#endif
