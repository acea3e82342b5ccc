/* GPU numbers by kernels that were measured alone by shape (direct.csv), class after class.
 *
 * The order is casts, products by format (BF16, FP8, FP4), attention, experts, since later ones
 * predict with earlier numbers: an FP8 product's row holds the pass for its largest value and
 * the cast of its input, which direct_fit_input_s() takes off by the fitted casts. Products go to
 * gemm_fit.h from several starts; gemm_floor is BF16's, other formats keep it. What a row says
 * beyond the GPU's file (floors of casts, shares, what settles) lies in struct direct_fit.
 *
 * What is subtle: cast_s() and experts_s() predict with a copy of the GPU in which one number is
 * replaced (kernel_floor, gemm_sustained), so that the fitted one stays. Held-out and
 * out-of-range rows are read and priced, but never fitted; errors are those of held-out rows.
 * Experts count the rows of one rank: tokens x topk over batch ranks. */
#include "calibrate/direct_fit.h"

#include "calibrate/gemm_fit.h"
#include "calibrate/kernel_rows.h"
#include "calibrate/recipes.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

const char *const direct_kind_names[DIRECT_KIND_COUNT + 1] = {
    [DIRECT_PRODUCT] = "product",
    [DIRECT_ATTENTION] = "attention",
    [DIRECT_EXPERTS] = "experts",
    [DIRECT_CAST] = "scale_matrix",
    [DIRECT_AMAX] = "compute_scale",
};

enum { RESULT_BYTES = 2, FOLD_SHIFT = 8 };

/* Bytes of an element in a cast: 16 bits in, 8 out; the largest value is found by reading. */
static struct kernel_work cast_work(enum direct_kind kind, const struct kernel_row *row)
{
    double elements = row->m * row->k;
    return kernel_stream(
        KERNEL_ELEMENTWISE, elements * RESULT_BYTES, kind == DIRECT_CAST ? elements : 0, 0);
}

/* Scores and context; backward computes the scores once more (model/tape_dense.c). */
static struct kernel_work attention_work(const struct kernel_row *row)
{
    bool causal = strcmp(row->causal, "yes") == 0, backward = strcmp(row->pass, "bwd") == 0;
    double products = backward ? 3 * row->k + 2 * row->value_dim : row->k + row->value_dim;
    double heads = row->batch * row->heads, kv_heads = row->batch * row->kv_heads;
    double once = (heads * row->m * (row->k + row->value_dim) +
                      kv_heads * row->n * (row->k + row->value_dim)) *
                  RESULT_BYTES;
    return (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = DTYPE_BF16,
        .flop = 2 * heads * row->m * row->n * products * (causal ? ATTENTION_CAUSAL_SHARE : 1),
        .read_bytes = once * (backward ? 2 : 1),
        .m = (int64_t)row->m,
        .n = (int64_t)row->n,
        .k = (int64_t)row->k,
        .batch = (int64_t)heads,
        .causal = causal,
        .backward = backward};
}

static enum status direct_fit_take_row(void *self, const struct kernel_row *row, struct diag *diag)
{
    struct direct_rows *out = self;
    int kind = fit_find_name(direct_kind_names, row->class);
    struct direct_row at = {.settled = strcmp(row->regime, "settled") == 0,
        .kind = (enum direct_kind)kind,
        .m = row->m,
        .n = row->n,
        .k = row->k,
        .batch = row->batch,
        .experts = row->experts,
        .topk = row->topk,
        .cudnn = strstr(row->software, "cudnn") != NULL,
        .held_out = kernel_row_folded(&row->m, KERNEL_ROW_SIDES, FOLD_SHIFT),
        .measured_s = row->time_us * 1e-6,
        .power_w = row->power_w};
    enum status status =
        kind >= 0 ? kernel_row_math(&at.math, row, diag)
                  : diag_input(diag, row->at, "class is '%s'; one of %s, %s, ... is wanted",
                        row->class, direct_kind_names[0], direct_kind_names[1]);
    if (status == STATUS_OK)
        status = kernel_row_needs(row, "m k time_us", diag);
    if (status)
        return status;
    if (at.kind == DIRECT_PRODUCT)
        at.work = kernel_gemm((int64_t)at.m, (int64_t)at.n, (int64_t)at.k, 1, at.math,
            dtype_bytes(at.math), RESULT_BYTES);
    else if (at.kind == DIRECT_ATTENTION)
        at.work = attention_work(row);
    else if (at.kind != DIRECT_EXPERTS)
        at.work = cast_work(at.kind, row);
    vec_push(&out->list, at);
    return STATUS_OK;
}

