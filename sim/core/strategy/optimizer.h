/* Optimizers: what each keeps for a tensor, and (in optimizer.c) the kernels of its step.
 *
 * PyTorch's own (adamw, adam, sgd, sgd_momentum) come in three implementations: foreach, fused, and
 * a loop over the tensors (which Composer's DecoupledAdamW is too); the others in the one of their
 * library, all of them loops:
 * - lion: lion-pytorch (arXiv 2302.06675): one moment
 * - adam8bit: bitsandbytes, block-wise (arXiv 2110.02861): two moments of a byte an element and an
 *   FP32 scale to each block of each; tensors below 4,096 elements keep FP32 moments
 * - adafactor: transformers.Adafactor (arXiv 1804.04235): FP32 sums over the rows and the columns
 *   of a matrix
 * - adafactor_momentum: the same with beta1: an FP32 first moment beside them
 * - muon: torch.optim.Muon and what Megatron-LM takes from it, see strategy/muon.h: one moment of
 *   the blocks' matrices; all else is AdamW's, in its implementation
 * - lomo: OpenLMLab/LOMO (arXiv 2306.09782): SGD inside backward; a gradient lives until its
 *   layer's update, nothing is kept
 *
 * A flat shard (FSDP, ZeRO) is a vector: Adafactor keeps a whole second moment of it.
 *
 * Ignored: LOMO's second backward pass where gradients are clipped by their norm; Adafactor's
 * matrices of more than two dimensions; states kept in another format than said here. */
#ifndef FLOPCAST_STRATEGY_OPTIMIZER_H
#define FLOPCAST_STRATEGY_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

enum optimizer {
    OPTIMIZER_ADAMW,
    OPTIMIZER_ADAM,
    OPTIMIZER_SGD,
    OPTIMIZER_SGD_MOMENTUM,
    OPTIMIZER_LION,
    OPTIMIZER_ADAM_8BIT,
    OPTIMIZER_ADAFACTOR,
    OPTIMIZER_ADAFACTOR_MOMENTUM,
    OPTIMIZER_LOMO,
    OPTIMIZER_MUON,
    OPTIMIZER_COUNT
};
extern const char *const optimizer_names[OPTIMIZER_COUNT + 1]; /* "adamw" ... "muon", as above */
enum optimizer_impl {
    OPTIMIZER_FOREACH,
    OPTIMIZER_FUSED,
    OPTIMIZER_FOR_LOOP,
    OPTIMIZER_IMPL_COUNT
};
extern const char
    *const optimizer_impl_names[OPTIMIZER_IMPL_COUNT + 1]; /* "foreach", "fused", "for_loop" */

/* What a step runs over: a parameter tensor, or a flat shard (cols 1). */
struct optimizer_tensor {
    int64_t rows, cols;
    int64_t matrices; /* muon: so much of it is orthogonalised apart, one upon another; 0: it is
                         AdamW's */
    int ranks, group; /* muon: that have a part of the elements each, when more than 1; the tensor
                         is the whole */
};

static inline struct optimizer_tensor optimizer_vector(int64_t elements)
{
    return (struct optimizer_tensor){.rows = elements, .cols = 1};
}

/* Elements that this rank steps on. */
static inline int64_t optimizer_numel(struct optimizer_tensor tensor)
{
    int64_t ranks = tensor.ranks > 1 ? tensor.ranks : 1;
    return (tensor.rows * tensor.cols + ranks - 1) / ranks;
}

/* Bytes of state for a tensor whose elements take element_bytes (which is what Adam's, Lion's and
 * SGD's moments take too). */
int64_t optimizer_state_bytes(int optimizer, struct optimizer_tensor tensor, int64_t element_bytes);

struct strategy_options;

/* Of an element of a moment, both in the mean, where a step takes step_bytes: fewer where
 * Megatron-LM's options keep one or both in BF16, which the fused kernel reads and writes so (its
 * values in between are FP32). */
int64_t optimizer_moment_bytes(const struct strategy_options *options, int64_t step_bytes);

/* Launches of one multi-tensor kernel (foreach, fused) over all tensors: a launch ends when it is
 * full of tensors, or of blocks; a large tensor goes on in the next one. */
int optimizer_launches(const struct optimizer_tensor *tensors, int n);

#endif
