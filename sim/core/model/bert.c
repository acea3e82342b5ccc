/* BERT: an encoder whose every sublayer ends in dropout, residual and LayerNorm, and a head (enum
 * bert_head): for masked words and the next sentence, for words alone, for classes of sequences, or
 * none. As the classes of Hugging Face transformers run it in eager mode; names as in
 * BertForPreTraining. The decoder of the words' head is the word embedding, with a separate bias.
 *
 * head_share below 1: the words' head sees the masked positions only, as NVIDIA's
 * DeepLearningExamples have it (sequence_output_is_dense); Hugging Face's sees all.
 *
 * Differs: the pooler's rows, the first of each sequence, are copied before they are multiplied
 * (cuBLAS reads them where they lie); positions are added into a new tensor, not in place.
 * BertModel computes no loss: a cross-entropy over each sequence's pooled vector, which is small,
 * stands for what its user computes from it. */
#include "model/family.h"

#include <math.h>

static const char WORDS[] = "bert.embeddings.word_embeddings";

const char *const bert_head_names[BERT_HEAD_COUNT + 1] = {[BERT_PRETRAINING] = "pretraining",
    [BERT_MASKED_LM] = "masked_lm",
    [BERT_CLASSIFICATION] = "classification",
    [BERT_NO_HEAD] = "none"};

static bool predicts_words(const struct model_shape *s)
{
    return s->head == BERT_PRETRAINING || s->head == BERT_MASKED_LM;
}

static void bert_norm_tensors(struct model_builder *b, const char *name)
{
    build_tensor(b, arena_printf(b->arena, "%s.weight", name), b->shape->d_model, 1);
    build_tensor(b, arena_printf(b->arena, "%s.bias", name), b->shape->d_model, 1);
}

static void head_tensors(struct model_builder *b)
{
    enum { SENTENCE_CLASSES = 2 }; /* B follows A, or not */
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model;
    if (s->head != BERT_MASKED_LM)
        build_linear(b, "bert.pooler.dense", d, d);
    if (predicts_words(s)) {
        build_tensor(b, "cls.predictions.bias", s->vocab, 1);
        build_linear(b, "cls.predictions.transform.dense", d, d);
        bert_norm_tensors(b, "cls.predictions.transform.LayerNorm");
    }
    if (s->head == BERT_PRETRAINING)
        build_linear(b, "cls.seq_relationship", d, SENTENCE_CLASSES);
    else if (s->head == BERT_CLASSIFICATION)
        build_linear(b, "classifier", d, s->classes);
}

static void bert_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, arena_printf(b->arena, "%s.weight", WORDS), s->vocab, d);
    build_tensor(b, "bert.embeddings.position_embeddings.weight", s->max_positions, d);
    build_tensor(b, "bert.embeddings.token_type_embeddings.weight", s->token_types, d);
    bert_norm_tensors(b, "bert.embeddings.LayerNorm");
    head_tensors(b);
    for (int i = 0; i < s->n_layers; i++) {
        build_layer(b, LAYER_ENCODER_BLOCK, arena_printf(b->arena, "bert.encoder.layer.%d", i));
        build_linear(b, "attention.self.query", d, inner);
        build_linear(b, "attention.self.key", d, inner);
        build_linear(b, "attention.self.value", d, inner);
        build_linear(b, "attention.output.dense", inner, d);
        bert_norm_tensors(b, "attention.output.LayerNorm");
        build_linear(b, "intermediate.dense", d, s->d_ff);
        build_linear(b, "output.dense", s->d_ff, d);
        bert_norm_tensors(b, "output.LayerNorm");
    }
}

static int bert_naive_attention(struct tape *t, const struct tape_attention *a, int q, int k, int v)
{
    int weights = tape_scores(t, a, q, k);
    weights =
        tape_map(t, "scores.mask", TAPE_SHIFT, weights); /* of padding: added, not filled in */
    weights = tape_softmax(t, "softmax", weights, false);
    return tape_context(t, a, tape_dropout(t, "dropout", weights), v);
}

/* BertSelfOutput and BertOutput, which are alike. */
static int output(struct tape *t, const char *scope, int x, int residual)
{
    tape_scope(t, scope);
    int out = tape_dropout(t, "dropout", tape_linear_row(t, "dense", x));
    return tape_layer_norm(t, "LayerNorm", tape_add(t, "residual", out, residual));
}

static int bert_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_workload *w = c->workload;
    struct tape_attention a = self_attention(c, true);
    int x = tape_input(t, "hidden_states", segment_rows(c, w->seq_len), c->shape->d_model);
    tape_scope(t, "attention.self");
    int in = tape_enter(t, "in", x);
    int q = tape_linear(t, "query", in), k = tape_linear(t, "key", in),
        v = tape_linear(t, "value", in);
    int out = w->attention == ATTENTION_FLASH ? tape_flash(t, "flash", q, k, v, a)
                                              : bert_naive_attention(t, &a, q, k, v);
    x = output(t, "attention.output", out, x);
    tape_scope(t, "intermediate");
    out = tape_linear(t, "dense", tape_enter(t, "in", x));
    out = tape_map(t, "gelu", TAPE_GELU, out);
    return output(t, "output", out, x);
}

