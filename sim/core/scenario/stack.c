/* Stack profiles: their table, and how one is put into a point.
 *
 * A profile has rates a GPU architecture, costs of the host with their evidence, and settings.
 * stack_apply() puts each in only where the point is silent (its origin is the default), and pushes
 * the profile's origin, so that messages name the profile's line. Rates are an exception: they
 * replace the GPU file's, and what the scenario gives itself is put over them later (inputs.c).
 *
 * Section host has two forms. As settings.host it is a choice without evidence; as host it is a
 * sourced number that samples draw by its error (sample.c). One cost may stand in one of them only.
 * Host costs are indexed by strategy/host_settings.h, in the same order in all tables: that list
 * makes the fields here, the struct's members, and the index. */
#include "scenario/stack.h"

#include "scenario/file.h"

#include <string.h>

#define RATE(member, sentence, dimension_, least, most)                                            \
    {                                                                                              \
        .key = #member, .type = FIELD_SOURCED, .offset = offsetof(struct hw_gpu, member),          \
        .help = sentence, .dimension = dimension_, .min = least, .max = most                       \
    }
#define SHARE(member, sentence) RATE(member, sentence, DIM_FRACTION, 1e-3, 1)
static const struct config_field rate_fields[] = {
    SHARE(gemm_sustained, "Share of the GEMM rates that is left in hours of training."),
    SHARE(attention_efficiency,
        "Share of the GEMM peak that the products of its fused attention reach."),
    SHARE(attention_backward, "Rate of the backward kernel of that relative to the forward one."),
    RATE(attention_overhead, "Prologue and epilogue of a block of its queries, in keys.", DIM_NONE,
        0, 1e4),
    RATE(attention_backward_overhead, "The same of a block of keys in its backward kernel.",
        DIM_NONE, 0, 1e4),
    RATE(attention_softmax, "Softmax of a pair of query and key, in elements of a head.", DIM_NONE,
        0, 1e3),
    SHARE(pointwise_efficiency,
        "Share of the streaming rate that its pointwise, norm and loss kernels reach."),
    RATE(norm_row_time, "Time of a row in its layer norms' gradients of weight and bias.",
        DIM_SECONDS, 0, 1e-6),
    SHARE(accumulate_exposed,
        "Of the time that a GEMM takes to add to main_grad, the share that nothing hides."),
    SHARE(conv_efficiency, "Share of the GEMM rates that its convolutions reach."),
    RATE(step_pause, "Time between two steps in which its training loop leaves the GPU idle.",
        DIM_SECONDS, 0, 10),
};
static const struct config_table rate_table = CONFIG_TABLE("the rates of a stack", rate_fields);

#define ARCH(index, arch)                                                                          \
    {                                                                                              \
        .key = arch, .type = FIELD_SECTION, .offset = (index) * sizeof(struct hw_gpu),             \
        .help = "On " arch " GPUs.", .section = &rate_table                                        \
    }
/* In the order of hw_archs. */
static const struct config_field arch_fields[HW_ARCHS] = {ARCH(0, "Volta"), ARCH(1, "Turing"),
    ARCH(2, "Ampere"), ARCH(3, "Ada"), ARCH(4, "Hopper"), ARCH(5, "Blackwell"), ARCH(6, "CDNA")};
static const struct config_table arch_table =
    CONFIG_TABLE("the architectures of a stack", arch_fields);

#define SETTING_COST_AS(kind, key_, member, value, ...)                                            \
    {.key = (key_),                                                                                \
        .type = FIELD_SOURCED,                                                                     \
        .offset = HOST_INDEX_##member * sizeof(struct quantity),                                   \
        .help = __VA_ARGS__},
static const struct config_field stack_host_fields[] = {
#define SETTINGS SETTING_COST
#include "strategy/host_settings.h"
};
const struct config_table stack_host_table = CONFIG_TABLE("the host of a stack", stack_host_fields);

static const struct config_field stack_fields[] = {
    {CONFIG_FIELD("name", FIELD_STRING, struct stack, name, "What it is called."),
        .required = true},
    {CONFIG_FIELD("description", FIELD_STRING, struct stack, description,
        "Which framework, versions, kernels.")},
    {CONFIG_FIELD(
         "rates", FIELD_SECTION, struct stack, rates, "What its kernels reach, by architecture."),
        .section = &arch_table},
    {CONFIG_FIELD("settings", FIELD_SECTION, struct stack, settings,
         "Settings of a scenario, for those that leave them out."),
        .section = &scenario_framework_table},
    {CONFIG_FIELD("host", FIELD_SECTION, struct stack, host,
         "Costs of the host thread that rest on measurements; those that are choices stand under "
         "settings.host."),
        .section = &stack_host_table},
};

