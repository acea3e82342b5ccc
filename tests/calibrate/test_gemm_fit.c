/* The fit on products whose answer is known: made by the model itself. */
#include "calibrate/gemm_fit.h"
#include "kernel/gemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"
#include "../number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In tied_load both formats are multiplied by the same kernels; here the second multiplies batches
 * by slower ones. */
static const struct gemm_case other_kernels = {
    .gpu = "made-up", .math = {DTYPE_BF16, DTYPE_TF32}, .second = GEMM_OTHER_KERNELS};
static const struct gemm_case tied_load = {
    .gpu = "made-up", .math = {DTYPE_FP16, DTYPE_FP32}, .second = GEMM_LOADS_ALIKE};

/* About a V100. */
static const struct hw_gpu truth = {
    .name = "made up",
    .sms = NUMBER(80),
    .hbm_bandwidth = NUMBER(900e9),
    .hbm_efficiency = NUMBER(0.9),
    .kernel_floor = NUMBER(2e-6),
    .gemm_floor = NUMBER(6e-6),
    .row_gap = NUMBER(60),
    .memory_sms = NUMBER(40),
    .gemm[DTYPE_FP16] = {.peak = NUMBER(125e12),
        .efficiency = NUMBER(0.8),
        .k_overhead = NUMBER(120),
        .load_bandwidth = NUMBER(1.6e12)},
    .gemm[DTYPE_FP32] = {.peak = NUMBER(15.7e12),
        .efficiency = NUMBER(0.9),
        .k_overhead = NUMBER(60),
        .load_bandwidth = NUMBER(1.6e12)},
};

/* A table of products as the model predicts them, each off by +-noise in turn; every tenth by a
 * factor of outlier. The narrowest have rows along k whose pitch is no power of two. */
static void make_rows(struct gemm_rows *rows, const struct gemm_case *which,
    const struct hw_gpu *of, double noise, double outlier)
{
    char path[] = "/tmp/flopcast-gemm-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    fputs("gpu,dtype,layout,m,n,k,batch,time_us\n", file);
    int i = 0;
    for (int math = 0; math < 2; math++)
        for (int m = 16; m <= 4096; m *= 4)
            for (int n = 128; n <= 4096; n *= 2)
                for (int k = 128; k <= 8192; k *= 4)
                    for (int batch = 1; batch <= 3; batch++, i++) {
                        enum dtype format = which->math[math];
                        int64_t bytes = dtype_bytes(format);
                        int pitch = m == 16 ? 5 * k : k;
                        struct kernel_work work =
                            kernel_gemm(m, n, pitch, batch, format, bytes, bytes);
                        work.row_pieces = gemm_row_pieces(&work, true, true);
                        double factor =
                            (i % 2 ? 1 + noise : 1 - noise) * (i % 10 == 5 ? outlier : 1);
                        fprintf(file, "made-up,%s,TN,%d,%d,%d,%d,%.17g\n", dtype_names[format], m,
                            n, pitch, batch,
                            1e6 * factor * kernel_duration_s(&work, of, kernel_whole_gpu(of)));
                    }
    assert_int_equal(fclose(file), 0);
    struct diag diag = DIAG_INIT;
    assert_int_equal(gemm_rows_load(rows, path, "made-up", &diag), STATUS_OK);
    unlink(path);
}

/* The GPU with what is to be fitted taken out, so that the fit cannot read it. */
static struct hw_gpu unknown(const struct hw_gpu *of, const struct gemm_case *which)
{
    struct hw_gpu gpu = *of;
    gpu.gemm_floor = gpu.row_gap = (struct quantity){0};
    for (int i = 0; i < 2; i++)
        gpu.gemm[which->math[i]] = (struct hw_gemm){.peak = of->gemm[which->math[i]].peak};
    return gpu;
}

static void check_number(struct quantity got, struct quantity expected, double relative)
{
    assert_int_equal(got.kind, QUANTITY_FITTED);
    assert_true(got.std_error >= 0 && got.std_error < got.value);
    assert_near(got.value / expected.value, 1, relative);
}

