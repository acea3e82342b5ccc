/* Options of `flopcast memory`, `flopcast capacity` and `flopcast model`, and the files that they name. */
#include "base/files.h"
#include "options/arguments.h"
#include "options/given.h"
#include "cli/memory.h"
#include "rows/words.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_COUNT = 1 << 24, MOST_RANKS = 4096 };

/* The option that stands for a setting of a scenario, for messages. */
static const struct {
    const char *path, *option;
} settings[] = {
    {"strategy", "--strategy"},
    {"cluster.gpus", "--gpus"},
    {"train.precision", "--precision"},
    {"train.optimizer", "--optimizer"},
    {"train.micro_batch", "--micro-batch"},
    {"train.seq_len", "--seq-len"},
    {"train.decoder_seq_len", "--decoder-seq-len"},
    {"train.attention", "--attention"},
    {"train.lora_rank", "--lora"},
    {"train.lora_targets", "--lora-targets"},
    {"train.qlora", "--qlora"},
    {"parallelism.tensor", "--tensor"},
    {"parallelism.sequence", "--sequence"},
    {"parallelism.context", "--context"},
    {"parallelism.pipeline", "--pipeline"},
    {"parallelism.virtual", "--virtual"},
    {"parallelism.schedule", "--schedule"},
    {"parallelism.expert", "--expert"},
    {"parallelism.expert_tensor", "--expert-tensor"},
    {"train.grad_accum", "--grad-accum"},
    {"megatron.use_distributed_optimizer", "--use-distributed-optimizer"},
    {"megatron.use_megatron_fsdp", "--megatron-fsdp"},
    {"fsdp.cpu_offload", "--offload"},
    {"deepspeed.zero_optimization.offload_optimizer", "--offload"},
};

/* The options of a job make sense together. */
static void check_job(const struct memory_request *request, struct argp_state *state)
{
    const struct memory_job *job = &request->job;
    const struct train_options *train = &job->point.options.strategy.train;
    int64_t gpus = job->point.options.cluster.gpus;
    if (!train->lora_rank && (job->base != MEMORY_BASE_HALF || train->lora_targets))
        argp_error(state, "--qlora, --lora-base and --lora-targets say more about --lora RANK, which is missing");
    if (train->lora_rank > 0 && job->dtype == MEMORY_INT8)
        argp_error(state, "adapters are not trained in int8; of their base it is --lora-base int8");
    if (job->offload && job->strategy < MEMORY_ZERO1)
        argp_error(state, "%s does not offload; use --offload with --strategy fsdp, zero1, zero2 or zero3",
            memory_strategy_names[job->strategy]);
    if (job->strategy == MEMORY_SINGLE_DEVICE && gpus != 1)
        argp_error(state, "single_device is one GPU; use --gpus 1, or --strategy ddp");
    if (!request->capacity && !train->micro_batch && train->seq_len)
        argp_error(state, "activations need --micro-batch too");
}

/* So do those of `memory` or `capacity`. */
static void check(const struct memory_request *request, struct argp_state *state)
{
    if (!request->name)
        argp_error(state, request->model ? "a file is missing"
                                         : "MODEL is missing: a model file, or a parameter count such as 11.3B");
    check_job(request, state);
    if (request->capacity && !request->gpu_path && !request->cluster_path)
        argp_error(
            state, "--gpu is missing: a file such as topologies/gpus/a100-sxm4-80gb.yaml, or a size such as 24GiB");
    if (request->overrides.list.n > 0 && !request->gpu_path && !request->cluster_path)
        argp_error(state, "--set is for one GPU; name it by --gpu or --topology");
    if (request->gpu_path && request->cluster_path)
        argp_error(state, "the cluster file of --topology names its GPU; leave --gpu out");
    if (request->capacity && request->job.point.options.strategy.train.micro_batch)
        argp_error(state, "leave --micro-batch out: it is what is looked for");
    if (request->capacity && request->teach)
        argp_error(state, "--teach is for memory: capacity has no rules of thumb");
    if (request->capacity && request->job.dtype == MEMORY_INT8)
        argp_error(
            state, "nobody trains in int8, of which activations are not known; use bf16_mixed, or --lora-base int8");
}

