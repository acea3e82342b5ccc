/* topologies/gpus says what results/measured says, and the GEMM model describes what was measured
 * as well as is claimed. */
#include "calibrate/direct_fit.h"
#include "calibrate/gpu_fit.h"
#include "calibrate/gemm_fit.h"
#include "calibrate/norm_rates.h"
#include "calibrate/gpu_tables.h"
#include "scenario/stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"

#include <stdlib.h>
#include <string.h>

#define MEASURED FLOPCAST_SOURCE_DIR "/results/measured"
#define GPUS FLOPCAST_SOURCE_DIR "/topologies/gpus"

static void same(const char *gpu, const char *what, struct quantity filed, struct quantity computed)
{
    if (!(filed.value >= 0.99 * computed.value && filed.value <= 1.01 * computed.value))
        fail_msg("%s: %s is %g in the file, %g by results/measured", gpu, what, filed.value,
            computed.value);
    assert_int_equal(quantity_is_set(filed), quantity_is_set(computed));
    /* a number that is called fitted is one, with the error that the fit gives */
    if (filed.kind == QUANTITY_FITTED) {
        assert_int_equal(computed.kind, QUANTITY_FITTED);
        assert_near(filed.std_error / computed.std_error, 1, 0.05);
    }
}

static void test_files_agree_with_the_data(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct basis basis = {.measured = MEASURED, .gpus = GPUS, .arena = &arena};
    assert_int_equal(basis_load(&basis, &diag), STATUS_OK); /* once for all: it takes seconds */
    for (int i = 0; i < basis.recipes.n_gpus; i++) {
        struct hw_gpu filed = {0}, computed = {0};
        const char *gpu = basis.recipes.gpus[i].gpu;
        if (basis_gpu(&filed, &computed, &basis, gpu, &diag) != STATUS_OK)
            fail_msg("%s", diag.text);
        assert_true(filed.hbm_efficiency.value > 0 &&
                    computed.hbm_efficiency.value > 0); /* they are there */
        same(gpu, "hbm_efficiency", filed.hbm_efficiency, computed.hbm_efficiency);
        same(gpu, "kernel_floor", filed.kernel_floor, computed.kernel_floor);
        same(gpu, "gemm_floor", filed.gemm_floor, computed.gemm_floor);
        same(gpu, "row_gap", filed.row_gap, computed.row_gap);
        same(
            gpu, "attention_efficiency", filed.attention_efficiency, computed.attention_efficiency);
        same(gpu, "attention_overhead", filed.attention_overhead, computed.attention_overhead);
        same(gpu, "attention_backward", filed.attention_backward, computed.attention_backward);
        same(gpu, "attention_backward_overhead", filed.attention_backward_overhead,
            computed.attention_backward_overhead);
        same(gpu, "attention_wide", filed.attention_wide, computed.attention_wide);
        same(gpu, "attention_softmax", filed.attention_softmax, computed.attention_softmax);
        for (int math = 0; math < DTYPE_COUNT; math++) {
            const struct hw_gemm *a = &filed.gemm[math], *b = &computed.gemm[math];
            if (!quantity_is_set(a->peak))
                continue;
            same(gpu, dtype_names[math], a->efficiency, b->efficiency);
            same(gpu, dtype_names[math], a->k_overhead, b->k_overhead);
            same(gpu, dtype_names[math], a->load_bandwidth, b->load_bandwidth);
            same(gpu, dtype_names[math], a->tile_share, b->tile_share);
            same(gpu, dtype_names[math], a->single_efficiency, b->single_efficiency);
        }
    }
    basis_release(&basis);
    arena_release(&arena);
}

/* Errors on shapes that were not fitted: at most what is asked of the model, 10 % in the median and
 * 25 % at the 90th percentile, whichever third of the shapes is held out and the rest fitted.
 * `flopcast calibrate fit` prints those of the third that topologies/gpus rests on. */
static void check_held_out(
    const struct gemm_case *which, const struct hw_gpu *filed, struct gemm_rows *rows)
{
    struct diag diag = DIAG_INIT;
    for (int fold = 0; fold < GEMM_FOLDS; fold++) {
        struct hw_gpu gpu;
        gemm_hold_out(rows, fold);
        assert_int_equal(gemm_fit_solve(&gpu, filed, which, rows, &diag), STATUS_OK);
        for (int i = 0; i < 2; i++) {
            struct fit_error error = gemm_error(&gpu, which->math[i], GEMM_HELD_OUT, rows);
            print_message("%s %s, fold %d: %d shapes, median %.1f %%, p90 %.1f %%\n", which->gpu,
                dtype_names[which->math[i]], fold, error.n, 100 * error.median, 100 * error.p90);
            assert_true(error.n >= 30);
            assert_true(error.median <= 0.10);
            assert_true(error.p90 <= 0.26);
        }
    }
}

