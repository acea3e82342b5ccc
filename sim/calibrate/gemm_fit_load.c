#include "calibrate/gemm_fit.h"
#include "config/csv.h"
#include "kernel/gemm.h"

#include <string.h>

const char *const gemm_use_names[GEMM_USE_COUNT] = {
    [GEMM_FITTED] = "fitted", [GEMM_HELD_OUT] = "held out", [GEMM_NARROW] = "narrow"};

/* What two rows share that are held out together: the shape up to transposition, however many products of it. */
struct shape {
    int64_t side[2], k;
};

static struct shape shape_of(const struct kernel_work *work)
{
    bool turn = work->m > work->n;
    return (struct shape){.side = {turn ? work->n : work->m, turn ? work->m : work->n}, .k = work->k};
}

static int compare_shapes(const void *a, const void *b)
{
    const struct shape *x = a, *y = b;
    const int64_t left[] = {x->side[0], x->side[1], x->k}, right[] = {y->side[0], y->side[1], y->k};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

/* Sorted, so that the choice does not depend on the order of the rows. */
void gemm_hold_out(struct gemm_rows *rows, int fold)
{
    int n = 0;
    struct shape *shapes = xcalloc((size_t)rows->list.n, sizeof *shapes);
    for (int i = 0; i < rows->list.n; i++)
        shapes[i] = shape_of(&rows->list.at[i].work);
    qsort(shapes, (size_t)rows->list.n, sizeof *shapes, compare_shapes);
    for (int i = 0; i < rows->list.n; i++)
        if (i == 0 || compare_shapes(&shapes[i], &shapes[n - 1]) != 0)
            shapes[n++] = shapes[i];
    for (int i = 0; i < rows->list.n; i++) {
        struct gemm_row *row = &rows->list.at[i];
        struct shape key = shape_of(&row->work);
        const struct shape *found = bsearch(&key, shapes, (size_t)n, sizeof *shapes, compare_shapes);
        row->use = key.side[0] < GEMM_WIDE                 ? GEMM_NARROW
                   : (found - shapes) % GEMM_FOLDS == fold ? GEMM_HELD_OUT
                                                           : GEMM_FITTED;
    }
    free(shapes);
}

/* As BLAS writes it, columns contiguous: A's rows run along k when it is transposed, B's when it is not. Empty: not
 * stated, and taken as of no effect. */
static enum status read_layout(struct kernel_work *work, const struct csv_table *table, int row, struct diag *diag)
{
    static const char *const layouts[] = {"NN", "NT", "TN", "TT"};
    const char *layout = csv_cell(table, row, csv_column(table, "layout"));
    if (*layout == '\0')
        return STATUS_OK;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(layout, layouts[i]) == 0) {
            work->row_pieces = gemm_row_pieces(work, layout[0] == 'T', layout[1] == 'N');
            return STATUS_OK;
        }
    return diag_input(diag, csv_pos(table, row), "unknown layout '%s'; one of NN, NT, TN, TT", layout);
}

static enum status read_row(void *self, const struct csv_table *table, int row, struct diag *diag)
{
    struct gemm_rows *out = self;
    static const char *const columns[] = {"m", "n", "k", "batch", "time_us"};
    double value[5] = {0};
    for (int i = 0; i < 5; i++) {
        enum status status = csv_number(table, row, csv_column(table, columns[i]), 0, &value[i], diag);
        if (status)
            return status;
        if (value[i] <= 0)
            return diag_input(diag, csv_pos(table, row), "%s is missing or not positive", columns[i]);
    }
    const char *format = csv_cell(table, row, csv_column(table, "dtype"));
    int found = fit_find_name(dtype_names, format);
    if (found < 0)
        return diag_input(
            diag, csv_pos(table, row), "unknown number format '%s'; one of fp32, tf32, bf16, fp16, fp8, int8", format);
    enum dtype math = (enum dtype)found;
    int64_t bytes = dtype_bytes(math);
    vec_push(&out->list, (struct gemm_row){.work = kernel_gemm((int64_t)value[0], (int64_t)value[1], (int64_t)value[2],
                                               (int64_t)value[3], math, bytes, bytes),
                             .measured_s = value[4] * 1e-6});
    return read_layout(&out->list.at[out->list.n - 1].work, table, row, diag);
}

enum status gemm_rows_load(struct gemm_rows *out, const char *csv_path, const char *gpu, struct diag *diag)
{
    *out = (struct gemm_rows){0};
    enum status status = fit_read_rows(csv_path, gpu, read_row, out, diag);
    if (status)
        vec_free(&out->list);
    else
        gemm_hold_out(out, GEMM_FOLDS - 1);
    return status;
}

struct fit_error gemm_error(const struct hw_gpu *gpu, enum dtype math, enum gemm_use use, const struct gemm_rows *rows)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        if (row->work.math == math && row->use == use)
            fit_sample_add(&sample, kernel_duration_s(&row->work, gpu, kernel_whole_gpu(gpu)), row->measured_s);
    }
    return fit_sample_error(&sample);
}
