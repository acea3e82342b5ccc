/* Rows to predictions, errors and ratios. Rows of the same identity are one run, simulated once:
 * distinct_runs() finds them by a hash index, the first row stands for the others (row->same), and
 * its result is copied to them. The runs go to the crew, the heaviest first; what a database knows
 * and what belongs to another shard is skipped. Results and reasons of failures go between ranks
 * packed.
 *
 * validate_set_errors() needs no simulation and runs also on stored results. It is quadratic in
 * rows, as each row looks for the smallest cluster of its curve. What is subtle: speeds are
 * compared in the unit that was published, and the measured tokens a second are set from that, so
 * ratios within a curve have one unit even where its rows were published in several. A row set
 * apart as a slow rerun is one measured more than VALIDATE_SLOW_RERUN times as fast elsewhere with
 * the same settings. */
#include "validate/validate.h"

#include "base/index.h"
#include "crew/crew.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void keep_figures(struct validate_row *row, const struct scenario_result *result)
{
    row->status = result->exec.status == EXEC_OOM ? VALIDATE_OOM : VALIDATE_OK;
    if (row->status == VALIDATE_OOM)
        return;
    row->mfu = result->mfu;
    row->waiting_share = scenario_waiting_share(result);
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

/* Reruns are rows that are the same run (row->same), of whatever source. */
static void set_slow_reruns(struct validate_table *table)
{
    static const char slow[] =
        "the same settings were measured more than 1.5 times as fast elsewhere";
    double *fastest = xcalloc((size_t)table->rows.n + 1, sizeof *fastest);
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        if (row->has_error)
            fastest[row->same] = fmax(fastest[row->same], row->measured.tokens_per_s_per_gpu);
    }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        if (row->has_error && !*row->apart &&
            row->measured.tokens_per_s_per_gpu * VALIDATE_SLOW_RERUN < fastest[row->same])
            row->apart = slow;
    }
    free(fastest);
}

void validate_set_errors(struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        double measured = 0, predicted = 0;
        row->has_error = speeds(row, &measured, &predicted);
        if (row->has_error) {
            row->error = predicted / measured - 1;
            row->measured.tokens_per_s_per_gpu =
                row->predicted.tokens_per_s_per_gpu * measured / predicted;
        }
        bool allocated =
            row->measured.peak_reserved_bytes == 0 && row->measured.peak_allocated_bytes > 0;
        row->measured_peak_bytes =
            allocated ? row->measured.peak_allocated_bytes : row->measured.peak_reserved_bytes;
        row->predicted_peak_bytes =
            allocated ? row->predicted.peak_allocated_bytes : row->predicted.peak_reserved_bytes;
    }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i], *smallest = NULL;
        for (int j = 0; j < table->rows.n; j++) {
            struct validate_row *other = &table->rows.at[j];
            if (other->curve == row->curve && other->has_error &&
                (!smallest || is_before(other, smallest))) {
                smallest = other;
                row->smallest = j;
            }
        }
        row->has_ratio = row->has_error && (row == smallest || row->gpus > smallest->gpus);
        if (!row->has_error)
            continue;
        double measured = 0, predicted = 0, measured_0 = 0, predicted_0 = 0;
        speeds(row, &measured, &predicted);
        speeds(smallest, &measured_0, &predicted_0);
        row->measured_ratio = measured / measured_0;
        row->predicted_ratio = predicted / predicted_0;
    }
    set_slow_reruns(table);
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

/* The runs to simulate, in the order of the table, for free(); every row's `same` is set. */
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
    index_free(&index);
    return runs;
}

/* ---- to do them ---- */

struct validated {
    struct validate_table *table;
    const struct scenario_share *share;
    struct run *runs;
    struct scenario_result *results; /* summaries */
    char **reasons;                  /* of those that failed, in the heap */
    bool *known, *others;
    int n, done, total;
    scenario_progress progress;
    void *self;
};

static const struct scenario_point *point_of(const struct validated *all, int i)
{
    return &all->table->rows.at[all->runs[i].row].set.points[0];
}

