/* One isolated collective on a cluster, with nothing else on its links, or one of several groups
 * that all begin the same one at once: NCCL's choice and cost (coll/), at the rate that the links
 * of fabric/fabric.h carry, as exec_run has it for a collective beside nothing else. It matters
 * where links differ: a network of switches, degraded links; elsewhere the rate of coll/ is theirs.
 *
 * The choice of algorithm does not see the switches, as NCCL's does not. Ignored: capacities that
 * change during a run; the links are those of its start. */
#ifndef FLOPCAST_FABRIC_ISOLATED_H
#define FLOPCAST_FABRIC_ISOLATED_H

#include "base/arena.h"
#include "coll/coll.h"

struct isolated;

/* The fewest nodes that hold these ranks. */
int isolated_fewest_nodes(const struct hw *hw, int ranks);

/* ranks on nodes, as many on each, on GPUs spread evenly over a node's (on one node: its first
 * GPUs). degraded: as cluster.degraded_links (may be NULL); its errors are reported at `at`. NULL:
 * the cluster cannot hold such a group, or links are degraded that it does not have. Everything
 * lives in the arena, hw is borrowed. */
struct isolated *isolated_new(const struct hw *hw, int ranks, int nodes, const char *degraded,
    struct source_pos at, struct arena *arena, struct diag *diag);

/* n groups, alike in shape, among the first `ranks` GPUs: each runs the same collective at the same
 * time, as the process groups of an axis of parallelism do. max_rate_Bps is then that of the
 * slowest under max-min fair shares: flows that ask for equal rates are stopped first by the link
 * whose capacity over their summed weights is least. */
struct isolated *isolated_groups(const struct hw *hw, const struct coll_group *groups, int n,
    int ranks, const char *degraded, struct source_pos at, struct arena *arena, struct diag *diag);

/* coll_choose() for the group; max_rate_Bps is what its links carry. link (NULL, or room for
 * ISOLATED_LINK): where links differ and one lets through less than NCCL would send, that one, the
 * first of those alike ("leaf0.up3"); else "". */
enum { ISOLATED_LINK = 64 };
struct coll_cost isolated_cost(struct isolated *isolated, enum coll_kind kind, double bytes,
    struct coll_force force, char *link);

#endif
