#include "store/database.h"
#include "store/shown.h"

#include <string.h>

enum { MAX_COLUMNS = 100 };

static const char reading[] = "read the results";

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
    if (code != SQLITE_DONE && store->refused)
        return diag_input(diag, (struct source_pos){0}, "%s", sqlite3_errmsg(store->db));
    return code == SQLITE_DONE ? STATUS_OK : database_fail(store, reading, diag);
}

enum status database_join(char **out, struct store *store, const char *sql, const char *format, struct diag *diag)
{
    sqlite3_str *text = sqlite3_str_new(store->db);
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        if (format)
            sqlite3_str_appendf(text, format, name);
        else
            sqlite3_str_appendf(text, "%s%s", sqlite3_str_length(text) ? ", " : "", name);
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : database_fail(store, reading, diag);
    sqlite3_finalize(statement);
    *out = sqlite3_str_finish(text);
    return status;
}

void store_parameters(struct store *store, struct store_parameter *parameters, int n)
{
    store->parameters = parameters;
    store->n_parameters = n;
}

static enum status bind_all(struct store *store, sqlite3_stmt *statement, struct source_pos at, struct diag *diag)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        struct store_parameter *found = NULL;
        for (int p = 0; p < store->n_parameters && name; p++)
            if (strcmp(store->parameters[p].name, name) == 0)
                found = &store->parameters[p];
        if (!found)
            return diag_input(diag, at, "SQL: nothing gives the parameter '%s' a value", name ? name : "?");
        found->used = true;
        if (found->given)
            sqlite3_bind_double(statement, i, found->value);
    }
    return STATUS_OK;
}

void store_warn_unfinished(struct store *store, struct diag *diag)
{
    /* main: what the database has, not what a figure's --where leaves of it (temporary tables of the same names) */
    static const char sql[] =
        "SELECT scenario, finished, points FROM main.v_unfinished WHERE run_id = (SELECT max(id) FROM main.run)";
    sqlite3_stmt *statement = NULL;
    bool found = (store->reads & STORE_READS_POINTS) &&
                 sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
                 sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        diag_warn(diag, (struct source_pos){.file = store->path},
            "the newest run of '%s' has %d of %d points; it is under way, or was stopped: the same command goes on",
            (const char *)sqlite3_column_text(statement, 0), sqlite3_column_int(statement, 1),
            sqlite3_column_int(statement, 2));
    sqlite3_finalize(statement);
}

enum status store_query(
    struct store *store, const char *sql, struct source_pos at, store_row row, void *self, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    enum status status;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, &rest);
    if ((code & 0xff) == SQLITE_ERROR)
        status =
            diag_input(diag, at, "SQL: %s; `sqlite3 DB .schema` shows tables and views", sqlite3_errmsg(store->db));
    else if (code != SQLITE_OK)
        status = database_fail(store, reading, diag);
    else if (!statement || sqlite3_column_count(statement) == 0 || !sqlite3_stmt_readonly(statement))
        status = diag_input(diag, at, "SQL: this does not read; write one SELECT");
    else if (rest[strspn(rest, " \t\r\n;")] != '\0')
        status = diag_input(diag, at, "SQL: more than one statement; give each its own name");
    else if (sqlite3_column_count(statement) > MAX_COLUMNS)
        status = diag_input(diag, at, "SQL: more than %d columns; select fewer", MAX_COLUMNS);
    else if ((status = bind_all(store, statement, at, diag)) == STATUS_OK)
        status = step_all(store, statement, row, self, diag);
    sqlite3_finalize(statement);
    return status;
}
