/* The commands of other programs' files. argv[0] is the whole name, as in "flopcast scenario
 * import". Return the exit status; usage errors exit. */
#ifndef FLOPCAST_INTEROP_INTEROP_H
#define FLOPCAST_INTEROP_INTEROP_H

#include "options/command.h"

int scenario_import(int argc, char **argv);
int topology_import(int argc, char **argv);
int trace_scale(int argc, char **argv);
int calibrate_check_trace(int argc, char **argv); /* "flopcast calibrate check trace" */
int cmd_replay(int argc, char **argv);

/* Parts of `flopcast run`, which starts them itself: `run --chakra FOLDER` of one point ("chakra
 * export FOLDER FILE [KEY=VALUE...]"), and the file of `run --trace FILE.json.gz`: standard input,
 * compressed, to standard output; the exit status is an errno (program_filter()). */
int chakra_export(int argc, char **argv);
/* Of `flopcast tune --emit TRAINER`: "scenario emit TRAINER OUT FILE TITLE KEY=VALUE... [+ TITLE
 * KEY=VALUE...]...": the first of these points that the trainer has options for, into the file OUT
 * (-: standard output). */
int scenario_emit(int argc, char **argv);
int interop_compress(int argc, char **argv);

#endif
