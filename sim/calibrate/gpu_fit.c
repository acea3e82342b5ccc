#include "calibrate/gpu_fit.h"

#include "calibrate/gpu_fit_basis.h"
#include "calibrate/gpu_tables.h"
#include "calibrate/kernels_fit.h"
#include "kernel/attention.h"

#include <math.h>
#include <string.h>

/* Which rows stand for a GPU: its own where there are any. */
struct recipe {
    const char *gpu;
    const char *stream; /* rows of hbm.csv; their share of the datasheet's bandwidth is taken over. NULL: kernels say */
    double stream_Bps;  /* datasheet bandwidth of that GPU where it has no file; 0: its bandwidth is gpu's */
    const char *launch; /* rows of launch.csv */
    const char *attention; /* rows of attention.csv, or NULL: kernels say, or it is assumed */
    const char *kernels;   /* rows of kernels.csv: GEMMs of fp16 and bf16 and attention, or NULL */
    const char *best;      /* rows of mamf.csv that set fp8's efficiency, or NULL */
    int fit;               /* of gemm_cases: whose GEMM numbers it takes that kernels does not say; NO_FIT */
    bool cudnn;            /* of attention's rows cuDNN's, forward and backward; else FlashAttention-2's */
    bool scaled;           /* fit is of other SMs: scaled with the peak, bf16's efficiency by best, too */
};
enum { FIT_H100, FIT_V100, NO_FIT = -1 }; /* into gemm_cases */
static const struct recipe recipes[GPU_FIT_GPUS] = {
    {.gpu = "a100-sxm4-40gb",
        .stream = "a100-sxm4-40gb",
        .launch = "a100-sxm4-80gb",
        .kernels = "a100-sxm4-80gb",
        .fit = NO_FIT},
    {.gpu = "a100-sxm4-80gb",
        .stream = "a100-sxm4-80gb",
        .launch = "a100-sxm4-80gb",
        .kernels = "a100-sxm4-80gb",
        .fit = NO_FIT},
    {.gpu = "b200-sxm-180gb",
        .stream = "h100-pcie-80gb",
        .stream_Bps = 2e12,
        .launch = "h200-sxm-141gb",
        .attention = "gb200-186gb",
        .cudnn = true,
        .best = "b200-sxm-180gb",
        .scaled = true,
        .fit = FIT_H100},
    {.gpu = "gb200-186gb",
        .stream = "h100-pcie-80gb",
        .stream_Bps = 2e12,
        .launch = "h200-sxm-141gb",
        .attention = "gb200-186gb",
        .cudnn = true,
        .best = "gb200-186gb",
        .scaled = true,
        .fit = FIT_H100},
    {.gpu = "gh200-96gb",
        .launch = "h200-sxm-141gb",
        .kernels = "gh200-96gb",
        .best = "h100-sxm5-80gb",
        .fit = FIT_H100},
    /* H100 PCIe has HBM2e at 2 TB/s (datasheet): the nearest GPU with stream rows */
    {.gpu = "h100-sxm5-80gb",
        .stream = "h100-pcie-80gb",
        .stream_Bps = 2e12,
        .launch = "h200-sxm-141gb",
        .attention = "h100-sxm5-80gb",
        .best = "h100-sxm5-80gb",
        .fit = FIT_H100},
    {.gpu = "h200-sxm-141gb",
        .stream = "h200-sxm-141gb",
        .launch = "h200-sxm-141gb",
        .attention = "h100-sxm5-80gb",
        .best = "h200-sxm-141gb",
        .fit = FIT_H100},
    {.gpu = "v100-sxm2-16gb", .stream = "v100-sxm2-16gb", .launch = "a100-sxm4-80gb", .fit = FIT_V100},
    {.gpu = "v100-sxm2-32gb", .stream = "v100-sxm2-16gb", .launch = "a100-sxm4-80gb", .fit = FIT_V100},
};
const char *const gpu_fit_names[GPU_FIT_GPUS] = {"a100-sxm4-40gb", "a100-sxm4-80gb", "b200-sxm-180gb", "gb200-186gb",
    "gh200-96gb", "h100-sxm5-80gb", "h200-sxm-141gb", "v100-sxm2-16gb", "v100-sxm2-32gb"};

const char *basis_table(const struct basis *basis, const char *file)
{
    return arena_printf(basis->arena, "%s/%s", basis->measured, file);
}

static enum status load_filed(struct hw_gpu *out, const struct basis *basis, const char *gpu, struct diag *diag)
{
    enum status status =
        hw_load_gpu(out, arena_printf(basis->arena, "%s/%s.yaml", basis->gpus, gpu), basis->arena, diag);
    hw_clear_training_rates(out);
    return status;
}

void basis_release(struct basis *basis)
{
    for (int i = 0; i < GEMM_CASES; i++)
        vec_free(&basis->rows[i].list);
}

