/* Duration of C[m,n] = A[m,k] B[k,n], batch times, on a number of SMs.
 *
 * The result is cut into tiles of tm x tn; each SM works on one tile at a time, so ceil(tiles /
 * SMs) waves are needed (wave quantisation) and the edge tiles are computed whole (tile
 * quantisation). A tile runs over k, filled up to whole steps of GEMM_STEP_K, + k_overhead elements
 * (K-saturation), and for each of them it needs the longer of
 * - multiplying: 2 tm tn flop at efficiency x peak / SMs of the GPU;
 * - loading: tm + tn operands at load_bandwidth / SMs of the GPU, which is why small tiles reach
 *   less of the peak;
 * - issuing: up to 128 x 128 a tile has four warps, beyond it eight; four reach at most tile_share
 *   of the SM's peak (optional).
 *
 * If a library has faster kernels for one GEMM than for a batch of them, single_efficiency is
 * theirs (optional): tiles from 128 x 128, no split, not limited by loading. This is so for tf32 on
 * Hopper: wgmma takes tf32 operands only with k contiguous, batches run on the kernels of Ampere
 * (mma.sync), which reach 0.66 of the peak by our fit and 0.63 by measurement (Luo et al., arXiv
 * 2402.13499, mean over formats; recalled).
 *
 * If tiles do not fill the SMs, k may be split over several SMs (split-K), at the cost of a second
 * kernel that adds the FP32 partial results. The cheapest tile shape and split on the whole GPU is
 * taken, as cuBLAS's heuristic aims to; it does not know that a collective holds some of the SMs,
 * so a GEMM that filled the GPU exactly needs a second wave beside one (NVIDIA forum 337991 saw
 * that).
 *
 * Both rates are those of short measurements times gemm_sustained, and times conv_efficiency where
 * the kernel gathers an operand itself (cuDNN's implicit GEMM: addresses are computed on the way,
 * rows end within a tile).
 *
 * Layouts matter where HBM limits: an operand whose rows run along k is read in pieces of
 * GEMM_STEP_K elements, each of which costs HBM row_gap bytes more (kernel/kernel.h; optional),
 * unless its pitch, k elements, is a power of two. The reason for that exception is not known
 * (address hashing is likely); V100's rows show it at pitches of 2 to 16 KiB against 3 to 11 KiB,
 * in fp16 and fp32, for either operand. model leaves row_pieces 0: its products are wide,
 * multiplying limits them.
 *
 * Ignored: layouts beyond that (10 % of V100's wide GEMMs), several tiles in flight on an SM.
 * Results of fewer than GEMM_WIDE rows or columns are predicted worse than others: libraries use
 * other kernels there (calibrate/gemm_fit.h leaves them out). Source of the shape set: CUTLASS's
 * default tiles and cuBLAS kernel names. Accuracy: `flopcast calibrate fit`, `flopcast plot gemm`.
 */
#ifndef FLOPCAST_KERNEL_GEMM_H
#define FLOPCAST_KERNEL_GEMM_H

#include "kernel/kernel.h"

/* The narrowest result, in rows or columns, that the model claims to describe. */
enum { GEMM_WIDE = 64 };

/* Elements of k that a tile takes from each operand at a time: CUTLASS's default for 2 and 4 byte
 * operands. */
enum { GEMM_STEP_K = 32 };

/* Seconds of compute, without launch floor and without the memory limit. sms > 0. */
double gemm_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms);

/* Pieces that operands are read in whose rows run along k: kernel_work's row_pieces. */
double gemm_row_pieces(const struct kernel_work *work, bool rows_of_a, bool rows_of_b);

#endif
