/* Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU. As Hugging Face transformers 4
 * runs it in eager mode (modeling_llama.py); names as in LlamaForCausalLM. Of Mistral, Qwen2,
 * Qwen3, Phi-3 and Gemma 1 to 3 what differs is a member of struct model_shape: biases of q, k and
 * v, norms of q and k, norms behind the sub-layers, fused matrices, the gate's function, caps of
 * scores and logits, windows; mixtures of experts (Mixtral, Qwen-MoE, DeepSeek) are in moe.c,
 * DeepSeek's latent attention in mla.c, V4's compressed one in compressed.c, blocks that differ
 * from one another in blocks.c. Key and value heads are repeated before attention, with flash
 * attention too (as transformers' SDPA path and torchtitan do).
 *
 * The head and multi-token prediction (DeepSeek-V3) are in mtp.c.
 *
 * A sliding window (Mistral, Qwen2) narrows flash attention; naive attention computes all scores
 * and masks.
 *
 * Ignored: that Gemma's norm multiplies by 1 + weight, in FP32; the tables of cosines and sines
 * (once per model); the copy of the logits that Hugging Face makes to shift them by one. */
#include "model/family.h"

static void projection(
    struct model_builder *b, const char *name, int64_t out, int64_t in, bool bias)
{
    build_tensor(b, arena_printf(b->arena, "self_attn.%s.weight", name), out, in);
    if (bias)
        build_tensor(b, arena_printf(b->arena, "self_attn.%s.bias", name), out, 1);
}

static int64_t value_dim(const struct model_shape *s)
{
    return s->value_dim > 0 ? s->value_dim : s->d_kv;
}

static void llama_attention_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    if (s->mla.kv_lora_rank > 0) {
        mla_tensors(b);
        return;
    }
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv, kv = s->n_kv_heads * s->d_kv;
    if (s->fused_projections) {
        projection(b, "qkv_proj", inner + kv + s->n_kv_heads * value_dim(s), d, s->biases);
    } else {
        projection(b, "q_proj", s->attention_gate ? 2 * inner : inner, d, s->biases);
        projection(b, "k_proj", kv, d, s->biases);
        if (!s->keys_are_values)
            projection(b, "v_proj", s->n_kv_heads * value_dim(s), d, s->biases);
    }
    projection(b, "o_proj", d, s->n_heads * value_dim(s), s->output_bias);
    if (s->attention_sinks)
        build_tensor(b, "self_attn.sinks", s->n_heads, 1);
    if (s->qk_norm || s->qk_norm_whole) {
        build_tensor(b, "self_attn.q_norm.weight", s->qk_norm ? s->d_kv : inner, 1);
        build_tensor(b, "self_attn.k_norm.weight", s->qk_norm ? s->d_kv : kv, 1);
    }
}

static void feed_forward_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    if (s->squared_relu) {
        build_tensor(b, "mlp.up_proj.weight", s->d_ff, d);
    } else if (s->fused_projections) {
        build_tensor(b, "mlp.gate_up_proj.weight", 2 * s->d_ff, d);
    } else {
        build_tensor(b, "mlp.gate_proj.weight", s->d_ff, d);
        build_tensor(b, "mlp.up_proj.weight", s->d_ff, d);
    }
    build_tensor(b, "mlp.down_proj.weight", d, s->d_ff);
}

/* Dense or of experts. Mamba 2 has none, nor have some blocks of a pattern. */
static bool has_feed_forward(const struct model_shape *s, int64_t block)
{
    if (s->pattern)
        return s->pattern[block] == '-' || s->pattern[block] == 'E';
    return s->d_ff > 0 || model_local_experts(s, block) > 0;
}

static void llama_norm_tensors(struct model_builder *b, bool mixes, bool feeds)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    if (mixes || !s->blocks)
        build_tensor(b, "input_layernorm.weight", d, 1);
    if (feeds && (mixes || s->blocks))
        build_tensor(b, "post_attention_layernorm.weight", d, 1);
    if (s->post_norms) {
        build_tensor(b, "pre_feedforward_layernorm.weight", d, 1);
        build_tensor(b, "post_feedforward_layernorm.weight", d, 1);
    }
}

/* Gemma4TextDecoderLayer: the dense layer beside the experts, and norms around each. */
static void beside_tensors(struct model_builder *b)
{
    feed_forward_tensors(b);
    build_tensor(b, "post_feedforward_layernorm_1.weight", b->shape->d_model, 1);
    build_tensor(b, "pre_feedforward_layernorm_2.weight", b->shape->d_model, 1);
    build_tensor(b, "post_feedforward_layernorm_2.weight", b->shape->d_model, 1);
}

