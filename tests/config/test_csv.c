#include "config/csv.h"
#include "config/config.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

static struct csv_table *parse(const char *text)
{
    struct csv_table *table = NULL;
    struct diag diag = DIAG_INIT;
    if (csv_load_text(&table, "f", text, strlen(text), &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    return table;
}

static void reads_cells_with_their_lines(void **state)
{
    (void)state;
    struct csv_table *t = parse("# source: nccl-tests, \"8 x H100\n"
                                "#\n"
                                "\n"
                                "size,time_us,note\r\n"
                                "8,  13.5 ,\"a \"\"b\"\", c\"\r\n"
                                "   \n"
                                ",,\r\n"
                                "16,,\"two\n"
                                "\n"
                                "lines\"\n"
                                "# not a comment,1,\xc3\xb6");
    assert_int_equal(csv_rows(t), 3);
    assert_int_equal(csv_column(t, "size"), 0);
    assert_int_equal(csv_column(t, "note"), 2);
    assert_int_equal(csv_column(t, "Size"), -1);
    assert_string_equal(csv_cell(t, 0, 0), "8");
    assert_string_equal(csv_cell(t, 0, 1), "13.5");
    assert_string_equal(csv_cell(t, 0, 2), "a \"b\", c");
    assert_string_equal(csv_cell(t, 1, 1), "");
    assert_string_equal(csv_cell(t, 1, 2), "two\n\nlines");
    assert_string_equal(csv_cell(t, 2, 0), "# not a comment");
    assert_string_equal(csv_cell(t, 2, 2), "\xc3\xb6");
    assert_string_equal(csv_cell(t, 2, -1), "");
    static const int lines[] = {5, 8, 11};
    for (int row = 0; row < 3; row++) {
        assert_string_equal(csv_pos(t, row).file, "f");
        assert_int_equal(csv_pos(t, row).line, lines[row]);
    }
    csv_release(t);
    csv_release(NULL);
}

static void a_header_alone_is_an_empty_table(void **state)
{
    (void)state;
    struct csv_table *t = parse("a,b\n");
    assert_int_equal(csv_rows(t), 0);
    assert_int_equal(csv_column(t, "b"), 1);
    csv_release(t);
}

static void numbers(void **state)
{
    (void)state;
    struct csv_table *t = parse("x,y\n-1.5e3,\nabc,5 us\n");
    struct diag diag = DIAG_INIT;
    double value = 0;
    assert_int_equal(csv_number(t, 0, 0, -1, &value, &diag), STATUS_OK);
    assert_true(value == -1500);
    assert_int_equal(csv_number(t, 0, 1, -1, &value, &diag), STATUS_OK);
    assert_true(value == -1);
    assert_int_equal(csv_number(t, 0, csv_column(t, "z"), 7, &value, &diag), STATUS_OK);
    assert_true(value == 7);
    assert_int_equal(csv_number(t, 1, 0, -1, &value, &diag), STATUS_INPUT);
    assert_int_equal(csv_number(t, 1, 1, -1, &value, &diag), STATUS_INPUT);
    assert_true(value == 7);
    assert_string_equal(diag.text,
        "f:3:1: error: column 'x': 'abc' is not a number (examples: 4, 0.5, 1e6)\n"
        "f:3:1: error: column 'y': '5 us' is not a number (examples: 4, 0.5, 1e6)\n");
    csv_release(t);
}

static void bad_tables_are_reported_exactly(void **state)
{
    (void)state;
    static const char quote[] =
        "a quote inside a cell, or text after a closing quote; quote the whole cell and double "
        "the quotes in it";
    static const struct {
        const char *text, *place, *what;
    } cases[] = {
        {"", "f:1:1", "no header row"},
        {"# only\n\n", "f:1:1", "no header row"},
        {"a,b\n1\n2,3\n4,5,6\n", "f:2:1",
            "1 cell where the header has 2\nf:4:1: error: 3 cells where the header has 2"},
        {"a;b\n1;2\n", "f:1:1", "one column 'a;b'; separate cells by commas"},
        {"a\tb\n", "f:1:1", "one column 'a?b'; separate cells by commas"},
        {"\xef\xbb\xbf", "f:1:1", "no header row"},
        {"\xff\xfe"
         "a,b",
            "f:1:1", "this is UTF-16; save the table as CSV in UTF-8"},
        {"a,b\n,,\n", "f:2:1", "3 cells where the header has 2"},
        {"a,,c\n", "f:1:1", "column 2 of the header has no name"},
        {"#\na,b,a\n", "f:2:1", "column 'a' stands twice in the header"},
        {"a,b\n1,x\"y\n", "f:2:4", quote},
        {"a,b\n1,\"x\"y\n", "f:2:6", quote},
        {"a,b\n1,2\n3,\"4\n5,6\n", "f:3:1", "a quoted cell of this row is not closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct csv_table *table = NULL;
        struct diag diag = DIAG_INIT;
        char message[512];
        snprintf(message, sizeof message, "%s: error: %s\n", cases[i].place, cases[i].what);
        assert_int_equal(
            csv_load_text(&table, "f", cases[i].text, strlen(cases[i].text), &diag), STATUS_INPUT);
        assert_null(table);
        assert_string_equal(diag.text, message);
    }
    struct csv_table *table = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(csv_load_text(&table, "f", "a\n\0\n", 4, &diag), STATUS_INPUT);
    assert_string_equal(diag.text, "f:2:1: error: NUL character in a cell\n");
}

static void loads_a_file(void **state)
{
    (void)state;
    char path[] = "test_csv_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "a\n1\n", 4), 4);
    close(file);
    struct csv_table *t = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(csv_load(&t, path, &diag), STATUS_OK);
    assert_string_equal(csv_pos(t, 0).file, path);
    assert_string_equal(csv_cell(t, 0, 0), "1");
    csv_release(t);
    unlink(path);
    assert_int_equal(csv_load(&t, "no/such.csv", &diag), STATUS_INPUT);
    assert_null(t);
    assert_string_equal(diag.text,
        "no/such.csv:1:1: error: cannot open: No such file or directory; name a file that exists "
        "and can be read\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_cells_with_their_lines),
        cmocka_unit_test(a_header_alone_is_an_empty_table),
        cmocka_unit_test(numbers),
        cmocka_unit_test(bad_tables_are_reported_exactly),
        cmocka_unit_test(loads_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
