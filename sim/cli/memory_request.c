/* Options of `flopcast memory` and `flopcast fit`, and the files that they name. */
#include "cli/arguments.h"
#include "cli/memory.h"
#include "cli/records.h"

#include "base/files.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_DTYPE = 256,
    KEY_TEACH,
    KEY_OPTIMIZER,
    KEY_STRATEGY,
    KEY_GPUS,
    KEY_BATCH,
    KEY_SEQ,
    KEY_DECODER_SEQ,
    KEY_CHECKPOINTING,
    KEY_ATTENTION,
    KEY_FORMAT,
    KEY_GPU,
    KEY_TOPOLOGY,
    KEY_CROSS_ENTROPY,
    KEY_OFFLOAD,
    KEY_LORA,
    KEY_LORA_TARGETS,
    KEY_LORA_BASE,
    KEY_QLORA,
    KEY_SET
};

static const struct argp_option options[] = {
    {.name = "dtype",
        .key = KEY_DTYPE,
        .arg = "D",
        .doc = "fp32, tf32, bf16_mixed (default), fp16_mixed, fp8_mixed, bf16_master, bf16, fp16 or int8 (which nobody "
               "trains in: states alone are counted)"},
    {.name = "optimizer",
        .key = KEY_OPTIMIZER,
        .arg = "O",
        .doc = "adamw (default), adam, sgd, sgd_momentum, lion, adam8bit, adafactor, adafactor_momentum or lomo"},
    {.name = "strategy",
        .key = KEY_STRATEGY,
        .arg = "S",
        .doc = "single_device (default on one GPU), ddp (default on several), zero1, zero2, zero3 or fsdp"},
    {.name = "gpus", .key = KEY_GPUS, .arg = "N", .doc = "GPUs that share the job (default 1)"},
    {.name = "micro-batch", .key = KEY_BATCH, .arg = "B", .doc = "sequences on a GPU at once; counts activations"},
    {.name = "seq-len", .key = KEY_SEQ, .arg = "T", .doc = "tokens of a sequence"},
    {.name = "decoder-seq-len",
        .key = KEY_DECODER_SEQ,
        .arg = "T",
        .doc = "T5: tokens of the decoder (default: seq-len)"},
    {.name = "checkpointing",
        .key = KEY_CHECKPOINTING,
        .arg = "C",
        .doc = "none (default), full: blocks are recomputed, or selective: all except every second GEMM and "
               "fused attention"},
    {.name = "attention", .key = KEY_ATTENTION, .arg = "A", .doc = "naive (default) or flash"},
    {.name = "cross-entropy", .key = KEY_CROSS_ENTROPY, .arg = "L", .doc = "eager (default) or fused"},
    {.name = "offload",
        .key = KEY_OFFLOAD,
        .doc = "fsdp: shards and optimizer in host memory; zero1 to zero3: the optimizer"},
    {.name = "lora",
        .key = KEY_LORA,
        .arg = "RANK",
        .doc = "train FP32 adapters of this rank on a frozen 16-bit model"},
    {.name = "lora-targets",
        .key = KEY_LORA_TARGETS,
        .arg = "LIST",
        .doc = "the linear layers that have adapters, as in q_proj,v_proj (default: all of the blocks)"},
    {.name = "lora-base",
        .key = KEY_LORA_BASE,
        .arg = "B",
        .doc = "what the blocks' matrices of the frozen model are in: 16bit (default), int8 or nf4; where they are "
               "quantised, everything else is in FP32, as prepare_model_for_kbit_training leaves it"},
    {.name = "qlora",
        .key = KEY_QLORA,
        .doc = "with --lora: --lora-base nf4, and full checkpointing, which prepare_model_for_kbit_training turns on"},
    RECORDS_OPTION(KEY_FORMAT),
    {.name = "teach", .key = KEY_TEACH, .doc = "the usual rules of thumb, too, each beside what is modelled"},
    {.name = "gpu",
        .key = KEY_GPU,
        .arg = "FILE|SIZE",
        .doc = "GPU file (topologies/gpus/...), or the memory of any card, as 24GiB, instead of all known ones: what "
               "would make it fit, too"},
    {.name = "topology",
        .key = KEY_TOPOLOGY,
        .arg = "FILE",
        .doc = "instead of --gpu: the cluster file (topologies/clusters/...) whose GPUs these are (default: one of "
               "flopcast's that has the GPU)",
        .flags = OPTION_HIDDEN},
    {.name = "set",
        .key = KEY_SET,
        .arg = "KEY=VALUE",
        .flags = OPTION_KEYS,
        .doc = "with --gpu: a number of that GPU, as gpu.hbm_capacity=96GiB (with --topology also of its cluster)"},
    {0},
};

