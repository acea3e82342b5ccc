#include "strategy/footprint_fit.h"

#include <inttypes.h>

double footprint_job_bytes(const struct footprint_job *job)
{
    struct arena scratch = ARENA_INIT;
    struct footprint footprint = footprint_of(job->params, job->model, &job->options, &scratch);
    arena_release(&scratch);
    return footprint_total(&footprint);
}

static bool fits(const struct footprint_job *job, double room)
{
    return footprint_job_bytes(job) <= room;
}

static bool batch_fits(const struct footprint_job *job, int64_t micro_batch, double room)
{
    struct footprint_job changed = *job;
    changed.options.micro_batch = micro_batch;
    return fits(&changed, room);
}

int64_t footprint_largest_batch(const struct footprint_job *job, double room)
{
    BUG_IF(!job->model || job->options.seq_len < 1, "a micro-batch of an unknown model or length");
    int64_t least = 0, most = 1; /* least fits, most does not, when the first loop is over */
    while (most <= FOOTPRINT_MOST_BATCH && batch_fits(job, most, room)) {
        least = most;
        most *= 2;
    }
    while (most - least > 1 && least < FOOTPRINT_MOST_BATCH) {
        int64_t middle = least + (most - least) / 2;
        if (batch_fits(job, middle, room))
            least = middle;
        else
            most = middle;
    }
    return least;
}

int64_t footprint_fewest_gpus(const struct footprint_job *job, double room)
{
    struct footprint_job changed = *job;
    for (changed.options.gpus = 1; changed.options.gpus <= FOOTPRINT_MOST_GPUS; changed.options.gpus *= 2)
        if (fits(&changed, room))
            return changed.options.gpus;
    return 0;
}

struct search {
    struct footprint_job job;
    double room;
    struct arena *arena;
};

/* One change, made to the job; what it is called, or NULL where there is nothing to change. */
typedef const char *change(struct search *search);

static const char *flash(struct search *search)
{
    bool possible =
        search->job.model && model_takes_flash(&search->job.model->shape) && search->job.options.micro_batch > 0;
    if (!possible || search->job.options.attention == ATTENTION_FLASH)
        return NULL;
    search->job.options.attention = ATTENTION_FLASH;
    return "--attention flash";
}

static const char *fused_loss(struct search *search)
{
    if (search->job.options.micro_batch == 0 || search->job.options.cross_entropy == CROSS_ENTROPY_FUSED)
        return NULL;
    search->job.options.cross_entropy = CROSS_ENTROPY_FUSED;
    return "--cross-entropy fused";
}

static const char *checkpoint(struct search *search, int checkpointing, const char *what)
{
    if (search->job.options.micro_batch == 0 || search->job.options.checkpointing != CHECKPOINT_NONE)
        return NULL;
    search->job.options.checkpointing = checkpointing;
    return what;
}

static const char *selective(struct search *search)
{
    return checkpoint(search, CHECKPOINT_SELECTIVE, "--checkpointing selective");
}

static const char *full(struct search *search)
{
    return checkpoint(search, CHECKPOINT_FULL, "--checkpointing full");
}

static const char *smaller_batch(struct search *search)
{
    int64_t largest = search->job.options.micro_batch > 1 && search->job.model
                          ? footprint_largest_batch(&search->job, search->room)
                          : 0;
    if (largest == 0)
        return NULL;
    search->job.options.micro_batch = largest;
    return arena_printf(search->arena, "--micro-batch %" PRId64 ", with gradient accumulation", largest);
}

static const char *shard_here(struct search *search)
{
    if (search->job.options.gpus == 1)
        return NULL;
    for (int strategy = search->job.options.strategy + 1; strategy < FOOTPRINT_STRATEGY_COUNT; strategy++) {
        search->job.options.strategy = strategy;
        if (footprint_possible(&search->job.options) && fits(&search->job, search->room))
            return arena_printf(search->arena, "--strategy %s", footprint_strategy_names[strategy]);
    }
    return NULL;
}

static const char *eight_bit(struct search *search)
{
    if (search->job.options.optimizer != OPTIMIZER_ADAMW && search->job.options.optimizer != OPTIMIZER_ADAM)
        return NULL;
    search->job.options.optimizer = OPTIMIZER_ADAM_8BIT;
    return "--optimizer adam8bit";
}

/* Of a GPU: 2 TB of a DGX A100 or H100, shared by eight. */
static const double HOST_BYTES = 256e9;

static const char *offload(struct search *search)
{
    if (search->job.options.offload || search->job.options.optimizer == OPTIMIZER_LOMO)
        return NULL;
    search->job.options.offload = true;
    search->job.options.strategy = FOOTPRINT_FSDP;
    struct footprint footprint =
        footprint_of(search->job.params, search->job.model, &search->job.options, search->arena);
    return footprint.host <= HOST_BYTES ? "--strategy fsdp --offload" : NULL;
}

static const char *more_gpus(struct search *search)
{
    search->job.options.strategy = FOOTPRINT_FSDP;
    search->job.options.gpus = footprint_fewest_gpus(&search->job, search->room);
    if (search->job.options.gpus == 0)
        return NULL;
    return arena_printf(search->arena, "--strategy fsdp --gpus %" PRId64, search->job.options.gpus);
}

static const char *adapters(struct search *search)
{
    enum { RANK = 16 }; /* usual: peft's examples */
    const struct model *model = search->job.model;
    if (!model || search->job.options.lora_rank > 0 || !model_takes_adapters(&model->shape))
        return NULL;
    search->job.options.lora_rank = RANK;
    return "--lora 16";
}

static const char *quantised_adapters(struct search *search)
{
    if (!adapters(search))
        return NULL;
    search->job.options.base = BASE_NF4;
    search->job.options.checkpointing = CHECKPOINT_FULL;
    return "--lora 16 --qlora";
}

/* Everything that changes no number of the training, and as many GPUs as that takes. */
static const char *together(struct search *search)
{
    flash(search);
    fused_loss(search);
    if (search->job.options.micro_batch > 0) {
        search->job.options.checkpointing = CHECKPOINT_FULL;
        search->job.options.micro_batch = 1;
    }
    const char *gpus = more_gpus(search);
    if (!gpus || search->job.options.micro_batch == 0)
        return gpus;
    return arena_printf(search->arena, "%s--cross-entropy fused --checkpointing full --micro-batch 1 %s",
        search->job.options.attention == ATTENTION_FLASH ? "--attention flash " : "", gpus);
}

const char *footprint_remedy(
    struct footprint_job *out, const struct footprint_job *job, double room, struct arena *arena)
{
    static change *const changes[] = {flash, fused_loss, selective, full, smaller_batch, shard_here, eight_bit, offload,
        more_gpus, adapters, quantised_adapters, together};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct search search = {*job, room, arena};
        const char *what = changes[i](&search);
        *out = search.job;
        if (what && fits(out, room))
            return what;
    }
    return NULL;
}
