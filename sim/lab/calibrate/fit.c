/* The driver of all fits: robust nonlinear least squares on logarithms. Parameters are varied as
 * log, logit or as they are (fit_scale), so steps stay within what a value may be. Residuals are
 * log(model / measured) of each row times its factor, then one residual a prior: its weight times
 * the distance as varied. A search alternates: weights 1 / (1 + (off / scale)^2) from the
 * residuals, then GSL's trust region with these weights, at most REWEIGHTINGS rounds, until the
 * parameters stand still.
 *
 * What is subtle: a model that is a simulation is rough at small steps, which `step` > 0 says:
 * finite differences are that wide, a round takes FEW_STEPS, and standing still is judged by the
 * step. `range` > 0 holds values within that factor of the start; GSL may propose NaN where rows
 * say nothing, which then is the start. A parameter that no row depends on gets a standard error of
 * 0, which callers read as not determined. GSL takes finite differences around the position that it
 * asked for last: where one coordinate alone has moved since, rows that do not read that parameter
 * (`reads`) have the residual of then, to the last bit. */
#include "calibrate/fit.h"

#include "base/arena.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REWEIGHTINGS = 40, MAX_STEPS = 100, FEW_STEPS = 3 };
static const double STILL_SHARE =
    0.1; /* of the step of finite differences: a fit that moves less stands still */
static const double RAISED = 0.01; /* of what is varied, to see whether rows depend on it */

struct fit_parameter *fit_add(
    struct fit *fit, const char *key, enum dimension dimension, struct quantity *at, double start)
{
    struct fit_parameter p = {.key = key, .dimension = dimension, .at = {at}};
    if (at)
        p.filed = *at;
    p.fitted = (struct quantity){.value = start, .kind = QUANTITY_FITTED, .source = fit->source};
    if (at)
        *at = p.fitted;
    vec_push(&fit->parameters, p);
    return &fit->parameters.at[fit->parameters.n - 1];
}

void fit_add_row(struct fit *fit, const void *row, double measured)
{
    vec_push(&fit->rows, (struct fit_row){row, measured, 1, false});
}

static double varied(const struct fit_parameter *p, double value)
{
    return p->scale == FIT_LINEAR ? value
           : p->scale == FIT_LOG  ? log(value)
                                  : log(value / (1 - value));
}

static double calibrate_fit_value_of(
    const struct fit *fit, const struct fit_parameter *p, double start, double x)
{
    if (p->scale == FIT_LINEAR)
        return x;
    if (p->scale == FIT_LOGIT)
        return 1 / (1 + exp(-x));
    return fit->range > 0 ? fmin(fit->range * start, fmax(start / fit->range, exp(x))) : exp(x);
}

static double slope_of(const struct fit_parameter *p)
{
    double value = p->fitted.value;
    return p->scale == FIT_LINEAR ? 1 : p->scale == FIT_LOG ? value : value * (1 - value);
}

/* Models that are simulations are rough at the size of a step, and cost more than weights: few
 * steps between weightings do. */
static bool is_rough(const struct fit *fit)
{
    return fit->step > 0;
}

/* A search in progress. */
struct search {
    struct fit *fit;
    gsl_vector *at;
    gsl_matrix *covariance;
    double *start; /* of every parameter */
    size_t n_residuals;
    bool *reads;                /* [row][number of what is varied]; NULL: all read all */
    gsl_vector *last_at, *last; /* where all rows were asked last, and what they said */
    bool asked;
};

/* The parameters, and the model, as varied. What is no number, of a step that the rows do not
 * determine, is the start. */
static void calibrate_fit_place(const struct search *s, const gsl_vector *at)
{
    struct fit *fit = s->fit;
    for (int i = 0; i < fit->parameters.n; i++) {
        struct fit_parameter *p = &fit->parameters.at[i];
        if (p->fixed)
            continue;
        double x = gsl_vector_get(at, (size_t)p->number);
        p->fitted.value = fit->range > 0 && !isfinite(x)
                              ? s->start[i]
                              : calibrate_fit_value_of(fit, p, s->start[i], x);
        for (int k = 0; k < 2 && p->at[k]; k++)
            p->at[k]->value = p->fitted.value;
    }
    if (fit->settle)
        fit->settle(fit->self);
}

