/* `flopcast tune`: the search, what is said while it goes on, and its answer. tune_load.c makes the
 * job of it.
 *
 * While it runs, a thread looks on every 0.1 s: it says what is best so far, and ends the program
 * with what is known by then on a signal or when the reader of a pipe has gone. What is subtle:
 * that thread reads candidates only under the mutex, which the search holds while it writes results
 * (changing()). With --db nothing is shown early; the search goes on where it was stopped. */
#include "cli/tune.h"

#include "base/files.h"
#include "options/arguments.h"
#include "cli/cli.h"
#include "options/stop.h"
#include "options/ticker.h"
#include "options/waiting.h"
#include "rows/words.h"
#include "crew/ranks.h"
#include "store/share.h"
#include "store/outcome.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

COMMAND(cmd_tune, 16, "tune", COMMAND_SHARES,
    "search the fastest and the cheapest way to train a model",
    "flopcast tune llama2_7b_h100_fsdp --set cluster.gpus=64");

/* What all candidates have in common, what was tried and cannot be, and what was left aside. A
 * search is only as good as its limits are known, so they stand below each answer. */
void tune_print_held(
    FILE *out, const struct tune_command *command, const struct tune *tune, struct arena *arena)
{
    const struct scenario_point *point = &tune->candidates.at[0].point;
    const struct train_options *train = &point->options.strategy.train;
    const char *stack = point->options.stack_path;
    bool all = command->options.variants > 1, layouts = false, others = false;
    for (int i = 0; i < tune->candidates.n; i++) {
        layouts = layouts || tune->candidates.at[i].is_layout;
        others = others || !tune->candidates.at[i].is_layout;
    }
    bool tried =
        tune_is_all(command) || (command->is_model && !command->strategy); /* each of them */
    if (!all)
        stack = stack ? arena_printf(arena, "stack %s", files_name_from(arena, NULL, stack))
                      : "stack none: eager kernels";
    else if (tune_given(command, "stack"))
        stack = "the stack given; prefetch as PyTorch has it";
    else
        stack = "stacks: megatron-core for megatron, torch-compile (FSDP1) and torchtitan (FSDP2, "
                "eager) for fsdp, torch-compile for ddp, eager kernels for deepspeed; prefetch as "
                "PyTorch has it";
    words_paragraph_of(out, "held: %sprecision %s, optimizer %s; %s",
        !all && layouts ? "strategy megatron; " : "", precision_names[train->precision],
        optimizer_names[train->optimizer], stack);
    if (tried && !(layouts && others))
        words_paragraph_of(out, "not possible: %s",
            layouts ? "FSDP, DDP, ZeRO (at this batch on these GPUs)"
                    : "layouts of megatron (tensor, context, pipeline, expert parallelism)");
    words_paragraph_of(out,
        "not searched: %s%s%s%smicro-batches above %d and between powers of 2; other schedules "
        "than 1F1B, partial recomputation, offload, other precisions",
        layouts || tried ? ""
                         : "layouts of megatron (tensor, context, pipeline, expert parallelism; "
                           "--strategy all has them); ",
        others || tried ? "" : "FSDP, DDP, ZeRO (--strategy all has them); ",
        layouts ? arena_printf(arena, "context parallelism below %d tokens a rank; ",
                      TUNE_LEAST_CONTEXT_TOKENS)
                : "",
        others ? "FSDP and ZeRO with tensor, context or pipeline parallelism; " : "",
        (int)command->options.max_batch);
}

/* While a search goes on: what is best so far, on standard error; and a signal or a closed pipe
 * ends it with what is known. A thread looks on, as a simulation may take longer than anybody wants
 * to wait. */

static const double LOOKS_S = 0.1;
static const double SILENT_S = 4,
                    PIPE_SILENT_S = 30; /* before the first line, on a terminal and elsewhere */
static const double BETWEEN_S = 5;      /* between two lines */

struct tune_watch {
    const struct tune_command *command;
    const struct scenario_set *set;
    struct tune *tune;
    struct ticker *ticker;
    double start_s, silent_s, said_s,
        best_s; /* silent_s: nothing is said before; best_s: of a step, as it was said */
};