static bool is_out_of_range(const struct direct_row *row, const struct hw_gpu *gpu)
{
    if (row->kind == DIRECT_CAST || row->kind == DIRECT_AMAX)
        return row->work.read_bytes + row->work.write_bytes < gpu->l2_capacity.value;
    if (row->kind == DIRECT_ATTENTION || (row->kind == DIRECT_PRODUCT && row->math == DTYPE_FP4))
        return row->m < DIRECT_QUERIES;
    return row->kind == DIRECT_EXPERTS && row->m * row->topk < DIRECT_ROWS * row->experts;
}

enum status direct_rows_load(struct direct_rows *out, const char *csv_path, const char *name,
    const struct hw_gpu *gpu, struct diag *diag)
{
    *out = (struct direct_rows){0};
    enum status status = kernel_rows_read(csv_path, name, direct_fit_take_row, out, diag);
    for (int i = 0; i < out->list.n; i++)
        out->list.at[i].out_of_range = is_out_of_range(&out->list.at[i], gpu);
    return status;
}

/* Bytes that the passes of a layer of experts move beside its products, of a row of a token and an
 * expert: 16 bits, to its expert's rows and back (k wide, read and written, each way), the
 * activation (two of n wide in, one out). */
enum { WIDE_BYTES = 2, COPIES = 4, ACTIVATION = 3, GATED = 2 };

static double cast_s(const struct direct_fit *fit, const struct direct_row *row)
{
    struct kernel_work work = row->work;
    struct hw_gpu gpu = fit->gpu;
    gpu.kernel_floor = row->kind == DIRECT_AMAX ? fit->amax_floor_s : fit->cast_floor_s;
    gpu.pointwise_efficiency = (struct quantity){0};
    if (row->kind == DIRECT_AMAX)
        work.read_bytes /= fit->amax_share.value;
    return kernel_duration_s(&work, &gpu, kernel_whole_gpu(&gpu));
}

/* What runs before a product of this format in its row: the pass for the largest value of an fp8
 * product's input, and its cast; of an fp4 product, whose scale of the whole tensor is known, the
 * cast alone. */
static double direct_fit_input_s(const struct direct_fit *fit, const struct direct_row *row)
{
    bool fp8 = row->math == DTYPE_FP8, fp4 = row->math == DTYPE_FP4;
    double elements = row->m * row->k, written = elements * (fp4 ? KERNEL_FP4_BYTES : 1);
    struct direct_row amax = {.kind = DIRECT_AMAX}, cast = {.kind = DIRECT_CAST};
    if (row->kind != DIRECT_PRODUCT || !(fp8 || fp4))
        return 0;
    amax.work = kernel_stream(KERNEL_ELEMENTWISE, elements * WIDE_BYTES, 0, 0);
    cast.work = kernel_stream(KERNEL_ELEMENTWISE, elements * WIDE_BYTES, written, 0);
    return (fp8 ? cast_s(fit, &amax) : 0) + cast_s(fit, &cast);
}