static void own_tensors(struct model_builder *b, int block)
{
    const struct model_shape *s = b->shape;
    hyper_tensors(b, "hc_attn");
    bool mixes = model_mixes(s, block + 1), attends = model_attends(s, block + 1),
         feeds = has_feed_forward(s, block);
    if (mixes)
        mixer_tensors(b);
    if (attends && s->compressed.pattern)
        compressed_tensors(b, block + 1);
    else if (attends)
        llama_attention_tensors(b);
    hyper_tensors(b, "hc_ffn");
    if (model_local_experts(s, block) > 0)
        moe_tensors(b, block);
    else if (feeds)
        feed_forward_tensors(b);
    if (s->moe.beside && model_local_experts(s, block) > 0)
        beside_tensors(b);
    llama_norm_tensors(b, mixes || attends, feeds);
}

static void llama_block_tensors(struct model_builder *b, int block)
{
    const struct model_shape *whole = b->shape;
    b->shape = model_block_shape(whole, block + 1, b->arena);
    own_tensors(b, block);
    b->shape = whole;
}

static void llama_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, "model.embed_tokens.weight", s->vocab, d);
    build_tensor(b, "model.norm.weight", d, 1);
    mtp_root_tensors(b);
    hyper_root_tensors(b);
    if (!s->tied_embeddings)
        build_tensor(b, "lm_head.weight", s->vocab, d);
    for (int i = 0; i < s->n_layers + s->mtp_layers; i++) {
        build_layer(b, LAYER_DECODER_BLOCK, arena_printf(b->arena, "model.layers.%d", i));
        mtp_block_tensors(b, i);
        llama_block_tensors(b, i);
    }
}

/* Of each head; names of tensors as in the scope self_attn. */
static int head_norm(
    struct tape *t, const struct segment_context *c, const char *name, int x, int64_t heads)
{
    int64_t rows = c->workload->micro_batch * c->workload->seq_len, d = c->shape->d_kv;
    int view = tape_view(t, "heads", x, rows * heads, d);
    int normed = tape_rms_norm(t, name, view, true);
    return tape_view(t, "heads", normed, rows, heads * d);
}

/* Without a weight: x.float() times rsqrt of the mean of its squares (Llama4TextL2Norm). */
int family_plain_norm(
    struct tape *t, const struct segment_context *c, const char *name, int x, int64_t heads)
{
    int64_t rows = c->workload->micro_batch * c->workload->seq_len, d = c->shape->d_kv;
    int view = tape_view(t, "heads", x, rows * heads, d);
    int wide =
        tape_cast(t, arena_printf(c->arena, "%s.float", name), view, dtype_bytes(DTYPE_FP32));
    int mean = tape_mean(t, "qk_norm.mean", tape_map(t, "qk_norm.pow", TAPE_POWER, wide));
    int factor =
        tape_map(t, "qk_norm.rsqrt", TAPE_RSQRT, tape_map(t, "qk_norm.eps", TAPE_SHIFT, mean));
    int normed = tape_cast_to_storage(t, "qk_norm.to", tape_mul(t, "qk_norm.mul", wide, factor));
    return tape_view(t, "heads", normed, rows, heads * d);
}

static void llama_project(struct tape *t, const struct model_shape *s, int x, int qkv[3])
{
    const int64_t inner = s->n_heads * s->d_kv, kv = s->n_kv_heads * s->d_kv;
    const int64_t widths[3] = {inner, kv, s->n_kv_heads * value_dim(s)};
    if (s->fused_projections) {
        int all = tape_linear(t, "qkv_proj", x);
        tape_split(t, "split", family_copies_qkv(t, s) ? tape_clone(t, "qkv.contiguous", all) : all,
            widths, qkv, 3);
        return;
    }
    qkv[0] = tape_linear(t, "q_proj", x);
    qkv[1] = tape_linear(t, "k_proj", x);
    qkv[2] = s->keys_are_values ? qkv[1] : tape_linear(t, "v_proj", x);
}

/* To a fused kernel chunks are as sequences; those that do not fill the sequence count as equal
 * ones. */
static void cut_into_chunks(const struct segment_context *c, struct tape_attention *a)
{
    int64_t chunk = model_chunk(c->shape, c->layer), length = c->workload->seq_len;
    if (chunk == 0 || chunk >= length || c->workload->attention != ATTENTION_FLASH)
        return;
    int64_t n = (length + chunk - 1) / chunk;
    a->batch *= n;
    a->queries = a->keys = length / n;
}