static int bert_entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int64_t length = c->workload->seq_len, tokens = c->workload->micro_batch * length;
    tape_scope(t, "bert.embeddings");
    int words = tape_words(t, "word_embeddings", tokens,
        segment_turn(c, predicts_words(c->shape) ? TURN_LAST : TURN_ONLY), true);
    int types = tape_embedding(t, "token_type_embeddings", tokens, TURN_ONLY);
    int x = tape_add(t, "add_types", words, types);
    int positions = tape_embedding(t, "position_embeddings", length, TURN_ONLY);
    x = tape_scatter(t, "own", tape_add(t, "add_positions", x, positions));
    return tape_dropout(t, "dropout", tape_layer_norm(t, "LayerNorm", x));
}

static int masked_words(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    double tokens = (double)segment_rows(c, c->workload->seq_len);
    tape_scope(t, "cls.predictions");
    if (c->shape->head_share < 1)
        x = tape_select(t, "masked", x, (int64_t)ceil(c->shape->head_share * tokens));
    x = tape_map(t, "transform.gelu", TAPE_GELU, tape_linear(t, "transform.dense", x));
    x = tape_enter(t, "in", tape_layer_norm(t, "transform.LayerNorm", x));
    tape_scope(t, "");
    return tape_word_loss(t, "masked_lm_loss",
        tape_linear_tied(t, WORDS, "cls.predictions.bias", x, segment_turn(c, TURN_FIRST)));
}

static int pooler(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    x = tape_gather(t, "bert.pooler.in", x);
    x = tape_linear(
        t, "bert.pooler.dense", tape_select(t, "bert.pooler.first", x, c->workload->micro_batch));
    return tape_map(t, "bert.pooler.tanh", TAPE_TANH, x);
}

static int next_sentence(const struct segment_context *c, int x)
{
    return tape_cross_entropy(
        c->tape, "next_sentence_loss", tape_linear(c->tape, "cls.seq_relationship", pooler(c, x)));
}

static int model_bert_head(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    if (c->shape->head == BERT_MASKED_LM)
        return masked_words(c, x);
    if (c->shape->head == BERT_PRETRAINING) {
        int words = masked_words(c, x);
        return tape_add_losses(t, "loss", words, next_sentence(c, x));
    }
    x = pooler(c, x);
    if (c->shape->head == BERT_CLASSIFICATION)
        x = tape_linear(t, "classifier", tape_dropout(t, "dropout", x));
    return tape_cross_entropy(t, "loss", x);
}

static int bert_forward(const struct segment_context *c)
{
    BUG_IF(c->kind == SEGMENT_STACK_EXIT || c->kind == SEGMENT_DECODER_ENTRY, "BERT has one stack");
    if (c->kind == SEGMENT_ENTRY)
        return bert_entry(c);
    if (c->kind == SEGMENT_BLOCK)
        return bert_block(c);
    return model_bert_head(c, tape_input(c->tape, "hidden_states",
                                  segment_rows(c, c->workload->seq_len), c->shape->d_model));
}

static const char *bert_check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_heads, s->n_heads * s->d_kv != s->d_model,
            "in BERT, heads x head dimension is d_model: choose a number of heads that divides "
            "d_model"),
        MODEL_RULE(n_kv_heads, s->n_kv_heads != s->n_heads, "BERT has as many key heads as heads"),
        MODEL_RULE(n_decoder_layers, s->n_decoder_layers != 0,
            "BERT has one stack: its layers are n_layers"),
        MODEL_RULE(max_positions, s->max_positions == 0,
            "BERT has learned positions: give how many, 512 in the published models"),
        MODEL_RULE(token_types, s->token_types == 0,
            "BERT has token types: give how many, 2 in the published models"),
        MODEL_RULE(tied_embeddings, !s->tied_embeddings,
            "BERT's head uses the word embedding: tied_embeddings is true"),
        MODEL_RULE(biases, !s->biases, "all layers of BERT have biases"),
        MODEL_RULE(gated_ffn, s->gated_ffn, "BERT has no gated feed-forward layer"),
        MODEL_RULE(
            relative_buckets, s->relative_buckets != 0, "BERT has no relative position buckets"),
        MODEL_RULE(head_share, s->head_share < 1 && !predicts_words(s),
            "head_share is of a head that predicts words: 'pretraining' or 'masked_lm'"),
        MODEL_RULE(classes, (s->head == BERT_CLASSIFICATION) != (s->classes > 0),
            "the head 'classification' needs 'classes', other heads of BERT have none"),
        MODEL_RULE(composed_gelu, s->composed_gelu, "BERT's GELU is one kernel"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}

const struct model_family_code model_family_bert = {
    .defaults = {.family = MODEL_BERT,
        .token_types = 2,
        .head_share = 1,
        .tied_embeddings = true,
        .biases = true,
        .dropout = 0.1},
    .layers = bert_layers,
    .forward = bert_forward,
    .check = bert_check,
};
