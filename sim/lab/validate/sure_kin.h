/* Private to validate/sure_fit.c: what errors of one maker have in common (scenario/sure.h,
 * sure_given()). */
#ifndef FLOPCAST_VALIDATE_SURE_KIN_H
#define FLOPCAST_VALIDATE_SURE_KIN_H

#include "validate/sure_fit.h"

struct sure_row {
    double error; /* ln(measured / predicted) */
    struct sure_terms terms;
    const char *arch;
    int maker, at; /* the first row of the maker; of the table */
};
struct sure_rows {
    struct sure_row *list;
    int n;
};

#define SURE_WANTED 0.9 /* of measurements inside */
/* With room for one more maker, as of a user. */
double sure_within(int makers);

/* The smallest value with at least this share of the weight at or below it. */
double sure_quantile(const double *values, const double *weights, int n, double share);

/* Of measured / predicted: the width, and 20 times what lies outside (sure_fit.h). */
double sure_interval_score(const struct sure_range *range, double ratio);

struct sure_pair { /* of rows of one maker */
    double slope, weight;
    int maker;
};
struct sure_size { /* a row that is not the smallest of its curve; range: of apply(), error: what is
                      left then */
    int row, smallest, of_maker; /* of_maker: how many sizes its maker has */
    double doublings;
    struct sure_range range;
};
struct sure_kins {
    VEC(struct sure_pair) pairs[SURE_JOB]; /* kins farther than the same job */
    VEC(struct sure_size) sizes;
};
void sure_kins_find(
    struct sure_kins *kins, const struct validate_table *table, const struct sure_rows *rows);
/* alike and given_wider, without a maker (-1: with all). */
void sure_kins_fit(struct sure_numbers *numbers, const struct sure_kins *kins,
    const struct sure_rows *rows, int left_out);
/* The ranges of a maker's sizes, their smallest rows measured. */
void sure_kins_apply(struct sure_kins *kins, const struct sure_numbers *numbers,
    const struct sure_rows *rows, int maker);
struct sure_given_score sure_kins_score(const struct sure_kins *kins, const struct sure_rows *rows);
void sure_kins_free(struct sure_kins *kins);

#endif
