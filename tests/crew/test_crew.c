/* Loops over jobs on threads: the same results and messages, in the order of the jobs; the order of
 * beginning; shards. Ranks of MPI are tested by tests/fault/shards*.sh. */
#include "base/threads.h"
#include "base/vec.h"
#include "crew/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 40 };

struct work {
    double made[N];
    int ended, enough;
};

static enum status make(void *self, int job, struct diag *diag)
{
    struct work *work = self;
    work->made[job] = 1.0 / (job + 1);
    if (job % 10 == 3)
        diag_warn(diag, (struct source_pos){0}, "job %d", job);
    return job == 33 ? diag_input(diag, (struct source_pos){0}, "job 33 is wrong") : STATUS_OK;
}

static bool ended(void *self, int job, enum status status)
{
    struct work *work = self;
    (void)job;
    (void)status;
    return ++work->ended != work->enough;
}

static enum status run(struct work *work, int threads, const bool *known, struct diag *diag)
{
    double cost[N];
    for (int i = 0; i < N; i++)
        cost[i] = i;
    int *order = crew_order(cost, N);
    threads_limit(threads);
    const struct crew_loop loop = {
        .n = N, .order = order, .known = known, .self = work, .job = make, .ended = ended};
    enum status status = crew_run(&loop, diag);
    free(order);
    return status;
}

static const char said[] = "warning: job 3\nwarning: job 13\nwarning: job 23\nwarning: job 33\n"
                           "error: job 33 is wrong\n";

static void any_number_of_threads_makes_the_same(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2 * N; threads *= 3) {
        struct diag diag = DIAG_INIT;
        struct work work = {0};
        assert_int_equal(run(&work, threads, NULL, &diag), STATUS_INPUT);
        for (int i = 0; i < N; i++)
            assert_true(work.made[i] == 1.0 / (i + 1));
        assert_int_equal(work.ended, N);
        assert_string_equal(diag.text, said);
    }
}

enum { OUTER = 2, INNER = 8 };
struct nest {
    int threads[OUTER], made[OUTER][INNER];
};
struct within {
    int *made;
};

static enum status make_within(void *self, int job, struct diag *diag)
{
    struct within *within = self;
    (void)diag;
    within->made[job] = job + 1;
    return STATUS_OK;
}

static enum status make_nest(void *self, int job, struct diag *diag)
{
    static const int order[INNER] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct nest *nest = self;
    struct within within = {nest->made[job]};
    nest->threads[job] = threads_count();
    return crew_run(
        &(struct crew_loop){.n = INNER, .order = order, .self = &within, .job = make_within}, diag);
}

/* Two jobs on eight threads have four each for a loop within; more jobs than threads one. */
static void loops_within_share_the_threads(void **state)
{
    (void)state;
    static const int order[OUTER] = {0, 1};
    for (int threads = 1; threads <= 8; threads *= 2) {
        struct nest nest = {{0}, {{0}}};
        struct diag diag = DIAG_INIT;
        threads_limit(threads);
        int all = threads_count(); /* 1 without OpenMP */
        const struct crew_loop loop = {.n = OUTER, .order = order, .self = &nest, .job = make_nest};
        assert_int_equal(crew_run(&loop, &diag), STATUS_OK);
        for (int i = 0; i < OUTER; i++) {
            assert_int_equal(nest.threads[i], all > OUTER ? all / OUTER : 1);
            for (int k = 0; k < INNER; k++)
                assert_int_equal(nest.made[i][k], k + 1);
        }
    }
}

static void what_is_known_is_left_out(void **state)
{
    (void)state;
    bool known[N] = {false};
    struct diag diag = DIAG_INIT;
    struct work work = {0};
    for (int i = 0; i < N; i++)
        known[i] = i % 2 == 1;
    assert_int_equal(run(&work, 3, known, &diag), STATUS_OK); /* job 33 among them */
    assert_int_equal(work.ended, N / 2);
    for (int i = 0; i < N; i++)
        assert_true(work.made[i] == (known[i] ? 0 : 1.0 / (i + 1)));
}

/* Those that are under way come to their end: at most one a thread more. */
static void a_loop_that_is_ended_begins_nothing_more(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct work work = {.enough = 5};
    run(&work, 2, NULL, &diag);
    assert_in_range(work.ended, 5, 6);
}

static void largest_first_of_equal_ones_the_last(void **state)
{
    (void)state;
    const double cost[] = {1, 5, 5, 2};
    static const int expected[] = {2, 1, 3, 0};
    int *order = crew_order(cost, 4);
    assert_memory_equal(order, expected, sizeof expected);
    free(order);
}

/* Each job is in one shard, and no shard costs more than the mean and the largest job. */
static void shards_share_the_cost(void **state)
{
    (void)state;
    enum { JOBS = 101, SHARDS = 4 };
    double cost[JOBS], total = 0, largest = 0;
    int with[JOBS], times[JOBS] = {0};
    for (int i = 0; i < JOBS; i++) {
        cost[i] = 1 + (i * 37) % 101;
        with[i] = i;
        total += cost[i];
    }
    with[50] = with[99] = 3;
    largest = cost[3] + cost[50] + cost[99];
    for (int i = 0; i < JOBS; i++)
        largest = cost[i] > largest ? cost[i] : largest;
    for (int shard = 1; shard <= SHARDS; shard++) {
        bool mine[JOBS];
        double sum = 0;
        crew_shard(mine, cost, with, JOBS, shard, SHARDS);
        for (int i = 0; i < JOBS; i++) {
            times[i] += mine[i];
            sum += mine[i] ? cost[i] : 0;
        }
        assert_true(sum <= total / SHARDS + largest);
        assert_int_equal(mine[50], mine[3]);
        assert_int_equal(mine[99], mine[3]);
    }
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(times[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_makes_the_same),
        cmocka_unit_test(loops_within_share_the_threads),
        cmocka_unit_test(what_is_known_is_left_out),
        cmocka_unit_test(a_loop_that_is_ended_begins_nothing_more),
        cmocka_unit_test(largest_first_of_equal_ones_the_last),
        cmocka_unit_test(shards_share_the_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
