/* Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU. As Hugging Face transformers 4 runs it in eager
 * mode (modeling_llama.py); names as in LlamaForCausalLM. Of Mistral, Qwen2, Qwen3, Phi-3 and Gemma 1 to 3 what differs
 * is a member of struct model_shape: biases of q, k and v, norms of q and k, norms behind the sub-layers, fused
 * matrices, the gate's function, caps of scores and logits, windows; mixtures of experts (Mixtral, Qwen-MoE, DeepSeek)
 * are in moe.c, DeepSeek's latent attention in mla.c. Key and value heads are repeated before attention,
 * with flash attention too (as transformers' SDPA path and torchtitan do).
 *
 * A sliding window (Mistral, Qwen2) narrows flash attention; naive attention computes all scores and masks.
 *
 * Ignored: that Gemma's norm multiplies by 1 + weight, in FP32; the tables of cosines and sines (once per model); the
 * copy of the logits that Hugging Face makes to shift them by one. */
#include "model/family.h"

static void projection(struct model_builder *b, const char *name, int64_t out, int64_t in, bool bias)
{
    build_tensor(b, arena_printf(b->arena, "self_attn.%s.weight", name), out, in);
    if (bias)
        build_tensor(b, arena_printf(b->arena, "self_attn.%s.bias", name), out, 1);
}

static void attention_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    if (s->mla.kv_lora_rank > 0) {
        mla_tensors(b);
        return;
    }
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv, kv = s->n_kv_heads * s->d_kv;
    if (s->fused_projections) {
        projection(b, "qkv_proj", inner + 2 * kv, d, s->biases);
    } else {
        projection(b, "q_proj", inner, d, s->biases);
        projection(b, "k_proj", kv, d, s->biases);
        projection(b, "v_proj", kv, d, s->biases);
    }
    projection(b, "o_proj", d, inner, false);
    if (s->qk_norm) {
        build_tensor(b, "self_attn.q_norm.weight", s->d_kv, 1);
        build_tensor(b, "self_attn.k_norm.weight", s->d_kv, 1);
    }
}

static void feed_forward_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    if (s->fused_projections) {
        build_tensor(b, "mlp.gate_up_proj.weight", 2 * s->d_ff, d);
    } else {
        build_tensor(b, "mlp.gate_proj.weight", s->d_ff, d);
        build_tensor(b, "mlp.up_proj.weight", s->d_ff, d);
    }
    build_tensor(b, "mlp.down_proj.weight", d, s->d_ff);
}

static void block_tensors(struct model_builder *b, int block)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    attention_tensors(b);
    if (model_local_experts(s, block) > 0)
        moe_tensors(b);
    else
        feed_forward_tensors(b);
    build_tensor(b, "input_layernorm.weight", d, 1);
    build_tensor(b, "post_attention_layernorm.weight", d, 1);
    if (s->post_norms) {
        build_tensor(b, "pre_feedforward_layernorm.weight", d, 1);
        build_tensor(b, "post_feedforward_layernorm.weight", d, 1);
    }
}

static void layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, "model.embed_tokens.weight", s->vocab, d);
    build_tensor(b, "model.norm.weight", d, 1);
    if (!s->tied_embeddings)
        build_tensor(b, "lm_head.weight", s->vocab, d);
    for (int i = 0; i < s->n_layers; i++) {
        build_layer(b, LAYER_DECODER_BLOCK, arena_printf(b->arena, "model.layers.%d", i));
        block_tensors(b, i);
    }
}

/* Of each head; names of tensors as in the scope self_attn. */
static int head_norm(struct tape *t, const struct segment_context *c, const char *name, int x, int64_t heads)
{
    int64_t rows = c->workload->micro_batch * c->workload->seq_len, d = c->shape->d_kv;
    int view = tape_view(t, "heads", x, rows * heads, d);
    int normed = tape_rms_norm(t, name, view, true);
    return tape_view(t, "heads", normed, rows, heads * d);
}

static void project(struct tape *t, const struct model_shape *s, int x, int qkv[3])
{
    const int64_t inner = s->n_heads * s->d_kv, kv = s->n_kv_heads * s->d_kv, widths[3] = {inner, kv, kv};
    if (s->fused_projections) {
        int all = tape_linear(t, "qkv_proj", x);
        tape_split(t, "split", family_copies_qkv(t, s) ? tape_clone(t, "qkv.contiguous", all) : all, widths, qkv, 3);
        return;
    }
    qkv[0] = tape_linear(t, "q_proj", x);
    qkv[1] = tape_linear(t, "k_proj", x);
    qkv[2] = tape_linear(t, "v_proj", x);
}

static int attention(struct tape *t, const struct segment_context *c, int x)
{
    struct tape_attention a = self_attention(c, false);
    a.window = model_window(c->shape, c->layer);
    int qkv[3];
    project(t, c->shape, x, qkv);
    int q = qkv[0], k = qkv[1], v = qkv[2];
    if (c->shape->qk_norm) {
        q = head_norm(t, c, "q_norm", q, c->shape->n_heads);
        k = head_norm(t, c, "k_norm", k, c->shape->n_kv_heads);
    }
    return tape_linear_row(t, "o_proj", family_attention(c, q, k, v, a));
}

