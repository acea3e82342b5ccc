/* Which files are tables of runs, and which of their rows are asked for. */
#include "validate/validate.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_table_of_runs(const char *path)
{
    struct csv_table *csv = NULL;
    struct diag unread = DIAG_INIT; /* other files of the folder may be anything */
    bool is =
        csv_load(&csv, path, &unread) == STATUS_OK && csv_column(csv, "predicted_by") < 0 && validate_measures(csv);
    static const char *const required[] = {"id", "model", "topology", "gpus"};
    for (size_t i = 0; i < sizeof required / sizeof *required && is; i++)
        is = csv_column(csv, required[i]) >= 0;
    csv_release(csv);
    return is;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct validate_files validate_files_in(const char *folder, struct arena *arena)
{
    VEC(const char *) found = {0};
    static const char ending[] = ".csv";
    DIR *open = opendir(folder);
    for (const struct dirent *entry; open && (entry = readdir(open));) {
        size_t n = strlen(entry->d_name), tail = sizeof ending - 1;
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (n > tail && strcmp(entry->d_name + n - tail, ending) == 0 && is_table_of_runs(path))
            vec_push(&found, path);
    }
    if (open)
        closedir(open);
    struct validate_files files = {ARENA_ARRAY(arena, const char *, found.n + 1), found.n};
    for (int i = 0; i < found.n; i++)
        files.paths[i] = found.at[i];
    qsort(files.paths, (size_t)files.n, sizeof *files.paths, by_name);
    vec_free(&found);
    return files;
}

bool validate_is_of(const struct csv_table *csv, int row, const char *path, const char *pattern)
{
    char whole[512];
    snprintf(whole, sizeof whole, strpbrk(pattern, "*?") ? "%s" : "*%s*", pattern);
    const char *slash = strrchr(path, '/');
    return fnmatch(whole, csv_cell(csv, row, csv_column(csv, "source")), FNM_CASEFOLD) == 0 ||
           fnmatch(whole, slash ? slash + 1 : path, FNM_CASEFOLD) == 0;
}
