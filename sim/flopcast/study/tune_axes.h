/* The axes of a search (study/tune.h): settings that candidates differ in, that follow from those,
 * and that make a candidate's command complete. They stand in the order of that command. */
#ifndef FLOPCAST_STUDY_TUNE_AXES_H
#define FLOPCAST_STUDY_TUNE_AXES_H

#include "base/vec.h"
#include "scenario/scenario.h"

enum tune_axis_index {
    TUNE_VERSION,
    TUNE_GPUS,
    TUNE_BATCH,
    TUNE_ACCUM,
    TUNE_CHECKPOINTING,
    TUNE_STRATEGY,
    TUNE_DEVICE_BATCH,
    TUNE_GLOBAL_BATCH,
    TUNE_SHARDING,
    TUNE_GROUP,
    TUNE_BACKWARD,
    TUNE_FORWARD,
    TUNE_STAGE,
    TUNE_ZERO1,
    TUNE_TENSOR,
    TUNE_SEQUENCE,
    TUNE_CONTEXT,
    TUNE_PIPELINE,
    TUNE_VIRTUAL,
    TUNE_FIRST,
    TUNE_LAST,
    TUNE_EXPERT,
    TUNE_OVERLAP_P2P,
    TUNE_DISTRIBUTED,
    TUNE_OVERLAP_REDUCE,
    TUNE_OVERLAP_GATHER,
    TUNE_AXES
};

/* What the chunks of a stage decide; what costs of blocks depend on (study/bound.h). */
enum {
    TUNE_OF_CHUNKS = 1 << TUNE_VIRTUAL | 1 << TUNE_FIRST | 1 << TUNE_LAST | 1 << TUNE_OVERLAP_P2P,
    TUNE_OF_BLOCKS = 1 << TUNE_TENSOR | 1 << TUNE_SEQUENCE | 1 << TUNE_CONTEXT | 1 << TUNE_EXPERT |
                     1 << TUNE_BATCH | 1 << TUNE_CHECKPOINTING
};

struct tune_search;
struct tune_values {
    VEC(int64_t) list;
};

struct tune_axis {
    const char *path;         /* of the setting, of type int64_t, int (a choice) or bool */
    size_t offset, size;      /* in struct scenario */
    unsigned of;              /* bits of enum strategy_kind: where it counts; 0: everywhere */
    const char *label, *unit; /* of its column for people, and in a candidate's name */
    /* What is tried of it, at a point that has its values of the axes before it in walked[]:
     * these, or what the function adds. Neither: it is not searched. */
    int n, list[3];
    void (*values)(struct tune_values *out, const struct tune_search *search);
};
extern const struct tune_axis tune_axes[TUNE_AXES];

static inline bool tune_axis_counts(enum tune_axis_index index, const struct scenario_point *point)
{
    unsigned of = tune_axes[index].of;
    return of == 0 || of >> point->options.strategy.kind & 1;
}
int64_t tune_axis_value(enum tune_axis_index index, const struct scenario_point *point);
/* The value as --set takes it. */
const char *tune_axis_text(
    enum tune_axis_index index, const struct scenario_point *point, struct arena *arena);
/* Whether two points of one base differ in an axis that is searched, but those of these bits. */
bool tune_axes_differ(
    const struct scenario_point *a, const struct scenario_point *b, unsigned except);

#endif
