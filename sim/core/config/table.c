/* Documents into structs by tables: reading, assigning one path, and what structs of overrides
 * hold.
 *
 * find_field() is the heart: it maps a key to a field, also through tables that stand beside the
 * fields (FIELD_OVERRIDES with an empty key), and says where the struct of that field begins. A
 * read is "loose" inside overrides: any field may be given, none must, names and paths cannot be,
 * and a number may stand without its kind and source.
 *
 * config_read() and config_assign() end in the same read_field(), so a value is checked alike in a
 * file, a sweep and --set. Required keys are checked after all keys of a mapping were read. An
 * unknown key costs most of the code: a reason why there is none, a key of that name in another
 * section, a near name, and only then the list of all.
 *
 * Subtle: paths in origins are made of keys, never of aliases; config_key_path() translates first.
 * Errors never stop the read of the other keys. A document in which most keys are unknown is one
 * error (is_foreign). */
#include "config/config.h"
#include "config/value.h"

#include <math.h>
#include <string.h>

/* What every step of a read needs. */
struct reader {
    struct arena *arena;
    struct config_origins *origins; /* or NULL */
    struct diag *diag;
    const char *(*unmodelled)(const char *key); /* of the root table, or NULL */
    bool part;                                  /* what is required may stand in another document */
};

static enum status read_mapping(struct reader *reader, struct config_node mapping,
    const struct config_table *table, bool loose, void *into, const char *prefix);

static enum status worse(enum status a, enum status b)
{
    return a > b ? a : b;
}

/* A field that a key names. loose: it stands in a table of FIELD_OVERRIDES. */
struct found {
    const struct config_field *field; /* NULL: none */
    size_t base;                      /* where the struct begins that field->offset counts from */
    bool loose;
};

static bool stands_beside(const struct config_field *field)
{
    return field->type == FIELD_OVERRIDES && !*field->key;
}

static bool config_table_is_called(
    const struct config_field *field, const char *name, size_t length)
{
    const char *names[] = {field->key, field->alias};
    for (size_t i = 0; i < 2; i++)
        if (names[i] && strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* Names and paths cannot be overridden. */
static bool can_be_given(const struct config_field *field, bool loose)
{
    return !loose || (field->type != FIELD_STRING && field->type != FIELD_PATH);
}

static struct found find_field(
    const struct config_table *table, bool loose, const char *key, size_t length)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        if (!stands_beside(field) && config_table_is_called(field, key, length) &&
            can_be_given(field, loose))
            return (struct found){field, 0, loose};
    }
    for (int i = 0; i < table->n_fields; i++) {
        if (!stands_beside(&table->fields[i]))
            continue;
        struct found found = find_field(table->fields[i].section, true, key, length);
        found.base += table->fields[i].offset;
        if (found.field)
            return found;
    }
    return (struct found){0};
}

const char *config_key_path(const struct config_table *table, const char *path, struct arena *arena)
{
    size_t length = strcspn(path, ".");
    struct found found = find_field(table, false, path, length);
    if (!found.field)
        return path;
    if (path[length] == '\0' || !found.field->section)
        return arena_printf(arena, "%s%s", found.field->key, path + length);
    return arena_printf(arena, "%s.%s", found.field->key,
        config_key_path(found.field->section, path + length + 1, arena));
}

/* Where an unknown key is searched: in the table's own sections, in sections of overrides, inside
 * these. */
enum among { AMONG_OWN, AMONG_OVERRIDES, AMONG_GIVEN };

/* The dotted path of a value in the table's sections that has this name, or one near it; NULL:
 * none. */
static const char *path_below(const struct config_table *table, enum among among,
    const char *prefix, const char *key, bool near, struct arena *arena)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = arena_printf(arena, "%s%s", prefix, field->key), *found = NULL;
        bool overrides = field->type == FIELD_OVERRIDES,
             section = overrides || field->type == FIELD_SECTION;
        bool wanted =
            overrides == (among == AMONG_OVERRIDES) && can_be_given(field, among == AMONG_GIVEN);
        if (wanted && (near ? !section && nearest_name(key, &field->key, 1) != NULL
                            : config_table_is_called(field, key, strlen(key))))
            return path;
        if (section && (!overrides || among == AMONG_OVERRIDES))
            found = path_below(field->section, overrides ? AMONG_GIVEN : among,
                arena_printf(arena, "%s%s", path, *field->key ? "." : ""), key, near, arena);
        if (found)
            return found;
    }
    return NULL;
}

/* What may have been meant: a value of that very name in a section, a key beside it, a value of a
 * section. */
