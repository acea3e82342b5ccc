#include "config/document.h"
#include "config/file.h"

#include <ctype.h>
#include <string.h>

/* A stretch of the text and what is to stand there. */
struct edit {
    size_t from, to; /* bytes */
    const char *text;
};

static struct config_node find(struct config_node node, const char *path, struct arena *arena)
{
    for (size_t n; *path && node.doc; path += n + (path[n] == '.')) {
        n = strcspn(path, ".");
        node = config_find(node, arena_printf(arena, "%.*s", (int)n, path));
    }
    return node;
}

static size_t byte_of(const char *text, size_t n, size_t character)
{
    size_t at = 0;
    for (; at < n; at++) {
        bool begins = ((unsigned char)text[at] & 0xc0) != 0x80; /* UTF-8: a later byte of a character is 10xxxxxx */
        if (begins && character-- == 0)
            break;
    }
    return at;
}

/* At the end of the text, or inside the brackets of the root. */
static struct edit append(
    const struct config_doc *doc, const struct config_change *change, const char *text, size_t n, struct arena *arena)
{
    size_t first = byte_of(text, n, doc->nodes.at[0].from), last = byte_of(text, n, doc->nodes.at[0].to);
    if (text[first] == '{')
        return (struct edit){last - 1, last - 1, arena_printf(arena, ", \"%s\": %s", change->path, change->text)};
    const char *line = text[n - 1] == '\n' ? "" : "\n";
    return (struct edit){n, n, arena_printf(arena, "%s%s: %s\n", line, change->path, change->text)};
}

static enum status make_edit(struct edit *out, const struct config_doc *doc, const struct config_change *change,
    const char *text, size_t n, struct arena *arena, struct diag *diag)
{
    struct config_node value = find(config_root(doc), change->path, arena);
    if (config_kind(value) == CONFIG_NONE && strchr(change->path, '.'))
        return diag_input(
            diag, (struct source_pos){.file = doc->name}, "there is no '%s' to change; write one", change->path);
    if (config_kind(value) == CONFIG_NONE) {
        *out = append(doc, change, text, n, arena);
        return STATUS_OK;
    }
    const struct document_node *node = &doc->nodes.at[value.id];
    *out = (struct edit){byte_of(text, n, node->from), byte_of(text, n, node->to), change->text};
    while (out->to > out->from && isspace((unsigned char)text[out->to - 1])) /* a block scalar ends with its line */
        out->to--;
    return STATUS_OK;
}

/* By place; of one place, in the order in which they came. */
static void sort(struct edit *edits, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && edits[j].from < edits[j - 1].from; j--) {
            struct edit other = edits[j];
            edits[j] = edits[j - 1];
            edits[j - 1] = other;
        }
}

enum status config_write_changed(
    FILE *out, const char *path, const struct config_change *changes, int n, struct diag *diag)
{
    char *text = NULL;
    size_t bytes = 0, done = 0;
    struct config_doc *doc = NULL;
    struct arena arena = ARENA_INIT;
    struct edit *edits = xcalloc((size_t)n, sizeof *edits);
    enum status status = config_read_file(&text, &bytes, path, diag);
    if (status == STATUS_OK)
        status = config_parse(&doc, path, text, bytes, diag);
    size_t mark = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const char *from = text ? text + mark : "";
    for (int i = 0; i < n && status == STATUS_OK; i++)
        status = make_edit(&edits[i], doc, &changes[i], from, bytes - mark, &arena, diag);
    if (status == STATUS_OK) {
        sort(edits, n);
        for (int i = 0; i < n; i++) {
            fwrite(from + done, 1, edits[i].from - done, out);
            fputs(edits[i].text, out);
            done = edits[i].to;
        }
        fwrite(from + done, 1, bytes - mark - done, out);
    }
    config_free(doc);
    arena_release(&arena);
    free(edits);
    free(text);
    return status;
}
