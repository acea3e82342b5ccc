/* Duration of C[m,n] = A[m,k] B[k,n], batch times, on a number of SMs.
 *
 * The result is cut into tiles of tm x tn; each SM works on one tile at a time, so ceil(tiles / SMs) waves are needed
 * (wave quantisation) and the edge tiles are computed whole (tile quantisation). A tile runs over k + k_overhead
 * elements (K-saturation), and for each of them it needs the longer of
 * - multiplying: 2 tm tn flop at efficiency x peak / SMs of the GPU;
 * - loading: tm + tn operands at load_bandwidth / SMs of the GPU, which is why small tiles reach less of the peak.
 *
 * Where tiles do not fill the SMs, k may be split over several SMs (split-K), at the cost of a second kernel that adds
 * the FP32 partial results. The cheapest tile shape and split on the whole GPU is taken, as cuBLAS's heuristic aims to;
 * it does not know that a collective holds some of the SMs, so a GEMM that filled the GPU exactly needs a second wave
 * beside one (NVIDIA forum 337991 saw that).
 *
 * Both rates are those of short measurements times gemm_sustained.
 *
 * Ignored: layouts (NN, TN, NT), several tiles in flight on an SM. Results of fewer than GEMM_WIDE
 * rows or columns are predicted worse than others: libraries use other kernels there (sim/calibrate/fit_gemm.h leaves
 * them out). Source of the shape set: CUTLASS's default tiles and cuBLAS kernel names. Accuracy: `flopcast calibrate
 * fit`. */
#ifndef FLOPCAST_KERNEL_GEMM_H
#define FLOPCAST_KERNEL_GEMM_H

#include "kernel/kernel.h"

/* The narrowest result, in rows or columns, that the model claims to describe. */
enum { GEMM_WIDE = 64 };

/* Seconds of compute, without launch floor and without the memory limit. sms > 0. */
double gemm_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms);

#endif
