/* Hugging Face config.json. Each model type has a table of the keys that we read, whose offsets are those of struct
 * model_shape (which stands first in struct config_json), and the defaults of its class in transformers 4
 * (configuration_<type>.py) for keys that the file leaves out. All other keys are ignored: a config.json has dozens.
 * null is the default where transformers takes it so. */
#include "model/family.h"

#include <string.h>

struct config_json {
    struct model_shape shape;
    int feed_forward_proj, activation_function, hidden_act;
    double embd_pdrop, attn_pdrop; /* attn_pdrop: BERT's attention_probs_dropout_prob too */
    bool attention_bias, mlp_bias;
};

static const char *const t5_projections[] = {"relu", "gated-gelu", NULL};
enum { PROJECTION_RELU, PROJECTION_GATED_GELU };
static const char *const gpt2_activations[] = {"gelu_new", "gelu", "gelu_pytorch_tanh", NULL};
enum { ACTIVATION_GELU_NEW };
static const char *const llama_activations[] = {"silu", NULL};
static const char *const bert_activations[] = {"gelu", NULL};

/* required here: null is an error. */
#define KEY(key_, member, ...)                                                                                         \
    {                                                                                                                  \
        .key = (key_), .offset = offsetof(struct config_json, member), __VA_ARGS__                                     \
    }
#define COUNT(high) .type = FIELD_INT, .min = 1, .max = (high), .required = true
#define NULLABLE(high) .type = FIELD_INT, .min = 1, .max = (high)
#define SHARE .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 0.99, .required = true
#define FLAG .type = FIELD_BOOL, .required = true
#define CHOICE(names_) .type = FIELD_ENUM, .names = (names_), .required = true

