/* One scalar to one typed value, with its checks and messages.
 *
 * Types come from the field, never from how the text looks: "8" is a number where a number is
 * wanted and a text where a text is. Quotes mean a text, except for numbers with a unit, which JSON
 * can only write so. A value is stored only after its range was checked, so *at keeps its default
 * after an error. */
#include "config/value.h"

#include "base/files.h"

#include <string.h>
#include <strings.h>

enum { NAMES_BYTES = 256, WHY_BYTES = 160, LIMIT_BYTES = 48 };

const char *const config_kind_names[] = {"datasheet", "measured", "fitted", "assumed", NULL};

const char *config_join_names(char *buffer, size_t size, const char *const *names, size_t n)
{
    static const char more[] = ", ...";
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (used + 2 + strlen(names[i]) + sizeof more > size) {
            snprintf(buffer + used, size - used, "%s", more);
            break;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", names[i]);
    }
    return buffer;
}

enum status config_wrong_kind(
    struct config_node node, const struct config_field *field, struct diag *diag)
{
    static const char *const kinds[] = {[CONFIG_NONE] = "missing",
        [CONFIG_NULL] = "null",
        [CONFIG_SCALAR] = "a single value",
        [CONFIG_SEQUENCE] = "a list",
        [CONFIG_MAPPING] = "a mapping"};
    static const char *const wanted[] = {[FIELD_STRING] = "a text",
        [FIELD_PATH] = "a path",
        [FIELD_INT] = "a whole number",
        [FIELD_NUMBER] = "a number",
        [FIELD_BOOL] = "true or false",
        [FIELD_ENUM] = "a word",
        [FIELD_SOURCED] = "a mapping {value: ..., kind: ..., source: ...}",
        [FIELD_SECTION] = "a mapping",
        [FIELD_OVERRIDES] = "a mapping",
        [FIELD_NODE] = "anything"};
    if (field->type == FIELD_SOURCED && config_kind(node) == CONFIG_SCALAR)
        return diag_input(diag, config_pos(node),
            "'%s' is a single value; a mapping {value: %.40s, kind: ..., source: \"...\"} is "
            "wanted, of kind datasheet, measured, fitted or assumed",
            field->key, config_text(node));
    return diag_input(diag, config_pos(node), "'%s' is %s; %s is wanted", field->key,
        kinds[config_kind(node)], wanted[field->type]);
}

static enum status check_range(
    struct config_node node, const struct config_field *field, double value, struct diag *diag)
{
    bool small = value < field->min;
    if ((field->min == 0 && field->max == 0) || (!small && value <= field->max))
        return STATUS_OK;
    char text[LIMIT_BYTES];
    double limit = small ? field->min : field->max;
    if (field->type == FIELD_INT)
        snprintf(text, sizeof text, "%.0f", limit);
    else
        quantity_format(text, sizeof text, limit, field->dimension);
    return diag_input(diag, config_pos(node), "'%.40s' is too %s; the %s allowed is %s",
        config_text(node), small ? "small" : "large", small ? "least" : "most", text);
}

static enum status read_int(
    struct config_node node, const struct config_field *field, int64_t *out, struct diag *diag)
{
    const char *text = config_text(node);
    struct source_pos at = config_pos(node);
    int64_t value = 0;
    if (config_quoted(node))
        return diag_input(diag, at, "'%.40s' in quotes is a text; a whole number is wanted", text);
    switch (count_parse(&value, text, field->kilo ? field->kilo : 1000)) {
    case COUNT_OK:
        break;
    case COUNT_NO_NUMBER:
    case COUNT_NOT_WHOLE:
        return diag_input(diag, at, "'%.40s' is not a whole number (examples: 8, 1_000_000, 8k)%s",
            text, strchr(text, ',') ? "; several of them to sweep are a list, as [8, 16]" : "");
    case COUNT_TOO_LARGE:
        return diag_input(diag, at, "'%.40s' does not fit in 64 bits", text);
    }
    enum status status = check_range(node, field, (double)value, diag);
    if (status == STATUS_OK)
        *out = value;
    return status;
}

