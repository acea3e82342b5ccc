#include "cli/cli.h"

#include "base/files.h"
#include "cli/arguments.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/validate_parts.h"
#include "cli/words.h"
#include "config/config.h"
#include "store/validation.h"
#include "validate/first_sight.h"
#include "validate/interval.h"
#include "validate/skill.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct validate_command {
    const char *measurements, *base, *where, *db, *predict;
    const char *own_base; /* the one that comes with flopcast */
    enum records_format format;
    bool rows, open;
    int samples;
};

#define AT(at) .member = offsetof(struct validate_command, at)
static const struct command_option options[] = {
    {"measurements", "FILE.csv", "A table of runs (default: flopcast's results/measured/training.csv)", OPTION_TEXT,
        AT(measurements)},
    {"base", "SCENARIO",
        "What all rows have in common (default: flopcast's results/measured/training.yaml; a table then needs the "
        "columns micro_batch and seq_len)",
        OPTION_TEXT, AT(base)},
    {"where", "EXPR", "Only these rows: SQL over the columns, as in \"gpus >= 64 AND model LIKE '%mpt%'\"", OPTION_TEXT,
        AT(where)},
    RECORDS_OPTION(struct validate_command),
    {"rows", NULL, "table: every row, not only the groups", OPTION_FLAG, AT(rows)},
    {"open", NULL,
        "Only what is off and not explained: the rows whose status is open, by suspected cause (columns of the table)",
        OPTION_FLAG, AT(open)},
    {"samples", "K",
        "Also draw every row's numbers from their errors K times: 90 % intervals (20 take a minute), and how many "
        "hold what was measured",
        OPTION_SAMPLES, AT(samples)},
    {"predict", "FILE.csv",
        "Only the rows of which nothing is measured: write what is predicted into this new file, a table of the same "
        "form, with version and digests of program and inputs",
        OPTION_TEXT, AT(predict)},
    {"db", "PATH", "Store the rows in this database, for `flopcast plot validation`", OPTION_TEXT, AT(db)},
    {0},
};

static const char doc[] =
    "Simulate published runs and compare: tokens/s, TFLOPS, memory, out of memory; the loss from the smallest to the "
    "largest cluster; rows that a fit rests on apart from the others.\v"
    "Columns of a table of runs: id, model, topology, gpus (all required); stack, strategy, sharding_strategy, "
    "backward_prefetch, reduce_dtype, zero_stage, precision, optimizer, optimizer_impl, micro_batch, grad_accum, "
    "seq_len, decoder_seq_len, activation_checkpointing, checkpoint_early_stop, attention, cross_entropy, use_cache, "
    "max_positions, flops_formula, attention_flop, or any other setting of a scenario by its dotted path; measured: "
    "tokens_per_s_per_gpu, tflops_per_gpu, step_time_s, peak_allocated_bytes, peak_reserved_bytes, oom (yes or no); "
    "said about it: source, url, family, used_in_fit (the file of a fit that rests on the row; empty, no, false or 0: "
    "none), not_simulated, assumptions, value_kind, notes, status (open: off and not explained), suspected_cause, "
    "first_sight (the file, from the table's folder, that --predict wrote before the row was measured: that error is "
    "printed beside today's). Paths are relative to the table, or names that `flopcast "
    "files` lists; an empty cell leaves a setting to the base scenario. `flopcast calibrate fit --help`: numbers "
    "fitted to your own runs.";

static void refuse(void *command, const struct argument *argument)
{
    (void)command;
    argp_error(
        argument->state, "'%s' is no option; a table of runs is given by --measurements FILE.csv", argument->text);
}

/* ---- groups ---- */

/* Rows of a source on a GPU with a model; NULL: any. fitted: -1 any, else whether a fit rests on them. */
struct group {
    const char *source, *gpu, *model;
    int fitted;
};

static bool in_group(const struct validate_row *row, const void *self)
{
    const struct group *group = self;
    return (!group->source || strcmp(row->source, group->source) == 0) &&
           (!group->gpu || strcmp(row->gpu, group->gpu) == 0) &&
           (!group->model || strcmp(row->model, group->model) == 0) &&
           (group->fitted < 0 || (*row->used_in_fit != '\0') == (group->fitted == 1));
}

static void cell_percent(struct table *table, struct arena *arena, bool known, double value)
{
    table_cell(table, known ? words_number(arena, 100 * value, 1, false) : "-");
}

