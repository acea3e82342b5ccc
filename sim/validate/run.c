/* Rows to predictions, errors and ratios. */
#include "validate/validate.h"

#include "base/diag_set.h"
#include "base/index.h"
#include "scenario/identity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void keep_figures(struct validate_row *row, const struct scenario_result *result)
{
    row->status = result->exec.status == EXEC_OOM ? VALIDATE_OOM : VALIDATE_OK;
    if (row->status == VALIDATE_OOM)
        return;
    row->mfu = result->mfu;
    row->exposed_share = result->exec.breakdown.exposed_comm_s / result->exec.step_time_s;
    row->predicted = (struct validate_figures){
        .tokens_per_s_per_gpu = result->tokens_per_s_per_gpu,
        .tflops_per_gpu = result->tflops_per_gpu,
        .step_time_s = result->exec.step_time_s,
        .peak_allocated_bytes = result->exec.memory.peak_allocated_bytes,
        .peak_reserved_bytes = result->exec.memory.peak_reserved_bytes,
    };
}

/* Comparable speeds: both in the published unit. False: none was published. */
static bool speeds(const struct validate_row *row, double *measured, double *predicted)
{
    const struct validate_figures *m = &row->measured, *p = &row->predicted;
    bool tokens = m->tokens_per_s_per_gpu > 0, step = m->step_time_s > 0;
    *measured = tokens ? m->tokens_per_s_per_gpu : step ? 1 / m->step_time_s : m->tflops_per_gpu;
    *predicted = row->status != VALIDATE_OK ? 0
                 : tokens                   ? p->tokens_per_s_per_gpu
                 : step                     ? 1 / p->step_time_s
                                            : p->tflops_per_gpu;
    return *measured > 0 && *predicted > 0;
}

/* Fewer GPUs, or the same one under the strategy of the curve. */
static bool is_before(const struct validate_row *row, const struct validate_row *other)
{
    return row->gpus < other->gpus || (row->gpus == other->gpus && other->alone && !row->alone);
}

void validate_set_errors(struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        double measured = 0, predicted = 0;
        row->has_error = speeds(row, &measured, &predicted);
        if (row->has_error) {
            row->error = predicted / measured - 1;
            row->measured.tokens_per_s_per_gpu = row->predicted.tokens_per_s_per_gpu * measured / predicted;
        }
        bool allocated = row->measured.peak_reserved_bytes == 0 && row->measured.peak_allocated_bytes > 0;
        row->measured_peak_bytes = allocated ? row->measured.peak_allocated_bytes : row->measured.peak_reserved_bytes;
        row->predicted_peak_bytes =
            allocated ? row->predicted.peak_allocated_bytes : row->predicted.peak_reserved_bytes;
    }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i], *smallest = NULL;
        for (int j = 0; j < table->rows.n; j++) {
            struct validate_row *other = &table->rows.at[j];
            if (other->curve == row->curve && other->has_error && (!smallest || is_before(other, smallest))) {
                smallest = other;
                row->smallest = j;
            }
        }
        if (!row->has_error)
            continue;
        double measured = 0, predicted = 0, measured_0 = 0, predicted_0 = 0;
        speeds(row, &measured, &predicted);
        speeds(smallest, &measured_0, &predicted_0);
        row->has_ratio = row == smallest || row->gpus > smallest->gpus;
        row->measured_ratio = measured / measured_0;
        row->predicted_ratio = predicted / predicted_0;
    }
}

/* One row, from one thread. */
static void run_row(struct validate_row *row, const struct validate_sampling *sampling, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct scenario_result result;
    const struct scenario_point *point = &row->set.points[0];
    enum status status = scenario_simulate(&result, point, &arena, diag);
    if (status == STATUS_OK)
        keep_figures(row, &result);
    else
        row->status = VALIDATE_NOT_SIMULATED;
    if (status == STATUS_OK && sampling &&
        scenario_sample_quickly(&result, point, sampling->uncertainty, sampling->k, &arena, diag) == STATUS_OK) {
        row->n_samples = result.n_samples;
        row->samples = xcalloc((size_t)row->n_samples + 1, sizeof *row->samples);
        memcpy(row->samples, result.samples, sizeof *row->samples * (size_t)row->n_samples);
    }
    arena_release(&arena);
}

