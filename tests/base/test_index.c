/* The index against a search through all items. */
#include "base/index.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum {
    ITEMS = 1000,
    HASHES = 37
}; /* many items share a hash: whether they are the same is the caller's to say */

struct sought {
    const int *items;
    int value;
};

static bool same(const void *self, int32_t item)
{
    const struct sought *sought = self;
    return sought->items[item] == sought->value;
}

static int32_t find(const struct index *index, const int *items, int value)
{
    return index_find(index, (uint64_t)(value % HASHES), same, &(struct sought){items, value});
}

static void finds_what_was_added_and_nothing_else(void **state)
{
    (void)state;
    struct index index = {0};
    int items[ITEMS] = {0};
    assert_int_equal(find(&index, items, 5), -1);
    for (int i = 0; i < ITEMS; i++) {
        items[i] = 7 * i;
        assert_int_equal(find(&index, items, items[i]), -1);
        index_add(&index, (uint64_t)(items[i] % HASHES), i);
    }
    for (int value = 0; value < 7 * ITEMS; value++)
        assert_int_equal(find(&index, items, value), value % 7 ? -1 : value / 7);
    index_free(&index);
    assert_int_equal(find(&index, items, 7), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_added_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