/* What holds where no option says it. */
static void set_defaults(struct memory_request *request)
{
    struct memory_job *job = &request->job;
    struct config_origins *origins = &job->point.origins;
    int64_t *gpus = &job->point.options.cluster.gpus;
    int64_t copy = memory_copy_gpus(job);
    *gpus = *gpus > 0 || request->capacity ? *gpus : copy;
    if (job->strategy < 0)
        job->strategy = copy > 1            ? MEMORY_MEGATRON
                        : request->capacity ? MEMORY_FSDP
                        : *gpus == 1        ? MEMORY_SINGLE_DEVICE
                                            : MEMORY_DDP;
    job->point.gpus_at.file = "--gpus";
    job->point.file = request->name;
    origins->list.n = origins->list.capacity = (int)(sizeof settings / sizeof *settings);
    origins->list.at = ARENA_ARRAY(&request->overrides.texts, struct config_origin, origins->list.n);
    for (int i = 0; i < origins->list.n; i++)
        origins->list.at[i] =
            (struct config_origin){settings[i].path, {.file = settings[i].option}, ORIGIN_COMMAND_LINE};
}

static void take_checkpointing(void *self, const struct argument *argument)
{
    struct memory_request *request = self;
    if (request->capacity)
        argp_error(argument->state, "leave --checkpointing out: capacity shows all kinds of it");
    request->job.point.options.strategy.train.activation_checkpointing = argument_name(argument, checkpointing_names);
}

/* fsdp1 and fsdp2 are one strategy of these commands, which takes the same memory for states. */
static void take_strategy(void *self, const struct argument *argument)
{
    struct memory_job *job = self;
    const struct strategy_word *word = strategy_word(argument->text);
    bool version = word && strcmp(word->path, "fsdp.version") == 0;
    job->strategy = version ? MEMORY_FSDP : argument_name(argument, memory_strategy_names);
    if (version)
        job->point.options.strategy.fsdp.version = *word->value - '0';
}

static void take_qlora(void *self, const struct argument *argument)
{
    struct memory_job *job = &((struct memory_request *)self)->job;
    (void)argument;
    job->base = MEMORY_BASE_NF4;
    job->point.options.strategy.train.activation_checkpointing = CHECKPOINT_FULL;
}

static void take_megatron_fsdp(void *self, const struct argument *argument)
{
    struct megatron_options *megatron = &((struct memory_request *)self)->job.point.options.strategy.megatron;
    megatron->use_megatron_fsdp = true;
    megatron->data_parallel_sharding_strategy = argument_name(argument, megatron_sharding_names);
}

static void complete(void *self, struct argp_state *state)
{
    struct memory_request *request = self;
    struct model_parallel *parallel = &request->job.point.options.strategy.parallelism.model;
    if (request->model) /* which Megatron-LM demands of experts, and which cuts no parameter */
        parallel->sequence = parallel->tensor > 1 && parallel->expert > 1;
    set_defaults(self);
    check(self, state);
}

