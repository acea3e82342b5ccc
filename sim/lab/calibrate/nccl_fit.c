/* All tables of nccl_tables.csv fitted together, with one parameter for all quantities of the same
 * key and id.
 *
 * Reading: each line is a case, its sizes are the rows of collectives.csv that agree in six
 * columns, its system is loaded once a cluster file. Parameters are collected from the systems:
 * what is of kind fitted there. Solving: set_systems() writes the values of the moment into all
 * systems before a round of predictions, so the model reads hardware as it always does; parameters
 * of systems without a case to fit are fixed. Residuals of sizes from PLATEAU_BYTES on are
 * multiplied by PLATEAU_FACTOR. Behind it: errors of tables by use, tables of one machine that
 * contradict each other, by interpolation of one in the sizes of the other, and the fit as rows of
 * a database, with the covariance and which table each parameter rests on. Logs of a user's cluster
 * go through the same code (logs_fit.c), with a start that is not near. */
#include "calibrate/nccl_fit.h"

#include "config/config.h"
#include "config/csv.h"
#include "store/answer.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

static const double NCCL_CAUCHY =
    0.1; /* assumed: log residual at which a size counts half; the target of a table's median */
/* Sizes that show the plateau count more, else the rounded knee below it, which no formula here
 * describes well, bends efficiencies: assumed. */
static const double PLATEAU_BYTES = 0x1p28, PLATEAU_FACTOR = 3;
static const double NCCL_UNDETERMINED =
    1; /* standard error of a logarithm: a factor of 3 is no knowledge (NaN neither) */

static void each_fitted(const struct config_table *table, void *from,
    void (*visit)(void *self, const char *key, enum dimension dimension, struct quantity *q),
    void *self)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        struct quantity *q = (struct quantity *)(void *)((char *)from + field->offset);
        if (field->type == FIELD_SOURCED && q->kind == QUANTITY_FITTED)
            visit(self, field->key, field->dimension, q);
    }
}

void nccl_each_fitted(struct hw *hw,
    void (*visit)(void *self, const char *key, enum dimension dimension, struct quantity *q),
    void *self)
{
    each_fitted(&hw_node_table, &hw->node, visit, self);
    each_fitted(&hw_cluster_table, &hw->cluster, visit, self);
}

static bool nccl_fit_is(const struct fit_parameter *p, const char *key, const char *id)
{
    return strcmp(p->key, key) == 0 && strcmp(p->id, id) == 0;
}

const struct fit_parameter *nccl_fit_find(
    const struct nccl_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (nccl_fit_is(p, key, id))
            return p;
    }
    return NULL;
}

struct coll_cost nccl_case_cost(
    const struct nccl_fit *fit, const struct nccl_case *which, double bytes)
{
    struct hw hw = fit->systems.at[which->system];
    if (which->channels > 0)
        hw.cluster.nccl_channels =
            (struct quantity){.value = which->channels, .kind = QUANTITY_ASSUMED};
    if (which->version != COLL_ANY)
        hw.cluster.nccl_version = which->version;
    const struct coll_shape shape = {which->ranks, which->nodes, which->ranks / which->nodes};
    return coll_nccl_choice(which->kind, bytes, shape, &hw, which->force);
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

static double nccl_fit_predict(const void *self, const void *row)
{
    const struct nccl_fit *fit = self;
    const struct nccl_point *point = row;
    return nccl_case_predict_s(fit, &fit->cases.at[point->place], point->bytes);
}

struct sought {
    const struct fit_parameter *parameter;
    bool found;
};

static void look_for(void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    struct sought *sought = self;
    (void)dimension;
    sought->found = sought->found || nccl_fit_is(sought->parameter, key, quantity_parameter(*q));
}

/* A case reads the numbers of its system. */
static bool nccl_fit_reads(const void *self, const void *row, const struct fit_parameter *parameter)
{
    const struct nccl_fit *fit = self;
    const struct nccl_point *point = row;
    struct sought sought = {parameter, false};
    nccl_each_fitted(&fit->systems.at[fit->cases.at[point->place].system], look_for, &sought);
    return sought.found;
}

static void nccl_fit_set_free(
    void *self, const char *key, enum dimension dimension, struct quantity *q)
{
    (void)dimension;
    struct nccl_fit *fit = self;
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (nccl_fit_is(p, key, quantity_parameter(*q)))
            p->fixed = false;
    }
}

