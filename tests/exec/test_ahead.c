/* Kernels whose ends are no events (exec/state.h, struct ahead) still count when the host asks how
 * many it is ahead.
 *
 * The launch queue holds 1024; when it is full, the host goes on at 512. Issuing the first kernels
 * costs the host nothing and each of the SLOW last ones 20 us, twenty times as long as they take:
 * the step ends when the last one, issued 20 us after the one before, has run, so the time of the
 * step shows when the host was woken. */
#include "exec/exec.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

enum { QUEUE = 1024, WAKES = QUEUE / 2, SLOW = 1000 };
static const double us = 1e-6, ms = 1e-3; /* ms: mover() takes milliseconds, times are seconds */
static const double LONG = 20, SLOW_ISSUE = 20, SHORT = 1; /* us */

static void kernels(struct fixture *f, int n, double gpu_us, double host_us)
{
    for (int i = 0; i < n; i++)
        mover(f, STREAM_COMPUTE, gpu_us * us / ms, host_us * us);
}

static void ends_when_woken_at(struct fixture *f, double woken_us)
{
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        f->options.one_by_one = one_by_one == 1;
        exec_run(&f->result, &f->plan, &f->hw, &f->options, &f->arena);
        near(f->result.step_time_s, (woken_us + SLOW * SLOW_ISSUE + SHORT) * us);
    }
}

/* Full before op 1024, at once; half of it has run after 512 long ones. */
static void a_full_queue_wakes_the_host_at_half(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    kernels(&f, QUEUE, LONG, 0);
    kernels(&f, SLOW, SHORT, SLOW_ISSUE);
    plan_end(&f.builder);
    ends_when_woken_at(&f, WAKES * LONG);
    end(&f);
}

/* The 1000th kernel takes the host 110 us, in which five end: the queue is full five ops later, and
 * half empty when as many more have run. */
static void what_has_ended_makes_room_in_the_queue(void **state)
{
    (void)state;
    enum { BEFORE = 999, ENDED = 5 };
    struct fixture f;
    begin(&f, 1);
    kernels(&f, BEFORE, LONG, 0);
    kernels(&f, 1, LONG, 110);
    kernels(&f, QUEUE + ENDED - BEFORE - 1, LONG, 0);
    kernels(&f, SLOW, SHORT, SLOW_ISSUE);
    plan_end(&f.builder);
    ends_when_woken_at(&f, (WAKES + ENDED) * LONG);
    end(&f);
}

/* Beside them 60 kernels on another stream. Of 197 us: 512 have ended after 9300 us, 465 long ones
 * and 47 of these, the last at 9259, so the host is woken by a kernel that was not the one to wake
 * it when it began. Of 203 us: after 46 x 203 us it is one of these that wakes it, 466 long ones
 * having ended. */
static void other_streams_wake_the_host_too(void **state)
{
    (void)state;
    enum { BESIDE = 60 };
    static const double beside[][2] = {
        {197, 9300}, {203, 46 * 203}}; /* us: each takes, the host is woken at */
    for (size_t c = 0; c < sizeof beside / sizeof *beside; c++) {
        struct fixture f;
        begin(&f, 1);
        for (int i = 0; i < BESIDE; i++)
            mover(&f, STREAM_UNSHARD, beside[c][0] * us / ms, 0);
        kernels(&f, QUEUE - BESIDE, LONG, 0);
        kernels(&f, SLOW, SHORT, SLOW_ISSUE);
        plan_end(&f.builder);
        ends_when_woken_at(&f, beside[c][1]);
        end(&f);
    }
}

/* A timeline has every kernel of the last step, one after another. */
static void a_timeline_has_every_kernel(void **state)
{
    (void)state;
    enum { N = 30 };
    static const int ranks[] = {0};
    struct fixture f;
    begin(&f, 1);
    kernels(&f, N, LONG, 0);
    f.options.warmup_steps = 1;
    f.options.trace_ranks = ranks;
    f.options.n_trace_ranks = 1;
    run(&f);
    assert_int_equal(f.result.n_spans, N);
    for (int i = 0; i < N; i++) {
        near(s_from_ps(f.result.spans[i].end - f.result.spans[i].start), LONG * us);
        near(s_from_ps(f.result.spans[i].start), (N + i) * LONG * us);
    }
    end(&f);
}

/* Kernels of a month and a half each, more than fit into a ps_t: the run is overlong, as it is
 * kernel by kernel. */
static void kernels_beyond_the_horizon_end_the_run(void **state)
{
    (void)state;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        struct fixture f;
        begin(&f, 1);
        f.options.one_by_one = one_by_one == 1;
        kernels(&f, 10, 1e14, 0);
        run(&f);
        assert_true(f.result.overlong);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_wakes_the_host_at_half),
        cmocka_unit_test(what_has_ended_makes_room_in_the_queue),
        cmocka_unit_test(kernels_beyond_the_horizon_end_the_run),
        cmocka_unit_test(other_streams_wake_the_host_too),
        cmocka_unit_test(a_timeline_has_every_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
