/* Expandable segments: ranges of addresses of which pages are mapped. */
#include "exec/hbm.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "blocks.h"

/* Pages of 20 MiB: 30 MiB map two, the 10 left serve 10; then 35 map two more. All freed they are
 * one block of 80, which serves 75 where separate segments of 30, 10 and 36 could not. 90 more map
 * what lacks: 90 - 5 = 85, five pages. */
static void expandable_segments_grow(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, true);
    const int64_t sizes[] = {30 * MIB, 10 * MIB, 35 * MIB};
    const int64_t reserved[] = {40 * MIB, 40 * MIB, 80 * MIB};
    int32_t blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = take(&hbm, sizes[i]);
        assert_int_equal(hbm.reserved, reserved[i]);
    }
    for (int i = 0; i < 3; i++)
        give(&hbm, blocks[i]);
    take(&hbm, 75 * MIB);
    assert_int_equal(hbm.reserved, 80 * MIB);
    take(&hbm, 90 * MIB);
    assert_int_equal(hbm.reserved, 180 * MIB);
    hbm_release(&hbm);
}

/* Four pages: 32 MiB in use, 20 in use, 28 free; then the 32 are freed, too. 25 fit the end best,
 * but the 32 cannot grow, so they are cut (get_free_block of PyTorch compares what blocks can grow
 * to). The end then serves 45 with a page more; had it been cut to 3, it would take three. */
static void the_end_of_an_expandable_segment_is_spared(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, true);
    int32_t first = take(&hbm, 32 * MIB);
    take(&hbm, 20 * MIB);
    give(&hbm, take(&hbm, 28 * MIB)); /* 80 are mapped, 28 of them free at the end */
    assert_int_equal(hbm.reserved, 80 * MIB);
    give(&hbm, first);
    take(&hbm, 25 * MIB);
    take(&hbm, 45 * MIB);
    assert_int_equal(hbm.reserved, 100 * MIB);
    hbm_release(&hbm);
}

/* 100 MiB: 40, 20 and 40 live, the first freed. 20 from another stream fit when the 40 are unmapped
 * (one page of them); 20 of the hole that stays are mapped again for the first stream; then all is
 * taken. */
static void holes_are_mapped_again(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 100 * MIB, true);
    int32_t first = take(&hbm, 40 * MIB);
    take(&hbm, 20 * MIB);
    int32_t last = take(&hbm, 40 * MIB);
    give(&hbm, first);
    assert_true(take_on(&hbm, 20 * MIB, STREAM_UNSHARD) >= 0);
    assert_int_equal(hbm.retries, 1);
    assert_int_equal(hbm.reserved, 80 * MIB);
    for (int32_t i = last; i >= 0;
         i = hbm.blocks.at[i].previous) /* whole pages were unmapped: nothing is left beside */
        assert_true(hbm.blocks.at[i].bytes > 0);
    assert_true(take(&hbm, 20 * MIB) >= 0);
    assert_int_equal(hbm.reserved, 100 * MIB);
    assert_int_equal(take(&hbm, 20 * MIB), -1);
    assert_int_equal(hbm.allocated, 100 * MIB);
    hbm_release(&hbm);
}

/* Two holes of 40 MiB, of which the one at the lower address, what is left of 60 after 20, has the
 * higher number: PyTorch maps the lower address first. */
static void the_hole_of_the_lowest_address_is_mapped(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 180 * MIB, true);
    int32_t low = take(&hbm, 60 * MIB);
    take(&hbm, 20 * MIB);
    int32_t high = take(&hbm, 40 * MIB);
    take(&hbm, 20 * MIB);
    give(&hbm, low);
    assert_int_equal(take(&hbm, 20 * MIB), low);
    assert_true(hbm.blocks.at[low].next > high);
    give(&hbm, high);
    int32_t all = take_on(&hbm, 120 * MIB, STREAM_UNSHARD); /* unmaps both */
    assert_int_equal(hbm.retries, 1);
    give(&hbm, all);
    take_on(&hbm, 20 * MIB, STREAM_POST); /* and that */
    assert_int_equal(hbm.retries, 2);
    int64_t address = hbm.blocks.at[low].address + 20 * MIB;
    assert_int_equal(hbm.blocks.at[take(&hbm, 40 * MIB)].address, address);
    hbm_release(&hbm);
}

