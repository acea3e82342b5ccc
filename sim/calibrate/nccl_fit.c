#include "calibrate/nccl_fit.h"

#include "calibrate/robust.h"
#include "config/config.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_statistics_double.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <string.h>

static const double CAUCHY =
    0.1; /* assumed: log residual at which a size counts half; the target of a table's median */
/* Sizes that show the plateau count more, else the rounded knee below it, which no formula here describes well, bends
 * efficiencies: assumed. */
static const double PLATEAU_BYTES = 0x1p28, PLATEAU_FACTOR = 3;
static const double UNDETERMINED = 1; /* standard error of a logarithm: a factor of 3 is no knowledge (NaN neither) */

static void each_fitted(const struct config_table *table, void *from,
    void (*visit)(void *self, const char *key, enum dimension dimension, struct quantity *q), void *self)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        struct quantity *q = (struct quantity *)(void *)((char *)from + field->offset);
        if (field->type == FIELD_SOURCED && q->kind == QUANTITY_FITTED)
            visit(self, field->key, field->dimension, q);
    }
}

void nccl_each_fitted(
    struct hw *hw, void (*visit)(void *self, const char *key, enum dimension dimension, struct quantity *q), void *self)
{
    each_fitted(&hw_node_table, &hw->node, visit, self);
    each_fitted(&hw_cluster_table, &hw->cluster, visit, self);
}

const struct nccl_parameter *nccl_fit_find(const struct nccl_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct nccl_parameter *p = &fit->parameters.at[i];
        if (strcmp(p->key, key) == 0 && strcmp(p->id, id) == 0)
            return p;
    }
    return NULL;
}

struct coll_cost nccl_case_cost(const struct nccl_fit *fit, const struct nccl_case *which, double bytes)
{
    struct hw hw = fit->systems.at[which->system];
    if (which->channels > 0)
        hw.cluster.nccl_channels = (struct quantity){.value = which->channels, .kind = QUANTITY_ASSUMED};
    if (which->version != COLL_ANY)
        hw.cluster.nccl_version = which->version;
    const struct coll_shape shape = {which->ranks, which->nodes, which->ranks / which->nodes};
    return coll_choose(which->kind, bytes, shape, &hw, which->force);
}

double nccl_case_predict_s(const struct nccl_fit *fit, const struct nccl_case *which, double bytes)
{
    return which->launch_s + coll_isolated_s(nccl_case_cost(fit, which, bytes));
}

static void set_quantity(void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    const struct nccl_parameter *p = nccl_fit_find(self, key, quantity_parameter(*q));
    q->value = p->fitted.value;
    q->std_error = p->fitted.std_error;
}

/* The systems with the parameters' values of the moment. */
static void set_systems(struct nccl_fit *fit)
{
    for (int i = 0; i < fit->systems.n; i++)
        nccl_each_fitted(&fit->systems.at[i], set_quantity, fit);
}

static int residuals(const gsl_vector *at, void *context, gsl_vector *out)
{
    struct nccl_fit *fit = context;
    for (int i = 0; i < fit->parameters.n; i++)
        if (fit->parameters.at[i].number >= 0)
            fit->parameters.at[i].fitted.value = exp(gsl_vector_get(at, (size_t)fit->parameters.at[i].number));
    set_systems(fit);
    size_t n = 0;
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *which = &fit->cases.at[i];
        for (int j = 0; which->use == NCCL_FIT && j < which->points.n; j++) {
            const struct nccl_point *point = &which->points.at[j];
            double off = log(nccl_case_predict_s(fit, which, point->bytes) / point->measured_s);
            gsl_vector_set(out, n++, point->bytes >= PLATEAU_BYTES ? PLATEAU_FACTOR * off : off);
        }
    }
    return GSL_SUCCESS;
}

static void count_free(void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    struct nccl_fit *fit = self;
    for (int i = 0; i < fit->parameters.n; i++) {
        struct nccl_parameter *p = &fit->parameters.at[i];
        if (strcmp(p->key, key) == 0 && strcmp(p->id, quantity_parameter(*q)) == 0 && p->number < 0)
            p->number = (int)fit->n_free++;
    }
}

