/* A job of `memory` and `capacity`: its need, and the changes that save memory. A change is a
 * list of settings, as --set takes them, put into a copy of the point, which scenario_prepare()
 * then completes: what `run` would refuse is no remedy.
 *
 * A job with a model is counted from its plan (fit_peak()); a number of parameters, or INT8, by
 * bytes a parameter (states.h). What is subtle: a base in INT8 is simulated as NF4 and the
 * difference added to the weights (memory_int8_extra()). The order of known_savings[] matters: the
 * first OF_ACTIVATIONS change nothing but activations. */
#include "study/memory_job.h"
#include "strategy/states.h"

#include <inttypes.h>
#include <string.h>

const char *const memory_base_names[] = {"16bit", "int8", "nf4", NULL};

int64_t memory_copy_gpus(const struct parallelism_options *parallelism)
{
    return parallelism->model.tensor * parallelism->model.context * parallelism->pipeline *
           strategy_expert_axis(parallelism);
}

const char *memory_strategy(const struct strategy_options *options)
{
    static const char *const stages[] = {NULL, "zero1", "zero2", "zero3"};
    const char *word = options->kind == STRATEGY_DEEPSPEED ? stages[options->zero.stage] : NULL;
    return word ? word : strategy_kind_names[options->kind];
}

void memory_unlimited(struct hw *hw)
{
    static const char source[] = "not asked";
    hw->node.gpus.value = 1;
    hw->cluster.nodes.value = 1 << 24;
    hw->node.host_memory =
        (struct quantity){.value = 1e18, .kind = QUANTITY_ASSUMED, .source = source};
    hw->node.host_bandwidth =
        (struct quantity){.value = 1e9, .kind = QUANTITY_ASSUMED, .source = source};
}

bool memory_supported(const struct memory_job *job, const struct hw_gpu *gpu)
{
    return job->int8 || kernel_supported(gpu, strategy_math(&job->point.options.strategy.train));
}

static bool is_planned(const struct memory_job *job)
{
    return job->has_model && !job->int8;
}

static struct source_pos memory_job_place_of(const void *self, const char *path)
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
    const struct strategy_options *options = &point->options.strategy;
    const struct strategy_places places = {memory_job_place_of, &point->origins};
    bool shards = options->kind == STRATEGY_FSDP ||
                  (options->kind == STRATEGY_DEEPSPEED && options->zero.stage == 3);
    if (job->int8_base && shards)
        return diag_input(diag, (struct source_pos){.file = "--lora-base"},
            "bitsandbytes' INT8 matrices cannot be sharded; use --strategy ddp, zero1 or zero2, or "
            "nf4");
    if (is_planned(job))
        return scenario_prepare(point, diag);
    if (job->int8)
        return STATUS_OK;
    return strategy_check(
        options, NULL, &point->hw, (int)point->options.cluster.gpus, &places, diag);
}

static void memory_job_count_states(struct exec_peak *out, const struct memory_job *job)
{
    const struct scenario *options = &job->point.options;
    struct states states =
        states_of(job->params, &options->strategy, options->cluster.gpus, job->int8);
    const struct hw *hw = &job->point.hw;
    *out =
        (struct exec_peak){.host_bytes = states.host, .communicators = options->cluster.gpus > 1};
    out->category_bytes[HBM_PARAMETERS] = states.weights;
    out->category_bytes[HBM_GRADIENTS] = states.gradients;
    out->category_bytes[HBM_OPTIMIZER] = states.optimizer;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        out->total_bytes += out->largest_category[c] = out->category_bytes[c];
    *out = exec_peak_on(*out, &hw->gpu, hw->node.nccl_bytes.value);
}

enum status memory_need(struct memory_need *out, const struct memory_job *job, struct diag *diag)
{
    struct exec_peak *peak = &out->peak;
    double extra = memory_int8_extra(job);
    *out = (struct memory_need){.planned = is_planned(job)};
    if (!out->planned)
        memory_job_count_states(peak, job);
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
        bytes += !quantised ? (double)(tensor->numel * rest_bytes)
                 : base == MEMORY_BASE_NF4
                     ? model_nf4_bytes(tensor->numel)
                     : (double)(tensor->numel + (int64_t)sizeof(float) * tensor->rows);
    }
    return bytes;
}

