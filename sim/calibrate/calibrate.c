#include "calibrate/calibrate.h"

#include "calibrate/fit_gemm.h"
#include "base/units.h"
#include "calibrate/streams.h"

#include <math.h>
#include <string.h>

enum { FIT_H100, FIT_V100 }; /* into gemm_cases */

/* Which rows stand for a GPU: its own where there are any. */
struct recipe {
    const char *gpu;
    const char *stream; /* rows of hbm.csv; their share of the datasheet's bandwidth is taken over */
    double stream_Bps;  /* datasheet bandwidth of that GPU where it has no file of its own; 0: its bandwidth is gpu's */
    const char *launch; /* rows of launch.csv */
    const char *best;   /* rows of mamf.csv that set efficiencies, or NULL */
    enum { GEMM_FROM_FIT, GEMM_TRANSFERRED } gemm;
    int fit; /* GEMM_FROM_FIT: which */
};
static const struct recipe recipes[CALIBRATE_GPUS] = {
    {"a100-sxm4-40gb", "a100-sxm4-40gb", 0, "a100-sxm4-80gb", "a100-sxm4-80gb", GEMM_TRANSFERRED, 0},
    {"a100-sxm4-80gb", "a100-sxm4-80gb", 0, "a100-sxm4-80gb", "a100-sxm4-80gb", GEMM_TRANSFERRED, 0},
    /* H100 PCIe has HBM2e at 2 TB/s (datasheet): the nearest GPU with stream rows */
    {"h100-sxm5-80gb", "h100-pcie-80gb", 2e12, "h200-sxm-141gb", "h100-sxm5-80gb", GEMM_FROM_FIT, FIT_H100},
    {"h200-sxm-141gb", "h200-sxm-141gb", 0, "h200-sxm-141gb", "h200-sxm-141gb", GEMM_FROM_FIT, FIT_H100},
    {"v100-sxm2-16gb", "v100-sxm2-16gb", 0, "a100-sxm4-80gb", NULL, GEMM_FROM_FIT, FIT_V100},
    {"v100-sxm2-32gb", "v100-sxm2-16gb", 0, "a100-sxm4-80gb", NULL, GEMM_FROM_FIT, FIT_V100},
};
const char *const calibrate_gpus[CALIBRATE_GPUS] = {
    "a100-sxm4-40gb", "a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "v100-sxm2-16gb", "v100-sxm2-32gb"};

/* What every GPU's numbers may be taken from: read and fitted once. */
struct basis {
    const char *measured, *gpus; /* folders */
    struct arena *arena;
    struct gemm_rows rows[GEMM_CASES];
    struct hw_gpu fitted[GEMM_CASES];
};

static const char *measured_path(const struct basis *basis, const char *file)
{
    return arena_printf(basis->arena, "%s/%s", basis->measured, file);
}

static enum status load_filed(struct hw_gpu *out, const struct basis *basis, const char *gpu, struct diag *diag)
{
    return hw_load_gpu(out, arena_printf(basis->arena, "%s/%s.yaml", basis->gpus, gpu), basis->arena, diag);
}

static void basis_release(struct basis *basis)
{
    for (int i = 0; i < GEMM_CASES; i++)
        vec_free(&basis->rows[i].list);
}

static enum status basis_load(struct basis *basis, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < GEMM_CASES && status == STATUS_OK; i++) {
        const struct gemm_case *which = &gemm_cases[i];
        struct hw_gpu filed;
        status = load_filed(&filed, basis, which->gpu, diag);
        if (status == STATUS_OK)
            status = gemm_rows_load(&basis->rows[i], measured_path(basis, "gemm.csv"), which->gpu, diag);
        if (status == STATUS_OK)
            status = fit_gemm(&basis->fitted[i], &filed, which, &basis->rows[i], diag);
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
    enum status status = best_gemm_load(&best, measured_path(basis, "mamf.csv"), best_gpu, math, diag);
    if (status == STATUS_OK)
        gpu->gemm[math].efficiency.value = best_gemm_efficiency(&best, gpu);
    return status;
}

static enum status transfer_gemm(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    const struct hw_gpu *h100 = &basis->fitted[FIT_H100], *v100 = &basis->fitted[FIT_V100];
    struct hw_gemm *bf16 = &gpu->gemm[DTYPE_BF16];
    gpu->gemm_floor.value = sqrt(h100->gemm_floor.value * v100->gemm_floor.value);
    take_over(gpu, DTYPE_BF16, v100, DTYPE_FP16);
    double k_overhead = bf16->k_overhead.value, load = bf16->load_bandwidth.value;
    take_over(gpu, DTYPE_BF16, h100, DTYPE_BF16);
    bf16->k_overhead.value = sqrt(bf16->k_overhead.value * k_overhead);
    bf16->load_bandwidth.value = sqrt(bf16->load_bandwidth.value * load);
    enum status status = solve_efficiency(gpu, DTYPE_BF16, basis, recipe->best, diag);
    take_over(gpu, DTYPE_TF32, h100, DTYPE_TF32);
    gpu->gemm[DTYPE_TF32].efficiency.value = bf16->efficiency.value;
    return status;
}

static enum status compute_gemm(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (recipe->gemm == GEMM_TRANSFERRED) {
        status = transfer_gemm(gpu, recipe, basis, diag);
    } else {
        const struct hw_gpu *fitted = &basis->fitted[recipe->fit];
        gpu->gemm_floor = fitted->gemm_floor;
        for (int i = 0; i < 2; i++) {
            enum dtype math = gemm_cases[recipe->fit].math[i];
            struct quantity peak = gpu->gemm[math].peak;
            gpu->gemm[math] = fitted->gemm[math];
            gpu->gemm[math].peak = peak;
        }
    }
    if (quantity_is_set(gpu->gemm[DTYPE_BF16].peak)) { /* Ampere and Hopper */
        take_over(gpu, DTYPE_FP16, gpu, DTYPE_BF16);
        take_over(gpu, DTYPE_FP8, gpu, DTYPE_BF16);
        take_over(gpu, DTYPE_FP32, &basis->fitted[FIT_V100], DTYPE_FP32);
    }
    if (status == STATUS_OK && quantity_is_set(gpu->gemm[DTYPE_FP8].peak))
        status = solve_efficiency(gpu, DTYPE_FP8, basis, recipe->best, diag);
    return status;
}

static enum status compute(struct hw_gpu *gpu, const struct hw_gpu *filed, const struct recipe *recipe,
    const struct basis *basis, struct diag *diag)
{
    *gpu = *filed;
    struct stream_rates rates;
    enum status status = stream_rates_load(&rates, measured_path(basis, "hbm.csv"), recipe->stream, diag);
    if (status)
        return status;
    double peak_Bps = recipe->stream_Bps > 0 ? recipe->stream_Bps : gpu->hbm_bandwidth.value;
    gpu->hbm_efficiency.value = rates.bandwidth_Bps / peak_Bps;
    gpu->memory_sms.value = rates.sms_share * gpu->sms.value;
    status = launch_floor_load(&gpu->kernel_floor.value, measured_path(basis, "launch.csv"), recipe->launch, diag);
    if (status == STATUS_OK && strcmp(gpu->arch, "Hopper") == 0) {
        double flops = 0;
        status = attention_rate_load(&flops, measured_path(basis, "attention.csv"), "h100-sxm5-80gb", diag);
        gpu->attention_efficiency.value = flops / gpu->gemm[DTYPE_FP16].peak.value;
    }
    return status ? status : compute_gemm(gpu, recipe, basis, diag);
}

static const struct recipe *find_recipe(const char *gpu)
{
    for (int i = 0; i < CALIBRATE_GPUS; i++)
        if (strcmp(recipes[i].gpu, gpu) == 0)
            return &recipes[i];
    BUG_IF(true, "no recipe for GPU '%s'", gpu);
    return NULL;
}

enum status calibrate_gpu(struct hw_gpu *as_filed, struct hw_gpu *computed, const char *gpu,
    const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    enum status status = load_filed(as_filed, &basis, gpu, diag);
    if (status == STATUS_OK)
        status = basis_load(&basis, diag);
    if (status == STATUS_OK)
        status = compute(computed, as_filed, find_recipe(gpu), &basis, diag);
    basis_release(&basis);
    return status;
}

/* ---- the report
 * ------------------------------------------------------------------------------------------------------ */

static void print_number(FILE *out, const char *format, const char *name, struct quantity filed,
    struct quantity computed, enum dimension dimension)
{
    char in_file[64], again[64], error[64] = "";
    quantity_format(in_file, sizeof in_file, filed.value, dimension);
    quantity_format(again, sizeof again, computed.value, dimension);
    if (computed.kind == QUANTITY_FITTED)
        quantity_format(error, sizeof error, computed.std_error, dimension);
    fprintf(out, "  %-5s %-20s %14s %14s%s%s\n", format, name, in_file, again, *error ? "  +- " : "", error);
}

static void print_gpu(FILE *out, const char *name, const struct hw_gpu *filed, const struct hw_gpu *computed)
{
    fprintf(out, "%s\n  %-26s %14s %14s\n", name, "", "in the file", "computed");
    print_number(out, "", "hbm_efficiency", filed->hbm_efficiency, computed->hbm_efficiency, DIM_FRACTION);
    print_number(out, "", "memory_sms", filed->memory_sms, computed->memory_sms, DIM_NONE);
    print_number(out, "", "kernel_floor", filed->kernel_floor, computed->kernel_floor, DIM_SECONDS);
    print_number(out, "", "gemm_floor", filed->gemm_floor, computed->gemm_floor, DIM_SECONDS);
    print_number(
        out, "", "attention_efficiency", filed->attention_efficiency, computed->attention_efficiency, DIM_FRACTION);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const struct hw_gemm *a = &filed->gemm[i], *b = &computed->gemm[i];
        if (!quantity_is_set(a->peak))
            continue;
        print_number(out, dtype_names[i], "efficiency", a->efficiency, b->efficiency, DIM_FRACTION);
        print_number(out, dtype_names[i], "k_overhead", a->k_overhead, b->k_overhead, DIM_NONE);
        print_number(out, dtype_names[i], "load_bandwidth", a->load_bandwidth, b->load_bandwidth, DIM_BYTES_PER_S);
    }
}