static void nccl_fit_add_rows(struct nccl_fit *fit, int place)
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

static void nccl_fit_set_up(struct nccl_fit *nccl, double start)
{
    struct fit *fit = &nccl->fit;
    fit->self = nccl;
    fit->predict = nccl_fit_predict;
    fit->reads = nccl_fit_reads;
    fit->settle = set_systems;
    fit->scale = NCCL_CAUCHY;
    fit->starts_near = start == 1;
    fit->rows.n = 0;
    for (int i = 0; i < fit->parameters.n; i++)
        fit->parameters.at[i].fixed = true;
    for (int i = 0; i < nccl->cases.n; i++)
        if (nccl->cases.at[i].use == NCCL_FIT) {
            nccl_fit_add_rows(nccl, i);
            nccl_each_fitted(&nccl->systems.at[nccl->cases.at[i].system], nccl_fit_set_free, nccl);
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
        if (!p->fixed &&
            !(relative > 0 && relative < NCCL_UNDETERMINED)) /* 0: no size depends on it */
            status = diag_input(diag, (struct source_pos){0},
                "the tables to fit do not determine %s of '%s' (%g +- %g)", p->key, p->id,
                p->fitted.value, p->fitted.std_error);
    }
    return status;
}

enum status nccl_fit_solve(struct nccl_fit *nccl, double start, struct diag *diag)
{
    struct fit *fit = &nccl->fit;
    nccl_fit_set_up(nccl, start);
    bool good = fit_solve(fit);
    if (fit->n_free == 0 || (size_t)fit->rows.n <= fit->n_free)
        return diag_input(diag, (struct source_pos){0}, "%d rows cannot determine %zu parameters",
            fit->rows.n, fit->n_free);
    set_systems(nccl);
    enum status status = check_errors(fit, diag);
    if (!good)
        status = diag_input(
            diag, (struct source_pos){0}, "the fit of NCCL's parameters does not stand still");
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
            fit_sample_add(
                &sample, nccl_case_predict_s(fit, which, point->bytes), point->measured_s);
    }
    return fit_sample_error(&sample);
}

/* ---- tables of one machine that say different things ---- */

static bool same_machine_and_settings(const struct nccl_case *a, const struct nccl_case *b)
{
    return a != b && a->use != NCCL_BAD && b->use != NCCL_BAD &&
           strcmp(a->topology, b->topology) == 0 && a->kind == b->kind &&
           a->ranks / a->nodes == b->ranks / b->nodes && a->force.algorithm == b->force.algorithm &&
           a->force.protocol == b->force.protocol && a->channels == b->channels &&
           a->launch_s == b->launch_s;
}

/* Between the sizes of a table the logarithm of time goes straight with the logarithm of bytes; 0
 * outside of them. */
static double measured_s(const struct nccl_case *table, double bytes)
{
    const struct nccl_point *below = NULL, *above = NULL;
    for (int i = 0; i < table->points.n; i++) {
        const struct nccl_point *point = &table->points.at[i];
        if (point->bytes <= bytes && (!below || point->bytes > below->bytes))
            below = point;
        if (point->bytes >= bytes && (!above || point->bytes < above->bytes))
            above = point;
    }
    if (!below || !above)
        return 0;
    double span = log(above->bytes / below->bytes),
           part = span > 0 ? log(bytes / below->bytes) / span : 0;
    return below->measured_s * pow(above->measured_s / below->measured_s, part);
}

/* By the sizes of a: median factor that two tables are apart: 1 or more on groups of one size,
 * whichever is the slower; else how much slower the smaller group is. */
static double factor(
    const struct nccl_case *a, const struct nccl_case *b, double min_bytes, double max_bytes)
{
    size_t n = 0;
    double *factors = xcalloc((size_t)a->points.n, sizeof *factors);
    for (int i = 0; i < a->points.n; i++) {
        const struct nccl_point *point = &a->points.at[i];
        double other_s = measured_s(b, point->bytes);
        if (point->bytes >= min_bytes && point->bytes < max_bytes && other_s > 0)
            factors[n++] = a->nodes == b->nodes  ? exp(fabs(log(point->measured_s / other_s)))
                           : a->nodes < b->nodes ? point->measured_s / other_s
                                                 : other_s / point->measured_s;
    }
    gsl_sort(factors, 1, n);
    double median = n > 0 ? gsl_stats_median_from_sorted_data(factors, 1, n) : 1;
    free(factors);
    return median;
}

