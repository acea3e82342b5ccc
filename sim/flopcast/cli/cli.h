/* The command line of flopcast: a table of commands, one file a command, argp for the options of
 * each. */
#ifndef FLOPCAST_CLI_CLI_H
#define FLOPCAST_CLI_CLI_H

#include "options/command.h"

/* The whole program but the process's own set-up; argv as main() gets it, argv[0] is changed.
 * Returns the exit status. */
int cli_main(int argc, char **argv);

/* A command: argv[0] is its whole name, as in "flopcast run". Returns the exit status; usage errors
 * exit. */
int cmd_run(int argc, char **argv);
int cmd_waterfall(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_topology(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_whatif(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_memory(int argc, char **argv);
int cmd_capacity(int argc, char **argv);
int cmd_goodput(int argc, char **argv);
int cmd_sensitivity(int argc, char **argv);
int cmd_collective(int argc, char **argv);
int cmd_scenario(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_files(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);

/* All of flopcast-lab and flopcast-interop: argv[0] is the whole name, as in "flopcast calibrate
 * import". */
int cmd_elsewhere(int argc, char **argv);

/* `flopcast help models`: the models that come along, and what a model file can say. Returns the
 * exit status. */
int models_help(void);

#endif