static enum status do_run(void *self, int i, struct diag *diag)
{
    struct validated *all = self;
    struct arena arena = ARENA_INIT;
    struct scenario_result result, *out = &all->results[i];
    int length = 0;
    enum status status = scenario_simulate(&result, point_of(all, i), &arena, diag);
    *out = scenario_summary(&result);
    if (status != STATUS_OK) {
        const char *reason = diag_first(diag, &length);
        all->reasons[i] = strndup(reason, (size_t)length);
    }
    arena_release(&arena);
    return status;
}

static void keep_row(struct validated *all, int i)
{
    keep_figures(&all->table->rows.at[all->runs[i].row], &all->results[i]);
}

/* false ends the loop: keep() wants no more. */
static bool end_run(void *self, int i, enum status status)
{
    struct validated *all = self;
    struct validate_row *row = &all->table->rows.at[all->runs[i].row];
    const struct scenario_kept *kept = all->share->kept;
    bool goes_on = true;
    if (status != STATUS_OK) {
        row->status = VALIDATE_NOT_SIMULATED;
        row->reason = arena_strdup(&all->table->arena, all->reasons[i] ? all->reasons[i] : "");
    } else {
        keep_row(all, i);
        goes_on = !kept || kept->keep(kept->self, &all->runs[i].identity, &all->results[i]);
    }
    all->done++;
    all->table->left--;
    if (all->progress)
        all->progress(all->self, all->done, all->total);
    return goes_on;
}

/* What somebody has kept, and what is left to other shards. What is known counts as done, also
 * where it belongs to another shard. */
static void look_around(struct validated *all, double *cost)
{
    const struct scenario_share *share = all->share;
    if (share->shards > 0)
        crew_shard(all->others, cost, NULL, all->n, share->shard, share->shards);
    for (int i = 0; i < all->n; i++) {
        all->others[i] = share->shards > 0 && !all->others[i];
        if (!share->kept)
            continue;
        all->known[i] =
            share->kept->find(share->kept->self, &all->runs[i].identity, &all->results[i]);
        if (all->known[i])
            keep_row(all, i);
    }
    for (int i = 0; i < all->n; i++) {
        all->table->left -= all->known[i];
        all->table->n_known += all->known[i];
        all->done += all->known[i];
        all->total += all->known[i] || !all->others[i];
    }
}

static void do_runs(struct validated *all, struct diag *diag)
{
    double *cost = xcalloc((size_t)all->n + 1, sizeof *cost);
    bool *skipped = xcalloc((size_t)all->n + 1, sizeof *skipped);
    for (int i = 0; i < all->n; i++)
        cost[i] = all->runs[i].weight;
    look_around(all, cost);
    for (int i = 0; i < all->n; i++)
        skipped[i] = all->known[i] || all->others[i];
    int *order = crew_order(cost, all->n);
    const struct crew_loop loop = {.n = all->n,
        .order = order,
        .known = skipped,
        .self = all,
        .job = do_run,
        .ended = end_run};
    crew_run(&loop, diag);
    for (int i = 0; i < all->n; i++)
        free(all->reasons[i]);
    free(order);
    free(skipped);
    free(cost);
}

/* What came out for a row, to another one that is the same run. */
static void copy_result(struct validate_row *to, const struct validate_row *from)
{
    to->status = from->status;
    to->reason = from->reason;
    to->mfu = from->mfu;
    to->waiting_share = from->waiting_share;
    to->predicted = from->predicted;
}

void validate_run(
    struct validate_table *table, scenario_progress progress, void *self, struct diag *diag)
{
    static const struct scenario_share nobody = {0};
    struct validated all = {.table = table,
        .share = table->share ? table->share : &nobody,
        .progress = progress,
        .self = self};
    for (int i = 0; i < table->rows.n; i++)
        table->rows.at[i].waiting_share = -1;
    all.runs = distinct_runs(table, &all.n);
    size_t room = (size_t)all.n + 1;
    all.results = xcalloc(room, sizeof *all.results);
    all.reasons = xcalloc(room, sizeof *all.reasons);
    all.known = xcalloc(room, sizeof *all.known);
    all.others = xcalloc(room, sizeof *all.others);
    table->n_runs = table->left = all.n;
    do_runs(&all, diag);
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].same != i)
            copy_result(&table->rows.at[i], &table->rows.at[table->rows.at[i].same]);
    free(all.runs);
    free(all.results);
    free(all.reasons);
    free(all.known);
    free(all.others);
    validate_set_errors(table);
}
