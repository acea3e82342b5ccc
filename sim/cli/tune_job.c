/* The job of a search: a scenario, or a model with what the command line says, by one strategy or by all of them. */
#include "cli/tune.h"

#include "base/files.h"

#include <string.h>

/* Strategies, and the stack profiles that people run them with; no profile: PyTorch's eager kernels. */
static const struct variant {
    const char *strategy, *stack;
} variants[] = {{"megatron", "megatron-core"}, {"fsdp", "torch-compile"}, {"fsdp", "torchtitan"}, {"deepspeed", NULL},
    {"ddp", "torch-compile"}};
enum { VARIANTS = sizeof variants / sizeof *variants };

static const char *given(const struct tune_command *command, const char *path)
{
    const char *value = NULL;
    for (int i = 0; i < command->overrides.list.n; i++)
        value = strcmp(command->overrides.list.at[i].key, path) == 0 ? command->overrides.list.at[i].value : value;
    return value;
}

static bool is_model(const struct scenario_set *set)
{
    return set->n_points > 0 && strcmp(set->points[0].options.model_path, set->file) == 0;
}

/* What is not said twice: of one stack that is given, a strategy is tried once. */
static bool is_tried(const struct tune_command *command, int v)
{
    bool wanted = !command->strategy || strcmp(command->strategy, "all") == 0 ||
                  strcmp(command->strategy, variants[v].strategy) == 0;
    bool again = v > 0 && strcmp(variants[v - 1].strategy, variants[v].strategy) == 0 && given(command, "stack");
    return wanted && !again;
}

/* The scenario with a strategy and its stack, where none is given. */
static void load_variant(
    struct scenario_set *out, struct tune_command *command, const struct variant *variant, struct diag *diag)
{
    VEC(struct scenario_override) all = {0};
    for (int i = 0; i < command->overrides.list.n; i++)
        vec_push(&all, command->overrides.list.at[i]);
    vec_push(&all, ((struct scenario_override){"strategy", variant->strategy}));
    if (variant->stack && !given(command, "stack"))
        vec_push(&all, ((struct scenario_override){"stack", variant->stack}));
    scenario_load(out, command->file, all.at, all.n, &command->arena, diag);
    vec_free(&all);
}

/* All strategies that the job can be run with, one after the other; none: why the first cannot. */
static void load_all(struct scenario_set *set, struct tune_command *command, struct diag *diag)
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
    set->points = ARENA_ARRAY(&command->arena, struct scenario_point, points.n);
    memcpy(set->points, points.at, sizeof *set->points * (size_t)points.n);
    set->n_points = points.n;
    command->options.variants = n;
    vec_free(&points);
}

void tune_load(struct scenario_set *set, struct tune_command *command, struct diag *diag)
{
    struct tune_options *options = &command->options;
    bool all = command->strategy && strcmp(command->strategy, "all") == 0;
    if (!all && command->strategy)
        vec_push(&command->overrides.list, ((struct scenario_override){"strategy", command->strategy}));
    scenario_load(set, command->file, command->overrides.list.at, command->overrides.list.n, &command->arena, diag);
    if (diag->worst != STATUS_OK)
        return;
    *diag = DIAG_INIT; /* what the scenario's own strategy does not read, another one of the search may */
    command->is_model = is_model(set);
    if (!all && (!command->is_model || given(command, "stack")) && (command->strategy || !command->is_model))
        return;
    if (!all && given(command, "strategy"))
        command->strategy = given(command, "strategy");
    int64_t batch = set->points[0].options.strategy.train.global_batch;
    if (options->global_batch == 0 && batch > 0)
        options->global_batch = (int)batch;
    if (options->global_batch == 0) {
        diag_input(diag, (struct source_pos){.file = command->file},
            "strategies are compared at one batch: give --global-batch N, the sequences of a step of the whole job, as "
            "in "
            "--global-batch 512");
        return;
    }
    if (!all && command->strategy) /* it goes in with its stack */
        command->overrides.list.n -=
            command->overrides.list.n > 0 &&
            strcmp(command->overrides.list.at[command->overrides.list.n - 1].key, "strategy") == 0;
    load_all(set, command, diag);
}

static void print_list(FILE *out, const char *head, const char *const *list, int n)
{
    fputs(head, out);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%s", i == 0 ? "" : "; ", list[i]);
    fputc('\n', out);
}

/* What all candidates have in common, and what was left aside. */
void tune_print_held(FILE *out, const struct tune_command *command, const struct tune *tune, struct arena *arena)
{
    const struct scenario_point *point = &tune->candidates.at[0].point;
    const struct train_options *train = &point->options.strategy.train;
    bool all = command->options.variants > 1, layouts = false, others = false;
    for (int i = 0; i < tune->candidates.n; i++) {
        layouts = layouts || tune->candidates.at[i].is_layout;
        others = others || !tune->candidates.at[i].is_layout;
    }
    const char *held[6], *left[8];
    int n_held = 0, n_left = 0;
    if (!all && layouts)
        held[n_held++] = "strategy megatron";
    held[n_held++] = arena_printf(
        arena, "precision %s, optimizer %s", precision_names[train->precision], optimizer_names[train->optimizer]);
    if (!all)
        held[n_held++] = arena_printf(arena, "stack %s",
            point->options.stack_path ? files_name_from(arena, NULL, point->options.stack_path)
                                      : "none: eager kernels");
    else
        held[n_held++] = given(command, "stack") ? "the stack given"
                                                 : "stacks: megatron-core for megatron, torch-compile (FSDP1) and "
                                                   "torchtitan (FSDP2, eager) for fsdp, torch-compile for ddp, eager "
                                                   "kernels for deepspeed";
    if (all)
        held[n_held++] = "prefetch as PyTorch has it";
    if (!layouts)
        left[n_left++] = "layouts of megatron (tensor, context, pipeline, expert parallelism; --strategy all has them)";
    if (!others)
        left[n_left++] = "FSDP, DDP, ZeRO (--strategy all has them)";
    if (layouts)
        left[n_left++] = arena_printf(arena, "context parallelism below %d tokens a rank", TUNE_LEAST_CONTEXT_TOKENS);
    if (others)
        left[n_left++] = "FSDP and ZeRO with tensor, context or pipeline parallelism";
    left[n_left++] =
        arena_printf(arena, "micro-batches above %d and between powers of 2", (int)command->options.max_batch);
    left[n_left++] = "other schedules than 1F1B, partial recomputation, offload, other precisions";
    print_list(out, "held: ", held, n_held);
    print_list(out, "not searched: ", left, n_left);
}
