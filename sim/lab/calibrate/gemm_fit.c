/* The numbers of the GEMM model of a GPU, by measured products. A case has one or two formats.
 * add_numbers() makes the parameters: gemm_floor, then three a format, and two more where the
 * second format runs on other kernels; fit.h varies them in the GPU `out` itself, from which
 * gemm_fit_predict() reads. row_gap is fitted afterwards, alone, to narrow products that have rows
 * along k.
 *
 * What is subtle: with GEMM_LOADS_ALIKE the second format's load_bandwidth is a second place of the
 * first's parameter (at[1]), found as the third from the end: the order in add_format() matters.
 * row_gap and, of two formats, tile_share and single_efficiency are unset first, as the file's
 * values would bend the rest. A parameter with a standard error beyond UNDETERMINED makes the whole
 * fit fail. Held-out shapes are chosen from the sorted list of shapes, so the order of rows does
 * not matter. */
#include "calibrate/gemm_fit.h"

#include "calibrate/kernel_rows.h"
#include "kernel/gemm.h"

#include <math.h>
#include <string.h>

const char *const gemm_use_names[GEMM_USE_COUNT] = {
    [GEMM_FITTED] = "fitted", [GEMM_HELD_OUT] = "held out", [GEMM_NARROW] = "narrow"};

/* What two rows share that are held out together: the shape up to transposition, however many
 * products of it. */
struct shape {
    int64_t side[2], k;
};

static struct shape shape_of(const struct kernel_work *work)
{
    bool turn = work->m > work->n;
    return (struct shape){
        .side = {turn ? work->n : work->m, turn ? work->m : work->n}, .k = work->k};
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
        const struct shape *found =
            bsearch(&key, shapes, (size_t)n, sizeof *shapes, compare_shapes);
        row->use = key.side[0] < GEMM_WIDE                 ? GEMM_NARROW
                   : (found - shapes) % GEMM_FOLDS == fold ? GEMM_HELD_OUT
                                                           : GEMM_FITTED;
    }
    free(shapes);
}

/* As BLAS writes it, columns contiguous: A's rows run along k when it is transposed, B's when it is
 * not. Empty: not stated, and taken as of no effect. */
static enum status find_layout(
    struct kernel_work *work, const struct kernel_row *row, struct diag *diag)
{
    static const char *const layouts[] = {"NN", "NT", "TN", "TT", NULL};
    if (fit_find_name(layouts, row->layout) >= 0)
        work->row_pieces = gemm_row_pieces(work, row->layout[0] == 'T', row->layout[1] == 'N');
    else if (*row->layout)
        return diag_input(diag, row->at, "unknown layout '%s'; one of NN, NT, TN, TT", row->layout);
    return STATUS_OK;
}

static enum status gemm_fit_take_row(void *self, const struct kernel_row *row, struct diag *diag)
{
    struct gemm_rows *out = self;
    enum dtype math = DTYPE_COUNT;
    enum status status = kernel_row_needs(row, "m n k batch time_us", diag);
    if (status == STATUS_OK)
        status = kernel_row_math(&math, row, diag);
    if (status)
        return status;
    int64_t bytes = dtype_bytes(math);
    vec_push(
        &out->list, (struct gemm_row){.work = kernel_gemm((int64_t)row->m, (int64_t)row->n,
                                          (int64_t)row->k, (int64_t)row->batch, math, bytes, bytes),
                        .measured_s = row->time_us * 1e-6});
    return find_layout(&out->list.at[out->list.n - 1].work, row, diag);
}

enum status gemm_rows_load(
    struct gemm_rows *out, const char *csv_path, const char *gpu, struct diag *diag)
{
    *out = (struct gemm_rows){0};
    enum status status = kernel_rows_read(csv_path, gpu, gemm_fit_take_row, out, diag);
    if (status)
        vec_free(&out->list);
    else
        gemm_hold_out(out, GEMM_FOLDS - 1);
    return status;
}

struct fit_error gemm_error(
    const struct hw_gpu *gpu, enum dtype math, enum gemm_use use, const struct gemm_rows *rows)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        if (row->work.math == math && row->use == use)
            fit_sample_add(&sample, kernel_duration_s(&row->work, gpu, kernel_whole_gpu(gpu)),
                row->measured_s);
    }
    return fit_sample_error(&sample);
}

const double gemm_row_scale = 0.15; /* assumed */
static const double START_FLOOR_S =
    4e-6; /* start of the search only: launch, prologue and epilogue are microseconds */
static const double START_EFFICIENCY = 0.85, START_TILE_SHARE = 0.5,
                    START_ROW_GAP = 32; /* likewise */
const double gemm_starts[GEMM_STARTS] = {0.75, 1, 1.4, 2};
const double gemm_expected_k_overhead = 150; /* assumed; the search starts there */
/* Assumed: the logarithm of k_overhead is within 0.7 (a factor of two) of its start, which counts
 * as a row within 5 %: a few steps of GEMM_STEP_K to fill the pipeline, and as many to write the
 * tile. It decides only where the rows hardly do, as for fp32 on V100: k_overhead, efficiency and
 * load_bandwidth can stand for one another there. */
const double gemm_expected_weight = 0.05 / 0.7;
/* What mma.sync reaches of Hopper's peak (Luo et al., arXiv 2402.13499, mean over formats;
 * recalled), assumed within 0.08 of its logarithm, which counts as a row within 5 %. The rows say
 * that it is not less: tiles of 256 x 128 are limited by loading at about this rate. */
