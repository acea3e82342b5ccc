/* Hugging Face config.json. Each model type has a table of the keys that we read, whose offsets are those of struct
 * model_shape (which stands first in struct config_json), and the defaults of its class in transformers 4
 * (configuration_<type>.py) for keys that the file leaves out. Of the other keys (a config.json has dozens) those that
 * are known to change nothing pass, others are errors or warnings (model/huggingface.h). null is the default where
 * transformers takes it so.
 *
 * sliding_window: Mistral's flash attention sees this number of keys, 4,096 where the key is absent; Qwen2's only with
 * use_sliding_window, in the blocks from max_window_layers on (Qwen2Config.layer_types). */
#include "model/family.h"
#include "model/huggingface.h"

#include <string.h>

struct config_json {
    struct model_shape shape;
    int feed_forward_proj, activation_function, hidden_act;
    double embd_pdrop, attn_pdrop; /* attn_pdrop: BERT's attention_probs_dropout_prob too */
    bool attention_bias, mlp_bias, use_sliding_window;
    bool multi_query, new_decoder_architecture, alibi; /* Falcon */
    int64_t num_ln_in_parallel_attn;                   /* the same; 0: by its architecture */
    bool do_layer_norm_before;                         /* OPT */
    int64_t word_embed_proj_dim;                       /* the same; 0: the width */
    int windows;                                       /* how blocks of full attention are chosen */
};

/* With use_sliding_window, from max_window_layers on (Qwen2, Qwen3); all but every n-th block (Gemma 2 and 3). */
enum { WINDOWS_ALL, WINDOWS_FROM, WINDOWS_EVERY };

static const char *const t5_projections[] = {"relu", "gated-gelu", NULL};
enum { PROJECTION_RELU, PROJECTION_GATED_GELU };
static const char *const gpt2_activations[] = {"gelu_new", "gelu", "gelu_pytorch_tanh", NULL};
enum { ACTIVATION_GELU_NEW };
static const char *const llama_activations[] = {"silu", NULL};
static const char *const gemma_activations[] = {"gelu_pytorch_tanh", "gelu", NULL}; /* one kernel each */
static const char *const neox_activations[] = {"gelu", NULL};
static const char *const opt_activations[] = {"relu", NULL};
enum { OPT_OFFSET = 2 }; /* OPTLearnedPositionalEmbedding: rows that no position uses */
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
#define SOFTCAP .type = FIELD_NUMBER, .min = 0, .max = 1e6
/* clang-format off */
#define LLAMA_KEYS                                                                                                     \
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),                                                         \
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),                                                      \
    KEY("head_dim", shape.d_kv, NULLABLE(MODEL_MAX_HEAD_DIM)),                                                         \
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),                                                 \
    KEY("num_key_value_heads", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),                                           \
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),                                                 \
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),                                                            \
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),                                                           \
    KEY("attention_dropout", shape.dropout, SHARE),                                                                    \
    KEY("attention_bias", attention_bias, FLAG),                                                                       \
    KEY("mlp_bias", mlp_bias, FLAG)
#define LLAMA_ACTIVATION KEY("hidden_act", hidden_act, CHOICE(llama_activations))
#define GEMMA_KEYS                                                                                                     \
    LLAMA_KEYS,                                                                                                        \
    KEY("hidden_act", hidden_act, CHOICE(gemma_activations)),                                                          \
    KEY("hidden_activation", hidden_act, .type = FIELD_ENUM, .names = gemma_activations)
#define GEMMA2_KEYS                                                                                                    \
    GEMMA_KEYS,                                                                                                        \
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),                                        \
    KEY("attn_logit_softcapping", shape.attention_softcap, SOFTCAP),                                                   \
    KEY("final_logit_softcapping", shape.logit_softcap, SOFTCAP)
#define QWEN_KEYS                                                                                                      \
    LLAMA_KEYS,                                                                                                        \
    LLAMA_ACTIVATION,                                                                                                  \
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),                                        \
    KEY("use_sliding_window", use_sliding_window, FLAG),                                                               \
    KEY("max_window_layers", shape.max_window_layers, .type = FIELD_INT, .min = 0, .max = MODEL_MAX_LAYERS,            \
        .required = true)
