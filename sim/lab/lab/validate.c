/* flopcast validate: tables of published runs simulated and compared. Steps:
 * validate_check_arguments(), check_base(), then rows are loaded (lab_validate_load(): --where and
 * --source choose them) or taken from a file of results (--from), then simulated by the crew
 * (threads, under MPI of all ranks), and validate_answer() works out first sights, intervals and
 * the evidence, prints it or writes pages, results and intervals. With --db what was simulated
 * before is found there, and an interrupted command goes on.
 *
 * What is subtle: only the owner of a crew opens the database and gives the answer. After a shard,
 * or a stop, some runs are left, and no answer is given, since medians of a part would pass for
 * those of the whole. A row that makes no scenario is a reported mistake, but the others are
 * simulated. The default base scenario has one token and a micro-batch of one: tables must say
 * their own, or errors would be nonsense. */
#include "options/command.h"

#include "base/files.h"
#include "options/arguments.h"
#include "rows/records.h"
#include "options/stop.h"
#include "lab/validate_parts.h"
#include "options/waiting.h"
#include "rows/words.h"
#include "config/config.h"
#include "crew/ranks.h"
#include "store/share.h"
#include "store/outcome.h"
#include "store/csv_where.h"
#include "validate/validation.h"
#include "validate/first_sight.h"
#include "validate/stored.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

COMMAND(cmd_validate, 12, "validate", COMMAND_SHARES,
    "simulate published runs; compare with what was measured",
    "flopcast validate --source InternEvo");

typedef VEC(const char *) paths;

struct validate_command {
    paths measurements, by;
    const char *base, *where, *source, *db, *predict, *results, *from, *page, *sure;
    const char *own_base; /* the one that comes with flopcast */
    enum records_format format;
    bool rows, open, all, uncommitted;
    struct shard shard;
    struct ranks *ranks; /* NULL: without mpirun */
};

static void validate_take_measurements(void *member, const struct argument *argument)
{
    paths *list = member;
    vec_push(list, argument->text);
}

static void take_by(void *member, const struct argument *argument)
{
    paths *list = member;
    struct breakdown breakdowns[EVIDENCE_BREAKDOWNS];
    const char *names[EVIDENCE_BREAKDOWNS + 1] = {NULL};
    for (int i = evidence_breakdowns(breakdowns, EVIDENCE_BREAKDOWNS); i-- > 0;)
        names[i] = breakdowns[i].name;
    vec_push(list, names[argument_name(argument, names)]);
}

static const struct command_option validate_options[] = {
    {"measurements", "FILE.csv",
        "A table of runs; may be given several times (default: flopcast's "
        "results/measured/training.csv)",
        OPTION_TAKE, AT(validate_command, measurements), .take = validate_take_measurements,
        .flags = OPTION_LIST},
    {"all", NULL, "All tables of runs of flopcast's results/measured", OPTION_FLAG,
        AT(validate_command, all)},
    {"source", "PATTERN",
        "Only rows whose source, or the name of whose table, contains this, in any case; with '*' "
        "or '?': is this",
        OPTION_TEXT, AT(validate_command, source)},
    {"base", "SCENARIO",
        "What all rows have in common (default: flopcast's results/measured/training.yaml; a table "
        "then needs the columns micro_batch and seq_len)",
        OPTION_TEXT, AT(validate_command, base)},
    {"where", "EXPR",
        "Only these rows: SQL over the columns, as in \"gpus >= 64 AND model LIKE '%mpt%'\"",
        OPTION_TEXT, AT(validate_command, where)},
    RECORDS_OPTION(struct validate_command),
    {"rows", NULL, "table: every row, not only the groups", OPTION_FLAG,
        AT(validate_command, rows)},
    {"by", "CLASS",
        "table: also by source, framework, layout, gpus or waiting (exposed communication and "
        "bubble, as a share of the step); may be given several times (default: all of them, of "
        "several tables)",
        OPTION_TAKE, AT(validate_command, by), .take = take_by, .flags = OPTION_LIST},
    {"open", NULL,
        "Only what is off and not explained: the rows whose status is open, by suspected cause "
        "(columns of the table)",
        OPTION_FLAG, AT(validate_command, open)},
    {"predict", "FILE.csv",
        "Only the rows of which nothing is measured: write their ids and what is predicted into "
        "this new file, with version and digests of program and inputs",
        OPTION_TEXT, AT(validate_command, predict)},
    {"uncommitted", NULL,
        "With --predict: also by a program that was not built from a commit; the file says so, and "
        "is no first sight",
        OPTION_FLAG, AT(validate_command, uncommitted)},
    {"results", "FILE.csv", "Keep what is predicted in this file, for --from", OPTION_TEXT,
        AT(validate_command, results)},
    {"from", "FILE.csv",
        "Simulate nothing: the tables that this file of --results names, with what it says is "
        "predicted; errors are those of what the tables say today",
        OPTION_TEXT, AT(validate_command, from)},
    {"page", "FILE.md",
        "Write the evidence, as tables, between the markers of this page, instead of printing it "
        "(README.md, results/README.md)",
        OPTION_TEXT, AT(validate_command, page)},
    {"sure", "FILE.yaml",
        "Make the file of intervals anew (topologies/fitted/sure.yaml) from these runs, which "
        "every prediction is printed with",
        OPTION_TEXT, AT(validate_command, sure)},
    {"db", "PATH",
        "Store each simulation in this database, and take from it what was simulated before; and "
        "the rows, for `flopcast plot validation`",
        OPTION_TEXT, AT(validate_command, db)},
    SHARD_OPTION(struct validate_command, "simulations"),
    {0},
};