/* ---- rows that are the same run ---- */

struct run { /* what the rows of it share; the first row of it is simulated */
    struct scenario_identity identity;
    double weight;
    int row;
};
struct same_run {
    const struct run *runs; /* by row */
    const struct scenario_identity *identity;
};

static bool is_same_run(const void *self, int32_t row)
{
    const struct same_run *same = self;
    return strcmp(same->runs[row].identity.text, same->identity->text) == 0;
}

/* Largest first, of alike ones in the order of the table. */
static int by_weight(const void *a, const void *b)
{
    const struct run *one = a, *two = b;
    return one->weight != two->weight ? (one->weight < two->weight ? 1 : -1) : one->row - two->row;
}

/* The runs to simulate, for free(); every row's `same` is set. */
static struct run *distinct_runs(struct validate_table *table, int *n)
{
    struct run *runs = xcalloc((size_t)table->rows.n + 1, sizeof *runs);
    struct index index = {0};
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].status != VALIDATE_NOT_SIMULATED) {
            scenario_identify(&runs[i].identity, &table->rows.at[i].set.points[0]);
            runs[i].weight = scenario_weight(&table->rows.at[i].set.points[0]);
        }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        runs[i].row = row->same = i;
        if (row->status == VALIDATE_NOT_SIMULATED)
            continue;
        uint64_t hash = strtoull(runs[i].identity.text + IDENTITY_BYTES / 2, NULL, 16);
        struct same_run wanted = {runs, &runs[i].identity};
        int32_t first = index_find(&index, hash, is_same_run, &wanted);
        if (first < 0)
            index_add(&index, hash, i);
        else
            row->same = first;
    }
    *n = 0;
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].status != VALIDATE_NOT_SIMULATED && table->rows.at[i].same == i)
            runs[(*n)++] = runs[i];
    qsort(runs, (size_t)*n, sizeof *runs, by_weight);
    index_free(&index);
    return runs;
}

/* What came out for a row, to another one that is the same run. */
static void copy_result(struct validate_row *to, const struct validate_row *from)
{
    to->status = from->status;
    to->reason = from->reason;
    to->mfu = from->mfu;
    to->exposed_share = from->exposed_share;
    to->predicted = from->predicted;
    to->n_samples = from->n_samples;
    if (from->samples) {
        to->samples = xcalloc((size_t)from->n_samples + 1, sizeof *to->samples);
        memcpy(to->samples, from->samples, sizeof *to->samples * (size_t)from->n_samples);
    }
}

void validate_run(struct validate_table *table, const struct validate_sampling *sampling, scenario_progress progress,
    void *self, struct diag *diag)
{
    int done = 0, n = 0;
    for (int i = 0; i < table->rows.n; i++)
        table->rows.at[i].exposed_share = -1;
    struct run *runs = distinct_runs(table, &n);
    struct diag_set diags = diag_set_begin(table->rows.n); /* by row: messages come in the table's order */
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++) {
        struct diag own = DIAG_INIT;
        run_row(&table->rows.at[runs[i].row], sampling, &own);
        diag_set_keep(&diags, runs[i].row, &own);
#ifdef _OPENMP
#pragma omp critical(validate_done)
#endif
        {
            done++;
            if (progress)
                progress(self, done, n);
        }
    }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        int length = 0;
        const char *reason = diags.by_job[i] && diags.by_job[i]->n_errors ? diag_first(diags.by_job[i], &length) : "";
        if (row->status == VALIDATE_NOT_SIMULATED && row->set.n_points == 1 && !*row->reason)
            row->reason = arena_printf(&table->arena, "%.*s", length, reason);
    }
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].same != i)
            copy_result(&table->rows.at[i], &table->rows.at[table->rows.at[i].same]);
    free(runs);
    diag_set_end(&diags, diag);
    validate_set_errors(table);
}