/* clang-format on */
static const struct config_field llama_fields[] = {LLAMA_KEYS, LLAMA_ACTIVATION};
static const struct config_field qwen_fields[] = {QWEN_KEYS}; /* Qwen2 and Qwen3 */
static const struct config_field gemma_fields[] = {GEMMA_KEYS};
static const struct config_field gemma2_fields[] = {GEMMA2_KEYS};
static const struct config_field gemma3_fields[] = {
    GEMMA2_KEYS,
    KEY("sliding_window_pattern", shape.full_attention_every, COUNT(MODEL_MAX_LAYERS)),
    KEY("_sliding_window_pattern", shape.full_attention_every, COUNT(MODEL_MAX_LAYERS)),
};
static const struct config_field phi3_fields[] = {
    LLAMA_KEYS,
    LLAMA_ACTIVATION,
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),
    KEY("resid_pdrop", embd_pdrop, SHARE),
    KEY("embd_pdrop", attn_pdrop, SHARE),
};
static const struct config_field mistral_fields[] = {
    LLAMA_KEYS,
    LLAMA_ACTIVATION,
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),
};
static const struct config_field neox_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("rotary_pct", shape.rotary_share, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 1,
        .required = true),
    KEY("use_parallel_residual", shape.parallel_residual, FLAG),
    KEY("attention_bias", shape.biases, FLAG),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(neox_activations)),
};
static const struct config_field falcon_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("ffn_hidden_size", shape.d_ff, NULLABLE(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("n_head", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_kv_heads", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),
    KEY("n_head_kv", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("n_layer", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("multi_query", multi_query, FLAG),
    KEY("new_decoder_architecture", new_decoder_architecture, FLAG),
    KEY("parallel_attn", shape.parallel_residual, FLAG),
    KEY("num_ln_in_parallel_attn", num_ln_in_parallel_attn, NULLABLE(2)),
    KEY("bias", shape.biases, FLAG),
    KEY("alibi", alibi, FLAG),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
    KEY("activation", hidden_act, CHOICE(neox_activations)),
};
static const struct config_field opt_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("ffn_dim", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("max_position_embeddings", shape.max_positions, COUNT(MODEL_MAX_POSITIONS - OPT_OFFSET)),
    KEY("word_embed_proj_dim", word_embed_proj_dim, NULLABLE(MODEL_MAX_WIDTH)),
    KEY("do_layer_norm_before", do_layer_norm_before, FLAG),
    KEY("enable_bias", shape.biases, FLAG),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
    KEY("activation_function", hidden_act, CHOICE(opt_activations)),
};
static const struct config_field bloom_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("n_embed", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("n_head", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("n_layer", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
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

static const struct config_table t5_table = CONFIG_TABLE("a T5 config.json", t5_fields);
static const struct config_table gpt2_table = CONFIG_TABLE("a GPT-2 config.json", gpt2_fields);
static const struct config_table llama_table = CONFIG_TABLE("a Llama config.json", llama_fields);
static const struct config_table mistral_table = CONFIG_TABLE("a Mistral config.json", mistral_fields);
static const struct config_table qwen2_table = CONFIG_TABLE("a Qwen2 config.json", qwen_fields);
static const struct config_table qwen3_table = CONFIG_TABLE("a Qwen3 config.json", qwen_fields);
static const struct config_table gemma_table = CONFIG_TABLE("a Gemma config.json", gemma_fields);
static const struct config_table gemma2_table = CONFIG_TABLE("a Gemma 2 config.json", gemma2_fields);
static const struct config_table gemma3_table = CONFIG_TABLE("a Gemma 3 config.json", gemma3_fields);
static const struct config_table phi3_table = CONFIG_TABLE("a Phi-3 config.json", phi3_fields);
static const struct config_table neox_table = CONFIG_TABLE("a GPT-NeoX config.json", neox_fields);
static const struct config_table falcon_table = CONFIG_TABLE("a Falcon config.json", falcon_fields);
static const struct config_table opt_table = CONFIG_TABLE("an OPT config.json", opt_fields);
static const struct config_table bloom_table = CONFIG_TABLE("a BLOOM config.json", bloom_fields);
static const struct config_table bert_table = CONFIG_TABLE("a BERT config.json", bert_fields);
static const struct config_table vit_table = CONFIG_TABLE("a ViT config.json", vit_fields);

struct model_type {
    const char *name;
    const struct config_table *table;
    struct config_json defaults;
};

/* PretrainedConfig.num_labels, where no id2label lists them. */
enum { DEFAULT_LABELS = 2 };

#define GEMMA_DEFAULTS                                                                                                 \
    .family = MODEL_LLAMA, .rotary_share = 1, .gated_ffn = true, .gelu_gate = true, .scaled_embedding = true,          \
    .tied_embeddings = true, .d_kv = 256
#define LLAMA_DEFAULTS                                                                                                 \
    .family = MODEL_LLAMA, .rotary_share = 1, .d_model = 4096, .n_heads = 32, .n_layers = 32, .gated_ffn = true

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
    {"opt", &opt_table,
        {.shape = {.family = MODEL_GPT,
             .d_model = 768,
             .d_ff = 3072,
             .n_heads = 12,
             .n_layers = 12,
             .vocab = 50272,
             .max_positions = 2048,
             .separate_qkv = true,
             .relu = true,
             .tied_embeddings = true,
             .biases = true,
             .dropout = 0.1},
            .do_layer_norm_before = true}},
    {"bloom", &bloom_table,
        {.shape = {.family = MODEL_GPT,
             .d_model = 64,
             .n_heads = 8,
             .n_layers = 2,
             .vocab = 250880,
             .embedding_norm = true,
             .composed_gelu = true,
             .tied_embeddings = true,
             .biases = true}}},
    {"gpt_neox", &neox_table,
        {.shape = {.family = MODEL_NEOX,
             .d_model = 6144,
             .d_ff = 24576,
             .n_heads = 64,
             .n_layers = 44,
             .vocab = 50432,
             .rotary_share = 0.25,
             .parallel_residual = true,
             .biases = true}}},
    {"falcon", &falcon_table,
        {.shape = {.family = MODEL_NEOX,
             .d_model = 4544,
             .n_heads = 71,
             .n_layers = 32,
             .vocab = 65024,
             .parallel_residual = true,
             .tied_embeddings = true},
            .multi_query = true}},
    {"llama", &llama_table, {.shape = {LLAMA_DEFAULTS, .d_ff = 11008, .vocab = 32000}}},
    {"mistral", &mistral_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 14336, .vocab = 32000, .n_kv_heads = 8, .sliding_window = 4096}}},
    {"qwen2", &qwen2_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 22016, .vocab = 151936, .n_kv_heads = 32, .biases = true,
             .sliding_window = 4096, .max_window_layers = 28},
            .windows = WINDOWS_FROM}},
    {"qwen3", &qwen3_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 22016, .vocab = 151936, .n_kv_heads = 32, .d_kv = 128, .qk_norm = true,
             .sliding_window = 4096, .max_window_layers = 28},
            .windows = WINDOWS_FROM}},
    {"gemma", &gemma_table,
        {.shape = {GEMMA_DEFAULTS, .d_model = 3072, .d_ff = 24576, .n_heads = 16, .n_kv_heads = 16, .n_layers = 28,
             .vocab = 256000}}},
    {"gemma2", &gemma2_table,
        {.shape = {GEMMA_DEFAULTS, .d_model = 2304, .d_ff = 9216, .n_heads = 8, .n_kv_heads = 4, .n_layers = 26,
             .vocab = 256000, .post_norms = true, .sliding_window = 4096, .full_attention_every = 2,
             .attention_softcap = 50, .logit_softcap = 30},
            .windows = WINDOWS_EVERY}},
    {"gemma3_text", &gemma3_table,
        {.shape = {GEMMA_DEFAULTS, .d_model = 2304, .d_ff = 9216, .n_heads = 8, .n_kv_heads = 4, .n_layers = 26,
             .vocab = 262208, .post_norms = true, .qk_norm = true, .sliding_window = 4096, .full_attention_every = 6},
            .windows = WINDOWS_EVERY}},
    {"phi3", &phi3_table,
        {.shape = {.family = MODEL_LLAMA,
             .rotary_share = 1,
             .gated_ffn = true,
             .d_model = 3072,
             .d_ff = 8192,
             .n_heads = 32,
             .n_layers = 32,
             .vocab = 32064,
             .fused_projections = true}}},
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
             .classes = DEFAULT_LABELS,
             .biases = true}}},
};
enum { MODEL_TYPES = sizeof model_types / sizeof *model_types };

