/* Rows of named values for programs: what a table shows, in full precision and base SI, with the
 * unit in the name where there is one ("step_time_s", "peak_allocated_bytes"). CSV by RFC 4180
 * (lines end in CR LF; empty where a value is not known), or JSON, an array of objects (null). */
#ifndef FLOPCAST_ROWS_RECORDS_H
#define FLOPCAST_ROWS_RECORDS_H

#include "store/record.h"

#include <stdio.h>

enum records_format { RECORDS_TABLE, RECORDS_CSV, RECORDS_JSON, RECORDS_FORMAT_COUNT };
extern const char
    *const records_format_names[RECORDS_FORMAT_COUNT + 1]; /* "table", "csv", "json" */

struct records {
    FILE *out;
    enum records_format format; /* not the table */
    int n;                      /* rows so far */
};

struct records records_begin(FILE *out, enum records_format format);
/* All rows have the same names in the same order; the first brings the head of the CSV. */
void records_row(struct records *records, const struct record_cell *cells, int n);
void records_end(struct records *records);

/* One cell of a row, its number with 15 digits; nothing, or null, where it is not known. */
void records_csv_cell(FILE *out, const struct record_cell *cell);
void records_json_cell(FILE *out, const struct record_cell *cell); /* "name": value */

#endif
