/* TOML of configurations: values and places; examples of toml.io/en/v1.0.0 where they are of that
 * part of it. */
#include "exchange/toml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static void values_and_places(void **state)
{
    (void)state;
    static const char text[] = "# a comment\n"
                               "title = \"TOML # Example\"  # not this\n"
                               "[ owner ]\n"
                               "  name = 'C:\\dir'\n"
                               "dob=1979-05-27T07:32:00Z\n"
                               "[a.b]\n"
                               "ports = [ 8000,\n"
                               "  8001, # the second\n"
                               "]\n"
                               "quote = \"a \\\"b\\\" \\u00e9\"\n";
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    toml_parse(&doc, "x.toml", text, sizeof text - 1, &diag);
    assert_string_equal(diag.text, "");
    struct config_node root = config_root(doc), owner = config_find(root, "owner"),
                       ab = config_find(root, "a.b");
    assert_string_equal(config_text(config_find(root, "title")), "TOML # Example");
    assert_string_equal(config_text(config_find(owner, "name")), "C:\\dir");
    assert_string_equal(config_text(config_find(owner, "dob")), "1979-05-27T07:32:00Z");
    assert_string_equal(config_text(config_find(ab, "quote")), "a \"b\" \xc3\xa9");
    struct config_node ports = config_find(ab, "ports");
    assert_int_equal(config_count(ports), 2);
    assert_string_equal(config_text(config_item(ports, 1)), "8001");
    assert_int_equal(config_pos(config_item(ports, 1)).line, 8);
    assert_int_equal(config_pos(config_item(ports, 1)).column, 3);
    assert_int_equal(config_pos(config_key(owner, 0)).line, 4);
    assert_int_equal(config_pos(config_key(owner, 0)).column, 3);
    assert_int_equal(config_pos(config_find(owner, "name")).column, 10);
    config_free(doc);
}

/* In '...' a backslash is a backslash, also the last one. */
static void literal_strings_have_no_escapes(void **state)
{
    (void)state;
    static const char text[] = "dir = 'C:\\new\\'\nquote = 'a \"b\"'\n";
    struct config_doc *doc = NULL;
    struct diag diag = DIAG_INIT;
    toml_parse(&doc, "x.toml", text, sizeof text - 1, &diag);
    assert_string_equal(diag.text, "");
    assert_string_equal(config_text(config_find(config_root(doc), "dir")), "C:\\new\\");
    assert_string_equal(config_text(config_find(config_root(doc), "quote")), "a \"b\"");
    config_free(doc);
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"\na\n", "x.toml:2:1: error: a line is 'name = value'"},
        {"[a]\nb = \"c\n", "x.toml:2:5: error: the string does not end"},
        {"[a]\nb = {c = 1}\n", "x.toml:2:5: error: inline tables"},
        {"[[a]]\n", "x.toml:1:1: error: arrays of tables"},
        {"[a]\nb = 1 c = 2\n", "x.toml:2:7: error: something stands behind the value"},
        {"[a]\nb = [1,\n", "x.toml:2:1: error: the list does not end"},
        {"[a\nb = 1\n", "x.toml:1:1: error: a table is"},
        {"[a]\nb = \"\"\"c\"\"\"\n", "x.toml:2:5: error: strings of several lines"},
        {"[a]\nb =\n", "x.toml:2:4: error: a value is wanted"},
        {"[a]\nb = 1\nb = 2\n", "x.toml:3:1: error"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config_doc *doc = NULL;
        struct diag diag = DIAG_INIT;
        assert_int_equal(
            toml_parse(&doc, "x.toml", cases[i].text, strlen(cases[i].text), &diag), STATUS_INPUT);
        if (strncmp(diag.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s, not %s", diag.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_places),
        cmocka_unit_test(literal_strings_have_no_escapes),
        cmocka_unit_test(mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
