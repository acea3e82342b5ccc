/* Duration of C[m,n] = A[m,k] B[k,n], batch times, on a number of SMs.
 *
 * The result is cut into tiles of tm x tn; each SM works on one tile at a time, so ceil(tiles / SMs) waves are needed (wave
 * quantisation) and the edge tiles are computed whole (tile quantisation). A tile costs 2 tm tn (k + k_overhead) flop at
 * efficiency x peak / SMs (K-saturation); smaller tiles reach less of the peak because each loaded element is used less often.
 * Where tiles do not fill the SMs, k may be split over several SMs (split-K), at the cost of one more pass over the result.
 * The cheapest of the tile shapes is taken, as cuBLAS's heuristic does. Source of the shape set: CUTLASS's default tiles. */
#ifndef FLOPCAST_KERNEL_GEMM_H
#define FLOPCAST_KERNEL_GEMM_H

#include "kernel/kernel.h"

/* Seconds of compute, without launch floor and without the memory limit. sms > 0. */
double gemm_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms);

#endif
