/* GPT: LayerNorm before each sublayer, one matrix for q, k and v, GELU. As GPT-2 in Hugging Face
 * transformers, minGPT and MPT run it in eager mode; names as in GPT2LMHeadModel. Positions are
 * learned, or none (max_positions 0). OPT has three matrices for q, k and v and ReLU; BLOOM has a
 * norm behind the embedding and ALiBi, which the kernel that masks adds.
 *
 * sequence_first and fused_softmax: Megatron-LM (Narayanan et al., arXiv 2104.04473, section 4.2;
 * megatron/model/transformer.py, ParallelAttention): hidden states lie as (sequence, batch, width),
 * batched products read q, k and v by strides and scale (torch.baddbmm), one kernel masks and
 * normalises (scaled_upper_triang_masked_softmax_cuda; counted with whole rows), where a rank's
 * heads times sequences are a multiple of 4; else PyTorch's do, in FP32
 * (FusedScaleMaskSoftmax.is_kernel_available, forward_torch_softmax; with the layer's number as a
 * factor, apply_query_key_layer_scaling). Ignored: that bias, dropout and residual are one kernel
 * there, two here.
 *
 * Ignored: the copy of the logits that Hugging Face makes to shift them by one (minGPT and MPT
 * shift the labels). */
#include "model/family.h"

static void gpt_linear_tensors(struct model_builder *b, const char *name, int64_t in, int64_t out)
{
    build_tensor(b, arena_printf(b->arena, "%s.weight", name), in, out); /* Conv1D: transposed */
    if (b->shape->biases)
        build_tensor(b, arena_printf(b->arena, "%s.bias", name), out, 1);
}

static void gpt_norm_tensors(struct model_builder *b, const char *name)
{
    build_tensor(b, arena_printf(b->arena, "%s.weight", name), b->shape->d_model, 1);
    if (b->shape->biases)
        build_tensor(b, arena_printf(b->arena, "%s.bias", name), b->shape->d_model, 1);
}

static void gpt_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, "transformer.wte.weight", s->vocab, d);
    if (s->max_positions > 0)
        build_tensor(b, "transformer.wpe.weight", s->max_positions, d);
    if (s->embedding_norm)
        gpt_norm_tensors(b, "transformer.word_embeddings_layernorm");
    gpt_norm_tensors(b, "transformer.ln_f");
    if (!s->tied_embeddings)
        build_tensor(b, "lm_head.weight", s->vocab, d);
    for (int i = 0; i < s->n_layers; i++) {
        build_layer(b, LAYER_DECODER_BLOCK, arena_printf(b->arena, "transformer.h.%d", i));
        gpt_norm_tensors(b, "ln_1");
        if (s->separate_qkv) {
            gpt_linear_tensors(b, "attn.q_proj", d, inner);
            gpt_linear_tensors(b, "attn.k_proj", d, inner);
            gpt_linear_tensors(b, "attn.v_proj", d, inner);
        } else {
            gpt_linear_tensors(b, "attn.c_attn", d, 3 * inner);
        }
        gpt_linear_tensors(b, "attn.c_proj", inner, d);
        gpt_norm_tensors(b, "ln_2");
        gpt_linear_tensors(b, "mlp.c_fc", d, s->d_ff);
        gpt_linear_tensors(b, "mlp.c_proj", s->d_ff, d);
    }
}

static void gpt_project(struct tape *t, const struct model_shape *s, int x, int qkv[3])
{
    const int64_t inner = s->n_heads * s->d_kv, widths[3] = {inner, inner, inner};
    if (!s->separate_qkv) {
        tape_split(t, "split", tape_linear(t, "c_attn", x), widths, qkv, 3);
        return;
    }
    qkv[0] = tape_linear(t, "q_proj", x);
    qkv[1] = tape_linear(t, "k_proj", x);
    qkv[2] = tape_linear(t, "v_proj", x);
}

static int activation(struct tape *t, const struct model_shape *s, int x)
{
    if (s->relu)
        return tape_map(t, "relu", TAPE_RELU, x);
    return s->composed_gelu ? tape_gelu_new(t, x) : tape_map(t, "gelu", TAPE_GELU, x);
}

/* Rows of scores that a block of Megatron-LM's kernel takes. */
enum { FUSED_ROWS = 4 };

/* forward_torch_softmax(). */
static int torch_softmax(struct tape *t, int scores)
{
    int wide = tape_cast(t, "softmax.float", scores, FLOAT_BYTES);
    wide = tape_scale_apart(t, "softmax.scale", wide);
    wide = tape_map(t, "softmax.mask", TAPE_MASK, wide);
    return tape_cast_to_storage(t, "softmax.to", tape_softmax(t, "softmax", wide, true));
}