/* Both ways, by the sizes of each. Groups of one node are compared with such only, as the
 * network is no part of them. */
struct nccl_contradiction nccl_case_contradiction(
    const struct nccl_fit *fit, const struct nccl_case *which, double min_bytes, double max_bytes)
{
    struct nccl_contradiction worst = {NULL, 1};
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *other = &fit->cases.at[i];
        bool comparable = which->nodes == other->nodes || (which->nodes > 1 && other->nodes > 1);
        if (!comparable || !same_machine_and_settings(which, other))
            continue;
        double apart = fmax(
            factor(which, other, min_bytes, max_bytes), factor(other, which, min_bytes, max_bytes));
        if (apart > worst.factor)
            worst = (struct nccl_contradiction){other, apart};
    }
    /* Nothing lies within the wanted error of both when they are further apart than this. */
    static const double most = (1 + NCCL_LARGE_WANTED) / (1 - NCCL_LARGE_WANTED);
    if (worst.factor <= most)
        worst.with = NULL;
    return worst;
}

/* ---- reading results/measured/nccl_tables.csv and the tables that it lists ---- */

const char *const nccl_use_names[] = {"fit", "left_out", "bad", NULL};

struct reader {
    struct nccl_fit *fit;
    const struct csv_table *cases, *rows;
    const char *clusters;
    struct arena *arena;
    struct diag *diag;
    VEC(const char *) topologies; /* of the systems */
};

/* Columns that say which table a row of collectives.csv belongs to. */
static const char *const case_keys[] = {
    "source", "gpu", "nodes", "ranks", "collective", "algorithm"};
enum { N_KEY = sizeof case_keys / sizeof *case_keys };

static enum status read_name(int *out, const struct reader *r, int row, const char *column,
    const char *const *names, bool required)
{
    const char *text = csv_cell(r->cases, row, csv_column(r->cases, column));
    *out = fit_find_name(names, text);
    if (*out >= 0 || (!required && !*text))
        return STATUS_OK;
    return diag_input(r->diag, csv_pos(r->cases, row), "'%s' is no %s", text, column);
}

static enum status nccl_fit_read_number(
    double *out, const struct reader *r, int row, const char *column)
{
    return csv_number(r->cases, row, csv_column(r->cases, column), 0, out, r->diag);
}

/* The system of a cluster file: loaded once. */
static enum status find_system(struct reader *r, const char *topology, int *out)
{
    for (int i = 0; i < r->topologies.n; i++)
        if (strcmp(r->topologies.at[i], topology) == 0) {
            *out = i;
            return STATUS_OK;
        }
    struct hw hw;
    enum status status = hw_load(
        &hw, arena_printf(r->arena, "%s/%s.yaml", r->clusters, topology), r->arena, r->diag);
    if (status)
        return status;
    *out = r->fit->systems.n;
    vec_push(&r->fit->systems, hw);
    vec_push(&r->topologies, topology);
    return STATUS_OK;
}

static bool nccl_fit_belongs(const struct reader *r, int case_row, int row)
{
    for (int i = 0; i < N_KEY; i++)
        if (strcmp(csv_cell(r->cases, case_row, csv_column(r->cases, case_keys[i])),
                csv_cell(r->rows, row, csv_column(r->rows, case_keys[i]))) != 0)
            return false;
    return true;
}

static enum status read_points(struct nccl_case *out, const struct reader *r, int case_row)
{
    for (int row = 0; row < csv_rows(r->rows); row++) {
        if (!nccl_fit_belongs(r, case_row, row))
            continue;
        double bytes = 0, time_us = 0;
        enum status status =
            csv_number(r->rows, row, csv_column(r->rows, "bytes"), 0, &bytes, r->diag);
        if (status == STATUS_OK)
            status = csv_number(
                r->rows, row, csv_column(r->rows, "time_us_out_of_place"), 0, &time_us, r->diag);
        if (status)
            return status;
        if (bytes > 0 && time_us > 0 && bytes >= out->min_bytes)
            vec_push(
                &out->points, (struct nccl_point){.bytes = bytes, .measured_s = time_us * 1e-6});
    }
    if (out->points.n == 0)
        return diag_input(
            r->diag, csv_pos(r->cases, case_row), "no row of collectives.csv is of this table");
    return STATUS_OK;
}

