/* Samples of a point: draws of its numbers and of its luck, each simulated, and bands of what they
 * give.
 *
 * Sample k takes draw k of every number from the point's run.seed (hw/draw.h), so that all points
 * of a scenario see the same machine in sample k and ratios between points are narrower than the
 * points' bands. Its simulation has another seed, of run.seed, ranks and k. Three things are drawn
 * apart from the tables: costs of the host, all by one factor unless the scenario sets them; costs
 * that a stack profile states, by their errors; and how many hosts are slow.
 *
 * The number of slow hosts is stratified: u runs through van der Corput's sequence from a random
 * start, and lottery_at() says how many hosts the cluster at u has. The share of slow hosts is then
 * 0, since it was drawn.
 *
 * Samples of all points are one loop of n x k jobs, largest points first. Subtle: what a scenario
 * gives is put over the drawn hardware again, as it is a choice; noise counts as drawn only where
 * its origin is the cluster. */
#include "scenario/sample.h"

#include "base/digest.h"
#include "base/rng.h"
#include "scenario/file.h"
#include "scenario/jobs.h"
#include "scenario/lottery.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_OF_JOB = 1, STREAM_OF_SAMPLE };
static const double SEEDS = 1e15; /* as many different ones, exact in a double */

const char *const scenario_sampled_names[SAMPLED_COUNT + 1] = {[SAMPLED_TFLOPS] = "tflops_per_gpu",
    [SAMPLED_STEP_TIME] = "step_time_s",
    [SAMPLED_TOKENS] = "tokens_per_s_per_gpu"};

enum status scenario_uncertainty_load(
    struct scenario_uncertainty *out, const char *folder, struct arena *arena, struct diag *diag)
{
    return hw_fits_load(&out->fits,
        arena_printf(arena, "%s/topologies/fitted/correlations.yaml", folder), arena, diag);
}

/* Noise that came from the cluster's file is the cluster's drawn noise. */
static void draw_noise(struct scenario_point *point)
{
    struct noise_field fields[NOISE_FIELDS];
    inputs_noise(fields, point);
    for (int i = 0; i < NOISE_FIELDS; i++)
        if (scenario_origin(point, fields[i].path).kind == ORIGIN_CLUSTER)
            *fields[i].value = fields[i].cluster.value;
}

/* A cost that the scenario sets is not drawn. */
static bool host_is_drawn(const struct scenario_point *point, int cost)
{
    char path[64];
    snprintf(path, sizeof path, "host.%s", scenario_host_table.fields[cost].key);
    return scenario_origin(point, path).kind == ORIGIN_DEFAULT;
}

static void move_host(struct scenario_point *point, double by)
{
    double factor = exp(DRAW_ASSUMED * by);
    for (int i = 0; i < scenario_host_table.n_fields; i++)
        if (host_is_drawn(point, i))
            *stack_host_setting(point, i) *= factor;
}

/* Costs of the host that a stack profile states with their evidence (stack.h), by that. */
static void draw_stated(
    struct scenario_point *point, const struct hw_fits *fits, uint64_t seed, uint64_t k)
{
    for (int i = 0; i < scenario_host_table.n_fields; i++) {
        struct quantity cost = point->stack_host[i];
        hw_draw_quantity(&cost, &stack_host_table.fields[i], fits, seed, k);
        if (cost.value > 0)
            *stack_host_setting(point, i) *= cost.value / point->stack_host[i].value;
    }
}

uint64_t sample_digest_left(uint64_t digest, const struct scenario_point *point)
{
    struct scenario_point scratch = *point;
    struct noise_field fields[NOISE_FIELDS];
    inputs_noise(fields, &scratch);
    for (int i = 0; i < NOISE_FIELDS; i++)
        digest = digest_word(digest, scenario_origin(point, fields[i].path).kind == ORIGIN_CLUSTER);
    for (int i = 0; i < scenario_host_table.n_fields; i++)
        digest = digest_word(digest, host_is_drawn(point, i));
    return config_digest(digest, &stack_host_table, point->stack_host);
}

/* The bits of a number after the point, the last one first: of each n first numbers about as many
 * fall into any part of [0, 1) as it is wide (van der Corput's sequence). */
static double radical_inverse(uint64_t number)
{
    double inverse = 0;
    for (double digit = 0.5; number > 0; number >>= 1, digit /= 2)
        inverse += (number & 1) ? digit : 0;
    return inverse;
}

/* Sample k of a job is of a cluster with this many ranks: jobs of one size share their luck, others
 * do not. How many hosts are slow is stratified: of few samples as many as of many have some. */
static void draw_luck(struct scenario_point *point, int k)
{
    struct exec_options *exec = &point->options.exec;
    int ranks = (int)point->options.cluster.gpus;
    uint64_t job = (uint64_t)ranks << 32;
    struct rng_stream luck = rng_stream((uint64_t)exec->seed, STREAM_OF_JOB, job);
    double first = rng_uniform(&luck), share = exec->noise.straggler_share;
    double u = first + radical_inverse((uint64_t)k);
    bool slow = exec->noise.straggler_slowdown > 0 && exec->noise.gpu_speed_spread > 0 && share > 0;
    exec->noise.slow_hosts =
        slow ? lottery_at(u - floor(u), share, (int)hw_hosts(&point->hw, ranks)) : 0;
    exec->noise.straggler_share = 0; /* it is drawn */
    struct rng_stream seeds = rng_stream((uint64_t)exec->seed, STREAM_OF_SAMPLE, job | (uint64_t)k);
    exec->seed = (int64_t)(rng_uniform(&seeds) * SEEDS);
    exec->noise.drawn_speeds = true; /* luck is part of what a run may show */
}

