/* Duration of one fused attention kernel, FlashAttention (Dao, arXiv 2205.14135 and 2307.08691): `batch` heads of all
 * sequences, m queries against n keys of head dimension k, with or without the causal mask.
 *
 *   flop / (peak x attention_efficiency [x attention_backward]) x padding x blocks
 *
 * - padding: kernels exist for head dimensions that are a multiple of ATTENTION_HEAD_STEP, others are filled up.
 * - blocks: one thread block per ATTENTION_BLOCK queries walks over the keys; start and end cost as much as
 *   attention_overhead keys: (n + overhead) / n. With the causal mask it walks over half of the keys, and over those of
 *   the block on the diagonal whole: (n + ATTENTION_BLOCK + 2 overhead) / n of the flop, which count one half.
 *   With a window of w of the n keys a block walks over w keys and over the diagonal's, or over what is before it.
 *
 * attention_backward and attention_overhead are optional, 1 and 0 by default. Accuracy: FlashAttention 2 on H100, head
 * dimension 128, 12 lengths with and without mask, median 5 %, worst 8 % (`flopcast calibrate fit`).
 *
 * Ignored: that a head of 64 reaches less than one of 128 (runs of 125m, 64, and of 3b, 128, show no difference once
 * the backward kernel has its own rate), waves of blocks (few heads times queries leave SMs idle), the reduction of dQ
 * between blocks in backward. */
#ifndef FLOPCAST_KERNEL_ATTENTION_H
#define FLOPCAST_KERNEL_ATTENTION_H

#include "kernel/kernel.h"

/* Of FlashAttention 2's code: kBlockM of its kernels, and the steps of its head dimensions. */
enum { ATTENTION_BLOCK = 128, ATTENTION_HEAD_STEP = 32 };

/* Keys that blocks walk over beyond those that the flop count, without overhead and as a multiple of
 * attention_overhead: blocks = 1 + (extra_keys + overheads x attention_overhead) / n. */
struct attention_walk {
    double extra_keys, overheads;
};
struct attention_walk attention_walk(bool causal);

/* Pairs of n positions and the keys that each sees, at most `window`, counted as flop count the causal mask's (n^2 / 2
 * without a window): n w - w^2 / 2. */
double attention_window_pairs(int64_t n, int64_t window);

/* Seconds of compute, without launch floor and without the memory limit. sms > 0. */
double attention_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms);

#endif
