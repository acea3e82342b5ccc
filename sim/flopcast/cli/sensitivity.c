/* `flopcast sensitivity`: a row for each number that a prediction depends on, the largest effect
 * first.
 *
 * Loads the one point and the standard errors of all numbers, has study/sensitivity.h simulate
 * each number lower and higher, and prints, or stores with --db, value, kind, error, both speeds
 * and the share of the variance. What is subtle: people see the first N rows (rows.most),
 * programs and the database all of them. The part without a parameter is all costs of the host
 * together. */
#include "cli/cli.h"
#include "options/arguments.h"

#include "base/files.h"
#include "base/units.h"
#include "rows/rows.h"
#include "rows/vary.h"
#include "options/waiting.h"
#include "rows/words.h"
#include "study/sensitivity.h"

#include <argp.h>
#include <math.h>

COMMAND(cmd_sensitivity, 10, "sensitivity", 0, "find the numbers that a prediction depends on",
    "flopcast sensitivity gpt2_ddp_v100 --set cluster.gpus=8");

enum { TOP = 15, MOST_NUMBERS = 100000 };

struct sensitivity_command {
    const char *file, *db;
    int top;
    enum records_format format;
    struct overrides overrides;
    struct arena arena;
};

static const struct command_option sensitivity_options[] = {
    {"set", "KEY=VALUE", "Set an option, as in --set cluster.gpus=64; may be repeated", OPTION_SET,
        AT(sensitivity_command, overrides)},
    {"seed", "N", "The same as --set run.seed=N", OPTION_SEED, AT(sensitivity_command, overrides)},
    JOB_OPTIONS(struct sensitivity_command),
    {"db", "PATH", "Store the result in this database, for `flopcast plot sensitivity`",
        OPTION_TEXT, AT(sensitivity_command, db)},
    {"top", "N", "table: the N parameters with the largest effect (default: 15)", OPTION_COUNT,
        AT(sensitivity_command, top), .most = MOST_NUMBERS},
    RECORDS_OPTION(struct sensitivity_command),
    {0},
};

static const char *sensitivity_name_of(const struct sensitivity_part *part)
{
    return part->parameter ? part->parameter->path : "host";
}

static const char *sensitivity_kind_of(const struct sensitivity_part *part)
{
    return hw_kind_name(part->parameter ? part->parameter->number.kind : QUANTITY_ASSUMED);
}

static double sensitivity_error_of(const struct sensitivity_part *part)
{
    return part->parameter ? part->parameter->error : DRAW_ASSUMED;
}

static const char *source_of(const struct sensitivity_part *part)
{
    return part->parameter ? part->parameter->number.source
                           : "what the host costs (strategy/strategy.h), all together";
}

static const char *sensitivity_value_of(const struct sensitivity_part *part, struct arena *arena)
{
    char text[64];
    if (!part->parameter)
        return "host.*";
    return arena_strdup(arena, quantity_format(text, sizeof text, part->parameter->number.value,
                                   part->parameter->dimension));
}

static void sensitivity_fill(struct rows *rows, const struct sensitivity *s,
    const struct sensitivity_part *part, struct arena *arena)
{
    double variance = s->independent * s->independent;
    rows_next(rows);
    rows_text(rows, COLUMN("parameter", "number"), sensitivity_name_of(part));
    rows_number_as(rows, "value", "", sensitivity_value_of(part, arena));
    rows_text(rows, COLUMN("kind"), sensitivity_kind_of(part));
    rows_real(rows, COLUMN("spread", "standard", "error, %", PERCENT, 1), true,
        sensitivity_error_of(part));
    rows_text(rows, COLUMN(NULL, "kind"), sensitivity_kind_of(part));
    rows_real(
        rows, COLUMN("low_tflops_per_gpu", "lower", "TFLOPS/GPU", .digits = 2), true, part->low);
    rows_real(
        rows, COLUMN("high_tflops_per_gpu", "higher", "TFLOPS/GPU", .digits = 2), true, part->high);
    rows_real(rows, COLUMN(NULL, "effect", "%", PERCENT, 2, .sign = true), true, part->effect);
    rows_real(rows, COLUMN(NULL, "of the", "variance, %", .digits = 1), true,
        PERCENT * part->effect * part->effect / variance);
    rows_text(rows, COLUMN("source", "source", .spare = 1), source_of(part));
}

