#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

/* Draws of a distribution test. The seeds are fixed, so a test either always holds or never; the
 * bounds are BOUND standard errors of the estimate, which a correct generator misses with
 * probability 6e-5 a test. */
enum { N = 200000, BOUND = 4 };

static void draws_splitmix64(void **state)
{
    (void)state;
    /* First outputs for the seed 1234567, as published for SplitMix64
     * (rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64). A stream's key takes the place of
     * the seed. */
    static const uint64_t published[] = {UINT64_C(6457827717110365317),
        UINT64_C(3203168211198807973), UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821)};
    struct rng_stream stream = {.key = 1234567};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        assert_true(
            rng_uniform(&stream) == (double)(published[i] >> 11) / 9007199254740992.0); /* 2^53 */
    assert_true(stream.counter == 5);
}

static void first_values_are_golden(void **state)
{
    (void)state;
    /* Not derived: recorded once, so that a change of the keys or of GSL's algorithms, which would
     * change every noisy result, is noticed. */
    struct rng_stream stream = rng_stream(1, 2, 3);
    double uniform = rng_uniform(&stream);
    double gaussian = rng_gaussian(&stream, 1.0);
    double lognormal = rng_lognormal_mean1(&stream, 0.25);
    if (uniform != 0x1.4d144f479349cp-1 || gaussian != -0x1.c66687d8p-1 ||
        lognormal != 0x1.7e8cce58p+0)
        fail_msg("%a %a %a", uniform, gaussian, lognormal);
}

static void streams_do_not_depend_on_each_other(void **state)
{
    (void)state;
    enum { STREAMS = 8, DRAWS = 100 };
    double alone[STREAMS][DRAWS];
    struct rng_stream streams[STREAMS];
    for (uint64_t s = 0; s < STREAMS; s++) {
        streams[s] = rng_stream(7, 1, s);
        struct rng_stream own = streams[s];
        for (int i = 0; i < DRAWS; i++)
            alone[s][i] = rng_gaussian(&own, 1.0);
    }
    for (int i = 0; i < DRAWS; i++) /* in turn, backwards */
        for (int s = STREAMS - 1; s >= 0; s--)
            assert_true(rng_gaussian(&streams[s], 1.0) == alone[s][i]);
}

static void streams_are_uncorrelated(void **state)
{
    (void)state;
    /* Neighbouring seeds, kinds and ids. The correlation of n independent pairs has the standard
     * error 1 / sqrt(n). */
    static const struct {
        uint64_t seed;
        uint32_t kind;
        uint64_t id;
    } others[] = {{1, 0, 1}, {0, 1, 1}, {0, 0, 0}, {0, 0, 2}, {1, 0, 0}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        struct rng_stream a = rng_stream(0, 0, 1),
                          b = rng_stream(others[k].seed, others[k].kind, others[k].id);
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += (rng_uniform(&a) - 0.5) * (rng_uniform(&b) - 0.5);
        assert_true(
            fabs(sum / N * 12) < BOUND / sqrt(N)); /* the variance of a uniform number is 1/12 */
    }
}

struct moments {
    double mean, sd;
};

static struct moments moments(const double *x)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++)
        sum += x[i];
    for (int i = 0; i < N; i++)
        squares += (x[i] - sum / N) * (x[i] - sum / N);
    return (struct moments){sum / N, sqrt(squares / (N - 1))};
}

/* The standard error of a mean is sd / sqrt(n); that of a standard deviation sd sqrt((kurtosis - 1)
 * / (4 n)). */
static void check(const double *x, double mean, double sd, double kurtosis)
{
    struct moments m = moments(x);
    if (!(fabs(m.mean - mean) < BOUND * sd / sqrt(N)))
        fail_msg("mean %g, not %g", m.mean, mean);
    if (!(fabs(m.sd - sd) < BOUND * sd * sqrt((kurtosis - 1) / (4.0 * N))))
        fail_msg("sd %g, not %g", m.sd, sd);
}

static double x[N];

static void distributions_have_their_moments(void **state)
{
    (void)state;
    struct rng_stream stream = rng_stream(3, 1, 4);
    for (int i = 0; i < N; i++) {
        x[i] = rng_uniform(&stream);
        assert_true(x[i] >= 0 && x[i] < 1);
    }
    check(x, 0.5, sqrt(1.0 / 12), 1.8);
    for (int i = 0; i < N; i++)
        x[i] = rng_gaussian(&stream, 0.02);
    check(x, 0, 0.02, 3);
    for (int i = 0; i < N; i++) {
        x[i] = rng_exponential(&stream, 4);
        assert_true(x[i] >= 0);
    }
    check(x, 4, 4, 9);
}

static void lognormal_has_mean_one(void **state)
{
    (void)state;
    const double s = 0.25, v = s * s;
    static double logs[N];
    struct rng_stream stream = rng_stream(3, 1, 4);
    for (int i = 0; i < N; i++) {
        x[i] = rng_lognormal_mean1(&stream, s);
        assert_true(x[i] > 0);
        logs[i] = log(x[i]);
    }
    /* Mean 1, variance exp(s^2) - 1, kurtosis exp(4 s^2) + 2 exp(3 s^2) + 3 exp(2 s^2) - 3; its
     * logarithm is normal. */
    check(x, 1, sqrt(exp(v) - 1), exp(4 * v) + 2 * exp(3 * v) + 3 * exp(2 * v) - 3);
    check(logs, -v / 2, s, 3);
    assert_true(rng_lognormal_mean1(&stream, 0) == 1);
    assert_true(rng_gaussian(&stream, 0) == 0);
}

