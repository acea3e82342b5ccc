#include "calibrate/kernels_fit.h"

#include "calibrate/gemm_fit.h"
#include "calibrate/robust.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* Assumed: starts of the searches (shares of the peak and of HBM's rate; the softmax in elements of the head dimension,
 * the overhead in keys, as in kernel/attention.h), and what attention's overhead is expected near, as rows may say
 * little of it, with the weight that k_overhead's expectation has. */
static const double START_FLOOR_S = 4e-6, START_EFFICIENCY = 0.85, START_GAP_S = 50e-6, EXPECTED_OVERHEAD = 150,
                    START_SOFTMAX = 16, START_SHARE = 0.8;

/* A search in progress: which numbers of the fit are its parameters, and the rows. */
struct problem {
    struct kernels_fit *fit;
    struct kernels_group *group;
    double *at[KERNELS_MAX_NUMBERS]; /* into fit */
    int expected;                    /* the number that is expected near expected_value; -1: none */
    double expected_value;
    const struct kernels_row **rows;
    size_t n_rows;
};

double kernels_predict_s(const struct kernels_fit *fit, const struct kernels_row *row)
{
    struct kernel_share whole = kernel_whole_gpu(&fit->gpu);
    const struct kernels_operator *op = &kernels_operators[row->operator];
    if (op->class == KERNELS_ATTENTION)
        return kernel_duration_s(&row->work[0], &fit->gpu, whole);
    if (op->class == KERNELS_MEMORY) {
        struct kernel_work work = row->work[0];
        work.read_bytes /= fit->share[row->operator][row->backward];
        return op->kernels * kernel_duration_s(&work, &fit->gpu, whole);
    }
    double first_s = kernel_duration_s(&row->work[0], &fit->gpu, whole);
    if (!row->backward)
        return first_s;
    double second_s = kernel_duration_s(&row->work[1], &fit->gpu, whole);
    if (op->class == KERNELS_BATCHED_GEMM)
        return first_s + second_s;
    return fmax(first_s / fit->backward_rate, fit->launch_gap_s) + second_s / fit->backward_rate;
}

static int residuals(const gsl_vector *parameters, void *context, gsl_vector *out)
{
    struct problem *problem = context;
    for (int i = 0; i < problem->group->n; i++)
        *problem->at[i] = exp(gsl_vector_get(parameters, (size_t)i));
    for (size_t i = 0; i < problem->n_rows; i++)
        gsl_vector_set(out, i, log(kernels_predict_s(problem->fit, problem->rows[i]) / problem->rows[i]->measured_s));
    if (problem->expected >= 0) {
        double off = gsl_vector_get(parameters, (size_t)problem->expected) - log(problem->expected_value);
        gsl_vector_set(out, problem->n_rows, gemm_expected_weight * off);
    }
    return GSL_SUCCESS;
}

static void add_number(struct problem *problem, const char *name, double *at, double start, enum dimension dimension)
{
    struct kernels_group *group = problem->group;
    BUG_IF(group->n == KERNELS_MAX_NUMBERS, "more than %d numbers in a fit", KERNELS_MAX_NUMBERS);
    problem->at[group->n] = at;
    *at = start;
    group->name[group->n] = name;
    group->dimension[group->n++] = dimension;
}

static struct problem begin(struct kernels_fit *fit, int group, enum kernels_class class)
{
    struct problem problem = {.fit = fit,
        .group = &fit->groups[group],
        .expected = -1,
        .rows = xcalloc((size_t)fit->rows.list.n, sizeof *problem.rows)};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (row->use == KERNELS_FITTED && kernels_operators[row->operator].class == class)
            problem.rows[problem.n_rows++] = row;
    }
    return problem;
}