#define AT(at) .member = offsetof(struct memory_request, at)
#define PARALLEL(member) AT(job.point.options.strategy.parallelism.member)
#define TRAIN(member) AT(job.point.options.strategy.train.member)
static const struct command_option options[] = {
    {"precision", "P",
        "fp32, tf32, bf16_mixed (default), fp16_mixed, fp8_mixed, fp4_mixed, bf16_master, bf16, fp16 or int8 (which "
        "nobody trains in: states alone are counted)",
        OPTION_NAME, AT(job.dtype), .names = memory_dtype_names},
    {"dtype", "P", "the same as --precision", OPTION_NAME, AT(job.dtype), .names = memory_dtype_names,
        .flags = OPTION_HIDDEN},
    {"optimizer", "O",
        "adamw (default), adam, sgd, sgd_momentum, lion, adam8bit, adafactor, adafactor_momentum, lomo or muon",
        OPTION_NAME, TRAIN(optimizer), .names = optimizer_names},
    {"strategy", "S",
        "single_device (default on one GPU), ddp (default on several), zero1, zero2, zero3, fsdp, fsdp2, or megatron "
        "(default with tensor, pipeline, context or expert parallelism)",
        OPTION_TAKE, AT(job), .take = take_strategy, .names = memory_strategy_names},
    {"gpus", "N", "GPUs that share the job (default 1)", OPTION_COUNT64, AT(job.point.options.cluster.gpus),
        .most = MOST_COUNT},
    {"micro-batch", "B", "sequences on a GPU at once; counts activations", OPTION_COUNT64, TRAIN(micro_batch),
        .most = MOST_COUNT},
    {"seq-len", "T", "tokens of a sequence, as 4096 or 8k", OPTION_COUNT64, TRAIN(seq_len), .most = MOST_COUNT,
        .kilo = 1024},
    {"decoder-seq-len", "T", "T5: tokens of the decoder (default: seq-len)", OPTION_COUNT64, TRAIN(decoder_seq_len),
        .most = MOST_COUNT, .kilo = 1024},
    {"checkpointing", "C",
        "none (default), full: blocks are recomputed, or selective: all except fused attention and every second "
        "product with one matrix without bias",
        OPTION_TAKE, .take = take_checkpointing},
    {"attention", "A", "flash (default from Ampere on, but not in fp32 and tf32) or naive", OPTION_NAME,
        TRAIN(attention), .names = attention_kernel_names},
    {"cross-entropy", "L", "eager (default), fused, te or loss_parallel", OPTION_NAME, TRAIN(cross_entropy),
        .names = cross_entropy_names},
    {"tensor", "N", "GPUs of tensor parallelism", OPTION_COUNT64, PARALLEL(model.tensor), .most = MOST_RANKS},
    {"sequence", NULL, "with --tensor: sequence parallelism", OPTION_FLAG, PARALLEL(model.sequence)},
    {"pipeline", "N", "stages of a pipeline; shows each of them, too", OPTION_COUNT64, PARALLEL(pipeline),
        .most = MOST_RANKS},
    {"virtual", "N", "with --pipeline: model chunks of a stage (interleaved schedule; 2 of those in a V)",
        OPTION_COUNT64, PARALLEL(virtual_stages), .most = MOST_RANKS},
    {"schedule", "S", "with --pipeline: 1F1B (default), GPipe, ZBH1, or in a V ZBVZeroBubble or DualPipeV", OPTION_NAME,
        PARALLEL(schedule), .names = pipeline_schedule_names},
    {"grad-accum", "N", "micro-batches of a step (default 1; two for each stage of a pipeline, which fill it)",
        OPTION_COUNT64, AT(job.grad_accum), .most = MOST_COUNT},
    {"context", "N", "GPUs of context parallelism", OPTION_COUNT64, PARALLEL(model.context), .most = MOST_RANKS},
    {"expert", "N", "GPUs of expert parallelism", OPTION_COUNT64, PARALLEL(model.expert), .most = MOST_RANKS},
    {"expert-tensor", "N", "with --expert: GPUs that share each expert's width, 1 or (default) those of --tensor",
        OPTION_COUNT64, PARALLEL(model.expert_tensor), .most = MOST_RANKS},
    {"use-distributed-optimizer", NULL, "megatron: optimizer state shared out over data parallelism", OPTION_FLAG,
        AT(job.point.options.strategy.megatron.use_distributed_optimizer)},
    {"megatron-fsdp", "S",
        "megatron: Megatron-FSDP, which shards by no_shard, optim, optim_grads or optim_grads_params", OPTION_TAKE,
        .take = take_megatron_fsdp},
    {"offload", NULL, "fsdp: shards and optimizer in host memory; zero1 to zero3: the optimizer", OPTION_FLAG,
        AT(job.offload)},
    {"lora", "RANK", "train FP32 adapters of this rank on a frozen 16-bit model", OPTION_COUNT64, TRAIN(lora_rank),
        .most = MOST_COUNT},
    {"lora-targets", "LIST", "the linear layers that have adapters, as in q_proj,v_proj (default: all of the blocks)",
        OPTION_TEXT, TRAIN(lora_targets)},
    {"lora-base", "B",
        "what the blocks' matrices of the frozen model are in: 16bit (default), int8 or nf4; where they are "
        "quantised, everything else is in FP32, as prepare_model_for_kbit_training leaves it",
        OPTION_NAME, AT(job.base), .names = memory_base_names},
    {"qlora", NULL,
        "with --lora: --lora-base nf4, and full checkpointing, which prepare_model_for_kbit_training turns on",
        OPTION_TAKE, .take = take_qlora},
    {"force", NULL, FORCE_MODEL_HELP, OPTION_FLAG, AT(job.point.options.force)},
    RECORDS_OPTION(struct memory_request),
    {"teach", NULL, "the usual rules of thumb, too, each beside what is modelled", OPTION_FLAG, AT(teach)},
    {"gpu", "FILE|SIZE",
        "GPU file (topologies/gpus/...), or the memory of any card, as 24GiB, instead of all known ones: what "
        "would make it fit, too",
        OPTION_TEXT, AT(gpu_path)},
    {"topology", "FILE",
        "instead of --gpu: the cluster file (topologies/clusters/...) whose GPUs these are (default: one of "
        "flopcast's that has the GPU)",
        OPTION_TEXT, AT(cluster_path)},
    {"set", "KEY=VALUE",
        "with --gpu: a number of that GPU, as gpu.hbm_capacity=96GiB (with --topology also of its cluster)", OPTION_SET,
        AT(overrides)},
    {0},
};

