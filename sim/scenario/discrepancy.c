#include "scenario/discrepancy.h"

#include <math.h>

const char *const discrepancy_names[DISCREPANCY_CLASSES + 1] = {[DISCREPANCY_WITH_STACK] = "with_stack",
    [DISCREPANCY_WITHOUT_STACK] = "without_stack",
    [DISCREPANCY_PER_DOUBLING] = "per_doubling",
    [DISCREPANCY_MODEL_PARALLEL] = "model_parallel"};

#define CLASS(name, index, sentence)                                                                                   \
    {                                                                                                                  \
        .key = name, .type = FIELD_SOURCED, .offset = offsetof(struct discrepancy, of[index]), .help = sentence,       \
        .dimension = DIM_FRACTION, .min = 0, .max = 1, .required = true                                                \
    }
static const struct config_field fields[DISCREPANCY_CLASSES + 2] = {
    CLASS("with_stack", DISCREPANCY_WITH_STACK, "Of the speed of scenarios that name a stack profile."),
    CLASS("without_stack", DISCREPANCY_WITHOUT_STACK, "Of the speed of scenarios that name none."),
    CLASS("per_doubling", DISCREPANCY_PER_DOUBLING, "Of the ratio of two speeds, per root of a doubling of the GPUs."),
    CLASS("model_parallel", DISCREPANCY_MODEL_PARALLEL,
        "Of the speed of scenarios with tensor, context, expert or pipeline parallelism."),
    {.key = "waiting",
        .type = FIELD_SOURCED,
        .offset = offsetof(struct discrepancy, waiting),
        .help = "How many times as far off the time is in which GPUs wait as the rest of a step.",
        .dimension = DIM_NONE,
        .min = 1,
        .max = 100,
        .required = true},
    {.key = "data_parallel_loss",
        .type = FIELD_SOURCED,
        .offset = offsetof(struct discrepancy, data_parallel_loss),
        .help = "What curves of DDP and FSDP lose beyond what is predicted, of the speed on their smallest cluster.",
        .dimension = DIM_FRACTION,
        .min = -1,
        .max = 1,
        .required = true},
};
const struct config_table discrepancy_table = CONFIG_TABLE("the file of discrepancies", fields);

enum status discrepancy_load(struct discrepancy *out, const char *path, struct arena *arena, struct diag *diag)
{
    *out = (struct discrepancy){0};
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status == STATUS_OK)
        status = config_read(config_root(doc), &discrepancy_table, out, arena, NULL, diag);
    config_free(doc);
    return status;
}

double discrepancy_scale(double waiting, double share)
{
    return share > 0 ? hypot(1 - share, share * waiting) : 1;
}

enum discrepancy_class discrepancy_class_of(const struct scenario *options)
{
    const struct parallelism_options *p = &options->strategy.parallelism;
    if (p->model.tensor > 1 || p->model.context > 1 || p->model.expert > 1 || p->pipeline > 1)
        return DISCREPANCY_MODEL_PARALLEL;
    return options->stack_path ? DISCREPANCY_WITH_STACK : DISCREPANCY_WITHOUT_STACK;
}

bool discrepancy_is_data_parallel(const struct scenario *options)
{
    enum strategy_kind kind = (enum strategy_kind)options->strategy.kind;
    return (kind == STRATEGY_DDP || kind == STRATEGY_FSDP) &&
           discrepancy_class_of(options) != DISCREPANCY_MODEL_PARALLEL;
}

double discrepancy_of_speed(
    const struct discrepancy *discrepancy, const struct scenario *options, const struct scenario_result *result)
{
    return discrepancy->of[discrepancy_class_of(options)].value *
           discrepancy_scale(discrepancy->waiting.value, scenario_waiting_share(result));
}