static void changing(void *self, bool begins)
{
    struct tune_watch *watch = self;
    (begins ? ticker_lock : ticker_unlock)(watch->ticker);
}

/* Those that ran as finalists without noise, for a table before the end. Then the table prints
 * them as if they were final; noisy values of those that have run with noise stay. */
static int tune_settle(struct tune *tune)
{
    int n = 0;
    for (int i = 0; i < TUNE_STATE_COUNT; i++)
        tune->count[i] = 0;
    tune->n_finalists = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        struct tune_candidate *at = &tune->candidates.at[i];
        tune->count[at->state]++;
        if (at->state != TUNE_RAN)
            continue;
        at->noisy = at->finalist ? at->noisy : at->quiet;
        at->finalist = true;
        n++;
    }
    tune->n_finalists = n;
    return n;
}

/* Runs on the thread that looks on, with the mutex held, so candidates do not change any more. */
static _Noreturn void tune_leave(struct tune_watch *watch)
{
    struct tune *tune = watch->tune;
    struct arena arena = ARENA_INIT;
    if (tune_settle(tune) == 0)
        fputs(STOP_NOTHING_RANKED, stderr);
    else
        tune_print(stdout, watch->command, watch->set, tune, &arena);
    fflush(stdout);
    stop_leave();
    _exit(1);
}

/* What is still to come, by what is left: candidates whose bounds are below the best step, or are
 * not known as they are of other jobs; others only for the places behind it. Time left is by the
 * mean of what ran. */
static const char *tune_rest(
    struct arena *arena, const struct tune *tune, const struct tune_candidate *best, double s)
{
    int ran = 0, left = 0, behind = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        bool waits = at->state == TUNE_LEFT_OUT;
        bool better = at->group != best->group || at->bound.step_s <= best->quiet.step_time_s;
        ran += at->state == TUNE_RAN || at->state == TUNE_OOM;
        left += waits && better;
        behind += waits && !better;
    }
    if (left > 0)
        return arena_printf(arena, "; at most %d may be better, about %.0f s", left,
            s * left / (ran > 0 ? ran : 1));
    if (behind > 0)
        return arena_printf(arena, "; none is faster by its bound, %d may come behind it", behind);
    return tune->quiet_only ? "" : ", without noise; the best are run with it";
}

/* A better one than what was said last; how many may still be better, and about how long they take.
 */
static void tune_say(struct tune_watch *watch)
{
    const struct tune *tune = watch->tune;
    const struct tune_candidate *best = NULL;
    double s = ticker_now_s() - watch->start_s;
    int ran = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        ran += at->state == TUNE_RAN || at->state == TUNE_OOM;
        if (at->state == TUNE_RAN && (!best || at->quiet.tokens_per_s > best->quiet.tokens_per_s))
            best = at;
    }
    if (!best || s < watch->silent_s || s - watch->said_s < BETWEEN_S ||
        best->quiet.step_time_s == watch->best_s)
        return;
    watch->said_s = s;
    watch->best_s = best->quiet.step_time_s;
    struct arena arena = ARENA_INIT;
    const char *text = arena_printf(&arena, "%.0f s: best of %d so far: %s, %.0f tokens/s%s", s,
        ran, tune_name(&arena, best), best->quiet.tokens_per_s, tune_rest(&arena, tune, best, s));
    flockfile(stderr);
    if (isatty(STDERR_FILENO)) { /* in the place of the line that counts */
        fputs("\r\033[K", stderr);
        words_paragraph(stderr, text);
    } else {
        fprintf(stderr, "%s\n", text);
    }
    funlockfile(stderr);
    arena_release(&arena);
}

static void tune_look_on(void *self)
{
    struct tune_watch *watch = self;
    struct pollfd out = {.fd = STDOUT_FILENO};
    if (stop_asked())
        tune_leave(watch);
    if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR))
        raise(SIGPIPE);
    tune_say(watch);
}

