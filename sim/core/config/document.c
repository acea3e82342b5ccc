/* A file's bytes, and the tree that is read from them (parse.c), behind node handles.
 *
 * A node is a number in the document's array, and its children are a run of another array: no
 * pointers, so handles stay valid while arrays grow. config_read_file() reads any file up to a
 * limit, and looks at the first bytes of what is no text, to say what kind of file was meant.
 *
 * A model file may hold several models below "sizes". document_take_size() makes the root look like
 * the one that was asked for: a new run of children with the size's keys in place of those that
 * they replace. The text itself is not changed, so places of errors stay right. */
#include "config/document.h"

#include "config/config.h"

#include <errno.h>
#include <string.h>

/* Naming a file that is not there is a mistake of the input, as any other in it. */
static enum status report_missing(enum files_kind kind, struct source_pos at, struct diag *diag)
{
    int reason = errno;
    struct arena arena = ARENA_INIT;
    const char *hint = files_hint(&arena, kind, at.file);
    const char *listed =
        kind == FILES_SCENARIOS && !*hint ? "; `flopcast files` lists those that come along" : "";
    enum status status =
        diag_input(diag, at, "cannot open: %s; name a file that exists and can be read%s%s",
            strerror(reason), hint, listed);
    arena_release(&arena);
    return status;
}

/* What a file is that begins so, and what to do with it; NULL: it may be a text. */
static const char *binary_kind(const char *text, size_t n)
{
    static const struct {
        const char *begin;
        size_t n;
        const char *what;
    } kinds[] = {{"\x1f\x8b", 2, "compressed by gzip; unpack it by gunzip"},
        {"SQLite format 3", 16,
            "a database; `flopcast plot` and `flopcast report` take one, by --db"},
        {"(\xb5/\xfd", 4, "compressed by zstd; unpack it by unzstd"},
        {"PK\x03\x04", 4, "a zip archive; unpack it"}, {"%PDF", 4, "a PDF"},
        {"\x7f"
         "ELF",
            4, "a program"},
        {"\x89PNG", 4, "a picture"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].n && memcmp(text, kinds[i].begin, kinds[i].n) == 0)
            return kinds[i].what;
    return NULL;
}

enum status config_read_file(
    char **out, size_t *n, enum files_kind kind, const char *path, struct diag *diag)
{
    struct source_pos whole_file = {.file = path}, start = {path, 1, 1};
    *out = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return report_missing(kind, start, diag);
    char *text = NULL;
    size_t used = 0, room = 0;
    do {
        room = room ? 2 * room : BUFSIZ;
        text = xrealloc(text, room);
        used += fread(text + used, 1, room - used, file);
    } while (used == room && used <= CONFIG_MAX_BYTES);
    enum status status = STATUS_OK;
    if (ferror(file) && errno == EISDIR)
        status = diag_input(diag, start, "cannot read: %s; name a file in it%s", strerror(errno),
            kind == FILES_MODELS ? ", as it has no config.json" : "");
    else if (ferror(file))
        status = diag_io(diag, whole_file, "cannot read: %s", strerror(errno));
    else if (used > CONFIG_MAX_BYTES)
        status = diag_input(diag, whole_file, "larger than %d MiB; is this the right file?",
            CONFIG_MAX_BYTES >> 20);
    if (status == STATUS_OK || used > CONFIG_MAX_BYTES) {
        const char *what = binary_kind(text, used);
        if (what)
            status = diag_input(diag, whole_file, "this is %s", what);
    }
    fclose(file);
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    text[used] = '\0'; /* the last read left room */
    *out = text;
    *n = used;
    return STATUS_OK;
}

enum status config_load(struct config_doc **out, const char *path, struct diag *diag)
{
    return config_load_kind(out, FILES_ANY, path, diag);
}

static bool replaces(struct config_node size, const char *key)
{
    return strcmp(key, "sizes") == 0 ||
           (size.doc && (strcmp(key, "name") == 0 || config_find(size, key).doc));
}

/* The root without its key sizes; with the model of that name there in place of what it replaces,
 * and its name. Only the root's run is new; nodes and their children are shared with the whole
 * file. */
static void document_choose(
    struct config_doc *doc, const struct document_node *name, struct config_node size)
{
    struct config_node root = config_root(doc);
    struct document_node key = {.kind = CONFIG_SCALAR, .text = "name"}, value = {0};
    int first = doc->children.n;
    for (int i = 0; i < config_count(root); i++)
        for (int part = 0; part < 2 && !replaces(size, config_text(config_key(root, i))); part++)
            vec_push(&doc->children, doc->children.at[doc->nodes.at[0].first + 2 * i + part]);
    for (int i = 0; i < 2 * config_count(size); i++)
        vec_push(&doc->children, doc->children.at[doc->nodes.at[size.id].first + i]);
    if (name) {
        value = *name;
        key.line = value.line;
        key.column = value.column;
        vec_push(&doc->children, doc->nodes.n);
        vec_push(&doc->nodes, key);
        vec_push(&doc->children, doc->nodes.n);
        vec_push(&doc->nodes, value);
    }
    doc->nodes.at[0].first = first;
    doc->nodes.at[0].n = doc->children.n - first;
}

