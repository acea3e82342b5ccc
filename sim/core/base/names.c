/* Short names of the files that come with flopcast: what one stands for, and the hints of messages
 * about missing files.
 *
 * The folders are listed anew at each call, as a message or a few paths a run ask for it.
 * files_short() tries, in order, the very name (also of a model inside a file of several), any
 * case, the only name that begins with it up to the end of a part, and aliases.txt. files_hint()
 * goes on where that found nothing: a namesake in another folder, several that begin so, the
 * nearest name.
 *
 * Subtle: a part ends at '-', '_' or '.', so that "llama3.1-7" is not taken for llama3.1-70b. */
#include "base/files.h"
#include "base/status.h"
#include "base/vec.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char ending[] = ".yaml";

const struct files_group files_groups[FILES_GROUPS] = {
    {"scenarios", "scenarios", FILES_SCENARIOS},
    {"models", "scenarios/models", FILES_MODELS},
    {"stacks", "scenarios/stacks", FILES_STACKS},
    {"clusters", "topologies/clusters", FILES_CLUSTERS},
    {"nodes", "topologies/nodes", FILES_NODES},
    {"gpus", "topologies/gpus", FILES_GPUS},
};

static bool base_names_belongs(const struct files_group *group, enum files_kind kind)
{
    bool hardware =
        group->kind == FILES_CLUSTERS || group->kind == FILES_NODES || group->kind == FILES_GPUS;
    return kind == FILES_ANY || group->kind == kind || (kind == FILES_HARDWARE && hardware);
}

/* As their files are sorted. */
static int base_names_by_name(const void *a, const void *b)
{
    const struct files_named *one = a, *other = b;
    int order = one->group < other->group ? -1 : one->group > other->group;
    size_t n = 0;
    while (one->name[n] && one->name[n] == other->name[n])
        n++;
    return order ? order
                 : (one->name[n] ? one->name[n] : '.') - (other->name[n] ? other->name[n] : '.');
}

/* The models of a file, or whatever else a file of the group is. */
static void add_names(struct files_names *names, const struct files_group *group, const char *name,
    struct arena *arena)
{
    struct files_sizes sizes = {0};
    const char *path =
        files_own(arena, arena_printf(arena, "%s/%s%s", group->folder, name, ending));
    if (group->kind != FILES_MODELS || files_sizes(&sizes, arena, path))
        vec_push(&names->list, (struct files_named){group, name});
    for (int i = 0; i < sizes.list.n; i++)
        vec_push(&names->list, (struct files_named){group, sizes.list.at[i].name});
    vec_free(&sizes.list);
}

