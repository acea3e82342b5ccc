#include "config/config.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *changed(
    const char *before, const struct config_change *changes, int n, enum status wanted)
{
    char path[] = "/tmp/flopcast-change-XXXXXX", *text = NULL;
    size_t bytes = 0;
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, before, strlen(before)), strlen(before));
    close(file);
    FILE *out = open_memstream(&text, &bytes);
    struct diag diag = DIAG_INIT;
    assert_int_equal(config_write_changed(out, path, changes, n, &diag), wanted);
    fclose(out);
    unlink(path);
    return text;
}

static void check(const char *before, const char *path, const char *text, const char *after)
{
    char *is = changed(before, &(struct config_change){path, text}, 1, STATUS_OK);
    assert_string_equal(is, after);
    struct config_doc *doc = NULL; /* what was written is a document */
    struct diag diag = DIAG_INIT;
    assert_int_equal(config_parse(&doc, "f", is, strlen(is), &diag), STATUS_OK);
    config_free(doc);
    free(is);
}

static void the_rest_stays(void **state)
{
    (void)state;
    check("# why\na: 1   # one\nb: {x: 1, y: 2} # two\n", "a", "7",
        "# why\na: 7   # one\nb: {x: 1, y: 2} # two\n");
    check(
        "a: 1\nb: {x: 1, y: {z: 2}} # two\nc: 3\n", "b", "{x: 3}", "a: 1\nb: {x: 3} # two\nc: 3\n");
    check("b: {x: 1, y: {z: 2}}\n", "b.y.z", "3 us", "b: {x: 1, y: {z: 3 us}}\n");
    check("b: {x: 'it''s', y: 2}\n", "b.x", "\"it\"", "b: {x: \"it\", y: 2}\n");
    check("l: [1, 2] # list\n", "l", "[3]", "l: [3] # list\n");
}

/* Byte order mark, CRLF, characters of several bytes before and in the value. */
static void bytes_are_not_characters(void **state)
{
    (void)state;
    check("\xef\xbb\xbf# \xc2\xb5s\r\na: \"\xe2\x82\xac\" # \xf0\x9f\x98\x80\r\nb: 2\r\n", "a", "1",
        "# \xc2\xb5s\r\na: 1 # \xf0\x9f\x98\x80\r\nb: 2\r\n");
}

/* A mapping without brackets ends where its last value does, and not at the next key. */
static void blocks(void **state)
{
    (void)state;
    check("q:\n  value: 1\n  source: a b   # why\n\n# next\nr: 2\n", "q", "{value: 3}",
        "q:\n  {value: 3}   # why\n\n# next\nr: 2\n");
    check("q:\n  value: 1\n  kind: x\nr: 2\n", "q.value", "5", "q:\n  value: 5\n  kind: x\nr: 2\n");
    check("q:\n- 1\n- 2\nr: 2\n", "q", "7", "q:\n 7\nr: 2\n");
    check("t: |\n  text\n  more\nr: 2\n", "t", "short", "t: short\nr: 2\n");
    /* YAML 1.1 breaks lines at Unicode's next line, line separator and paragraph separator, too. */
    check("t: |\n  text\xe2\x80\xa8r: 2\n", "t", "short", "t: short\xe2\x80\xa8r: 2\n");
    check("t: |\n  text\xe2\x80\xa9r: 2\n", "t", "short", "t: short\xe2\x80\xa9r: 2\n");
    check("t: |\n  text\xc2\x85r: 2\n", "t", "short", "t: short\xc2\x85r: 2\n");
}

static void a_new_key_comes_last(void **state)
{
    (void)state;
    check("a: 1 # one\n# end\n", "b", "2", "a: 1 # one\n# end\nb: 2\n");
    check("a: {b: 1}", "c", "2", "a: {b: 1}\nc: 2\n");
    check("{\"a\": 1}\n", "b", "2", "{\"a\": 1, \"b\": 2}\n");
}

/* With the sections around it, once a section; in one that is there before its first key, or inside
 * its brackets. */
static void a_new_key_of_a_section(void **state)
{
    (void)state;
    check("a: 1\n", "s.t.u", "{v: 2}", "a: 1\ns: {t: {u: {v: 2}}}\n");
    check("s:\n  t:\n    u: 1 # one\na: 1\n", "s.t.w", "2",
        "s:\n  t:\n    w: 2\n    u: 1 # one\na: 1\n");
    check("s:\n  t:\n    u: 1\na: 1\n", "s.x", "2", "s:\n  x: 2\n  t:\n    u: 1\na: 1\n");
    check("a: {b: 1} # c\n", "a.c", "2", "a: {b: 1, \"c\": 2} # c\n");
    check("a: {}\n", "a.c.d", "2", "a: {\"c\": {\"d\": 2}}\n");
    const struct config_change changes[] = {{"g.x.p", "1"}, {"a", "10"}, {"g.y", "2"}, {"h", "3"},
        {"s.v", "4"}, {"g.x.q", "5"}, {"s.w", "6"}};
    char *is = changed("a: 1\ns:\n  t: 1\n", changes, 7, STATUS_OK);
    assert_string_equal(
        is, "a: 10\ns:\n  v: 4\n  w: 6\n  t: 1\ng: {x: {p: 1, q: 5}, y: 2}\nh: 3\n");
    free(is);
}

static void several(void **state)
{
    (void)state;
    const struct config_change changes[] = {{"c", "30"}, {"new", "1"}, {"a", "10"}, {"newer", "2"}};
    char *is = changed("a: 1\nb: 2\nc: 3\n", changes, 4, STATUS_OK);
    assert_string_equal(is, "a: 10\nb: 2\nc: 30\nnew: 1\nnewer: 2\n");
    free(is);
    is = changed("a: 1\n", NULL, 0, STATUS_OK);
    assert_string_equal(is, "a: 1\n");
    free(is);
}

/* Nothing is written of a file that cannot be changed. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
    } cases[] = {{"a: [1\n", "a"}, {"a: 1\n", "a.b"}, {"a: 1\na: 2\n", "a"},
        {"a: \n e\t\t\t\t|\n  \t\t\t", "a"}, {"", "a"}, {"# none\n", "a"}, {"word\n", "a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *is = changed(
            cases[i].text, &(struct config_change){cases[i].path, "{b: 1}"}, 1, STATUS_INPUT);
        assert_string_equal(is, "");
        free(is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_rest_stays),
        cmocka_unit_test(bytes_are_not_characters), cmocka_unit_test(blocks),
        cmocka_unit_test(a_new_key_of_a_section), cmocka_unit_test(a_new_key_comes_last),
        cmocka_unit_test(several), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
