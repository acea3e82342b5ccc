/* What a job costs beside the work in it, and what two workers gain over one: medians of RUNS.
 *
 * empty: a job without work, handed to a thread. equal: POINTS alike points of GPT-2 on 32 GPUs, by
 * one worker and by two. Other load takes cores away from two workers; so two ratios are printed
 * beside: of processor times, which is what two idle cores would give, except for memory that they
 * share; and how much faster two processes are that only count, in the same minute, as the
 * reference. */
#include "bench.h"

#include "base/files.h"
#include "base/threads.h"
#include "crew/crew.h"
#include "scenario/scenario.h"

#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 5, EMPTY = 20000, POINTS = 32, COUNT = 600000000 };

static enum status no_work(void *self, int job, struct diag *diag)
{
    (void)self;
    (void)job;
    (void)diag;
    return STATUS_OK;
}

static double empty_s(const int *order)
{
    const struct crew_loop loop = {.n = EMPTY, .order = order, .job = no_work};
    struct diag diag = DIAG_INIT;
    double begin = now_s();
    crew_run(&loop, &diag);
    return (now_s() - begin) / EMPTY;
}

/* Processor time of this process. */
static double used_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double equal_s(int threads, const struct scenario_set *set, double *used)
{
    struct scenario_result results[POINTS];
    struct arena arenas[POINTS] = {0};
    struct diag diag = DIAG_INIT;
    threads_limit(threads);
    double begin = now_s(), used_before_s = used_s();
    scenario_simulate_all(results, arenas, set, NULL, NULL, &diag);
    double seconds = now_s() - begin;
    *used = used_s() - used_before_s;
    BUG_IF(diag.n_errors > 0, "%s", diag.text);
    for (int i = 0; i < POINTS; i++)
        arena_release(&arenas[i]);
    return seconds;
}

static double count_s(int processes)
{
    double begin = now_s();
    for (int p = 0; p < processes; p++) {
        pid_t pid = fork();
        BUG_IF(pid < 0, "no process can be started");
        if (pid > 0)
            continue;
        for (volatile int i = 0; i < COUNT / processes;)
            i = i + 1;
        _exit(0);
    }
    while (wait(NULL) > 0)
        continue;
    return now_s() - begin;
}

int main(void)
{
    /* alike except for the seed */
    static const struct scenario_override set[] = {
        {"cluster.gpus", "32"}, {"run.seed", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "
                                             "16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, "
                                             "27, 28, 29, 30, 31, 32]"}};
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set points = {0};
    double empty[RUNS], alone[RUNS], both[RUNS], used_alone[RUNS], used_both[RUNS], counted[RUNS];
    double counted_both[RUNS], cost[EMPTY] = {0};
    int *order = crew_order(cost, EMPTY);
    scenario_load(&points, files_find(&arena, FILES_SCENARIOS, "gpt2_ddp_v100"), set,
        sizeof set / sizeof *set, &arena, diag);
    BUG_IF(diag->n_errors > 0 || points.n_points != POINTS, "%s", diag->text);
    for (int r = 0; r < RUNS; r++) {
        threads_limit(2);
        empty[r] = empty_s(order);
        alone[r] = equal_s(1, &points, &used_alone[r]);
        both[r] = equal_s(2, &points, &used_both[r]);
        counted[r] = count_s(1);
        counted_both[r] = count_s(2);
    }
    printf(
        "crew, empty jobs: %5.1f us a job, two threads\n", gsl_stats_median(empty, 1, RUNS) * 1e6);
    double alone_s = gsl_stats_median(alone, 1, RUNS), both_s = gsl_stats_median(both, 1, RUNS);
    printf("crew, %d equal points: %.2f s by one thread, %.2f s by two: %.2f times as fast; by "
           "processor time %.2f\n",
        POINTS, alone_s, both_s, alone_s / both_s,
        2 * gsl_stats_median(used_alone, 1, RUNS) / gsl_stats_median(used_both, 1, RUNS));
    printf("two processes that count: %.2f times as fast as one\n",
        gsl_stats_median(counted, 1, RUNS) / gsl_stats_median(counted_both, 1, RUNS));
    free(order);
    arena_release(&arena);
    free(diag);
    return 0;
}
