#include "store/fit.h"

#include "store/database.h"
#include "store/insert.h"

#include <stdlib.h>
#include <string.h>

static const char what[] = "store the fit";
static const char *const heads[] = {[STORE_FIT_NCCL] = "nccl_fit",
    [STORE_FIT_GEMM] = "gemm_fit",
    [STORE_FIT_CHECK] = "nccl_check",
    [STORE_FIT_TRACE] = "trace_check"};
static const char *const names[FIT_TABLE_COUNT] = {"nccl_fit_parameter", "nccl_fit_covariance", "nccl_fit_table",
    "nccl_fit_rest", "nccl_fit_point", "gemm_fit_row", "nccl_check_table", "nccl_check_point", "trace_check_step",
    "trace_check_class", "trace_check_collective", "trace_check_span"};

struct store_fit {
    struct store *store;
    int64_t id;
    struct insert into[FIT_TABLE_COUNT];
};

enum status store_fit_begin(
    struct store_fit **out, struct store *store, enum store_fit_kind kind, const char *measured, struct diag *diag)
{
    *out = NULL;
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    struct insert head = {.table = heads[kind]};
    const struct record_cell cells[] = {cell_text("version", FLOPCAST_VERSION), cell_text("measured", measured)};
    status = insert_row(store, &head, cells, sizeof cells / sizeof *cells, what, diag);
    sqlite3_finalize(head.statement);
    if (status != STATUS_OK)
        return database_end(store, status, what, diag);
    *out = xcalloc(1, sizeof **out);
    (*out)->store = store;
    (*out)->id = sqlite3_last_insert_rowid(store->db);
    for (int i = 0; i < FIT_TABLE_COUNT; i++)
        (*out)->into[i].table = names[i];
    return STATUS_OK;
}

enum status store_fit_put(
    struct store_fit *fit, enum store_fit_table table, const struct record_cell *cells, int n, struct diag *diag)
{
    BUG_IF(n > FIT_MAX_CELLS, "%d cells of %s", n, names[table]);
    struct record_cell row[1 + FIT_MAX_CELLS] = {cell_int("fit_id", fit->id)};
    memcpy(row + 1, cells, sizeof *cells * (size_t)n);
    return insert_row(fit->store, &fit->into[table], row, 1 + n, what, diag);
}

enum status store_fit_end(struct store_fit *fit, enum status status, struct diag *diag)
{
    for (int i = 0; i < FIT_TABLE_COUNT; i++)
        sqlite3_finalize(fit->into[i].statement);
    status = database_end(fit->store, status, what, diag);
    free(fit);
    return status;
}
