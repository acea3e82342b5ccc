/* Bytes of HBM that training takes on one GPU, in closed form: what fits where, before anything is simulated. Each kind
 * of tensor is counted at its own fullest moment, so the sum is a bound: a run peaks at or below it (at the loss,
 * gradients are not there yet).
 *
 * Modelled, by kind of tensor: weights, gradients and optimizer state by number format and optimizer, shared out as
 * DDP, ZeRO 1-3 and FSDP share them; the copies and buffers that these keep beside them; activations at the fullest
 * moment of forward and backward, from the kernels of model.h; FP32 gradients that a step makes (bf16_master,
 * DeepSpeed), and its temporaries, as foreach has them or, where there is none, a loop (DeepSpeed's FusedAdam has
 * none); KV cache; LoRA adapters. Ignored: temporaries of a step on adapters and of SGD's weight decay; that a fused or
 * for_loop implementation has fewer; fragmentation and rounding of the allocator (for those run a scenario: exec.h),
 * CUDA context, NCCL's buffers.
 *
 * Sources: ZeRO's 2 + 2 + 12 bytes a parameter: Rajbhandari et al., arXiv 1910.02054; bytes of the optimizers:
 * strategy/optimizer.h. A shape can be missing (model NULL): then what depends on it is left out or estimated as said
 * beside it. */
#ifndef FLOPCAST_STRATEGY_FOOTPRINT_H
#define FLOPCAST_STRATEGY_FOOTPRINT_H

#include "model/model.h"
#include "strategy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

/* What parameters, gradients and optimizer state are kept in. mixed: PyTorch keeps FP32 parameters and casts them (4 +
 * 4 bytes), DeepSpeed keeps 16-bit ones and an FP32 copy with the optimizer (2 + 2 + 4); bf16_master: as DeepSpeed,
 * whatever the strategy (Megatron, InternEvo); fp8_mixed: as bf16_mixed,
 * and linear layers of blocks keep their input in FP8 (TransformerEngine, model/tape.h). The others keep everything in
 * one format; tf32 is stored as FP32. */
enum footprint_dtype {
    FOOTPRINT_FP32,
    FOOTPRINT_TF32,
    FOOTPRINT_BF16_MIXED,
    FOOTPRINT_FP16_MIXED,
    FOOTPRINT_FP8_MIXED,
    FOOTPRINT_BF16_MASTER,
    FOOTPRINT_BF16,
    FOOTPRINT_FP16,
    FOOTPRINT_INT8,
    FOOTPRINT_DTYPE_COUNT
};
extern const char *const footprint_dtype_names[FOOTPRINT_DTYPE_COUNT + 1];
bool footprint_is_mixed(int dtype); /* one of those called so */

enum footprint_strategy {
    FOOTPRINT_DDP,
    FOOTPRINT_ZERO1,
    FOOTPRINT_ZERO2,
    FOOTPRINT_ZERO3,
    FOOTPRINT_FSDP,
    FOOTPRINT_STRATEGY_COUNT
};
extern const char *const footprint_strategy_names[FOOTPRINT_STRATEGY_COUNT + 1];

/* What a frozen model beside adapters is kept in: all of it in 16 bits, or the matrices of its blocks in INT8
 * (LLM.int8, arXiv 2208.07339: an FP32 scale to each row) or in NF4 (QLoRA), and the rest in FP32. */
enum footprint_base { BASE_HALF, BASE_INT8, BASE_NF4, BASE_COUNT };
extern const char *const footprint_base_names[BASE_COUNT + 1]; /* "16bit", "int8", "nf4" */

struct footprint_options {
    int dtype, optimizer, strategy; /* footprint_dtype, optimizer, footprint_strategy */
    int64_t gpus;                   /* 1: one GPU without any strategy */
    int64_t micro_batch;            /* 0: activations are left out */
    int64_t seq_len, decoder_seq_len;
    int checkpointing; /* of every block: enum checkpointing */
    int attention;     /* enum attention_kernel */
    int cross_entropy; /* enum cross_entropy */
    int fusion;        /* enum kernel_fusion */
    bool drop_logits;  /* the training loop lets go of them before backward */
    bool offload;      /* FSDP: shards, gradients and optimizer in host memory; ZeRO: the optimizer */
    /* Low-rank adapters; 0: all parameters are trained. Adapters are FP32. Needs a model. */
    int64_t lora_rank;
    const char *lora_targets; /* see footprint_lora_params */
    int base;                 /* enum footprint_base */
};

/* Bytes on one GPU. */
struct footprint {
    double weights;
    double gradients;
    double optimizer;   /* with the FP32 copy of the weights where there is one */
    double copies;      /* gathered units (FSDP, ZeRO-3), 16-bit copies of the weights (autocast) */
    double buffers;     /* DDP's and DeepSpeed's buckets */
    double tables;      /* DHEN's embeddings and their optimizer, shared out over all GPUs by themselves */
    double activations; /* 0 without a model or a batch */
    double step;        /* what the optimizer's step makes beyond activations and copies, which are gone by then; 0
                           without a model or a batch, and with adapters, offload or LOMO */
    double host;        /* in host memory, for this GPU; no part of the total */
};

/* What the options of a job mean here; gpus: those that share out what the strategy shards. */
struct footprint_options footprint_options_of(const struct strategy_options *options, int64_t gpus);

/* Back again, defaults for the rest; fp16 is taken for bf16. And whether strategy_check_options() has nothing against
 * them. */
struct strategy_options footprint_strategy_options(const struct footprint_options *options);
bool footprint_possible(const struct footprint_options *options);
/* Whether a scenario can say the same: nobody trains in INT8, and a frozen model in INT8 has no kernels here. */
bool footprint_can_run(const struct footprint_options *options);

/* params: parameters; model: its shape, or NULL. scratch holds the model's kernels. options->gpus >= 1. */
struct footprint footprint_of(
    int64_t params, const struct model *model, const struct footprint_options *options, struct arena *scratch);
double footprint_total(const struct footprint *footprint);

/* Bytes of activations at the fullest moment of a step. */
double footprint_activations(const struct model *model, const struct footprint_options *options, struct arena *scratch);

/* Bytes of optimizer state of the whole model in this format, without FP32 copies of weights. */
double footprint_optimizer_state(int64_t params, const struct model *model, int optimizer, int dtype);

/* Keys and values of every attention layer: 2 x batch x layers x KV heads x head size x context x bytes; T5: of the
 * decoder, which keeps those of its context for itself and of the encoder's tokens for cross-attention (of other
 * models: not read). 0 for models that generate no text. */
double footprint_kv_cache(
    const struct model_shape *shape, int64_t batch, int64_t context, int64_t encoder_context, int64_t element_bytes);

/* Parameters of low-rank adapters: rank x (rows + cols) for each matrix of the blocks that targets names (LoRA, arXiv
 * 2106.09685). targets: names of linear layers as peft's target_modules has them, "q_proj,v_proj"; NULL: all. */
int64_t footprint_lora_params(const struct model *model, int64_t rank, const char *targets);
/* Bytes of the frozen model with blocks' matrices in INT8 or NF4 with double quantisation, the rest (embeddings, norms,
 * head) in rest_bytes each: 2, or 4 after prepare_model_for_kbit_training (QLoRA, arXiv 2305.14314;
 * peft/utils/other.py). */
double footprint_quantised_base(const struct model *model, int base, int64_t rest_bytes);

/* NEFTune (arXiv 2310.05914) in training: the noise and the noisy embeddings stand beside the embeddings for a moment.
 */
double footprint_neftune(const struct model *model, const struct footprint_options *options);

#endif
