#include "scenario/stack.h"

#include "scenario/file.h"

#include <string.h>

#define RATE(member, sentence, dimension_, least, most)                                                                \
    {                                                                                                                  \
        .key = #member, .type = FIELD_SOURCED, .offset = offsetof(struct hw_gpu, member), .help = sentence,            \
        .dimension = dimension_, .min = least, .max = most                                                             \
    }
#define SHARE(member, sentence) RATE(member, sentence, DIM_FRACTION, 1e-3, 1)
static const struct config_field rate_fields[] = {
    SHARE(gemm_sustained, "Share of the GEMM rates that is left in hours of training."),
    SHARE(attention_efficiency, "Share of the GEMM peak that the products of its fused attention reach."),
    SHARE(attention_backward, "Rate of the backward kernel of that relative to the forward one."),
    SHARE(pointwise_efficiency, "Share of the streaming rate that its pointwise, norm and loss kernels reach."),
    RATE(norm_row_time, "Time of a row in its layer norms' gradients of weight and bias.", DIM_SECONDS, 0, 1e-6),
    SHARE(conv_efficiency, "Share of the GEMM rates that its convolutions reach."),
    RATE(step_pause, "Time between two steps in which its training loop leaves the GPU idle.", DIM_SECONDS, 0, 10),
};
static const struct config_table rate_table = CONFIG_TABLE("the rates of a stack", rate_fields);

#define ARCH(index, arch)                                                                                              \
    {                                                                                                                  \
        .key = arch, .type = FIELD_SECTION, .offset = (index) * sizeof(struct hw_gpu), .help = "On " arch " GPUs.",    \
        .section = &rate_table                                                                                         \
    }
/* In the order of hw_archs. */
static const struct config_field arch_fields[HW_ARCHS] = {
    ARCH(0, "Volta"), ARCH(1, "Turing"), ARCH(2, "Ampere"), ARCH(3, "Ada"), ARCH(4, "Hopper"), ARCH(5, "Blackwell")};
static const struct config_table arch_table = CONFIG_TABLE("the architectures of a stack", arch_fields);

static const struct config_field fields[] = {
    {CONFIG_FIELD("name", FIELD_STRING, struct stack, name, "What it is called."), .required = true},
    {CONFIG_FIELD("description", FIELD_STRING, struct stack, description, "Which framework, versions, kernels.")},
    {CONFIG_FIELD("rates", FIELD_SECTION, struct stack, rates, "What its kernels reach, by architecture."),
        .section = &arch_table},
    {CONFIG_FIELD(
         "settings", FIELD_SECTION, struct stack, settings, "Settings of a scenario, for those that leave them out."),
        .section = &scenario_framework_table},
};

static const char *unmodelled(const char *key)
{
    if (strcmp(key, "kernels") == 0)
        return "a stack's settings are called as the scenario's; write them as in 'settings: {train: {fusion: "
               "inductor}}'";
    return parallelism_elsewhere(key);
}

const struct config_table stack_table = {
    .what = "a stack profile", .fields = fields, .n_fields = sizeof fields / sizeof *fields, .unmodelled = unmodelled};

struct stack stack_default(void)
{
    return (struct stack){.settings = scenario_default()};
}

enum status stack_load(struct stack *out, const char *path, struct arena *arena, struct diag *diag)
{
    *out = stack_default();
    struct config_doc *doc = NULL;
    enum status status = config_load_kind(&doc, FILES_STACKS, path, diag);
    if (status == STATUS_OK) {
        config_set_origin(doc, ORIGIN_STACK);
        status = config_read(config_root(doc), &stack_table, out, arena, &out->given, diag);
    }
    config_free(doc);
    scenario_keep_origins(&out->given, arena);
    return status;
}

void stack_apply(struct scenario_point *point, const struct stack *stack)
{
    static const char section[] = "settings.";
    struct hw_gpu *gpu = &point->hw.gpu;
    for (int a = 0; a < HW_ARCHS; a++)
        if (strcmp(gpu->arch, hw_archs[a]) == 0)
            config_take_given(gpu, &stack->rates[a], &rate_table);
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
