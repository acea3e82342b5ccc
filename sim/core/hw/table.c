/* Reading a hardware file over those that it extends, and printing one through its table.
 *
 * read_over() reads the file at the end of the chain of `extends` first, and over it each file that
 * extends it, so the nearest file wins key by key, also inside sections. Required keys are checked
 * once, for the whole chain, at the file that was asked for. The chain is a list on the stack; a
 * file that is in it already (same device and inode, whatever its path) is a circle and refused.
 *
 * Every key that was read leaves an origin in source->keys, in the order of reading. hw_place()
 * therefore looks from the end: the last origin is the one that holds. An error about a number
 * points at the file that states it, be it this one, one that it extends, or --set. */
#include "hw/table.h"

#include "base/files.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status report_unreadable(const char *path, enum files_kind kind, struct source_pos at,
    struct arena *arena, struct diag *diag)
{
    int reason = errno;
    return diag_input(diag, at,
        "cannot open '%s': %s; paths are relative to the file that they stand in%s", path,
        strerror(reason), files_hint(arena, kind, path));
}

/* A named file that is not there is reported here, where its place is known. */
static enum status hw_table_can_open(const struct hw_source *source,
    const struct config_table *table, const void *from, struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        if (field->type != FIELD_PATH)
            continue;
        const char *path = *(const char *const *)(const void *)((const char *)from + field->offset);
        if (path && access(path, R_OK) != 0)
            status =
                report_unreadable(path, field->files, hw_place(source, field->key), arena, diag);
    }
    return status;
}

enum status hw_extended(const char **out, enum files_kind kind, struct config_node root,
    struct arena *arena, struct diag *diag)
{
    struct extending {
        const char *extends;
    } read = {NULL};
    const struct config_field field = HW_EXTENDS(struct extending, kind);
    const struct config_table table = {.what = "a file", .fields = &field, .n_fields = 1};
    struct config_node named = config_find(root, "extends");
    enum status status = STATUS_OK;
    if (named.doc)
        status =
            config_assign("extends", config_pos(named), named, &table, &read, arena, NULL, diag);
    *out = read.extends;
    return status;
}

/* A file that is read because those below it extend it. */
struct link {
    const struct link *below;
    const char *path;
};

/* Paths may differ for one file (relative, a link), so the inode decides. */
static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* What it extends first, then the document over it. */
struct chain {
    void *into;
    const struct config_table *table;
    struct hw_source *source;
    struct arena *arena;
    struct diag *diag;
};

static enum status read_over(const struct chain *chain, const char *path, const struct link *below)
{
    struct config_doc *doc = NULL;
    const char *extends = NULL;
    const struct link link = {below, path};
    enum files_kind kind = chain->table == &hw_gpu_table    ? FILES_GPUS
                           : chain->table == &hw_node_table ? FILES_NODES
                                                            : FILES_CLUSTERS;
    enum status status = config_load_kind(&doc, kind, path, chain->diag);
    if (status != STATUS_OK)
        return status;
    struct config_node root = config_root(doc);
    status = hw_extended(&extends, kind, root, chain->arena, chain->diag);
    struct source_pos at = config_pos(config_find(root, "extends"));
    if (extends && access(extends, R_OK) != 0)
        status = report_unreadable(extends, kind, at, chain->arena, chain->diag);
    for (const struct link *file = &link; file && extends && status == STATUS_OK;
         file = file->below)
        if (same_file(file->path, extends))
            status = diag_input(chain->diag, at,
                "'extends' leads back to '%s'; name a file that does not extend '%s'", file->path,
                path);
    if (extends && status == STATUS_OK)
        status = read_over(chain, extends, &link);
    if (status == STATUS_OK && (extends || below))
        status = config_read_part(
            root, chain->table, chain->into, chain->arena, &chain->source->keys, chain->diag);
    else if (status == STATUS_OK)
        status = config_read(
            root, chain->table, chain->into, chain->arena, &chain->source->keys, chain->diag);
    if (status == STATUS_OK && extends && !below)
        status = config_check_required(
            chain->table, &chain->source->keys, config_pos(root), chain->diag);
    config_free(doc);
    return status;
}

