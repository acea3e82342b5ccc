#include "cli/memory.h"

#include <inttypes.h>

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
