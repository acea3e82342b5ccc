#include "config/config.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

static struct config_doc *parse(const char *text)
{
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    if (config_parse(&doc, "f", text, strlen(text), &diag) != STATUS_OK)
        fail_msg("%s\n%s", text, diag.text);
    assert_int_equal(diag.n_errors, 0);
    return doc;
}

static void assert_place(struct config_node node, int line, int column)
{
    struct source_pos at = config_pos(node);
    assert_string_equal(at.file, "f");
    assert_int_equal(at.line, line);
    assert_int_equal(at.column, column);
}

static void keeps_kinds_texts_and_places(void **state)
{
    (void)state;
    struct config_doc *doc = parse("# first\n"
                                   "name: t5-11b # comment\n"
                                   "train:\n"
                                   "  micro_batch: 8\n"
                                   "  note: 'it''s'\n"
                                   "gpus: [8, 64, null]\n"
                                   "none: ~\n"
                                   "h\xc3\xb6he: {a: \"null\"}\n");
    struct config_node root = config_root(doc), train = config_find(root, "train"),
                       gpus = config_find(root, "gpus");
    assert_int_equal(config_kind(root), CONFIG_MAPPING);
    assert_int_equal(config_count(root), 5);
    assert_place(root, 2, 1);
    assert_string_equal(config_text(config_key(root, 1)), "train");
    assert_place(config_key(root, 1), 3, 1);
    assert_string_equal(config_text(config_item(root, 0)), "t5-11b");
    assert_place(config_item(root, 0), 2, 7);
    assert_false(config_quoted(config_item(root, 0)));
    assert_place(train, 4, 3);
    assert_string_equal(config_text(config_find(train, "note")), "it's");
    assert_true(config_quoted(config_find(train, "note")));
    assert_int_equal(config_kind(gpus), CONFIG_SEQUENCE);
    assert_int_equal(config_count(gpus), 3);
    assert_string_equal(config_text(config_item(gpus, 1)), "64");
    assert_place(config_item(gpus, 1), 6, 11);
    assert_int_equal(config_kind(config_item(gpus, 2)), CONFIG_NULL);
    assert_string_equal(config_text(config_item(gpus, 2)), "");
    assert_int_equal(config_kind(config_find(root, "none")), CONFIG_NULL);
    struct config_node a = config_find(config_find(root, "h\xc3\xb6he"), "a");
    assert_int_equal(config_kind(a), CONFIG_SCALAR); /* in quotes it is a text */
    assert_string_equal(config_text(a), "null");
    assert_place(a, 8, 11); /* columns count characters: "ö" is one */
    config_free(doc);
}

static void a_node_that_is_not_there(void **state)
{
    (void)state;
    struct config_doc *doc = parse("a: 1\n");
    struct config_node none = config_find(config_root(doc), "b");
    assert_int_equal(config_kind(none), CONFIG_NONE);
    assert_null(none.doc);
    assert_null(config_pos(none).file);
    assert_int_equal(config_count(none), 0);
    assert_string_equal(config_text(none), "");
    assert_int_equal(config_kind(config_find(none, "c")), CONFIG_NONE);
    assert_int_equal(
        config_kind(config_find(config_find(config_root(doc), "a"), "c")), CONFIG_NONE);
    config_free(doc);
    config_free(NULL);
}

static void reads_json(void **state)
{
    (void)state;
    /* Tabs between tokens, no space behind ':', escapes. */
    struct config_doc *doc =
        parse("{\n\t\"model_type\":\"t5\",\n\t\"d_model\":1024,\"a\":[true,null,-1.5e3],\n"
              "\t\"path\":\"x\\/y\\u00e9\\n\", \"empty\":{}, \"list\":[]}\n");
    struct config_node root = config_root(doc), list = config_find(root, "a");
    assert_string_equal(config_text(config_find(root, "model_type")), "t5");
    assert_place(config_find(root, "d_model"), 3, 12);
    assert_string_equal(config_text(config_item(list, 2)), "-1.5e3");
    assert_int_equal(config_kind(config_item(list, 1)), CONFIG_NULL);
    assert_string_equal(config_text(config_find(root, "path")), "x/y\xc3\xa9\n");
    assert_int_equal(config_kind(config_find(root, "empty")), CONFIG_MAPPING);
    assert_int_equal(config_count(config_find(root, "empty")), 0);
    assert_int_equal(config_kind(config_find(root, "list")), CONFIG_SEQUENCE);
    config_free(doc);
}

