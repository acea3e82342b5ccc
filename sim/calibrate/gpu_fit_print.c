#include "base/units.h"
#include "calibrate/gpu_fit_basis.h"
#include "calibrate/gpu_fit.h"
#include "calibrate/norm_rates.h"
#include "calibrate/gpu_tables.h"

/* What gpu_fit_solve() computes. */
static const char *const computed_keys[] = {"hbm_efficiency", "kernel_floor", "gemm_floor", "row_gap",
    "attention_efficiency", "attention_overhead", "attention_backward", "attention_wide", "attention_softmax",
    "efficiency", "k_overhead", "load_bandwidth", "tile_share", "single_efficiency", NULL};

static void print_gpu(FILE *out, const char *name, const struct hw_gpu *filed, const struct hw_gpu *computed)
{
    fit_print_head(out, name);
    fit_print_fields(out, &hw_gpu_table, filed, computed, "", computed_keys);
}

static void print_errors(FILE *out, const struct basis *basis)
{
    for (int i = 0; i < GEMM_CASES; i++) {
        fprintf(out, "products of %s\n", gemm_cases[i].gpu);
        for (int j = 0; j < 2; j++)
            for (int use = 0; use < GEMM_USE_COUNT; use++) {
                enum dtype math = gemm_cases[i].math[j];
                fit_print_error(out, dtype_names[math], gemm_use_names[use],
                    gemm_error(&basis->fitted[i], math, (enum gemm_use)use, &basis->rows[i]));
            }
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
            rates[i].n_fitted, rates[i].share, rates[i].held_out.n, 100 * rates[i].held_out.median,
            100 * rates[i].held_out.most);
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
            print_gpu(out, gpu_fit_names[i], &filed, &computed);
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
