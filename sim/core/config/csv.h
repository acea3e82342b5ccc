/* CSV tables with a header row (RFC 4180, read by libcsv), for the measured data under
 * results/measured/. Lines that start with '#' before the header are comments, and U+FEFF before
 * the text, which spreadsheets write, is left out. Every row keeps its line number. A row with
 * another number of cells than the header, an empty or repeated column name, one column whose name
 * holds ';' or a tab, UTF-16, or a file without a header is an error; so is a file of more than
 * CONFIG_MAX_BYTES. Spaces around a cell that is not quoted, blank lines, and rows of empty cells
 * are left out. (libcsv itself has the names csv_parse and csv_free.) */
#ifndef FLOPCAST_CONFIG_CSV_H
#define FLOPCAST_CONFIG_CSV_H

#include "base/status.h"

#include <stdio.h>

struct csv_table;

enum status csv_load(struct csv_table **out, const char *path, struct diag *diag);
enum status csv_load_text(
    struct csv_table **out, const char *name, const char *text, size_t n, struct diag *diag);
void csv_release(struct csv_table *table);

int csv_rows(const struct csv_table *table);
int csv_columns(const struct csv_table *table);
const char *csv_name(const struct csv_table *table, int column); /* of the header */
int csv_column(const struct csv_table *table, const char *name); /* -1 when absent */
const char *csv_cell(
    const struct csv_table *table, int row, int column); /* "" when empty; column -1 gives "" */
struct source_pos csv_pos(const struct csv_table *table, int row); /* file and line of a row */

/* The cell as a plain number. Empty gives STATUS_OK and *out = missing. Anything else than a finite
 * number is an error. */
enum status csv_number(const struct csv_table *table, int row, int column, double missing,
    double *out, struct diag *diag);

/* A cell, in quotes where RFC 4180 wants them. Separators and line ends are the caller's. */
void csv_write_text(FILE *out, const char *text);

#endif
