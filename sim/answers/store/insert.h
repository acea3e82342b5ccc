/* Private to store: rows of named cells into a table. */
#ifndef FLOPCAST_STORE_INSERT_H
#define FLOPCAST_STORE_INSERT_H

#include "store/database.h"
#include "store/record.h"

/* An INSERT that is prepared from the names of its first row; every later row must have the same
 * names. Finalize the statement (NULL is fine). */
struct insert {
    const char *table;
    bool replace; /* a row with the same key, which is there already */
    sqlite3_stmt *statement;
};

/* what: as in database_fail. */
enum status insert_row(struct store *store, struct insert *into, const struct record_cell *cells,
    int n, const char *what, struct diag *diag);

/* The id of the text, put in when it is new, by the statement: prepared from sql where it is NULL.
 */
enum status insert_unique(struct store *store, sqlite3_stmt **statement, const char *sql,
    const char *text, int64_t *id, const char *what, struct diag *diag);

#endif