/* `capacity` looks for the micro-batch, shows all kinds of checkpointing in one table, and has another default
 * strategy. */
static void adapt_to_fit(struct command_option *all)
{
    static const struct {
        const char *option, *doc; /* NULL: hidden */
    } of_fit[] = {
        {"micro-batch", NULL},
        {"checkpointing", NULL},
        {"teach", NULL},
        {"strategy",
            "ddp, zero1, zero2, zero3, fsdp (default), fsdp2, megatron (default with tensor, pipeline, context or "
            "expert parallelism), or single_device with --gpus 1"},
        {"gpus", "only for this number of GPUs that share the job (default: 1 to 512)"},
        {"gpu", "GPU file, as topologies/gpus/a100-sxm4-80gb.yaml, or the memory of any card, as 24GiB; needed, "
                "or --topology"},
        {"seq-len", "tokens of a sequence; always needed, except for images"},
        {"qlora", "with --lora: --lora-base nf4"},
    };
    for (; all->name; all++) {
        for (size_t i = 0; i < sizeof of_fit / sizeof *of_fit; i++)
            if (strcmp(all->name, of_fit[i].option) == 0) {
                all->flags |= of_fit[i].doc ? 0 : OPTION_HIDDEN;
                all->doc = of_fit[i].doc;
            }
    }
}

/* `model` has those that cut parameters. */
static void adapt_to_model(struct command_option *all)
{
    static const char *const of_model[] = {
        "tensor", "pipeline", "virtual", "expert", "expert-tensor", "force", "format"};
    struct command_option *kept = all;
    for (; all->name; all++)
        for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
            if (strcmp(all->name, of_model[i]) == 0)
                *kept++ = *all;
    *kept = (struct command_option){0};
}

void memory_parse(struct memory_request *request, int argc, char **argv, const char *doc)
{
    struct command_option own[sizeof options / sizeof *options];
    request->job.point.options = scenario_default();
    request->job.dtype = PRECISION_BF16_MIXED;
    request->job.strategy = -1;
    memcpy(own, options, sizeof own);
    if (request->capacity)
        adapt_to_fit(own);
    if (request->model)
        adapt_to_model(own);
    const char *file = request->model ? "FILE" : "MODEL";
    const struct command_line line = {
        own, file, doc, COMMON_TABLE, file, AT(name), .check = complete, .files = FILES_MODELS};
    command_line_parse(&line, argc, argv, request);
}

/* ---- the GPUs, and the cluster that the job is tried on ---- */

