#include "calibrate/fit_training.h"

#include "calibrate/robust.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CAUCHY = 0.05; /* assumed: log residual at which a row counts half */

/* Of the finite differences: simulated time is whole picoseconds, and a kernel more or less beside a collective is a
 * jump; assumed, well above the one and below what matters. */
static const double STEP = 1e-3;

/* The quantities of a GPU that this fit is about. */
enum { N_KEYS = 5 };
static const char *const keys[N_KEYS] = {
    "gemm_sustained", "overlap_slowdown", "attention_efficiency", "attention_backward", "pointwise_efficiency"};

static struct quantity *quantity_of(struct hw_gpu *gpu, int key)
{
    struct quantity *const of[N_KEYS] = {&gpu->gemm_sustained, &gpu->overlap_slowdown, &gpu->attention_efficiency,
        &gpu->attention_backward, &gpu->pointwise_efficiency};
    return of[key];
}

/* The parameter that a quantity is; NULL: it is no fitted one. */
static struct training_parameter *find(struct training_fit *fit, int key, struct quantity q)
{
    if (q.kind != QUANTITY_FITTED)
        return NULL;
    for (int i = 0; i < fit->parameters.n; i++) {
        struct training_parameter *p = &fit->parameters.at[i];
        if (strcmp(p->key, keys[key]) == 0 && strcmp(p->source, q.source) == 0)
            return p;
    }
    return NULL;
}

static void collect(struct training_fit *fit)
{
    for (int i = 0; i < fit->table.rows.n; i++)
        for (int k = 0; k < N_KEYS; k++) {
            struct validate_row *row = &fit->table.rows.at[i];
            if (row->status == VALIDATE_NOT_SIMULATED)
                continue;
            struct quantity q = *quantity_of(&row->set.points[0].hw.gpu, k);
            struct training_parameter *p = find(fit, k, q);
            if (!p && q.kind == QUANTITY_FITTED) {
                vec_push(&fit->parameters,
                    (struct training_parameter){.key = keys[k], .source = q.source, .filed = q, .fitted = q});
                p = &fit->parameters.at[fit->parameters.n - 1];
            }
            if (p)
                p->rows++;
        }
}

static void set_values(struct training_fit *fit)
{
    for (int i = 0; i < fit->table.rows.n; i++)
        for (int k = 0; k < N_KEYS; k++) {
            struct validate_row *row = &fit->table.rows.at[i];
            if (row->status == VALIDATE_NOT_SIMULATED)
                continue;
            struct quantity *q = quantity_of(&row->set.points[0].hw.gpu, k);
            const struct training_parameter *p = find(fit, k, *q);
            if (p)
                q->value = p->fitted.value;
        }
}

/* Shares are varied as log(x / (1 - x)), so that they stay shares; the slowdown as its logarithm, within bounds that no
 * machine reaches. */
static const double SLOWDOWN_MOST = 10, SLOWDOWN_LEAST = 1e-4;

static bool is_share(const struct training_parameter *p)
{
    return strcmp(p->key, "overlap_slowdown") != 0;
}

static double varied(const struct training_parameter *p)
{
    return is_share(p) ? log(p->filed.value / (1 - p->filed.value)) : log(p->filed.value);
}

static double value_of(const struct training_parameter *p, double x)
{
    return is_share(p) ? 1 / (1 + exp(-x)) : fmin(SLOWDOWN_MOST, fmax(SLOWDOWN_LEAST, exp(x)));
}

static double slope_of(const struct training_parameter *p)
{
    return is_share(p) ? p->fitted.value * (1 - p->fitted.value) : p->fitted.value;
}

/* The two points at which a row was simulated last. Most parameters are those of one GPU or stack: when the fit steps
 * along one, the rows of the others stand where they stood. */
struct training_memo {
    struct {
        double at[N_KEYS], speed;
    } last[2];
    int next;
};

static bool same_point(const double *a, const double *b)
{
    for (int k = 0; k < N_KEYS; k++)
        if (a[k] < b[k] || a[k] > b[k])
            return false;
    return true;
}

static double speed_of(struct training_fit *fit, int i)
{
    struct scenario_point *point = &fit->table.rows.at[i].set.points[0];
    struct training_memo *memo = &fit->memo[i];
    double at[N_KEYS];
    for (int k = 0; k < N_KEYS; k++)
        at[k] = quantity_of(&point->hw.gpu, k)->value;
    for (int m = 0; m < 2; m++)
        if (memo->last[m].speed > 0 && same_point(memo->last[m].at, at))
            return memo->last[m].speed;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT; /* what can be compiled was compiled before */
    struct scenario_result result = {0};
    scenario_simulate(&result, point, &arena, &diag);
    memcpy(memo->last[memo->next].at, at, sizeof at);
    memo->last[memo->next].speed = result.tokens_per_s_per_gpu;
    memo->next = !memo->next;
    arena_release(&arena);
    return result.tokens_per_s_per_gpu;
}

static int residuals(const gsl_vector *at, void *context, gsl_vector *out)
{
    struct training_fit *fit = context;
    for (int i = 0; i < fit->parameters.n; i++)
        fit->parameters.at[i].fitted.value = value_of(&fit->parameters.at[i], gsl_vector_get(at, (size_t)i));
    set_values(fit);
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < fit->table.rows.n; i++) {
        const struct validate_row *row = &fit->table.rows.at[i];
        double off = 0;
        if (row->has_error) /* as it was filed; the figure that was published may be another than tokens/s */
            off = log((1 + row->error) * fit->noise[i] * speed_of(fit, i) / row->predicted.tokens_per_s_per_gpu);
        gsl_vector_set(out, (size_t)i, off);
    }
    return GSL_SUCCESS;
}

