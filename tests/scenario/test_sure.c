/* Intervals in closed form, their file, and what is said of them. */
#include "workspace.h"

#include "../near.h"
#include "scenario/sure.h"

#include <gsl/gsl_errno.h>
#include <math.h>

static const struct sure_numbers made = {.runs = 100,
    .makers = 10,
    .slower = 0.1,
    .faster = 0.2,
    .of = {[SURE_LOW_MFU] = 0.5,
        [SURE_FP8] = 0.3,
        [SURE_NODES] = 0.05,
        [SURE_BLACKWELL] = 0.7,
        [SURE_TENSOR] = -0.2},
    .new_slower = 1.5,
    .new_faster = 3,
    .ratios = {{10, 3, 0.02, 0.03}, {10, 3, 0.05, 0.06}},
    .peak = {-0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6,
        0.7, 0.8, 0.9}};

static void speeds(void **state)
{
    (void)state;
    struct sure_terms easy = sure_terms(0.5, "bf16_mixed", 1, "Ampere", false);
    struct sure_range range = sure_speed(&made, &easy, true);
    assert_near(range.low, exp(-0.1), 1e-12);
    assert_near(range.high, exp(0.2), 1e-12);
    struct sure_terms hard = sure_terms(0.2, "fp8_mixed", 8, "Blackwell", true);
    range = sure_speed(&made, &hard, true);
    assert_near(log(range.low), -0.1 * exp(0.5 * log(2) + 0.3 + 0.05 * 3), 1e-12);
    assert_near(log(range.high), 0.2 * exp(0.7 - 0.2), 1e-12);
    struct sure_range wider = sure_speed(&made, &hard, false);
    assert_near(log(wider.low) / log(range.low), 1.5, 1e-12);
    assert_near(log(wider.high) / log(range.high), 3, 1e-12);
    assert_near(sure_terms(0, "fp32", 0.5, "Volta", false).of[SURE_LOW_MFU], 1.5, 0); /* at most */
    assert_near(
        sure_terms(0, "fp32", 0.5, "Volta", false).of[SURE_NODES], 0, 0); /* a part of a node */
}

static void ratios_and_peaks(void **state)
{
    (void)state;
    assert_near(log(sure_ratio(&made, false, 4).low), -0.04, 1e-12);
    assert_near(log(sure_ratio(&made, true, -4).high), 0.12, 1e-12); /* to a smaller cluster */
    assert_near(sure_ratio(&made, true, 0).low, 1, 0);
    assert_near(sure_fits(&made, 10, 10), 0.5, 1e-12);
    assert_near(
        sure_fits(&made, 10, 10 * exp(0.25)), 0.5 + 0.25 / 2, 1e-9); /* between two quantiles */
    assert_near(sure_fits(&made, 10, 1000), 0.95, 1e-12);
    assert_near(sure_fits(&made, 10, 0.1), 0.05, 1e-12);
    assert_near(log(sure_peak(&made).high), 0.9, 1e-12);
}

static void digits(void **state)
{
    (void)state;
    assert_int_equal(sure_digits(90, 110, 2), 1); /* half is 10, a twentieth 0.5 */
    assert_int_equal(sure_digits(9000, 11000, 2), -1);
    assert_int_equal(sure_digits(0.9, 1.1, 2), 2);
    assert_int_equal(sure_digits(1, 1, 2), 2);
}

/* The project's file is read, has the generations that runs were measured on, and widens a job that
 * is harder. */
static void the_file(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct sure_numbers numbers;
    assert_int_equal(
        sure_load(&numbers, FLOPCAST_SOURCE_DIR "/topologies/fitted/sure.yaml", &arena, &diag),
        STATUS_OK);
    assert_string_equal(diag.text, "");
    assert_non_null(sure_evidence(&numbers, "Hopper"));
    assert_null(sure_evidence(&numbers, "CDNA"));
    struct sure_terms easy = sure_terms(0.5, "bf16_mixed", 1, "Hopper", false);
    struct sure_terms hard = sure_terms(0.1, "fp8_mixed", 64, "Hopper", false);
    struct sure_range a = sure_speed(&numbers, &easy, true), b = sure_speed(&numbers, &hard, true);
    assert_true(b.low < a.low && a.low > 0.7 && a.low < 1 && a.high > 1 && a.high < 1.5);
    arena_release(&arena);
}