static double experts_s(const struct direct_fit *fit, const struct direct_row *row)
{
    struct kernel_share whole = kernel_whole_gpu(&fit->gpu);
    double rows = row->m * row->topk / row->batch, experts = row->experts / row->batch;
    int64_t each = (int64_t)fmax(1, ceil(rows / experts)),
            busy = (int64_t)fmax(1, fmin(experts, rows));
    int64_t bytes = dtype_bytes(row->math), n = (int64_t)row->n, k = (int64_t)row->k;
    struct kernel_work up = kernel_gemm(each, GATED * n, k, busy, row->math, bytes, WIDE_BYTES);
    struct kernel_work down = kernel_gemm(each, k, n, busy, row->math, bytes, WIDE_BYTES);
    double moved = rows * WIDE_BYTES * (COPIES * row->k + ACTIVATION * row->n) /
                   fit->moved_share[row->math].value;
    struct kernel_work stream = kernel_stream(KERNEL_COPY, moved, 0, 0);
    struct hw_gpu gpu = fit->gpu;
    gpu.gemm_sustained = fit->grouped_share[row->math];
    return kernel_duration_s(&up, &gpu, whole) + kernel_duration_s(&down, &gpu, whole) +
           kernel_duration_s(&stream, &fit->gpu, whole) + fit->layer_floor_s[row->math].value;
}

double direct_predict_s(const struct direct_fit *fit, const struct direct_row *row)
{
    if (row->kind == DIRECT_CAST || row->kind == DIRECT_AMAX)
        return cast_s(fit, row);
    if (row->kind == DIRECT_EXPERTS)
        return experts_s(fit, row);
    struct hw_gpu gpu = fit->gpu;
    if (row->settled)
        gpu.gemm_sustained = fit->settled[row->math];
    return kernel_duration_s(&row->work, &gpu, kernel_whole_gpu(&gpu)) +
           direct_fit_input_s(fit, row);
}

/* ---- a few numbers to the rows of one kind ---- */

static double direct_fit_predict(const void *fit, const void *row)
{
    return direct_predict_s(fit, row);
}

static struct fit problem_of(struct direct_fit *fit)
{
    return (struct fit){.self = fit,
        .predict = direct_fit_predict,
        .scale = gemm_row_scale,
        .source = "sim/lab/calibrate/direct_fit.h on results/measured/direct.csv"};
}

static enum status calibrate_direct_fit_solve(struct fit *problem, struct diag *diag)
{
    int n_rows = problem->rows.n, n = problem->parameters.n;
    const struct direct_fit *fit = problem->self;
    bool good = fit_solve(problem);
    fit_free(problem);
    return good ? STATUS_OK
                : diag_input(diag, (struct source_pos){0},
                      "%d rows of direct.csv do not determine %d numbers of %s", n_rows, n,
                      fit->gpu.name);
}

static bool is_fitted(const struct direct_row *row, enum direct_kind kind)
{
    return row->kind == kind && !row->held_out && !row->out_of_range;
}

static void direct_fit_take_rows(struct fit *problem, enum direct_kind kind, bool cudnn)
{
    const struct direct_rows *rows = &((const struct direct_fit *)problem->self)->rows;
    for (int i = 0; i < rows->list.n; i++)
        if (is_fitted(&rows->list.at[i], kind) && rows->list.at[i].cudnn == cudnn)
            fit_add_row(problem, &rows->list.at[i], rows->list.at[i].measured_s);
}

/* Of passes over little. */
static struct quantity small_s(const struct direct_fit *fit, enum direct_kind kind)
{
    VEC(double) times = {0};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct direct_row *row = &fit->rows.list.at[i];
        if (row->kind == kind && !row->held_out && row->work.read_bytes <= DIRECT_SMALL_BYTES)
            vec_push(&times, row->measured_s);
    }
    struct quantity out = {
        .kind = QUANTITY_MEASURED, .source = "the median of small casts in direct.csv"};
    out.value = times.n > 0 ? gsl_stats_median(times.at, 1, (size_t)times.n) : 0;
    vec_free(&times);
    return out;
}

static enum status solve_casts(struct direct_fit *fit, struct diag *diag)
{
    struct fit casts = problem_of(fit), amax = problem_of(fit);
    fit_add(&casts, "hbm_efficiency", DIM_FRACTION, &fit->gpu.hbm_efficiency,
        fit->gpu.hbm_efficiency.value);
    fit->cast_floor_s = small_s(fit, DIRECT_CAST);
    fit->amax_floor_s = small_s(fit, DIRECT_AMAX);
    direct_fit_take_rows(&casts, DIRECT_CAST, false);
    enum status status = calibrate_direct_fit_solve(&casts, diag);
    if (status)
        return status;
    fit_add(&amax, "amax_share", DIM_FRACTION, &fit->amax_share, 0.5);
    direct_fit_take_rows(&amax, DIRECT_AMAX, false);
    return calibrate_direct_fit_solve(&amax, diag);
}

