/* The words for what takes a job's throughput: one table for tables, figures and sentences, so that
 * a cause is called alike wherever it is blamed.
 *
 * Two views of the same losses have them. The waterfall (study/explain.h) says why a large cluster
 * is slower than a small one, by taking causes away. A step's parts say where the time of one point
 * goes: kernels, and what each cause adds. There the time that collectives cost, as kernels that
 * run slower beside them and as waiting for them, is divided among stragglers, latency and bytes as
 * the time of the collectives themselves is: waiting for the last member, latency, moving bytes.
 * What bytes cost is one part of a step and two causes of the waterfall: bandwidth (NICs and
 * switches) and contention (what is left inside a node). Of a pipeline both have its bubble: the
 * time in which stages wait for one another (exec_breakdown.bubble_s), which is no straggler's. */
#ifndef FLOPCAST_SCENARIO_CAUSES_H
#define FLOPCAST_SCENARIO_CAUSES_H

#include "base/arena.h"
#include "exec/exec.h"

enum scenario_cause {
    CAUSE_ALLOCATOR,
    CAUSE_STRAGGLERS,
    CAUSE_LATENCY,
    CAUSE_BANDWIDTH,
    CAUSE_CONTENTION,
    CAUSE_HOST,
    CAUSE_BUBBLE, /* of jobs with stages only */
    CAUSE_COUNT,
    CAUSE_REST = CAUSE_COUNT,
};

struct scenario_cause_words {
    const char *name;  /* in tables, figures and the database */
    const char *away;  /* what is different where the waterfall has taken it away */
    const char *means; /* a sentence without its full stop: how it takes throughput */
};
extern const struct scenario_cause_words scenario_causes[CAUSE_COUNT + 1];

enum scenario_step_part {
    STEP_KERNELS, /* as fast as alone */
    STEP_ALLOCATOR,
    STEP_STRAGGLERS,
    STEP_LATENCY,
    STEP_BYTES,
    STEP_HOST,
    STEP_BUBBLE,
    STEP_OTHER,
    STEP_PART_COUNT
};

struct scenario_part_words {
    const char *name, *means;
};
extern const struct scenario_part_words scenario_step_parts[STEP_PART_COUNT];

struct scenario_step {
    double part_s[STEP_PART_COUNT]; /* of a step; their sum is the step time */
    double slowed_s,
        waited_s; /* what collectives cost: kernels slower beside them, and waiting for them */
};

/* alloc_stall_s: as in exec_memory; the host's idle time is the allocator's up to that. */
struct scenario_step scenario_step(const struct exec_breakdown *breakdown, double alloc_stall_s);

/* In plain words what a step's time goes to: "kernels alone take 87.8 % of a step ...", to stand
 * behind which point that is and a colon. In the arena. */
const char *scenario_step_sentence(struct arena *arena, const struct scenario_step *step);

struct scenario_loss {
    long long small_gpus, large_gpus;
    double small, large;          /* TFLOPS per GPU */
    double part[CAUSE_COUNT + 1]; /* TFLOPS per GPU that are lost; the rest last */
};

/* In plain words: what a larger cluster costs, and why. In the arena. */
const char *scenario_loss_sentence(struct arena *arena, const struct scenario_loss *loss);

#endif