static void traps_of_yaml_1_1_are_texts(void **state)
{
    (void)state;
    /* In YAML 1.1 these are booleans, null, octal, base 60 and a date. */
    static const char *const words[] = {
        "yes", "NO", "on", "off", "Null", "NULL", "010", "1:30", "2024-01-01", ".inf"};
    struct config_doc *doc = parse("[yes, NO, on, off, Null, NULL, 010, 1:30, 2024-01-01, .inf]");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(config_kind(config_item(config_root(doc), i)), CONFIG_SCALAR);
        assert_string_equal(config_text(config_item(config_root(doc), i)), words[i]);
    }
    config_free(doc);
}

static void skips_a_byte_order_mark(void **state)
{
    (void)state;
    struct config_doc *doc = parse("\xef\xbb\xbf"
                                   "a: 1\n");
    assert_place(config_find(config_root(doc), "a"), 1, 4);
    config_free(doc);
}

static const struct {
    const char *text, *message;
} bad[] = {
    /* empty */
    {"", "f:1:1: error: the document is empty\n"},
    {"# only a comment\n", "f:1:1: error: the document is empty\n"},
    {"---\n", "f:2:1: error: the document is empty\n"},
    {"a:\nb: 1\n", "f:1:3: error: no value; write one, or null where none is meant\n"},
    {"l:\n  -\n  - 1\n", "f:2:4: error: no value; write one, or null where none is meant\n"},
    /* several documents */
    {"a: 1\n---\nb: 2\n", "f:2:1: error: a second document starts here; a file holds one\n"},
    {"a: 1\n...\n---\nb: 2\n", "f:3:1: error: a second document starts here; a file holds one\n"},
    {"a: 1\n...\nb: 2\n",
        "f:3:1: error: text after the end of the document; check the indentation\n"},
    /* keys */
    {"a: 1\nb: 2\na: 3\n", "f:3:1: error: key 'a' stands twice; first at line 1\n"},
    {"a: 1\n\"a\": 2\n", "f:2:1: error: key 'a' stands twice; first at line 1\n"},
    {"b: 1\na: 1\nb: 2\na: 2\nb: 3\n", "f:3:1: error: key 'b' stands twice; first at line 1\n"
                                       "f:4:1: error: key 'a' stands twice; first at line 2\n"
                                       "f:5:1: error: key 'b' stands twice; first at line 1\n"},
    {"t: {a: 1, a: 2}\n", "f:1:11: error: key 'a' stands twice; first at line 1\n"},
    {"? [a, b]\n: 1\n", "f:1:3: error: a key must be a word, not a list or a mapping\n"},
    {"? {a: b}\n: 1\n", "f:1:3: error: a key must be a word, not a list or a mapping\n"},
    {"{\"\": 1}", "f:1:2: error: no key before ':'\n"},
    {"{a: 1, : 2}", "f:1:8: error: a value was expected here\n"},
    /* anchors, aliases, tags: each is reported */
    {"a: &x 1\nb: *x\nc: !!int 3\nd: &y [1]\ne: !t {f: 1}\n",
        "f:1:4: error: anchor '&x'; write the value out where it is needed\n"
        "f:2:4: error: alias '*x'; write the value out where it is needed\n"
        "f:3:4: error: a tag ('!...') is not allowed; types come from the keys\n"
        "f:4:4: error: anchor '&y'; write the value out where it is needed\n"
        "f:5:4: error: a tag ('!...') is not allowed; types come from the keys\n"},
    /* tabs */
    {"a:\n\tb: 1\n", "f:2:1: error: tab used as indentation; use spaces\n"},
    {"a: 1\n\tb: 2\n", "f:2:1: error: tab used as indentation; use spaces\n"},
    {"a:\n  - x\n  \t- y\n", "f:3:3: error: tab used as indentation; use spaces\n"},
    {"a: |\n  x\n\ty\n", "f:3:1: error: tab used as indentation; use spaces\n"},
    {"\xc3\xb6: 1\n\tb: 2\n", "f:2:1: error: tab used as indentation; use spaces\n"},
    /* bytes */
    {"a: 1\n\xc3\xb6\xc3\xb6: \xff\n",
        "f:2:5: error: the text is not valid UTF-8; save the file as UTF-8\n"},
    {"a: \xc0\xaf\n", "f:1:4: error: the text is not valid UTF-8; save the file as UTF-8\n"},
    {"a: \xc3", "f:1:4: error: the text is not valid UTF-8; save the file as UTF-8\n"},
    {"a: \xed\xa0\x80\n", "f:1:4: error: the text is not valid UTF-8; save the file as UTF-8\n"},
    {"\xff\xfe", "f:1:1: error: the text is not valid UTF-8; save the file as UTF-8\n"},
    {"a: \x01\n", "f:1:4: error: control character in the text; only printable UTF-8 is allowed\n"},
    {"a: \"\\0\"\n", "f:1:4: error: NUL character in a text\n"},
    {"a: \"\\ud83d\\ude00\"\n", "f:1:7: error: this escape is no character (a pair of surrogates "
                                "is not read); write the character itself\n"},
    /* syntax */
    {"a: b: c\n", "f:1:5: error: ': ' is not allowed here; check the indentation, or put the text "
                  "in quotes\n"},
    {"a: 1\n b: 2\n", "f:2:3: error: ': ' is not allowed here; check the indentation, or put the "
                      "text in quotes\n"},
    {"a:\n    b: 1\n   c: 2\n",
        "f:3:4: error: a key was expected here; check the indentation and the quotes\n"},
    {"a: 'x'y\n", "f:1:7: error: a key was expected here; check the indentation and the quotes\n"},
    {"a: 1\nb\nc: 1\n", "f:2:1: error: no ':' after this key; check the indentation\n"},
    {"- a\nb: 1\n", "f:2:1: error: '- ' was expected here; check the indentation of the list\n"},
    {"a: - b\n", "f:1:4: error: a list item is not allowed here; start it on its own line\n"},
    {"a: [1, 2\nb: 3\n",
        "f:1:4: error: the list that starts here is not closed; ',' or ']' was expected\n"},
    {"{\"a\": {\"b\": 1\n",
        "f:1:7: error: the mapping that starts here is not closed; ',' or '}' was expected\n"},
    {"a: 1\nb: 'x\nc: 2\n",
        "f:2:4: error: the text that starts here is not closed; a quote was expected\n"},
    {"a: \"x\n---\n",
        "f:1:4: error: the text that starts here is not closed; a quote was expected\n"},
    {"a: \"C:\\q\"\n",
        "f:1:7: error: unknown escape after '\\'; in single quotes '\\' stands for itself\n"},
    {"a: @x\n", "f:1:4: error: this character cannot start a value; put the text in quotes\n"},
    {"a: ]\n", "f:1:4: error: a value was expected here\n"},
    {"{a: 1} b\n", "f:1:8: error: text after the end of the document; check the indentation\n"},
    /* what came before a break of the syntax is reported, too */
    {"a: &x 1\na: 2\nb: ]", "f:1:4: error: anchor '&x'; write the value out where it is needed\n"
                            "f:3:4: error: a value was expected here\n"},
};

