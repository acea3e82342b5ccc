/* What `flopcast tune` says of layouts: degrees, and what their steps are made of. */
#ifndef FLOPCAST_CLI_TUNE_LAYOUT_H
#define FLOPCAST_CLI_TUNE_LAYOUT_H

#include "cli/records.h"
#include "cli/table.h"
#include "scenario/tune.h"

#include <stdio.h>

/* Degrees of tensor, context, pipeline, virtual, expert and data parallelism; no layout: unknown. */
void tune_layout_columns(struct table *table, const struct tune_candidate *candidate);
/* Shares of the step: kernels of the stage with most work as fast as alone, collectives of tensor, context and expert
 * groups that they wait for, the bubble, and the rest (messages between stages, gradients, weights, optimizer, kernels
 * that are slower beside collectives), which is what the simulation adds to the bound (scenario/bound.h). */
void tune_layout_shares(struct table *table, const struct tune_candidate *candidate);
/* The same for records; how many. */
enum { TUNE_LAYOUT_CELLS = 10 };
int tune_layout_cells(struct record_cell cells[TUNE_LAYOUT_CELLS], const struct tune_candidate *candidate);
/* Why the first of an order of n is that, beside those behind it. Nothing where it is no layout. */
void tune_layout_why(FILE *out, const struct tune *tune, const int *order, int n);

#endif
