/* A GPU's medians from the CSV of flopcast_measure on it. Most medians are a median of rows of one
 * category (keep_median(), which leaves a number as filed where there are no rows); only products
 * are fitted, format after format. Of a product measured with a cold and a warm L2 the cold row
 * counts: load_products() goes over the table twice, cold first, and skips products seen.
 * memory_sms comes from copies by few SMs that reach less than LIMITED_BY_SMS of the whole GPU's
 * rate, where the rate grows with the SMs.
 *
 * What is subtle: the order of steps. pointwise_efficiency is a share of the streaming rate and
 * takes kernel_floor off, so both come before it; products are fitted with rates of training
 * cleared, which are put back at the end where nothing here measured them. gemm_floor is fitted
 * with the first format only, later ones keep it. Row names are those that flopcast_measure prints
 * (FLOOR_ROW, POINTWISE): a change there must come here. */
#include "calibrate/measure_fit.h"

#include "base/files.h"
#include "calibrate/fit_files.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

typedef VEC(double) medians;

/* What flopcast_measure calls its rows. */
static const char FLOOR_ROW[] = "empty kernels one after the other, GPU and host";
static const char *const POINTWISE[] = {"norm", "attention", "elementwise", "embedding", "loss"};
/* Below this share of the whole GPU's rate a copy is limited by its SMs and nothing else; assumed.
 */
static const double LIMITED_BY_SMS = 0.9;
/* The order in which formats are fitted; the first that was measured brings gemm_floor. */
static const enum dtype FORMATS[DTYPE_COUNT] = {
    DTYPE_BF16, DTYPE_FP16, DTYPE_TF32, DTYPE_FP32, DTYPE_FP8, DTYPE_INT8, DTYPE_FP4};

static bool measure_fit_is(const struct measured_row *row, const char *category, const char *kernel)
{
    return strcmp(row->category, category) == 0 && (!kernel || strcmp(row->kernel, kernel) == 0);
}

/* Keep the median of the medians as measured; none: as it was. */
static void keep_median(struct measure_fit *fit, struct quantity *number, medians *found)
{
    if (found->n > 0) {
        *number = (struct quantity){.value = gsl_stats_median(found->at, 1, (size_t)found->n),
            .kind = QUANTITY_MEASURED,
            .source = "flopcast_measure"};
        fit->n_numbers++;
    }
    vec_free(found);
}

/* Times of a kernel, whatever its size. */
static void keep_time(struct measure_fit *fit, struct quantity *number,
    const struct measured_file *file, const char *category, const char *kernel)
{
    medians times = {0};
    for (int i = 0; i < file->rows.n; i++)
        if (measure_fit_is(&file->rows.at[i], category, kernel))
            vec_push(&times, file->rows.at[i].time_s);
    keep_median(fit, number, &times);
}

static double measure_fit_rate(const struct measured_row *row)
{
    return row->bytes / row->time_s;
}

/* The row of this stream by the whole GPU that moves most; NULL: there is none. */
static const struct measured_row *largest_stream(
    const struct measured_file *file, const char *kernel)
{
    const struct measured_row *best = NULL;
    for (int i = 0; i < file->rows.n; i++) {
        const struct measured_row *row = &file->rows.at[i];
        if (measure_fit_is(row, "hbm", kernel) && row->sms == 0 &&
            (!best || row->bytes > best->bytes))
            best = row;
    }
    return best;
}

static void fit_streams(struct measure_fit *fit, const struct measured_file *file)
{
    const struct measured_row *scale = largest_stream(file, "scale"),
                              *triad = largest_stream(file, "triad");
    medians share = {0}, sms = {0};
    if (scale && triad)
        vec_push(&share,
            (measure_fit_rate(scale) + measure_fit_rate(triad)) / 2 / fit->gpu.hbm_bandwidth.value);
    keep_median(fit, &fit->gpu.hbm_efficiency, &share);
    for (int i = 0; i < file->rows.n; i++) {
        const struct measured_row *row = &file->rows.at[i];
        const struct measured_row *whole =
            measure_fit_is(row, "hbm", NULL) ? largest_stream(file, row->kernel) : NULL;
        if (whole && row->sms > 0 &&
            measure_fit_rate(row) < LIMITED_BY_SMS * measure_fit_rate(whole))
            vec_push(&sms, row->sms * measure_fit_rate(whole) / measure_fit_rate(row));
    }
    keep_median(fit, &fit->gpu.memory_sms, &sms);
}

