/* What rows have in common: counts, medians, percentiles. */
#include "validate/validate.h"

#include <gsl/gsl_fit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef VEC(double) doubles;

bool validate_same_maker(const char *a, const char *b)
{
    size_t n = strcspn(a, ",");
    return n == strcspn(b, ",") && strncmp(a, b, n) == 0;
}

static double median(doubles *values)
{
    gsl_sort(values->at, 1, (size_t)values->n);
    return values->n ? gsl_stats_median_from_sorted_data(values->at, 1, (size_t)values->n) : 0;
}

/* After median(). */
static double p90(const doubles *values)
{
    return values->n ? gsl_stats_quantile_from_sorted_data(values->at, 1, (size_t)values->n, 0.9) : 0;
}

/* Of speeds. */
static void summarise_errors(struct validate_summary *s, const struct validate_row *const *rows, int n)
{
    doubles absolute = {0}, with_sign = {0}, from_bias = {0};
    for (int i = 0; i < n; i++) {
        const struct validate_row *row = rows[i];
        s->n_missed += !row->has_error && row->status == VALIDATE_OOM && row->measured_speed;
        if (!row->has_error)
            continue;
        vec_push(&absolute, fabs(row->error));
        vec_push(&with_sign, row->error);
        s->mean += fabs(row->error);
    }
    s->n_errors = absolute.n;
    s->mean /= absolute.n ? absolute.n : 1;
    s->bias = median(&with_sign);
    for (int i = 0; i < with_sign.n; i++)
        vec_push(&from_bias, fabs(with_sign.at[i] - s->bias));
    s->mad = median(&from_bias);
    s->median = median(&absolute);
    s->p90 = p90(&absolute);
    vec_free(&absolute);
    vec_free(&with_sign);
    vec_free(&from_bias);
}

static int by_run(const void *a, const void *b)
{
    const struct validate_row *one = *(const struct validate_row *const *)a,
                              *two = *(const struct validate_row *const *)b;
    return one->same != two->same ? (one->same > two->same) - (one->same < two->same)
                                  : strcmp(one->source, two->source);
}

/* Rows of one source that are the same run: the prediction is one, so measured / predicted has the median that the
 * measurements have. */
static void summarise_runs(struct validate_summary *s, const struct validate_row *const *rows, int n)
{
    const struct validate_row **sorted = xcalloc((size_t)n + 1, sizeof *sorted);
    doubles absolute = {0};
    int n_sorted = 0;
    for (int i = 0; i < n; i++)
        if (rows[i]->has_error)
            sorted[n_sorted++] = rows[i];
    qsort(sorted, (size_t)n_sorted, sizeof *sorted, by_run);
    for (int i = 0, end = 0; i < n_sorted; i = end) {
        doubles measured = {0}; /* over predicted */
        for (end = i; end < n_sorted && by_run(&sorted[i], &sorted[end]) == 0; end++)
            vec_push(&measured, 1 / (1 + sorted[end]->error));
        vec_push(&absolute, fabs(1 / median(&measured) - 1));
        vec_free(&measured);
    }
    s->n_runs = absolute.n;
    s->runs_median = median(&absolute);
    s->runs_p90 = p90(&absolute);
    vec_free(&absolute);
    free(sorted);
}

static void summarise_ratios(
    struct validate_summary *s, const struct validate_table *table, const struct validate_row *const *rows, int n)
{
    doubles node = {0};
    for (int i = 0; i < n; i++) {
        const struct validate_row *row = rows[i], *smallest = &table->rows.at[row->smallest];
        if (!row->has_ratio || (row->measured_ratio == 1 && row->predicted_ratio == 1))
            continue;
        double ratio_error = fabs(row->predicted_ratio - row->measured_ratio);
        s->n_ratios++;
        s->ratio_mean += ratio_error;
        s->ratio_most = fmax(s->ratio_most, ratio_error);
        if (smallest->node_gpus > 1 && smallest->gpus == smallest->node_gpus) {
            vec_push(&node, ratio_error);
            s->node_ratio_mean += ratio_error;
        }
    }
    s->ratio_mean /= s->n_ratios ? s->n_ratios : 1;
    s->n_node_ratios = node.n;
    s->node_ratio_mean /= node.n ? node.n : 1;
    s->node_ratio_median = median(&node);
    vec_free(&node);
}

static void push_peak(doubles *errors, double measured, double predicted)
{
    if (measured > 0 && predicted > 0)
        vec_push(errors, fabs(predicted / measured - 1));
}

static void summarise_memory(struct validate_summary *s, const struct validate_row *const *rows, int n)
{
    doubles peaks = {0}, allocated = {0}, reserved = {0};
    for (int i = 0; i < n; i++) {
        const struct validate_figures *m = &rows[i]->measured, *p = &rows[i]->predicted;
        push_peak(&peaks, rows[i]->measured_peak_bytes, rows[i]->predicted_peak_bytes);
        push_peak(&allocated, m->peak_allocated_bytes, p->peak_allocated_bytes);
        push_peak(&reserved, m->peak_reserved_bytes, p->peak_reserved_bytes);
    }
    s->n_memory = peaks.n;
    s->n_allocated = allocated.n;
    s->n_reserved = reserved.n;
    s->memory_median = median(&peaks);
    s->allocated_median = median(&allocated);
    s->reserved_median = median(&reserved);
    vec_free(&peaks);
    vec_free(&allocated);
    vec_free(&reserved);
}

