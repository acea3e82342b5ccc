/* What a kernel loses beside a collective: its start, the SMs that memory-bound kernels need, and
 * the traffic. Two problems of fit.h, one after the other. Kernels of traces that ran alone and
 * beside NCCL (overlap_groups.csv) give overlap_start and the share of SMs: a GEMM takes the waves
 * that the SMs left to it ask for, another kernel gets longer only where fewer SMs are left than
 * its share. Published slowdowns (overlap_published.csv) give overlap_traffic, with these two
 * numbers in the kernel model; the collective beside them is priced on the cluster's node for its
 * SMs and its bytes of HBM.
 *
 * What is subtle: rows of one source are alike, so errors are not those of the fit but a jackknife:
 * each source is left out once, and the spread of the solutions counts. Rows are held out by a
 * digest of kernel and grid. */
#include "calibrate/overlap_fit.h"

#include "base/digest.h"
#include "calibrate/kernel_rows.h"
#include "coll/coll.h"
#include "config/csv.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double OVERLAP_CAUCHY = 0.1; /* assumed: log residual at which a row counts half */
static const double us = 1e-6;

/* Where the search begins; assumed. */
static const double START_S = 2e-6, SHARE = 0.95, TRAFFIC = 0.5;

double overlap_fit_beside_s(const struct overlap_fit *fit, const struct overlap_group *group)
{
    double left = group->sms - group->channels;
    double longer = group->gemm ? ceil(group->blocks / (group->blocks_per_sm * left)) /
                                      ceil(group->blocks / (group->blocks_per_sm * group->sms))
                                : fmax(1, fit->memory_share.value * group->sms / left);
    return group->alone_s * longer + fit->start.value;
}

double overlap_fit_ratio(const struct overlap_fit *fit, const struct overlap_published *row)
{
    struct hw_gpu gpu = row->hw.gpu;
    gpu.overlap_start.value = fit->start.value;
    gpu.overlap_traffic.value = fit->traffic.value;
    gpu.memory_sms.value = fit->memory_share.value * gpu.sms.value;
    struct kernel_share left = {gpu.sms.value - row->sms_held, row->hbm_Bps};
    return kernel_duration_s(&row->work, &gpu, left) /
           kernel_duration_s(&row->work, &gpu, kernel_whole_gpu(&gpu));
}

/* ---- reading ---- */

/* The rule of the tables' heads. */
static bool overlap_fit_is_held_out(const char *kernel, const char *grid)
{
    uint64_t digest = DIGEST_INIT;
    for (const char *c = kernel; *c; c++)
        digest = digest_word(digest, (uint64_t)(unsigned char)*c);
    digest = digest_word(digest, ' ');
    for (const char *c = grid; *c; c++)
        digest = digest_word(digest, (uint64_t)(unsigned char)*c);
    return digest & 1;
}

/* The numbers of these columns, all above 0; an empty cell is `missing`, which is 0 where there
 * must be a number. */
static bool read_numbers(double *out, const char *const *columns, int n, double missing,
    const struct csv_table *table, int row, struct diag *diag)
{
    for (int i = 0; i < n; i++) {
        if (csv_number(table, row, csv_column(table, columns[i]), missing, &out[i], diag) !=
            STATUS_OK)
            return false;
        if (!(out[i] > 0)) {
            diag_input(diag, csv_pos(table, row), "%s is to be a number above 0", columns[i]);
            return false;
        }
    }
    return true;
}

static enum status read_group(struct overlap_fit *out, const struct csv_table *table, int row,
    struct arena *arena, struct diag *diag)
{
    static const char *const columns[] = {
        "sms", "channels", "blocks_per_sm", "alone_us", "beside_us"};
    double v[5];
    int x, y, z, end = 0;
    if (!read_numbers(v, columns, 5, 0, table, row, diag))
        return diag->worst;
    const char *grid = csv_cell(table, row, csv_column(table, "grid"));
    const char *class = csv_cell(table, row, csv_column(table, "class"));
    if (sscanf(grid, "%dx%dx%d%n", &x, &y, &z, &end) != 3 || grid[end] || x < 1 || y < 1 || z < 1)
        return diag_input(
            diag, csv_pos(table, row), "the grid '%s' is no 'XxYxZ' of numbers from 1 on", grid);
    if (v[1] >= v[0])
        return diag_input(
            diag, csv_pos(table, row), "%g channels leave none of %g SMs", v[1], v[0]);
    vec_push(&out->groups,
        (struct overlap_group){
            .source = arena_strdup(arena, csv_cell(table, row, csv_column(table, "source"))),
            .gemm = strcmp(class, "gemm") == 0,
            .held_out =
                overlap_fit_is_held_out(csv_cell(table, row, csv_column(table, "kernel")), grid),
            .sms = v[0],
            .channels = v[1],
            .blocks_per_sm = v[2],
            .alone_s = v[3] * us,
            .beside_s = v[4] * us,
            .blocks = (double)x * y * z});
    return STATUS_OK;
}

