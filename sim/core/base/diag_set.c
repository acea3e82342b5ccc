#include "base/diag_set.h"

#include "base/arena.h"

#include <stdlib.h>

struct diag_set diag_set_begin(int n_jobs)
{
    return (struct diag_set){xcalloc((size_t)n_jobs, sizeof(struct diag *)), n_jobs};
}

void diag_set_keep(struct diag_set *set, int job, const struct diag *diag)
{
    if (diag->used == 0)
        return;
    set->by_job[job] = xcalloc(1, sizeof *diag);
    *set->by_job[job] = *diag;
}

enum status diag_set_end(struct diag_set *set, struct diag *diag)
{
    enum status worst = STATUS_OK;
    for (int job = 0; job < set->n; job++) {
        if (!set->by_job[job])
            continue;
        worst = set->by_job[job]->worst > worst ? set->by_job[job]->worst : worst;
        diag_merge(diag, set->by_job[job]);
        free(set->by_job[job]);
    }
    free(set->by_job);
    *set = (struct diag_set){0};
    return worst;
}