/* down(f(gate(x)) up(x)) */
static int feed_forward(struct tape *t, const struct model_shape *s, int x)
{
    enum tape_function function = s->gelu_gate ? TAPE_GELU : TAPE_SILU;
    if (s->fused_projections) {
        const int64_t widths[2] = {s->d_ff, s->d_ff};
        int parts[2];
        if (tape_has_transformer_engine(t) && !s->gelu_gate)
            return tape_linear_row(t, "down_proj", tape_swiglu(t, "swiglu", tape_linear(t, "gate_up_proj", x)));
        tape_split(t, "chunk", tape_linear(t, "gate_up_proj", x), widths, parts, 2);
        int gate = tape_map(t, "activation_fn", function, parts[0]);
        return tape_linear_row(t, "down_proj", tape_mul(t, "mul", gate, parts[1]));
    }
    int gate = tape_map(t, "act_fn", function, tape_linear(t, "gate_proj", x));
    return tape_linear_row(t, "down_proj", tape_mul(t, "mul", gate, tape_linear(t, "up_proj", x)));
}

static int norm_before(struct tape *t, const char *name, int x)
{
    tape_begin_part(t, RECOMPUTE_LAYERNORM);
    int normed = tape_rms_norm(t, name, x, true);
    tape_end_part(t, RECOMPUTE_LAYERNORM);
    return normed;
}

static int experts(const struct segment_context *c, int x)
{
    tape_begin_part(c->tape, RECOMPUTE_MOE);
    int out = moe_forward(c, x);
    tape_end_part(c->tape, RECOMPUTE_MOE);
    return out;
}

static int block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    bool post_norms = c->shape->post_norms;
    int x = tape_input(t, "hidden_states", segment_rows(c, c->workload->seq_len), c->shape->d_model);
    int normed = norm_before(t, "input_layernorm", x);
    tape_scope(t, "self_attn");
    int out = c->shape->mla.kv_lora_rank > 0 ? mla_forward(c, normed) : attention(t, c, tape_enter(t, "in", normed));
    tape_scope(t, "");
    out = post_norms ? tape_rms_norm(t, "post_attention_layernorm", out, true) : out;
    x = tape_add(t, "self_attn.residual", x, out);
    normed = norm_before(t, post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm", x);
    tape_scope(t, "mlp");
    out = model_local_experts(c->shape, c->layer - 1) > 0 ? experts(c, normed)
                                                          : feed_forward(t, c->shape, tape_enter(t, "in", normed));
    tape_scope(t, post_norms ? "" : "mlp");
    out = post_norms ? tape_rms_norm(t, "post_feedforward_layernorm", out, true) : out;
    return tape_add(t, "residual", x, out);
}

static int head(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int x = tape_input(t, "hidden_states", segment_rows(c, c->workload->seq_len), c->shape->d_model);
    x = tape_enter(t, "lm_head.in", tape_rms_norm(t, "model.norm", x, true));
    bool tied = c->shape->tied_embeddings;
    int logits = tape_linear_shared(t, tied ? "model.embed_tokens" : "lm_head", x, tied ? TURN_FIRST : TURN_ONLY);
    if (c->shape->logit_softcap > 0)
        logits = family_softcap(t, (const char *[]){"logits.div", "logits.tanh", "logits.mul"}, logits);
    return tape_word_loss(t, "loss", logits);
}

static int entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int x = tape_words(t, "model.embed_tokens", c->workload->micro_batch * c->workload->seq_len,
        c->shape->tied_embeddings ? TURN_LAST : TURN_ONLY, false);
    x = c->shape->scaled_embedding ? tape_map(t, "model.normalizer", TAPE_SCALE, x) : x;
    return tape_neftune(t, x);
}

static int forward(const struct segment_context *c)
{
    BUG_IF(c->kind == SEGMENT_STACK_EXIT || c->kind == SEGMENT_DECODER_ENTRY, "Llama has one stack");
    return c->kind == SEGMENT_ENTRY ? entry(c) : c->kind == SEGMENT_EXIT ? head(c) : block(c);
}

static const char *check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_kv_heads, s->n_heads % s->n_kv_heads != 0,
            "the number of heads must be a multiple of the number of key heads"),
        MODEL_RULE(d_kv, s->d_kv % 2 != 0, "rotary positions need an even head dimension"),
        MODEL_RULE(
            rotary_share, s->rotary_share < 1, "Llama turns whole heads; for a part of each take the family neox"),
        MODEL_RULE(n_decoder_layers, s->n_decoder_layers != 0, "Llama has one stack: its layers are n_layers"),
        MODEL_RULE(relative_buckets, s->relative_buckets != 0, "Llama has no relative position buckets"),
        MODEL_RULE(max_positions, s->max_positions != 0, "Llama has no learned positions"),
        MODEL_RULE(
            gated_ffn, !s->gated_ffn, "Llama's feed-forward layer is gated; for two matrices take the family gpt"),
        MODEL_RULE(composed_gelu, s->composed_gelu, "Llama has no GELU"),
        MODEL_RULE(max_window_layers, s->max_window_layers > 0 && s->sliding_window == 0,
            "max_window_layers is of a sliding_window, which is not given"),
        MODEL_RULE(full_attention_every, s->full_attention_every > 0 && s->sliding_window == 0,
            "full_attention_every is of a sliding_window, which is not given"),
    };
    const char *wrong = model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
    wrong = wrong ? wrong : moe_check(s, offset);
    return wrong ? wrong : mla_check(s, offset);
}

const struct model_family_code model_family_llama = {
    .defaults = {.family = MODEL_LLAMA, .gated_ffn = true, .rotary_share = 1},
    .layers = layers,
    .forward = forward,
    .check = check,
};
