/* Every computed number of topologies/gpus, by recipes of which rows stand for which GPU.
 * basis_load() fits the two GEMM cases (H100, V100) that other GPUs take numbers from; basis_gpu()
 * then makes one GPU: hbm_efficiency from hbm.csv, kernel_floor from launch.csv, attention, then
 * products, in the order case fit, kernels.csv, direct.csv, so that a later source overwrites an
 * earlier one. TF32 of A100 and Blackwell follows from BF16, FP16 from BF16 or the reverse, FP32
 * from V100's.
 *
 * What is subtle: a number that comes from another GPU's rows is of kind assumed, which taken()
 * sees to for direct.csv; load_bandwidth goes over as a share of what balances the peak, not as
 * bytes a second. Fits of direct.csv are made once a GPU and kept in the basis, as several recipes
 * ask for the same. All files are read with the rates of training cleared
 * (hw_clear_training_rates()), since rows are of kernels alone. */
#include "calibrate/gpu_fit.h"

#include "base/units.h"
#include "calibrate/gpu_tables.h"
#include "calibrate/kernels_fit.h"
#include "calibrate/norm_rates.h"
#include "kernel/attention.h"
#include "store/answer.h"

#include <math.h>
#include <string.h>

/* The path of a table of the measured folder. */
static const char *basis_table(const struct basis *basis, const char *file)
{
    return arena_printf(basis->arena, "%s/%s", basis->measured, file);
}

static enum status load_filed(
    struct hw_gpu *out, const struct basis *basis, const char *gpu, struct diag *diag)
{
    enum status status = hw_load_gpu(
        out, arena_printf(basis->arena, "%s/%s.yaml", basis->gpus, gpu), basis->arena, diag);
    hw_clear_training_rates(out);
    return status;
}

void basis_release(struct basis *basis)
{
    for (int i = 0; basis->rows && i < basis->recipes.n_gemm; i++)
        vec_free(&basis->rows[i].list);
    for (int i = 0; basis->direct && i < basis->recipes.direct.n; i++)
        direct_fit_free(&basis->direct[i]);
}

enum status basis_load(struct basis *basis, struct diag *diag)
{
    struct recipes *recipes = &basis->recipes;
    enum status status = recipes_load(recipes, basis->arena, diag);
    basis->rows = ARENA_ARRAY(basis->arena, struct gemm_rows, recipes->n_gemm);
    basis->fitted = ARENA_ARRAY(basis->arena, struct hw_gpu, recipes->n_gemm);
    basis->direct = ARENA_ARRAY(basis->arena, struct direct_fit, recipes->direct.n);
    for (int i = 0; i < recipes->n_gemm && status == STATUS_OK; i++) {
        const struct gemm_case *which = &recipes->gemm[i];
        struct hw_gpu filed;
        status = load_filed(&filed, basis, which->gpu, diag);
        if (status == STATUS_OK)
            status =
                gemm_rows_load(&basis->rows[i], basis_table(basis, "gemm.csv"), which->gpu, diag);
        if (status == STATUS_OK)
            status = gemm_fit_solve(&basis->fitted[i], &filed, which, &basis->rows[i], diag);
    }
    return status;
}

/* Take over the numbers of `math` on another GPU, where this one has a peak in `to`; load_bandwidth
 * scales with the balance. */
static void take_over(struct hw_gpu *gpu, enum dtype to, const struct hw_gpu *from, enum dtype math)
{
    struct hw_gemm *gemm = &gpu->gemm[to];
    const struct hw_gemm *other = &from->gemm[math];
    if (!quantity_is_set(gemm->peak))
        return;
    gemm->efficiency.value = other->efficiency.value;
    gemm->k_overhead.value = other->k_overhead.value;
    gemm->load_bandwidth.value = other->load_bandwidth.value / gemm_balanced_load_Bps(other, math) *
                                 gemm_balanced_load_Bps(gemm, to);
}

/* The tensor cores of Ampere take tf32 as they take bf16, at half the rate: operands of twice the
 * bytes pass at the same B/s, and prologue and epilogue take the time of half as many elements. */