static const char doc[] =
    "Simulate published runs and compare: tokens/s, TFLOPS, memory, out of memory; the loss from "
    "the smallest to the largest cluster; rows that a fit rests on apart from the others.\v"
    "Columns of a table of runs: id, model, topology, gpus (all required); stack, strategy, "
    "sharding_strategy, backward_prefetch, reduce_dtype, zero_stage, precision, optimizer, "
    "optimizer_impl, micro_batch, grad_accum, seq_len, decoder_seq_len, activation_checkpointing, "
    "checkpoint_early_stop, attention, cross_entropy, use_cache, max_positions, flops_formula, "
    "attention_flop, or any other setting of a scenario by its dotted path; measured: "
    "tokens_per_s_per_gpu, tflops_per_gpu, step_time_s, peak_allocated_bytes, peak_reserved_bytes, "
    "oom (yes or no); said about it: source, url, family, used_in_fit (the file of a fit that "
    "rests on the row; empty, no, false or 0: none), not_simulated, apart (a reason to sum the row "
    "apart), assumptions, value_kind, notes, status (open: off and not explained), "
    "suspected_cause, first_sight (the file, from the table's folder, that --predict wrote before "
    "the row was measured: that error is printed beside today's). Paths are relative to the table, "
    "or names that `flopcast files` lists; an empty cell leaves a setting to the base scenario. "
    "`flopcast "
    "calibrate fit --help`: numbers fitted to your own runs.";