static void summarise_widths(struct validate_summary *s, const struct validate_row *const *rows, int n)
{
    doubles widths = {0};
    for (int i = 0; i < n; i++)
        if (rows[i]->interval.known)
            vec_push(
                &widths, (rows[i]->interval.high - rows[i]->interval.low) / rows[i]->predicted.tokens_per_s_per_gpu);
    s->width_median = median(&widths);
    vec_free(&widths);
}

static void count(struct validate_summary *s, const struct validate_row *row)
{
    bool oom = row->status == VALIDATE_OOM, simulated = row->status != VALIDATE_NOT_SIMULATED;
    bool verdict = simulated && row->has_verdict, agrees = oom == row->measured_oom;
    s->n_rows++;
    s->n_not_simulated += !simulated;
    s->oom_wrong += verdict && !agrees;
    s->fits_right += verdict && agrees && !oom;
    s->oom_right += verdict && agrees && oom;
    s->false_fits += verdict && !agrees && !oom;
    s->false_oom += verdict && !agrees && oom;
    s->n_intervals += row->interval.known;
    s->n_covered += row->interval.known && row->interval.covers;
}

struct validate_summary validate_summarise(const struct validate_table *table,
    bool (*wanted)(const struct validate_row *row, const void *self), const void *self)
{
    struct validate_summary s = {0};
    const struct validate_row **rows = xcalloc((size_t)table->rows.n + 1, sizeof *rows);
    for (int i = 0; i < table->rows.n; i++)
        if (wanted(&table->rows.at[i], self)) {
            rows[s.n_rows] = &table->rows.at[i];
            count(&s, &table->rows.at[i]);
        }
    summarise_errors(&s, rows, s.n_rows);
    summarise_runs(&s, rows, s.n_rows);
    summarise_ratios(&s, table, rows, s.n_rows);
    summarise_memory(&s, rows, s.n_rows);
    summarise_widths(&s, rows, s.n_rows);
    free(rows);
    return s;
}

/* Doublings from the curve's smallest cluster; 0 where the row has no ratio to another. */
static double doublings(const struct validate_table *table, const struct validate_row *row)
{
    return row->has_ratio ? log2((double)row->gpus / (double)table->rows.at[row->smallest].gpus) : 0;
}

struct validate_skill validate_skill(const struct validate_table *table)
{
    struct validate_skill skill = {0};
    VEC(double) at = {0}, losses = {0};
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        if (*row->used_in_fit == '\0' || doublings(table, row) <= 0)
            continue;
        vec_push(&at, doublings(table, row));
        vec_push(&losses, 1 - row->measured_ratio);
    }
    skill.n_fitted = at.n;
    double covariance = 0, squares = 0;
    if (at.n > 0)
        gsl_fit_mul(at.at, 1, losses.at, 1, (size_t)at.n, &skill.loss_of_doubling, &covariance, &squares);
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        if (*row->used_in_fit != '\0' || doublings(table, row) <= 0)
            continue;
        skill.n++;
        skill.mean += fabs(row->predicted_ratio - row->measured_ratio);
        skill.mean_of_rule += fabs(1 - skill.loss_of_doubling * doublings(table, row) - row->measured_ratio);
    }
    skill.mean /= skill.n ? skill.n : 1;
    skill.mean_of_rule /= skill.n ? skill.n : 1;
    vec_free(&at);
    vec_free(&losses);
    return skill;
}

static bool is_data_parallel(const struct validate_row *row)
{
    bool ours = strcmp(row->strategy, "DDP") == 0;
    for (int i = 0; sharding_strategy_names[i]; i++)
        ours |= strcmp(row->strategy, sharding_strategy_names[i]) == 0;
    return ours && (strcmp(row->layout, "DP") == 0 || strcmp(row->layout, "one GPU") == 0);
}

struct validate_loss validate_loss(const struct validate_table *table)
{
    static const double MOST_OFF = 1;
    struct validate_loss loss = {0};
    const struct validate_row *rows = table->rows.at;
    double *sums = xcalloc((size_t)table->rows.n + 1, sizeof *sums), squares = 0, sum = 0;
    int *counts = xcalloc((size_t)table->rows.n + 1, sizeof *counts),
        *of = xcalloc((size_t)table->rows.n + 1, sizeof *of);
    for (int r = 0; r < table->rows.n; r++) {
        if (doublings(table, &rows[r]) <= 0 || !is_data_parallel(&rows[r]) || fabs(rows[r].error) > MOST_OFF)
            continue;
        int s = 0;
        while (s < loss.sources && !validate_same_maker(rows[of[s]].source, rows[r].source))
            s++;
        if (s == loss.sources)
            of[loss.sources++] = r;
        double lacking = rows[r].predicted_ratio - rows[r].measured_ratio;
        sums[s] += lacking;
        counts[s]++;
        loss.n++;
        loss.too_small += lacking > 0;
        loss.measured += 1 - rows[r].measured_ratio;
        loss.predicted += 1 - rows[r].predicted_ratio;
    }
    for (int s = 0; s < loss.sources; s++) {
        sum += sums[s] / counts[s];
        squares += sums[s] / counts[s] * sums[s] / counts[s];
    }
    double n = loss.sources;
    if (n > 1)
        loss.std_error = sqrt(fmax(0, squares / n - sum / n * sum / n) / (n - 1));
    loss.measured /= loss.n ? loss.n : 1;
    loss.predicted /= loss.n ? loss.n : 1;
    free(of);
    free(counts);
    free(sums);
    return loss;
}