static int attend(struct tape *t, const struct segment_context *c, int q, int k, int v)
{
    const struct model_shape *s = c->shape;
    struct tape_attention a = self_attention(c, false);
    struct model_shape unrotated = *s;
    struct segment_context without = *c;
    bool turns = !(s->full_unrotated && model_kind_of(s, c->layer) % s->full_attention_every == 0);
    a.window = model_window(s, c->layer);
    a.value_dim = s->value_dim;
    cut_into_chunks(c, &a);
    if (s->value_norm)
        v = family_plain_norm(t, c, "v_norm", v, s->n_kv_heads);
    if (s->qk_norm_whole) {
        q = tape_rms_norm(t, "q_norm", q, true);
        k = tape_rms_norm(t, "k_norm", k, true);
    }
    if (s->qk_norm || (s->qk_plain_norm && turns)) {
        int (*norm)(struct tape *, const struct segment_context *, const char *, int, int64_t) =
            s->qk_norm ? head_norm : family_plain_norm;
        q = norm(t, c, "q_norm", q, s->n_heads);
        k = norm(t, c, "k_norm", k, s->n_kv_heads);
    }
    if (!turns)
        unrotated.rotary_share = 0, without.shape = &unrotated;
    int context = family_attention(turns ? c : &without, q, k, v, a);
    return s->attention_sinks ? tape_sinks(t, "sinks", context, s->n_heads) : context;
}

static int llama_attention(struct tape *t, const struct segment_context *c, int x)
{
    const int64_t inner = c->shape->n_heads * c->shape->d_kv, both[2] = {inner, inner};
    int qkv[3], gated[2] = {0};
    llama_project(t, c->shape, x, qkv);
    if (c->shape->attention_gate) {
        tape_split(t, "gate.split", qkv[0], both, gated, 2);
        qkv[0] = gated[0];
    }
    int context = attend(t, c, qkv[0], qkv[1], qkv[2]);
    if (c->shape->attention_gate)
        context =
            tape_mul(t, "gate.mul", context, tape_map(t, "gate.sigmoid", TAPE_SIGMOID, gated[1]));
    return tape_linear_row(t, "o_proj", context);
}

