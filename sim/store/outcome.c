#include "store/outcome.h"

#include "store/database.h"
#include "store/insert.h"

#include <stdlib.h>
#include <string.h>

static const char what[] = "store the outcome";

struct store_outcomes {
    struct store *store;
    struct scenario_kept kept;
    bool (*stop)(void);
    bool written;
    struct insert outcome, sample;
    sqlite3_stmt *find, *samples;
    struct diag diag;
};

enum { DRAW_BYTES = IDENTITY_BYTES + sizeof "quick:" };

static bool prepare(struct store_outcomes *outcomes)
{
    if (outcomes->samples)
        return true;
    sqlite3_str *sql = sqlite3_str_new(outcomes->store->db);
    sqlite3_str_appendall(sql, "SELECT status");
    for (int i = 0; i < n_record_columns; i++)
        if (record_columns[i].outcome)
            sqlite3_str_appendf(sql, ", %s", record_columns[i].name);
    sqlite3_str_appendall(sql, " FROM outcome WHERE identity = ?");
    char *text = sqlite3_str_finish(sql);
    bool ok = text && sqlite3_prepare_v2(outcomes->store->db, text, -1, &outcomes->find, NULL) == SQLITE_OK;
    sqlite3_free(text);
    return ok && sqlite3_prepare_v2(outcomes->store->db,
                     "SELECT sample, status, tflops_per_gpu, step_time_s, tokens_per_s_per_gpu FROM sample "
                     "WHERE identity = ? AND draw = ? AND sample < ?",
                     -1, &outcomes->samples, NULL) == SQLITE_OK;
}

static void write_draw(char out[DRAW_BYTES], const struct scenario_identity *draws)
{
    snprintf(out, DRAW_BYTES, "quick:%s", draws->text);
}

/* How many of the first k samples are there. */
static int find_samples(struct store_outcomes *outcomes, const struct scenario_identity *identity,
    const struct scenario_identity *draws, int k, struct scenario_sample *out)
{
    char draw[DRAW_BYTES];
    int n = 0;
    write_draw(draw, draws);
    sqlite3_bind_text(outcomes->samples, 1, identity->text, -1, SQLITE_STATIC);
    sqlite3_bind_text(outcomes->samples, 2, draw, -1, SQLITE_STATIC);
    sqlite3_bind_int(outcomes->samples, 3, k);
    for (; sqlite3_step(outcomes->samples) == SQLITE_ROW; n++) {
        struct scenario_sample *sample = &out[sqlite3_column_int(outcomes->samples, 0)];
        const char *status = (const char *)sqlite3_column_text(outcomes->samples, 1);
        sample->ok = strcmp(status, exec_status_names[EXEC_OK]) == 0;
        for (int q = 0; q < SAMPLED_COUNT; q++)
            sample->value[q] = sqlite3_column_double(outcomes->samples, 2 + q);
    }
    sqlite3_reset(outcomes->samples);
    return n;
}

static bool find(void *self, const struct scenario_identity *identity, const struct scenario_identity *draws, int k,
    struct scenario_result *out)
{
    struct store_outcomes *outcomes = self;
    if (!prepare(outcomes)) {
        database_fail(outcomes->store, "read the outcomes", &outcomes->diag);
        return false;
    }
    sqlite3_bind_text(outcomes->find, 1, identity->text, -1, SQLITE_STATIC);
    bool found = sqlite3_step(outcomes->find) == SQLITE_ROW;
    struct scenario_sample *samples = out->samples;
    if (found) {
        const char *status = (const char *)sqlite3_column_text(outcomes->find, 0);
        *out = (struct scenario_result){.samples = samples};
        out->exec.status = strcmp(status, exec_status_names[EXEC_OOM]) == 0 ? EXEC_OOM : EXEC_OK;
        for (int i = 0, next = 1; i < n_record_columns; i++)
            if (record_columns[i].outcome)
                record_set(out, &record_columns[i], sqlite3_column_double(outcomes->find, next++));
    }
    sqlite3_reset(outcomes->find);
    if (!found || k == 0 || out->exec.status == EXEC_OOM) /* which has no samples */
        return found;
    out->n_samples = find_samples(outcomes, identity, draws, k, samples);
    return out->n_samples == k;
}

static enum status put(struct store_outcomes *outcomes, const struct scenario_identity *identity,
    const struct scenario_identity *draws, const struct scenario_result *result)
{
    struct record record;
    record_fill_outcome(&record, result);
    record.cells[record.n++] = cell_text("identity", identity->text);
    record.cells[record.n++] = cell_text("status", exec_status_names[result->exec.status]);
    enum status status = insert_row(outcomes->store, &outcomes->outcome, record.cells, record.n, what, &outcomes->diag);
    char draw[DRAW_BYTES] = "";
    if (draws)
        write_draw(draw, draws);
    for (int k = 0; k < result->n_samples && status == STATUS_OK; k++) {
        const struct scenario_sample *sample = &result->samples[k];
        struct record_cell row[4 + SAMPLED_COUNT] = {cell_text("identity", identity->text), cell_text("draw", draw),
            cell_int("sample", k), cell_text("status", exec_status_names[sample->ok ? EXEC_OK : EXEC_OOM])};
        for (int q = 0; q < SAMPLED_COUNT; q++)
            row[4 + q] = cell_real(scenario_sampled_names[q], sample->ok, sample->value[q]);
        status = insert_row(outcomes->store, &outcomes->sample, row, 4 + SAMPLED_COUNT, what, &outcomes->diag);
    }
    return status;
}

static bool keep(void *self, const struct scenario_identity *identity, const struct scenario_identity *draws,
    const struct scenario_result *result)
{
    struct store_outcomes *outcomes = self;
    if (!outcomes->written)
        database_begin_wal(outcomes->store);
    outcomes->written = true;
    enum status status = database_exec(outcomes->store, "BEGIN IMMEDIATE", what, &outcomes->diag);
    if (status == STATUS_OK)
        status = put(outcomes, identity, draws, result);
    status = database_end(outcomes->store, status, what, &outcomes->diag);
    return status == STATUS_OK && !(outcomes->stop && outcomes->stop());
}

struct store_outcomes *store_outcomes_begin(struct store *store, bool (*stop)(void))
{
    struct store_outcomes *outcomes = xcalloc(1, sizeof *outcomes);
    outcomes->store = store;
    outcomes->stop = stop;
    outcomes->kept = (struct scenario_kept){outcomes, find, keep};
    outcomes->outcome = (struct insert){.table = "outcome", .replace = true};
    outcomes->sample = (struct insert){.table = "sample", .replace = true};
    return outcomes;
}

const struct scenario_kept *store_outcomes_kept(struct store_outcomes *outcomes)
{
    return outcomes ? &outcomes->kept : NULL;
}

enum status store_outcomes_end(struct store_outcomes *outcomes, struct diag *diag)
{
    if (!outcomes)
        return STATUS_OK;
    enum status status = outcomes->diag.worst;
    diag_merge(diag, &outcomes->diag);
    sqlite3_finalize(outcomes->outcome.statement);
    sqlite3_finalize(outcomes->sample.statement);
    sqlite3_finalize(outcomes->find);
    sqlite3_finalize(outcomes->samples);
    if (outcomes->written)
        database_end_wal(outcomes->store);
    free(outcomes);
    return status;
}
