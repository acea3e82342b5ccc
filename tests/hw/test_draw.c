/* Draws of fitted parameters: their mean and spread, what stays, what is shared. */
#include "hw/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"

static const struct quantity fitted = {100e9, 5e9, QUANTITY_FITTED, "a fit"};

static struct hw machine(void)
{
    struct hw hw = {0};
    hw.gpu.hbm_bandwidth = (struct quantity){2e12, 0, QUANTITY_DATASHEET, "a datasheet"};
    hw.gpu.gemm[DTYPE_BF16].load_bandwidth = hw.gpu.gemm[DTYPE_FP16].load_bandwidth = fitted;
    hw.gpu.gemm[DTYPE_FP32].load_bandwidth = fitted;
    hw.gpu.gemm[DTYPE_FP32].load_bandwidth.source = "another fit";
    hw.gpu.gemm_sustained = (struct quantity){0.99, 0.1, QUANTITY_FITTED, "a fit"};
    return hw;
}

/* 10^4 draws: the mean is within 4 sigma / sqrt(n) = 4 %, the variance within 4 sqrt(2 / n) = 5.7 %, of sigma's. */
static void mean_and_spread(void **state)
{
    (void)state;
    enum { N = 10000 };
    double sum = 0, squares = 0, product = 0;
    for (int k = 0; k < N; k++) {
        struct hw hw = machine();
        hw_draw(&hw, 1, (uint64_t)k);
        double z = (hw.gpu.gemm[DTYPE_BF16].load_bandwidth.value - fitted.value) / fitted.std_error;
        double other = (hw.gpu.gemm[DTYPE_FP32].load_bandwidth.value - fitted.value) / fitted.std_error;
        sum += z;
        squares += z * z;
        product += z * other;
        assert_near(hw.gpu.gemm[DTYPE_FP16].load_bandwidth.value, hw.gpu.gemm[DTYPE_BF16].load_bandwidth.value, 0);
        assert_near(hw.gpu.hbm_bandwidth.value, 2e12, 0);
        assert_true(hw.gpu.gemm_sustained.value <= 1); /* cut at the bound of a share: every other draw is above */
    }
    assert_near(sum / N, 0, 0.04);
    assert_near(squares / N, 1, 0.057);
    assert_near(product / N, 0, 0.04); /* another fit is another draw */
}

static void draws_are_reproducible(void **state)
{
    (void)state;
    struct hw a = machine(), b = machine(), other_draw = machine(), other_seed = machine();
    hw_draw(&a, 7, 3);
    hw_draw(&b, 7, 3);
    hw_draw(&other_draw, 7, 4);
    hw_draw(&other_seed, 8, 3);
    assert_near(a.gpu.gemm_sustained.value, b.gpu.gemm_sustained.value, 0);
    double value = a.gpu.gemm[DTYPE_BF16].load_bandwidth.value;
    assert_true(value != other_draw.gpu.gemm[DTYPE_BF16].load_bandwidth.value);
    assert_true(value != other_seed.gpu.gemm[DTYPE_BF16].load_bandwidth.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_spread),
        cmocka_unit_test(draws_are_reproducible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
