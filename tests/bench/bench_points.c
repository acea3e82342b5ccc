/* bench_points SCENARIO [KEY=VALUE]...: what every point of a sweep is estimated to cost and to
 * take of memory, and what it does, as CSV. Of processor time, as a busy machine changes that
 * least; each point in a process, whose peak is its own. */
#include "base/files.h"
#include "scenario/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SETTINGS = 32 };

static double used_s(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* The peak is of the process, which at first shares the memory of the one that forked it. */
static _Noreturn void simulate(const struct scenario_point *point)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_result result;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    enum status status = scenario_simulate(&result, point, &arena, &diag);
    getrusage(RUSAGE_SELF, &after);
    BUG_IF(status != STATUS_OK, "%s", diag.text);
    printf("%s,%lld,%.6g,%.4g,%ld,%d,%.0f\n", point->options.name,
        (long long)point->options.cluster.gpus, scenario_weight(point),
        used_s(&after) - used_s(&before), after.ru_maxrss, result.exec.ranks_simulated,
        result.plan_ops);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    static struct scenario_override set[MOST_SETTINGS];
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set scenario = {0};
    BUG_IF(argc < 2 || argc - 2 > MOST_SETTINGS, "usage: bench_points SCENARIO [KEY=VALUE]...");
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        BUG_IF(!value, "'%s' is not KEY=VALUE", argv[i]);
        *value = '\0';
        set[i - 2] = (struct scenario_override){argv[i], value + 1};
    }
    scenario_load(
        &scenario, files_find(&arena, FILES_SCENARIOS, argv[1]), set, argc - 2, &arena, diag);
    BUG_IF(diag->n_errors > 0, "%s", diag->text);
    printf("scenario,gpus,cost,seconds,peak_kib,ranks,plan_ops\n");
    fflush(stdout);
    for (int i = 0; i < scenario.n_points; i++) {
        const struct scenario_point *point = &scenario.points[i];
        pid_t pid = fork();
        BUG_IF(pid < 0, "no process can be started");
        if (pid == 0)
            simulate(point);
        waitpid(pid, NULL, 0);
    }
    arena_release(&arena);
    free(diag);
    return 0;
}
