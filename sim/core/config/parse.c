/* Text to document, by libyaml's events, and libyaml's errors as sentences.
 *
 * The builder keeps a stack of open mappings and lists. Children of open nodes wait in `pending`;
 * when a node ends, its part of that list moves to the document's children as one run. Nodes are
 * numbered as they begin, so the root is 0.
 *
 * What YAML allows and this program does not is refused here, by event: anchors, aliases, tags, a
 * second document, empty values, long or repeated keys. Reading goes on after most of these, so
 * that one run shows all; libyaml's own errors end it. Limits of depth and number of nodes keep
 * recursion and memory bounded for any input.
 *
 * Subtle: libyaml reports some errors at the end of the text and the opening elsewhere
 * (context_mark); `sentences` says which place helps. Errors of its reader have a byte and no
 * line. */
#include "config/document.h"

#include <string.h>

/* libyaml's words (0.2.5), and ours. Where something was never closed, the place that helps is
 * where it was opened. */
static const struct {
    const char *problem, *sentence;
    bool at_opening;
} sentences[] = {
    {"tab character", "tab used as indentation; use spaces", false},
    {"cannot start any token", "this character cannot start a value; put the text in quotes",
        false},
    {"mapping values are not allowed",
        "': ' is not allowed here; check the indentation, or put the text in quotes", false},
    {"could not find expected ':'", "no ':' after this key; check the indentation", true},
    {"did not find expected key", "a key was expected here; check the indentation and the quotes",
        false},
    {"did not find expected '-' indicator",
        "'- ' was expected here; check the indentation of the list", false},
    {"block sequence entries are not allowed",
        "a list item is not allowed here; start it on its own line", false},
    {"expected ',' or ']'", "the list that starts here is not closed; ',' or ']' was expected",
        true},
    {"expected ',' or '}'", "the mapping that starts here is not closed; ',' or '}' was expected",
        true},
    {"unexpected end of stream", "the text that starts here is not closed; a quote was expected",
        true},
    {"unexpected document indicator",
        "the text that starts here is not closed; a quote was expected", true},
    {"unknown escape character",
        "unknown escape after '\\'; in single quotes '\\' stands for itself", false},
    {"control characters", "control character in the text; only printable UTF-8 is allowed", false},
    {"Unicode character escape",
        "this escape is no character (a pair of surrogates is not read); write the character "
        "itself",
        false},
    {"invalid Unicode character", "the text is not valid UTF-8; save the file as UTF-8", false},
    {"UTF-8", "the text is not valid UTF-8; save the file as UTF-8", false},
    {"expected node content", "a value was expected here", false},
    {"expected <document start>", "text after the end of the document; check the indentation",
        false},
};

static bool starts_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

/* libyaml gives no line for what its reader refuses, only the byte. */
static struct source_pos place_of_byte(const char *name, const char *text, size_t byte)
{
    struct source_pos at = {name, 1, 1};
    for (size_t i = 0; i < byte; i++) {
        if (text[i] == '\n')
            at = (struct source_pos){name, at.line + 1, 1};
        else if (starts_character(text[i]))
            at.column++;
    }
    return at;
}

static struct source_pos place_of_mark(const char *name, yaml_mark_t mark)
{
    return (struct source_pos){name, (int)mark.line + 1, (int)mark.column + 1};
}

static bool is_tab(const char *text, size_t n, size_t character)
{
    for (size_t i = 0; i < n; i++)
        if (starts_character(text[i]) && character-- == 0)
            return text[i] == '\t';
    return false;
}

/* libyaml's errors as sentences for users: why the parser stopped. name is what the text is called
 * in messages; text is what the parser was given. */
static enum status config_syntax_error(
    const yaml_parser_t *parser, const char *name, const char *text, size_t n, struct diag *diag)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return diag_io(diag, (struct source_pos){.file = name}, "out of memory");
    bool by_reader = parser->error == YAML_READER_ERROR;
    struct source_pos at = by_reader ? place_of_byte(name, text, parser->problem_offset)
                                     : place_of_mark(name, parser->problem_mark);
    const char *problem = !by_reader && is_tab(text, n, parser->problem_mark.index)
                              ? "tab character"
                              : parser->problem;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        if (!strstr(problem, sentences[i].problem))
            continue;
        if (sentences[i].at_opening && parser->context)
            at = place_of_mark(name, parser->context_mark);
        return diag_input(diag, at, "%s", sentences[i].sentence);
    }
    return diag_input(diag, at, "%s", problem);
}

/* Longest key, in bytes. libyaml reads keys of at most 1024 characters on their own line; with
 * every byte escaped as \u00xx, 128 still fit, so what config_write_json() writes can be read back.
 */
