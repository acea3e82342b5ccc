#include "exec/hbm.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "blocks.h"

/* PyTorch's rules: 1 byte counts 512 and reserves a 2 MiB segment; 3 MiB reserves 20 MiB, whose
 * rest of 17 MiB then serves 11 MiB (and keeps 6); 7 MiB reserves 20 MiB again; 21 MiB reserves 22
 * MiB (2 MiB steps). */
static void sizes_round_as_in_pytorch(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
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
    start(&hbm, 1000 * MIB, false);
    int32_t blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = take(&hbm, 5 * MIB); /* one segment of 20 MiB */
    assert_int_equal(hbm.reserved, 20 * MIB);
    give(&hbm, blocks[1]);
    give(&hbm, blocks[2]);
    take(&hbm, 9 * MIB); /* only fits when the two are one */
    assert_int_equal(hbm.reserved, 20 * MIB);
    assert_int_equal(hbm.peak_allocated, 20 * MIB);
    hbm_release(&hbm);
}

static void streams_have_their_own_pools(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
    int32_t block = take(&hbm, 100 * MIB);
    give(&hbm, block);
    take_on(&hbm, 100 * MIB, STREAM_UNSHARD);
    assert_int_equal(hbm.reserved, 200 * MIB);
    hbm_release(&hbm);
}

static void a_pending_block_is_not_used_again_yet(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
    int32_t block = take(&hbm, 100 * MIB);
    hbm_free(&hbm, block, HBM_ACTIVATIONS);
    assert_int_equal(hbm.allocated, 0);
    take(&hbm, 100 * MIB);
    assert_int_equal(hbm.reserved, 200 * MIB);
    hbm_reuse(&hbm, block);
    take(&hbm, 100 * MIB);
    assert_int_equal(hbm.reserved, 200 * MIB);
    hbm_release(&hbm);
}

/* 100 MiB: two free segments of 40 have to go before 80 fit (a retry); with 60 live, 80 can never
 * fit. */
static void free_segments_are_released_before_failing(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 100 * MIB, false);
    int32_t a = take(&hbm, 40 * MIB), b = take(&hbm, 40 * MIB);
    give(&hbm, a);
    give(&hbm, b);
    assert_int_equal(hbm.mallocs, 2);
    int32_t c = take(&hbm, 80 * MIB);
    assert_true(c >= 0);
    assert_int_equal(hbm.retries, 1);
    assert_int_equal(hbm.mallocs, 3);
    assert_int_equal(hbm.frees, 2);
    give(&hbm, c);
    assert_true(take(&hbm, 60 * MIB) >= 0);
    assert_int_equal(take(&hbm, 80 * MIB), -1);
    assert_int_equal(hbm.allocated, 60 * MIB); /* a failure changes nothing that is allocated */
    hbm_release(&hbm);
}

/* 100 TiB of memory, blocks of 1 TiB, and 3.8 PiB of addresses that have come and gone: of equal
 * blocks the one at the lowest address is taken. */
static void sizes_and_addresses_have_no_end(void **state)
{
    (void)state;
    static const int64_t TIB = INT64_C(1) << 40;
    struct hbm hbm;
    start(&hbm, 100 * TIB, false);
    int32_t first = take(&hbm, TIB), second = take(&hbm, TIB);
    for (int i = 0; i < 64; i++) {
        int32_t block = take(&hbm, (30 + i) * TIB);
        assert_true(block >= 0);
        give(&hbm, block);
    }
    assert_int_equal(hbm.reserved, 95 * TIB);
    give(&hbm, second);
    give(&hbm, first);
    assert_int_equal(take(&hbm, TIB), first);
    assert_int_equal(take(&hbm, TIB), second);
    hbm_release(&hbm);
}

/* What one request counts and reserves: up to 1 MiB from 2 MiB of the small pool, below 10 MiB from
 * 20 MiB, from there on in steps of 2 MiB. Sizes are rounded to 512 B before that: 1 MiB - 511 is 1
 * MiB, 1 MiB + 1 is 1 MiB + 512. Of 12 MiB for 10 MiB + 512 the rest of 2 MiB - 512 is split off;
 * of 12 MiB for 11 MiB there is 1 MiB left, which is not. */
