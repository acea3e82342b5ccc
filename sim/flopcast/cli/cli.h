/* The command line of flopcast: one file a command (options/command.h), argp for the options of
 * each. */
#ifndef FLOPCAST_CLI_CLI_H
#define FLOPCAST_CLI_CLI_H

#include "options/command.h"

/* The whole program but the process's own set-up; argv as main() gets it, argv[0] is changed.
 * Returns the exit status. */
int cli_main(int argc, char **argv);

/* A command that another program has. */
int cmd_elsewhere(int argc, char **argv);

/* `flopcast help models`: the models that come along, and what a model file can say. Returns the
 * exit status. */
int models_help(void);

#endif
