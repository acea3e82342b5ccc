#include "calibrate/nccl_fit.h"

#include "config/config.h"

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

const struct fit_parameter *nccl_fit_find(const struct nccl_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
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
    const struct fit_parameter *p = nccl_fit_find(self, key, quantity_parameter(*q));
    q->value = p->fitted.value;
    q->std_error = p->fitted.std_error;
}

/* The systems with the parameters' values of the moment. */
static void set_systems(void *self)
{
    struct nccl_fit *fit = self;
    for (int i = 0; i < fit->systems.n; i++)
        nccl_each_fitted(&fit->systems.at[i], set_quantity, fit);
}

static double predict(const void *self, const void *row)
{
    const struct nccl_fit *fit = self;
    const struct nccl_point *point = row;
    return nccl_case_predict_s(fit, &fit->cases.at[point->place], point->bytes);
}

static void set_free(void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    struct nccl_fit *fit = self;
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (strcmp(p->key, key) == 0 && strcmp(p->id, quantity_parameter(*q)) == 0)
            p->fixed = false;
    }
}

static void add_rows(struct nccl_fit *fit, int place)
{
    struct nccl_case *which = &fit->cases.at[place];
    for (int i = 0; i < which->points.n; i++) {
        struct nccl_point *point = &which->points.at[i];
        point->place = place;
        fit_add_row(&fit->fit, point, point->measured_s);
        if (point->bytes >= PLATEAU_BYTES)
            fit->fit.rows.at[fit->fit.rows.n - 1].factor = PLATEAU_FACTOR;
    }
}

static void set_up(struct nccl_fit *nccl, double start)
{
    struct fit *fit = &nccl->fit;
    fit->self = nccl;
    fit->predict = predict;
    fit->settle = set_systems;
    fit->scale = CAUCHY;
    fit->starts_near = start == 1;
    fit->rows.n = 0;
    for (int i = 0; i < fit->parameters.n; i++)
        fit->parameters.at[i].fixed = true;
    for (int i = 0; i < nccl->cases.n; i++)
        if (nccl->cases.at[i].use == NCCL_FIT) {
            add_rows(nccl, i);
            nccl_each_fitted(&nccl->systems.at[nccl->cases.at[i].system], set_free, nccl);
        }
    for (int i = 0; i < fit->parameters.n; i++) {
        struct fit_parameter *p = &fit->parameters.at[i];
        p->fitted = p->filed;
        p->fitted.value *= p->fixed ? 1 : start;
    }
}

static enum status check_errors(const struct fit *fit, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct fit_parameter *p = &fit->parameters.at[i];
        double relative = p->fitted.std_error / p->fitted.value;
        if (!p->fixed && !(relative > 0 && relative < UNDETERMINED)) /* 0: no size depends on it */
            status =
                diag_input(diag, (struct source_pos){0}, "the tables to fit do not determine %s of '%s' (%g +- %g)",
                    p->key, p->id, p->fitted.value, p->fitted.std_error);
    }
    return status;
}

enum status nccl_fit_solve(struct nccl_fit *nccl, double start, struct diag *diag)
{
    struct fit *fit = &nccl->fit;
    set_up(nccl, start);
    bool good = fit_solve(fit);
    if (fit->n_free == 0 || (size_t)fit->rows.n <= fit->n_free)
        return diag_input(
            diag, (struct source_pos){0}, "%d rows cannot determine %zu parameters", fit->rows.n, fit->n_free);
    set_systems(nccl);
    enum status status = check_errors(fit, diag);
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

struct fit_error nccl_case_error(
    const struct nccl_fit *fit, const struct nccl_case *which, double min_bytes, double max_bytes)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < which->points.n && which->system >= 0; i++) {
        const struct nccl_point *point = &which->points.at[i];
        if (point->bytes >= min_bytes && point->bytes < max_bytes)
            fit_sample_add(&sample, nccl_case_predict_s(fit, which, point->bytes), point->measured_s);
    }
    return fit_sample_error(&sample);
}