static const struct model_type *find_type(struct config_node type, struct diag *diag)
{
    const char *text = config_text(type), *what = huggingface_unmodelled(text);
    for (int i = 0; i < MODEL_TYPES; i++)
        if (strcmp(text, model_types[i].name) == 0)
            return &model_types[i];
    /* No "did you mean": transformers writes the key, and a family that is spelled alike computes something else. */
    if (what)
        diag_input(diag, config_pos(type),
            "model_type '%.40s', %s, is not modelled yet; modelled are " MODEL_TYPE_NAMES, text, what);
    else
        diag_input(diag, config_pos(type), "model_type '%.40s' is not modelled; modelled are " MODEL_TYPE_NAMES, text);
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

/* Probabilities that must be one: the second is the first's. */
static bool differ(double a, double b)
{
    return a < b || a > b;
}

/* What the model does that struct model_shape cannot say: a sentence and the key to blame, or NULL. */
static const char *check(const struct config_json *json, const char *type, const char **key)
{
    const struct model_shape *s = &json->shape;
    const bool opt = s->separate_qkv, bare_neox = strcmp(type, "gpt_neox") == 0 && !s->biases;
    const bool one_dropout = s->family == MODEL_BERT || s->family == MODEL_VIT || s->family == MODEL_NEOX ||
                             (s->family == MODEL_GPT && !opt);
    const struct {
        bool wrong;
        const char *key, *why;
    } rules[] = {
        {json->attention_bias, "attention_bias",
            "a bias of the output projection is not modelled (q, k and v only: model_type qwen2)"},
        {json->mlp_bias, "mlp_bias", "biases of the feed-forward layer are not modelled here"},
        {s->fused_projections && (json->embd_pdrop > 0 || json->attn_pdrop > 0), "",
            "resid_pdrop and embd_pdrop of Phi-3 are modelled as 0 only"},
        {s->family == MODEL_VIT && !s->biases, "qkv_bias", "ViT without biases of q, k and v is not modelled"},
        {bare_neox, "attention_bias", "GPT-NeoX without biases of attention is not modelled"},
        {opt && !s->biases, "enable_bias", "OPT without biases is not modelled"},
        {opt && !json->do_layer_norm_before, "do_layer_norm_before",
            "norms behind attention and feed-forward layer (OPT 350m) are not modelled"},
        {opt && json->word_embed_proj_dim && json->word_embed_proj_dim != s->d_model, "word_embed_proj_dim",
            "embeddings of another width than hidden_size (OPT 350m) are not modelled"},
        {opt && json->attn_pdrop > 0 && differ(json->attn_pdrop, s->dropout), "",
            "dropout and attention_dropout differ; attention_dropout is modelled as 0 or as dropout"},
        {strcmp(type, "gpt2") == 0 && differ(json->embd_pdrop, s->dropout), "",
            "resid_pdrop, embd_pdrop and attn_pdrop differ; one probability is modelled"},
        {one_dropout && differ(json->attn_pdrop, s->dropout), "",
            strcmp(type, "gpt2") == 0 ? "resid_pdrop, embd_pdrop and attn_pdrop differ; one probability is modelled"
            : s->family == MODEL_GPT || s->family == MODEL_NEOX
                ? "hidden_dropout and attention_dropout differ; one probability is modelled"
                : "hidden_dropout_prob and attention_probs_dropout_prob differ; one probability is modelled"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong) {
            *key = rules[i].key;
            return rules[i].why;
        }
    return NULL;
}

static enum status check_model(
    const struct config_json *json, const char *type, struct config_node root, struct diag *diag)
{
    const char *key = "", *why = check(json, type, &key);
    struct config_node at = *key ? config_find(root, key) : root;
    return why ? diag_input(diag, config_pos(at.doc ? at : root), "%s", why) : STATUS_OK;
}

static bool sees_all(struct config_node list, int block)
{
    return strcmp(config_text(config_item(list, block)), "full_attention") == 0;
}

/* Newer files list what each block's attention sees: all in the first blocks, a window in the rest; or all in every
 * n-th. */
static enum status read_layer_types(struct config_json *json, struct config_node root, struct diag *diag)
{
    struct config_node list = config_find(root, "layer_types");
    int n = config_count(list), whole = 0;
    int64_t every = json->shape.full_attention_every;
    if (config_kind(list) == CONFIG_NULL || !list.doc)
        return STATUS_OK;
    while (json->windows == WINDOWS_FROM && whole < n && sees_all(list, whole))
        whole++;
    for (int i = whole; i < n; i++) {
        bool all = json->windows == WINDOWS_EVERY && (i + 1) % every == 0;
        if (strcmp(config_text(config_item(list, i)), all ? "full_attention" : "sliding_attention") != 0)
            return diag_input(diag, config_pos(config_item(list, i)),
                json->windows == WINDOWS_FROM
                    ? "layer_types: modelled are blocks of 'full_attention', then such of 'sliding_attention'"
                    : "layer_types: modelled is 'full_attention' in every %ld-th block, 'sliding_attention' else",
                (long)every);
    }
    if (config_kind(list) != CONFIG_SEQUENCE || n != json->shape.n_layers)
        return diag_input(diag, config_pos(list), "layer_types is a list of one type for each of the %ld layers",
            (long)json->shape.n_layers);
    if (json->windows == WINDOWS_EVERY)
        return STATUS_OK;
    json->shape.max_window_layers = whole;
    if (whole < n && json->shape.sliding_window == 0)
        return diag_input(diag, config_pos(list), "layer_types has 'sliding_attention' and sliding_window is null");
    return STATUS_OK;
}

/* FalconConfig and FalconDecoderLayer: key heads, norms and positions by architecture. */
static void derive_falcon(struct config_json *json)
{
    struct model_shape *shape = &json->shape;
    if (!json->new_decoder_architecture)
        shape->n_kv_heads = json->multi_query ? 1 : shape->n_heads;
    int64_t norms = json->num_ln_in_parallel_attn    ? json->num_ln_in_parallel_attn
                    : json->new_decoder_architecture ? 2
                                                     : 1;
    shape->shared_norm = shape->parallel_residual && norms == 1;
    shape->rotary_share = json->alibi ? 0 : 1;
}

/* What several keys say together. */
static enum status derive(
    struct config_json *json, const char *type, struct config_node root, int head, struct diag *diag)
{
    struct model_shape *shape = &json->shape;
    int labels = config_count(config_find(root, "id2label"));
    shape->head = head;
    if (shape->family == MODEL_VIT && labels > 0)
        shape->classes = labels;
    if (shape->family == MODEL_BERT && head == BERT_CLASSIFICATION)
        shape->classes = labels > 0 ? labels : DEFAULT_LABELS;
    if (shape->family == MODEL_T5)
        shape->gated_ffn = json->feed_forward_proj == PROJECTION_GATED_GELU;
    if ((shape->family == MODEL_GPT || shape->family == MODEL_NEOX) && shape->d_ff == 0)
        shape->d_ff = 4 * shape->d_model; /* GPT2Block: n_inner if not None else 4 * hidden_size; BLOOM, Falcon */
    if (shape->family == MODEL_T5)
        shape->composed_gelu = shape->gated_ffn;
    if (strcmp(type, "gpt2") == 0)
        shape->composed_gelu = json->activation_function == ACTIVATION_GELU_NEW;
    if (strcmp(type, "falcon") == 0)
        derive_falcon(json);
    if (shape->separate_qkv) {
        shape->max_positions += OPT_OFFSET;
        shape->keeps_attention = !(json->attn_pdrop > 0);
    }
    if (json->windows == WINDOWS_FROM && !json->use_sliding_window)
        shape->sliding_window = 0;
    enum status status = json->windows != WINDOWS_ALL ? read_layer_types(json, root, diag) : STATUS_OK;
    if (shape->max_window_layers >= shape->n_layers)
        shape->sliding_window = 0;
    if (shape->sliding_window == 0)
        shape->max_window_layers = shape->full_attention_every = 0;
    return status;
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
    int head = BERT_PRETRAINING;
    const char *const also_read[] = {json.windows != WINDOWS_ALL ? "layer_types" : NULL, NULL};
    enum status status = read_keys(&json, root, *table, arena, diag);
    if (!status)
        status = check_model(&json, model_type->name, root, diag);
    if (!status)
        status = huggingface_architecture(&head, root, model_type->name, arena, diag);
    if (!status)
        status = huggingface_check_keys(root, *table, also_read, arena, diag);
    if (!status)
        status = derive(&json, model_type->name, root, head, diag);
    if (status)
        return status;
    const char *path = config_pos(root).file, *name = config_text(config_find(root, "_name_or_path"));
    json.shape.name = arena_strdup(arena, *name ? name : path);
    json.shape.source = arena_printf(arena, "Hugging Face config.json: %s", path);
    *out = json.shape;
    return STATUS_OK;
}
