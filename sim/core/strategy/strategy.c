/* What follows from the options of a job before anything is emitted: names, defaults, number
 * formats, the model's workload, batches, the blocks of each stage, and the mesh.
 *
 * Each framework's rule for the blocks of a stage or chunk is one function: blocks_by_cost() is
 * nanotron's, blocks_by_number() DeepSpeed's, split_point_blocks() and weighted_blocks()
 * torchtitan's. strategy_stage() goes through all places of the model in order and keeps those of
 * its stage.
 *
 * In the mesh data parallelism is what other axes leave of the ranks, and the strategy divides it
 * into shards and replicas. Where experts are folded (model_expert_folds()), a second grid lies
 * over the same ranks.
 *
 * Subtle: strategy_workload_of() is where settings become the model's workload. A setting that is
 * missing there changes no kernel. */
#include "strategy/strategy.h"

#include "strategy/emit.h"

#include <math.h>
#include <string.h>

const char *const precision_names[] = {"fp32", "tf32", "bf16_mixed", "fp16_mixed", "bf16",
    "bf16_master", "fp8_mixed", "fp4_mixed", NULL};
const char *const checkpointing_names[] = {"none", "full", "selective", "core_attn", NULL};
const char *const recompute_method_names[] = {"uniform", "block", NULL};
const char *const cuda_graphs_names[] = {"none", "layer", "full_iteration", NULL};
const char *const image_format_names[] = {"contiguous", "channels_last", "channels_last_amp", NULL};
#define STRATEGY_NAME(kind, name, hooks) name,
const char *const strategy_kind_names[] = {STRATEGIES(STRATEGY_NAME) NULL};
#define STRATEGY_WORD_ENTRY(word, kind, path, value) {word, kind, path, value},
const struct strategy_word strategy_words[] = {STRATEGY_WORDS(STRATEGY_WORD_ENTRY)};
#define STRATEGY_WORD_NAME(word, kind, path, value) word,
const char *const strategy_names[] = {
    STRATEGIES(STRATEGY_NAME) STRATEGY_WORDS(STRATEGY_WORD_NAME) NULL};
const char *const partition_method_names[] = {"uniform", "compute_costs", "type:transformer",
    "type:transformer|embedding", "split_points", "weighted", NULL};

const struct strategy_word *strategy_word(const char *name)
{
    for (int i = 0; i < STRATEGY_WORD_COUNT; i++)
        if (strcmp(strategy_words[i].word, name) == 0)
            return &strategy_words[i];
    return NULL;
}

#define STRATEGY_DEFAULTS(key, name, help) .name = name##_defaults,
struct strategy_options strategy_default_options(void)
{
    return (struct strategy_options){.kind = STRATEGY_FSDP,
        .train =
            {
#define SETTINGS SETTING_DEFAULT
#include "strategy/train_settings.h"
            },
        .parallelism =
            {
#define SETTINGS SETTING_DEFAULT
#include "strategy/parallelism_settings.h"
            },
        .host =
            {
#define SETTINGS SETTING_DEFAULT
#include "strategy/host_settings.h"
            },
        STRATEGY_SECTIONS(STRATEGY_DEFAULTS)};
}

const char *strategy_label(const struct strategy_options *options)
{
    const struct data_parallel *strategy = strategies[options->kind];
    return strategy->label ? strategy->label : strategy->label_of(options);
}

int strategy_shard_ranks(const struct strategy_options *options, const struct hw *hw, int ranks)
{
    const struct data_parallel *strategy = strategies[options->kind];
    return strategy->shard_ranks ? strategy->shard_ranks(options, hw, ranks) : 1;
}

bool strategy_reads_section(const struct strategy_options *options, const char *section)
{
    const char *own = strategies[options->kind]->section;
    return own && strcmp(own, section) == 0;
}

bool strategy_clips_by_option(const struct strategy_options *options)
{
    return strategies[options->kind]->clips_by_option;
}

/* What matrix products but those of fp8_mixed and fp4_mixed in blocks are in. */
static enum dtype plain_math(const struct train_options *train)
{
    static const enum dtype math[PRECISION_COUNT] = {[PRECISION_FP32] = DTYPE_FP32,
        [PRECISION_TF32] = DTYPE_TF32,
        [PRECISION_BF16_MIXED] = DTYPE_BF16,
        [PRECISION_FP16_MIXED] = DTYPE_FP16,
        [PRECISION_BF16] = DTYPE_BF16,
        [PRECISION_BF16_MASTER] = DTYPE_BF16,
        [PRECISION_FP8_MIXED] = DTYPE_BF16,
        [PRECISION_FP4_MIXED] = DTYPE_BF16};
    return math[train->precision];
}

