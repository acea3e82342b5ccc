/* A GPU's numbers (topologies/gpus) from what flopcast_measure timed on it. Each comes from one
 * category of its CSV (microbench/README.md); what the file does not measure stays as the GPU's
 * file has it:
 * - kernel_floor: empty kernels one after the other (launch);
 * - hbm_efficiency: the mean rate of scale and triad, of their largest size, over the datasheet's
 *   bandwidth (hbm);
 * - memory_sms: of copies and triads by few SMs, the SMs at which their rate, which grows with
 * them, would reach that of the whole GPU: the median (hbm);
 * - pointwise_efficiency: the median over norms, softmax and the other passes over scores,
 *   elementwise kernels, embeddings and losses, of bytes over time less the floor, as a share of
 *   the streaming rate; only where bytes do not fit in L2 or it was emptied;
 * - gemm_floor, and efficiency, k_overhead and load_bandwidth of every format: gemm_fit.h, the
 *   floor with the first of bf16, fp16, tf32, fp32, fp8, int8 that was measured, every other format
 *   alone; each third shape is held out. Rows with an emptied L2 stand for those of the same
 *   product with a warm one. Layouts are ignored; row_gap, tile_share, single_efficiency and what
 *   no product determines stay;
 * - gemm_sustained: the settled rate over that of the burst (sustained), of the first format as
 *   above;
 * - context_bytes: context, cuBLAS and its first product (memory);
 * - cuda_malloc, cuda_free: the median over sizes (allocation). The rows of overlap give no number
 * here, because what a collective holds is the node's; they are printed beside what the model says
 * of a kernel that lacks the SMs of the collective. */
#ifndef FLOPCAST_CALIBRATE_MEASURE_FIT_H
#define FLOPCAST_CALIBRATE_MEASURE_FIT_H

#include "calibrate/gemm_fit.h"
#include "import/measure.h"

struct measure_fit {
    struct hw_gpu gpu;          /* with the computed numbers in place */
    struct gemm_rows gemm;      /* the products, each with its use */
    bool products[DTYPE_COUNT]; /* the rows determine the numbers of this format */
    int n_numbers;              /* computed, a format's together as one */
};

/* Free with measure_fit_free. A file from which no number follows is an error. */
enum status measure_fit_solve(struct measure_fit *out, const struct hw_gpu *filed,
    const struct measured_file *file, struct diag *diag);
void measure_fit_free(struct measure_fit *fit);

/* Provenance, every number beside the GPU's file, errors of the GEMM model, slowdowns beside
 * another kernel. */
void measure_fit_print(FILE *out, const struct measure_fit *fit, const struct hw_gpu *filed,
    const struct measured_file *file);

/* The GPU's file, `from`, with the computed numbers at path. */
enum status measure_fit_write(const struct measure_fit *fit, const struct hw_gpu *filed,
    const struct measured_file *file, const char *from, const char *path, struct arena *arena,
    struct diag *diag);

#endif
