/* What a command says on standard error while it simulates, as nobody should wait without a word:
 * nothing for the first seconds, then, until it ends, how much is done, about how long the rest
 * takes, and what would be sooner. On a terminal that is one line, as long as fits, again and
 * again, from 1 s on, which goes away at the end; elsewhere a line from 4 s on, every 5 s.
 * FLOPCAST_SILENT_S, in the environment: how many seconds it is silent, as in tests of what stderr
 * holds.
 *
 * The rest is estimated as if jobs took as long as those that ended: the largest come first, so
 * that it is mostly less; where there is one job, by how far its simulation is (struct
 * exec_progress). */
#ifndef FLOPCAST_OPTIONS_WAITING_H
#define FLOPCAST_OPTIONS_WAITING_H

#include "scenario/scenario.h"

struct waiting;

/* "run", "t5_scaling", "points": of what it does; words ("under way") where nothing is counted.
 * set: its points say how far their simulation is, and whether a fold or less noise would be
 * sooner; NULL: not known. Returns NULL where nothing will be said: quiet. NULL is fine below. */
struct waiting *waiting_begin(
    const char *command, const char *name, const char *what, struct scenario_set *set, bool quiet);
/* The first seconds of silence: FLOPCAST_SILENT_S, or else as long on a terminal, and elsewhere. */
double waiting_silent_s(double terminal_s, double elsewhere_s);
/* A scenario_progress: done of total jobs. */
void waiting_count(void *self, int done, int total);
void waiting_end(struct waiting *waiting);

#endif