/* A card of which only the memory is known: --gpu 24GiB. It is taken to multiply in every number format. */
static enum status make_card(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    static const char assumed[] = "between the 0.4 and 0.6 GB of the files of topologies/gpus";
    double bytes = 0;
    char why[256];
    if (!quantity_parse(&bytes, request->gpu_path, DIM_BYTES, why, sizeof why) || !(bytes > 0))
        return diag_input(diag, (struct source_pos){.file = "--gpu"},
            "'%s' is no file and no size of memory; write one as 24GiB, or a file as "
            "topologies/gpus/a100-sxm4-80gb.yaml",
            request->gpu_path);
    request->n_gpus = 1;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, 1);
    request->any_math = true;
    request->gpus[0].gpu = (struct hw_gpu){.name = arena_printf(arena, "a card of %s", request->gpu_path),
        .hbm_capacity = {.value = bytes, .kind = QUANTITY_DATASHEET, .source = "--gpu"},
        .context_bytes = {.value = 0.5e9, .kind = QUANTITY_ASSUMED, .source = assumed}};
    if (request->overrides.list.n > 0)
        return diag_input(diag, (struct source_pos){.file = "--set"},
            "of a card of %s only the memory is known; name a GPU file by --gpu", request->gpu_path);
    return STATUS_OK;
}

static enum status load_gpu(
    struct memory_request *request, struct hw_gpu *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct hw_source source;
    enum status status = hw_load_gpu_from(out, &source, path, arena, diag);
    if (status == STATUS_OK)
        status = given_gpu(out, &source, request->overrides.list.at, request->overrides.list.n, arena, diag);
    vec_free(&source.keys.list);
    return status;
}

static enum status load_cluster(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct hw *hw = &request->job.point.hw;
    struct hw_sources sources;
    request->cluster_path = files_find(arena, FILES_CLUSTERS, request->cluster_path);
    enum status status = hw_load_from(hw, &sources, request->cluster_path, arena, diag);
    if (status == STATUS_OK)
        status = given_cluster(hw, &sources, request->overrides.list.at, request->overrides.list.n, arena, diag);
    hw_sources_free(&sources);
    request->n_gpus = 1;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, 1);
    request->gpus[0] = (struct memory_gpu){hw->gpu, hw->node.nccl_bytes.value};
    request->gpu_path = hw->node.gpu_path;
    return status;
}

static enum status load_known_gpus(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    const char *all = files_own(arena, "topologies/gpus/*.yaml");
    if (request->gpu_path)
        request->gpu_path = files_find(arena, FILES_GPUS, request->gpu_path);
    if (request->gpu_path && isdigit((unsigned char)*request->gpu_path) && access(request->gpu_path, F_OK) != 0)
        return make_card(request, arena, diag);
    if (!request->gpu_path && glob(all, 0, NULL, &found) != 0)
        return diag_io(diag, (struct source_pos){.file = all},
            "there is no GPU here; FLOPCAST_DATA names the folder with flopcast's files, --gpu a file of your own");
    request->n_gpus = request->gpu_path ? 1 : (int)found.gl_pathc;
    request->gpus = ARENA_ARRAY(arena, struct memory_gpu, request->n_gpus);
    for (int i = 0; i < request->n_gpus && status == STATUS_OK; i++) {
        const char *path = request->gpu_path ? request->gpu_path : found.gl_pathv[i];
        struct diag unsaid = DIAG_INIT; /* of a list of all, what a file warns of */
        status = load_gpu(request, &request->gpus[i].gpu, path, arena, request->gpu_path ? diag : &unsaid);
        if (status != STATUS_OK && !request->gpu_path)
            status = load_gpu(request, &request->gpus[i].gpu, path, arena, diag);
    }
    globfree(&found);
    return status;
}

struct listed {
    const char *path;
    int named; /* has a short name */
};

/* Whole nodes, or part of one. */
static bool takes(const struct hw *hw, int64_t gpus)
{
    int64_t node = hw_gpus_per_node(hw);
    return gpus <= node || (gpus % node == 0 && gpus / node <= (int64_t)hw->cluster.nodes.value);
}

/* The cluster that a short name means comes before others of its GPU, as `--gpu h100` and `topology: h100` are one. */
static int named_first(const void *a, const void *b)
{
    const struct listed *one = a, *other = b;
    return one->named != other->named ? other->named - one->named : strcmp(one->path, other->path);
}

