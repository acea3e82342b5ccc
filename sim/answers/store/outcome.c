/* Outcomes of simulations that a command (tune, whatif ...) makes many of, kept by the identity
 * of the point: few numbers a row, without run and position.
 *
 * It is an implementation of struct scenario_kept: outcome_find() takes an outcome from the table,
 * outcome_keep() adds one in a transaction, so a command that is killed goes on where it stopped.
 * Only the columns of record_columns with `outcome` are stored. What is subtle: neither function
 * can return a status, so errors gather in outcomes->diag until store_outcomes_end(); an error of
 * reading counts as an outcome that is not there; outcome_keep() returns false to end the caller's
 * loop, after an error or when the user asked to stop. The write-ahead log begins with the first
 * row that is written, so a command that finds all of them leaves the file alone. */
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
    struct insert outcome;
    sqlite3_stmt *find;
    struct diag diag;
};

static bool outcome_prepare(struct store_outcomes *outcomes)
{
    if (outcomes->find)
        return true;
    sqlite3_str *sql = sqlite3_str_new(outcomes->store->db);
    sqlite3_str_appendall(sql, "SELECT status");
    for (int i = 0; i < n_record_columns; i++)
        if (record_columns[i].outcome)
            sqlite3_str_appendf(sql, ", %s", record_columns[i].name);
    sqlite3_str_appendall(sql, " FROM outcome WHERE identity = ?");
    char *text = sqlite3_str_finish(sql);
    bool ok = text &&
              sqlite3_prepare_v2(outcomes->store->db, text, -1, &outcomes->find, NULL) == SQLITE_OK;
    sqlite3_free(text);
    return ok;
}

static bool outcome_find(
    void *self, const struct scenario_identity *identity, struct scenario_result *out)
{
    struct store_outcomes *outcomes = self;
    if (!outcome_prepare(outcomes)) {
        database_fail(outcomes->store, "read the outcomes", &outcomes->diag);
        return false;
    }
    sqlite3_bind_text(outcomes->find, 1, identity->text, -1, SQLITE_STATIC);
    bool found = sqlite3_step(outcomes->find) == SQLITE_ROW;
    if (found) {
        const char *status = (const char *)sqlite3_column_text(outcomes->find, 0);
        *out = (struct scenario_result){0};
        out->exec.status = strcmp(status, exec_status_names[EXEC_OOM]) == 0 ? EXEC_OOM : EXEC_OK;
        for (int i = 0, next = 1; i < n_record_columns; i++)
            if (record_columns[i].outcome)
                record_set(out, &record_columns[i], sqlite3_column_double(outcomes->find, next++));
    }
    sqlite3_reset(outcomes->find);
    return found;
}

static enum status outcome_put(struct store_outcomes *outcomes,
    const struct scenario_identity *identity, const struct scenario_result *result)
{
    struct record record;
    record_fill_outcome(&record, result);
    record.cells[record.n++] = cell_text("identity", identity->text);
    record.cells[record.n++] = cell_text("status", exec_status_names[result->exec.status]);
    return insert_row(
        outcomes->store, &outcomes->outcome, record.cells, record.n, what, &outcomes->diag);
}

static bool outcome_keep(
    void *self, const struct scenario_identity *identity, const struct scenario_result *result)
{
    struct store_outcomes *outcomes = self;
    if (!outcomes->written)
        database_begin_wal(outcomes->store);
    outcomes->written = true;
    enum status status = database_exec(outcomes->store, "BEGIN IMMEDIATE", what, &outcomes->diag);
    if (status == STATUS_OK)
        status = outcome_put(outcomes, identity, result);
    status = database_end(outcomes->store, status, what, &outcomes->diag);
    return status == STATUS_OK && !(outcomes->stop && outcomes->stop());
}

struct store_outcomes *store_outcomes_begin(struct store *store, bool (*stop)(void))
{
    struct store_outcomes *outcomes = xcalloc(1, sizeof *outcomes);
    outcomes->store = store;
    outcomes->stop = stop;
    outcomes->kept = (struct scenario_kept){outcomes, outcome_find, outcome_keep};
    outcomes->outcome = (struct insert){.table = "outcome", .replace = true};
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
    sqlite3_finalize(outcomes->find);
    if (outcomes->written)
        database_end_wal(outcomes->store);
    free(outcomes);
    return status;
}