static struct tune_watch *tune_watch_begin(
    const struct tune_command *command, const struct scenario_set *set, struct tune *tune)
{
    struct tune_watch *watch = xcalloc(1, sizeof *watch);
    *watch = (struct tune_watch){.command = command,
        .set = set,
        .tune = tune,
        .start_s = ticker_now_s(),
        .silent_s = waiting_silent_s(SILENT_S, PIPE_SILENT_S),
        .said_s = -BETWEEN_S};
    watch->ticker = ticker_begin(LOOKS_S, tune_look_on, watch);
    tune->changing = changing;
    tune->self = watch;
    return watch;
}

static void tune_watch_end(struct tune_watch *watch)
{
    if (!watch)
        return;
    ticker_end(watch->ticker);
    free(watch);
}

enum { MAX_COUNT = 1 << 20 };

static const struct command_option tune_options[] = {
    {"set", "KEY=VALUE",
        "Set an option, as in cluster.gpus=64; one that is searched (strategy=ddp) then has this "
        "value alone; may be repeated",
        OPTION_SET, AT(tune_command, overrides)},
    {"strategy", "S",
        "all: every strategy with the stack that people run it with (the default of a model), or "
        "one, as in fsdp, fsdp2, megatron, zero3, ddp",
        OPTION_TEXT, AT(tune_command, strategy)},
    JOB_SEARCHED_OPTIONS(struct tune_command),
    {"by", "ORDER", "speed: tokens/s of the job (default); cost: dollars for the tokens",
        OPTION_NAME, AT(tune_command, by), .names = tune_order_names},
    PRICE_OPTION(struct tune_command),
    {"tokens", "N",
        "Days and dollars of a training on this number of tokens (images, samples), as in 15T; K, "
        "M, B and T are powers of 1000",
        OPTION_TAKE, AT(tune_command, tokens), .take = argument_tokens},
    {"max-batch", "N", "Largest micro-batch tried (default: 64)", OPTION_COUNT,
        AT(tune_command, options.max_batch), .most = MAX_COUNT},
    {"global-batch", "N",
        "Sequences a step of the whole job: micro-batches accumulate to it (default: free)",
        OPTION_COUNT, AT(tune_command, options.global_batch), .most = 1 << 30},
    {"limit", "N",
        "Simulate at most N candidates, the most promising first: those with the least lower bound "
        "(default: 1000)",
        OPTION_COUNT, AT(tune_command, options.max_simulations), .most = MAX_COUNT},
    {"top", "N",
        "Run the N best with noise and show them (default: 10); kinds of prefetch within 0.1 % are "
        "one",
        OPTION_COUNT, AT(tune_command, top), .most = MAX_COUNT},
    {"db", "PATH",
        "Keep each simulation in this database, and take from it what was simulated before; "
        "created if missing",
        OPTION_TEXT, AT(tune_command, db)},
    SHARD_OPTION(struct tune_command, "simulations"),
    MEASURED_OPTION(struct tune_command),
    {"format", "FORMAT", "table (default), or csv or json: every candidate", OPTION_NAME,
        AT(tune_command, format), .names = records_format_names},
    {"emit", "TRAINER",
        "torchtitan, megatron or automodel: write the best that this trainer can run as its own "
        "options, which `flopcast scenario import` reads back as the same job",
        OPTION_TAKE, AT(tune_command, emit), .take = tune_emit_take},
    {"out", "FILE", "Where --emit writes (default: stdout, and the answer to stderr)", OPTION_TEXT,
        AT(tune_command, out)},
    {0},
};

/* One line, which goes away when all are done. */
static void tune_show_progress(void *what, int done, int total)
{
    if (done < total)
        fprintf(stderr, "\rtune: %d of %d %s\033[K", done, total, (const char *)what);
    else
        fputs("\r\033[K", stderr);
}

/* Why there are no candidates. */
static void report_none(const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct diag *diag)
{
    struct source_pos at = {.file = set->file};
    if (tune->n_refused > 0)
        diag_input(diag, at, "none of %d combinations is possible; the first: %s", tune->n_refused,
            tune->refusal);
    else
        diag_input(diag, at,
            "no micro-batch up to %d accumulates to a global batch of %d on these GPUs; give a "
            "--global-batch that is a multiple of cluster.gpus",
            (int)command->options.max_batch, (int)command->options.global_batch);
}