static void segments_have_their_sizes(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes, allocated, reserved;
    } cases[] = {
        {1, 512, 2 * MIB},
        {512, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {MIB - 511, MIB, 2 * MIB},
        {MIB, MIB, 2 * MIB},
        {MIB + 1, MIB + 512, 20 * MIB},
        {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},
        {10 * MIB - 511, 10 * MIB, 10 * MIB},
        {10 * MIB, 10 * MIB, 10 * MIB},
        {10 * MIB + 1, 10 * MIB + 512, 12 * MIB},
        {11 * MIB, 12 * MIB, 12 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hbm hbm;
        start(&hbm, 1000 * MIB, false);
        take(&hbm, cases[i].bytes);
        assert_int_equal(hbm.allocated, cases[i].allocated);
        assert_int_equal(hbm.reserved, cases[i].reserved);
        hbm_release(&hbm);
    }
}

/* A free segment of 20 MiB serves 19 MiB - 512 and keeps 1 MiB + 512, which serves as much again.
 * 19 MiB would leave 1 MiB: they get all of it, the 20 count as allocated until they are freed, and
 * nothing is left for another request. */
static void large_blocks_keep_more_than_1_mib(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
    give(&hbm, take(&hbm, 5 * MIB));
    int32_t block = take(&hbm, 19 * MIB - 512);
    assert_int_equal(hbm.allocated, 19 * MIB - 512);
    give(&hbm, take(&hbm, MIB + 512));
    assert_int_equal(hbm.reserved, 20 * MIB);
    give(&hbm, block);
    block = take(&hbm, 19 * MIB);
    assert_int_equal(hbm.allocated, 20 * MIB);
    assert_int_equal(hbm.by_category[HBM_ACTIVATIONS], 20 * MIB);
    take(&hbm, MIB + 512);
    assert_int_equal(hbm.reserved, 40 * MIB);
    give(&hbm, block);
    assert_int_equal(hbm.allocated, MIB + 512);
    hbm_release(&hbm);
}

/* 2 MiB of the small pool: 1 MiB and 1 MiB - 512 leave 512, which is a block. Requests of the large
 * pool find none of it free, even where it is. */
static void small_blocks_keep_512_bytes(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
    int32_t first = take(&hbm, MIB);
    take(&hbm, MIB - 512);
    take(&hbm, 512);
    assert_int_equal(hbm.reserved, 2 * MIB);
    assert_int_equal(hbm.allocated, 2 * MIB);
    take(&hbm, 512);
    assert_int_equal(hbm.reserved, 4 * MIB);
    give(&hbm, first);
    take(&hbm, MIB + 512);
    assert_int_equal(hbm.reserved, 24 * MIB);
    hbm_release(&hbm);
}

/* Segments of 40, 16, 20 and 16 MiB, all free. 15 MiB fit 16 best, the one at the lower address
 * first; then the other; then 20. */
static void the_smallest_block_at_the_lowest_address_is_taken(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
    int32_t blocks[] = {
        take(&hbm, 40 * MIB), take(&hbm, 16 * MIB), take(&hbm, 20 * MIB), take(&hbm, 16 * MIB)};
    static const int order[] = {1, 3, 2, 0};
    for (int i = 3; i >= 0; i--)
        give(&hbm, blocks[i]);
    for (int i = 0; i < 4; i++)
        assert_int_equal(take(&hbm, 15 * MIB), blocks[order[i]]);
    hbm_release(&hbm);
}

/* Blocks of 16 MiB of one segment each, the first of which is where another was before: its number
 * is higher than that of the block after it, its address lower. */
static void addresses_decide_not_numbers(void **state)
{
    (void)state;
    struct hbm hbm;
    start(&hbm, 1000 * MIB, false);
    int32_t whole = take(&hbm, 64 * MIB), other = take(&hbm, 16 * MIB);
    give(&hbm, whole);
    int32_t parts[] = {take(&hbm, 14 * MIB), take(&hbm, 16 * MIB), take(&hbm, 16 * MIB),
        take(&hbm, 2 * MIB), take(&hbm, 16 * MIB)};
    assert_int_equal(hbm.reserved, 80 * MIB);
    assert_true(parts[1] > other);
    give(&hbm, other);
    give(&hbm, parts[1]); /* at 14 MiB of the first segment; both are of 16 MiB */
    assert_int_equal(take(&hbm, 16 * MIB), parts[1]);
    hbm_release(&hbm);
}

/* 100 MiB with max_split_size_mb 30. Free: segments of 40 and 20 MiB; in use: 40. A request of 25
 * does not take the 40 (it is smaller than 30), and there are no 26 left. Step 6: the 40 go, which
 * serves it: no retry, and the 20 are still there. */
static void oversize_blocks_go_before_all_others(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 100 * MIB, 0, &(struct hbm_options){.max_split_size_mb = 30});
    int32_t large = take(&hbm, 40 * MIB), small = take(&hbm, 20 * MIB);
    take(&hbm, 40 * MIB);
    give(&hbm, large);
    give(&hbm, small);
    assert_int_equal(hbm_alloc(&hbm, 25 * MIB, HBM_ACTIVATIONS, STREAM_COMPUTE), -1);
    assert_true(hbm_reclaim(&hbm, 25 * MIB, HBM_ACTIVATIONS, STREAM_COMPUTE) >= 0);
    assert_int_equal(hbm.retries, 0);
    assert_int_equal(hbm.frees, 1);
    assert_int_equal(hbm.reserved, (20 + 26 + 40) * MIB);
    assert_int_equal(take(&hbm, 20 * MIB), small);
    hbm_release(&hbm);
}