static struct listed *list_clusters(const glob_t *found, struct arena *arena)
{
    struct listed *all = ARENA_ARRAY(arena, struct listed, (int)found->gl_pathc);
    const struct files_group *clusters = files_groups;
    while (clusters->kind != FILES_CLUSTERS)
        clusters++;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        all[i].path = found->gl_pathv[i];
        all[i].named = *files_aliases(arena, clusters, words_stem(all[i].path, arena)) != '\0';
    }
    if (found->gl_pathc)
        qsort(all, found->gl_pathc, sizeof *all, named_first);
    return all;
}

/* flopcast's clusters, those with a short name first, then by alphabet: each GPU's NCCL buffers as in the first that
 * has it. The one GPU that was named: the job's cluster is the first that has it and, for `capacity`, takes that number
 * of GPUs. */
static bool look_at_clusters(struct memory_request *request, struct arena *arena)
{
    int64_t gpus = request->capacity ? request->job.point.options.cluster.gpus : 1;
    glob_t found = {0};
    bool chosen = false;
    if (glob(files_own(arena, "topologies/clusters/*.yaml"), 0, NULL, &found) != 0)
        return false;
    const struct listed *clusters = list_clusters(&found, arena);
    for (size_t f = 0; f < found.gl_pathc && !chosen; f++) {
        struct diag diag = DIAG_INIT;
        struct hw hw;
        if (hw_load(&hw, clusters[f].path, arena, &diag) != STATUS_OK)
            continue;
        for (int i = 0; i < request->n_gpus; i++) {
            struct memory_gpu *gpu = &request->gpus[i];
            if (strcmp(hw.gpu.name, gpu->gpu.name) != 0)
                continue;
            gpu->nccl_bytes = gpu->nccl_bytes > 0 ? gpu->nccl_bytes : hw.node.nccl_bytes.value;
            chosen = request->gpu_path && takes(&hw, gpus);
            request->job.point.hw = chosen ? hw : request->job.point.hw;
        }
    }
    globfree(&found);
    return chosen;
}

static enum status choose_cluster(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct hw *hw = &request->job.point.hw, h100;
    const char *path = files_own(arena, "topologies/clusters/h100-8x400g.yaml");
    if (hw_load(&h100, path, arena, diag) != STATUS_OK)
        return diag->worst;
    bool known = look_at_clusters(request, arena);
    if (!known)
        *hw = h100;
    for (int i = 0; i < request->n_gpus; i++)
        if (!(request->gpus[i].nccl_bytes > 0))
            request->gpus[i].nccl_bytes = h100.node.nccl_bytes.value;
    const struct hw_gpu *gpu = &request->gpus[0].gpu;
    if (request->any_math) {
        hw->gpu.name = gpu->name;
        hw->gpu.hbm_capacity = gpu->hbm_capacity;
        hw->gpu.context_bytes = gpu->context_bytes;
    } else if (request->gpu_path) { /* a file of one's own may have a known name, and --set another memory */
        hw->gpu = *gpu;
        hw->node.nccl_bytes.value = request->gpus[0].nccl_bytes;
    }
    hw_derive(hw);
    return STATUS_OK;
}

/* The GPUs, and in the job's point the cluster that it is tried on: the one given, or flopcast's first by alphabet that
 * has the GPU and (`capacity`) takes that number of GPUs. A GPU that is in none is tried in the place of an H100; of
 * one of unknown speed only the memory is its own. */
static enum status load_gpus(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct hw_gpu *gpu = &request->job.point.hw.gpu;
    enum status status = request->cluster_path ? load_cluster(request, arena, diag) : STATUS_OK;
    if (status == STATUS_OK && !request->cluster_path)
        status = load_known_gpus(request, arena, diag);
    if (status == STATUS_OK && !request->cluster_path)
        status = choose_cluster(request, arena, diag);
    if (request->job.dtype == MEMORY_FP16) /* whose bytes are those of bf16, by which its plan goes */
        gpu->gemm[DTYPE_BF16] = gpu->gemm[DTYPE_FP16];
    return status;
}

/* ---- the model ---- */

/* "1B", "11.3B", "124M", "7e9": parameters; 0 when text is something else. */
static int64_t parameter_count(const char *text)
{
    static const int64_t FEWEST = 1000, MOST = 1000000000000000; /* 70 is 70B without its letter, not a model */
    int64_t params = 0;
    bool read = count_parse(&params, text, 1000) == COUNT_OK;
    return read && params >= FEWEST && params < MOST ? params : 0;
}

