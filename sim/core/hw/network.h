/* The network between nodes: a fat tree of switches (leaf-spine is one of two levels), or a
 * dragonfly.
 *
 * Its shape is SimGrid's "levels; down; up; parallel" (an extended generalised fat tree), with the
 * NICs as leaves of the tree: leaf-spine is "2; leaf_ports, leaves; 1, spines; 1, spine_cables",
 * three levels are "3; leaf_ports, pod_leaves, pods; 1, spines, cores; 1, spine_cables,
 * core_cables". leaf_ports over spines x spine_cables is the oversubscription of a leaf. Leaves and
 * pods are as many as the job's nodes need.
 *
 * In a dragonfly a leaf is a router with its NICs and a pod is a group of pod_leaves routers:
 * local_cables join each two routers of a group, global_cables leave each router for other groups.
 * Packets spread over all of them (adaptive routing without loss), so a router's local cables and a
 * group's global ones are each a pool.
 *
 * Wiring: plain puts the NICs of a node on one leaf, then those of the next node; rail puts NIC i
 * of leaf_ports nodes on one leaf, so that a block of nodes has as many leaves as a node has NICs.
 * Traffic between nodes stays on its rail (NIC i to NIC i), which is what NCCL does by passing data
 * to the right GPU over NVLink first.
 *
 * Without such a section the network is pooled: all NICs of a node are one link, divided by the
 * cluster's oversubscription. Ignored: latency by the number of switches (nccl_net_latency is a
 * mean over them), losses, flow control. */
#ifndef FLOPCAST_HW_NETWORK_H
#define FLOPCAST_HW_NETWORK_H

#include "base/quantity.h"

#include <stdint.h>

enum hw_network_kind { HW_POOLED, HW_FAT_TREE, HW_DRAGONFLY };
extern const char *const hw_network_names[]; /* "pooled", "fat_tree", "dragonfly", NULL */

enum hw_wiring { HW_PLAIN, HW_RAIL };
extern const char *const hw_wiring_names[]; /* "plain", "rail", NULL */

/* Adaptive: every packet takes the emptiest cable, so parallel cables are one link. ECMP: a hash of
 * the connection, with the seed, picks the cable, and connections that meet on one share it. */
enum hw_routing { HW_ADAPTIVE, HW_ECMP };
extern const char *const hw_routing_names[]; /* "adaptive", "ecmp", NULL */

/* Packed: the job's nodes fill one leaf (or block of rails) after the other. Scattered: round-robin
 * over them, the worst case of a scheduler that knows no topology. */
enum hw_placement { HW_PACKED, HW_SCATTERED };
extern const char *const hw_placement_names[]; /* "packed", "scattered", NULL */

struct hw_network {
    int kind, wiring, routing, placement; /* enums above */
    int64_t ecmp_seed;
    struct quantity leaf_ports;      /* NICs on a leaf */
    struct quantity spines;          /* that a leaf reaches */
    struct quantity spine_cables;    /* from a leaf to each of them; 1 when unset */
    struct quantity pod_leaves;      /* leaves that share their spines; unset: all do */
    struct quantity cores;           /* that a spine reaches */
    struct quantity core_cables;     /* from a spine to each of them; 1 when unset */
    struct quantity local_cables;    /* dragonfly: between two routers of a group; 1 when unset */
    struct quantity global_cables;   /* dragonfly: from a router to other groups */
    struct quantity cable_bandwidth; /* B/s in one direction; a NIC's when unset */
    struct quantity connections;     /* ECMP: hashed apart, from a NIC to its peer; NCCL's channels
                                        across nodes / NICs when unset */
};

/* Where NIC nic of the job's node is plugged in; nodes is how many the job has. */
int hw_network_leaf(
    const struct hw_network *network, int node, int nic, int nodes, int nics_per_node);
int hw_network_pod(const struct hw_network *network, int leaf);

/* Cables up from (and as many down to) one leaf, and one pod (0: no level above). */
int hw_network_leaf_cables(const struct hw_network *network);
int hw_network_pod_cables(const struct hw_network *network);

#endif