double fit_residual(const struct fit *fit, int row)
{
    const struct fit_row *r = &fit->rows.at[row];
    return log(fit->predict(fit->self, r->row) / r->measured);
}

enum { ALL_ROWS = -1, NO_ROW = -2 };

/* The one coordinate in which this is not where all rows were asked last. */
static int calibrate_fit_moved(const struct search *s, const gsl_vector *at)
{
    int moved = NO_ROW;
    if (!s->reads || !s->asked)
        return ALL_ROWS;
    for (size_t j = 0; j < at->size; j++)
        if (gsl_vector_get(at, j) != gsl_vector_get(s->last_at, j)) {
            if (moved >= 0)
                return ALL_ROWS;
            moved = (int)j;
        }
    return moved;
}

/* A left-out row keeps its place with a residual of 0, so that the problem keeps its size. */
static int residuals(const gsl_vector *at, void *context, gsl_vector *out)
{
    struct search *s = context;
    const struct fit *fit = s->fit;
    size_t n = 0;
    int moved = calibrate_fit_moved(s, at);
    calibrate_fit_place(s, at);
    for (int i = 0; i < fit->rows.n; i++) {
        const struct fit_row *row = &fit->rows.at[i];
        bool as_before =
            moved == NO_ROW || (moved >= 0 && !s->reads[(size_t)i * fit->n_free + (size_t)moved]);
        double off = as_before       ? gsl_vector_get(s->last, n)
                     : row->left_out ? 0
                                     : row->factor * fit_residual(fit, i);
        gsl_vector_set(out, n++, off);
    }
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct fit_parameter *p = &fit->parameters.at[i];
        double x = p->fixed ? varied(p, p->fitted.value) : gsl_vector_get(at, (size_t)p->number);
        if (p->expected > 0)
            gsl_vector_set(out, n++, p->weight * (x - varied(p, p->expected)));
    }
    if (moved == ALL_ROWS && s->reads) {
        gsl_vector_memcpy(s->last_at, at);
        gsl_vector_memcpy(s->last, out);
        s->asked = true;
    }
    return GSL_SUCCESS;
}

static void calibrate_fit_find_readers(struct search *s)
{
    const struct fit *fit = s->fit;
    if (!fit->reads)
        return;
    s->last_at = gsl_vector_alloc(fit->n_free);
    s->last = gsl_vector_alloc(s->n_residuals);
    s->reads = xcalloc((size_t)fit->rows.n * fit->n_free, sizeof *s->reads);
    for (int i = 0; i < fit->rows.n; i++)
        for (int k = 0; k < fit->parameters.n; k++) {
            const struct fit_parameter *p = &fit->parameters.at[k];
            if (!p->fixed)
                s->reads[(size_t)i * fit->n_free + (size_t)p->number] =
                    fit->reads(fit->self, fit->rows.at[i].row, p);
        }
}

/* Numbers what is varied, and begins where it stands. False: too few rows. */
static bool calibrate_fit_begin(struct search *s, struct fit *fit)
{
    fit->n_free = 0;
    *s = (struct search){.fit = fit, .n_residuals = (size_t)fit->rows.n};
    for (int i = 0; i < fit->parameters.n; i++) {
        struct fit_parameter *p = &fit->parameters.at[i];
        p->number = p->fixed ? -1 : (int)fit->n_free++;
        s->n_residuals += p->expected > 0;
    }
    if (fit->n_free == 0 || (size_t)fit->rows.n <= fit->n_free)
        return false;
    s->at = gsl_vector_alloc(fit->n_free);
    s->covariance = gsl_matrix_alloc(fit->n_free, fit->n_free);
    s->start = xcalloc((size_t)fit->parameters.n, sizeof *s->start);
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct fit_parameter *p = &fit->parameters.at[i];
        s->start[i] = p->fitted.value;
        if (!p->fixed)
            gsl_vector_set(s->at, (size_t)p->number, varied(p, p->fitted.value));
    }
    calibrate_fit_find_readers(s);
    return true;
}

/* Whether rows depend on it: a search that comes from below stops where a parameter ceases to
 * count, with an error as if it did. */
