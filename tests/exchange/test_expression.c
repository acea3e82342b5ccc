/* Whole numbers and lists as a shell and Python write them. */
#include "exchange/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

/* x is 6, u is not known. */
static int64_t name_of(struct expression *e, void *self)
{
    (void)self;
    e->bad |= *e->at != 'x' && *e->at != 'u';
    e->unknown |= *e->at == 'u';
    return *e->at++ == 'x' ? 6 : 0;
}

static bool read(struct expression_value *out, const char *text, struct arena *arena, bool *unknown)
{
    struct expression e = {.at = text, .name = name_of, .arena = arena};
    bool good = expression_read(out, &e);
    *unknown = e.unknown;
    return good;
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
        bool unknown;
    } cases[] = {{"8", 8, false}, {" 2 * ( 3 + 4 ) ", 14, false}, {"7 - 2 - 1", 4, false},
        {"17 / 5 * 5 + 17 % 5", 17, false}, {"x*x-1", 35, false}, {"4 / u", 4, true},
        {"9223372036854775807", INT64_MAX, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct expression_value value;
        bool unknown;
        assert_true(read(&value, cases[i].text, &arena, &unknown));
        assert_null(value.items);
        assert_int_equal(value.number, cases[i].value);
        assert_int_equal(unknown, cases[i].unknown);
        arena_release(&arena);
    }
}

static void lists(void **state)
{
    (void)state;
    static const struct {
        const char *text, *items;
    } cases[] = {{"([0]*3+[1]*2)", "00011"}, {"[0,1]*3", "010101"}, {"[1, 0,]", "10"}, {"[]", ""},
        {"[1]*0", ""}, {"([0]+[1])*2", "0101"}, {"[2-1]*x", "111111"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct expression_value value;
        bool unknown;
        assert_true(read(&value, cases[i].text, &arena, &unknown));
        assert_non_null(value.items);
        assert_int_equal(value.n, strlen(cases[i].items));
        for (int k = 0; k < value.n; k++)
            assert_int_equal(value.items[k], cases[i].items[k] - '0');
        arena_release(&arena);
    }
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "1+", "(1", "1)", "1 2", "y", "-1", "4/0", "4%(2-3)",
        "9223372036854775807+1", "9223372036854775807*2", "[0", "[0]]", "[0 1]", "[[0]]", "[01]",
        "[0]+1", "1+[0]", "[0]-[0]", "[0]*[1]", "3/[1]", "[0]*4097", "[0]*4096+[1]", "[0]*(1-2)"};
    char deep[2 * EXPRESSION_MOST_DEPTH + 8] = "";
    for (size_t i = 0; i < sizeof texts / sizeof *texts + 1; i++) {
        struct arena arena = ARENA_INIT;
        struct expression_value value;
        bool unknown;
        const char *text = i < sizeof texts / sizeof *texts ? texts[i] : deep;
        memset(deep, '(', EXPRESSION_MOST_DEPTH + 1);
        strcpy(deep + EXPRESSION_MOST_DEPTH + 1, "1");
        memset(deep + EXPRESSION_MOST_DEPTH + 2, ')', EXPRESSION_MOST_DEPTH + 1);
        if (read(&value, text, &arena, &unknown))
            fail_msg("'%s' is %lld", text, (long long)value.number);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(lists),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
