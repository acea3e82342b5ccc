/* Published runs, simulated: what flopcast predicts against what was measured.
 *
 * A table of runs is a CSV. Its columns are
 * - id, each row's own, and what the run was: settings of a scenario, by the names below or by a
 * scenario's dotted path as the name of a column ("fsdp.limit_all_gathers"). An empty cell leaves a
 * setting to the base scenario, which says what all rows have in common. Paths are relative to the
 * table, or names of flopcast's own files (base/files.h).
 * - what was measured: tokens_per_s_per_gpu, tflops_per_gpu, step_time_s, peak_allocated_bytes,
 *   peak_reserved_bytes, oom (yes or y, true, 1; no or n, false, 0). Empty: not published; so is 0
 *   in a row that is out of memory. Of models
 * of images, tokens_per_s_per_gpu is images.
 * - what is said about it: source, url, family, used_in_fit (the file whose numbers rest on this
 *   row; "FILE: KEY" where only one of them does; empty, no, false or 0: none; anything else but
 *   yes is an error), not_simulated (a reason: the row is reported with it, and not run), apart (a
 *   reason to sum it apart from the others), assumptions,
 * value_kind, notes; status (open where the prediction is off and no number was changed for it) and
 * suspected_cause; first_sight (the file of the row's prediction before it was measured:
 * first_sight.h); predicted_by, inputs (in such a file).
 *
 * Settings: model, topology, stack, gpus, strategy, sharding_strategy, backward_prefetch,
 * reduce_dtype, zero_stage, precision, optimizer, micro_batch, grad_accum, seq_len,
 * decoder_seq_len, activation_checkpointing, checkpoint_early_stop, attention, cross_entropy,
 * use_cache, max_positions, flops_formula, attention_flop. Any other column is warned of, and an
 * error where it is nearly one of these; so are two that set the same option.
 *
 * Error of a row: predicted / measured - 1 of its speed: of tokens_per_s_per_gpu, else of
 * step_time_s (inverted), else of tflops_per_gpu by the row's flops_formula and attention_flop (the
 * published runs' base says full). Where a row gives TFLOPS or a step time only, its measured
 * tokens/s are worked out from them, by that formula.
 *
 * Ratio: rows of one source, in one file or several, that are alike in every setting but gpus are a
 * curve; a row's ratio is its speed over that of the curve's row with the fewest GPUs, its
 * ratio_error predicted - measured ratio. A model alone on one GPU (single_device) is the smallest
 * row of a DDP curve that has no row of DDP on one GPU. Where the curve's smallest cluster is one
 * whole node, its layout is one that stays in a node, and a ratio shows what the network takes:
 * these are summarised once more, with their median, as one slow run on one node is in every ratio
 * of its curve. */
#ifndef FLOPCAST_VALIDATE_VALIDATE_H
#define FLOPCAST_VALIDATE_VALIDATE_H

#include "base/vec.h"
#include "config/csv.h"
#include "scenario/identity.h"
#include "scenario/sample.h"
#include "scenario/scenario.h"

enum validate_status { VALIDATE_OK, VALIDATE_OOM, VALIDATE_NOT_SIMULATED, VALIDATE_STATUS_COUNT };
extern const char
    *const validate_status_names[VALIDATE_STATUS_COUNT + 1]; /* "ok", "oom", "not_simulated" */

struct validate_figures { /* 0: not known */
    double tokens_per_s_per_gpu, tflops_per_gpu, step_time_s, peak_allocated_bytes,
        peak_reserved_bytes;
};

/* Where a measurement should be in nine of ten cases, by the runs of other makers (sure_fit.h). */
struct validate_interval {
    bool known, covers; /* covers: the measurement is in it */
    double low, high;   /* of tokens/s per GPU */
};

struct validate_row {
    const struct csv_table *csv; /* of the row's file; NULL: read back (stored.h) */
    const char *file;            /* of the table, as it was named */
    const char *id, *source, *model, *gpu, *strategy, *used_in_fit; /* "" where nothing is said */
    const char *framework,
        *layout; /* the stack profile's name, or ""; "TP+PP+DP": axes of more than one rank */
    const char *reason;          /* why it is not simulated, or "" */
    const char *apart;           /* why it is summed apart, or "" */
    const char *suspected_cause; /* "" where nothing is said */
    int64_t gpus;
    int64_t node_gpus;    /* of a node of its cluster; 0: not known */
    double mfu;           /* predicted, of the dense peak */
    double waiting_share; /* predicted: of the step, exposed communication and bubble; < 0: not
                             known */
    double measured_peak_bytes,
        predicted_peak_bytes; /* comparable: reserved where published, else allocated */
    double error;             /* has_error: a fraction */
    double first_sight_error; /* of the prediction before it was measured: first_sight.h */
    /* That prediction's file, as the row names it, and program; "" or NULL: none. */
    const char *first_sight_file, *predicted_by;
    /* Read back (stored.h), else NULL: base scenario; digest of what went in; build and commit of
     * the program. */
    const char *base, *inputs, *made_by;
    double measured_ratio,
        predicted_ratio;     /* has_ratio: of the curve's smallest cluster; 1 for that one itself */
    struct scenario_set set; /* one point; none where it is not simulated */
    struct validate_figures measured, predicted;
    struct validate_interval interval; /* sure_set_intervals() */
    int csv_row;
    uint64_t curve_digest;
    int curve; /* the first row of its curve */
    enum validate_status status;
    int same;     /* the first row that is the same run; itself, where there is none, or it is not
                     simulated */
    int smallest; /* has_ratio: the row of that cluster */
    bool open;    /* the table's status of the row is "open" */
    bool stale;   /* read back, and something else would go in today */
    bool measured_oom, has_error, has_ratio;
    bool alone; /* single_device */
    bool has_verdict,
        measured_speed; /* it is published whether it ran: by oom, or a figure; how fast */
    bool has_first_sight, first_sight_missed;
};

