/* Slow nodes as a lottery: of clusters with N hosts (hw_hosts()) 1 - (1 - straggler_share)^N have
 * one at least. A point is the mean over these clusters, smooth in N: its step without slow hosts,
 * and the step with them, by their probabilities.
 *
 * The step with them is that of clusters with as many as have some in the mean, N straggler_share
 * over their probability, between the runs with the next lower and the next higher number. These
 * runs are made by FOLD_SLOWEST. What the step is longer by, ranks of other hosts wait for in
 * collectives of data parallelism, and those of slow hosts compute. Digest, memory and timeline are
 * those of the run without slow hosts.
 *
 * There is none where nothing is slow or GPUs are alike (noise_options), and with drawn_speeds: a
 * single cluster has its own luck. Samples draw how many hosts are slow (sample.h). */
#ifndef FLOPCAST_SCENARIO_LOTTERY_H
#define FLOPCAST_SCENARIO_LOTTERY_H

#include "scenario/scenario.h"

/* Of how many clusters in 1 some hosts are slow; 0: there is no lottery. */
double lottery_some(const struct noise_options *noise, int hosts);
/* How many of the hosts are slow in the cluster that stands at u of all, 0 <= u < 1, in the order
 * of that number. */
int64_t lottery_at(double u, double share, int hosts);
/* Runs the plan: out->exec and out->slow become what is said above. The runs are made by as many
 * threads as there are; the result's arrays live in the arena. */
void lottery_simulate(struct scenario_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena);

#endif
