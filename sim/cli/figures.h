/* What commands that draw from a database have in common. */
#ifndef FLOPCAST_CLI_FIGURES_H
#define FLOPCAST_CLI_FIGURES_H

#include "base/arena.h"
#include "cli/arguments.h"
#include "report/report.h"

#define FIGURES_DB "results/flopcast.db" /* where no --db is given */
#define FIGURES_DB_OPTION(type, path)                                                                                  \
    {                                                                                                                  \
        "db", "PATH", "The database of `flopcast run --db` (default: " FIGURES_DB ")", OPTION_TEXT,                    \
            .member = offsetof(type, path)                                                                             \
    }

/* The folders of figures: $FLOPCAST_PLOTS, then flopcast's own. */
void figures_find(const char **folder, const char **others, struct arena *arena);

#endif
