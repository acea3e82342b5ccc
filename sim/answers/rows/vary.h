/* The options that differ between points of a scenario. */
#ifndef FLOPCAST_ROWS_VARY_H
#define FLOPCAST_ROWS_VARY_H

#include "scenario/scenario.h"
#include "store/record.h"

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

/* The same of all sets, each option once. */
void vary_find_all(struct vary *out, const struct scenario_set *sets, int n, struct arena *arena);

/* Without those that "t5-11b FULL_SHARD, batch 8" and a number of GPUs say. */
void vary_find_unnamed(struct vary *out, const struct scenario_set *set, struct arena *arena);

/* A point without its GPUs: "t5-11b FULL_SHARD, batch 8, fsdp.limit_all_gathers false". vary: by
 * vary_find_unnamed. */
const char *vary_name(
    const struct vary *vary, const struct scenario_point *point, struct arena *arena);

/* Of a path the last two names, which distinguish the files of a sweep; else vary_text(). */
const char *vary_short(
    const struct vary_option *option, const struct scenario *scenario, struct arena *arena);

/* "train.attention=flash; cluster.gpus=16": as --set takes them. */
const char *vary_assignments(
    const struct vary *vary, const struct scenario_point *point, struct arena *arena);

/* An error when the set has several points; wants_one: "--trace shows one". */
enum status vary_refuse_several(
    const struct scenario_set *set, const char *wants_one, struct arena *arena, struct diag *diag);

/* Whether two points differ in it. */
bool vary_differs(
    const struct vary_option *option, const struct scenario *a, const struct scenario *b);

/* Its value in a point for programs: numbers in base SI, not their text. */
struct record_cell vary_cell(const struct vary_option *option, const struct scenario *scenario);

/* Its value in a point as text, in the arena. */
const char *vary_text(
    const struct vary_option *option, const struct scenario *scenario, struct arena *arena);

#endif
