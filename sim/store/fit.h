/* Fits in the database: of NCCL's parameters (schema_5.sql), of the GEMM model (schema_7.sql); and checks of logs
 * and traces, which fit nothing (schema_9.sql, schema_13.sql). One transaction: a fit is there whole or not at all.
 *
 *     store_fit_begin
 *       store_fit_put: rows, in any order
 *     store_fit_end */
#ifndef FLOPCAST_STORE_FIT_H
#define FLOPCAST_STORE_FIT_H

#include "store/record.h"
#include "store/store.h"

enum store_fit_kind { STORE_FIT_NCCL, STORE_FIT_GEMM, STORE_FIT_CHECK, STORE_FIT_TRACE };

/* Tables nccl_fit_parameter and so on; gemm_fit_row; nccl_check_table, nccl_check_point; trace_check_step
 * and so on. */
enum store_fit_table {
    FIT_PARAMETER,
    FIT_COVARIANCE,
    FIT_TABLE,
    FIT_REST,
    FIT_POINT,
    FIT_GEMM_ROW,
    FIT_CHECK_TABLE,
    FIT_CHECK_POINT,
    FIT_TRACE_STEP,
    FIT_TRACE_CLASS,
    FIT_TRACE_COLLECTIVE,
    FIT_TRACE_SPAN,
    FIT_TABLE_COUNT
};

struct store_fit;

/* measured: the folder of measurements, the log or the trace. On failure *out is NULL. */
enum status store_fit_begin(
    struct store_fit **out, struct store *store, enum store_fit_kind kind, const char *measured, struct diag *diag);

/* cells: every column but fit_id, at most FIT_MAX_CELLS; all rows of a table name them in the same order. */
enum { FIT_MAX_CELLS = 17 };
enum status store_fit_put(
    struct store_fit *fit, enum store_fit_table table, const struct record_cell *cells, int n, struct diag *diag);

/* Commits when status is STATUS_OK, else (or when that fails) rolls back. Frees fit. */
enum status store_fit_end(struct store_fit *fit, enum status status, struct diag *diag);

#endif