static const char *meant(const struct config_table *table, const char *key, const char *const *keys,
    size_t n, struct arena *arena)
{
    const char *path = path_below(table, AMONG_OWN, "", key, false, arena);
    if (!path)
        path = path_below(table, AMONG_OVERRIDES, "", key, false, arena);
    if (!path)
        path = nearest_name(key, keys, n);
    if (!path)
        path = path_below(table, AMONG_OWN, "", key, true, arena);
    return path ? path : path_below(table, AMONG_OVERRIDES, "", key, true, arena);
}

struct keys {
    VEC(const char *) list;
};

static void config_table_add_keys(struct keys *keys, const struct config_table *table, bool loose)
{
    for (int i = 0; i < table->n_fields; i++)
        if (!stands_beside(&table->fields[i]) && can_be_given(&table->fields[i], loose))
            vec_push(&keys->list, table->fields[i].key);
    for (int i = 0; i < table->n_fields; i++)
        if (stands_beside(&table->fields[i]))
            config_table_add_keys(keys, table->fields[i].section, true);
}

/* Why the key, or one that stands under it, does not exist; NULL: nobody knows. */
static const char *config_table_unmodelled(
    const struct reader *reader, const char *key, struct config_node value)
{
    const char *why = reader->unmodelled ? reader->unmodelled(key) : NULL;
    for (int i = 0; i < config_count(value) && config_kind(value) == CONFIG_MAPPING &&
                    reader->unmodelled && !why;
         i++)
        why = reader->unmodelled(config_text(config_key(value, i)));
    return why;
}

static enum status unknown_key(struct reader *reader, struct source_pos at, const char *key,
    struct config_node value, const struct config_table *table, bool loose)
{
    const char *why = config_table_unmodelled(reader, key, value);
    if (why)
        return diag_input(reader->diag, at, "'%.40s': %s", key, why);
    struct keys keys = {0};
    config_table_add_keys(&keys, table, loose);
    size_t n = (size_t)keys.list.n;
    char known[1024]; /* room for all: no other place lists them */
    config_join_names(known, sizeof known, keys.list.at, n);
    if (find_field(table, false, key, strlen(key)).field)
        diag_input(reader->diag, at,
            "'%.40s' of %s cannot be set; write a file that says 'extends:' and names it anew", key,
            table->what);
    else {
        const char *near = meant(table, key, keys.list.at, n, reader->arena);
        if (near)
            diag_input(reader->diag, at, "unknown key '%.40s' in %s; did you mean '%s'?", key,
                table->what, near);
        else
            diag_input(
                reader->diag, at, "unknown key '%.40s' in %s (known: %s)", key, table->what, known);
    }
    vec_free(&keys.list);
    return STATUS_INPUT;
}

/* Origins outlive the document, so they keep the file's name themselves: one copy for a run of
 * fields of one file. */
static void record(struct reader *reader, const char *path, struct config_node value)
{
    if (!reader->origins)
        return;
    struct source_pos at = config_pos(value);
    int n = reader->origins->list.n;
    const char *last = n > 0 ? reader->origins->list.at[n - 1].at.file : NULL;
    at.file = last && strcmp(last, at.file) == 0 ? last : arena_strdup(reader->arena, at.file);
    vec_push(&reader->origins->list,
        (struct config_origin){arena_strdup(reader->arena, path), at, config_origin_kind(value)});
}

/* struct quantity as a table: kind as an index into its names. */
struct sourced {
    double value, std_error;
    int kind;
    const char *source, *fit;
};

/* A number that overrides another: kind and source say by whom. */
static enum status read_bare(struct reader *reader, struct config_node node,
    const struct config_field *field, struct quantity *out)
{
    struct config_field number = *field;
    struct source_pos at = config_pos(node);
    double value = 0;
    number.type = FIELD_NUMBER;
    enum status status = config_read_scalar(node, &number, &value, reader->arena, reader->diag);
    if (status != STATUS_OK)
        return status;
    bool option = config_origin_kind(node) == ORIGIN_COMMAND_LINE;
    *out = (struct quantity){value, 0, QUANTITY_ASSUMED,
        option ? arena_strdup(reader->arena, at.file)
               : arena_printf(reader->arena, "%s:%d", at.file, at.line),
        NULL};
    return STATUS_OK;
}

/* The number is read through a table of its parts, made here since its dimension and bounds are the
 * field's. */
