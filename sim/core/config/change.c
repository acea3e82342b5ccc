/* Other values into a document's text, with everything else in it as it is.
 *
 * The text is parsed to find the places of values (nodes carry their first and last character),
 * never printed from the tree: comments, order and layout survive because they are not touched.
 * Each change becomes an edit, a range of bytes and its replacement. A key that is there is
 * replaced; those that are not are collected, and all that go into one mapping under one key become
 * one edit with nested braces. Edits are sorted by place and must not overlap.
 *
 * Subtle: libyaml counts characters and the text is bytes, hence byte_of(). A block mapping that is
 * not the root takes a new key before its first one, the only place where its indentation is sure
 * to be known. The changed text is parsed once more before it is written, because libyaml accepts
 * some texts only as they were. */
#include "config/document.h"

#include <string.h>

/* A range of the text and its replacement. */
struct edit {
    size_t from, to; /* bytes */
    const char *text;
};

/* The pair that the dotted path names; value.doc is NULL if there is none. */
struct pair {
    struct config_node key, value;
};

static struct pair change_find(struct config_node node, const char *path)
{
    struct pair found = {.value = node};
    for (size_t n; *path && found.value.doc; path += n + (path[n] == '.')) {
        struct config_node mapping = found.value;
        found = (struct pair){0};
        n = strcspn(path, ".");
        for (int i = 0; config_kind(mapping) == CONFIG_MAPPING && i < config_count(mapping); i++) {
            const char *key = config_text(config_key(mapping, i));
            if (strlen(key) == n && strncmp(key, path, n) == 0)
                found = (struct pair){config_key(mapping, i), config_item(mapping, i)};
        }
    }
    return found;
}

static size_t byte_of(const char *text, size_t n, size_t character)
{
    size_t at = 0;
    for (; at < n; at++) {
        bool begins = ((unsigned char)text[at] & 0xc0) !=
                      0x80; /* UTF-8: a later byte of a character is 10xxxxxx */
        if (begins && character-- == 0)
            break;
    }
    return at;
}

/* Changes of keys that the document does not have. */
struct additions {
    const struct config_change **list;
    int n;
};

/* The first `part` of the path that is there and holds the rest: its length; 0: the root. */
static size_t held(const struct config_doc *doc, const char *path, struct arena *arena)
{
    size_t n = 0;
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t length = (size_t)(dot - path);
        if (!change_find(config_root(doc), arena_printf(arena, "%.*s", (int)length, path))
                 .value.doc)
            break;
        n = length;
    }
    return n;
}

/* "a: 1, b: {c: 2, d: 3}" of a, b.c and b.d; skip: the number of characters of their paths that are
 * written already. */
static void write_additions(
    FILE *out, const struct additions *added, size_t skip, const char *quote)
{
    bool *done = xcalloc((size_t)added->n, sizeof *done);
    const char *joint = "";
    for (int i = 0; i < added->n; i++) {
        const char *path = added->list[i]->path + skip;
        size_t n = strcspn(path, ".");
        if (done[i])
            continue;
        fprintf(out, "%s%s%.*s%s: ", joint, quote, (int)n, path, quote);
        joint = ", ";
        if (path[n] == '\0') {
            fputs(added->list[i]->text, out);
            continue;
        }
        struct additions inner = {xcalloc((size_t)added->n, sizeof *inner.list), 0};
        for (int j = i; j < added->n; j++)
            if (strncmp(added->list[j]->path, added->list[i]->path, skip + n + 1) == 0) {
                inner.list[inner.n++] = added->list[j];
                done[j] = true;
            }
        fputc('{', out);
        write_additions(out, &inner, skip + n + 1, quote);
        fputc('}', out);
        free(inner.list);
    }
    free(done);
}

/* Into the mapping: inside its brackets; of the root at the end of the text; else before its first
 * key, where its indentation is known. The text of an addition ends without a line end in brackets,
 * and with one in lines. */
static struct edit insert(const struct config_doc *doc, struct config_node mapping,
    const struct additions *added, size_t skip, const char *text, size_t n, struct arena *arena)
{
    const struct document_node *node = &doc->nodes.at[mapping.id];
    size_t first = byte_of(text, n, node->from), last = byte_of(text, n, node->to);
    bool flow = text[first] == '{';
    char *lines = NULL;
    size_t bytes = 0;
    FILE *out = xmemstream(&lines, &bytes);
    write_additions(out, added, skip, flow ? "\"" : "");
    fclose(out);
    struct edit edit = {last - 1, last - 1,
        arena_printf(arena, "%s%s", config_count(mapping) > 0 ? ", " : "", lines)};
    if (!flow && mapping.id == 0)
        edit = (struct edit){
            n, n, arena_printf(arena, "%s%s\n", text[n - 1] == '\n' ? "" : "\n", lines)};
    else if (!flow)
        edit = (struct edit){
            first, first, arena_printf(arena, "%s\n%*s", lines, node->column - 1, "")};
    free(lines);
    return edit;
}

/* All that is added to one mapping under one key is one edit: the one of the first of them. added:
 * changes from that one on. */
