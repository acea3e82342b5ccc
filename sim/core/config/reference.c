/* A table as a reference for people: what may be set, the default, the range, the sentence. */
#include "config/config.h"
#include "config/value.h"

#include <inttypes.h>

enum { TEXT_BYTES = 512 };

static bool in_range(const struct config_field *field, double value)
{
    return (field->min == 0 && field->max == 0) || (value >= field->min && value <= field->max);
}

/* A default that the field itself would refuse stands for "not set", which has no text. */
static const char *default_text(
    char *out, size_t n, const struct config_field *field, const void *at)
{
    if (field->required)
        return "needed";
    if (!at)
        return "-";
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH: {
        const char *text = *(const char *const *)at;
        return text ? text : "-";
    }
    case FIELD_INT: {
        int64_t value = *(const int64_t *)at;
        snprintf(out, n, "%" PRId64, value);
        return in_range(field, (double)value) ? out : "-";
    }
    case FIELD_NUMBER: {
        double value = *(const double *)at;
        return in_range(field, value) ? quantity_format(out, n, value, field->dimension) : "-";
    }
    case FIELD_BOOL:
        return *(const bool *)at ? "true" : "false";
    case FIELD_ENUM: {
        int value = *(const int *)at;
        return value < 0 ? "-" : field->names[value];
    }
    case FIELD_SOURCED:
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
    case FIELD_NODE:
        break;
    }
    return "-";
}

/* What is allowed, in brackets after the sentence. */
static void print_allowed(FILE *out, const struct config_field *field)
{
    char least[TEXT_BYTES], most[TEXT_BYTES];
    bool counts = field->type == FIELD_INT;
    size_t n = 0;
    if (field->type == FIELD_ENUM) {
        while (field->names[n])
            n++;
        fprintf(out, " (%s)", config_join_names(least, sizeof least, field->names, n));
    } else if ((counts || field->type == FIELD_NUMBER || field->type == FIELD_SOURCED) &&
               (field->min != 0 || field->max != 0)) {
        if (counts)
            fprintf(out, " (whole number, %.0f to %.0f)", field->min, field->max);
        else
            fprintf(out, " (%s to %s)",
                quantity_format(least, sizeof least, field->min, field->dimension),
                quantity_format(most, sizeof most, field->max, field->dimension));
    }
}

static void print_section(FILE *out, const struct config_table *table, const void *defaults,
    const char *prefix, struct arena *scratch)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *at = defaults ? (const unsigned char *)defaults + field->offset : NULL;
        const char *path = arena_printf(scratch, "%s%s", prefix, field->key);
        if (field->type == FIELD_SECTION) {
            print_section(out, field->section, at, arena_printf(scratch, "%s.", path), scratch);
            continue;
        }
        if (field->type == FIELD_OVERRIDES) { /* the reference of that file lists them */
            fprintf(out, "%s%sKEY: -\n    %s\n", path, *field->key ? "." : "", field->help);
            continue;
        }
        char text[TEXT_BYTES];
        fprintf(
            out, "%s: %s\n    %s", path, default_text(text, sizeof text, field, at), field->help);
        print_allowed(out, field);
        if (field->alias)
            fprintf(out, "; also called %s", field->alias);
        if (field->when)
            fprintf(out, "; counts where %s", field->when);
        fputc('\n', out);
    }
}

void config_print_reference(FILE *out, const struct config_table *table, const void *defaults)
{
    struct arena scratch = ARENA_INIT;
    print_section(out, table, defaults, "", &scratch);
    arena_release(&scratch);
}
