#include "config/document.h"

#include <string.h>

enum status config_load(struct config_doc **out, const char *path, struct diag *diag)
{
    return config_load_kind(out, FILES_ANY, path, diag);
}

enum status config_load_kind(struct config_doc **out, enum files_kind kind, const char *path, struct diag *diag)
{
    *out = NULL;
    char *text = NULL;
    size_t n = 0;
    enum status status = config_read_file(&text, &n, kind, path, diag);
    if (status == STATUS_OK)
        status = config_parse(out, path, text, n, diag);
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

static const struct document_node *at(struct config_node node)
{
    static const struct document_node none = {.kind = CONFIG_NONE};
    return node.doc ? &node.doc->nodes.at[node.id] : &none;
}

static struct config_node child(struct config_node node, int i)
{
    const struct document_node *parent = at(node);
    BUG_IF(i < 0 || i >= parent->n, "child %d of %d", i, parent->n);
    return (struct config_node){node.doc, node.doc->children.at[parent->first + i]};
}

struct config_node config_root(const struct config_doc *doc)
{
    return (struct config_node){doc, 0};
}

enum config_kind config_kind(struct config_node node)
{
    return at(node)->kind;
}

struct source_pos config_pos(struct config_node node)
{
    return (struct source_pos){node.doc ? node.doc->name : NULL, at(node)->line, at(node)->column};
}

const char *config_text(struct config_node node)
{
    return config_kind(node) == CONFIG_SCALAR ? at(node)->text : "";
}

bool config_quoted(struct config_node node)
{
    return at(node)->quoted;
}

int config_count(struct config_node node)
{
    return config_kind(node) == CONFIG_MAPPING ? at(node)->n / 2 : at(node)->n;
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
