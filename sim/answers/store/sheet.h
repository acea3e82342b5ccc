/* Rows in a database in memory, so that tables of statistics are SQL: aggregates, groups and joins
 * in place of loops.
 *
 * In every database that store_open() or this opens SQL has, beside SQLite's own functions,
 * - quantile(x, p), an aggregate: the p-quantile of the values that are not NULL, as
 * gsl_stats_quantile_from_sorted_data() has it (linear between the two neighbours of (n - 1) p), so
 * that quantile(x, 0.5) is the median; NULL of none
 * - fixed(x, digits), signed(x, digits): the number as C's printf() rounds it, signed() with "+" or
 * "-" where it does not round to zero; NULL of NULL. SQLite's own printf() rounds decimal digits
 * instead. */
#ifndef FLOPCAST_STORE_SHEET_H
#define FLOPCAST_STORE_SHEET_H

#include "config/csv.h"
#include "store/record.h"
#include "store/store.h"

/* Empty. On failure *out is NULL. */
enum status store_open_memory(struct store **out, struct diag *diag);

/* A new table; its columns are the cells' names. cells: those of the first row, then of the next; a
 * row has n_cells, one at least. Texts are copied. */
enum status store_put_rows(struct store *store, const char *table, const struct record_cell *cells,
    int n_cells, int n_rows, struct diag *diag);
/* The same of a CSV: columns by its header, texts as they stand, NULL for an empty cell. */
enum status store_put_csv(
    struct store *store, const char *table, const struct csv_table *csv, struct diag *diag);

/* Runs the first statement of *script and moves *script behind it. A statement that gives rows
 * calls row as store_query() does, another one does not. at: the script's name, for its mistakes.
 */
enum status store_next(struct store *store, const char **script, struct source_pos at,
    store_row row, void *self, struct diag *diag);

#endif