static void what_is_wrong_with_a_file(void **state)
{
    (void)state;
    static const char text[] = "speed: {runs: 9, makers: 3, slower: 10 %, low_mfu: 0.1, fp8: 0, "
                               "node_doubling: 0, faster: 10 %, blackwell: 0, "
                               "tensor: 0, new_slower: 1, new_faster: 1}\n"
                               "ratio: {runs: 1, makers: 1, slower: 1 %, faster: 1 "
                               "%}\nratio_shared: {runs: 1, makers: 1, slower: 1 %, faster: 1 "
                               "%}\nloss: {runs: 1, makers: 1, value: 1 %, std_error: 1 "
                               "%}\npeak: {runs: 1, makers: 1, quantiles: [";
    static const struct {
        const char *list, *message;
    } cases[] = {{"0, 1", "quantiles is a list of 19 numbers"},
        {"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,0",
            "'0' is no number that is at least the one before it"},
        {"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,x,0", "'x' is no number"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct sure_numbers numbers;
        write_text(
            "sure.yaml", arena_printf(&arena, "%s%s]}\ngenerations: []\n", text, cases[i].list));
        assert_int_equal(sure_load(&numbers, "sure.yaml", &arena, &diag), STATUS_INPUT);
        assert_non_null(strstr(diag.text, cases[i].message));
        arena_release(&arena);
    }
}

/* Of one measurement the mean and the variance are those of two jointly normal numbers; a second
 * one on the same job adds little, one that is not alike nothing. */
static void measurements_by_closed_form(void **state)
{
    (void)state;
    struct sure_numbers numbers = {
        .alike = {[SURE_MAKER] = 0, [SURE_MODEL] = 0.2, [SURE_LAYOUT] = 0.5, [SURE_JOB] = 0.8},
        .given_wider = 1};
    const struct sure_range before = {true, exp(-0.2), exp(0.3), 1};
    struct sure_range range = before;
    double scaled[] = {sure_scaled(&before, -0.1), 2}, with[] = {0.8, 0}, among[] = {1, 0, 0, 1};
    assert_near(scaled[0], -0.5, 1e-12);
    assert_near(sure_scaled(&before, 0.15), 0.5, 1e-12);
    sure_given(&range, &numbers, 1, scaled, with, among);
    assert_near(log(range.middle), 0.8 * -0.5 * 0.2, 1e-12);
    assert_near(log(range.low / range.middle), -0.2 * 0.6, 1e-12);
    assert_near(log(range.high / range.middle), 0.3 * 0.6, 1e-12);
    struct sure_range two = before;
    sure_given(&two, &numbers, 2, scaled, with, among); /* the second says nothing of this job */
    assert_near(two.middle, range.middle, 1e-12);
    assert_near(two.high, range.high, 1e-12);
    two = before; /* no correlations: nothing is learnt */
    gsl_set_error_handler_off();
    sure_given(&two, &numbers, 2, scaled, (const double[]){0.8, 0.8}, (const double[]){1, 2, 2, 1});
    assert_near(two.middle, 1, 1e-12);
    assert_near(two.high, before.high, 1e-12);
    numbers.given_wider = 10; /* no measurement makes an interval wider */
    range = before;
    sure_given(&range, &numbers, 1, scaled, with, among);
    assert_near(log(range.high / range.low), 0.5, 1e-12);
    /* By doublings from what a run shares with itself down to jobs of the same layout. */
    assert_near(sure_alike(&numbers, SURE_JOB, 0), 0.98, 1e-12);
    assert_near(sure_alike(&numbers, SURE_JOB, 1), 0.8, 1e-12);
    assert_near(sure_alike(&numbers, SURE_JOB, -1), 0.8, 1e-12);
    assert_near(sure_alike(&numbers, SURE_JOB, 40), 0.5, 1e-6);
    assert_near(sure_alike(&numbers, SURE_MODEL, 3), 0.2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measurements_by_closed_form),
        cmocka_unit_test(speeds),
        cmocka_unit_test(ratios_and_peaks),
        cmocka_unit_test(digits),
        cmocka_unit_test(the_file),
        cmocka_unit_test(what_is_wrong_with_a_file),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
