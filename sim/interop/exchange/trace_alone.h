/* How long kernels take without collectives beside them, where a trace does not say it (only
 * flopcast's own do): a plan slows them again, so what collectives did to them in the trace has to
 * come off first.
 *
 * The traced job is simulated on as many GPUs, by which each kernel is slowed by a ratio; it takes
 * the measured time over that ratio alone. Then kernels are shorter and meet other collectives:
 * again, until the step is what it was, to 1e-4, ten times at most. Assumed: the cluster that the
 * job was traced on is like the one it is to run on, apart from the GPU where that is said. */
#ifndef FLOPCAST_EXCHANGE_TRACE_ALONE_H
#define FLOPCAST_EXCHANGE_TRACE_ALONE_H

#include "exchange/trace_plan.h"

/* Sets `alone` of the step's kernels in traces, which ranks are of, one by one. Nothing is done
 * where options->recorded. */
enum status trace_find_alone(struct trace *traces, const struct traced_rank *ranks, int n,
    const struct trace_plan_options *options, struct diag *diag);

#endif
