/* Private to output_table.c and output_answer.c: the points that `flopcast run` prints. */
#ifndef FLOPCAST_CLI_OUTPUT_VIEW_H
#define FLOPCAST_CLI_OUTPUT_VIEW_H

#include "rows/sure.h"
#include "rows/vary.h"
#include "store/record.h"

struct view {
    const struct scenario_set *set;
    const struct scenario_result *results;
    struct arena *arena;
    struct vary vary; /* only what no other column shows */
    struct sure *sure;
    bool published, published_allocated, published_reserved, sampled;
    const struct record_column *shown[RECORD_MAX_CELLS]; /* those that have a place, by it */
    int n_shown;
    bool one_model, one_strategy, one_batch; /* in all points */
    int *reading_of; /* of a point: the first that differs from it in readings of the publication
                        alone; often itself */
    bool folded;     /* of several readings the first has rows, the others their range */
};

/* Whether the publication leaves the setting open: published.readings names it, and the command
 * line says nothing. */
bool view_is_reading(const struct view *view, const char *path);
const struct sure_range *view_range(const struct view *view, int i);

/* What comes first: of one point its speed, what limits it and whether it fits; of curves (points
 * that differ in GPUs alone) what they lose, and by what; else the fastest point. */
void view_answer(FILE *out, struct view *view);
/* Curves that the answer has no room for. */
void view_curves(FILE *out, struct view *view);
/* " --set cluster.gpus=64": what the command line set, without the paths of except, up to NULL. */
const char *view_overrides(const struct view *view, const char *const *except);

#endif
