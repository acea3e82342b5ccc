/* Rows of a CSV picked by SQL. */
#ifndef FLOPCAST_STORE_CSV_WHERE_H
#define FLOPCAST_STORE_CSV_WHERE_H

#include "base/status.h"
#include "config/csv.h"

/* keep[i]: whether row i of the table satisfies the expression, SQL over its columns; a cell that
 * is a number is one. keep has csv_rows() entries. An expression that SQLite refuses is an error of
 * the user's, reported at `at`. */
enum status store_csv_where(bool *keep, const struct csv_table *csv, const char *expression,
    struct source_pos at, struct diag *diag);

#endif
