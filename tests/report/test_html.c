/* Tables of texts from elsewhere: what becomes a link, and what is escaped. */
#include "report/html.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *table(const char *name, const char *address)
{
    struct html_rows rows = {.address = 1};
    html_take(&rows, 2,
        (struct store_value[]){
            {.kind = STORE_TEXT, .text = "run"}, {.kind = STORE_TEXT, .text = "address"}});
    html_take(&rows, 2,
        (struct store_value[]){
            {.kind = STORE_TEXT, .text = name}, {.kind = STORE_TEXT, .text = address}});
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    html_table(out, &rows, 0, rows.n, 0, "c");
    fclose(out);
    html_free(&rows);
    return text;
}

static void test_links(void **state)
{
    (void)state;
    char *text = table("<b>", "https://a.org/?x=1&y=(1) \"><script>");
    assert_non_null(strstr(text,
        "<td><a rel=\"noreferrer\" href=\"https://a.org/?x=1&amp;y=(1)\">&lt;b&gt;</a></td>"));
    assert_null(strstr(text, "<script>")); /* a remark behind an address is not part of it */
    assert_null(strstr(text, "address"));  /* the column itself is not shown */
    free(text);
    static const char *const no_addresses[] = {
        "javascript:alert(1)", "data:text/html,x", "HTTPS", "arXiv 2304.11277", ""};
    for (size_t i = 0; i < sizeof no_addresses / sizeof *no_addresses; i++) {
        text = table("a", no_addresses[i]);
        assert_null(strstr(text, "href"));
        assert_non_null(strstr(text, "<td>a</td>"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
