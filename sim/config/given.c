/* Structs of FIELD_OVERRIDES: what of them is given. */
#include "config/config.h"

#include <string.h>

static size_t size_of(enum field_type type)
{
    return type == FIELD_SOURCED ? sizeof(struct quantity) : type == FIELD_INT ? sizeof(int64_t) : sizeof(int);
}

/* Names and paths are never given (config/table.c); other types have no value that means "not given". */
static bool is_value(const struct config_field *field)
{
    BUG_IF(field->type == FIELD_NUMBER || field->type == FIELD_BOOL || field->type == FIELD_NODE,
        "'%s' in a table of overrides", field->key);
    return field->type == FIELD_SOURCED || field->type == FIELD_INT || field->type == FIELD_ENUM;
}

bool config_is_given(const struct config_field *field, const void *at)
{
    if (field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES) {
        for (int i = 0; i < field->section->n_fields; i++)
            if (config_is_given(&field->section->fields[i], (const char *)at + field->section->fields[i].offset))
                return true;
        return false;
    }
    if (!is_value(field))
        return false;
    if (field->type == FIELD_SOURCED)
        return quantity_is_set(*(const struct quantity *)at);
    return field->type == FIELD_INT ? *(const int64_t *)at >= 0 : *(const int *)at >= 0;
}

void config_give_nothing(void *into, const struct config_table *section)
{
    for (int i = 0; i < section->n_fields; i++) {
        const struct config_field *field = &section->fields[i];
        void *at = (char *)into + field->offset;
        if (field->type == FIELD_SECTION)
            config_give_nothing(at, field->section);
        else if (field->type == FIELD_SOURCED)
            *(struct quantity *)at = (struct quantity){0};
        else if (field->type == FIELD_INT)
            *(int64_t *)at = -1;
        else if (field->type == FIELD_ENUM)
            *(int *)at = -1;
    }
}

void config_take_given(void *into, const void *given, const struct config_table *section)
{
    for (int i = 0; i < section->n_fields; i++) {
        const struct config_field *field = &section->fields[i];
        void *to = (char *)into + field->offset;
        const void *from = (const char *)given + field->offset;
        if (field->type == FIELD_SECTION)
            config_take_given(to, from, field->section);
        else if (config_is_given(field, from))
            memcpy(to, from, size_of(field->type));
    }
}
