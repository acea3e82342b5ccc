/* Validations in the database, and rows of a CSV picked by SQL. */
#ifndef FLOPCAST_STORE_VALIDATION_H
#define FLOPCAST_STORE_VALIDATION_H

#include "store/record.h"
#include "store/store.h"
#include "validate/validate.h"

/* All rows in one transaction. file: the table of runs. */
enum status store_put_validation(
    struct store *store, const struct validate_table *table, const char *file, struct diag *diag);

enum { VALIDATION_CELLS = 32 };
/* A row as cells, in the order and by the names of the table validation_row. */
void validation_record(struct record_cell cells[VALIDATION_CELLS], const struct validate_row *row);

/* keep[i]: whether row i of the table satisfies the expression, SQL over its columns; a cell that is a number is one.
 * keep has csv_rows() entries. An expression that SQLite refuses is an error of the user's, reported at `at`. */
enum status store_csv_where(
    bool *keep, const struct csv_table *csv, const char *expression, struct source_pos at, struct diag *diag);

#endif
