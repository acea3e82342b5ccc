/* Structs and documents as JSON, and values as --set takes them.
 *
 * A number is written with the fewest of 15 to 17 digits that read back as the same double. Texts
 * are escaped so that both JSON and YAML read them back, and bytes that are no UTF-8 become U+FFFD.
 * An origin is looked up for each value from the end of the list, as the last one holds. Fields of
 * overrides that are not given are left out. */
#include "base/utf8.h"
#include "config/config.h"
#include "config/value.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NUMBER_BYTES = 32 };

/* What JSON or YAML (line breaks, byte order mark, control characters, non-characters) would not
 * read back as it stands. */
static bool needs_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
           c == 0xfffe || c == 0xffff;
}

void json_write_string(FILE *out, const char *text)
{
    fputc('"', out);
    const char *end = text + strlen(text);
    for (size_t bytes; text < end; text += bytes) {
        uint32_t c = 0;
        bytes = utf8_character(text, (size_t)(end - text), &c);
        if (bytes == 0) { /* a file name may hold any bytes: U+FFFD, the replacement character */
            fputs("\\ufffd", out);
            bytes = 1;
        } else if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", (int)c);
        } else if (c == '\n' || c == '\t') {
            fputs(c == '\n' ? "\\n" : "\\t", out);
        } else if (needs_escape(c)) {
            fprintf(out, "\\u%04" PRIx32, c);
        } else {
            fwrite(text, 1, bytes, out);
        }
    }
    fputc('"', out);
}

/* The shortest decimal that reads back as the same double. */
static void config_write_number(FILE *out, double value)
{
    char text[NUMBER_BYTES];
    if (!isfinite(value)) { /* JSON has no infinity */
        fputs("null", out);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, out);
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool is_json_number(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-';
    size_t whole = strspn(text, digits);
    if (whole == 0 || (*text == '0' && whole > 1))
        return false;
    text += whole;
    if (*text == '.') {
        size_t n = strspn(text + 1, digits);
        if (n == 0)
            return false;
        text += 1 + n;
    }
    if (*text == 'e' || *text == 'E') {
        text += 1 + (text[1] == '+' || text[1] == '-');
        size_t n = strspn(text, digits);
        if (n == 0)
            return false;
        text += n;
    }
    return *text == '\0';
}

/* A document's node as JSON; at most CONFIG_MAX_DEPTH deep. */
static void config_write_node(FILE *out, struct config_node node)
{
    const char *text = config_text(node);
    bool mapping = config_kind(node) == CONFIG_MAPPING;
    switch (config_kind(node)) {
    case CONFIG_NONE:
    case CONFIG_NULL:
        fputs("null", out);
        return;
    case CONFIG_SCALAR:
        if (!config_quoted(node) &&
            (strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || is_json_number(text)))
            fputs(text, out);
        else
            json_write_string(out, text);
        return;
    case CONFIG_SEQUENCE:
    case CONFIG_MAPPING:
        break;
    }
    fputc(mapping ? '{' : '[', out);
    for (int i = 0; i < config_count(node); i++) {
        fputs(i ? ", " : "", out);
        if (mapping) {
            json_write_string(out, config_text(config_key(node, i)));
            fputs(": ", out);
        }
        config_write_node(out, config_item(node, i));
    }
    fputc(mapping ? '}' : ']', out);
}

static void config_write_text(FILE *out, const char *text)
{
    if (text)
        json_write_string(out, text);
    else
        fputs("null", out);
}

static void write_unit(FILE *out, enum dimension dimension)
{
    if (*dimension_unit(dimension))
        fprintf(out, ", \"unit\": \"%s\"", dimension_unit(dimension));
}

static void write_sourced(FILE *out, const struct quantity *q, enum dimension dimension)
{
    if (!quantity_is_set(*q)) {
        fputs("null", out);
        return;
    }
    config_write_number(out, q->value);
    write_unit(out, dimension);
    fprintf(
        out, ", \"kind\": \"%s\", \"source\": ", config_kind_names[q->kind - QUANTITY_DATASHEET]);
    config_write_text(out, q->source);
    if (q->fit) {
        fputs(", \"fit\": ", out);
        config_write_text(out, q->fit);
    }
    fputs(", \"std_error\": ", out);
    config_write_number(out, q->std_error);
}

static void config_write_value(FILE *out, const struct config_field *field, const void *at)
{
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH:
        config_write_text(out, *(const char *const *)at);
        return;
    case FIELD_INT:
        fprintf(out, "%" PRId64, *(const int64_t *)at);
        return;
    case FIELD_NUMBER:
        config_write_number(out, *(const double *)at);
        write_unit(out, field->dimension);
        return;
    case FIELD_BOOL:
        fputs(*(const bool *)at ? "true" : "false", out);
        return;
    case FIELD_ENUM:
        if (*(const int *)at < 0) /* nobody has decided it yet */
            fputs("null", out);
        else
            json_write_string(out, field->names[*(const int *)at]);
        return;
    case FIELD_SOURCED:
        write_sourced(out, at, field->dimension);
        return;
    case FIELD_NODE:
        config_write_node(out, *(const struct config_node *)at);
        return;
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
        break;
    }
    BUG_IF(true, "field '%s' is not a value", field->key);
}

