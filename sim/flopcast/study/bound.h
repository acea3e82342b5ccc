/* What a layout of a Megatron job takes at least, in time and in memory, without compiling or
 * simulating its step: for a search over many layouts (study/tune.h).
 *
 * Costs of blocks are found once for all layouts that cut the model alike (same tensor, sequence,
 * context and expert ranks, micro-batch, checkpointing): blocks that stand for all (the first, the
 * last, and of those between them one of each kind) are compiled as a pipeline of one block a
 * stage, with one micro-batch and with two, and what the second one adds is a cell's cost. That is
 * the longest path through the program: kernels as fast as alone on the GPU, collectives of tensor,
 * context and expert groups as fast as alone on their links, each queue in order; host, messages
 * and collectives of data parallelism take nothing.
 *
 * A layout's bound is the longest path through the cells of its schedule (strategy/schedule.h): a
 * cell begins when the one before it on its stage, and the one before it on its way through the
 * pipeline, have ended. All that is left out (contention, messages, gradients, weights, optimizer,
 * host, allocator) only adds to it, and the norm of the gradients keeps steps apart, so no
 * simulated step without noise is shorter. ZBH1 and schedules in a V split backward cells in two,
 * of which only the sum is known: they take nothing on the path, and a stage's sum bounds beside
 * it.
 *
 * Bytes at least: parameters, gradients, optimizer states, and what forward cells leave for
 * backward at the fullest moment of the schedule, of the fullest stage, beside the CUDA context.
 * Left out: what lives within a cell only, NCCL's buffers, the rounding of the allocator, weights
 * and gradients that Megatron-FSDP shards, and the states of the last block where a tied embedding
 * is on a stage that is first and last. */
#ifndef FLOPCAST_STUDY_BOUND_H
#define FLOPCAST_STUDY_BOUND_H

#include "scenario/scenario.h"

/* Of one micro-batch. */
struct bound_block {
    double forward_s, backward_s; /* recomputation is part of backward */
    double kernels_s;             /* part of both that kernels take */
    double held_bytes;            /* from its forward to its backward pass */
    double shared_bytes;    /* part of it that is also the next block's input, where that is on the
                               same rank */
    double state_bytes;     /* parameters and gradients */
    double optimizer_bytes; /* of the ranks that the costs were found with, see optimizer_ranks */
};

struct bound_costs {
    struct bound_block *blocks; /* in the arena */
    int n;
    double optimizer_ranks; /* over which the optimizer's states were shared out; 0: over none */
};

struct bound {
    double step_s;
    double kernels_s, group_s; /* parts of it, of the stage with most work: its kernels; collectives
                                  of tensor, context and expert groups that its kernels wait for */
    double bubble_s;           /* the rest: that stage waits for the others */
    double bytes;
};

/* The longest path through a program, every op after all that it waits for and after its queue's
 * ops before it: by pass, what it adds to the compute queue, and what kernels of it take. kernel_s,
 * coll_s: by kernel and collective of the plan; messages take nothing. */
struct bound_passes {
    double forward_s, backward_s, kernels_s;
};
struct bound_passes bound_passes(const struct plan *plan, const struct plan_program *program,
    const double *kernel_s, const double *coll_s);

/* After scenario_check(). Points of a scenario that differ in no axis of TUNE_OF_BLOCKS
 * (study/tune_axes.h) have the same. */
enum status bound_costs(struct bound_costs *out, const struct scenario_point *point,
    struct arena *arena, struct diag *diag);
struct bound bound_layout(const struct bound_costs *costs, const struct scenario_point *point);

/* Of any plan, by the queue of a rank that has most work in a step: kernels and collectives as fast
 * as alone; bytes are not counted. Its ops end before the step does, as the optimizer waits for
 * all. */
struct bound bound_plan(const struct plan *plan, const struct hw *hw);

#endif
