/* A point with its result as a row of named values: the columns of the table point, of the CSV and of the JSON are
 * these, in this order. Names, units and meanings stand in schema.sql. */
#ifndef FLOPCAST_STORE_RECORD_H
#define FLOPCAST_STORE_RECORD_H

#include "scenario/scenario.h"

#include <stdio.h>

enum record_kind { RECORD_NULL, RECORD_INT, RECORD_REAL, RECORD_TEXT };

struct record_cell {
    const char *name;
    enum record_kind kind;
    int64_t integer;
    double real;
    const char *text; /* borrowed from the point, the result or the record */
};

struct record_cell cell_int(const char *name, int64_t value);
struct record_cell cell_real(const char *name, bool known, double value); /* NULL when not known */
struct record_cell cell_text(const char *name, const char *text);         /* NULL gives NULL */

/* A number with 15 digits, or the text as it is. False: nothing, as it is not known or no finite number. */
bool record_write(FILE *out, const struct record_cell *cell);

enum { RECORD_MAX_CELLS = 64 };

/* Holds its own hexadecimal texts: do not copy. */
struct record {
    struct record_cell cells[RECORD_MAX_CELLS];
    int n;
    char curve[17], digest[17], band[15][32];
};

void record_fill(struct record *out, const struct scenario_point *point, const struct scenario_result *result);

/* How sure it is, where it was sampled (scenario/sample.h): the number of samples that ran, then of each sampled
 * quantity 5, 50 and 95 % ("tflops_per_gpu_p05" ...) and the ends of the band that what the model leaves out widens
 * ("tflops_per_gpu_low", "..._high"), NULL where none ran; last that discrepancy. */
void record_fill_band(struct record *out, const struct scenario_result *result);

/* How far the simulated numbers are from published ones, simulated / published - 1, as fractions: tflops_deviation,
 * peak_allocated_deviation, peak_reserved_deviation; NULL where either is not known. In the database the views
 * v_scaling and v_memory have them. */
void record_fill_deviation(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result);

/* Fingerprint of everything in the options but the GPU count: points with the same one lie on one scaling curve. */
uint64_t record_curve(const struct scenario *options);

#endif
