/* Intervals of predictions of published runs, and whether they cover the measurements.
 *
 * The interval of a row should hold the measurement in nine of ten cases. It is the band of the row's samples
 * (scenario/sample.h: errors of numbers, noise) widened by the discrepancy (scenario/discrepancy.h). That
 * discrepancy is estimated from other rows, never from the row's own: only rows that no fit rests on, and of them
 *
 *   with_stack     families other than the row's; a family is a source, a GPU and a model
 *   without_stack  families of other sources: nothing of the row's framework is known there either
 *   per_doubling   curves of other sources; for the ratio of a row to its curve's smallest cluster
 *
 * For each of those rows there is a discrepancy with which its interval would just reach the measurement
 * (scenario_widening; per root of a doubling for ratios). The estimate is the smallest value that is enough for 90 % of
 * them, every family (curve) counting the same: the intervals of the others would have covered nine of ten, whatever
 * the shape of the errors. With fewer than VALIDATE_LEAST_UNITS families (sources) to learn from, the filed one holds.
 * Its standard error is from VALIDATE_RESAMPLES drawings with replacement of families (sources).
 *
 * This rule was written down before any interval was computed, but after point errors of most sources were known. */
#ifndef FLOPCAST_VALIDATE_INTERVAL_H
#define FLOPCAST_VALIDATE_INTERVAL_H

#include "validate/validate.h"

enum { VALIDATE_LEAST_UNITS = 5, VALIDATE_RESAMPLES = 200 };

/* Intervals of all rows with samples and a measured speed (validate_run with sampling). */
void validate_intervals(struct validate_table *table, const struct discrepancy *filed);

/* The second half of it: of rows that have an interval by errors of numbers and know what it needs. */
void validate_widen(struct validate_table *table, const struct discrepancy *filed);

/* The discrepancy by all rows of the table that count; units: what is left out at once, and drawn for the error. */
struct validate_discrepancy {
    int rows, families, units;
    double value, std_error; /* log-standard deviation; 0 without rows */
};
struct validate_discrepancy validate_discrepancy(const struct validate_table *table, enum discrepancy_class which);

#endif