enum { MAX_KEY_BYTES = 128 };

struct builder {
    struct config_doc *doc;
    struct diag *diag;
    enum status worst;
    int depth;
    struct open {
        int node, first_pending;
    } open[CONFIG_MAX_DEPTH];
    VEC(int) pending; /* children of the open nodes, innermost last */
};

static struct source_pos config_parse_place(const struct builder *b, yaml_mark_t mark)
{
    return (struct source_pos){b->doc->name, (int)mark.line + 1, (int)mark.column + 1};
}

/* Whether the next node is a key: the innermost open node is a mapping that holds whole pairs. */
static bool awaits_key(const struct builder *b)
{
    if (b->depth == 0)
        return false;
    const struct open *open = &b->open[b->depth - 1];
    return b->doc->nodes.at[open->node].kind == CONFIG_MAPPING &&
           (b->pending.n - open->first_pending) % 2 == 0;
}

/* False when there are too many nodes. */
static bool config_parse_add(struct builder *b, struct document_node node)
{
    int id = b->doc->nodes.n;
    if (id == CONFIG_MAX_NODES) {
        b->worst = diag_input(b->diag, (struct source_pos){b->doc->name, node.line, node.column},
            "more than %d values; split the file", CONFIG_MAX_NODES);
        return false;
    }
    vec_push(&b->doc->nodes, node);
    if (b->depth > 0)
        vec_push(&b->pending, id);
    return true;
}

static void refuse_properties(
    struct builder *b, const yaml_char_t *anchor, const yaml_char_t *tag, struct source_pos at)
{
    if (anchor)
        b->worst = diag_input(b->diag, at,
            "anchor '&%.40s'; write the value out where it is needed", (const char *)anchor);
    if (tag)
        b->worst =
            diag_input(b->diag, at, "a tag ('!...') is not allowed; types come from the keys");
}

static bool config_parse_take_scalar(struct builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    struct source_pos at = config_parse_place(b, event->start_mark);
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE, key = awaits_key(b);
    bool null = !key && !quoted && (strcmp(text, "null") == 0 || strcmp(text, "~") == 0);
    refuse_properties(b, event->data.scalar.anchor, event->data.scalar.tag, at);
    if (memchr(text, '\0', length))
        b->worst = diag_input(b->diag, at, "NUL character in a text");
    else if (key && length == 0)
        b->worst = diag_input(b->diag, at, "no key before ':'");
    else if (key && length > MAX_KEY_BYTES)
        b->worst = diag_input(b->diag, at, "key of more than %d bytes", MAX_KEY_BYTES);
    else if (!quoted && length == 0 && b->depth == 0)
        b->worst = diag_input(b->diag, at, "the document is empty");
    else if (!quoted && length == 0)
        b->worst = diag_input(b->diag, at, "no value; write one, or null where none is meant");
    return config_parse_add(b, (struct document_node){.kind = null ? CONFIG_NULL : CONFIG_SCALAR,
                                   .quoted = quoted,
                                   .line = at.line,
                                   .column = at.column,
                                   .text = null ? NULL : arena_strdup(&b->doc->arena, text),
                                   .from = event->start_mark.index,
                                   .to = event->end_mark.index});
}

static bool take_start(struct builder *b, enum config_kind kind, const yaml_event_t *event)
{
    struct source_pos at = config_parse_place(b, event->start_mark);
    if (awaits_key(b))
        b->worst = diag_input(b->diag, at, "a key must be a word, not a list or a mapping");
    if (b->depth == CONFIG_MAX_DEPTH) {
        b->worst = diag_input(b->diag, at, "nested deeper than %d levels", CONFIG_MAX_DEPTH);
        return false;
    }
    int id = b->doc->nodes.n;
    if (!config_parse_add(b, (struct document_node){.kind = kind,
                                 .line = at.line,
                                 .column = at.column,
                                 .from = event->start_mark.index}))
        return false;
    b->open[b->depth++] = (struct open){id, b->pending.n};
    return true;
}

struct same_key {
    const struct document_node *key, *first;
};

/* A key without text is a list or a mapping, which is reported already. */
static const char *key_text(const struct same_key *entry)
{
    return entry->key->text ? entry->key->text : "";
}

static int config_parse_by_place(const void *a, const void *b)
{
    const struct document_node *x = ((const struct same_key *)a)->key,
                               *y = ((const struct same_key *)b)->key;
    return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b)
{
    int order = strcmp(key_text(a), key_text(b));
    return order ? order : config_parse_by_place(a, b);
}