/* The candidates, without noise; then the finalists of the orders that are shown, with it.
 * Finalists of the order that was asked for are as many as its rows; of the others one, which is
 * compared with the best. */
static enum status tune_find(
    struct tune *tune, const struct tune_command *command, struct diag *diag)
{
    scenario_progress progress = isatty(STDERR_FILENO) ? tune_show_progress : NULL;
    static char candidates[] = "candidates", finalists[] = "finalists with noise";
    enum status status = tune_run(tune, &command->options, progress, candidates, diag);
    for (int by = 0; by < TUNE_ORDER_COUNT && status == STATUS_OK && tune->left == 0; by++) {
        bool asked = by == command->by || (by == TUNE_UNPRICED && command->by == TUNE_BY_COST);
        status = tune_finals(
            tune, (enum tune_order)by, asked ? command->top : 1, progress, finalists, diag);
    }
    return status;
}

/* Not all was simulated here, so there is no answer yet. */
static void tune_report_left(const struct tune_command *command, const struct tune *tune)
{
    if (stop_asked())
        fprintf(stderr,
            "flopcast: stopped; what is finished is in %s, and the same command goes on\n",
            command->db);
    else
        printf("shard %d/%d: %d simulations are in %s, %d are left to other shards; after all of "
               "them: flopcast merge, and this command on what it made, with --shard for the runs "
               "with noise, or without\n",
            command->shard.shard, command->shard.shards, tune->own + tune->known, command->db,
            tune->left);
}

/* This process' part of the work, or all of it. */
static enum status search(struct tune *tune, const struct tune_command *command, struct shard part,
    struct store *store, struct diag *diag)
{
    struct store_outcomes *outcomes = store ? store_outcomes_begin(store, stop_asked) : NULL;
    struct scenario_share share = {store_outcomes_kept(outcomes), part.shard, part.shards};
    tune->share = &share;
    enum status status = tune_find(tune, command, diag),
                stored = store_outcomes_end(outcomes, diag);
    tune->share = NULL;
    return status == STATUS_OK ? stored : status;
}

/* The candidates, divided among all ranks; then, as every rank knows what came out, the finalists.
 * What is still missing is left to rank 0's own search. */
static void search_with_ranks(struct tune_command *command, const struct scenario_set *set,
    struct store *store, struct diag *diag)
{
    const struct shard part = {ranks_number(command->ranks) + 1, ranks_count(command->ranks)};
    for (int round = 0; round < 2; round++) {
        struct tune tune = {0};
        struct diag own = DIAG_INIT;
        store_share(store, command->ranks, diag);
        tune_candidates(&tune, set, &command->options, &command->arena);
        if (!stop_asked() && diag->worst == STATUS_OK)
            search(&tune, command, part, store, &own);
        if (own.worst == STATUS_IO)
            diag_merge(diag, &own);
        vec_free(&tune.candidates);
        store_gather(store, command->ranks, diag);
    }
}

static void tune_check(void *self, struct argp_state *state)
{
    const struct tune_command *command = self;
    if (command->shard.shards > 0 && !command->db)
        argp_error(state,
            "--shard is for --db PATH, where the part is kept; each shard has its own database");
    if (command->out && !command->emit)
        argp_error(state,
            "--out is where --emit TRAINER writes; `flopcast tune ... >FILE` keeps the answer");
}

static void cli_tune_load(
    struct tune *tune, struct tune_command *command, struct scenario_set *set, struct diag *diag)
{
    command->file = files_find(&command->arena, FILES_SCENARIOS, command->file);
    tune_load(set, command, diag);
    if (diag->worst != STATUS_OK ||
        prices_set(&command->prices, set, &command->arena, diag) != STATUS_OK)
        return;
    tune_candidates(tune, set, &command->options, &command->arena);
    if (tune->candidates.n == 0)
        report_none(command, set, tune, diag);
}

