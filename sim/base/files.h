/* The files that come with flopcast: topologies, scenarios, measurements and figures.
 *
 * They lie in one folder, laid out as the source. It is the first of these that holds topologies/gpus:
 *   $FLOPCAST_DATA, which is taken unseen when it is set
 *   ../share/flopcast beside the folder of the program: an installed one (cmake --install)
 *   two folders above the program: a clone with its build folder, wherever it was moved to
 *   the source that the program was built from */
#ifndef FLOPCAST_BASE_FILES_H
#define FLOPCAST_BASE_FILES_H

#include "base/arena.h"

const char *files_folder(struct arena *arena);

/* The file `name` of that folder, as in files_own(arena, "topologies/gpus/a.yaml"); it need not be there. */
const char *files_own(struct arena *arena, const char *name);

/* A file that the user names: as it is where there is such a file, or where no file of that folder is called so either
 * (whoever opens it then tells that it is missing); else that one, so that `flopcast run scenarios/t5_scaling.yaml`
 * works from everywhere. */
const char *files_find(struct arena *arena, const char *path);

/* The same of a path that a file names: joined is what it is from the folder of that file. */
const char *files_find_from(struct arena *arena, const char *joined, const char *path);

/* How a file that is written to `from` names the file at path, which exists: flopcast's own by its name, but from
 * inside that folder; relative where one folder up holds both, so that it can move; else absolute. from NULL: not known
 * where it will lie. */
const char *files_name_from(struct arena *arena, const char *from, const char *path);

/* A file of that folder that is called as the last part of path, .yaml or not, by the name that files_find() takes
 * (of several folders' the first by alphabet); NULL: there is none. For messages about a path that is not there. */
const char *files_namesake(struct arena *arena, const char *path);

#endif