double memory_int8_extra(const struct memory_job *job)
{
    const struct model *model = &job->point.model;
    return job->int8_base && is_planned(job) ? memory_base_bytes(model, MEMORY_BASE_INT8, 0) -
                                                   memory_base_bytes(model, MEMORY_BASE_NF4, 0)
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

/* ---- changes ---- */

static void change_add(struct memory_change *change, const char *path, const char *value)
{
    BUG_IF(change->n == MEMORY_MOST_SETTINGS, "a change has no room for %s", path);
    change->settings[change->n++] = (struct scenario_override){path, value};
}

enum status memory_apply(struct memory_job *job, const struct memory_change *change,
    struct arena *arena, struct diag *diag)
{
    for (int i = 0; i < change->n; i++)
        if (scenario_set_option(&job->point, &change->settings[i], NULL, arena, diag) != STATUS_OK)
            return diag->worst;
    return memory_check(job, diag);
}

/* Kernels that are as fast or faster, and recomputation: the first ones change no number of the
 * training, and nothing but activations. */
static const struct memory_change known_savings[] = {
    {{{"train.attention", "flash"}}, 1},
    {{{"train.cross_entropy", "fused"}}, 1},
    {{{"train.activation_checkpointing", "selective"}}, 1},
    {{{"train.activation_checkpointing", "full"}}, 1},
    {{{"train.cpu_offloading_num_layers", "4"}}, 1},
    {{{"train.micro_batch", "1"}}, 1},
    {{{"train.optimizer_impl", "fused"}}, 1},
    {{{"train.optimizer", "adam8bit"}}, 1},
    {{{"train.optimizer", "adafactor"}}, 1},
    {{{"train.optimizer", "lomo"}}, 1},
    {{{"strategy", "zero1"}}, 1},
    {{{"strategy", "zero3"}}, 1},
    {{{"strategy", "fsdp"}}, 1},
    {{{"strategy", "megatron"}, {"megatron.use_distributed_optimizer", "true"}}, 2},
    {{{"strategy", "fsdp"}, {"fsdp.cpu_offload", "true"}}, 2},
    {{{"train.lora_rank", "16"}}, 1},
    {{{"train.lora_rank", "16"}, {"train.qlora", "true"},
         {"train.activation_checkpointing", "full"}},
        3},
};
enum { OF_ACTIVATIONS = 4 }; /* of known_savings the first ones */

bool memory_saving(struct memory_change *out, int i)
{
    bool there = i >= 0 && i < (int)(sizeof known_savings / sizeof *known_savings);
    if (there)
        *out = known_savings[i];
    return there;
}

/* ---- what would make it fit ---- */

struct search {
    const struct memory_job *job;
    const struct train_options *train; /* the job's */
    struct memory_change change;
    struct arena *arena;
};

/* The job with a change, where it can be made. */
static bool changed_job(struct memory_job *out, const struct search *search)
{
    struct diag diag = DIAG_INIT;
    *out = *search->job;
    return memory_apply(out, &search->change, search->arena, &diag) == STATUS_OK;
}

static bool fits_changed(struct memory_job *out, const struct search *search)
{
    return changed_job(out, search) && memory_fits(out);
}

static void add_number(struct search *search, const char *path, int64_t value)
{
    change_add(&search->change, path, arena_printf(search->arena, "%" PRId64, value));
}

/* One change; false: there is nothing to change. */
typedef bool saving_search(struct search *search);

static bool smaller_batch(struct search *search)
{
    struct scenario_point point = search->job->point;
    point.hw.gpu.hbm_capacity.value -= memory_int8_extra(search->job);
    int64_t most = search->train->micro_batch - 1;
    int64_t largest = search->job->counted && most > 0 ? fit_largest_by_peak(&point, most) : 0;
    if (largest > 0)
        add_number(search, "train.micro_batch", largest);
    return largest > 0;
}

/* Strategies that share out more and more. */
static bool shard_here(struct search *search)
{
    static const char *const words[] = {
        "single_device", "ddp", "zero1", "zero2", "zero3", "fsdp", "megatron"};
    const char *own = memory_strategy(&search->job->point.options.strategy);
    struct memory_job out;
    bool more = false;
    if (search->job->point.options.cluster.gpus == 1)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        search->change = (struct memory_change){{{"strategy", words[i]}}, 1};
        if (more && fits_changed(&out, search))
            return true;
        more = more || strcmp(words[i], own) == 0;
    }
    return false;
}

static bool eight_bit(struct search *search)
{
    bool has =
        search->train->optimizer == OPTIMIZER_ADAMW || search->train->optimizer == OPTIMIZER_ADAM;
    if (has)
        change_add(&search->change, "train.optimizer", "adam8bit");
    return has;
}

