/* Rows of kernels that were measured alone, by the names of a table's columns, and the rule that
 * holds shapes out. */
#include "calibrate/kernel_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void load(
    struct kernel_row *row, struct csv_table **table, const char *text, struct diag *diag)
{
    assert_int_equal(csv_load_text(table, "t", text, strlen(text), diag), STATUS_OK);
    kernel_row_load(row, *table, 0, diag);
}

static void columns_have_several_names(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct csv_table *a = NULL, *b = NULL;
    struct kernel_row row;
    load(&row, &a, "operator,m,n,forward_us,backward_us\ngelu,3,4,5,6\n", &diag);
    assert_string_equal(row.class, "gelu");
    assert_true(row.m == 3 && row.n == 4 && row.time_us == 5 && row.backward_us == 6 && row.k == 0);
    assert_string_equal(row.layout, "");
    load(&row, &b, "class,dtype,topk,time_us,power_w\nexperts,fp8,8,9.5,700\n", &diag);
    enum dtype math = DTYPE_COUNT;
    assert_int_equal(kernel_row_math(&math, &row, &diag), STATUS_OK);
    assert_int_equal(math, DTYPE_FP8);
    assert_true(row.topk == 8 && row.time_us == 9.5 && row.backward_us == 0 && row.power_w == 700);
    assert_string_equal(diag.text, "");
    csv_release(a);
    csv_release(b);
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"m,dtype,time_us\n-1,fp16,1\n", "t:2:1: error: m is missing or not positive\n"},
        {"m,dtype,time_us\nx,fp16,1\n", "t:2:1: error: "},
        {"m,dtype,time_us\n1,fp16,\n", "t:2:1: error: time_us is missing or not positive\n"},
        {"m,dtype,time_us\n1,fp17,1\n", "t:2:1: error: unknown number format 'fp17'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diag diag = DIAG_INIT;
        struct csv_table *table = NULL;
        struct kernel_row row;
        enum dtype math = DTYPE_COUNT;
        load(&row, &table, cases[i].text, &diag);
        if (diag.worst == STATUS_OK && kernel_row_needs(&row, "m time_us", &diag) == STATUS_OK)
            kernel_row_math(&math, &row, &diag);
        if (strncmp(diag.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s' begins not as '%s'", diag.text, cases[i].message);
        csv_release(table);
    }
}

/* As the heads of kernels.csv (no bits) and direct.csv (8 bits) have it; about a third of shapes.
 */
static void a_third_is_held_out(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; i < 3000; i++) {
        const double shape[] = {1024, i, 64};
        uint64_t digest = digest_word(digest_word(digest_word(DIGEST_INIT, 1024), (uint64_t)i), 64);
        assert_int_equal(kernel_row_folded(shape, 3, 0), digest % 3 == 0);
        assert_int_equal(kernel_row_folded(shape, 3, 8), digest / 256 % 3 == 0);
        n += kernel_row_folded(shape, 3, 8);
    }
    assert_in_range(n, 900, 1100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_several_names),
        cmocka_unit_test(mistakes_have_their_place),
        cmocka_unit_test(a_third_is_held_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