enum status hw_read(void *into, const struct config_table *table, struct hw_source *source,
    struct arena *arena, struct diag *diag)
{
    const struct chain chain = {into, table, source, arena, diag};
    enum status status = read_over(&chain, source->path, NULL);
    if (status == STATUS_IO)
        return status;
    enum status named = hw_table_can_open(source, table, into, arena, diag);
    return status ? status : named;
}

/* The last origin of a key, which holds; else a section's first one; NULL: there is none. A key
 * that no origin has may lie in a section that one has; then the section's first line is the place,
 * but only of the file that holds. */
static const struct config_origin *hw_table_find_origin(
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
        if (found && strcmp(found->at.file, given->at.file) != 0)
            break; /* a file that this one extends */
        if (given->path[m + n] == '.')
            found = given;
    }
    return found;
}

struct source_pos hw_place(const struct hw_source *source, const char *key)
{
    const struct config_origin *found =
        source->given ? hw_table_find_origin(source->given, source->prefix, key) : NULL;
    if (!found)
        found = hw_table_find_origin(&source->keys, "", key);
    return found ? found->at : (struct source_pos){.file = source->path};
}

enum status hw_whole(
    const struct hw_source *source, const char *key, struct quantity q, struct diag *diag)
{
    if (q.value == floor(q.value))
        return STATUS_OK;
    return diag_input(
        diag, hw_place(source, key), "%s is %g; it counts things, so a whole number", key, q.value);
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

static void print_place(FILE *out, const struct hw_source *places, const char *key)
{
    struct source_pos at = places ? hw_place(places, key) : (struct source_pos){0};
    if (at.line > 0)
        fprintf(out, "  [%s:%d]", at.file, at.line);
    fputc('\n', out);
}

static void print_quantity(FILE *out, const char *key, const struct config_field *field,
    struct quantity q, const struct hw_source *places)
{
    char value[64], error[64], range[136];
    quantity_format(value, sizeof value, q.value, field->dimension);
    snprintf(range, sizeof range, "%s", value);
    if (q.std_error > 0)
        snprintf(range, sizeof range, "%s +- %s", value,
            quantity_format(error, sizeof error, q.std_error, field->dimension));
    fprintf(out, "  %-*s %-24s %-10s %s", KEY_WIDTH, key, range, hw_kind_name(q.kind), q.source);
    print_place(out, places, key);
}

/* A cluster without a network section prints nothing of it. */
static bool skip_section(const struct config_table *table, const char *at)
{
    return table == &hw_network_table &&
           ((const struct hw_network *)(const void *)at)->kind == HW_POOLED;
}

static void print_fields(FILE *out, const char *prefix, const struct config_table *table,
    const void *from, const struct hw_source *places)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *at = (const char *)from + field->offset;
        char key[64];
        snprintf(key, sizeof key, "%s%s", prefix, field->key);
        if (field->type == FIELD_SOURCED) {
            struct quantity q = *(const struct quantity *)(const void *)at;
            if (quantity_is_set(q))
                print_quantity(out, key, field, q, places);
        } else if (field->type == FIELD_ENUM) { /* no numbers, but they decide as much */
            fprintf(out, "  %-*s %s", KEY_WIDTH, key, field->names[*(const int *)(const void *)at]);
            print_place(out, places, key);
        } else if (field->type == FIELD_SECTION && skip_section(field->section, at)) {
            continue;
        } else if (field->type == FIELD_SECTION) {
            char inner[68];
            snprintf(inner, sizeof inner, "%s.", key);
            print_fields(out, inner, field->section, at, places);
        }
    }
}

void hw_print_table(FILE *out, const char *heading, const struct config_table *table,
    const void *from, const struct hw_source *places)
{
    fprintf(out, "%s\n", heading);
    print_fields(out, "", table, from, places);
}
