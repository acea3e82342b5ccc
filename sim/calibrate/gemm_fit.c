#include "calibrate/gemm_fit.h"

#include "calibrate/robust.h"

#include <gsl/gsl_errno.h>
#include <math.h>

const struct gemm_case gemm_cases[GEMM_CASES] = {
    {.gpu = "h100-sxm5-80gb", .math = {DTYPE_BF16, DTYPE_TF32}, .second = GEMM_OTHER_KERNELS},
    {.gpu = "v100-sxm2-16gb", .math = {DTYPE_FP16, DTYPE_FP32}, .second = GEMM_LOADS_ALIKE},
};

/* The numbers that are fitted: gemm_floor, three of each format, and what the second format has beside them. A tied
 * number shares its parameter with the first format's. */
enum { PER_FORMAT = 3, MAX_NUMBERS = 1 + 2 * PER_FORMAT + 2 };

/* A parameter that is expected near a value, with what a unit of its logarithm counts as residual of a row. */
struct expected {
    int parameter;
    double value, weight;
};
enum { MAX_EXPECTED = 3 }; /* both k_overhead, and efficiency of kernels of Ampere */

struct fit {
    struct hw_gpu gpu;                    /* with the numbers of the moment */
    struct quantity *number[MAX_NUMBERS]; /* into gpu */
    int parameter[MAX_NUMBERS];           /* which parameter each is the exponential of */
    int n_numbers, n_parameters;
    struct expected expected[MAX_EXPECTED];
    int n_expected;
    const struct gemm_row **rows; /* those fitted */
    size_t n_rows;
};

const double gemm_row_scale = 0.15;       /* assumed */
static const double START_FLOOR_S = 4e-6; /* start of the search only: launch, prologue and epilogue are microseconds */
static const double START_EFFICIENCY = 0.85, START_TILE_SHARE = 0.5, START_ROW_GAP = 32; /* likewise */
const double gemm_expected_k_overhead = 150; /* assumed; the search starts there */
/* Assumed: the logarithm of k_overhead is within 0.7 (a factor of two) of its start, which counts as a row within 5 %:
 * a few steps of GEMM_STEP_K to fill the pipeline, and as many to write the tile. It decides only where the rows hardly
 * do, as for fp32 on V100: k_overhead, efficiency and load_bandwidth can stand for one another there. */
const double gemm_expected_weight = 0.05 / 0.7;
/* What mma.sync reaches of Hopper's peak (Luo et al., arXiv 2402.13499, mean over formats; recalled), assumed within
 * 0.08 of its logarithm, which counts as a row within 5 %. The rows say that it is not less: tiles of 256 x 128 are
 * limited by loading at about this rate. */
static const double MMA_SYNC_SHARE = 0.63, MMA_SYNC_WEIGHT = 0.05 / 0.08;
static const double RAISED = 0.01; /* of the logarithm */
static const double UNDETERMINED =
    3; /* standard error of a logarithm: a factor of 20 is no knowledge (NaN is none either) */

double gemm_balanced_load_Bps(const struct hw_gemm *gemm, enum dtype math)
{
    const double side = 128; /* 2 side^2 flop and 2 side operands for every element of k */
    return gemm->peak.value * (double)dtype_bytes(math) / side;
}

/* One more number, with its own parameter, or that of the number `tied` before it. */
static void add_number(struct fit *fit, double start[MAX_NUMBERS], struct quantity *number, double value, int tied)
{
    int i = fit->n_numbers++;
    fit->number[i] = number;
    fit->parameter[i] = tied > 0 ? fit->parameter[i - tied] : fit->n_parameters++;
    if (tied == 0)
        start[fit->parameter[i]] = log(value);
}

/* The next parameter is expected near this value. */
static void expect(struct fit *fit, double value, double weight)
{
    BUG_IF(fit->n_expected == MAX_EXPECTED, "more than %d expectations", MAX_EXPECTED);
    fit->expected[fit->n_expected++] = (struct expected){fit->n_parameters, value, weight};
}

static int formats(const struct gemm_case *which)
{
    return which->second == GEMM_ALONE ? 1 : 2;
}

static void point_at_numbers(struct fit *fit, const struct gemm_case *which, double start[MAX_NUMBERS])
{
    struct hw_gemm *second = &fit->gpu.gemm[which->math[1]];
    fit->gpu.row_gap = (struct quantity){0};
    if (!which->keeps_floor)
        add_number(fit, start, &fit->gpu.gemm_floor, START_FLOOR_S, 0);
    for (int i = 0; i < formats(which); i++) {
        struct hw_gemm *gemm = &fit->gpu.gemm[which->math[i]];
        if (which->second != GEMM_ALONE)
            gemm->tile_share = gemm->single_efficiency = (struct quantity){0};
        if (i == 1 && which->second == GEMM_OTHER_KERNELS)
            expect(fit, MMA_SYNC_SHARE, MMA_SYNC_WEIGHT);
        add_number(fit, start, &gemm->efficiency, START_EFFICIENCY, 0);
        expect(fit, gemm_expected_k_overhead, gemm_expected_weight);
        add_number(fit, start, &gemm->k_overhead, gemm_expected_k_overhead, 0);
        double share = which->start_share > 0 ? which->start_share : 1;
        add_number(fit, start, &gemm->load_bandwidth, share * gemm_balanced_load_Bps(gemm, which->math[i]),
            i == 1 && which->second == GEMM_LOADS_ALIKE ? PER_FORMAT : 0);
    }
    if (which->second == GEMM_OTHER_KERNELS) {
        second->tile_share.kind = second->single_efficiency.kind = QUANTITY_FITTED;
        add_number(fit, start, &second->tile_share, START_TILE_SHARE, 0);
        add_number(fit, start, &second->single_efficiency, START_EFFICIENCY, 0);
    }
}