static void check_fit(const struct gemm_case *which, const struct hw_gpu *of, double noise,
    double outlier, double relative)
{
    struct gemm_rows rows;
    make_rows(&rows, which, of, noise, outlier);
    struct hw_gpu start = unknown(of, which), fitted;
    struct diag diag = DIAG_INIT;
    assert_int_equal(gemm_fit_solve(&fitted, &start, which, &rows, &diag), STATUS_OK);
    check_number(fitted.gemm_floor, of->gemm_floor, relative);
    check_number(fitted.row_gap, of->row_gap, relative);
    for (int i = 0; i < 2; i++) {
        const struct hw_gemm *got = &fitted.gemm[which->math[i]],
                             *expected = &of->gemm[which->math[i]];
        check_number(got->efficiency, expected->efficiency, relative);
        check_number(got->k_overhead, expected->k_overhead,
            5 * relative); /* the weakest of them: a tile's start is short */
        check_number(got->load_bandwidth, expected->load_bandwidth, relative);
        assert_int_equal(quantity_is_set(got->tile_share), quantity_is_set(expected->tile_share));
        if (quantity_is_set(expected->tile_share)) {
            check_number(got->tile_share, expected->tile_share, relative);
            check_number(got->single_efficiency, expected->single_efficiency, relative);
        }
    }
    vec_free(&rows.list);
}

static void test_recovers_the_numbers(void **state)
{
    (void)state;
    check_fit(&tied_load, &truth, 0, 1, 1e-3);
}

static void test_recovers_other_kernels(void **state)
{
    (void)state;
    struct hw_gpu hopper = truth;
    hopper.gemm[DTYPE_BF16] = truth.gemm[DTYPE_FP16];
    hopper.gemm[DTYPE_TF32] = (struct hw_gemm){.peak = NUMBER(62e12),
        .efficiency = NUMBER(0.6),
        .k_overhead = NUMBER(90),
        .load_bandwidth = NUMBER(1.6e12),
        .tile_share = NUMBER(0.4),
        .single_efficiency = NUMBER(0.75)};
    check_fit(&other_kernels, &hopper, 0, 1, 1e-3);
}

static void test_bears_noise_and_outliers(void **state)
{
    (void)state;
    check_fit(&tied_load, &truth, 0.03, 1, 0.05);
    check_fit(&tied_load, &truth, 0.03, 1.8, 0.10);
}

static void test_too_few_rows(void **state)
{
    (void)state;
    struct gemm_rows rows;
    make_rows(&rows, &tied_load, &truth, 0, 1);
    rows.list.n = 4;
    struct hw_gpu start = unknown(&truth, &tied_load), fitted;
    struct diag diag = DIAG_INIT;
    assert_int_equal(gemm_fit_solve(&fitted, &start, &tied_load, &rows, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "do not determine"));
    vec_free(&rows.list);
}

/* Formats, batches and the transpose of a shape are held out together, and a third of the shapes
 * is. */
static void test_holds_out_shapes(void **state)
{
    (void)state;
    struct gemm_rows rows;
    make_rows(&rows, &tied_load, &truth, 0, 1);
    int held_out = 0;
    for (int i = 0; i < rows.list.n; i++) {
        const struct gemm_row *a = &rows.list.at[i];
        held_out += a->use == GEMM_HELD_OUT;
        for (int j = 0; j < rows.list.n; j++) {
            const struct kernel_work *b = &rows.list.at[j].work;
            bool same = a->work.m == b->m && a->work.n == b->n,
                 turned = a->work.m == b->n && a->work.n == b->m;
            if (a->work.k == b->k && (same || turned))
                assert_int_equal(a->use, rows.list.at[j].use);
        }
    }
    assert_in_range(held_out, rows.list.n / 4, rows.list.n * 5 / 12);
    vec_free(&rows.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovers_the_numbers),
        cmocka_unit_test(test_recovers_other_kernels),
        cmocka_unit_test(test_bears_noise_and_outliers),
        cmocka_unit_test(test_too_few_rows),
        cmocka_unit_test(test_holds_out_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