/* The same with free segments of 30, 40 and 20: 65 need two of them, the largest first, and the 20
 * stay. 90 cannot be had from what is oversize: the rest goes too, with a retry. */
static void several_oversize_blocks_go_the_largest_first(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct hbm hbm;
        hbm_init(&hbm, 100 * MIB, 0, &(struct hbm_options){.max_split_size_mb = 30});
        int32_t blocks[] = {take(&hbm, 30 * MIB), take(&hbm, 40 * MIB), take(&hbm, 20 * MIB)};
        for (int i = 0; i < 3; i++)
            give(&hbm, blocks[i]);
        assert_true(take(&hbm, whole ? 90 * MIB : 65 * MIB) >= 0);
        assert_int_equal(hbm.retries, whole);
        assert_int_equal(hbm.frees, whole ? 3 : 2);
        assert_int_equal(hbm.reserved, whole ? 90 * MIB : 86 * MIB);
        hbm_release(&hbm);
    }
}

/* max_split_size_mb 30, a free segment of 60: 40 and more take it whole, as it is less than 20 MiB
 * larger; 40 itself is exactly 20 MiB less and does not; nor does 10. */
static void oversize_blocks_serve_large_requests_whole(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes, reserved;
    } cases[] = {{42, 60}, {40, 100}, {10, 70}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hbm hbm;
        hbm_init(&hbm, 1000 * MIB, 0, &(struct hbm_options){.max_split_size_mb = 30});
        give(&hbm, take(&hbm, 60 * MIB));
        take(&hbm, cases[i].bytes * MIB);
        assert_int_equal(hbm.reserved, cases[i].reserved * MIB);
        assert_int_equal(hbm.allocated, (cases[i].bytes == 42 ? 60 : cases[i].bytes) * MIB);
        hbm_release(&hbm);
    }
}

/* memory_fraction is of all memory, of which others (the context, NCCL) may have taken more than
 * the rest: of 100 MiB half is allowed, and 40 are left beside 60. */
static void a_fraction_is_no_more_than_what_is_left(void **state)
{
    (void)state;
    static const struct {
        int64_t taken, allowed;
    } cases[] = {{0, 50}, {50, 50}, {60, 40}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hbm hbm;
        hbm_init(
            &hbm, 100 * MIB, cases[i].taken * MIB, &(struct hbm_options){.memory_fraction = 0.5});
        assert_int_equal(
            hbm_alloc(&hbm, (cases[i].allowed + 2) * MIB, HBM_ACTIVATIONS, STREAM_COMPUTE), -1);
        assert_true(hbm_alloc(&hbm, cases[i].allowed * MIB, HBM_ACTIVATIONS, STREAM_COMPUTE) >= 0);
        hbm_release(&hbm);
    }
}

