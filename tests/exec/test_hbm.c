#include "exec/hbm.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#define MIB (INT64_C(1) << 20)

/* As a caller without pending blocks does it. */
static int32_t take_on(struct hbm *hbm, int64_t bytes, int stream)
{
    int32_t block = hbm_alloc(hbm, bytes, HBM_ACTIVATIONS, stream);
    return block >= 0 ? block : hbm_retry(hbm, bytes, HBM_ACTIVATIONS, stream);
}

static int32_t take(struct hbm *hbm, int64_t bytes)
{
    return take_on(hbm, bytes, STREAM_COMPUTE);
}

static void give(struct hbm *hbm, int32_t block, int64_t bytes)
{
    hbm_free(hbm, block, bytes, HBM_ACTIVATIONS);
    hbm_reuse(hbm, block);
}

/* PyTorch's rules: 1 byte counts 512 and reserves a 2 MiB segment; 3 MiB reserves 20 MiB, whose rest of 17 MiB then
 * serves 11 MiB (and keeps 6); 7 MiB reserves 20 MiB again; 21 MiB reserves 22 MiB (2 MiB steps). */
static void sizes_round_as_in_pytorch(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 1000 * MIB, false);
    take(&hbm, 1);
    assert_int_equal(hbm.allocated, 512);
    assert_int_equal(hbm.reserved, 2 * MIB);
    take(&hbm, 3 * MIB);
    assert_int_equal(hbm.reserved, 22 * MIB);
    take(&hbm, 11 * MIB);
    assert_int_equal(hbm.reserved, 22 * MIB);
    take(&hbm, 7 * MIB);
    assert_int_equal(hbm.reserved, 42 * MIB);
    take(&hbm, 21 * MIB);
    assert_int_equal(hbm.reserved, 64 * MIB);
    hbm_release(&hbm);
}

static void a_freed_block_is_used_again_and_merged(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 1000 * MIB, false);
    int32_t blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = take(&hbm, 5 * MIB); /* one segment of 20 MiB */
    assert_int_equal(hbm.reserved, 20 * MIB);
    give(&hbm, blocks[1], 5 * MIB);
    give(&hbm, blocks[2], 5 * MIB);
    take(&hbm, 9 * MIB); /* only fits when the two are one */
    assert_int_equal(hbm.reserved, 20 * MIB);
    assert_int_equal(hbm.peak_allocated, 20 * MIB);
    hbm_release(&hbm);
}

static void streams_have_their_own_pools(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 1000 * MIB, false);
    int32_t block = take(&hbm, 100 * MIB);
    give(&hbm, block, 100 * MIB);
    take_on(&hbm, 100 * MIB, STREAM_UNSHARD);
    assert_int_equal(hbm.reserved, 200 * MIB);
    hbm_release(&hbm);
}

static void a_pending_block_is_not_used_again_yet(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 1000 * MIB, false);
    int32_t block = take(&hbm, 100 * MIB);
    hbm_free(&hbm, block, 100 * MIB, HBM_ACTIVATIONS);
    assert_int_equal(hbm.allocated, 0);
    take(&hbm, 100 * MIB);
    assert_int_equal(hbm.reserved, 200 * MIB);
    hbm_reuse(&hbm, block);
    take(&hbm, 100 * MIB);
    assert_int_equal(hbm.reserved, 200 * MIB);
    hbm_release(&hbm);
}

/* 100 MiB: two free segments of 40 have to go before 80 fit (a retry); with 60 live, 80 can never fit. */
static void free_segments_are_released_before_failing(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 100 * MIB, false);
    int32_t a = take(&hbm, 40 * MIB), b = take(&hbm, 40 * MIB);
    give(&hbm, a, 40 * MIB);
    give(&hbm, b, 40 * MIB);
    assert_int_equal(hbm.mallocs, 2);
    int32_t c = take(&hbm, 80 * MIB);
    assert_true(c >= 0);
    assert_int_equal(hbm.retries, 1);
    assert_int_equal(hbm.mallocs, 3);
    assert_int_equal(hbm.frees, 2);
    give(&hbm, c, 80 * MIB);
    assert_true(take(&hbm, 60 * MIB) >= 0);
    assert_int_equal(take(&hbm, 80 * MIB), -1);
    assert_int_equal(hbm.allocated, 60 * MIB); /* a failure changes nothing that is allocated */
    hbm_release(&hbm);
}

