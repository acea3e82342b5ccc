/* Hardware files as text: one sourced number, a whole node, or a file that changed numbers are put
 * into.
 *
 * A value is written as short as a person would, where reading it back gives the same number to 12
 * digits; else with 17 digits in its base unit. hw_write_changed() reads the file again, compares
 * it with what is in memory field by field, and hands only the differences to
 * config_write_changed(), which keeps comments, order and layout of everything else.
 *
 * Subtle: a number that is set in the file but not in memory stays in the file. Enums are not
 * compared, so a changed one is not written. */
#include "hw/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As short as quantity_format makes it, where that loses nothing that matters. */
static void hw_write_value(FILE *out, double value, enum dimension dimension)
{
    char text[64], why[160];
    static const double same =
        1e-12; /* relative: 8.4 us reads back as another double than 8.4e-6, nearer than this */
    double back = 0;
    quantity_format(text, sizeof text, value, dimension);
    if (quantity_parse(&back, text, dimension, why, sizeof why) &&
        fabs(back - value) <= same * fabs(value))
        fputs(text, out);
    else
        fprintf(out, "%.17g %s", value, dimension_unit(dimension));
}

void hw_write_quantity(FILE *out, struct quantity q, enum dimension dimension)
{
    fputs("{value: ", out);
    hw_write_value(out, q.value, dimension);
    fprintf(out, ", kind: %s", hw_kind_name(q.kind));
    if (q.std_error > 0) {
        fputs(", std_error: ", out);
        hw_write_value(out, q.std_error, dimension);
    }
    if (q.fit) {
        fputs(", fit: ", out);
        json_write_string(out, q.fit);
    }
    fputs(", source: ", out);
    json_write_string(out, q.source);
    fputc('}', out);
}

void hw_write_node(FILE *out, const struct hw_node *node)
{
    for (int i = 0; i < hw_node_table.n_fields; i++) {
        const struct config_field *field = &hw_node_table.fields[i];
        const void *at = (const char *)node + field->offset;
        bool sourced = field->type == FIELD_SOURCED;
        bool text = field->type == FIELD_STRING || field->type == FIELD_PATH;
        if ((sourced && !quantity_is_set(*(const struct quantity *)at)) ||
            (text && !*(const char *const *)at))
            continue;
        fprintf(out, "%s: ", field->key);
        if (sourced)
            hw_write_quantity(out, *(const struct quantity *)at, field->dimension);
        else if (field->type == FIELD_ENUM)
            fputs(field->names[*(const int *)at], out);
        else
            json_write_string(out, *(const char *const *)at);
        fputc('\n', out);
    }
}

/* ---- a file once more ---- */

struct changes {
    struct arena arena;
    VEC(struct config_change) list;
};

static void hw_write_change(struct changes *to, const char *path, const struct quantity *q,
    enum dimension dimension, const char *string)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    if (q)
        hw_write_quantity(out, *q, dimension);
    else
        json_write_string(out, string);
    fclose(out);
    vec_push(&to->list, (struct config_change){path, arena_strdup(&to->arena, text)});
    free(text);
}

/* A name that the file may leave out is NULL then. */
static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_quantity(struct quantity a, struct quantity b)
{
    return a.kind == b.kind && a.value == b.value && a.std_error == b.std_error &&
           same_text(a.source, b.source) && same_text(a.fit, b.fit);
}

static void hw_write_compare(struct changes *to, const struct config_table *table,
    const char *prefix, const void *filed, const void *now)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *was = (const char *)filed + field->offset,
                   *is = (const char *)now + field->offset;
        const char *path = arena_printf(&to->arena, "%s%s", prefix, field->key);
        if (field->type == FIELD_SECTION)
            hw_write_compare(to, field->section, arena_printf(&to->arena, "%s.", path), was, is);
        else if (field->type == FIELD_SOURCED && quantity_is_set(*(const struct quantity *)is) &&
                 !same_quantity(*(const struct quantity *)was, *(const struct quantity *)is))
            hw_write_change(to, path, is, field->dimension, NULL);
        else if ((field->type == FIELD_STRING || field->type == FIELD_PATH) &&
                 !same_text(*(const char *const *)was, *(const char *const *)is))
            hw_write_change(to, path, NULL, DIM_NONE, *(const char *const *)is);
    }
}

enum status hw_write_changed(FILE *out, const char *path, const struct config_table *table,
    const void *now, struct diag *diag)
{
    struct hw filed = {0};
    struct changes changes = {0};
    void *was = table == &hw_gpu_table    ? (void *)&filed.gpu
                : table == &hw_node_table ? (void *)&filed.node
                                          : (void *)&filed.cluster;
    struct hw_source source = {.path = path};
    enum status status = hw_read(was, table, &source, &changes.arena, diag);
    vec_free(&source.keys.list);
    if (status == STATUS_OK) {
        hw_write_compare(&changes, table, "", was, now);
        status = config_write_changed(out, path, changes.list.at, changes.list.n, diag);
    }
    vec_free(&changes.list);
    arena_release(&changes.arena);
    return status;
}