static void sensitivity_print(FILE *out, const struct rows *rows,
    const struct sensitivity_command *command, const struct sensitivity *s, const char *point)
{
    if (command->format == RECORDS_TABLE)
        fprintf(out, "%s: %.2f TFLOPS per GPU\n\n", point, s->tflops_per_gpu);
    rows_print(out, rows, command->format);
    if (command->format != RECORDS_TABLE)
        return;
    if (s->n_parts > command->top)
        fprintf(out, "and %d more (--top %d)\n", s->n_parts - command->top, s->n_parts);
    fputc('\n', out);
    words_paragraph_of(out,
        "All together, one standard deviation: %.2f %% if they were independent, %.2f %% as fits "
        "correlate them. What the model leaves out is not in it.\n%d more numbers that have errors "
        "change nothing here.",
        PERCENT * s->independent, PERCENT * s->correlated, s->n_idle);
}

static void sensitivity_keep(const char *db, const struct rows *rows, const struct sensitivity *s,
    const char *scenario, const char *point, struct diag *diag)
{
    const struct record_cell head[] = {cell_text("scenario", scenario), cell_text("label", point),
        cell_real("tflops_per_gpu", true, s->tflops_per_gpu),
        cell_real("independent", true, s->independent),
        cell_real("correlated", true, s->correlated), cell_int("idle", s->n_idle)};
    rows_keep(rows, db, "sensitivity", head, sizeof head / sizeof *head, diag);
}

static void sensitivity_run(
    struct sensitivity_command *command, struct scenario_set *set, struct diag *diag)
{
    const struct scenario_point *point = &set->points[0];
    struct scenario_uncertainty uncertainty;
    struct sensitivity s;
    struct arena *arena = &command->arena;
    if (scenario_uncertainty_load(&uncertainty, files_folder(), arena, diag) != STATUS_OK)
        return;
    struct waiting *waiting = waiting_begin("sensitivity", point->options.name, "runs", set, false);
    enum status status =
        scenario_sensitivity(&s, point, &uncertainty, waiting_count, waiting, arena, diag);
    waiting_end(waiting);
    if (status != STATUS_OK)
        return;
    const char *name = words_point(point, arena);
    struct rows rows = {.most = command->top};
    for (int i = 0; i < s.n_parts; i++)
        sensitivity_fill(&rows, &s, &s.parts[i], arena);
    sensitivity_print(stdout, &rows, command, &s, name);
    if (command->db)
        sensitivity_keep(command->db, &rows, &s, point->options.name, name, diag);
    rows_free(&rows);
}

int cmd_sensitivity(int argc, char **argv)
{
    const struct command_line line = {.options = sensitivity_options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(sensitivity_command, file),
        .missing = "a scenario file is missing",
        .doc = "What a prediction depends on: every number that has an error, one at a time, one "
               "standard error lower and higher; the one with the largest effect first.\v"
               "The numbers are those that `flopcast run --samples` draws, of GPU, node and "
               "cluster and of the host; errors without a fit are 20 % for assumed numbers and 5 % "
               "for measured ones. The scenario must be one point. Effects are half of what the "
               "logarithm of speed changes by; their squares add up to the variance of samples, as "
               "far as the step is a product of powers of the numbers."};
    struct sensitivity_command command = {.top = TOP};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    command.file = files_find(&command.arena, FILES_SCENARIOS, command.file);
    overrides_load(&set, command.file, &command.overrides, &command.arena, &diag);
    if (diag.worst == STATUS_OK)
        vary_refuse_several(&set, "`flopcast sensitivity` is of one", &command.arena, &diag);
    if (diag.worst == STATUS_OK) {
        scenario_warn_measured(&set, "flopcast sensitivity", &diag);
        sensitivity_run(&command, &set, &diag);
    }
    overrides_free(&command.overrides);
    arena_release(&command.arena);
    return cli_report(&diag);
}