static void take_over_tf32(struct hw_gpu *gpu)
{
    struct hw_gemm *tf32 = &gpu->gemm[DTYPE_TF32];
    const struct hw_gemm *bf16 = &gpu->gemm[DTYPE_BF16];
    tf32->efficiency.value = bf16->efficiency.value;
    tf32->k_overhead.value = bf16->k_overhead.value * tf32->peak.value / bf16->peak.value;
    tf32->load_bandwidth.value = bf16->load_bandwidth.value;
}

/* Of one of the fits of products: its formats, gemm_floor and row_gap. */
static void take_fit(struct hw_gpu *gpu, const struct basis *basis, int fit)
{
    const struct hw_gpu *fitted = &basis->fitted[fit];
    gpu->gemm_floor = fitted->gemm_floor;
    gpu->row_gap = fitted->row_gap;
    for (int i = 0; i < 2; i++) {
        enum dtype math = basis->recipes.gemm[fit].math[i];
        struct quantity peak = gpu->gemm[math].peak;
        gpu->gemm[math] = fitted->gemm[math];
        gpu->gemm[math].peak = peak;
    }
}

/* The fit of direct.csv's rows of a GPU, made once. */
static enum status direct_of(
    const struct direct_fit **out, struct basis *basis, const char *gpu, struct diag *diag)
{
    struct direct_fit *fit = &basis->direct[recipes_find(basis->recipes.direct, gpu)];
    struct hw_gpu filed;
    *out = fit;
    if (fit->rows.list.n > 0)
        return STATUS_OK;
    enum status status = load_filed(&filed, basis, gpu, diag);
    return status ? status
                  : direct_fit_solve(fit, &filed, gpu, basis_table(basis, "direct.csv"), diag);
}

/* A number of another GPU's fit, or one that its rows do not determine, is assumed here. */
static struct quantity taken(struct quantity fitted, const struct recipe *recipe, const char *of)
{
    bool own = strcmp(recipe->gpu, of) == 0 && fitted.std_error > 0;
    if (!own)
        fitted.kind = QUANTITY_ASSUMED;
    return fitted;
}

static void take_products(struct hw_gpu *gpu, enum dtype math, const struct recipe *recipe,
    const char *of, const struct direct_fit *fit)
{
    const struct hw_gemm *other = &fit->gpu.gemm[math];
    struct hw_gemm *gemm = &gpu->gemm[math];
    double scale = gemm_balanced_load_Bps(gemm, math) / gemm_balanced_load_Bps(other, math);
    gemm->efficiency = taken(other->efficiency, recipe, of);
    gemm->k_overhead = taken(other->k_overhead, recipe, of);
    gemm->load_bandwidth = taken(other->load_bandwidth, recipe, of);
    gemm->load_bandwidth.value *= scale;
}

/* What kernels say that were measured alone. */
static enum status take_direct(
    struct hw_gpu *gpu, const struct recipe *recipe, struct basis *basis, struct diag *diag)
{
    const struct direct_fit *fit = NULL;
    enum status status = STATUS_OK;
    if (recipe->casts && (status = direct_of(&fit, basis, recipe->casts, diag)) == STATUS_OK)
        gpu->hbm_efficiency = taken(fit->gpu.hbm_efficiency, recipe, recipe->casts);
    if (status == STATUS_OK && recipe->products &&
        (status = direct_of(&fit, basis, recipe->products, diag)) == STATUS_OK) {
        gpu->gemm_floor = taken(fit->gpu.gemm_floor, recipe, recipe->products);
        take_products(gpu, DTYPE_BF16, recipe, recipe->products, fit);
        take_over_tf32(gpu);
    }
    if (status == STATUS_OK && recipe->fp8 &&
        (status = direct_of(&fit, basis, recipe->fp8, diag)) == STATUS_OK)
        take_products(gpu, DTYPE_FP8, recipe, recipe->fp8, fit);
    if (status == STATUS_OK && recipe->fp4 &&
        (status = direct_of(&fit, basis, recipe->fp4, diag)) == STATUS_OK)
        take_products(gpu, DTYPE_FP4, recipe, recipe->fp4, fit);
    if (status != STATUS_OK || !recipe->cudnn)
        return status;
    status = direct_of(&fit, basis, recipe->cudnn, diag);
    gpu->attention_efficiency = taken(fit->gpu.attention_efficiency, recipe, recipe->cudnn);
    gpu->attention_overhead = taken(fit->gpu.attention_overhead, recipe, recipe->cudnn);
    gpu->attention_wide = taken(fit->gpu.attention_wide, recipe, recipe->cudnn);
    gpu->attention_backward = taken(fit->gpu.attention_backward, recipe, recipe->cudnn);
    gpu->attention_backward_overhead =
        taken(fit->gpu.attention_backward_overhead, recipe, recipe->cudnn);
    return status;
}

