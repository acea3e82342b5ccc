/* What a table and a CSV of a search share. */
#ifndef FLOPCAST_CLI_TUNE_PRINT_H
#define FLOPCAST_CLI_TUNE_PRINT_H

#include "cli/sure.h"
#include "cli/tune.h"
#include "cli/vary.h"

struct tune_print {
    FILE *out;
    const struct tune_command *command;
    const struct scenario_set *set;
    const struct tune *tune;
    struct vary swept;
    bool noise, retries, tokens; /* whether these are columns */
    struct sure *sure;
    struct arena *arena;
};

/* Days for the tokens asked for; of an amount for 10^9 tokens that of all. */
double tune_days(const struct tune_print *print, const struct tune_rates *rates);
double tune_of_all(const struct tune_print *print, double per_gtokens);
/* The stack profile's name, "none". */
const char *tune_stack(const struct scenario_point *point, struct arena *arena);
/* What the scenario sweeps and the search does not settle. */
void tune_find_swept(
    struct vary *out, const struct scenario_set *set, const struct tune_candidate *any, struct arena *arena);
/* The points of the first variant: what differs between variants is no sweep. */
struct scenario_set tune_one_variant(const struct scenario_set *set, const struct tune_command *command);

#endif