static void fit_pointwise(struct measure_fit *fit, const struct measured_file *file)
{
    const struct hw_gpu *gpu = &fit->gpu;
    double all_Bps = gpu->hbm_bandwidth.value * gpu->hbm_efficiency.value;
    medians shares = {0};
    for (int i = 0; i < file->rows.n; i++) {
        const struct measured_row *row = &file->rows.at[i];
        bool wanted = false;
        for (size_t c = 0; c < sizeof POINTWISE / sizeof *POINTWISE; c++)
            wanted = wanted || measure_fit_is(row, POINTWISE[c], NULL);
        bool from_hbm = row->bytes > gpu->l2_capacity.value || strcmp(row->cache, "cold") == 0;
        double busy_s = row->time_s - gpu->kernel_floor.value;
        if (wanted && from_hbm && busy_s > 0)
            vec_push(&shares, row->bytes / busy_s / all_Bps);
    }
    keep_median(fit, &fit->gpu.pointwise_efficiency, &shares);
}

static enum dtype format_of(const struct measured_row *row)
{
    int math = fit_find_name(dtype_names, row->dtype);
    return math < 0 ? DTYPE_COUNT : (enum dtype)math;
}

static bool measure_fit_same_product(const struct kernel_work *a, const struct kernel_work *b)
{
    return a->math == b->math && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->batch == b->batch;
}

/* The products of formats that the GPU has. The largest figures of flopcast_measure are far below
 * 2^53. */
static void load_products(struct measure_fit *fit, const struct measured_file *file)
{
    for (int cold = 1; cold >= 0; cold--)
        for (int i = 0; i < file->rows.n; i++) {
            const struct measured_row *row = &file->rows.at[i];
            enum dtype math = format_of(row);
            bool shaped = row->m >= 1 && row->n >= 1 && row->k >= 1 && row->batch >= 1;
            if (!measure_fit_is(row, "gemm", NULL) || (strcmp(row->cache, "cold") == 0) != cold ||
                math == DTYPE_COUNT || !shaped || !kernel_supported(&fit->gpu, math))
                continue;
            int64_t bytes = dtype_bytes(math), result_bytes = math == DTYPE_FP8    ? 2
                                                              : math == DTYPE_INT8 ? 4
                                                                                   : bytes;
            struct gemm_row product = {
                .work = kernel_gemm((int64_t)row->m, (int64_t)row->n, (int64_t)row->k,
                    (int64_t)row->batch, math, bytes, result_bytes),
                .measured_s = row->time_s};
            bool seen = false;
            for (int j = 0; j < fit->gemm.list.n && !seen; j++)
                seen = measure_fit_same_product(&fit->gemm.list.at[j].work, &product.work);
            if (!seen)
                vec_push(&fit->gemm.list, product);
        }
}

static bool has_format(const struct gemm_rows *rows, enum dtype math)
{
    for (int i = 0; i < rows->list.n; i++)
        if (rows->list.at[i].work.math == math)
            return true;
    return false;
}

/* What no product of the format determines stays as it was: the fit leaves it without an error. */
static void keep_undetermined(struct hw_gpu *gpu, const struct hw_gpu *before, enum dtype math)
{
    struct hw_gemm *is = &gpu->gemm[math];
    const struct hw_gemm *was = &before->gemm[math];
    struct quantity *const found[] = {
        &is->efficiency, &is->k_overhead, &is->load_bandwidth, &gpu->gemm_floor};
    const struct quantity filed[] = {
        was->efficiency, was->k_overhead, was->load_bandwidth, before->gemm_floor};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (!(found[i]->std_error > 0))
            *found[i] = filed[i];
}

