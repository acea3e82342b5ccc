/* While a search goes on: what is best so far, on standard error; and a signal or a closed pipe ends it with what is
 * known. A thread looks on, as a simulation may take longer than anybody wants to wait. */
#include "cli/tune.h"

#include "cli/stop.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double SILENT_S = 4, PIPE_SILENT_S = 30; /* before the first line, on a terminal and elsewhere */
static const double BETWEEN_S = 5;                    /* between two lines */

struct tune_watch {
    const struct tune_command *command;
    const struct scenario_set *set;
    struct tune *tune;
    pthread_t thread;
    pthread_mutex_t mutex;
    bool ended;
    double start_s, silent_s, said_s, best_s; /* silent_s: nothing is said before; best_s: of a step, as it was said */
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void changing(void *self, bool begins)
{
    struct tune_watch *watch = self;
    (begins ? pthread_mutex_lock : pthread_mutex_unlock)(&watch->mutex);
}

/* Those that ran as finalists without noise, for a table before the end. */
static int settle(struct tune *tune)
{
    int n = 0;
    for (int i = 0; i < TUNE_STATE_COUNT; i++)
        tune->count[i] = 0;
    tune->n_finalists = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        struct tune_candidate *at = &tune->candidates.at[i];
        tune->count[at->state]++;
        if (at->state != TUNE_RAN)
            continue;
        at->noisy = at->finalist ? at->noisy : at->quiet;
        at->finalist = true;
        n++;
    }
    tune->n_finalists = n;
    return n;
}

static _Noreturn void leave(struct tune_watch *watch)
{
    struct tune *tune = watch->tune;
    struct arena arena = ARENA_INIT;
    if (settle(tune) == 0)
        fputs("flopcast: stopped before the first answer\n", stderr);
    else if (watch->command->format == RECORDS_TABLE)
        tune_print_table(stdout, watch->command, watch->set, tune, &arena);
    else
        tune_print_records(stdout, watch->command, watch->set, tune, &arena);
    fflush(stdout);
    stop_leave();
    _exit(1);
}

/* A better one than what was said last; how many may still be better, and about how long they take. */
static void say(struct tune_watch *watch)
{
    const struct tune *tune = watch->tune;
    const struct tune_candidate *best = NULL;
    double s = now_s() - watch->start_s;
    int ran = 0, left = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        ran += at->state == TUNE_RAN || at->state == TUNE_OOM;
        if (at->state == TUNE_RAN && (!best || at->quiet.tokens_per_s > best->quiet.tokens_per_s))
            best = at;
    }
    for (int i = 0; i < tune->candidates.n && best; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        left += at->state == TUNE_LEFT_OUT && at->bound.step_s <= best->quiet.step_time_s;
    }
    if (!best || s < watch->silent_s || s - watch->said_s < BETWEEN_S || best->quiet.step_time_s == watch->best_s)
        return;
    watch->said_s = s;
    watch->best_s = best->quiet.step_time_s;
    fprintf(stderr, "%.0f s: best of %d so far: ", s, ran);
    tune_name(stderr, best);
    fprintf(stderr, ", %.0f tokens/s; at most %d may be better, about %.0f s\n", best->quiet.tokens_per_s, left,
        ran > 0 ? (s * left) / ran : 0);
}

static void *look_on(void *self)
{
    struct tune_watch *watch = self;
    for (;;) {
        struct pollfd out = {.fd = STDOUT_FILENO};
        bool closed = poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
        pthread_mutex_lock(&watch->mutex);
        if (watch->ended)
            break;
        if (stop_asked())
            leave(watch);
        if (closed)
            raise(SIGPIPE);
        say(watch);
        pthread_mutex_unlock(&watch->mutex);
        const struct timespec pause = {.tv_nsec = 100000000};
        nanosleep(&pause, NULL);
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

struct tune_watch *tune_watch_begin(
    const struct tune_command *command, const struct scenario_set *set, struct tune *tune)
{
    struct tune_watch *watch = xcalloc(1, sizeof *watch);
    *watch = (struct tune_watch){.command = command,
        .set = set,
        .tune = tune,
        .start_s = now_s(),
        .silent_s = isatty(STDERR_FILENO) ? SILENT_S : PIPE_SILENT_S,
        .said_s = -BETWEEN_S};
    pthread_mutex_init(&watch->mutex, NULL);
    tune->changing = changing;
    tune->self = watch;
    if (pthread_create(&watch->thread, NULL, look_on, watch) == 0)
        return watch;
    tune->changing = NULL;
    free(watch);
    return NULL;
}

void tune_watch_end(struct tune_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->ended = true;
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}
