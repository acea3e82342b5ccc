#include "base/units.h"
#include "calibrate/gpu_fit_basis.h"
#include "calibrate/gpu_fit.h"
#include "calibrate/norm_rates.h"
#include "calibrate/gpu_tables.h"

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

void basis_print_number(FILE *out, const char *format, const char *name, struct quantity filed,
    struct quantity computed, enum dimension dimension)
{
    if (quantity_is_set(filed) || quantity_is_set(computed))
        print_number(out, format, name, filed, computed, dimension);
}

void basis_print_gpu(FILE *out, const char *name, const struct hw_gpu *filed, const struct hw_gpu *computed)
{
    fprintf(out, "%s\n  %-26s %14s %14s\n", name, "", "in the file", "computed");
    print_number(out, "", "hbm_efficiency", filed->hbm_efficiency, computed->hbm_efficiency, DIM_FRACTION);
    print_number(out, "", "kernel_floor", filed->kernel_floor, computed->kernel_floor, DIM_SECONDS);
    print_number(out, "", "gemm_floor", filed->gemm_floor, computed->gemm_floor, DIM_SECONDS);
    basis_print_number(out, "", "row_gap", filed->row_gap, computed->row_gap, DIM_BYTES);
    print_number(
        out, "", "attention_efficiency", filed->attention_efficiency, computed->attention_efficiency, DIM_FRACTION);
    print_number(out, "", "attention_overhead", filed->attention_overhead, computed->attention_overhead, DIM_NONE);
    basis_print_number(
        out, "", "attention_backward", filed->attention_backward, computed->attention_backward, DIM_FRACTION);
    basis_print_number(out, "", "attention_wide", filed->attention_wide, computed->attention_wide, DIM_FRACTION);
    basis_print_number(out, "", "attention_softmax", filed->attention_softmax, computed->attention_softmax, DIM_NONE);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const struct hw_gemm *a = &filed->gemm[i], *b = &computed->gemm[i];
        if (!quantity_is_set(a->peak))
            continue;
        print_number(out, dtype_names[i], "efficiency", a->efficiency, b->efficiency, DIM_FRACTION);
        print_number(out, dtype_names[i], "k_overhead", a->k_overhead, b->k_overhead, DIM_NONE);
        print_number(out, dtype_names[i], "load_bandwidth", a->load_bandwidth, b->load_bandwidth, DIM_BYTES_PER_S);
        basis_print_number(out, dtype_names[i], "tile_share", a->tile_share, b->tile_share, DIM_FRACTION);
        basis_print_number(
            out, dtype_names[i], "single_efficiency", a->single_efficiency, b->single_efficiency, DIM_FRACTION);
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

/* A rate that was not fitted: the best bf16 product that a search found on H100. */
static enum status print_best(FILE *out, const struct basis *basis, struct diag *diag)
{
    const struct hw_gpu *gpu = &basis->fitted[0];
    struct best_gemm best;
    enum status status =
        best_gemm_load(&best, basis_table(basis, "mamf.csv"), gemm_cases[0].gpu, gemm_cases[0].math[0], diag);
    if (status)
        return status;
    double model = best.work.flop / kernel_duration_s(&best.work, gpu, kernel_whole_gpu(gpu));
    char in_table[64], by_model[64];
    fprintf(out, "best product of %s, not fitted: %s measured, %s by the model\n", gemm_cases[0].gpu,
        quantity_format(in_table, sizeof in_table, best.flops, DIM_FLOP_PER_S),
        quantity_format(by_model, sizeof by_model, model, DIM_FLOP_PER_S));
    return STATUS_OK;
}

/* The stream model on a GPU whose norms were measured. */
static enum status print_norms(FILE *out, struct basis *basis, struct diag *diag)
{
    static const char name[] = "h200-sxm-141gb";
    struct hw_gpu filed, gpu;
    struct norm_rate rates[NORM_RATES];
    enum status status = basis_gpu(&filed, &gpu, basis, name, diag);
    if (status == STATUS_OK)
        status = norm_rates_load(rates, basis_table(basis, "norm.csv"), name, &gpu, diag);
    if (status != STATUS_OK)
        return status;
    fprintf(out, "RMS norms of %s beyond L2: share of the streaming rate, errors on shapes held out\n", name);
    fprintf(out, "  %-13s %-9s %6s %7s %9s %8s %8s\n", "", "", "fitted", "share", "held out", "median", "most");
    for (int i = 0; i < NORM_RATES; i++)
        fprintf(out, "  %-13s %-9s %6d %7.2f %9d %6.1f %% %6.1f %%\n", rates[i].library, rates[i].pass,
            rates[i].n_fitted, rates[i].share, rates[i].n_held_out, 100 * rates[i].median, 100 * rates[i].most);
    return STATUS_OK;
}

enum status gpu_fit_print(
    FILE *out, const char *measured_folder, const char *gpus_folder, struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    enum status status = basis_load(&basis, diag);
    for (int i = 0; i < GPU_FIT_GPUS && status == STATUS_OK; i++) {
        struct hw_gpu filed, computed;
        status = basis_gpu(&filed, &computed, &basis, gpu_fit_names[i], diag);
        if (status == STATUS_OK)
            basis_print_gpu(out, gpu_fit_names[i], &filed, &computed);
    }
    if (status == STATUS_OK) {
        print_errors(out, &basis);
        status = print_best(out, &basis, diag);
        if (status == STATUS_OK)
            status = print_norms(out, &basis, diag);
    }
    basis_release(&basis);
    return status;
}
