/* Fits a GPU's kernels to those that were measured alone by shape (results/measured/direct.csv,
 * whose head says what is in it). By class, one after the other, each as robust least squares of
 * log(model / measured) (calibrate/fit.h):
 *
 * - casts: hbm_efficiency, to kernels that read two bytes and write one (scale_matrix); amax_share,
 *   what a pass that only finds the largest value reaches of that rate. Their floors are the
 *   medians of DIRECT_SMALL_BYTES and less.
 * - products, by format: gemm_fit.h's numbers, of short runs where there are any, else of settled
 *   ones. An fp8 product of the table has the pass for its largest value and the cast of its input
 *   in it, an fp4 (NVFP4) product the cast by a known scale (recalled); what the fit of casts says
 *   of them is added to the model.
 * - settled: the median of what products of DIRECT_SETTLED_FLOP and more that were repeated for a
 *   second take of the rate that the fit of short ones says: what gemm_sustained multiplies. Where
 *   only one of both was measured it is 1.
 * - attention: attention_efficiency, overhead, softmax, backward and its overhead, wide
 * (kernel/attention.h), to cuDNN's rows where there are some, else to the others.
 * - experts, by format: grouped_share, what the two products of a layer reach of the rate of single
 *   ones; moved_share, what permutation, activation and what brings rows back reach of the
 *   streaming rate; layer_floor, of the kernels that count and sort.
 *
 * A shape whose digest / 256 is a multiple of KERNEL_ROW_FOLDS (calibrate/kernel_rows.h) fits
 * nothing; errors are of these. Out of range, as no training has them: casts whose bytes fit L2
 * (repeated, they never come from HBM), attention of fewer than DIRECT_QUERIES queries and fp4
 * products of fewer rows, experts with fewer than DIRECT_ROWS rows each.
 *
 * Ignored: rotary positions and the write of keys and values inside the forward attention of
 * serving programs. */
#ifndef FLOPCAST_CALIBRATE_DIRECT_FIT_H
#define FLOPCAST_CALIBRATE_DIRECT_FIT_H

#include "base/vec.h"
#include "calibrate/fit.h"
#include "kernel/kernel.h"

#include <stdio.h>

enum { DIRECT_QUERIES = 1024, DIRECT_ROWS = 128 };
static const double DIRECT_SETTLED_FLOP = 1e12, DIRECT_SMALL_BYTES = 1 << 20;

enum direct_kind {
    DIRECT_PRODUCT,
    DIRECT_ATTENTION,
    DIRECT_EXPERTS,
    DIRECT_CAST,
    DIRECT_AMAX,
    DIRECT_KIND_COUNT
};
extern const char *const direct_kind_names[DIRECT_KIND_COUNT + 1]; /* as the table's class */

struct direct_row {
    enum direct_kind kind;
    enum dtype math; /* a cast: of its result */
    bool settled, held_out, cudnn;
    bool out_of_range;                    /* fits nothing and counts in no error */
    double m, n, k, batch, experts, topk; /* as the table has them */
    struct kernel_work work;              /* of a product, of attention, of a cast */
    double measured_s, power_w;           /* as sampled; 0: not */
};
struct direct_rows {
    VEC(struct direct_row) list;
};
/* Rows of a GPU, name a file of topologies/gpus without ".yaml", whose L2 gpu says;
 * vec_free(&rows->list). None is an error. */
enum status direct_rows_load(struct direct_rows *out, const char *csv_path, const char *name,
    const struct hw_gpu *gpu, struct diag *diag);

struct direct_fit {
    struct hw_gpu
        gpu; /* with the fitted numbers in place, kind fitted; what has no rows is the file's */
    struct quantity cast_floor_s, amax_floor_s, amax_share, settled[DTYPE_COUNT];
    struct quantity grouped_share[DTYPE_COUNT], moved_share[DTYPE_COUNT],
        layer_floor_s[DTYPE_COUNT];
    bool has[DIRECT_KIND_COUNT], has_format[DTYPE_COUNT], cudnn; /* attention is cuDNN's */
    /* Of held-out rows; of attention of those of the fitted program. */
    struct fit_error error[DIRECT_KIND_COUNT], product_error[DTYPE_COUNT];
    struct direct_rows rows;
};

/* filed: the GPU as its file has it; training rates are not looked at. Free with direct_fit_free(),
 * also after a failure. */
enum status direct_fit_solve(struct direct_fit *fit, const struct hw_gpu *filed, const char *gpu,
    const char *csv_path, struct diag *diag);
void direct_fit_free(struct direct_fit *fit);

/* The model's time of a row, seconds. */
double direct_predict_s(const struct direct_fit *fit, const struct direct_row *row);

/* The report of `flopcast calibrate fit direct`. */
enum status direct_fit_print(FILE *out, const char *measured_folder, const char *gpus_folder,
    struct arena *arena, struct diag *diag);

#endif
