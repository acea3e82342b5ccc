/* How sure a prediction is, without samples: by how much published runs of the same regime were mispredicted.
 *
 * A regime is the GPU's generation (hw_archs), the precision of products (16 bit, FP8, 32 bit), how ranks share a model
 * (TP, CP, PP; data parallelism beside it does not count), and whether the model has experts. Runs that no fit rests on
 * count, the same run once. Those that are not of the job's regime lie on rungs, each alike in less than the one
 * before: enum regime_rung.
 *
 * The interval: a measurement should be in it in nine of ten cases, and beyond each end in one of twenty, by the
 * weighted quantiles of log(measured / predicted); it always holds the prediction. The families (a source, a GPU and a
 * model) of the first rung weigh one each together; in it every source weighs the same, and in a source every family.
 * With fewer than VALIDATE_LEAST_UNITS of them those of the next rung together weigh what is lacking (or as many
 * families as they have), and so on: the rule of interval.h for a source that is new, over regimes. A regime is poorly
 * known where its own families are fewer than that: then the interval rests on runs that are not alike.
 *
 * Ignored: model size, number of GPUs, framework, batch (nearest.h has some of these); luck of a run and errors of
 * numbers are in the errors themselves. What was tried stands in results/NOTES.md. */
#ifndef FLOPCAST_VALIDATE_REGIME_H
#define FLOPCAST_VALIDATE_REGIME_H

#include "validate/nearest.h"

enum regime_rung {
    REGIME_ALIKE,      /* all four */
    REGIME_SHARED,     /* generation, precision, experts; ranks share a model in both or in none */
    REGIME_PRECISION,  /* generation and precision */
    REGIME_GENERATION, /* generation */
    REGIME_ALL,
    REGIME_RUNGS
};
enum regime_of { REGIME_OF_SPEED, REGIME_OF_PEAK }; /* tokens/s per GPU, or the peak of memory */

struct regime {
    int runs[REGIME_RUNGS], families[REGIME_RUNGS], sources[REGIME_RUNGS]; /* of that rung and not of one before */
    bool known;                                                            /* else there are no runs at all */
    bool poor;
    enum regime_rung first;        /* the first that has runs */
    double median, p90;            /* there, of |predicted / measured - 1| */
    struct validate_sides factors; /* of the prediction: 1 at most, and 1 at least */
};

enum regime_rung regime_rung_of(const struct nearest_job *a, const struct nearest_job *b);
/* except: rows whose source is this do not count; NULL: all do. */
void regime_find(struct regime *out, const struct nearest_runs *runs, const struct nearest_job *job, enum regime_of of,
    const char *except);

/* "Hopper, 16 bit, TP+PP, experts": the regime; of a rung what it has in common with the job, "all runs". */
const char *regime_name(struct arena *arena, const struct nearest_job *job, enum regime_rung rung);

/* A sentence: the interval, how many runs of how many sources it rests on, their errors, whether that is much. */
const char *regime_text(
    struct arena *arena, const struct regime *regime, const struct nearest_job *job, enum regime_of of);

#endif
