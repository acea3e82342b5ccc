/* What `flopcast calibrate fit training` prints. */
#include "calibrate/correlations.h"
#include "calibrate/training_fit.h"
#include "calibrate/robust.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct errors {
    int n;
    double bias, median, p90; /* of predicted / measured - 1; the last two of its absolute value */
};

/* Of the rows that were left out, or of those that were not. */
static struct errors errors_of(const struct training_fit *fit, bool left_out)
{
    double *off = xcalloc((size_t)fit->table.rows.n + 1, sizeof *off);
    struct errors errors = {0};
    for (int i = 0; i < fit->table.rows.n; i++)
        if (fit->table.rows.at[i].has_error && fit->rows[i].left_out == left_out)
            off[errors.n++] = expm1(training_fit_residual(fit, i));
    if (errors.n > 0) {
        size_t n = (size_t)errors.n;
        gsl_sort(off, 1, n);
        errors.bias = gsl_stats_median_from_sorted_data(off, 1, n);
        for (size_t i = 0; i < n; i++)
            off[i] = fabs(off[i]);
        gsl_sort(off, 1, n);
        errors.median = gsl_stats_median_from_sorted_data(off, 1, n);
        errors.p90 = gsl_stats_quantile_from_sorted_data(off, 1, n, 0.9);
    }
    free(off);
    return errors;
}

/* No error: no row's speed depends on it. One as large as the number itself: by the rows the number could be 0. */
bool training_fit_determines(const struct training_parameter *parameter)
{
    return parameter->fitted.std_error > 0 && parameter->fitted.std_error < fabs(parameter->fitted.value);
}

void training_fit_print(FILE *out, const struct training_fit *fit)
{
    fprintf(out, "%-22s %5s %10s %10s    %-10s %-20s %s\n", "parameter", "rows", "in file", "fitted", "+-", "prior",
        "what the file says of it");
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct training_parameter *p = &fit->parameters.at[i];
        char prior[32] = "-";
        if (quantity_is_set(p->prior))
            snprintf(prior, sizeof prior, "%.3g +- %.2g", p->prior.value, p->prior.std_error);
        if (training_fit_determines(p))
            fprintf(out, "%-22s %5d %10.4g %10.4g +- %-10.3g %-20s %s\n", p->key, p->rows, p->filed.value,
                p->fitted.value, p->fitted.std_error, prior, p->filed.source);
        else
            fprintf(out, "%-22s %5d %10.4g  not determined by these rows; keep it  %s\n", p->key, p->rows,
                p->filed.value, p->filed.source);
    }
    int n = fit->parameters.n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double correlation =
                fit->covariance[i * n + j] / sqrt(fit->covariance[i * n + i] * fit->covariance[j * n + j]);
            if (fabs(correlation) > CALIBRATE_TIED)
                fprintf(out, "correlation %+.2f: %s (%s) and %s (%s)\n", correlation, fit->parameters.at[i].key,
                    fit->parameters.at[i].id, fit->parameters.at[j].key, fit->parameters.at[j].id);
        }
    struct errors e = errors_of(fit, false);
    fprintf(out, "\n%d rows: |predicted / measured - 1| median %.1f %%, 90th percentile %.1f %%\n", e.n, 100 * e.median,
        100 * e.p90);
}

void training_fit_print_correlations(FILE *out, const struct training_fit *fit)
{
    int n = fit->parameters.n;
    const char **keys = xcalloc((size_t)n, sizeof *keys), **ids = xcalloc((size_t)n, sizeof *ids);
    for (int i = 0; i < n; i++) {
        keys[i] = fit->parameters.at[i].key;
        ids[i] = fit->parameters.at[i].id;
    }
    correlations_print(out, keys, ids, fit->covariance, n);
    free(keys);
    free(ids);
}

static bool same_family(const struct validate_row *a, const struct validate_row *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->model, b->model) == 0;
}

enum status training_fit_cross_validate(FILE *out, struct training_fit *fit, struct diag *diag)
{
    const struct validate_row *rows = fit->table.rows.at;
    enum status status = STATUS_OK;
    fprintf(out, "%-60s %-14s %5s %8s %8s %8s %9s\n", "left out", "model", "rows", "bias %", "median %", "p90 %",
        "others %");
    for (int i = 0; i < fit->table.rows.n && status == STATUS_OK; i++) {
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = !same_family(&rows[j], &rows[i]);
        if (!first)
            continue;
        for (int j = 0; j < fit->table.rows.n; j++)
            fit->rows[j].left_out = same_family(&rows[j], &rows[i]);
        status = training_fit_solve(fit, diag);
        struct errors e = errors_of(fit, true), others = errors_of(fit, false);
        if (status == STATUS_OK)
            fprintf(out, "%-60s %-14s %5d %8.1f %8.1f %8.1f %9.1f\n", rows[i].source, rows[i].model, e.n, 100 * e.bias,
                100 * e.median, 100 * e.p90, 100 * others.median);
        fflush(out);
    }
    return status;
}

bool *training_fit_rows(const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if (csv_load(&csv, path, diag) != STATUS_OK)
        return NULL;
    bool *rows = xcalloc((size_t)csv_rows(csv) + 1, sizeof *rows);
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *used = validate_used_in_fit(csv, r), *key = strstr(used, ": ");
        rows[r] = key ? training_fit_has(key + 2) : *used != '\0';
    }
    csv_release(csv);
    return rows;
}