/* Any sequence: allocated is the sum of live requests, reserved bounds it and never exceeds the capacity; at the end
 * nothing is left. */
static void keep_the_books(bool expandable)
{
    enum { LIVE = 64, ROUNDS = 20000 };
    struct hbm hbm;
    hbm_init(&hbm, 900 * MIB, expandable);
    struct rng_stream rng = rng_stream(3, 1, 4);
    int32_t blocks[LIVE];
    int64_t sizes[LIVE] = {0}, sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int slot = (int)(rng_uniform(&rng) * LIVE);
        if (sizes[slot]) {
            give(&hbm, blocks[slot], sizes[slot]);
            sum -= hbm_round(sizes[slot]);
            sizes[slot] = 0;
        } else {
            double scale = rng_uniform(&rng) < 0.5 ? 2e6 : 60e6;
            int64_t bytes = 1 + (int64_t)(rng_uniform(&rng) * scale);
            blocks[slot] = take(&hbm, bytes);
            if (blocks[slot] >= 0) {
                sizes[slot] = bytes;
                sum += hbm_round(bytes);
            }
        }
        assert_int_equal(hbm.allocated, sum);
        assert_int_equal(hbm.by_category[HBM_ACTIVATIONS], sum);
        assert_true(hbm.reserved >= hbm.allocated && hbm.reserved <= hbm.capacity);
    }
    for (int slot = 0; slot < LIVE; slot++)
        if (sizes[slot])
            give(&hbm, blocks[slot], sizes[slot]);
    assert_int_equal(hbm.allocated, 0);
    assert_true(hbm.retries > 0);
    assert_true(take(&hbm, hbm.capacity) >= 0); /* every segment was whole again, and went */
    assert_int_equal(hbm.reserved, hbm.capacity);
    hbm_release(&hbm);
}

static void random_sequences_keep_the_books(void **state)
{
    (void)state;
    keep_the_books(false);
    keep_the_books(true);
}

/* Pages of 20 MiB: 30 MiB map two, the 10 left serve 10; then 35 map two more. All freed they are one block of 80,
 * which serves 75 where separate segments of 30, 10 and 36 could not. 90 more map what lacks: 90 - 5 = 85, five pages.
 */
static void expandable_segments_grow(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 1000 * MIB, true);
    const int64_t sizes[] = {30 * MIB, 10 * MIB, 35 * MIB};
    const int64_t reserved[] = {40 * MIB, 40 * MIB, 80 * MIB};
    int32_t blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = take(&hbm, sizes[i]);
        assert_int_equal(hbm.reserved, reserved[i]);
    }
    for (int i = 0; i < 3; i++)
        give(&hbm, blocks[i], sizes[i]);
    take(&hbm, 75 * MIB);
    assert_int_equal(hbm.reserved, 80 * MIB);
    take(&hbm, 90 * MIB);
    assert_int_equal(hbm.reserved, 180 * MIB);
    hbm_release(&hbm);
}

/* Four pages: 32 MiB in use, 20 in use, 28 free; then the 32 are freed, too. 25 fit the end best, but the 32 cannot
 * grow, so they are cut (get_free_block of PyTorch compares what blocks can grow to). The end then serves 45 with a
 * page more; had it been cut to 3, it would take three. */
static void the_end_of_an_expandable_segment_is_spared(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 1000 * MIB, true);
    int32_t first = take(&hbm, 32 * MIB);
    take(&hbm, 20 * MIB);
    give(&hbm, take(&hbm, 28 * MIB), 28 * MIB); /* 80 are mapped, 28 of them free at the end */
    assert_int_equal(hbm.reserved, 80 * MIB);
    give(&hbm, first, 32 * MIB);
    take(&hbm, 25 * MIB);
    take(&hbm, 45 * MIB);
    assert_int_equal(hbm.reserved, 100 * MIB);
    hbm_release(&hbm);
}

/* 100 MiB: 40, 20 and 40 live, the first freed. 20 from another stream fit when the 40 are unmapped (one page of them);
 * 20 of the hole that stays are mapped again for the first stream; then all is taken. */
