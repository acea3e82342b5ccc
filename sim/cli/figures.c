#include "cli/figures.h"

#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>

void figures_find(const char **folder, const char **others, struct arena *arena)
{
    const char *given = getenv("FLOPCAST_PLOTS"), *own = files_own(arena, "plots");
    *folder = given ? given : own;
    *others = given ? own : NULL;
}
