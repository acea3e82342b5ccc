/* How sure a prediction is, without samples: by how much published runs of the same regime were mispredicted.
 *
 * A regime is the GPU's generation (hw_archs), the precision of products (16 bit, FP8, 32 bit), how ranks share a model
 * (TP, CP, PP; data parallelism beside it does not count) or that it has one GPU, and whether the model has experts.
 * Runs that no fit rests on count, the same run once. Those that are not of the job's regime lie on rungs, each alike
 * in less than the one before: enum regime_rung.
 *
 * The interval: a measurement should be in it in nine of ten cases, and beyond each end in one of twenty, by the
 * weighted quantiles of log(measured / predicted); it always holds the prediction. The families (a source, a GPU and a
 * model) of the first rung weigh one each together; in it every source weighs the same, and in a source every family.
 * With fewer than VALIDATE_LEAST_UNITS of them those of the next rung together weigh what is lacking (or as many
 * families as they have), and so on: the rule of interval.h for a source that is new, over regimes. A regime is poorly
 * known where its own families are fewer than that: then the interval rests on runs that are not alike.
 *
 * Speeds are further off the more of a step waits: what runs say is of a job that never waits (discrepancy_scale), and
 * the job's own share widens it.
 *
 * A few sources do not know what the next one brings. How much wider the interval of a new source must be is measured:
 * each source's runs with the others alone (left out), and by how many times their interval would have to be wider, in
 * the logarithm, to hold them. The value that is enough for nine of ten, sources alike, widens all intervals, one
 * value of regimes that are poorly known and one of the others; 1 at least. It is 1.0 where regimes are known and 1.5
 * to 1.9 where they are not (2026-11-24).
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

struct regime {
    int runs[REGIME_RUNGS], families[REGIME_RUNGS], sources[REGIME_RUNGS]; /* of that rung and not of one before */
    bool known;                                                            /* else there are no runs at all */
    bool poor;
    enum regime_rung first; /* the first that has runs */
    int of_gpu;             /* there, on the job's own GPU */
    double median, p90;     /* there, of |predicted / measured - 1| */
    enum regime_of of;
    double waiting;                /* share of the job's step; of a peak 0 */
    struct validate_sides sides;   /* logarithms by what runs say, of a job that never waits */
    struct validate_sides factors; /* of the prediction: 1 at most, and 1 at least */
};

enum regime_rung regime_rung_of(const struct nearest_job *a, const struct nearest_job *b);
/* waiting: the share of the job's step, predicted; of a peak it does not count. except: rows of this source's maker
 * (lessons.h) do not count; NULL: all do. */
void regime_find(struct regime *out, const struct nearest_runs *runs, const struct nearest_job *job, enum regime_of of,
    double waiting, const char *except);
/* The same job with another share of waiting. */
struct regime regime_waiting(const struct regime *regime, const struct nearest_runs *runs, double waiting);

/* How much wider intervals of sources must be that are new, into runs->new_source; first 1. */
void regime_leave_out(struct nearest_runs *runs);

/* Digits behind the point, below 0 before it, `most` at most, of which the last is worth at most a twentieth of half
 * the interval. */
int regime_digits(double low, double high, int most);

/* "Hopper, 16 bit, TP+PP, experts": the regime; of a rung what it has in common with the job, "all runs". */
const char *regime_name(struct arena *arena, const struct nearest_job *job, enum regime_rung rung);

/* A sentence: the interval, how many runs of how many sources it rests on, their errors, whether that is much. */
const char *regime_text(struct arena *arena, const struct regime *regime, const struct nearest_job *job);

#endif