/* A side that is not said is 1. */
static enum status read_work(
    struct kernel_work *out, const struct csv_table *table, int at, struct diag *diag)
{
    struct kernel_row row;
    enum dtype math = DTYPE_COUNT;
    enum status status = kernel_row_load(&row, table, at, diag);
    int kind = fit_find_name(kernel_kind_names, row.class);
    if (status == STATUS_OK)
        status = kernel_row_needs(&row, "m", diag);
    if (status == STATUS_OK && kind != KERNEL_ELEMENTWISE)
        status = kernel_row_math(&math, &row, diag);
    if (status)
        return status;
    if (kind == KERNEL_ELEMENTWISE) {
        *out = kernel_stream(KERNEL_ELEMENTWISE, row.m, 0, 0);
        return STATUS_OK;
    }
    if (kind != KERNEL_GEMM && kind != KERNEL_ATTENTION)
        return diag_input(
            diag, row.at, "the kernel is to be gemm or attention, with a dtype, or elementwise");
    int64_t n = (int64_t)fmax(row.n, 1), k = (int64_t)fmax(row.k, 1),
            batch = (int64_t)fmax(row.batch, 1);
    *out = kernel_gemm((int64_t)row.m, n, k, batch, math, dtype_bytes(math), dtype_bytes(math));
    if (kind == KERNEL_ATTENTION) { /* two products; queries, keys, values and the result are read
                                       or written once */
        out->kind = KERNEL_ATTENTION;
        out->flop *= 2;
        out->write_bytes = out->read_bytes;
    }
    return STATUS_OK;
}

static enum status read_published(struct overlap_fit *out, const struct csv_table *table, int row,
    const char *clusters, struct arena *arena, struct diag *diag)
{
    static const char *const columns[] = {"gpus", "bytes", "ratio"};
    double v[3], channels;
    struct overlap_published p = {
        .source = arena_strdup(arena, csv_cell(table, row, csv_column(table, "source"))),
        .held_out = strcmp(csv_cell(table, row, csv_column(table, "use")), "fit") != 0};
    const char *cluster = csv_cell(table, row, csv_column(table, "cluster"));
    int kind =
        fit_find_name(coll_kind_names, csv_cell(table, row, csv_column(table, "collective")));
    if (!read_numbers(v, columns, 3, 0, table, row, diag) ||
        read_work(&p.work, table, row, diag) != STATUS_OK ||
        csv_number(table, row, csv_column(table, "channels"), 0, &channels, diag) != STATUS_OK ||
        hw_load(&p.hw, arena_printf(arena, "%s/%s.yaml", clusters, cluster), arena, diag) !=
            STATUS_OK)
        return diag->worst;
    if (kind < 0 || v[0] < 2 || v[0] > p.hw.node.gpus.value)
        return diag_input(diag, csv_pos(table, row),
            "this is to be a collective of 2 to %g GPUs, those of a node", p.hw.node.gpus.value);
    struct coll_cost cost = coll_choose(
        (enum coll_kind)kind, v[1], (struct coll_shape){(int)v[0], 1, (int)v[0]}, &p.hw, COLL_FREE);
    p.sms_held = channels > 0 ? channels : cost.sms;
    p.hbm_Bps = coll_hbm_Bps(cost);
    p.ratio = v[2];
    vec_push(&out->published, p);
    return STATUS_OK;
}

static enum status overlap_fit_load(struct overlap_fit *out, const char *measured,
    const char *clusters, struct arena *arena, struct diag *diag)
{
    struct csv_table *groups = NULL, *published = NULL;
    enum status status =
        csv_load(&groups, arena_printf(arena, "%s/overlap_groups.csv", measured), diag);
    if (status == STATUS_OK)
        status =
            csv_load(&published, arena_printf(arena, "%s/overlap_published.csv", measured), diag);
    for (int r = 0; status == STATUS_OK && r < csv_rows(groups); r++)
        status = read_group(out, groups, r, arena, diag);
    for (int r = 0; status == STATUS_OK && r < csv_rows(published); r++)
        status = read_published(out, published, r, clusters, arena, diag);
    csv_release(groups);
    csv_release(published);
    return status;
}

/* ---- solving: the time as its logarithm, the share as log(x / (1 - x)), the traffic as it is ----
 */

static double predict_group(const void *fit, const void *group)
{
    return overlap_fit_beside_s(fit, group);
}

static double predict_published(const void *fit, const void *row)
{
    return overlap_fit_ratio(fit, row);
}

static void overlap_fit_add_row(
    struct fit *problem, const void *row, double measured, const char *source, const char *left_out)
{
    fit_add_row(problem, row, measured);
    problem->rows.at[problem->rows.n - 1].left_out = left_out && strcmp(left_out, source) == 0;
}

