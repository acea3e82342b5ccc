/* Tables on terminals of different widths: no line is longer, nothing is lost without a word. */
#include "rows/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct table sample(void)
{
    struct table table = {0};
    table_column(&table, "strategy", "", true);
    table_column(&table, "TFLOPS", "/GPU", false);
    table_column(&table, "exposed comm", "% of the step", false);
    table_spare(&table, 1);
    const char *const cells[] = {"FULL_SHARD", "149.57", "0.1", "DDP", "OOM", "-"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        table_cell(&table, cells[i]);
    return table;
}

static char *printed(const struct table *table, int width, bool colour)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    table_print_on(out, table, width, colour);
    fclose(out);
    return text;
}

static void assert_printed(const struct table *table, int width, const char *want)
{
    char *text = printed(table, width, false);
    if (strcmp(text, want) != 0)
        fail_msg("%d wide:\n%swanted:\n%s", width, text, want);
    free(text);
}

static void without_limit_all_is_printed(void **state)
{
    (void)state;
    struct table table = sample();
    const char *whole = "strategy    TFLOPS   exposed comm\n"
                        "              /GPU  % of the step\n"
                        "FULL_SHARD  149.57            0.1\n"
                        "DDP            OOM              -\n";
    assert_printed(&table, 0, whole);
    assert_printed(&table, 33, whole);
    table_free(&table);
}

/* Heads are broken first, then a spare column goes and is named, then texts are cut. */
static void a_narrow_screen_gets_narrow_tables(void **state)
{
    (void)state;
    struct table table = sample();
    assert_printed(&table, 32,
        "                    exposed\n"
        "strategy    TFLOPS     comm\n"
        "              /GPU     % of\n"
        "                        the\n"
        "                       step\n"
        "FULL_SHARD  149.57      0.1\n"
        "DDP            OOM        -\n");
    table_free(&table);
}

static void spare_columns_go_and_are_named(void **state)
{
    (void)state;
    struct table table = sample();
    assert_printed(&table, 20,
        "strategy    TFLOPS\n"
        "              /GPU\n"
        "FULL_SHARD  149.57\n"
        "DDP            OOM\n"
        "not shown, for want of room (--wide): exposed comm (% of the step)\n");
    table_free(&table);
}

static void of_spare_columns_the_highest_rank_goes_first(void **state)
{
    (void)state;
    struct table table = {0};
    const char *const names[] = {"aaaa", "bbbb", "cccc", "dddd"};
    const int ranks[] = {0, 2, 1, 2};
    for (int i = 0; i < 4; i++) {
        table_column(&table, names[i], "", false);
        table_spare(&table, ranks[i]);
    }
    for (int i = 0; i < 4; i++)
        table_cell(&table, "1");
    assert_printed(&table, 16,
        "aaaa  bbbb  cccc\n   1     1     1\nnot shown, for want of room (--wide): dddd\n");
    assert_printed(&table, 15,
        "aaaa  cccc\n   1     1\nnot shown, for want of room (--wide): bbbb,\n  dddd\n");
    assert_printed(
        &table, 4, "aaaa\n   1\nnot shown, for want of room (--wide): bbbb,\n  cccc,\n  dddd\n");
    table_free(&table);
}

static void long_texts_go_on_below_before_a_table_is_split(void **state)
{
    (void)state;
    struct table table = {0};
    table_column(&table, "name", "", true);
    table_column(&table, "what it is", "", true);
    table_cell(&table, "a");
    table_cell(&table, "the first of several sentences");
    assert_printed(
        &table, 20, "name  what it is\na     the first of\n      several\n      sentences\n");
    table_free(&table);
}

