/* How well two machines are known, beside each other: numbers that were measured or fitted for one of them (or are in
 * its datasheet) and are assumed for the other, or missing there. A difference between the two rests on them.
 *
 * Looked at are shares, times and bare factors, which can be put in the place of each other: efficiencies, latencies,
 * floors. Not rates, sizes and counts, which belong to a machine (a peak, a number of NICs), nor what a GPU
 * draws, on which no time depends. Numbers that are the same on both make no difference. */
#ifndef FLOPCAST_HW_EVIDENCE_H
#define FLOPCAST_HW_EVIDENCE_H

#include "base/vec.h"
#include "config/config.h"
#include "hw/hw.h"

struct hw_unlike {
    const char *key; /* as it can be given: "gpu.gemm_sustained", "cluster.nccl_efficiency"; in the arena */
    const struct config_field *field;
    size_t offset;         /* in struct hw */
    struct quantity of[2]; /* of either machine */
};
struct hw_unlikes {
    VEC(struct hw_unlike) list; /* in the order of GPU, node, cluster; free with vec_free */
};

/* given: what was given for either in place of its files' numbers (hw/override.h), which is a choice and left out. */
void hw_unlike(
    struct hw_unlikes *out, const struct hw *const machines[2], const struct hw *const given[2], struct arena *arena);

/* Put the better known number into both. */
void hw_even_out(struct hw *a, struct hw *b, const struct hw_unlike *unlike);

/* "0.792 (fitted)", "none": in the arena. */
const char *hw_unlike_text(const struct hw_unlike *unlike, int machine, struct arena *arena);

#endif
