/* What a prediction depends on: sums worked by hand, one parameter whose effect is known, and
 * samples of all of them. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "study/sensitivity.h"

#include <gsl/gsl_statistics_double.h>

#define QUIET "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}\n"
static const struct scenario_uncertainty nothing_known;

/* Effects of 3 and 4 %: 5 % where they are independent, the root of 9 + 16 + 2 x 0.5 x 12 = 37 with
 * a correlation of a half. */
static void sums_of_effects(void **state)
{
    (void)state;
    double factor[] = {1, 0, 0.5, sqrt(0.75)};
    const char *keys[] = {"rate", "latency"}, *ids[] = {"a", "a"};
    struct hw_fit fit = {2, keys, ids, factor};
    const struct hw_parameter rate = {.key = "rate", .id = "a"},
                              latency = {.key = "latency", .id = "a"},
                              other = {.key = "latency", .id = "b"};
    struct sensitivity_part parts[] = {{&latency, 100 * exp(-0.03), 100 * exp(0.03), 0},
        {&rate, 100 * exp(-0.04), 100 * exp(0.04), 0}};
    struct sensitivity sum = {.parts = parts, .n_parts = 2};
    sensitivity_sum(&sum, &(struct hw_fits){&fit, 1});
    assert_near(sum.independent, 0.05, 1e-12);
    assert_near(sum.correlated, sqrt(0.0037), 1e-12);
    assert_ptr_equal(parts[0].parameter, &rate); /* the larger first */
    parts[1].parameter = &other;                 /* of another fit: independent of the first */
    sensitivity_sum(&sum, &(struct hw_fits){&fit, 1});
    assert_near(sum.correlated, 0.05, 1e-12);
    double swing = parts[1].low; /* less where the number is higher: the sum of 4 and -3 % with a
                                    half is the root of 13 */
    parts[1] = (struct sensitivity_part){&latency, parts[1].high, swing, 0};
    sensitivity_sum(&sum, &(struct hw_fits){&fit, 1});
    assert_near(sum.correlated, sqrt(0.0013), 1e-12);
}

enum { K = 200 };

/* The standard deviation of the logarithm of speed over samples. */
static double spread_of_samples(struct loaded *loaded, double *of_draws)
{
    struct scenario_result results[1];
    struct arena arenas[1] = {ARENA_INIT};
    const struct scenario_work work = {0};
    assert_int_equal(
        scenario_simulate_all(results, arenas, &loaded->set, NULL, NULL, &loaded->diag), STATUS_OK);
    assert_int_equal(scenario_sample_some(
                         results, arenas, &loaded->set, &nothing_known, K, &work, &loaded->diag),
        STATUS_OK);
    double speeds[K], draws[K];
    for (int k = 0; k < K; k++) {
        speeds[k] = log(results[0].samples[k].value[SAMPLED_TFLOPS]);
        draws[k] = hw_draw_normal("host", "strategy_default_options",
            (uint64_t)loaded->set.points[0].options.exec.seed, (uint64_t)k);
    }
    *of_draws = gsl_stats_sd(draws, 1, K);
    arena_release(&arenas[0]);
    return gsl_stats_sd(speeds, 1, K);
}

static struct loaded *load(int steps_of_host_s)
{
    static const struct scenario_override set[] = {
        {"train.micro_batch", "64"}, {"run.warmup_steps", "2"}};
    struct loaded *loaded = load_text(BASE QUIET, set, 2);
    assert_string_equal(loaded->diag.text, "");
    if (steps_of_host_s > 0)
        loaded->set.points[0].options.strategy.host.step_s = steps_of_host_s;
    return loaded;
}

static struct sensitivity sensitivity_of(struct loaded *loaded, struct arena *arena)
{
    struct sensitivity out;
    assert_int_equal(scenario_sensitivity(&out, &loaded->set.points[0], &nothing_known, NULL, NULL,
                         arena, &loaded->diag),
        STATUS_OK);
    return out;
}

/* The host works for hours in each step, and nothing else counts: speed is 1 / cost, so that one
 * standard deviation of the cost, DRAW_ASSUMED, is one of speed, and samples are spread as far as
 * their draws are times that. */
static void one_parameter(void **state)
{
    (void)state;
    struct loaded *loaded = load(10000);
    struct arena arena = ARENA_INIT;
    double of_draws;
    struct sensitivity out = sensitivity_of(loaded, &arena);
    assert_null(out.parts[0].parameter);
    assert_near(
        out.parts[0].low, out.tflops_per_gpu * exp(DRAW_ASSUMED), 1e-4 * out.tflops_per_gpu);
    assert_near(
        out.parts[0].high, out.tflops_per_gpu * exp(-DRAW_ASSUMED), 1e-4 * out.tflops_per_gpu);
    assert_near(out.parts[0].effect, -DRAW_ASSUMED, 1e-4);
    assert_near(out.independent, DRAW_ASSUMED, 1e-4);
    double spread = spread_of_samples(loaded, &of_draws);
    assert_near(spread, out.independent * of_draws, 1e-3);
    arena_release(&arena);
    unload(loaded);
}

/* All of a machine's numbers: their squares add up to the variance of the samples, as far as 200
 * samples show it (one standard error of their spread is 1 / sqrt(400) = 5 %; four of them) and the
 * step is a product of powers. */
static void all_parameters(void **state)
{
    (void)state;
    struct loaded *loaded = load(0);
    struct arena arena = ARENA_INIT;
    double of_draws;
    struct sensitivity out = sensitivity_of(loaded, &arena);
    double spread = spread_of_samples(loaded, &of_draws);
    printf("%d parts, %d idle; %.4f, samples %.4f\n", out.n_parts, out.n_idle, out.independent,
        spread);
    assert_true(out.n_parts > 3 && out.n_idle > 3);
    assert_near(spread / out.independent, 1, 0.2);
    assert_near(out.correlated, out.independent, 1e-12); /* no fits are given */
    arena_release(&arena);
    unload(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_of_effects),
        cmocka_unit_test(one_parameter), cmocka_unit_test(all_parameters)};
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
