/* A trace of a real run beside what the model predicts for it: the step, its kernels class by
 * class, its collectives one by one, and where the two differ most, in words. */
#ifndef FLOPCAST_FOREIGN_TRACE_CHECK_H
#define FLOPCAST_FOREIGN_TRACE_CHECK_H

#include "foreign/trace_sum.h"
#include "scenario/scenario.h"

/* Collectives that are the same on both sides; NULL: only on the other. */
struct trace_pair {
    const struct trace_group *measured, *simulated;
};

/* One difference. Parts of the step add up to its own; the others lie in them, or are hidden:
 * kernels of a class, collectives of a kind. */
struct trace_difference {
    const char *text; /* a sentence, in the arena */
    double by_s;      /* measured - simulated */
    bool part;
};

struct trace_check {
    struct trace trace;
    struct trace_sum measured;
    VEC(struct trace_pair)
    pairs;         /* in the order of measured.groups, then what only the simulation has */
    bool compared; /* all below is set */
    struct scenario_set set;
    struct scenario_result result;
    struct trace simulation;
    struct trace_sum simulated;
    const char *verdict; /* of the step, in a sentence or two */
    VEC(struct trace_difference)
    differences; /* parts, then the others, the largest first; none below 0.1 % of the step */
    struct arena arena;
};

/* The measured side. device, steps: as trace_load(). Free with trace_check_free(), also after an
 * error. */
enum status trace_check_load(struct trace_check *out, const char *file, int64_t device,
    const char *steps, struct diag *diag);

/* Simulates the one point of check->set, which the caller loads, and compares. The rank is the
 * trace's, where the job has it. What speaks against the scenario being that of the trace (another
 * GPU, another number of ranks) is warned of. Out of memory is an error here: there is no step to
 * compare with. */
enum status trace_check_simulate(struct trace_check *check, const char *file, struct diag *diag);

void trace_check_free(struct trace_check *check);

/* What a step loses most by, of a trace alone. */
const char *trace_check_loss(const struct trace_sum *sum, struct arena *arena);

/* The simulated run, and beside it both sums and the measured step of median length, for `flopcast
 * plot timeline`. compared is true. */
enum status trace_check_store(
    const struct trace_check *check, const char *file, struct store *store, struct diag *diag);

#endif
