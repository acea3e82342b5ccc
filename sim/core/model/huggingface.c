/* Hugging Face config.json, read by the file of types (model/huggingface.h): its keys, what they
 * say together, what no shape can say. Of keys that no type reads (a config.json has dozens) those
 * that are known to change nothing pass; those that change the answer, by what is known of them or
 * by their name, are errors unless the caller forces them (`--force`, the scenario's key `force`);
 * others are warnings. null is the default where transformers takes it so.
 *
 * sliding_window: Mistral's flash attention sees this number of keys, 4,096 where the key is
 * absent; Qwen2's only with use_sliding_window, in the blocks from max_window_layers on
 * (Qwen2Config.layer_types). */
#include "model/huggingface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char types_file[] = "scenarios/huggingface/types.yaml";
enum { OPT_OFFSET = 2 };     /* OPTLearnedPositionalEmbedding: rows that no position uses */
enum { DEFAULT_LABELS = 2 }; /* PretrainedConfig.num_labels, where no id2label lists them */

static enum status read_key(struct config_json *json, const struct huggingface_key *key,
    struct config_node value, struct arena *arena, struct diag *diag)
{
    struct config_field field = key->field;
    const struct config_table table = {"a config.json", &field, 1, NULL};
    const char *dot = strrchr(field.key, '.');
    field.key = dot ? dot + 1 : field.key;
    if (config_kind(value) != CONFIG_NULL || key->field.required)
        return config_assign(field.key, config_pos(value), value, &table, json, arena, NULL, diag);
    if (key->field.type == FIELD_INT || key->field.type == FIELD_NUMBER)
        memset((char *)json + key->field.offset, 0, sizeof(int64_t)); /* to be derived, or none */
    return STATUS_OK;
}

/* One that gives a member of the shape or of what a type says more; others have no place. */
static bool is_assigned(const struct config_field *field)
{
    return field->type != FIELD_STRING || field->offset > 0;
}

/* What a value of a choice means; absent: the default. */
static enum status apply_choice(struct config_json *json, const struct huggingface_key *key,
    struct config_node value, struct arena *arena, struct diag *diag)
{
    struct config_node values = config_find(key->how, "values"),
                       none = config_find(key->how, "default");
    struct config_node means = config_find(values, config_text(value.doc ? value : none));
    return means.doc ? config_read_part(means, &model_shape_table, &json->shape, arena, NULL, diag)
                     : STATUS_OK;
}