static enum status config_change_add(struct edit *out, const struct config_doc *doc,
    struct additions *added, const char *text, size_t n, struct arena *arena, struct diag *diag)
{
    const char *path = added->list[0]->path;
    size_t into = held(doc, path, arena), skip = into ? into + 1 : 0;
    struct config_node mapping =
        change_find(config_root(doc), arena_printf(arena, "%.*s", (int)into, path)).value;
    if (config_kind(mapping) != CONFIG_MAPPING)
        return diag_input(diag, (struct source_pos){.file = doc->name},
            "there is no '%s' to change; write one", path);
    size_t same = skip + strcspn(path + skip, ".");
    int kept = 0, n_added = added->n;
    const struct config_change **rest = ARENA_ARRAY(arena, const struct config_change *, n_added);
    struct additions here = {ARENA_ARRAY(arena, const struct config_change *, n_added), 0};
    for (int i = 0; i < n_added; i++)
        if (i == 0 || (path[same] == '.' && strncmp(added->list[i]->path, path, same + 1) == 0))
            here.list[here.n++] = added->list[i];
        else
            rest[kept++] = added->list[i];
    *out = insert(doc, mapping, &here, skip, text, n, arena);
    *added = (struct additions){rest, kept};
    return STATUS_OK;
}

/* Bytes of the line break that ends the text; 0: it ends otherwise. YAML 1.1 has five: CR LF, LF,
 * CR and, of Unicode, next line, line separator and paragraph separator. */
static size_t line_break(const char *text, size_t n)
{
    static const char *const BREAKS[] = {
        "\r\n", "\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    for (size_t i = 0; i < sizeof BREAKS / sizeof *BREAKS; i++) {
        size_t length = strlen(BREAKS[i]);
        if (n >= length && memcmp(text + n - length, BREAKS[i], length) == 0)
            return length;
    }
    return 0;
}

static struct edit change_replace(const struct config_doc *doc, struct pair pair,
    const struct config_change *change, const char *text, size_t n, struct arena *arena)
{
    const struct document_node *node = &doc->nodes.at[pair.value.id];
    /* A list may begin below its key without being indented; what takes its place may not. */
    int pad = config_pos(pair.key).column - node->column + 1;
    bool below = node->line > config_pos(pair.key).line;
    struct edit edit = {byte_of(text, n, node->from), byte_of(text, n, node->to),
        below && pad > 0 ? arena_printf(arena, "%*s%s", pad, "", change->text) : change->text};
    edit.to -=
        line_break(text + edit.from, edit.to - edit.from); /* a block scalar ends with its line */
    return edit;
}

/* At most as many edits as changes; *n_edits of them. */
static enum status make_edits(struct edit *edits, int *n_edits, const struct config_doc *doc,
    const struct config_change *changes, int n_changes, const char *text, size_t n,
    struct arena *arena, struct diag *diag)
{
    struct additions added = {ARENA_ARRAY(arena, const struct config_change *, n_changes), 0};
    enum status status = STATUS_OK;
    *n_edits = 0;
    for (int i = 0; i < n_changes; i++) {
        struct pair pair = change_find(config_root(doc), changes[i].path);
        if (pair.value.doc)
            edits[(*n_edits)++] = change_replace(doc, pair, &changes[i], text, n, arena);
        else
            added.list[added.n++] = &changes[i];
    }
    while (added.n > 0 && status == STATUS_OK)
        status = config_change_add(&edits[(*n_edits)++], doc, &added, text, n, arena, diag);
    return status;
}

/* By place; of one place, in the order in which they came. */
static void change_sort(struct edit *edits, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && edits[j].from < edits[j - 1].from; j--) {
            struct edit other = edits[j];
            edits[j] = edits[j - 1];
            edits[j - 1] = other;
        }
}

/* With the edits it must still be a document, or nothing is written: libyaml accepts a line of tabs
 * after plain text, but not after {}. */
static enum status write_edits(FILE *out, const char *name, const char *text, size_t n,
    struct edit *edits, int n_edits, struct diag *diag)
{
    char *changed = NULL;
    size_t bytes = 0, done = 0;
    FILE *memory = xmemstream(&changed, &bytes);
    change_sort(edits, n_edits);
    for (int i = 0; i < n_edits; i++) {
        BUG_IF(edits[i].from < done, "a path inside another");
        fwrite(text + done, 1, edits[i].from - done, memory);
        fputs(edits[i].text, memory);
        done = edits[i].to;
    }
    fwrite(text + done, 1, n - done, memory);
    fclose(memory);
    struct config_doc *doc = NULL;
    struct diag why = DIAG_INIT;
    enum status status = config_parse(&doc, name, changed, bytes, &why);
    if (status == STATUS_OK)
        fwrite(changed, 1, bytes, out);
    else
        diag_input(diag, (struct source_pos){.file = name},
            "with other values it would be no document; write it without tabs, a key a line");
    config_free(doc);
    free(changed);
    return status;
}

enum status config_change_text(FILE *out, const char *name, const char *text, size_t n,
    const struct config_change *changes, int n_changes, struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct arena arena = ARENA_INIT;
    struct edit *edits = xcalloc((size_t)n_changes, sizeof *edits);
    enum status status = config_parse(&doc, name, text, n, diag);
    size_t mark = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    text += mark;
    n -= mark;
    int n_edits = 0;
    if (status == STATUS_OK)
        status = make_edits(edits, &n_edits, doc, changes, n_changes, text, n, &arena, diag);
    if (status == STATUS_OK)
        status = write_edits(out, name, text, n, edits, n_edits, diag);
    config_free(doc);
    arena_release(&arena);
    free(edits);
    return status;
}

enum status config_write_changed(
    FILE *out, const char *path, const struct config_change *changes, int n, struct diag *diag)
{
    char *text = NULL;
    size_t bytes = 0;
    enum status status = config_read_file(&text, &bytes, FILES_ANY, path, diag);
    if (status == STATUS_OK)
        status = config_change_text(out, path, text, bytes, changes, n, diag);
    free(text);
    return status;
}
