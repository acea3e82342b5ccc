/* Private to trace.c and trace_host.c: the writer of a Chrome trace. */
#ifndef FLOPCAST_CLI_TRACE_EVENTS_H
#define FLOPCAST_CLI_TRACE_EVENTS_H

#include "cli/trace.h"

#include "plan/plan.h"

#include <stdio.h>

enum { STEP_THREAD = 1, HOST_THREAD = 2, LOADER_THREAD = 3 };

struct trace_writer {
    FILE *out;
    const struct scenario_point *point;
    const struct exec_result *exec;
    bool first;  /* no event yet */
    int threads; /* so far */
    const struct plan *plan;
    int n_ops; /* of it */
    /* Of the rank that is being written: */
    const struct exec_span *spans;
    const struct exec_host_span *host_spans;
    int n_spans, n_host_spans;
    int *span_of_op;           /* -1: none */
    int64_t first_correlation; /* that of op 0; after those of all ops come those of their cudaEventRecords */
    int64_t next_arrow;        /* its id: beyond those of launches */
};

/* The thread of a queue. */
int trace_thread_of(int queue);

/* A time in microseconds, cut to nanoseconds. */
void trace_time(FILE *out, ps_t time);

/* Everything of an event up to its arguments, whose object the caller ends. */
void trace_begin(struct trace_writer *w, char phase, const char *name, int pid, int tid);
void trace_slice(
    struct trace_writer *w, const char *category, const char *name, int pid, int tid, ps_t start, ps_t end);

/* What a launch and what it launches have in common. */
int64_t trace_correlation(const struct trace_writer *w, int32_t op);

/* What the op did on its stream; NULL: op is -1, or it is not in the trace. */
const struct exec_span *trace_span_of(const struct trace_writer *w, int32_t op);

/* What CUDA would do by cudaMemcpyAsync. */
bool trace_is_copy(const struct exec_span *span);

/* From the end of what was awaited, on thread `from`, to where the waiter goes on, at a time of thread `tid`. awaited
 * NULL: nothing. */
void trace_arrow(struct trace_writer *w, const struct exec_span *awaited, int tid, ps_t at, int rank, int from);

/* What waits for what, as Kineto has it with enable_cuda_sync_events: trace_sync.c. */
void trace_syncs(struct trace_writer *w, int rank);

/* The host thread, with arrows to what it launched. */
void trace_host(struct trace_writer *w, int rank, const char *step);

#endif