static void test_accuracy_on_held_out_shapes(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct recipes recipes;
    assert_int_equal(recipes_load(&recipes, &arena, &diag), STATUS_OK);
    assert_true(recipes.n_gemm >= 2);
    for (int i = 0; i < recipes.n_gemm; i++) {
        struct gemm_rows rows;
        struct hw_gpu gpu;
        const struct gemm_case *which = &recipes.gemm[i];
        const char *path = arena_printf(&arena, GPUS "/%s.yaml", which->gpu);
        assert_int_equal(hw_load_gpu(&gpu, path, &arena, &diag), STATUS_OK);
        hw_clear_training_rates(&gpu);
        assert_int_equal(gemm_rows_load(&rows, MEASURED "/gemm.csv", which->gpu, &diag), STATUS_OK);
        check_held_out(which, &gpu, &rows);
        vec_free(&rows.list);
    }
    arena_release(&arena);
}

/* The best product that a search found on H100 (794.5 TFLOPS at 2048 x 2048 x 13312) was not
 * fitted. The model says 801. */
static void test_best_product_of_h100(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_gpu gpu;
    struct best_gemm best;
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_load_gpu(&gpu, GPUS "/h100-sxm5-80gb.yaml", &arena, &diag), STATUS_OK);
    hw_clear_training_rates(&gpu);
    assert_int_equal(
        best_gemm_load(&best, MEASURED "/mamf.csv", "h100-sxm5-80gb", DTYPE_BF16, &diag),
        STATUS_OK);
    double flops = best.work.flop / kernel_duration_s(&best.work, &gpu, kernel_whole_gpu(&gpu));
    assert_near(flops / best.flops, 1, 0.05);
    arena_release(&arena);
}

/* results/measured/overlap.csv: a GEMM of exactly 132 blocks on the 132 SMs of H100 falls from 80
 * to 47 % of the peak, by 1.70, when ncclAllGather takes 24 SMs; the source speaks of twice the
 * time, for a second wave. */
static void test_tail_wave_beside_a_collective(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_gpu gpu;
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_load_gpu(&gpu, GPUS "/h100-sxm5-80gb.yaml", &arena, &diag), STATUS_OK);
    hw_clear_training_rates(&gpu);
    struct kernel_work work =
        kernel_gemm(INT64_C(12) * 128, INT64_C(11) * 256, 4096, 1, DTYPE_BF16, 2, 2);
    double alone_s = kernel_duration_s(&work, &gpu, kernel_whole_gpu(&gpu));
    double beside_s = kernel_duration_s(&work, &gpu, (struct kernel_share){.sms = 132 - 24});
    assert_in_range(100 * beside_s / alone_s, 170, 200);
    arena_release(&arena);
}

/* The best product that a search found on A100 (271.2 TFLOPS at 1024 x 10240 x 5120) was not
 * fitted. */
static void test_best_product_of_a100(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_gpu gpu;
    struct best_gemm best;
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_load_gpu(&gpu, GPUS "/a100-sxm4-80gb.yaml", &arena, &diag), STATUS_OK);
    hw_clear_training_rates(&gpu);
    assert_int_equal(
        best_gemm_load(&best, MEASURED "/mamf.csv", "a100-sxm4-80gb", DTYPE_BF16, &diag),
        STATUS_OK);
    double flops = best.work.flop / kernel_duration_s(&best.work, &gpu, kernel_whole_gpu(&gpu));
    print_message("best product of A100: %.1f TFLOPS measured, %.1f by the model\n",
        1e-12 * best.flops, 1e-12 * flops);
    assert_near(flops / best.flops, 1, 0.06);
    arena_release(&arena);
}

/* 262 products on one B200 (settled.csv). Of 2,250 TFLOPS the source gives those of at least 1.6 ms
 * 0.43 to 0.53, 0.49 in the median; the model gives long ones 0.730 x k / (k + 51), 0.73 for k =
 * 8192: 0.68. On another B200 products that were repeated for a second keep 0.89 (direct.csv).
 * gemm_sustained is the geometric mean, its error half of what they differ by; H200's is of
 * products on it alone. */