static enum status config_value_read_number(
    struct config_node node, const struct config_field *field, double *out, struct diag *diag)
{
    char why[WHY_BYTES];
    double value = 0;
    /* JSON can write "450 GB/s" in quotes only; a plain number has no need of them. */
    if (config_quoted(node) && field->dimension == DIM_NONE)
        return diag_input(diag, config_pos(node), "'%.40s' in quotes is a text; a number is wanted",
            config_text(node));
    if (!quantity_parse(&value, config_text(node), field->dimension, why, sizeof why))
        return diag_input(diag, config_pos(node), "%s", why);
    enum status status = check_range(node, field, value, diag);
    if (status == STATUS_OK)
        *out = value;
    return status;
}

static enum status read_bool(struct config_node node, bool *out, struct diag *diag)
{
    const char *text = config_text(node);
    bool yes = strcmp(text, "true") == 0;
    if (config_quoted(node))
        return diag_input(
            diag, config_pos(node), "'%.40s' in quotes is a text; true or false is wanted", text);
    if (!yes && strcmp(text, "false") != 0)
        return diag_input(diag, config_pos(node), "'%.40s' is neither true nor false", text);
    *out = yes;
    return STATUS_OK;
}

static enum status read_enum(
    struct config_node node, const struct config_field *field, int *out, struct diag *diag)
{
    const char *text = config_text(node);
    size_t n = 0;
    for (; field->names[n]; n++)
        if (strcmp(text, field->names[n]) == 0) {
            *out = (int)n;
            return STATUS_OK;
        }
    char names[NAMES_BYTES];
    config_join_names(names, sizeof names, field->names, n);
    const char *near = nearest_name(text, field->names, n);
    bool switched =
        n > 1 && strcmp(field->names[0], "none") == 0; /* as other programs have it, on or off */
    if (switched && (strcasecmp(text, "true") == 0 || strcasecmp(text, "on") == 0 ||
                        strcasecmp(text, "yes") == 0))
        near = field->names[1];
    if (switched && (strcasecmp(text, "false") == 0 || strcasecmp(text, "off") == 0 ||
                        strcasecmp(text, "no") == 0))
        near = field->names[0];
    if (near)
        return diag_input(diag, config_pos(node), "'%.40s' is not one of %s; did you mean '%s'?",
            text, names, near);
    const char *help = field->help ? field->help : "";
    return diag_input(diag, config_pos(node), "'%.40s' is not one of %s%s%s%s", text, names,
        *help ? " (" : "", help, *help ? ")" : "");
}

/* A null that no quotes make a text is the name "null", where there is one. */
static bool read_null(struct config_node node, const struct config_field *field, int *out)
{
    if (config_kind(node) != CONFIG_NULL || field->type != FIELD_ENUM)
        return false;
    for (int n = 0; field->names[n]; n++)
        if (strcmp(field->names[n], "null") == 0) {
            *out = n;
            return true;
        }
    return false;
}

/* The command line has no folder: its paths stay relative to the working directory. A file that is
 * not there may be one of flopcast's own, which go by the same names everywhere. */
static const char *path_from(struct config_node node, enum files_kind kind, struct arena *arena)
{
    const char *path = config_text(node), *file = config_pos(node).file;
    const char *slash = config_origin_kind(node) != ORIGIN_COMMAND_LINE ? strrchr(file, '/') : NULL;
    if (path[0] == '/' || !slash)
        return files_find(arena, kind, arena_strdup(arena, path));
    return files_find_from(
        arena, kind, arena_printf(arena, "%.*s/%s", (int)(slash - file), file, path), path);
}

enum status config_read_scalar(struct config_node node, const struct config_field *field, void *at,
    struct arena *arena, struct diag *diag)
{
    if (read_null(node, field, at))
        return STATUS_OK;
    if (config_kind(node) != CONFIG_SCALAR)
        return config_wrong_kind(node, field, diag);
    switch (field->type) {
    case FIELD_STRING:
        *(const char **)at = arena_strdup(arena, config_text(node));
        return STATUS_OK;
    case FIELD_PATH:
        if (!*config_text(node))
            return diag_input(diag, config_pos(node), "'' is not a path");
        *(const char **)at = path_from(node, field->files, arena);
        return STATUS_OK;
    case FIELD_INT:
        return read_int(node, field, at, diag);
    case FIELD_NUMBER:
        return config_value_read_number(node, field, at, diag);
    case FIELD_BOOL:
        return read_bool(node, at, diag);
    case FIELD_ENUM:
        return read_enum(node, field, at, diag);
    case FIELD_SOURCED:
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
    case FIELD_NODE:
        break;
    }
    BUG_IF(true, "field '%s' is not a scalar", field->key);
}
