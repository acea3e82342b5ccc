/* Rows in memory and the functions that SQL has: quantiles by hand, rounding as C's, a CSV with
 * empty cells. */
#include "check.h"

#include "store/sheet.h"

struct values {
    char text[256]; /* of all rows, apart by ' ' */
    int rows;
};

static void take_values(void *self, int n, const struct store_value *values)
{
    struct values *all = self;
    for (int i = 0; i < n && all->rows > 0; i++) {
        size_t used = strlen(all->text);
        snprintf(all->text + used, sizeof all->text - used, "%s%s", used ? " " : "",
            values[i].text ? values[i].text : "-");
    }
    all->rows++; /* the names come first */
}

static void check_is(struct store *store, const char *sql, const char *expected)
{
    struct values all = {0};
    struct diag diag = DIAG_INIT;
    for (; *sql; all.rows = 0)
        assert_int_equal(store_next(store, &sql, (struct source_pos){.file = "script"}, take_values,
                             &all, &diag),
            STATUS_OK);
    assert_string_equal(diag.text, "");
    assert_string_equal(all.text, expected);
}

/* Of 0, 1, 3, 7: the median is 2; 0.9 lies at place 2.7, 3 + 0.7 x 4. */
static void quantiles_are_gsls(void **state)
{
    (void)state;
    struct store *store = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(store_open_memory(&store, &diag), STATUS_OK);
    struct record_cell cells[5];
    const double values[] = {3, 0, 9, 7, 1};
    for (int i = 0; i < 5; i++)
        cells[i] = cell_real("x", i != 2, values[i]);
    assert_int_equal(store_put_rows(store, "row", cells, 1, 5, &diag), STATUS_OK);
    check_is(store,
        "SELECT quantile(x, 0.5), quantile(x, 0.9), quantile(x, 0), quantile(x, 1), count(x) FROM "
        "row",
        "2.0 5.8 0.0 7.0 4");
    check_is(store,
        "SELECT quantile(x, 0.5) FROM row WHERE x > 9; SELECT x > 2, quantile(x, 0.5) FROM row "
        "GROUP BY 1",
        "- - - 0 0.5 1 5.0");
    store_close(store);
}

/* 0.25 and 0.35 are 0.25 and a little less than 0.35 in binary. */
static void numbers_round_as_in_c(void **state)
{
    (void)state;
    struct store *store = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(store_open_memory(&store, &diag), STATUS_OK);
    check_is(store,
        "SELECT fixed(0.25, 1), fixed(0.35, 1), signed(1.25, 1), signed(-0.01, 1), fixed(-0.01, "
        "1), fixed(NULL, 1)",
        "0.2 0.3 +1.2 0.0 0.0 -");
    store_close(store);
}

static void a_csv_is_a_table(void **state)
{
    (void)state;
    static const char text[] = "name,of what\na,1.10\nb,\n";
    struct csv_table *csv = NULL;
    struct store *store = NULL;
    struct diag diag = DIAG_INIT;
    assert_int_equal(csv_load_text(&csv, "a.csv", text, sizeof text - 1, &diag), STATUS_OK);
    assert_int_equal(store_open_memory(&store, &diag), STATUS_OK);
    assert_int_equal(store_put_csv(store, "file", csv, &diag), STATUS_OK);
    csv_release(csv);
    check_is(store, "/* as they stand */ SELECT name, \"of what\" FROM file;\n-- the end\n",
        "a 1.10 b -");
    const char *wrong = "SELECT absent FROM file";
    assert_int_equal(
        store_next(store, &wrong, (struct source_pos){.file = "script"}, take_values, NULL, &diag),
        STATUS_INPUT);
    assert_non_null(strstr(diag.text, "SQL: no such column: absent"));
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_gsls),
        cmocka_unit_test(numbers_round_as_in_c),
        cmocka_unit_test(a_csv_is_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