static void validate_refuse(void *command, const struct argument *argument)
{
    (void)command;
    argp_error(argument->state,
        "'%s' is no option; a table of runs is given by --measurements FILE.csv", argument->text);
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

/* The breakdowns that are asked for; of several tables all, where none is. */
static void print_breakdowns(
    const struct validate_command *command, struct store *evidence, bool all, struct diag *diag)
{
    struct breakdown breakdowns[EVIDENCE_BREAKDOWNS];
    int n = evidence_breakdowns(breakdowns, EVIDENCE_BREAKDOWNS);
    for (int by = 0; by < n; by++) {
        bool wanted = all && command->by.n == 0;
        for (int i = 0; i < command->by.n; i++)
            wanted |= strcmp(command->by.at[i], breakdowns[by].name) == 0;
        if (wanted)
            evidence_print(stdout, evidence, breakdowns[by].table, diag);
    }
}

static void validate_print(const struct validate_command *command,
    const struct validate_table *rows, const struct sure_left_out *left, struct store *evidence,
    struct diag *diag)
{
    bool several = rows->files.n > 1;
    if (command->format != RECORDS_TABLE) {
        print_data(stdout, rows, command->format == RECORDS_JSON);
        return;
    }
    if (rows->rows.n == 0 && !command->source) {
        printf("'%s' has no run that fits --where\n",
            several ? "results/measured" : command->measurements.at[0]);
        return;
    }
    if (command->open) {
        evidence_print(stdout, evidence, "open", diag);
        return;
    }
    if (command->rows)
        evidence_print(stdout, evidence, "rows", diag);
    static const char *const first[] = {"groups", "skill", "first_sight", "node"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        evidence_print(stdout, evidence, first[i], diag);
    print_breakdowns(command, evidence, several, diag);
    if (several || command->by.n > 0)
        evidence_print(stdout, evidence, "verdicts", diag);
    validate_loss_print(stdout, rows);
    if (several)
        validate_sure_print(stdout, left);
    evidence_print(stdout, evidence, "not_simulated", diag);
    evidence_print(stdout, evidence, "made", diag);
}

/* The sources of a table, each once, after those of tables before it. */
static const char *add_sources(const char *names, const struct csv_table *csv, struct arena *arena)
{
    int column = csv_column(csv, "source");
    for (int r = 0; r < csv_rows(csv) && column >= 0; r++) {
        const char *source = csv_cell(csv, r, column);
        bool known = false;
        for (int k = 0; k < r && !known; k++)
            known = strcmp(csv_cell(csv, k, column), source) == 0;
        if (!known && *source)
            names = arena_printf(arena, "%s%s%.40s", names, *names ? "; " : "", source);
    }
    return names;
}

/* --source that is none: which there are, in the tables that were looked at. */
static void refuse_source(
    const struct validate_command *command, struct arena *arena, struct diag *diag)
{
    const char *names = "", *stems = "";
    struct validate_files files = {.n = command->measurements.n, .paths = command->measurements.at};
    struct diag unsaid = DIAG_INIT;
    if (command->from)
        files = validate_files_in(files_own(arena, "results/measured"), arena);
    for (int i = 0; i < files.n; i++) {
        struct csv_table *csv = NULL;
        stems = arena_printf(
            arena, "%s%s%s", stems, *stems ? ", " : "", words_stem(files.paths[i], arena));
        if (files.n == 1 && csv_load(&csv, files.paths[i], &unsaid) == STATUS_OK)
            names = add_sources("", csv, arena);
        csv_release(csv);
    }
    diag_input(diag, (struct source_pos){.file = "--source"},
        "no run fits '%s'; there are the %s %s%s", command->source,
        files.n == 1 ? "sources" : "tables", files.n == 1 ? names : stems,
        files.n == 1 ? " (--all has the other tables)" : "");
}

/* The rows that --where and --source want; NULL: all. */
static bool *validate_choose(
    const struct validate_command *command, const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if ((!command->where && !command->source) || csv_load(&csv, path, diag) != STATUS_OK)
        return NULL;
    bool *keep = xcalloc((size_t)csv_rows(csv) + 1, sizeof *keep);
    for (int r = 0; r < csv_rows(csv); r++)
        keep[r] = true;
    if (command->where)
        store_csv_where(keep, csv, command->where, (struct source_pos){.file = "--where"}, diag);
    for (int r = 0; r < csv_rows(csv) && command->source; r++)
        keep[r] = keep[r] && validate_is_of(csv, r, path, command->source);
    csv_release(csv);
    return keep;
}

static bool has_lengths(const struct validate_table *table, const struct csv_table *csv)
{
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].csv == csv && table->rows.at[i].set.n_points == 1 &&
            model_sample_tokens(&table->rows.at[i].set.points[0].model.shape) == 0)
            return true;
    return false;
}

