/* Fits of the GEMM model as rows of the database. */
#include "calibrate/gpu_fit_basis.h"
#include "calibrate/gpu_fit.h"

#include "store/fit.h"

static enum status put_row(struct store_fit *into, const struct gemm_case *which, const struct hw_gpu *gpu,
    const struct gemm_row *row, struct diag *diag)
{
    const struct kernel_work *work = &row->work;
    const struct record_cell cells[] = {cell_text("gpu", which->gpu), cell_text("dtype", dtype_names[work->math]),
        cell_text("use", gemm_use_names[row->use]), cell_int("m", work->m), cell_int("n", work->n),
        cell_int("k", work->k), cell_int("batch", work->batch), cell_real("row_pieces", true, work->row_pieces),
        cell_real("measured_s", true, row->measured_s),
        cell_real("predicted_s", true, kernel_duration_s(work, gpu, kernel_whole_gpu(gpu)))};
    return STORE_FIT_PUT(into, "row", cells, diag);
}

enum status gpu_fit_store(
    const char *measured_folder, const char *gpus_folder, struct store *store, struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    struct store_fit *into = NULL;
    enum status status = basis_load(&basis, diag);
    if (status == STATUS_OK)
        status = store_fit_begin(&into, store, "gemm", measured_folder, diag);
    for (int i = 0; i < GEMM_CASES && status == STATUS_OK; i++)
        for (int j = 0; j < basis.rows[i].list.n && status == STATUS_OK; j++)
            status = put_row(into, &gemm_cases[i], &basis.fitted[i], &basis.rows[i].list.at[j], diag);
    if (into)
        status = store_fit_end(into, status, diag);
    basis_release(&basis);
    return status;
}
