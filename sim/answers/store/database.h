/* Private to store: the open database and its errors. */
#ifndef FLOPCAST_STORE_DATABASE_H
#define FLOPCAST_STORE_DATABASE_H

#include "base/vec.h"
#include "config/csv.h"
#include "store/store.h"

#include <sqlite3.h>

/* A statement that is kept by its text, or by a name of it. */
struct kept_statement {
    char *key;
    sqlite3_stmt *statement;
};

struct store {
    sqlite3 *db;
    const char *path;
    int read_steps;    /* of all queries since store_show() (where_bound_reading()) */
    unsigned reads;    /* what statements have read (store/shown.h) */
    bool reading_only; /* the statement that is prepared may do nothing else */
    bool refused;      /* by figure_room(): the error is a sentence for the user */
    struct store_parameter *parameters;
    int n_parameters;
    VEC(struct kept_statement) kept;
};

/* "path: error: cannot <what>: <SQLite's message>; <remedy>". Returns STATUS_IO. */
enum status database_fail(struct store *store, const char *what, struct diag *diag);

/* One or more statements without results; what as above. */
enum status database_exec(
    struct store *store, const char *sql, const char *what, struct diag *diag);

/* The first column of the statement, "a, b, c", or each put into the format; NULL when there is no
 * row. For sqlite3_free(). */
enum status database_join(
    char **out, struct store *store, const char *sql, const char *format, struct diag *diag);

/* The statement, which is prepared when it is first asked for and kept until store_close(). Who
 * uses it resets it: one that is under way holds a lock. NULL: as sqlite3_errmsg() says. */
sqlite3_stmt *database_statement(struct store *store, const char *sql);
/* Where the statement of that key is kept, for one whose text is long to make; NULL there: it is
 * not prepared yet. */
sqlite3_stmt **database_kept(struct store *store, const char *key);

/* A statement with one integer. */
enum status database_int(struct store *store, const char *sql, int *out, struct diag *diag);

/* Ends the transaction that is open: commits when status is STATUS_OK, else (or when that fails)
 * rolls back. */
enum status database_end(
    struct store *store, enum status status, const char *what, struct diag *diag);

/* The functions of store/sheet.h, on this connection. */
void database_functions(struct store *store);

/* A new table with the rows of a CSV, its columns of that type, an empty cell NULL. False: as
 * sqlite3_errmsg() says. */
bool database_fill(sqlite3 *db, const char *table, const char *type, const struct csv_table *csv);

/* SQLite's bytes of the database, for sqlite3_free(); the attached database `as` ("main") becomes
 * that of such bytes, in memory. False: as sqlite3_errmsg() says. */
unsigned char *database_bytes(struct store *store, size_t *n);
bool database_take(struct store *store, const char *as, const unsigned char *bytes, size_t n);

/* While many small transactions are written: SQLite's WAL mode with synchronous = NORMAL
 * (store/run.h), where the file's system can do it. Then one file again, unless another program has
 * it open, which does this when it ends. */
void database_begin_wal(struct store *store);
void database_end_wal(struct store *store);

/* For queries, on this connection only: step_part (part, name) names the parts of a step; v_step is
 * v_breakdown with part_1_s ... and a sentence; v_loss is v_explanation with a sentence
 * (scenario/causes.h). */
enum status database_causes(struct store *store, struct diag *diag);

/* v_settings as this program's settings are: point_id, run_id, position, then a column a setting
 * with its dotted name. NULL: not given. */
enum status database_settings(struct store *store, struct diag *diag);

/* The .sql files of this folder, made C strings by the build: all tables, and the temporary ones of
 * store/shown.h, in this order. */
extern const char schema_sql[], shown_sql[], shown_names_sql[], shown_x_sql[], shown_figure_sql[];

#endif
