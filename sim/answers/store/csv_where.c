/* A condition on the rows of a CSV file. The rows are put into a table of an SQLite database in
 * memory, in their order, so rowid - 1 is the row of the CSV, and the condition stands in a
 * WHERE of it.
 *
 * Numbers are compared as such: the affinity NUMERIC turns a cell that looks like a number into
 * one. What is subtle: the condition is the user's and may be any SQL, so steps and bytes are
 * bounded (store/where.h); a newline stands behind it, as it may end in a comment. keep[] is
 * cleared only when the statement could be prepared. */
#include "store/csv_where.h"

#include "store/database.h"
#include "store/where.h"

enum status store_csv_where(bool *keep, const struct csv_table *csv, const char *expression,
    struct source_pos at, struct diag *diag)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || !database_fill(db, "row", "NUMERIC", csv)) {
        enum status status =
            diag_io(diag, at, "cannot put the rows into SQLite: %s", sqlite3_errmsg(db));
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
        status = diag_input(
            diag, at, "'%s' is more than one expression; join conditions with AND", expression);
    else
        for (int r = 0; r < csv_rows(csv); r++)
            keep[r] = false;
    while (status == STATUS_OK && code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        keep[sqlite3_column_int64(statement, 0) - 1] = true;
    where_unlimit(&limit, db);
    if (status == STATUS_OK && where_was_too_long(&limit))
        status = diag_input(diag, at, "'%s' takes too long; write a simpler condition", expression);
    else if (status == STATUS_OK && sqlite3_errcode(db) != SQLITE_OK &&
             sqlite3_errcode(db) != SQLITE_DONE)
        status = diag_input(diag, at,
            "'%s' is no condition on the columns of the table: %s; as in: gpus >= 64 AND "
            "source LIKE '%%MPT%%'",
            expression, sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    sqlite3_close(db);
    return status;
}