static void bad_documents_are_reported_exactly(void **state)
{
    (void)state;
    struct config_doc *stale = parse("a: 1\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct config_doc *doc = stale;
        struct diag diag = DIAG_INIT;
        if (config_parse(&doc, "f", bad[i].text, strlen(bad[i].text), &diag) != STATUS_INPUT)
            fail_msg("accepted: %s", bad[i].text);
        assert_null(doc);
        if (strcmp(diag.text, bad[i].message) != 0)
            fail_msg("%s\ngives:\n%sinstead of:\n%s", bad[i].text, diag.text, bad[i].message);
    }
    config_free(stale);
}

/* A document of n times unit between head and tail. */
static enum status parse_repeated(const char *head, const char *unit, size_t n, const char *tail,
    struct config_doc **doc, struct diag *diag)
{
    size_t length = strlen(head) + n * strlen(unit) + strlen(tail);
    char *text = xcalloc(1, length + 1), *end = stpcpy(text, head);
    for (size_t i = 0; i < n; i++)
        end = stpcpy(end, unit);
    strcpy(end, tail);
    *diag = DIAG_INIT;
    enum status status = config_parse(doc, "f", text, length, diag);
    free(text);
    return status;
}

static void limits_hold(void **state)
{
    (void)state;
    struct config_doc *doc = NULL;
    struct diag diag;
    /* Depth: n brackets are n levels. */
    for (size_t depth = CONFIG_MAX_DEPTH; depth <= CONFIG_MAX_DEPTH + 1; depth++) {
        char close[CONFIG_MAX_DEPTH + 2] = "";
        memset(close, ']', depth);
        enum status status = parse_repeated("", "[", depth, close, &doc, &diag);
        assert_int_equal(status, depth <= CONFIG_MAX_DEPTH ? STATUS_OK : STATUS_INPUT);
        config_free(doc);
    }
    assert_string_equal(diag.text, "f:1:33: error: nested deeper than 32 levels\n");
    /* Nodes: the list is one, each item another. */
    assert_int_equal(parse_repeated("[", "1,", CONFIG_MAX_NODES - 1, "]", &doc, &diag), STATUS_OK);
    assert_int_equal(config_count(config_root(doc)), CONFIG_MAX_NODES - 1);
    config_free(doc);
    assert_int_equal(parse_repeated("[", "1,", CONFIG_MAX_NODES, "]", &doc, &diag), STATUS_INPUT);
    assert_string_equal(diag.text, "f:1:400000: error: more than 200000 values; split the file\n");
    /* Bytes. */
    assert_int_equal(
        parse_repeated("a: 1\n#", "x", CONFIG_MAX_BYTES - 6, "", &doc, &diag), STATUS_OK);
    config_free(doc);
    assert_int_equal(
        parse_repeated("a: 1\n#", "x", CONFIG_MAX_BYTES - 5, "", &doc, &diag), STATUS_INPUT);
    assert_string_equal(diag.text, "f: error: larger than 16 MiB\n");
    /* Keys: 128 bytes. */
    assert_int_equal(parse_repeated("", "k", 128, ": 1", &doc, &diag), STATUS_OK);
    config_free(doc);
    assert_int_equal(parse_repeated("", "k", 129, ": 1", &doc, &diag), STATUS_INPUT);
    assert_string_equal(diag.text, "f:1:1: error: key of more than 128 bytes\n");
}

