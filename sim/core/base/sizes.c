/* Model files that hold several models, read line by line: these functions are asked for names and
 * comments only, and for every file of the folder, so no document is built. The format is that of
 * files.h, with fixed indentation. */
#include "base/files.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char list_ending[] = ".yaml", head[] = "sizes:", blanks[] = "  ";
enum { ENDING = sizeof list_ending - 1, BLANKS = sizeof blanks - 1 };

static struct files_size sizes_size_of(struct arena *arena, const char *line)
{
    size_t n = strcspn(line + BLANKS, ":");
    const char *comment = strstr(line, "} #");
    comment = comment ? comment + 3 + strspn(comment + 3, " ") : "";
    return (struct files_size){.name = arena_printf(arena, "%.*s", (int)n, line + BLANKS),
        .comment = arena_printf(arena, "%.*s", (int)strcspn(comment, "\n"), comment)};
}

bool files_sizes(struct files_sizes *out, struct arena *arena, const char *path)
{
    *out = (struct files_sizes){0};
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    bool below = false, named = false;
    while (in && getline(&line, &room, in) > 0) {
        if (below && strncmp(line, blanks, BLANKS) == 0 && strchr(line, '{'))
            vec_push(&out->list, sizes_size_of(arena, line));
        below |= strncmp(line, head, sizeof head - 1) == 0;
        named |= strncmp(line, "name:", 5) == 0;
    }
    free(line);
    if (in)
        fclose(in);
    return in && (named || out->list.n == 0);
}

const char *files_size_comment(struct arena *arena, const char *holder, const char *name)
{
    struct files_sizes sizes;
    const char *found = NULL;
    files_sizes(&sizes, arena, holder);
    for (int i = 0; i < sizes.list.n && !found; i++)
        found = strcmp(sizes.list.at[i].name, name) == 0 ? sizes.list.at[i].comment : NULL;
    vec_free(&sizes.list);
    return found;
}

const char *files_size_name(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    size_t n = strlen(last);
    bool yaml = n > ENDING && strcmp(last + n - ENDING, list_ending) == 0;
    return arena_printf(arena, "%.*s", (int)(yaml ? n - ENDING : 0), last);
}

/* Shorter and shorter beginnings of the name: the file that holds it has one of these as its name.
 * errno is that of path. */
const char *files_holder(struct arena *arena, const char *path)
{
    if (access(path, R_OK) == 0)
        return path;
    int reason = errno;
    const char *name = files_size_name(arena, path), *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    for (size_t n = strlen(name); n-- > 1;) {
        const char *holder = arena_printf(arena, "%.*s%s", (int)(folder + n), path, list_ending);
        if (access(holder, R_OK) == 0 && files_size_comment(arena, holder, name))
            return holder;
    }
    errno = reason;
    return NULL;
}
