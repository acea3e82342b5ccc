/* What the model leaves out: how far predictions are from measured runs beyond what the errors of numbers and the luck
 * of a run explain. Log-normal, as the standard deviation of the logarithm of speed:
 *
 *   with_stack      the scenario names a stack profile: the kernels that its framework launches, often with rates
 *                   fitted to other runs of it
 *   without_stack   it names none: eager kernels at the GPU file's own rates
 *   per_doubling    of the ratio of two speeds on one curve, per square root of a doubling of the GPUs: what makes both
 *                   ends of a curve wrong alike cancels
 *
 *   model_parallel  of speed, as the first two, where ranks share a model (tensor, context, expert or pipeline
 *                   parallelism), with a stack profile or without
 *   waiting         how many times as far off the time is in which GPUs wait (exposed communication, bubble) as the
 *                   rest of the step: both are off by themselves, so a speed of which a share w waits is off by
 *                   hypot(1 - w, w waiting) times what one is that never waits, which the three classes of speed say
 *
 * And of data parallelism alone, by DDP or FSDP, what its curves lose beyond what is predicted, as a share of the speed
 * on the curve's smallest cluster: data_parallel_loss, the mean over measured ratios (validate_loss()). No mechanism
 * here has it; flopcast waterfall names it.
 *
 * How they are estimated stands in validate/interval.h; the file that holds them is topologies/fitted/discrepancy.yaml.
 */
#ifndef FLOPCAST_SCENARIO_DISCREPANCY_H
#define FLOPCAST_SCENARIO_DISCREPANCY_H

#include "base/quantity.h"
#include "scenario/scenario.h"

enum discrepancy_class {
    DISCREPANCY_WITH_STACK,
    DISCREPANCY_WITHOUT_STACK,
    DISCREPANCY_PER_DOUBLING,
    DISCREPANCY_MODEL_PARALLEL,
    DISCREPANCY_CLASSES
};
extern const char *const discrepancy_names[DISCREPANCY_CLASSES + 1]; /* "with_stack", ... */

struct discrepancy {
    struct quantity of[DISCREPANCY_CLASSES];
    struct quantity waiting;            /* a plain number, 1 at least */
    struct quantity data_parallel_loss; /* a share, below 0 where curves lose less than is predicted */
};

/* By how many times a speed is further off, of which this share of the step waits; below 0, not known: 1. */
double discrepancy_scale(double waiting, double share);

/* Whether a job is of those that data_parallel_loss is of. */
bool discrepancy_is_data_parallel(const struct scenario *options);

extern const struct config_table discrepancy_table;
enum status discrepancy_load(struct discrepancy *out, const char *path, struct arena *arena, struct diag *diag);

enum discrepancy_class discrepancy_class_of(const struct scenario *options);
/* Of the speed of a point that has run, by its class and by how much of it waits. */
double discrepancy_of_speed(
    const struct discrepancy *discrepancy, const struct scenario *options, const struct scenario_result *result);

#endif
