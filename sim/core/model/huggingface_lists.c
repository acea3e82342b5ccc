/* Lists of a config.json that say what each layer is (HOW in model/huggingface.h).
 *
 * Each HOW of a list is one function: letters of a pattern, one value for each layer, dense layers
 * before those with experts. All refuse what the shape cannot say, at the item that says it. */
#include "model/huggingface.h"

#include <stdlib.h>
#include <string.h>

/* A letter for each layer. layers_block_type of Nemotron-H: in place of hybrid_override_pattern,
 * which must say the same where both are there. */
static enum status read_letters(struct config_json *json, const struct huggingface_key *key,
    struct config_node list, struct config_node root, struct arena *arena, struct diag *diag)
{
    struct config_node letters = config_find(key->how, "letters");
    struct config_node pattern = config_find(root, "hybrid_override_pattern");
    bool windows = config_find(key->how, "windows").doc != NULL;
    bool compressed = config_find(key->how, "compressed").doc != NULL;
    int n = config_count(list);
    if (compressed && n > json->shape.n_layers) /* what is behind is of multi-token prediction */
        n = (int)json->shape.n_layers;
    char *text = ARENA_ARRAY(arena, char, n + 1);
    for (int i = 0; i < n; i++) {
        struct config_node letter = config_find(letters, config_text(config_item(list, i)));
        if (!letter.doc)
            return diag_input(diag, config_pos(config_item(list, i)), "%s: '%.40s' is not modelled",
                key->field.key, config_text(config_item(list, i)));
        text[i] = *config_text(letter);
    }
    text[n] = '\0';
    if (config_kind(list) != CONFIG_SEQUENCE || n == 0)
        return diag_input(
            diag, config_pos(list), "%s is a list of the kind of each layer", key->field.key);
    if (!windows && !compressed && config_kind(pattern) == CONFIG_SCALAR &&
        strcmp(config_text(pattern), text) != 0)
        return diag_input(diag, config_pos(list),
            "%s says %.80s, not what hybrid_override_pattern says", key->field.key, text);
    if (compressed) {
        json->shape.compressed.pattern = text;
    } else if (windows) {
        json->shape.attention_pattern = text;
        json->shape.full_attention_every = 0;
    } else {
        json->shape.pattern = text;
    }
    if (!config_find(root, "num_hidden_layers").doc)
        json->shape.n_layers = n;
    return STATUS_OK;
}

/* One value for every layer. */
static enum status check_each(
    const struct huggingface_key *key, struct config_node list, struct diag *diag)
{
    struct config_node only = config_find(key->how, "each");
    for (int i = 0; i < config_count(list); i++)
        if (!huggingface_says(only, config_item(list, i)))
            return diag_input(diag, config_pos(config_item(list, i)),
                "%s: '%.40s' is not modelled; '%s' is", key->field.key,
                config_text(config_item(list, i)), config_text(config_item(only, 0)));
    if (config_kind(list) != CONFIG_SEQUENCE)
        return diag_input(
            diag, config_pos(list), "%s is a list of one value a layer", key->field.key);
    return STATUS_OK;
}

/* Which layers have a dense feed-forward layer: the first ones, and the others experts. */
static enum status read_dense(struct config_json *json, const struct huggingface_key *key,
    struct config_node list, struct diag *diag)
{
    const char *dense = config_text(config_find(key->how, "dense"));
    int n = config_count(list), first = 0;
    if (config_kind(list) != CONFIG_SEQUENCE && huggingface_says(config_find(key->how, "or"), list))
        return STATUS_OK;
    if (config_kind(list) != CONFIG_SEQUENCE || n == 0)
        return diag_input(diag, config_pos(list),
            "%s is a list of one value a layer; '%s' is a dense one", key->field.key, dense);
    while (first < n && strcmp(config_text(config_item(list, first)), dense) == 0)
        first++;
    for (int i = first; i < n; i++)
        if (strcmp(config_text(config_item(list, i)), dense) == 0)
            return diag_input(diag, config_pos(config_item(list, i)),
                "%s: a dense layer behind one with experts is not modelled", key->field.key);
    json->shape.moe.dense_layers = first;
    return STATUS_OK;
}

/* ---- blocks that differ one by one ---- */

enum { FFN_MULTIPLE = 256 }; /* of which the width is a multiple */

