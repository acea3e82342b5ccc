#include "calibrate/fit_gemm.h"

#include "calibrate/robust.h"

#include <gsl/gsl_errno.h>
#include <math.h>

const struct gemm_case gemm_cases[GEMM_CASES] = {
    {.gpu = "h100-sxm5-80gb", .math = {DTYPE_BF16, DTYPE_TF32}, .tie = GEMM_TIE_EFFICIENCY},
    {.gpu = "v100-sxm2-16gb", .math = {DTYPE_FP16, DTYPE_FP32}, .tie = GEMM_TIE_LOAD},
};

/* The numbers that are fitted: gemm_floor, then three of each format. A tied number shares its parameter with the first
 * format's. */
enum { PER_FORMAT = 3, N_NUMBERS = 1 + 2 * PER_FORMAT, N_PARAMETERS = N_NUMBERS - 1 };

struct fit {
    struct hw_gpu gpu;                  /* with the numbers of the moment */
    struct quantity *number[N_NUMBERS]; /* into gpu */
    int parameter[N_NUMBERS];           /* which parameter each is the exponential of */
    const struct gemm_row **rows;       /* those fitted */
    size_t n_rows;
};

static const double CAUCHY = 0.15;        /* assumed: log residual beyond which a row counts less than half */
static const double START_FLOOR_S = 4e-6; /* start of the search only: launch, prologue and epilogue are microseconds */
static const double START_EFFICIENCY = 0.85, START_K_OVERHEAD = 150; /* likewise */
static const double UNDETERMINED =
    3; /* standard error of a logarithm: a factor of 20 is no knowledge (NaN is none either) */

double gemm_balanced_load_Bps(const struct hw_gemm *gemm, enum dtype math)
{
    const double side = 128; /* 2 side^2 flop and 2 side operands for every element of k */
    return gemm->peak.value * (double)dtype_bytes(math) / side;
}

static void point_at_numbers(struct fit *fit, const struct gemm_case *which, double start[N_PARAMETERS])
{
    int n = 0, next = 0;
    double value[N_NUMBERS] = {START_FLOOR_S};
    fit->number[n++] = &fit->gpu.gemm_floor;
    for (int i = 0; i < 2; i++) {
        struct hw_gemm *gemm = &fit->gpu.gemm[which->math[i]];
        value[n] = START_EFFICIENCY;
        fit->number[n++] = &gemm->efficiency;
        value[n] = START_K_OVERHEAD;
        fit->number[n++] = &gemm->k_overhead;
        value[n] = gemm_balanced_load_Bps(gemm, which->math[i]);
        fit->number[n++] = &gemm->load_bandwidth;
    }
    int tied = 1 + PER_FORMAT + (which->tie == GEMM_TIE_EFFICIENCY ? 0 : 2);
    for (int i = 0; i < N_NUMBERS; i++) {
        fit->parameter[i] = i == tied ? fit->parameter[i - PER_FORMAT] : next;
        if (i != tied)
            start[next++] = log(value[i]);
    }
}

static int residuals(const gsl_vector *parameters, void *context, gsl_vector *out)
{
    struct fit *fit = context;
    for (int i = 0; i < N_NUMBERS; i++)
        fit->number[i]->value = exp(gsl_vector_get(parameters, (size_t)fit->parameter[i]));
    for (size_t i = 0; i < fit->n_rows; i++) {
        double model_s = kernel_duration_s(&fit->rows[i]->work, &fit->gpu, kernel_whole_gpu(&fit->gpu));
        gsl_vector_set(out, i, log(model_s / fit->rows[i]->measured_s));
    }
    return GSL_SUCCESS;
}

/* Values and standard errors of the numbers at the solution. */
static bool write_numbers(struct fit *fit, const gsl_vector *at, const gsl_matrix *covariance)
{
    bool determined = true;
    for (int i = 0; i < N_NUMBERS; i++) {
        struct quantity *q = fit->number[i];
        size_t p = (size_t)fit->parameter[i];
        double relative = sqrt(gsl_matrix_get(covariance, p, p));
        determined = determined && relative < UNDETERMINED;
        *q = (struct quantity){.value = exp(gsl_vector_get(at, p)),
            .kind = QUANTITY_FITTED,
            .source = "sim/calibrate/fit_gemm.h on results/measured/gemm.csv"};
        q->std_error = q->value * relative;
    }
    return determined;
}

enum status fit_gemm(struct hw_gpu *out, const struct hw_gpu *gpu, const struct gemm_case *which,
    const struct gemm_rows *rows, struct diag *diag)
{
    struct fit fit = {.gpu = *gpu, .rows = xcalloc((size_t)rows->list.n, sizeof *fit.rows)};
    double start[N_PARAMETERS];
    point_at_numbers(&fit, which, start);
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        if (row->use == GEMM_FITTED && (row->work.math == which->math[0] || row->work.math == which->math[1]))
            fit.rows[fit.n_rows++] = row;
    }
    bool good = fit.n_rows > N_PARAMETERS;
    if (good) {
        gsl_vector_view at = gsl_vector_view_array(start, N_PARAMETERS);
        gsl_matrix *covariance = gsl_matrix_alloc(N_PARAMETERS, N_PARAMETERS);
        const struct robust_problem problem = {residuals, &fit, fit.n_rows, N_PARAMETERS, CAUCHY, 0};
        good = robust_fit(&at.vector, covariance, &problem);
        good = write_numbers(&fit, &at.vector, covariance) && good;
        gsl_matrix_free(covariance);
    }
    free(fit.rows);
    *out = fit.gpu;
    if (!good)
        return diag_input(diag, (struct source_pos){0}, "%zu rows of %s and %s do not determine the GEMM model of %s",
            fit.n_rows, dtype_names[which->math[0]], dtype_names[which->math[1]], which->gpu);
    return STATUS_OK;
}
