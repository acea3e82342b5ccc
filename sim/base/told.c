#include "base/told.h"

#include "base/arena.h"

#include <stdlib.h>

struct told told_begin(int n_jobs)
{
    return (struct told){xcalloc((size_t)n_jobs, sizeof(struct diag *)), n_jobs};
}

void told_keep(struct told *told, int job, const struct diag *diag)
{
    if (diag->used == 0)
        return;
    told->of[job] = xcalloc(1, sizeof *diag);
    *told->of[job] = *diag;
}

enum status told_end(struct told *told, struct diag *diag)
{
    enum status worst = STATUS_OK;
    for (int job = 0; job < told->n; job++) {
        if (!told->of[job])
            continue;
        worst = told->of[job]->worst > worst ? told->of[job]->worst : worst;
        diag_merge(diag, told->of[job]);
        free(told->of[job]);
    }
    free(told->of);
    *told = (struct told){0};
    return worst;
}
