/* Who does what when: order, memory, losses; and a cluster of 64 workers with recorded times of points. */
#include "crew/dispatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double GIB = 1 << 30;

static void largest_first_of_equal_ones_the_last(void **state)
{
    (void)state;
    const double cost[] = {1, 5, 5, 2};
    const bool known[] = {false, false, false, true};
    struct dispatch dispatch;
    int *order = dispatch_order(cost, 4);
    dispatch_begin(&dispatch, 4, order, known, NULL);
    int machine = dispatch_add_machine(&dispatch, 0), worker = dispatch_add_worker(&dispatch, machine);
    assert_int_equal(dispatch_waiting(&dispatch), 3);
    static const int expected[] = {2, 1, 0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dispatch_next(&dispatch, worker), expected[i]);
        assert_int_equal(dispatch_done(&dispatch, worker), expected[i]);
    }
    assert_int_equal(dispatch_next(&dispatch, worker), DISPATCH_NONE);
    dispatch_end(&dispatch);
    free(order);
}

/* 10 GiB; jobs of 20, 6, 6 and 3. The largest runs alone, as nothing runs. Then 6, beside which 6 does not fit but 3
 * does. */
static void a_job_waits_for_room_and_smaller_ones_pass_it(void **state)
{
    (void)state;
    const double cost[] = {4, 3, 2, 1}, bytes[] = {20 * GIB, 6 * GIB, 6 * GIB, 3 * GIB};
    struct dispatch dispatch;
    int *order = dispatch_order(cost, 4);
    dispatch_begin(&dispatch, 4, order, NULL, bytes);
    int machine = dispatch_add_machine(&dispatch, 10 * GIB);
    int a = dispatch_add_worker(&dispatch, machine), b = dispatch_add_worker(&dispatch, machine);
    assert_int_equal(dispatch_next(&dispatch, a), 0);
    assert_int_equal(dispatch_next(&dispatch, b), DISPATCH_NONE);
    dispatch_done(&dispatch, a);
    assert_int_equal(dispatch_next(&dispatch, a), 1);
    assert_int_equal(dispatch_next(&dispatch, b), 3);
    dispatch_done(&dispatch, b);
    assert_int_equal(dispatch_next(&dispatch, b), DISPATCH_NONE);
    dispatch_done(&dispatch, a);
    assert_int_equal(dispatch_next(&dispatch, b), 2);
    assert_int_equal(dispatch_at_once(bytes, NULL, 4, 8, 10 * GIB), 1);
    assert_int_equal(dispatch_at_once(bytes, NULL, 4, 8, 1), 1); /* none fits: one runs nevertheless */
    assert_int_equal(dispatch_at_once(bytes + 1, NULL, 3, 8, 13 * GIB), 2);
    assert_int_equal(dispatch_at_once(bytes + 1, NULL, 3, 8, 16 * GIB), 8); /* all three; none is left to limit */
    dispatch_end(&dispatch);
    free(order);
}

/* Lost once: the next to be handed out. Lost twice: last, and nothing runs beside it. Three times: failed. */
static void a_lost_job_comes_again_then_alone_then_fails(void **state)
{
    (void)state;
    const double cost[] = {3, 2, 1};
    struct dispatch dispatch;
    bool failed = true;
    int *order = dispatch_order(cost, 3);
    dispatch_begin(&dispatch, 3, order, NULL, NULL);
    int machine = dispatch_add_machine(&dispatch, 0);
    int a = dispatch_add_worker(&dispatch, machine), b = dispatch_add_worker(&dispatch, machine);
    assert_int_equal(dispatch_next(&dispatch, a), 0);
    assert_int_equal(dispatch_lost(&dispatch, a, &failed), 0);
    assert_false(failed);
    assert_int_equal(dispatch_next(&dispatch, b), 0);
    assert_int_equal(dispatch_next(&dispatch, a), 1);
    dispatch_lost(&dispatch, b, &failed);
    assert_false(failed);
    assert_int_equal(dispatch_next(&dispatch, b), 2);
    dispatch_done(&dispatch, b);
    assert_int_equal(dispatch_next(&dispatch, b), DISPATCH_NONE); /* a still runs */
    assert_int_equal(dispatch_waiting(&dispatch), 1);
    dispatch_done(&dispatch, a);
    assert_int_equal(dispatch_next(&dispatch, b), 0);
    dispatch_lost(&dispatch, b, &failed);
    assert_true(failed);
    assert_int_equal(dispatch_next(&dispatch, a), DISPATCH_NONE);
    assert_int_equal(dispatch_waiting(&dispatch), 0);
    dispatch_end(&dispatch);
    free(order);
}

