#include "calibrate/kernels_fit.h"

#include "base/digest.h"
#include "config/csv.h"

#include <string.h>

const char *const kernels_class_names[KERNELS_CLASS_COUNT] = {
    [KERNELS_GEMM] = "GEMM",
    [KERNELS_BATCHED_GEMM] = "batched GEMM",
    [KERNELS_ATTENTION] = "attention",
    [KERNELS_MEMORY] = "memory-bound",
};
const char *const kernels_use_names[KERNELS_USE_COUNT] = {
    [KERNELS_FITTED] = "fitted", [KERNELS_HELD_OUT] = "held out", [KERNELS_FIRST_SESSION] = "first session"};
const char *const kernels_gpus[KERNELS_GPUS] = {"a100-sxm4-80gb", "gh200-96gb"};

/* fp16: a read or a write of an element is 2 B. Backward reads what forward read and the gradient, and writes one. */
const struct kernels_operator kernels_operators[KERNELS_OPERATORS] = {
    {"linear_qkv", {0}, KERNELS_GEMM, 1},
    {"linear_proj", {0}, KERNELS_GEMM, 1},
    {"linear_fc1", {0}, KERNELS_GEMM, 1},
    {"linear_fc2", {0}, KERNELS_GEMM, 1},
    {"linear_logits", {0}, KERNELS_GEMM, 1},
    {"scores", {0}, KERNELS_BATCHED_GEMM, 1},
    {"context", {0}, KERNELS_BATCHED_GEMM, 1},
    {"flash_attention", {0}, KERNELS_ATTENTION, 1},
    {"residual_add", {6, 6}, KERNELS_MEMORY, 1},
    {"gelu", {4, 6}, KERNELS_MEMORY, 1},
    {"layer_norm", {4, 6}, KERNELS_MEMORY, 1},
    {"softmax", {4, 6}, KERNELS_MEMORY, 1},
    {"masked_fill", {8, 8}, KERNELS_MEMORY, 2}, /* a copy, then in place */
    {"causal_softmax", {4, 6}, KERNELS_MEMORY, 1},
};

enum { SHAPE_NUMBERS = 4, FOLDS = 3, ELEMENT_BYTES = 2 };
static const double FLASH_BACKWARD_PRODUCTS = 5, FLASH_FORWARD_PRODUCTS = 2; /* scores once more */

static bool is_held_out(const int64_t shape[SHAPE_NUMBERS])
{
    int64_t side[3] = {shape[0], shape[1], shape[2]};
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++)
            if (side[j] < side[i]) {
                int64_t less = side[j];
                side[j] = side[i];
                side[i] = less;
            }
    uint64_t digest = DIGEST_INIT;
    for (int i = 0; i < 3; i++)
        digest = digest_word(digest, (uint64_t)side[i]);
    return digest_word(digest, (uint64_t)shape[3]) % FOLDS == 0;
}

static void make_work(struct kernels_row *row)
{
    const struct kernels_operator *op = &kernels_operators[row->operator];
    int64_t m = row->m, n = row->n, k = row->k, batch = row->batch;
    if (op->class == KERNELS_MEMORY) {
        double bytes = (double)m * (double)n * op->bytes[row->backward] / op->kernels;
        row->work[0] = kernel_stream(KERNEL_COPY, bytes, 0, 0);
        if (op->kernels > 1)
            row->work[1] = row->work[0];
    } else if (op->class == KERNELS_ATTENTION) {
        double products = row->backward ? FLASH_BACKWARD_PRODUCTS : FLASH_FORWARD_PRODUCTS;
        row->work[0] = (struct kernel_work){.kind = KERNEL_ATTENTION,
            .math = DTYPE_FP16,
            .flop = products * 2 * (double)batch * (double)m * (double)n * (double)k,
            .m = m,
            .n = n,
            .k = k,
            .batch = batch,
            .backward = row->backward};
    } else if (row->backward) {
        row->work[0] = kernel_gemm(m, k, n, batch, DTYPE_FP16, ELEMENT_BYTES, ELEMENT_BYTES);
        row->work[1] = kernel_gemm(k, n, m, batch, DTYPE_FP16, ELEMENT_BYTES, ELEMENT_BYTES);
    } else {
        row->work[0] = kernel_gemm(m, n, k, batch, DTYPE_FP16, ELEMENT_BYTES, ELEMENT_BYTES);
    }
}

