/* Parts of a block that Megatron-LM recomputes by themselves (recompute_modules with
 * recompute_granularity selective), while the rest of what backward needs is kept. Bits of
 * model_op.parts.
 *
 *   core_attn, moe,        what is made and used within is dropped, and the part runs again: core
 *                          attention where it is
 *   mlp, shared_experts    naive; the layer of experts with router, exchanges and the shared
 *                          expert; a dense block's feed-forward layer with its collectives; the
 *                          shared expert alone
 *   layernorm, moe_act,    what it gives is dropped, too, after its last use in forward: norms
 *                          before attention and
 *   mla_up_proj            feed-forward layer; SwiGLU of the experts; queries, keys and values of
 *                          latent attention, made from their latents and turned
 *
 * They run again before the block's backward pass; Megatron-LM does so when backward comes to each.
 */
#ifndef FLOPCAST_MODEL_RECOMPUTE_H
#define FLOPCAST_MODEL_RECOMPUTE_H

enum recompute_part {
    RECOMPUTE_CORE_ATTN,
    RECOMPUTE_MOE,
    RECOMPUTE_LAYERNORM,
    RECOMPUTE_MOE_ACT,
    RECOMPUTE_MLA_UP_PROJ,
    RECOMPUTE_MLP,
    RECOMPUTE_SHARED_EXPERTS,
    RECOMPUTE_PART_COUNT
};
extern const char
    *const recompute_part_names[RECOMPUTE_PART_COUNT + 1]; /* "core_attn", ..., NULL */
/* Of these what they give is dropped. */
enum {
    RECOMPUTE_OUTPUTS =
        1 << RECOMPUTE_LAYERNORM | 1 << RECOMPUTE_MOE_ACT | 1 << RECOMPUTE_MLA_UP_PROJ
};

#endif