enum { MOST_COUNT = 1 << 24 };

/* Options that choose one of several names, or count: where they go in struct memory_job. */
static const struct choice {
    int key;
    const char *name;
    const char *const *names;
    size_t offset; /* of an int */
} choices[] = {
    {KEY_DTYPE, "dtype", memory_dtype_names, offsetof(struct memory_job, dtype)},
    {KEY_STRATEGY, "strategy", memory_strategy_names, offsetof(struct memory_job, strategy)},
    {KEY_LORA_BASE, "lora-base", memory_base_names, offsetof(struct memory_job, base)},
#define TRAIN(member) offsetof(struct memory_job, point.options.strategy.train.member)
    {KEY_OPTIMIZER, "optimizer", optimizer_names, TRAIN(optimizer)},
    {KEY_CHECKPOINTING, "checkpointing", checkpointing_names, TRAIN(activation_checkpointing)},
    {KEY_ATTENTION, "attention", attention_kernel_names, TRAIN(attention)},
    {KEY_CROSS_ENTROPY, "cross-entropy", cross_entropy_names, TRAIN(cross_entropy)},
};
static const struct count {
    int key;
    const char *name;
    size_t offset; /* of an int64_t */
} counts[] = {
    {KEY_GPUS, "gpus", offsetof(struct memory_job, point.options.cluster.gpus)},
    {KEY_BATCH, "micro-batch", TRAIN(micro_batch)},
    {KEY_SEQ, "seq-len", TRAIN(seq_len)},
    {KEY_DECODER_SEQ, "decoder-seq-len", TRAIN(decoder_seq_len)},
    {KEY_LORA, "lora", TRAIN(lora_rank)},
#undef TRAIN
};

/* The option that stands for a setting of a scenario, for messages. */
static const struct {
    const char *path, *option;
} settings[] = {
    {"strategy", "--strategy"},
    {"cluster.gpus", "--gpus"},
    {"train.precision", "--dtype"},
    {"train.optimizer", "--optimizer"},
    {"train.micro_batch", "--micro-batch"},
    {"train.seq_len", "--seq-len"},
    {"train.decoder_seq_len", "--decoder-seq-len"},
    {"train.attention", "--attention"},
    {"train.lora_rank", "--lora"},
    {"train.lora_targets", "--lora-targets"},
    {"train.qlora", "--qlora"},
    {"fsdp.cpu_offload", "--offload"},
    {"deepspeed.zero_optimization.offload_optimizer", "--offload"},
};

/* Is it one of the options of the tables? */
static bool set_option(struct memory_job *job, int key, const char *text, struct argp_state *state)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].key == key) {
            *(int *)((char *)job + choices[i].offset) = argument_name(choices[i].name, text, choices[i].names, state);
            return true;
        }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].key == key) {
            *(int64_t *)((char *)job + counts[i].offset) = argument_count(counts[i].name, text, MOST_COUNT, state);
            return true;
        }
    return false;
}

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
    if (!request->fit && !train->micro_batch && train->seq_len)
        argp_error(state, "activations need --micro-batch too");
}

