/* How far a command is, on stderr, while it simulates.
 *
 * A ticker looks every 50 ms; it says nothing for the first seconds, then a line again and
 * again, rewritten in place on a terminal. Points of a sweep are counted by waiting_count();
 * within a simulation its progress in thousandths is read, which points of the set share. The
 * rest is estimated by the share done, once that is LEAST_SHARE.
 *
 * What is subtle: a single job simulates several passes (with noise, without). A share that
 * falls by NEXT_PASS is the next pass. Of several points at a time the farthest counts. Many
 * ranks with noise take long, so the line then names the options that are quicker; what does not
 * fit the terminal loses these first. FLOPCAST_SILENT_S sets the silence. */
#include "options/waiting.h"

#include "base/arena.h"
#include "options/ticker.h"
#include "rows/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double LOOKS_S = 0.05;
static const double SILENT_S = 4, BETWEEN_S = 5; /* in a pipe or a file */
static const double TERMINAL_SILENT_S = 1, TERMINAL_BETWEEN_S = 0.5;
static const double LEAST_SHARE = 0.02; /* of a simulation, before the rest is estimated by it */
static const double NEXT_PASS = 0.1; /* one that is so much less far than the last is another one */

struct waiting {
    const char *command, *name, *what;
    bool slow; /* there are many ranks with noise */
    bool terminal, shown, several_passes;
    double begun_s, silent_s, said_s;
    int done, total;
    int pass; /* of one job: its simulations come one after the other, with noise and without ... */
    double pass_begun_s, share;    /* how far this one is */
    struct exec_progress progress; /* of the points of set */
    struct scenario_set *set;
    struct ticker *ticker;
};

/* Many ranks one by one, where a fold would have few. */
static bool is_slow(const struct scenario_set *set)
{
    enum { MANY = 64 };
    for (int i = 0; set && i < set->n_points; i++) {
        const struct scenario *options = &set->points[i].options;
        if (scenario_varies(&set->points[i]) && options->exec.fold != FOLD_SLOWEST &&
            options->cluster.gpus >= MANY)
            return true;
    }
    return false;
}

static void waiting_watch(struct waiting *waiting, struct exec_progress *progress)
{
    for (int i = 0; waiting->set && i < waiting->set->n_points; i++)
        waiting->set->points[i].options.exec.progress = progress;
}

/* How far the simulation is that counts: between several at once the one that is farthest; a next
 * one, where there is one job, begins anew. */
static void waiting_follow(struct waiting *waiting)
{
    double share = waiting->progress.thousandths / 1e3;
    bool next = waiting->total <= 1 && share < waiting->share - NEXT_PASS;
    if (next) {
        waiting->pass++;
        waiting->pass_begun_s = ticker_now_s();
    }
    waiting->share = next ? share : fmax(waiting->share, share);
}

/* "3 of 12 points, about 9 s more", "36 % of its steps", "under way"; "" where nothing is known
 * yet. */
static const char *how_far(const struct waiting *waiting, double s, struct arena *arena)
{
    int done = waiting->done, total = waiting->total;
    double share = waiting->share;
    if (total > 1) {
        const char *count = arena_printf(arena, ", %d of %d %s", done, total, waiting->what);
        if (done > 0 && done < total)
            return arena_printf(arena, "%s, about %.0f s more", count, s * (total - done) / done);
        return done == 0 && share > 0
                   ? arena_printf(arena, "%s, %.0f %% of one", count, 100 * share)
                   : count;
    }
    if (!(share > 0)) {
        bool counted = !strchr(waiting->what, ' ');
        return counted ? "" : arena_printf(arena, ", %s", waiting->what);
    }
    const char *pass =
        waiting->several_passes ? arena_printf(arena, "pass %d: ", waiting->pass) : "";
    const char *far = arena_printf(arena, ", %s%.0f %% of its steps", pass, 100 * share);
    double pass_s = ticker_now_s() - waiting->pass_begun_s;
    return share > LEAST_SHARE && share < 1
               ? arena_printf(arena, "%s, about %.0f s more", far, pass_s * (1 - share) / share)
               : far;
}