static bool is_on(struct config_node node)
{
    return config_kind(node) != CONFIG_NONE && config_kind(node) != CONFIG_NULL &&
           strcmp(config_text(node), "false") != 0;
}

/* What a part of a block may not be: linear layers in its place, sparse matrices, windows. */
static enum status huggingface_lists_check_part(struct config_node part, struct diag *diag)
{
    static const char *const others[] = {"replace_with_linear", "sparsify", "window_length", "moe",
        "mamba", "llama4", "hidden_act", "use_prefill_window_in_sink_attention", "unshifted_sink",
        "num_sink_tokens"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct config_node node = config_find(part, others[i]);
        if (is_on(node) && strcmp(config_text(node), "silu") != 0)
            return diag_input(diag, config_pos(node),
                "block_configs: %s is not modelled; attention with n_heads_in_group, feed-forward "
                "layers with ffn_mult and parts that are left out (no_op) are",
                others[i]);
    }
    return STATUS_OK;
}

static enum status read_count(struct config_node node, double least, double most, const char *what,
    double *out, struct diag *diag)
{
    char *end = NULL;
    *out = strtod(config_text(node), &end);
    if (end == config_text(node) || *end || !(*out >= least && *out <= most))
        return diag_input(diag, config_pos(node), "block_configs: %s is a number from %g to %g",
            what, least, most);
    return STATUS_OK;
}

/* 2/3 ffn_mult hidden_size, rounded down and then up to a multiple (ffn_mult_to_intermediate_size
 * of DeciLM). */
static enum status read_width(
    const struct model_shape *shape, struct config_node ffn, int64_t *out, struct diag *diag)
{
    struct config_node given = config_find(ffn, "intermediate_size"),
                       mult = config_find(ffn, "ffn_mult");
    double number = 0;
    if (is_on(given)) {
        enum status status =
            read_count(given, 1, MODEL_MAX_WIDTH, "intermediate_size", &number, diag);
        *out = (int64_t)number;
        return status;
    }
    if (!mult.doc)
        return diag_input(
            diag, config_pos(ffn), "block_configs: a feed-forward layer needs ffn_mult");
    enum status status = read_count(mult, 0.001, 1000, "ffn_mult", &number, diag);
    int64_t width = (int64_t)(2 * number * (double)shape->d_model / 3);
    *out = (width + FFN_MULTIPLE - 1) / FFN_MULTIPLE * FFN_MULTIPLE;
    if (!status && *out > MODEL_MAX_WIDTH)
        return diag_input(
            diag, config_pos(mult), "block_configs: ffn_mult gives a width of %ld", (long)*out);
    return status;
}

static enum status read_heads(
    const struct model_shape *shape, struct config_node attention, int64_t *out, struct diag *diag)
{
    struct config_node group = config_find(attention, "n_heads_in_group");
    struct config_node given = config_find(attention, "num_key_value_heads");
    double number = 0;
    struct config_node node = is_on(given) ? given : group;
    if (!node.doc)
        return diag_input(
            diag, config_pos(attention), "block_configs: attention needs n_heads_in_group");
    enum status status =
        read_count(node, 1, (double)shape->n_heads, "n_heads_in_group", &number, diag);
    *out = (int64_t)number;
    if (!status && shape->n_heads % *out)
        return diag_input(diag, config_pos(node),
            "block_configs: %ld does not divide num_attention_heads, %ld", (long)*out,
            (long)shape->n_heads);
    if (!status && !is_on(given))
        *out = shape->n_heads / *out;
    return status;
}

static enum status read_block(const struct model_shape *shape, struct config_node block,
    int64_t *heads, int64_t *width, struct diag *diag)
{
    struct config_node attention = config_find(block, "attention"), ffn = config_find(block, "ffn");
    enum status status = STATUS_OK;
    *heads = *width = 0;
    if (config_kind(attention) != CONFIG_MAPPING || config_kind(ffn) != CONFIG_MAPPING)
        return diag_input(
            diag, config_pos(block), "block_configs: a block has the keys 'attention' and 'ffn'");
    if (!is_on(config_find(attention, "no_op"))) {
        status = huggingface_lists_check_part(attention, diag);
        status = status ? status : read_heads(shape, attention, heads, diag);
    }
    if (!status && !is_on(config_find(ffn, "no_op"))) {
        status = huggingface_lists_check_part(ffn, diag);
        status = status ? status : read_width(shape, ffn, width, diag);
    }
    return status;
}