static const double START_LAYER_S = 30e-6;

static enum status solve_experts(struct direct_fit *fit, enum dtype math, struct diag *diag)
{
    struct fit problem = problem_of(fit);
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct direct_row *row = &fit->rows.list.at[i];
        if (is_fitted(row, DIRECT_EXPERTS) && row->math == math)
            fit_add_row(&problem, row, row->measured_s);
    }
    if (problem.rows.n == 0)
        return STATUS_OK;
    fit_add(&problem, "grouped_share", DIM_FRACTION, &fit->grouped_share[math], 1);
    fit_add(&problem, "moved_share", DIM_FRACTION, &fit->moved_share[math], 1);
    fit_add(&problem, "layer_floor", DIM_SECONDS, &fit->layer_floor_s[math], START_LAYER_S);
    return calibrate_direct_fit_solve(&problem, diag);
}

/* Numbers that rows say nothing of stay as the file has them: softmax and wide without other heads,
 * backward without its rows. */
static enum status direct_fit_solve_attention(struct direct_fit *fit, struct diag *diag)
{
    struct hw_gpu *gpu = &fit->gpu;
    struct fit problem = problem_of(fit);
    direct_fit_take_rows(&problem, DIRECT_ATTENTION, true);
    fit->cudnn = problem.rows.n > 0;
    if (!fit->cudnn)
        direct_fit_take_rows(&problem, DIRECT_ATTENTION, false);
    bool backward = false, other_heads = false, wide = false;
    for (int i = 0; i < problem.rows.n; i++) {
        const struct direct_row *row = problem.rows.at[i].row;
        backward = backward || row->work.backward;
        other_heads = other_heads || row->k < 128;
        wide = wide || row->k > 128;
    }
    fit_add(&problem, "attention_efficiency", DIM_FRACTION, &gpu->attention_efficiency,
        gpu->attention_efficiency.value);
    fit_add(&problem, "attention_overhead", DIM_NONE, &gpu->attention_overhead, 200);
    if (other_heads)
        fit_add(&problem, "attention_softmax", DIM_NONE, &gpu->attention_softmax, 30);
    if (wide)
        fit_add(&problem, "attention_wide", DIM_FRACTION, &gpu->attention_wide, 0.9);
    if (backward) {
        fit_add(&problem, "attention_backward", DIM_FRACTION, &gpu->attention_backward, 0.8);
        fit_add(&problem, "attention_backward_overhead", DIM_NONE,
            &gpu->attention_backward_overhead, 200);
    }
    return calibrate_direct_fit_solve(&problem, diag);
}

/* ---- products ---- */

/* The rows of a format in one regime as gemm_fit.h has them, without the passes over the input. */
static struct gemm_rows product_rows(const struct direct_fit *fit, enum dtype math, bool settled)
{
    struct gemm_rows rows = {0};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct direct_row *row = &fit->rows.list.at[i];
        if (row->kind != DIRECT_PRODUCT || row->math != math || row->settled != settled ||
            row->out_of_range)
            continue;
        double measured_s = row->measured_s - direct_fit_input_s(fit, row);
        if (measured_s > 0)
            vec_push(&rows.list, ((struct gemm_row){.work = row->work,
                                     .measured_s = measured_s,
                                     .use = row->held_out ? GEMM_HELD_OUT : GEMM_FITTED}));
    }
    return rows;
}

static double direct_fit_cost_of(const struct hw_gpu *gpu, const struct gemm_rows *rows)
{
    double cost = 0;
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        double model_s = kernel_duration_s(&row->work, gpu, kernel_whole_gpu(gpu));
        if (row->use == GEMM_FITTED)
            cost += log1p(pow(log(model_s / row->measured_s) / gemm_row_scale, 2));
    }
    return cost;
}

