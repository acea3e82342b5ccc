/* The file of types: a type's keys and classes, and the keys of config.json that nothing reads.
 *
 * What a model_type's config.json means is data (scenarios/huggingface/types.yaml); this file turns
 * the entry of a type into a list of keys, each a config field in struct config_json. Sets of keys
 * are added in the order of the entry, and a later key of the same name replaces an earlier one.
 *
 * A key that no list names is judged in huggingface_check_keys(), in this order: refused with a
 * reason, null, explained, inert, saying nothing (false, 0, empty), and last whether its name or
 * its form (a list of one entry a layer) says what the model computes. Such a key is an error,
 * since the prediction would be of another model; any other is a warning. */
#include "model/huggingface.h"

#include <fnmatch.h>
#include <string.h>

const char *const huggingface_others[OTHER_COUNT + 1] = {
    "sliding_attention", "chunked_attention", "linear_attention"};
static const char *const windows_names[WINDOWS_COUNT + 1] = {"all", "from", "every"};

#define MORE(member, ...)                                                                          \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct config_json, member), __VA_ARGS__                \
    }
#define FLAG .type = FIELD_BOOL
#define COUNT_TO(high) .type = FIELD_INT, .min = 0, .max = (high)
static const struct config_field more_fields[] = {
    MORE(windows, .type = FIELD_ENUM, .names = windows_names),
    MORE(other, .type = FIELD_ENUM, .names = huggingface_others),
    MORE(windows_on, FLAG),
    MORE(multi_query, FLAG),
    MORE(new_decoder_architecture, FLAG),
    MORE(alibi, FLAG),
    MORE(num_ln_in_parallel_attn, COUNT_TO(2)),
    MORE(attention_dropout, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 0.99),
    MORE(rotary_dim, COUNT_TO(MODEL_MAX_HEAD_DIM)),
    MORE(beside_only, FLAG),
    MORE(listed_blocks, FLAG),
    MORE(shared_experts, COUNT_TO(MODEL_MAX_EXPERTS)),
    MORE(kept_groups, COUNT_TO(MODEL_MAX_EXPERTS)),
    MORE(routed_scaling, .type = FIELD_NUMBER, .min = 0, .max = 1e6),
};
static const struct config_table more_table = CONFIG_TABLE("what a type says more", more_fields);

/* ---- keys of a type ---- */

/* The member's field, with its place in struct config_json, of which the shape is the first member.
 */
static enum status find_member(
    struct config_field *out, struct config_node member, struct diag *diag)
{
    const char *path = config_text(member);
    size_t offset = 0;
    const struct config_field *field = config_field_find(&more_table, path, &offset);
    field = field ? field : config_field_find(&model_shape_table, path, &offset);
    if (!field)
        return diag_input(
            diag, config_pos(member), "'%.60s' is no key of a model file, nor of 'more'", path);
    *out = *field;
    out->offset = offset;
    return STATUS_OK;
}

static enum status add_member(struct huggingface_type *type, const char *key,
    struct config_node how, struct config_node member, struct diag *diag)
{
    struct huggingface_key added = {.how = how};
    enum status status = find_member(&added.field, member, diag);
    struct config_node least = config_find(how, "least");
    if (strcmp(config_text(least), "1") == 0)
        added.field.min = 1;
    added.field.key = key;
    added.field.required = strcmp(config_text(config_find(how, "null")), "true") != 0;
    vec_push(&type->keys, added);
    return status;
}

static const char *const *names_of(struct config_node values, struct arena *arena)
{
    int n = config_count(values);
    const char **names = ARENA_ARRAY(arena, const char *, n + 1);
    for (int i = 0; i < n; i++)
        names[i] = arena_strdup(arena, config_text(config_key(values, i)));
    names[n] = NULL;
    return names;
}

static void forget_key(struct huggingface_type *type, const char *key)
{
    int n = 0;
    for (int i = 0; i < type->keys.n; i++)
        if (strcmp(type->keys.at[i].field.key, key) != 0)
            type->keys.at[n++] = type->keys.at[i];
    type->keys.n = n;
}