/* Of a file that holds several models: the one of this name; NULL: the file itself, which may be
 * none. */
static enum status document_take_size(struct config_doc *doc, const char *name, struct diag *diag)
{
    struct config_node sizes = config_find(config_root(doc), "sizes"), size = {0};
    if (!sizes.doc)
        return STATUS_OK;
    const struct document_node *key = NULL;
    for (int i = 0; i < config_count(sizes) && config_kind(sizes) == CONFIG_MAPPING; i++)
        if (name && strcmp(config_text(config_key(sizes, i)), name) == 0) {
            size = config_item(sizes, i);
            key = &doc->nodes.at[config_key(sizes, i).id];
        }
    if (config_kind(name ? size : sizes) != CONFIG_MAPPING)
        return diag_input(
            diag, config_pos(sizes), "a model of 'sizes' is a line 'NAME: {key: value, ...}'");
    if (!name && !config_find(config_root(doc), "name").doc)
        return diag_input(diag, config_pos(sizes),
            "several models stand in this file; name one of them, as %s",
            config_text(config_key(sizes, 0)));
    document_choose(doc, key, size);
    return STATUS_OK;
}

enum status config_load_kind(
    struct config_doc **out, enum files_kind kind, const char *path, struct diag *diag)
{
    *out = NULL;
    char *text = NULL;
    size_t n = 0;
    struct arena arena = ARENA_INIT;
    const char *holder = files_holder(&arena, path), *name = holder && holder != path ? path : NULL;
    enum status status = config_read_file(&text, &n, kind, name ? holder : path, diag);
    if (status == STATUS_OK)
        status = config_parse(out, name ? holder : path, text, n, diag);
    if (status == STATUS_OK && (name || kind == FILES_MODELS))
        status = document_take_size(*out, name ? files_size_name(&arena, path) : NULL, diag);
    if (status != STATUS_OK) {
        config_free(*out);
        *out = NULL;
    }
    arena_release(&arena);
    free(text);
    return status;
}

void config_free(struct config_doc *doc)
{
    if (!doc)
        return;
    vec_free(&doc->nodes);
    vec_free(&doc->children);
    arena_release(&doc->arena);
    free(doc);
}

void config_set_origin(struct config_doc *doc, enum origin_kind from)
{
    doc->origin = from;
}

enum origin_kind config_origin_kind(struct config_node node)
{
    return node.doc ? node.doc->origin : ORIGIN_DEFAULT;
}

static const struct document_node *document_at(struct config_node node)
{
    static const struct document_node none = {.kind = CONFIG_NONE};
    return node.doc ? &node.doc->nodes.at[node.id] : &none;
}

static struct config_node child(struct config_node node, int i)
{
    const struct document_node *parent = document_at(node);
    BUG_IF(i < 0 || i >= parent->n, "child %d of %d", i, parent->n);
    return (struct config_node){node.doc, node.doc->children.at[parent->first + i]};
}

struct config_node config_root(const struct config_doc *doc)
{
    return (struct config_node){doc, 0};
}

enum config_kind config_kind(struct config_node node)
{
    return document_at(node)->kind;
}

struct source_pos config_pos(struct config_node node)
{
    return (struct source_pos){
        node.doc ? node.doc->name : NULL, document_at(node)->line, document_at(node)->column};
}

const char *config_text(struct config_node node)
{
    return config_kind(node) == CONFIG_SCALAR ? document_at(node)->text : "";
}

bool config_quoted(struct config_node node)
{
    return document_at(node)->quoted;
}

int config_count(struct config_node node)
{
    return config_kind(node) == CONFIG_MAPPING ? document_at(node)->n / 2 : document_at(node)->n;
}

struct config_node config_item(struct config_node node, int i)
{
    return child(node, config_kind(node) == CONFIG_MAPPING ? 2 * i + 1 : i);
}

struct config_node config_key(struct config_node node, int i)
{
    BUG_IF(config_kind(node) != CONFIG_MAPPING, "only a mapping has keys");
    return child(node, 2 * i);
}

struct config_node config_find(struct config_node mapping, const char *key)
{
    for (int i = 0; config_kind(mapping) == CONFIG_MAPPING && i < config_count(mapping); i++)
        if (strcmp(config_text(config_key(mapping, i)), key) == 0)
            return config_item(mapping, i);
    return (struct config_node){NULL, 0};
}
