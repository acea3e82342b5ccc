/* Links that lose capacity, from the start or at a time of the run: what is left of each by its name.
 *
 * "pattern=share, pattern=share at time": the share of the capacity that is left from then on, as "50 %" or 0.5; 0 is a
 * failed link. Without a time from the start of the run, warm-up steps included. An entry with the same pattern as an
 * earlier one takes its place from its time on ("x=0 at 2 s, x=1 at 5 s" is a link that comes back); different patterns
 * that name one link multiply. Patterns are the shell's (*, ?, [..]). */
#ifndef FLOPCAST_EXEC_DEGRADE_H
#define FLOPCAST_EXEC_DEGRADE_H

#include "base/arena.h"
#include "base/units.h"

enum { DEGRADE_MAX = 256 };

struct degradation {
    struct degrade_entry {
        const char *pattern;
        double share;
        ps_t at;
        bool matched; /* some link has this name */
    } list[DEGRADE_MAX];
    int n;
    ps_t changes[DEGRADE_MAX]; /* later than the start, ascending, each once */
    int n_changes;
};

/* text may be NULL. Everything lives in the arena. */
enum status degrade_parse(
    struct degradation *out, const char *text, struct source_pos at, struct arena *arena, struct diag *diag);

/* What is left of a link at a time; marks the entries that name it. */
double degrade_share(struct degradation *degradation, const char *name, ps_t time);

/* Entries that no link was asked for by are the user's mistake. */
enum status degrade_check_matched(const struct degradation *degradation, struct source_pos at, struct diag *diag);

#endif
