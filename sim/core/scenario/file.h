/* What the files of this module share: a scenario file as read, its sweep, its inputs. Nobody else
 * includes this. These functions report mistakes to diag and go on; the loader checks there whether
 * there were any. */
#ifndef FLOPCAST_SCENARIO_FILE_H
#define FLOPCAST_SCENARIO_FILE_H

#include "base/vec.h"
#include "scenario/scenario.h"
#include "scenario/stack.h"

struct scenario_file {
    struct scenario options;
    struct config_node sweep, assumptions, measured;
};
extern const struct config_table scenario_file_table;
/* The sections that a framework decides: train, fsdp ... host, and of run what its launcher sets.
 */
extern const struct config_table scenario_framework_table;
extern const struct config_table scenario_host_table; /* doubles of struct host_options */

/* ---- parallelism.c ---- */

/* A key that asks for tensor, pipeline, context, sequence or expert parallelism, in any framework's
 * spelling: the sentence that says so. NULL: it does not. */
const char *parallelism_elsewhere(const char *key);

/* ---- load.c ---- */

/* Of options as they were read: a word for a strategy (strategy_words) becomes the strategy and its
 * setting, which has the word's origin. What somebody else gave of that setting is the word's if
 * that is from nearer (--set before the file), and an error where both stand in one place and
 * differ. prefix: of paths in origins, as "settings.". */
void strategy_word_take(struct scenario *options, const char *prefix,
    struct config_origins *origins, struct arena *arena, struct diag *diag);

/* The list moves into the arena; it is not pushed to any more. */
void scenario_keep_origins(struct config_origins *origins, struct arena *arena);

/* ---- sweep.c ---- */

/* A swept key. Keys with the same axis number go together; axes are numbered from 0 without gaps,
 * in order. */
struct sweep_key {
    const char *path; /* "train.micro_batch" */
    struct source_pos at;
    struct config_node values; /* a sequence */
    int axis;
    bool lost;             /* a key of its axis was taken out; then: */
    int *places, n_places; /* of the list that are swept; NULL: all */
};
struct sweep {
    VEC(struct sweep_key) keys;
};

/* Append the axes of a scenario file's 'sweep'. */
void sweep_read(
    struct sweep *sweep, struct config_node node, struct arena *arena, struct diag *diag);
/* A value set from outside takes the place of a swept key's list: a list is swept instead, anything
 * else is assigned to base. */
void sweep_override(struct sweep *sweep, struct sweep_key key, struct scenario *base,
    struct arena *arena, struct config_origins *origins, struct diag *diag);
/* The key is not swept any more. */
void sweep_drop(struct sweep *sweep, const char *path);
/* Every key exists and stands once, every value fits its field, lists of an axis have one length,
 * not too many points. Finds the places of axes that lost a key. */
void sweep_check(struct sweep *sweep, struct arena *arena, struct diag *diag);
int sweep_points(const struct sweep *sweep); /* 1 without axes; the sweep has passed sweep_check */
/* Put the values of a point in; the first axis varies slowest. */
void sweep_assign(const struct sweep *sweep, int point, struct scenario *options,
    struct arena *arena, struct config_origins *origins);

/* ---- inputs.c, published.c ---- */

struct csv_table;
enum input_kind { INPUT_HW, INPUT_MODEL, INPUT_STACK, INPUT_PUBLISHED };

/* A file that points refer to. Each is read once, and what is wrong with it is reported once. */
struct input {
    enum input_kind kind;
    const char *path;
    int64_t max_positions; /* INPUT_MODEL: in place of the file's; 0: the file's */
    bool force;            /* INPUT_MODEL: as of model_load() */
    enum status status;
    struct hw hw; /* by kind, one of these; of a node and its GPU nothing else is set */
    struct hw_sources sources;
    struct model model;
    struct stack stack;
    struct csv_table *csv;
};
struct inputs {
    VEC(struct input) list;
};

/* Fill hw, model and published of a point and give its noise the cluster's values where the
 * scenario sets none. False when an input could not be read. */
bool inputs_load(
    struct inputs *inputs, struct scenario_point *point, struct arena *arena, struct diag *diag);
/* The noise of a point, beside what its cluster says. */
enum { NOISE_FIELDS = 7 };
struct noise_field {
    const char *path; /* "noise.host_jitter" */
    double *value;    /* in the point */
    struct quantity cluster;
};
void inputs_noise(struct noise_field out[NOISE_FIELDS], struct scenario_point *point);

void inputs_release(struct inputs *inputs);

/* The row of the figure that matches the point; a blank cell matches all. No row is no error, two
 * rows are one. */
void published_find(struct scenario_published *out, const struct csv_table *csv,
    const struct scenario_point *point, struct source_pos figure_at, struct arena *arena,
    struct diag *diag);

/* ---- changed.c ---- */

/* Published figures, and what is assumed about their source, stay where the run is the same: of
 * each point no setting that the command line gives differs from the plain file's, but those by
 * which a row is found. plain: the set without the command line. */
void published_leave_out(
    struct scenario_set *set, const struct scenario_set *plain, struct arena *arena);
/* names, with the setting that is given where the file says something else; names NULL: none so
 * far. plain and sweep: of the file. */
const char *changed_setting(const struct scenario *plain, const struct sweep *sweep,
    const struct sweep_key *given, const char *names, struct arena *arena);

/* ---- sample.c ---- */

/* Which numbers the scenario leaves to the draw, into the digest. */
uint64_t sample_digest_left(uint64_t digest, const struct scenario_point *point);

/* ---- check.c ---- */

/* model and topology, batch and length are given: what must be known before anything is loaded. */
void check_given(const struct scenario_point *point, struct diag *diag);
/* For struct strategy_places, self being a point: where a setting was set, or what it belongs to
 * was. */
struct source_pos check_place_of(const void *self, const char *path);
/* What the texts of degraded links and slow GPUs mean for this job, into its exec options. */
void load_events(struct scenario_point *point, struct arena *arena, struct diag *diag);

/* ---- needs.c ---- */

/* Settings of the stack profile that the point's GPUs cannot do become what they can, each with a
 * warning. */
void needs_fall_back(struct scenario_point *point, struct diag *diag);
/* Those of the user are errors. */
void needs_check(const struct scenario_point *point, struct diag *diag);

/* ---- unread.c ---- */

/* Warn of settings that no point reads though a --set, a cell, or the file that names the strategy
 * gives them: those of another strategy, a sharding group under FULL_SHARD ... */
void warn_unread(const struct scenario_point *points, int n, struct diag *diag);

#endif
