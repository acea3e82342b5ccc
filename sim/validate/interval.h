/* Intervals of predictions of published runs, and whether they cover the measurements.
 *
 * The interval of a row should hold the measurement in nine of ten cases, and leave one of twenty on each side. It is
 * the band of the row's samples (scenario/sample.h: errors of numbers, noise; without samples the prediction alone)
 * widened by the discrepancy (scenario/discrepancy.h), on each side by its own. That discrepancy is estimated from
 * other rows of its class, never from the row's own family: only rows that no fit rests on. A family is a source, a GPU
 * and a model; of ratios (per_doubling), a curve.
 *
 * For each of those rows there is a discrepancy with which its interval would just reach the measurement
 * (scenario_widening; per root of a doubling for ratios; of a job that never waits, discrepancy_scale, for speeds),
 * below 0 where it was slower than predicted. A row's own scale widens what it learns. The estimate of a side is the
 * smallest value that is enough for 95 % of the weight, and 0 at least: quantiles, whatever the shape of the errors.
 * Each other family of the row's own source weighs one. With fewer than VALIDATE_LEAST_UNITS of them all other sources
 * together weigh what is lacking (or as many families as they have), every source the same, in it every family the
 * same: of nine that are exchangeable with a tenth the largest is its quantile of 90 %, so fewer cannot say it. So a
 * source of which little else was run gets what sources of its class are off by, one with nine other families what
 * those are. With fewer than VALIDATE_LEAST_UNITS other families in all, the filed value holds.
 *
 * covers_as_new: whether the measurement is in the interval that the row had if nothing else of its source were known,
 * by other sources alone. The filed values are estimated in that way, by errors of both sides together (90 % of the
 * weight): they are for a user's job, of a source that is in no table. Their standard error is from VALIDATE_RESAMPLES
 * drawings of sources with replacement.
 *
 * The first rule of this kind (2026-11-21) was written down before any interval was computed, with point errors known.
 * On 2026-11-23 sources and their own families were added, then the two sides and nine families instead of five, on
 * 2026-11-24 that errors go along with what waits; what else was tried stands in results/NOTES.md. */
#ifndef FLOPCAST_VALIDATE_INTERVAL_H
#define FLOPCAST_VALIDATE_INTERVAL_H

#include "validate/validate.h"

enum { VALIDATE_LEAST_UNITS = 9, VALIDATE_RESAMPLES = 200 };

/* Intervals of all rows with samples and a measured speed (validate_run with sampling). */
void validate_intervals(struct validate_table *table, const struct discrepancy *filed);

/* The second half of it: of rows that have an interval by errors of numbers and know what it needs. */
void validate_widen(struct validate_table *table, const struct discrepancy *filed);

/* The discrepancy by all rows of the table that count, every source the same. */
struct validate_discrepancy {
    int rows, families, sources;
    double value, std_error; /* log-standard deviation; 0 without rows */
};
struct validate_discrepancy validate_discrepancy(const struct validate_table *table, enum discrepancy_class which);
/* How many times as far off waiting is (discrepancy.h), by the same rows: the likeliest value from 1 to 21. */
struct validate_discrepancy validate_waiting(const struct validate_table *table);

#endif
