#include "config/config.h"

#include "base/digest.h"

#include <string.h>

static uint64_t digest_text(uint64_t digest, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    digest = digest_word(digest, text ? n : UINT64_MAX); /* no text is not the empty text */
    for (size_t i = 0; i < n; i++)
        digest = digest_word(digest, (unsigned char)text[i]);
    return digest;
}

static uint64_t digest_number(uint64_t digest, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return digest_word(digest, bits);
}

static uint64_t digest_value(uint64_t digest, const struct config_field *field, const void *at)
{
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH:
        return digest_text(digest, *(const char *const *)at);
    case FIELD_INT:
        return digest_word(digest, (uint64_t) * (const int64_t *)at);
    case FIELD_NUMBER:
        return digest_number(digest, *(const double *)at);
    case FIELD_BOOL:
        return digest_word(digest, *(const bool *)at);
    case FIELD_ENUM:
        return digest_text(digest, *(const int *)at < 0 ? NULL : field->names[*(const int *)at]);
    case FIELD_SOURCED: {
        const struct quantity *q = at;
        digest = digest_number(digest_word(digest, (uint64_t)q->kind), q->value);
        digest = digest_text(digest_number(digest, q->std_error), q->source);
        return q->fit ? digest_text(digest, q->fit) : digest;
    }
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
        return config_digest(digest, field->section, at);
    case FIELD_NODE:
        break;
    }
    BUG_IF(true, "field '%s' has no value", field->key);
}

uint64_t config_digest(uint64_t digest, const struct config_table *table, const void *from)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        digest = digest_text(digest, field->key); /* so that nothing moves when a field is added before others */
        digest = digest_value(digest, field, (const unsigned char *)from + field->offset);
    }
    return digest_word(digest, (uint64_t)table->n_fields);
}
