/* Collectives: what they cost and what they load, as NCCL would run them. Pure functions of kind, bytes, group and
 * hardware.
 *
 * Time of a collective that has the network for itself = latency_s + bus_bytes / rate, where rate is what the links
 * give (net/ shares them max-min fairly, bounded by max_rate_Bps). Source of the form: NCCL's own tuner, "latency x
 * steps + bytes / bandwidth" (NVIDIA/nccl src/graph/tuning.cc, restated). The cheapest algorithm is taken, as NCCL
 * does.
 *
 * Modelled: ring (all kinds) and double binary tree (all-reduce), protocol Simple. The latency of a step is that of the
 * link kind it crosses. Rings are laid so that each node is entered and left once per ring and the rings are rotated
 * over the node's NICs. Ignored for now: LL, LL128, NVLS, PAT, CollNet. */
#ifndef FLOPCAST_COLL_COLL_H
#define FLOPCAST_COLL_COLL_H

#include "hw/hw.h"

enum coll_kind { COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_REDUCE_SCATTER, COLL_BROADCAST, COLL_KIND_COUNT };
extern const char
    *const coll_kind_names[COLL_KIND_COUNT + 1]; /* "all_reduce", "all_gather", "reduce_scatter", "broadcast" */

enum coll_algorithm { COLL_RING, COLL_TREE, COLL_ALGORITHM_COUNT };
extern const char *const coll_algorithm_names[COLL_ALGORITHM_COUNT + 1]; /* "Ring", "Tree" */

enum coll_protocol { COLL_LL, COLL_LL128, COLL_SIMPLE, COLL_PROTOCOL_COUNT };
extern const char
    *const coll_protocol_names[COLL_PROTOCOL_COUNT + 1]; /* "LL", "LL128", "Simple", as NCCL_PROTO has them */

/* What to insist on, as NCCL_ALGO and NCCL_PROTO do; COLL_ANY leaves the choice to NCCL's rule. */
enum { COLL_ANY = -1 };
struct coll_force {
    int algorithm, protocol;
};
static const struct coll_force COLL_FREE = {COLL_ANY, COLL_ANY};

/* A regular group: ranks first, first + stride, ... (size of them). Every process group of data-parallel training is
 * one. */
struct coll_group {
    int first, stride, size;
};

/* What NCCL reaches of a GPU's NVLinks and of a node's NICs (behind an oversubscribed network: of its share of the
 * uplinks), B/s in one direction: the capacities of the links that flows share. */
double coll_gpu_Bps(const struct hw *hw);
double coll_node_Bps(const struct hw *hw);

/* How a group lies on the nodes. */
struct coll_shape {
    int ranks;    /* n */
    int nodes;    /* nodes touched */
    int per_node; /* ranks of the group on each of them */
};
struct coll_shape coll_shape(struct coll_group group, int gpus_per_node);

/* Share of a node's NICs that a group reaches: each GPU uses the NICs nearest to it, at least one. */
double coll_nic_share(struct coll_shape shape, const struct hw *hw);

struct coll_cost {
    enum coll_algorithm algorithm;
    enum coll_protocol protocol;
    double latency_s; /* until the last rank could have received its last chunk of an empty message */
    double bus_bytes; /* bytes each rank sends on (all-reduce 2 (n-1)/n S, all-gather and reduce-scatter (n-1)/n S) */
    double node_out_factor; /* bytes that leave (and enter) each node over its NICs, per bus byte; 0 inside one node */
    double max_rate_Bps;    /* of bus bytes: what NCCL's channels reach on these links at best */
    double hbm_bytes;       /* HBM traffic on each GPU, bytes: what compute kernels beside it lose */
    double sms;             /* SMs that its channels hold on each GPU */
};

/* bytes: of the whole message, S (all-gather: the gathered size; reduce-scatter: the size before scattering). A group
 * of one costs nothing: all zero. */
struct coll_cost coll_cost(
    enum coll_kind kind, enum coll_algorithm algorithm, double bytes, struct coll_shape shape, const struct hw *hw);

/* Of what force leaves open, the algorithm and protocol that are fastest alone on the network. A forced algorithm that
 * cannot do the kind on this shape: the ring is taken, as NCCL falls back. */
struct coll_cost coll_choose(
    enum coll_kind kind, double bytes, struct coll_shape shape, const struct hw *hw, struct coll_force force);

/* latency_s + bus_bytes / max_rate_Bps. */
double coll_alone_s(struct coll_cost cost);

#endif
