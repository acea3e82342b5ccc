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

static const char what_stored[] = "store the outcome";

struct store_outcomes {
    struct store *store;
    struct scenario_kept kept;
    bool (*stop)(void);
    bool written;
    struct diag diag;
};

/* status, then the columns of the table. NULL: as sqlite3_errmsg() says. */
static sqlite3_stmt *outcome_statement(struct store *store)
{
    sqlite3_stmt **kept = database_kept(store, "an outcome");
    if (*kept)
        return *kept;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT status");
    for (int i = 0; i < n_record_columns; i++)
        if (record_columns[i].outcome)
            sqlite3_str_appendf(sql, ", %s", record_columns[i].name);
    sqlite3_str_appendall(sql, " FROM outcome WHERE identity = ?");
    char *text = sqlite3_str_finish(sql);
    sqlite3_prepare_v2(store->db, text, -1, kept, NULL);
    sqlite3_free(text);
    return *kept;
}

static bool outcome_find(
    void *self, const struct scenario_identity *identity, struct scenario_result *out)
{
    struct store_outcomes *outcomes = self;
    sqlite3_stmt *find = outcome_statement(outcomes->store);
    if (!find) {
        database_fail(outcomes->store, "read the outcomes", &outcomes->diag);
        return false;
    }
    sqlite3_bind_text(find, 1, identity->text, -1, SQLITE_STATIC);
    bool found = sqlite3_step(find) == SQLITE_ROW;
    if (found) {
        const char *status = (const char *)sqlite3_column_text(find, 0);
        *out = (struct scenario_result){0};
        out->exec.status = strcmp(status, exec_status_names[EXEC_OOM]) == 0 ? EXEC_OOM : EXEC_OK;
        for (int i = 0, next = 1; i < n_record_columns; i++)
            if (record_columns[i].outcome)
                record_set(out, &record_columns[i], sqlite3_column_double(find, next++));
    }
    sqlite3_reset(find);
    return found;
}

static enum status outcome_put(struct store_outcomes *outcomes,
    const struct scenario_identity *identity, const struct scenario_result *result)
{
    struct record record;
    record_fill_outcome(&record, result);
    record.cells[record.n++] = cell_text("identity", identity->text);
    record.cells[record.n++] = cell_text("status", exec_status_names[result->exec.status]);
    return insert_row(outcomes->store, "OR REPLACE INTO outcome", record.cells, record.n,
        what_stored, &outcomes->diag);
}

static bool outcome_keep(
    void *self, const struct scenario_identity *identity, const struct scenario_result *result)
{
    struct store_outcomes *outcomes = self;
    if (!outcomes->written)
        database_begin_wal(outcomes->store);
    outcomes->written = true;
    enum status status =
        database_exec(outcomes->store, "BEGIN IMMEDIATE", what_stored, &outcomes->diag);
    if (status == STATUS_OK)
        status = outcome_put(outcomes, identity, result);
    status = database_end(outcomes->store, status, what_stored, &outcomes->diag);
    return status == STATUS_OK && !(outcomes->stop && outcomes->stop());
}

struct store_outcomes *store_outcomes_begin(struct store *store, bool (*stop)(void))
{
    struct store_outcomes *outcomes = xcalloc(1, sizeof *outcomes);
    outcomes->store = store;
    outcomes->stop = stop;
    outcomes->kept = (struct scenario_kept){outcomes, outcome_find, outcome_keep};
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
    if (outcomes->written)
        database_end_wal(outcomes->store);
    free(outcomes);
    return status;
}