/* The best of several starts. */
static enum status direct_fit_products(struct direct_fit *fit, const char *name, enum dtype math,
    const struct gemm_rows *rows, struct diag *diag)
{
    struct hw_gpu best = fit->gpu;
    double least = HUGE_VAL;
    for (int i = 0; i < GEMM_STARTS; i++) {
        struct hw_gpu gpu;
        struct diag unheard = DIAG_INIT;
        const struct gemm_case which = {.gpu = name,
            .math = {math, math},
            .second = GEMM_ALONE,
            .keeps_floor = math != DTYPE_BF16,
            .start_share = gemm_starts[i]};
        if (gemm_fit_solve(&gpu, &fit->gpu, &which, rows, &unheard) == STATUS_OK &&
            direct_fit_cost_of(&gpu, rows) < least) {
            least = direct_fit_cost_of(&gpu, rows);
            best = gpu;
        }
    }
    if (!(least < HUGE_VAL))
        return diag_input(diag, (struct source_pos){0},
            "%d products in %s do not determine the GEMM model of %s", rows->list.n,
            dtype_names[math], name);
    fit->gpu.gemm_floor = best.gemm_floor;
    fit->gpu.gemm[math] = best.gemm[math];
    return STATUS_OK;
}

/* The rate of long settled products over the model's. */
static struct quantity settled_share(const struct direct_fit *fit, const struct gemm_rows *rows)
{
    VEC(double) shares = {0};
    for (int i = 0; i < rows->list.n; i++) {
        const struct gemm_row *row = &rows->list.at[i];
        if (row->work.flop >= DIRECT_SETTLED_FLOP && row->use == GEMM_FITTED)
            vec_push(
                &shares, kernel_duration_s(&row->work, &fit->gpu, kernel_whole_gpu(&fit->gpu)) /
                             row->measured_s);
    }
    struct quantity out = {
        .value = 1, .kind = QUANTITY_ASSUMED, .source = "no product that was repeated for long"};
    if (shares.n > 1) {
        size_t n = (size_t)shares.n;
        out.value = gsl_stats_median(shares.at, 1, n);
        out.std_error = gsl_stats_sd(shares.at, 1, n);
        out.kind = QUANTITY_MEASURED;
    }
    vec_free(&shares);
    return out;
}

static enum status solve_products(
    struct direct_fit *fit, const char *name, enum dtype math, struct diag *diag)
{
    struct gemm_rows brief = product_rows(fit, math, false),
                     settled = product_rows(fit, math, true);
    enum status status = STATUS_OK;
    fit->has_format[math] = brief.list.n + settled.list.n > 0;
    if (fit->has_format[math])
        status = direct_fit_products(fit, name, math, brief.list.n > 0 ? &brief : &settled, diag);
    fit->settled[math] = (struct quantity){.value = 1, .kind = QUANTITY_ASSUMED};
    if (status == STATUS_OK && brief.list.n > 0 && settled.list.n > 0)
        fit->settled[math] = settled_share(fit, &settled);
    vec_free(&brief.list);
    vec_free(&settled.list);
    return status;
}

/* ---- errors ---- */

static struct fit_error direct_fit_error_of(
    const struct direct_fit *fit, enum direct_kind kind, int math)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < fit->rows.list.n; i++) {
        const struct direct_row *row = &fit->rows.list.at[i];
        bool of_fit = kind != DIRECT_ATTENTION || row->cudnn == fit->cudnn;
        if (row->held_out && !row->out_of_range && row->kind == kind && of_fit &&
            (math < 0 || (int)row->math == math))
            fit_sample_add(&sample, direct_predict_s(fit, row), row->measured_s);
    }
    return fit_sample_error(&sample);
}