static void gpu_fit_take_number(struct quantity *to, const struct kernels_fit *fit, const char *key)
{
    for (int i = 0; i < KERNELS_GROUPS; i++)
        for (int j = 0; j < fit->groups[i].parameters.n; j++)
            if (strcmp(fit->groups[i].parameters.at[j].key, key) == 0)
                *to = fit->groups[i].parameters.at[j].fitted;
}

/* What the operators of a GPT layer say: products of fp16, which are bf16's, and attention.
 * gpu_fit_take_number() finds parameters by key over all groups of the fit. */
static void take_kernels(struct hw_gpu *gpu, const struct kernels_fit *fit)
{
    static const enum dtype formats[] = {DTYPE_FP16, DTYPE_BF16};
    gpu_fit_take_number(&gpu->gemm_floor, fit, "gemm_floor");
    for (int i = 0; i < 2; i++) {
        struct hw_gemm *gemm = &gpu->gemm[formats[i]];
        gpu_fit_take_number(&gemm->efficiency, fit, "efficiency");
        gpu_fit_take_number(&gemm->k_overhead, fit, "k_overhead");
        gpu_fit_take_number(&gemm->load_bandwidth, fit, "load_bandwidth");
    }
    gpu_fit_take_number(&gpu->attention_efficiency, fit, "attention_efficiency");
    gpu_fit_take_number(&gpu->attention_overhead, fit, "attention_overhead");
    gpu_fit_take_number(&gpu->attention_softmax, fit, "attention_softmax");
    gpu_fit_take_number(&gpu->attention_wide, fit, "attention_wide");
    gpu_fit_take_number(&gpu->attention_backward, fit, "attention_backward");
}

static enum status solve_kernels(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    struct kernels_fit fit = {0};
    struct hw_gpu measured;
    enum status status = load_filed(&measured, basis, recipe->kernels, diag);
    if (status == STATUS_OK)
        status = kernels_fit_solve(
            &fit, &measured, recipe->kernels, basis_table(basis, "kernels.csv"), diag);
    if (status == STATUS_OK) {
        take_kernels(gpu, &fit);
        if (!recipe->stream)
            gpu_fit_take_number(&gpu->hbm_efficiency, &fit, "hbm_efficiency");
    }
    kernels_fit_free(&fit);
    return status;
}

/* The order matters: each source overwrites what the one before it gave. */
static enum status compute_gemm(
    struct hw_gpu *gpu, const struct recipe *recipe, struct basis *basis, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (recipe->gemm)
        take_fit(gpu, basis, recipes_gemm(&basis->recipes, recipe->gemm));
    if (recipe->kernels)
        status = solve_kernels(gpu, recipe, basis, diag);
    if (status == STATUS_OK && recipe->kernels && !recipe->gemm)
        take_over_tf32(gpu);
    if (status == STATUS_OK)
        status = take_direct(gpu, recipe, basis, diag);
    if (quantity_is_set(gpu->gemm[DTYPE_BF16].peak)) { /* Ampere and later */
        if (!recipe->kernels)
            take_over(gpu, DTYPE_FP16, gpu, DTYPE_BF16);
        take_over(gpu, DTYPE_FP32, &basis->fitted[basis->recipes.n_gemm - 1], DTYPE_FP32);
    }
    return status;
}

static const struct recipe *find_recipe(const struct recipes *recipes, const char *gpu)
{
    for (int i = 0; i < recipes->n_gpus; i++)
        if (strcmp(recipes->gpus[i].gpu, gpu) == 0)
            return &recipes->gpus[i];
    BUG_IF(true, "no recipe for GPU '%s'", gpu);
    return NULL;
}

