/* Databases in memory for tables that commands print, and the SQL functions that they and the
 * figures share: quantile(value, p), fixed(value, digits), signed(value, digits).
 *
 * Tables are made without types: a cell keeps the one that it comes with. What is subtle:
 * quantile() interpolates as GSL does, ignores NULL, and is NULL of no row; fixed() prints no
 * "-0.0", so a table does not change by the sign of a rounded zero. */
#include "store/sheet.h"

#include "base/vec.h"
#include "store/database.h"
#include "store/insert.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>
#include <string.h>

static const char filling[] = "put rows into a database in memory";

/* ---- functions ---- */

struct quantile {
    VEC(double) values;
    double p;
};

static void quantile_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    (void)n;
    struct quantile *quantile = sqlite3_aggregate_context(context, sizeof *quantile);
    if (!quantile) {
        sqlite3_result_error_nomem(context);
        return;
    }
    quantile->p = sqlite3_value_double(arguments[1]);
    if (sqlite3_value_type(arguments[0]) != SQLITE_NULL)
        vec_push(&quantile->values, sqlite3_value_double(arguments[0]));
}

static void quantile_end(sqlite3_context *context)
{
    struct quantile *quantile = sqlite3_aggregate_context(context, 0); /* NULL: of no row */
    if (quantile && quantile->values.n > 0) {
        size_t n = (size_t)quantile->values.n;
        gsl_sort(quantile->values.at, 1, n);
        sqlite3_result_double(
            context, gsl_stats_quantile_from_sorted_data(quantile->values.at, 1, n, quantile->p));
    }
    if (quantile)
        vec_free(&quantile->values);
}

/* fixed(), and signed() where there is something to point to. */
static void fixed(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    (void)n;
    char text[400]; /* of any double with some digits */
    if (sqlite3_value_type(arguments[0]) == SQLITE_NULL)
        return;
    double value = sqlite3_value_double(arguments[0]);
    int digits = sqlite3_value_int(arguments[1]);
    digits = digits < 0 ? 0 : digits > 15 ? 15 : digits;
    snprintf(text, sizeof text, sqlite3_user_data(context) ? "%+.*f" : "%.*f", digits, value);
    if (!strpbrk(text, "123456789nN"))
        snprintf(text, sizeof text, "%.*f", digits, 0.0);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

void database_functions(struct store *store)
{
    static char with_sign[] = "";
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    sqlite3_create_function(
        store->db, "quantile", 2, flags, NULL, NULL, quantile_step, quantile_end);
    sqlite3_create_function(store->db, "fixed", 2, flags, NULL, fixed, NULL, NULL);
    sqlite3_create_function(store->db, "signed", 2, flags, with_sign, fixed, NULL, NULL);
}

/* ---- rows ---- */

enum status store_open_memory(struct store **out, struct diag *diag)
{
    struct store *store = xcalloc(1, sizeof *store);
    store->path = "a database in memory";
    *out = NULL;
    if (sqlite3_open(":memory:", &store->db) != SQLITE_OK) {
        database_fail(store, "open a database in memory", diag);
        store_close(store);
        return STATUS_IO;
    }
    database_functions(store);
    *out = store;
    return STATUS_OK;
}

enum status store_put_rows(struct store *store, const char *table, const struct record_cell *cells,
    int n_cells, int n_rows, struct diag *diag)
{
    sqlite3_str *create = sqlite3_str_new(store->db);
    for (int c = 0; c < n_cells; c++)
        sqlite3_str_appendf(create, c ? ", \"%w\"" : "BEGIN; CREATE TABLE \"%w\" (\"%w\"",
            c ? cells[c].name : table, cells[c].name);
    sqlite3_str_appendall(create, ")");
    char *sql = sqlite3_str_finish(create), *into = sqlite3_mprintf("INTO \"%w\"", table);
    enum status status = database_exec(store, sql, filling, diag);
    for (int r = 0; r < n_rows && status == STATUS_OK; r++)
        status = insert_row(store, into, &cells[(ptrdiff_t)r * n_cells], n_cells, filling, diag);
    sqlite3_free(into);
    sqlite3_free(sql);
    return database_end(store, status, filling, diag);
}

/* An empty cell of a CSV is NULL. type is the affinity of all columns: "" keeps texts, NUMERIC
 * reads numbers. */
bool database_fill(sqlite3 *db, const char *table, const char *type, const struct csv_table *csv)
{
    sqlite3_str *create = sqlite3_str_new(db), *insert = sqlite3_str_new(db);
    sqlite3_str_appendf(create, "CREATE TABLE \"%w\" (", table);
    sqlite3_str_appendf(insert, "INSERT INTO \"%w\" VALUES (", table);
    for (int c = 0; c < csv_columns(csv); c++) {
        sqlite3_str_appendf(create, "%s\"%w\" %s", c ? ", " : "", csv_name(csv, c), type);
        sqlite3_str_appendall(insert, c ? ", nullif(?, '')" : "nullif(?, '')");
    }
    sqlite3_str_appendall(create, ")");
    sqlite3_str_appendall(insert, ")");
    char *create_sql = sqlite3_str_finish(create), *insert_sql = sqlite3_str_finish(insert);
    sqlite3_stmt *statement = NULL;
    bool ok = create_sql && insert_sql &&
              sqlite3_exec(db, create_sql, NULL, NULL, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(db, insert_sql, -1, &statement, NULL) == SQLITE_OK;
    for (int r = 0; r < csv_rows(csv) && ok; r++) {
        for (int c = 0; c < csv_columns(csv); c++)
            ok = ok && sqlite3_bind_text(
                           statement, c + 1, csv_cell(csv, r, c), -1, SQLITE_STATIC) == SQLITE_OK;
        ok = ok && sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK;
    }
    sqlite3_finalize(statement);
    sqlite3_free(create_sql);
    sqlite3_free(insert_sql);
    return ok;
}

enum status store_put_csv(
    struct store *store, const char *table, const struct csv_table *csv, struct diag *diag)
{
    return database_fill(store->db, table, "", csv) ? STATUS_OK
                                                    : database_fail(store, filling, diag);
}