/* ---- a simulated cluster ---- */

struct recorded {
    double cost, seconds;
};

/* point_times.csv: its head says how it was recorded. */
static struct recorded *read_times(int *n)
{
    FILE *in = fopen(FLOPCAST_TEST_DIR "/point_times.csv", "r");
    VEC(struct recorded) times = {0};
    char line[256];
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        struct recorded one;
        if (sscanf(line, "%*[^,],%*d,%lf,%lf", &one.cost, &one.seconds) == 2)
            vec_push(&times, one);
    }
    fclose(in);
    *n = times.n;
    return times.at;
}

/* Share of their time that workers are at jobs until the last one ends. A job is handed out latency_s after the worker
 * is idle, one at a time, which takes the dispatcher service_s. */
static double busy(const double *cost, const double *seconds, int n, int workers, double latency_s, double service_s)
{
    struct dispatch dispatch;
    double *free_at = xcalloc((size_t)workers, sizeof *free_at), work_s = 0, end_s = 0, dispatcher_s = 0;
    int *order = dispatch_order(cost, n), done = 0;
    dispatch_begin(&dispatch, n, order, NULL, NULL);
    int machine = dispatch_add_machine(&dispatch, 0);
    for (int w = 0; w < workers; w++)
        dispatch_add_worker(&dispatch, machine);
    while (done < n) {
        int next = 0;
        for (int w = 1; w < workers; w++)
            if (free_at[w] < free_at[next])
                next = w;
        if (dispatch.workers.at[next].job != DISPATCH_NONE)
            dispatch_done(&dispatch, next);
        int job = dispatch_next(&dispatch, next);
        assert_int_not_equal(job, DISPATCH_NONE);
        dispatcher_s = (free_at[next] > dispatcher_s ? free_at[next] : dispatcher_s) + service_s;
        free_at[next] = dispatcher_s + latency_s + seconds[job];
        work_s += seconds[job];
        end_s = free_at[next] > end_s ? free_at[next] : end_s;
        done++;
    }
    free(order);
    free(free_at);
    dispatch_end(&dispatch);
    return work_s / (end_s * workers);
}

/* 10,000 points whose times and estimates were recorded. A message takes 0.1 ms (assumed: ten times what MPI takes on
 * Ethernet), and handing a job out and taking its answer keep rank 0 busy for 40 us (measured: 36 us,
 * tests/bench/bench_crew). Handed out in the order of the sweep, with the large ones at the end, the same points leave
 * workers idle: so it is the order that keeps them at work. */
static void a_cluster_of_64_is_busy(void **state)
{
    (void)state;
    enum { POINTS = 10000, WORKERS = 64 };
    int n = 0;
    struct recorded *times = read_times(&n);
    double cost[POINTS], seconds[POINTS], total = 0, largest = 0, same[POINTS];
    assert_true(n >= 1000);
    for (int i = 0; i < POINTS; i++) { /* each of them equally often, grown as a sweep: all of a size, then the next */
        const struct recorded *one = &times[(int)((long long)i * n / POINTS)];
        cost[i] = one->cost;
        seconds[i] = one->seconds;
        same[i] = -i; /* the first first: in the order of the sweep */
        total += seconds[i];
        largest = seconds[i] > largest ? seconds[i] : largest;
    }
    double with_order = busy(cost, seconds, POINTS, WORKERS, 100e-6, 40e-6);
    double without = busy(same, seconds, POINTS, WORKERS, 100e-6, 40e-6);
    print_message("mean %.3g s, largest %.3g s; busy %.2f %%, in the order of the sweep %.2f %%\n", total / POINTS,
        largest, 100 * with_order, 100 * without);
    assert_true(largest > 10 * total / POINTS); /* a heavy tail */
    assert_true(with_order >= 0.95);
    assert_true(without < with_order);
    free(times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest_first_of_equal_ones_the_last),
        cmocka_unit_test(a_job_waits_for_room_and_smaller_ones_pass_it),
        cmocka_unit_test(a_lost_job_comes_again_then_alone_then_fails),
        cmocka_unit_test(a_cluster_of_64_is_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
