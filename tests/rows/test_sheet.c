/* Scripts of SQL printed: headings, units, digits, words in headings, groups, lines; Markdown, CSV
 * and JSON. */
#include "rows/sheet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MARKDOWN = RECORDS_FORMAT_COUNT };

static void check_printed(const char *sql, int format, const char *expected)
{
    struct store *store = NULL;
    struct diag diag = DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    int rows = 0;
    FILE *out = open_memstream(&text, &n);
    const struct text script = {"script", sql};
    assert_int_equal(store_open_memory(&store, &diag), STATUS_OK);
    assert_int_equal(format == MARKDOWN ? sheet_markdown(out, store, &script, &diag)
                                        : sheet_print(out, store, &script,
                                              (enum records_format)format, &rows, &diag),
        STATUS_OK);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
    store_close(store);
}

static const char table[] =
    "--\n-- head\nWITH t(name, x, n) AS (VALUES ('a|b', 1.25, 7), (NULL, -0.01, 8), ('', NULL, "
    "9))\n"
    "SELECT name, x AS \">x|%|+1|3\", n AS \"n of @\", 'things' AS \"@\" FROM t;\n-- below\n";

static void a_column_says_how_it_is_printed(void **state)
{
    (void)state;
    check_printed(table, RECORDS_TABLE,
        "\nhead\nname     x  n of things\n         %\na|b   +1.2            7\n-      0.0          "
        "  8\n         -            9\nbelow\n");
    check_printed(table, MARKDOWN,
        "\nhead\n| name | x | n of things |\n|---|--:|---|\n| a\\|b | +1.2 | 7 |\n|  | 0.0 | 8 "
        "|\n| |  | 9 |\nbelow\n");
    check_printed("SELECT 'a,b' AS \"name|unit\", NULL AS \">x||1\", 1.25 AS y, 3 AS n;\n",
        RECORDS_CSV, "name,x,y,n\r\n\"a,b\",,1.25,3\r\n");
    check_printed("SELECT 'a' AS name, NULL AS x, 1.25 AS y;", RECORDS_JSON,
        "[\n  {\"name\": \"a\", \"x\": null, \"y\": 1.25}\n]\n");
}

/* A table for each text of a first column without a heading; lines where it is the only one;
 * nothing of no row. */
static void groups_and_lines(void **state)
{
    (void)state;
    check_printed(
        "SELECT column1 AS \"\", column2 AS n FROM (VALUES ('one', 1), ('one', 2), ('two', 3));",
        RECORDS_TABLE, "\none\nn\n1\n2\n\ntwo\nn\n3\n");
    check_printed("-- above\nSELECT column1 AS \"\" FROM (VALUES ('one'), (NULL));", RECORDS_TABLE,
        "above\none\n\n");
    check_printed("-- above\nSELECT 1 AS n WHERE 0;\n", RECORDS_TABLE, "");
    check_printed("-- above\nCREATE TABLE t(x);\n-- of t\nSELECT x FROM t;\n", RECORDS_TABLE, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_says_how_it_is_printed),
        cmocka_unit_test(groups_and_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