struct element_bytes strategy_element_bytes(int precision)
{
    static const struct element_bytes bytes[PRECISION_COUNT] = {[PRECISION_FP32] = {4, 4, 4},
        [PRECISION_TF32] = {4, 4, 4},
        [PRECISION_BF16_MIXED] = {4, 4, 2},
        [PRECISION_FP16_MIXED] = {4, 4, 2},
        [PRECISION_BF16] = {2, 2, 2},
        [PRECISION_BF16_MASTER] = {2, 4, 2},
        [PRECISION_FP8_MIXED] = {4, 4, 2},
        [PRECISION_FP4_MIXED] = {4, 4, 2}};
    return bytes[precision];
}

enum dtype strategy_math(const struct train_options *train)
{
    bool fp4 = train->precision == PRECISION_FP4_MIXED,
         fp8 = train->precision == PRECISION_FP8_MIXED;
    return fp4 ? DTYPE_FP4 : fp8 ? DTYPE_FP8 : plain_math(train);
}

/* Experts are cut over the tensor ranks unless the options say otherwise (Megatron-LM's default).
 */
static struct model_parallel parallel_of(
    const struct strategy_options *options, const struct model *model)
{
    struct model_parallel parallel = options->parallelism.model;
    bool has_experts = model && model->shape.moe.experts > 0;
    if (parallel.expert_tensor == 0)
        parallel.expert_tensor = has_experts ? model_tensor_ranks(&parallel) : 1;
    return parallel;
}

bool strategy_draws_experts(const struct strategy_options *options)
{
    const struct train_options *train = &options->train;
    bool learned = train->expert_routing == ROUTING_LEARNED && !(train->expert_imbalance > 1);
    return options->parallelism.model.expert > 1 && (train->expert_spread > 0 || learned);
}

static struct model_workload strategy_workload_of(
    const struct strategy_options *options, const struct model *model)
{
    const struct train_options *train = &options->train;
    enum dtype dtype = plain_math(train);
    return (struct model_workload){
        .micro_batch = train->micro_batch,
        .seq_len = train->seq_len,
        .decoder_seq_len = train->decoder_seq_len,
        .math = dtype,
        .storage = dtype == DTYPE_TF32 ? DTYPE_FP32 : dtype,
        .attention = train->attention,
        .cross_entropy = train->cross_entropy,
        .fusion = train->fusion,
        .rotary = train->rotary,
        .compiled = train->compiled,
        .autocast = train->autocast,
        .channels_last =
            train->memory_format == IMAGE_CHANNELS_LAST ||
            (train->memory_format == IMAGE_CHANNELS_LAST_AMP && dtype_bytes(dtype) == 2),
        .fp8 = train->precision == PRECISION_FP8_MIXED || train->precision == PRECISION_FP4_MIXED,
        .fp4 = train->precision == PRECISION_FP4_MIXED,
        .fp8_recipe = train->fp8_recipe,
        .frozen_once = options->kind == STRATEGY_MEGATRON && options->megatron.fp8_param_gather &&
                       train->fp8_recipe == FP8_DELAYED &&
                       train->fusion == FUSION_TRANSFORMER_ENGINE,
        .fp8_weights = options->kind == STRATEGY_FSDP && options->fsdp.float8_all_gather,
        .loss_fp32 = true,
        .neftune = train->neftune,
        .nf4 = train->qlora,
        .drops_logits = train->drop_logits,
        .parallel = parallel_of(options, model),
        .expert_kernels = train->expert_kernels,
        .token_dispatcher = train->moe_token_dispatcher_type,
        .expert_imbalance = train->expert_imbalance,
        .expert_spread = train->expert_spread,
        .expert_seed = train->expert_seed,
        .shared_expert_overlap = train->moe_shared_expert_overlap,
        .aux_loss = train->moe_aux_loss,
        .unfused_permutation = !train->moe_permute_fusion,
        .swiglu_fp8_input = train->activation_func_fp8_input_store,
        .flex_backend = train->moe_flex_dispatcher_backend,
        .flex_sms = (double)(train->moe_flex_dispatcher_backend == FLEX_DEEPEP
                                 ? train->moe_deepep_num_sms
                                 : train->moe_hybridep_num_sms),
        .expert_capacity = train->moe_expert_capacity_factor,
        .pad_to_capacity = train->moe_pad_expert_input_to_capacity,
        .router_pads = train->moe_router_padding_for_quantization,
    };
}

