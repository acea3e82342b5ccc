/* How sure what is printed is, in words: the interval of each point's regime (validate/sure.h), and what it rests on.
 */
#ifndef FLOPCAST_CLI_SURE_H
#define FLOPCAST_CLI_SURE_H

#include "validate/sure.h"

#include <stdio.h>

/* A paragraph a regime that was asked for: its interval, how many runs of how many sources it rests on, their errors,
 * and whether it is poorly known. */
void sure_print(FILE *out, struct sure *sure);

/* The prediction to as many digits as its interval lets one read: the last is worth at most a twentieth of half
 * the interval, with at most `digits` behind the point. An interval that is not known: all of these. */
const char *sure_number(struct arena *arena, const struct regime *regime, double value, int digits);
/* "396 (333-476)", its interval in the same way; "396" where that is not known. */
const char *sure_with_range(struct arena *arena, const struct regime *regime, double value, int digits);
/* "9,240 tokens/s a GPU (7,760 to 11,110)", in a sentence; of: "tokens/s a GPU". */
const char *sure_said(struct arena *arena, const struct regime *regime, double value, const char *of);

#endif