/* A time in which HBM cannot move the operator's bytes. */
static bool is_impossible(const struct kernels_row *row, const struct hw_gpu *gpu)
{
    double bytes = row->work[0].read_bytes + row->work[1].read_bytes;
    return kernels_operators[row->operator].class == KERNELS_MEMORY && bytes > 2 * gpu->l2_capacity.value &&
           bytes / row->measured_s > gpu->hbm_bandwidth.value;
}

static enum status read_shape(int64_t out[SHAPE_NUMBERS], const struct csv_table *table, int line, struct diag *diag)
{
    static const char *const columns[SHAPE_NUMBERS] = {"m", "n", "k", "batch"};
    for (int i = 0; i < SHAPE_NUMBERS; i++) {
        double value = 0;
        enum status status = csv_number(table, line, csv_column(table, columns[i]), 0, &value, diag);
        if (status)
            return status;
        if (value < 0 || (value == 0 && i != 2))
            return diag_input(diag, csv_pos(table, line), "%s is missing or not positive", columns[i]);
        out[i] = (int64_t)value;
    }
    return STATUS_OK;
}

static enum status find_operator(int *out, const struct csv_table *table, int line, struct diag *diag)
{
    const char *name = csv_cell(table, line, csv_column(table, "operator"));
    for (*out = 0; *out < KERNELS_OPERATORS; ++*out)
        if (strcmp(kernels_operators[*out].name, name) == 0)
            return STATUS_OK;
    return diag_input(
        diag, csv_pos(table, line), "unknown operator '%s'; linear_qkv, flash_attention, gelu, ...", name);
}

struct reading {
    struct kernels_rows *out;
    const struct hw_gpu *gpu;
};

static enum status read_row(void *self, const struct csv_table *table, int line, struct diag *diag)
{
    const struct reading *reading = self;
    static const char *const columns[2] = {"forward_us", "backward_us"};
    struct kernels_row row = {0};
    int64_t shape[SHAPE_NUMBERS] = {0};
    enum status status = find_operator(&row.operator, table, line, diag);
    if (status == STATUS_OK)
        status = read_shape(shape, table, line, diag);
    if (status)
        return status;
    bool first = strcmp(csv_cell(table, line, csv_column(table, "session")), "first") == 0;
    bool held_out = is_held_out(shape) || kernels_operators[row.operator].class == KERNELS_BATCHED_GEMM;
    row.use = first ? KERNELS_FIRST_SESSION : held_out ? KERNELS_HELD_OUT : KERNELS_FITTED;
    row.m = shape[0], row.n = shape[1], row.k = shape[2], row.batch = shape[3];
    for (int pass = 0; pass < 2; pass++) {
        double measured_us = 0;
        status = csv_number(table, line, csv_column(table, columns[pass]), 0, &measured_us, diag);
        if (status)
            return status;
        row.measured_s = measured_us * 1e-6;
        row.backward = pass == 1;
        if (measured_us <= 0)
            continue;
        row.work[0] = row.work[1] = (struct kernel_work){0};
        make_work(&row);
        if (!is_impossible(&row, reading->gpu))
            vec_push(&reading->out->list, row);
    }
    return STATUS_OK;
}

enum status kernels_rows_load(
    struct kernels_rows *out, const char *csv_path, const char *name, const struct hw_gpu *gpu, struct diag *diag)
{
    *out = (struct kernels_rows){0};
    struct reading reading = {out, gpu};
    return fit_read_rows(csv_path, name, read_row, &reading, diag);
}
