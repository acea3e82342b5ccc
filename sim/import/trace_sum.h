/* A trace summed up: the mean step, class by class and collective by collective.
 *
 * Times of classes and collectives are sums over the activities of the steps, wherever they run. Exposed, hidden, idle
 * time are unions of intervals between the beginning of the first step and the end of the last: compute, where any
 * kernel runs, or a copy on the GPU; exposed, where a collective runs and none of these; copies, where only a copy from
 * or to the host runs; idle, where nothing does. The four add up to the step. */
#ifndef FLOPCAST_IMPORT_TRACE_SUM_H
#define FLOPCAST_IMPORT_TRACE_SUM_H

#include "import/trace.h"

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
    double compute_s, exposed_s, copies_s, idle_s, hidden_s; /* hidden: collectives beside kernels */
    VEC(struct trace_group) groups;                          /* the longest first */
    VEC(struct trace_kernel) kernels;                        /* without collectives; the longest first */
};

void trace_sum(struct trace_sum *out, const struct trace *trace);
void trace_sum_free(struct trace_sum *sum);

/* What a bus bandwidth counts of a message, as nccl-tests does; 0: not known. */
double trace_bus_bytes(const struct trace_group *group);

#endif
