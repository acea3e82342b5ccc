/* Where the computed numbers of topologies/gpus come from: every one is computed here again from
 * results/measured, so that files and data cannot drift apart.
 *
 * Of a GPU's file these are computed: hbm_efficiency, kernel_floor, gemm_floor, row_gap (V100),
 * gemm.*.{efficiency, k_overhead, load_bandwidth, tile_share, single_efficiency} and, except for
 * Volta, attention_*. They come from tables of the GPU itself where there are any, otherwise from
 * another GPU, as recipes.h says. GEMM numbers are
 * - fitted: H100 bf16 and tf32, V100 fp16 and fp32 (gemm_fit.h); A100 and GH200 fp16, with
 *   attention (kernels_fit.h); H200 has H100's SMs and takes its numbers, GH200 those of the other
 *   formats;
 * - fitted to kernels measured alone (direct_fit.h): bf16 of B200, GB200 and GB300, fp8 of H100,
 *   B200 and GB200, fp4 of B200 and GB200; Blackwell's hbm_efficiency is that of its casts, its
 *   attention cuDNN's. B300 takes B200's products, GB300 B200's fp8 and fp4, by cuBLASLt as
 *   TransformerEngine's;
 * - taken over: bf16 = fp16 (one datapath); tf32 of A100 and Blackwell from its bf16, which passes
 *   the same bytes by the same path at half the rate (H100's tf32 runs on kernels that were not
 *   made for it); fp32 (no tensor cores) from V100's.
 *
 * Nothing here looks at training runs. */
#ifndef FLOPCAST_CALIBRATE_GPU_FIT_H
#define FLOPCAST_CALIBRATE_GPU_FIT_H

#include "calibrate/direct_fit.h"
#include "calibrate/recipes.h"

#include <stdio.h>

/* What the numbers of every GPU may be taken from, read and fitted once. */
struct basis {
    const char *measured, *gpus; /* folders; set by the caller, as is arena */
    struct arena *arena;
    struct recipes recipes;
    struct gemm_rows *rows; /* as recipes.gemm */
    struct hw_gpu *fitted;
    struct direct_fit
        *direct; /* as recipes.direct, those that were asked for; without rows: not yet */
};

enum status basis_load(struct basis *basis, struct diag *diag);
void basis_release(struct basis *basis); /* also after a failed load */

/* A GPU as its file has it, and with the numbers above computed again. BUG when there is no
 * recipe. */
enum status basis_gpu(struct hw_gpu *as_filed, struct hw_gpu *computed, struct basis *basis,
    const char *gpu, struct diag *diag);

/* The report of `flopcast calibrate fit`: for each GPU every computed number beside the one in the
 * file, then the errors of the GEMM model on the rows fitted, held out and outside its range, and
 * on the best product of H100. */
enum status gpu_fit_print(FILE *out, const char *measured_folder, const char *gpus_folder,
    struct arena *arena, struct diag *diag);

/* What `flopcast plot gemm` draws: every measured product with the prediction of the fit of its
 * GPU. */
struct store;
enum status gpu_fit_store(const char *measured_folder, const char *gpus_folder, struct store *store,
    struct arena *arena, struct diag *diag);

#endif