/* By sorting, so that a large mapping costs n log n; reported in the order of the text. */
static void refuse_duplicates(struct builder *b, const struct document_node *mapping)
{
    size_t n = (size_t)mapping->n / 2, duplicates = 0;
    struct same_key *keys = xcalloc(n, sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        const struct document_node *key =
            &b->doc->nodes.at[b->doc->children.at[(size_t)mapping->first + 2 * i]];
        keys[i] = (struct same_key){key, key};
    }
    qsort(keys, n, sizeof *keys, by_text);
    struct same_key before = {0};
    for (size_t i = 0; i < n; i++) {
        struct same_key entry = keys[i];
        if (before.key && *key_text(&entry) && strcmp(key_text(&entry), key_text(&before)) == 0) {
            entry.first = before.first;
            keys[duplicates++] = entry;
        }
        before = entry;
    }
    qsort(keys, duplicates, sizeof *keys, config_parse_by_place);
    for (size_t i = 0; i < duplicates; i++)
        b->worst = diag_input(b->diag,
            (struct source_pos){b->doc->name, keys[i].key->line, keys[i].key->column},
            "key '%.40s' stands twice; first at line %d", keys[i].key->text, keys[i].first->line);
    free(keys);
}

/* Without brackets the event stands where the next node begins: comments may lie between. */
static void take_end(struct builder *b, const yaml_event_t *event)
{
    struct open open = b->open[--b->depth];
    struct document_node *node = &b->doc->nodes.at[open.node];
    node->first = b->doc->children.n;
    node->n = b->pending.n - open.first_pending;
    BUG_IF(node->n > 0 && !b->pending.at, "%d children that nobody holds", node->n);
    if (event->end_mark.index > event->start_mark.index) /* a bracket */
        node->to = event->end_mark.index;
    else
        node->to = node->n > 0 ? b->doc->nodes.at[b->pending.at[b->pending.n - 1]].to : node->from;
    for (int i = open.first_pending; i < b->pending.n; i++)
        vec_push(&b->doc->children, b->pending.at[i]);
    b->pending.n = open.first_pending;
    if (node->kind == CONFIG_MAPPING)
        refuse_duplicates(b, node);
}

/* False: stop reading. */
static bool config_parse_take(struct builder *b, const yaml_event_t *event)
{
    struct source_pos at = config_parse_place(b, event->start_mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->nodes.n == 0)
            return true;
        b->worst = diag_input(b->diag, at, "a second document starts here; a file holds one");
        return false;
    case YAML_STREAM_END_EVENT:
        if (b->doc->nodes.n == 0)
            b->worst = diag_input(
                b->diag, (struct source_pos){b->doc->name, 1, 1}, "the document is empty");
        return false;
    case YAML_ALIAS_EVENT:
        b->worst = diag_input(b->diag, at, "alias '*%.40s'; write the value out where it is needed",
            (const char *)event->data.alias.anchor);
        return config_parse_add(
            b, (struct document_node){.kind = CONFIG_NULL, .line = at.line, .column = at.column});
    case YAML_SCALAR_EVENT:
        return config_parse_take_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        refuse_properties(b, event->data.sequence_start.anchor, event->data.sequence_start.tag, at);
        return take_start(b, CONFIG_SEQUENCE, event);
    case YAML_MAPPING_START_EVENT:
        refuse_properties(b, event->data.mapping_start.anchor, event->data.mapping_start.tag, at);
        return take_start(b, CONFIG_MAPPING, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        take_end(b, event);
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    return true;
}

static void read_events(struct builder *b, const char *text, size_t n)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        b->worst = diag_io(b->diag, (struct source_pos){.file = b->doc->name}, "out of memory");
        return;
    }
    /* UTF-8 is stated, because libyaml would take some binary files for UTF-16. */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            b->worst = config_syntax_error(&parser, b->doc->name, text, n, b->diag);
            break;
        }
        more = config_parse_take(b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

enum status config_parse(
    struct config_doc **out, const char *name, const char *text, size_t n, struct diag *diag)
{
    *out = NULL;
    struct builder b = {.doc = xcalloc(1, sizeof *b.doc), .diag = diag};
    b.doc->name = arena_strdup(&b.doc->arena, name);
    b.doc->origin = ORIGIN_FILE;
    /* A byte order mark would count as a column of the first line. */
    size_t mark = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (n > CONFIG_MAX_BYTES)
        b.worst = diag_input(
            diag, (struct source_pos){.file = name}, "larger than %d MiB", CONFIG_MAX_BYTES >> 20);
    else
        read_events(&b, text + mark, n - mark);
    vec_free(&b.pending);
    if (b.worst != STATUS_OK) {
        config_free(b.doc);
        return b.worst;
    }
    *out = b.doc;
    return STATUS_OK;
}
