#include "study/memory.h"

#include <inttypes.h>
#include <string.h>

const char *const memory_dtype_names[] = {
    "fp32", "tf32", "bf16_mixed", "fp16_mixed", "bf16", "bf16_master", "fp8_mixed", "fp4_mixed", "fp16", "int8", NULL};
_Static_assert(MEMORY_FP16 == 8, "precision_names come first");
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
    scenario_default_attention(point);
    if (job->base == MEMORY_BASE_INT8 && shards)
        return diag_input(diag, (struct source_pos){.file = "--lora-base"},
            "bitsandbytes' INT8 matrices cannot be sharded; use --strategy ddp, zero1 or zero2, or nf4");
    if (is_planned(job))
        return scenario_prepare(point, diag);
    if (job->dtype == MEMORY_INT8)
        return STATUS_OK;
    return strategy_check(&point->options.strategy, NULL, &point->hw, (int)point->options.cluster.gpus, &places, diag);
}

static void count_states(struct exec_peak *out, const struct memory_job *job)
{
    const struct scenario *options = &job->point.options;
    struct states states = states_of(job->params, &options->strategy, options->cluster.gpus, job->dtype == MEMORY_INT8);
    *out = (struct exec_peak){.host_bytes = states.host, .capacity_bytes = job->point.hw.gpu.hbm_capacity.value};
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
    return STATUS_OK;
}