static enum status add_key(struct huggingface_type *type, const char *key, struct config_node how,
    struct arena *arena, struct diag *diag)
{
    struct config_node to = config_find(how, "to"), values = config_find(how, "values");
    struct huggingface_key other = {.field = {.key = key}, .how = how};
    enum status status = STATUS_OK;
    forget_key(type, key);
    if (config_kind(how) == CONFIG_SCALAR)
        return add_member(type, key, how, how, diag);
    for (int i = 0; i < config_count(how) && config_kind(how) == CONFIG_SEQUENCE && !status; i++)
        status = add_member(type, key, how, config_item(how, i), diag);
    if (to.doc)
        return add_member(type, key, how, to, diag);
    if (config_kind(how) == CONFIG_SEQUENCE)
        return status;
    if (values.doc)
        other.field = (struct config_field){.key = key,
            .type = FIELD_ENUM,
            .offset = offsetof(struct config_json, choice),
            .names = names_of(values, arena),
            .required = strcmp(config_text(config_find(how, "null")), "true") != 0};
    if (config_find(how, "same").doc) {
        status = find_member(&other.field, config_find(how, "same"), diag);
        other.field.key = key;
        other.field.offset = offsetof(struct config_json, number);
    }
    vec_push(&type->keys, other);
    return status;
}

static enum status huggingface_types_add_keys(
    struct huggingface_type *type, struct config_node keys, struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < config_count(keys) && !status; i++) {
        const char *key = arena_strdup(arena, config_text(config_key(keys, i)));
        status = add_key(type, key, config_item(keys, i), arena, diag);
    }
    return status;
}

static enum status add_sets(
    struct huggingface_type *type, struct config_node list, struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < config_count(list) && !status; i++) {
        struct config_node item = config_item(list, i), set = item;
        if (config_kind(item) == CONFIG_SCALAR)
            set = config_find(config_find(type->root, "keys"), config_text(item));
        if (!set.doc)
            return diag_input(
                diag, config_pos(item), "'%.40s' is no set of 'keys'", config_text(item));
        status = huggingface_types_add_keys(type, set, arena, diag);
    }
    return status;
}

/* ---- the type ---- */

const char *huggingface_names(struct config_node types, struct arena *arena)
{
    const char *names = "";
    struct config_node list = config_find(types, "types");
    for (int i = 0; i < config_count(list); i++)
        names =
            arena_printf(arena, "%s%s%s", names, i ? ", " : "", config_text(config_key(list, i)));
    return names;
}

static const char *sort_of(struct config_node types, const char *name)
{
    struct config_node sorts = config_find(types, "unmodelled");
    for (int i = 0; i < config_count(sorts); i++)
        for (int j = 0; j < config_count(config_item(sorts, i)); j++)
            if (strcmp(config_text(config_item(config_item(sorts, i), j)), name) == 0)
                return config_text(config_key(sorts, i));
    return NULL;
}

static bool huggingface_types_has(struct config_node list, const char *text)
{
    for (int i = 0; i < config_count(list); i++)
        if (strcmp(config_text(config_item(list, i)), text) == 0)
            return true;
    return false;
}

/* A class of a list, or a key of a mapping. */
static const char *class_name(struct config_node classes, int i)
{
    return config_text(
        config_kind(classes) == CONFIG_MAPPING ? config_key(classes, i) : config_item(classes, i));
}

/* The type whose class the file's first architecture is; NULL: none. */
static const char *type_of_class(struct config_node types, struct config_node root)
{
    struct config_node list = config_find(types, "types"),
                       named = config_find(root, "architectures");
    const char *name = config_count(named) > 0 ? config_text(config_item(named, 0)) : "";
    for (int i = 0; i < config_count(list) && *name; i++) {
        struct config_node classes = config_find(config_item(list, i), "classes");
        for (int c = 0; c < config_count(classes); c++)
            if (strcmp(class_name(classes, c), name) == 0)
                return config_text(config_key(list, i));
    }
    return NULL;
}

/* No "did you mean": transformers writes the key, and a family that is spelled alike computes
 * something else. */
static enum status unknown_type(struct config_node types, struct config_node root,
    struct config_node type, struct arena *arena, struct diag *diag)
{
    const char *name = config_text(type), *sort = sort_of(types, name),
               *names = huggingface_names(types, arena);
    const char *of_class = type_of_class(types, root);
    if (of_class)
        return diag_input(diag, config_pos(type),
            "model_type '%.40s' is not known, but its class, %.60s, is that of model_type '%s'; "
            "where its keys are those, write that here",
            name, config_text(config_item(config_find(root, "architectures"), 0)), of_class);
    if (sort)
        return diag_input(diag, config_pos(type),
            "model_type '%.40s', %s, is not modelled yet; modelled are %s", name, sort, names);
    return diag_input(
        diag, config_pos(type), "model_type '%.40s' is not modelled; modelled are %s", name, names);
}

/* The entry of a name, or of that which it is another name of. */
static struct config_node find_entry(struct config_node types, const char **name)
{
    struct config_node list = config_find(types, "types"), entry = config_find(list, *name);
    struct config_node as = config_find(entry, "as");
    if (!as.doc)
        return entry;
    *name = config_text(as);
    return config_find(list, *name);
}