/* The best of several starts, by the median error of the rows fitted. False: the rows do not
 * determine the numbers. */
static bool fit_format(
    struct hw_gpu *out, const struct measure_fit *fit, enum dtype math, bool floor_known)
{
    static const double starts[] = {1, 0.5, 0.7, 1.4};
    double least = HUGE_VAL;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct hw_gpu trial;
        struct diag why = DIAG_INIT; /* that a start leads nowhere is no mistake */
        const struct gemm_case which = {.gpu = fit->gpu.name,
            .math = {math},
            .second = GEMM_ALONE,
            .keeps_floor = floor_known,
            .start_share = starts[i]};
        if (gemm_fit_solve(&trial, &fit->gpu, &which, &fit->gemm, &why) != STATUS_OK)
            continue;
        trial.row_gap = fit->gpu.row_gap;
        keep_undetermined(&trial, &fit->gpu, math);
        double error = gemm_error(&trial, math, GEMM_FITTED, &fit->gemm).median;
        if (error < least)
            *out = trial;
        least = fmin(least, error);
    }
    return least < HUGE_VAL;
}

static void measure_fit_products(struct measure_fit *fit, const struct measured_file *file)
{
    load_products(fit, file);
    gemm_hold_out(&fit->gemm, GEMM_FOLDS - 1);
    bool floor_known = false;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        struct hw_gpu fitted;
        if (!has_format(&fit->gemm, FORMATS[i]) ||
            !fit_format(&fitted, fit, FORMATS[i], floor_known))
            continue;
        fit->gpu = fitted;
        fit->products[FORMATS[i]] = floor_known = true;
        fit->n_numbers++;
    }
}

static void fit_sustained(struct measure_fit *fit, const struct measured_file *file)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        struct measured_sustained s;
        medians share = {0};
        if (!measured_sustained(&s, file, dtype_names[FORMATS[i]]))
            continue;
        vec_push(&share, s.sustained_flops / s.burst_flops);
        keep_median(fit, &fit->gpu.gemm_sustained, &share);
        return;
    }
}

static void fit_context(struct measure_fit *fit, const struct measured_file *file)
{
    medians bytes = {0};
    double sum = 0;
    for (int i = 0; i < file->rows.n; i++)
        if (measure_fit_is(&file->rows.at[i], "memory", NULL) &&
            strncmp(file->rows.at[i].kernel, "NCCL", 4) != 0)
            sum += file->rows.at[i].bytes;
    if (sum > 0)
        vec_push(&bytes, sum);
    keep_median(fit, &fit->gpu.context_bytes, &bytes);
}

/* What was put aside and not measured. */
static void restore(struct quantity *number, struct quantity filed)
{
    if (!quantity_is_set(*number))
        *number = filed;
}

enum status measure_fit_solve(struct measure_fit *out, const struct hw_gpu *filed,
    const struct measured_file *file, struct diag *diag)
{
    *out = (struct measure_fit){.gpu = *filed};
    hw_clear_training_rates(&out->gpu);
    keep_time(out, &out->gpu.kernel_floor, file, "launch", FLOOR_ROW);
    fit_streams(out, file);
    fit_pointwise(out, file);
    measure_fit_products(out, file);
    fit_sustained(out, file);
    fit_context(out, file);
    keep_time(out, &out->gpu.cuda_malloc, file, "allocation", "cudaMalloc");
    keep_time(out, &out->gpu.cuda_free, file, "allocation", "cudaFree");
    restore(&out->gpu.gemm_sustained, filed->gemm_sustained);
    restore(&out->gpu.pointwise_efficiency, filed->pointwise_efficiency);
    restore(&out->gpu.conv_efficiency, filed->conv_efficiency);
    if (out->n_numbers > 0)
        return STATUS_OK;
    measure_fit_free(out);
    return diag_input(diag, csv_pos(file->table, 0),
        "no number of a GPU follows from these rows; measure launch, hbm, norm, gemm, sustained, "
        "memory or allocation");
}

void measure_fit_free(struct measure_fit *fit)
{
    vec_free(&fit->gemm.list);
}