static int gpt_naive_attention(
    struct tape *t, const struct tape_attention *a, const struct model_shape *s, const int qkv[3])
{
    int weights = tape_scores(t, a, qkv[0], qkv[1]);
    if (s->fused_softmax && a->batch * a->heads % FUSED_ROWS != 0) {
        weights = torch_softmax(t, weights);
    } else {
        if (!s->fused_softmax)
            weights = tape_map(t, "scores.mask", TAPE_MASK, weights);
        weights = tape_softmax(t, "softmax", weights, false);
    }
    weights = s->keeps_attention ? weights : tape_dropout(t, "attn_dropout", weights);
    return tape_context(t, a, weights, qkv[2]);
}

static int gpt_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    const struct model_workload *w = c->workload;
    struct tape_attention a = self_attention(c, false);
    int x = tape_input(t, "hidden_states", segment_rows(c, w->seq_len), s->d_model), qkv[3];

    int normed = tape_layer_norm(t, "ln_1", x);
    tape_scope(t, "attn");
    gpt_project(t, s, tape_enter(t, "in", normed), qkv);
    int out = w->attention == ATTENTION_FLASH ? tape_flash(t, "flash", qkv[0], qkv[1], qkv[2], a)
                                              : gpt_naive_attention(t, &a, s, qkv);
    out = tape_dropout(t, "resid_dropout", tape_linear_row(t, "c_proj", out));
    x = tape_add(t, "residual", x, out);
    int a_in = normed, a_out = out;

    tape_scope(t, "");
    normed = tape_layer_norm(t, "ln_2", x);
    tape_scope(t, "mlp");
    int hidden = activation(t, s, tape_linear(t, "c_fc", tape_enter(t, "in", normed)));
    out = tape_dropout(t, "dropout", tape_linear_row(t, "c_proj", hidden));
    x = tape_add(t, "residual", x, out);
    const int locals[] = {a_in, a_out, normed, out};
    for (size_t i = 0; s->block_locals && i < sizeof locals / sizeof *locals; i++)
        tape_keep(t, locals[i]);
    return x;
}

static int gpt_entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int64_t length = c->workload->seq_len;
    tape_scope(t, "transformer");
    bool learned = c->shape->max_positions > 0;
    int x = tape_words(t, "wte", c->workload->micro_batch * length,
        segment_turn(c, c->shape->tied_embeddings ? TURN_LAST : TURN_ONLY), learned);
    if (c->shape->embedding_norm)
        x = tape_layer_norm(t, "word_embeddings_layernorm", x);
    x = tape_neftune(t, x);
    if (learned)
        x = tape_scatter(
            t, "own", tape_add(t, "add", x, tape_embedding(t, "wpe", length, TURN_ONLY)));
    return tape_dropout(t, "drop", x);
}

int family_head(
    const struct segment_context *c, const char *norm, const char *words, const char *head)
{
    struct tape *t = c->tape;
    int x =
        tape_input(t, "hidden_states", segment_rows(c, c->workload->seq_len), c->shape->d_model);
    x = tape_enter(t, arena_printf(c->arena, "%s.in", head), tape_layer_norm(t, norm, x));
    bool tied = c->shape->tied_embeddings;
    return tape_word_loss(t, "loss",
        tape_linear_shared(
            t, tied ? words : head, x, segment_turn(c, tied ? TURN_FIRST : TURN_ONLY)));
}

static int gpt_forward(const struct segment_context *c)
{
    BUG_IF(c->kind == SEGMENT_STACK_EXIT || c->kind == SEGMENT_DECODER_ENTRY, "GPT has one stack");
    return c->kind == SEGMENT_ENTRY ? gpt_entry(c)
           : c->kind == SEGMENT_EXIT
               ? family_head(c, "transformer.ln_f", "transformer.wte", "lm_head")
               : gpt_block(c);
}

static const char *gpt_check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_heads, s->n_heads * s->d_kv != s->d_model,
            "in GPT, heads x head dimension is d_model: choose a number of heads that divides "
            "d_model"),
        MODEL_RULE(n_kv_heads, s->n_kv_heads != s->n_heads,
            "GPT has as many key heads as heads; for fewer take the family llama"),
        MODEL_RULE(n_decoder_layers, s->n_decoder_layers != 0,
            "GPT has one stack: its layers are n_layers"),
        MODEL_RULE(
            relative_buckets, s->relative_buckets != 0, "GPT has no relative position buckets"),
        MODEL_RULE(
            gated_ffn, s->gated_ffn, "GPT has no gated feed-forward layer; take the family llama"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}

const struct model_family_code model_family_gpt = {
    .defaults = {.family = MODEL_GPT, .tied_embeddings = true, .biases = true},
    .layers = gpt_layers,
    .forward = gpt_forward,
    .check = gpt_check,
};
