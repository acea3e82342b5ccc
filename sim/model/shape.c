/* A model file as a struct model_shape, and what a shape must obey. */
#include "model/family.h"

#include <string.h>

#define FIELD(member, ...)                                                                                             \
    {                                                                                                                  \
        .key = #member, .offset = offsetof(struct model_shape, member), __VA_ARGS__                                    \
    }
#define COUNT(low, high) .type = FIELD_INT, .min = (low), .max = (high)

static const struct config_field fields[] = {
    {.key = "family",
        .type = FIELD_ENUM,
        .offset = offsetof(struct model_shape, family),
        .required = true,
        .names = model_family_names,
        .help = "t5, gpt, llama or bert"},
    FIELD(name, .type = FIELD_STRING, .required = true, .help = "What the model is called."),
    FIELD(
        source, .type = FIELD_STRING, .required = true, .help = "Where the shape comes from; assumed ... where it is."),
    FIELD(d_model, COUNT(1, MODEL_MAX_WIDTH), .required = true, .help = "Width of the residual stream."),
    FIELD(d_ff, COUNT(1, MODEL_MAX_WIDTH), .required = true, .help = "Width of the feed-forward layer."),
    FIELD(d_kv, COUNT(1, MODEL_MAX_HEAD_DIM), .help = "Dimension of a head; default d_model / n_heads."),
    FIELD(n_heads, COUNT(1, MODEL_MAX_HEADS), .required = true, .help = "Attention heads."),
    FIELD(n_kv_heads, COUNT(1, MODEL_MAX_HEADS), .help = "Key and value heads; default n_heads."),
    FIELD(n_layers, COUNT(1, MODEL_MAX_LAYERS), .required = true, .help = "Blocks; T5: of the encoder."),
    FIELD(n_decoder_layers, COUNT(0, MODEL_MAX_LAYERS), .help = "T5: blocks of the decoder; default n_layers."),
    FIELD(vocab, COUNT(1, MODEL_MAX_VOCAB), .required = true, .help = "Rows of the embedding."),
    FIELD(max_positions, COUNT(0, MODEL_MAX_POSITIONS),
        .help = "GPT, BERT: rows of the position embedding; GPT: 0 is none."),
    FIELD(relative_buckets, COUNT(0, MODEL_MAX_HEADS), .help = "T5: rows of the relative position bias; default 32."),
    FIELD(token_types, COUNT(1, MODEL_MAX_HEADS), .help = "BERT: rows of the token type embedding; default 2."),
    FIELD(head_share, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0.001, .max = 1,
        .help = "BERT: share of the positions whose word the head predicts; default 1."),
    FIELD(tied_embeddings, .type = FIELD_BOOL, .help = "The head uses the embedding; default: false for llama only."),
    FIELD(gated_ffn, .type = FIELD_BOOL, .help = "Three matrices in the feed-forward layer; default: llama true."),
    FIELD(biases, .type = FIELD_BOOL, .help = "GPT: all layers (default true). Llama: q, k and v (Qwen2)."),
    FIELD(composed_gelu, .type = FIELD_BOOL, .help = "GELU as eight kernels (gelu_new) instead of one; default false."),
    FIELD(dropout, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 0.99,
        .help = "Probability; default: t5, bert 0.1, others 0."),
};

const struct config_table model_shape_table = {
    .what = "a model", .fields = fields, .n_fields = sizeof fields / sizeof *fields};

/* Larger than any model in sight by a factor of a hundred; below it every count of bytes or elements of parameters fits
 * int64. */
static const double MAX_PARAMS = 1e15;

/* An upper bound, in double: each block counted as the largest kind, a T5 decoder's with gated feed-forward. */
static double params_bound(const struct model_shape *s)
{
    double d = (double)s->d_model, inner = (double)s->n_heads * (double)s->d_kv, ff = (double)s->d_ff;
    double blocks = (double)(s->n_layers + s->n_decoder_layers);
    return (2 * (double)s->vocab + (double)s->max_positions) * d + blocks * (8 * d * inner + 3 * d * ff);
}

/* Where the file says this field; the whole file when it does not. */
static struct source_pos field_pos(struct config_node root, const struct config_table *table, size_t offset)
{
    for (int i = 0; i < table->n_fields; i++) {
        struct config_node node = config_find(root, table->fields[i].key);
        if (table->fields[i].offset == offset && node.doc)
            return config_pos(node);
    }
    return config_pos(root);
}

/* What the file leaves to be derived, then what no single field shows. */
static enum status finish(
    struct model_shape *s, struct config_node root, const struct config_table *table, struct diag *diag)
{
    if (s->n_kv_heads == 0)
        s->n_kv_heads = s->n_heads;
    if (s->family == MODEL_T5 && s->n_decoder_layers == 0)
        s->n_decoder_layers = s->n_layers;
    if (s->d_kv == 0 && s->d_model % s->n_heads)
        return diag_input(diag, field_pos(root, table, offsetof(struct model_shape, n_heads)),
            "%ld heads do not divide d_model %ld; choose another number or give the head dimension", (long)s->n_heads,
            (long)s->d_model);
    if (s->d_kv == 0)
        s->d_kv = s->d_model / s->n_heads;
    size_t offset = 0;
    const char *wrong = model_family_code(s)->check(s, &offset);
    if (wrong)
        return diag_input(diag, field_pos(root, table, offset), "%s", wrong);
    if (params_bound(s) > MAX_PARAMS)
        return diag_input(diag, field_pos(root, table, offsetof(struct model_shape, d_model)),
            "up to %.3g parameters; a model has at most %.3g", params_bound(s), MAX_PARAMS);
    return STATUS_OK;
}

static enum status read_own(struct model_shape *out, struct config_node root, struct arena *arena, struct diag *diag)
{
    const char *family = config_text(config_find(root, "family"));
    for (int i = 0; i < MODEL_FAMILY_COUNT; i++)
        if (strcmp(family, model_family_names[i]) == 0)
            *out = model_family_code(&(struct model_shape){.family = i})->defaults;
    return config_read(root, &model_shape_table, out, arena, NULL, diag);
}

static enum status read_document(
    struct model_shape *out, struct config_node root, struct arena *arena, struct diag *diag)
{
    *out = (struct model_shape){0};
    const struct config_table *table = &model_shape_table;
    struct config_node type = config_find(root, "model_type");
    bool ours = !type.doc || config_find(root, "family").doc;
    enum status status =
        ours ? read_own(out, root, arena, diag) : huggingface_read(out, root, type, &table, arena, diag);
    return status ? status : finish(out, root, table, diag);
}

enum status model_load(struct model_shape *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status)
        return status;
    status = read_document(out, config_root(doc), arena, diag);
    config_free(doc);
    return status;
}

enum status model_parse(
    struct model_shape *out, const char *name, const char *text, size_t n, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_parse(&doc, name, text, n, diag);
    if (status)
        return status;
    status = read_document(out, config_root(doc), arena, diag);
    config_free(doc);
    return status;
}
