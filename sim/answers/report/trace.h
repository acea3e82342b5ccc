/* `flopcast run --trace`: the last measured step of one point as a Chrome trace, which
 * ui.perfetto.dev and chrome://tracing show, and which scripts for PyTorch's profiler read: the
 * same names, categories and arguments. `flopcast calibrate check trace` reads it, too, and finds
 * the step that was simulated.
 *
 * A process is a rank ("rank 9 / node 1 GPU 1 (V100-SXM2-32GB)"), a thread its host thread (2), the
 * threads that load its data (3) or one of its streams, by the numbers that PyTorch's traces
 * commonly have: 7 compute, 20 comm, 21 replicate, 22 unshard, 23 post; thread 1 holds the step on
 * the GPU (gpu_user_annotation "ProfilerStep#3").
 * - host thread: "ProfilerStep#3" (user_annotation) around a cpu_op for each op of the plan that
 * costs time, and in that a cuda_runtime "cudaLaunchKernel" where it issues a kernel or collective
 * ("cudaMemcpyAsync": a copy). What a launch alone takes is not modelled: both take the whole time
 * of the op. Where the host blocks: "cudaEventSynchronize", "cudaLaunchKernel" (blocked: launch
 * queue full), "cudaMalloc" (with its wait for the GPU where it is tried again);
 * - kernels: cat "kernel"; copies "gpu_memcpy"; args: op number of `run --plan`, phase, kind, and
 *   how long it would have taken without collectives beside it;
 * - collectives: cat "kernel", NCCL's kernel name, args as PyTorch writes them ("Collective name",
 *   "In msg nelems", "Out msg nelems", "Group size", "dtype", which is Byte: elements are bytes,
 *   "Process Group Name", "Process Group Ranks"), the plan's op, and how long the first part,
 *   waiting for the last rank, took;
 * - each wait, as Kineto writes it with enable_cuda_sync_events: a cuda_runtime "cudaEventRecord"
 *   where the event is recorded (of one of the step before, at its time there), and where a stream
 *   or the host waits for it, also where it has happened already, a cuda_sync "Stream Wait Event"
 *   or "Event Sync" with wait_on_stream and wait_on_cuda_event_record_corr_id;
 * - arrows: "ac2g" from a launch to what it launched (which has the same correlation), "wait" from
 *   the end of an op to what waited for it on another stream or, blocked, on the host;
 * - the counter "HBM (GiB)" with a series a category, of rank 0, which has the ledger; out of
 *   memory is an instant.
 *
 * Times are those of the run in microseconds, cut to nanoseconds so that events of a stream never
 * overlap. Ends in .gz: compressed. What is written to a file that fails is removed. */
#ifndef FLOPCAST_REPORT_TRACE_H
#define FLOPCAST_REPORT_TRACE_H

#include "scenario/scenario.h"

#include <stdio.h>

/* Whether the name ends in .json or .json.gz. */
bool trace_can_write(const char *path);

/* The ranks are those of point->options.exec.trace_ranks. */
enum status trace_write(const char *path, const struct scenario_point *point,
    const struct scenario_result *result, struct diag *diag);

#endif
