/* The kernel model of a GPU by operators of a GPT layer that were measured one by one
 * (kernels.csv). A line of the table becomes up to two rows, forward and backward, each with the
 * one or two kernels of that pass: backward of a linear layer is two products, masked_fill a copy
 * and a pass in place. Three problems of fit.h are solved in this order, each with the numbers of
 * those before it in fit->gpu: memory-bound kernels, products, attention. residual_add has the
 * share 1, so hbm_efficiency is its rate; each other operator and pass has a share of that.
 * Products begin at several load_bandwidths, and the solution of least cost is kept.
 *
 * What is subtle: a shape is held out by the digest of its sorted sides, so transposes go together.
 * Rows that would need more than HBM's peak are left out (is_impossible()). In backward the second
 * product starts no sooner than launch_gap after the first. */
#include "calibrate/kernels_fit.h"

#include "calibrate/gemm_fit.h"
#include "calibrate/kernel_rows.h"
#include "calibrate/recipes.h"

#include <math.h>
#include <string.h>

const char *const kernels_class_names[KERNELS_CLASS_COUNT] = {
    [KERNELS_GEMM] = "GEMM",
    [KERNELS_BATCHED_GEMM] = "batched GEMM",
    [KERNELS_ATTENTION] = "attention",
    [KERNELS_MEMORY] = "memory-bound",
};
const char *const kernels_use_names[KERNELS_USE_COUNT] = {[KERNELS_FITTED] = "fitted",
    [KERNELS_HELD_OUT] = "held out",
    [KERNELS_FIRST_SESSION] = "first session"};

/* fp16: a read or a write of an element is 2 B. Backward reads what forward read and the gradient,
 * and writes one. */
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

enum { SHAPE_NUMBERS = 4, ELEMENT_BYTES = 2 };
static const double FLASH_BACKWARD_PRODUCTS = 5, FLASH_FORWARD_PRODUCTS = 2; /* scores once more */

/* By the shape, whatever the order of its sides. */
static bool kernels_fit_is_held_out(const struct kernel_row *row)
{
    double side[SHAPE_NUMBERS] = {row->m, row->n, row->k, row->batch};
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++)
            if (side[j] < side[i]) {
                double less = side[j];
                side[j] = side[i];
                side[i] = less;
            }
    return kernel_row_folded(side, SHAPE_NUMBERS, 0);
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
    bool streams = kernels_operators[row->operator].class == KERNELS_MEMORY;
    return streams && bytes > 2 * gpu->l2_capacity.value &&
           bytes / row->measured_s > gpu->hbm_bandwidth.value;
}

static enum status find_operator(int *out, const struct kernel_row *row, struct diag *diag)
{
    for (*out = 0; *out < KERNELS_OPERATORS; ++*out)
        if (strcmp(kernels_operators[*out].name, row->class) == 0)
            return STATUS_OK;
    return diag_input(
        diag, row->at, "unknown operator '%s'; linear_qkv, flash_attention, gelu, ...", row->class);
}

struct kernel_reading {
    struct kernels_rows *out;
    const struct hw_gpu *gpu;
};

static enum status kernels_fit_take_row(
    void *self, const struct kernel_row *from, struct diag *diag)
{
    const struct kernel_reading *reading = self;
    const double measured_us[2] = {from->time_us, from->backward_us};
    struct kernels_row row = {0};
    enum status status = find_operator(&row.operator, from, diag);
    if (status == STATUS_OK)
        status = kernel_row_needs(from, "m n batch", diag);
    if (status)
        return status;
    bool batched = kernels_operators[row.operator].class == KERNELS_BATCHED_GEMM;
    bool held_out = batched || kernels_fit_is_held_out(from);
    row.use = strcmp(from->session, "first") == 0 ? KERNELS_FIRST_SESSION
              : held_out                          ? KERNELS_HELD_OUT
                                                  : KERNELS_FITTED;
    row.m = (int64_t)from->m, row.n = (int64_t)from->n, row.k = (int64_t)from->k,
    row.batch = (int64_t)from->batch;
    for (int pass = 0; pass < 2; pass++) {
        row.measured_s = measured_us[pass] * 1e-6;
        row.backward = pass == 1;
        if (measured_us[pass] <= 0)
            continue;
        row.work[0] = row.work[1] = (struct kernel_work){0};
        make_work(&row);
        if (!is_impossible(&row, reading->gpu))
            vec_push(&reading->out->list, row);
    }
    return STATUS_OK;
}

enum status kernels_rows_load(struct kernels_rows *out, const char *csv_path, const char *name,
    const struct hw_gpu *gpu, struct diag *diag)
{
    *out = (struct kernels_rows){0};
    struct kernel_reading reading = {out, gpu};
    return kernel_rows_read(csv_path, name, kernels_fit_take_row, &reading, diag);
}

