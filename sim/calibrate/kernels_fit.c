#include "calibrate/kernels_fit.h"

#include "calibrate/gemm_fit.h"

#include <math.h>

/* Assumed: starts of the searches (shares of the peak and of HBM's rate; the softmax in elements of the head dimension,
 * the overhead in keys, as in kernel/attention.h), and what attention's overhead is expected near, as rows may say
 * little of it, with the weight that k_overhead's expectation has. */
static const double START_FLOOR_S = 4e-6, START_EFFICIENCY = 0.85, START_GAP_S = 50e-6, EXPECTED_OVERHEAD = 150,
                    START_SOFTMAX = 16, START_SHARE = 0.8;

double kernels_predict_s(const struct kernels_fit *fit, const struct kernels_row *row)
{
    struct kernel_share whole = kernel_whole_gpu(&fit->gpu);
    const struct kernels_operator *op = &kernels_operators[row->operator];
    if (op->class == KERNELS_ATTENTION)
        return kernel_duration_s(&row->work[0], &fit->gpu, whole);
    if (op->class == KERNELS_MEMORY) {
        struct kernel_work work = row->work[0];
        work.read_bytes /= fit->share[row->operator][row->backward].value;
        return op->kernels * kernel_duration_s(&work, &fit->gpu, whole);
    }
    double first_s = kernel_duration_s(&row->work[0], &fit->gpu, whole);
    if (!row->backward)
        return first_s;
    double second_s = kernel_duration_s(&row->work[1], &fit->gpu, whole);
    if (op->class == KERNELS_BATCHED_GEMM)
        return first_s + second_s;
    double rate = fit->backward_rate.value;
    return fmax(first_s / rate, fit->launch_gap.value) + second_s / rate;
}

static double predict(const void *fit, const void *row)
{
    return kernels_predict_s(fit, row);
}

/* The rows of a class that are fitted, no numbers yet. */
static struct fit *begin(struct kernels_fit *fit, enum kernels_group group, enum kernels_class class)
{
    struct fit *problem = &fit->groups[group];
    fit_free(problem);
    *problem = (struct fit){.self = fit,
        .predict = predict,
        .scale = gemm_row_scale,
        .source = "sim/calibrate/kernels_fit.h on results/measured/kernels.csv"};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (row->use == KERNELS_FITTED && kernels_operators[row->operator].class == class)
            fit_add_row(problem, row, row->measured_s);
    }
    return problem;
}

static enum status solve(struct fit *problem, struct diag *diag)
{
    if (fit_solve(problem))
        return STATUS_OK;
    const struct kernels_fit *fit = problem->self;
    return diag_input(diag, (struct source_pos){0}, "%d rows of kernels.csv do not determine %d numbers of %s",
        problem->rows.n, problem->parameters.n, fit->gpu.name);
}

static void expect(struct fit_parameter *parameter, double value)
{
    parameter->expected = value;
    parameter->weight = gemm_expected_weight;
}

static enum status solve_gemm_from(struct kernels_fit *fit, struct hw_gpu start, double share, struct diag *diag)
{
    fit->gpu = start;
    struct fit *problem = begin(fit, KERNELS_OF_GEMM, KERNELS_GEMM);
    struct hw_gpu *gpu = &fit->gpu;
    struct hw_gemm *gemm = &gpu->gemm[DTYPE_FP16];
    gpu->row_gap = gemm->tile_share = gemm->single_efficiency = (struct quantity){0};
    fit->launch_gap = fit->backward_rate = (struct quantity){0};
    fit_add(problem, "gemm_floor", DIM_SECONDS, &gpu->gemm_floor, START_FLOOR_S);
    fit_add(problem, "efficiency", DIM_FRACTION, &gemm->efficiency, START_EFFICIENCY);
    expect(fit_add(problem, "k_overhead", DIM_NONE, &gemm->k_overhead, gemm_expected_k_overhead),
        gemm_expected_k_overhead);
    fit_add(problem, "load_bandwidth", DIM_BYTES_PER_S, &gemm->load_bandwidth,
        share * gemm_balanced_load_Bps(gemm, DTYPE_FP16));
    fit_add(problem, "launch_gap", DIM_SECONDS, &fit->launch_gap, START_GAP_S);
    fit_add(problem, "backward_rate", DIM_FRACTION, &fit->backward_rate, 1);
    return solve(problem, diag);
}