static enum status solve(struct problem *problem, struct diag *diag)
{
    struct kernels_group *group = problem->group;
    size_t n = (size_t)group->n, n_rows = problem->n_rows + (problem->expected >= 0);
    bool good = n > 0 && problem->n_rows > n;
    if (good) {
        gsl_vector *at = gsl_vector_alloc(n);
        for (int i = 0; i < group->n; i++)
            gsl_vector_set(at, (size_t)i, log(*problem->at[i]));
        group->covariance = gsl_matrix_alloc(n, n);
        const struct robust_problem robust = {residuals, problem, n_rows, n, gemm_row_scale, 0, false};
        good = robust_fit(at, group->covariance, &robust);
        for (int i = 0; i < group->n; i++) {
            double value = exp(gsl_vector_get(at, (size_t)i));
            *problem->at[i] = value;
            group->value[i] = (struct quantity){.value = value,
                .std_error = value * sqrt(gsl_matrix_get(group->covariance, (size_t)i, (size_t)i)),
                .kind = QUANTITY_FITTED,
                .source = "sim/calibrate/kernels_fit.h on results/measured/kernels.csv"};
        }
        gsl_vector_free(at);
    }
    free(problem->rows);
    if (!good)
        return diag_input(diag, (struct source_pos){0}, "%zu rows of kernels.csv do not determine %d numbers of %s",
            problem->n_rows, group->n, problem->fit->gpu.name);
    return STATUS_OK;
}

/* What the search makes smallest (Cauchy's), over the rows fitted. */
static double cost_of(const struct kernels_fit *fit, enum kernels_class class)
{
    double cost = 0;
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (row->use == KERNELS_FITTED && kernels_operators[row->operator].class == class)
            cost += log1p(pow(log(kernels_predict_s(fit, row) / row->measured_s) / gemm_row_scale, 2));
    }
    return cost;
}

static enum status solve_gemm_from(struct kernels_fit *fit, struct hw_gpu start, double share, struct diag *diag)
{
    if (fit->groups[0].covariance)
        gsl_matrix_free(fit->groups[0].covariance);
    fit->groups[0] = (struct kernels_group){0};
    fit->gpu = start;
    struct problem problem = begin(fit, 0, KERNELS_GEMM);
    struct hw_gpu *gpu = &fit->gpu;
    struct hw_gemm *gemm = &gpu->gemm[DTYPE_FP16];
    gpu->row_gap = gemm->tile_share = gemm->single_efficiency = (struct quantity){0};
    add_number(&problem, "gemm_floor", &gpu->gemm_floor.value, START_FLOOR_S, DIM_SECONDS);
    add_number(&problem, "efficiency", &gemm->efficiency.value, START_EFFICIENCY, DIM_FRACTION);
    problem.expected = problem.group->n;
    problem.expected_value = gemm_expected_k_overhead;
    add_number(&problem, "k_overhead", &gemm->k_overhead.value, gemm_expected_k_overhead, DIM_NONE);
    add_number(&problem, "load_bandwidth", &gemm->load_bandwidth.value,
        share * gemm_balanced_load_Bps(gemm, DTYPE_FP16), DIM_BYTES_PER_S);
    add_number(&problem, "launch_gap", &fit->launch_gap_s, START_GAP_S, DIM_SECONDS);
    add_number(&problem, "backward_rate", &fit->backward_rate, 1, DIM_FRACTION);
    return solve(&problem, diag);
}

/* Tiles are chosen by the numbers, so a search may end in a valley beside the deepest: the best of several starts. */
static enum status solve_gemm(struct kernels_fit *fit, struct diag *diag)
{
    static const double shares[] = {0.75, 1, 1.4, 2};
    enum { STARTS = sizeof shares / sizeof *shares };
    const struct hw_gpu start = fit->gpu;
    double best = HUGE_VAL;
    int which = 0;
    enum status status = STATUS_OK;
    for (int i = 0; i < STARTS && status == STATUS_OK; i++) {
        status = solve_gemm_from(fit, start, shares[i], diag);
        double cost = cost_of(fit, KERNELS_GEMM);
        if (cost < best) {
            best = cost;
            which = i;
        }
    }
    return status == STATUS_OK && which < STARTS - 1 ? solve_gemm_from(fit, start, shares[which], diag) : status;
}