/* Assumed: starts of the searches (shares of the peak and of HBM's rate; the softmax in elements of
 * the head dimension, the overhead in keys, as in kernel/attention.h), and what attention's
 * overhead is expected near, as rows may say little of it, with the weight that k_overhead's
 * expectation has. */
static const double KERNEL_START_FLOOR_S = 4e-6, KERNEL_START_EFFICIENCY = 0.85,
                    START_GAP_S = 50e-6, EXPECTED_OVERHEAD = 150, START_SOFTMAX = 16,
                    START_SHARE = 0.8;

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

static double kernels_fit_predict(const void *fit, const void *row)
{
    return kernels_predict_s(fit, row);
}

/* What backward alone has. */
static bool kernels_fit_reads(
    const void *self, const void *row, const struct fit_parameter *parameter)
{
    const struct kernels_fit *fit = self;
    const struct kernels_row *of = row;
    return of->backward ||
           (parameter->at[0] != &fit->launch_gap && parameter->at[0] != &fit->backward_rate);
}

/* The rows of a class that are fitted, no numbers yet. */
static struct fit *kernels_fit_begin(
    struct kernels_fit *fit, enum kernels_group group, enum kernels_class class)
{
    struct fit *problem = &fit->groups[group];
    fit_free(problem);
    *problem = (struct fit){.self = fit,
        .predict = kernels_fit_predict,
        .reads = kernels_fit_reads,
        .scale = gemm_row_scale,
        .source = "sim/lab/calibrate/kernels_fit.h on results/measured/kernels.csv"};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (row->use == KERNELS_FITTED && kernels_operators[row->operator].class == class)
            fit_add_row(problem, row, row->measured_s);
    }
    return problem;
}

static enum status calibrate_kernels_fit_solve(struct fit *problem, struct diag *diag)
{
    if (fit_solve(problem))
        return STATUS_OK;
    const struct kernels_fit *fit = problem->self;
    return diag_input(diag, (struct source_pos){0},
        "%d rows of kernels.csv do not determine %d numbers of %s", problem->rows.n,
        problem->parameters.n, fit->gpu.name);
}

static void expect(struct fit_parameter *parameter, double value)
{
    parameter->expected = value;
    parameter->weight = gemm_expected_weight;
}

static enum status solve_gemm_from(
    struct kernels_fit *fit, struct hw_gpu start, double share, struct diag *diag)
{
    fit->gpu = start;
    struct fit *problem = kernels_fit_begin(fit, KERNELS_OF_GEMM, KERNELS_GEMM);
    struct hw_gpu *gpu = &fit->gpu;
    struct hw_gemm *gemm = &gpu->gemm[DTYPE_FP16];
    gpu->row_gap = gemm->tile_share = gemm->single_efficiency = (struct quantity){0};
    fit->launch_gap = fit->backward_rate = (struct quantity){0};
    fit_add(problem, "gemm_floor", DIM_SECONDS, &gpu->gemm_floor, KERNEL_START_FLOOR_S);
    fit_add(problem, "efficiency", DIM_FRACTION, &gemm->efficiency, KERNEL_START_EFFICIENCY);
    expect(fit_add(problem, "k_overhead", DIM_NONE, &gemm->k_overhead, gemm_expected_k_overhead),
        gemm_expected_k_overhead);
    fit_add(problem, "load_bandwidth", DIM_BYTES_PER_S, &gemm->load_bandwidth,
        share * gemm_balanced_load_Bps(gemm, DTYPE_FP16));
    fit_add(problem, "launch_gap", DIM_SECONDS, &fit->launch_gap, START_GAP_S);
    fit_add(problem, "backward_rate", DIM_FRACTION, &fit->backward_rate, 1);
    return calibrate_kernels_fit_solve(problem, diag);
}

/* A solution: its numbers, and where the model read them. */
struct solution {
    struct fit problem;
    struct hw_gpu gpu;
    struct quantity launch_gap, backward_rate;
    double cost;
};

static void solution_take(struct solution *best, struct kernels_fit *fit, double cost)
{
    fit_free(&best->problem);
    *best = (struct solution){
        fit->groups[KERNELS_OF_GEMM], fit->gpu, fit->launch_gap, fit->backward_rate, cost};
    fit->groups[KERNELS_OF_GEMM] = (struct fit){0};
}

/* The best of several starts. */
static enum status solve_gemm(struct kernels_fit *fit, struct diag *diag)
{
    const struct hw_gpu start = fit->gpu;
    struct solution best = {.cost = HUGE_VAL};
    enum status status = STATUS_OK;
    for (int i = 0; i < GEMM_STARTS && status == STATUS_OK; i++) {
        status = solve_gemm_from(fit, start, gemm_starts[i], diag);
        double cost = fit_cost(&fit->groups[KERNELS_OF_GEMM]);
        if (cost < best.cost)
            solution_take(&best, fit, cost);
    }
    if (best.cost == HUGE_VAL)
        return status;
    fit_free(&fit->groups[KERNELS_OF_GEMM]);
    fit->groups[KERNELS_OF_GEMM] = best.problem;
    fit->gpu = best.gpu;
    fit->launch_gap = best.launch_gap;
    fit->backward_rate = best.backward_rate;
    return status;
}

