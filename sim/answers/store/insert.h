/* Private to store: rows of named cells into a table. */
#ifndef FLOPCAST_STORE_INSERT_H
#define FLOPCAST_STORE_INSERT_H

#include "store/database.h"
#include "store/record.h"

/* A row. into: "INTO memory", "OR REPLACE INTO sample"; all rows of a connection that go into the
 * same have the same columns in the same order. what: as in database_fail. */
enum status insert_row(struct store *store, const char *into, const struct record_cell *cells,
    int n, const char *what, struct diag *diag);

/* The id of the text, put in when it is new, by the statement. */
enum status insert_unique(struct store *store, const char *sql, const char *text, int64_t *id,
    const char *what, struct diag *diag);

#endif