static size_t set_up(struct nccl_fit *fit)
{
    size_t n_rows = 0;
    fit->n_free = 0;
    for (int i = 0; i < fit->parameters.n; i++) {
        fit->parameters.at[i].number = -1;
        fit->parameters.at[i].fitted = fit->parameters.at[i].filed;
    }
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *which = &fit->cases.at[i];
        if (which->use != NCCL_FIT)
            continue;
        n_rows += (size_t)which->points.n;
        nccl_each_fitted(&fit->systems.at[which->system], count_free, fit);
    }
    return n_rows;
}

static enum status write_errors(struct nccl_fit *fit, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < fit->parameters.n; i++) {
        struct nccl_parameter *p = &fit->parameters.at[i];
        if (p->number < 0)
            continue;
        size_t at = (size_t)p->number;
        double relative = sqrt(fit->covariance[at * fit->n_free + at]);
        p->fitted.std_error = relative * p->fitted.value;
        if (!(relative > 0 && relative < UNDETERMINED)) /* 0: no size depends on it, a singular direction */
            status =
                diag_input(diag, (struct source_pos){0}, "the tables to fit do not determine %s of '%s' (%g +- %g)",
                    p->key, p->id, p->fitted.value, p->fitted.std_error);
    }
    set_systems(fit);
    return status;
}

enum status nccl_fit_solve(struct nccl_fit *fit, double start, struct diag *diag)
{
    size_t n_rows = set_up(fit);
    if (fit->n_free == 0 || n_rows <= fit->n_free)
        return diag_input(
            diag, (struct source_pos){0}, "%zu rows cannot determine %zu parameters", n_rows, fit->n_free);
    gsl_vector *at = gsl_vector_alloc(fit->n_free);
    for (int i = 0; i < fit->parameters.n; i++)
        if (fit->parameters.at[i].number >= 0)
            gsl_vector_set(at, (size_t)fit->parameters.at[i].number, log(start * fit->parameters.at[i].filed.value));
    fit->covariance = xrealloc(fit->covariance, sizeof *fit->covariance * fit->n_free * fit->n_free);
    gsl_matrix_view covariance = gsl_matrix_view_array(fit->covariance, fit->n_free, fit->n_free);
    const struct robust_problem problem = {residuals, fit, n_rows, fit->n_free, CAUCHY, 0, start == 1};
    bool good = robust_fit(at, &covariance.matrix, &problem);
    gsl_vector *off = gsl_vector_alloc(n_rows);
    residuals(at, fit, off); /* leaves the solution in the parameters */
    gsl_vector_free(off);
    gsl_vector_free(at);
    enum status status = write_errors(fit, diag);
    if (!good)
        status = diag_input(diag, (struct source_pos){0}, "the fit of NCCL's parameters does not stand still");
    return status;
}

bool nccl_case_seen(const struct nccl_fit *fit, const struct nccl_case *which)
{
    double gpus = fit->systems.at[which->system].node.gpus.value;
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *other = &fit->cases.at[i];
        if (other->use == NCCL_FIT && strcmp(other->hardware, which->hardware) == 0 &&
            fit->systems.at[other->system].node.gpus.value == gpus)
            return true;
    }
    return false;
}

struct nccl_error nccl_case_error(
    const struct nccl_fit *fit, const struct nccl_case *which, double min_bytes, double max_bytes)
{
    struct nccl_error error = {0};
    double *off = xcalloc((size_t)which->points.n, sizeof *off);
    for (int i = 0; i < which->points.n && which->system >= 0; i++) {
        const struct nccl_point *point = &which->points.at[i];
        if (point->bytes >= min_bytes && point->bytes < max_bytes)
            off[error.n++] = fabs(nccl_case_predict_s(fit, which, point->bytes) / point->measured_s - 1);
    }
    if (error.n > 0) {
        gsl_sort(off, 1, (size_t)error.n);
        error.median = gsl_stats_median_from_sorted_data(off, 1, (size_t)error.n);
    }
    free(off);
    return error;
}