struct model_workload strategy_workload(
    const struct strategy_options *options, const struct model *model)
{
    struct model_workload workload = strategy_workload_of(options, model);
    const struct model_moe *moe = model ? &model->shape.moe : NULL;
    if (moe && moe->experts > 0 && strategy_draws_experts(options) && !(workload.expert_spread > 0))
        workload.expert_spread = model_learned_spread(&workload, moe->experts, moe->per_token);
    return workload;
}

unsigned strategy_recomputed_parts(const struct train_options *train, const char **unknown)
{
    unsigned parts =
        train->activation_checkpointing == CHECKPOINT_CORE_ATTN ? 1U << RECOMPUTE_CORE_ATTN : 0;
    const char *word = train->recompute_modules ? train->recompute_modules : "";
    *unknown = NULL;
    while (*word) {
        size_t length = strcspn(word, ",");
        int part = 0;
        while (part < RECOMPUTE_PART_COUNT &&
               !(strlen(recompute_part_names[part]) == length &&
                   strncmp(word, recompute_part_names[part], length) == 0))
            part++;
        if (part == RECOMPUTE_PART_COUNT && !*unknown)
            *unknown = word;
        parts |= part < RECOMPUTE_PART_COUNT ? 1U << part : 0;
        word += length + (word[length] == ',');
    }
    return parts;
}

struct batch_plan strategy_batch(const struct train_options *train)
{
    int64_t device = train->device_batch, micro = train->micro_batch;
    struct batch_plan batch = {
        .samples = micro * train->grad_accum, .micro_batches = train->grad_accum};
    if (device > 0)
        batch =
            (struct batch_plan){.samples = device, .micro_batches = (device + micro - 1) / micro};
    batch.last = batch.samples - (batch.micro_batches - 1) * micro;
    return batch;
}

int64_t strategy_data_ranks(const struct parallelism_options *options, int64_t gpus)
{
    const struct model_parallel *model = &options->model;
    int64_t data =
        gpus / (options->pipeline * model_tensor_ranks(model) * model_context_ranks(model));
    return data > 0 ? data : 1;
}

void strategy_share_batch(struct strategy_options *options, int64_t gpus)
{
    struct train_options *train = &options->train;
    int64_t ranks = strategy_data_ranks(&options->parallelism, gpus);
    if (train->global_batch > 0)
        train->device_batch = (train->global_batch + ranks - 1) / ranks;
}

bool strategy_fit_micro_batch(struct train_options *train)
{
    bool larger = train->device_batch > 0 && train->micro_batch > train->device_batch;
    if (larger)
        train->micro_batch = train->device_batch;
    return larger;
}

/* What the ranks of a host keep in its memory fits there. */
static enum status strategy_strategy_check_host(
    const struct plan *plan, const struct hw *hw, struct source_pos gpus_at, struct diag *diag)
{
    int ranks = hw_ranks_of_host(hw, plan->mesh.ranks);
    double memory = hw->node.host_memory.value / hw_hosts_per_node(hw);
    double host_bytes = 0; /* of the program that needs most */
    for (int p = 0; p < plan->n_programs; p++)
        host_bytes = fmax(host_bytes, plan->programs[p].host_bytes);
    if (host_bytes * ranks <= memory || host_bytes <= 0)
        return STATUS_OK;
    return diag_input(diag, gpus_at,
        "%d ranks offload %.0f GiB each, but %s '%s' has %.0f GiB; use more GPUs", ranks,
        host_bytes / GIB, hw_hosts_per_node(hw) > 1 ? "a host of" : "node", hw->node.name,
        memory / GIB);
}

/* Elements of a layer's matrices. */
static double matrix_elements(const struct model *model, int layer)
{
    double sum = 0;
    const struct model_layer *at = &model->layers[layer];
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++)
        sum += model->tensors[t].cols > 1 ? (double)model->tensors[t].numel : 0;
    return sum;
}

