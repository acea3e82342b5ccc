/* Links that lose capacity and GPUs that lose speed, from the start or at a time of the run: what is left of each by
 * its name.
 *
 * "pattern=share, pattern=share at time": the share that is left from then on, as "50 %" or 0.5; 0 is a failed link.
 * Without a time from the start of the run, warm-up steps included. An entry with the same pattern as an earlier one
 * takes its place from its time on ("x=0 at 2 s, x=1 at 5 s" is a link that comes back); different patterns that name
 * one thing multiply. Patterns are the shell's (*, ?, [..]). */
#ifndef FLOPCAST_FABRIC_DEGRADE_H
#define FLOPCAST_FABRIC_DEGRADE_H

#include "base/arena.h"
#include "base/units.h"

enum { DEGRADE_MAX = 256 };

/* What a list is about. */
struct degrade_subject {
    const char *name, *plural; /* "degraded link", "degraded links" */
    const char *property;      /* "capacity" */
    const char *example;
    double least; /* share that may be left */
};
extern const struct degrade_subject degrade_link, degrade_gpu;

struct degradation {
    struct degrade_entry {
        const char *pattern;
        double share;
        ps_t at;
        bool matched; /* something has this name */
    } list[DEGRADE_MAX];
    int n;
    ps_t changes[DEGRADE_MAX]; /* later than the start, ascending, each once */
    int n_changes;
};

/* text may be NULL. Everything lives in the arena. */
enum status degrade_parse(struct degradation *out, const struct degrade_subject *subject, const char *text,
    struct source_pos at, struct arena *arena, struct diag *diag);

/* What is left at a time of what has this name; marks the entries that name it. whole: the name of what it is a part
 * of, which names it too ("node3" of "node3.gpu5"); NULL: none. */
double degrade_share(struct degradation *degradation, const char *name, const char *whole, ps_t time);

/* The first entry from `from` on that named nothing that was asked for: the user's mistake. n: there is none. */
int degrade_unmatched(const struct degradation *degradation, int from);

#endif