static void write_origin(
    FILE *out, const struct config_origins *origins, const char *path, struct arena *scratch)
{
    struct source_pos at = {0};
    for (int i = origins ? origins->list.n - 1 : -1; i >= 0; i--)
        if (strcmp(origins->list.at[i].path, path) == 0) {
            at = origins->list.at[i].at;
            break;
        }
    const char *file = at.file ? at.file : "default";
    json_write_string(out, at.file && at.line > 0
                               ? arena_printf(scratch, "%s:%d:%d", file, at.line, at.column)
                               : file);
}

struct writer {
    FILE *out;
    const struct config_origins *origins;
    struct arena *scratch; /* paths */
};

static void write_section(const struct writer *writer, const struct config_table *table,
    const void *from, const char *prefix, bool loose, int indent);

/* prefix: path of this section with its dot, "" for the whole; first: nothing stands before them in
 * the brackets. Returns whether still nothing does. Fields of a table that stands beside (empty
 * key) go into the same brackets: `first` is passed on for the comma. */
static bool write_fields(const struct writer *writer, const struct config_table *table,
    const void *from, const char *prefix, bool loose, int indent, bool first)
{
    FILE *out = writer->out;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *at = (const unsigned char *)from + field->offset;
        bool overrides = field->type == FIELD_OVERRIDES;
        if ((overrides || loose) && !config_is_given(field, at))
            continue;
        if (overrides && !*field->key) {
            first = write_fields(writer, field->section, at, prefix, true, indent, first);
            continue;
        }
        fprintf(out, "%s\n%*s", first ? "" : ",", indent, "");
        first = false;
        json_write_string(out, field->key);
        const char *path = arena_printf(writer->scratch, "%s%s", prefix, field->key);
        if (overrides || field->type == FIELD_SECTION) {
            fputs(": ", out);
            const char *inner = arena_printf(writer->scratch, "%s.", path);
            write_section(writer, field->section, at, inner, overrides || loose, indent);
            continue;
        }
        fputs(": {\"value\": ", out);
        config_write_value(out, field, at);
        fputs(", \"origin\": ", out);
        write_origin(out, writer->origins, path, writer->scratch);
        fputs("}", out);
    }
    return first;
}

static void write_section(const struct writer *writer, const struct config_table *table,
    const void *from, const char *prefix, bool loose, int indent)
{
    fputs("{", writer->out);
    write_fields(writer, table, from, prefix, loose, indent + 2, true);
    fprintf(writer->out, "\n%*s}", indent, "");
}

void config_write_json(FILE *out, const struct config_table *table, const void *from,
    const struct config_origins *origins)
{
    struct arena scratch = ARENA_INIT;
    const struct writer writer = {out, origins, &scratch};
    write_section(&writer, table, from, "", false, 0);
    fputc('\n', out);
    arena_release(&scratch);
}

const char *config_value_text(const struct config_field *field, const void *at, struct arena *arena)
{
    char number[64];
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH: {
        const char *text = *(const char *const *)at;
        return text ? text : "";
    }
    case FIELD_INT:
        return arena_printf(arena, "%" PRId64, *(const int64_t *)at);
    case FIELD_NUMBER:
        quantity_format(number, sizeof number, *(const double *)at, field->dimension);
        return arena_strdup(arena, number);
    case FIELD_BOOL:
        return *(const bool *)at ? "true" : "false";
    case FIELD_ENUM:
        return *(const int *)at < 0 ? "" : field->names[*(const int *)at];
    case FIELD_SOURCED:
        quantity_format(
            number, sizeof number, ((const struct quantity *)at)->value, field->dimension);
        return arena_strdup(arena, number);
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
    case FIELD_NODE:
        break;
    }
    return "";
}