/* left_out: a source, or NULL. */
static bool calibrate_overlap_fit_solve(struct overlap_fit *fit, const char *left_out)
{
    const struct fit none = {.self = fit,
        .scale = OVERLAP_CAUCHY,
        .starts_near = true,
        .source = "sim/lab/calibrate/overlap_fit.h on results/measured/overlap_groups.csv and "
                  "overlap_published.csv"};
    struct fit groups = none, published = none;
    groups.predict = predict_group;
    published.predict = predict_published;
    fit_add(&groups, "overlap_start", DIM_SECONDS, &fit->start, START_S);
    fit_add(&groups, "memory_sms / sms", DIM_FRACTION, &fit->memory_share, SHARE)->scale =
        FIT_LOGIT;
    fit_add(&published, "overlap_traffic", DIM_NONE, &fit->traffic, TRAFFIC)->scale = FIT_LINEAR;
    for (int i = 0; i < fit->groups.n; i++) {
        const struct overlap_group *group = &fit->groups.at[i];
        if (!group->held_out)
            overlap_fit_add_row(&groups, group, group->beside_s, group->source, left_out);
    }
    for (int i = 0; i < fit->published.n; i++) {
        const struct overlap_published *row = &fit->published.at[i];
        if (!row->held_out)
            overlap_fit_add_row(&published, row, row->ratio, row->source, left_out);
    }
    bool good = fit_solve(&groups) && fit_solve(&published);
    fit_free(&groups);
    fit_free(&published);
    return good;
}

/* The sources of rows that are fitted, each once. */
typedef VEC(const char *) sources;
static void add_source(sources *list, const char *source)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->at[i], source) == 0)
            return;
    vec_push(list, source);
}

/* What solutions without each of n sources say of the error of the one with all: sqrt((n - 1) / n x
 * sum of (value - mean)^2). */
static double jackknife(const double *values, int n)
{
    return n > 1 ? (n - 1) / sqrt(n) * gsl_stats_sd(values, 1, (size_t)n) : 0;
}

static bool set_errors(struct overlap_fit *fit)
{
    sources of_groups = {0}, of_published = {0};
    for (int i = 0; i < fit->groups.n; i++)
        if (!fit->groups.at[i].held_out)
            add_source(&of_groups, fit->groups.at[i].source);
    for (int i = 0; i < fit->published.n; i++)
        if (!fit->published.at[i].held_out)
            add_source(&of_published, fit->published.at[i].source);
    int n = of_groups.n, m = of_published.n;
    bool good = true;
    double *values = xcalloc((size_t)(2 * n + m) + 1, sizeof *values);
    for (int i = 0; i < n + m; i++) {
        struct overlap_fit less = *fit;
        good =
            calibrate_overlap_fit_solve(&less, i < n ? of_groups.at[i] : of_published.at[i - n]) &&
            good;
        values[i < n ? i : n + i] = i < n ? less.start.value : less.traffic.value;
        if (i < n)
            values[n + i] = less.memory_share.value;
    }
    fit->start.std_error = jackknife(values, n);
    fit->memory_share.std_error = jackknife(&values[n], n);
    fit->traffic.std_error = jackknife(&values[n + n], m);
    free(values);
    vec_free(&of_groups);
    vec_free(&of_published);
    return good;
}

enum status overlap_fit_solve(struct overlap_fit *out, const char *measured, const char *clusters,
    struct arena *arena, struct diag *diag)
{
    *out = (struct overlap_fit){0};
    if (overlap_fit_load(out, measured, clusters, arena, diag) != STATUS_OK)
        return diag->worst;
    if (!calibrate_overlap_fit_solve(out, NULL) || !set_errors(out))
        return diag_input(diag, (struct source_pos){.file = measured},
            "the rows of overlap_groups.csv and overlap_published.csv that are not held out do not "
            "determine the fit");
    return STATUS_OK;
}

void overlap_fit_free(struct overlap_fit *fit)
{
    vec_free(&fit->groups);
    vec_free(&fit->published);
}

struct fit_error overlap_fit_error(const struct overlap_fit *fit, bool longer, bool held_out)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < fit->groups.n; i++) {
        const struct overlap_group *group = &fit->groups.at[i];
        if (group->held_out == held_out && (group->alone_s > OVERLAP_LONG_S) == longer)
            fit_sample_add(&sample, overlap_fit_beside_s(fit, group), group->beside_s);
    }
    return fit_sample_error(&sample);
}

void overlap_fit_print(FILE *out, const struct overlap_fit *fit)
{
    static const struct quantity none;
    fit_print_head(out, "kernels beside an NCCL kernel");
    fit_print_number(out, "", "overlap_start", none, fit->start, DIM_SECONDS, "");
    fit_print_number(out, "", "memory_sms", none, fit->memory_share, DIM_FRACTION, "of the SMs");
    fit_print_number(out, "", "overlap_traffic", none, fit->traffic, DIM_NONE, "");
    for (int i = 0; i < 4; i++)
        fit_print_error(out, i & 1 ? "above 20 us" : "up to 20 us", i & 2 ? "held out" : "fitted",
            overlap_fit_error(fit, i & 1, i & 2));
    fprintf(out, "\nbeside a collective over NVLink, times as long:\n  measured  predicted\n");
    for (int i = 0; i < fit->published.n; i++) {
        const struct overlap_published *row = &fit->published.at[i];
        fprintf(out, "  %8.2f  %8.2f  %-10s %-8s %s\n", row->ratio, overlap_fit_ratio(fit, row),
            kernel_kind_names[row->work.kind], row->held_out ? "held out" : "fitted", row->source);
    }
}
