/* Values of options that several commands have. A mistake is a usage error: it is printed, and the program ends. */
#ifndef FLOPCAST_CLI_ARGUMENTS_H
#define FLOPCAST_CLI_ARGUMENTS_H

#include "scenario/scenario.h"

#include <argp.h>

/* Flags of struct argp_option, beside those of argp. An option may be given once; a list several times. Of OPTION_KEYS,
 * a list of KEY=VALUE, each key once, or once more after an option with OPTION_NEXT. */
enum { OPTION_LIST = 1 << 16, OPTION_KEYS = 1 << 17, OPTION_NEXT = 1 << 18 };

/* --wide, as .children of the struct argp of a command that prints tables (cli/table.h). */
extern const struct argp_child arguments_table[];
/* The same with --jobs N, of a command that simulates several points. */
extern const struct argp_child arguments_simulate[];

/* argp_parse(), for all commands: an option that is given too often is a usage error; the last one is not taken
 * silently. */
void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/* A count from 1 to most; option without its dashes. */
int argument_count(const char *option, const char *text, int most, struct argp_state *state);
/* "15T", "11.3B", "7e9": a number with K, M, B or T, powers of 1000; 0 when text is something else. */
double argument_scaled(const char *text);
/* How many samples to draw: an interval takes two. */
int argument_samples(const char *text, struct argp_state *state);

/* --option KEY=VALUE; the key is copied into the arena, the value borrowed. */
struct scenario_override argument_override(
    const char *option, const char *text, struct arena *arena, struct argp_state *state);

/* Index in names (NULL-terminated), which a message lists. */
int argument_name(const char *option, const char *text, const char *const *names, struct argp_state *state);

#endif
