/* T5 (Raffel et al., arXiv 1910.10683) as Hugging Face transformers 4 runs it in eager mode
 * (modeling_t5.py), without apex.
 *
 * No biases, no scaling of the scores. The relative position bias is computed by the first block of
 * each stack, the mask is added to it, which makes it batch x heads x s x s, and every block adds
 * it to its scores; its gradient is summed over the blocks the same way. In the decoder,
 * cross-attention has a bias too, of zeros and the mask, without gradient.
 *
 * Ignored: the clamp of infinities after each sublayer in FP16; past key values kept when use_cache
 * is on; one sum too many in the stack's last block, where the shared gradients start (a program is
 * shared by the blocks). */
#include "model/family.h"

static void t5_attention_tensors(
    struct model_builder *b, int sublayer, const char *module, bool relative_bias)
{
    const struct model_shape *s = b->shape;
    int64_t inner = s->n_heads * s->d_kv;
    const char *path = arena_printf(b->arena, "layer.%d.%s", sublayer, module);
    build_tensor(b, arena_printf(b->arena, "%s.q.weight", path), inner, s->d_model);
    build_tensor(b, arena_printf(b->arena, "%s.k.weight", path), inner, s->d_model);
    build_tensor(b, arena_printf(b->arena, "%s.v.weight", path), inner, s->d_model);
    build_tensor(b, arena_printf(b->arena, "%s.o.weight", path), s->d_model, inner);
    if (relative_bias)
        build_tensor(b, arena_printf(b->arena, "%s.relative_attention_bias.weight", path),
            s->relative_buckets, s->n_heads);
    build_tensor(b, arena_printf(b->arena, "layer.%d.layer_norm.weight", sublayer), s->d_model, 1);
}

static void stack_layers(
    struct model_builder *b, enum layer_role role, const char *stack, int64_t blocks)
{
    const struct model_shape *s = b->shape;
    int ff = role == LAYER_DECODER_BLOCK ? 2 : 1;
    const char *path = arena_printf(b->arena, "layer.%d", ff);
    for (int i = 0; i < blocks; i++) {
        build_layer(b, role, arena_printf(b->arena, "%s.block.%d", stack, i));
        t5_attention_tensors(b, 0, "SelfAttention", i == 0);
        if (role == LAYER_DECODER_BLOCK)
            t5_attention_tensors(b, 1, "EncDecAttention", false);
        if (s->gated_ffn) {
            build_tensor(b, arena_printf(b->arena, "%s.DenseReluDense.wi_0.weight", path), s->d_ff,
                s->d_model);
            build_tensor(b, arena_printf(b->arena, "%s.DenseReluDense.wi_1.weight", path), s->d_ff,
                s->d_model);
        } else {
            build_tensor(b, arena_printf(b->arena, "%s.DenseReluDense.wi.weight", path), s->d_ff,
                s->d_model);
        }
        build_tensor(
            b, arena_printf(b->arena, "%s.DenseReluDense.wo.weight", path), s->d_model, s->d_ff);
        build_tensor(b, arena_printf(b->arena, "%s.layer_norm.weight", path), s->d_model, 1);
    }
}

static void t5_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, "shared.weight", s->vocab, s->d_model);
    build_tensor(b, "encoder.final_layer_norm.weight", s->d_model, 1);
    build_tensor(b, "decoder.final_layer_norm.weight", s->d_model, 1);
    if (!s->tied_embeddings)
        build_tensor(b, "lm_head.weight", s->vocab, s->d_model);
    stack_layers(b, LAYER_ENCODER_BLOCK, "encoder", s->n_layers);
    stack_layers(b, LAYER_DECODER_BLOCK, "decoder", s->n_decoder_layers);
}

/* T5Attention.compute_bias: 2 aranges, their difference, and 15 (decoder) or 17 (encoder)
 * operations of _relative_position_bucket on query x key integers; then the lookup. The 2 aranges
 * are of a row's size and not counted. */
enum { BUCKET_KERNELS = 16 };

static int compute_bias(struct tape *t, const struct tape_attention *a)
{
    int bucket = -1;
    for (int i = 0; i < BUCKET_KERNELS; i++)
        bucket = tape_integers(t, "relative_position_bucket", bucket, a->queries, a->keys);
    int values = tape_embedding(t, "relative_attention_bias", a->queries * a->keys, TURN_ONLY);
    tape_keep(t, bucket);
    return tape_add_mask(t, "position_bias", values, a->batch * a->heads * a->queries, a->keys);
}