static enum status load_shape(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct model_shape shape = {0};
    struct source_pos at = {.file = request->name};
    int64_t params = 0;
    enum count_text count = count_parse(&params, request->name, 1000);
    request->name = files_find(arena, FILES_MODELS, request->name);
    if (count != COUNT_NO_NUMBER && !request->model && !files_holder(arena, request->name))
        return diag_input(diag, at,
            "a number of parameters is whole, from 1000 to 10^15, as in 11.3B; MODEL may also be a model file, or its "
            "name");
    if (!request->model && !files_holder(arena, request->name)) {
        int reason = errno;
        return diag_input(diag, at,
            "cannot open: %s; MODEL is a model file, as scenarios/models/t5-11b.yaml, its name, as t5-11b, or a number "
            "of parameters, as in 11.3B%s",
            strerror(reason), files_hint(arena, FILES_MODELS, request->name));
    }
    enum status status = model_load(&shape, request->name, request->job.point.options.force, arena, diag);
    if (status != STATUS_OK)
        return status;
    model_build(&request->job.point.model, &shape, arena);
    request->job.params = request->job.point.model.params;
    request->job.has_model = true;
    return STATUS_OK;
}

/* The least that a model can be given: activations are counted where there is a --micro-batch. */
static void take_one_token(struct memory_job *job)
{
    struct train_options *train = &job->point.options.strategy.train;
    const struct model_parallel *parallel = &job->point.options.strategy.parallelism.model;
    train->micro_batch = 1;
    if (model_sample_tokens(&job->point.model.shape) == 0)
        train->seq_len = parallel->sequence ? model_tensor_ranks(parallel) : 1;
}

/* What `run` would refuse, of a job that lies anywhere. `capacity` tries many: the smallest. */
static enum status check_anywhere(struct memory_request *request, struct diag *diag)
{
    struct memory_job job = request->job;
    struct train_options *train = &job.point.options.strategy.train;
    request->hw = job.point.hw;
    memory_unlimited(&job.point.hw);
    if (request->capacity) {
        train->micro_batch = 1;
        job.point.options.cluster.gpus =
            job.point.options.cluster.gpus > 0 ? job.point.options.cluster.gpus : memory_copy_gpus(&job);
    } else if (job.has_model && !job.counted) {
        take_one_token(&job);
    }
    enum status status = memory_check(&job, diag);
    request->job.point.options.strategy.train.attention = train->attention;
    if (!request->capacity)
        request->job = job;
    return status;
}

enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct memory_job *job = &request->job;
    const struct train_options *train = &job->point.options.strategy.train;
    struct source_pos at = {.file = request->name};
    job->params = request->model ? 0 : parameter_count(request->name);
    enum status status = job->params > 0 ? STATUS_OK : load_shape(request, arena, diag);
    if (status != STATUS_OK || (request->model && memory_copy_gpus(job) == 1))
        return status;
    job->counted = job->has_model && train->micro_batch > 0;
    bool of_tokens = !job->has_model || model_sample_tokens(&job->point.model.shape) == 0;
    if (of_tokens && train->seq_len == 0 && (request->capacity || train->micro_batch > 0))
        return diag_input(diag, at, "activations depend on the length of a sequence; give --seq-len");
    if (!job->has_model && train->lora_rank > 0)
        return diag_input(diag, at,
            "adapters depend on the matrices of the model; give a model file instead of a number of parameters");
    if (!job->has_model && memory_copy_gpus(job) > 1)
        return diag_input(diag, at,
            "what tensor, pipeline, context and expert parallelism cut depends on the shape of the model; give a model "
            "file instead of a number of parameters");
    if (!job->has_model && request->capacity)
        return diag_input(diag, at,
            "activations depend on the shape of the model; give a model file instead of a number of parameters");
    status = load_gpus(request, arena, diag);
    return status == STATUS_OK ? check_anywhere(request, diag) : status;
}

void memory_free(struct memory_request *request)
{
    overrides_free(&request->overrides);
}
