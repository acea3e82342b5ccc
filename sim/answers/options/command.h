/* What all commands have in common: their exit status, how they report messages, their examples.
 *
 * Exit status: 0 done (out of memory is a result), 1 the world failed (file, disk, database,
 * gnuplot), 2 wrong input or usage. Results go to stdout, everything else to stderr. */
#ifndef FLOPCAST_OPTIONS_COMMAND_H
#define FLOPCAST_OPTIONS_COMMAND_H

#include "base/status.h"

enum { CLI_OK = 0, CLI_WORLD = 1, CLI_INPUT = 2 };

/* What --help and the manual page of a command, by its whole name, show first; NULL: nothing. */
const char *command_example(const char *command);

/* Prints the messages on stderr; the exit status that they mean. */
int cli_report(const struct diag *diag);

#endif