/* position_bias: what the block's caller passed, or -1 in the first block. source: what keys and
 * values are made of. */
static int t5_attention(
    struct tape *t, const struct tape_attention *a, int x, int source, int position_bias)
{
    int64_t products = a->batch * a->heads;
    int q = tape_linear(t, "q", x), k = tape_linear(t, "k", source),
        v = tape_linear(t, "v", source);
    int query = tape_copy(t, "q.copy", q, products * a->queries, a->head_dim);
    int key = tape_copy(t, "k.copy", k, products * a->keys, a->head_dim);
    int scores = tape_matmul(
        t, "scores", query, key, products, a->queries, a->keys, a->head_dim, !a->both_ways);
    if (position_bias < 0) {
        if (tape_has(t, "relative_attention_bias"))
            position_bias = compute_bias(t, a);
        else
            position_bias = tape_add_mask(t, "position_bias",
                tape_zeros(t, "zeros", a->heads * a->queries, a->keys), products * a->queries,
                a->keys);
        tape_share(t, position_bias);
    }
    scores = tape_add_in_place(t, "scores.bias", scores, position_bias);
    int weights = tape_softmax(
        t, "softmax", tape_cast(t, "scores.float", scores, dtype_bytes(DTYPE_FP32)), true);
    weights = tape_dropout(t, "dropout", tape_cast_to_storage(t, "weights.type_as", weights));
    int value = tape_copy(t, "v.copy", v, products * a->keys, a->head_dim);
    int context = tape_matmul(
        t, "context", weights, value, products, a->queries, a->head_dim, a->keys, !a->both_ways);
    context = tape_copy(t, "context.copy", context, a->batch * a->queries, a->heads * a->head_dim);
    int out = tape_linear_row(t, "o", context);
    const int locals[] = {q, k, v, scores};
    for (size_t i = 0; i < sizeof locals / sizeof *locals; i++)
        tape_keep(t, locals[i]);
    return out;
}

/* hidden_states + dropout(sublayer): what ends each of T5LayerSelfAttention, T5LayerCrossAttention
 * and T5LayerFF. */
static int residual(struct tape *t, const char *sublayer, int x, int out)
{
    tape_scope(t, sublayer);
    return tape_add(t, "residual", x, tape_dropout(t, "dropout", out));
}

static int t5_feed_forward(
    struct tape *t, const struct model_shape *s, const char *sublayer, const char *module, int x)
{
    tape_scope(t, sublayer);
    int normed = tape_rms_norm(t, "layer_norm", x, false), hidden = -1;
    tape_scope(t, module);
    normed = tape_enter(t, "in", normed);
    if (s->gated_ffn) {
        int gate = tape_linear(t, "wi_0", normed);
        gate = s->composed_gelu ? tape_gelu_new(t, gate) : tape_map(t, "gelu", TAPE_GELU, gate);
        hidden = tape_mul(t, "mul", gate, tape_linear(t, "wi_1", normed));
    } else {
        hidden = tape_map(t, "act", TAPE_RELU, tape_linear(t, "wi", normed));
    }
    int out = tape_linear_row(t, "wo", tape_dropout(t, "dropout", hidden));
    return residual(t, sublayer, x, out);
}

static int encoder_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    int64_t batch = c->workload->micro_batch, length = c->workload->seq_len;
    struct tape_attention a = self_attention(c, true);
    int x = tape_input(t, "hidden_states", segment_rows(c, length), s->d_model);
    tape_scope(t, "layer.0.SelfAttention");
    int bias =
        tape_has(t, "relative_attention_bias")
            ? -1
            : tape_shared(t, "position_bias", batch * s->n_heads * length, length, !c->frozen);
    tape_scope(t, "layer.0");
    int normed = tape_rms_norm(t, "layer_norm", x, false);
    tape_scope(t, "layer.0.SelfAttention");
    normed = tape_enter(t, "in", normed);
    x = residual(t, "layer.0", x, t5_attention(t, &a, normed, normed, bias));
    return t5_feed_forward(t, s, "layer.1", "layer.1.DenseReluDense", x);
}

