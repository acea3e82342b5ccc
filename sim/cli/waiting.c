#include "cli/waiting.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const double SILENT_S = 4, BETWEEN_S = 5; /* in a pipe or a file */
static const double TERMINAL_SILENT_S = 1, TERMINAL_BETWEEN_S = 0.5;
static const double LEAST_SHARE = 0.02; /* of a simulation, before the rest is estimated by it */

struct waiting {
    const char *command, *name, *what, *sooner;
    bool terminal, shown, ended;
    double begun_s, silent_s, said_s;
    int done, total;
    struct exec_progress progress; /* of the points of set */
    struct scenario_set *set;
    pthread_t thread;
    pthread_mutex_t mutex;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Many ranks one by one, where a fold would have few. */
static const char *sooner(const struct scenario_set *set)
{
    enum { MANY = 64 };
    for (int i = 0; set && i < set->n_points; i++) {
        const struct scenario *options = &set->points[i].options;
        if (scenario_varies(&set->points[i]) && options->exec.fold != FOLD_SLOWEST && options->cluster.gpus >= MANY)
            return "; sooner: --fold slowest (run.fold=slowest), or --no-noise";
    }
    return "";
}

static void watch(struct waiting *waiting, struct exec_progress *progress)
{
    for (int i = 0; waiting->set && i < waiting->set->n_points; i++)
        waiting->set->points[i].options.exec.progress = progress;
}

static void say(struct waiting *waiting)
{
    double s = now_s() - waiting->begun_s, share = waiting->progress.thousandths / 1e3, left = 0;
    int done = waiting->done, total = waiting->total;
    if (s < waiting->silent_s || s - waiting->said_s < (waiting->terminal ? TERMINAL_BETWEEN_S : BETWEEN_S))
        return;
    waiting->said_s = s;
    waiting->shown = true;
    fprintf(stderr, "%s%s%s%s: %.0f s", waiting->terminal ? "\r" : "", waiting->command, *waiting->name ? " " : "",
        waiting->name, s);
    if (total > 1 && done > 0)
        left = s * (total - done) / done;
    else if (total <= 1 && share > LEAST_SHARE)
        left = s * (1 - share) / share;
    if (total > 1)
        fprintf(stderr, ", %d of %d %s", done, total, waiting->what);
    if (total > 1 && done == 0 && share > 0)
        fprintf(stderr, ", %.0f %% of one", 100 * share);
    else if (total <= 1 && share > 0)
        fprintf(stderr, ", %.0f %% of its steps", 100 * share);
    else if (total <= 1)
        fprintf(stderr, ", %s", waiting->what);
    if (left > 0)
        fprintf(stderr, ", about %.0f s more", left);
    fprintf(stderr, "%s%s", waiting->sooner, waiting->terminal ? "\033[K" : "\n");
    fflush(stderr);
}

static void *look_on(void *self)
{
    struct waiting *waiting = self;
    for (bool ended = false; !ended;) {
        const struct timespec pause = {.tv_nsec = 50000000};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&waiting->mutex);
        ended = waiting->ended;
        if (!ended)
            say(waiting);
        pthread_mutex_unlock(&waiting->mutex);
    }
    return NULL;
}

struct waiting *waiting_begin(
    const char *command, const char *name, const char *what, struct scenario_set *set, bool quiet)
{
    if (quiet)
        return NULL;
    const char *given = getenv("FLOPCAST_SILENT_S");
    struct waiting *waiting = xcalloc(1, sizeof *waiting);
    waiting->command = command;
    waiting->name = name;
    waiting->what = what;
    waiting->sooner = sooner(set);
    waiting->terminal = isatty(STDERR_FILENO);
    waiting->begun_s = now_s();
    waiting->silent_s = given ? strtod(given, NULL) : waiting->terminal ? TERMINAL_SILENT_S : SILENT_S;
    waiting->said_s = -BETWEEN_S;
    pthread_mutex_init(&waiting->mutex, NULL);
    waiting->set = set;
    waiting->total = set ? set->n_points : 0;
    watch(waiting, &waiting->progress);
    if (pthread_create(&waiting->thread, NULL, look_on, waiting) == 0)
        return waiting;
    watch(waiting, NULL);
    pthread_mutex_destroy(&waiting->mutex);
    free(waiting);
    return NULL;
}

void waiting_count(void *self, int done, int total)
{
    struct waiting *waiting = self;
    if (!waiting)
        return;
    pthread_mutex_lock(&waiting->mutex);
    waiting->done = done;
    waiting->total = total;
    pthread_mutex_unlock(&waiting->mutex);
}

void waiting_end(struct waiting *waiting)
{
    if (!waiting)
        return;
    pthread_mutex_lock(&waiting->mutex);
    waiting->ended = true;
    pthread_mutex_unlock(&waiting->mutex);
    pthread_join(waiting->thread, NULL);
    watch(waiting, NULL);
    if (waiting->shown && waiting->terminal)
        fputs("\r\033[K", stderr);
    pthread_mutex_destroy(&waiting->mutex);
    free(waiting);
}
