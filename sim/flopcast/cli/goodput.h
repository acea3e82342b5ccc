/* What `flopcast goodput` was asked, what it found, and how it prints and stores that. */
#ifndef FLOPCAST_CLI_GOODPUT_H
#define FLOPCAST_CLI_GOODPUT_H

#include "options/arguments.h"
#include "cli/own_runs.h"
#include "cli/price.h"
#include "rows/records.h"
#include "rows/sure.h"
#include "study/months.h"

#include <stdio.h>

struct goodput_command {
    const char *file, *db;
    enum records_format format;
    double days; /* 0: not said */
    struct token_count tokens;
    int seeds;
    bool sources;
    struct overrides overrides;
    struct prices prices;
    struct own_texts measured;
    struct arena arena;
};

void goodput_print(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct months_point *points, struct arena *arena);
/* Into command->db (tables goodput, goodput_point). */
enum status goodput_keep(const struct goodput_command *command, const struct scenario_set *set,
    const struct months_point *points, struct arena *arena, struct diag *diag);

#endif