/* All columns are read before the first mistake is returned, so that every one of the line is
 * reported. */
static enum status read_case(struct nccl_case *out, struct reader *r, int row)
{
    const char *source = csv_cell(r->cases, row, csv_column(r->cases, "source"));
    const char *topology = csv_cell(r->cases, row, csv_column(r->cases, "topology"));
    out->source = arena_strdup(r->arena, source);
    out->gpu = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "gpu")));
    out->note = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "note")));
    out->topology = arena_strdup(r->arena, topology);
    out->family = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "family")));
    out->hardware =
        arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "hardware")));
    out->system = -1;
    int kind = 0, use = 0;
    double nodes = 0, ranks = 0, domains = 0, launch_us = 0;
    enum status all[] = {read_name(&kind, r, row, "collective", coll_kind_names, true),
        read_name(&use, r, row, "use", nccl_use_names, true),
        read_name(&out->force.algorithm, r, row, "force_algorithm", coll_algorithm_names, false),
        read_name(&out->force.protocol, r, row, "force_protocol", coll_protocol_names, false),
        read_name(&out->version, r, row, "nccl_version", hw_nccl_versions, false),
        nccl_fit_read_number(&nodes, r, row, "nodes"),
        nccl_fit_read_number(&ranks, r, row, "ranks"),
        nccl_fit_read_number(&domains, r, row, "domains"),
        nccl_fit_read_number(&out->channels, r, row, "channels"),
        nccl_fit_read_number(&launch_us, r, row, "launch_us"),
        nccl_fit_read_number(&out->min_bytes, r, row, "min_bytes")};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            return all[i];
    out->kind = (enum coll_kind)kind;
    out->use = (enum nccl_use)use;
    out->nodes = (int)(domains > 0 ? domains : nodes);
    out->ranks = (int)ranks;
    out->launch_s = launch_us * 1e-6;
    if (out->use != NCCL_BAD && !(*topology && *out->hardware))
        return diag_input(r->diag, csv_pos(r->cases, row),
            "a table to fit or predict needs a topology and hardware");
    if (out->nodes < 1 || out->ranks < 2 || out->ranks % out->nodes)
        return diag_input(r->diag, csv_pos(r->cases, row),
            "%g ranks on %d nodes are no regular group", ranks, out->nodes);
    enum status status = *topology ? find_system(r, out->topology, &out->system) : STATUS_OK;
    return status ? status : read_points(out, r, row);
}

void nccl_add_parameter(void *self, const char *name, enum dimension dimension, struct quantity *q)
{
    struct nccl_fit *nccl = self;
    if (nccl_fit_find(nccl, name, quantity_parameter(*q)))
        return;
    struct fit_parameter *p = fit_add(&nccl->fit, name, dimension, NULL, q->value);
    p->id = quantity_parameter(*q);
    p->filed = p->fitted = *q;
}

enum status nccl_fit_load(struct nccl_fit *out, const char *measured, const char *clusters,
    struct arena *arena, struct diag *diag)
{
    *out = (struct nccl_fit){0};
    struct csv_table *cases = NULL, *rows = NULL;
    enum status status =
        csv_load(&cases, arena_printf(arena, "%s/nccl_tables.csv", measured), diag);
    if (status == STATUS_OK)
        status = csv_load(&rows, arena_printf(arena, "%s/collectives.csv", measured), diag);
    struct reader r = {.fit = out,
        .cases = cases,
        .rows = rows,
        .clusters = clusters,
        .arena = arena,
        .diag = diag};
    for (int row = 0; status == STATUS_OK && row < csv_rows(cases); row++) {
        vec_push(&out->cases, (struct nccl_case){0});
        status = read_case(&out->cases.at[out->cases.n - 1], &r, row);
    }
    for (int i = 0; i < out->systems.n; i++)
        nccl_each_fitted(&out->systems.at[i], nccl_add_parameter, out);
    vec_free(&r.topologies);
    if (cases)
        csv_release(cases);
    if (rows)
        csv_release(rows);
    return status;
}