static bool validate_is_same_file(const char *one, const char *two)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(two, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_default(const struct validate_command *command)
{
    return validate_is_same_file(command->own_base, command->base);
}

/* The default base scenario has one token and a micro-batch of one, for each row of training.csv
 * says its own: speeds of another table would be nonsense without them. A table of images needs no
 * length. */
static void validate_check_batch(const struct validate_command *command,
    const struct validate_table *table, const struct csv_table *csv, const char *path,
    struct diag *diag)
{
    const struct {
        const char *path;
        bool needed;
    } settings[] = {{"train.micro_batch", true}, {"train.seq_len", has_lengths(table, csv)}};
    bool own = is_default(command);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && own; i++) {
        const char *column = strchr(settings[i].path, '.') + 1;
        if (settings[i].needed && csv_column(csv, settings[i].path) < 0 &&
            csv_column(csv, column) < 0)
            diag_input(diag, (struct source_pos){.file = path},
                "no column '%s'; add it, or say with --base SCENARIO what all rows have in common",
                column);
    }
}

/* An unknown column is reported by the loader. Here: no column is left to compare. */
static void warn_unmeasured(const struct validate_command *command, const struct csv_table *csv,
    const char *path, struct diag *diag)
{
    if (!command->predict && !validate_measures(csv))
        diag_warn(diag, (struct source_pos){.file = path},
            "no column says what was measured, so nothing is compared; add tokens_per_s_per_gpu, "
            "tflops_per_gpu, step_time_s, peak_allocated_bytes, peak_reserved_bytes or oom");
}

/* All rows share the base: an error of its document is reported once. */
static void check_base(const struct validate_command *command, struct diag *diag)
{
    struct config_doc *base = NULL;
    if (config_load(&base, command->base, diag) == STATUS_OK)
        config_free(base);
}

/* The tables with their scenarios. A row that makes none is reported with the others: such an error
 * does not end the command; false: another one does. */
static bool lab_validate_load(
    const struct validate_command *command, struct validate_table *table, struct diag *diag)
{
    for (int i = 0; i < command->measurements.n; i++) {
        const char *path = command->measurements.at[i];
        struct diag own = DIAG_INIT;
        bool *keep = validate_choose(command, path, &own);
        bool good = own.n_errors == 0 && validate_add(table, path, command->base, keep, &own);
        free(keep);
        diag_merge(diag, &own);
        if (!good)
            return false;
        int before = diag->n_errors;
        validate_check_batch(command, table, table->files.at[i], path, diag);
        if (diag->n_errors > before)
            return false;
        warn_unmeasured(command, table->files.at[i], path, diag);
    }
    return true;
}

/* Predictions of this process' part of the rows, or of all. */
static void simulate_part(const struct validate_command *command, struct validate_table *table,
    struct shard part, struct store *store, struct diag *diag)
{
    struct store_outcomes *outcomes = store ? store_outcomes_begin(store, stop_asked) : NULL;
    struct scenario_share share = {store_outcomes_kept(outcomes), part.shard, part.shards};
    table->share = &share;
    if (command->open)
        validate_keep_open(table);
    if (command->predict)
        validate_keep_unmeasured(table);
    struct waiting *waiting =
        waiting_begin("validate", "", "runs", NULL, !ranks_is_first(command->ranks));
    validate_run(table, waiting_count, waiting, diag);
    waiting_end(waiting);
    table->share = NULL;
    store_outcomes_end(outcomes, diag);
}

/* Every rank does its part of the rows, which are read for it once more, and rank 0 takes all in.
 */
static void validate_simulate_with_ranks(
    const struct validate_command *command, struct store *store, struct diag *diag)
{
    const struct shard part = {ranks_number(command->ranks) + 1, ranks_count(command->ranks)};
    struct validate_table table = {0};
    struct diag own = DIAG_INIT;
    store_share(store, command->ranks, diag);
    if (lab_validate_load(command, &table, &own))
        simulate_part(command, &table, part, store, &own);
    if (own.worst == STATUS_IO)
        diag_merge(diag, &own);
    validate_release(&table);
    store_gather(store, command->ranks, diag);
}

/* Predictions and errors. */
static void validate_simulate(const struct validate_command *command, struct validate_table *table,
    struct store *store, struct diag *diag)
{
    if (ranks_count(command->ranks) > 1)
        validate_simulate_with_ranks(command, store, diag);
    if (!ranks_is_first(command->ranks) || diag->worst == STATUS_IO)
        return;
    simulate_part(command, table, command->shard, store, diag);
    if (table->n_known > 0 && ranks_count(command->ranks) == 1)
        fprintf(stderr, "validate: %d of %d simulations are in %s already\n", table->n_known,
            table->n_runs, command->db);
    if (table->left > 0)
        return;
    validate_check_units(table, diag);
}

