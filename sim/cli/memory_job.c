#include "cli/memory.h"
#include "strategy/states.h"

#include <string.h>

const char *const memory_dtype_names[] = {
    "fp32", "tf32", "bf16_mixed", "fp16_mixed", "bf16", "bf16_master", "fp8_mixed", "fp16", "int8", NULL};
_Static_assert(MEMORY_FP16 == 7, "precision_names come first");
const char *const memory_strategy_names[] = {
    "single_device", "ddp", "zero1", "zero2", "zero3", "fsdp", "megatron", NULL};
const char *const memory_base_names[] = {"16bit", "int8", "nf4", NULL};

void memory_set(struct memory_job *job)
{
    static const int kinds[MEMORY_STRATEGY_COUNT] = {STRATEGY_SINGLE_DEVICE, STRATEGY_DDP, STRATEGY_DEEPSPEED,
        STRATEGY_DEEPSPEED, STRATEGY_DEEPSPEED, STRATEGY_FSDP, STRATEGY_MEGATRON};
    struct strategy_options *options = &job->point.options.strategy;
    options->kind = kinds[job->strategy];
    if (options->kind == STRATEGY_DEEPSPEED)
        options->zero.stage = job->strategy - MEMORY_ZERO1 + 1;
    options->fsdp.cpu_offload = options->zero.offload_optimizer = job->offload;
    options->train.precision = job->dtype < PRECISION_COUNT ? job->dtype : PRECISION_BF16;
    options->train.qlora = job->base != MEMORY_BASE_HALF;
    /* With two micro-batches for each stage every stage is as full as with more, but under GPipe. */
    int64_t stages = options->parallelism.pipeline;
    options->train.grad_accum = job->grad_accum > 0 ? job->grad_accum : stages > 1 ? 2 * stages : 1;
}

int64_t memory_copy_gpus(const struct memory_job *job)
{
    const struct parallelism_options *parallelism = &job->point.options.strategy.parallelism;
    return parallelism->model.tensor * parallelism->model.context * parallelism->pipeline *
           strategy_expert_axis(parallelism);
}

void memory_unlimited(struct hw *hw)
{
    static const char source[] = "not asked";
    hw->node.gpus.value = 1;
    hw->cluster.nodes.value = 1 << 24;
    hw->node.host_memory = (struct quantity){.value = 1e18, .kind = QUANTITY_ASSUMED, .source = source};
    hw->node.host_bandwidth = (struct quantity){.value = 1e9, .kind = QUANTITY_ASSUMED, .source = source};
}

enum dtype memory_math(const struct memory_job *job)
{
    return job->dtype == MEMORY_FP16 ? DTYPE_FP16 : strategy_math(&job->point.options.strategy.train);
}

bool memory_supported(const struct memory_job *job, const struct hw_gpu *gpu)
{
    return job->dtype == MEMORY_INT8 || kernel_supported(gpu, memory_math(job));
}

static bool is_planned(const struct memory_job *job)
{
    return job->has_model && job->dtype != MEMORY_INT8;
}

static struct source_pos option_of(const void *self, const char *path)
{
    const struct config_origins *origins = self;
    struct source_pos at = {.file = "--strategy"};
    for (int i = 0; i < origins->list.n; i++)
        if (strcmp(origins->list.at[i].path, path) == 0)
            at = origins->list.at[i].at;
    return at;
}

enum status memory_check(struct memory_job *job, struct diag *diag)
{
    struct scenario_point *point = &job->point;
    const struct strategy_places places = {option_of, &point->origins};
    bool shards = job->strategy == MEMORY_FSDP || job->strategy == MEMORY_ZERO3;
    memory_set(job);
    fit_default_attention(point);
    if (job->base == MEMORY_BASE_INT8 && shards)
        return diag_input(diag, (struct source_pos){.file = "--lora-base"},
            "bitsandbytes' INT8 matrices cannot be sharded; use --strategy ddp, zero1 or zero2, or nf4");
    if (is_planned(job))
        return fit_prepare(point, diag);
    if (job->dtype == MEMORY_INT8)
        return STATUS_OK;
    return strategy_check(&point->options.strategy, NULL, &point->hw, (int)point->options.cluster.gpus, &places, diag);
}

static void count_states(struct exec_peak *out, const struct memory_job *job)
{
    const struct scenario *options = &job->point.options;
    struct states states = states_of(job->params, &options->strategy, options->cluster.gpus, job->dtype == MEMORY_INT8);
    *out = (struct exec_peak){.host_bytes = states.host};
    out->category_bytes[HBM_PARAMETERS] = states.weights;
    out->category_bytes[HBM_GRADIENTS] = states.gradients;
    out->category_bytes[HBM_OPTIMIZER] = states.optimizer;
    out->category_bytes[HBM_CONTEXT] = job->point.hw.gpu.context_bytes.value;
    out->category_bytes[HBM_NCCL] = options->cluster.gpus > 1 ? job->point.hw.node.nccl_bytes.value : 0;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        out->total_bytes += out->largest_category[c] = out->category_bytes[c];
}

enum status memory_need(struct memory_need *out, const struct memory_job *job, struct diag *diag)
{
    struct exec_peak *peak = &out->peak;
    double extra = memory_int8_extra(job);
    *out = (struct memory_need){.planned = is_planned(job)};
    if (!out->planned)
        count_states(peak, job);
    else if (fit_peak(peak, &job->point, diag) != STATUS_OK)
        return STATUS_INPUT;
    peak->category_bytes[HBM_PARAMETERS] += extra;
    peak->largest_category[HBM_PARAMETERS] += extra;
    peak->total_bytes += extra;
    out->tensors = peak->total_bytes - peak->category_bytes[HBM_CONTEXT] - peak->category_bytes[HBM_NCCL];
    return STATUS_OK;
}

bool memory_fits(const struct memory_job *job)
{
    struct diag diag = DIAG_INIT;
    struct memory_need need;
    return memory_need(&need, job, &diag) == STATUS_OK && need.peak.total_bytes <= job->point.hw.gpu.hbm_capacity.value;
}

double memory_base_bytes(const struct model *model, int base, int64_t rest_bytes)
{
    double bytes = 0;
    for (int i = 0; i < model->n_tensors; i++) {
        const struct model_tensor *tensor = &model->tensors[i];
        bool quantised = base != MEMORY_BASE_HALF && model_is_block_matrix(model, tensor);
        bytes += !quantised                ? (double)(tensor->numel * rest_bytes)
                 : base == MEMORY_BASE_NF4 ? model_nf4_bytes(tensor->numel)
                                           : (double)(tensor->numel + (int64_t)sizeof(float) * tensor->rows);
    }
    return bytes;
}

double memory_int8_extra(const struct memory_job *job)
{
    const struct model *model = &job->point.model;
    return job->base == MEMORY_BASE_INT8 && is_planned(job)
               ? memory_base_bytes(model, MEMORY_BASE_INT8, 0) - memory_base_bytes(model, MEMORY_BASE_NF4, 0)
               : 0;
}

int64_t memory_fewest_gpus(const struct memory_job *job)
{
    struct memory_job changed = *job;
    struct diag diag = DIAG_INIT;
    int64_t *gpus = &changed.point.options.cluster.gpus;
    for (*gpus = 1; *gpus <= MEMORY_MOST_GPUS; *gpus *= 2)
        if (memory_check(&changed, &diag) == STATUS_OK && memory_fits(&changed))
            return *gpus;
    return 0;
}