void nccl_fit_free(struct nccl_fit *fit)
{
    for (int i = 0; i < fit->cases.n; i++)
        vec_free(&fit->cases.at[i].points);
    vec_free(&fit->cases);
    vec_free(&fit->systems);
    fit_free(&fit->fit);
}

/* ---- a fit of NCCL's parameters as rows of the database ---- */

/* Of the id what follows the fit's name, "hopper-nodes" of "nccl/hopper-nodes". */
static const char *parameter_family(const struct fit_parameter *parameter)
{
    const char *slash = strchr(parameter->id, '/');
    return slash ? slash + 1 : parameter->id;
}

static enum status put_parameter(
    struct store_answer *into, const struct nccl_fit *fit, int at, struct diag *diag)
{
    const struct fit_parameter *p = &fit->fit.parameters.at[at];
    enum status status = store_answer_put(into, "parameter",
        RECORD_CELLS(cell_int("parameter", at), cell_text("key", p->key),
            cell_text("family", parameter_family(p)),
            cell_text("unit", dimension_unit(p->dimension)),
            cell_real("value", true, p->fitted.value),
            cell_real("std_error", true, p->fitted.std_error),
            cell_real("filed_value", true, p->filed.value)),
        diag);
    for (int i = 0; i < fit->fit.parameters.n && status == STATUS_OK; i++) {
        const struct fit_parameter *other = &fit->fit.parameters.at[i];
        if (p->number < 0 || other->number < 0)
            continue;
        double covariance =
            fit->fit.covariance[(size_t)p->number * fit->fit.n_free + (size_t)other->number];
        status = store_answer_put(into, "covariance",
            RECORD_CELLS(cell_int("parameter", at), cell_int("other", i),
                cell_real("covariance", true, covariance)),
            diag);
    }
    return status;
}

struct resting {
    struct store_answer *into;
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

/* A parameter rests on the fitted tables whose prediction it moves: one of the network does not
 * on those of one node. 1 % more of it is tried and undone. */
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
    r->status = store_answer_put(r->into, "rest",
        RECORD_CELLS(cell_int("parameter", at), cell_int("place", r->place)), r->diag);
}

static enum status put_points(
    struct store_answer *into, const struct nccl_fit *fit, int place, struct diag *diag)
{
    const struct nccl_case *which = &fit->cases.at[place];
    enum status status = STATUS_OK;
    for (int i = 0; i < which->points.n && which->system >= 0 && status == STATUS_OK; i++) {
        const struct nccl_point *point = &which->points.at[i];
        struct coll_cost cost = nccl_case_cost(fit, which, point->bytes);
        status = store_answer_put(into, "point",
            RECORD_CELLS(cell_int("place", place), cell_int("bytes", (int64_t)point->bytes),
                cell_real("measured_s", true, point->measured_s),
                cell_real("predicted_s", true, nccl_case_predict_s(fit, which, point->bytes)),
                cell_real("bus_bytes", true, cost.bus_bytes),
                cell_text("algorithm", coll_algorithm_names[cost.algorithm]),
                cell_text("protocol", coll_protocol_names[cost.protocol])),
            diag);
    }
    return status;
}

static enum status nccl_fit_put_table(
    struct store_answer *into, struct nccl_fit *fit, int place, struct diag *diag)
{
    const struct nccl_case *which = &fit->cases.at[place];
    struct fit_error large = nccl_case_error(fit, which, NCCL_LARGE_BYTES, HUGE_VAL);
    struct fit_error small = nccl_case_error(fit, which, 0, NCCL_SMALL_BYTES);
    enum status status = store_answer_put(into, "table",
        RECORD_CELLS(cell_int("place", place), cell_text("use", nccl_use_names[which->use]),
            cell_text("family", which->family), cell_text("source", which->source),
            cell_text("gpu", which->gpu), cell_text("topology", which->topology),
            cell_text("collective", coll_kind_names[which->kind]), cell_int("nodes", which->nodes),
            cell_int("ranks", which->ranks), cell_text("note", which->note),
            cell_real("large_error", large.n > 0, large.median),
            cell_real("small_error", small.n > 0, small.median)),
        diag);
    struct resting resting = {into, fit, place, status, diag};
    if (which->use == NCCL_FIT)
        nccl_each_fitted(&fit->systems.at[which->system], put_rest, &resting);
    return resting.status == STATUS_OK ? put_points(into, fit, place, diag) : resting.status;
}

