#include "base/units.h"
#include "calibrate/direct_fit.h"
#include "calibrate/gpu_fit_basis.h"

static void print_number(FILE *out, const char *format, const char *name, struct quantity filed, struct quantity fitted,
    enum dimension dimension)
{
    if (fitted.kind == QUANTITY_FITTED || fitted.kind == QUANTITY_MEASURED)
        basis_print_number(out, format, name, filed, fitted, dimension);
}

static void print_error(FILE *out, const char *what, const char *format, struct direct_error error)
{
    if (error.n > 0)
        fprintf(out, "  held out: %-13s %-5s %5d rows  median %5.1f %%  p90 %5.1f %%\n", what, format, error.n,
            100 * error.median, 100 * error.p90);
}

static void print_gpu(FILE *out, const char *name, const struct hw_gpu *filed, const struct direct_fit *fit)
{
    const struct hw_gpu *gpu = &fit->gpu;
    fprintf(out, "%s\n  %-26s %14s %14s\n", name, "", "in the file", "fitted");
    print_number(out, "", "hbm_efficiency", filed->hbm_efficiency, gpu->hbm_efficiency, DIM_FRACTION);
    print_number(out, "", "cast_floor", (struct quantity){0}, fit->cast_floor_s, DIM_SECONDS);
    print_number(out, "", "amax_floor", (struct quantity){0}, fit->amax_floor_s, DIM_SECONDS);
    print_number(out, "", "amax_share", (struct quantity){0}, fit->amax_share, DIM_FRACTION);
    if (fit->has_format[DTYPE_BF16])
        print_number(out, "", "gemm_floor", filed->gemm_floor, gpu->gemm_floor, DIM_SECONDS);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const struct hw_gemm *a = &filed->gemm[i], *b = &gpu->gemm[i];
        if (fit->has_format[i]) {
            print_number(out, dtype_names[i], "efficiency", a->efficiency, b->efficiency, DIM_FRACTION);
            print_number(out, dtype_names[i], "k_overhead", a->k_overhead, b->k_overhead, DIM_NONE);
            print_number(out, dtype_names[i], "load_bandwidth", a->load_bandwidth, b->load_bandwidth, DIM_BYTES_PER_S);
            print_number(out, dtype_names[i], "settled", filed->gemm_sustained, fit->settled[i], DIM_FRACTION);
        }
        print_number(out, dtype_names[i], "grouped_share", (struct quantity){0}, fit->grouped_share[i], DIM_FRACTION);
        print_number(out, dtype_names[i], "moved_share", (struct quantity){0}, fit->moved_share[i], DIM_FRACTION);
        print_number(out, dtype_names[i], "layer_floor", (struct quantity){0}, fit->layer_floor_s[i], DIM_SECONDS);
    }
    if (fit->has[DIRECT_ATTENTION]) {
        print_number(
            out, "", "attention_efficiency", filed->attention_efficiency, gpu->attention_efficiency, DIM_FRACTION);
        print_number(out, "", "attention_overhead", filed->attention_overhead, gpu->attention_overhead, DIM_NONE);
        print_number(out, "", "attention_softmax", filed->attention_softmax, gpu->attention_softmax, DIM_NONE);
        print_number(out, "", "attention_wide", filed->attention_wide, gpu->attention_wide, DIM_FRACTION);
        print_number(out, "", "attention_backward", filed->attention_backward, gpu->attention_backward, DIM_FRACTION);
    }
    for (int i = 0; i < DTYPE_COUNT; i++)
        print_error(out, direct_kind_names[DIRECT_PRODUCT], dtype_names[i], fit->product_error[i]);
    for (int i = DIRECT_ATTENTION; i < DIRECT_KIND_COUNT; i++)
        print_error(out, direct_kind_names[i], "", fit->error[i]);
}

enum status direct_fit_print(
    FILE *out, const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    const char *table = arena_printf(arena, "%s/direct.csv", measured_folder);
    enum status status = STATUS_OK;
    for (int i = 0; i < DIRECT_GPUS && status == STATUS_OK; i++) {
        struct hw_gpu filed;
        struct direct_fit fit = {0};
        status = hw_load_gpu(&filed, arena_printf(arena, "%s/%s.yaml", gpus_folder, direct_gpus[i]), arena, diag);
        if (status == STATUS_OK)
            status = direct_fit_solve(&fit, &filed, direct_gpus[i], table, diag);
        if (status == STATUS_OK)
            print_gpu(out, direct_gpus[i], &filed, &fit);
        direct_fit_free(&fit);
    }
    return status;
}