bool memory_fits(const struct memory_job *job)
{
    struct diag diag = DIAG_INIT;
    struct memory_need need;
    return memory_need(&need, job, &diag) == STATUS_OK && exec_room(&need.peak) >= 0;
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

/* ---- what would make it fit ---- */

struct search {
    struct memory_job job;
    struct train_options *train; /* the job's */
    struct arena *arena;
};

static bool fits(struct memory_job *job)
{
    struct diag diag = DIAG_INIT;
    return memory_check(job, &diag) == STATUS_OK && memory_fits(job);
}

/* One change, made to the job; what it is called, or NULL where there is nothing to change. */
typedef const char *change(struct search *search);

/* Of activations alone: kernels that are as fast or faster, then recomputation. What a model or a job that has it
 * cannot take, memory_check() refuses or does not help. */
static const struct setting {
    const char *what;
    size_t member; /* an int of struct train_options */
    int value;
} settings[] = {
    {"--attention flash", offsetof(struct train_options, attention), ATTENTION_FLASH},
    {"--cross-entropy fused", offsetof(struct train_options, cross_entropy), CROSS_ENTROPY_FUSED},
    {"--checkpointing selective", offsetof(struct train_options, activation_checkpointing), CHECKPOINT_SELECTIVE},
    {"--checkpointing full", offsetof(struct train_options, activation_checkpointing), CHECKPOINT_FULL},
};

static const char *smaller_batch(struct search *search)
{
    struct scenario_point point = search->job.point;
    point.hw.gpu.hbm_capacity.value -= memory_int8_extra(&search->job);
    int64_t most = search->train->micro_batch - 1;
    int64_t largest = search->job.counted && most > 0 ? fit_largest_by_peak(&point, most) : 0;
    if (largest == 0)
        return NULL;
    search->train->micro_batch = largest;
    return arena_printf(search->arena, "--micro-batch %" PRId64 ", with gradient accumulation", largest);
}

static const char *shard_here(struct search *search)
{
    if (search->job.point.options.cluster.gpus == 1)
        return NULL;
    while (++search->job.strategy < MEMORY_STRATEGY_COUNT)
        if (fits(&search->job))
            return arena_printf(search->arena, "--strategy %s", memory_strategy_names[search->job.strategy]);
    return NULL;
}

static const char *eight_bit(struct search *search)
{
    if (search->train->optimizer != OPTIMIZER_ADAMW && search->train->optimizer != OPTIMIZER_ADAM)
        return NULL;
    search->train->optimizer = OPTIMIZER_ADAM_8BIT;
    return "--optimizer adam8bit";
}

static const char *offload(struct search *search)
{
    static const double HOST_BYTES = 256e9; /* of a GPU: 2 TB of a DGX A100 or H100, shared by eight */
    struct diag diag = DIAG_INIT;
    struct memory_need need;
    if (search->job.offload || search->train->optimizer == OPTIMIZER_LOMO)
        return NULL;
    search->job.offload = true;
    search->job.strategy = MEMORY_FSDP;
    bool possible = memory_check(&search->job, &diag) == STATUS_OK &&
                    memory_need(&need, &search->job, &diag) == STATUS_OK && need.peak.host_bytes <= HOST_BYTES;
    return possible ? "--strategy fsdp --offload" : NULL;
}

static const char *more_gpus(struct search *search)
{
    search->job.strategy = MEMORY_FSDP;
    search->job.point.options.cluster.gpus = memory_fewest_gpus(&search->job);
    if (search->job.point.options.cluster.gpus == 0)
        return NULL;
    return arena_printf(search->arena, "--strategy fsdp --gpus %" PRId64, search->job.point.options.cluster.gpus);
}

/* A job that data parallelism alone shards, on the same GPUs: experts over them, or tensor parallelism in the node, and
 * stages of a pipeline, with as few of these as do. */
static const char *layouts(struct search *search)
{
    enum { MOST_STAGES = 16, MOST_TENSOR = 8, MOST_EXPERT = 64 };
    const struct memory_job *job = &search->job;
    int64_t experts = job->has_model ? job->point.model.shape.moe.experts : 0;
    int64_t gpus = job->point.options.cluster.gpus, most = experts > 0 ? MOST_EXPERT : MOST_TENSOR;
    if (!job->has_model || job->offload || memory_copy_gpus(job) > 1)
        return NULL;
    for (int64_t stages = 1; stages <= MOST_STAGES; stages *= 2)
        for (int64_t ranks = 2; ranks <= most && ranks * stages <= gpus; ranks *= 2) {
            struct memory_job changed = *job;
            struct parallelism_options *parallelism = &changed.point.options.strategy.parallelism;
            changed.strategy = MEMORY_MEGATRON;
            changed.point.options.strategy.megatron.use_distributed_optimizer = true;
            *(experts > 0 ? &parallelism->model.expert : &parallelism->model.tensor) = ranks;
            parallelism->pipeline = stages;
            if (!fits(&changed))
                continue;
            search->job = changed;
            const char *pipeline = stages > 1 ? arena_printf(search->arena, " --pipeline %" PRId64, stages) : "";
            return arena_printf(search->arena, "--strategy megatron --use-distributed-optimizer --%s %" PRId64 "%s",
                experts > 0 ? "expert" : "tensor", ranks, pipeline);
        }
    return NULL;
}

static const char *adapters(struct search *search)
{
    enum { RANK = 16 }; /* usual: peft's examples */
    bool possible = search->job.has_model && model_takes_adapters(&search->job.point.model.shape);
    if (!possible || search->train->lora_rank > 0)
        return NULL;
    search->train->lora_rank = RANK;
    return "--lora 16";
}

static const char *quantised_adapters(struct search *search)
{
    if (!adapters(search))
        return NULL;
    search->job.base = MEMORY_BASE_NF4;
    search->train->activation_checkpointing = CHECKPOINT_FULL;
    return "--lora 16 --qlora";
}

/* Everything that changes no number of the training, and as many GPUs as that takes. */
static const char *together(struct search *search)
{
    bool flash = model_takes_flash(&search->job.point.model.shape);
    if (!search->job.counted)
        return more_gpus(search);
    if (flash)
        search->train->attention = ATTENTION_FLASH;
    search->train->cross_entropy = CROSS_ENTROPY_FUSED;
    search->train->activation_checkpointing = CHECKPOINT_FULL;
    search->train->micro_batch = 1;
    const char *gpus = more_gpus(search);
    return gpus ? arena_printf(search->arena, "%s--cross-entropy fused --checkpointing full --micro-batch 1 %s",
                      flash ? "--attention flash " : "", gpus)
                : NULL;
}

const char *memory_remedy(struct memory_job *out, const struct memory_job *job, struct arena *arena)
{
    enum { SETTINGS = sizeof settings / sizeof *settings };
    static change *const changes[] = {
        smaller_batch, shard_here, eight_bit, offload, more_gpus, layouts, together, adapters, quantised_adapters};
    for (size_t i = job->counted ? 0 : SETTINGS; i < SETTINGS + sizeof changes / sizeof *changes; i++) {
        struct search search = {.job = *job, .arena = arena};
        search.train = &search.job.point.options.strategy.train;
        const char *what = i < SETTINGS ? settings[i].what : changes[i - SETTINGS](&search);
        if (i < SETTINGS)
            *(int *)((char *)search.train + settings[i].member) = settings[i].value;
        *out = search.job;
        if (what && fits(out))
            return what;
    }
    return NULL;
}

double memory_state_bytes(const struct scenario_point *point)
{
    struct strategy_options strategy = point->options.strategy;
    struct arena scratch = ARENA_INIT;
    struct model adapted;
    model_adapt(&adapted, &point->model, strategy.train.lora_rank, strategy.train.lora_targets, &scratch);
    strategy.fsdp.cpu_offload = strategy.zero.offload_optimizer = 0;
    struct states states = states_of(adapted.trained, &strategy, 1, false);
    arena_release(&scratch);
    return states.weights + states.optimizer;
}