static enum status read_sourced(struct reader *reader, struct config_node node,
    const struct config_field *field, struct quantity *out)
{
    const struct config_field fields[] = {
        {.key = "value",
            .type = FIELD_NUMBER,
            .offset = offsetof(struct sourced, value),
            .required = true,
            .dimension = field->dimension,
            .min = field->min,
            .max = field->max},
        {.key = "kind",
            .type = FIELD_ENUM,
            .offset = offsetof(struct sourced, kind),
            .required = true,
            .names = config_kind_names},
        {.key = "source",
            .type = FIELD_STRING,
            .offset = offsetof(struct sourced, source),
            .required = true},
        {.key = "fit", .type = FIELD_STRING, .offset = offsetof(struct sourced, fit)},
        {.key = "std_error",
            .type = FIELD_NUMBER,
            .offset = offsetof(struct sourced, std_error),
            .dimension = field->dimension,
            .max = HUGE_VAL},
    };
    const struct config_table table = CONFIG_TABLE("a sourced value", fields);
    if (config_kind(node) != CONFIG_MAPPING)
        return config_wrong_kind(node, field, reader->diag);
    struct sourced read = {.source = ""};
    struct reader inner = {.arena = reader->arena, .diag = reader->diag};
    enum status status = read_mapping(&inner, node, &table, false, &read, NULL);
    if (status != STATUS_OK)
        return status;
    enum quantity_kind kind = (enum quantity_kind)(read.kind + QUANTITY_DATASHEET);
    struct config_node error = config_find(node, "std_error");
    if (!*read.source)
        return diag_input(reader->diag, config_pos(config_find(node, "source")),
            "'source' must say where the value comes from");
    if (kind == QUANTITY_FITTED && !error.doc)
        return diag_input(
            reader->diag, config_pos(node), "a fitted value needs the key 'std_error'");
    if (kind != QUANTITY_FITTED && read.fit)
        return diag_input(reader->diag, config_pos(config_find(node, "fit")),
            "'fit' names a parameter of a fit, and this value is %s; leave it out",
            config_kind_names[read.kind]);
    *out = (struct quantity){read.value, read.std_error, kind, read.source, read.fit};
    return STATUS_OK;
}

/* path: of this field, dotted. */
static enum status read_field(struct reader *reader, struct config_node node, struct found found,
    void *into, const char *path)
{
    const struct config_field *field = found.field;
    void *at = (unsigned char *)into + found.base + field->offset;
    enum status status = STATUS_OK;
    if (field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES) {
        if (config_kind(node) != CONFIG_MAPPING)
            return config_wrong_kind(node, field, reader->diag);
        bool loose = found.loose || field->type == FIELD_OVERRIDES;
        return read_mapping(reader, node, field->section, loose, at, path);
    }
    if (field->type == FIELD_NODE)
        *(struct config_node *)at = node;
    else if (field->type == FIELD_SOURCED && found.loose && config_kind(node) != CONFIG_MAPPING)
        status = read_bare(reader, node, field, at);
    else if (field->type == FIELD_SOURCED)
        status = read_sourced(reader, node, field, at);
    else
        status = config_read_scalar(node, field, at, reader->arena, reader->diag);
    if (status == STATUS_OK)
        record(reader, path, node);
    return status;
}

static enum status table_report_missing(const struct config_table *table,
    const struct config_field *field, struct source_pos at, struct diag *diag)
{
    const char *help = field->help ? field->help : "";
    return diag_input(diag, at, "%s needs the key '%s'%s%s%s", table->what, field->key,
        *help ? " (" : "", help, *help ? ")" : "");
}

static enum status check_required(
    struct reader *reader, struct config_node mapping, const struct config_table *table)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        bool stands = config_find(mapping, field->key).doc ||
                      (field->alias && config_find(mapping, field->alias).doc);
        if (field->required && !stands)
            status = worse(
                status, table_report_missing(table, field, config_pos(mapping), reader->diag));
    }
    return status;
}

/* prefix NULL: a mapping without a path, as the parts of a sourced number are. */
static enum status read_mapping(struct reader *reader, struct config_node mapping,
    const struct config_table *table, bool loose, void *into, const char *prefix)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < config_count(mapping); i++) {
        struct config_node key = config_key(mapping, i);
        const char *name = config_text(key);
        struct found found = find_field(table, loose, name, strlen(name));
        if (!found.field) {
            status = worse(status,
                unknown_key(reader, config_pos(key), name, config_item(mapping, i), table, loose));
            continue;
        }
        if (strcmp(name, found.field->key) != 0 && config_find(mapping, found.field->key).doc) {
            status = worse(status, diag_input(reader->diag, config_pos(key),
                                       "'%s' is another name for '%s', which is set here too", name,
                                       found.field->key));
            continue;
        }
        name = found.field->key;
        const char *path = prefix ? arena_printf(reader->arena, "%s.%s", prefix, name) : name;
        status = worse(status, read_field(reader, config_item(mapping, i), found, into, path));
    }
    return loose || reader->part ? status : worse(status, check_required(reader, mapping, table));
}

