/* What a fit to training runs found, into copies of the files. */
#include "calibrate/fit_files.h"
#include "calibrate/training_fit.h"
#include "hw/override.h"
#include "scenario/stack.h"

#include "base/files.h"

#include <stdlib.h>
#include <string.h>

struct writing {
    const struct training_fit *fit;
    const char *tables, *file; /* file: the one that is written once more */
    VEC(struct config_change) changes;
    VEC(const char *) seen, written; /* files; paths */
    struct arena arena;
};

static const struct fit_parameter *find(const struct training_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (strcmp(p->key, key) == 0 && strcmp(p->id, id) == 0 && training_fit_determines(p))
            return p;
    }
    return NULL;
}

static const struct config_field *field_of(const struct fit_parameter *p)
{
    const struct config_table *table = training_fit_has(p->key) ? &hw_gpu_table : &stack_host_table;
    for (int i = 0; i < table->n_fields; i++)
        if (strcmp(table->fields[i].key, p->key) == 0)
            return &table->fields[i];
    BUG_IF(true, "%s has no '%s'", table->what, p->key);
    return NULL;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What the words of the source say of the rows: as the file has it, or the file. */
static const char *of_what(struct writing *w, const struct fit_parameter *p)
{
    static const char used[] = "used_in_fit: ";
    const char *old = strstr(p->filed.source, used);
    if (p->filed.kind == QUANTITY_FITTED && old)
        return old + strlen(used);
    return training_fit_has(p->key) ? name_of(w->file)
                                    : arena_printf(&w->arena, "%s: %s", name_of(w->file), training_fit_host);
}

static const char *text_of(struct writing *w, const struct fit_parameter *p)
{
    const struct config_field *field = field_of(p);
    struct quantity q = fit_files_rounded(p->fitted, field);
    q.kind = QUANTITY_FITTED;
    q.source = arena_printf(&w->arena, "`flopcast calibrate fit training` on the rows of %s with used_in_fit: %s",
        w->tables, of_what(w, p));
    if (!q.fit) /* it was assumed, or its user gave no id */
        q.fit = arena_printf(&w->arena, "training/%s", name_of(w->file));
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    hw_write_quantity(out, q, field->dimension);
    fclose(out);
    const char *kept = arena_strdup(&w->arena, text);
    free(text);
    return kept;
}

static void find_changes(struct writing *w, struct config_node mapping, const char *prefix)
{
    for (int i = 0; i < config_count(mapping); i++) {
        const char *key = config_text(config_key(mapping, i));
        struct config_node value = config_item(mapping, i);
        if (config_kind(value) != CONFIG_MAPPING)
            continue;
        const char *path = arena_printf(&w->arena, "%s%s", prefix, key);
        struct config_node id = config_find(value, "fit");
        const struct fit_parameter *p = find(w->fit, key, config_text(id.doc ? id : config_find(value, "source")));
        if (p)
            vec_push(&w->changes, (struct config_change){path, text_of(w, p)});
        else
            find_changes(w, value, arena_printf(&w->arena, "%s.", path));
    }
}

/* The copy of a file that extends another extends that one's copy, where there is one. */
static void rename_extended(struct writing *w, const char *extends, const char *folder)
{
    const char *name = name_of(extends);
    const char *copy = arena_printf(&w->arena, "%s/%s", folder, name), *text = NULL;
    for (int i = 0; i < w->written.n && !text; i++)
        if (strcmp(w->written.at[i], copy) == 0)
            text = name;
    if (!text && w->changes.n == 0)
        return; /* nothing of either is written */
    if (!text)
        text = files_name_from(&w->arena, copy, extends);
    vec_push(&w->changes, (struct config_change){"extends", arena_printf(&w->arena, "\"%s\"", text)});
}

/* Once a file, whichever rows have it. */
static enum status write_file(struct writing *w, const char *file, const char *folder, struct diag *diag)
{
    for (int i = 0; i < w->seen.n; i++)
        if (strcmp(w->seen.at[i], file) == 0)
            return STATUS_OK;
    vec_push(&w->seen, file);
    w->changes.n = 0;
    w->file = file;
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, file, diag);
    const char *extends = NULL;
    if (status == STATUS_OK)
        status = hw_extended(&extends, FILES_GPUS, config_root(doc), &w->arena, diag);
    if (status == STATUS_OK && extends) { /* its numbers may be those of that file */
        status = write_file(w, extends, folder, diag);
        w->changes.n = 0;
        w->file = file;
    }
    if (status == STATUS_OK)
        find_changes(w, config_root(doc), "");
    config_free(doc);
    if (status != STATUS_OK)
        return status;
    if (extends)
        rename_extended(w, extends, folder);
    const char *path = arena_printf(&w->arena, "%s/%s", folder, name_of(file));
    if (w->changes.n == 0)
        return STATUS_OK;
    for (int i = 0; i < w->written.n; i++)
        if (strcmp(w->written.at[i], path) == 0)
            return diag_input(diag, (struct source_pos){.file = file},
                "another file of the same name was written to %s; rename one of the two", path);
    vec_push(&w->written, path);
    return fit_files_write_changes(path, file, w->changes.at, w->changes.n, diag);
}

/* The files of the rows, once each: "a.csv and b.csv". */
static const char *tables_of(const struct training_fit *fit, struct arena *arena)
{
    const char *list = "", *last = NULL;
    for (int i = 0; i < fit->table.rows.n; i++) {
        const char *file = fit->table.rows.at[i].file;
        if (last && strcmp(last, file) == 0)
            continue;
        list = arena_printf(arena, "%s%s%s", list, last ? " and " : "", files_name_from(arena, NULL, file));
        last = file;
    }
    return list;
}

enum status training_fit_write(const struct training_fit *fit, const char *folder, struct diag *diag)
{
    struct writing w = {.fit = fit};
    w.tables = tables_of(fit, &w.arena);
    enum status status = STATUS_OK;
    for (int i = 0; i < fit->table.rows.n && status == STATUS_OK; i++) {
        const struct validate_row *row = &fit->table.rows.at[i];
        if (row->status == VALIDATE_NOT_SIMULATED)
            continue;
        const struct scenario_point *point = &row->set.points[0];
        status = write_file(&w, point->hw.node.gpu_path, folder, diag);
        if (status == STATUS_OK && point->options.stack_path)
            status = write_file(&w, point->options.stack_path, folder, diag);
    }
    vec_free(&w.changes);
    vec_free(&w.seen);
    vec_free(&w.written);
    arena_release(&w.arena);
    return status;
}
