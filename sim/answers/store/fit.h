/* Fits of parameters in the database, and checks of logs and traces, which fit nothing: tables fit
 * and fit_row, whose columns the views of schema.sql name. One transaction: a fit is there whole or
 * not at all.
 *
 *     store_fit_begin
 *       store_fit_put: rows, in any order
 *     store_fit_end */
#ifndef FLOPCAST_STORE_FIT_H
#define FLOPCAST_STORE_FIT_H

#include "store/record.h"
#include "store/store.h"

struct store_fit;

/* kind: "nccl", "gemm", "nccl_check", "trace_check". measured: the folder of measurements, the log
 * or the trace. On failure *out is NULL. */
enum status store_fit_begin(struct store_fit **out, struct store *store, const char *kind,
    const char *measured, struct diag *diag);

/* A row of this part of the fit. */
enum status store_fit_put(struct store_fit *fit, const char *part, const struct record_cell *cells,
    int n, struct diag *diag);

/* The row of an array of cells. */
#define STORE_FIT_PUT(fit, part, cells, diag)                                                      \
    store_fit_put((fit), (part), (cells), (int)(sizeof(cells) / sizeof *(cells)), (diag))

/* Commits when status is STATUS_OK, else (or when that fails) rolls back. Frees fit. */
enum status store_fit_end(struct store_fit *fit, enum status status, struct diag *diag);

#endif
