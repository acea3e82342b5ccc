/* What all commands have in common: how one is added, their exit status, how they report messages.
 *
 * Exit status: 0 done (out of memory is a result), 1 the world failed (file, disk, database,
 * gnuplot), 2 wrong input or usage. Results go to stdout, everything else to stderr. */
#ifndef FLOPCAST_OPTIONS_COMMAND_H
#define FLOPCAST_OPTIONS_COMMAND_H

#include "base/status.h"

enum { CLI_OK = 0, CLI_WORLD = 1, CLI_INPUT = 2 };

/* A command says all of itself in the file of its function, which gets its whole name as argv[0]
 * ("flopcast run") and returns the exit status; usage errors exit:
 *
 *     COMMAND(cmd_run, 2, "run", COMMAND_SHARES, "simulate scenarios; print, ...",
 *         "flopcast run t5_scaling");
 *
 * function, place in lists, name of one to three words, enum command_flag, what it does in a line,
 * and the example that --help and its manual page open with (lines of at most 68 characters; a test
 * runs each as it stands; NULL: none). For the compiler it is the function's declaration;
 * commands.cmake finds it in the folders of all programs, as a line that begins with COMMAND( and a
 * line that ends with );, and makes of it each program's table: of flopcast the commands of all, of
 * another program its own. */
#define COMMAND(function, ...) int function(int argc, char **argv)

enum command_flag {
    COMMAND_SHARES = 1,  /* ranks of MPI can share its work (crew/ranks.h) */
    COMMAND_GROUP = 2,   /* its first argument is an action: "trace" of "trace scale" */
    COMMAND_NO_PAGE = 4, /* of the manual; nor has a group */
    COMMAND_PART = 8     /* in no list: of another command, or started by one */
};
struct command_row {
    const char *name, *program; /* program: flopcast-lab, -interop; NULL: the one that runs */
    int flags;
    const char *summary, *example;
    int (*run)(int argc, char **argv);
};
/* The table of the program that runs, in the order of places; ends with a name NULL. */
void command_take(const struct command_row *table);

/* What --help and the manual page of a command, by its whole name, show first; NULL: nothing. */
const char *command_example(const char *command);

/* Prints the messages on stderr; the exit status that they mean. */
int cli_report(const struct diag *diag);

#endif
