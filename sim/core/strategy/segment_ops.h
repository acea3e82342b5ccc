/* Private to strategy/: what the ops of a segment need each time that a cell of its chunk is
 * emitted, found once.
 *
 * A step of a pipeline emits the same segments for each of hundreds of micro-batches. Which
 * activations come and go with an op, what it is called, and which kernel of the plan it was the
 * last time stand here by op. */
#ifndef FLOPCAST_STRATEGY_SEGMENT_OPS_H
#define FLOPCAST_STRATEGY_SEGMENT_OPS_H

#include "base/arena.h"
#include "model/model.h"

/* Activations that are allocated before an op, or freed behind it. */
enum segment_life {
    BORN_IN_FORWARD,
    LAST_IN_FORWARD,
    BORN_IN_BACKWARD,
    LAST_IN_BACKWARD,
    SEGMENT_LIFE_COUNT
};

/* By op: activations[first[k]] to activations[first[k + 1] - 1], in ascending order. */
struct segment_lives {
    const int *first, *activations;
};

/* Of one op. */
struct segment_op {
    const char *name; /* NULL: not yet */
    int32_t kernel;   /* of the plan; -1: not yet */
    int32_t group;    /* of a collective, with its queue; -1: not yet */
    int32_t queue;
};

struct segment_ops {
    const struct model_program *program;
    struct segment_lives lives[SEGMENT_LIFE_COUNT];
    struct segment_op *forward, *backward; /* by op of the program */
    const char **names;                    /* by activation; NULL: not yet */
};

/* By segment. In the arena. */
struct segment_ops *segment_ops_lay_out(const struct model_segments *segments, struct arena *arena);

#endif