static const char *stack_unmodelled(const char *key)
{
    if (strcmp(key, "kernels") == 0)
        return "a stack's settings are called as the scenario's; write them as in 'settings: "
               "{train: {fusion: inductor}}'";
    return parallelism_elsewhere(key);
}

const struct config_table stack_table = {.what = "a stack profile",
    .fields = stack_fields,
    .n_fields = sizeof stack_fields / sizeof *stack_fields,
    .unmodelled = stack_unmodelled};

struct stack stack_default(void)
{
    return (struct stack){.settings = scenario_default()};
}

/* Which cost of section host the path names; -1: none. */
static int host_cost(const char *path)
{
    for (int i = 0; strncmp(path, "host.", strlen("host.")) == 0 && i < STRATEGY_HOST_COSTS; i++)
        if (strcmp(path + strlen("host."), stack_host_fields[i].key) == 0)
            return i;
    return -1;
}

static const struct config_origin *find_given(const struct stack *stack, const char *path)
{
    for (int i = 0; i < stack->given.list.n; i++)
        if (strcmp(stack->given.list.at[i].path, path) == 0)
            return &stack->given.list.at[i];
    return NULL;
}

/* A cost stands in one of the two sections. */
static enum status stack_check_host(const struct stack *stack, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < STRATEGY_HOST_COSTS; i++) {
        char path[64];
        snprintf(path, sizeof path, "settings.host.%s", stack_host_fields[i].key);
        const struct config_origin *setting = find_given(stack, path);
        if (setting && quantity_is_set(stack->host[i]))
            status = diag_input(diag, setting->at,
                "'host.%s' stands under settings and under host; leave one of the two out",
                stack_host_fields[i].key);
    }
    return status;
}

enum status stack_load(struct stack *out, const char *path, struct arena *arena, struct diag *diag)
{
    *out = stack_default();
    struct config_doc *doc = NULL;
    enum status status = config_load_kind(&doc, FILES_STACKS, path, diag);
    if (status == STATUS_OK) {
        config_set_origin(doc, ORIGIN_STACK);
        status = config_read(config_root(doc), &stack_table, out, arena, &out->given, diag);
        strategy_word_take(&out->settings, "settings.", &out->given, arena, diag);
        status = diag->worst > status ? diag->worst : status;
    }
    config_free(doc);
    scenario_keep_origins(&out->given, arena);
    return status == STATUS_OK ? stack_check_host(out, diag) : status;
}

double *stack_host_setting(struct scenario_point *point, int cost)
{
    unsigned char *host = (unsigned char *)&point->options.strategy.host;
    return (double *)(void *)(host + scenario_host_table.fields[cost].offset);
}

void stack_set_host(struct scenario_point *point, int cost, double value)
{
    BUG_IF(!quantity_is_set(point->stack_host[cost]), "the point has host.%s from no profile",
        stack_host_table.fields[cost].key);
    point->stack_host[cost].value = value;
    *stack_host_setting(point, cost) = value;
}

/* What the profile says of section host, where the scenario is silent. */
static void apply_host(struct scenario_point *point, const struct stack *stack)
{
    for (int i = 0; i < stack->given.list.n; i++) {
        struct config_origin origin = stack->given.list.at[i];
        int cost = host_cost(origin.path);
        if (cost < 0 || scenario_origin(point, origin.path).kind != ORIGIN_DEFAULT)
            continue;
        point->stack_host[cost] = stack->host[cost];
        *stack_host_setting(point, cost) = stack->host[cost].value;
        vec_push(&point->origins.list, origin);
    }
}

static void apply_rates(struct hw_gpu *gpu, const struct stack *stack)
{
    for (int a = 0; a < HW_ARCHS; a++)
        if (strcmp(gpu->arch, hw_archs[a]) == 0)
            config_take_given(gpu, &stack->rates[a], &rate_table);
}

/* Paths of the profile's settings begin with "settings."; the point has them without it. */
void stack_apply(struct scenario_point *point, const struct stack *stack)
{
    static const char section[] = "settings.";
    apply_rates(&point->hw.gpu, stack);
    apply_host(point, stack);
    for (int i = 0; i < stack->given.list.n; i++) {
        struct config_origin origin = stack->given.list.at[i];
        if (strncmp(origin.path, section, strlen(section)) != 0)
            continue;
        origin.path += strlen(section);
        if (scenario_origin(point, origin.path).kind != ORIGIN_DEFAULT)
            continue;
        config_copy(&point->options, &stack->settings, origin.path, &scenario_table);
        vec_push(&point->origins.list, origin);
    }
}