/* DeciLM's block_configs, of which blocks without attention and feed-forward layer do nothing and
 * are left out. */
static enum status read_blocks(
    struct model_shape *shape, struct config_node list, struct arena *arena, struct diag *diag)
{
    const char *text = "";
    int64_t heads = 0, width = 0, n = config_count(list), empty = 0;
    if (config_kind(list) != CONFIG_SEQUENCE || n != shape->n_layers)
        return diag_input(diag, config_pos(list),
            "block_configs is a list of what each of the %ld layers has", (long)shape->n_layers);
    shape->n_kv_heads = shape->d_ff = 0;
    for (int i = 0; i < n; i++) {
        enum status status = read_block(shape, config_item(list, i), &heads, &width, diag);
        if (status)
            return status;
        empty += heads + width == 0;
        shape->n_kv_heads = heads > shape->n_kv_heads ? heads : shape->n_kv_heads;
        shape->d_ff = width > shape->d_ff ? width : shape->d_ff;
        if (heads + width > 0)
            text = arena_printf(
                arena, "%s%s%ldx%ld", text, *text ? " " : "", (long)heads, (long)width);
    }
    shape->n_layers -= empty;
    shape->blocks = text;
    if (shape->n_layers == 0 || shape->n_kv_heads == 0 || shape->d_ff == 0)
        return diag_input(
            diag, config_pos(list), "block_configs leave no attention or no feed-forward layer");
    return STATUS_OK;
}

enum status huggingface_read_list(struct config_json *json, const struct huggingface_key *key,
    struct config_node list, struct config_node root, struct arena *arena, struct diag *diag)
{
    if (config_find(key->how, "letters").doc)
        return read_letters(json, key, list, root, arena, diag);
    if (config_find(key->how, "each").doc)
        return check_each(key, list, diag);
    if (config_find(key->how, "dense").doc)
        return read_dense(json, key, list, diag);
    return STATUS_OK;
}

enum status huggingface_read_blocks(
    struct config_json *json, struct config_node root, struct arena *arena, struct diag *diag)
{
    struct config_node list = config_find(root, "block_configs");
    if (!list.doc)
        return diag_input(
            diag, config_pos(root), "a config.json of this model_type has block_configs");
    return read_blocks(&json->shape, list, arena, diag);
}

/* ---- layer_types ---- */

static bool huggingface_lists_sees_all(struct config_node list, int block)
{
    return strcmp(config_text(config_item(list, block)), "full_attention") == 0;
}

/* Newer files list what each block's attention sees: all in the first blocks, a window in the rest;
 * or all in every n-th. */
enum status huggingface_layer_types(
    struct config_json *json, struct config_node root, struct diag *diag)
{
    struct config_node list = config_find(root, "layer_types");
    int n = config_count(list), whole = 0;
    const char *other = huggingface_others[json->other];
    int64_t every =
        json->shape.mixer.attention_every + json->shape.full_attention_every; /* one of them is 0 */
    if (config_kind(list) == CONFIG_NULL || !list.doc)
        return STATUS_OK;
    while (json->windows == WINDOWS_FROM && whole < n && huggingface_lists_sees_all(list, whole))
        whole++;
    for (int i = whole; i < n; i++) {
        bool all = json->windows == WINDOWS_EVERY && (i + 1) % every == 0;
        if (strcmp(config_text(config_item(list, i)), all ? "full_attention" : other) != 0)
            return diag_input(diag, config_pos(config_item(list, i)),
                json->windows == WINDOWS_FROM
                    ? "layer_types: modelled are blocks of 'full_attention', then such of "
                      "'sliding_attention'"
                    : "layer_types: modelled is 'full_attention' in every %ld-th block, '%s' else",
                (long)every, other);
    }
    if (config_kind(list) != CONFIG_SEQUENCE || n != json->shape.n_layers)
        return diag_input(diag, config_pos(list),
            "layer_types is a list of one type for each of the %ld layers",
            (long)json->shape.n_layers);
    if (json->windows == WINDOWS_EVERY)
        return STATUS_OK;
    json->shape.max_window_layers = whole;
    if (whole < n && json->shape.sliding_window == 0)
        return diag_input(diag, config_pos(list),
            "layer_types has 'sliding_attention' and sliding_window is null");
    return STATUS_OK;
}
