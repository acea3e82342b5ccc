/* Parts of a block that Megatron-LM recomputes by themselves (recompute_modules with recompute_granularity selective),
 * while the rest of what backward needs is kept. Bits of model_op.parts.
 *
 *   core_attn, moe       what is made and used within is dropped, and the part runs again: core attention where it is
 *                        naive; the layer of experts with router, exchanges and the shared expert
 *   layernorm, moe_act   only what it gives is dropped, after its last use in forward: norms before attention and
 *                        feed-forward layer; SwiGLU of the experts
 *
 * They run again before the block's backward pass; Megatron-LM does so when backward comes to each. Not modelled: its
 * other modules (mla_up_proj, mlp, shared_experts). */
#ifndef FLOPCAST_MODEL_RECOMPUTE_H
#define FLOPCAST_MODEL_RECOMPUTE_H

enum recompute_part {
    RECOMPUTE_CORE_ATTN,
    RECOMPUTE_MOE,
    RECOMPUTE_LAYERNORM,
    RECOMPUTE_MOE_ACT,
    RECOMPUTE_PART_COUNT
};
extern const char *const recompute_part_names[RECOMPUTE_PART_COUNT + 1]; /* "core_attn", ..., NULL */
/* Of these only what they give is dropped. */
enum { RECOMPUTE_OUTPUTS = 1 << RECOMPUTE_LAYERNORM | 1 << RECOMPUTE_MOE_ACT };

#endif
