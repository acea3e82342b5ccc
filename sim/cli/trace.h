/* `flopcast run --trace`: the last measured step of one point as a Chrome trace, which ui.perfetto.dev and
 * chrome://tracing show, and which scripts for PyTorch's profiler read: the same names, categories and arguments.
 *
 * A process is a rank ("rank 9 / node 1 GPU 1 (V100-SXM2-32GB)"), a thread one of its streams, by the numbers that
 * PyTorch's traces commonly have: 7 compute, 20 comm, 21 replicate, 22 unshard, 23 post, 24 loader; thread 1 holds the
 * step.
 * - kernels: cat "kernel"; copies on the device "gpu_memcpy"; args: op number of --explain, phase, kind, and how long
 *   it would have taken without collectives beside it;
 * - collectives: cat "kernel", NCCL's kernel name, args as PyTorch writes them ("Collective name", "In msg nelems",
 *   "Out msg nelems", "Group size", "dtype", which is Byte: elements are bytes), the plan's op, and how long the first
 *   part, waiting for the last rank, took;
 * - the counter "HBM (GiB)" with a series a category, of rank 0, which has the ledger; out of memory is an instant.
 *
 * Times are those of the run in microseconds, cut to nanoseconds so that events of a thread never overlap. Ends in .gz:
 * compressed. What is written to a file that fails is removed. */
#ifndef FLOPCAST_CLI_TRACE_H
#define FLOPCAST_CLI_TRACE_H

#include "scenario/scenario.h"

/* Whether the name ends in .json or .json.gz. */
bool trace_can_write(const char *path);

/* The ranks are those of point->options.exec.trace_ranks. */
enum status trace_write(
    const char *path, const struct scenario_point *point, const struct scenario_result *result, struct diag *diag);

#endif
