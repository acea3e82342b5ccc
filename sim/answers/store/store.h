/* Results in an SQLite database: what was run, with which effective configuration and hardware, and
 * what came out. The only module that sees SQLite. schema.sql says what the tables and views hold.
 *
 * Every point of a run is stored in one transaction (store/run.h), and so is anything else as a
 * whole. After a full disk, a crash or kill -9 the database holds what was stored before. The views
 * show a scenario's newest run. Several programs may use a database at a time: a writer waits
 * STORE_BUSY_MS for another one. A database of another program or of another schema, or a file that
 * is no database, is refused untouched.
 *
 * Errors: those of the world (STATUS_IO) are reported at the path of the database, with SQLite's
 * message and a remedy; those of a query's text (STATUS_INPUT) at the place that the caller names.
 */
#ifndef FLOPCAST_STORE_STORE_H
#define FLOPCAST_STORE_STORE_H

#include "base/status.h"
#include "scenario/scenario.h"

enum { STORE_APPLICATION_ID = 0x466c6f70 /* "Flop" */, STORE_BUSY_MS = 10000 };

struct store;

enum store_mode {
    STORE_READ,  /* the database must exist; queries cannot change it */
    STORE_WRITE, /* created when absent; fails at once when it cannot be written */
};

/* Makes the tables of an empty one. path is borrowed until store_close. On failure *out is NULL. */
enum status store_open(
    struct store **out, const char *path, enum store_mode mode, struct diag *diag);
void store_close(struct store *store); /* NULL is fine */

/* One value of a row. text: a number as SQLite prints it (15 digits), or the text. */
struct store_value {
    enum { STORE_NULL, STORE_NUMBER, STORE_TEXT } kind;
    double number;    /* all of its digits; 0 of a text */
    const char *text; /* NULL for STORE_NULL; borrowed during the call */
};

/* Called first with the names of the columns (as texts), then with every row. */
typedef void (*store_row)(void *self, int n, const struct store_value *values);

/* A parameter of statements, a number: ":from_s". */
struct store_parameter {
    const char *name;
    bool given; /* else NULL */
    double value;
    bool used; /* a statement since store_parameters() has it */
};

/* From now on store_query() binds these, and refuses others. Borrowed until store_close(). */
void store_parameters(struct store *store, struct store_parameter *parameters, int n);

/* Where a statement has read results of runs, and the newest run (of the scenario, where it is
 * narrowed) has not all of its points: a warning. */
void store_warn_unfinished(struct store *store, struct diag *diag);

/* Run one statement that reads. at: where its text stands. */
enum status store_query(struct store *store, const char *sql, struct source_pos at, store_row row,
    void *self, struct diag *diag);

#endif