/* down(f(gate(x)) up(x)), or down(relu(up(x))^2) */
static int llama_feed_forward(struct tape *t, const struct model_shape *s, int x)
{
    if (s->squared_relu)
        return tape_linear_row(
            t, "down_proj", tape_squared_relu(t, "act_fn", tape_linear(t, "up_proj", x)));
    enum tape_function function = s->gelu_gate ? TAPE_GELU : TAPE_SILU;
    if (s->fused_projections) {
        const int64_t widths[2] = {s->d_ff, s->d_ff};
        int parts[2];
        if (tape_has_transformer_engine(t) && !s->gelu_gate)
            return tape_linear_row(
                t, "down_proj", tape_swiglu(t, "swiglu", tape_linear(t, "gate_up_proj", x)));
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

static int dense(const struct segment_context *c, int x)
{
    tape_begin_part(c->tape, RECOMPUTE_MLP);
    int out = llama_feed_forward(c->tape, c->shape, tape_enter(c->tape, "in", x));
    tape_end_part(c->tape, RECOMPUTE_MLP);
    return out;
}

/* Plus attention, or what a block has in its place. */
static int mixed(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    struct hyper_pass pass;
    int normed = norm_before(t, "input_layernorm", hyper_enter(c, "hc_attn", x, &pass));
    tape_scope(t, "self_attn");
    int out = model_mixes(c->shape, c->layer)  ? mixer_forward(c, normed)
              : c->shape->compressed.pattern   ? compressed_forward(c, normed)
              : c->shape->mla.kv_lora_rank > 0 ? mla_forward(c, normed)
                                               : llama_attention(t, c, tape_enter(t, "in", normed));
    tape_scope(t, "");
    out = c->shape->post_norms ? tape_rms_norm(t, "post_attention_layernorm", out, true) : out;
    return c->shape->hyper > 1 ? hyper_leave(c, "hc_attn", &pass, out)
                               : tape_add(t, "self_attn.residual", x, out);
}

/* Gemma4TextDecoderLayer: the experts read the residual stream by another norm. Ignored: that the
 * router reads it by another, without weights, times router.scale. */
static int llama_beside(const struct segment_context *c, int x, int normed)
{
    struct tape *t = c->tape;
    int out = dense(c, normed);
    tape_scope(t, "");
    out = tape_rms_norm(t, "post_feedforward_layernorm_1", out, true);
    int in = norm_before(t, "pre_feedforward_layernorm_2", x);
    tape_scope(t, "mlp");
    int routed = experts(c, in);
    tape_scope(t, "");
    return tape_add(
        t, "mlp.add", out, tape_rms_norm(t, "post_feedforward_layernorm_2", routed, true));
}

static int fed(const struct segment_context *c, const char *norm, int x)
{
    struct tape *t = c->tape;
    bool post_norms = c->shape->post_norms,
         routed = model_local_experts(c->shape, c->layer - 1) > 0;
    struct hyper_pass pass;
    int normed = norm_before(t, norm, hyper_enter(c, "hc_ffn", x, &pass));
    tape_scope(t, "mlp");
    int out = routed && c->shape->moe.beside ? llama_beside(c, x, normed)
              : routed                       ? experts(c, normed)
                                             : dense(c, normed);
    tape_scope(t, post_norms || c->shape->hyper > 1 ? "" : "mlp");
    out = post_norms ? tape_rms_norm(t, "post_feedforward_layernorm", out, true) : out;
    return c->shape->hyper > 1 ? hyper_leave(c, "hc_ffn", &pass, out)
                               : tape_add(t, "residual", x, out);
}

static int llama_block(const struct segment_context *whole)
{
    struct segment_context own = *whole;
    const struct segment_context *c = &own;
    own.shape = model_block_shape(whole->shape, whole->layer, whole->arena);
    int x = mtp_block_input(c);
    bool feeds = has_feed_forward(c->shape, c->layer - 1);
    if (feeds && c->shape->pattern)
        return fed(c, "input_layernorm", x);
    x = c->shape->blocks && c->shape->n_kv_heads == 0 ? x : mixed(c, x);
    return feeds ? fed(c,
                       c->shape->post_norms ? "pre_feedforward_layernorm"
                                            : "post_attention_layernorm",
                       x)
                 : x;
}

static int llama_entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int x = tape_words(t, "model.embed_tokens", c->workload->micro_batch * c->workload->seq_len,
        mtp_entry_turn(c), false);
    x = c->shape->scaled_embedding ? tape_map(t, "model.normalizer", TAPE_SCALE, x) : x;
    return hyper_begin(c, tape_neftune(t, x));
}

static int llama_forward(const struct segment_context *c)
{
    BUG_IF(
        c->kind == SEGMENT_STACK_EXIT || c->kind == SEGMENT_DECODER_ENTRY, "Llama has one stack");
    return c->kind == SEGMENT_ENTRY   ? llama_entry(c)
           : c->kind == SEGMENT_BLOCK ? llama_block(c)
                                      : mtp_head(c);
}

static const char *llama_check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_kv_heads, s->n_heads % s->n_kv_heads != 0,
            "the number of heads must be a multiple of the number of key heads"),
        MODEL_RULE(d_kv, s->d_kv % 2 != 0, "rotary positions need an even head dimension"),
        MODEL_RULE(n_decoder_layers, s->n_decoder_layers != 0,
            "Llama has one stack: its layers are n_layers"),
        MODEL_RULE(
            relative_buckets, s->relative_buckets != 0, "Llama has no relative position buckets"),
        MODEL_RULE(max_positions, s->max_positions != 0, "Llama has no learned positions"),
        MODEL_RULE(gated_ffn, s->gated_ffn == s->squared_relu,
            "Llama's feed-forward layer is gated, or (gated_ffn: false) has squared_relu; for "
            "others take the family gpt"),
        MODEL_RULE(squared_relu, s->squared_relu && (s->gelu_gate || s->fused_projections),
            "squared_relu is of a feed-forward layer of two matrices; leave the gate out"),
        MODEL_RULE(composed_gelu, s->composed_gelu, "Llama has no GELU"),
        MODEL_RULE(max_window_layers, s->max_window_layers > 0 && s->sliding_window == 0,
            "max_window_layers is of a sliding_window, which is not given"),
        MODEL_RULE(fused_projections,
            s->fused_projections && s->value_dim > 0 && s->value_dim != s->d_kv,
            "values of another dimension than keys are modelled with separate matrices"),
        MODEL_RULE(full_attention_every,
            s->full_attention_every > 0 && s->sliding_window == 0 && s->attention_chunk == 0,
            "full_attention_every is of a sliding_window or attention_chunk, which is not given"),
        MODEL_RULE(full_unrotated, s->full_unrotated && s->full_attention_every == 0,
            "full_unrotated is of the blocks of full_attention_every, which is not given"),
        MODEL_RULE(attention_chunk, s->attention_chunk > 0 && s->sliding_window > 0,
            "attention is in chunks or in a window; leave one of them out"),
        MODEL_RULE(output_bias, s->output_bias && !s->biases,
            "output_bias stands beside biases, which are not given"),
        MODEL_RULE(attention_gate, s->attention_gate && s->fused_projections,
            "a gate of attention is modelled with separate matrices"),
    };
    const char *wrong = model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
    wrong = wrong ? wrong : moe_check(s, offset);
    wrong = wrong ? wrong : mla_check(s, offset);
    wrong = wrong ? wrong : blocks_check(s, offset);
    wrong = wrong ? wrong : compressed_check(s, offset);
    return wrong ? wrong : mixer_check(s, offset);
}

const struct model_family_code model_family_llama = {
    .defaults = {.family = MODEL_LLAMA, .gated_ffn = true, .rotary_share = 1},
    .layers = llama_layers,
    .forward = llama_forward,
    .check = llama_check,
};
