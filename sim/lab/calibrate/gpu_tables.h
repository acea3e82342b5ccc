/* The numbers of a GPU that are read off a table, without a fit. Each names the rows of
 * results/measured that it uses; no such row is an error. GPUs are named as their file under
 * topologies/gpus, without ".yaml". */
#ifndef FLOPCAST_CALIBRATE_GPU_TABLES_H
#define FLOPCAST_CALIBRATE_GPU_TABLES_H

#include "hw/hw.h"
#include "kernel/kernel.h"

/* From hbm.csv. bandwidth_Bps: mean of scale (1 read, 1 write) and triad (2 reads, 1 write) at full
 * occupancy, what PyTorch's elementwise kernels do. */
struct stream_rates {
    double bandwidth_Bps;
};
enum status stream_rates_load(
    struct stream_rates *out, const char *hbm_csv, const char *gpu, struct diag *diag);

/* From launch.csv: seconds of a tiny kernel, by launches into a stream one after the other. */
enum status launch_floor_load(
    double *out_s, const char *launch_csv, const char *gpu, struct diag *diag);

/* From attention.csv: the rate and the overhead (kernel/attention.h) of a kernel ("flash attention
 * 2", forward), by least squares of relative errors over lengths and masks. Their model is linear
 * in 1 / rate and overhead / rate. */
enum { ATTENTION_FIT_HEAD = 128 }; /* head dimension of all its rows */
struct attention_fit {
    double flops;                        /* FLOP/s with very many keys */
    double overhead, overhead_std_error; /* keys */
};
enum status attention_fit_load(struct attention_fit *out, const char *attention_csv,
    const char *gpu, const char *kernel, struct diag *diag);

/* From mamf.csv: the best product found in this number format, and its rate. */
struct best_gemm {
    struct kernel_work work;
    double flops; /* FLOP/s */
};
enum status best_gemm_load(struct best_gemm *out, const char *mamf_csv, const char *gpu,
    enum dtype math, struct diag *diag);

/* From settled.csv, products measured one after the other on one GPU: the median over those of at
 * least SETTLED_LONG_US of the rate measured, as a share of the rate that the model says of `gpu`
 * without gemm_sustained. That is what gemm_sustained multiplies. Shorter ones are left out: their
 * rates lie anywhere between this share and 1. */
enum { SETTLED_LONG_US = 1600 };
struct settled_rates {
    int n;
    double settled, spread; /* share; standard deviation over the median */
};
enum status settled_rates_load(struct settled_rates *out, const char *settled_csv, const char *name,
    const struct hw_gpu *gpu, enum dtype math, struct diag *diag);

/* From accumulate.csv, products in BF16 that add to their result beside plain ones of the same
 * sides: what they take longer over the time that streaming takes for what they move more (they
 * read the result and write it, plain ones write BF16). Of those whose plain product takes at least
 * SETTLED_LONG_US: median, and its standard error by the median deviation. `grouped`: of experts in
 * place of linear layers. */
struct accumulate_fit {
    int n;
    double exposed, std_error;
};
enum status accumulate_fit_load(struct accumulate_fit *out, const char *accumulate_csv,
    const char *gpu, enum dtype result, bool grouped, struct diag *diag);

#endif
