/* Digests of structs through their tables.
 *
 * Keys are folded in with values, so a digest does not depend on where a field stands in the
 * struct; it does depend on the order of the fields. config_digest_values() leaves out each value
 * that equals that of a zeroed struct, key included, so that a field that is added later with a
 * zero default changes no digest that was kept. For that it compares digests, not values: one code
 * for all types. */
#include "config/config.h"

#include "base/digest.h"

#include <string.h>

static uint64_t config_digest_text(uint64_t digest, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    digest = digest_word(digest, text ? n : UINT64_MAX); /* no text is not the empty text */
    for (size_t i = 0; i < n; i++)
        digest = digest_word(digest, (unsigned char)text[i]);
    return digest;
}

static uint64_t config_digest_number(uint64_t digest, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return digest_word(digest, bits);
}

/* values: of what is set alone. */
static uint64_t digest_value(
    uint64_t digest, const struct config_field *field, const void *at, bool values)
{
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH:
        return config_digest_text(digest, *(const char *const *)at);
    case FIELD_INT:
        return digest_word(digest, (uint64_t) * (const int64_t *)at);
    case FIELD_NUMBER:
        return config_digest_number(digest, *(const double *)at);
    case FIELD_BOOL:
        return digest_word(digest, *(const bool *)at);
    case FIELD_ENUM:
        return config_digest_text(
            digest, *(const int *)at < 0 ? NULL : field->names[*(const int *)at]);
    case FIELD_SOURCED: {
        const struct quantity *q = at;
        if (values)
            return config_digest_number(digest, q->value);
        digest = config_digest_number(digest_word(digest, (uint64_t)q->kind), q->value);
        digest = config_digest_text(config_digest_number(digest, q->std_error), q->source);
        return q->fit ? config_digest_text(digest, q->fit) : digest;
    }
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
        return (values ? config_digest_values : config_digest)(digest, field->section, at);
    case FIELD_NODE:
        break;
    }
    BUG_IF(true, "field '%s' has no value", field->key);
}

uint64_t config_digest(uint64_t digest, const struct config_table *table, const void *from)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        digest = config_digest_text(
            digest, field->key); /* so that nothing moves when a field is added before others */
        digest = digest_value(digest, field, (const unsigned char *)from + field->offset, false);
    }
    return digest_word(digest, (uint64_t)table->n_fields);
}

static bool is_section(const struct config_field *field)
{
    return field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES;
}

uint64_t config_digest_values(uint64_t digest, const struct config_table *table, const void *from)
{
    static const union {
        struct quantity quantity;
        const char *text;
        int64_t integer;
        double number;
    } nothing = {.quantity = {0}};
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *at = (const unsigned char *)from + field->offset;
        uint64_t key = config_digest_text(DIGEST_INIT, field->key),
                 value = digest_value(key, field, at, true);
        if (value != (is_section(field) ? key : digest_value(key, field, &nothing, true)))
            digest = digest_word(digest, value);
    }
    return digest;
}