static enum status compute_attention(
    struct hw_gpu *gpu, const struct recipe *recipe, const struct basis *basis, struct diag *diag)
{
    struct attention_fit fit = {0};
    struct hw_gpu measured;
    const char *table = basis_table(basis, "attention.csv");
    enum status status =
        attention_fit_load(&fit, table, recipe->attention, "flash attention 2", diag);
    if (status == STATUS_OK)
        status = load_filed(&measured, basis, recipe->attention, diag);
    if (status != STATUS_OK)
        return status;
    double peak = measured.gemm[DTYPE_FP16].peak.value;
    gpu->attention_efficiency.value =
        fit.flops / peak * attention_softmax_factor(gpu, ATTENTION_FIT_HEAD);
    gpu->attention_overhead = (struct quantity){.value = fit.overhead,
        .std_error = fit.overhead_std_error,
        .kind = QUANTITY_FITTED,
        .source = "attention.csv"};
    return STATUS_OK;
}

enum status basis_gpu(struct hw_gpu *as_filed, struct hw_gpu *computed, struct basis *basis,
    const char *gpu, struct diag *diag)
{
    const struct recipe *recipe = find_recipe(&basis->recipes, gpu);
    enum status status = load_filed(as_filed, basis, gpu, diag);
    *computed = *as_filed;
    if (status == STATUS_OK && recipe->stream) {
        struct stream_rates rates;
        status = stream_rates_load(&rates, basis_table(basis, "hbm.csv"), recipe->stream, diag);
        computed->hbm_efficiency.value = rates.bandwidth_Bps / computed->hbm_bandwidth.value;
    }
    if (status == STATUS_OK)
        status = launch_floor_load(
            &computed->kernel_floor.value, basis_table(basis, "launch.csv"), recipe->launch, diag);
    if (status == STATUS_OK && recipe->attention)
        status = compute_attention(computed, recipe, basis, diag);
    return status ? status : compute_gemm(computed, recipe, basis, diag);
}

/* What is computed. */
static const char *const computed_keys[] = {"hbm_efficiency", "kernel_floor", "gemm_floor",
    "row_gap", "attention_efficiency", "attention_overhead", "attention_backward", "attention_wide",
    "attention_softmax", "efficiency", "k_overhead", "load_bandwidth", "tile_share",
    "single_efficiency", NULL};

static void gpu_fit_print_gpu(
    FILE *out, const char *name, const struct hw_gpu *filed, const struct hw_gpu *computed)
{
    fit_print_head(out, name);
    fit_print_fields(out, &hw_gpu_table, filed, computed, "", computed_keys);
}

static void gpu_fit_print_errors(FILE *out, const struct basis *basis)
{
    for (int i = 0; i < basis->recipes.n_gemm; i++) {
        fprintf(out, "products of %s\n", basis->recipes.gemm[i].gpu);
        for (int j = 0; j < 2; j++)
            for (int use = 0; use < GEMM_USE_COUNT; use++) {
                enum dtype math = basis->recipes.gemm[i].math[j];
                fit_print_error(out, dtype_names[math], gemm_use_names[use],
                    gemm_error(&basis->fitted[i], math, (enum gemm_use)use, &basis->rows[i]));
            }
    }
}

/* A rate that was not fitted: the best bf16 product that a search found on H100. */
static enum status gpu_fit_print_best(FILE *out, const struct basis *basis, struct diag *diag)
{
    const struct hw_gpu *gpu = &basis->fitted[0];
    const struct gemm_case *first = &basis->recipes.gemm[0];
    struct best_gemm best;
    enum status status =
        best_gemm_load(&best, basis_table(basis, "mamf.csv"), first->gpu, first->math[0], diag);
    if (status)
        return status;
    double model = best.work.flop / kernel_duration_s(&best.work, gpu, kernel_whole_gpu(gpu));
    char in_table[64], by_model[64];
    fprintf(out, "best product of %s, not fitted: %s measured, %s by the model\n", first->gpu,
        quantity_format(in_table, sizeof in_table, best.flops, DIM_FLOP_PER_S),
        quantity_format(by_model, sizeof by_model, model, DIM_FLOP_PER_S));
    return STATUS_OK;
}