static enum status read_keys(struct config_json *json, const struct huggingface_type *type,
    struct config_node root, struct arena *arena, struct diag *diag)
{
    enum status worst = STATUS_OK;
    for (int i = 0; i < type->keys.n; i++) {
        const struct huggingface_key *key = &type->keys.at[i];
        struct config_node value = huggingface_find(root, key->field.key);
        bool assigned = is_assigned(&key->field);
        enum status status =
            value.doc && assigned ? read_key(json, key, value, arena, diag) : STATUS_OK;
        if (!status && config_find(key->how, "values").doc)
            status = apply_choice(json, key, value, arena, diag);
        if (!status && value.doc && config_kind(value) != CONFIG_NULL)
            status = huggingface_read_list(json, key, value, root, arena, diag);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static double huggingface_number_at(
    const struct config_json *json, const struct config_field *field, size_t offset)
{
    const void *at = (const char *)json + offset;
    return field->type == FIELD_INT ? (double)*(const int64_t *)at : *(const double *)at;
}

/* The first key of this place in the shape; *said: the file has one of them. */
static const struct config_field *huggingface_key_of(
    const struct huggingface_type *type, struct config_node root, size_t offset, bool *said)
{
    const struct config_field *first = NULL;
    *said = false;
    for (int i = 0; i < type->keys.n; i++) {
        const struct config_field *field = &type->keys.at[i].field;
        if (field->offset != offset || field->type != FIELD_INT)
            continue;
        first = first ? first : field;
        *said |= huggingface_find(root, field->key).doc != NULL;
    }
    return first;
}

/* What decides the model's size and the file leaves to transformers' defaults, which are those of
 * one model: a file with hidden_size alone is Llama 2 7B in all else. (transformers writes all of
 * these; a file by hand may not.) */
static void warn_of_sizes(const struct config_json *json, const struct huggingface_type *type,
    struct config_node root, struct arena *arena, struct diag *diag)
{
    static const size_t sizes[] = {offsetof(struct model_shape, n_layers),
        offsetof(struct model_shape, d_model), offsetof(struct model_shape, n_heads),
        offsetof(struct model_shape, d_ff), offsetof(struct model_shape, vocab)};
    const char *text = "";
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool said = false;
        const struct config_field *field = huggingface_key_of(type, root, sizes[i], &said);
        double value = field ? huggingface_number_at(json, field, sizes[i]) : 0;
        if (!said && value > 0)
            text = arena_printf(arena, "%s%s%s %.0f", text, *text ? ", " : "", field->key, value);
    }
    if (*text)
        diag_warn(diag, config_pos(root),
            "the file does not say %s: transformers' defaults are taken", text);
}

/* ---- what a key must say ---- */

/* Probabilities that must be one: the second is the first's. */
static bool huggingface_differ(double a, double b)
{
    return a < b || a > b;
}

static bool is_wrong(
    const struct config_json *json, const struct huggingface_key *key, struct config_node value)
{
    struct config_node only = config_find(key->how, "only"), same = config_find(key->how, "same");
    if (only.doc)
        return value.doc && !huggingface_says(only, value);
    struct config_node taken = value.doc ? value : config_find(key->how, "default");
    if (!same.doc || config_kind(taken) == CONFIG_NULL ||
        (!taken.doc && key->field.type == FIELD_INT))
        return false;
    size_t offset = 0;
    const struct config_field *field =
        config_field_at(&model_shape_table, config_text(same), &offset);
    return huggingface_differ(taken.doc ? strtod(config_text(taken), NULL) : 0,
        huggingface_number_at(json, field, offset));
}

/* What the model does that struct model_shape cannot say. */
static enum status huggingface_check_model(const struct config_json *json,
    const struct huggingface_type *type, struct config_node root, struct diag *diag)
{
    for (int i = 0; i < type->keys.n; i++) {
        const struct huggingface_key *key = &type->keys.at[i];
        struct config_node value = huggingface_find(root, key->field.key);
        struct config_node at = value.doc && config_find(key->how, "only").doc ? value : root;
        if (is_wrong(json, key, value) &&
            huggingface_drop(type, config_pos(at), config_text(config_find(key->how, "why")), diag))
            return STATUS_INPUT;
    }
    bool mixed = json->shape.separate_qkv && json->attention_dropout > 0;
    if (mixed && huggingface_differ(json->attention_dropout, json->shape.dropout))
        return diag_input(diag, config_pos(root),
            "dropout and attention_dropout differ; attention_dropout is modelled as 0 or as "
            "dropout");
    return STATUS_OK;
}

/* ---- what several keys say together ---- */

/* Llama4TextConfig lists what no_rope_layer_interval and interleave_moe_layer_step say: 0 for each
 * block that turns no positions, and the blocks that have experts. Null and an empty list are as
 * they say. */
static enum status check_llama4_lists(
    const struct config_json *json, struct config_node root, struct diag *diag)
{
    const struct model_shape *shape = &json->shape;
    struct config_node turned = config_find(root, "no_rope_layers"),
                       routed = config_find(root, "moe_layers");
    int n_turned = config_count(turned), n_routed = config_count(routed), k = 0;
    if (n_turned > 0 && n_turned != shape->n_layers)
        return diag_input(diag, config_pos(turned),
            "no_rope_layers is a list of 0 or 1 for each of the %ld layers", (long)shape->n_layers);
    for (int i = 0; i < n_turned; i++)
        if (strcmp(config_text(config_item(turned, i)),
                (i + 1) % shape->full_attention_every == 0 ? "0" : "1") != 0)
            return diag_input(diag, config_pos(config_item(turned, i)),
                "no_rope_layers: modelled is 0 in every %ld-th block, as no_rope_layer_interval "
                "says, 1 else",
                (long)shape->full_attention_every);
    for (int64_t block = 0; block < shape->n_layers && n_routed > 0; block++) {
        if (model_local_experts(shape, block) == 0)
            continue;
        if (k == n_routed || strtoll(config_text(config_item(routed, k++)), NULL, 10) != block)
            return diag_input(diag, config_pos(routed),
                "moe_layers: modelled are experts in every %ld-th block, as "
                "interleave_moe_layer_step says",
                (long)(shape->moe.every > 1 ? shape->moe.every : 1));
    }
    if (k < n_routed)
        return diag_input(diag, config_pos(config_item(routed, k)),
            "moe_layers names blocks that have no experts");
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

/* Qwen2MoeDecoderLayer: blocks that the list names are dense; modelled where these are the first
 * ones. */
static enum status read_dense_layers(
    struct config_json *json, struct config_node root, struct diag *diag)
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

/* DeepseekV2MLP's shared experts are one of their widths together. */
static void derive_experts(struct config_json *json)
{
    struct model_moe *moe = &json->shape.moe;
    moe->shared_d_ff += json->shared_experts * moe->d_ff;
    moe->shared_gate = moe->shared_gate && moe->shared_d_ff > 0;
    moe->groups = moe->groups > 1 ? moe->groups : 0;
    moe->kept_groups = moe->groups > 1 ? json->kept_groups : 0;
    moe->normalised = moe->normalised ||
                      (json->routed_scaling > 0 && huggingface_differ(json->routed_scaling, 1));
}

static void derive_classes(struct model_shape *shape, struct config_node root)
{
    int labels = config_count(config_find(root, "id2label"));
    if (shape->family == MODEL_VIT && labels > 0)
        shape->classes = labels;
    if (shape->family == MODEL_BERT && shape->head == BERT_CLASSIFICATION)
        shape->classes = labels > 0 ? labels : DEFAULT_LABELS;
}

static enum status huggingface_derive(struct config_json *json, const struct huggingface_type *type,
    struct config_node root, struct arena *arena, struct diag *diag)
{
    struct model_shape *shape = &json->shape;
    enum status status = STATUS_OK;
    derive_classes(shape, root);
    if ((shape->family == MODEL_GPT || shape->family == MODEL_NEOX) && shape->d_ff == 0)
        shape->d_ff =
            4 *
            shape->d_model; /* GPT2Block: n_inner if not None else 4 * hidden_size; BLOOM, Falcon */
    if (strcmp(type->name, "falcon") == 0)
        derive_falcon(json);
    if (shape->separate_qkv) {
        shape->max_positions += OPT_OFFSET;
        shape->keeps_attention = !(json->attention_dropout > 0);
    }
    if (json->windows == WINDOWS_FROM && !json->windows_on)
        shape->sliding_window = 0;
    if (json->rotary_dim > 0 && shape->d_kv > 0)
        shape->rotary_share = fmin(1, (double)json->rotary_dim / (double)shape->d_kv);
    if (json->beside_only && !shape->moe.beside)
        shape->moe = (struct model_moe){0};
    if (!shape->full.keys_are_values && json->beside_only)
        shape->full.n_kv_heads = 0;
    if (shape->moe.experts > 0)
        derive_experts(json);
    if (shape->moe.experts > 0 && config_count(config_find(root, "mlp_only_layers")) > 0)
        status = read_dense_layers(json, root, diag);
    if (!status && strcmp(type->name, "llama4_text") == 0)
        status = check_llama4_lists(json, root, diag);
    if (!status && json->listed_blocks)
        status = huggingface_read_blocks(json, root, arena, diag);
    if (!status && json->windows != WINDOWS_ALL)
        status = huggingface_layer_types(json, root, diag);
    if (shape->max_window_layers >= shape->n_layers)
        shape->sliding_window = 0;
    if (shape->sliding_window == 0)
        shape->max_window_layers = 0;
    if (shape->sliding_window == 0 && shape->attention_chunk == 0)
        shape->full_attention_every = 0;
    return status;
}

/* ---- the file ---- */

/* The keys as a table, by which an error of the shape finds its place. */
static const struct config_table *huggingface_table_of(
    const struct huggingface_type *type, struct arena *arena)
{
    struct config_table *table = ARENA_NEW(arena, struct config_table);
    struct config_field *fields = ARENA_ARRAY(arena, struct config_field, type->keys.n);
    *table = (struct config_table){
        .what = arena_strdup(arena, config_text(config_find(type->entry, "what"))),
        .fields = fields};
    for (int i = 0; i < type->keys.n; i++)
        if (is_assigned(&type->keys.at[i].field) &&
            type->keys.at[i].field.offset < sizeof(struct model_shape))
            fields[table->n_fields++] = type->keys.at[i].field;
    return table;
}

static enum status read_type(struct config_json *json, const struct huggingface_type *type,
    struct config_node root, struct arena *arena, struct diag *diag)
{
    const char *also_read[3] = {NULL};
    int n_also = 0;
    if (json->windows != WINDOWS_ALL)
        also_read[n_also++] = "layer_types";
    if (json->shape.moe.experts > 0)
        also_read[n_also++] = "mlp_only_layers";
    enum status status = read_keys(json, type, root, arena, diag);
    if (!status)
        status = huggingface_check_model(json, type, root, diag);
    if (!status)
        status = huggingface_architecture(json, type, root, arena, diag);
    if (!status)
        status = huggingface_check_keys(type, root, json->shape.n_layers, also_read, arena, diag);
    if (!status)
        warn_of_sizes(json, type, root, arena, diag); /* before others are derived from them */
    return status ? status : huggingface_derive(json, type, root, arena, diag);
}

/* "vision_config, audio_config": the other parts of the whole. */
static const char *parts_beside(struct config_node root, const char *inside, struct arena *arena)
{
    const char *names = "";
    for (int i = 0; i < config_count(root); i++) {
        const char *key = config_text(config_key(root, i)), *end = strstr(key, "_config");
        bool part = end && !end[strlen("_config")] && strcmp(key, inside) != 0 &&
                    strcmp(key, "quantization_config") != 0;
        if (part && config_kind(config_item(root, i)) == CONFIG_MAPPING)
            names = arena_printf(arena, "%s%s%.40s", names, *names ? ", " : "", key);
    }
    return *names ? names : "others";
}

/* Of a model of several modalities the part that the file of types names: the decoder. The whole
 * says whether its head is its embedding. */
static void go_inside(struct config_node types, struct config_node *root,
    struct config_node *model_type, struct arena *arena, struct diag *diag)
{
    struct config_node entry = config_find(config_find(types, "types"), config_text(*model_type));
    struct config_node inside = config_find(entry, "inside"),
                       part = config_find(*root, config_text(inside));
    if (!inside.doc || config_kind(part) != CONFIG_MAPPING)
        return;
    diag_warn(diag, config_pos(part),
        "of this model_type, '%s', the part '%s' is read; left out, with its parameters: %s",
        config_text(*model_type), config_text(inside),
        parts_beside(*root, config_text(inside), arena));
    *root = part;
    *model_type = config_find(part, "model_type");
}

/* What the model is called: the folder, "qwen3-32b", of a config.json, else the file; or as its
 * maker says, unless that is a path of theirs. */
static const char *huggingface_name_of(const char *path, const char *theirs, struct arena *arena)
{
    static const char file[] = "config.json";
    if (*theirs && *theirs != '/' && *theirs != '.')
        return arena_strdup(arena, theirs);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (strcmp(base, file) != 0)
        return arena_strdup(arena, base);
    char *folder =
        realpath(slash ? arena_printf(arena, "%.*s", (int)(slash - path + 1), path) : ".", NULL);
    const char *last = folder ? strrchr(folder, '/') : NULL;
    const char *name = arena_strdup(arena, last && last[1] ? last + 1 : path);
    free(folder);
    return name;
}

static enum status read_by(struct config_node types, struct model_shape *out,
    struct config_node root, bool force, const struct config_table **table, struct arena *arena,
    struct diag *diag)
{
    struct huggingface_type type = {.force = force};
    struct config_node model_type = config_find(root, "model_type"), whole = root;
    struct config_json json;
    go_inside(types, &root, &model_type, arena, diag);
    if (!model_type.doc)
        return diag_input(diag, config_pos(root),
            "a config.json without the key 'model_type' (%s); add it, as transformers writes it",
            huggingface_names(types, arena));
    enum status status = huggingface_type(&type, &json, types, root, model_type, arena, diag);
    if (!status)
        status = read_type(&json, &type, root, arena, diag);
    if (!config_find(root, "tie_word_embeddings").doc &&
        config_find(whole, "tie_word_embeddings").doc)
        json.shape.tied_embeddings =
            strcmp(config_text(config_find(whole, "tie_word_embeddings")), "true") == 0;
    *table = huggingface_table_of(&type, arena);
    huggingface_forget(&type);
    const char *path = config_pos(root).file,
               *name = config_text(config_find(root, "_name_or_path"));
    json.shape.name = huggingface_name_of(path, name, arena);
    json.shape.source = arena_printf(arena, "Hugging Face config.json: %s", path);
    *out = json.shape;
    return status;
}

enum status huggingface_read(struct model_shape *out, struct config_node root, bool force,
    const struct config_table **table, struct arena *arena, struct diag *diag)
{
    struct config_doc *types = NULL;
    enum status status = config_load(&types, files_own(arena, types_file), diag);
    if (status)
        return status;
    status = read_by(config_root(types), out, root, force, table, arena, diag);
    config_free(types);
    return status;
}

const char *model_type_names(struct arena *arena, struct diag *diag)
{
    struct config_doc *types = NULL;
    if (config_load(&types, files_own(arena, types_file), diag))
        return "";
    const char *names = huggingface_names(config_root(types), arena);
    config_free(types);
    return names;
}
