/* What a prediction depends on: every parameter that samples draw (sample.h, hw/draw.h), one at a
 * time, one standard deviation lower and higher; everything else, the seed of the noise too, as it
 * is.
 *
 * The effect of a parameter is half of what the logarithm of speed changes by from the low to the
 * high one: the relative standard deviation of speed that this parameter alone makes. In as far as
 * speed is a product of powers of the parameters, the squares of independent effects add up to the
 * variance of that logarithm over samples, and of correlated ones e' C e does. What those sums and
 * the samples differ by is curvature: of a maximum of two times, say, the smaller one has no effect
 * until it is the larger.
 *
 * Costs of the host that the scenario leaves alone are one parameter, as in samples. */
#ifndef FLOPCAST_STUDY_SENSITIVITY_H
#define FLOPCAST_STUDY_SENSITIVITY_H

#include "scenario/sample.h"

struct sensitivity_part {
    const struct hw_parameter *parameter; /* NULL: what the host costs */
    double low, high;                     /* TFLOPS per GPU with it lower, higher */
    double effect;                        /* log(high / low) / 2 */
};

struct sensitivity {
    double tflops_per_gpu;          /* with all numbers as they are */
    struct sensitivity_part *parts; /* those with an effect, the largest first; in the arena */
    int n_parts, n_idle;            /* n_idle: parameters that change nothing */
    double independent,
        correlated; /* the root of the sum of squares; with correlations. Relative */
};

/* Two runs a parameter, on all cores; progress (NULL: none) counts them. STATUS_INPUT where the
 * point is out of memory. */
enum status scenario_sensitivity(struct sensitivity *out, const struct scenario_point *point,
    const struct scenario_uncertainty *uncertainty, scenario_progress progress, void *self,
    struct arena *arena, struct diag *diag);

/* Effects, independent and correlated, of parts whose low and high are known; sorts them. */
void sensitivity_sum(struct sensitivity *out, const struct hw_fits *fits);

#endif
