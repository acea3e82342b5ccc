/* How many nodes are slow, against the binomial distribution. */
#include "scenario/lottery.h"

#include <gsl/gsl_cdf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"

/* The smallest number with P(number or fewer) > u. */
static void numbers_are_binomial(void **state)
{
    (void)state;
    static const int nodes[] = {1, 2, 5, 64, 300};
    static const double shares[] = {0.005, 0.1, 0.5, 0.9};
    for (size_t n = 0; n < sizeof nodes / sizeof *nodes; n++)
        for (size_t s = 0; s < sizeof shares / sizeof *shares; s++)
            for (double u = 0.0005; u < 1; u += 0.0317) {
                int64_t slow = lottery_at(u, shares[s], nodes[n]);
                assert_true(
                    gsl_cdf_binomial_P((unsigned)slow, shares[s], (unsigned)nodes[n]) > u - 1e-9);
                assert_true(slow == 0 || gsl_cdf_binomial_P((unsigned)slow - 1, shares[s],
                                             (unsigned)nodes[n]) <= u + 1e-9);
            }
    assert_int_equal(lottery_at(0.3, 1, 7), 7);
    /* Where the first term is less than any double: 0.98^50,000. */
    for (double u = 0.01; u < 1; u += 0.07) {
        int64_t slow = lottery_at(u, 0.02, 50000);
        assert_true(gsl_cdf_binomial_P((unsigned)slow, 0.02, 50000) > u - 1e-6);
        assert_true(gsl_cdf_binomial_P((unsigned)slow - 1, 0.02, 50000) <= u + 1e-6);
    }
}

static void a_share_of_clusters_has_some(void **state)
{
    (void)state;
    struct noise_options noise = {
        .gpu_speed_spread = 0.01, .straggler_slowdown = 0.1, .straggler_share = 0.02};
    assert_near(lottery_some(&noise, 10), 1 - gsl_cdf_binomial_P(0, 0.02, 10), 1e-12);
    noise.slow_hosts = 1; /* that many, and no lottery */
    assert_true(lottery_some(&noise, 10) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_binomial), cmocka_unit_test(a_share_of_clusters_has_some)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
