/* What `flopcast tune` was asked, and how it prints what was found. */
#ifndef FLOPCAST_CLI_TUNE_H
#define FLOPCAST_CLI_TUNE_H

#include "cli/arguments.h"
#include "cli/price.h"
#include "cli/records.h"
#include "scenario/tune.h"

#include <stdio.h>

struct tune_command {
    const char *file, *db;
    struct shard shard;
    struct crew *crew;
    int by, top; /* enum tune_order */
    enum records_format format;
    struct token_count tokens; /* to train on */
    struct tune_options options;
    struct overrides overrides;
    struct prices prices;
    struct arena arena;
};

/* After tune_finals() of the orders that are shown: the one asked for, and the first of the other. */
void tune_print_table(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena);
/* Every candidate. */
void tune_print_records(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena);

#endif
