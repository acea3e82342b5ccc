#include "scenario/stack.h"

#include <string.h>

#define RATE(member, sentence, dimension_, least, most)                                                                \
    {                                                                                                                  \
        .key = #member, .type = FIELD_SOURCED, .offset = offsetof(struct stack_rates, member), .help = sentence,       \
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
    RATE(overlap_slowdown, "How much longer its kernels take while a collective is resident.", DIM_FRACTION, 0, 10),
    RATE(step_pause, "Time between two steps in which its training loop leaves the GPU idle.", DIM_SECONDS, 0, 10),
};
static const struct config_table rate_table = {
    .what = "the rates of a stack", .fields = rate_fields, .n_fields = sizeof rate_fields / sizeof *rate_fields};

#define ARCH(index, arch)                                                                                              \
    {                                                                                                                  \
        .key = arch, .type = FIELD_SECTION, .offset = (index) * sizeof(struct stack_rates),                            \
        .help = "On " arch " GPUs.", .section = &rate_table                                                            \
    }
/* In the order of hw_archs. */
static const struct config_field arch_fields[HW_ARCHS] = {
    ARCH(0, "Volta"), ARCH(1, "Turing"), ARCH(2, "Ampere"), ARCH(3, "Ada"), ARCH(4, "Hopper"), ARCH(5, "Blackwell")};
static const struct config_table arch_table = {
    .what = "the architectures of a stack", .fields = arch_fields, .n_fields = HW_ARCHS};

static const char *const no_yes[] = {"false", "true", NULL};
static const struct config_field kernel_fields[] = {
    {.key = "cross_entropy",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, cross_entropy),
        .help = "Kernels of the loss.",
        .names = cross_entropy_names},
    {.key = "optimizer_impl",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, optimizer_impl),
        .help = "How it runs the optimizer.",
        .names = optimizer_impl_names},
    {.key = "fusion",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, fusion),
        .help = "Whether torch.compile fuses them.",
        .names = kernel_fusion_names},
    {.key = "memory_format",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, memory_format),
        .help = "Layout of images in memory.",
        .names = image_format_names},
    {.key = "fsdp_version",
        .type = FIELD_INT,
        .offset = offsetof(struct stack_kernels, fsdp_version),
        .help = "1: FullyShardedDataParallel, 2: fully_shard.",
        .min = 1,
        .max = 2},
    {.key = "stage3_fetch",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, stage3_fetch),
        .help = "How this version of DeepSpeed gathers in stage 3.",
        .names = stage3_fetch_names},
    {.key = "broadcast_buffers",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, broadcast_buffers),
        .help = "Whether DDP sends statistics of BatchNorm to all before each step.",
        .names = no_yes},
    {.key = "zero_grad",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, zero_grad),
        .help = "Whether the training loop lets go of gradients after each step.",
        .names = no_yes},
    {.key = "divide_buckets",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, divide_buckets),
        .help = "Whether DDP divides a bucket by a pass over it (PyTorch before 1.6).",
        .names = no_yes},
    {.key = "weight_decay",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, weight_decay),
        .help = "Whether SGD decays the weights.",
        .names = no_yes},
    {.key = "clip_grad_norm",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, clip_grad_norm),
        .help = "Whether the training loop clips gradients by their norm.",
        .names = no_yes},
    {.key = "overlap_sync_param",
        .type = FIELD_ENUM,
        .offset = offsetof(struct stack_kernels, overlap_sync_param),
        .help = "Whether InternEvo broadcasts weights while the next forward pass goes on.",
        .names = no_yes},
};
static const struct config_table kernel_table = {.what = "the kernels of a stack",
    .fields = kernel_fields,
    .n_fields = sizeof kernel_fields / sizeof *kernel_fields};

static const struct config_field fields[] = {
    {.key = "name",
        .type = FIELD_STRING,
        .offset = offsetof(struct stack, name),
        .help = "What it is called.",
        .required = true},
    {.key = "description",
        .type = FIELD_STRING,
        .offset = offsetof(struct stack, description),
        .help = "Which framework, versions, kernels."},
    {.key = "rates",
        .type = FIELD_SECTION,
        .offset = offsetof(struct stack, rates),
        .help = "What its kernels reach, by architecture.",
        .section = &arch_table},
    {.key = "kernels",
        .type = FIELD_SECTION,
        .offset = offsetof(struct stack, kernels),
        .help = "Which kernels it launches.",
        .section = &kernel_table},
};
const struct config_table stack_table = {
    .what = "a stack profile", .fields = fields, .n_fields = sizeof fields / sizeof *fields};

struct stack stack_default(void)
{
    return (struct stack){.kernels = {.cross_entropy = -1,
                              .optimizer_impl = -1,
                              .fusion = -1,
                              .memory_format = -1,
                              .fsdp_version = -1,
                              .stage3_fetch = -1,
                              .broadcast_buffers = -1,
                              .zero_grad = -1,
                              .divide_buckets = -1,
                              .weight_decay = -1,
                              .clip_grad_norm = -1,
                              .overlap_sync_param = -1}};
}

enum status stack_load(struct stack *out, const char *path, struct arena *arena, struct diag *diag)
{
    *out = stack_default();
    struct config_doc *doc = NULL;
    enum status status = config_load_kind(&doc, FILES_STACKS, path, diag);
    if (status == STATUS_OK)
        status = config_read(config_root(doc), &stack_table, out, arena, NULL, diag);
    config_free(doc);
    return status;
}

static void replace(struct quantity *of_gpu, struct quantity of_stack)
{
    if (quantity_is_set(of_stack))
        *of_gpu = of_stack;
}

void stack_apply(struct hw_gpu *gpu, const struct stack *stack)
{
    for (int a = 0; a < HW_ARCHS; a++) {
        if (strcmp(gpu->arch, hw_archs[a]) != 0)
            continue;
        replace(&gpu->gemm_sustained, stack->rates[a].gemm_sustained);
        replace(&gpu->attention_efficiency, stack->rates[a].attention_efficiency);
        replace(&gpu->attention_backward, stack->rates[a].attention_backward);
        replace(&gpu->pointwise_efficiency, stack->rates[a].pointwise_efficiency);
        replace(&gpu->norm_row_time, stack->rates[a].norm_row_time);
        replace(&gpu->conv_efficiency, stack->rates[a].conv_efficiency);
        replace(&gpu->overlap_slowdown, stack->rates[a].overlap_slowdown);
        replace(&gpu->step_pause, stack->rates[a].step_pause);
    }
}
