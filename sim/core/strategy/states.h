/* Bytes of weights, gradients and optimizer state on one GPU, for a model of which only the number
 * of parameters is known. Of a model with a shape, its plan says more (exec/peak.h), and tests hold
 * one to the other.
 *
 * Modelled: bytes an element by number format and optimizer, shared out as DDP, ZeRO 1-3, FSDP and
 * Megatron-FSDP share them (Rajbhandari et al., arXiv 1910.02054); offloading. Ignored, as they
 * depend on the shape: activations, gathered and cast copies, buckets, a step's temporaries; also
 * that shards are padded unit by unit. */
#ifndef FLOPCAST_STRATEGY_STATES_H
#define FLOPCAST_STRATEGY_STATES_H

#include "strategy/strategy.h"

struct states {
    double weights, gradients;
    double optimizer; /* with the FP32 copy of the weights where there is one */
    double host;      /* in host memory, for this GPU */
};

/* int8: a byte for everything, whatever options->train.precision says. LOMO holds one gradient at a
 * time: none here. */
struct states states_of(
    int64_t params, const struct strategy_options *options, int64_t gpus, bool int8);

/* Optimizer state of the whole model, by its tensors; model NULL: as if it were one tensor,
 * Adafactor's a square matrix. */
double states_optimizer(
    int64_t params, const struct model *model, int optimizer, int64_t element_bytes);

#endif