static bool calibrate_fit_counts(struct search *s, size_t number)
{
    gsl_vector *more = gsl_vector_alloc(s->at->size), *here = gsl_vector_alloc(s->n_residuals),
               *there = gsl_vector_alloc(s->n_residuals);
    gsl_vector_memcpy(more, s->at);
    gsl_vector_set(more, number, gsl_vector_get(s->at, number) + RAISED);
    residuals(more, s, there);
    residuals(s->at, s, here);
    gsl_vector_sub(there, here);
    double most = fmax(gsl_vector_max(there), -gsl_vector_min(there));
    gsl_vector_free(more);
    gsl_vector_free(here);
    gsl_vector_free(there);
    return most > RAISED * RAISED;
}

/* Leaves the parameters and the model at the solution. */
static void calibrate_fit_end(struct search *s)
{
    struct fit *fit = s->fit;
    size_t n = fit->n_free;
    fit->covariance = xrealloc(fit->covariance, n * n * sizeof *fit->covariance);
    for (size_t i = 0; i < n * n; i++)
        fit->covariance[i] = gsl_matrix_get(s->covariance, i / n, i % n);
    calibrate_fit_place(s, s->at);
    for (int i = 0; i < fit->parameters.n; i++) {
        struct fit_parameter *p = &fit->parameters.at[i];
        if (p->fixed)
            continue;
        size_t at = (size_t)p->number;
        bool known = is_rough(fit) || calibrate_fit_counts(s, at); /* wide differences see it */
        p->fitted.std_error = known ? slope_of(p) * sqrt(fit->covariance[at * n + at]) : 0;
        for (int k = 0; k < 2 && p->at[k]; k++)
            *p->at[k] = p->fitted;
    }
    gsl_vector_free(s->at);
    gsl_matrix_free(s->covariance);
    free(s->start);
    if (!s->reads)
        return;
    gsl_vector_free(s->last_at);
    gsl_vector_free(s->last);
    free(s->reads);
}

static double still(const struct fit *fit, double smooth)
{
    return is_rough(fit) ? STILL_SHARE * fit->step : smooth;
}

static void calibrate_fit_weigh(gsl_vector *weights, gsl_vector *off, struct search *s)
{
    residuals(s->at, s, off);
    for (size_t i = 0; i < s->n_residuals; i++)
        gsl_vector_set(weights, i, 1 / (1 + pow(gsl_vector_get(off, i) / s->fit->scale, 2)));
}

static gsl_multifit_nlinear_workspace *calibrate_fit_allocate(const struct search *s)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    if (is_rough(s->fit))
        how.h_df = s->fit->step;
    return gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &how, s->n_residuals, s->fit->n_free);
}

/* That of the last Jacobian, scaled by the weighted sum of squares over the degrees of freedom. */
static void set_covariance(struct search *s, gsl_multifit_nlinear_workspace *work)
{
    double sum = 0;
    const gsl_vector *off = gsl_multifit_nlinear_residual(work);
    gsl_blas_ddot(off, off, &sum);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(work), 0, s->covariance);
    gsl_matrix_scale(s->covariance, sum / (double)(s->n_residuals - s->fit->n_free));
}

/* From s->at to the solution, at most `rounds` weightings away; 0: the covariance where it
 * stands. starts_near: the first round is weighted by where the search begins, otherwise all
 * rows count alike in it. */
static bool search_from(struct search *s, int rounds)
{
    const struct fit *fit = s->fit;
    gsl_multifit_nlinear_workspace *work = calibrate_fit_allocate(s);
    gsl_multifit_nlinear_fdf problem = {
        .f = residuals, .n = s->n_residuals, .p = fit->n_free, .params = s};
    gsl_vector *weights = gsl_vector_alloc(s->n_residuals), *off = gsl_vector_alloc(s->n_residuals);
    gsl_vector *before = gsl_vector_alloc(fit->n_free);
    double moved = HUGE_VAL;
    gsl_vector_set_all(weights, 1);
    if (fit->starts_near || rounds == 0)
        calibrate_fit_weigh(weights, off, s);
    if (rounds == 0)
        gsl_multifit_nlinear_winit(s->at, weights, &problem, work);
    for (int round = 0; round < rounds && moved > still(fit, 1e-6); round++) {
        int info;
        gsl_vector_memcpy(before, s->at);
        gsl_multifit_nlinear_winit(s->at, weights, &problem, work);
        gsl_multifit_nlinear_driver(is_rough(fit) ? FEW_STEPS : MAX_STEPS, still(fit, 1e-9), 1e-9,
            0, NULL, NULL, &info, work);
        gsl_vector_memcpy(s->at, gsl_multifit_nlinear_position(work));
        calibrate_fit_weigh(weights, off, s);
        gsl_vector_sub(before, s->at);
        moved = gsl_blas_dnrm2(before);
    }
    set_covariance(s, work);
    gsl_vector_free(weights);
    gsl_vector_free(off);
    gsl_vector_free(before);
    gsl_multifit_nlinear_free(work);
    return moved < 1e-3; /* a tenth of a percent: below what is asked of the numbers */
}

