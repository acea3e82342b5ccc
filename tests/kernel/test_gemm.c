/* The GEMM model against waves counted by hand. */
#include "kernel/gemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"
#include "../number.h"

/* Four SMs in round numbers: for each element of k, an SM needs 1 s to multiply a tile of 128 x 128
 * (32768 flop/s) and 1 s to load its 256 operands. Larger tiles are then no better; of smaller
 * ones, 128 x 64 needs 192/256 = 0.75 s and 64 x 64 0.5 s, that is 1.5 and 2 s for the same area. A
 * second pass over a result of one tile, split s ways, costs (s + 1) x 65536 B at 327680 B/s = (s +
 * 1) / 5 s, and 1 s to start. */
static const struct hw_gpu gpu = {
    .name = "four SMs",
    .sms = NUMBER(4),
    .hbm_bandwidth = NUMBER(2 * 327680),
    .hbm_efficiency = NUMBER(0.5),
    .kernel_floor = NUMBER(1),
    .gemm[DTYPE_BF16] = {.peak = NUMBER(4 * 32768 / 0.5),
        .efficiency = NUMBER(0.5),
        .k_overhead = NUMBER(14),
        .load_bandwidth = NUMBER(4 * 256 * 2)},
};

static double seconds(int64_t m, int64_t n, int64_t k, int64_t batch, double sms)
{
    struct kernel_work work = kernel_gemm(m, n, k, batch, DTYPE_BF16, 2, 2);
    return gemm_compute_s(&work, &gpu, sms);
}

static void test_waves(void **state)
{
    (void)state;
    /* 4 tiles on 4 SMs: one wave of 96 + 14 elements of k */
    assert_near(seconds(256, 256, 96, 1, 4), 110, 1e-9);
    /* 5 tiles: two waves; 128 x 256 does it in one wave of twice the length, all others are longer
     */
    assert_near(seconds(128, 640, 96, 1, 4), 220, 1e-9);
    /* independent products fill the SMs just as well */
    assert_near(seconds(128, 128, 96, 4, 4), 110, 1e-9);
    /* an edge tile is computed whole: 255 x 255 costs what 256 x 256 does */
    assert_near(seconds(255, 255, 96, 1, 4), 110, 1e-9);
    /* and the last step of k: 97 elements are four of 32 */
    assert_near(seconds(256, 256, 97, 1, 4), 128 + 14, 1e-9);
}

/* Where loading limits, operands of half the bits pass at twice the rate. */
static void test_bits_of_operands(void **state)
{
    (void)state;
    struct hw_gpu narrow = gpu;
    narrow.gemm[DTYPE_BF16].peak.value *= 100;
    narrow.gemm[DTYPE_FP8] = narrow.gemm[DTYPE_FP4] = narrow.gemm[DTYPE_BF16];
    struct kernel_work wide = kernel_gemm(512, 512, 96, 1, DTYPE_BF16, 2, 2), eight = wide;
    eight.math = DTYPE_FP8;
    struct kernel_work four = kernel_gemm(512, 512, 96, 1, DTYPE_FP4, 1, 2);
    double wide_s = gemm_compute_s(&wide, &narrow, 4);
    assert_near(gemm_compute_s(&eight, &narrow, 4) / wide_s, 0.5, 1e-12);
    assert_near(gemm_compute_s(&four, &narrow, 4) / wide_s, 0.25, 1e-12);
    assert_near(four.read_bytes, 2 * 512 * 96 * 9.0 / 16, 0);
    assert_near(four.flop, wide.flop, 0);
}

static void test_contention(void **state)
{
    (void)state;
    /* 4 tiles on 3 SMs: two waves, the tail wave of one tile (NVIDIA forum 337991 saw this double a
     * GEMM) */
    assert_near(seconds(256, 256, 96, 1, 3), 220, 1e-9);
    /* part of an SM carries no tile */
    assert_near(seconds(256, 256, 96, 1, 3.9), 220, 1e-9);
    assert_near(seconds(256, 256, 96, 1, 0.5), seconds(256, 256, 96, 1, 1), 0);
}

static void test_sustained_rate(void **state)
{
    (void)state;
    struct hw_gpu hot = gpu;
    hot.gemm_sustained = (struct quantity)NUMBER(0.8);
    struct kernel_work full = kernel_gemm(256, 256, 96, 1, DTYPE_BF16, 2, 2);
    struct kernel_work loads = kernel_gemm(64, 64, 96, 1, DTYPE_BF16, 2, 2);
    /* the clock is that of multiplying and of loading: everything takes 1 / 0.8 as long */
    assert_near(gemm_compute_s(&full, &hot, 4), 110 / 0.8, 1e-9);
    assert_near(gemm_compute_s(&loads, &hot, 4), gemm_compute_s(&loads, &gpu, 4) / 0.8, 1e-9);
}

