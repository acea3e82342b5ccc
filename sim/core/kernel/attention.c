/* Fused attention: a FLOP count, corrected by what blocks of 128 and whole SMs make of it (the
 * formula of attention.h).
 *
 * Each factor is one function: padding of the head, softmax, keys beyond those that count, waves.
 * The causal mask halves the FLOP, but a block on the diagonal is computed whole, and the longest
 * block walks over twice the mean: hence 2 sms / blocks where there are few. With a window blocks
 * are alike again and waves are counted whole. */
#include "kernel/attention.h"

#include <math.h>

struct attention_walk attention_walk(bool causal)
{
    return causal ? (struct attention_walk){ATTENTION_BLOCK, 2} : (struct attention_walk){0, 1};
}

double attention_window_pairs(int64_t n, int64_t window)
{
    return (double)n * (double)window - (double)window * (double)window / 2;
}

/* Of the queries of a block on the diagonal each computes with ATTENTION_BLOCK / 2 keys too many in
 * the mean; where the window ends, too: rows that see a whole window have both ends. */
static struct attention_walk window_walk(double keys, double window)
{
    double counted = window - window * window / (2 * keys); /* keys of a query in the mean */
    double extra = ATTENTION_BLOCK / 2.0 * (1 + (keys - window) / keys);
    return (struct attention_walk){extra * keys / counted, keys / counted};
}

double attention_softmax_factor(const struct hw_gpu *gpu, double padded)
{
    return 1 + gpu->attention_softmax.value / padded;
}

/* How much longer the SMs are occupied than they work. */
static double waves_factor(const struct kernel_work *work, double sms)
{
    double blocks =
        ceil((double)(work->backward ? work->n : work->m) / ATTENTION_BLOCK) * (double)work->batch;
    bool longest_first = work->causal && work->window == 0;
    return longest_first ? fmax(1, 2 * sms / blocks) : ceil(blocks / sms) * sms / blocks;
}

/* Keys that blocks walk over, of those that the flop count. */
static double blocks_factor(const struct kernel_work *work, const struct hw_gpu *gpu)
{
    double keys = (double)work->n * (work->pairs > 0 ? work->pairs : 1);
    struct attention_walk walk =
        work->window > 0 ? window_walk(keys, (double)work->window) : attention_walk(work->causal);
    const struct quantity *overhead = &gpu->attention_overhead;
    if (work->backward && quantity_is_set(gpu->attention_backward_overhead))
        overhead = &gpu->attention_backward_overhead;
    return 1 + (walk.extra_keys + walk.overheads * overhead->value) / keys;
}

double attention_pairs_share(const struct kernel_work *work, const struct hw_gpu *gpu)
{
    return work->pairs > 0 ? 1 / blocks_factor(work, gpu) : 0;
}

double attention_compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms)
{
    double head = (double)work->k, padded = ceil(head / ATTENTION_HEAD_STEP) * ATTENTION_HEAD_STEP;
    double share = gpu->attention_efficiency.value;
    if (work->backward && quantity_is_set(gpu->attention_backward))
        share *= gpu->attention_backward.value;
    if (padded > ATTENTION_WIDE && quantity_is_set(gpu->attention_wide))
        share *= gpu->attention_wide.value;
    double whole_sms = fmax(1, floor(sms)); /* a block needs a whole SM */
    double flop_per_s = gpu->gemm[work->math].peak.value * share * whole_sms / gpu->sms.value;
    double flop = work->flop * (padded / head) * attention_softmax_factor(gpu, padded) *
                  blocks_factor(work, gpu);
    return flop / flop_per_s * waves_factor(work, whole_sms);
}
