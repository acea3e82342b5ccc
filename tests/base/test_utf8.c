#include "base/utf8.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

/* The first and the last character of each length, by the table of RFC 3629. */
static void reads_the_ends_of_every_length(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t character;
    } cases[] = {
        {"\x01", 0x1},
        {"\x7f", 0x7f},
        {"\xc2\x80", 0x80},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t character = 0;
        size_t n = strlen(cases[i].text);
        assert_int_equal(utf8_character(cases[i].text, n, &character), n);
        assert_int_equal(character, cases[i].character);
    }
}

static void refuses_what_is_no_utf8(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "\x80",                              /* a later byte alone */
        "\xbf", "\xc1\xbf",                  /* overlong: U+007F */
        "\xe0\x9f\xbf",                      /* overlong: U+07FF */
        "\xf0\x8f\xbf\xbf",                  /* overlong: U+FFFF */
        "\xed\xa0\x80",                      /* the first surrogate */
        "\xed\xbf\xbf",                      /* the last one */
        "\xf4\x90\x80\x80",                  /* U+110000 */
        "\xf8\x88\x80\x80", "\xff", "\xc3(", /* the second byte is no later one */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t character = 0;
        assert_int_equal(utf8_character(cases[i], strlen(cases[i]), &character), 0);
    }
}

static void counts_columns(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa4\xe2\x82\xac!"; /* a, an umlaut, a euro */
    assert_int_equal(utf8_width(text, (int)strlen(text)), 4);
    assert_int_equal(utf8_width(text, 3), 2);
    const int bytes[] = {0, 1, 3, 6, 7, 7};
    for (int width = 0; width < 6; width++)
        assert_int_equal(utf8_bytes(text, width), bytes[width]);
}

static void does_not_read_behind_the_end(void **state)
{
    (void)state;
    uint32_t character = 0;
    for (size_t n = 1; n < 4; n++)
        assert_int_equal(utf8_character("\xf0\x90\x80\x80", n, &character), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_ends_of_every_length),
        cmocka_unit_test(refuses_what_is_no_utf8),
        cmocka_unit_test(counts_columns),
        cmocka_unit_test(does_not_read_behind_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