static bool offload(struct search *search)
{
    static const double HOST_BYTES =
        256e9; /* of a GPU: 2 TB of a DGX A100 or H100, shared by eight */
    const struct strategy_options *options = &search->job->point.options.strategy;
    struct diag diag = DIAG_INIT;
    struct memory_job out;
    struct memory_need need;
    bool offloads = (options->kind == STRATEGY_FSDP && options->fsdp.cpu_offload) ||
                    (options->kind == STRATEGY_DEEPSPEED && options->zero.offload_optimizer);
    if (offloads || search->train->optimizer == OPTIMIZER_LOMO)
        return false;
    change_add(&search->change, "strategy", "fsdp");
    change_add(&search->change, "fsdp.cpu_offload", "true");
    return changed_job(&out, search) && memory_need(&need, &out, &diag) == STATUS_OK &&
           need.peak.host_bytes <= HOST_BYTES;
}

/* With what was changed before. */
static bool more_gpus(struct search *search)
{
    struct memory_job out;
    change_add(&search->change, "strategy", "fsdp");
    changed_job(&out, search); /* where it is refused, another number of GPUs may do */
    int64_t gpus = memory_fewest_gpus(&out);
    if (gpus > 0)
        add_number(search, "cluster.gpus", gpus);
    return gpus > 0;
}

/* A job that data parallelism alone shards, on the same GPUs: experts over them, or tensor
 * parallelism in the node, and stages of a pipeline, with as few of these as do. */
static bool layouts(struct search *search)
{
    enum { MOST_STAGES = 16, MOST_TENSOR = 8, MOST_EXPERT = 64 };
    const struct memory_job *job = search->job;
    const struct strategy_options *options = &job->point.options.strategy;
    int64_t experts = job->has_model ? job->point.model.shape.moe.experts : 0;
    int64_t gpus = job->point.options.cluster.gpus, most = experts > 0 ? MOST_EXPERT : MOST_TENSOR;
    bool offloads = options->fsdp.cpu_offload || options->zero.offload_optimizer;
    struct memory_job out;
    if (!job->has_model || offloads || memory_copy_gpus(&options->parallelism) > 1)
        return false;
    for (int64_t stages = 1; stages <= MOST_STAGES; stages *= 2)
        for (int64_t ranks = 2; ranks <= most && ranks * stages <= gpus; ranks *= 2) {
            search->change = (struct memory_change){
                {{"strategy", "megatron"}, {"megatron.use_distributed_optimizer", "true"}}, 2};
            add_number(search, experts > 0 ? "parallelism.expert" : "parallelism.tensor", ranks);
            if (stages > 1) {
                add_number(search, "parallelism.pipeline", stages);
                add_number(search, "train.grad_accum", 2 * stages); /* which fill it */
            }
            if (fits_changed(&out, search))
                return true;
        }
    return false;
}

static bool adapters(struct search *search)
{
    bool possible = search->job->has_model &&
                    model_takes_adapters(&search->job->point.model.shape) &&
                    search->train->lora_rank == 0;
    if (possible) /* usual: peft's examples */
        change_add(&search->change, "train.lora_rank", "16");
    return possible;
}

static bool quantised_adapters(struct search *search)
{
    if (!adapters(search))
        return false;
    change_add(&search->change, "train.qlora", "true");
    change_add(&search->change, "train.activation_checkpointing", "full");
    return true;
}

/* Everything that changes no number of the training, and as many GPUs as that takes. */
static bool all_together(struct search *search)
{
    if (!search->job->counted)
        return more_gpus(search);
    if (model_takes_flash(&search->job->point.model.shape))
        change_add(&search->change, "train.attention", "flash");
    change_add(&search->change, "train.cross_entropy", "fused");
    change_add(&search->change, "train.activation_checkpointing", "full");
    change_add(&search->change, "train.micro_batch", "1");
    return more_gpus(search);
}

bool memory_remedy(struct memory_change *made, struct memory_job *out, const struct memory_job *job,
    struct arena *arena)
{
    static saving_search *const changes[] = {smaller_batch, shard_here, eight_bit, offload,
        more_gpus, layouts, all_together, adapters, quantised_adapters};
    struct memory_job free_job = *job;
    memory_unlimited(&free_job.point.hw);
    for (size_t i = job->counted ? 0 : OF_ACTIVATIONS;
         i < OF_ACTIVATIONS + sizeof changes / sizeof *changes; i++) {
        struct search search = {
            .job = &free_job, .train = &free_job.point.options.strategy.train, .arena = arena};
        bool there = true;
        if (i < OF_ACTIVATIONS)
            search.change = known_savings[i];
        else
            there = changes[i - OF_ACTIVATIONS](&search);
        *made = search.change;
        if (there && fits_changed(out, &search))
            return true;
    }
    return false;
}