static int residuals(const gsl_vector *parameters, void *context, gsl_vector *out)
{
    struct fit *fit = context;
    for (int i = 0; i < fit->n_numbers; i++)
        fit->number[i]->value = exp(gsl_vector_get(parameters, (size_t)fit->parameter[i]));
    for (size_t i = 0; i < fit->n_rows; i++) {
        double model_s = kernel_duration_s(&fit->rows[i]->work, &fit->gpu, kernel_whole_gpu(&fit->gpu));
        gsl_vector_set(out, i, log(model_s / fit->rows[i]->measured_s));
    }
    for (int i = 0; i < fit->n_expected; i++) {
        const struct expected *expected = &fit->expected[i];
        double off = gsl_vector_get(parameters, (size_t)expected->parameter) - log(expected->value);
        gsl_vector_set(out, fit->n_rows + (size_t)i, expected->weight * off);
    }
    return GSL_SUCCESS;
}

/* Whether rows say that a parameter is not more than this: a search that comes from below stops where the parameter
 * ceases to count, with an error as if it did. */
static bool counts(struct fit *fit, const gsl_vector *at, size_t parameter, size_t n_residuals)
{
    gsl_vector *more = gsl_vector_alloc(at->size), *here = gsl_vector_alloc(n_residuals),
               *there = gsl_vector_alloc(n_residuals);
    gsl_vector_memcpy(more, at);
    gsl_vector_set(more, parameter, gsl_vector_get(at, parameter) + RAISED);
    residuals(more, fit, there);
    residuals(at, fit, here);
    gsl_vector_sub(there, here);
    double most = fmax(gsl_vector_max(there), -gsl_vector_min(there));
    gsl_vector_free(more);
    gsl_vector_free(here);
    gsl_vector_free(there);
    return most > RAISED * RAISED;
}

/* Values and standard errors of the numbers at the solution; without an error where no row says. */
static bool write_numbers(struct fit *fit, const gsl_vector *at, const gsl_matrix *covariance)
{
    bool determined = true;
    for (int i = 0; i < fit->n_numbers; i++) {
        struct quantity *q = fit->number[i];
        size_t p = (size_t)fit->parameter[i];
        double relative =
            counts(fit, at, p, fit->n_rows + (size_t)fit->n_expected) ? sqrt(gsl_matrix_get(covariance, p, p)) : 0;
        determined = determined && relative < UNDETERMINED;
        *q = (struct quantity){.value = exp(gsl_vector_get(at, p)),
            .kind = QUANTITY_FITTED,
            .source = "sim/calibrate/gemm_fit.h on results/measured/gemm.csv"};
        q->std_error = q->value * relative;
    }
    return determined;
}

/* Fits the numbers that fit points at to its rows. */
static bool solve(struct fit *fit, double start[MAX_NUMBERS])
{
    size_t n = (size_t)fit->n_parameters;
    if (fit->n_rows <= n)
        return false;
    gsl_vector_view at = gsl_vector_view_array(start, n);
    gsl_matrix *covariance = gsl_matrix_alloc(n, n);
    const struct robust_problem problem = {
        residuals, fit, fit->n_rows + (size_t)fit->n_expected, n, gemm_row_scale, 0, false};
    bool good = robust_fit(&at.vector, covariance, &problem);
    good = write_numbers(fit, &at.vector, covariance) && good;
    gsl_matrix_free(covariance);
    return good;
}

static bool is_of(const struct gemm_row *row, const struct gemm_case *which)
{
    return row->work.math == which->math[0] || row->work.math == which->math[formats(which) - 1];
}

/* row_gap, the other numbers given. */
static bool solve_row_gap(struct fit *fit, const struct gemm_case *which, const struct gemm_rows *rows)
{
    double start[MAX_NUMBERS];
    fit->n_rows = 0;
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        if (row->use == GEMM_NARROW && is_of(row, which) && row->work.row_pieces > 0)
            fit->rows[fit->n_rows++] = row;
    }
    if (fit->n_rows == 0)
        return true;
    fit->n_numbers = fit->n_parameters = fit->n_expected = 0;
    add_number(fit, start, &fit->gpu.row_gap, START_ROW_GAP, 0);
    return solve(fit, start);
}

enum status gemm_fit_solve(struct hw_gpu *out, const struct hw_gpu *gpu, const struct gemm_case *which,
    const struct gemm_rows *rows, struct diag *diag)
{
    struct fit fit = {.gpu = *gpu, .rows = xcalloc((size_t)rows->list.n, sizeof *fit.rows)};
    double start[MAX_NUMBERS];
    point_at_numbers(&fit, which, start);
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        if (row->use == GEMM_FITTED && is_of(row, which))
            fit.rows[fit.n_rows++] = row;
    }
    size_t n_rows = fit.n_rows;
    bool good = solve(&fit, start) && solve_row_gap(&fit, which, rows);
    free(fit.rows);
    *out = fit.gpu;
    if (!good)
        return diag_input(diag, (struct source_pos){0}, "%zu rows of %s and %s do not determine the GEMM model of %s",
            n_rows, dtype_names[which->math[0]], dtype_names[which->math[formats(which) - 1]], which->gpu);
    return STATUS_OK;
}
