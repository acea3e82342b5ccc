/* The job of a search: a scenario, or a model with what the command line says, by one strategy or
 * by all of them.
 *
 * A model, or --strategy all, is loaded once for each strategy with the stack profile that people
 * run it with (variants[]); the sets of points then stand one behind the other, which study/tune.h
 * takes as variants of one job. Loading may fail where the scenario itself cannot have the pipeline
 * that is given; then it is loaded without, and the search is bound to these degrees. */
#include "cli/tune.h"

#include <stdlib.h>
#include <string.h>

/* Strategies, and the stack profiles that people run them with; no profile: PyTorch's eager
 * kernels. word: another name of this one alone. */
static const struct variant {
    const char *strategy, *stack, *word;
} variants[] = {{"megatron", "megatron-core", NULL}, {"fsdp", "torch-compile", "fsdp1"},
    {"fsdp", "torchtitan", "fsdp2"}, {"deepspeed", NULL, NULL}, {"ddp", "torch-compile", NULL}};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* The last one holds, as everywhere on the command line. */
const char *tune_given(const struct tune_command *command, const char *path)
{
    const char *value = NULL;
    for (int i = 0; i < command->overrides.list.n; i++)
        value = strcmp(command->overrides.list.at[i].key, path) == 0
                    ? command->overrides.list.at[i].value
                    : value;
    return value;
}

static bool is_model(const struct scenario_set *set)
{
    return set->n_points > 0 && strcmp(set->points[0].options.model_path, set->file) == 0;
}

/* A strategy, or a word for it, as zero3, which the variant is then searched with. A word for
 * one version of FSDP names its variant alone; other words (zero3) go by the kind of strategy. */
static bool tune_is_called(const struct variant *variant, const char *strategy)
{
    const struct strategy_word *word = strategy_word(strategy);
    if (strcmp(strategy, variant->strategy) == 0 ||
        (variant->word && strcmp(strategy, variant->word) == 0))
        return true;
    return word && strcmp(word->path, "fsdp.version") != 0 &&
           strcmp(strategy_kind_names[word->kind], variant->strategy) == 0;
}

bool tune_is_all(const struct tune_command *command)
{
    return command->strategy && strcmp(command->strategy, "all") == 0;
}

static bool tune_is_wanted(const struct tune_command *command, int v)
{
    return !command->strategy || tune_is_all(command) ||
           tune_is_called(&variants[v], command->strategy);
}

/* What is not said twice: of one stack that is given, a strategy is tried once. */
static bool is_tried(const struct tune_command *command, int v)
{
    bool again = v > 0 && strcmp(variants[v - 1].strategy, variants[v].strategy) == 0 &&
                 tune_is_wanted(command, v - 1) && tune_given(command, "stack");
    return tune_is_wanted(command, v) && !again;
}

/* What the command line gives of a degree; 0: nothing, or no whole number. */
static int64_t degree_of(const struct tune_command *command, const char *path)
{
    const char *text = tune_given(command, path);
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;
    return end && *text && *end == '\0' && value > 0 ? value : 0;
}

static const char PIPELINE[] = "parallelism.pipeline", VIRTUAL[] = "parallelism.virtual";

static void push_strategy(struct overrides *overrides, const struct tune_command *command)
{
    overrides_push(
        overrides, "--strategy", (struct scenario_override){"strategy", command->strategy});
}

/* The scenario with a strategy and its stack, where none is given; variant: or NULL. split:
 * without what splits blocks. split false leaves out degrees that split blocks over stages. */
static void load_with(struct scenario_set *out, struct tune_command *command,
    const struct variant *variant, bool split, struct diag *diag)
{
    struct overrides all = {0};
    for (int i = 0; i < command->overrides.list.n; i++) {
        struct scenario_override at = command->overrides.list.at[i];
        if (split || (strcmp(at.key, PIPELINE) != 0 && strcmp(at.key, VIRTUAL) != 0))
            overrides_push(&all, command->overrides.names.at[i], at);
    }
    if (variant && command->strategy && !tune_is_all(command))
        push_strategy(&all, command);
    else if (variant)
        overrides_push(&all, NULL, (struct scenario_override){"strategy", variant->strategy});
    if (variant && variant->stack && !tune_given(command, "stack"))
        overrides_push(&all, NULL, (struct scenario_override){"stack", variant->stack});
    overrides_load(out, command->file, &all, &command->arena, diag);
    overrides_free(&all);
}