static void test_settled_products_of_b200(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_gpu gpu;
    struct settled_rates rates;
    struct diag diag = DIAG_INIT;
    const char *table = MEASURED "/settled.csv", *name = "b200-sxm-180gb";
    assert_int_equal(hw_load_gpu(&gpu, GPUS "/b200-sxm-180gb.yaml", &arena, &diag), STATUS_OK);
    assert_int_equal(settled_rates_load(&rates, table, name, &gpu, DTYPE_BF16, &diag), STATUS_OK);
    print_message(
        "B200: %d products of 1.6 ms and more at %.4f of the model's rate, spread %.1f %%\n",
        rates.n, rates.settled, 100 * rates.spread);
    assert_int_equal(rates.n, 122);
    assert_near(rates.settled, 0.68, 0.02);
    assert_true(rates.spread > 0.01 && rates.spread < 0.05);
    struct direct_fit fit;
    assert_int_equal(direct_fit_solve(&fit, &gpu, name, MEASURED "/direct.csv", &diag), STATUS_OK);
    double other = fit.settled[DTYPE_BF16].value;
    direct_fit_free(&fit);
    assert_near(gpu.gemm_sustained.value / sqrt(rates.settled * other), 1, 0.01);
    assert_near(gpu.gemm_sustained.std_error, fabs(other - rates.settled) / 2, 0.01);
    /* whatever the file says of gemm_sustained, it is against the rates without it */
    gpu.gemm_sustained.value /= 2;
    double before = rates.settled;
    assert_int_equal(settled_rates_load(&rates, table, name, &gpu, DTYPE_BF16, &diag), STATUS_OK);
    assert_near(rates.settled, before, 1e-12);
    assert_int_equal(
        settled_rates_load(&rates, table, "tpu-v4", &gpu, DTYPE_BF16, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "no row with gpu 'tpu-v4'"));
    assert_int_equal(
        settled_rates_load(&rates, MEASURED "/mamf.csv", name, &gpu, DTYPE_BF16, &diag),
        STATUS_INPUT);
    assert_non_null(strstr(diag.text, "at least 1600 us"));
    arena_release(&arena);
}

/* Linear layers of A100 and B200 that add to FP32 give the stack's numbers, Hopper's is between;
 * experts and results in BF16, which are not in them, lie as near as 0.1. A row by hand: 8,192 x
 * 57,344 sums of FP32 on B200 move 6 bytes each beyond a plain product, 0.529 ms at 5,328 GB/s. */
static void test_products_that_add_to_their_result(void **state)
{
    (void)state;
    static const char *const table = MEASURED "/accumulate.csv", *const b200 = "b200-sxm-180gb",
                             *const a100 = "a100-pcie-80gb";
    enum { AMPERE = 2, HOPPER = 4, BLACKWELL = 5 }; /* in hw_archs */
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct stack stack;
    assert_int_equal(stack_load(&stack, FLOPCAST_SOURCE_DIR "/scenarios/stacks/megatron-core.yaml",
                         &arena, &diag),
        STATUS_OK);
    struct quantity filed[HW_ARCHS];
    for (int a = 0; a < HW_ARCHS; a++)
        filed[a] = stack.rates[a].accumulate_exposed;
    const struct {
        const char *gpu;
        enum dtype result;
        bool grouped;
        int arch, n;
        double exposed;
    } cases[] = {
        {a100, DTYPE_FP32, false, AMPERE, 32, 0.452},
        {b200, DTYPE_FP32, false, BLACKWELL, 62, 0.713},
        {a100, DTYPE_FP32, true, AMPERE, 4, 0.367},
        {b200, DTYPE_FP32, true, BLACKWELL, 10, 0.742},
        {b200, DTYPE_BF16, true, BLACKWELL, 7, 0.734},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct accumulate_fit fit;
        assert_int_equal(accumulate_fit_load(
                             &fit, table, cases[i].gpu, cases[i].result, cases[i].grouped, &diag),
            STATUS_OK);
        print_message("%s, %s%s: %.3f +- %.3f of %d\n", cases[i].gpu, dtype_names[cases[i].result],
            cases[i].grouped ? ", experts" : "", fit.exposed, fit.std_error, fit.n);
        assert_int_equal(fit.n, cases[i].n);
        assert_near(fit.exposed, cases[i].exposed, 0.001);
        assert_near(fit.exposed, filed[cases[i].arch].value, i < 2 ? 0.001 : 0.1);
        if (i < 2)
            assert_near(fit.std_error, filed[cases[i].arch].std_error, 0.002);
    }
    assert_near(filed[HOPPER].value, (filed[AMPERE].value + filed[BLACKWELL].value) / 2, 0.001);
    struct accumulate_fit none;
    assert_int_equal(
        accumulate_fit_load(&none, table, a100, DTYPE_BF16, false, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "no row with gpu 'a100-pcie-80gb' and result 'bf16'"));
    arena_release(&arena);
}

