/* Private to coll/: what one algorithm adds to a cost, one file each. */
#ifndef FLOPCAST_COLL_ALGORITHM_H
#define FLOPCAST_COLL_ALGORITHM_H

#include "coll/coll.h"

struct coll_query {
    enum coll_kind kind;
    enum coll_protocol protocol;
    double bytes;
    struct coll_shape shape; /* of two ranks or more */
    const struct hw *hw;
};

/* Fill a cost whose algorithm, protocol, bus_bytes, sms and, as for a ring, both factors and
 * hbm_bytes are set. The caller has checked that the protocol is available. false: the algorithm
 * cannot do it. */
bool coll_ring(struct coll_cost *cost, const struct coll_query *query);
bool coll_tree(struct coll_cost *cost, const struct coll_query *query);
bool coll_nvls(struct coll_cost *cost, const struct coll_query *query);
bool coll_nvls_tree(struct coll_cost *cost, const struct coll_query *query);
bool coll_pat(struct coll_cost *cost, const struct coll_query *query);
bool coll_collnet_direct(struct coll_cost *cost, const struct coll_query *query);
bool coll_collnet_chain(struct coll_cost *cost, const struct coll_query *query);
bool coll_p2p(struct coll_cost *cost, const struct coll_query *query);
/* By copy engines, where NCCL's policy, the kind and the group let it; sets all of *cost. */
bool coll_copy_engine(struct coll_cost *cost, const struct coll_query *query);
bool coll_hierarchical(struct coll_cost *cost, const struct coll_query *query);
bool coll_deepep(struct coll_cost *cost, const struct coll_query *query);

/* B/s of bus bytes, at most, and what says so. */
struct coll_rate {
    double Bps;
    enum coll_bound bound;
};

/* Rate of the links inside a node: NVLink (times share), or the channels across nodes. Rate of
 * those between nodes: the NICs (times share). HUGE_VAL: no bytes go there. */
struct coll_rate coll_intra_rate(
    const struct coll_cost *cost, const struct coll_query *query, double share);
struct coll_rate coll_inter_rate(
    const struct coll_cost *cost, const struct coll_query *query, double share);

/* The lower of two rates, the first if they are equal; lowers the cost's rate to Bps if that is
 * lower. */
struct coll_rate coll_slower(struct coll_rate a, struct coll_rate b);
void coll_bound_rate(struct coll_cost *cost, double Bps, enum coll_bound bound);

/* Sets the cost's rate to the lower of both; LL's is bound by the protocol. */
void coll_set_rate(struct coll_cost *cost, const struct coll_query *query, double nvlink_share,
    double network_share);

/* Share of a GPU's links in its node that serve what it sends to this many others of it. None: all.
 */
double coll_peers_share(int peers, const struct hw *hw);

/* What NCCL reaches of an NVLink bridge, B/s. */
double coll_bridge_Bps(const struct hw *hw);

/* bus_bytes / max_rate_Bps. */
double coll_bytes_s(const struct coll_cost *cost);

/* Seconds of an intra-node and an inter-node hop of a ring or tree. */
double coll_intra_hop_s(const struct coll_query *query, enum coll_algorithm like);
double coll_inter_hop_s(const struct coll_query *query, enum coll_algorithm like);
double coll_base_s(const struct coll_query *query, enum coll_algorithm like);

/* From when a slice of Simple is sent to another node until its place in the buffer is free again,
 * s. */
double coll_credit_s(const struct hw *hw);

/* What a proxy waits for before it sends, s: a slot of every channel (nccl_slot_bytes), or the
 * whole message if that is less. inter_s: the time of the message's bytes between two nodes. */
double coll_slot_s(const struct coll_query *query, double inter_s);

/* floor(log2 nodes) */
int coll_levels(int nodes);

/* NVLS, NVLSTree: factors and HBM of a GPU whose message the switch adds up; false: not on this
 * shape and hardware. */
bool coll_over_switch(struct coll_cost *cost, const struct coll_query *query);

/* The steps in which a message passes through the switch (nvls.c). */
struct coll_switch {
    double step_bytes; /* of the message */
    double step_s;     /* how long the switch is busy with it */
};
struct coll_switch coll_switch_steps(const struct coll_query *query);

#endif