enum status nccl_fit_store(
    struct nccl_fit *fit, const char *measured, struct store *store, struct diag *diag)
{
    struct store_answer into;
    enum status status = store_answer_begin(
        &into, store, "nccl", RECORD_CELLS(cell_text("measured", measured)), diag);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < fit->fit.parameters.n && status == STATUS_OK; i++)
        status = put_parameter(&into, fit, i, diag);
    for (int i = 0; i < fit->cases.n && status == STATUS_OK; i++)
        status = nccl_fit_put_table(&into, fit, i, diag);
    return store_answer_end(&into, status, diag);
}

static void print_error(FILE *out, struct fit_error error)
{
    if (error.n)
        fprintf(out, " %4d %6.1f %%", error.n, 100 * error.median);
    else
        fprintf(out, " %4s %8s", "", "");
}

static void nccl_fit_print_cases(FILE *out, const struct nccl_fit *fit, enum nccl_use use)
{
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *which = &fit->cases.at[i];
        if (which->use != use)
            continue;
        fprintf(out, "%-8s %-14s %4d %5d", nccl_use_names[use], coll_kind_names[which->kind],
            which->nodes, which->ranks);
        print_error(out, nccl_case_error(fit, which, NCCL_LARGE_BYTES, HUGE_VAL));
        print_error(out, nccl_case_error(fit, which, 0, NCCL_SMALL_BYTES));
        fprintf(out, " %-6s",
            use == NCCL_BAD              ? ""
            : nccl_case_seen(fit, which) ? "seen"
                                         : "unseen");
        fprintf(out, "  %s: %s%s%s", *which->topology ? which->topology : "-", which->source,
            *which->note ? ". " : "", which->note);
        struct nccl_contradiction apart =
            nccl_case_contradiction(fit, which, NCCL_LARGE_BYTES, HUGE_VAL);
        if (apart.with)
            fprintf(
                out, ". Contradicted, by a factor of %.2f: %s", apart.factor, apart.with->source);
        fputc('\n', out);
    }
}

/* How many left-out tables are predicted as well as is wanted. */
static void print_summary(FILE *out, const struct nccl_fit *fit, const char *sizes,
    double min_bytes, double max_bytes, double wanted)
{
    int n = 0, good = 0, contradicted = 0, n_seen = 0, good_seen = 0;
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *which = &fit->cases.at[i];
        struct fit_error error = nccl_case_error(fit, which, min_bytes, max_bytes);
        if (which->use != NCCL_LEFT_OUT || error.n == 0)
            continue;
        n++;
        good += error.median <= wanted;
        n_seen += nccl_case_seen(fit, which);
        good_seen += error.median <= wanted && nccl_case_seen(fit, which);
        contradicted +=
            error.median > wanted && nccl_case_contradiction(fit, which, min_bytes, max_bytes).with;
    }
    fprintf(out, "left out, %s: %d of %d tables within %.0f %%\n", sizes, good, n, 100 * wanted);
    fprintf(out, "  of the others, contradicted by another table of the same machine: %d\n",
        contradicted);
    fprintf(
        out, "  of those whose hardware a fitted table has: %d of %d within\n", good_seen, n_seen);
}

void nccl_fit_print(FILE *out, const struct nccl_fit *fit)
{
    fprintf(out, "|model / measured - 1|, median over sizes%28s%14s\n", ">= 1 MiB", "< 64 KiB");
    fprintf(out, "%-8s %-14s %4s %5s %4s %8s %4s %8s %-6s  topology: table\n", "use", "collective",
        "nodes", "ranks", "n", "error", "n", "error", "hardw.");
    for (int use = 0; use < NCCL_USE_COUNT; use++)
        nccl_fit_print_cases(out, fit, (enum nccl_use)use);
    fputc('\n', out);
    print_summary(out, fit, ">= 1 MiB", NCCL_LARGE_BYTES, HUGE_VAL, NCCL_LARGE_WANTED);
    print_summary(out, fit, "< 64 KiB", 0, NCCL_SMALL_BYTES, NCCL_SMALL_WANTED);
    fputc('\n', out);
    fit_print_head(out, "parameters");
    fit_print_parameters(out, &fit->fit);
    fit_print_tied(out, &fit->fit);
}
