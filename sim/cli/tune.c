#include "cli/tune.h"

#include "base/files.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/evidence.h"
#include "cli/stop.h"
#include "crew/crew.h"
#include "scenario/kinds.h"
#include "store/outcome.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COUNT = 1 << 20 };

#define AT(at) .member = offsetof(struct tune_command, at)
static const struct command_option options[] = {
    {"set", "KEY=VALUE",
        "Set an option, as in cluster.gpus=64; one that is searched (strategy=ddp) then has this value alone; may be "
        "repeated",
        OPTION_SET, AT(overrides)},
    {"strategy", "S",
        "all: every strategy with the stack that people run it with (the default of a model), or one, as in fsdp, "
        "megatron, deepspeed, ddp",
        OPTION_TEXT, AT(strategy)},
    JOB_OPTIONS(struct tune_command),
    {"by", "ORDER", "speed: tokens/s of the job (default); cost: dollars for the tokens", OPTION_NAME, AT(by),
        .names = tune_order_names},
    PRICE_OPTION(struct tune_command),
    {"tokens", "N",
        "Days and dollars of a training on this number of tokens (images, samples), as in 15T; K, M, B and T are "
        "powers of 1000",
        OPTION_TAKE, AT(tokens), .take = argument_tokens},
    {"max-batch", "N", "Largest micro-batch tried (default: 64)", OPTION_COUNT, AT(options.max_batch),
        .most = MAX_COUNT},
    {"global-batch", "N", "Sequences a step of the whole job: micro-batches accumulate to it (default: free)",
        OPTION_COUNT, AT(options.global_batch), .most = 1 << 30},
    {"limit", "N",
        "Simulate at most N candidates, the most promising first: those with the least lower bound (default: 1000)",
        OPTION_COUNT, AT(options.max_simulations), .most = MAX_COUNT},
    {"top", "N", "Run the N best with noise and show them (default: 10); kinds of prefetch within 0.1 % are one",
        OPTION_COUNT, AT(top), .most = MAX_COUNT},
    {"db", "PATH",
        "Keep each simulation in this database, and take from it what was simulated before; created if missing",
        OPTION_TEXT, AT(db)},
    SHARD_OPTION(struct tune_command, "simulations"),
    {"format", "FORMAT", "table (default), or csv or json: every candidate", OPTION_NAME, AT(format),
        .names = records_format_names},
    {0},
};

static void show_progress(void *self, int done, int total)
{
    (void)self;
    fprintf(stderr, "\r%d of %d candidates%s", done, total, done == total ? "\n" : "");
}

/* Why there are no candidates. */
static void report_none(
    const struct tune_command *command, const struct scenario_set *set, const struct tune *tune, struct diag *diag)
{
    struct source_pos at = {.file = set->file};
    if (tune->n_refused > 0)
        diag_input(diag, at, "none of %d combinations is possible; the first: %s", tune->n_refused, tune->refusal);
    else
        diag_input(diag, at,
            "no micro-batch up to %d accumulates to a global batch of %d on these GPUs; give a --global-batch that is "
            "a multiple of cluster.gpus",
            (int)command->options.max_batch, (int)command->options.global_batch);
}

/* The candidates, without noise; then the finalists of the orders that are shown, with it. */
static enum status find(struct tune *tune, const struct tune_command *command, struct diag *diag)
{
    scenario_progress progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    enum status status = tune_run(tune, &command->options, progress, NULL, diag);
    for (int by = 0; by < TUNE_ORDER_COUNT && status == STATUS_OK && tune->left == 0; by++) {
        bool asked = by == command->by || (by == TUNE_UNPRICED && command->by == TUNE_BY_COST);
        status = tune_finals(tune, (enum tune_order)by, asked ? command->top : 1, progress, NULL, diag);
    }
    return status;
}

/* Not all was simulated here, so there is no answer yet. */
static void report_left(const struct tune_command *command, const struct tune *tune)
{
    if (stop_asked())
        fprintf(stderr, "flopcast: stopped; what is finished is in %s, and the same command goes on\n", command->db);
    else
        printf("shard %d/%d: %d simulations are in %s, %d are left to other shards; after all of them: flopcast merge, "
               "and this command on what it made, with --shard for the runs with noise, or without\n",
            command->shard.shard, command->shard.shards, tune->own + tune->known, command->db, tune->left);
}