enum status training_fit_load(
    struct training_fit *out, const char *table, const char *base, const bool *rows, struct diag *diag)
{
    *out = (struct training_fit){0};
    if (!validate_load(&out->table, table, base, rows, diag))
        return diag->worst;
    collect(out);
    int n = out->table.rows.n;
    if (out->parameters.n == 0 || n <= out->parameters.n)
        return diag_input(diag, (struct source_pos){.file = table},
            "%d rows to fit %d parameters with; mark more rows than parameters in column 'used_in_fit'", n,
            out->parameters.n);
    out->noise = xcalloc((size_t)n, sizeof *out->noise);
    out->memo = xcalloc((size_t)n, sizeof *out->memo);
    validate_run(&out->table, NULL, NULL, diag);
    for (int i = 0; i < n; i++)
        out->noise[i] = out->table.rows.at[i].has_error ? 1 + out->table.rows.at[i].error : 1;
    for (int i = 0; i < n; i++) {
        struct validate_row *row = &out->table.rows.at[i];
        if (row->status != VALIDATE_NOT_SIMULATED)
            row->set.points[0].options.exec.noise = (struct noise_options){0};
    }
    validate_run(&out->table, NULL, NULL, diag);
    for (int i = 0; i < n; i++)
        out->noise[i] /= out->table.rows.at[i].has_error ? 1 + out->table.rows.at[i].error : 1;
    return diag->worst;
}

enum status training_fit_solve(struct training_fit *fit, struct diag *diag)
{
    size_t n = (size_t)fit->parameters.n;
    gsl_vector *at = gsl_vector_alloc(n);
    gsl_matrix *covariance = gsl_matrix_alloc(n, n);
    for (size_t i = 0; i < n; i++)
        gsl_vector_set(at, i, varied(&fit->parameters.at[i]));
    struct robust_problem problem = {residuals, fit, (size_t)fit->table.rows.n, n, CAUCHY, STEP};
    enum status status = STATUS_OK;
    if (!robust_fit(at, covariance, &problem))
        status = diag_input(diag, (struct source_pos){0}, "the fit does not stand still; the rows do not determine it");
    fit->covariance = xcalloc(n * n, sizeof *fit->covariance);
    for (size_t i = 0; i < n; i++) {
        struct training_parameter *p = &fit->parameters.at[i];
        p->fitted.value = value_of(p, gsl_vector_get(at, i));
        p->fitted.std_error = slope_of(p) * sqrt(gsl_matrix_get(covariance, i, i));
        for (size_t j = 0; j < n; j++)
            fit->covariance[i * n + j] = gsl_matrix_get(covariance, i, j);
    }
    set_values(fit);
    validate_run(&fit->table, NULL, NULL, diag);
    gsl_vector_free(at);
    gsl_matrix_free(covariance);
    return status;
}

void training_fit_free(struct training_fit *fit)
{
    validate_release(&fit->table);
    vec_free(&fit->parameters);
    free(fit->noise);
    free(fit->memo);
    free(fit->covariance);
}

static bool fitted_on(const struct validate_row *row, const void *self)
{
    (void)self;
    return row->has_error;
}

static void print(FILE *out, const struct training_fit *fit)
{
    fprintf(out, "%-22s %5s %10s %10s    %-10s\n", "parameter", "rows", "in file", "fitted", "+-");
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct training_parameter *p = &fit->parameters.at[i];
        fprintf(out, "%-22s %5d %10.4f %10.4f +- %-10.4f %s\n", p->key, p->rows, p->filed.value, p->fitted.value,
            p->fitted.std_error, p->source);
    }
    int n = fit->parameters.n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double correlation =
                fit->covariance[i * n + j] / sqrt(fit->covariance[i * n + i] * fit->covariance[j * n + j]);
            if (fabs(correlation) > CALIBRATE_TIED)
                fprintf(out, "correlation %+.2f: %s (%s) and %s (%s)\n", correlation, fit->parameters.at[i].key,
                    fit->parameters.at[i].source, fit->parameters.at[j].key, fit->parameters.at[j].source);
        }
    struct validate_summary s = validate_summarise(&fit->table, fitted_on, NULL);
    fprintf(out, "\n%d rows, without noise: |predicted / measured - 1| median %.1f %%, 90th percentile %.1f %%\n",
        s.n_errors, 100 * s.median, 100 * s.p90);
}

enum status training_fit_print(FILE *out, const char *path, const char *base, struct diag *diag)
{
    struct csv_table *csv = NULL;
    enum status status = csv_load(&csv, path, diag);
    if (status != STATUS_OK)
        return status;
    bool *rows = xcalloc((size_t)csv_rows(csv) + 1, sizeof *rows);
    for (int r = 0; r < csv_rows(csv); r++)
        rows[r] = *csv_cell(csv, r, csv_column(csv, "used_in_fit")) != '\0';
    csv_release(csv);
    struct training_fit fit = {0};
    status = training_fit_load(&fit, path, base, rows, diag);
    if (status == STATUS_OK)
        status = training_fit_solve(&fit, diag);
    if (status == STATUS_OK)
        print(out, &fit);
    training_fit_free(&fit);
    free(rows);
    return status;
}
