/* What `flopcast tune` was asked, and how it prints what was found. */
#ifndef FLOPCAST_CLI_TUNE_H
#define FLOPCAST_CLI_TUNE_H

#include "cli/arguments.h"
#include "cli/records.h"
#include "scenario/tune.h"

#include <stdio.h>

/* --price NAME=DOLLARS: of the GPUs of the search whose name has all words of NAME, in that order: "h100" and
 * "h100-80gb" are H100-SXM5-80GB. */
struct tune_price {
    const char *name, *text; /* the text is all of it */
    double usd_per_hour;
};

struct tune_command {
    const char *file;
    int by, top; /* enum tune_order */
    enum records_format format;
    double tokens; /* to train on; 0: not said */
    const char *tokens_text;
    struct tune_options options;
    struct overrides overrides;
    VEC(struct tune_price) prices;
    struct arena arena;
};

/* After tune_finals() of the orders that are shown: the one asked for, and the first of the other. */
void tune_print_table(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena);
/* Every candidate. */
void tune_print_records(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena);

#endif