static void print_errors(FILE *out, const struct basis *basis)
{
    fprintf(out, "GEMM model: |model / measured - 1|\n  %-16s %-5s %-9s %5s %8s %8s\n", "gpu", "", "rows", "n",
        "median", "p90");
    for (int i = 0; i < GEMM_CASES; i++)
        for (int j = 0; j < 2; j++)
            for (int use = 0; use < GEMM_USE_COUNT; use++) {
                enum dtype math = gemm_cases[i].math[j];
                struct gemm_error error = gemm_error(&basis->fitted[i], math, (enum gemm_use)use, &basis->rows[i]);
                if (error.n > 0)
                    fprintf(out, "  %-16s %-5s %-9s %5d %6.1f %% %6.1f %%\n", gemm_cases[i].gpu, dtype_names[math],
                        gemm_use_names[use], error.n, 100 * error.median, 100 * error.p90);
            }
}

enum status calibrate_print(
    FILE *out, const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    enum status status = basis_load(&basis, diag);
    for (int i = 0; i < CALIBRATE_GPUS && status == STATUS_OK; i++) {
        struct hw_gpu filed, computed;
        status = load_filed(&filed, &basis, recipes[i].gpu, diag);
        if (status == STATUS_OK)
            status = compute(&computed, &filed, &recipes[i], &basis, diag);
        if (status == STATUS_OK)
            print_gpu(out, recipes[i].gpu, &filed, &computed);
    }
    if (status == STATUS_OK)
        print_errors(out, &basis);
    basis_release(&basis);
    return status;
}