static void print_products(FILE *out, const struct measure_fit *fit)
{
    struct hw_gpu cleared = fit->gpu;
    hw_clear_training_rates(&cleared);
    for (int math = 0; math < DTYPE_COUNT; math++) {
        if (!has_format(&fit->gemm, (enum dtype)math))
            continue;
        if (!fit->products[math])
            fprintf(out, "  %-5s its products do not determine the GEMM model; as in the file\n",
                dtype_names[math]);
        for (int use = 0; use < GEMM_USE_COUNT && fit->products[math]; use++)
            fit_print_error(out, dtype_names[math], gemm_use_names[use],
                gemm_error(&cleared, (enum dtype)math, (enum gemm_use)use, &fit->gemm));
    }
}

static bool is_alone(const struct measured_row *row, const struct measured_row *beside)
{
    return measure_fit_is(row, "overlap", beside->kernel) && !*row->beside &&
           strcmp(row->dtype, beside->dtype) == 0 && row->bytes == beside->bytes;
}

/* How much longer a kernel takes beside another; by the model where that is a copy by a known
 * number of SMs. */
static void print_slowdown(FILE *out, const struct measure_fit *fit,
    const struct measured_file *file, const struct measured_row *row)
{
    const struct measured_row *alone = NULL;
    for (int i = 0; i < file->rows.n && !alone; i++)
        if (is_alone(&file->rows.at[i], row))
            alone = &file->rows.at[i];
    if (!alone)
        return;
    fprintf(out, "  %-12s beside %-28s takes %.2f times as long", row->kernel, row->beside,
        row->time_s / alone->time_s);
    int sms = 0;
    enum dtype math = format_of(row);
    if (row->flop > 0 && sscanf(row->beside, "copy on %d SMs", &sms) == 1 && math < DTYPE_COUNT &&
        kernel_supported(&fit->gpu, math) && sms < fit->gpu.sms.value) {
        int64_t bytes = dtype_bytes(math);
        struct kernel_work work = kernel_gemm((int64_t)row->m, (int64_t)row->n, (int64_t)row->k,
            (int64_t)row->batch, math, bytes, bytes);
        struct kernel_share share = kernel_whole_gpu(&fit->gpu);
        double alone_s = kernel_duration_s(&work, &fit->gpu, share);
        double streamed = fit->gpu.hbm_bandwidth.value * fit->gpu.hbm_efficiency.value;
        share.sms -= sms;
        share.hbm_Bps = streamed * fmin(1, sms / fit->gpu.memory_sms.value);
        fprintf(out, ", by its SMs and bytes %.2f",
            kernel_duration_s(&work, &fit->gpu, share) / alone_s);
    }
    fputc('\n', out);
}

void measure_fit_print(FILE *out, const struct measure_fit *fit, const struct hw_gpu *filed,
    const struct measured_file *file)
{
    measured_print_source(out, file);
    fit_print_head(out, fit->gpu.name);
    fit_print_fields(out, &hw_gpu_table, filed, &fit->gpu, "", NULL);
    print_products(out, fit);
    for (int i = 0; i < file->rows.n; i++)
        if (measure_fit_is(&file->rows.at[i], "overlap", NULL) && *file->rows.at[i].beside)
            print_slowdown(out, fit, file, &file->rows.at[i]);
}

enum status measure_fit_write(const struct measure_fit *fit, const struct hw_gpu *filed,
    const struct measured_file *file, const char *from, const char *path, struct arena *arena,
    struct diag *diag)
{
    struct hw_gpu now = *filed;
    if (filed->extends)
        now.extends = files_name_from(arena, path, filed->extends);
    fit_files_take(&hw_gpu_table, &now, &fit->gpu,
        arena_printf(arena,
            "`flopcast calibrate fit measure` on what flopcast_measure %s timed on %s, driver %s, "
            "CUDA %s, on %s",
            file->version, file->gpu, file->driver, file->cuda, file->date),
        arena_printf(arena, "measure/%s/%s", file->gpu, file->date));
    return fit_files_write(path, from, &hw_gpu_table, &now, diag);
}
