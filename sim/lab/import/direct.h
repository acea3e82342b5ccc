/* Tables of direct measurements (CSV as they were published or transcribed: a row a kernel, with
 * columns source, gpu, software, kernel and a time), brought into the one form of
 * results/measured/direct.csv. Which table a file is of its columns say: products (m, n, k),
 * attention (seq_q), whole expert layers (num_tokens, experts), casts (op, m, k).
 *
 * A rule selects rows, so that what is filed stays small and nobody chooses shapes: `direct_picks`
 * names a GPU, a program and its kernel, and how many shapes there are to one that is kept; a shape
 * is kept if the digest of its numbers (base/digest.h), / 2^32, is a multiple of that. Of products
 * only those with all sides from DIRECT_LEAST on. Which regime a row is of the pick says, too:
 *   short    a few repetitions, the clocks have not come down to the power limit (code N4 of the
 *            source's notes)
 *   settled  repeated for about a second while NVML's power is sampled (N5), large products at 0.95
 *            of the limit or
 * more, or as fast as those that are: of GB200's a third are sampled there and most at 0.65 to
 * 0.75, one shape and the next by turns, and both have the same rate within 2 %, so the samples
 * miss the power, not the clock
 *
 * What the sources count is kept: an "fp8" or "nvfp4" (fp4) product of theirs is a linear layer,
 * the cast of its input in it. */
#ifndef FLOPCAST_IMPORT_DIRECT_H
#define FLOPCAST_IMPORT_DIRECT_H

#include "base/status.h"

#include <stdio.h>

enum { DIRECT_LEAST = 128 };

/* The rows of all files that a pick names, with a head that says the rule. A file of none of the
 * tables, or a number that is none, is an error. */
enum status direct_print(FILE *out, const char *const *files, int n_files, struct diag *diag);

#endif