/* Blocks up to the end of this stage by their costs; those behind the last block have none. */
static int blocks_by_cost(const struct job *job, int stage, int stages)
{
    const struct model *model = job->model;
    double head = (double)(model->shape.vocab * model->shape.d_model), all = head, cost = 0;
    int blocks = model_blocks(model), end = 0;
    for (int b = 1; b <= blocks; b++)
        all += matrix_elements(model, b);
    for (int s = 0; s <= stage; s++) {
        int first = end;
        while (end < blocks && (end == first || cost <= all * (s + 1) / stages))
            cost += matrix_elements(model, ++end);
    }
    return stage == stages - 1 ? blocks : end;
}

/* Blocks up to the end of this stage where each counts 1, and each end of the model `end`. */
static int blocks_by_number(const struct job *job, int stage, int stages, int end)
{
    int blocks = model_blocks(job->model), full = (blocks + 2 * end + stages - 1) / stages;
    int filled = full * (stage + 1) - end, most = blocks - (stages - 1 - stage), least = stage + 1;
    if (stage == stages - 1)
        return blocks;
    return filled < least ? least : filled > most ? most : filled;
}

/* Blocks up to the end of this stage. */
static int blocks_up_to(const struct job *job, int stage, int stages)
{
    int method = job->options->parallelism.partition_method;
    if (stage < 0)
        return 0;
    return method == PARTITION_COMPUTE_COSTS
               ? blocks_by_cost(job, stage, stages)
               : blocks_by_number(job, stage, stages, method == PARTITION_TRANSFORMER_EMBEDDING);
}

/* generate_split_points(): the last chunk gets what those between it and the first have left. */
static int split_point_blocks(int blocks, int place, int places)
{
    int each = blocks / places, over = blocks % places, between = places - 2;
    if (place == places - 1)
        return each + (over > between ? over - between : 0);
    return each + (place > 0 && place <= over);
}

/* generate_llm_fqn_per_model_part(), with input_weight and output_weight 1. */
static int weighted_blocks(int blocks, int place, int places)
{
    int parts = blocks + 2, ends = (place == 0) + (place == places - 1);
    return parts / places + (place < parts % places) - ends;
}

/* Blocks of the chunk at this place of the model. */
static int strategy_blocks_of(const struct job *job, int place, int places)
{
    int method = job->options->parallelism.partition_method;
    if (method == PARTITION_SPLIT_POINTS)
        return split_point_blocks(model_blocks(job->model), place, places);
    if (method == PARTITION_WEIGHTED)
        return weighted_blocks(model_blocks(job->model), place, places);
    if (method != PARTITION_UNIFORM)
        return blocks_up_to(job, place, places) - blocks_up_to(job, place - 1, places);
    const struct parallelism_options *options = &job->options->parallelism;
    int first = (int)options->first_layers, last = (int)options->last_layers,
        blocks = model_blocks(job->model);
    if (place == 0 && first >= 0)
        return first;
    if (place == places - 1 && last >= 0)
        return last;
    return (blocks - (first > 0 ? first : 0) - (last > 0 ? last : 0)) /
           (places - (first >= 0) - (last >= 0));
}

struct model_stage strategy_stage(const struct job *job, int stage, struct arena *arena)
{
    const struct schedule schedule = strategy_schedule(job, stage);
    int places = schedule.stages * schedule.chunks;
    struct model_chunk *all = ARENA_ARRAY(arena, struct model_chunk, schedule.chunks);
    unsigned ends = 0;
    for (int place = 0, next = 0; place < places; place++) {
        int n = strategy_blocks_of(job, place, places);
        for (int c = 0; c < schedule.chunks; c++) {
            if (schedule_place(&schedule, c) != place)
                continue;
            all[c] = (struct model_chunk){next, n};
            ends |= (place == 0 ? MODEL_ENTRY : 0U) | (place == places - 1 ? MODEL_EXIT : 0U);
        }
        next += n;
    }
    return (struct model_stage){.chunks = all, .n_chunks = schedule.chunks, .ends = ends};
}

/* torchtitan overlaps the pairs of DualPipeV by itself where ranks share experts; it refuses
 * checkpointing with that, under which pairs stay one after the other here. */
