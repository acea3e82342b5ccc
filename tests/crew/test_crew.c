/* Loops over jobs on threads and on worker processes: the same results and messages, in the order of the jobs; a worker
 * that dies gives its job back. */
#include "base/threads.h"
#include "crew/crew.h"
#include "crew/dispatch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 40 };

struct work {
    double made[N];
    pid_t by[N]; /* the process that made it */
    int ended, enough;
    const char *lethal; /* a file that the worker of job 7 looks for, and takes away, before it kills itself */
    bool always;
    struct crew_plan plan;
};

static enum status make(void *self, int job, struct diag *diag)
{
    struct work *work = self;
    if (job == 7 && work->lethal && unlink(work->lethal) == 0)
        raise(SIGKILL);
    if (job == 7 && work->always)
        raise(SIGKILL);
    work->made[job] = 1.0 / (job + 1);
    work->by[job] = getpid();
    if (job % 10 == 3)
        diag_warn(diag, (struct source_pos){0}, "job %d", job);
    return job == 33 ? diag_input(diag, (struct source_pos){0}, "job 33 is wrong") : STATUS_OK;
}

static void pack(void *self, int job, struct pack *out)
{
    const struct work *work = self;
    PACK(out, work->made[job]);
    PACK(out, work->by[job]);
}

static void unpack(void *self, int job, struct unpack *from)
{
    struct work *work = self;
    UNPACK(from, work->made[job]);
    UNPACK(from, work->by[job]);
}

static bool ended(void *self, int job, enum status status)
{
    struct work *work = self;
    (void)job;
    (void)status;
    return ++work->ended != work->enough;
}

static void plan(void *self, const struct crew_plan *plan)
{
    ((struct work *)self)->plan = *plan;
}

static enum status run(struct work *work, int jobs, bool processes, const double *bytes, struct diag *diag)
{
    double cost[N];
    struct crew *crew = NULL;
    for (int i = 0; i < N; i++)
        cost[i] = i;
    int *order = dispatch_order(cost, N);
    threads_limit(jobs);
    if (processes)
        assert_int_equal(crew_begin(&crew, diag), STATUS_OK);
    const struct crew_loop loop = {.n = N,
        .noun = "job",
        .order = order,
        .bytes = bytes,
        .self = work,
        .job = make,
        .pack = pack,
        .unpack = unpack,
        .ended = ended,
        .plan = plan};
    enum status status = crew_run(crew, &loop, diag);
    crew_end(crew);
    free(order);
    return status;
}

static void assert_all_made(const struct work *work)
{
    for (int i = 0; i < N; i++)
        assert_true(work->made[i] == 1.0 / (i + 1));
    assert_int_equal(work->ended, N);
}

static const char said[] = "warning: job 3\nwarning: job 13\nwarning: job 23\nwarning: job 33\n"
                           "error: job 33 is wrong\n";

static void processes_make_what_threads_make(void **state)
{
    (void)state;
    struct diag threads = DIAG_INIT, processes = DIAG_INIT;
    struct work by_threads = {0}, by_processes = {0};
    assert_int_equal(run(&by_threads, 2, false, NULL, &threads), STATUS_INPUT);
    assert_int_equal(run(&by_processes, 3, true, NULL, &processes), STATUS_INPUT);
    assert_all_made(&by_threads);
    assert_all_made(&by_processes);
    assert_non_null(strstr(threads.text, "job 33 is wrong"));
    assert_string_equal(threads.text, processes.text);
    assert_int_equal(strlen(threads.text), strlen(said));
    for (int i = 0; i < N; i++) {
        assert_int_equal(by_threads.by[i], getpid());
        assert_int_not_equal(by_processes.by[i], getpid());
    }
    assert_int_equal(by_processes.plan.jobs, N);
    assert_int_equal(by_processes.plan.workers, 3);
}

/* Killed once, the job is done by another process; what it has said comes once. */
static void a_worker_that_is_killed_gives_its_job_back(void **state)
{
    (void)state;
    char path[] = "/tmp/test_crew_XXXXXX";
    close(mkstemp(path));
    struct diag diag = DIAG_INIT;
    struct work work = {.lethal = path};
    assert_int_equal(run(&work, 2, true, NULL, &diag), STATUS_INPUT); /* job 33's */
    assert_all_made(&work);
    assert_int_equal(access(path, F_OK), -1); /* it was killed */
    assert_non_null(
        strstr(diag.text, "the worker of job 8 of 40 was ended by signal 9 (Killed); the job is done again"));
    assert_int_equal(diag.n_errors, 1);
}

/* Killed each time: DISPATCH_TRIES, then an error, and all others are there. */
static void a_job_that_kills_all_its_workers_fails_alone(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct work work = {.always = true};
    assert_int_equal(run(&work, 2, true, NULL, &diag), STATUS_IO);
    assert_int_equal(work.ended, N - 1);
    for (int i = 0; i < N; i++)
        assert_true(work.made[i] == (i == 7 ? 0 : 1.0 / (i + 1)));
    assert_non_null(
        strstr(diag.text, "job 8 of 40 cannot be done: its worker was ended by signal 9 (Killed), the third"));
}

/* Those that are under way come to their end: at most one a worker more. */
static void a_loop_that_is_ended_begins_nothing_more(void **state)
{
    (void)state;
    struct diag diag = DIAG_INIT;
    struct work work = {.enough = 5};
    run(&work, 2, true, NULL, &diag);
    assert_in_range(work.ended, 5, 6);
}

/* Of 8 workers on a machine whose memory three of the jobs fill, three work at a time; all jobs are done. */
static void memory_bounds_the_workers(void **state)
{
    (void)state;
    double bytes[N], available = crew_memory_available();
    for (int i = 0; i < N; i++)
        bytes[i] = available / 3.5;
    struct diag diag = DIAG_INIT;
    struct work work = {0};
    run(&work, 8, true, bytes, &diag);
    assert_all_made(&work);
    assert_int_equal(work.plan.at_once, 3);
    assert_int_equal(work.plan.machine_workers, 8);
    assert_true(work.plan.largest_bytes == bytes[0]);
}

/* Threads share the memory of one process: nothing is to be known of theirs. */
static void processes_alone_share_memory(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers += 2) {
        double bytes = -1;
        struct crew *crew = NULL;
        struct diag diag = DIAG_INIT;
        threads_limit(workers);
        assert_int_equal(crew_begin(&crew, &diag), STATUS_OK);
        assert_int_equal(crew_workers(crew, &bytes), workers > 1 ? workers : 0);
        assert_true(workers > 1 ? bytes > 0 : bytes == 0);
        assert_int_equal(crew_workers(NULL, &bytes), 0);
        crew_end(crew);
    }
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
        cmocka_unit_test(processes_make_what_threads_make),
        cmocka_unit_test(a_worker_that_is_killed_gives_its_job_back),
        cmocka_unit_test(a_job_that_kills_all_its_workers_fails_alone),
        cmocka_unit_test(a_loop_that_is_ended_begins_nothing_more),
        cmocka_unit_test(memory_bounds_the_workers),
        cmocka_unit_test(processes_alone_share_memory),
        cmocka_unit_test(shards_share_the_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