/* Columns that all must stay: several tables, each with the first column. */
static void what_must_stay_is_printed_in_parts(void **state)
{
    (void)state;
    struct table table = {0};
    const char *const names[] = {"row", "first", "second", "third"};
    const char *const cells[] = {"r", "11111", "222222", "33333"};
    for (int i = 0; i < 4; i++)
        table_column(&table, names[i], "", i == 0);
    for (int i = 0; i < 4; i++)
        table_cell(&table, cells[i]);
    assert_printed(&table, 18,
        "row  first  second\n"
        "r    11111  222222\n"
        "\n"
        "row  third\n"
        "r    33333\n");
    table_free(&table);
}

/* A name with letters of more than one byte takes a column for each letter, as a head, as a cell,
 * and where it is broken or cut. */
static void letters_of_several_bytes_take_a_column(void **state)
{
    (void)state;
    struct table table = {0};
    table_column(&table, "größe", "", true);
    table_column(&table, "µs", "", false);
    const char *const cells[] = {"Zürich", "1", "Zurich", "12"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        table_cell(&table, cells[i]);
    assert_printed(&table, 10, "größe   µs\nZürich   1\nZurich  12\n");
    table_free(&table);

    table = (struct table){0};
    table_column(&table, "a", "", true);
    table_column(&table, "b", "", false);
    table_cell(&table, "äöü äöü äöü äöü");
    table_cell(&table, "1");
    table_cell(&table, "äöüäöüäöüäöüäöü");
    table_cell(&table, "2");
    assert_printed(&table, 14, "a            b\näöü äöü äöü  1\näöü\näöüäöüäöü..  2\n");
    table_free(&table);

    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    screen_wrap(out, "ä: ", "a\nb");
    fclose(out);
    assert_string_equal(text, "ä: a\n   b\n");
    free(text);
}

static void marks_are_colours_where_there_are_colours(void **state)
{
    (void)state;
    struct table table = {0};
    table_column(&table, "a", "", false);
    table_column(&table, "b", "", false);
    table_cell(&table, "1");
    table_cell(&table, "+54.6");
    table_mark(&table, TABLE_DOUBTFUL);
    table_cell(&table, "OOM");
    table_mark(&table, TABLE_BAD);
    table_cell(&table, "-");
    char *text = printed(&table, 0, true);
    assert_string_equal(text, "  a      b\n"
                              "  1  \033[33m+54.6\033[0m\n"
                              "\033[31mOOM\033[0m      -\n");
    free(text);
    assert_printed(&table, 0, "  a      b\n  1  +54.6\nOOM      -\n");
    table_free(&table);
}

/* From the width of the first column and another one on (24 + 2 + 9), no line of the table is
 * longer than the screen is wide. */
static void every_width_is_kept(void **state)
{
    (void)state;
    struct table table = {0};
    const char *const names[] = {
        "train.activation_checkpointing", "batch", "tokens/s", "published", "deviation", "x"};
    for (int i = 0; i < 6; i++) {
        table_column(&table, names[i], i % 2 ? "/GPU a b" : "", i == 0);
        table_spare(&table, i == 2 || i == 4 ? i : 0);
    }
    for (int i = 0; i < 6 * 3; i++)
        table_cell(&table, i % 6 ? "12345.6" : "selective of every block");
    for (int width = 35; width <= 120; width++) {
        char *text = printed(&table, width, false), *rest = text;
        for (char *line; (line = strsep(&rest, "\n"));)
            if ((int)strlen(line) > width && strncmp(line, "not shown", 9) != 0)
                fail_msg("%d wide: %s", width, line);
        free(text);
    }
    table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_limit_all_is_printed),
        cmocka_unit_test(a_narrow_screen_gets_narrow_tables),
        cmocka_unit_test(spare_columns_go_and_are_named),
        cmocka_unit_test(of_spare_columns_the_highest_rank_goes_first),
        cmocka_unit_test(long_texts_go_on_below_before_a_table_is_split),
        cmocka_unit_test(what_must_stay_is_printed_in_parts),
        cmocka_unit_test(letters_of_several_bytes_take_a_column),
        cmocka_unit_test(marks_are_colours_where_there_are_colours),
        cmocka_unit_test(every_width_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
