/* Private to scenario: what the files of the search share. */
#ifndef FLOPCAST_STUDY_TUNE_SEARCH_H
#define FLOPCAST_STUDY_TUNE_SEARCH_H

#include "study/tune.h"

/* ---- tune.c ---- */

/* Whether --set gave the setting of this path. */
bool tune_is_set(const struct scenario_point *point, const char *path);
/* A combination that cannot be; of the first one the reason is kept. */
void tune_refuse(struct tune *tune, const struct diag *diag, struct arena *arena);
/* The chosen candidates (n indices), with their points' noise or without it; their states and
 * rates. divided: of several shards each does a part. */
enum status tune_simulate(struct tune *tune, const int *chosen, int n, bool noise, bool divided,
    scenario_progress progress, void *self, struct diag *diag);

/* ---- tune_layout.c ---- */

/* Whether layouts are searched: strategy: megatron. */
static inline bool layout_searched(const struct scenario_point *point)
{
    return point->options.strategy.kind == STRATEGY_MEGATRON;
}
/* What layouts replace, out of the way; the batch of a step of the job is what all of them have. */
void layout_base(struct scenario_point *point, const struct tune_options *options);
/* Every layout that the job could run, with what it takes at least (bound.h); those whose bytes do
 * not fit are pruned. */
void layout_candidates(struct tune *out, const struct scenario_point *base, int base_index,
    int group, const struct tune_options *options, struct arena *arena);
void layout_bounds(struct tune *tune);
/* Simulate layouts (of a bounded search all), of each group the one with the least bound first,
 * until no bound that is left is below options->keep of the times found. */
enum status layout_run(struct tune *tune, const struct tune_options *options,
    scenario_progress progress, void *self, struct diag *diag);
/* The settings that differ between layouts, and those that go with them; NULL ends. */
extern const char *const layout_paths[];

#endif