static enum status solve_attention(struct kernels_fit *fit, struct diag *diag)
{
    struct problem problem = begin(fit, 1, KERNELS_ATTENTION);
    struct hw_gpu *gpu = &fit->gpu;
    bool backward = false;
    for (size_t i = 0; i < problem.n_rows; i++)
        backward = backward || problem.rows[i]->backward;
    gpu->attention_overhead.kind = gpu->attention_softmax.kind = gpu->attention_wide.kind = QUANTITY_FITTED;
    add_number(&problem, "attention_efficiency", &gpu->attention_efficiency.value, gpu->attention_efficiency.value,
        DIM_FRACTION);
    problem.expected = problem.group->n;
    problem.expected_value = EXPECTED_OVERHEAD;
    add_number(&problem, "attention_overhead", &gpu->attention_overhead.value, EXPECTED_OVERHEAD, DIM_NONE);
    add_number(&problem, "attention_softmax", &gpu->attention_softmax.value, START_SOFTMAX, DIM_NONE);
    add_number(&problem, "attention_wide", &gpu->attention_wide.value, 1, DIM_FRACTION);
    if (backward) {
        gpu->attention_backward.kind = QUANTITY_FITTED;
        add_number(&problem, "attention_backward", &gpu->attention_backward.value, 1, DIM_FRACTION);
    }
    return solve(&problem, diag);
}

/* hbm_efficiency, by residual_add, and the shares of the other operators. */
static enum status solve_memory(struct kernels_fit *fit, struct diag *diag)
{
    struct problem problem = begin(fit, 2, KERNELS_MEMORY);
    add_number(&problem, "hbm_efficiency", &fit->gpu.hbm_efficiency.value, fit->gpu.hbm_efficiency.value, DIM_FRACTION);
    bool seen[KERNELS_OPERATORS][2] = {{false}};
    for (size_t i = 0; i < problem.n_rows; i++)
        seen[problem.rows[i]->operator][problem.rows[i]->backward] = true;
    bool streams = true; /* the first memory-bound operator of the table, residual_add */
    for (int op = 0; op < KERNELS_OPERATORS; op++) {
        if (kernels_operators[op].class != KERNELS_MEMORY)
            continue;
        for (int pass = 0; pass < 2; pass++) {
            fit->share[op][pass] = 1;
            if (seen[op][pass] && !streams)
                add_number(&problem, kernels_operators[op].name, &fit->share[op][pass], START_SHARE, DIM_FRACTION);
        }
        streams = false;
    }
    return solve(&problem, diag);
}

enum status kernels_fit_solve(
    struct kernels_fit *fit, const struct hw_gpu *filed, const char *name, const char *csv_path, struct diag *diag)
{
    *fit = (struct kernels_fit){.gpu = *filed};
    hw_clear_training_rates(&fit->gpu);
    enum status status = kernels_rows_load(&fit->rows, csv_path, name, filed, diag);
    if (status == STATUS_OK)
        status = solve_memory(fit, diag);
    if (status == STATUS_OK)
        status = solve_gemm(fit, diag);
    return status == STATUS_OK ? solve_attention(fit, diag) : status;
}

void kernels_fit_free(struct kernels_fit *fit)
{
    for (int i = 0; i < KERNELS_GROUPS; i++)
        if (fit->groups[i].covariance)
            gsl_matrix_free(fit->groups[i].covariance);
    vec_free(&fit->rows.list);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct kernels_error kernels_error(const struct kernels_fit *fit, enum kernels_class class, enum kernels_use use)
{
    struct kernels_error error = {0};
    double *off = xcalloc((size_t)fit->rows.list.n, sizeof *off);
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (kernels_operators[row->operator].class == class && row->use == use)
            off[error.n++] = fabs(kernels_predict_s(fit, row) / row->measured_s - 1);
    }
    if (error.n > 0) {
        qsort(off, (size_t)error.n, sizeof *off, compare_doubles);
        error.median = gsl_stats_quantile_from_sorted_data(off, 1, (size_t)error.n, 0.5);
        error.p90 = gsl_stats_quantile_from_sorted_data(off, 1, (size_t)error.n, 0.9);
    }
    free(off);
    return error;
}
