/* What tells the points of a scenario apart: the options that are not the same in all of them. */
#ifndef FLOPCAST_CLI_VARY_H
#define FLOPCAST_CLI_VARY_H

#include "scenario/scenario.h"

struct vary_option {
    const char *path; /* "fsdp.limit_all_gathers", in the arena */
    const struct config_field *field;
    size_t offset; /* in struct scenario */
};
struct vary {
    VEC(struct vary_option) options;
};

/* Every option whose value differs between two points of the set. */
void vary_find(struct vary *out, const struct scenario_set *set, struct arena *arena);

/* Its value in a point as text, in the arena. */
const char *vary_text(const struct vary_option *option, const struct scenario *scenario, struct arena *arena);

#endif