/* The best of several starts. */
static enum status solve_gemm(struct kernels_fit *fit, struct diag *diag)
{
    const struct hw_gpu start = fit->gpu;
    double best = HUGE_VAL;
    int which = 0;
    enum status status = STATUS_OK;
    for (int i = 0; i < GEMM_STARTS && status == STATUS_OK; i++) {
        status = solve_gemm_from(fit, start, gemm_starts[i], diag);
        double cost = fit_cost(&fit->groups[KERNELS_OF_GEMM]);
        if (cost < best) {
            best = cost;
            which = i;
        }
    }
    return status == STATUS_OK && which < GEMM_STARTS - 1 ? solve_gemm_from(fit, start, gemm_starts[which], diag)
                                                          : status;
}

static enum status solve_attention(struct kernels_fit *fit, struct diag *diag)
{
    struct fit *problem = begin(fit, KERNELS_OF_ATTENTION, KERNELS_ATTENTION);
    struct hw_gpu *gpu = &fit->gpu;
    bool backward = false;
    for (int i = 0; i < problem->rows.n; i++)
        backward = backward || ((const struct kernels_row *)problem->rows.at[i].row)->backward;
    fit_add(problem, "attention_efficiency", DIM_FRACTION, &gpu->attention_efficiency, gpu->attention_efficiency.value);
    expect(fit_add(problem, "attention_overhead", DIM_NONE, &gpu->attention_overhead, EXPECTED_OVERHEAD),
        EXPECTED_OVERHEAD);
    fit_add(problem, "attention_softmax", DIM_NONE, &gpu->attention_softmax, START_SOFTMAX);
    fit_add(problem, "attention_wide", DIM_FRACTION, &gpu->attention_wide, 1);
    if (backward)
        fit_add(problem, "attention_backward", DIM_FRACTION, &gpu->attention_backward, 1);
    return solve(problem, diag);
}

/* hbm_efficiency, by residual_add, and the shares of the other operators. */
static enum status solve_memory(struct kernels_fit *fit, struct diag *diag)
{
    static const char *const passes[] = {"forward", "backward"};
    struct fit *problem = begin(fit, KERNELS_OF_MEMORY, KERNELS_MEMORY);
    fit_add(problem, "hbm_efficiency", DIM_FRACTION, &fit->gpu.hbm_efficiency, fit->gpu.hbm_efficiency.value);
    bool seen[KERNELS_OPERATORS][2] = {{false}};
    for (int i = 0; i < problem->rows.n; i++) {
        const struct kernels_row *row = problem->rows.at[i].row;
        seen[row->operator][row->backward] = true;
    }
    bool streams = true; /* the first memory-bound operator of the table, residual_add */
    for (int op = 0; op < KERNELS_OPERATORS; op++) {
        if (kernels_operators[op].class != KERNELS_MEMORY)
            continue;
        for (int pass = 0; pass < 2; pass++) {
            fit->share[op][pass] = (struct quantity){.value = 1};
            if (seen[op][pass] && !streams)
                fit_add(problem, kernels_operators[op].name, DIM_FRACTION, &fit->share[op][pass], START_SHARE)->id =
                    passes[pass];
        }
        streams = false;
    }
    return solve(problem, diag);
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
        fit_free(&fit->groups[i]);
    vec_free(&fit->rows.list);
}

struct fit_error kernels_error(const struct kernels_fit *fit, enum kernels_class class, enum kernels_use use)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (kernels_operators[row->operator].class == class && row->use == use)
            fit_sample_add(&sample, kernels_predict_s(fit, row), row->measured_s);
    }
    return fit_sample_error(&sample);
}