struct validate_table {
    VEC(struct csv_table *) files;
    struct arena arena; /* texts and scenarios */
    VEC(struct validate_row) rows;
    const struct scenario_share
        *share; /* who simulates them, set before validate_run(); NULL: threads, all */
    int n_runs,
        n_known; /* by validate_run(): different ones; of them those that share->kept knew */
    int left;    /* not done: of other shards, or share->kept wanted no more. Then the rest says
                    nothing */
};

/* Read the rows of a table that keep[csv row] wants (NULL: all). base: a scenario file. A row whose
 * settings make no scenario gets status not_simulated, the first thing that is wrong as its reason,
 * and its mistakes in diag, at the row where they are the base scenario's; the table is loaded
 * nevertheless. Settings that a row gives and its strategy does not read are warnings there. False:
 * the table itself cannot be read. */
bool validate_load(struct validate_table *out, const char *path, const char *base, const bool *keep,
    struct diag *diag);
/* The same into a table that may have rows of other files; path lives as long as it. */
bool validate_add(struct validate_table *table, const char *path, const char *base,
    const bool *keep, struct diag *diag);
void validate_release(struct validate_table *table);

/* The tables of runs in a folder, by name: the files *.csv that have the columns of one and one of
 * what was measured, and are no predictions (first_sight.h). */
struct validate_files {
    const char **paths; /* in the arena */
    int n;
};
struct validate_files validate_files_in(const char *folder, struct arena *arena);

/* Whether a row's source, or the name of its file, fits the pattern: '*' and '?' as the shell has
 * them, case does not count; without them, whether one of the two contains it. */
bool validate_is_of(const struct csv_table *csv, int row, const char *path, const char *pattern);

/* Keep the rows whose status is open, and of their curves the smallest clusters, which their ratios
 * are taken to. */
void validate_keep_open(struct validate_table *table);

/* Whether it has a column of what was measured. */
bool validate_measures(const struct csv_table *csv);
/* Whether one of them has something in this row. */
bool validate_is_measured(const struct csv_table *csv, int row);

/* What a row's cell of used_in_fit names; "" where no fit rests on the row. */
const char *validate_used_in_fit(const struct csv_table *csv, int row);

/* Simulate all rows, on all cores; results do not depend on their number. Rows that are the same
 * run (identity.h) are simulated once; the largest come first. Then errors and ratios. progress
 * counts runs. */
void validate_run(
    struct validate_table *table, scenario_progress progress, void *self, struct diag *diag);

/* Errors and ratios of rows whose predictions are there: part of validate_run().
 *
 * A sick run shows in its reruns alone: of rows that are the same run (the same settings, measured
 * again, by whatever source) those that were measured more than VALIDATE_SLOW_RERUN times slower
 * than the fastest one are summed apart. The rule looks at no prediction. Tables hold a speed a run
 * and no times of steps, so a run that was not measured again is never found: of nanotron's jobs no
 * two have the same settings. */
#define VALIDATE_SLOW_RERUN 1.5
void validate_set_errors(struct validate_table *table);

/* All rows of a table with what it says itself, none with a scenario: status not_simulated. */
bool validate_add_unread(struct validate_table *table, const char *path, struct diag *diag);
/* Who measured: what stands before a comma. "Megatron-Bridge, NeMo container 26.04" and "..., NeMo
 * container 26.06" are one maker, as the same hands measured the same recipes: the one says little
 * new of the other. */
bool validate_same_maker(const char *source, const char *other);
/* Of the settings that a row gives. */
uint64_t validate_settings_digest(const struct csv_table *csv, int row);

/* Warns of figures that cannot be in the unit of their column, after validate_run(). */
void validate_check_units(const struct validate_table *table, struct diag *diag);

/* What curves of data parallelism alone (DDP, FSDP) lose to their smallest cluster, in the mean
 * over makers of the mean over each one's ratios; rows more than 2 x off do not count. std_error:
 * of the mean of measured - predicted: the standard deviation of the makers' means over the root of
 * their number. */
struct validate_loss {
    int n, too_small, sources;
    double measured, predicted, std_error; /* shares of the smallest cluster's speed */
};
struct validate_loss validate_loss(const struct validate_table *table);

#endif
