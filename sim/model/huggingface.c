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
#include "model/huggingface_models.h"

#include <stdlib.h>
#include <string.h>

static const struct model_type *find_type(struct config_node type, struct diag *diag)
{
    const char *text = config_text(type), *what = huggingface_unmodelled(text);
    const struct model_type *found = huggingface_model(text);
    if (found)
        return found;
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
        {strcmp(type, "qwen3_moe") == 0 && json->use_sliding_window, "use_sliding_window",
            "windows of Qwen3-MoE are not modelled"},
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

/* Qwen2MoeDecoderLayer: blocks that the list names are dense; modelled where these are the first ones. */
static enum status read_dense_layers(struct config_json *json, struct config_node root, struct diag *diag)
{
    struct config_node list = config_find(root, "mlp_only_layers");
    int n = config_count(list);
    for (int i = 0; i < n; i++)
        if (strtol(config_text(config_item(list, i)), NULL, 10) != i)
            return diag_input(diag, config_pos(config_item(list, i)),
                "mlp_only_layers: modelled are the first blocks, 0 to any other, in order");
    json->shape.moe.dense_layers = n;
    return STATUS_OK;
}

/* MixtralConfig has one width; DeepseekV2MLP's shared experts are one of their widths together. */
static void derive_experts(struct config_json *json, const char *type)
{
    struct model_moe *moe = &json->shape.moe;
    bool v2 = strcmp(type, "deepseek_v2") == 0;
    if (strcmp(type, "mixtral") == 0)
        moe->d_ff = json->shape.d_ff;
    moe->shared_d_ff += json->shared_experts * moe->d_ff;
    moe->shared_gate = moe->shared_gate && moe->shared_d_ff > 0;
    if (v2 && json->topk_method == TOPK_GREEDY)
        moe->groups = 0;
    moe->kept_groups = moe->groups > 1 ? json->kept_groups : 0;
    moe->normalised = moe->normalised || differ(json->routed_scaling, 1);
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
    if (shape->moe.experts > 0)
        derive_experts(json, type);
    if (shape->moe.experts > 0 && config_count(config_find(root, "mlp_only_layers")) > 0) {
        enum status dense = read_dense_layers(json, root, diag);
        if (dense)
            return dense;
    }
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
    const char *also_read[3] = {NULL};
    int n_also = 0;
    if (json.windows != WINDOWS_ALL)
        also_read[n_also++] = "layer_types";
    if (json.shape.moe.experts > 0)
        also_read[n_also++] = "mlp_only_layers";
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