static bool config_table_is_known(
    struct config_node mapping, int i, const struct config_table *table)
{
    const char *name = config_text(config_key(mapping, i));
    return find_field(table, false, name, strlen(name)).field != NULL;
}

int config_fit(struct config_node mapping, const struct config_table *table)
{
    int known = 0, n = config_kind(mapping) == CONFIG_MAPPING ? config_count(mapping) : 0;
    for (int i = 0; i < n; i++)
        known += config_table_is_known(mapping, i, table);
    return known;
}

/* A document of another kind is one error, not one for each of its keys. */
static bool is_foreign(
    struct config_node mapping, const struct config_table *table, struct diag *diag)
{
    enum { FEWEST = 4 }; /* unknown keys that no typing errors explain */
    int n = config_count(mapping), unknown = n - config_fit(mapping, table), first = 0;
    if (unknown < FEWEST || 2 * unknown <= n)
        return false;
    while (config_table_is_known(mapping, first, table))
        first++;
    struct config_node key = config_key(mapping, first);
    struct keys keys = {0};
    char known[256];
    config_table_add_keys(&keys, table, false);
    config_join_names(known, sizeof known, keys.list.at, (size_t)keys.list.n);
    vec_free(&keys.list);
    diag_input(diag, config_pos(key),
        "this does not look like %s: %d of its %d keys are unknown there, the first is '%.40s' "
        "(known: %s)",
        table->what, unknown, n, config_text(key), known);
    return true;
}

static enum status read_root(
    struct reader *reader, struct config_node mapping, const struct config_table *table, void *into)
{
    BUG_IF(!mapping.doc, "no document to read %s from", table->what);
    if (config_kind(mapping) != CONFIG_MAPPING)
        return diag_input(reader->diag, config_pos(mapping),
            "%s is a mapping: lines of 'key: value'", table->what);
    if (is_foreign(mapping, table, reader->diag))
        return STATUS_INPUT;
    return read_mapping(reader, mapping, table, false, into, NULL);
}

enum status config_read(struct config_node mapping, const struct config_table *table, void *into,
    struct arena *arena, struct config_origins *origins, struct diag *diag)
{
    struct reader reader = {arena, origins, diag, table->unmodelled, false};
    return read_root(&reader, mapping, table, into);
}

enum status config_read_part(struct config_node mapping, const struct config_table *table,
    void *into, struct arena *arena, struct config_origins *origins, struct diag *diag)
{
    struct reader reader = {arena, origins, diag, table->unmodelled, true};
    return read_root(&reader, mapping, table, into);
}

static const char *first_key(const struct config_table *table, bool loose)
{
    int i = 0;
    while (!can_be_given(&table->fields[i], loose))
        i++;
    return table->fields[i].key;
}

/* The last name of a path that leads nowhere may say what was wanted. */
static bool diag_unmodelled(const struct reader *reader, const char *path, struct source_pos at)
{
    const char *dot = strrchr(path, '.'), *key = dot ? dot + 1 : path;
    const char *why = reader->unmodelled ? reader->unmodelled(key) : NULL;
    if (why)
        diag_input(reader->diag, at, "'%.40s': %s", key, why);
    return why != NULL;
}

enum status config_assign(const char *path, struct source_pos path_at, struct config_node value,
    const struct config_table *table, void *into, struct arena *arena,
    struct config_origins *origins, struct diag *diag)
{
    struct reader reader = {arena, origins, diag, table->unmodelled, false};
    path = config_key_path(table, path, arena);
    const char *key = path;
    for (bool loose = false;;) {
        size_t length = strcspn(key, ".");
        struct found found = find_field(table, loose, key, length);
        const struct config_field *field = found.field;
        if (!field)
            return diag_unmodelled(&reader, path, path_at)
                       ? STATUS_INPUT
                       : unknown_key(&reader, path_at,
                             arena_printf(arena, "%.*s", (int)length, key), value, table, loose);
        bool last = key[length] == '\0',
             section = field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES;
        if (!section && last)
            return read_field(&reader, value, found, into, path);
        if (!section)
            return diag_unmodelled(&reader, path, path_at)
                       ? STATUS_INPUT
                       : diag_input(diag, path_at,
                             "'%.*s' is a single value; it has no key '%.40s'", (int)length, key,
                             key + length + 1);
        loose = found.loose || field->type == FIELD_OVERRIDES;
        if (last)
            return diag_input(diag, path_at,
                "'%.80s' holds several values; set one, as in '%.80s.%s'", path, path,
                first_key(field->section, loose));
        into = (unsigned char *)into + found.base + field->offset;
        table = field->section;
        key += length + 1;
    }
}