/* So do those of `memory` or `fit`. */
static void check(const struct memory_request *request, struct argp_state *state)
{
    if (!request->name)
        argp_error(state, "MODEL is missing: a model file, or a parameter count such as 11.3B");
    check_job(request, state);
    if (request->fit && !request->gpu_path && !request->cluster_path)
        argp_error(
            state, "--gpu is missing: a file such as topologies/gpus/a100-sxm4-80gb.yaml, or a size such as 24GiB");
    if (request->overrides.n > 0 && !request->gpu_path && !request->cluster_path)
        argp_error(state, "--set is for one GPU; name it by --gpu");
    if (request->gpu_path && request->cluster_path)
        argp_error(state, "the cluster file of --topology names its GPU; leave --gpu out");
    if (request->fit && request->job.point.options.strategy.train.micro_batch)
        argp_error(state, "leave --micro-batch out: it is what is looked for");
    if (request->fit && request->teach)
        argp_error(state, "--teach is for memory: fit has no rules of thumb");
    if (request->fit && request->job.dtype == MEMORY_INT8)
        argp_error(
            state, "nobody trains in int8, of which activations are not known; use bf16_mixed, or --lora-base int8");
}

/* What holds where no option says it. */
static void set_defaults(struct memory_request *request)
{
    struct memory_job *job = &request->job;
    struct config_origins *origins = &job->point.origins;
    int64_t *gpus = &job->point.options.cluster.gpus;
    *gpus = *gpus > 0 || request->fit ? *gpus : 1;
    if (!request->strategy_given)
        job->strategy = request->fit ? MEMORY_FSDP : *gpus == 1 ? MEMORY_SINGLE_DEVICE : MEMORY_DDP;
    job->point.gpus_at.file = "--gpus";
    job->point.file = request->name;
    origins->list.n = origins->list.capacity = (int)(sizeof settings / sizeof *settings);
    origins->list.at = ARENA_ARRAY(&request->texts, struct config_origin, origins->list.n);
    for (int i = 0; i < origins->list.n; i++)
        origins->list.at[i] =
            (struct config_origin){settings[i].path, {.file = settings[i].option}, ORIGIN_COMMAND_LINE};
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct memory_request *request = state->input;
    struct memory_job *job = &request->job;
    switch (key) {
    case KEY_FORMAT:
        request->format = argument_name("format", text, records_format_names, state);
        return 0;
    case KEY_GPU:
        request->gpu_path = text;
        return 0;
    case KEY_SET:
        vec_push(&request->overrides, argument_override("set", text, &request->texts, state));
        return 0;
    case KEY_TOPOLOGY:
        if (!request->fit)
            argp_error(state, "--topology is for fit; the memory of a cluster's GPU is that of --gpu");
        request->cluster_path = text;
        return 0;
    case KEY_CHECKPOINTING:
        if (request->fit)
            argp_error(state, "leave --checkpointing out: fit shows all kinds of it");
        return set_option(job, key, text, state) ? 0 : ARGP_ERR_UNKNOWN;
    case KEY_OFFLOAD:
        job->offload = true;
        return 0;
    case KEY_LORA_TARGETS:
        job->point.options.strategy.train.lora_targets = text;
        return 0;
    case KEY_QLORA:
        job->base = MEMORY_BASE_NF4;
        job->point.options.strategy.train.activation_checkpointing = CHECKPOINT_FULL;
        return 0;
    case ARGP_KEY_ARG:
        if (request->name)
            argp_error(state, "one MODEL at a time");
        request->name = text;
        return 0;
    case KEY_TEACH:
        request->teach = true;
        return 0;
    case KEY_STRATEGY:
        request->strategy_given = true;
        return set_option(job, key, text, state) ? 0 : ARGP_ERR_UNKNOWN;
    case ARGP_KEY_END:
        set_defaults(request);
        check(request, state);
        return 0;
    default:
        return set_option(job, key, text, state) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

/* `fit` looks for the micro-batch, shows all kinds of checkpointing in one table, and has another default strategy. */
static void adapt_to_fit(struct argp_option *all)
{
    for (; all->name; all++)
        switch (all->key) {
        case KEY_BATCH:
        case KEY_CHECKPOINTING:
        case KEY_TEACH:
            all->flags |= OPTION_HIDDEN;
            break;
        case KEY_STRATEGY:
            all->doc = "ddp, zero1, zero2, zero3, fsdp (default), or single_device with --gpus 1";
            break;
        case KEY_GPUS:
            all->doc = "only for this number of GPUs that share the job (default: 1 to 512)";
            break;
        case KEY_GPU:
            all->doc = "GPU file, as topologies/gpus/a100-sxm4-80gb.yaml, or the memory of any card, as 24GiB; needed, "
                       "or --topology";
            break;
        case KEY_TOPOLOGY:
            all->flags &= ~OPTION_HIDDEN;
            break;
        case KEY_SEQ:
            all->doc = "tokens of a sequence; always needed, except for images";
            break;
        case KEY_QLORA:
            all->doc = "with --lora: --lora-base nf4";
            break;
        default:
            break;
        }
}

void memory_parse(struct memory_request *request, int argc, char **argv, const char *doc)
{
    struct argp_option own[sizeof options / sizeof *options];
    request->job.point.options = scenario_default();
    request->job.dtype = PRECISION_BF16_MIXED;
    memcpy(own, options, sizeof own);
    if (request->fit)
        adapt_to_fit(own);
    const struct argp argp = {
        .options = own, .parser = parse, .children = arguments_table, .args_doc = "MODEL", .doc = doc};
    arguments_parse(&argp, argc, argv, 0, request);
}

/* "1B", "11.3B", "124M", "7e9": parameters; 0 when text is something else. */
static int64_t parameter_count(const char *text)
{
    static const double FEWEST = 1e3, MOST = 1e15; /* 70 is 70B without its letter, not a model */
    double params = argument_scaled(text);
    return params >= FEWEST && params < MOST ? llround(params) : 0;
}

static enum status load_shape(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct model_shape shape = {0};
    struct source_pos at = {.file = request->name};
    request->name = files_find(arena, FILES_MODELS, request->name);
    if (access(request->name, R_OK) != 0) {
        int reason = errno;
        return diag_input(diag, at,
            "cannot open: %s; MODEL is a model file, as scenarios/models/t5-11b.yaml, its name, as t5-11b, or a number "
            "of parameters, as in 11.3B%s",
            strerror(reason), files_hint(arena, FILES_MODELS, request->name));
    }
    enum status status = model_load(&shape, request->name, arena, diag);
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
    train->micro_batch = 1;
    if (model_sample_tokens(&job->point.model.shape) == 0)
        train->seq_len = 1;
}

/* What `run` would refuse, of a job that lies anywhere. `fit` tries many: the smallest. */
static enum status check_anywhere(struct memory_request *request, struct diag *diag)
{
    struct memory_job job = request->job;
    struct train_options *train = &job.point.options.strategy.train;
    memory_unlimited(&job.point.hw);
    if (request->fit) {
        train->micro_batch = 1;
        job.point.options.cluster.gpus = job.point.options.cluster.gpus > 0 ? job.point.options.cluster.gpus : 1;
    } else if (job.has_model && !job.counted) {
        take_one_token(&job);
    }
    enum status status = memory_check(&job, diag);
    if (!request->fit)
        request->job = job;
    return status;
}

enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct memory_job *job = &request->job;
    const struct train_options *train = &job->point.options.strategy.train;
    struct source_pos at = {.file = request->name};
    job->params = parameter_count(request->name);
    enum status status = job->params > 0 ? STATUS_OK : load_shape(request, arena, diag);
    if (status != STATUS_OK)
        return status;
    job->counted = job->has_model && train->micro_batch > 0;
    bool of_tokens = !job->has_model || model_sample_tokens(&job->point.model.shape) == 0;
    if (of_tokens && train->seq_len == 0 && (request->fit || train->micro_batch > 0))
        return diag_input(diag, at, "activations depend on the length of a sequence; give --seq-len");
    if (!job->has_model && train->lora_rank > 0)
        return diag_input(diag, at,
            "adapters depend on the matrices of the model; give a model file instead of a number of parameters");
    if (!job->has_model && request->fit)
        return diag_input(diag, at,
            "activations depend on the shape of the model; give a model file instead of a number of parameters");
    status = memory_load_gpus(request, arena, diag);
    return status == STATUS_OK ? check_anywhere(request, diag) : status;
}

void memory_free(struct memory_request *request)
{
    vec_free(&request->overrides);
    arena_release(&request->texts);
}