/* A convolution reaches its share of both rates; a product that gathers nothing does not care. */
static void test_convolutions(void **state)
{
    (void)state;
    struct hw_gpu cudnn = gpu;
    cudnn.conv_efficiency = (struct quantity)NUMBER(0.8);
    struct kernel_work product = kernel_gemm(256, 256, 96, 1, DTYPE_BF16, 2, 2), window = product;
    window.gathers = true;
    assert_near(gemm_compute_s(&window, &cudnn, 4), 110 / 0.8, 1e-9);
    assert_near(gemm_compute_s(&product, &cudnn, 4), 110, 1e-9);
    assert_near(gemm_compute_s(&window, &gpu, 4), 110, 1e-9); /* the share is optional */
}

static void test_small_tiles_are_limited_by_loading(void **state)
{
    (void)state;
    /* 64 x 64: two tiles of 64 x 32 side by side on two SMs, each loading 96 of 256 operands a
     * second: 0.375 s for an element of k, where its 4096 flop would take 0.125 s. On one SM the
     * two follow each other. */
    assert_near(seconds(64, 64, 96, 1, 4), 0.375 * 110, 1e-9);
    assert_near(seconds(64, 64, 96, 1, 1), 2 * 0.375 * 110, 1e-9);
}

static void test_issuing(void **state)
{
    (void)state;
    /* Four warps reach 0.25 of the peak, the SM 0.5: a tile of 128 x 128 takes 2 s for an element
     * of k instead of 1, and so do 16 of 64 x 64 in four waves of 0.5 s. */
    struct hw_gpu slow = gpu;
    slow.gemm[DTYPE_BF16].tile_share = (struct quantity)NUMBER(0.25);
    struct kernel_work four = kernel_gemm(256, 256, 96, 1, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&four, &slow, 4), 2 * 110, 1e-9);
    /* 128 x 256 has eight warps and takes 2 s too: twice the result in one wave */
    struct kernel_work eight = kernel_gemm(512, 256, 96, 1, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&eight, &slow, 4), 2 * 110, 1e-9);
}

static void test_kernels_for_one_product(void **state)
{
    (void)state;
    struct hw_gpu gifted = gpu;
    gifted.gemm[DTYPE_BF16].single_efficiency = (struct quantity)NUMBER(1);
    /* twice the efficiency of 0.5, and loading does not hold them up */
    struct kernel_work one = kernel_gemm(256, 256, 96, 1, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&one, &gifted, 4), 110.0 / 2, 1e-9);
    /* a batch of the same tiles has to do without */
    struct kernel_work batch = kernel_gemm(128, 256, 96, 2, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&batch, &gifted, 4), 110, 1e-9);
    /* so has what is too small for their tiles to pay: 64 x 64 takes 0.375 s for an element of k,
     * see below, and a tile of 128 x 128, for the most part empty, 0.5 s */
    struct kernel_work small = kernel_gemm(64, 64, 96, 1, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&small, &gifted, 4), 0.375 * 110, 1e-9);
}

static void test_row_pieces(void **state)
{
    (void)state;
    struct kernel_work work = kernel_gemm(10, 100, 96, 2, DTYPE_BF16, 2, 2);
    /* 96 elements are three pieces of 32: 10 rows of A, 100 of B, of two products */
    assert_near(gemm_row_pieces(&work, true, false), 2 * 10 * 3, 0);
    assert_near(gemm_row_pieces(&work, false, true), 2 * 100 * 3, 0);
    assert_near(gemm_row_pieces(&work, true, true), 2 * 110 * 3, 0);
    work.k = 128; /* a power of two */
    assert_near(gemm_row_pieces(&work, true, true), 0, 0);
}

static void test_row_gap(void **state)
{
    (void)state;
    /* 660 pieces of 64 B cost HBM as much as 42240 B more: at 2 x 327680 x 0.5 B/s 0.129 s */
    struct hw_gpu strided = gpu;
    strided.sms = strided.memory_sms = (struct quantity)NUMBER(4);
    strided.row_gap = (struct quantity)NUMBER(64);
    struct kernel_work work = kernel_gemm(10, 100, 96, 2, DTYPE_BF16, 2, 2);
    double before_s = kernel_time(&work, &strided, kernel_whole_gpu(&strided)).memory_s;
    work.row_pieces = gemm_row_pieces(&work, true, true);
    double after_s = kernel_time(&work, &strided, kernel_whole_gpu(&strided)).memory_s;
    assert_near(after_s - before_s, 660 * 64 / 327680.0, 1e-9);
}