struct files_names files_names(struct arena *arena, enum files_kind kind)
{
    struct files_names names = {0};
    for (int g = 0; g < FILES_GROUPS; g++) {
        DIR *folder = base_names_belongs(&files_groups[g], kind)
                          ? opendir(files_own(arena, files_groups[g].folder))
                          : NULL;
        for (const struct dirent *entry; folder && (entry = readdir(folder));) {
            size_t n = strlen(entry->d_name), tail = sizeof ending - 1;
            if (n > tail && strcmp(entry->d_name + n - tail, ending) == 0)
                add_names(&names, &files_groups[g],
                    arena_printf(arena, "%.*s", (int)(n - tail), entry->d_name), arena);
        }
        if (folder)
            closedir(folder);
    }
    if (names.list.n)
        qsort(names.list.at, (size_t)names.list.n, sizeof *names.list.at, base_names_by_name);
    return names;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool files_is_short(const char *path)
{
    size_t n = strlen(path);
    bool yaml = n >= sizeof ending - 1 && strcmp(path + n - (sizeof ending - 1), ending) == 0;
    bool json = n >= 5 && strcmp(path + n - 5, ".json") == 0;
    return n > 0 && !strchr(path, '/') && !yaml && !json && *path != '.';
}

static bool begins(const char *name, const char *with)
{
    return strncasecmp(name, with, strlen(with)) == 0;
}

/* Up to where a part of the name ends: what follows is no more of a number or a word. */
static bool begins_whole(const char *name, const char *with)
{
    size_t n = strlen(with);
    return begins(name, with) && (name[n] == '\0' || strchr("-_.", name[n]));
}

/* Called with each line of the group's aliases.txt: a short name, a file's. Not with comments. */
typedef void (*on_alias)(void *self, const char *name, const char *file);

static void read_aliases(
    struct arena *arena, const struct files_group *group, on_alias call, void *self)
{
    FILE *in = fopen(files_own(arena, arena_printf(arena, "%s/aliases.txt", group->folder)), "r");
    char *line = NULL, *rest = NULL;
    size_t room = 0;
    while (in && getline(&line, &room, in) > 0) {
        const char *name = strtok_r(line, " \t\r\n", &rest),
                   *file = strtok_r(NULL, " \t\r\n", &rest);
        if (name && *name != '#' && file)
            call(self, name, file);
    }
    free(line);
    if (in)
        fclose(in);
}

struct wanted {
    struct arena *arena;
    const char *name, *file; /* file: found */
};

static void compare_alias(void *self, const char *name, const char *file)
{
    struct wanted *wanted = self;
    if (!wanted->file && strcasecmp(name, wanted->name) == 0)
        wanted->file = arena_strdup(wanted->arena, file);
}

static const char *base_names_listed(
    struct arena *arena, const struct files_group *group, const char *name)
{
    return arena_printf(arena, "%s/%s%s", group->folder, name, ending);
}

/* The group has a file, or a model in one, of this very name. */
static bool base_names_has(struct arena *arena, const struct files_group *group, const char *name)
{
    const char *own = files_own(arena, base_names_listed(arena, group, name)),
               *holder = files_holder(arena, own);
    if (!holder || holder != own || group->kind != FILES_MODELS)
        return holder != NULL;
    struct files_sizes sizes;
    bool itself = files_sizes(&sizes, arena, own);
    vec_free(&sizes.list);
    return itself;
}

const char *files_short(struct arena *arena, enum files_kind kind, const char *name)
{
    for (int g = 0; g < FILES_GROUPS; g++)
        if (base_names_belongs(&files_groups[g], kind) &&
            base_names_has(arena, &files_groups[g], name))
            return base_names_listed(arena, &files_groups[g], name);
    struct files_names names = files_names(arena, kind);
    const struct files_named *exact = NULL, *part = NULL;
    int parts = 0;
    for (int i = names.list.n - 1; i >= 0; i--) { /* of several kinds the first group wins */
        const struct files_named *file = &names.list.at[i];
        if (strcasecmp(file->name, name) == 0)
            exact = file;
        if (begins_whole(file->name, name)) {
            part = file;
            parts++;
        }
    }
    const struct files_named *found = exact ? exact : parts == 1 ? part : NULL;
    const char *path = found ? base_names_listed(arena, found->group, found->name) : NULL;
    for (int g = 0; g < FILES_GROUPS && !path; g++) {
        struct wanted wanted = {arena, name, NULL};
        if (base_names_belongs(&files_groups[g], kind))
            read_aliases(arena, &files_groups[g], compare_alias, &wanted);
        if (wanted.file)
            path = base_names_listed(arena, &files_groups[g], wanted.file);
    }
    vec_free(&names.list);
    return path;
}

struct aliases {
    struct arena *arena;
    const char *file, *text;
};

static void add_alias(void *self, const char *name, const char *file)
{
    struct aliases *all = self;
    if (strcmp(file, all->file) == 0)
        all->text = arena_printf(all->arena, "%s%s%s", all->text, *all->text ? ", " : "", name);
}

const char *files_aliases(struct arena *arena, const struct files_group *group, const char *name)
{
    struct aliases all = {arena, name, ""};
    read_aliases(arena, group, add_alias, &all);
    return all.text;
}

/* What is asked for by a short name: the name alone where the kind says in which folder it is. */
static const char *as_named(
    struct arena *arena, const struct files_named *file, enum files_kind kind)
{
    return kind == FILES_ANY ? base_names_listed(arena, file->group, file->name) : file->name;
}

/* A cluster and its node may have one name. */
static bool is_listed(
    const struct files_names *names, int n, const struct files_named *file, enum files_kind kind)
{
    for (int i = 0; i < n && kind != FILES_ANY; i++)
        if (strcmp(names->list.at[i].name, file->name) == 0)
            return true;
    return false;
}

static const char *several(
    struct arena *arena, const struct files_names *names, enum files_kind kind, const char *name)
{
    enum { MOST = 12 };
    const char *text = arena_printf(arena, "; '%s' could be ", name);
    int n = 0;
    for (int i = 0; i < names->list.n; i++) {
        const struct files_named *file = &names->list.at[i];
        if (begins(file->name, name) && !is_listed(names, i, file, kind) && n++ < MOST)
            text =
                arena_printf(arena, "%s%s%s", text, n > 1 ? ", " : "", as_named(arena, file, kind));
    }
    return arena_printf(arena, "%s%s; write one of them", text, n > MOST ? ", ..." : "");
}

/* What a name may be meant for: files, and after them the other names that they have. */
struct candidates {
    struct arena *arena;
    VEC(const char *) list;
};

static void base_names_add_candidate(void *self, const char *name, const char *file)
{
    struct candidates *all = self;
    (void)file;
    vec_push(&all->list, arena_strdup(all->arena, name));
}

static const char *nearest(
    struct arena *arena, const struct files_names *names, enum files_kind kind, const char *name)
{
    struct candidates all = {.arena = arena};
    for (int i = 0; i < names->list.n; i++)
        vec_push(&all.list, names->list.at[i].name);
    for (int g = 0; g < FILES_GROUPS && kind != FILES_ANY; g++)
        if (base_names_belongs(&files_groups[g], kind))
            read_aliases(arena, &files_groups[g], base_names_add_candidate, &all);
    const char *near = nearest_name(name, all.list.at, (size_t)all.list.n), *hint = NULL;
    for (int i = 0; near && i < all.list.n && !hint; i++)
        if (all.list.at[i] == near)
            hint = arena_printf(arena, "; did you mean '%s'?",
                i < names->list.n ? as_named(arena, &names->list.at[i], kind) : near);
    vec_free(&all.list);
    return hint;
}

/* The file of any folder that is called so, with ending or without. */
static const char *namesake(struct arena *arena, const struct files_names *names, const char *last)
{
    for (int i = 0; i < names->list.n; i++) {
        const struct files_named *file = &names->list.at[i];
        if (strcmp(file->name, last) == 0 ||
            strcmp(arena_printf(arena, "%s%s", file->name, ending), last) == 0)
            return arena_printf(
                arena, "; flopcast's own is %s", base_names_listed(arena, file->group, file->name));
    }
    return NULL;
}

static const char *lists(struct arena *arena, enum files_kind kind)
{
    for (int g = 0; g < FILES_GROUPS; g++)
        if (files_groups[g].kind == kind)
            return arena_printf(arena, "; `flopcast files %s` lists the names that come along",
                files_groups[g].name);
    return kind == FILES_HARDWARE ? "; `flopcast files` lists the names that come along" : "";
}

const char *files_hint(struct arena *arena, enum files_kind kind, const char *path)
{
    const char *last = last_part(path);
    struct files_names all = files_names(arena, FILES_ANY), names = files_names(arena, kind);
    const char *hint = *last ? namesake(arena, &all, last) : "";
    int beginning = 0;
    for (int i = 0; i < names.list.n && files_is_short(last); i++)
        beginning += begins(names.list.at[i].name, last);
    if (!hint && beginning > 1)
        hint = several(arena, &names, kind, last);
    for (int i = 0; i < names.list.n && !hint && beginning == 1; i++)
        if (begins(names.list.at[i].name, last))
            hint = arena_printf(
                arena, "; did you mean '%s'?", as_named(arena, &names.list.at[i], kind));
    if (!hint && files_is_short(last))
        hint = nearest(arena, &names, kind, last);
    bool other = !hint && kind == FILES_MODELS && files_is_short(last);
    if (!hint)
        hint = files_is_short(last) ? lists(arena, kind) : "";
    if (other)
        hint = arena_printf(arena,
            "%s; of any other model, put the config.json of Hugging Face into a folder '%s' here",
            hint, last);
    vec_free(&all.list);
    vec_free(&names.list);
    return hint;
}
