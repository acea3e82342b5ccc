/* DHEN, a Deep and Hierarchical Ensemble Network that ranks (arXiv 2203.11014), as a dense stack
 * over features that come out of sparse tables. A sample is m features of d elements: m - 1 pooled
 * embeddings and one that an MLP makes of its dense inputs. A layer is Norm(sum of modules(X) + X),
 * section 3; a module takes and gives m features:
 * - linear: a matrix over the features
 * - dot: every pair of features multiplied (X X^T), then an MLP of width d_ff back to m features:
 *   the paper's AdvancedDLRM
 * - attention: a TransformerEncoderLayer whose tokens are the features, without dropout
 * - convolution: 3 x 3 over features x d, one channel
 * - cross: X * (W x + b), x the sample as one vector (DCN-V2, arXiv 2008.13535)
 *
 * The ensemble is the sum, one of the paper's three forms. Behind the last layer an MLP of width
 * d_ff gives one number a task. Its loss is counted as cross entropy's kernels (binary cross
 * entropy: some bytes a sample).
 *
 * The tables (tape_tables) are model parallel: each rank keeps its share of them, whatever the
 * strategy does with the dense part. Ignored: that tables are of unequal size and load, features of
 * unequal pooling, tables in host memory. */
#include "model/family.h"

#include <math.h>

enum { CONV_KERNEL = 3 };

const char *const table_format_names[TABLES_FORMAT_COUNT + 1] = {
    [TABLES_FP16] = "fp16", [TABLES_FP32] = "fp32"};

static double dhen_share(double elements, int64_t ranks)
{
    return ceil(elements / (double)ranks);
}

int64_t model_table_bytes(const struct model_shape *shape, int64_t ranks)
{
    int64_t element_bytes = shape->dhen.tables.format == TABLES_FP16 ? 2 : 4;
    return (int64_t)dhen_share(shape->dhen.tables.params, ranks) * element_bytes;
}

int64_t model_table_state_bytes(const struct model_shape *shape, int64_t ranks)
{
    double rows =
        shape->dhen.tables.params > 0 ? shape->dhen.tables.params / (double)shape->d_model : 0;
    return (int64_t)dhen_share(rows, ranks) * (int64_t)sizeof(float);
}

static void dhen_attention_tensors(struct model_builder *b)
{
    int64_t d = b->shape->d_model;
    build_linear(b, "attention.q", d, d);
    build_linear(b, "attention.k", d, d);
    build_linear(b, "attention.v", d, d);
    build_linear(b, "attention.out", d, d);
    build_linear(b, "attention.norm1", 1, d);
    build_linear(b, "attention.linear1", d, b->shape->d_ff);
    build_linear(b, "attention.linear2", b->shape->d_ff, d);
    build_linear(b, "attention.norm2", 1, d);
}

static void layer_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t m = s->dhen.features, sample = m * s->d_model;
    if (s->dhen.linear)
        build_linear(b, "linear", m, m);
    if (s->dhen.dot) {
        build_linear(b, "dot.0", m * m, s->d_ff);
        build_linear(b, "dot.2", s->d_ff, sample);
    }
    if (s->dhen.attention)
        dhen_attention_tensors(b);
    if (s->dhen.convolution)
        build_linear(b, "convolution", (int64_t)CONV_KERNEL * CONV_KERNEL, 1);
    if (s->dhen.cross)
        build_linear(b, "cross", sample, sample);
    build_linear(b, "norm", 1, s->d_model);
}

static void dhen_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    build_layer(b, LAYER_ROOT, "root");
    build_linear(b, "bottom.0", s->dhen.inputs, s->d_ff);
    build_linear(b, "bottom.2", s->d_ff, s->d_model);
    build_linear(b, "over.0", s->dhen.features * s->d_model, s->d_ff);
    build_linear(b, "over.2", s->d_ff, s->classes);
    for (int i = 0; i < s->n_layers; i++) {
        build_layer(b, LAYER_ENCODER_BLOCK, arena_printf(b->arena, "layers.%d", i));
        layer_tensors(b);
    }
}

/* A layer's features; samples x features rows of d. */
struct sample {
    int64_t samples, features, d, heads;
    int x;
};

static int dhen_mlp(struct tape *t, const char *first, const char *second, int x)
{
    x = tape_linear(t, first, x);
    return tape_linear(t, second, tape_map(t, "relu", TAPE_RELU, x));
}

/* The product is with the transpose, which is copied; its result is read through strides. */
static int linear_module(struct tape *t, const struct sample *s)
{
    int across = tape_copy(t, "linear.transpose", s->x, s->samples * s->d, s->features);
    return tape_view(
        t, "linear.view", tape_linear(t, "linear", across), s->samples * s->features, s->d);
}

static int dot_module(struct tape *t, const struct sample *s)
{
    int pairs =
        tape_matmul(t, "dot", s->x, s->x, s->samples, s->features, s->features, s->d, false);
    pairs = tape_view(t, "dot.view", pairs, s->samples, s->features * s->features);
    return tape_view(
        t, "dot.back", dhen_mlp(t, "dot.0", "dot.2", pairs), s->samples * s->features, s->d);
}