/* A page must not be silent about a table that came after its results. */
static void warn_missing(
    const struct validate_table *table, const char *from, struct arena *arena, struct diag *diag)
{
    struct validate_files files = validate_files_in(files_own(arena, "results/measured"), arena);
    for (int i = 0; i < files.n; i++) {
        bool there = false;
        for (int r = 0; r < table->rows.n && !there; r++)
            there = (r == 0 || table->rows.at[r].csv != table->rows.at[r - 1].csv) &&
                    validate_is_same_file(table->rows.at[r].file, files.paths[i]);
        if (!there)
            diag_warn(diag, (struct source_pos){.file = files.paths[i]},
                "not in '%s'; write it again by `flopcast validate --all --results`", from);
    }
}

static void write_page(
    const char *path, const struct validate_page *page, struct arena *arena, struct diag *diag)
{
    static const char *const files[] = {"claims", "groups", "peers"};
    bool good = true;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        good = evidence_put_csv(page->evidence, files[i],
                   files_own(arena, arena_printf(arena, "results/%s.csv", files[i])),
                   diag) == STATUS_OK &&
               good;
    if (good)
        validate_page_write(path, page, diag);
}

/* Where the results go that are not printed. */
static void keep_results(const struct validate_command *command, const struct validate_table *table,
    const struct sure_left_out *left, struct store *evidence, struct store *store,
    struct arena *arena, struct diag *diag)
{
    if (command->results)
        validate_stored_write(table, command->base, command->results, diag);
    struct sure_numbers sure;
    if (command->sure && !sure_fit(&sure, table, arena))
        diag_input(diag, (struct source_pos){.file = "--sure"},
            "intervals need speeds, ratios and peaks of three makers at least; --from "
            "results/validated.csv has them");
    else if (command->sure)
        sure_write(command->sure, &sure, diag);
    if (command->page && command->from &&
        validate_is_same_file(command->from, files_own(arena, "results/validated.csv")))
        warn_missing(table, command->from, arena, diag);
    if (command->page)
        write_page(command->page, &(struct validate_page){table, left, evidence}, arena, diag);
    if (store)
        validation_put(store, table,
            table->files.n == 1 ? table->rows.n ? table->rows.at[0].file : "" : "results/measured",
            diag);
}

/* The tables of collectives that are open or contradicted. They are not simulated here: `flopcast
 * calibrate fit nccl` prints their errors. */
static void print_open_collectives(struct store *evidence, const char *path, struct diag *diag)
{
    if (evidence_put_csv(evidence, "nccl_tables", path, diag) == STATUS_OK)
        evidence_print(stdout, evidence, "open_nccl", diag);
}

/* Not all was simulated here. */
static void validate_report_left(
    const struct validate_command *command, const struct validate_table *table, struct diag *diag)
{
    if (stop_asked())
        fprintf(stderr,
            "flopcast: stopped; what is finished is in %s, and the same command goes on\n",
            command->db);
    else if (command->shard.shards > 0 && diag->worst != STATUS_IO)
        printf("shard %d/%d: %d of %d simulations are in %s; after all shards: flopcast merge, and "
               "this command without --shard on what it made\n",
            command->shard.shard, command->shard.shards, table->n_runs - table->left, table->n_runs,
            command->db);
}

/* All rows have what is predicted: what it says of them, and where it goes. The intervals come
 * before the evidence, which has them as columns. */
