/* The programs that flopcast is made of: flopcast itself, which people type, and flopcast-lab and
 * flopcast-interop, which have commands of their field. flopcast becomes one of them for such a
 * command, as git starts git-X; it lies beside flopcast, or in ../lib/flopcast.
 *
 *     flopcast-lab calibrate fit ARGUMENT...      what `flopcast calibrate fit ARGUMENT...` does
 *
 * Before the command may stand what it is to say of itself instead (describe_take()). */
#ifndef FLOPCAST_OPTIONS_PROGRAM_H
#define FLOPCAST_OPTIONS_PROGRAM_H

#include "options/command.h"
#include "options/describe.h"

#include <stdio.h>

#define PROGRAM_INTEROP "flopcast-interop"

/* What main() does first: --version, output that does not reach its file, MPI's ranks, GSL. False:
 * it failed. */
bool program_set_up(void);

#define SCENARIO_EMIT_OR "+" /* between two candidates of "scenario emit" (interop/parts.c) */

/* All of the main() of a program that flopcast starts, which has these commands. Returns the exit
 * status. */
int program_main(int argc, char **argv, const struct command_row *commands);

/* Becomes that program, for the command argv[0], "flopcast calibrate fit", with what has been asked
 * of its table (describe.h). Returns only where the program is missing, with that as a message:
 * CLI_WORLD. */
int program_become(const char *program, int argc, char **argv);

/* Runs it to its end, with these words after its name. What it has to say goes to stderr. */
enum status program_run(const char *program, const struct program_words *given, struct diag *diag);

/* The file at path, for writing, through `PROGRAM WORD`, which reads standard input, writes
 * standard output, and whose exit status is an errno or 0: so closing it fails as writing the file
 * would. NULL: as errno says; ENOPKG: there is no such program. */
FILE *program_filter(const char *program, const char *word, const char *path);

#endif
