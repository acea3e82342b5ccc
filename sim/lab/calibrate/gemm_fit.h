/* Fits the GEMM model (kernel/gemm.h) of a GPU to measured products.
 *
 * Fitted together, per GPU: gemm_floor, and per number format efficiency, k_overhead and
 * load_bandwidth, and for tf32 on H100 tile_share and single_efficiency, because its batches run on
 * kernels of Ampere. Residuals are log(model / measured), so a product of 5 us counts as much as
 * one of 50 ms, weighted as 1 / (1 + (residual / 15 %)^2) (Cauchy), so that kernels which a library
 * chose badly do not bend the rest. Every third shape is held out: shapes are what is counted, not
 * rows, so that layouts, formats, batches and transposes of a shape are held out with it. Narrow
 * products (GEMM_WIDE) are outside the model; their errors are reported apart. row_gap alone comes
 * from them: of the wide products that are fitted none is limited by HBM and has rows along k. It
 * is fitted after the other numbers, to the narrow rows that have row_pieces; without such rows it
 * stays unset.
 *
 * Three things stand in for rows that say too little. k_overhead is expected within a factor of two
 * of 150 elements, with the weight of one row (without it, folds of V100's rows leave it anywhere
 * between nothing and infinity, at the same errors). fp32 on V100 is limited by multiplying for
 * every tile, so its load_bandwidth is not determined by its rows: it is tied to fp16's. H100's
 * tf32 batches are limited by loading, so that their efficiency is known from below only: it is
 * expected near what mma.sync was measured to reach.
 *
 * Solver: Levenberg-Marquardt of GSL on the logarithms of the parameters, reweighted until it
 * stands still. */
#ifndef FLOPCAST_CALIBRATE_GEMM_FIT_H
#define FLOPCAST_CALIBRATE_GEMM_FIT_H

#include "base/vec.h"
#include "calibrate/fit.h"
#include "kernel/kernel.h"

#include <stdbool.h>

enum gemm_use { GEMM_FITTED, GEMM_HELD_OUT, GEMM_NARROW, GEMM_USE_COUNT };
extern const char *const gemm_use_names[GEMM_USE_COUNT];

struct gemm_row {
    struct kernel_work work;
    double measured_s;
    enum gemm_use use;
};
struct gemm_rows {
    VEC(struct gemm_row) list;
};

/* The rows of results/measured/gemm.csv for a GPU ("h100-sxm5-80gb"), each with its use. Free with
 * vec_free(&rows->list). None is an error. */
enum status gemm_rows_load(
    struct gemm_rows *out, const char *csv_path, const char *gpu, struct diag *diag);

/* Marks every third of the distinct shapes as held out, from the fold-th on: gemm_rows_load() takes
 * the last fold, which topologies/gpus rests on; the others are to cross-validate, as the form of
 * the model was chosen with the errors of that one in sight. */
enum { GEMM_FOLDS = 3 };
void gemm_hold_out(struct gemm_rows *rows, int fold);

/* How rows of kernels count (calibrate/fit.h): the log residual beyond which one counts less than
 * half. And what k_overhead is expected to be, with the weight that a row of one unit's residual
 * has. */
extern const double gemm_row_scale, gemm_expected_k_overhead, gemm_expected_weight;
/* Tiles are chosen by the numbers, so a search may end in a valley beside the deepest: starts of
 * load_bandwidth, shares of a balanced one, of which the best is taken. */
enum { GEMM_STARTS = 4 };
extern const double gemm_starts[GEMM_STARTS];

/* What to fit on a GPU: two formats, and how the second differs from the first; or the first alone,
 * with the tile_share and single_efficiency that the GPU has. */
enum gemm_second { GEMM_LOADS_ALIKE, GEMM_OTHER_KERNELS, GEMM_ALONE };
struct gemm_case {
    const char *gpu;
    enum dtype math[2];
    enum gemm_second second;
    bool keeps_floor;   /* gemm_floor is known: the GPU's */
    double start_share; /* of a balanced load_bandwidth, where the search starts; 0: 1. Tiles are
                         * chosen by the numbers, so the search may end in a valley beside the
                         * deepest */
};

/* gpu with the fitted numbers in place (kind fitted, std_error set, source naming the rows); what
 * is fitted is not read from it. STATUS_INPUT when the rows do not determine them. */
enum status gemm_fit_solve(struct hw_gpu *out, const struct hw_gpu *gpu,
    const struct gemm_case *which, const struct gemm_rows *rows, struct diag *diag);

/* |model / measured - 1| over the rows of a format and use. */
struct fit_error gemm_error(
    const struct hw_gpu *gpu, enum dtype math, enum gemm_use use, const struct gemm_rows *rows);

/* load_bandwidth at which a tile of 128 x 128 is as long loading as multiplying, B/s: the scale on
 * which GPUs are comparable. */
double gemm_balanced_load_Bps(const struct hw_gemm *gemm, enum dtype math);

#endif