static const struct config_field t5_fields[] = {
    KEY("d_model", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("d_ff", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("d_kv", shape.d_kv, COUNT(MODEL_MAX_HEAD_DIM)),
    KEY("num_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("num_decoder_layers", shape.n_decoder_layers, NULLABLE(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("relative_attention_num_buckets", shape.relative_buckets, COUNT(MODEL_MAX_HEADS)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("dropout_rate", shape.dropout, SHARE),
    KEY("feed_forward_proj", feed_forward_proj, CHOICE(t5_projections)),
};
static const struct config_field gpt2_fields[] = {
    KEY("n_embd", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("n_inner", shape.d_ff, NULLABLE(MODEL_MAX_WIDTH)),
    KEY("n_head", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("n_layer", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("n_positions", shape.max_positions, COUNT(MODEL_MAX_POSITIONS)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("resid_pdrop", shape.dropout, SHARE),
    KEY("embd_pdrop", embd_pdrop, SHARE),
    KEY("attn_pdrop", attn_pdrop, SHARE),
    KEY("activation_function", activation_function, CHOICE(gpt2_activations)),
};
static const struct config_field llama_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("head_dim", shape.d_kv, NULLABLE(MODEL_MAX_HEAD_DIM)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_key_value_heads", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("attention_dropout", shape.dropout, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(llama_activations)),
    KEY("attention_bias", attention_bias, FLAG),
    KEY("mlp_bias", mlp_bias, FLAG),
};
static const struct config_field vit_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("image_size", shape.image_size, COUNT(MODEL_MAX_IMAGE)),
    KEY("patch_size", shape.patch, COUNT(MODEL_MAX_IMAGE)),
    KEY("hidden_dropout_prob", shape.dropout, SHARE),
    KEY("attention_probs_dropout_prob", attn_pdrop, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(bert_activations)),
    KEY("qkv_bias", shape.biases, FLAG),
};
static const struct config_field bert_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("max_position_embeddings", shape.max_positions, COUNT(MODEL_MAX_POSITIONS)),
    KEY("type_vocab_size", shape.token_types, COUNT(MODEL_MAX_HEADS)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout_prob", shape.dropout, SHARE),
    KEY("attention_probs_dropout_prob", attn_pdrop, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(bert_activations)),
};

#define TABLE(what_, fields_)                                                                                          \
    {                                                                                                                  \
        .what = (what_), .fields = (fields_), .n_fields = sizeof(fields_) / sizeof *(fields_)                          \
    }
static const struct config_table t5_table = TABLE("a T5 config.json", t5_fields);
static const struct config_table gpt2_table = TABLE("a GPT-2 config.json", gpt2_fields);
static const struct config_table llama_table = TABLE("a Llama config.json", llama_fields);
static const struct config_table bert_table = TABLE("a BERT config.json", bert_fields);
static const struct config_table vit_table = TABLE("a ViT config.json", vit_fields);

struct model_type {
    const char *name;
    const struct config_table *table;
    struct config_json defaults;
};

#define LLAMA_DEFAULTS .family = MODEL_LLAMA, .d_model = 4096, .n_heads = 32, .n_layers = 32, .gated_ffn = true

static const struct model_type model_types[] = {
    {"t5", &t5_table,
        {.shape = {.family = MODEL_T5,
             .d_model = 512,
             .d_ff = 2048,
             .d_kv = 64,
             .n_heads = 8,
             .n_layers = 6,
             .vocab = 32128,
             .relative_buckets = 32,
             .tied_embeddings = true,
             .dropout = 0.1}}},
    {"gpt2", &gpt2_table,
        {.shape = {.family = MODEL_GPT,
             .d_model = 768,
             .n_heads = 12,
             .n_layers = 12,
             .vocab = 50257,
             .max_positions = 1024,
             .tied_embeddings = true,
             .biases = true,
             .dropout = 0.1},
            .embd_pdrop = 0.1,
            .attn_pdrop = 0.1}},
    {"llama", &llama_table, {.shape = {LLAMA_DEFAULTS, .d_ff = 11008, .vocab = 32000}}},
    {"mistral", &llama_table, {.shape = {LLAMA_DEFAULTS, .d_ff = 14336, .vocab = 32000, .n_kv_heads = 8}}},
    {"qwen2", &llama_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 22016, .vocab = 151936, .n_kv_heads = 32, .biases = true}}},
    {"bert", &bert_table,
        {.shape = {.family = MODEL_BERT,
             .d_model = 768,
             .d_ff = 3072,
             .n_heads = 12,
             .n_layers = 12,
             .vocab = 30522,
             .max_positions = 512,
             .token_types = 2,
             .head_share = 1,
             .tied_embeddings = true,
             .biases = true,
             .dropout = 0.1},
            .attn_pdrop = 0.1}},
    {"vit", &vit_table,
        {.shape = {.family = MODEL_VIT,
             .d_model = 768,
             .d_ff = 3072,
             .n_heads = 12,
             .n_layers = 12,
             .image_size = 224,
             .patch = 16,
             .classes = 2, /* PretrainedConfig.num_labels, where no id2label lists them */
             .biases = true}}},
};
enum { MODEL_TYPES = sizeof model_types / sizeof *model_types };
#define MODEL_TYPE_NAMES "t5, gpt2, llama, mistral, qwen2, bert, vit"

static const struct model_type *find_type(struct config_node type, struct diag *diag)
{
    const char *names[MODEL_TYPES], *text = config_text(type);
    for (int i = 0; i < MODEL_TYPES; i++) {
        names[i] = model_types[i].name;
        if (strcmp(text, names[i]) == 0)
            return &model_types[i];
    }
    const char *near = nearest_name(text, names, MODEL_TYPES);
    diag_input(diag, config_pos(type), "model_type '%.40s' is not one of " MODEL_TYPE_NAMES "%s%s%s", text,
        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

static enum status read_keys(struct config_json *json, struct config_node root, const struct config_table *table,
    struct arena *arena, struct diag *diag)
{
    enum status worst = STATUS_OK;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        struct config_node value = config_find(root, field->key);
        if (!value.doc)
            continue;
        if (config_kind(value) == CONFIG_NULL && !field->required) {
            *(int64_t *)(void *)((char *)json + field->offset) = 0; /* NULLABLE: to be derived */
            continue;
        }
        enum status status = config_assign(field->key, config_pos(value), value, table, json, arena, NULL, diag);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* What the model does that struct model_shape cannot say. */
static enum status check(const struct config_json *json, struct config_node root, struct diag *diag)
{
    if (json->attention_bias)
        return diag_input(diag, config_pos(config_find(root, "attention_bias")),
            "a bias of the output projection is not modelled (q, k and v only: model_type qwen2)");
    if (json->mlp_bias)
        return diag_input(
            diag, config_pos(config_find(root, "mlp_bias")), "biases of the feed-forward layer are not modelled here");
    double p = json->shape.dropout;
    if (json->shape.family == MODEL_GPT &&
        (json->embd_pdrop < p || json->embd_pdrop > p || json->attn_pdrop < p || json->attn_pdrop > p))
        return diag_input(
            diag, config_pos(root), "resid_pdrop, embd_pdrop and attn_pdrop differ; one probability is modelled");
    if (json->shape.family == MODEL_VIT && !json->shape.biases)
        return diag_input(
            diag, config_pos(config_find(root, "qkv_bias")), "ViT without biases of q, k and v is not modelled");
    bool two_names = json->shape.family == MODEL_BERT || json->shape.family == MODEL_VIT;
    if (two_names && (json->attn_pdrop < p || json->attn_pdrop > p))
        return diag_input(diag, config_pos(root),
            "hidden_dropout_prob and attention_probs_dropout_prob differ; one probability is modelled");
    return STATUS_OK;
}

enum status huggingface_read(struct model_shape *out, struct config_node root, struct config_node type,
    const struct config_table **table, struct arena *arena, struct diag *diag)
{
    if (!type.doc)
        return diag_input(diag, config_pos(root),
            "a config.json without the key 'model_type' (" MODEL_TYPE_NAMES "); add it, as transformers writes it");
    const struct model_type *model_type = find_type(type, diag);
    if (!model_type)
        return STATUS_INPUT;
    *table = model_type->table;
    struct config_json json = model_type->defaults;
    enum status status = read_keys(&json, root, *table, arena, diag);
    if (!status)
        status = check(&json, root, diag);
    if (status)
        return status;
    struct model_shape *shape = &json.shape;
    const char *path = config_pos(root).file, *name = config_text(config_find(root, "_name_or_path"));
    shape->name = arena_strdup(arena, *name ? name : path);
    shape->source = arena_printf(arena, "Hugging Face config.json: %s", path);
    if (shape->family == MODEL_VIT && config_count(config_find(root, "id2label")) > 0)
        shape->classes = config_count(config_find(root, "id2label"));
    if (shape->family == MODEL_T5)
        shape->gated_ffn = json.feed_forward_proj == PROJECTION_GATED_GELU;
    if (shape->family == MODEL_GPT && shape->d_ff == 0)
        shape->d_ff = 4 * shape->d_model; /* GPT2Block: n_inner if not None else 4 * hidden_size */
    shape->composed_gelu = shape->family == MODEL_T5
                               ? shape->gated_ffn
                               : shape->family == MODEL_GPT && json.activation_function == ACTIVATION_GELU_NEW;
    *out = *shape;
    return STATUS_OK;
}
