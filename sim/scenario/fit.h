/* Whether a job fits on its GPUs, as `flopcast run` would find, and the largest micro-batch that does.
 *
 * The simulated allocator decides (exec/hbm.h); the closed form of strategy/footprint_fit.h only says where to begin.
 * A run without noise, in which one rank stands for all, is enough unless a cudaMalloc fails in it: then ranks differ,
 * and the run with the point's own noise decides (exec/exec.h says why).
 *
 * Where that would take long (hundreds of GPUs, tens of 10^9 parameters), the search is content with the largest
 * micro-batch that needs no second cudaMalloc, if there is one.
 *
 * By fragmentation a smaller micro-batch can fail where a larger one fits. So the search looks a few micro-batches
 * beyond the border that it finds (as long as what they need would fit without gaps); what lies still farther is
 * ignored: what it answers fits, and a larger one may fit too. */
#ifndef FLOPCAST_SCENARIO_FIT_H
#define FLOPCAST_SCENARIO_FIT_H

#include "scenario/scenario.h"

/* A point of no file: defaults with this strategy, and noise as the cluster has it. STATUS_INPUT: there can be no
 * such job (GPUs that leave a node partly used, offload to a node of unknown host memory ...); diag says why. */
enum status fit_point(struct scenario_point *out, const struct hw *hw, const struct model *model,
    const struct strategy_options *strategy, int64_t gpus, struct diag *diag);

/* FIT_RETRIES: it fits, but without noise a cudaMalloc fails and is tried again, which takes time. FIT_FRAGMENTED: out
 * of memory, though all that is needed at one time would fit. FIT_OOM: out of memory, and so is what needs more. */
enum fit_verdict { FIT_OK, FIT_RETRIES, FIT_FRAGMENTED, FIT_OOM };
static inline bool fit_fits(enum fit_verdict verdict)
{
    return verdict <= FIT_RETRIES;
}
enum fit_verdict fit_verdict(const struct scenario_point *point);

struct fit_search {
    struct scenario_point point; /* its micro-batch does not matter */
    int64_t guess;               /* where the search begins */
    int64_t most;                /* where it ends */
    int64_t micro_batch;         /* found: the largest that fits; 0: none does */
    bool retries;                /* found: it is FIT_RETRIES */
};

/* All of them, on all cores. */
void fit_largest_batches(struct fit_search *searches, int n);

#endif
