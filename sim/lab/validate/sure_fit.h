/* The file of intervals (scenario/sure.h) from published runs, and how well it holds for a maker
 * without runs in it.
 *
 * Which runs: rows with an error that no fit rests on, the same run once (struct validate_row). A
 * maker is what stands before the comma of a source: "Megatron-Bridge, NeMo container 26.04" and
 * "..., 26.06" are one. Each maker weighs the same, and its rows alike.
 *
 * Coefficients: each side by the pinball loss at 95 % of the logarithm of measured / predicted
 * (clipped at +-1, so that no run holds more than its place beyond), smoothed over 0.01, with a
 * ridge of 1e-4 on the coefficients: the likeliest quantile regression with a log-linear scale.
 * Then each side is scaled so that (1 - q) / 2 of the weight lies beyond, with q = 0.9 (1 + 1 /
 * makers), 0.995 at most.
 *
 * new_slower, new_faster: of each generation with GENERATION_LEAST makers and more, left out, by
 * how many times a side that the others give must be wider to hold 95 % of its makers' weight; the
 * largest of them, 1 at least.
 *
 * What errors of one maker have in common (alike): the slope of one error over another by least
 * absolute values, over some thousand pairs of rows of a maker that share no curve, makers alike.
 * Of rows that do (SURE_JOB), and given_wider, by which intervals are widened so that they hold 90
 * %: both together, by the interval score of curves whose smallest row is taken as measured.
 *
 * Ratios (of rows to the smallest of their curve, per root of a doubling) and peaks: quantiles
 * alone, as no more than 7 to 13 makers have them, of which the room for one more would be the most
 * extreme row.
 *
 * Judged by the interval score of Winkler, of factors: width + 20 times what a measurement lies
 * outside. Less is better; coverage alone rewards width. The reference is one constant for all
 * jobs, made in the same way without terms. The terms were chosen by hand in sight of these scores
 * (results/notes, 2026-11-28), from 20 candidates; what they are worth on makers that come later,
 * the next blind rows say. */
#ifndef FLOPCAST_VALIDATE_SURE_FIT_H
#define FLOPCAST_VALIDATE_SURE_FIT_H

#include "scenario/sure.h"
#include "validate/validate.h"

/* Lists are in the arena. False: fewer than three makers with speeds, or no ratio, or no peak. */
bool sure_fit(struct sure_numbers *out, const struct validate_table *table, struct arena *arena);

struct sure_score {
    double covered_rows,
        covered_makers; /* shares inside: of rows, and the mean over makers of theirs */
    double score_rows, score_makers, width; /* width: the median, a fraction of the prediction */
};
/* Of curves of two sizes and more the smallest measured, the others given that: errors |predicted /
 * measured - 1|. */
struct sure_given_score {
    int rows, makers;
    double before_median, before_p90, median, p90, covered, covered_makers,
        width; /* width: the median */
};
struct sure_left_out { /* each maker's rows by the file that the others make */
    int rows, makers;
    struct sure_given_score given;
    struct sure_score by_terms, by_constant;
    bool *covers; /* by_terms, of a row of the table; false also where the row does not count */
    struct sure_range *ranges; /* the same; known: the row counts */
};
/* Lists are in the arena. */
struct sure_left_out sure_leave_out(const struct validate_table *table, struct arena *arena);

/* Every row's own interval, by the file that the other makers give. */
void sure_set_intervals(struct validate_table *table, const struct sure_left_out *left);

/* The file, whole (base/file_write.h). */
enum status sure_write(const char *path, const struct sure_numbers *numbers, struct diag *diag);

#endif
