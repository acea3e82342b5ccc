#include "cli/cli.h"

#include "base/files.h"
#include "cli/arguments.h"
#include "cli/evidence.h"
#include "cli/table.h"
#include "cli/vary.h"
#include "cli/words.h"
#include "config/csv.h"
#include "scenario/tune.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_SET = 256, KEY_BY, KEY_MAX_BATCH, KEY_GLOBAL_BATCH, KEY_LIMIT, KEY_TOP, KEY_FORMAT, MAX_COUNT = 1 << 20 };

static const char *const format_names[] = {"table", "csv", NULL};

struct tune_command {
    const char *file;
    int by, top;
    bool csv;
    struct tune_options options;
    VEC(struct scenario_override) overrides;
    struct arena arena;
};

static const struct argp_option options[] = {
    {"set", KEY_SET, "KEY=VALUE", OPTION_KEYS,
        "Set an option, as in cluster.gpus=64; one that is searched (strategy=ddp) then has this value alone; may be "
        "repeated",
        0},
    {"by", KEY_BY, "ORDER", 0, "speed: tokens/s of the job (default); cost: dollars for the tokens", 0},
    {"max-batch", KEY_MAX_BATCH, "N", 0, "Largest micro-batch tried (default: 64)", 0},
    {"global-batch", KEY_GLOBAL_BATCH, "N", 0,
        "Sequences a step of the whole job: micro-batches accumulate to it (default: free)", 0},
    {"limit", KEY_LIMIT, "N", 0, "Simulate at most N candidates, large micro-batches first (default: 1000)", 0},
    {"top", KEY_TOP, "N", 0, "Show the N best (default: 10); kinds of prefetch within 0.1 % are one", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "table (default), or csv: every candidate", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct tune_command *command = state->input;
    switch (key) {
    case KEY_SET:
        vec_push(&command->overrides, argument_override("set", arg, &command->arena, state));
        return 0;
    case KEY_BY:
        command->by = argument_name("by", arg, tune_order_names, state);
        return 0;
    case KEY_MAX_BATCH:
        command->options.max_batch = argument_count("max-batch", arg, MAX_COUNT, state);
        return 0;
    case KEY_GLOBAL_BATCH:
        command->options.global_batch = argument_count("global-batch", arg, 1 << 30, state);
        return 0;
    case KEY_LIMIT:
        command->options.max_simulations = argument_count("limit", arg, MAX_COUNT, state);
        return 0;
    case KEY_TOP:
        command->top = argument_count("top", arg, MAX_COUNT, state);
        return 0;
    case KEY_FORMAT:
        command->csv = argument_name("format", arg, format_names, state) == 1;
        return 0;
    case ARGP_KEY_ARG:
        if (command->file)
            argp_error(state, "one scenario at a time; '%s' is a second one", arg);
        command->file = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a scenario file is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void show_progress(void *self, int done, int total)
{
    (void)self;
    fprintf(stderr, "\r%d of %d candidates%s", done, total, done == total ? "\n" : "");
}

static const char *prefetch(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    if (strategy->kind != STRATEGY_FSDP)
        return "-";
    if (strategy->fsdp.forward_prefetch)
        return "forward + PRE";
    return backward_prefetch_names[strategy->fsdp.backward_prefetch];
}

/* Do they differ in prefetch alone, and does it change next to nothing? */
static bool alike(const struct tune_candidate *a, const struct tune_candidate *b)
{
    static const double little = 1e-3; /* less than the model knows */
    struct scenario p = a->point.options, q = b->point.options;
    q.strategy.fsdp.backward_prefetch = p.strategy.fsdp.backward_prefetch;
    q.strategy.fsdp.forward_prefetch = p.strategy.fsdp.forward_prefetch;
    return p.cluster.gpus == q.cluster.gpus && fabs(a->tokens_per_s - b->tokens_per_s) <= little * a->tokens_per_s &&
           fabs(a->peak_bytes - b->peak_bytes) <= little * a->peak_bytes && record_curve(&p) == record_curve(&q);
}

/* What the scenario sweeps and the search does not settle. */
static void find_swept(
    struct vary *out, const struct scenario_set *set, const struct tune_candidate *any, struct arena *arena)
{
    const char *settings = tune_settings(any, arena);
    struct vary all;
    vary_find_unnamed(&all, set, arena);
    *out = (struct vary){0};
    for (int i = 0; i < all.options.n; i++)
        if (!strstr(settings, arena_printf(arena, "--set %s=", all.options.at[i].path)))
            vec_push(&out->options, all.options.at[i]);
    vec_free(&all.options);
}

/* prefetches: of this candidate and those alike. */
static void row(struct table *table, const struct tune_candidate *candidate, const char *prefetches,
    const struct vary *swept, struct arena *arena)
{
    const struct scenario_point *point = &candidate->point;
    const struct strategy_options *strategy = &point->options.strategy;
    bool grouped = strategy->kind == STRATEGY_FSDP && strategy->fsdp.sharding_group_size > 0;
    table_cell(table, point->hw.gpu.name);
    table_cell(table, arena_printf(arena, "%" PRId64, point->options.cluster.gpus));
    table_cell(table, strategy_label(strategy));
    for (int i = 0; i < swept->options.n; i++)
        table_cell(table, vary_short(&swept->options.at[i], &point->options, arena));
    table_cell(table, grouped ? arena_printf(arena, "%" PRId64, strategy->fsdp.sharding_group_size) : "-");
    table_cell(table, prefetches);
    table_cell(table, checkpointing_names[strategy->train.activation_checkpointing]);
    table_cell(table, arena_printf(arena, "%" PRId64, strategy->train.micro_batch));
    table_cell(table, arena_printf(arena, "%" PRId64, strategy_micro_steps(&strategy->train)));
    table_cell(table, arena_printf(arena, "%.0f", candidate->tokens_per_s));
    table_cell(table, arena_printf(arena, "%.1f", candidate->tflops_per_gpu));
    table_cell(table, arena_printf(arena, "%.1f", candidate->peak_bytes / 0x1p30));
    table_cell(table, arena_printf(arena, "%.1f", candidate->gpu_hours_per_gtokens));
    table_cell(table, candidate->usd_per_gtokens > 0 ? arena_printf(arena, "%.2f", candidate->usd_per_gtokens) : "-");
    table_cell(table, arena_printf(arena, "%.1f", candidate->kwh_per_gtokens));
}

/* The first `most` of the n in this order; those that differ in prefetch alone, without effect, are one. */
static void print_best(FILE *out, const struct scenario_set *set, const struct tune *tune, const int *order, int n,
    int most, struct arena *arena)
{
    const char *counted = words_counted_all(set);
    struct table table = {0};
    struct vary swept = {0};
    if (n > 0)
        find_swept(&swept, set, &tune->candidates.at[order[0]], arena);
    table_column(&table, "GPU", "", true);
    table_column(&table, "GPUs", "", false);
    table_column(&table, "strategy", "", true);
    for (int i = 0; i < swept.options.n; i++)
        table_column(&table, swept.options.at[i].path, "", true);
    table_column(&table, "group", "GPUs", false);
    table_column(&table, "prefetch", "", true);
    table_column(&table, "checkpoint", "", true);
    table_column(&table, "batch", "/GPU", false);
    table_column(&table, "accum", "", false);
    table_column(&table, arena_printf(arena, "%s/s", counted), "of the job", false);
    table_column(&table, "TFLOPS", "/GPU", false);
    table_column(&table, "HBM peak", "GiB", false);
    table_column(&table, "GPU-h", arena_printf(arena, "/10^9 %s", counted), false);
    table_column(&table, "cost", "$/10^9", false);
    table_column(&table, "energy", "kWh/10^9", false);
    bool *told = xcalloc((size_t)n, sizeof *told);
    for (int i = 0, shown = 0; i < n && shown < most; i++) {
        const struct tune_candidate *candidate = &tune->candidates.at[order[i]];
        if (told[i])
            continue;
        const char *prefetches = prefetch(&candidate->point);
        for (int j = i + 1; j < n; j++)
            if (!told[j] && alike(candidate, &tune->candidates.at[order[j]])) {
                prefetches = arena_printf(arena, "%s, %s", prefetches, prefetch(&tune->candidates.at[order[j]].point));
                told[j] = true;
            }
        row(&table, candidate, prefetches, &swept, arena);
        shown++;
    }
    free(told);
    vec_free(&swept.options);
    table_print(out, &table);
    table_free(&table);
}

/* text as one word of a shell. */
static const char *shell_word(const char *text, struct arena *arena)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=+-,:@%";
    if (*text && strspn(text, plain) == strlen(text))
        return text;
    const char *word = "'";
    for (; *text; text++)
        word = arena_printf(arena, *text == '\'' ? "%s'\\''" : "%s%c", word, *text);
    return arena_printf(arena, "%s'", word);
}

/* The candidate as a command: what --set gave beside the settings searched, these, what the scenario sweeps. */
static void print_command(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune_candidate *candidate, struct arena *arena)
{
    const char *settings = tune_settings(candidate, arena);
    struct vary vary;
    vary_find(&vary, set, arena);
    fprintf(out, "\nthe first: flopcast run %s", shell_word(command->file, arena));
    for (int i = 0; i < command->overrides.n; i++) {
        const struct scenario_override *given = &command->overrides.at[i];
        bool told = strstr(settings, arena_printf(arena, "--set %s=", given->key)) != NULL;
        for (int k = 0; k < vary.options.n && !told; k++)
            told = strcmp(vary.options.at[k].path, given->key) == 0;
        if (!told)
            fprintf(out, " --set %s", shell_word(arena_printf(arena, "%s=%s", given->key, given->value), arena));
    }
    fprintf(out, " %s", settings);
    for (int i = 0; i < vary.options.n; i++) {
        const struct vary_option *option = &vary.options.at[i];
        const char *value = vary_text(option, &candidate->point.options, arena);
        if (!strstr(settings, arena_printf(arena, "--set %s=", option->path)))
            fprintf(out, " --set %s", shell_word(arena_printf(arena, "%s=%s", option->path, value), arena));
    }
    fputc('\n', out);
    vec_free(&vary.options);
}

/* Why there is nothing to rank. */
static void print_none(FILE *out, const struct tune *tune)
{
    int left = tune->count[TUNE_LEFT_OUT];
    if (left > 0)
        fprintf(out, "none of the %d tried fits; %d left out by --limit: take a larger one, or a smaller --max-batch\n",
            tune->count[TUNE_OOM] + tune->count[TUNE_PRUNED], left);
    else
        fputs("nothing fits: take more or larger GPUs, a shorter train.seq_len, or train.attention=flash\n", out);
}

static void print_counts(FILE *out, const struct tune *tune)
{
    fprintf(out, "\n%d candidate%s: %d ran, %d out of memory, %d pruned: cannot fit by the closed form",
        tune->candidates.n, plural(tune->candidates.n), tune->count[TUNE_RAN], tune->count[TUNE_OOM],
        tune->count[TUNE_PRUNED]);
    if (tune->count[TUNE_LEFT_OUT] > 0)
        fprintf(out, ", %d left out by --limit", tune->count[TUNE_LEFT_OUT]);
    if (tune->n_refused > 0)
        fprintf(
            out, "\n%d more %s not possible: %s", tune->n_refused, tune->n_refused == 1 ? "is" : "are", tune->refusal);
    fputs("\n", out);
}

static void print_table(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena)
{
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int n = tune_rank(order, tune, (enum tune_order)command->by);
    int other = command->by == TUNE_BY_SPEED ? TUNE_BY_COST : TUNE_BY_SPEED, first = n > 0 ? order[0] : 0;
    if (n == 0)
        print_none(out, tune);
    if (n > 0) {
        fprintf(out, "best by %s\n\n", tune_order_names[command->by]);
        print_best(out, set, tune, order, n, command->top, arena);
        fputs("\nspeeds are without noise: GPUs alike, no jitter; `flopcast run` of the command below has it\n", out);
        print_command(out, command, set, &tune->candidates.at[order[0]], arena);
    }
    if (n > 0 && tune_rank(order, tune, (enum tune_order)other) && order[0] != first) {
        fprintf(out, "\nbest by %s\n\n", tune_order_names[other]);
        print_best(out, set, tune, order, n, 1, arena);
    }
    print_counts(out, tune);
    if (n > 0 && quantity_is_set(tune->candidates.at[first].point.hw.gpu.price))
        fprintf(out, "price: %s\n", tune->candidates.at[first].point.hw.gpu.price.source);
    free(order);
}

static void print_csv(FILE *out, const struct scenario_set *set, const struct tune *tune, struct arena *arena)
{
    struct vary swept = {0};
    if (tune->candidates.n > 0)
        find_swept(&swept, set, &tune->candidates.at[0], arena);
    fputs("model,cluster,swept,gpus,strategy,sharding_group_size,backward_prefetch,forward_prefetch,activation_"
          "checkpointing,"
          "micro_batch,grad_accum,status,least_bytes,peak_allocated_bytes,step_time_s,tflops_per_gpu,tokens_per_s,"
          "gpu_hours_per_gtokens,usd_per_gtokens,kwh_per_gtokens\r\n",
        out);
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *candidate = &tune->candidates.at[i];
        const struct scenario_point *point = &candidate->point;
        const struct strategy_options *strategy = &point->options.strategy;
        bool fsdp = strategy->kind == STRATEGY_FSDP;
        csv_write_text(out, point->model.shape.name);
        fputc(',', out);
        csv_write_text(out, point->hw.cluster.name);
        fputc(',', out);
        csv_write_text(out, vary_assignments(&swept, point, arena));
        fprintf(out, ",%" PRId64 ",%s,%" PRId64 ",%s,%s,%s,%" PRId64 ",%" PRId64 ",%s,%.15g",
            point->options.cluster.gpus, strategy_label(strategy), fsdp ? strategy->fsdp.sharding_group_size : 0,
            fsdp ? backward_prefetch_names[strategy->fsdp.backward_prefetch] : "",
            fsdp ? strategy->fsdp.forward_prefetch ? "true" : "false" : "",
            checkpointing_names[strategy->train.activation_checkpointing], strategy->train.micro_batch,
            strategy_micro_steps(&strategy->train), tune_state_names[candidate->state], candidate->least_bytes);
        if (candidate->state == TUNE_RAN)
            fprintf(out, ",%.15g,%.15g,%.15g,%.15g,%.15g,", candidate->peak_bytes, candidate->step_time_s,
                candidate->tflops_per_gpu, candidate->tokens_per_s, candidate->gpu_hours_per_gtokens);
        else
            fputs(",,,,,,", out);
        if (candidate->usd_per_gtokens > 0)
            fprintf(out, "%.15g", candidate->usd_per_gtokens);
        fputc(',', out);
        if (candidate->state == TUNE_RAN)
            fprintf(out, "%.15g", candidate->kwh_per_gtokens);
        fputs("\r\n", out);
    }
    vec_free(&swept.options);
}

static void tell_none(
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

int cmd_tune(int argc, char **argv)
{
    const struct argp argp = {.options = options,
        .parser = parse,
        .children = arguments_table,
        .args_doc = "SCENARIO",
        .doc = "Search strategy, micro-batch, checkpointing, prefetch and sharding group under the memory limit, for "
               "every cluster and GPU count that the scenario sweeps; rank by tokens/s or by cost.\v"
               "What certainly does not fit is pruned by its closed-form footprint, the rest is simulated with noise "
               "off. What --set gives of the options searched stays. --limit bounds the work, not a clock, so the "
               "answer is the same everywhere. Price and power are "
               "those of the GPU's topology file."};
    struct tune_command command = {.top = 10, .options = {.max_batch = 64, .max_simulations = 1000}};
    arguments_parse(&argp, argc, argv, 0, &command);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    struct tune tune = {0};
    command.file = files_find(&command.arena, command.file);
    scenario_load(&set, command.file, command.overrides.at, command.overrides.n, &command.arena, &diag);
    if (diag.worst == STATUS_OK) /* what the scenario's own strategy does not read, another one of the search may */
        diag = DIAG_INIT;
    if (diag.worst == STATUS_OK) {
        tune_candidates(&tune, &set, &command.options, &command.arena);
        if (tune.candidates.n == 0)
            tell_none(&command, &set, &tune, &diag);
    }
    if (diag.worst == STATUS_OK) {
        tune_run(&tune, &command.options, isatty(STDERR_FILENO) ? show_progress : NULL, NULL, &diag);
    }
    if (diag.worst == STATUS_OK && command.csv)
        print_csv(stdout, &set, &tune, &command.arena);
    else if (diag.worst == STATUS_OK)
        print_table(stdout, &command, &set, &tune, &command.arena);
    if (diag.worst == STATUS_OK)
        evidence_tell_search(command.csv ? NULL : stdout, &tune, command.file, &diag);
    vec_free(&tune.candidates);
    vec_free(&command.overrides);
    arena_release(&command.arena);
    return cli_report(&diag);
}