static enum status search(struct tune *tune, const struct tune_command *command, struct diag *diag)
{
    struct store *store = NULL;
    if (command->db && crew_is_owner(command->crew) && store_open(&store, command->db, STORE_WRITE, diag) != STATUS_OK)
        return STATUS_IO;
    struct store_outcomes *outcomes = store ? store_outcomes_begin(store, stop_asked) : NULL;
    struct scenario_share share = {
        command->crew, store_outcomes_kept(outcomes), command->shard.shard, command->shard.shards};
    tune->share = &share;
    enum status status = find(tune, command, diag), stored = store_outcomes_end(outcomes, diag);
    tune->share = NULL;
    store_close(store);
    if (tune->known > 0)
        fprintf(stderr, "tune: %d of %d simulations were in %s already\n", tune->known, tune->known + tune->own,
            command->db);
    return status == STATUS_OK ? stored : status;
}

static void check(void *self, struct argp_state *state)
{
    const struct tune_command *command = self;
    if (command->shard.shards > 0 && !command->db)
        argp_error(state, "--shard is for --db PATH, where the part is kept; each shard has its own database");
}

static void load(struct tune *tune, struct tune_command *command, struct scenario_set *set, struct diag *diag)
{
    command->file = files_find(&command->arena, FILES_SCENARIOS, command->file);
    tune_load(set, command, diag);
    if (diag->worst == STATUS_OK)
        kinds_refuse(set->points, set->n_points, "flopcast tune", diag);
    if (diag->worst != STATUS_OK || prices_set(&command->prices, set, &command->arena, diag) != STATUS_OK)
        return;
    tune_candidates(tune, set, &command->options, &command->arena);
    if (tune->candidates.n == 0)
        report_none(command, set, tune, diag);
}

int cmd_tune(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO|MODEL",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(file),
        .missing = "a scenario file, or a model, is missing",
        .check = check,
        .doc =
            "Of a model (its name, config.json or folder): search all strategies, Megatron's layouts beside FSDP, ZeRO "
            "and DDP, at one global batch. Of a scenario (or with --strategy): search strategy, micro-batch, "
            "checkpointing, prefetch and sharding group under the memory limit, for "
            "every cluster and GPU count that the scenario sweeps; rank by tokens/s or by cost. With strategy "
            "megatron: search tensor, context, pipeline, virtual, expert and data parallelism at one global "
            "batch.\v"
            "What certainly does not fit is pruned by the peak of its plan, the rest is simulated with noise "
            "off. The best are then run with the scenario's noise, and rank by that. What --set gives of the "
            "options searched stays. Layouts of megatron are simulated in the order of a lower bound of their "
            "steps, until "
            "none that is left can be among the best of --top, and without noise. --limit bounds the work, not a "
            "clock, so the answer is the same everywhere. "
            "The price is that of the GPU's topology file, or --price's; energy has host, network and PUE "
            "(defaults: `flopcast goodput --sources`).\n\n"
            "Columns: batch: sequences of a micro-batch; accum: micro-batches a step; no noise: TFLOPS with GPUs alike "
            "and no jitter; 90 %: how sure the speed is."};
    struct tune_command command = {.top = 10, .options = {.max_batch = 64, .max_simulations = 1000}};
    command_line_parse(&line, argc, argv, &command);
    bool table = command.format == RECORDS_TABLE;
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    struct tune tune = {0};
    command.options.keep = command.top;
    if (command.db)
        stop_watch(STOP_AFTER);
    if (crew_begin(&command.crew, &diag) != STATUS_OK)
        return cli_report(&diag);
    load(&tune, &command, &set, &diag);
    bool watched = diag.worst == STATUS_OK && !command.db && crew_is_owner(command.crew);
    if (watched)
        stop_watch(STOP_NOW);
    struct tune_watch *watch = watched ? tune_watch_begin(&command, &set, &tune) : NULL;
    bool whole = diag.worst == STATUS_OK && search(&tune, &command, &diag) == STATUS_OK && tune.left == 0;
    tune_watch_end(watch);
    if (diag.worst == STATUS_OK && tune.left > 0)
        report_left(&command, &tune);
    if (whole)
        (table ? tune_print_table : tune_print_records)(stdout, &command, &set, &tune, &command.arena);
    if (whole)
        evidence_report_search(table ? stdout : NULL, &tune, command.file, &diag);
    crew_end(command.crew);
    vec_free(&tune.candidates);
    overrides_free(&command.overrides);
    prices_free(&command.prices);
    arena_release(&command.arena);
    int status = cli_report(&diag);
    if (stop_asked())
        stop_leave();
    return status;
}
