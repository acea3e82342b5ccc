/* How sure predictions are: the interval of each point's regime (regime.h), of results/validated.csv. */
#ifndef FLOPCAST_VALIDATE_SURE_H
#define FLOPCAST_VALIDATE_SURE_H

#include "validate/regime.h"

/* Zeroed at first; sure_end() frees. */
struct sure {
    struct nearest_runs runs; /* of results/validated.csv */
    bool read;                /* asked for the first time */
    struct arena arena;
    VEC(struct sure_regime *) regimes; /* asked for so far, each once */
};
struct sure_regime {
    struct nearest_job job;       /* the first of it */
    struct regime regime, narrow; /* of the point that waits most, and of the one that waits least */
};

/* waiting: the share of the point's step (scenario_waiting_share); of a peak 0. Lives as long as sure; known is false
 * where the file is not at hand. */
const struct regime *sure_of(struct sure *sure, const struct scenario_point *point, enum regime_of of, double waiting);

/* Sets the results' interval: of speeds, by the regime and the waiting share of each. */
void sure_set(struct sure *sure, const struct scenario_point *points, struct scenario_result *results, int n);

void sure_end(struct sure *sure);

#endif
