/* Why a job loses throughput as it grows: the same two runs, of a small and a large cluster, with
 * one cause after the other taken away from both.
 *
 *   allocator    memory is not followed: no cudaMalloc takes time, none is tried again
 *   stragglers   all noise is off and no GPU is slow (cluster.slow_gpus): GPUs are alike, kernels,
 *                hosts and networks do not vary; packed sequences all have the mean of their
 *                documents
 *   latency      collectives cost their bytes only, no hops
 *   bandwidth    NICs and switches carry whatever NVLink can; what is left of a collective is that
 *                of a node
 *   contention   kernels run beside a collective as if alone
 *   host         issuing costs the host nothing, batches lie ready
 *   bubble       of jobs with a pipeline: stages do not wait for one another. No run can be without
 *                that, so it is worked out: TFLOPS of the last run x step / (step - its bubble,
 *                exec_breakdown.bubble_s)
 *
 * Algorithms and protocols of collectives stay those that NCCL chooses on the hardware as it is.
 *
 * L(S) is the loss with the causes S away: TFLOPS per GPU of the small cluster less that of the
 * large one. Causes are taken away in this order, and stay away; a cause's part is what L falls by
 * when it goes, and what is left at the end is called the rest (below 0 where a larger cluster
 * saves work: a smaller share of the optimizer step). So the parts add up to the loss, by
 * construction. Another order gives other parts where causes hide one another (a straggler hides
 * latency); this one takes first the allocator, whose stalls come and go with whatever else
 * changes, and then what is outside of the job's control. */
#ifndef FLOPCAST_STUDY_EXPLAIN_H
#define FLOPCAST_STUDY_EXPLAIN_H

#include "scenario/causes.h"
#include "scenario/scenario.h"

void scenario_remove_cause(struct scenario_point *point, enum scenario_cause cause);

struct scenario_waterfall {
    double small[CAUSE_COUNT + 1],
        large[CAUSE_COUNT + 1];     /* TFLOPS per GPU with the first i causes away */
    double part[CAUSE_COUNT], rest; /* TFLOPS per GPU; their sum is small[0] - large[0] */
    bool stages;                    /* one of the jobs has a pipeline; else there is no bubble */
};

/* Whether the waterfall has a row for a cause (CAUSE_REST too). */
static inline bool scenario_waterfall_has(const struct scenario_waterfall *waterfall, int cause)
{
    return cause != CAUSE_BUBBLE || waterfall->stages;
}

/* Fourteen runs, on all cores. STATUS_INPUT when one of the two runs out of memory: there is
 * nothing to compare. */
enum status scenario_explain(struct scenario_waterfall *out, const struct scenario_point *small,
    const struct scenario_point *large, struct diag *diag);

/* For the sentence about it. */
struct scenario_loss scenario_waterfall_loss(const struct scenario_waterfall *waterfall,
    const struct scenario_point *small, const struct scenario_point *large);

/* What the compute stream of a rank did during the last measured step, by op; numbers in names are
 * '#'. */
struct scenario_path_item {
    const char *name; /* of the kernel; of what it waited for, when waiting */
    bool waiting; /* the stream was idle until this had ended, or until the host had issued the next
                   * kernel, which may itself have been blocked until a message had come: then that
                   * is waited for first */
    double seconds, beside_s; /* beside_s: part of seconds that collectives beside it cost */
    int times;
};
struct scenario_path {
    VEC(struct scenario_path_item) items; /* longest first; free with vec_free */
    double step_s;
};
/* From the spans of one rank (exec_options.trace_ranks) in a result. Names live in arena. */
void scenario_path(
    struct scenario_path *out, const struct exec_result *result, struct arena *arena);

#endif