static void add_summary(struct table *table, struct arena *arena, const char *name, const struct group *group,
    const struct validate_table *rows)
{
    struct validate_summary s = validate_summarise(rows, in_group, group);
    if (s.n_rows == 0)
        return;
    bool any = s.n_errors > 0;
    table_cell(table, name);
    table_cell(table, group->gpu ? group->gpu : "all");
    table_cell(table, group->fitted < 0 ? "" : group->fitted ? "yes" : "no");
    table_cell(table, arena_printf(arena, "%d", s.n_rows));
    table_cell(table, arena_printf(arena, "%d", s.n_errors));
    cell_percent(table, arena, any, s.bias);
    cell_percent(table, arena, any, s.median);
    cell_percent(table, arena, any, s.p90);
    cell_percent(table, arena, any, s.mean);
    table_cell(table, arena_printf(arena, "%d", s.n_ratios));
    cell_percent(table, arena, s.n_ratios > 0, s.ratio_mean);
    cell_percent(table, arena, s.n_ratios > 0, s.ratio_most);
    table_cell(table, arena_printf(arena, "%d", s.n_memory));
    cell_percent(table, arena, s.n_memory > 0, s.memory_median);
    table_cell(table, arena_printf(arena, "%d", s.oom_wrong));
}

/* The first row of each source and GPU stands for its group. */
static bool opens_group(const struct validate_table *rows, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(rows->rows.at[j].source, rows->rows.at[i].source) == 0 &&
            strcmp(rows->rows.at[j].gpu, rows->rows.at[i].gpu) == 0)
            return false;
    return *rows->rows.at[i].gpu != '\0';
}

static void print_groups(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"source", "", true}, {"GPU", "", true}, {"in fit", "", true},
        {"rows", "", false}, {"speeds", "", false}, {"bias", "%", false}, {"median", "%", false}, {"p90", "%", false},
        {"mean", "%", false}, {"ratios", "", false}, {"mean", "points", false}, {"most", "points", false},
        {"peaks", "", false}, {"median", "%", false}, {"OOM wrong", "", false}};
    static const int spare[sizeof columns / sizeof *columns] = {0, 0, 0, 2, 0, 0, 0, 0, 7, 4, 5, 6, 3, 3, 1};
    table_columns(&table, columns, spare, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n; i++)
        for (int fitted = 1; fitted >= 0 && opens_group(rows, i); fitted--) {
            struct group group = {rows->rows.at[i].source, rows->rows.at[i].gpu, NULL, fitted};
            add_summary(&table, &arena, rows->rows.at[i].source, &group, rows);
        }
    struct group fitted = {.fitted = 1}, rest = {.fitted = 0};
    bool some = validate_summarise(rows, in_group, &fitted).n_rows > 0;
    add_summary(&table, &arena, "all that fits rest on", &fitted, rows);
    add_summary(&table, &arena, some ? "all others" : "all", &rest, rows);
    table_finish(out, &table);
    arena_release(&arena);
    fputs("\nspeeds: |predicted / measured - 1|; ratios: speed over that of the curve's smallest cluster, percentage "
          "points;\npeaks: of memory, allocated where that was measured, else reserved by PyTorch; OOM wrong: out of "
          "memory only here, or only there\n",
        out);
}

/* "tokens/s/GPU", or what the rows' models have instead. */
static const char *speed_unit(const struct validate_table *rows, struct arena *arena)
{
    struct scenario_set all = {.points = ARENA_ARRAY(arena, struct scenario_point, rows->rows.n)};
    for (int i = 0; i < rows->rows.n; i++)
        if (rows->rows.at[i].set.n_points == 1)
            all.points[all.n_points++] = rows->rows.at[i].set.points[0];
    return arena_printf(arena, "%s/s/GPU", all.n_points ? words_counted_all(&all) : "tokens");
}

