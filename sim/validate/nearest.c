#include "validate/nearest.h"

#include "base/files.h"
#include "hw/hw.h"
#include "model/model.h"
#include "scenario/discrepancy.h"
#include "validate/lessons.h"
#include "validate/regime.h"
#include "validate/stored.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Assumed (nearest.h). */
static const double ONE = 1, VARIANT = 0.5, DOUBLING = 0.5;

const char *const nearest_term_names[NEAREST_TERMS + 1] = {[NEAREST_GPU] = "GPU",
    [NEAREST_FRAMEWORK] = "framework",
    [NEAREST_STRATEGY] = "strategy",
    [NEAREST_LAYOUT] = "layout",
    [NEAREST_PRECISION] = "precision",
    [NEAREST_MODEL] = "model size",
    [NEAREST_GPUS] = "GPUs"};

const char *const nearest_term_texts[NEAREST_TERMS + 1] = {
    [NEAREST_GPU] = "1 for another GPU, 0.5 for another variant of it (A100 of 40 and of 80 GB)",
    [NEAREST_FRAMEWORK] = "1 for another stack profile (which framework, in which version)",
    [NEAREST_STRATEGY] = "1 for other data parallelism (FULL_SHARD, ZeRO-1, DDP ...)",
    [NEAREST_LAYOUT] = "1 for each of TP, CP, EP, PP and DP that one of the two has and the other has not",
    [NEAREST_PRECISION] = "1 for another precision",
    [NEAREST_MODEL] = "0.5 for each doubling of the model's parameters",
    [NEAREST_GPUS] = "0.5 for each doubling of the number of GPUs"};

static const char *const axes[LAYOUT_AXES] = {"TP", "CP", "EP", "PP", "DP"};

const char *nearest_layout(struct arena *arena, const int64_t degrees[LAYOUT_AXES])
{
    const char *layout = "";
    for (int i = 0; i < LAYOUT_AXES; i++)
        if (degrees[i] > 1)
            layout = arena_printf(arena, "%s%s%s", layout, *layout ? "+" : "", axes[i]);
    return *layout ? layout : "one GPU";
}

