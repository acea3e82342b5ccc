/* Private to validate: what rows say about an error, each with its weight, and the quantiles of it (interval.h,
 * regime.h). */
#ifndef FLOPCAST_VALIDATE_LESSONS_H
#define FLOPCAST_VALIDATE_LESSONS_H

#include "validate/validate.h"

/* family, source: a number that rows of the same family or source have, and no others. */
struct lesson {
    double need, weight; /* need: a logarithm, below 0 where the measurement was lower than predicted */
    int family, source;
    double waiting, scale; /* share of the step, predicted; what the need was divided by */
};
struct lessons {
    struct lesson *list;
    int n;
};

/* Who measured: what stands before a comma. "Megatron-Bridge, NeMo container 26.04" and "..., NeMo container 26.06" are
 * one source, as the same hands measured the same recipes: the one says little new of the other. */
bool lessons_same_source(const char *a, const char *b);

/* A family is a source, a GPU and a model. */
bool lessons_same_family(const struct validate_row *a, const struct validate_row *b);

/* By need, smallest first: what the others take for granted. */
void lessons_sort(struct lessons *lessons);

/* The smallest need that is enough for a share of the weight, from one end of the list or from the other. */
double lessons_enough(const struct lessons *lessons, double share, bool from_end);

/* What is enough for 95 % of the weight on each side; 0 at least. */
struct validate_sides lessons_sides(const struct lessons *lessons);

#endif