static void print_rows(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    const char *unit = speed_unit(rows, &arena);
    const struct table_column columns[] = {{"id", "", true}, {"model", "", true}, {"GPU", "", true},
        {"strategy", "", true}, {"GPUs", "", false}, {"in fit", "", true}, {"measured", unit, false},
        {"predicted", unit, false}, {"error", "%", false}, {"ratio", "points", false}, {"measured peak", "GB", false},
        {"predicted peak", "GB", false}, {"status", "", true}};
    static const int spare[sizeof columns / sizeof *columns] = {0, 0, 1, 0, 0, 2, 0, 0, 0, 3, 4, 4, 0};
    table_columns(&table, columns, spare, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        if (row->status == VALIDATE_NOT_SIMULATED)
            continue;
        const double figures[] = {row->measured.tokens_per_s_per_gpu, row->predicted.tokens_per_s_per_gpu};
        const double peaks[] = {row->measured_peak_bytes, row->predicted_peak_bytes};
        const char *const texts[] = {row->id, row->model, row->gpu, row->strategy,
            arena_printf(&arena, "%" PRId64, row->gpus), *row->used_in_fit ? "yes" : "no"};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            table_cell(&table, texts[k]);
        for (int k = 0; k < 2; k++)
            table_cell(&table, figures[k] > 0 ? arena_printf(&arena, "%.1f", figures[k]) : "-");
        table_cell(&table, row->has_error ? words_number(&arena, 100 * row->error, 1, true) : "-");
        if (row->has_error && fabs(row->error) > TABLE_FAR_OFF)
            table_mark(&table, TABLE_DOUBTFUL);
        table_cell(&table,
            row->has_ratio ? words_number(&arena, 100 * (row->predicted_ratio - row->measured_ratio), 1, true) : "-");
        for (int k = 0; k < 2; k++)
            table_cell(&table, peaks[k] > 0 ? arena_printf(&arena, "%.1f", peaks[k] * 1e-9) : "-");
        bool agrees = (row->status == VALIDATE_OOM) == row->measured_oom;
        table_cell(&table, arena_printf(&arena, "%s%s", validate_status_names[row->status],
                               agrees              ? ""
                               : row->measured_oom ? ", published: out of memory"
                                                   : ", published: fits"));
    }
    table_finish(out, &table);
    arena_release(&arena);
    fputc('\n', out);
}

/* Whether ratios are better than those of a rule of thumb. */
static void print_skill(FILE *out, const struct validate_table *rows)
{
    struct validate_skill skill = validate_skill(rows);
    if (skill.n_fitted > 0 && skill.n > 0 && skill.mean_of_rule > 0)
        fprintf(out,
            "\na loss of %.2f %% with each doubling of the GPUs, fitted to %d ratios that fits rest on, is %.1f points "
            "off "
            "the other %d in\nthe mean; predictions %.1f: a skill of %.0f %%\n",
            100 * skill.loss_of_doubling, skill.n_fitted, 100 * skill.mean_of_rule, skill.n, 100 * skill.mean,
            100 * (1 - skill.mean / skill.mean_of_rule));
}

/* Reasons with the rows that they hold for. */
static void print_not_simulated(FILE *out, const struct validate_table *rows)
{
    bool heading = false;
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        bool first = row->status == VALIDATE_NOT_SIMULATED;
        for (int j = 0; j < i && first; j++)
            first = strcmp(rows->rows.at[j].reason, row->reason) != 0;
        if (!first)
            continue;
        fprintf(out, "%s  %s:", heading ? "" : "\nnot simulated:\n", row->reason);
        heading = true;
        for (int j = i; j < rows->rows.n; j++)
            if (strcmp(rows->rows.at[j].reason, row->reason) == 0)
                fprintf(out, " %s", rows->rows.at[j].id);
        fputc('\n', out);
    }
}

static void print_data(FILE *out, const struct validate_table *rows, bool json)
{
    for (int i = 0; i < rows->rows.n; i++) {
        struct record_cell cells[VALIDATION_CELLS];
        validation_record(cells, &rows->rows.at[i]);
        for (int c = 0; c < VALIDATION_CELLS && i == 0 && !json; c++)
            fprintf(out, "%s%s", c ? "," : "", cells[c].name);
        fputs(json ? (i ? ",\n " : "[") : (i ? "" : "\r\n"), out);
        for (int c = 0; c < VALIDATION_CELLS; c++) {
            fputs(json ? (c ? ", " : "{") : (c ? "," : ""), out);
            (json ? records_json_cell : records_csv_cell)(out, &cells[c]);
        }
        fputs(json ? "}" : "\r\n", out);
    }
    if (json)
        fputs(rows->rows.n ? "]\n" : "[]\n", out);
}

static void cell_coverage(struct table *table, struct arena *arena, int covered, int n)
{
    table_cell(table, arena_printf(arena, "%d", n));
    cell_percent(table, arena, n > 0, (double)covered / n);
}