static bool merges_passes(const struct strategy_options *options)
{
    const struct train_options *train = &options->train;
    if (options->kind == STRATEGY_MEGATRON)
        return options->megatron.overlap_moe_expert_parallel_comm;
    return options->kind == STRATEGY_FSDP && options->parallelism.schedule == SCHEDULE_DUALPIPEV &&
           options->parallelism.pipeline > 1 && options->parallelism.model.expert > 1 &&
           train->activation_checkpointing == CHECKPOINT_NONE &&
           train->moe_token_dispatcher_type != DISPATCHER_ALLGATHER &&
           !train->moe_shared_expert_overlap;
}

struct schedule strategy_schedule(const struct job *job, int stage)
{
    const struct parallelism_options *options = &job->options->parallelism;
    return (struct schedule){.kind = options->schedule,
        .stages = job->mesh.size[AXIS_PP],
        .stage = stage,
        .chunks = (int)options->virtual_stages,
        .micro_batches = (int)job->batch.micro_batches,
        .merges = merges_passes(job->options)};
}

/* As the model takes it: expert_tensor 0 is that of the rest. */
static struct model_parallel cut_of(const struct parallelism_options *options)
{
    struct model_parallel model = options->model;
    if (model.expert_tensor == 0)
        model.expert_tensor = model_tensor_ranks(&model);
    return model;
}

int strategy_expert_axis(const struct parallelism_options *options)
{
    struct model_parallel model = cut_of(options);
    return (int)model_expert_axis(&model);
}

/* The sizes of data parallelism, of a grid with a given number of its ranks. */
static void size_data(
    int size[AXIS_COUNT], const struct strategy_options *options, const struct hw *hw, int data)
{
    int shard = strategy_shard_ranks(options, hw, data);
    BUG_IF(shard < 1 || data % shard != 0, "%d ranks in shards of %d", data, shard);
    size[AXIS_DP_SHARD] = shard;
    size[AXIS_DP_REPLICATE] = data / shard;
}

bool strategy_mesh(struct mesh *out, const struct strategy_options *options, const struct hw *hw,
    int gpus, const char **bad)
{
    const struct parallelism_options *parallel = &options->parallelism;
    const struct model_parallel cut = cut_of(parallel);
    bool folds = model_expert_folds(&cut);
    const char *order = parallel->order ? parallel->order : mesh_order_default;
    int expert = folds ? 1 : strategy_expert_axis(parallel),
        data = (int)strategy_data_ranks(parallel, gpus);
    int size[AXIS_COUNT] = {[AXIS_TP] = (int)model_tensor_ranks(&cut),
        [AXIS_CP] = (int)model_context_ranks(&cut),
        [AXIS_EP] = expert,
        [AXIS_PP] = (int)parallel->pipeline};
    size_data(size, options, hw, data / expert);
    if (!mesh_build(out, size, order, bad))
        return false;
    if (!folds)
        return true;
    int of_experts[AXIS_COUNT] = {[AXIS_TP] = (int)model_expert_width(&cut),
        [AXIS_EP] = (int)model_expert_ranks(&cut),
        [AXIS_PP] = (int)parallel->pipeline};
    size_data(of_experts, options, hw,
        gpus / (of_experts[AXIS_TP] * of_experts[AXIS_EP] * of_experts[AXIS_PP]));
    *bad = order;
    return mesh_fold(out, of_experts, order);
}

static struct mesh mesh_of(const struct strategy_options *options, const struct hw *hw, int gpus)
{
    struct mesh mesh;
    const char *bad;
    bool built = strategy_mesh(&mesh, options, hw, gpus, &bad);
    BUG_IF(!built, "%s", bad);
    return mesh;
}

struct job strategy_job(const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus)
{
    struct job job = {.options = options,
        .model = model,
        .hw = hw,
        .mesh = mesh_of(options, hw, gpus),
        .batch = strategy_batch(&options->train),
        .workload = strategy_workload(options, model),
        .element = strategy_element_bytes(options->train.precision)};
    job.workload.any_layout = hw->gpu.arch && strcmp(hw->gpu.arch, "Blackwell") == 0;
    return job;
}

enum status strategy_compile(struct plan *out, const struct job *job, struct source_pos gpus_at,
    struct arena *arena, struct diag *diag)
{
    emit_step(out, job, arena);
    return strategy_strategy_check_host(out, job->hw, gpus_at, diag);
}