/* Without a database, what there is by then is shown when it is stopped; NULL: nothing is. */
static struct tune_watch *load_and_watch(struct tune *tune, struct tune_command *command,
    struct scenario_set *set, struct store *store, struct diag *diag)
{
    bool shows = !command->db && ranks_is_first(command->ranks);
    if (shows)
        stop_watch(STOP_WITHOUT_ANSWER);
    cli_tune_load(tune, command, set, diag);
    if (diag->worst == STATUS_OK && ranks_count(command->ranks) > 1)
        search_with_ranks(command, set, store, diag);
    command->own = (struct own_runs){.command = "tune"};
    if (diag->worst == STATUS_OK && ranks_is_first(command->ranks))
        own_runs_simulate(&command->own, command->sure, &command->measured, set,
            &command->overrides, &command->arena, diag);
    if (!shows || diag->worst != STATUS_OK)
        return NULL;
    stop_watch(STOP_NOW);
    return tune_watch_begin(command, set, tune);
}

/* On standard output, unless what --emit writes goes there. */
static void tune_answer(struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct diag *diag)
{
    FILE *out = command->emit && !command->out ? stderr : stdout;
    tune_print(out, command, set, tune, &command->arena);
    tune_emit(command, set, tune, diag);
}

int cmd_tune(int argc, char **argv)
{
    const struct command_line line = {.options = tune_options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO|MODEL",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(tune_command, file),
        .missing = "a scenario file, or a model, is missing",
        .check = tune_check,
        .doc = "Of a model (its name, config.json or folder): search all strategies, Megatron's "
               "layouts beside FSDP, ZeRO and DDP, at one global batch. Of a scenario (or with "
               "--strategy): search strategy, micro-batch, checkpointing, prefetch and sharding "
               "group under the memory limit, for every cluster and GPU count that the scenario "
               "sweeps; rank by tokens/s or by cost. With strategy megatron: search tensor, "
               "context, pipeline, virtual, expert and data "
               "parallelism at one global batch.\vWhat certainly does not fit is pruned by the "
               "peak of its plan, the rest is simulated with noise off. The best are then run with "
               "the scenario's noise, and rank by that. What --set gives of the options searched "
               "stays. Layouts of megatron "
               "are simulated in the order of a lower bound of their steps, until "
               "none that is left can be among the best of --top, and without noise. --limit "
               "bounds the work, not a clock, so the answer is the same everywhere. "
               "The price is that of the GPU's topology file, or --price's; energy has host, "
               "network and PUE (defaults: `flopcast goodput --sources`).\n\n"
               "Columns: batch: sequences of a micro-batch; accum: micro-batches a step; no noise: "
               "TFLOPS with GPUs alike and no jitter; 90 %: how sure the speed is."};
    struct sure sure = {0};
    struct tune_command command = {
        .top = 10, .sure = &sure, .options = {.max_batch = 64, .max_simulations = 1000}};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    struct tune tune = {0};
    command.options.keep = command.top;
    if (command.db)
        stop_watch(STOP_AFTER);
    struct store *store = NULL;
    if (ranks_begin(&command.ranks, &diag) != STATUS_OK)
        return cli_report(&diag);
    if (command.db || ranks_count(command.ranks) > 1)
        store_open_of_rank(&store, command.db, command.ranks, &diag);
    struct tune_watch *watch =
        diag.worst == STATUS_OK ? load_and_watch(&tune, &command, &set, store, &diag) : NULL;
    bool ready = diag.worst == STATUS_OK && ranks_is_first(command.ranks) && !stop_asked();
    bool whole = ready && search(&tune, &command, command.shard, store, &diag) == STATUS_OK &&
                 tune.left == 0;
    if (tune.known > 0 && ranks_count(command.ranks) == 1)
        fprintf(stderr, "tune: %d of %d simulations were in %s already\n", tune.known,
            tune.known + tune.own, command.db);
    tune_watch_end(watch);
    if (diag.worst == STATUS_OK && tune.left > 0)
        tune_report_left(&command, &tune);
    if (whole)
        tune_answer(&command, &set, &tune, &diag);
    store_close(store);
    ranks_end(command.ranks);
    sure_end(&sure);
    vec_free(&command.own.list);
    own_runs_free(&command.measured);
    vec_free(&tune.candidates);
    overrides_free(&command.overrides);
    prices_free(&command.prices);
    arena_release(&command.arena);
    int status = cli_report(&diag);
    if (stop_asked())
        stop_leave();
    return status;
}
