/* How sure what is printed is: the interval of each point's regime (validate/regime.h), and what it rests on. */
#ifndef FLOPCAST_CLI_SURE_H
#define FLOPCAST_CLI_SURE_H

#include "scenario/scenario.h"
#include "validate/regime.h"

#include <stdio.h>

/* Zeroed at first; sure_end() frees. */
struct sure {
    struct nearest_runs runs; /* of results/validated.csv */
    bool read;                /* asked for the first time */
    struct arena arena;
    VEC(struct sure_regime *) regimes; /* asked for so far, each once */
};
struct sure_regime {
    struct nearest_job job; /* the first of it */
    struct regime regime;   /* of the point that waits most */
};

/* waiting: the share of the point's step (scenario_waiting_share); of a peak 0. Lives as long as sure; known is false
 * where the file is not at hand. */
const struct regime *sure_of(struct sure *sure, const struct scenario_point *point, enum regime_of of, double waiting);

/* A paragraph a regime that was asked for: its interval, how many runs of how many sources it rests on, their errors,
 * and whether it is poorly known. */
void sure_print(FILE *out, struct sure *sure);

/* The prediction to as many digits as its interval lets one read: the last is worth at most a twentieth of half
 * the interval, with at most `digits` behind the point. An interval that is not known: all of these. */
const char *sure_number(struct arena *arena, const struct regime *regime, double value, int digits);
/* "345 .. 452" in the same way; "-" where it is not known. */
const char *sure_range(struct arena *arena, const struct regime *regime, double value, int digits);

void sure_end(struct sure *sure);

#endif