static void add_coverage(struct table *table, struct arena *arena, const char *name, const struct group *group,
    const struct validate_table *rows)
{
    struct validate_summary s = validate_summarise(rows, in_group, group);
    if (s.n_intervals == 0)
        return;
    table_cell(table, name);
    table_cell(table, group->gpu ? group->gpu : "all");
    table_cell(table, group->model ? group->model : "all");
    cell_coverage(table, arena, s.n_covered, s.n_intervals);
    cell_coverage(table, arena, s.n_ratio_covered, s.n_ratio_intervals);
}

/* How many measurements were in their intervals, by family. */
static void print_coverage(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"source", "", true}, {"GPU", "", true}, {"model", "", true},
        {"speeds", "", false}, {"covered", "%", false}, {"ratios", "", false}, {"covered", "%", false}};
    table_columns(&table, columns, NULL, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        struct group group = {row->source, row->gpu, row->model, 0};
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = !in_group(&rows->rows.at[j], &group);
        if (first && in_group(row, &group))
            add_coverage(&table, &arena, row->source, &group, rows);
    }
    add_coverage(&table, &arena, "all that no fit rests on", &(struct group){.fitted = 0}, rows);
    fputs("\n90 % intervals of rows that no fit rests on:\n", out);
    table_finish(out, &table);
    arena_release(&arena);
}

/* The discrepancy by all rows, beside that of the file. */
static void print_discrepancy(FILE *out, const struct validate_table *rows, const struct discrepancy *filed)
{
    fputs(
        "\nwhat the model leaves out (log-standard deviation of speeds with and without a stack profile, and of their\n"
        "ratio for each doubling of the GPUs), by these rows, and filed, by which intervals are widened:\n",
        out);
    for (int c = 0; c < DISCREPANCY_CLASSES; c++) {
        struct validate_discrepancy found = validate_discrepancy(rows, (enum discrepancy_class)c);
        if (found.rows == 0) {
            fprintf(out, "  %-14s none of these rows, filed %.2f +- %.2f %%\n", discrepancy_names[c],
                100 * filed->of[c].value, 100 * filed->of[c].std_error);
            continue;
        }
        fprintf(out, "  %-14s %5.2f +- %.2f %%, filed %.2f +- %.2f %% (%d row%s, %d famil%s, %d left out one by one)\n",
            discrepancy_names[c], 100 * found.value, 100 * found.std_error, 100 * filed->of[c].value,
            100 * filed->of[c].std_error, found.rows, plural(found.rows), found.families,
            found.families == 1 ? "y" : "ies", found.units);
    }
}

static void print(
    const struct validate_command *command, const struct validate_table *rows, const struct discrepancy *filed)
{
    if (command->format != RECORDS_TABLE) {
        print_data(stdout, rows, command->format == RECORDS_JSON);
        return;
    }
    if (rows->rows.n == 0) {
        printf("'%s' has no run that fits --where\n", command->measurements);
        return;
    }
    if (command->open) {
        validate_open_print(stdout, rows);
        return;
    }
    if (command->rows)
        print_rows(stdout, rows);
    print_groups(stdout, rows);
    print_skill(stdout, rows);
    validate_first_sight_print(stdout, rows);
    validate_node_print(stdout, rows);
    if (command->samples > 0) {
        print_coverage(stdout, rows);
        print_discrepancy(stdout, rows, filed);
    }
    print_not_simulated(stdout, rows);
}

static void show_progress(void *self, int done, int total)
{
    (void)self;
    fprintf(stderr, "\rvalidate: %d of %d rows%s", done, total, done == total ? "\n" : "");
}

/* The rows that --where wants; NULL: all. */
static bool *choose(const struct validate_command *command, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if (!command->where || csv_load(&csv, command->measurements, diag) != STATUS_OK)
        return NULL;
    bool *keep = xcalloc((size_t)csv_rows(csv) + 1, sizeof *keep);
    store_csv_where(keep, csv, command->where, (struct source_pos){.file = "--where"}, diag);
    csv_release(csv);
    return keep;
}

static bool has_lengths(const struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].set.n_points == 1 &&
            model_sample_tokens(&table->rows.at[i].set.points[0].model.shape) == 0)
            return true;
    return false;
}

static bool is_default(const struct validate_command *command)
{
    struct stat own, given;
    return stat(command->own_base, &own) == 0 && stat(command->base, &given) == 0 && own.st_dev == given.st_dev &&
           own.st_ino == given.st_ino;
}

