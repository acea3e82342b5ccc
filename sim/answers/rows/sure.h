/* How sure what is printed is, in words: the interval of each point (scenario/sure.h), and what it
 * rests on. */
#ifndef FLOPCAST_ROWS_SURE_H
#define FLOPCAST_ROWS_SURE_H

#include "scenario/sure.h"

#include <stdio.h>

/* A paragraph a GPU generation that was asked for, and one of ratios and of peaks where those were.
 */
void sure_print(FILE *out, struct sure *sure);

/* The prediction to as many digits as its interval lets one read: the last is worth at most a
 * twentieth of half the interval, with at most `digits` behind the point. An interval that is not
 * known: all of these. */
const char *sure_number(
    struct arena *arena, const struct sure_range *range, double value, int digits);
/* "396 (333-476)", its interval in the same way, both given what was measured; "396" where that is
 * not known. */
const char *sure_with_range(
    struct arena *arena, const struct sure_range *range, double value, int digits);
/* "9,240 tokens/s a GPU (7,760 to 11,110)", in a sentence; of: "tokens/s a GPU". */
const char *sure_said(
    struct arena *arena, const struct sure_range *range, double value, const char *of);

/* "fits", or where one of twenty measured peaks and more lay beyond the capacity "close: fits in 7
 * of 10 such cases". */
const char *sure_said_to_fit(struct arena *arena, struct sure *sure, double peak, double capacity);

#endif
