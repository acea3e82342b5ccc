#include "scenario/sample.h"

#include "hw/draw.h"
#include "scenario/file.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <string.h>

const char *const scenario_sampled_names[SAMPLED_COUNT + 1] = {[SAMPLED_TFLOPS] = "tflops_per_gpu",
    [SAMPLED_STEP_TIME] = "step_time_s",
    [SAMPLED_TOKENS] = "tokens_per_s_per_gpu"};

/* Noise that came from the cluster's file is the cluster's drawn noise. */
static void draw_noise(struct scenario_point *point)
{
    struct noise_field fields[NOISE_FIELDS];
    inputs_noise(fields, point);
    for (int i = 0; i < NOISE_FIELDS; i++) {
        const char *from = scenario_origin(point, fields[i].path, NULL).file;
        if (from && strcmp(from, point->options.cluster.topology) == 0)
            *fields[i].value = fields[i].cluster.value;
    }
}

static enum status sample(struct scenario_sample *out, const struct scenario_point *of, int k, struct diag *diag)
{
    struct scenario_point point = *of;
    struct scenario_result result;
    struct arena arena = ARENA_INIT;
    hw_draw(&point.hw, (uint64_t)of->options.exec.seed, (uint64_t)k);
    draw_noise(&point);
    point.options.exec.seed += k;
    point.options.exec.n_trace_ranks = 0;
    enum status status = scenario_simulate(&result, &point, &arena, diag);
    *out = (struct scenario_sample){.ok = status == STATUS_OK && result.exec.status == EXEC_OK,
        .value = {[SAMPLED_TFLOPS] = result.tflops_per_gpu,
            [SAMPLED_STEP_TIME] = result.exec.step_time_s,
            [SAMPLED_TOKENS] = result.tokens_per_s_per_gpu}};
    arena_release(&arena);
    return status;
}

enum status scenario_sample_all(struct scenario_result *results, struct arena *arenas, const struct scenario_set *set,
    int k, scenario_progress progress, void *self, struct diag *diag)
{
    int n = set->n_points, done = 0;
    for (int i = 0; i < n; i++) {
        results[i].samples = ARENA_ARRAY(&arenas[i], struct scenario_sample, k);
        results[i].n_samples = k;
    }
    /* As in scenario_simulate_all: the largest points mostly come last, and should start first. */
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int job = n * k - 1; job >= 0; job--) {
        struct diag own = DIAG_INIT;
        sample(&results[job / k].samples[job % k], &set->points[job / k], job % k, &own);
#ifdef _OPENMP
#pragma omp critical(scenario_sampled)
#endif
        {
            diag_merge(diag, &own);
            done++;
            if (progress)
                progress(self, done, n * k);
        }
    }
    return diag->worst;
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

struct scenario_band scenario_band(const struct scenario_result *result, enum scenario_sampled quantity)
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

struct scenario_band scenario_loss_band(const struct scenario_result *from, const struct scenario_result *to)
{
    double *values = xcalloc((size_t)from->n_samples + 1, sizeof *values);
    int n = 0;
    for (int k = 0; k < from->n_samples && k < to->n_samples; k++)
        if (from->samples[k].ok && to->samples[k].ok)
            values[n++] = 1 - to->samples[k].value[SAMPLED_TFLOPS] / from->samples[k].value[SAMPLED_TFLOPS];
    struct scenario_band band = band_of(values, n);
    free(values);
    return band;
}
