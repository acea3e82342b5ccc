#include "store/database.h"

#include <string.h>

enum { MAX_COLUMNS = 100 };

static void row_names(sqlite3_stmt *statement, int n, struct store_value *values)
{
    for (int i = 0; i < n; i++)
        values[i] = (struct store_value){STORE_TEXT, sqlite3_column_name(statement, i)};
}

static void row_values(sqlite3_stmt *statement, int n, struct store_value *values)
{
    for (int i = 0; i < n; i++) {
        int type = sqlite3_column_type(statement, i);
        values[i].kind = type == SQLITE_NULL                              ? STORE_NULL
                         : type == SQLITE_INTEGER || type == SQLITE_FLOAT ? STORE_NUMBER
                                                                          : STORE_TEXT;
        values[i].text = (const char *)sqlite3_column_text(statement, i);
    }
}

static enum status step_all(struct store *store, sqlite3_stmt *statement, store_row row, void *self, struct diag *diag)
{
    struct store_value values[MAX_COLUMNS];
    int n = sqlite3_column_count(statement);
    row_names(statement, n, values);
    row(self, n, values);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        row_values(statement, n, values);
        row(self, n, values);
    }
    return code == SQLITE_DONE ? STATUS_OK : database_fail(store, "read the results", diag);
}

enum status store_query(
    struct store *store, const char *sql, struct source_pos at, store_row row, void *self, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    enum status status;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, &rest);
    if ((code & 0xff) == SQLITE_ERROR)
        status = diag_input(
            diag, at, "SQL: %s; the tables and views are described in sim/store/schema.sql", sqlite3_errmsg(store->db));
    else if (code != SQLITE_OK)
        status = database_fail(store, "read the results", diag);
    else if (!statement || sqlite3_column_count(statement) == 0 || !sqlite3_stmt_readonly(statement))
        status = diag_input(diag, at, "SQL: this does not read; write one SELECT");
    else if (rest[strspn(rest, " \t\r\n;")] != '\0')
        status = diag_input(diag, at, "SQL: more than one statement; give each its own name");
    else if (sqlite3_column_count(statement) > MAX_COLUMNS)
        status = diag_input(diag, at, "SQL: more than %d columns; select fewer", MAX_COLUMNS);
    else
        status = step_all(store, statement, row, self, diag);
    sqlite3_finalize(statement);
    return status;
}
