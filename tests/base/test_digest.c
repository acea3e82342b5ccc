#include "base/digest.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void follows_its_definition(void **state)
{
    (void)state;
    /* FNV-1a of the empty text is its offset basis (draft-eastlake-fnv). One step by hand: 0 ^ 1 =
     * 1, times the FNV prime 0x100000001b3, then the fold: 0x100000001b3 >> 29 = 0x800, and 0x1b3 ^
     * 0x800 = 0x9b3. */
    assert_true(DIGEST_INIT == UINT64_C(14695981039346656037));
    assert_true(digest_word(0, 1) == UINT64_C(0x100000009b3));
    assert_true(digest_word(7, 7) == 0); /* equal words cancel: hence the offset basis as a start */
}

static void every_bit_and_the_order_count(void **state)
{
    (void)state;
    uint64_t zero = digest_word(DIGEST_INIT, 0);
    for (int bit = 0; bit < 64; bit++) {
        assert_true(digest_word(DIGEST_INIT, UINT64_C(1) << bit) != zero);
        for (int other = 0; other < bit; other++)
            assert_true(digest_word(DIGEST_INIT, UINT64_C(1) << bit) !=
                        digest_word(DIGEST_INIT, UINT64_C(1) << other));
    }
    assert_true(
        digest_word(digest_word(DIGEST_INIT, 1), 2) != digest_word(digest_word(DIGEST_INIT, 2), 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_its_definition),
        cmocka_unit_test(every_bit_and_the_order_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
