#include "calibrate/direct_fit.h"

#include "base/digest.h"
#include "config/csv.h"

#include <string.h>

const char *const direct_kind_names[DIRECT_KIND_COUNT + 1] = {
    [DIRECT_PRODUCT] = "product",
    [DIRECT_ATTENTION] = "attention",
    [DIRECT_EXPERTS] = "experts",
    [DIRECT_CAST] = "scale_matrix",
    [DIRECT_AMAX] = "compute_scale",
};

enum { NUMBERS = 9, RESULT_BYTES = 2, FOLD_SHIFT = 8 };
enum column { M, N, K, BATCH, HEADS, KV_HEADS, VALUE_DIM, EXPERTS, TOPK };
static const char *const columns[NUMBERS] = {
    "m", "n", "k", "batch", "heads", "kv_heads", "value_dim", "experts", "topk"};

/* Bytes of an element in a cast: 16 bits in, 8 out; the largest value is found by reading. */
static struct kernel_work cast_work(enum direct_kind kind, const double v[NUMBERS])
{
    double elements = v[M] * v[K];
    return kernel_stream(KERNEL_ELEMENTWISE, elements * RESULT_BYTES, kind == DIRECT_CAST ? elements : 0, 0);
}

/* Scores and context; backward computes the scores once more (model/tape_dense.c). */
static struct kernel_work attention_work(const double v[NUMBERS], bool causal, bool backward)
{
    double products = backward ? 3 * v[K] + 2 * v[VALUE_DIM] : v[K] + v[VALUE_DIM];
    double heads = v[BATCH] * v[HEADS], kv_heads = v[BATCH] * v[KV_HEADS];
    double once = (heads * v[M] * (v[K] + v[VALUE_DIM]) + kv_heads * v[N] * (v[K] + v[VALUE_DIM])) * RESULT_BYTES;
    return (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = DTYPE_BF16,
        .flop = 2 * heads * v[M] * v[N] * products * (causal ? ATTENTION_CAUSAL_SHARE : 1),
        .read_bytes = once * (backward ? 2 : 1),
        .m = (int64_t)v[M],
        .n = (int64_t)v[N],
        .k = (int64_t)v[K],
        .batch = (int64_t)heads,
        .causal = causal,
        .backward = backward};
}

static bool is_held_out(const double v[NUMBERS])
{
    uint64_t digest = DIGEST_INIT;
    for (int i = 0; i < NUMBERS; i++)
        digest = digest_word(digest, (uint64_t)v[i]);
    return (digest >> FOLD_SHIFT) % DIRECT_FOLDS == 0;
}

static enum status find(
    int *out, const struct csv_table *csv, int row, const char *column, const char *const *names, struct diag *diag)
{
    const char *cell = csv_cell(csv, row, csv_column(csv, column));
    *out = fit_find_name(names, cell);
    return *out >= 0 ? STATUS_OK
                     : diag_input(diag, csv_pos(csv, row), "%s is '%s'; one of %s, %s, ... is wanted", column, cell,
                           names[0], names[1]);
}

static bool is(const struct csv_table *csv, int row, const char *column, const char *text)
{
    return strcmp(csv_cell(csv, row, csv_column(csv, column)), text) == 0;
}

static enum status read_row(void *self, const struct csv_table *csv, int row, struct diag *diag)
{
    struct direct_rows *out = self;
    struct direct_row at = {.settled = is(csv, row, "regime", "settled")};
    double v[NUMBERS] = {0}, time_us = 0;
    int kind = 0, math = 0;
    enum status status = find(&kind, csv, row, "class", direct_kind_names, diag);
    if (status == STATUS_OK)
        status = find(&math, csv, row, "dtype", dtype_names, diag);
    for (int i = 0; i < NUMBERS && status == STATUS_OK; i++)
        status = csv_number(csv, row, csv_column(csv, columns[i]), 0, &v[i], diag);
    if (status == STATUS_OK)
        status = csv_number(csv, row, csv_column(csv, "time_us"), 0, &time_us, diag);
    if (status == STATUS_OK)
        status = csv_number(csv, row, csv_column(csv, "power_w"), 0, &at.power_w, diag);
    if (status == STATUS_OK && !(time_us > 0 && v[M] >= 1 && v[K] >= 1))
        status = diag_input(diag, csv_pos(csv, row), "time_us, m and k are to be more than 0");
    if (status)
        return status;
    at.kind = (enum direct_kind)kind;
    at.math = (enum dtype)math;
    at.m = v[M], at.n = v[N], at.k = v[K], at.batch = v[BATCH], at.experts = v[EXPERTS], at.topk = v[TOPK];
    at.cudnn = strstr(csv_cell(csv, row, csv_column(csv, "software")), "cudnn") != NULL;
    at.held_out = is_held_out(v);
    at.measured_s = time_us * 1e-6;
    if (at.kind == DIRECT_PRODUCT)
        at.work =
            kernel_gemm((int64_t)v[M], (int64_t)v[N], (int64_t)v[K], 1, at.math, dtype_bytes(at.math), RESULT_BYTES);
    else if (at.kind == DIRECT_ATTENTION)
        at.work = attention_work(v, is(csv, row, "causal", "yes"), is(csv, row, "pass", "bwd"));
    else if (at.kind != DIRECT_EXPERTS)
        at.work = cast_work(at.kind, v);
    vec_push(&out->list, at);
    return STATUS_OK;
}

static bool is_out_of_range(const struct direct_row *row, const struct hw_gpu *gpu)
{
    if (row->kind == DIRECT_CAST || row->kind == DIRECT_AMAX)
        return row->work.read_bytes + row->work.write_bytes < gpu->l2_capacity.value;
    if (row->kind == DIRECT_ATTENTION)
        return row->m < DIRECT_QUERIES;
    return row->kind == DIRECT_EXPERTS && row->m * row->topk < DIRECT_ROWS * row->experts;
}

enum status direct_rows_load(
    struct direct_rows *out, const char *csv_path, const char *name, const struct hw_gpu *gpu, struct diag *diag)
{
    *out = (struct direct_rows){0};
    enum status status = fit_read_rows(csv_path, name, read_row, out, diag);
    for (int i = 0; i < out->list.n; i++)
        out->list.at[i].out_of_range = is_out_of_range(&out->list.at[i], gpu);
    return status;
}