/* Half of 200 MiB is allowed, and 0.6 of that, 60, not collected. Searches for large blocks: 20, 30
 * (and 20 is freed), 20 (taken and freed again, after 3), 38 (after 30 was freed at 3; freed at 4).
 * 90 are reserved, with 2 of the small pool, so the miss of 42, the fifth search, collects: ages
 * are 2, 2 and 1, 5/3 in the mean, so 20 and 30 go, which is enough, and 38 stays. Nothing goes
 * before the GPU is drained. */
static void garbage_is_collected_by_age(void **state)
{
    (void)state;
    struct hbm hbm;
    hbm_init(&hbm, 200 * MIB, 0,
        &(struct hbm_options){.memory_fraction = 0.5, .garbage_collection_threshold = 0.6});
    int32_t a = take(&hbm, 20 * MIB), b = take(&hbm, 30 * MIB); /* 2 searches */
    give(&hbm, a);
    give(&hbm, take(&hbm, 1 * MIB)); /* of the small pool: counts nothing */
    give(&hbm, take(&hbm, 20 * MIB));
    give(&hbm, b);
    give(&hbm, take(&hbm, 38 * MIB));
    assert_int_equal(hbm.reserved, 2 * MIB + 88 * MIB);
    assert_int_equal(hbm.frees, 0);
    assert_int_equal(hbm_alloc(&hbm, 42 * MIB, HBM_ACTIVATIONS, STREAM_COMPUTE), -1);
    assert_int_equal(hbm.reserved, 90 * MIB);
    assert_true(hbm_reclaim(&hbm, 42 * MIB, HBM_ACTIVATIONS, STREAM_COMPUTE) >= 0);
    assert_int_equal(hbm.frees, 2);
    assert_int_equal(hbm.reserved, 2 * MIB + 38 * MIB + 42 * MIB);
    assert_int_equal(hbm.retries, 0);
    hbm_release(&hbm);
}

/* Any sequence: allocated is the sum of live requests, and of up to 1 MiB each that large blocks
 * are larger where pages are not mapped one by one; reserved bounds it and never exceeds the
 * capacity; at the end nothing is left. */
static void keep_the_books(bool expandable)
{
    enum { LIVE = 64, ROUNDS = 20000 };
    struct hbm hbm;
    start(&hbm, 900 * MIB, expandable);
    struct rng_stream rng = rng_stream(3, 1, 4);
    int32_t blocks[LIVE];
    int64_t sizes[LIVE] = {0}, sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int slot = (int)(rng_uniform(&rng) * LIVE);
        if (sizes[slot]) {
            give(&hbm, blocks[slot]);
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
        assert_int_equal(hbm.by_category[HBM_ACTIVATIONS], hbm.allocated);
        assert_true(hbm.allocated >= sum && hbm.allocated <= sum + (expandable ? 0 : LIVE * MIB));
        assert_true(hbm.reserved >= hbm.allocated && hbm.reserved <= hbm.capacity);
    }
    for (int slot = 0; slot < LIVE; slot++)
        if (sizes[slot])
            give(&hbm, blocks[slot]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_round_as_in_pytorch),
        cmocka_unit_test(a_freed_block_is_used_again_and_merged),
        cmocka_unit_test(streams_have_their_own_pools),
        cmocka_unit_test(a_pending_block_is_not_used_again_yet),
        cmocka_unit_test(free_segments_are_released_before_failing),
        cmocka_unit_test(sizes_and_addresses_have_no_end),
        cmocka_unit_test(segments_have_their_sizes),
        cmocka_unit_test(large_blocks_keep_more_than_1_mib),
        cmocka_unit_test(small_blocks_keep_512_bytes),
        cmocka_unit_test(the_smallest_block_at_the_lowest_address_is_taken),
        cmocka_unit_test(addresses_decide_not_numbers),
        cmocka_unit_test(oversize_blocks_go_before_all_others),
        cmocka_unit_test(several_oversize_blocks_go_the_largest_first),
        cmocka_unit_test(oversize_blocks_serve_large_requests_whole),
        cmocka_unit_test(a_fraction_is_no_more_than_what_is_left),
        cmocka_unit_test(garbage_is_collected_by_age),
        cmocka_unit_test(random_sequences_keep_the_books),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
