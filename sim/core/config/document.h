/* Private to config: how a document is read and kept. Nodes stand in the order in which they begin
 * in the text, so the root is node 0; the children of a node are a run of doc->children (of a
 * mapping: key, value, key, value ...). */
#ifndef FLOPCAST_CONFIG_DOCUMENT_H
#define FLOPCAST_CONFIG_DOCUMENT_H

#include "config/config.h"

#include <yaml.h>

struct document_node {
    enum config_kind kind;
    bool quoted;
    int line, column;
    const char *text; /* scalars only, else NULL */
    int first, n;     /* children */
    size_t from,
        to; /* its characters in the text, not counting a byte order mark; to: one after the last */
};

struct config_doc {
    struct arena arena; /* name and texts */
    const char *name;
    enum origin_kind origin;
    VEC(struct document_node) nodes;
    VEC(int) children;
};

#endif
