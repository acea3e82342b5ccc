/* Kernels that were measured alone, by shape: a row of a table of results/measured (kernels.csv,
 * direct.csv, gemm.csv), or the kernel of a row of overlap_published.csv, read by the names of the
 * columns. A column that the table lacks is empty, a number that is empty 0; none is negative. Fits
 * ask for what they need. Times are in microseconds, as in the tables; power in watts; the meaning
 * of sides stands in each table's head. */
#ifndef FLOPCAST_CALIBRATE_KERNEL_ROWS_H
#define FLOPCAST_CALIBRATE_KERNEL_ROWS_H

#include "base/status.h"
#include "config/csv.h"
#include "kernel/kernel.h"

#include <stdbool.h>

/* Texts are those of the table. */
struct kernel_row {
    struct source_pos at;
    const char *class; /* columns class, operator, kernel */
    const char *dtype, *layout, *session, *regime, *software, *causal, *pass;
    double m, n, k, batch, heads, kv_heads, value_dim, experts,
        topk;                    /* in this order: see kernel_row_folded() */
    double time_us, backward_us; /* columns time_us, or forward_us and backward_us */
    double power_w;
};
enum { KERNEL_ROW_SIDES = 9 };

/* Calls take for each row of a table whose column gpu says that name, until one is an error. No
 * such row is one. */
enum status kernel_rows_read(const char *csv_path, const char *gpu,
    enum status (*take)(void *self, const struct kernel_row *row, struct diag *diag), void *self,
    struct diag *diag);

/* One row of a table. */
enum status kernel_row_load(
    struct kernel_row *out, const struct csv_table *table, int row, struct diag *diag);

/* Each of these columns ("m n k batch time_us") is above 0, or an error. */
enum status kernel_row_needs(const struct kernel_row *row, const char *columns, struct diag *diag);

/* The number format; "" or one that is not known is an error. */
enum status kernel_row_math(enum dtype *out, const struct kernel_row *row, struct diag *diag);

/* The rule by which shapes are held out of fits, written down in the tables' heads: the numbers, in
 * this order, go into base/digest.h; a digest that is, behind `shift` bits, a multiple of
 * KERNEL_ROW_FOLDS is held out. */
enum { KERNEL_ROW_FOLDS = 3 };
bool kernel_row_folded(const double *numbers, int n, int shift);

#endif
