/* Private to cli: a remark on a comparison whose two sides rest on numbers of different kinds (study/evidence.h). */
#ifndef FLOPCAST_CLI_EVIDENCE_H
#define FLOPCAST_CLI_EVIDENCE_H

#include "cli/vary.h"
#include "study/evidence.h"
#include "study/tune.h"

#include <stdio.h>

struct evidence_pair {
    const struct scenario_point *points[2];
    double speeds[2];     /* of a GPU; 0: out of memory */
    const char *names[2]; /* NULL: those of the GPUs, or of the clusters where these are the same */
    const char *what;     /* "gpt2 DDP, batch 8, 16 GPUs"; NULL: stands above it */
};

/* A paragraph below a table, or (out is NULL) a warning in diag. Nothing if no number of only one side matters. */
void evidence_report(FILE *out, const struct evidence_pair *pair, struct source_pos at, struct diag *diag);

/* The same of a set that sweeps its cluster: each topology beside the first one's, at the first point that ran and the
 * point that differs from it in the fewest other settings. */
void evidence_report_swept(
    FILE *out, const struct scenario_set *set, const struct scenario_result *results, struct diag *diag);

/* The same of a search over clusters: the fastest candidate of each, without noise, beside the fastest of all. */
void evidence_report_search(FILE *out, const struct tune *tune, const char *file, struct diag *diag);

#endif
