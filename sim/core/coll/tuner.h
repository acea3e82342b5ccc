/* Private to coll/: what NCCL's tuner thinks that a collective takes, by which it chooses algorithm
 * and protocol. It differs from what is predicted (coll_isolated_s()): NCCL counts with constants
 * of its version, for all machines alike.
 *
 * Modelled: NCCL 2.10 to 2.30, one latency and one bandwidth for each algorithm and protocol, with
 * the graphs that its search finds; constants and rules as they changed at 2.18, 2.20, 2.23, 2.26
 * and 2.28; Ring, Tree (all_reduce), NVLS and NVLSTree (all_reduce), PAT. Checked against what logs
 * say was chosen, and against estimates that logs print (tests/coll/test_tuner.c,
 * results/measured/nccl_logs.csv). Ignored: CPUs of AMD (other bounds of LL across nodes, twice the
 * cost of posting), GPUs of several kinds, fewer channels for small messages (before 2.22), the
 * versions between the tags that were read. Not known, and then chosen by isolated time: NCCL
 * before 2.10, clusters with CollNet or whose switches could serve NVLSTree without a number for it
 * (racks), sends and receives (one way only).
 *
 * Source: NVIDIA/nccl src/graph/tuning.cc and src/include/graph.h at 2.10.3, 2.14.3, 2.18.5,
 * 2.20.5, 2.23.4, 2.26.6, 2.27.7, 2.28.9 and 2.30.7, restated. NVLSTree of 2.20 to 2.27 on three
 * nodes and more counts half of the NICs: recalled; that NCCL 2.26 leaves it for a ring at 256 MiB
 * on 4 nodes and at 1 GiB on 8 is seen in tables (NVIDIA/nccl-tests#309). */
#ifndef FLOPCAST_COLL_TUNER_H
#define FLOPCAST_COLL_TUNER_H

#include "coll/algorithm.h"

/* false: it does not know; then it knows none of the algorithms of this collective. */
bool nccl_estimate(double *out_s, const struct coll_query *query, enum coll_algorithm algorithm);

/* aws-ofi-nccl's tuner, which overrules NCCL's own on three nodes or more (p5, p5en, p6; 8 ranks a
 * node): regions of ranks and bytes. false: none that covers this. And the latency of a hop that
 * the plugin states to NCCL, s. */
bool nccl_aws_choice(struct coll_force *out, const struct coll_query *query);
double nccl_plugin_latency_s(const struct hw *hw);

#endif