static void many_keys_are_compared_fast(void **state)
{
    (void)state;
    /* 90,000 keys: with a comparison of all pairs (4e9) this test would run into its time limit. */
    enum { KEYS = 90000 };
    char *text = xcalloc(KEYS + 1, 16), *end = text;
    for (int i = 0; i < KEYS; i++)
        end += sprintf(end, "k%d: 1\n", i);
    sprintf(end, "k7: 2\n");
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(config_parse(&doc, "f", text, strlen(text), &diag), STATUS_INPUT);
    assert_string_equal(diag.text, "f:90001:1: error: key 'k7' stands twice; first at line 8\n");
    free(text);
}

static void loads_a_file(void **state)
{
    (void)state;
    char path[] = "test_document_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "a: [1]\n", 7), 7);
    close(file);
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(config_load(&doc, path, &diag), STATUS_OK);
    assert_string_equal(config_pos(config_root(doc)).file, path);
    config_free(doc);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(config_load(&doc, path, &diag), STATUS_INPUT);
    assert_null(doc);
    assert_non_null(strstr(diag.text, ":1:1: error: the document is empty\n"));
    assert_int_equal(truncate(path, CONFIG_MAX_BYTES + 1), 0);
    diag = DIAG_INIT;
    assert_int_equal(config_load(&doc, path, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, ": error: larger than 16 MiB; is this the right file?\n"));
    unlink(path);
}

static void a_file_that_cannot_be_read_is_reported(void **state)
{
    (void)state;
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(config_load(&doc, "no/such.yaml", &diag), STATUS_INPUT);
    assert_null(doc);
    assert_int_equal(config_load(&doc, "/", &diag), STATUS_INPUT);
    assert_string_equal(diag.text,
        "no/such.yaml:1:1: error: cannot open: No such file or directory; name a file that "
        "exists and can be read\n"
        "/:1:1: error: cannot read: Is a directory; name a file in it\n");
}

/* Readers of lines look for the end of the text: a NUL behind it, whatever lay there before. */
static void a_file_ends_in_a_nul(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        char *dirt = xrealloc(NULL, BUFSIZ); /* which the next one may get */
        memset(dirt, 'x', BUFSIZ);
        free(dirt);
        assert_int_equal(config_read_file(&text, &n, FILES_ANY,
                             FLOPCAST_SOURCE_DIR "/scenarios/models/gpt2.yaml", &diag),
            STATUS_OK);
        assert_true(n > 0 && strlen(text) == n);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_kinds_texts_and_places),
        cmocka_unit_test(a_node_that_is_not_there),
        cmocka_unit_test(reads_json),
        cmocka_unit_test(traps_of_yaml_1_1_are_texts),
        cmocka_unit_test(skips_a_byte_order_mark),
        cmocka_unit_test(bad_documents_are_reported_exactly),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(many_keys_are_compared_fast),
        cmocka_unit_test(loads_a_file),
        cmocka_unit_test(a_file_that_cannot_be_read_is_reported),
        cmocka_unit_test(a_file_ends_in_a_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