/* The point with draw k of its numbers. */
static struct scenario_point drawn(
    const struct scenario_point *of, const struct scenario_uncertainty *uncertainty, int k)
{
    struct scenario_point point = *of;
    uint64_t seed = (uint64_t)of->options.exec.seed;
    hw_draw(&point.hw, &uncertainty->fits, seed, (uint64_t)k);
    hw_override(&point.hw, &point.options.cluster.given); /* a choice, not an estimate */
    draw_noise(&point);
    move_host(&point, hw_draw_normal("host", "strategy_default_options", seed, (uint64_t)k));
    draw_stated(&point, &uncertainty->fits, seed, (uint64_t)k);
    draw_luck(&point, k);
    point.options.exec.n_trace_ranks = 0;
    return point;
}

void scenario_shift(struct scenario_point *point, const struct hw_parameter *parameter, double by)
{
    if (parameter) {
        hw_shift(&point->hw, parameter, by);
        hw_override(&point->hw, &point->options.cluster.given);
        draw_noise(point);
    } else {
        move_host(point, by);
    }
}

/* Only the speeds are kept. The arena of a run goes with it, as a thousand samples of a large point
 * would not fit. */
static enum status sample_it(
    struct scenario_sample *out, const struct scenario_point *point, struct diag *diag)
{
    struct scenario_result result;
    struct arena arena = ARENA_INIT;
    enum status status = scenario_simulate(&result, point, &arena, diag);
    *out = (struct scenario_sample){.ok = status == STATUS_OK && result.exec.status == EXEC_OK,
        .value = {[SAMPLED_TFLOPS] = result.tflops_per_gpu,
            [SAMPLED_STEP_TIME] = result.exec.step_time_s,
            [SAMPLED_TOKENS] = result.tokens_per_s_per_gpu}};
    arena_release(&arena);
    return status;
}

void scenario_sample_prepare(
    struct scenario_result *results, struct arena *arenas, const struct scenario_set *set, int k)
{
    for (int i = 0; i < set->n_points; i++) {
        results[i].samples = ARENA_ARRAY(&arenas[i], struct scenario_sample, k);
        results[i].n_samples = k;
    }
}

/* ---- samples of all points ---- */

struct sampled {
    struct jobs jobs;
    const struct scenario_set *set;
    const struct scenario_uncertainty *uncertainty;
    struct scenario_result *results;
    int k;
};

static struct scenario_sample *sample_of(struct sampled *all, int job)
{
    return &all->results[job / all->k].samples[job % all->k];
}

static enum status draw_sample(void *self, int job, struct diag *diag)
{
    struct sampled *all = self;
    struct scenario_point point =
        drawn(&all->set->points[job / all->k], all->uncertainty, job % all->k);
    return sample_it(sample_of(all, job), &point, diag);
}

static bool end_sample(void *self, int job, enum status status)
{
    struct sampled *all = self;
    return jobs_ended(&all->jobs, job, status);
}

enum status scenario_sample_some(struct scenario_result *results, struct arena *arenas,
    const struct scenario_set *set, const struct scenario_uncertainty *uncertainty, int k,
    const struct scenario_work *work, struct diag *diag)
{
    int n = set->n_points;
    struct sampled all = {.set = set, .uncertainty = uncertainty, .results = results, .k = k};
    struct crew_loop *loop = &all.jobs.loop;
    if (!results[0].samples)
        scenario_sample_prepare(results, arenas, set, k);
    int *points = jobs_order(set), *order = xcalloc((size_t)n * (size_t)k, sizeof *order);
    for (int next = 0; next < n * k; next++)
        order[next] = points[next / k] * k + next % k;
    jobs_begin(&all.jobs, n * k, work);
    loop->order = order;
    loop->self = &all;
    loop->job = draw_sample;
    loop->ended = end_sample;
    enum status status = crew_run(loop, diag);
    jobs_end(&all.jobs);
    free(order);
    free(points);
    return status;
}

static struct scenario_band band_of(double *values, int n)
{
    if (n == 0)
        return (struct scenario_band){0};
    gsl_sort(values, 1, (size_t)n);
    return (struct scenario_band){.n = n,
        .low = gsl_stats_quantile_from_sorted_data(values, 1, (size_t)n, 0.05),
        .median = gsl_stats_quantile_from_sorted_data(values, 1, (size_t)n, 0.5),
        .high = gsl_stats_quantile_from_sorted_data(values, 1, (size_t)n, 0.95)};
}

struct scenario_band scenario_band(
    const struct scenario_result *result, enum scenario_sampled quantity)
{
    double *values = xcalloc((size_t)result->n_samples + 1, sizeof *values);
    int n = 0;
    for (int k = 0; k < result->n_samples; k++)
        if (result->samples[k].ok)
            values[n++] = result->samples[k].value[quantity];
    struct scenario_band band = band_of(values, n);
    free(values);
    return band;
}

struct scenario_band scenario_ratio_band(
    const struct scenario_result *from, const struct scenario_result *to)
{
    double *values = xcalloc((size_t)from->n_samples + 1, sizeof *values);
    int n = 0;
    for (int k = 0; k < from->n_samples && k < to->n_samples; k++)
        if (from->samples[k].ok && to->samples[k].ok)
            values[n++] =
                to->samples[k].value[SAMPLED_TOKENS] / from->samples[k].value[SAMPLED_TOKENS];
    struct scenario_band band = band_of(values, n);
    free(values);
    return band;
}
