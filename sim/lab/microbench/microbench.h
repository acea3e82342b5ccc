/* Private to microbench: the program flopcast_measure, which times on a real GPU what the models of
 * kernel, coll and exec predict. sim/lab/microbench/README.md has its method and the columns of its
 * CSV.
 *
 * A category is a function that names its cases one after the other. The session times each (or,
 * with --dry-run, only writes it down), so the sweep is said once. An error of CUDA, cuBLAS or NCCL
 * is fatal: a table with a hole that nobody sees is worse than none. What a GPU cannot do (fp8
 * before Hopper) or hold is left out with a line on stderr. */
#ifndef FLOPCAST_MICROBENCH_MICROBENCH_H
#define FLOPCAST_MICROBENCH_MICROBENCH_H

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <functional>
#include <stdio.h>
#include <vector>

enum number { FP32, TF32, BF16, FP16, FP8, INT8, NUMBER_COUNT };
extern const char *const number_names[NUMBER_COUNT]; /* as dtype_names of hw/hw.h */
size_t number_bytes(number dtype);

/* What one row is about; empty texts and zeros become empty cells. */
struct measure_case {
    const char *category, *kernel, *dtype; /* dtype NULL: none */
    long long m, n, k, batch; /* GEMM: see README.md; other kernels: m rows of n elements */
    double bytes;       /* HBM traffic of one call (transfers, collectives, memory: its size) */
    double flop;        /* of one call; GEMM only */
    int sms;            /* SMs that the grid was limited to; 0: not limited */
    int gpus;           /* that take part; 0: one */
    const char *beside; /* what ran at the same time; NULL: nothing */
    const char *cache;  /* "warm", "cold" or NULL: see README.md */
};

struct measure_nvml; /* memory clock, power and temperature, where libnvidia-ml can be loaded */

struct measure_session {
    FILE *out;
    bool dry_run;
    double sustain_s; /* seconds of each sustained run */
    char gpu[256], driver[80], cuda[32], date[32];
    int sms;
    size_t free_at_start_bytes, total_bytes;
    char *workspace; /* of this GPU; operands are cut from it */
    size_t workspace_bytes, used_bytes;
    bool overflow;                 /* a case wanted more than the workspace holds */
    void *flush;                   /* as large as any L2, written to put out what stands there */
    unsigned long long *cycles_ns; /* where the GPU writes what its clock has counted */
    cudaStream_t stream;
    cublasHandle_t cublas;
    double start_s; /* host clock when the session began */
    measure_nvml *nvml;
};

/* Seconds of each sample. */
typedef std::vector<double> measure_samples;
typedef std::function<void(cudaStream_t)> measure_launch;

/* Allocates and fills what the case needs and says how to launch it once; an empty function: this
 * GPU cannot. Not called in a dry run. */
typedef std::function<measure_launch(measure_session &)> measure_prepare;

void measure_begin(measure_session &session);
void measure_end(measure_session &session);
void measure_header(measure_session &session);

/* Times a kernel, back to back ("warm") and, where it is small enough for L2 to matter, with L2
 * emptied ("cold"). */
void measure_kernel(
    measure_session &session, const measure_case &what, const measure_prepare &prepare);
/* Times what the caller's function measures itself. In a dry run it is not called. No sample: left
 * out. */
void measure_by(measure_session &session, const measure_case &what,
    const std::function<measure_samples(measure_session &)> &times);
/* A row without time: bytes are the result. */
void measure_bytes(
    measure_session &session, measure_case what, const std::function<double()> &bytes);

double measure_now_s(void); /* host clock, monotonic */
measure_samples measure_warm(measure_session &session, const measure_launch &launch);
void measure_row(measure_session &session, const measure_case &what, measure_samples samples);

/* Bytes of the workspace, valid until the next case; NULL (and overflow) when it is full. */
void *measure_take(measure_session &session, size_t bytes);
/* The same, filled with n random numbers of [-1, 1) in this format (int8: -127 .. 127). */
void *measure_random(measure_session &session, number dtype, size_t n);
int *measure_indices(
    measure_session &session, size_t n, int below); /* n random integers of [0, below) */

/* C[m,n] = A[m,k] B[k,n], batch times, by cuBLAS (fp8 and int8: cuBLASLt). layout: "tn" forward of
 * a linear layer, "nn" its gradient of the input, "nt" of the weights (as BLAS, column-major,
 * counts). */
measure_launch measure_gemm_launch(measure_session &session, number dtype, const char *layout,
    long long m, long long n, long long k, long long batch);

/* dst = src for `bytes` (a multiple of 16) by at most this many SMs, one block on each; 0: the
 * whole GPU. */
void measure_copy_by(const measure_session &session, void *dst, const void *src, size_t bytes,
    int sms, cudaStream_t on);
/* Holds this many SMs for a time and moves nothing. */
void measure_hold(double time_s, int sms, cudaStream_t on);

void measure_gemm(measure_session &session);
void measure_sustained(measure_session &session);
void measure_attention(measure_session &session);
void measure_norm(measure_session &session);
void measure_elementwise(measure_session &session);
void measure_embedding(measure_session &session);
void measure_loss(measure_session &session);
void measure_optimizer(measure_session &session);
void measure_hbm(measure_session &session);
void measure_transfer(measure_session &session);
void measure_launching(measure_session &session);
void measure_allocation(measure_session &session);
void measure_memory(measure_session &session);
void measure_overlap(measure_session &session);
void measure_nccl(measure_session &session);

[[noreturn]] void measure_fail(const char *file, int line, const char *call, const char *why);

#define CUDA_TRY(call)                                                                             \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess)                                                                 \
            measure_fail(__FILE__, __LINE__, #call, cudaGetErrorString(error_));                   \
    } while (0)

#define CUBLAS_TRY(call)                                                                           \
    do {                                                                                           \
        cublasStatus_t error_ = (call);                                                            \
        if (error_ != CUBLAS_STATUS_SUCCESS)                                                       \
            measure_fail(__FILE__, __LINE__, #call, cublasGetStatusString(error_));                \
    } while (0)

#endif
