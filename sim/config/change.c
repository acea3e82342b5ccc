#include "config/document.h"
#include "config/file.h"

#include <string.h>

/* A stretch of the text and what is to stand there. */
struct edit {
    size_t from, to; /* bytes */
    const char *text;
};

/* The pair that the dotted path names; value.doc is NULL where there is none. */
struct pair {
    struct config_node key, value;
};

static struct pair find(struct config_node node, const char *path)
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
    struct pair pair = find(config_root(doc), change->path);
    if (!pair.value.doc && strchr(change->path, '.'))
        return diag_input(
            diag, (struct source_pos){.file = doc->name}, "there is no '%s' to change; write one", change->path);
    if (!pair.value.doc) {
        *out = append(doc, change, text, n, arena);
        return STATUS_OK;
    }
    const struct document_node *node = &doc->nodes.at[pair.value.id];
    /* A list may begin below its key without being indented; what takes its place may not. */
    int pad = config_pos(pair.key).column - node->column + 1;
    bool below = node->line > config_pos(pair.key).line;
    *out = (struct edit){byte_of(text, n, node->from), byte_of(text, n, node->to),
        below && pad > 0 ? arena_printf(arena, "%*s%s", pad, "", change->text) : change->text};
    for (int i = 0; i < 2 && out->to > out->from && strchr("\r\n", text[out->to - 1]); i++)
        out->to--; /* a block scalar ends with its line */
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

/* With the edits it must still be a document, or nothing is written: libyaml takes a line of tabs behind a plain text,
 * but not behind {}. */
static enum status write_edits(
    FILE *out, const char *name, const char *text, size_t n, struct edit *edits, int n_edits, struct diag *diag)
{
    char *changed = NULL;
    size_t bytes = 0, done = 0;
    FILE *memory = open_memstream(&changed, &bytes);
    BUG_IF(!memory, "open_memstream failed");
    sort(edits, n_edits);
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
    for (int i = 0; i < n_changes && status == STATUS_OK; i++)
        status = make_edit(&edits[i], doc, &changes[i], text, n, &arena, diag);
    if (status == STATUS_OK)
        status = write_edits(out, name, text, n, edits, n_changes, diag);
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
    enum status status = config_read_file(&text, &bytes, path, diag);
    if (status == STATUS_OK)
        status = config_change_text(out, path, text, bytes, changes, n, diag);
    free(text);
    return status;
}
