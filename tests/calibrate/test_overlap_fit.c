#include "calibrate/overlap_fit.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"

#include <math.h>
#include <string.h>

#define MEASURED FLOPCAST_SOURCE_DIR "/results/measured"
#define CLUSTERS FLOPCAST_SOURCE_DIR "/topologies/clusters"
#define A100 FLOPCAST_SOURCE_DIR "/topologies/gpus/a100-sxm4-80gb.yaml"

static struct arena arena;
static struct overlap_fit fit;

static int solve(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    return overlap_fit_solve(&fit, MEASURED, CLUSTERS, &arena, &diag) != STATUS_OK;
}

static int release(void **state)
{
    (void)state;
    overlap_fit_free(&fit);
    arena_release(&arena);
    return 0;
}

/* What the GPU's file has is what the fit gives, to the digits that it is filed with;
 * overlap_traffic to a tenth of its standard error, as it moves with what collectives reach (0.29
 * today, filed as 0.30 +- 0.4). */
static void the_file_says_what_the_fit_says(void **state)
{
    (void)state;
    struct hw_gpu gpu;
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_load_gpu(&gpu, A100, &arena, &diag), STATUS_OK);
    assert_near(gpu.overlap_start.value, fit.start.value, 0.005e-6);
    assert_near(gpu.overlap_start.std_error, fit.start.std_error, 0.005e-6);
    assert_near(gpu.overlap_traffic.value, fit.traffic.value, 0.1 * fit.traffic.std_error);
    assert_near(gpu.overlap_traffic.std_error, fit.traffic.std_error, 0.1 * fit.traffic.std_error);
    assert_near(gpu.memory_sms.value / gpu.sms.value, fit.memory_share.value, 0.001);
    assert_near(gpu.memory_sms.std_error / gpu.sms.value, fit.memory_share.std_error, 0.001);
}

/* Issue 20 asks for a median of 10 % above 20 us and of 30 % below, of groups that the fit has not
 * seen. */
static void groups_held_out_are_predicted(void **state)
{
    (void)state;
    struct fit_error longer = overlap_fit_error(&fit, true, true),
                     shorter = overlap_fit_error(&fit, false, true);
    assert_int_equal(longer.n, 45);
    assert_true(longer.median < 0.10);
    assert_int_equal(shorter.n, 171);
    assert_true(shorter.median < 0.30);
}

/* Within a fifth of what was measured; of the elementwise kernel of NVIDIA/nccl#1428 the times have
 * one digit (0.02 and 0.05 ms), so that its 2.5 is anything from 1.8 to 3.7. */
static void published_cases_held_out_are_within_a_fifth(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; i < fit.published.n; i++) {
        const struct overlap_published *row = &fit.published.at[i];
        double ratio = overlap_fit_ratio(&fit, row), off = ratio / row->ratio - 1;
        bool one_digit = row->work.kind == KERNEL_ELEMENTWISE;
        n += row->held_out;
        if (row->held_out &&
            (one_digit ? ratio < 0.045 / 0.025 || ratio > 0.055 / 0.015 : fabs(off) > 0.2))
            fail_msg("%s: %g off", row->source, off);
    }
    assert_int_equal(n, 3);
}

/* 100 SMs, 20 held; an SM takes two blocks of the GEMM. 200 blocks fill the GPU once, and need two
 * waves on 80 SMs; 160 blocks one. Other kernels lose SMs where fewer are left than they need. */
static void groups_by_hand(void **state)
{
    (void)state;
    struct overlap_fit by_hand = {.start = {.value = 1e-6}, .memory_share = {.value = 0.9}};
    struct overlap_group group = {.gemm = true,
        .sms = 100,
        .channels = 20,
        .blocks = 200,
        .blocks_per_sm = 2,
        .alone_s = 50e-6};
    assert_near(overlap_fit_beside_s(&by_hand, &group), 101e-6, 1e-12);
    group.blocks = 160;
    assert_near(overlap_fit_beside_s(&by_hand, &group), 51e-6, 1e-12);
    group.gemm = false;
    assert_near(overlap_fit_beside_s(&by_hand, &group), 50e-6 * 0.9 / 0.8 + 1e-6, 1e-12);
    group.channels = 10;
    assert_near(overlap_fit_beside_s(&by_hand, &group), 51e-6, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_says_what_the_fit_says),
        cmocka_unit_test(groups_held_out_are_predicted),
        cmocka_unit_test(published_cases_held_out_are_within_a_fifth),
        cmocka_unit_test(groups_by_hand),
    };
    return cmocka_run_group_tests(tests, solve, release);
}
