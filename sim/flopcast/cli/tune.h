/* What `flopcast tune` was asked, and how it prints what was found. */
#ifndef FLOPCAST_CLI_TUNE_H
#define FLOPCAST_CLI_TUNE_H

#include "options/arguments.h"
#include "cli/own_runs.h"
#include "cli/price.h"
#include "rows/records.h"
#include "study/tune.h"

#include <stdio.h>

struct tune_command {
    const char *file, *db;
    const char *out;  /* --out: of what --emit writes; NULL: stdout, and the table is on stderr */
    const char *emit; /* --emit: a trainer of tune_emit.c; NULL: not given */
    const char *strategy; /* --strategy: "all", or one of strategy_names; NULL: not given */
    bool is_model;        /* file is a model, no scenario */
    struct shard shard;
    struct ranks *ranks; /* NULL: without mpirun */
    int by, top;         /* enum tune_order */
    enum records_format format;
    struct token_count tokens; /* to train on */
    struct tune_options options;
    struct overrides overrides;
    struct prices prices;
    struct own_texts measured;
    struct own_runs own;
    struct sure *sure;
    struct arena arena;
};

/* The answer, after tune_finals() of the orders that are shown, the one asked for and the first of
 * the other: a table, or as CSV and JSON every candidate. */
void tune_print(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena);

/* Two lines: what all candidates have in common, and what was not searched. */
void tune_print_held(
    FILE *out, const struct tune_command *command, const struct tune *tune, struct arena *arena);

/* "tp 4, cp 2, pp 4, vp 10, micro-batch 1, checkpointing none", or "FULL_SHARD, micro-batch 1, ..."
 */
const char *tune_name(struct arena *arena, const struct tune_candidate *candidate);

/* The candidate as settings of the command's file: what --set gave beside the settings searched,
 * these, what the scenario sweeps. The caller frees the list; texts are in the arena. */
struct tune_overrides {
    VEC(struct scenario_override) list;
};
struct tune_overrides tune_overrides(const struct tune_command *command,
    const struct scenario_set *set, const struct tune_candidate *candidate, struct arena *arena);

/* tune_emit.c: the best that a trainer has options for, as its file (flopcast-interop,
 * exchange/emit.h). Nothing without --emit. */
void tune_emit_take(void *emit, const struct argument *argument); /* --emit */
void tune_emit(const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct diag *diag);

/* ---- tune_load.c ---- */

/* The points that a search begins with; sets what follows for the command: is_model, and the batch
 * and the degrees that the options then have. */
void tune_load(struct scenario_set *set, struct tune_command *command, struct diag *diag);
/* What the command line gives of a setting, the last time; NULL: nothing. */
const char *tune_given(const struct tune_command *command, const char *path);
bool tune_is_all(const struct tune_command *command); /* --strategy all */

/* ---- tune_layout.c ---- */

struct rows;

/* For people: kernels of the stage with most work as fast as alone, collectives of tensor, context
 * and expert groups that they wait for, fill and drain of the pipeline, and what the simulation
 * adds to that bound (study/bound.h). */
void tune_layout_shares(struct rows *rows, const struct tune_candidate *candidate);

/* Why the first of an order is that, beside those behind it, which differ from each other in more
 * than the chunks of a stage. Nothing where it is no layout. */
void tune_why(FILE *out, const struct tune *tune, const int *order, int n);

#endif
