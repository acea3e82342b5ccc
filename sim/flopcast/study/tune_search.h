/* Private to the search: what its files share. */
#ifndef FLOPCAST_STUDY_TUNE_SEARCH_H
#define FLOPCAST_STUDY_TUNE_SEARCH_H

#include "study/tune.h"

/* Whether layouts are searched: strategy: megatron. */
static inline bool layout_searched(const struct scenario_point *point)
{
    return point->options.strategy.kind == STRATEGY_MEGATRON;
}

/* A combination that cannot be; of the first one the reason is kept. */
void tune_refuse(struct tune *tune, const struct diag *diag, struct arena *arena);

/* tune_bounds.c: what each candidate takes at least. Those whose bytes do not fit are pruned; those
 * whose host memory is too small for what they offload, which only the plan knows, are refused. */
void tune_find_bounds(struct tune *tune, struct arena *arena);

/* tune_simulate.c: the chosen candidates (n indices), with their points' noise or without it; their
 * states and rates. divided: of several shards each does a part. */
enum status tune_simulate(struct tune *tune, const int *chosen, int n, bool noise, bool divided,
    scenario_progress progress, void *self, struct diag *diag);

#endif