enum status basis_load(struct basis *basis, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < GEMM_CASES && status == STATUS_OK; i++) {
        const struct gemm_case *which = &gemm_cases[i];
        struct hw_gpu filed;
        status = load_filed(&filed, basis, which->gpu, diag);
        if (status == STATUS_OK)
            status = gemm_rows_load(&basis->rows[i], basis_table(basis, "gemm.csv"), which->gpu, diag);
        if (status == STATUS_OK)
            status = gemm_fit_solve(&basis->fitted[i], &filed, which, &basis->rows[i], diag);
    }
    return status;
}

/* Take over the numbers of `math` on another GPU, where this one has a peak in `to`; load_bandwidth scales with the
 * balance. */
static void take_over(struct hw_gpu *gpu, enum dtype to, const struct hw_gpu *from, enum dtype math)
{
    struct hw_gemm *gemm = &gpu->gemm[to];
    const struct hw_gemm *other = &from->gemm[math];
    if (!quantity_is_set(gemm->peak))
        return;
    gemm->efficiency.value = other->efficiency.value;
    gemm->k_overhead.value = other->k_overhead.value;
    gemm->load_bandwidth.value =
        other->load_bandwidth.value / gemm_balanced_load_Bps(other, math) * gemm_balanced_load_Bps(gemm, to);
}

/* The efficiency of a format from the best product found in it. */
static enum status solve_efficiency(
    struct hw_gpu *gpu, enum dtype math, const struct basis *basis, const char *best_gpu, struct diag *diag)
{
    struct best_gemm best;
    enum status status = best_gemm_load(&best, basis_table(basis, "mamf.csv"), best_gpu, math, diag);
    if (status == STATUS_OK)
        gpu->gemm[math].efficiency.value = best_gemm_efficiency(&best, gpu);
    return status;
}

/* The tensor cores of Ampere take tf32 as they take bf16, at half the rate: operands of twice the bytes pass at the
 * same B/s, and prologue and epilogue take the time of half as many elements. */
static void take_over_tf32(struct hw_gpu *gpu)
{
    struct hw_gemm *tf32 = &gpu->gemm[DTYPE_TF32];
    const struct hw_gemm *bf16 = &gpu->gemm[DTYPE_BF16];
    tf32->efficiency.value = bf16->efficiency.value;
    tf32->k_overhead.value = bf16->k_overhead.value * tf32->peak.value / bf16->peak.value;
    tf32->load_bandwidth.value = bf16->load_bandwidth.value;
}

/* Of one of gemm_cases: its formats, gemm_floor and row_gap. */
static void take_fit(struct hw_gpu *gpu, const struct basis *basis, int fit)
{
    const struct hw_gpu *fitted = &basis->fitted[fit];
    gpu->gemm_floor = fitted->gemm_floor;
    gpu->row_gap = fitted->row_gap;
    for (int i = 0; i < 2; i++) {
        enum dtype math = gemm_cases[fit].math[i];
        struct quantity peak = gpu->gemm[math].peak;
        gpu->gemm[math] = fitted->gemm[math];
        gpu->gemm[math].peak = peak;
    }
}

/* Of other SMs (Blackwell of Hopper): its numbers by the peaks, the efficiency from the best product found. */
static enum status take_scaled(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    const struct hw_gpu *fitted = &basis->fitted[recipe->fit];
    gpu->gemm_floor = fitted->gemm_floor;
    take_over(gpu, DTYPE_BF16, fitted, DTYPE_BF16);
    enum status status = solve_efficiency(gpu, DTYPE_BF16, basis, recipe->best, diag);
    take_over_tf32(gpu);
    return status;
}

static struct quantity number_of(const struct kernels_fit *fit, const char *name)
{
    for (int i = 0; i < KERNELS_GROUPS; i++)
        for (int j = 0; j < fit->groups[i].n; j++)
            if (strcmp(fit->groups[i].name[j], name) == 0)
                return fit->groups[i].value[j];
    return (struct quantity){0};
}

static void take_number(struct quantity *to, const struct kernels_fit *fit, const char *name)
{
    struct quantity number = number_of(fit, name);
    if (quantity_is_set(number))
        *to = number;
}

/* What the operators of a GPT layer say: products of fp16, which are bf16's, and attention. */
static void take_kernels(struct hw_gpu *gpu, const struct kernels_fit *fit)
{
    static const enum dtype formats[] = {DTYPE_FP16, DTYPE_BF16};
    take_number(&gpu->gemm_floor, fit, "gemm_floor");
    for (int i = 0; i < 2; i++) {
        struct hw_gemm *gemm = &gpu->gemm[formats[i]];
        take_number(&gemm->efficiency, fit, "efficiency");
        take_number(&gemm->k_overhead, fit, "k_overhead");
        take_number(&gemm->load_bandwidth, fit, "load_bandwidth");
    }
    take_number(&gpu->attention_efficiency, fit, "attention_efficiency");
    take_number(&gpu->attention_overhead, fit, "attention_overhead");
    take_number(&gpu->attention_softmax, fit, "attention_softmax");
    take_number(&gpu->attention_wide, fit, "attention_wide");
    take_number(&gpu->attention_backward, fit, "attention_backward");
}