/* A search shares blocks and batch out over the stages that are given, where the scenario itself
 * cannot. */
static void load_variant(struct scenario_set *out, struct tune_command *command,
    const struct variant *variant, struct diag *diag)
{
    struct tune_options *options = &command->options;
    struct scenario_set plain = {0};
    struct diag own = DIAG_INIT;
    load_with(out, command, variant, true, diag);
    int64_t stages = degree_of(command, PIPELINE), chunks = degree_of(command, VIRTUAL);
    if (diag->worst == STATUS_OK || (stages == 0 && chunks == 0))
        return;
    load_with(&plain, command, variant, false, &own);
    if (own.worst != STATUS_OK || (plain.points[0].options.strategy.kind != STRATEGY_MEGATRON &&
                                      (variant || !is_model(&plain))))
        return;
    options->pipeline = stages;
    options->virtual_stages = chunks;
    *out = plain;
    *diag = own;
}

/* All strategies that the job can be run with, one after the other; none: why the first cannot. */
static void tune_load_all(struct scenario_set *set, struct tune_command *command, struct diag *diag)
{
    struct diag first = DIAG_INIT;
    VEC(struct scenario_point) points = {0};
    int each = 0, n = 0;
    for (int v = 0; v < VARIANTS; v++) {
        struct scenario_set one = {0};
        struct diag own = DIAG_INIT;
        if (!is_tried(command, v))
            continue;
        load_variant(&one, command, &variants[v], &own);
        if (own.worst != STATUS_OK) {
            first = first.worst == STATUS_OK ? own : first;
            continue;
        }
        *set = one;
        each = one.n_points;
        n++;
        for (int i = 0; i < each; i++)
            vec_push(&points, one.points[i]);
    }
    if (n == 0) {
        diag_merge(diag, &first);
        return;
    }
    set->n_points = points.n;
    vec_keep(set->points, &points, &command->arena);
    command->options.variants = n;
}

static void drop_last_strategy(struct overrides *overrides)
{
    int n = overrides->list.n;
    if (n > 0 && strcmp(overrides->list.at[n - 1].key, "strategy") == 0)
        overrides->list.n = overrides->names.n = n - 1;
}

/* The scenario is loaded as it is first, to know whether it is a model and what its batch is.
 * Candidates of a model are compared at one global batch, else the fastest would be the one with
 * the largest. */
void tune_load(struct scenario_set *set, struct tune_command *command, struct diag *diag)
{
    struct tune_options *options = &command->options;
    bool all = tune_is_all(command);
    if (!all && command->strategy)
        push_strategy(&command->overrides, command);
    load_variant(set, command, NULL, diag);
    if (diag->worst != STATUS_OK)
        return;
    *diag = DIAG_INIT; /* what the scenario's own strategy does not read, another one of the search
                          may */
    command->is_model = is_model(set);
    if (!all && (!command->is_model || tune_given(command, "stack")) &&
        (command->strategy || !command->is_model))
        return;
    if (!all && tune_given(command, "strategy"))
        command->strategy = tune_given(command, "strategy");
    int64_t batch = set->points[0].options.strategy.train.global_batch;
    if (options->global_batch == 0 && batch > 0)
        options->global_batch = (int)batch;
    if (options->global_batch == 0) {
        diag_input(diag, (struct source_pos){.file = command->file},
            "strategies are compared at one batch: give --global-batch N, the sequences of a step "
            "of the whole job, as in --global-batch 512");
        return;
    }
    if (!all && command->strategy) /* it goes in with its stack */
        drop_last_strategy(&command->overrides);
    tune_load_all(set, command, diag);
}
