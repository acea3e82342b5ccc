/* How sure a prediction is: each point again and again, with other draws of its numbers (hw/draw.h) and other seeds of
 * the noise, GPU speeds drawn one by one (noise.drawn_speeds), as a band of 90 %; and that band widened by what the
 * model leaves out (discrepancy.h).
 *
 * Sample k of a point uses draw k of the point's run.seed, which points of a scenario share, so that the loss along a
 * curve has a band too, narrower than that of its ends. The seed that it simulates with follows from run.seed, k and
 * the number of ranks: jobs of one size are on the same cluster, others have other luck. How many nodes are slow is
 * stratified over the samples (lottery.h). Noise that the scenario takes from its cluster follows the draw; noise that
 * it sets stays. What the host costs is assumed in the program (strategy.h): all of these costs that the scenario
 * leaves alone go up and down together, as a faster or a slower CPU would have it, by DRAW_ASSUMED.
 *
 * Not covered: sizes of memory, so a point that fits fits in all samples. */
#ifndef FLOPCAST_SCENARIO_SAMPLE_H
#define FLOPCAST_SCENARIO_SAMPLE_H

#include "hw/draw.h"
#include "scenario/discrepancy.h"
#include "scenario/scenario.h"

enum scenario_sampled { SAMPLED_TFLOPS, SAMPLED_STEP_TIME, SAMPLED_TOKENS, SAMPLED_COUNT };
extern const char *const scenario_sampled_names[SAMPLED_COUNT + 1]; /* "tflops_per_gpu", "step_time_s", ... */

struct scenario_sample {
    bool ok; /* it fitted in memory */
    double value[SAMPLED_COUNT];
};

/* What is known of errors: read from files, or {0} for none (parameters independent, nothing left out). */
struct scenario_uncertainty {
    struct hw_fits fits;
    struct discrepancy discrepancy;
};

/* From topologies/fitted/correlations.yaml and topologies/fitted/discrepancy.yaml in a folder like the project's. */
enum status scenario_uncertainty_load(
    struct scenario_uncertainty *out, const char *folder, struct arena *arena, struct diag *diag);

/* Room for the samples, and what is left out: done by the loops unless results[i].samples are there already. */
void scenario_sample_prepare(struct scenario_result *results, struct arena *arenas, const struct scenario_set *set,
    const struct scenario_uncertainty *uncertainty, int k);

/* k samples of every point into results[i].samples (in arenas[i]), on all cores. work: known, keep and progress count
 * samples, those of a point together. */
enum status scenario_sample_some(struct scenario_result *results, struct arena *arenas, const struct scenario_set *set,
    const struct scenario_uncertainty *uncertainty, int k, const struct scenario_work *work, struct diag *diag);

/* The same for one point, some ten times as fast: samples run without noise, for one rank where ranks are alike, and
 * without following memory unless the allocator stalls the point. What noise costs is taken from *result, the point's
 * own run, over one without noise, and goes with the drawn gpu_speed_spread: the slowest of n GPUs is behind in
 * proportion to it. The luck of a seed is left out. */
enum status scenario_sample_quickly(struct scenario_result *result, const struct scenario_point *point,
    const struct scenario_uncertainty *uncertainty, int k, struct arena *arena, struct diag *diag);

/* The point with one parameter moved by a number of standard deviations (NULL: what the host costs), as a draw moves
 * all. */
struct hw_parameter;
void scenario_shift(struct scenario_point *point, const struct hw_parameter *parameter, double by);

/* 5, 50 and 95 %, between samples by linear interpolation (gsl_stats_quantile_from_sorted_data). */
struct scenario_band {
    int n; /* samples that ran; 0: the others are not known */
    double low, median, high;
};
struct scenario_band scenario_band(const struct scenario_result *result, enum scenario_sampled quantity);

/* Of speed (not of loss) at one point over that at another, sample by sample. */
struct scenario_band scenario_ratio_band(const struct scenario_result *from, const struct scenario_result *to);

/* A band and a log-normal factor of median 1 beside it: in the logarithm, distances from the median add as squares. */
struct scenario_band scenario_widen(struct scenario_band band, double log_sd);

/* The log_sd at which the widened band just reaches the value; 0 where the band does without. */
double scenario_widening(struct scenario_band band, double value);

#endif
