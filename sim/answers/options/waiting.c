/* How far a command is, on stderr, while it simulates.
 *
 * A ticker looks every 50 ms; it says nothing for the first seconds, then a line again and
 * again, rewritten in place on a terminal. Points of a sweep are counted by waiting_count();
 * within a simulation the progress of its point is read; of several at a time the farthest counts.
 * The rest is estimated by the share done, once that is LEAST_SHARE.
 *
 * What is subtle: many ranks with noise take long, so the line then names the options that are
 * quicker; what does not fit the terminal loses these first. FLOPCAST_SILENT_S sets the silence.
 */
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

struct waiting {
    const char *command, *name, *what;
    bool slow; /* there are many ranks with noise */
    bool terminal, shown;
    double begun_s, silent_s, said_s;
    int done, total;
    struct scenario_set *set;
    int n_points;
    struct exec_progress *progress; /* of the points that the set had at first */
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

static void waiting_watch(struct waiting *waiting, bool watches)
{
    if (watches)
        waiting->progress = xcalloc((size_t)waiting->n_points + 1, sizeof *waiting->progress);
    for (int i = 0; i < waiting->n_points; i++)
        waiting->set->points[i].options.exec.progress = watches ? &waiting->progress[i] : NULL;
    if (!watches)
        free(waiting->progress);
}

/* Of the simulation that is farthest. */
static double waiting_share(const struct waiting *waiting)
{
    double share = 0;
    for (int i = 0; i < waiting->n_points; i++) {
        const struct exec_progress *progress = &waiting->progress[i];
        share =
            fmax(share, progress->thousandths / 1e3 / (progress->runs > 0 ? progress->runs : 1));
    }
    return share;
}

/* What is simulated is so by its slowest ranks, unasked. */
static bool waiting_by_slowest(const struct waiting *waiting)
{
    for (int i = 0; i < waiting->n_points; i++)
        if (waiting->progress[i].by_slowest)
            return true;
    return false;
}

/* "3 of 12 points, about 9 s more", "36 % of its steps", "under way"; "" where nothing is known
 * yet. */
static const char *how_far(const struct waiting *waiting, double s, struct arena *arena)
{
    int done = waiting->done, total = waiting->total;
    double share = waiting_share(waiting);
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
    const char *far = arena_printf(arena, ", %.0f %% of its steps", 100 * share);
    return share > LEAST_SHARE && share < 1
               ? arena_printf(arena, "%s, about %.0f s more", far, s * (1 - share) / share)
               : far;
}

/* What would be sooner. */
static const char *sooner(const struct waiting *waiting)
{
    if (!waiting->slow)
        return "";
    return waiting_by_slowest(waiting)
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
    waiting->terminal = isatty(STDERR_FILENO);
    waiting->begun_s = ticker_now_s();
    waiting->silent_s = waiting_silent_s(TERMINAL_SILENT_S, SILENT_S);
    waiting->said_s = -BETWEEN_S;
    waiting->set = set;
    waiting->total = waiting->n_points = set ? set->n_points : 0;
    waiting_watch(waiting, true);
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
    waiting_watch(waiting, false);
    if (waiting->shown && waiting->terminal)
        fputs("\r\033[K", stderr);
    free(waiting);
}