static enum status kernels_fit_solve_attention(struct kernels_fit *fit, struct diag *diag)
{
    struct fit *problem = kernels_fit_begin(fit, KERNELS_OF_ATTENTION, KERNELS_ATTENTION);
    struct hw_gpu *gpu = &fit->gpu;
    bool backward = false;
    for (int i = 0; i < problem->rows.n; i++)
        backward = backward || ((const struct kernels_row *)problem->rows.at[i].row)->backward;
    fit_add(problem, "attention_efficiency", DIM_FRACTION, &gpu->attention_efficiency,
        gpu->attention_efficiency.value);
    expect(fit_add(problem, "attention_overhead", DIM_NONE, &gpu->attention_overhead,
               EXPECTED_OVERHEAD),
        EXPECTED_OVERHEAD);
    fit_add(problem, "attention_softmax", DIM_NONE, &gpu->attention_softmax, START_SOFTMAX);
    fit_add(problem, "attention_wide", DIM_FRACTION, &gpu->attention_wide, 1);
    if (backward)
        fit_add(problem, "attention_backward", DIM_FRACTION, &gpu->attention_backward, 1);
    return calibrate_kernels_fit_solve(problem, diag);
}

/* hbm_efficiency, by residual_add, and the shares of the other operators. */
static enum status solve_memory(struct kernels_fit *fit, struct diag *diag)
{
    static const char *const passes[] = {"forward", "backward"};
    struct fit *problem = kernels_fit_begin(fit, KERNELS_OF_MEMORY, KERNELS_MEMORY);
    fit_add(problem, "hbm_efficiency", DIM_FRACTION, &fit->gpu.hbm_efficiency,
        fit->gpu.hbm_efficiency.value);
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
                fit_add(problem, kernels_operators[op].name, DIM_FRACTION, &fit->share[op][pass],
                    START_SHARE)
                    ->id = passes[pass];
        }
        streams = false;
    }
    return calibrate_kernels_fit_solve(problem, diag);
}

enum status kernels_fit_solve(struct kernels_fit *fit, const struct hw_gpu *filed, const char *name,
    const char *csv_path, struct diag *diag)
{
    *fit = (struct kernels_fit){.gpu = *filed};
    hw_clear_training_rates(&fit->gpu);
    enum status status = kernels_rows_load(&fit->rows, csv_path, name, filed, diag);
    if (status == STATUS_OK)
        status = solve_memory(fit, diag);
    if (status == STATUS_OK)
        status = solve_gemm(fit, diag);
    return status == STATUS_OK ? kernels_fit_solve_attention(fit, diag) : status;
}

void kernels_fit_free(struct kernels_fit *fit)
{
    for (int i = 0; i < KERNELS_GROUPS; i++)
        fit_free(&fit->groups[i]);
    vec_free(&fit->rows.list);
}

struct fit_error kernels_error(
    const struct kernels_fit *fit, enum kernels_class class, enum kernels_use use)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct kernels_row *row = &fit->rows.list.at[i];
        if (kernels_operators[row->operator].class == class && row->use == use)
            fit_sample_add(&sample, kernels_predict_s(fit, row), row->measured_s);
    }
    return fit_sample_error(&sample);
}

static void kernels_fit_print_fit(FILE *out, const struct kernels_fit *fit, const char *name)
{
    fit_print_head(out, name);
    for (int i = 0; i < KERNELS_GROUPS; i++) {
        fit_print_parameters(out, &fit->groups[i]);
        fit_print_tied(out, &fit->groups[i]);
    }
    for (int class = 0; class < KERNELS_CLASS_COUNT; class ++)
        for (int use = 0; use < KERNELS_USE_COUNT; use++)
            fit_print_error(out, kernels_class_names[class], kernels_use_names[use],
                kernels_error(fit, (enum kernels_class) class, (enum kernels_use)use));
}

enum status kernels_fit_print(FILE *out, const char *measured_folder, const char *gpus_folder,
    struct arena *arena, struct diag *diag)
{
    struct recipes recipes;
    enum status status = recipes_load(&recipes, arena, diag);
    for (int i = 0; i < recipes.kernels.n && status == STATUS_OK; i++) {
        const char *gpu = recipes.kernels.list[i];
        struct hw_gpu filed;
        struct kernels_fit fit = {0};
        status =
            hw_load_gpu(&filed, arena_printf(arena, "%s/%s.yaml", gpus_folder, gpu), arena, diag);
        if (status == STATUS_OK)
            status = kernels_fit_solve(
                &fit, &filed, gpu, arena_printf(arena, "%s/kernels.csv", measured_folder), diag);
        if (status == STATUS_OK)
            kernels_fit_print_fit(out, &fit, gpu);
        kernels_fit_free(&fit);
    }
    return status;
}
