/* Whether a job fits on its GPUs, and the largest micro-batch that does.
 *
 * Two answers. The peak of its plan (exec/peak.h, milliseconds) is what the tensors need at one
 * time: a job beyond it certainly does not fit. The verdict is that of the simulated allocator
 * (exec/hbm.h), as `flopcast run` finds it: fragmentation is in it. A run without noise, in which
 * one rank stands for all, is enough unless a cudaMalloc fails in it: then ranks differ, and the
 * run with the point's own noise decides (exec/exec.h says why).
 *
 * The search begins at the largest micro-batch by the peak and goes down. Where noise would take
 * long (hundreds of GPUs, tens of 10^9 parameters), it is content with the largest micro-batch that
 * needs no second cudaMalloc, if there is one.
 *
 * By fragmentation a smaller micro-batch can fail where a larger one fits. So the search looks a
 * few micro-batches beyond the border that it finds (as long as what they need would fit without
 * gaps); what lies still farther is ignored: what it answers fits, and a larger one may fit too. */
#ifndef FLOPCAST_STUDY_FIT_H
#define FLOPCAST_STUDY_FIT_H

#include "exec/peak.h"
#include "scenario/scenario.h"

/* The peak of the point's plan; STATUS_INPUT: it cannot be compiled, diag says why. */
enum status fit_peak(struct exec_peak *out, const struct scenario_point *point, struct diag *diag);

/* What a rank of each stage of a pipeline holds and needs at its fullest moment; of one stage where
 * there is none. */
struct fit_stage {
    int64_t params, blocks;
    struct exec_peak peak;
};
/* *stages in arena, *n of them. STATUS_INPUT as in fit_peak(). */
enum status fit_stages(struct fit_stage **stages, int *n, const struct scenario_point *point,
    struct arena *arena, struct diag *diag);

/* The largest micro-batch up to `most` whose peak is within the GPU's capacity; 0: not even one
 * sequence. */
int64_t fit_largest_by_peak(const struct scenario_point *point, int64_t most);

/* FIT_RETRIES: it fits, but without noise a cudaMalloc fails and is tried again, which takes time.
 * FIT_FRAGMENTED: out of memory, though all that is needed at one time would fit. FIT_OOM: out of
 * memory, and so is what needs more. */
enum fit_verdict { FIT_OK, FIT_RETRIES, FIT_FRAGMENTED, FIT_OOM };
static inline bool fit_fits(enum fit_verdict verdict)
{
    return verdict <= FIT_RETRIES;
}
enum fit_verdict fit_verdict(const struct scenario_point *point);

struct fit_search {
    struct scenario_point point; /* its micro-batch does not matter */
    int64_t most;                /* where the search ends */
    int64_t micro_batch;         /* found: the largest that fits; 0: none does */
    bool retries;                /* found: it is FIT_RETRIES */
};

/* All of them, on all cores. progress: called after each, by one thread at a time; NULL: by none.
 */
void fit_largest_batches(
    struct fit_search *searches, int n, scenario_progress progress, void *self);

#endif