static int dhen_naive_attention(struct tape *t, const struct tape_attention *a, int q, int k, int v)
{
    int weights = tape_softmax(t, "softmax", tape_scores(t, a, q, k), false);
    return tape_context(t, a, weights, v);
}

static int attention_module(struct tape *t, const struct sample *s, bool fused)
{
    struct tape_attention shape = {.batch = s->samples,
        .heads = s->heads,
        .queries = s->features,
        .keys = s->features,
        .head_dim = s->d / s->heads,
        .both_ways = true};
    tape_scope(t, "attention");
    int q = tape_linear(t, "q", s->x), k = tape_linear(t, "k", s->x), v = tape_linear(t, "v", s->x);
    int out =
        fused ? tape_flash(t, "flash", q, k, v, shape) : dhen_naive_attention(t, &shape, q, k, v);
    int x = tape_layer_norm(t, "norm1", tape_add(t, "residual1", tape_linear(t, "out", out), s->x));
    out = dhen_mlp(t, "linear1", "linear2", x);
    x = tape_layer_norm(t, "norm2", tape_add(t, "residual2", out, x));
    tape_scope(t, "");
    return x;
}

static int convolution_module(struct tape *t, const struct sample *s)
{
    struct tape_window window = {.images = s->samples,
        .size = s->features,
        .width = s->d,
        .kernel = CONV_KERNEL,
        .stride = 1,
        .groups = 1};
    int plane = tape_view(t, "convolution.view", s->x, s->samples * s->features * s->d, 1);
    plane = tape_conv(t, "convolution", plane, window);
    return tape_view(t, "convolution.back", plane, s->samples * s->features, s->d);
}

static int cross_module(struct tape *t, const struct sample *s)
{
    int flat = tape_view(t, "cross.view", s->x, s->samples, s->features * s->d);
    int crossed = tape_mul(t, "cross.mul", flat, tape_linear(t, "cross", flat));
    return tape_view(t, "cross.back", crossed, s->samples * s->features, s->d);
}

static int dhen_block(const struct segment_context *c)
{
    enum { MODULES = 5 };
    struct tape *t = c->tape;
    const struct model_dhen *dhen = &c->shape->dhen;
    struct sample s = {.samples = c->workload->micro_batch,
        .features = dhen->features,
        .d = c->shape->d_model,
        .heads = c->shape->n_heads};
    s.x = tape_input(t, "features", s.samples * s.features, s.d);
    int terms[MODULES], n = 0;
    if (dhen->linear)
        terms[n++] = linear_module(t, &s);
    if (dhen->dot)
        terms[n++] = dot_module(t, &s);
    if (dhen->attention)
        terms[n++] = attention_module(t, &s, c->workload->attention == ATTENTION_FLASH);
    if (dhen->convolution)
        terms[n++] = convolution_module(t, &s);
    if (dhen->cross)
        terms[n++] = cross_module(t, &s);
    int sum = s.x;
    for (int i = 0; i < n; i++)
        sum = tape_add(t, "ensemble", sum, terms[i]);
    return tape_layer_norm(t, "norm", sum);
}

static int dhen_entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int64_t samples = c->workload->micro_batch;
    int embeddings = tape_tables(t, "tables", samples);
    int x = tape_cast_to_storage(
        t, "inputs.to", tape_images(t, "inputs", samples, c->shape->dhen.inputs));
    x = tape_map(t, "bottom.relu", TAPE_RELU, dhen_mlp(t, "bottom.0", "bottom.2", x));
    return tape_join(t, "features", embeddings, x);
}

static int dhen_forward(const struct segment_context *c)
{
    if (c->kind == SEGMENT_ENTRY)
        return dhen_entry(c);
    if (c->kind == SEGMENT_BLOCK)
        return dhen_block(c);
    BUG_IF(c->kind != SEGMENT_EXIT, "DHEN has one stack");
    int64_t samples = c->workload->micro_batch, features = c->shape->dhen.features,
            d = c->shape->d_model;
    int x = tape_input(c->tape, "features", samples * features, d);
    x = tape_view(c->tape, "over.view", x, samples, features * d);
    return tape_cross_entropy(c->tape, "loss", dhen_mlp(c->tape, "over.0", "over.2", x));
}

static const char *dhen_check(const struct model_shape *s, size_t *offset)
{
    const struct model_dhen *dhen = &s->dhen;
    const struct model_rule rules[] = {
        MODEL_RULE(dhen,
            !dhen->linear && !dhen->dot && !dhen->attention && !dhen->convolution && !dhen->cross,
            "a layer has at least one module: linear, dot, attention, convolution or cross"),
        MODEL_RULE(n_heads, s->n_heads * s->d_kv != s->d_model || s->n_kv_heads != s->n_heads,
            "in DHEN, heads x head dimension is d_model, for keys too: choose a number of heads "
            "that divides d_model"),
        MODEL_RULE(vocab, s->vocab != 0, "DHEN has tables instead of a vocabulary; leave it out"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}

const struct model_family_code model_family_dhen = {
    .defaults = {.family = MODEL_DHEN,
        .classes = 1,
        .biases = true,
        .dhen = {.tables = {.pooling = 1}}},
    .layers = dhen_layers,
    .forward = dhen_forward,
    .check = dhen_check,
};
