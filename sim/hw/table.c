#include "hw/table.h"

#include "base/files.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* The files that it names: told here, where the place is known, when they are not there. */
static enum status can_open(
    struct config_node root, const struct config_table *table, const void *from, struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        if (field->type != FIELD_PATH)
            continue;
        const char *path = *(const char *const *)(const void *)((const char *)from + field->offset);
        if (!path || access(path, R_OK) == 0)
            continue;
        int reason = errno;
        const char *own = files_namesake(arena, path);
        status = diag_input(diag, config_pos(config_find(root, field->key)),
            "cannot open '%s': %s; paths are relative to the file that they stand in%s%s", path, strerror(reason),
            own ? "; flopcast's own is " : "", own ? own : "");
    }
    return status;
}

enum status hw_read(
    void *into, const struct config_table *table, struct hw_source *source, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, source->path, diag);
    if (status)
        return status;
    status = config_read(config_root(doc), table, into, arena, &source->keys, diag);
    enum status named = can_open(config_root(doc), table, into, arena, diag);
    config_free(doc);
    return status ? status : named;
}

/* The last origin of a key, which holds; else a section's first one; NULL: there is none. */
static const struct config_origin *find_origin(
    const struct config_origins *origins, const char *prefix, const char *key)
{
    const struct config_origin *found = NULL;
    size_t m = strlen(prefix), n = strlen(key);
    for (int i = origins->list.n - 1; i >= 0; i--) {
        const struct config_origin *given = &origins->list.at[i];
        if (strncmp(given->path, prefix, m) != 0 || strncmp(given->path + m, key, n) != 0)
            continue;
        if (given->path[m + n] == '\0')
            return given;
        if (given->path[m + n] == '.')
            found = given;
    }
    return found;
}

struct source_pos hw_place(const struct hw_source *source, const char *key)
{
    const struct config_origin *found = source->given ? find_origin(source->given, source->prefix, key) : NULL;
    if (!found)
        found = find_origin(&source->keys, "", key);
    return found ? found->at : (struct source_pos){.file = source->path};
}

enum status hw_whole(const struct hw_source *source, const char *key, struct quantity q, struct diag *diag)
{
    if (q.value == floor(q.value))
        return STATUS_OK;
    return diag_input(diag, hw_place(source, key), "%s is %g; it counts things, so a whole number", key, q.value);
}

const char *hw_kind_name(enum quantity_kind kind)
{
    switch (kind) {
    case QUANTITY_UNSET:
        break;
    case QUANTITY_DATASHEET:
        return "datasheet";
    case QUANTITY_MEASURED:
        return "measured";
    case QUANTITY_FITTED:
        return "fitted";
    case QUANTITY_ASSUMED:
        return "assumed";
    }
    return "unset";
}

enum { KEY_WIDTH = 27 }; /* gemm.tf32.single_efficiency */

static void print_quantity(FILE *out, const char *prefix, const struct config_field *field, struct quantity q)
{
    char key[64], value[64], error[64], range[136];
    snprintf(key, sizeof key, "%s%s", prefix, field->key);
    quantity_format(value, sizeof value, q.value, field->dimension);
    snprintf(range, sizeof range, "%s", value);
    if (q.std_error > 0)
        snprintf(range, sizeof range, "%s +- %s", value,
            quantity_format(error, sizeof error, q.std_error, field->dimension));
    fprintf(out, "  %-*s %-24s %-10s %s\n", KEY_WIDTH, key, range, hw_kind_name(q.kind), q.source);
}

/* A cluster without a network has nothing to show of it. */
static bool skip_section(const struct config_table *table, const char *at)
{
    return table == &hw_network_table && ((const struct hw_network *)(const void *)at)->kind == HW_POOLED;
}

static void print_fields(FILE *out, const char *prefix, const struct config_table *table, const void *from)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *at = (const char *)from + field->offset;
        if (field->type == FIELD_SOURCED) {
            struct quantity q = *(const struct quantity *)(const void *)at;
            if (quantity_is_set(q))
                print_quantity(out, prefix, field, q);
        } else if (field->type == FIELD_ENUM) { /* no numbers, but they decide as much */
            char key[64];
            snprintf(key, sizeof key, "%s%s", prefix, field->key);
            fprintf(out, "  %-*s %s\n", KEY_WIDTH, key, field->names[*(const int *)(const void *)at]);
        } else if (field->type == FIELD_SECTION && skip_section(field->section, at)) {
            continue;
        } else if (field->type == FIELD_SECTION) {
            char inner[64];
            snprintf(inner, sizeof inner, "%s%s.", prefix, field->key);
            print_fields(out, inner, field->section, at);
        }
    }
}

void hw_print_table(FILE *out, const char *heading, const struct config_table *table, const void *from)
{
    fprintf(out, "%s\n", heading);
    print_fields(out, "", table, from);
}
