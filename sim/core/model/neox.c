/* NeoX: LayerNorm, rotary positions of a part of each head, attention and feed-forward layer side
 * by side, both added to the residual stream (parallel_residual). As Hugging Face transformers 4
 * runs GPT-NeoX in eager mode (modeling_gpt_neox.py); names as in GPTNeoXForCausalLM. Falcon
 * (modeling_falcon.py) has one key head or few, no biases of linear layers, rotary positions of
 * whole heads, and in its first architecture one norm for both (shared_norm); its names differ.
 * Ignored: the tables of cosines and sines; ALiBi, where there are no rotary positions, is added by
 * the kernel that masks. */
#include "model/family.h"

static void neox_linear_tensors(struct model_builder *b, const char *name, int64_t in, int64_t out)
{
    if (b->shape->biases)
        build_linear(b, name, in, out);
    else
        build_tensor(b, arena_printf(b->arena, "%s.weight", name), out, in);
}

static void neox_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv, kv = s->n_kv_heads * s->d_kv;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, "gpt_neox.embed_in.weight", s->vocab, d);
    build_linear(b, "gpt_neox.final_layer_norm", 1, d);
    if (!s->tied_embeddings)
        build_tensor(b, "embed_out.weight", s->vocab, d);
    for (int i = 0; i < s->n_layers; i++) {
        build_layer(b, LAYER_DECODER_BLOCK, arena_printf(b->arena, "gpt_neox.layers.%d", i));
        build_linear(b, "input_layernorm", 1, d);
        if (!s->shared_norm)
            build_linear(b, "post_attention_layernorm", 1, d);
        neox_linear_tensors(b, "attention.query_key_value", d, inner + 2 * kv);
        neox_linear_tensors(b, "attention.dense", inner, d);
        neox_linear_tensors(b, "mlp.dense_h_to_4h", d, s->d_ff);
        neox_linear_tensors(b, "mlp.dense_4h_to_h", s->d_ff, d);
    }
}

static int neox_attention(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    const int64_t kv = s->n_kv_heads * s->d_kv, widths[3] = {s->n_heads * s->d_kv, kv, kv};
    int qkv[3];
    tape_scope(t, "attention");
    tape_split(
        t, "split", tape_linear(t, "query_key_value", tape_enter(t, "in", x)), widths, qkv, 3);
    int out = tape_linear_row(
        t, "dense", family_attention(c, qkv[0], qkv[1], qkv[2], self_attention(c, false)));
    out = tape_dropout(t, "dropout", out);
    tape_scope(t, "");
    return out;
}

static int neox_feed_forward(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    tape_scope(t, "mlp");
    int hidden =
        tape_map(t, "act", TAPE_GELU, tape_linear(t, "dense_h_to_4h", tape_enter(t, "in", x)));
    int out = tape_dropout(t, "dropout", tape_linear_row(t, "dense_4h_to_h", hidden));
    tape_scope(t, "");
    return out;
}

static int neox_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    int x = tape_input(t, "hidden_states", segment_rows(c, c->workload->seq_len), s->d_model);
    int normed = tape_layer_norm(t, "input_layernorm", x);
    int attended = neox_attention(c, normed);
    if (!s->parallel_residual)
        x = tape_add(t, "attention.residual", x, attended);
    normed = s->shared_norm ? normed : tape_layer_norm(t, "post_attention_layernorm", x);
    int out = neox_feed_forward(c, normed);
    if (s->parallel_residual)
        out = tape_add(t, "parallel.add", out, attended);
    return tape_add(t, "residual", x, out);
}

static int neox_forward(const struct segment_context *c)
{
    BUG_IF(c->kind == SEGMENT_STACK_EXIT || c->kind == SEGMENT_DECODER_ENTRY, "NeoX has one stack");
    if (c->kind == SEGMENT_ENTRY)
        return tape_neftune(c->tape,
            tape_words(c->tape, "gpt_neox.embed_in",
                c->workload->micro_batch * c->workload->seq_len,
                segment_turn(c, c->shape->tied_embeddings ? TURN_LAST : TURN_ONLY), false));
    return c->kind == SEGMENT_EXIT
               ? family_head(c, "gpt_neox.final_layer_norm", "gpt_neox.embed_in", "embed_out")
               : neox_block(c);
}

static const char *neox_check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_kv_heads, s->n_heads % s->n_kv_heads != 0,
            "the number of heads must be a multiple of the number of key heads"),
        MODEL_RULE(rotary_share, (int64_t)(s->rotary_share * (double)s->d_kv) % 2,
            "rotary positions need an even part of the head dimension"),
        MODEL_RULE(shared_norm, s->shared_norm && !s->parallel_residual,
            "one norm for attention and feed-forward layer needs parallel_residual: true"),
        MODEL_RULE(n_decoder_layers, s->n_decoder_layers != 0,
            "NeoX has one stack: its layers are n_layers"),
        MODEL_RULE(max_positions, s->max_positions != 0, "NeoX has no learned positions"),
        MODEL_RULE(
            gated_ffn, s->gated_ffn, "NeoX has no gated feed-forward layer; take the family llama"),
        MODEL_RULE(
            relative_buckets, s->relative_buckets != 0, "NeoX has no relative position buckets"),
        MODEL_RULE(composed_gelu, s->composed_gelu, "NeoX's GELU is one kernel"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}

const struct model_family_code model_family_neox = {
    .defaults = {.family = MODEL_NEOX,
        .biases = true,
        .parallel_residual = true,
        .rotary_share = 0.25},
    .layers = neox_layers,
    .forward = neox_forward,
    .check = neox_check,
};
