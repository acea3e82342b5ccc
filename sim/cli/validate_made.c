#include "cli/validate_parts.h"

#include "cli/words.h"

#include <string.h>

static bool is_made_by(const struct validate_row *row, const char *made_by)
{
    return row->made_by && strcmp(row->made_by, made_by) == 0;
}

void validate_made_print(FILE *out, const struct validate_table *rows)
{
    int stale = 0, kinds = 0;
    for (int i = 0; i < rows->rows.n; i++) {
        const char *made_by = rows->rows.at[i].made_by;
        stale += rows->rows.at[i].stale;
        bool first = made_by != NULL;
        for (int j = 0; j < i && first; j++)
            first = !is_made_by(&rows->rows.at[j], made_by);
        if (!first)
            continue;
        int n = 0;
        for (int j = i; j < rows->rows.n; j++)
            n += is_made_by(&rows->rows.at[j], made_by);
        const char *commit = strchr(made_by, ' ');
        fprintf(out, "%s%d row%s by ", kinds++ ? "; " : "\nPredicted: ", n, plural(n));
        if (commit)
            fprintf(out, "build %.*s of commit %s", (int)(commit - made_by), made_by, commit + 1);
        else
            fprintf(out, "a build that is not stated");
    }
    if (kinds == 0)
        return;
    fprintf(out, ".\nStale, because something else would go in today: %d row%s", stale, plural(stale));
    for (int i = 0, named = 0; i < rows->rows.n; i++)
        if (rows->rows.at[i].stale && named++ < 20)
            fprintf(
                out, "%s%s%s", named == 1 ? ": " : ", ", rows->rows.at[i].id, named == 20 && stale > 20 ? ", ..." : "");
    fputs(".\n", out);
}