static void validate_answer(const struct validate_command *command, struct validate_table *table,
    struct store *store, struct arena *arena, struct diag *diag)
{
    validate_first_sight(table, diag);
    struct sure_left_out left = sure_leave_out(table, arena);
    sure_set_intervals(table, &left);
    if (command->predict &&
        validate_predict(table, command->predict, command->uncommitted, diag) == STATUS_OK)
        printf("%d prediction%s in '%s'\n", table->rows.n, plural(table->rows.n), command->predict);
    struct store *evidence = NULL;
    if (evidence_open(&evidence, table, diag) == STATUS_OK) {
        if (table->rows.n == 0 && command->source)
            refuse_source(command, arena, diag);
        else if (!command->predict && !command->page)
            validate_print(command, table, &left, evidence, diag);
        if (command->open && command->format == RECORDS_TABLE && !command->where &&
            is_default(command))
            print_open_collectives(
                evidence, files_own(arena, "results/measured/nccl_tables.csv"), diag);
        keep_results(command, table, &left, evidence, store, arena, diag);
    }
    store_close(evidence);
}

/* Conditions in one expression, in their order: each is only tried when those before it were
 * good. */
static void validate(const struct validate_command *command, struct arena *arena, struct diag *diag)
{
    struct validate_table table = {0};
    struct store *store = NULL;
    check_base(command, diag);
    if (command->predict)
        validate_can_predict(command->predict, command->uncommitted, diag);
    if (diag->n_errors == 0 &&
        (command->from ? validate_stored_read(&table, command->from, command->source, diag)
                       : lab_validate_load(command, &table, diag)) &&
        ((!command->db && ranks_count(command->ranks) == 1) ||
            store_open_of_rank(&store, command->db, command->ranks, diag) == STATUS_OK)) {
        if (command->from)
            validate_stored_check(&table, diag);
        else
            validate_simulate(command, &table, store, diag);
        if (table.left > 0 || !ranks_is_first(command->ranks)) {
            validate_report_left(command, &table, diag);
            store_close(store);
            validate_release(&table);
            return;
        }
        validate_answer(command, &table, store, arena, diag);
    }
    store_close(store);
    validate_release(&table);
}

static void validate_check_arguments(void *self, struct argp_state *state)
{
    const struct validate_command *command = self;
    if (command->all && command->measurements.n > 0)
        argp_error(state, "--all and --measurements: which of the two? --all takes all tables of "
                          "results/measured");
    if (command->predict && (command->all || command->measurements.n > 1))
        argp_error(state,
            "--predict writes the predictions of one table; give one --measurements FILE.csv");
    if (command->uncommitted && !command->predict)
        argp_error(state, "--uncommitted is for --predict FILE.csv");
    if (command->shard.shards > 0 && (!command->db || command->from))
        argp_error(state,
            "--shard is for --db PATH, where the part is kept; each shard has its own database");
    if (command->from && (command->open || command->all || command->measurements.n > 0 ||
                             command->where || command->predict || command->results))
        argp_error(
            state, "--from reads what was simulated; --source is all that can choose from it");
}

int cmd_validate(int argc, char **argv)
{
    const struct command_line line = {.options = validate_options,
        .doc = doc,
        .common = COMMON_SIMULATE,
        .take = validate_refuse,
        .check = validate_check_arguments};
    struct arena arena = ARENA_INIT;
    const char *own_base = files_own(&arena, "results/measured/training.yaml");
    struct validate_command command = {.base = own_base, .own_base = own_base};
    command_line_parse(&line, argc, argv, &command);
    if (command.all) {
        struct validate_files files =
            validate_files_in(files_own(&arena, "results/measured"), &arena);
        for (int i = 0; i < files.n; i++)
            vec_push(&command.measurements, files.paths[i]);
    }
    if (command.measurements.n == 0)
        vec_push(&command.measurements, files_own(&arena, "results/measured/training.csv"));
    for (int i = 0; i < command.measurements.n; i++)
        command.measurements.at[i] = files_find(&arena, FILES_ANY, command.measurements.at[i]);
    command.base = files_find(&arena, FILES_SCENARIOS, command.base);
    if (command.from)
        command.from = files_find(&arena, FILES_ANY, command.from);
    struct diag diag = DIAG_INIT;
    if (command.db)
        stop_watch(STOP_AFTER);
    if (ranks_begin(&command.ranks, &diag) == STATUS_OK)
        validate(&command, &arena, &diag);
    ranks_end(command.ranks);
    vec_free(&command.measurements);
    vec_free(&command.by);
    arena_release(&arena);
    int status = cli_report(&diag);
    if (stop_asked())
        stop_leave();
    return status;
}