static size_t config_table_size_of(const struct config_field *field)
{
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_PATH:
        return sizeof(const char *);
    case FIELD_INT:
        return sizeof(int64_t);
    case FIELD_NUMBER:
        return sizeof(double);
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_ENUM:
        return sizeof(int);
    case FIELD_SOURCED:
        return sizeof(struct quantity);
    case FIELD_NODE:
        return sizeof(struct config_node);
    case FIELD_SECTION:
    case FIELD_OVERRIDES:
        break;
    }
    BUG_IF(true, "'%s' holds several values", field->key);
}

const struct config_field *config_field_find(
    const struct config_table *table, const char *path, size_t *offset)
{
    *offset = 0;
    for (bool loose = false; table;) {
        size_t length = strcspn(path, ".");
        struct found found = find_field(table, loose, path, length);
        if (!found.field)
            return NULL;
        *offset += found.base + found.field->offset;
        if (!path[length])
            return found.field;
        loose = found.loose || found.field->type == FIELD_OVERRIDES;
        table = found.field->section;
        path += length + 1;
    }
    return NULL;
}

const struct config_field *config_field_at(
    const struct config_table *table, const char *path, size_t *offset)
{
    const struct config_field *field = config_field_find(table, path, offset);
    BUG_IF(!field, "no '%s' in %s", path, table->what);
    return field;
}

void *config_read_list(struct config_node list, const struct config_table *table, size_t size,
    int *n, struct arena *arena, struct diag *diag)
{
    bool is_list = config_kind(list) == CONFIG_SEQUENCE;
    *n = is_list ? config_count(list) : 0;
    unsigned char *all = arena_alloc(arena, size * (size_t)*n);
    if (list.doc && !is_list)
        diag_input(diag, config_pos(list), "a list is wanted, each item %s", table->what);
    for (int i = 0; i < *n; i++)
        config_read(config_item(list, i), table, all + (size_t)i * size, arena, NULL, diag);
    return all;
}

void config_copy(void *into, const void *from, const char *path, const struct config_table *table)
{
    size_t at = 0;
    const struct config_field *field = config_field_at(table, path, &at);
    memcpy((char *)into + at, (const char *)from + at, config_table_size_of(field));
}

/* ---- structs of FIELD_OVERRIDES: what of them is given ---- */

static size_t given_size(enum field_type type)
{
    return type == FIELD_SOURCED ? sizeof(struct quantity)
           : type == FIELD_INT   ? sizeof(int64_t)
                                 : sizeof(int);
}

/* Names and paths are never given (config/table.c); other types have no value that means "not
 * given". */
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
            if (config_is_given(&field->section->fields[i],
                    (const char *)at + field->section->fields[i].offset))
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
            memcpy(to, from, given_size(field->type));
    }
}

/* ---- documents that leave out what others have: what is missing when all are read ---- */

/* Whether the path, or one inside it, was read. */
static bool was_read(const struct config_origins *origins, const char *path)
{
    size_t n = strlen(path);
    for (int i = 0; i < origins->list.n; i++) {
        const char *read = origins->list.at[i].path;
        if (strncmp(read, path, n) == 0 && (read[n] == '\0' || read[n] == '.'))
            return true;
    }
    return false;
}

struct wanted {
    const struct config_origins *origins;
    struct source_pos at;
    struct arena arena; /* paths */
    struct diag *diag;
};

static enum status config_table_check(
    struct wanted *wanted, const struct config_table *table, const char *prefix)
{
    enum status worst = STATUS_OK;
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = arena_printf(&wanted->arena, "%s%s", prefix, field->key);
        bool read = was_read(wanted->origins, path);
        enum status status = STATUS_OK;
        if (field->required && !read)
            status = table_report_missing(table, field, wanted->at, wanted->diag);
        else if (field->type == FIELD_SECTION && read)
            status = config_table_check(
                wanted, field->section, arena_printf(&wanted->arena, "%s.", path));
        worst = status > worst ? status : worst;
    }
    return worst;
}

enum status config_check_required(const struct config_table *table,
    const struct config_origins *origins, struct source_pos at, struct diag *diag)
{
    struct wanted wanted = {.origins = origins, .at = at, .diag = diag};
    enum status status = config_table_check(&wanted, table, "");
    arena_release(&wanted.arena);
    return status;
}