static const double MMA_SYNC_SHARE = 0.63, MMA_SYNC_WEIGHT = 0.05 / 0.08;
static const double UNDETERMINED =
    3; /* standard error of a logarithm: a factor of 20 is no knowledge (NaN is none either) */

enum { PER_FORMAT = 3 }; /* numbers */

double gemm_balanced_load_Bps(const struct hw_gemm *gemm, enum dtype math)
{
    const double side = 128; /* 2 side^2 flop and 2 side operands for every element of k */
    return gemm->peak.value * dtype_size(math) / side;
}

static int formats(const struct gemm_case *which)
{
    return which->second == GEMM_ALONE ? 1 : 2;
}

static double gemm_fit_predict(const void *gpu, const void *row)
{
    return kernel_duration_s(&((const struct gemm_row *)row)->work, gpu, kernel_whole_gpu(gpu));
}

/* Of a format: three numbers. */
static void add_format(
    struct fit *fit, struct hw_gpu *gpu, const struct gemm_case *which, enum dtype math)
{
    struct hw_gemm *gemm = &gpu->gemm[math];
    bool second = math != which->math[0];
    if (which->second != GEMM_ALONE)
        gemm->tile_share = gemm->single_efficiency = (struct quantity){0};
    struct fit_parameter *p =
        fit_add(fit, "efficiency", DIM_FRACTION, &gemm->efficiency, START_EFFICIENCY);
    if (second && which->second == GEMM_OTHER_KERNELS) {
        p->expected = MMA_SYNC_SHARE;
        p->weight = MMA_SYNC_WEIGHT;
    }
    p = fit_add(fit, "k_overhead", DIM_NONE, &gemm->k_overhead, gemm_expected_k_overhead);
    p->expected = gemm_expected_k_overhead;
    p->weight = gemm_expected_weight;
    double share = which->start_share > 0 ? which->start_share : 1;
    if (second &&
        which->second == GEMM_LOADS_ALIKE) { /* the first format's parameter, its last one */
        gemm->load_bandwidth = fit->parameters.at[fit->parameters.n - PER_FORMAT].fitted;
        fit->parameters.at[fit->parameters.n - PER_FORMAT].at[1] = &gemm->load_bandwidth;
    } else {
        fit_add(fit, "load_bandwidth", DIM_BYTES_PER_S, &gemm->load_bandwidth,
            share * gemm_balanced_load_Bps(gemm, math));
    }
}

static void add_numbers(struct fit *fit, struct hw_gpu *gpu, const struct gemm_case *which)
{
    gpu->row_gap = (struct quantity){0};
    if (!which->keeps_floor)
        fit_add(fit, "gemm_floor", DIM_SECONDS, &gpu->gemm_floor, START_FLOOR_S);
    for (int i = 0; i < formats(which); i++)
        add_format(fit, gpu, which, which->math[i]);
    if (which->second == GEMM_OTHER_KERNELS) {
        struct hw_gemm *second = &gpu->gemm[which->math[1]];
        fit_add(fit, "tile_share", DIM_FRACTION, &second->tile_share, START_TILE_SHARE);
        fit_add(
            fit, "single_efficiency", DIM_FRACTION, &second->single_efficiency, START_EFFICIENCY);
    }
}

static void gemm_fit_take_rows(
    struct fit *fit, const struct gemm_case *which, const struct gemm_rows *rows, enum gemm_use use)
{
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        bool of_case =
            row->work.math == which->math[0] || row->work.math == which->math[formats(which) - 1];
        if (row->use == use && of_case && (use != GEMM_NARROW || row->work.row_pieces > 0))
            fit_add_row(fit, row, row->measured_s);
    }
}

static bool calibrate_gemm_fit_solve(struct fit *fit)
{
    bool good = fit_solve(fit);
    for (int i = 0; i < fit->parameters.n; i++) {
        struct quantity q = fit->parameters.at[i].fitted;
        good = good && q.std_error < UNDETERMINED * q.value;
    }
    fit_free(fit);
    return good;
}

enum status gemm_fit_solve(struct hw_gpu *out, const struct hw_gpu *gpu,
    const struct gemm_case *which, const struct gemm_rows *rows, struct diag *diag)
{
    *out = *gpu;
    const struct fit none = {.self = out,
        .predict = gemm_fit_predict,
        .scale = gemm_row_scale,
        .source = "sim/lab/calibrate/gemm_fit.h on results/measured/gemm.csv"};
    struct fit fit = none, gap = none;
    add_numbers(&fit, out, which);
    gemm_fit_take_rows(&fit, which, rows, GEMM_FITTED);
    int n_rows = fit.rows.n;
    bool good = calibrate_gemm_fit_solve(&fit);
    gemm_fit_take_rows(&gap, which, rows, GEMM_NARROW);
    if (good && gap.rows.n > 0) { /* row_gap, the other numbers given */
        fit_add(&gap, "row_gap", DIM_BYTES, &out->row_gap, START_ROW_GAP);
        good = calibrate_gemm_fit_solve(&gap);
    }
    fit_free(&gap);
    if (!good)
        return diag_input(diag, (struct source_pos){0},
            "%d rows of %s and %s do not determine the GEMM model of %s", n_rows,
            dtype_names[which->math[0]], dtype_names[which->math[formats(which) - 1]], which->gpu);
    return STATUS_OK;
}
