/* Where flopcast's files lie, and how paths and short names of users find them.
 *
 * The folder is looked for beside the running program, then beside the shared object that this code
 * is in, so that an installed program, a build folder and a library in another process all find
 * theirs. A path is taken as it is if it exists; flopcast's own file of that name comes second, a
 * short name (names.c) last. A folder never shadows a short name. */
#include "base/files.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool base_files_holds(const char *folder, const char *name, struct arena *arena)
{
    return access(arena_printf(arena, "%s/%s", folder, name), R_OK) == 0;
}

/* The files beside the folder that the object (a program, or libflopcast.so) lies in; NULL: they
 * are not there. */
static const char *base_files_beside(const char *object, struct arena *arena)
{
    static const char *const folders[] = {"../share/flopcast", "../../share/flopcast", "../.."};
    const char *name = strrchr(object, '/');
    for (size_t i = 0; name && i < sizeof folders / sizeof *folders; i++) {
        char folder[PATH_MAX];
        if (realpath(
                arena_printf(arena, "%.*s/%s", (int)(name - object), object, folders[i]), folder) &&
            base_files_holds(folder, "topologies/gpus", arena))
            return arena_strdup(arena, folder);
    }
    return NULL;
}

/* Of the running program; "": not known. */
static void running(char program[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", program, PATH_MAX - 1);
    program[n > 0 ? n : 0] = '\0';
}

const char *files_program(struct arena *arena, const char *name)
{
    static const char *const places[] = {"", "../lib/flopcast/"};
    char program[PATH_MAX];
    running(program);
    const char *last = strrchr(program, '/');
    for (size_t i = 0; last && i < sizeof places / sizeof *places; i++) {
        const char *path =
            arena_printf(arena, "%.*s%s%s", (int)(last + 1 - program), program, places[i], name);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

/* Asked for each file that a scenario names, found once: it does not change while a program runs.
 */
static char beside[PATH_MAX];

static void find_beside(void)
{
    static const char here; /* in the object that this code was linked into */
    struct arena arena = ARENA_INIT;
    char program[PATH_MAX];
    running(program);
    const char *found = base_files_beside(program, &arena);
    Dl_info object;
    if (!found && dladdr(&here, &object) != 0 && object.dli_fname)
        found = base_files_beside(object.dli_fname, &arena);
    snprintf(beside, sizeof beside, "%s", found ? found : FLOPCAST_SOURCE_DIR);
    arena_release(&arena);
}

const char *files_folder(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *named = getenv("FLOPCAST_DATA");
    if (named && *named)
        return named;
    pthread_once(&once, find_beside);
    return beside;
}

const char *files_own(struct arena *arena, const char *name)
{
    return arena_printf(arena, "%s/%s", files_folder(), name);
}

/* A folder as Hugging Face's tools write models: its config.json. */
static const char *in_folder(struct arena *arena, enum files_kind kind, const char *path)
{
    struct stat there;
    bool folder =
        kind == FILES_MODELS && *path && stat(path, &there) == 0 && S_ISDIR(there.st_mode);
    const char *file = folder ? arena_printf(arena, "%s/config.json", path) : path;
    return folder && access(file, R_OK) == 0 ? file : path;
}

static const char *find_from(
    struct arena *arena, enum files_kind kind, const char *joined, const char *path)
{
    struct stat there;
    bool is_short = kind != FILES_ANY && files_is_short(path);
    if (!*path || *path == '/' ||
        (stat(joined, &there) == 0 && !(is_short && S_ISDIR(there.st_mode))))
        return joined;
    const char *own = files_own(arena, path);
    if (!is_short)
        return !files_holder(arena, joined) && files_holder(arena, own) ? own : joined;
    const char *name = files_short(arena, kind, path);
    return name ? files_own(arena, name) : joined;
}

const char *files_find_from(
    struct arena *arena, enum files_kind kind, const char *joined, const char *path)
{
    return in_folder(arena, kind, find_from(arena, kind, joined, path));
}

const char *files_find(struct arena *arena, enum files_kind kind, const char *path)
{
    return files_find_from(arena, kind, path, path);
}

/* What follows folder and '/' in path, or NULL: it is not inside. */
static const char *inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return n > 1 && strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

const char *files_name_from(struct arena *arena, const char *from, const char *path)
{
    char file[PATH_MAX], folder[PATH_MAX], own[PATH_MAX];
    const char *holder = files_holder(arena, path);
    if (!holder || !realpath(holder, file))
        return path;
    if (holder != path) /* a model in it */
        snprintf(strrchr(file, '/') + 1, PATH_MAX - (size_t)(strrchr(file, '/') + 1 - file),
            "%s.yaml", files_size_name(arena, path));
    if (!realpath(files_folder(), own))
        *own = '\0';
    const char *slash = from ? strrchr(from, '/') : NULL;
    const char *named = slash ? arena_printf(arena, "%.*s/", (int)(slash - from), from) : ".";
    bool known = from && realpath(named, folder);
    const char *name = inside(file, own);
    if (name && !(known && inside(folder, own)))
        return arena_strdup(arena, name);
    const char *below = known ? inside(file, folder) : NULL;
    if (below)
        return arena_strdup(arena, below);
    char *last = known ? strrchr(folder, '/') : NULL;
    if (last) {
        *last = '\0';
        below = inside(file, folder);
    }
    return below ? arena_printf(arena, "../%s", below) : arena_strdup(arena, file);
}
