#include "store/validation.h"

#include "store/database.h"
#include "store/study.h"
#include "store/where.h"

void validation_record(struct record_cell cells[VALIDATION_CELLS], const struct validate_row *row)
{
    const struct validate_figures *m = &row->measured, *p = &row->predicted;
    const struct validate_interval *in = &row->interval;
    const struct record_cell all[VALIDATION_CELLS] = {
        cell_text("id", row->id),
        cell_text("source", row->source),
        cell_text("model", row->model),
        cell_text("gpu", row->gpu),
        cell_text("strategy", row->strategy),
        cell_int("gpus", row->gpus),
        cell_int("curve", row->curve),
        cell_text("used_in_fit", row->used_in_fit),
        cell_text("status", validate_status_names[row->status]),
        cell_text("reason", row->reason),
        cell_int("measured_oom", row->measured_oom),
        cell_real("measured_tokens_per_s_per_gpu", m->tokens_per_s_per_gpu > 0, m->tokens_per_s_per_gpu),
        cell_real("predicted_tokens_per_s_per_gpu", p->tokens_per_s_per_gpu > 0, p->tokens_per_s_per_gpu),
        cell_real("measured_tflops_per_gpu", m->tflops_per_gpu > 0, m->tflops_per_gpu),
        cell_real("predicted_tflops_per_gpu", p->tflops_per_gpu > 0, p->tflops_per_gpu),
        cell_real("measured_step_time_s", m->step_time_s > 0, m->step_time_s),
        cell_real("predicted_step_time_s", p->step_time_s > 0, p->step_time_s),
        cell_real("measured_peak_allocated_bytes", m->peak_allocated_bytes > 0, m->peak_allocated_bytes),
        cell_real("predicted_peak_allocated_bytes", p->peak_allocated_bytes > 0, p->peak_allocated_bytes),
        cell_real("measured_peak_reserved_bytes", m->peak_reserved_bytes > 0, m->peak_reserved_bytes),
        cell_real("predicted_peak_reserved_bytes", p->peak_reserved_bytes > 0, p->peak_reserved_bytes),
        cell_real("measured_peak_bytes", row->measured_peak_bytes > 0, row->measured_peak_bytes),
        cell_real("predicted_peak_bytes", row->predicted_peak_bytes > 0, row->predicted_peak_bytes),
        cell_real("error", row->has_error, row->error),
        cell_real("measured_ratio", row->has_ratio, row->measured_ratio),
        cell_real("predicted_ratio", row->has_ratio, row->predicted_ratio),
        cell_real("predicted_low", in->known, in->low),
        cell_real("predicted_high", in->known, in->high),
        cell_text("table_file", row->file),
        cell_text("framework", row->framework),
        cell_text("layout", row->layout),
        cell_real("waiting_share", row->waiting_share >= 0, row->waiting_share),
    };
    for (int i = 0; i < VALIDATION_CELLS; i++)
        cells[i] = all[i];
}

enum status store_put_validation(
    struct store *store, const struct validate_table *table, const char *file, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    int n = table->rows.n;
    struct record_cell *cells = ARENA_ARRAY(&arena, struct record_cell, VALIDATION_CELLS * n + 1);
    const struct record_cell head[] = {cell_text("file", file)};
    for (int i = 0; i < n; i++)
        validation_record(&cells[(ptrdiff_t)i * VALIDATION_CELLS], &table->rows.at[i]);
    const struct store_study study = {.table = "validation",
        .rows_table = "validation_row",
        .head = head,
        .n_head = 1,
        .cells = cells,
        .n_cells = VALIDATION_CELLS,
        .n_rows = n};
    enum status status = store_put_study(store, &study, diag);
    arena_release(&arena);
    return status;
}

/* ---- rows of a CSV by SQL ---- */

static bool run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* A table "row" with the columns of the CSV; NUMERIC turns what looks like a number into one. */
static bool fill(sqlite3 *db, const struct csv_table *csv)
{
    sqlite3_str *create = sqlite3_str_new(db), *insert = sqlite3_str_new(db);
    for (int c = 0; c < csv_columns(csv); c++) {
        sqlite3_str_appendf(create, "%s\"%w\" NUMERIC", c ? ", " : "CREATE TABLE row (", csv_name(csv, c));
        sqlite3_str_appendall(insert, c ? ", nullif(?, '')" : "INSERT INTO row VALUES (nullif(?, '')");
    }
    sqlite3_str_appendall(create, ")");
    sqlite3_str_appendall(insert, ")");
    char *create_sql = sqlite3_str_finish(create), *insert_sql = sqlite3_str_finish(insert);
    sqlite3_stmt *statement = NULL;
    bool ok = create_sql && insert_sql && run(db, create_sql) &&
              sqlite3_prepare_v2(db, insert_sql, -1, &statement, NULL) == SQLITE_OK;
    for (int r = 0; r < csv_rows(csv) && ok; r++) {
        for (int c = 0; c < csv_columns(csv); c++)
            ok = ok && sqlite3_bind_text(statement, c + 1, csv_cell(csv, r, c), -1, SQLITE_STATIC) == SQLITE_OK;
        ok = ok && sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK;
    }
    sqlite3_finalize(statement);
    sqlite3_free(create_sql);
    sqlite3_free(insert_sql);
    return ok;
}

enum status store_csv_where(
    bool *keep, const struct csv_table *csv, const char *expression, struct source_pos at, struct diag *diag)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || !fill(db, csv)) {
        enum status status = diag_io(diag, at, "cannot put the rows into SQLite: %s", sqlite3_errmsg(db));
        sqlite3_close(db);
        return status;
    }
    sqlite3_stmt *statement = NULL;
    const char *rest = "";
    char *sql = sqlite3_mprintf("SELECT rowid FROM row WHERE (%s\n)", expression);
    struct where_limit limit;
    where_limit(&limit, db);
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
    enum status status = STATUS_OK;
    if (code == SQLITE_OK && *rest)
        status = diag_input(diag, at, "'%s' is more than one expression; join conditions with AND", expression);
    else
        for (int r = 0; r < csv_rows(csv); r++)
            keep[r] = false;
    while (status == STATUS_OK && code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        keep[sqlite3_column_int64(statement, 0) - 1] = true;
    where_unlimit(&limit, db);
    if (status == STATUS_OK && where_was_too_long(&limit))
        status = diag_input(diag, at, "'%s' takes too long; write a simpler condition", expression);
    else if (status == STATUS_OK && sqlite3_errcode(db) != SQLITE_OK && sqlite3_errcode(db) != SQLITE_DONE)
        status = diag_input(diag, at,
            "'%s' is no condition on the columns of the table: %s; as in: gpus >= 64 AND "
            "source LIKE '%%MPT%%'",
            expression, sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    sqlite3_close(db);
    return status;
}