/* Pages are unmapped whole. 50 MiB at the start of the range, 30 after them, in four pages: freed,
 * the 50 give back the first two; their last 10 share the third page with the 30. Two pages for
 * another stream fit in 80 MiB, a third does not, however often it is tried. */
static void shared_pages_stay(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 80 * MIB, true);
    int32_t first = take(&hbm, 50 * MIB);
    take(&hbm, 30 * MIB);
    give(&hbm, first);
    assert_true(take_on(&hbm, 40 * MIB, STREAM_UNSHARD) >= 0);
    assert_int_equal(hbm.reserved, 80 * MIB);
    assert_int_equal(take_on(&hbm, 20 * MIB, STREAM_UNSHARD), -1);
    assert_true(take(&hbm, 10 * MIB) >= 0);
    assert_int_equal(hbm.retries, 2);
    hbm_release(&hbm);
}

/* A range of five pages, of which the middle three are free and then unmapped. Its first and third
 * are mapped again, and freed: free, not mapped, free. 60 take all three for one more page; PyTorch
 * counts free blocks between and behind holes with them. */
static void holes_and_free_blocks_in_a_row_are_mapped_together(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 120 * MIB, true);
    int32_t blocks[5];
    for (int i = 0; i < 5; i++)
        blocks[i] = take(&hbm, 20 * MIB);
    give(&hbm, blocks[2]);
    int32_t other = take_on(&hbm, 40 * MIB, STREAM_UNSHARD); /* unmaps the third */
    assert_int_equal(hbm.retries, 1);
    give(&hbm, blocks[1]);
    give(&hbm, blocks[3]);
    assert_int_equal(hbm.reserved, 120 * MIB);
    give(&hbm, other);
    hbm.capacity += 20 * MIB;
    int32_t all = take(&hbm, 60 * MIB);
    assert_int_equal(hbm.reserved, 140 * MIB);
    assert_int_equal(hbm.blocks.at[all].address, hbm.blocks.at[blocks[0]].address + 20 * MIB);
    assert_int_equal(hbm.retries, 1);
    hbm_release(&hbm);
}

/* 240 MiB: 100, 20 and 40 live; the first is freed and unmapped for 100 of another stream. 60 of
 * its hole are mapped again and freed; then 80 need 20 more of the 40 that are left of the hole,
 * and no retry. The same where something small (2 x 1 MiB) stands before all that. */
static void a_hole_and_the_free_block_before_it_are_one(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct hbm hbm;
        int64_t more = small * 2 * MIB;
        start(&hbm, 240 * MIB + more, true);
        for (int i = 0; i < 2 * small; i++)
            take(&hbm, MIB);
        int32_t first = take(&hbm, 100 * MIB);
        take(&hbm, 20 * MIB);
        take(&hbm, 40 * MIB);
        give(&hbm, first);
        take_on(&hbm, 100 * MIB, STREAM_UNSHARD);
        assert_int_equal(hbm.reserved, 160 * MIB + more);
        give(&hbm, take(&hbm, 60 * MIB));
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
        cmocka_unit_test(expandable_segments_grow),
        cmocka_unit_test(the_end_of_an_expandable_segment_is_spared),
        cmocka_unit_test(holes_are_mapped_again),
        cmocka_unit_test(the_hole_of_the_lowest_address_is_mapped),
        cmocka_unit_test(shared_pages_stay),
        cmocka_unit_test(holes_and_free_blocks_in_a_row_are_mapped_together),
        cmocka_unit_test(a_hole_and_the_free_block_before_it_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