/* What would be sooner. */
static const char *sooner(const struct waiting *waiting)
{
    if (!waiting->slow)
        return "";
    return waiting->progress.by_slowest
               ? "; sooner: --no-noise"
               : "; sooner: --fold slowest (run.fold=slowest), or --no-noise";
}

/* What of a line fits the terminal: all that is said, with more or less of what would be sooner, or
 * the first of it. */
static const char *fitting(const struct waiting *waiting, const char *said, struct arena *arena)
{
    const char *const ends[] = {sooner(waiting), waiting->slow ? "; sooner: --no-noise" : "", ""};
    int room = screen_line(stderr);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if ((int)(strlen(said) + strlen(ends[i])) <= room)
            return arena_printf(arena, "%s%s", said, ends[i]);
    int end = room;
    while (end > 0 && said[end] != ',')
        end--;
    return arena_printf(arena, "%.*s", end > 0 ? end : room, said);
}

static void waiting_say(void *self)
{
    struct waiting *waiting = self;
    double s = ticker_now_s() - waiting->begun_s;
    waiting_follow(waiting);
    if (s < waiting->silent_s ||
        s - waiting->said_s < (waiting->terminal ? TERMINAL_BETWEEN_S : BETWEEN_S))
        return;
    waiting->said_s = s;
    waiting->shown = true;
    struct arena arena = ARENA_INIT;
    const char *far = how_far(waiting, s, &arena);
    int name = (int)strlen(waiting->name),
        rest = (int)strlen(waiting->command) + (int)strlen(far) + (int)strlen(": 999 s ");
    if (waiting->terminal && name > screen_line(stderr) - rest) /* the numbers are what it is for */
        name = screen_line(stderr) > rest ? screen_line(stderr) - rest : 0;
    const char *said = arena_printf(&arena, "%s%s%.*s: %.0f s%s", waiting->command,
        name > 0 ? " " : "", name, waiting->name, s, far);
    if (waiting->terminal)
        fprintf(stderr, "\r%s\033[K", fitting(waiting, said, &arena));
    else
        fprintf(stderr, "%s%s\n", said, sooner(waiting));
    fflush(stderr);
    arena_release(&arena);
}

double waiting_silent_s(double terminal_s, double elsewhere_s)
{
    const char *given = getenv("FLOPCAST_SILENT_S");
    double otherwise_s = isatty(STDERR_FILENO) ? terminal_s : elsewhere_s;
    return given ? strtod(given, NULL) : otherwise_s;
}

struct waiting *waiting_begin(
    const char *command, const char *name, const char *what, struct scenario_set *set, bool quiet)
{
    if (quiet)
        return NULL;
    struct waiting *waiting = xcalloc(1, sizeof *waiting);
    waiting->command = command;
    waiting->name = name;
    waiting->what = what;
    waiting->slow = is_slow(set);
    waiting->several_passes = set && set->n_points == 1 && scenario_varies(&set->points[0]);
    waiting->terminal = isatty(STDERR_FILENO);
    waiting->begun_s = waiting->pass_begun_s = ticker_now_s();
    waiting->pass = 1;
    waiting->silent_s = waiting_silent_s(TERMINAL_SILENT_S, SILENT_S);
    waiting->said_s = -BETWEEN_S;
    waiting->set = set;
    waiting->total = set ? set->n_points : 0;
    waiting_watch(waiting, &waiting->progress);
    waiting->ticker = ticker_begin(LOOKS_S, waiting_say, waiting);
    return waiting;
}

void waiting_count(void *self, int done, int total)
{
    struct waiting *waiting = self;
    if (!waiting)
        return;
    ticker_lock(waiting->ticker);
    waiting->done = done;
    waiting->total = total;
    ticker_unlock(waiting->ticker);
}

void waiting_end(struct waiting *waiting)
{
    if (!waiting)
        return;
    ticker_end(waiting->ticker);
    waiting_watch(waiting, NULL);
    if (waiting->shown && waiting->terminal)
        fputs("\r\033[K", stderr);
    free(waiting);
}
