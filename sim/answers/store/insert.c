/* A row into a table, from cells that carry the names of their columns.
 *
 * The statement is made of the first row's names and kept (database_kept()); further rows only bind
 * values, and of their names only the number is checked. Texts are bound without a copy, which is
 * enough as the statement runs before insert_row() returns. insert_unique() runs an INSERT ... ON
 * CONFLICT DO UPDATE ... RETURNING id: the update changes nothing, but without it SQLite returns no
 * row for one that is there already. */
#include "store/insert.h"

struct record_cell cell_int(const char *name, int64_t value)
{
    return (struct record_cell){.name = name, .kind = RECORD_INT, .integer = value};
}

struct record_cell cell_real(const char *name, bool known, double value)
{
    /* SQLite makes 0 of -0; so that what is read back prints alike, it is 0 from the beginning */
    return (struct record_cell){
        .name = name, .kind = known ? RECORD_REAL : RECORD_NULL, .real = value + 0.0};
}

struct record_cell cell_text(const char *name, const char *text)
{
    return (struct record_cell){
        .name = name, .kind = text ? RECORD_TEXT : RECORD_NULL, .text = text};
}

static int insert_prepare(struct store *store, sqlite3_stmt **out, const char *into,
    const struct record_cell *cells, int n)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "INSERT %s (%s", into, cells[0].name);
    for (int i = 1; i < n; i++)
        sqlite3_str_appendf(sql, ", %s", cells[i].name);
    sqlite3_str_appendall(sql, ") VALUES (?");
    for (int i = 1; i < n; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    int code = sqlite3_prepare_v2(store->db, text, -1, out, NULL);
    sqlite3_free(text);
    return code;
}

static int bind(sqlite3_stmt *statement, int i, const struct record_cell *cell)
{
    switch (cell->kind) {
    case RECORD_INT:
        return sqlite3_bind_int64(statement, i, cell->integer);
    case RECORD_REAL:
        return sqlite3_bind_double(statement, i, cell->real);
    case RECORD_TEXT:
        return sqlite3_bind_text(statement, i, cell->text, -1, SQLITE_STATIC);
    case RECORD_NULL:
        break;
    }
    return sqlite3_bind_null(statement, i);
}

enum status insert_row(struct store *store, const char *into, const struct record_cell *cells,
    int n, const char *what, struct diag *diag)
{
    sqlite3_stmt **kept = database_kept(store, into);
    if (!*kept && insert_prepare(store, kept, into, cells, n) != SQLITE_OK)
        return database_fail(store, what, diag);
    sqlite3_stmt *statement = *kept;
    BUG_IF(sqlite3_bind_parameter_count(statement) != n, "rows %s differ", into);
    int code = SQLITE_OK;
    for (int i = 0; i < n && code == SQLITE_OK; i++)
        code = bind(statement, i + 1, &cells[i]);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    enum status status = code == SQLITE_DONE ? STATUS_OK : database_fail(store, what, diag);
    sqlite3_reset(statement);
    return status;
}

enum status insert_unique(struct store *store, const char *sql, const char *text, int64_t *id,
    const char *what, struct diag *diag)
{
    sqlite3_stmt *statement = database_statement(store, sql);
    bool ok = statement && sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    if (ok)
        *id = sqlite3_column_int64(statement, 0);
    enum status status = ok ? STATUS_OK : database_fail(store, what, diag);
    sqlite3_reset(statement);
    return status;
}