/* The stream model on a GPU whose norms were measured. */
static enum status print_norms(FILE *out, struct basis *basis, const char *name, struct diag *diag)
{
    struct hw_gpu filed, gpu;
    struct norm_rate rates[NORM_RATES];
    enum status status = basis_gpu(&filed, &gpu, basis, name, diag);
    if (status == STATUS_OK)
        status = norm_rates_load(rates, basis_table(basis, "norm.csv"), name, &gpu, diag);
    if (status != STATUS_OK)
        return status;
    fprintf(out,
        "RMS norms of %s beyond L2: share of the streaming rate, errors on shapes held out\n",
        name);
    fprintf(out, "  %-13s %-9s %6s %7s %9s %8s %8s\n", "", "", "fitted", "share", "held out",
        "median", "most");
    for (int i = 0; i < NORM_RATES; i++)
        fprintf(out, "  %-13s %-9s %6d %7.2f %9d %6.1f %% %6.1f %%\n", rates[i].library,
            rates[i].pass, rates[i].n_fitted, rates[i].share, rates[i].held_out.n,
            100 * rates[i].held_out.median, 100 * rates[i].held_out.most);
    return STATUS_OK;
}

enum status gpu_fit_print(FILE *out, const char *measured_folder, const char *gpus_folder,
    struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    enum status status = basis_load(&basis, diag);
    for (int i = 0; i < basis.recipes.n_gpus && status == STATUS_OK; i++) {
        struct hw_gpu filed, computed;
        const char *gpu = basis.recipes.gpus[i].gpu;
        status = basis_gpu(&filed, &computed, &basis, gpu, diag);
        if (status == STATUS_OK)
            gpu_fit_print_gpu(out, gpu, &filed, &computed);
    }
    if (status == STATUS_OK) {
        gpu_fit_print_errors(out, &basis);
        status = gpu_fit_print_best(out, &basis, diag);
        for (int i = 0; i < basis.recipes.norms.n && status == STATUS_OK; i++)
            status = print_norms(out, &basis, basis.recipes.norms.list[i], diag);
    }
    basis_release(&basis);
    return status;
}

/* ---- fits of the GEMM model as rows of the database ---- */

static enum status gpu_fit_put_row(struct store_answer *into, const struct gemm_case *which,
    const struct hw_gpu *gpu, const struct gemm_row *row, struct diag *diag)
{
    const struct kernel_work *work = &row->work;
    return store_answer_put(into, "row",
        RECORD_CELLS(cell_text("gpu", which->gpu), cell_text("dtype", dtype_names[work->math]),
            cell_text("use", gemm_use_names[row->use]), cell_int("m", work->m),
            cell_int("n", work->n), cell_int("k", work->k), cell_int("batch", work->batch),
            cell_real("row_pieces", true, work->row_pieces),
            cell_real("measured_s", true, row->measured_s),
            cell_real("predicted_s", true, kernel_duration_s(work, gpu, kernel_whole_gpu(gpu)))),
        diag);
}

enum status gpu_fit_store(const char *measured_folder, const char *gpus_folder, struct store *store,
    struct arena *arena, struct diag *diag)
{
    struct basis basis = {.measured = measured_folder, .gpus = gpus_folder, .arena = arena};
    struct store_answer into = {0};
    enum status status = basis_load(&basis, diag);
    if (status == STATUS_OK)
        status = store_answer_begin(
            &into, store, "gemm", RECORD_CELLS(cell_text("measured", measured_folder)), diag);
    for (int i = 0; i < basis.recipes.n_gemm && status == STATUS_OK; i++)
        for (int j = 0; j < basis.rows[i].list.n && status == STATUS_OK; j++)
            status = gpu_fit_put_row(
                &into, &basis.recipes.gemm[i], &basis.fitted[i], &basis.rows[i].list.at[j], diag);
    if (into.store)
        status = store_answer_end(&into, status, diag);
    basis_release(&basis);
    return status;
}
