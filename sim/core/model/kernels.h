/* By which kernels a framework runs what a model computes. */
#ifndef FLOPCAST_MODEL_KERNELS_H
#define FLOPCAST_MODEL_KERNELS_H

enum attention_kernel { ATTENTION_NAIVE, ATTENTION_FLASH };
extern const char *const attention_kernel_names[]; /* "naive", "flash", NULL */

/* eager: F.cross_entropy of logits in FP32, a kernel for each step; fused: one kernel each way that
 * reads the logits as they are and writes their gradient (flash-attn's CrossEntropyLoss, Apex,
 * Liger); te: two kernels forward, of which the second writes the gradient over the logits
 * (TransformerEngine's parallel_cross_entropy, pytorch/triton/); loss_parallel: eager, where the
 * words are shared out DTensor's (torch/distributed/tensor/parallel/loss.py). Where they are:
 * tape_word_loss(). */
enum cross_entropy {
    CROSS_ENTROPY_EAGER,
    CROSS_ENTROPY_FUSED,
    CROSS_ENTROPY_TE,
    CROSS_ENTROPY_LOSS_PARALLEL,
    CROSS_ENTROPY_COUNT
};
extern const char
    *const cross_entropy_names[CROSS_ENTROPY_COUNT + 1]; /* "eager" ... "loss_parallel", as above */

/* eager: a kernel for each operation; inductor: torch.compile's; torchscript: Megatron-LM's
 * functions under torch.jit.script (bias_gelu, bias_dropout_add); flash_attn: eager, with
 * flash-attn's Triton kernels for RMSNorm and rotary positions, and the copies that nanotron makes
 * to call them (model/attention.c); transformer_engine: Megatron-Core with TransformerEngine,
 * torchscript's and kernels for RMSNorm, rotary positions (apply_rope_fusion) and SwiGLU
 * (bias_swiglu_fusion); attention reads fewer key heads as they are. See model/tape.h. */
enum kernel_fusion {
    FUSION_EAGER,
    FUSION_INDUCTOR,
    FUSION_TORCHSCRIPT,
    FUSION_FLASH_ATTN,
    FUSION_TRANSFORMER_ENGINE,
    FUSION_COUNT
};
extern const char
    *const kernel_fusion_names[FUSION_COUNT + 1]; /* "eager" ... "transformer_engine", as above */

/* What torch.compile (FUSION_INDUCTOR) is applied to. model: all of a step's kernels, the loss
 * among them. blocks: each transformer block by itself, so that embedding, last norm, head and loss
 * are eager (torchtitan's apply_compile, "regional compilation" in PyTorch's documents). */
enum compiled_part { COMPILED_MODEL, COMPILED_BLOCKS, COMPILED_COUNT };
extern const char *const compiled_part_names[COMPILED_COUNT + 1]; /* "model", "blocks" */

/* Whose linear layers run in FP8, and how operands are scaled. delayed: TransformerEngine's, by the
 * largest values of earlier steps. tensorwise, rowwise: torchao's Float8Linear, by the largest
 * value of each tensor, or of each row and column, in the step itself. mxfp8: TransformerEngine's
 * on Blackwell, by that of each 32 values. */
enum fp8_recipe { FP8_DELAYED, FP8_TENSORWISE, FP8_ROWWISE, FP8_MXFP8, FP8_RECIPE_COUNT };
extern const char
    *const fp8_recipe_names[FP8_RECIPE_COUNT + 1]; /* "delayed", "tensorwise", "rowwise", "mxfp8" */

/* How rotary positions turn pairs of columns. real: as transformers do, by rotate_half, in the
 * storage format. complex: as Meta's Llama and torchtitan do, by a product of complex numbers in
 * FP32, which torch.compile leaves alone (complex formats fall back to eager kernels). unfused: as
 * real, also where the stack has a kernel for it (Megatron-LM's --no-rope-fusion:
 * apply_rotary_pos_emb in core/models/common/embeddings/rope_utils.py). */
enum rotary_kind { ROTARY_REAL, ROTARY_COMPLEX, ROTARY_UNFUSED, ROTARY_COUNT };
extern const char *const rotary_names[ROTARY_COUNT + 1]; /* "real", "complex", "unfused" */

/* How the products of a rank's experts run. grouped: one kernel for all of them (Megatron-LM with
 * TransformerEngine's GroupedLinear, recipes' moe_grouped_gemm); loop: expert by expert, as
 * transformers in eager mode or, where ranks share experts, Megatron-LM's SequentialMLP. See
 * model/moe.c. */
enum expert_kernels { EXPERTS_GROUPED, EXPERTS_LOOP, EXPERT_KERNELS_COUNT };
extern const char *const expert_kernel_names[EXPERT_KERNELS_COUNT + 1]; /* "grouped", "loop" */

#endif
