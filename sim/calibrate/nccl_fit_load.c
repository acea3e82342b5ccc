/* Reading results/measured/nccl_tables.csv and the tables that it lists. */
#include "calibrate/nccl_fit.h"

#include "config/config.h"
#include "config/csv.h"

#include <string.h>

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
static const char *const key[] = {"source", "gpu", "nodes", "ranks", "collective", "algorithm"};
enum { N_KEY = sizeof key / sizeof *key };

static enum status read_name(
    int *out, const struct reader *r, int row, const char *column, const char *const *names, bool required)
{
    const char *text = csv_cell(r->cases, row, csv_column(r->cases, column));
    *out = fit_find_name(names, text);
    if (*out >= 0 || (!required && !*text))
        return STATUS_OK;
    return diag_input(r->diag, csv_pos(r->cases, row), "'%s' is no %s", text, column);
}

static enum status read_number(double *out, const struct reader *r, int row, const char *column)
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
    enum status status = hw_load(&hw, arena_printf(r->arena, "%s/%s.yaml", r->clusters, topology), r->arena, r->diag);
    if (status)
        return status;
    *out = r->fit->systems.n;
    vec_push(&r->fit->systems, hw);
    vec_push(&r->topologies, topology);
    return STATUS_OK;
}

static bool belongs(const struct reader *r, int case_row, int row)
{
    for (int i = 0; i < N_KEY; i++)
        if (strcmp(csv_cell(r->cases, case_row, csv_column(r->cases, key[i])),
                csv_cell(r->rows, row, csv_column(r->rows, key[i]))) != 0)
            return false;
    return true;
}

static enum status read_points(struct nccl_case *out, const struct reader *r, int case_row)
{
    for (int row = 0; row < csv_rows(r->rows); row++) {
        if (!belongs(r, case_row, row))
            continue;
        double bytes = 0, time_us = 0;
        enum status status = csv_number(r->rows, row, csv_column(r->rows, "bytes"), 0, &bytes, r->diag);
        if (status == STATUS_OK)
            status = csv_number(r->rows, row, csv_column(r->rows, "time_us_out_of_place"), 0, &time_us, r->diag);
        if (status)
            return status;
        if (bytes > 0 && time_us > 0 && bytes >= out->min_bytes)
            vec_push(&out->points, (struct nccl_point){.bytes = bytes, .measured_s = time_us * 1e-6});
    }
    if (out->points.n == 0)
        return diag_input(r->diag, csv_pos(r->cases, case_row), "no row of collectives.csv is of this table");
    return STATUS_OK;
}

static enum status read_case(struct nccl_case *out, struct reader *r, int row)
{
    const char *source = csv_cell(r->cases, row, csv_column(r->cases, "source"));
    const char *topology = csv_cell(r->cases, row, csv_column(r->cases, "topology"));
    out->source = arena_strdup(r->arena, source);
    out->gpu = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "gpu")));
    out->note = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "note")));
    out->topology = arena_strdup(r->arena, topology);
    out->family = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "family")));
    out->hardware = arena_strdup(r->arena, csv_cell(r->cases, row, csv_column(r->cases, "hardware")));
    out->system = -1;
    int kind = 0, use = 0;
    double nodes = 0, ranks = 0, domains = 0, launch_us = 0;
    enum status all[] = {read_name(&kind, r, row, "collective", coll_kind_names, true),
        read_name(&use, r, row, "use", nccl_use_names, true),
        read_name(&out->force.algorithm, r, row, "force_algorithm", coll_algorithm_names, false),
        read_name(&out->force.protocol, r, row, "force_protocol", coll_protocol_names, false),
        read_name(&out->version, r, row, "nccl_version", hw_nccl_versions, false), read_number(&nodes, r, row, "nodes"),
        read_number(&ranks, r, row, "ranks"), read_number(&domains, r, row, "domains"),
        read_number(&out->channels, r, row, "channels"), read_number(&launch_us, r, row, "launch_us"),
        read_number(&out->min_bytes, r, row, "min_bytes")};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            return all[i];
    out->kind = (enum coll_kind)kind;
    out->use = (enum nccl_use)use;
    out->nodes = (int)(domains > 0 ? domains : nodes);
    out->ranks = (int)ranks;
    out->launch_s = launch_us * 1e-6;
    if (out->use != NCCL_BAD && !(*topology && *out->hardware))
        return diag_input(r->diag, csv_pos(r->cases, row), "a table to fit or predict needs a topology and hardware");
    if (out->nodes < 1 || out->ranks < 2 || out->ranks % out->nodes)
        return diag_input(
            r->diag, csv_pos(r->cases, row), "%g ranks on %d nodes are no regular group", ranks, out->nodes);
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

enum status nccl_fit_load(
    struct nccl_fit *out, const char *measured, const char *clusters, struct arena *arena, struct diag *diag)
{
    *out = (struct nccl_fit){0};
    struct csv_table *cases = NULL, *rows = NULL;
    enum status status = csv_load(&cases, arena_printf(arena, "%s/nccl_tables.csv", measured), diag);
    if (status == STATUS_OK)
        status = csv_load(&rows, arena_printf(arena, "%s/collectives.csv", measured), diag);
    struct reader r = {.fit = out, .cases = cases, .rows = rows, .clusters = clusters, .arena = arena, .diag = diag};
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
