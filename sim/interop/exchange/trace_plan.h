/* A step of traces (foreign/trace.h) of one or several ranks of a job as a plan, on as many GPUs as
 * are wanted.
 *
 * Each traced rank is a program, which all ranks run that do as it does (trace_ranks.h): the
 * data-parallel copies. Of the stages of a pipeline each has to be traced, as they differ.
 *
 * Taken from a trace:
 * - each kernel and copy, on its stream, in the order in which the host launched them, with the
 * duration that it had and the moment that the GPU took to come to it (up to 15 us after what it
 * waited for; kernel_floor has that in it, too). Where it is known how long it takes alone
 * (flopcast's own traces say it; trace_alone.h), that. Collectives of the new job slow it as they
 * slow a GEMM of its shape (where record_shapes was on), or what the SMs limit (other GEMMs,
 * attention) or HBM (all others);
 * - the host: the time between two launches, without what it was blocked for: by an event, a
 *   stream, the device, a copy that returns when it is done, or a full launch queue: it is a
 *   thousand launches ahead of the GPU, and a call takes longer than such a call mostly does. All
 *   threads that launch are one, as one of them waits for the other. Without
 * launches (a profile of Nsight Systems) the time in which nothing ran is a kernel that does
 * nothing, as is that for which the compute stream stood without a reason that the trace shows;
 * - what a stream or the host waits for, by events (trace_wait). An event recorded in the step
 *   before is that step's. Where the trace does not say for what (enable_cuda_sync_events was off),
 *   by PyTorch's rules and by time: NCCL's stream waits for what the compute stream had been given
 *   at the call, if that had ended when the collective began, those that are before that for the
 *   step before; behind a cudaStreamWaitEvent outside of a collective a stream waits for the
 *   collectives that were launched before
 * it and had ended; what begins within 15 us behind the end of another stream's kernel, or 5 us
 * before it, later than its own stream and its launch let it, waited for it, or for its SMs; the
 * host went on when the last kernel launched before had ended. Waits that cost nothing in the trace
 * and are none of these are lost;
 * - collectives, with kind, bytes and group. They are NCCL's on this cluster, however long they
 *   took: the traced ranks of a group meet in them. Streams are what runs on them: the one with
 *   most kernels is compute, those on which collectives run longer than kernels are NCCL's. A
 *   collective on another stream (async_op=False, from PyTorch 2.8
 * on) is in the order of that stream, which goes on after it;
 * - sends and receives, with bytes and the other rank: the k-th send to a rank is the k-th receive
 * there, and each waits for the other. Several in one kernel (batch_isend_irecv) run beside one
 * another, and the stream goes on after all.
 *
 * More ranks, a multiple of those of the trace, are data parallelism: groups that reach over all
 * ranks of the trace (a size times a stride of the world's), or of a stage, grow, others (tensor
 * parallelism, several stages) stay, as do those named as fixed, and those whose description says
 * tensor parallelism (mesh_tp, TENSOR_MODEL_PARALLEL_GROUP). The work of a rank stays, so this is
 * weak scaling. Messages are whole (coll.h), so gathers and reductions of shards keep their bytes.
 * Kernels on a shard become shorter by as much as the groups grow, down to their floor: where a
 * growing group gathers or reduces and scatters, kernels of the optimizer, and kernels of other
 * streams than compute that a gather waits for or that wait for a reduce_scatter. Where texts are
 * given as sharded, the kernels whose names have one of them instead, as where all reduce all
 * gradients and each then updates a part (BF16_Optimizer of DeepSpeed). What the host does for each
 * rank (DeepSpeed's ZeRO-3 cuts gradients into slices in Python) is not known to grow.
 *
 * Another GPU: durations above the floor change by class, GEMM and attention by peak x efficiency
 * in BF16 (FP16 where one of the two lacks it) and what is sustained of it, copies from and to the
 * host by the link, all else by HBM. Kernels of class `other` count as HBM's.
 *
 * Refused: no step or several of them and none chosen; a collective without kind, size or group, a
 * message without size or other end, unless they are to take the time that they took; a group that
 * is not evenly apart, or is over a part of the stages; ranks that are not evenly apart; traces of
 * two jobs or steps; a stage without a trace, a collective or message that another traced rank does
 * not have. Ignored: memory; threads of the host that launch nothing; how ranks without a trace
 * differ from those with one. */
#ifndef FLOPCAST_EXCHANGE_TRACE_PLAN_H
#define FLOPCAST_EXCHANGE_TRACE_PLAN_H

#include "foreign/trace.h"
#include "plan/plan.h"

struct traced_rank {
    const struct trace *trace; /* trace->rank: in the job; -1: its place in the list */
    const char *file;          /* for messages */
};

struct trace_plan_options {
    int64_t step;  /* ProfilerStep#N; -1: the only one there is */
    int gpus;      /* 0: as many as the trace is of */
    bool recorded; /* collectives take the time that they took, whatever the cluster */
    const char *const *sharded,
        *const *fixed; /* texts in names of kernels; groups, by name or description */
    int n_sharded, n_fixed;
    const struct hw *hw;
    const struct hw_gpu *traced; /* that the trace is of; NULL: hw's */
};

struct trace_planned {
    struct plan plan;
    int ranks;          /* of the traced job */
    int traced, stages; /* of them have a trace; of a pipeline, else 1 */
    /* As long as a loop of this step takes: on the GPU, from the end of the kernels of the step
     * before to that of these kernels, or what the host takes without what it is blocked for, where
     * that is more; of the slowest trace. */
    double step_s;
    double idle_s; /* kernels of the plan that stand for idle time without a reason that is seen;
                      mean over traces */
    int64_t step;  /* its number; -1: it has none */
    int kernels, sharded;   /* in the step; of them on shards */
    int collectives, grown; /* in the step, with messages; of them over groups that grow */
    bool says_waits;        /* all do */
    /* In the arena. By program: its place among the ranks; by op of it: the place of what it does
     * among the trace's activities, -1: of none. */
    const int *rank_of_program;
    const int32_t *const *activities;
};

/* A plan that plan_check() takes; names are those of the traces. The plan is to be released also
 * after an error. */
enum status trace_plan(struct trace_planned *out, const struct traced_rank *ranks, int n,
    const struct trace_plan_options *options, struct arena *arena, struct diag *diag);

/* By what a kernel of this class is longer on a GPU than on another, without the floor; *error: its
 * relative standard error by those of the two files' numbers, or what hw/draw.h assumes of them. */
double trace_gpu_ratio(
    int class, const struct hw_gpu *from, const struct hw_gpu *to, double *error);

#endif