enum status huggingface_type(struct huggingface_type *out, struct config_json *json,
    struct config_node types, struct config_node root, struct config_node model_type,
    struct arena *arena, struct diag *diag)
{
    const char *name = config_text(model_type);
    struct config_node entry = find_entry(types, &name), more = config_find(entry, "more");
    if (!*name || !entry.doc)
        return unknown_type(types, root, model_type, arena, diag);
    if (config_find(entry, "inside").doc)
        return diag_input(diag, config_pos(model_type),
            "the decoder of model_type '%s' is in its key '%s', which is not there", name,
            config_text(config_find(entry, "inside")));
    *json = (struct config_json){0};
    out->root = types;
    out->entry = entry;
    out->name = name;
    enum status status = config_read_part(
        config_find(entry, "shape"), &model_shape_table, &json->shape, arena, NULL, diag);
    if (!status && more.doc)
        status = config_read(more, &more_table, json, arena, NULL, diag);
    return status ? status : add_sets(out, config_find(entry, "keys"), arena, diag);
}

void huggingface_forget(struct huggingface_type *type)
{
    vec_free(&type->keys);
}

/* ---- the class ---- */

static enum status unknown_class(const struct huggingface_type *type, struct config_node at,
    struct arena *arena, struct diag *diag)
{
    struct config_node classes = config_find(type->entry, "classes");
    const char *known = "";
    for (int i = 0; i < config_count(classes); i++)
        known = arena_printf(arena, "%s%s%s", known, *known ? ", " : "", class_name(classes, i));
    return diag_input(diag, config_pos(at),
        "the architecture '%.60s' is not modelled; of model_type '%s' these are: %s",
        config_text(at), type->name, known);
}

enum status huggingface_architecture(struct config_json *json, const struct huggingface_type *type,
    struct config_node root, struct arena *arena, struct diag *diag)
{
    struct config_node list = config_find(root, "architectures"),
                       classes = config_find(type->entry, "classes");
    if (!list.doc || config_kind(list) == CONFIG_NULL ||
        (config_kind(list) == CONFIG_SEQUENCE && !config_count(list)))
        return STATUS_OK;
    if (config_kind(list) != CONFIG_SEQUENCE || config_count(list) != 1 ||
        config_kind(config_item(list, 0)) != CONFIG_SCALAR)
        return diag_input(
            diag, config_pos(list), "'architectures' names one class, as in [\"BertForMaskedLM\"]");
    struct config_node item = config_item(list, 0);
    for (int i = 0; i < config_count(classes); i++) {
        if (strcmp(class_name(classes, i), config_text(item)) != 0)
            continue;
        return config_kind(classes) == CONFIG_SEQUENCE
                   ? STATUS_OK
                   : config_read_part(config_item(classes, i), &model_shape_table, &json->shape,
                         arena, NULL, diag);
    }
    return unknown_class(type, item, arena, diag);
}

/* ---- keys that nothing reads ---- */

struct config_node huggingface_find(struct config_node root, const char *path)
{
    const char *dot = strchr(path, '.');
    char first[64];
    size_t n = dot ? (size_t)(dot - path) : 0;
    if (!dot || n >= sizeof first)
        return config_find(root, path);
    memcpy(first, path, n);
    first[n] = '\0';
    struct config_node part = config_find(root, first);
    return config_kind(part) == CONFIG_MAPPING ? huggingface_find(part, dot + 1)
                                               : (struct config_node){0};
}

bool huggingface_says(struct config_node values, struct config_node value)
{
    bool scalar = config_kind(value) == CONFIG_SCALAR;
    return config_kind(value) == CONFIG_NULL ||
           (scalar && huggingface_types_has(values, config_text(value))) ||
           (!scalar && config_count(values) == 0 && config_count(value) == 0);
}

enum status huggingface_drop(const struct huggingface_type *type, struct source_pos at,
    const char *sentence, struct diag *diag)
{
    if (!type->force)
        return diag_input(diag, at,
            "%s; --force ('force: true' in a scenario) reads the file as if it did not say so",
            sentence);
    diag_warn(diag, at, "%s; the file is read as if it did not say so", sentence);
    return STATUS_OK;
}

static void raise_to(enum status *worst, enum status status)
{
    *worst = status > *worst ? status : *worst;
}

/* The first of the patterns, the keys of a mapping, that the key is called by; -1: none. */
static int called(struct config_node patterns, const char *key)
{
    for (int i = 0; i < config_count(patterns); i++)
        if (fnmatch(config_text(config_key(patterns, i)), key, 0) == 0)
            return i;
    return -1;
}