/* The quantile function in parts: the moments of the distribution, its tails, and one step of the
 * stream for each draw. */
static void many_of_one_sigma(void **state)
{
    (void)state;
    const double s = 0.02, v = s * s;
    struct rng_lognormal jitter = {0};
    struct rng_stream stream = rng_stream(3, 1, 4);
    rng_lognormal_prepare(&jitter, s);
    int below[] = {0, 0, 0, 0};
    const double normal[] = {-3, -1, 0.5, 2.9}, share[] = {0.001350, 0.158655, 0.691462, 0.998134};
    for (int i = 0; i < N; i++) {
        x[i] = rng_lognormal_drawn(&jitter, &stream);
        for (int k = 0; k < 4; k++)
            below[k] += log(x[i]) < s * normal[k] - v / 2;
    }
    assert_true(stream.counter == N);
    check(x, 1, sqrt(exp(v) - 1), exp(4 * v) + 2 * exp(3 * v) + 3 * exp(2 * v) - 3);
    for (int k = 0; k < 4; k++)
        assert_true(
            fabs(below[k] / (double)N - share[k]) < BOUND * sqrt(share[k] * (1 - share[k]) / N));
    stream = rng_stream(1, 2, 3);
    double first = rng_lognormal_drawn(&jitter, &stream);
    if (first != 0x1.01efbe8336d0bp+0)
        fail_msg("%a", first); /* golden, as those above */
}

/* One draw is any of them. The logarithm of the greatest of 8 has the mean and standard deviation
 * of the greatest of 8 normal draws (Harter, Biometrika 48 (1961), table 1: 1.42360; variance
 * 0.37290, Sarhan and Greenberg), of 2^40 (quantiles by the closed form) half of them lie below the
 * median. */
static void the_greatest_of_many_is_drawn_at_once(void **state)
{
    (void)state;
    const double s = 0.25;
    const struct {
        double n, mean, sd;
    } normal[] = {{1, 0, 1}, {8, 1.42360, sqrt(0.37290)}};
    for (size_t k = 0; k < sizeof normal / sizeof *normal; k++) {
        struct rng_stream stream = rng_stream(5, 1, 4);
        double sum = 0, squares = 0;
        for (int i = 0; i < N; i++) {
            double z =
                (log(rng_lognormal_max(&stream, s, normal[k].n)) + s * s / 2) / s - normal[k].mean;
            sum += z / N;
            squares += z * z / N;
        }
        assert_true(fabs(sum) < BOUND * normal[k].sd / sqrt(N));
        assert_true(fabs(sqrt(squares) / normal[k].sd - 1) < BOUND / sqrt(N));
    }
    struct rng_stream stream = rng_stream(5, 1, 4);
    const double n = 0x1p40,
                 median =
                     exp(s * 7.09854 - s * s / 2); /* above which one draw lies with log(2) / n */
    int below = 0;
    for (int i = 0; i < N; i++)
        below += rng_lognormal_max(&stream, s, n) < median;
    assert_true(fabs(below - N / 2.) < BOUND * sqrt(N) / 2);
    assert_true(rng_lognormal_max(&stream, 0, 8) == 1);
}

static void draws_are_multiples_of_2_to_the_minus_30(void **state)
{
    (void)state;
    struct rng_stream stream = rng_stream(9, 9, 9);
    for (int i = 0; i < 1000; i++) {
        double g = rng_gaussian(&stream, 1.7) * 0x1p30,
               l = rng_lognormal_mean1(&stream, 0.3) * 0x1p30;
        assert_true(g == nearbyint(g) && l == nearbyint(l));
    }
}

/* Expected values of the order statistics of 2 and of 8 normal draws: 1 / sqrt(pi), and Harter,
 * Biometrika 48 (1961), table 1. The order is the stream's, the values are not. */
static void normal_scores_are_what_is_expected(void **state)
{
    (void)state;
    static const double of_8[] = {1.42360, 0.85222, 0.47282, 0.15251};
    double scores[8];
    struct rng_stream stream = rng_stream(1, 2, 3), other = rng_stream(2, 2, 3);
    rng_normal_scores(&stream, scores, 1);
    assert_true(scores[0] == 0);
    rng_normal_scores(&stream, scores, 2);
    assert_true(fabs(fabs(scores[0]) - 0.56419) < 0.026 && scores[0] == -scores[1]);
    double first[8], sum = 0;
    rng_normal_scores(&stream, first, 8);
    rng_normal_scores(&other, scores, 8);
    int moved = 0, found = 0;
    for (int i = 0; i < 8; i++) {
        moved += first[i] < scores[i] || first[i] > scores[i];
        sum += scores[i];
        for (int j = 0; j < 4; j++)
            found += fabs(fabs(scores[i]) - of_8[j]) < 0.0111;
    }
    assert_true(moved > 0 && found == 8 && fabs(sum) < 1e-8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_splitmix64),
        cmocka_unit_test(first_values_are_golden),
        cmocka_unit_test(streams_do_not_depend_on_each_other),
        cmocka_unit_test(streams_are_uncorrelated),
        cmocka_unit_test(distributions_have_their_moments),
        cmocka_unit_test(lognormal_has_mean_one),
        cmocka_unit_test(many_of_one_sigma),
        cmocka_unit_test(the_greatest_of_many_is_drawn_at_once),
        cmocka_unit_test(draws_are_multiples_of_2_to_the_minus_30),
        cmocka_unit_test(normal_scores_are_what_is_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
