/* The command line: a table of commands, one file a command, argp for the options of each.
 *
 * Exit status: 0 done (out of memory is a result), 1 the world failed (file, disk, database, gnuplot), 2 wrong input or
 * usage. Results go to stdout, everything else to stderr. */
#ifndef FLOPCAST_CLI_CLI_H
#define FLOPCAST_CLI_CLI_H

#include "base/status.h"

enum { CLI_OK = 0, CLI_WORLD = 1, CLI_INPUT = 2 };

/* The whole program but the process's own set-up; argv as main() gets it, argv[0] is changed. Returns the exit status.
 */
int cli_main(int argc, char **argv);

/* What --help and the manual page of a command, by its whole name, show first; NULL: nothing. */
const char *command_example(const char *command);

/* Prints the messages on stderr; the exit status that they mean. */
int cli_report(const struct diag *diag);

/* A command: argv[0] is its whole name, as in "flopcast run". Returns the exit status; usage errors exit. */
int cmd_run(int argc, char **argv);
int cmd_waterfall(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_topology(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_whatif(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_memory(int argc, char **argv);
int cmd_capacity(int argc, char **argv);
int cmd_goodput(int argc, char **argv);
int cmd_together(int argc, char **argv);
int cmd_sensitivity(int argc, char **argv);
int cmd_collective(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_scenario(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_files(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);

/* The actions of `flopcast topology`, `scenario`, `trace` and `calibrate`, as commands: argv[0] is
 * "flopcast calibrate import". */
int scenario_import(int argc, char **argv);
int topology_import(int argc, char **argv);
int trace_scale(int argc, char **argv);
int trace_import(int argc, char **argv);
int calibrate_fit(int argc, char **argv);
int calibrate_import(int argc, char **argv);
int calibrate_check(int argc, char **argv);
int calibrate_check_trace(int argc, char **argv); /* "flopcast calibrate check trace" */
int calibrate_show(int argc, char **argv);

/* `flopcast help models`: the models that come along, and what a model file can say. Returns the exit status. */
int models_help(void);

#endif
