/* What the errors of numbers do to a prediction: each point again and again, with other draws of
 * its numbers (hw/draw.h) and other seeds of the noise, GPU speeds drawn one by one
 * (noise.drawn_speeds), as a band of 90 %. What the model leaves out is not in it: how sure a
 * prediction is, sure.h says.
 *
 * Sample k of a point uses draw k of the point's run.seed, which points of a scenario share, so
 * that the loss along a curve has a band too, narrower than that of its ends. The seed that it
 * simulates with follows from run.seed, k and the number of ranks: jobs of one size are on the same
 * cluster, others have other luck. How many nodes are slow is stratified over the samples
 * (lottery.h). Noise that the scenario takes from its cluster follows the draw; noise that it sets
 * stays. What the host costs is assumed in the program (strategy.h): all of these costs that the
 * scenario leaves alone go up and down together, as a faster or a slower CPU would have it, by
 * DRAW_ASSUMED.
 *
 * Not covered: sizes of memory, so a point that fits fits in all samples. */
#ifndef FLOPCAST_SCENARIO_SAMPLE_H
#define FLOPCAST_SCENARIO_SAMPLE_H

#include "hw/draw.h"
#include "scenario/scenario.h"

enum scenario_sampled { SAMPLED_TFLOPS, SAMPLED_STEP_TIME, SAMPLED_TOKENS, SAMPLED_COUNT };
extern const char
    *const scenario_sampled_names[SAMPLED_COUNT + 1]; /* "tflops_per_gpu", "step_time_s", ... */

struct scenario_sample {
    bool ok; /* it fitted in memory */
    double value[SAMPLED_COUNT];
};

/* What is known of errors: read from files, or {0} for none (parameters independent). */
struct scenario_uncertainty {
    struct hw_fits fits;
};

/* From topologies/fitted/correlations.yaml in a folder like the project's. */
enum status scenario_uncertainty_load(
    struct scenario_uncertainty *out, const char *folder, struct arena *arena, struct diag *diag);

/* Room for the samples: done by the loops unless results[i].samples are there already. */
void scenario_sample_prepare(
    struct scenario_result *results, struct arena *arenas, const struct scenario_set *set, int k);

/* k samples of every point, at most INT_MAX of all, into results[i].samples (in arenas[i]), on all
 * cores. work: known, keep and progress count samples, those of a point together. */
enum status scenario_sample_some(struct scenario_result *results, struct arena *arenas,
    const struct scenario_set *set, const struct scenario_uncertainty *uncertainty, int k,
    const struct scenario_work *work, struct diag *diag);

/* The point with one parameter moved by a number of standard deviations (NULL: what the host
 * costs), as a draw moves all. */
struct hw_parameter;
void scenario_shift(struct scenario_point *point, const struct hw_parameter *parameter, double by);

/* 5, 50 and 95 %, between samples by linear interpolation (gsl_stats_quantile_from_sorted_data). */
struct scenario_band {
    int n; /* samples that ran; 0: the others are not known */
    double low, median, high;
};
struct scenario_band scenario_band(
    const struct scenario_result *result, enum scenario_sampled quantity);

/* Of speed (not of loss) at one point over that at another, sample by sample. */
struct scenario_band scenario_ratio_band(
    const struct scenario_result *from, const struct scenario_result *to);

#endif