static void holes_are_mapped_again(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 100 * MIB, true);
    int32_t first = take(&hbm, 40 * MIB);
    take(&hbm, 20 * MIB);
    take(&hbm, 40 * MIB);
    give(&hbm, first, 40 * MIB);
    assert_true(take_on(&hbm, 20 * MIB, STREAM_UNSHARD) >= 0);
    assert_int_equal(hbm.retries, 1);
    assert_int_equal(hbm.reserved, 80 * MIB);
    assert_true(take(&hbm, 20 * MIB) >= 0);
    assert_int_equal(hbm.reserved, 100 * MIB);
    assert_int_equal(take(&hbm, 20 * MIB), -1);
    assert_int_equal(hbm.allocated, 100 * MIB);
    hbm_release(&hbm);
}

/* Two holes of 40 MiB, of which the one at the higher address has the lower number, left by another stream's block:
 * PyTorch maps the lower address first. */
static void the_hole_of_the_lowest_address_is_mapped(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 160 * MIB, true);
    int32_t other[] = {take_on(&hbm, 20 * MIB, STREAM_UNSHARD), take_on(&hbm, 20 * MIB, STREAM_UNSHARD)};
    int32_t low = take(&hbm, 40 * MIB);
    take(&hbm, 20 * MIB);
    give(&hbm, other[0], 20 * MIB);
    give(&hbm, other[1], 20 * MIB); /* one block with the first, so its number can be used again */
    int32_t high = take(&hbm, 40 * MIB);
    assert_true(high < low);
    take(&hbm, 20 * MIB);
    give(&hbm, low, 40 * MIB);
    give(&hbm, high, 40 * MIB);
    int32_t all = take_on(&hbm, 120 * MIB, STREAM_UNSHARD); /* unmaps both */
    assert_int_equal(hbm.retries, 1);
    give(&hbm, all, 120 * MIB);
    take_on(&hbm, 20 * MIB, STREAM_POST); /* and that */
    assert_int_equal(hbm.retries, 2);
    assert_int_equal(take(&hbm, 40 * MIB), low);
    hbm_release(&hbm);
}

/* 240 MiB: 100, 20 and 40 live; the first is freed and unmapped for 100 of another stream. 60 of its hole are mapped
 * again and freed; then 80 need 20 more of the 40 that are left of the hole, and no retry. The same where something
 * small (2 x 1 MiB) stands before all that. */
static void a_hole_and_the_free_block_before_it_are_one(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct hbm hbm;
        int64_t more = small * 2 * MIB;
        hbm_init(&hbm, 240 * MIB + more, true);
        for (int i = 0; i < 2 * small; i++)
            take(&hbm, MIB);
        int32_t first = take(&hbm, 100 * MIB);
        take(&hbm, 20 * MIB);
        take(&hbm, 40 * MIB);
        give(&hbm, first, 100 * MIB);
        take_on(&hbm, 100 * MIB, STREAM_UNSHARD);
        assert_int_equal(hbm.reserved, 160 * MIB + more);
        give(&hbm, take(&hbm, 60 * MIB), 60 * MIB);
        assert_int_equal(hbm.reserved, 220 * MIB + more);
        assert_true(take(&hbm, 80 * MIB) >= 0);
        assert_int_equal(hbm.reserved, 240 * MIB + more);
        assert_int_equal(hbm.retries, 1);
        hbm_release(&hbm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_round_as_in_pytorch),
        cmocka_unit_test(a_freed_block_is_used_again_and_merged),
        cmocka_unit_test(streams_have_their_own_pools),
        cmocka_unit_test(a_pending_block_is_not_used_again_yet),
        cmocka_unit_test(free_segments_are_released_before_failing),
        cmocka_unit_test(random_sequences_keep_the_books),
        cmocka_unit_test(expandable_segments_grow),
        cmocka_unit_test(the_end_of_an_expandable_segment_is_spared),
        cmocka_unit_test(holes_are_mapped_again),
        cmocka_unit_test(the_hole_of_the_lowest_address_is_mapped),
        cmocka_unit_test(a_hole_and_the_free_block_before_it_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