/* "composer" of ".../composer.yaml"; "" of NULL. */
static const char *nearest_framework(struct arena *arena, const char *stack)
{
    const char *slash = stack ? strrchr(stack, '/') : NULL, *name = slash ? slash + 1 : stack;
    const char *dot = name ? strrchr(name, '.') : NULL;
    return !name ? "" : arena_printf(arena, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

struct nearest_job nearest_job_of(struct arena *arena, const struct scenario_point *point)
{
    const struct scenario *options = &point->options;
    const struct parallelism_options *p = &options->strategy.parallelism;
    return (struct nearest_job){.gpu = point->hw.gpu.name,
        .arch = point->hw.gpu.arch,
        .framework = nearest_framework(arena, options->stack_path),
        .strategy = strategy_label(&options->strategy),
        .layout = nearest_layout(arena, (const int64_t[LAYOUT_AXES]){p->model.tensor, p->model.context, p->model.expert,
                                            p->pipeline, strategy_data_ranks(p, options->cluster.gpus)}),
        .precision = precision_names[options->strategy.train.precision],
        .params = (double)point->model.params,
        .gpus = options->cluster.gpus,
        .experts = point->model.shape.moe.experts > 0};
}

static bool same_up_to_dash(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");
    return n == strcspn(b, "-") && strncmp(a, b, n) == 0;
}

static double differs(const char *a, const char *b)
{
    return strcmp(a, b) == 0 ? 0 : ONE;
}

static double doublings(double a, double b)
{
    return a > 0 && b > 0 ? DOUBLING * fabs(log2(a / b)) : 0;
}

static double axes_that_differ(const char *a, const char *b)
{
    double n = 0;
    for (int i = 0; i < LAYOUT_AXES; i++)
        n += (strstr(a, axes[i]) != NULL) != (strstr(b, axes[i]) != NULL) ? ONE : 0;
    return n;
}

double nearest_distance(double terms[NEAREST_TERMS], const struct nearest_job *a, const struct nearest_job *b)
{
    terms[NEAREST_GPU] = strcmp(a->gpu, b->gpu) == 0 ? 0 : same_up_to_dash(a->gpu, b->gpu) ? VARIANT : ONE;
    terms[NEAREST_FRAMEWORK] = differs(a->framework, b->framework);
    terms[NEAREST_STRATEGY] = differs(a->strategy, b->strategy);
    terms[NEAREST_LAYOUT] = axes_that_differ(a->layout, b->layout);
    terms[NEAREST_PRECISION] = differs(a->precision, b->precision);
    terms[NEAREST_MODEL] = doublings(a->params, b->params);
    terms[NEAREST_GPUS] = doublings((double)a->gpus, (double)b->gpus);
    double sum = 0;
    for (int i = 0; i < NEAREST_TERMS; i++)
        sum += terms[i];
    return sum;
}

/* ---- rows ---- */

static void read_model(struct nearest_job *job, const char *path, struct arena *arena)
{
    struct model_shape shape;
    struct model model;
    struct diag unread = DIAG_INIT; /* then the size is not known */
    job->params = 0;
    if (model_load(&shape, path, true, arena, &unread) != STATUS_OK)
        return;
    model_build(&model, &shape, arena);
    job->params = (double)model.params;
    job->experts = shape.moe.experts > 0;
}

/* The cell as its table has it: from its folder, or a name. */
static const char *model_path(const struct validate_row *row, const char *cell, struct arena *arena)
{
    const char *slash = strrchr(row->file, '/');
    const char *joined =
        *cell == '/' || !slash ? cell : arena_printf(arena, "%.*s/%s", (int)(slash - row->file), row->file, cell);
    return files_find_from(arena, FILES_MODELS, joined, cell);
}

bool nearest_experts(struct arena *arena, const char *model)
{
    struct nearest_job job = {0};
    read_model(&job, files_find(arena, FILES_MODELS, model), arena);
    return job.experts;
}

const char *nearest_arch(struct arena *arena, const char *gpu)
{
    struct hw_gpu read;
    struct diag unread = DIAG_INIT;
    return hw_load_gpu(&read, files_find(arena, FILES_GPUS, gpu), arena, &unread) == STATUS_OK ? read.arch : "";
}

static void describe_row(struct nearest_runs *runs, int r)
{
    const struct validate_row *row = &runs->table.rows.at[r];
    struct nearest_job *job = &runs->jobs[r];
    *job = (struct nearest_job){row->gpu, row->framework, row->strategy, row->layout,
        csv_cell(row->csv, row->csv_row, csv_column(row->csv, "precision")), -1, row->gpus, "", false};
    if (row->status != VALIDATE_OK)
        return;
    int model = r - 1, gpu = r - 1; /* each is read once; neighbours are mostly alike */
    while (model >= 0 && (runs->jobs[model].params < 0 || strcmp(runs->table.rows.at[model].model, row->model) != 0))
        model--;
    const char *cell = csv_cell(row->csv, row->csv_row, csv_column(row->csv, "model"));
    if (model < 0)
        read_model(job, model_path(row, cell, &runs->arena), &runs->arena);
    else {
        job->params = runs->jobs[model].params;
        job->experts = runs->jobs[model].experts;
    }
    while (gpu >= 0 && (!*runs->jobs[gpu].arch || strcmp(runs->jobs[gpu].gpu, row->gpu) != 0))
        gpu--;
    job->arch = gpu >= 0 ? runs->jobs[gpu].arch : nearest_arch(&runs->arena, row->gpu);
}

/* Precision as a row says it, the parameters of the model file that it names, and whether it has experts (0, false: the
 * file cannot be read); the generation of its GPU. */
static void nearest_describe(struct nearest_runs *runs)
{
    runs->jobs = ARENA_ARRAY(&runs->arena, struct nearest_job, runs->table.rows.n + 1);
    for (int r = 0; r < runs->table.rows.n; r++)
        describe_row(runs, r);
}

static bool same_source(const struct nearest_runs *runs, int a, int b)
{
    return lessons_same_source(runs->table.rows.at[a].source, runs->table.rows.at[b].source);
}

static bool same_family(const struct nearest_runs *runs, int a, int b)
{
    return lessons_same_family(&runs->table.rows.at[a], &runs->table.rows.at[b]);
}

static bool same_regime(const struct nearest_runs *runs, int a, int b)
{
    return regime_rung_of(&runs->jobs[a], &runs->jobs[b]) == REGIME_ALIKE;
}

/* Of each row the first that is the same; neighbours mostly are. */
static int *number(struct nearest_runs *runs, bool same(const struct nearest_runs *, int, int))
{
    int *numbers = ARENA_ARRAY(&runs->arena, int, runs->table.rows.n + 1);
    for (int r = 0; r < runs->table.rows.n; r++) {
        int before = r - 1;
        while (before >= 0 && ((before < r - 1 && numbers[before] != before) || !same(runs, before, r)))
            before--;
        numbers[r] = before >= 0 ? numbers[before] : r;
    }
    return numbers;
}

void nearest_number(struct nearest_runs *runs)
{
    runs->sources = number(runs, same_source);
    runs->families = number(runs, same_family);
    runs->regimes = number(runs, same_regime);
}

bool nearest_load(struct nearest_runs *out, const char *path, struct diag *diag)
{
    *out = (struct nearest_runs){.arena = ARENA_INIT};
    struct diag own = DIAG_INIT;
    bool read = validate_stored_read(&out->table, path, NULL, &own);
    if (!read) {
        diag_merge(diag, &own);
        return false;
    }
    struct discrepancy filed;
    if (discrepancy_load(&filed, files_own(&out->arena, "topologies/fitted/discrepancy.yaml"), &out->arena, &own) ==
        STATUS_OK)
        out->waiting = filed.waiting.value;
    nearest_describe(out);
    nearest_number(out);
    regime_leave_out(out);
    return true;
}

void nearest_release(struct nearest_runs *runs)
{
    validate_release(&runs->table);
    arena_release(&runs->arena);
}

/* ---- the nearest ---- */

static void insert(struct nearest *out, const struct nearest_found *found)
{
    if (out->n == NEAREST_RUNS && found->distance >= out->runs[out->n - 1].distance)
        return;
    int at = out->n < NEAREST_RUNS ? out->n++ : out->n - 1;
    for (; at > 0 && out->runs[at - 1].distance > found->distance; at--)
        out->runs[at] = out->runs[at - 1];
    out->runs[at] = *found;
}

static void summarise(struct nearest *out, const struct nearest_runs *runs)
{
    double errors[NEAREST_RUNS], absolute[NEAREST_RUNS];
    while (out->n_near < out->n && out->runs[out->n_near].distance < NEAREST_FAR)
        out->n_near++;
    size_t n = (size_t)(out->n_near > 0 ? out->n_near : out->n);
    for (size_t i = 0; i < n; i++) {
        errors[i] = runs->table.rows.at[out->runs[i].row].error;
        absolute[i] = fabs(errors[i]);
    }
    gsl_sort(errors, 1, n);
    gsl_sort(absolute, 1, n);
    out->bias = gsl_stats_median_from_sorted_data(errors, 1, n);
    out->median = gsl_stats_median_from_sorted_data(absolute, 1, n);
    out->p90 = gsl_stats_quantile_from_sorted_data(absolute, 1, n, 0.9);
}

void nearest_find(
    struct nearest *out, const struct nearest_runs *runs, const struct nearest_job *job, const char *except)
{
    const struct validate_row *rows = runs->table.rows.at;
    *out = (struct nearest){0};
    for (int fitted = 0; fitted <= 1; fitted++)
        for (int r = 0; r < runs->table.rows.n; r++) {
            struct nearest_found found = {.row = r};
            if (!rows[r].has_error || rows[r].same != r || (*rows[r].used_in_fit != '\0') != fitted ||
                (except && lessons_same_source(rows[r].source, except)) ||
                regime_rung_of(job, &runs->jobs[r]) > REGIME_PRECISION)
                continue;
            found.distance = nearest_distance(found.terms, job, &runs->jobs[r]);
            if (!fitted)
                insert(out, &found);
            else if (out->n > 0 && found.distance <= out->runs[out->n - 1].distance)
                out->n_fitted++;
        }
    if (out->n > 0)
        summarise(out, runs);
}