/* The best products that a search found on Blackwell were not fitted: 1745 and 1822 TFLOPS in BF16,
 * 3432.5 and 3615.6 in FP8, 5 to 50 % more than what the model says of them by products of all
 * shapes (GB200's are of a machine at its power limit). GB200's fill 152 SMs in whole waves of
 * tiles of 128 x 256, which 148 would miss. */
static void test_best_products_of_blackwell(void **state)
{
    (void)state;
    static const char *const names[] = {"b200-sxm-180gb", "gb200-186gb"};
    static const enum dtype formats[] = {DTYPE_BF16, DTYPE_FP8};
    static const double measured_flops[2][2] = {{1745e12, 3432.5e12}, {1822e12, 3615.6e12}};
    for (int i = 0; i < 4; i++) {
        struct arena arena = ARENA_INIT;
        struct hw_gpu gpu;
        struct best_gemm best;
        struct diag diag = DIAG_INIT;
        const char *name = names[i / 2];
        assert_int_equal(
            hw_load_gpu(&gpu, arena_printf(&arena, GPUS "/%s.yaml", name), &arena, &diag),
            STATUS_OK);
        hw_clear_training_rates(&gpu);
        assert_int_equal(
            best_gemm_load(&best, MEASURED "/mamf.csv", name, formats[i % 2], &diag), STATUS_OK);
        double flops = best.work.flop / kernel_duration_s(&best.work, &gpu, kernel_whole_gpu(&gpu));
        assert_near(best.flops / measured_flops[i / 2][i % 2], 1, 1e-9);
        print_message("%s %s: %.3f of the best product\n", name, dtype_names[formats[i % 2]],
            flops / best.flops);
        assert_in_range(100 * flops / best.flops, 60, 105);
        if (i / 2 == 1)
            assert_int_equal(best.work.m * best.work.n % (128 * 256 * (int64_t)gpu.sms.value), 0);
        arena_release(&arena);
    }
}

/* Floor + bytes over a share of the streaming rate: within 15 % in the median on shapes that the
 * share does not rest on, for every library and pass (worst: PyTorch's forward, 13 %, whose kernels
 * slow down with the columns). */
static void test_norms_on_held_out_shapes(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_gpu gpu;
    struct norm_rate rates[NORM_RATES];
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_load_gpu(&gpu, GPUS "/h200-sxm-141gb.yaml", &arena, &diag), STATUS_OK);
    hw_clear_training_rates(&gpu);
    assert_int_equal(
        norm_rates_load(rates, MEASURED "/norm.csv", "h200-sxm-141gb", &gpu, &diag), STATUS_OK);
    for (int i = 0; i < NORM_RATES; i++) {
        assert_in_range(rates[i].held_out.n, 2, rates[i].n_fitted);
        assert_true(rates[i].held_out.median < 0.15);
        assert_true(rates[i].share > 0.4 && rates[i].share < 1.3);
    }
    assert_int_equal(
        norm_rates_load(rates, MEASURED "/norm.csv", "tpu-v4", &gpu, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "0 norms of cudnn, forward on 'tpu-v4'"));
    arena_release(&arena);
}

static void test_report(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(gpu_fit_print(out, MEASURED, GPUS, &arena, &diag), STATUS_OK);
    fclose(out);
    struct recipes recipes;
    assert_int_equal(recipes_load(&recipes, &arena, &diag), STATUS_OK);
    assert_true(recipes.n_gpus >= 11);
    for (int i = 0; i < recipes.n_gpus; i++)
        assert_non_null(strstr(text, recipes.gpus[i].gpu));
    assert_non_null(strstr(text, "held out"));
    assert_non_null(strstr(text, "+-"));
    free(text);
    arena_release(&arena);
}

static void test_missing_rows(void **state)
{
    (void)state;
    struct stream_rates rates;
    struct diag diag = DIAG_INIT;
    assert_int_equal(stream_rates_load(&rates, MEASURED "/hbm.csv", "tpu-v4", &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "no row with gpu 'tpu-v4'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_agree_with_the_data),
        cmocka_unit_test(test_accuracy_on_held_out_shapes),
        cmocka_unit_test(test_best_product_of_h100),
        cmocka_unit_test(test_tail_wave_beside_a_collective),
        cmocka_unit_test(test_best_product_of_a100),
        cmocka_unit_test(test_settled_products_of_b200),
        cmocka_unit_test(test_products_that_add_to_their_result),
        cmocka_unit_test(test_best_products_of_blackwell),
        cmocka_unit_test(test_norms_on_held_out_shapes),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_missing_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
