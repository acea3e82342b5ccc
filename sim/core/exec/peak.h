/* The HBM that a plan needs, without a run of it: tensors come and go in program order of the host,
 * as PyTorch's max_memory_allocated counts them, each rounded as the caching allocator rounds it.
 * Ignored: what a block of the large pool is larger than its tensor, at most 1 MiB (see hbm.h).
 *
 * Included: the CUDA context, and NCCL's buffers for each group of several ranks and each axis of
 * messages. Ignored: what only a run shows, that is segments that are reserved and not in use
 * (fragmentation; a block that another stream still uses cannot be used again). So a run whose
 * reserved bytes reach this far fits only if its allocator leaves no gaps, and a job whose peak is
 * beyond the GPU's capacity certainly does not fit. */
#ifndef FLOPCAST_EXEC_PEAK_H
#define FLOPCAST_EXEC_PEAK_H

#include "hw/hw.h"
#include "plan/plan.h"

/* Bytes of a rank. */
struct exec_peak {
    double total_bytes;                          /* at the fullest moment */
    double category_bytes[HBM_CATEGORY_COUNT];   /* of these, at that moment */
    double largest_category[HBM_CATEGORY_COUNT]; /* each category at its own fullest moment */
    int last;                /* category of the buffer that made it the fullest moment */
    double kept_state_bytes; /* of HBM_OPTIMIZER: what stays between steps, no temporaries */
    double host_bytes;       /* pinned host memory */
    int communicators;       /* of NCCL */
    double capacity_bytes;   /* HBM of the GPU */
};

/* Bytes of HBM that are left; below 0: what is lacking, and the job certainly does not fit. */
static inline double exec_room(const struct exec_peak *peak)
{
    return peak->capacity_bytes - peak->total_bytes;
}
/* Without CUDA context and NCCL. */
static inline double exec_tensors(const struct exec_peak *peak)
{
    return peak->total_bytes - peak->category_bytes[HBM_CONTEXT] - peak->category_bytes[HBM_NCCL];
}

/* Of the ranks of a program, hw being their hardware. Over two steps: what the first one makes and
 * keeps (optimizer state) is there in all of the second. */
void exec_program_peak(
    struct exec_peak *out, const struct plan *plan, int program, const struct hw *hw);
/* Of the same tensors and communicators on another GPU. */
struct exec_peak exec_peak_on(
    struct exec_peak peak, const struct hw_gpu *gpu, double communicator_bytes);
/* Of the program that needs most of its GPU's HBM. */
void exec_peak(struct exec_peak *out, const struct plan *plan, const struct hw *hw);

/* What is there all the time beside tensors on ranks of a program: sets the entries of HBM_CONTEXT
 * and HBM_NCCL. */
void exec_fixed_memory(
    double *category_bytes, const struct plan *plan, int program, const struct hw *hw);

#endif