/* The default base scenario has one token and a micro-batch of one, for each row of training.csv says its own: speeds
 * of another table would be nonsense without them. A table of images needs no length. */
static bool has_batch(const struct validate_command *command, const struct validate_table *table, struct diag *diag)
{
    const struct {
        const char *path;
        bool needed;
    } settings[] = {{"train.micro_batch", true}, {"train.seq_len", has_lengths(table)}};
    int before = diag->n_errors;
    bool own = is_default(command);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && own; i++) {
        const char *column = strchr(settings[i].path, '.') + 1;
        if (settings[i].needed && csv_column(table->csv, settings[i].path) < 0 && csv_column(table->csv, column) < 0)
            diag_input(diag, (struct source_pos){.file = command->measurements},
                "no column '%s'; add it, or say with --base SCENARIO what all rows have in common", column);
    }
    return diag->n_errors == before;
}

/* An unknown column is reported by the loader. Here: no column is left to compare. */
static void warn_unmeasured(
    const struct validate_command *command, const struct validate_table *table, struct diag *diag)
{
    if (!command->predict && !validate_measures(table->csv))
        diag_warn(diag, (struct source_pos){.file = command->measurements},
            "no column says what was measured, so nothing is compared; add tokens_per_s_per_gpu, tflops_per_gpu, "
            "step_time_s, peak_allocated_bytes, peak_reserved_bytes or oom");
}

/* All rows share the base: an error of its document is reported once. */
static void check_base(const struct validate_command *command, struct diag *diag)
{
    struct config_doc *base = NULL;
    if (config_load(&base, command->base, diag) == STATUS_OK)
        config_free(base);
}

static void validate(const struct validate_command *command, struct arena *arena, struct diag *diag)
{
    struct validate_table table = {0};
    struct store *store = NULL;
    struct scenario_uncertainty uncertainty = {0};
    struct validate_sampling sampling = {&uncertainty, command->samples};
    check_base(command, diag);
    bool *keep = choose(command, diag);
    if (diag->n_errors == 0 && command->samples > 0)
        scenario_uncertainty_load(&uncertainty, files_folder(arena), arena, diag);
    /* A row that makes no scenario is reported with the others, so from here an error does not end the command. */
    if (diag->n_errors == 0 && validate_load(&table, command->measurements, command->base, keep, diag) &&
        has_batch(command, &table, diag) &&
        (!command->db || store_open(&store, command->db, STORE_WRITE, diag) == STATUS_OK)) {
        warn_unmeasured(command, &table, diag);
        if (command->open)
            validate_keep_open(&table);
        if (command->predict)
            validate_keep_unmeasured(&table);
        validate_run(
            &table, command->samples > 0 ? &sampling : NULL, isatty(STDERR_FILENO) ? show_progress : NULL, NULL, diag);
        validate_check_units(&table, diag);
        validate_intervals(&table, &uncertainty.discrepancy);
        validate_first_sight(&table, command->measurements, diag);
        if (!command->predict)
            print(command, &table, &uncertainty.discrepancy);
        else if (validate_predict(&table, command->predict, diag) == STATUS_OK)
            printf("%d prediction%s in '%s'\n", table.rows.n, plural(table.rows.n), command->predict);
        if (command->open && command->format == RECORDS_TABLE && !command->where && is_default(command))
            validate_open_print_nccl(stdout, files_own(arena, "results/measured/nccl_tables.csv"), diag);
        if (store)
            store_put_validation(store, &table, command->measurements, diag);
    }
    store_close(store);
    validate_release(&table);
    free(keep);
}

int cmd_validate(int argc, char **argv)
{
    const struct command_line line = {.options = options, .doc = doc, .common = COMMON_SIMULATE, .take = refuse};
    struct arena arena = ARENA_INIT;
    const char *own_base = files_own(&arena, "results/measured/training.yaml");
    struct validate_command command = {
        .measurements = files_own(&arena, "results/measured/training.csv"), .base = own_base, .own_base = own_base};
    command_line_parse(&line, argc, argv, &command);
    command.measurements = files_find(&arena, FILES_ANY, command.measurements);
    command.base = files_find(&arena, FILES_SCENARIOS, command.base);
    struct diag diag = DIAG_INIT;
    validate(&command, &arena, &diag);
    arena_release(&arena);
    return cli_report(&diag);
}
