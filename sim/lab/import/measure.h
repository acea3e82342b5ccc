/* Files of flopcast_measure (sim/lab/microbench/README.md has the columns): checked, and summarised
 * in a few lines.
 *
 * Every row is checked: categories and kernels are named, numbers are not negative, least <= median
 * <= most, a row has a time (of category memory: bytes), all rows are of one GPU, driver and date.
 * A dry run, and a file without rows, are errors. Columns may stand in any order; others may be
 * added.
 *
 * Nothing is stored: calibrate/measure_fit.h computes a GPU's numbers from the file itself. */
#ifndef FLOPCAST_IMPORT_MEASURE_H
#define FLOPCAST_IMPORT_MEASURE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"
#include "config/csv.h"

#include <stdio.h>

struct measured_row { /* texts live as long as the table; 0: not stated */
    const char *category, *kernel, *dtype;
    const char *beside, *cache;
    double m, n, k, batch, sms;
    double bytes, flop, time_s; /* of one call; the median */
    double sm_clock_hz;
};

struct measured_file {
    struct csv_table *table;
    const char *gpu, *driver, *cuda, *date, *version;
    VEC(struct measured_row) rows;
};

/* Free with measured_file_free, also after an error. */
enum status measured_read(struct measured_file *out, const char *path, struct diag *diag);
enum status measured_read_text(
    struct measured_file *out, const char *name, const char *text, size_t n, struct diag *diag);
void measured_file_free(struct measured_file *file);

/* Who measured what and when, a line. */
void measured_print_source(FILE *out, const struct measured_file *file);

/* That, then a line for each category and dtype: rows, best rate (FLOP/s where there are
 * products, else B/s), shortest time. */
void measured_print(FILE *out, const struct measured_file *file);

/* What a GEMM of this dtype reached in the category "sustained": in the burst, and as the median of
 * the later half of the windows, when clocks have settled. False: no burst or no windows in the
 * file. */
struct measured_sustained {
    double burst_flops, sustained_flops; /* FLOP/s */
    double sustained_clock_hz;           /* 0: not known */
};
bool measured_sustained(
    struct measured_sustained *out, const struct measured_file *file, const char *dtype);

#endif
