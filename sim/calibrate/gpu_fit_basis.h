/* Private to calibrate: what the numbers of every GPU may be taken from, read and fitted once. */
#ifndef FLOPCAST_CALIBRATE_GPU_FIT_BASIS_H
#define FLOPCAST_CALIBRATE_GPU_FIT_BASIS_H

#include "calibrate/direct_fit.h"
#include "calibrate/gemm_fit.h"

struct basis {
    const char *measured, *gpus; /* folders; set by the caller, as is arena */
    struct arena *arena;
    struct gemm_rows rows[GEMM_CASES];
    struct hw_gpu fitted[GEMM_CASES];
    struct direct_fit direct[DIRECT_GPUS]; /* those that were asked for; without rows: not yet */
};

enum status basis_load(struct basis *basis, struct diag *diag);
void basis_release(struct basis *basis); /* also after a failed load */

/* The path of a table of the measured folder. */
const char *basis_table(const struct basis *basis, const char *file);

/* A GPU as its file has it, and with the computed numbers in place (calibrate/gpu_fit.h). BUG when there is no
 * recipe. */
enum status basis_gpu(
    struct hw_gpu *as_filed, struct hw_gpu *computed, struct basis *basis, const char *gpu, struct diag *diag);

#endif