/* Also after a search that did not come to rest the parameters and their errors are those of its
 * last position. */
bool fit_solve(struct fit *fit)
{
    struct search search;
    if (!calibrate_fit_begin(&search, fit))
        return false;
    bool good = search_from(&search, REWEIGHTINGS);
    calibrate_fit_end(&search);
    return good;
}

void fit_covariance(struct fit *fit)
{
    struct search search;
    BUG_IF(!calibrate_fit_begin(&search, fit), "a fit with too few rows");
    search_from(&search, 0);
    calibrate_fit_end(&search);
}

void fit_free(struct fit *fit)
{
    vec_free(&fit->parameters);
    vec_free(&fit->rows);
    free(fit->covariance);
    fit->covariance = NULL;
}

double fit_cost(const struct fit *fit)
{
    double cost = 0;
    for (int i = 0; i < fit->rows.n; i++)
        cost += log1p(pow(fit_residual(fit, i) / fit->scale, 2));
    return cost;
}

int fit_find_name(const char *const *names, const char *name)
{
    for (int i = 0; name && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

void fit_sample_add(struct fit_sample *sample, double model, double measured)
{
    vec_push(&sample->off, model / measured - 1);
}

struct fit_error fit_sample_error(struct fit_sample *sample)
{
    struct fit_error error = {.n = sample->off.n};
    size_t n = (size_t)error.n;
    double *off = sample->off.at;
    if (n > 0) {
        gsl_sort(off, 1, n);
        error.bias = gsl_stats_median_from_sorted_data(off, 1, n);
        for (size_t i = 0; i < n; i++)
            off[i] = fabs(off[i]);
        gsl_sort(off, 1, n);
        error.median = gsl_stats_median_from_sorted_data(off, 1, n);
        error.p90 = gsl_stats_quantile_from_sorted_data(off, 1, n, 0.9);
        error.most = off[n - 1];
    }
    vec_free(&sample->off);
    return error;
}

/* Assumed: a parameter that has no correlation as large as this is drawn independently; a band does
 * not show it. */
static const double MATTERS = 0.1;

void fit_print_head(FILE *out, const char *name)
{
    fprintf(out, "%s\n  %-29s %14s %14s\n", name, "", "in the file", "fitted");
}

void fit_print_number(FILE *out, const char *group, const char *key, struct quantity filed,
    struct quantity found, enum dimension dimension, const char *remark)
{
    char before[64] = "-", now[64] = "-", error[64];
    if (quantity_is_set(filed))
        quantity_format(before, sizeof before, filed.value, dimension);
    if (quantity_is_set(found))
        quantity_format(now, sizeof now, found.value, dimension);
    fprintf(out, "  %-8s %-20s %14s %14s", group, key, before, now);
    if (found.kind == QUANTITY_FITTED)
        fprintf(out, "  +- %s", quantity_format(error, sizeof error, found.std_error, dimension));
    fprintf(out, "%s%s\n", *remark ? "  " : "", remark);
}

/* Without a list of keys, what a fit has put there: another source than the file's, measured or
 * fitted. */
static bool is_printed(const struct config_field *field, struct quantity was, struct quantity is,
    const char *const *keys)
{
    if (field->type != FIELD_SOURCED || !(quantity_is_set(was) || quantity_is_set(is)))
        return false;
    for (int i = 0; keys && keys[i]; i++)
        if (strcmp(keys[i], field->key) == 0)
            return true;
    return !keys && (is.kind == QUANTITY_MEASURED || is.kind == QUANTITY_FITTED) &&
           is.source != was.source;
}

void fit_print_fields(FILE *out, const struct config_table *table, const void *filed,
    const void *found, const char *group, const char *const *keys)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *was = (const char *)filed + field->offset,
                   *is = (const char *)found + field->offset;
        if (field->type == FIELD_SECTION)
            fit_print_fields(out, field->section, was, is, field->key, keys);
        else if (field->type == FIELD_SOURCED && is_printed(field, *(const struct quantity *)was,
                                                     *(const struct quantity *)is, keys))
            fit_print_number(out, group, field->key, *(const struct quantity *)was,
                *(const struct quantity *)is, field->dimension, "");
    }
}