static bool is_inert(const struct huggingface_type *type, const char *key)
{
    struct config_node sorts = config_find(type->root, "inert");
    for (int i = 0; i < config_count(sorts); i++) {
        struct config_node names = config_item(sorts, i);
        for (int j = 0; j < config_count(names); j++)
            if (fnmatch(config_text(config_item(names, j)), key, 0) == 0)
                return true;
    }
    return false;
}

static bool is_read(const struct huggingface_type *type, const char *key, const char *const *read)
{
    for (int i = 0; i < type->keys.n; i++)
        if (strcmp(key, type->keys.at[i].field.key) == 0)
            return true;
    for (; *read; read++)
        if (strcmp(key, *read) == 0)
            return true;
    return false;
}

/* true: the key is one of those that are refused; dropped where its value changes something. */
static bool is_refused(const struct huggingface_type *type, struct config_node value,
    const char *key, enum status *status, struct arena *arena, struct diag *diag)
{
    struct config_node refused = config_find(config_find(type->root, "refused"), key);
    if (refused.doc && !huggingface_says(config_find(refused, "only"), value))
        raise_to(status,
            huggingface_drop(type, config_pos(value),
                arena_printf(arena, "%s: %s", key, config_text(config_find(refused, "why"))),
                diag));
    return refused.doc != NULL;
}

static bool says_nothing(struct config_node value)
{
    const char *text = config_text(value);
    bool off =
        strcmp(text, "false") == 0 || strcmp(text, "0") == 0 || strcmp(text, "0.0") == 0 || !*text;
    return config_kind(value) == CONFIG_SCALAR ? off : config_count(value) == 0;
}

/* true: its name, or a list of one entry a layer, says what the model computes; dropped. */
static bool says_shape(const struct huggingface_type *type, struct config_node value,
    const char *key, int64_t n_layers, enum status *status, struct arena *arena, struct diag *diag)
{
    struct config_node patterns = config_find(type->root, "says_shape");
    bool layers =
        config_kind(value) == CONFIG_SEQUENCE && n_layers > 1 && config_count(value) == n_layers;
    bool scalar = config_kind(value) == CONFIG_SCALAR;
    int pattern = called(patterns, key);
    if (pattern < 0 && !layers)
        return false;
    if (pattern >= 0 && scalar &&
        huggingface_types_has(config_item(patterns, pattern), config_text(value)))
        return true;
    raise_to(status, huggingface_drop(type, config_pos(value),
                         arena_printf(arena,
                             "%.60s%s%.40s is not known for model_type '%s', and %s says what the "
                             "model computes",
                             key, scalar ? " " : "", scalar ? config_text(value) : "", type->name,
                             pattern >= 0 ? "its name" : "a list of one entry a layer"),
                         diag));
    return true;
}

/* Keys that a user may take for read, with what to do. */
static bool is_explained(const struct huggingface_type *type, struct config_node value,
    const char *key, struct diag *diag)
{
    struct config_node explained = config_find(config_find(type->root, "explained"), key);
    if (explained.doc)
        diag_warn(diag, config_pos(value), "%s%s", key, config_text(explained));
    return explained.doc != NULL;
}

enum status huggingface_check_keys(const struct huggingface_type *type, struct config_node root,
    int64_t n_layers, const char *const *read, struct arena *arena, struct diag *diag)
{
    enum { MOST_NAMED = 8 };
    enum status status = STATUS_OK;
    struct config_node first = {0};
    const char *names = "";
    int n = 0;
    for (int i = 0; i < config_count(root); i++) {
        const char *key = config_text(config_key(root, i));
        struct config_node value = config_item(root, i);
        if (is_read(type, key, read) || is_refused(type, value, key, &status, arena, diag) ||
            config_kind(value) == CONFIG_NULL || is_explained(type, value, key, diag) ||
            is_inert(type, key) || says_nothing(value) ||
            says_shape(type, value, key, n_layers, &status, arena, diag))
            continue;
        if (n == 0)
            first = config_key(root, i);
        if (n < MOST_NAMED)
            names = arena_printf(arena, "%s%s%.40s", names, n ? ", " : "", key);
        n++;
    }
    if (n > 0)
        diag_warn(diag, config_pos(first),
            "%d key%s not known here and ignored: %s%s; if %s the computation, the prediction is "
            "of another model",
            n, n == 1 ? " is" : "s are", names, n > MOST_NAMED ? " ..." : "",
            n == 1 ? "it changes" : "they change");
    return status;
}
