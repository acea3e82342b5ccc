/* ViT: an encoder over the patches of an image and a token for its class, with norms before the
 * sublayers. As ViTForImageClassification of Hugging Face transformers runs it in eager mode; names
 * as there (torchvision's vit_b_16 has the same tensors with q, k and v in one). Source: arXiv
 * 2010.11929.
 *
 * DeepViT (arXiv 2103.11886; lucidrains' vit_pytorch/deepvit.py): after the softmax the maps of the
 * heads are mixed by a learned heads x heads matrix and normed across heads. Differs: each head's
 * map is multiplied as a row of b s^2 columns (the einsum does the same after a copy of the maps,
 * which is modelled). */
#include "model/family.h"

enum { CLASS_TOKEN = 1 };

static const char EMBEDDINGS[] = "vit.embeddings";

static int64_t patches(const struct model_shape *s)
{
    int64_t side = s->image_size / s->patch;
    return side * side;
}

static void vit_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, arena_printf(b->arena, "%s.cls_token", EMBEDDINGS), CLASS_TOKEN, d);
    build_tensor(b, arena_printf(b->arena, "%s.position_embeddings", EMBEDDINGS),
        patches(s) + CLASS_TOKEN, d);
    build_linear(b, "vit.embeddings.patch_embeddings.projection", COLOURS * s->patch * s->patch, d);
    build_linear(b, "vit.layernorm", 1, d);
    build_linear(b, "classifier", d, s->classes);
    for (int i = 0; i < s->n_layers; i++) {
        build_layer(b, LAYER_ENCODER_BLOCK, arena_printf(b->arena, "vit.encoder.layer.%d", i));
        build_linear(b, "attention.attention.query", d, inner);
        build_linear(b, "attention.attention.key", d, inner);
        build_linear(b, "attention.attention.value", d, inner);
        build_linear(b, "attention.output.dense", inner, d);
        build_linear(b, "intermediate.dense", d, s->d_ff);
        build_linear(b, "output.dense", s->d_ff, d);
        build_linear(b, "layernorm_before", 1, d);
        build_linear(b, "layernorm_after", 1, d);
        if (!s->mixes_heads)
            continue;
        build_tensor(b, "attention.reattn.weight", s->n_heads, s->n_heads);
        build_linear(b, "attention.reattn_norm", 1, s->n_heads);
    }
}

/* Maps of all heads as rows of their heads: mixed, normed, and laid out by head again. */
static int mix_heads(struct tape *t, const struct tape_attention *a, int weights)
{
    int64_t pairs = a->batch * a->queries * a->keys;
    weights = tape_copy(t, "reattn.copy", weights, pairs, a->heads);
    weights = tape_layer_norm(t, "reattn_norm", tape_linear(t, "reattn", weights));
    return tape_copy(t, "reattn.back", weights, a->batch * a->heads * a->queries, a->keys);
}

static int vit_naive_attention(struct tape *t, const struct model_shape *s,
    const struct tape_attention *a, int q, int k, int v)
{
    int weights = tape_softmax(t, "softmax", tape_scores(t, a, q, k), false);
    weights = tape_dropout(t, "dropout", weights);
    if (s->mixes_heads) {
        tape_scope(t, "attention");
        weights = mix_heads(t, a, weights);
        tape_scope(t, "attention.attention");
    }
    return tape_context(t, a, weights, v);
}

static int vit_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_workload *w = c->workload;
    struct tape_attention a = self_attention(c, true);
    int x = tape_input(t, "hidden_states", segment_rows(c, w->seq_len), c->shape->d_model);
    int in = tape_layer_norm(t, "layernorm_before", x);
    tape_scope(t, "attention.attention");
    in = tape_enter(t, "in", in);
    int q = tape_linear(t, "query", in), k = tape_linear(t, "key", in),
        v = tape_linear(t, "value", in);
    bool fused = w->attention == ATTENTION_FLASH;
    BUG_IF(fused && !model_takes_flash(c->shape), "DeepViT has no flash attention");
    int out =
        fused ? tape_flash(t, "flash", q, k, v, a) : vit_naive_attention(t, c->shape, &a, q, k, v);
    tape_scope(t, "attention.output");
    out = tape_dropout(t, "dropout", tape_linear_row(t, "dense", out));
    tape_scope(t, "");
    x = tape_add(t, "attention.residual", out, x);
    in = tape_enter(t, "intermediate.in", tape_layer_norm(t, "layernorm_after", x));
    out = tape_linear(t, "intermediate.dense", in);
    out = tape_linear_row(t, "output.dense", tape_map(t, "intermediate.gelu", TAPE_GELU, out));
    return tape_add(t, "output.residual", tape_dropout(t, "output.dropout", out), x);
}

static int vit_entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    int64_t images = c->workload->micro_batch;
    struct tape_window window = {.images = images,
        .size = s->image_size,
        .kernel = s->patch,
        .stride = s->patch,
        .groups = 1};
    int x = tape_images(t, "pixel_values", images * s->image_size * s->image_size, COLOURS);
    x = tape_conv(t, "vit.embeddings.patch_embeddings.projection",
        tape_cast_to_storage(t, "pixel_values.to", x), window);
    x = tape_prepend(t, EMBEDDINGS, "cls_token", x, images);
    x = tape_scatter(t, "own", tape_add_learned(t, EMBEDDINGS, "position_embeddings", x));
    return tape_dropout(t, "vit.embeddings.dropout", x);
}

static int vit_forward(const struct segment_context *c)
{
    const struct model_workload *w = c->workload;
    if (c->kind == SEGMENT_ENTRY)
        return vit_entry(c);
    if (c->kind == SEGMENT_BLOCK)
        return vit_block(c);
    BUG_IF(c->kind != SEGMENT_EXIT, "ViT has one stack");
    int x = tape_input(c->tape, "hidden_states", segment_rows(c, w->seq_len), c->shape->d_model);
    x = tape_gather(c->tape, "classifier.in", tape_layer_norm(c->tape, "vit.layernorm", x));
    x = tape_select(c->tape, "class_token", x, w->micro_batch);
    return tape_cross_entropy(c->tape, "loss", tape_linear(c->tape, "classifier", x));
}

static const char *vit_check(const struct model_shape *s, size_t *offset)
{
    const struct model_rule rules[] = {
        MODEL_RULE(n_heads, s->n_heads * s->d_kv != s->d_model || s->n_kv_heads != s->n_heads,
            "in ViT, heads x head dimension is d_model, for keys too: choose a number of heads "
            "that divides d_model"),
        MODEL_RULE(patch, s->patch == 0 || s->image_size % s->patch,
            "patches divide an image's side: give patch, 16 for images of 224"),
        MODEL_RULE(vocab, s->vocab != 0, "ViT has no vocabulary; leave it out"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}

const struct model_family_code model_family_vit = {
    .defaults =
        {.family = MODEL_VIT, .image_size = 224, .patch = 16, .classes = 1000, .biases = true},
    .layers = vit_layers,
    .forward = vit_forward,
    .check = vit_check,
};