enum status direct_fit_solve(struct direct_fit *fit, const struct hw_gpu *filed, const char *gpu,
    const char *csv_path, struct diag *diag)
{
    *fit = (struct direct_fit){.gpu = *filed};
    hw_clear_training_rates(&fit->gpu);
    for (int i = 0; i < DTYPE_COUNT; i++)
        fit->grouped_share[i] = fit->moved_share[i] = fit->settled[i] =
            (struct quantity){.value = 1, .kind = QUANTITY_ASSUMED};
    enum status status = direct_rows_load(&fit->rows, csv_path, gpu, filed, diag);
    for (int i = 0; i < fit->rows.list.n; i++)
        fit->has[fit->rows.list.at[i].kind] = true;
    if (status == STATUS_OK && fit->has[DIRECT_CAST])
        status = solve_casts(fit, diag);
    if (status == STATUS_OK)
        status = solve_products(fit, gpu, DTYPE_BF16, diag);
    if (status == STATUS_OK)
        status = solve_products(fit, gpu, DTYPE_FP8, diag);
    if (status == STATUS_OK)
        status = solve_products(fit, gpu, DTYPE_FP4, diag);
    if (status == STATUS_OK && fit->has[DIRECT_ATTENTION])
        status = direct_fit_solve_attention(fit, diag);
    for (int i = 0; i < DTYPE_COUNT && status == STATUS_OK; i++)
        status = solve_experts(fit, (enum dtype)i, diag);
    for (int i = 0; i < DIRECT_KIND_COUNT && status == STATUS_OK; i++)
        fit->error[i] = direct_fit_error_of(fit, (enum direct_kind)i, -1);
    for (int i = 0; i < DTYPE_COUNT && status == STATUS_OK; i++)
        fit->product_error[i] = direct_fit_error_of(fit, DIRECT_PRODUCT, i);
    return status;
}

void direct_fit_free(struct direct_fit *fit)
{
    vec_free(&fit->rows.list);
}

/* What no file has; nothing where it was not found. */
static void print_own(
    FILE *out, const char *format, const char *name, struct quantity q, enum dimension dimension)
{
    if (q.kind == QUANTITY_FITTED || q.kind == QUANTITY_MEASURED)
        fit_print_number(out, format, name, (struct quantity){0}, q, dimension, "");
}

static void direct_fit_print_gpu(
    FILE *out, const char *name, const struct hw_gpu *filed, const struct direct_fit *fit)
{
    fit_print_head(out, name);
    fit_print_fields(out, &hw_gpu_table, filed, &fit->gpu, "", NULL);
    print_own(out, "", "cast_floor", fit->cast_floor_s, DIM_SECONDS);
    print_own(out, "", "amax_floor", fit->amax_floor_s, DIM_SECONDS);
    print_own(out, "", "amax_share", fit->amax_share, DIM_FRACTION);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        print_own(out, dtype_names[i], "settled", fit->settled[i], DIM_FRACTION);
        print_own(out, dtype_names[i], "grouped_share", fit->grouped_share[i], DIM_FRACTION);
        print_own(out, dtype_names[i], "moved_share", fit->moved_share[i], DIM_FRACTION);
        print_own(out, dtype_names[i], "layer_floor", fit->layer_floor_s[i], DIM_SECONDS);
    }
    for (int i = 0; i < DTYPE_COUNT; i++)
        fit_print_error(out, dtype_names[i], "held out", fit->product_error[i]);
    for (int i = DIRECT_ATTENTION; i < DIRECT_KIND_COUNT; i++)
        fit_print_error(out, direct_kind_names[i], "held out", fit->error[i]);
}

enum status direct_fit_print(FILE *out, const char *measured_folder, const char *gpus_folder,
    struct arena *arena, struct diag *diag)
{
    const char *table = arena_printf(arena, "%s/direct.csv", measured_folder);
    struct recipes recipes;
    enum status status = recipes_load(&recipes, arena, diag);
    for (int i = 0; i < recipes.direct.n && status == STATUS_OK; i++) {
        const char *gpu = recipes.direct.list[i];
        struct hw_gpu filed;
        struct direct_fit fit = {0};
        status =
            hw_load_gpu(&filed, arena_printf(arena, "%s/%s.yaml", gpus_folder, gpu), arena, diag);
        if (status == STATUS_OK)
            status = direct_fit_solve(&fit, &filed, gpu, table, diag);
        if (status == STATUS_OK)
            direct_fit_print_gpu(out, gpu, &filed, &fit);
        direct_fit_free(&fit);
    }
    return status;
}
