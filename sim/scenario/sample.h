/* How sure a prediction is: each point again and again, with other draws of the fitted parameters (hw/draw.h) and other
 * seeds of the noise, as a band of 90 %.
 *
 * Sample k of a point uses draw k of the point's run.seed and simulates with the seed run.seed + k. Points of a
 * scenario share the draws, so that the loss along a curve has a band too, narrower than that of its ends. Noise that
 * the scenario takes from its cluster follows the draw; noise that it sets stays.
 *
 * Covered: errors of the fits, and the luck of a run. Not covered: numbers of other kinds, and what the model leaves
 * out; so the band is a lower bound of the error, and `flopcast validate` shows the error. */
#ifndef FLOPCAST_SCENARIO_SAMPLE_H
#define FLOPCAST_SCENARIO_SAMPLE_H

#include "scenario/scenario.h"

enum scenario_sampled { SAMPLED_TFLOPS, SAMPLED_STEP_TIME, SAMPLED_TOKENS, SAMPLED_COUNT };
extern const char *const scenario_sampled_names[SAMPLED_COUNT + 1]; /* "tflops_per_gpu", "step_time_s", ... */

struct scenario_sample {
    bool ok; /* it fitted in memory */
    double value[SAMPLED_COUNT];
};

/* k samples of every point into results[i].samples (in arenas[i]), on all cores; progress counts single simulations. */
enum status scenario_sample_all(struct scenario_result *results, struct arena *arenas, const struct scenario_set *set,
    int k, scenario_progress progress, void *self, struct diag *diag);

/* 5, 50 and 95 %, between samples by linear interpolation (gsl_stats_quantile_from_sorted_data). */
struct scenario_band {
    int n; /* samples that ran; 0: the others are not known */
    double low, median, high;
};
struct scenario_band scenario_band(const struct scenario_result *result, enum scenario_sampled quantity);

/* Of the fraction of throughput that is lost from one point to another, sample by sample. */
struct scenario_band scenario_loss_band(const struct scenario_result *from, const struct scenario_result *to);

#endif
