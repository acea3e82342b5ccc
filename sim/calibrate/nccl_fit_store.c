/* A fit of NCCL's parameters as rows of the database. */
#include "calibrate/nccl_fit.h"

#include "store/fit.h"

#include <math.h>
#include <string.h>

const char *nccl_parameter_family(const struct fit_parameter *parameter)
{
    const char *slash = strchr(parameter->id, '/');
    return slash ? slash + 1 : parameter->id;
}

static enum status put_parameter(struct store_fit *into, const struct nccl_fit *fit, int at, struct diag *diag)
{
    const struct fit_parameter *p = &fit->fit.parameters.at[at];
    const struct record_cell cells[] = {cell_int("parameter", at), cell_text("key", p->key),
        cell_text("family", nccl_parameter_family(p)), cell_text("unit", dimension_unit(p->dimension)),
        cell_real("value", true, p->fitted.value), cell_real("std_error", true, p->fitted.std_error),
        cell_real("filed_value", true, p->filed.value)};
    enum status status = STORE_FIT_PUT(into, "parameter", cells, diag);
    for (int i = 0; i < fit->fit.parameters.n && status == STATUS_OK; i++) {
        const struct fit_parameter *other = &fit->fit.parameters.at[i];
        if (p->number < 0 || other->number < 0)
            continue;
        double covariance = fit->fit.covariance[(size_t)p->number * fit->fit.n_free + (size_t)other->number];
        const struct record_cell pair[] = {
            cell_int("parameter", at), cell_int("other", i), cell_real("covariance", true, covariance)};
        status = STORE_FIT_PUT(into, "covariance", pair, diag);
    }
    return status;
}

struct resting {
    struct store_fit *into;
    const struct nccl_fit *fit;
    int place;
    enum status status;
    struct diag *diag;
};

static double sum_s(const struct nccl_fit *fit, const struct nccl_case *which)
{
    double sum = 0;
    for (int i = 0; i < which->points.n; i++)
        sum += nccl_case_predict_s(fit, which, which->points.at[i].bytes);
    return sum;
}

/* A parameter rests on the fitted tables whose prediction it moves: one of the network does not on those of one node.
 */
static void put_rest(void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    struct resting *r = self;
    const struct nccl_case *which = &r->fit->cases.at[r->place];
    double value = q->value, before = sum_s(r->fit, which);
    q->value = 1.01 * value;
    bool moves = sum_s(r->fit, which) != before;
    q->value = value;
    if (!moves || r->status != STATUS_OK)
        return;
    int at = (int)(nccl_fit_find(r->fit, key, quantity_parameter(*q)) - r->fit->fit.parameters.at);
    const struct record_cell cells[] = {cell_int("parameter", at), cell_int("place", r->place)};
    r->status = STORE_FIT_PUT(r->into, "rest", cells, r->diag);
}

static enum status put_points(struct store_fit *into, const struct nccl_fit *fit, int place, struct diag *diag)
{
    const struct nccl_case *which = &fit->cases.at[place];
    enum status status = STATUS_OK;
    for (int i = 0; i < which->points.n && which->system >= 0 && status == STATUS_OK; i++) {
        const struct nccl_point *point = &which->points.at[i];
        struct coll_cost cost = nccl_case_cost(fit, which, point->bytes);
        const struct record_cell cells[] = {cell_int("place", place), cell_int("bytes", (int64_t)point->bytes),
            cell_real("measured_s", true, point->measured_s),
            cell_real("predicted_s", true, nccl_case_predict_s(fit, which, point->bytes)),
            cell_real("bus_bytes", true, cost.bus_bytes), cell_text("algorithm", coll_algorithm_names[cost.algorithm]),
            cell_text("protocol", coll_protocol_names[cost.protocol])};
        status = STORE_FIT_PUT(into, "point", cells, diag);
    }
    return status;
}

static enum status put_table(struct store_fit *into, struct nccl_fit *fit, int place, struct diag *diag)
{
    const struct nccl_case *which = &fit->cases.at[place];
    struct fit_error large = nccl_case_error(fit, which, NCCL_LARGE_BYTES, HUGE_VAL);
    struct fit_error small = nccl_case_error(fit, which, 0, NCCL_SMALL_BYTES);
    const struct record_cell cells[] = {cell_int("place", place), cell_text("use", nccl_use_names[which->use]),
        cell_text("family", which->family), cell_text("source", which->source), cell_text("gpu", which->gpu),
        cell_text("topology", which->topology), cell_text("collective", coll_kind_names[which->kind]),
        cell_int("nodes", which->nodes), cell_int("ranks", which->ranks), cell_text("note", which->note),
        cell_real("large_error", large.n > 0, large.median), cell_real("small_error", small.n > 0, small.median)};
    enum status status = STORE_FIT_PUT(into, "table", cells, diag);
    struct resting resting = {into, fit, place, status, diag};
    if (which->use == NCCL_FIT)
        nccl_each_fitted(&fit->systems.at[which->system], put_rest, &resting);
    return resting.status == STATUS_OK ? put_points(into, fit, place, diag) : resting.status;
}

enum status nccl_fit_store(struct nccl_fit *fit, const char *measured, struct store *store, struct diag *diag)
{
    struct store_fit *into;
    enum status status = store_fit_begin(&into, store, "nccl", measured, diag);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < fit->fit.parameters.n && status == STATUS_OK; i++)
        status = put_parameter(into, fit, i, diag);
    for (int i = 0; i < fit->cases.n && status == STATUS_OK; i++)
        status = put_table(into, fit, i, diag);
    return store_fit_end(into, status, diag);
}