static void test_split_k(void **state)
{
    (void)state;
    /* One tile, k = 1280. Whole: 1294 s; tiles of 64 x 64 on all 4 SMs: 647 s. Split 4 ways: 320 +
     * 14 s, then 1 s to start the second kernel and (4 + 1) / 5 = 1 s for its bytes. 8 ways: two
     * waves of 160 + 14 s, more. */
    assert_near(seconds(128, 128, 1280, 1, 4), 336, 1e-9);
    /* Five tiles: whole, two waves of 1280 + 14. Split in two they were ten on 4 SMs, three waves
     * of 640 + 14, with the second kernel 1966 s; but k is split where tiles do not fill the SMs,
     * not where they need a wave more. So are three tiles of 128 x 256 split four ways. */
    assert_near(seconds(128, 640, 1280, 1, 4), 2 * (1280 + 14), 1e-9);
}

static void test_k_saturation(void **state)
{
    (void)state;
    /* rate(k) = k / (k + 14) of the peak */
    double short_rate = 96 / seconds(256, 256, 96, 1, 4),
           long_rate = 992 / seconds(256, 256, 992, 1, 4);
    assert_near(short_rate, 96.0 / 110, 1e-12);
    assert_near(long_rate, 992.0 / 1006, 1e-12);
}

static void test_monotone(void **state)
{
    (void)state;
    for (int64_t m = 32; m <= 1024; m += 96)
        for (int64_t n = 32; n <= 1024; n += 96)
            for (int64_t k = 16; k <= 4096; k *= 4) {
                double here = seconds(m, n, k, 1, 4);
                assert_true(seconds(m + 50, n, k, 1, 4) >= here);
                assert_true(seconds(m, n + 50, k, 1, 4) >= here);
                assert_true(seconds(m, n, k + 50, 1, 4) >= here);
                assert_true(seconds(m, n, k, 2, 4) >= here);
                assert_true(seconds(m, n, k, 1, 3) >= here);
            }
}

/* Two products of a tile each, k = 1280: split in two, 640 + 14 s on all SMs, 1 s for the kernel
 * that adds, and three times 2 x 65536 B at 327680 B/s. */
static void test_split_of_a_batch(void **state)
{
    (void)state;
    assert_near(seconds(128, 128, 1280, 2, 4), 640 + 14 + 1 + 3 * 2 * 65536 / 327680., 1e-9);
}

/* A quarter of a product whose parts fill one another's last waves; a part of one is the whole. */
static void test_pieces(void **state)
{
    (void)state;
    struct kernel_work work = kernel_gemm(256, 256, 96, 1, DTYPE_BF16, 2, 2);
    work.pieces = 4;
    assert_near(gemm_compute_s(&work, &gpu, 4), 110 / 4., 1e-9);
    work.pieces = 1;
    assert_near(gemm_compute_s(&work, &gpu, 4), 110, 1e-9);
}

/* One tile with the better kernels of single products, k = 1280: these do not split k, so (1280 +
 * 14) / 2 s; split 4 ways the others take 336. Kernels of a share of 0.5 are as fast as the others'
 * tiles. */
static void test_kernels_for_one_product_do_not_split(void **state)
{
    (void)state;
    struct hw_gpu gifted = gpu;
    gifted.gemm[DTYPE_BF16].single_efficiency = (struct quantity)NUMBER(1);
    struct kernel_work work = kernel_gemm(128, 128, 1280, 1, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&work, &gifted, 4), 336, 1e-9);
    gifted.gemm[DTYPE_BF16].single_efficiency.value = 0.5;
    struct kernel_work four = kernel_gemm(256, 256, 96, 1, DTYPE_BF16, 2, 2);
    assert_near(gemm_compute_s(&four, &gifted, 4), 110, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waves),
        cmocka_unit_test(test_bits_of_operands),
        cmocka_unit_test(test_contention),
        cmocka_unit_test(test_sustained_rate),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_small_tiles_are_limited_by_loading),
        cmocka_unit_test(test_issuing),
        cmocka_unit_test(test_kernels_for_one_product),
        cmocka_unit_test(test_row_pieces),
        cmocka_unit_test(test_row_gap),
        cmocka_unit_test(test_split_k),
        cmocka_unit_test(test_k_saturation),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_split_of_a_batch),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_kernels_for_one_product_do_not_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
