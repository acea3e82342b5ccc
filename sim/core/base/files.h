/* The files that come with flopcast: topologies, scenarios, measurements and figures.
 *
 * They lie in one folder, laid out as the source. It is the first of these that holds
 * topologies/gpus:
 *   $FLOPCAST_DATA, which is taken unseen when it is set ../share/flopcast beside the folder of the
 *   program: an installed one (cmake --install), or ../../share/flopcast: a program in lib/flopcast
 *   two folders above the program: a clone with its build folder, wherever it was moved to the same
 *   two beside libflopcast.so, in a process that has loaded it the source that the program was
 *   built from */
#ifndef FLOPCAST_BASE_FILES_H
#define FLOPCAST_BASE_FILES_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

const char *files_folder(void); /* lasts as long as the program */

/* The file `name` of that folder, as in files_own(arena, "topologies/gpus/a.yaml"); it need not be
 * there. */
const char *files_own(struct arena *arena, const char *name);

/* A part of the program by its file's name, as "flopcast-mpi.so": beside the running program, or in
 * ../lib/flopcast; NULL: it is in neither. */
const char *files_program(struct arena *arena, const char *name);

/* What kind of file is asked for, as `flopcast files` groups them. */
enum files_kind {
    FILES_ANY,
    FILES_SCENARIOS,
    FILES_MODELS,
    FILES_STACKS,
    FILES_CLUSTERS,
    FILES_NODES,
    FILES_GPUS,
    FILES_HARDWARE, /* clusters, nodes and GPUs */
    FILES_KIND_COUNT
};

/* The groups of `flopcast files`, of the kinds up to FILES_GPUS, and their folders. */
struct files_group {
    const char *name, *folder; /* "gpus", "topologies/gpus" */
    enum files_kind kind;
};
enum { FILES_GROUPS = 6 };
extern const struct files_group files_groups[FILES_GROUPS];

/* The path of a file that the user names. If there is such a file, path itself. Else, if flopcast's
 * folder has a file of that name, its path, so that `flopcast run scenarios/t5_scaling.yaml` works
 * from everywhere. Else path itself: whoever opens it reports that it is missing.
 *
 * A name without folder and ending is short: "llama2-7b", "h100". It stands for a file of the
 * kind's folder; case does not count. These rules apply in order: the file of that name; the only
 * file that begins with it, up to a '-', '_' or '.' ("h200" is h200-sxm-141gb; "llama3.1-7" is
 * nothing, not llama3.1-70b); the file that aliases.txt of the folder gives it (lines of a short
 * name and a file's name, "h100 h100-sxm5-80gb").
 *
 * Of FILES_MODELS also a folder with a config.json, as Hugging Face's tools write models: that
 * file. */
const char *files_find(struct arena *arena, enum files_kind kind, const char *path);

/* The same of a path that a file names: joined is what it is from the folder of that file. */
const char *files_find_from(
    struct arena *arena, enum files_kind kind, const char *joined, const char *path);

/* The end of a message about a path that is not there, as files_find() left it: "; did you mean
 * 'llama2-7b'?", or which files a short name could stand for, or where its namesake is, or what
 * lists the names; "" where nothing is known. */
const char *files_hint(struct arena *arena, enum files_kind kind, const char *path);

/* A model's file may hold several models, which differ in some keys: below its last key, "sizes:",
 * a line of two blanks each, "NAME: {key: value, ...} # comment", where NAME begins as the file's
 * name. "path/NAME.yaml", where there is no such file, is the model of that name in the file beside
 * it, for all functions here and config_load_kind(). A file with sizes is a model itself where it
 * has a "name:". */
struct files_size {
    const char *name, *comment; /* comment: "" where there is none */
};
struct files_sizes {
    VEC(struct files_size) list; /* the caller frees it */
};
/* The models that the file holds besides itself, in the order of the file. False: the file itself
 * is none. */
bool files_sizes(struct files_sizes *out, struct arena *arena, const char *path);
/* The file to open for path: itself, or the one that holds the model; NULL: neither can be read,
 * errno says why. */
const char *files_holder(struct arena *arena, const char *path);
/* What path is called there. */
const char *files_size_name(struct arena *arena, const char *path);
/* Of a model in a file that holds it; NULL: it is not there. */
const char *files_size_comment(struct arena *arena, const char *holder, const char *name);

/* All files of a kind, models of one file each by itself, by group and name. */
struct files_named {
    const struct files_group *group;
    const char *name; /* without ending */
};
struct files_names {
    VEC(struct files_named) list; /* the caller frees it */
};
struct files_names files_names(struct arena *arena, enum files_kind kind);

/* The file of a kind that a short name stands for, as `flopcast files` lists it; NULL: none, or
 * more than one. */
const char *files_short(struct arena *arena, enum files_kind kind, const char *name);

/* The short names that aliases.txt of the group gives to a file (its name without ending): "h100,
 * h100-sxm"; "": none. */
const char *files_aliases(struct arena *arena, const struct files_group *group, const char *name);

/* How a file that is written to `from` names the existing file at path. If path is one of
 * flopcast's own and `from` is not: by its name. If a common parent folder holds both: relative, so
 * that they can be moved together. Else: absolute. from NULL: not known where the file will lie. */
const char *files_name_from(struct arena *arena, const char *from, const char *path);

/* Whether it is one: neither a path nor a name with its ending. */
bool files_is_short(const char *path);

#endif
