/* Duration of one fused attention kernel, FlashAttention (Dao, arXiv 2205.14135 and 2307.08691):
 * `batch` heads of all sequences, m queries against n keys of head dimension k, with or without the
 * causal mask.
 *
 *   flop / (peak x attention_efficiency [x attention_backward] [x attention_wide]) x head x blocks
 *   x waves
 *
 * - head: kernels exist for head dimensions that are a multiple of ATTENTION_HEAD_STEP, others are
 *   filled up; the softmax of a pair of query and key takes as long as attention_softmax elements
 *   of the head dimension more, however small the head. Above ATTENTION_WIDE an SM has room for one
 *   thread block, whose products and softmax then wait for each other: the rate is attention_wide
 *   of that of others.
 * - blocks: one thread block per ATTENTION_BLOCK queries (backward: keys) walks over the keys;
 *   start and end cost as much as attention_overhead keys, in backward attention_backward_overhead:
 *   (n + overhead) / n. With the causal mask
 * it walks over half of the keys, and over those of the block on the diagonal whole: (n +
 * ATTENTION_BLOCK + 2 overhead) / n of the flop, which count one half. With a window of w of the n
 * keys a block walks over w keys and over the diagonal's, or over what is before it.
 * - waves: an SM works on a block at a time: ceil(blocks / SMs) waves. With the causal mask blocks
 *   differ in length and the kernel starts with the longest, so that they end together, but not
 *   before the longest one, which walks over twice the mean's keys.
 *
 * A packed sequence of documents (kernel_work.pairs): blocks walk over the keys of their document,
 * pairs x n of them in the mean, so n is that in `blocks`; waves as if it were one document. All
 * documents alike: the time of as many shorter sequences. Ignored: the last block of a document,
 * which is not full.
 *
 * attention_backward, attention_wide, attention_overhead and attention_softmax are optional, 1, 1,
 * 0 and 0 by default; attention_backward_overhead is attention_overhead by default. Accuracy:
 * `flopcast calibrate fit kernels` (A100 and GH200, heads of 32 to 256, held-out shapes: median 6
 * %, p90 15 %); FlashAttention 2 on H100, head dimension 128, 12 lengths with and without mask,
 * median 5 %, worst 8 % (`flopcast calibrate fit`).
 *
 * Ignored: that a head which is filled up takes the slower kernel with bounds checks (10 to 15 %
 * forward), several blocks in flight on an SM, the reduction of dQ between blocks in backward. */
#ifndef FLOPCAST_KERNEL_ATTENTION_H
#define FLOPCAST_KERNEL_ATTENTION_H

#include "kernel/kernel.h"

/* Of FlashAttention 2's code: kBlockM of its kernels, the steps of its head dimensions, and the
 * widest head of which the shared memory of an SM holds two blocks. */
enum { ATTENTION_BLOCK = 128, ATTENTION_HEAD_STEP = 32, ATTENTION_WIDE = 128 };

/* Keys that blocks walk over beyond those that the flop count, without overhead and as a multiple
 * of attention_overhead: blocks = 1 + (extra_keys + overheads x attention_overhead) / n. */
struct attention_walk {
    double extra_keys, overheads;
};
struct attention_walk attention_walk(bool causal);

/* What the softmax makes of the time of a head that is padded to this dimension: 1 + softmax /
 * padded. */
double attention_softmax_factor(const struct hw_gpu *gpu, double padded);

/* Pairs of n positions and the keys that each sees, at most `window`, counted as flop count the
 * causal mask's (n^2 / 2 without a window): n w - w^2 / 2. */
double attention_window_pairs(int64_t n, int64_t window);

/* What of the compute time of a packed sequence goes with the pairs within its documents, 0 to 1;
 * the rest goes with its positions. 0: it is one document. So with x times the pairs it takes 1 +
 * share (x - 1) times as long. */
double attention_pairs_share(const struct kernel_work *work, const struct hw_gpu *gpu);

/* Seconds of compute, without launch floor and without the memory limit. sms > 0. */
double attention_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms);

#endif