void fit_print_parameters(FILE *out, const struct fit *fit)
{
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct fit_parameter *p = &fit->parameters.at[i];
        fit_print_number(out, "", p->key, p->filed, p->fitted, p->dimension, p->id ? p->id : "");
    }
}

static double calibrate_fit_correlation(const struct fit *fit, int a, int b)
{
    const struct fit_parameter *p = fit->parameters.at;
    if (p[a].number < 0 || p[b].number < 0)
        return 0;
    size_t n = fit->n_free, i = (size_t)p[a].number, j = (size_t)p[b].number;
    return fit->covariance[i * n + j] /
           sqrt(fit->covariance[i * n + i] * fit->covariance[j * n + j]);
}

static void print_name(FILE *out, const char *before, const struct fit_parameter *p)
{
    fprintf(
        out, "%s%s%s%s%s", before, p->key, p->id ? " (" : "", p->id ? p->id : "", p->id ? ")" : "");
}

void fit_print_tied(FILE *out, const struct fit *fit)
{
    for (int i = 0; i < fit->parameters.n; i++)
        for (int j = 0; j < i; j++) {
            double both = calibrate_fit_correlation(fit, i, j);
            if (!(fabs(both) > FIT_TIED))
                continue;
            fprintf(out, "  correlation %+.2f", both);
            print_name(out, ": ", &fit->parameters.at[i]);
            print_name(out, " and ", &fit->parameters.at[j]);
            fputc('\n', out);
        }
}

void fit_print_error(FILE *out, const char *what, const char *use, struct fit_error error)
{
    if (error.n > 0)
        fprintf(out,
            "  %-22s %-13s %5d rows: |model / measured - 1| median %5.1f %%, 90th percentile %5.1f "
            "%%\n",
            what, use, error.n, 100 * error.median, 100 * error.p90);
}

/* Those worth a line, in order. NaN, of a parameter that nothing determines, is none. */
static int calibrate_fit_choose(int *chosen, const struct fit *fit)
{
    int n_chosen = 0;
    for (int i = 0; i < fit->parameters.n; i++) {
        double most = 0;
        for (int j = 0; j < fit->parameters.n; j++)
            most = i == j ? most : fmax(most, fabs(calibrate_fit_correlation(fit, i, j)));
        if (most >= MATTERS)
            chosen[n_chosen++] = i;
    }
    return n_chosen;
}

void fit_print_correlations(FILE *out, const struct fit *fit)
{
    int *chosen = xcalloc((size_t)fit->parameters.n + 1, sizeof *chosen);
    int n_chosen = calibrate_fit_choose(chosen, fit);
    fputs("  - parameters:\n", out);
    for (int i = 0; i < n_chosen; i++) {
        const struct fit_parameter *p = &fit->parameters.at[chosen[i]];
        fprintf(out, "      - {key: %s, fit: ", p->key);
        json_write_string(out, p->id);
        fputs("}\n", out);
    }
    fputs("    correlations:\n", out);
    for (int i = 1; i < n_chosen; i++) {
        /* Two digits: tens of rows determine no more. Towards 0, which keeps what is nearly one
         * parameter apart. */
        for (int j = 0; j < i; j++)
            fprintf(out, "%s%g", j ? ", " : "      - [",
                trunc(100 * calibrate_fit_correlation(fit, chosen[i], chosen[j])) / 100 + 0.0);
        fputs("]\n", out);
    }
    free(chosen);
}