static int decoder_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    int64_t batch = c->workload->micro_batch, length = c->workload->decoder_seq_len,
            source = c->workload->seq_len;
    struct tape_attention self = {batch, s->n_heads, length, length, s->d_kv, false, 0, 0};
    struct tape_attention cross = {batch, s->n_heads, length, source, s->d_kv, true, 0, 0};
    int x = tape_input(t, "hidden_states", segment_rows(c, length), s->d_model);
    int memory = tape_memory(t, "encoder_hidden_states", segment_rows(c, source), s->d_model);
    int bias = -1, cross_bias = -1;
    tape_scope(t, "layer.0.SelfAttention");
    if (!tape_has(t, "relative_attention_bias")) {
        bias = tape_shared(t, "position_bias", batch * s->n_heads * length, length, !c->frozen);
        cross_bias = tape_shared(
            t, "encoder_decoder_position_bias", batch * s->n_heads * length, source, false);
    }
    tape_scope(t, "layer.0");
    int normed = tape_rms_norm(t, "layer_norm", x, false);
    tape_scope(t, "layer.0.SelfAttention");
    normed = tape_enter(t, "in", normed);
    x = residual(t, "layer.0", x, t5_attention(t, &self, normed, normed, bias));
    tape_scope(t, "layer.1");
    normed = tape_rms_norm(t, "layer_norm", x, false);
    tape_scope(t, "layer.1.EncDecAttention");
    normed = tape_enter(t, "in", normed);
    memory = tape_enter(t, "memory", memory);
    x = residual(t, "layer.1", x, t5_attention(t, &cross, normed, memory, cross_bias));
    return t5_feed_forward(t, s, "layer.2", "layer.2.DenseReluDense", x);
}

static int stack_exit(const struct segment_context *c, const char *stack, int64_t length)
{
    struct tape *t = c->tape;
    int x = tape_input(t, "hidden_states", segment_rows(c, length), c->shape->d_model);
    tape_scope(t, stack);
    return tape_dropout(t, "dropout", tape_rms_norm(t, "final_layer_norm", x, false));
}

static int t5_head(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int x = stack_exit(c, "decoder", c->workload->decoder_seq_len);
    tape_scope(t, "");
    if (!c->shape->tied_embeddings)
        return tape_word_loss(t, "loss", tape_linear(t, "lm_head", tape_enter(t, "lm_head.in", x)));
    x = tape_enter(t, "lm_head.in", tape_map(t, "sequence_output.scale", TAPE_SCALE, x));
    return tape_word_loss(t, "loss", tape_linear_shared(t, "shared", x, TURN_FIRST));
}

static int t5_forward(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_workload *w = c->workload;
    BUG_IF(w->attention != ATTENTION_NAIVE, "T5 has no flash attention");
    BUG_IF(w->decoder_seq_len <= 0, "T5 with a decoder of %ld tokens", (long)w->decoder_seq_len);
    switch (c->kind) {
    case SEGMENT_ENTRY:
        return tape_dropout(t, "encoder.dropout",
            tape_neftune(
                t, tape_words(t, "shared", w->micro_batch * w->seq_len, TURN_LAST, false)));
    case SEGMENT_BLOCK:
        return c->role == LAYER_ENCODER_BLOCK ? encoder_block(c) : decoder_block(c);
    case SEGMENT_STACK_EXIT:
        return stack_exit(c, "encoder", w->seq_len);
    case SEGMENT_DECODER_ENTRY:
        tape_memory(t, "encoder_hidden_states", segment_rows(c, w->seq_len), c->shape->d_model);
        return tape_dropout(t, "decoder.dropout",
            tape_neftune(t, tape_words(t, "shared", w->micro_batch * w->decoder_seq_len,
                                c->shape->tied_embeddings ? TURN_MIDDLE : TURN_FIRST, false)));
    case SEGMENT_EXIT:
    case SEGMENT_MTP:
    case SEGMENT_BORDER: /* no stage of T5 is cut: strategy_check() */
        break;
    }
    return t5_head(c);
}

static const char *t5_check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_kv_heads, s->n_kv_heads != s->n_heads, "T5 has as many key heads as heads"),
        MODEL_RULE(
            n_decoder_layers, s->n_decoder_layers < 1, "T5 needs a decoder of at least one layer"),
        MODEL_RULE(relative_buckets, s->relative_buckets < 1,
            "T5 needs relative position buckets (32 as published)"),
        MODEL_RULE(max_positions, s->max_positions != 0, "T5 has no learned positions"),
        MODEL_RULE(biases, s->biases, "T5 has no biases"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}

const struct model_family_code model_family_t5 = {
    .defaults = {.family = MODEL_T5,
        .relative_buckets = 32,
        .tied_embeddings = true,
        .dropout = 0.1},
    .layers = t5_layers,
    .forward = t5_forward,
    .check = t5_check,
};