static enum status solve_kernels(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    struct kernels_fit fit = {0};
    struct hw_gpu measured;
    enum status status = load_filed(&measured, basis, recipe->kernels, diag);
    if (status == STATUS_OK)
        status = kernels_fit_solve(&fit, &measured, recipe->kernels, basis_table(basis, "kernels.csv"), diag);
    if (status == STATUS_OK) {
        take_kernels(gpu, &fit);
        if (!recipe->stream)
            take_number(&gpu->hbm_efficiency, &fit, "hbm_efficiency");
    }
    kernels_fit_free(&fit);
    return status;
}

static enum status compute_gemm(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (recipe->scaled)
        status = take_scaled(gpu, recipe, basis, diag);
    else if (recipe->fit != NO_FIT)
        take_fit(gpu, basis, recipe->fit);
    if (recipe->kernels)
        status = solve_kernels(gpu, recipe, basis, diag);
    if (status == STATUS_OK && recipe->kernels && recipe->fit == NO_FIT)
        take_over_tf32(gpu);
    if (quantity_is_set(gpu->gemm[DTYPE_BF16].peak)) { /* Ampere and later */
        if (!recipe->kernels)
            take_over(gpu, DTYPE_FP16, gpu, DTYPE_BF16);
        take_over(gpu, DTYPE_FP8, gpu, DTYPE_BF16);
        take_over(gpu, DTYPE_FP32, &basis->fitted[FIT_V100], DTYPE_FP32);
    }
    if (status == STATUS_OK && quantity_is_set(gpu->gemm[DTYPE_FP8].peak))
        status = solve_efficiency(gpu, DTYPE_FP8, basis, recipe->best, diag);
    return status;
}

static const struct recipe *find_recipe(const char *gpu)
{
    for (int i = 0; i < GPU_FIT_GPUS; i++)
        if (strcmp(recipes[i].gpu, gpu) == 0)
            return &recipes[i];
    BUG_IF(true, "no recipe for GPU '%s'", gpu);
    return NULL;
}

static enum status compute_attention(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    struct attention_fit fit = {0}, backward = {0};
    struct hw_gpu measured;
    const char *table = basis_table(basis, "attention.csv");
    const char *kernel = recipe->cudnn ? "cudnn 9.22 forward" : "flash attention 2";
    enum status status = attention_fit_load(&fit, table, recipe->attention, kernel, diag);
    if (status == STATUS_OK && recipe->cudnn)
        status = attention_fit_load(&backward, table, recipe->attention, "cudnn 9.22 backward", diag);
    if (status == STATUS_OK)
        status = load_filed(&measured, basis, recipe->attention, diag);
    if (status != STATUS_OK)
        return status;
    double peak = measured.gemm[DTYPE_FP16].peak.value;
    if (recipe->cudnn)
        gpu->attention_backward.value = backward.flops / fit.flops;
    gpu->attention_efficiency.value = fit.flops / peak * attention_softmax_factor(gpu, ATTENTION_FIT_HEAD);
    gpu->attention_overhead = (struct quantity){
        .value = fit.overhead, .std_error = fit.overhead_std_error, .kind = QUANTITY_FITTED, .source = "attention.csv"};
    return STATUS_OK;
}

enum status basis_gpu(
    struct hw_gpu *as_filed, struct hw_gpu *computed, const struct basis *basis, const char *gpu, struct diag *diag)
{
    const struct recipe *recipe = find_recipe(gpu);
    enum status status = load_filed(as_filed, basis, gpu, diag);
    *computed = *as_filed;
    if (status == STATUS_OK && recipe->stream) {
        struct stream_rates rates;
        status = stream_rates_load(&rates, basis_table(basis, "hbm.csv"), recipe->stream, diag);
        double peak_Bps = recipe->stream_Bps > 0 ? recipe->stream_Bps : computed->hbm_bandwidth.value;
        computed->hbm_efficiency.value = rates.bandwidth_Bps / peak_Bps;
    }
    if (status == STATUS_OK)
        status =
            launch_floor_load(&computed->kernel_floor.value, basis_table(basis, "launch.csv"), recipe->launch, diag);
    if (status == STATUS_OK && recipe->attention)
        status = compute_attention(computed, recipe, basis, diag);
    return status ? status : compute_gemm(computed, recipe, basis, diag);
}

enum status gpu_fit_solve(struct hw_gpu *as_filed, struct hw_gpu *computed, const char *gpu,
    const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    enum status status = basis_load(&basis, diag);
    if (status == STATUS_OK)
        status = basis_gpu(as_filed, computed, &basis, gpu, diag);
    basis_release(&basis);
    return status;
}
