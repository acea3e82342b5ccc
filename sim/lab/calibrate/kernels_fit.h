/* Fits the kernel model (kernel) of a GPU to the operators of a GPT layer that were measured one by
 * one (results/measured/kernels.csv, whose head says what is held out and why some rows fit
 * nothing).
 *
 * Three fits, one after the other, each of the logarithms of its numbers to those of model /
 * measured, robust as gemm_fit.h's:
 * - products: gemm_floor and fp16's efficiency, k_overhead and load_bandwidth, to the linear
 *   layers. Beside them two numbers of the measurement: launch_gap, the time from the first to the
 *   second product of backward, which the host needs even if the first is shorter; backward_rate,
 *   the rate of backward's products relative to forward's (other layouts, and gradients of equal
 *   numbers, which draw less power). The products of unfused attention (scores, context) are held
 *   out as a class.
 * - attention: attention_efficiency, attention_overhead, attention_softmax, attention_wide,
 *   attention_backward (where backward is known), to flash_attention.
 * - memory-bound kernels: for each operator and pass the share of the streaming rate (hbm_bandwidth
 *   x hbm_efficiency) that it reaches, of the bytes that it has to move. residual_add's is 1: it
 *   says what hbm_efficiency is.
 *
 * Errors are reported by class: held-out shapes, and rows of no fit. A row whose time would take
 * more than the datasheet's HBM bandwidth for arrays beyond twice L2 is no kernel's time and is
 * left out (GH200: gelu and masked_fill of some GB).
 *
 * Ignored: L2 hits (the smallest arrays come out up to a third too slow), the bias of linear
 * layers. */
#ifndef FLOPCAST_CALIBRATE_KERNELS_FIT_H
#define FLOPCAST_CALIBRATE_KERNELS_FIT_H

#include "base/vec.h"
#include "calibrate/fit.h"
#include "kernel/kernel.h"

#include <stdbool.h>
#include <stdio.h>

/* Unfused attention's products are a class: nothing is fitted on them. */
enum kernels_class {
    KERNELS_GEMM,
    KERNELS_BATCHED_GEMM,
    KERNELS_ATTENTION,
    KERNELS_MEMORY,
    KERNELS_CLASS_COUNT
};
extern const char *const kernels_class_names[KERNELS_CLASS_COUNT];

enum kernels_use { KERNELS_FITTED, KERNELS_HELD_OUT, KERNELS_FIRST_SESSION, KERNELS_USE_COUNT };
extern const char *const kernels_use_names[KERNELS_USE_COUNT];

/* An operator of the table. bytes: what a memory-bound one has to move for an element, forward and
 * backward. */
struct kernels_operator {
    const char *name;
    double bytes[2];
    enum kernels_class class;
    int kernels; /* one after the other, of these bytes together */
};
enum { KERNELS_OPERATORS = 14 };
extern const struct kernels_operator kernels_operators[KERNELS_OPERATORS];

struct kernels_row {
    int operator; /* into kernels_operators */
    bool backward;
    enum kernels_use use;
    int64_t m, n, k, batch;     /* as the table has them */
    struct kernel_work work[2]; /* backward of a product: of its input and of its weight */
    double measured_s;
};
struct kernels_rows {
    VEC(struct kernels_row) list;
};

/* The rows of a GPU, a pass each; vec_free(&rows->list). None is an error. gpu: what says L2 and
 * HBM. */
enum status kernels_rows_load(struct kernels_rows *out, const char *csv_path, const char *name,
    const struct hw_gpu *gpu, struct diag *diag);

/* What is fitted together. */
enum kernels_group { KERNELS_OF_GEMM, KERNELS_OF_ATTENTION, KERNELS_OF_MEMORY, KERNELS_GROUPS };
struct kernels_fit {
    struct hw_gpu gpu; /* with the fitted numbers in place, kind fitted */
    struct quantity launch_gap, backward_rate, share[KERNELS_OPERATORS][2];
    struct fit groups[KERNELS_GROUPS];
    struct kernels_rows rows;
};

/* name: a GPU of the table. filed: the GPU as its file has it. Free with kernels_fit_free(), also
 * after a failure. */
enum status kernels_fit_solve(struct kernels_fit *fit, const struct hw_gpu *filed, const char *name,
    const char *csv_path, struct diag *diag);
void kernels_fit_free(struct kernels_fit *fit);

double kernels_predict_s(const struct kernels_fit *fit, const struct kernels_row *row);

/* |predicted / measured - 1| over the rows of a class and use. */
struct fit_error kernels_error(
    const struct kernels_fit *fit, enum kernels_class class, enum kernels_use use);

/* The report of `flopcast calibrate fit kernels`: numbers with errors beside those in the file,
 * correlations from FIT_TIED on, errors by class, GPU by GPU. */
enum status kernels_fit_print(FILE *out, const char *measured_folder, const char *gpus_folder,
    struct arena *arena, struct diag *diag);

#endif
