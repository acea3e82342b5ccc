/* A trace summed up: the mean step, class by class and collective by collective.
 *
 * Times of classes and collectives are sums over the activities of the steps, wherever they run.
 * All others are unions of intervals between the beginning of the first step and the end of the
 * last, and add up to the step: compute, where any kernel runs, or a copy on the GPU; and where
 * none does, by what the compute stream waits for (the busiest with kernels), as exec/ has it:
 * - exposed: its next kernel is launched, or the host is blocked, and a collective runs (or waits
 * for other ranks, which one rank's trace does not tell apart), or a collective runs on it;
 * - host: its next kernel is not launched yet. Parts of it: the host is in its data loader; it goes
 *   on after it was blocked by the GPU. A trace without launches has none of it;
 * - copies: a copy from or to the host runs;
 * - idle: none of these, as between two small kernels, or as the launches are not known. */
#ifndef FLOPCAST_FOREIGN_TRACE_SUM_H
#define FLOPCAST_FOREIGN_TRACE_SUM_H

#include "foreign/trace.h"

/* Collectives that are alike: kind, size of the group, bytes. */
struct trace_group {
    int kind;      /* enum coll_kind, or TRACE_UNKNOWN_KIND */
    int ranks;     /* 0: not known */
    double bytes;  /* 0: not known */
    double count;  /* a step */
    double time_s; /* a step: of all of them */
};

struct trace_kernel { /* of one name */
    const char *name;
    int class;
    double count, time_s; /* a step */
};

/* All times and counts are of the mean step. */
struct trace_sum {
    int steps;
    double step_s, shortest_s, longest_s;
    double class_s[TRACE_CLASS_COUNT], class_count[TRACE_CLASS_COUNT];
    double compute_s, exposed_s, host_s, copies_s, idle_s;
    double hidden_s;                  /* part of compute_s: collectives beside kernels */
    double sync_s, loader_s;          /* parts of host_s */
    VEC(struct trace_group) groups;   /* the longest first */
    VEC(struct trace_kernel) kernels; /* without collectives; the longest first */
};

void trace_sum(struct trace_sum *out, const struct trace *trace);
void trace_sum_free(struct trace_sum *sum);

/* trace_idle.c: the unions, for trace_sum(); out->steps is set. */
void trace_sum_unions(struct trace_sum *out, const struct trace *trace);

/* What a bus bandwidth counts of a message, as nccl-tests does; 0: not known. */
double trace_bus_bytes(const struct trace_group *group);

#endif
