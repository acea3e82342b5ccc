/* Rows to predictions, errors, ratios, summaries. */
#include "validate/validate.h"

#include "base/diag_set.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void keep_figures(struct validate_row *row, const struct scenario_result *result)
{
    row->status = result->exec.status == EXEC_OOM ? VALIDATE_OOM : VALIDATE_OK;
    if (row->status == VALIDATE_OOM)
        return;
    row->mfu = result->mfu;
    row->predicted = (struct validate_figures){
        .tokens_per_s_per_gpu = result->tokens_per_s_per_gpu,
        .tflops_per_gpu = result->tflops_per_gpu,
        .step_time_s = result->exec.step_time_s,
        .peak_allocated_bytes = result->exec.memory.peak_allocated_bytes,
        .peak_reserved_bytes = result->exec.memory.peak_reserved_bytes,
    };
}

static bool is_alone(const struct validate_row *row)
{
    return row->set.points[0].options.strategy.kind == STRATEGY_SINGLE_DEVICE;
}

/* Comparable speeds: both in the published unit. False: none was published. */
static bool speeds(const struct validate_row *row, double *measured, double *predicted)
{
    const struct validate_figures *m = &row->measured, *p = &row->predicted;
    bool tokens = m->tokens_per_s_per_gpu > 0, step = m->step_time_s > 0;
    *measured = tokens ? m->tokens_per_s_per_gpu : step ? 1 / m->step_time_s : m->tflops_per_gpu;
    *predicted = row->status != VALIDATE_OK ? 0
                 : tokens                   ? p->tokens_per_s_per_gpu
                 : step                     ? 1 / p->step_time_s
                                            : p->tflops_per_gpu;
    return *measured > 0 && *predicted > 0;
}

/* Fewer GPUs, or the same one under the strategy of the curve. */
static bool is_before(const struct validate_row *row, const struct validate_row *other)
{
    return row->gpus < other->gpus || (row->gpus == other->gpus && is_alone(other) && !is_alone(row));
}

static void set_errors(struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        double measured = 0, predicted = 0;
        row->has_error = speeds(row, &measured, &predicted);
        if (row->has_error) {
            row->error = predicted / measured - 1;
            row->measured.tokens_per_s_per_gpu = row->predicted.tokens_per_s_per_gpu * measured / predicted;
        }
        bool allocated = row->measured.peak_reserved_bytes == 0 && row->measured.peak_allocated_bytes > 0;
        row->measured_peak_bytes = allocated ? row->measured.peak_allocated_bytes : row->measured.peak_reserved_bytes;
        row->predicted_peak_bytes =
            allocated ? row->predicted.peak_allocated_bytes : row->predicted.peak_reserved_bytes;
    }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i], *smallest = NULL;
        for (int j = 0; j < table->rows.n; j++) {
            struct validate_row *other = &table->rows.at[j];
            if (other->curve == row->curve && other->has_error && (!smallest || is_before(other, smallest))) {
                smallest = other;
                row->smallest = j;
            }
        }
        if (!row->has_error)
            continue;
        double measured = 0, predicted = 0, measured_0 = 0, predicted_0 = 0;
        speeds(row, &measured, &predicted);
        speeds(smallest, &measured_0, &predicted_0);
        row->has_ratio = row == smallest || row->gpus > smallest->gpus;
        row->measured_ratio = measured / measured_0;
        row->predicted_ratio = predicted / predicted_0;
    }
}

/* One row, from one thread. */
static void run_row(struct validate_row *row, const struct validate_sampling *sampling, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct scenario_result result;
    const struct scenario_point *point = &row->set.points[0];
    enum status status = scenario_simulate(&result, point, &arena, diag);
    if (status == STATUS_OK)
        keep_figures(row, &result);
    else
        row->status = VALIDATE_NOT_SIMULATED;
    if (status == STATUS_OK && sampling &&
        scenario_sample_quickly(&result, point, sampling->uncertainty, sampling->k, &arena, diag) == STATUS_OK) {
        row->n_samples = result.n_samples;
        row->samples = xcalloc((size_t)row->n_samples + 1, sizeof *row->samples);
        memcpy(row->samples, result.samples, sizeof *row->samples * (size_t)row->n_samples);
    }
    arena_release(&arena);
}

void validate_run(struct validate_table *table, const struct validate_sampling *sampling, scenario_progress progress,
    void *self, struct diag *diag)
{
    int done = 0, n = table->rows.n;
    struct diag_set diags = diag_set_begin(n);
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++) {
        struct diag own = DIAG_INIT;
        if (table->rows.at[i].status != VALIDATE_NOT_SIMULATED)
            run_row(&table->rows.at[i], sampling, &own);
        diag_set_keep(&diags, i, &own);
#ifdef _OPENMP
#pragma omp critical(validate_done)
#endif
        {
            done++;
            if (progress)
                progress(self, done, n);
        }
    }
    diag_set_end(&diags, diag);
    set_errors(table);
}

static double peak_error(const struct validate_row *row)
{
    bool both = row->measured_peak_bytes > 0 && row->predicted_peak_bytes > 0;
    return both ? fabs(row->predicted_peak_bytes / row->measured_peak_bytes - 1) : -1;
}

static double median(double *values, int n)
{
    gsl_sort(values, 1, (size_t)n);
    return n ? gsl_stats_median_from_sorted_data(values, 1, (size_t)n) : 0;
}

struct validate_summary validate_summarise(const struct validate_table *table,
    bool (*wanted)(const struct validate_row *row, const void *self), const void *self)
{
    struct validate_summary s = {0};
    double *errors = xcalloc((size_t)table->rows.n + 1, sizeof *errors);
    double *signed_errors = xcalloc((size_t)table->rows.n + 1, sizeof *errors);
    double *memory = xcalloc((size_t)table->rows.n + 1, sizeof *memory);
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        if (!wanted(row, self))
            continue;
        s.n_rows++;
        if (row->has_error) {
            signed_errors[s.n_errors] = row->error;
            errors[s.n_errors++] = fabs(row->error);
            s.mean += fabs(row->error);
        }
        if (row->has_ratio && !(row->measured_ratio == 1 && row->predicted_ratio == 1)) {
            double ratio_error = fabs(row->predicted_ratio - row->measured_ratio);
            s.n_ratios++;
            s.ratio_mean += ratio_error;
            s.ratio_most = fmax(s.ratio_most, ratio_error);
        }
        s.n_intervals += row->interval.known;
        s.n_covered += row->interval.known && row->interval.covers;
        s.n_ratio_intervals += row->ratio_interval.known;
        s.n_ratio_covered += row->ratio_interval.known && row->ratio_interval.covers;
        if (peak_error(row) >= 0)
            memory[s.n_memory++] = peak_error(row);
        if (row->status != VALIDATE_NOT_SIMULATED) {
            bool agrees = (row->status == VALIDATE_OOM) == row->measured_oom;
            s.oom_agree += agrees;
            s.oom_wrong += !agrees;
        }
    }
    s.mean /= s.n_errors ? s.n_errors : 1;
    s.ratio_mean /= s.n_ratios ? s.n_ratios : 1;
    s.bias = median(signed_errors, s.n_errors);
    s.median = median(errors, s.n_errors);
    s.p90 = s.n_errors ? gsl_stats_quantile_from_sorted_data(errors, 1, (size_t)s.n_errors, 0.9) : 0;
    s.memory_median = median(memory, s.n_memory);
    free(errors);
    free(signed_errors);
    free(memory);
    return s;
}
