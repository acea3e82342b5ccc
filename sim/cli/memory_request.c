/* Options of `flopcast memory` and `flopcast fit`, and the files that they name. */
#include "cli/arguments.h"
#include "cli/given.h"
#include "cli/memory.h"

#include "base/files.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
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
        .doc = "fp32, tf32, bf16_mixed (default), fp16_mixed, fp8_mixed, bf16_master, bf16, fp16 or int8"},
    {.name = "optimizer",
        .key = KEY_OPTIMIZER,
        .arg = "O",
        .doc = "adamw (default), adam, sgd, sgd_momentum, lion, adam8bit, adafactor, adafactor_momentum or lomo"},
    {.name = "strategy", .key = KEY_STRATEGY, .arg = "S", .doc = "ddp (default), zero1, zero2, zero3 or fsdp"},
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
        .doc = "none (default), full: blocks are recomputed, or selective: but for every second matrix product and "
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
    {.name = "format", .key = KEY_FORMAT, .arg = "F", .doc = "table (default), csv or json"},
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

/* Options that choose one of several names, or count. */
#define CHOICE(key, name, names, member)                                                                               \
    {                                                                                                                  \
        key, name, names, offsetof(struct footprint_options, member)                                                   \
    }
static const struct choice {
    int key;
    const char *name;
    const char *const *names;
    size_t offset; /* of an int in struct footprint_options */
} choices[] = {
    CHOICE(KEY_DTYPE, "dtype", footprint_dtype_names, dtype),
    CHOICE(KEY_OPTIMIZER, "optimizer", optimizer_names, optimizer),
    CHOICE(KEY_STRATEGY, "strategy", footprint_strategy_names, strategy),
    CHOICE(KEY_CHECKPOINTING, "checkpointing", checkpointing_names, checkpointing),
    CHOICE(KEY_ATTENTION, "attention", attention_kernel_names, attention),
    CHOICE(KEY_LORA_BASE, "lora-base", footprint_base_names, base),
    CHOICE(KEY_CROSS_ENTROPY, "cross-entropy", cross_entropy_names, cross_entropy),
};
static const struct count {
    int key;
    const char *name;
    size_t offset; /* of an int64_t in struct footprint_options */
} counts[] = {
    {KEY_GPUS, "gpus", offsetof(struct footprint_options, gpus)},
    {KEY_BATCH, "micro-batch", offsetof(struct footprint_options, micro_batch)},
    {KEY_SEQ, "seq-len", offsetof(struct footprint_options, seq_len)},
    {KEY_DECODER_SEQ, "decoder-seq-len", offsetof(struct footprint_options, decoder_seq_len)},
    {KEY_LORA, "lora", offsetof(struct footprint_options, lora_rank)},
};

/* Is it one of the options of the tables? */
static bool set_option(struct footprint_options *footprint, int key, const char *text, struct argp_state *state)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].key == key) {
            *(int *)((char *)footprint + choices[i].offset) =
                argument_name(choices[i].name, text, choices[i].names, state);
            return true;
        }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].key == key) {
            *(int64_t *)((char *)footprint + counts[i].offset) =
                argument_count(counts[i].name, text, MOST_COUNT, state);
            return true;
        }
    return false;
}

/* The options make sense together, for `memory` or for `fit`. */
static void check(const struct memory_request *request, struct argp_state *state)
{
    const struct footprint_options *footprint = &request->options;
    if (!request->name)
        argp_error(state, "MODEL is missing: a model file, or a parameter count such as 11.3B");
    if (!footprint->lora_rank && (footprint->base != BASE_HALF || footprint->lora_targets))
        argp_error(state, "--qlora, --lora-base and --lora-targets say more about --lora RANK, which is missing");
    if (footprint->lora_rank > 0 && footprint->optimizer == OPTIMIZER_LOMO)
        argp_error(state, "LOMO is there to train all parameters; use --optimizer adamw with --lora");
    if (footprint->offload && footprint->strategy == FOOTPRINT_DDP)
        argp_error(state, "ddp does not offload; use --offload with --strategy fsdp, zero1, zero2 or zero3");
    if (request->fit && !request->gpu_path && !request->cluster_path)
        argp_error(
            state, "--gpu is missing: a file such as topologies/gpus/a100-sxm4-80gb.yaml, or a size such as 24GiB");
    if (request->overrides.n > 0 && !request->gpu_path && !request->cluster_path)
        argp_error(state, "--set is for one GPU; name it by --gpu");
    if (request->gpu_path && request->cluster_path)
        argp_error(state, "the cluster file of --topology names its GPU; leave --gpu out");
    if (request->fit && footprint->micro_batch)
        argp_error(state, "leave --micro-batch out: it is what is looked for");
    if (request->fit && request->teach)
        argp_error(state, "--teach is for memory: fit has no rules of thumb");
    if (!request->fit && !footprint->micro_batch && footprint->seq_len)
        argp_error(state, "activations need --micro-batch too");
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct memory_request *request = state->input;
    struct footprint_options *footprint = &request->options;
    switch (key) {
    case KEY_FORMAT:
        request->format = argument_name("format", text, memory_format_names, state);
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
        return set_option(footprint, key, text, state) ? 0 : ARGP_ERR_UNKNOWN;
    case KEY_OFFLOAD:
        footprint->offload = true;
        return 0;
    case KEY_LORA_TARGETS:
        footprint->lora_targets = text;
        return 0;
    case KEY_QLORA:
        footprint->base = BASE_NF4;
        footprint->checkpointing = CHECKPOINT_FULL;
        return 0;
    case ARGP_KEY_ARG:
        if (request->name)
            argp_error(state, "one MODEL at a time");
        request->name = text;
        return 0;
    case KEY_TEACH:
        request->teach = true;
        return 0;
    case ARGP_KEY_END:
        check(request, state);
        return 0;
    default:
        return set_option(footprint, key, text, state) ? 0 : ARGP_ERR_UNKNOWN;
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
            all->doc = "ddp, zero1, zero2, zero3 or fsdp (default)";
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
            all->doc = "tokens of a sequence; always needed, but for images";
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
    request->gpus = ARENA_ARRAY(arena, struct hw_gpu, 1);
    request->any_math = true;
    request->gpus[0] = (struct hw_gpu){.name = arena_printf(arena, "a card of %s", request->gpu_path),
        .hbm_capacity = {.value = bytes, .kind = QUANTITY_DATASHEET, .source = "--gpu"},
        .context_bytes = {.value = 0.5e9, .kind = QUANTITY_ASSUMED, .source = assumed}};
    if (request->overrides.n > 0)
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
        status = given_gpu(out, &source, request->overrides.at, request->overrides.n, arena, diag);
    vec_free(&source.keys.list);
    return status;
}

static enum status load_cluster(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    request->cluster_path = files_find(arena, FILES_CLUSTERS, request->cluster_path);
    struct hw_sources sources;
    enum status status = hw_load_from(&request->cluster, &sources, request->cluster_path, arena, diag);
    if (status == STATUS_OK)
        status = given_cluster(&request->cluster, &sources, request->overrides.at, request->overrides.n, arena, diag);
    hw_sources_free(&sources);
    request->n_gpus = 1;
    request->gpus = &request->cluster.gpu;
    request->gpu_path = request->cluster.node.gpu_path;
    return status;
}

static enum status load_known_gpus(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    const char *all = files_own(arena, "topologies/gpus/*.yaml");
    if (request->cluster_path)
        return load_cluster(request, arena, diag);
    if (request->gpu_path)
        request->gpu_path = files_find(arena, FILES_GPUS, request->gpu_path);
    if (request->gpu_path && isdigit((unsigned char)*request->gpu_path) && access(request->gpu_path, F_OK) != 0)
        return make_card(request, arena, diag);
    if (!request->gpu_path && glob(all, 0, NULL, &found) != 0)
        return diag_io(diag, (struct source_pos){.file = all},
            "there is no GPU here; FLOPCAST_DATA names the folder with flopcast's files, --gpu a file of your own");
    request->n_gpus = request->gpu_path ? 1 : (int)found.gl_pathc;
    request->gpus = ARENA_ARRAY(arena, struct hw_gpu, request->n_gpus);
    for (int i = 0; i < request->n_gpus && status == STATUS_OK; i++)
        status = load_gpu(
            request, &request->gpus[i], request->gpu_path ? request->gpu_path : found.gl_pathv[i], arena, diag);
    globfree(&found);
    return status;
}

/* The model's own lengths in place of the user's, or why they do not go together. */
static enum status check_lengths(struct memory_request *request, struct diag *diag)
{
    const struct model_shape *shape = &request->model.shape;
    struct footprint_options *footprint = &request->options;
    struct source_pos at = {.file = request->name};
    bool counted = request->fit || footprint->micro_batch > 0;
    int64_t of_sample = model_sample_tokens(shape);
    if (of_sample > 0 && footprint->seq_len > 0 && footprint->seq_len != of_sample)
        return diag_input(diag, at, "it makes %" PRId64 " tokens of a sample; leave --seq-len out", of_sample);
    if (of_sample > 0 && counted)
        footprint->seq_len = of_sample;
    if (shape->family != MODEL_T5 && footprint->decoder_seq_len > 0)
        return diag_input(diag, at, "it has no second stack; leave --decoder-seq-len out");
    if (shape->family == MODEL_T5 && footprint->decoder_seq_len == 0)
        footprint->decoder_seq_len = footprint->seq_len;
    if (shape->max_positions > 0 && footprint->seq_len > shape->max_positions)
        return diag_input(diag, at,
            "%" PRId64 " tokens, but it has %" PRId64 " learned positions; use at most that many", footprint->seq_len,
            shape->max_positions);
    double bytes = model_largest_tensor_bytes(
        shape, request->fit ? 1 : footprint->micro_batch, footprint->seq_len, footprint->decoder_seq_len);
    if (bytes > MODEL_MAX_TENSOR_BYTES)
        return diag_input(
            diag, at, "a tensor of %.1e bytes; use a smaller --micro-batch or a shorter --seq-len", bytes);
    return STATUS_OK;
}

static enum status check_adapters(const struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct source_pos at = {.file = request->name};
    const char *targets = request->options.lora_targets;
    if (request->options.lora_rank == 0)
        return STATUS_OK;
    if (!request->has_model)
        return diag_input(diag, at,
            "adapters depend on the matrices of the model; give a model file instead of a number of parameters");
    if (!model_takes_adapters(&request->model.shape))
        return diag_input(diag, at, "adapters go beside linear layers, and it has convolutions; leave --lora out");
    const char *unknown = model_unknown_target(&request->model, targets, arena);
    if (unknown)
        return diag_input(diag, at,
            "no linear layer of a block is called '%s', as in --lora-targets %s; see 'flopcast model %s'", unknown,
            targets, request->name);
    return STATUS_OK;
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
    model_build(&request->model, &shape, arena);
    request->params = request->model.params;
    request->has_model = true;
    if (!model_takes_flash(&shape) && request->options.attention == ATTENTION_FLASH)
        return diag_input(diag, at,
            "T5 adds a position bias to its scores and DeepViT mixes heads, which flash attention cannot; use "
            "--attention naive");
    return check_lengths(request, diag);
}

enum dtype memory_math(const struct memory_request *request)
{
    struct strategy_options strategy = footprint_strategy_options(&request->options);
    return request->options.dtype == FOOTPRINT_FP16 ? DTYPE_FP16 : strategy_math(&strategy.train);
}

bool memory_supported(const struct memory_request *request, const struct hw_gpu *gpu)
{
    return request->any_math || request->options.dtype == FOOTPRINT_INT8 || kernel_supported(gpu, memory_math(request));
}

/* The option that stands for a setting of a scenario. */
static struct source_pos option_of(const void *self, const char *path)
{
    static const struct {
        const char *path, *option;
    } names[] = {
        {"train.precision", "--dtype"},
        {"train.optimizer", "--optimizer"},
        {"fsdp.cpu_offload", "--offload"},
        {"deepspeed.zero_optimization.offload_optimizer", "--offload"},
    };
    (void)self;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i].path) == 0)
            return (struct source_pos){.file = names[i].option};
    return (struct source_pos){.file = "--strategy"};
}

/* What `run` would refuse. */
static enum status check_job(const struct memory_request *request, struct diag *diag)
{
    struct strategy_options strategy = footprint_strategy_options(&request->options);
    const struct strategy_places places = {option_of, NULL};
    enum status status =
        request->options.dtype == FOOTPRINT_INT8 ? STATUS_OK : strategy_check_options(&strategy, &places, diag);
    if (status != STATUS_OK || !request->gpu_path || memory_supported(request, &request->gpus[0]))
        return status;
    return strategy_check_precision(&strategy.train, &request->gpus[0], &places, diag);
}

enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    request->params = parameter_count(request->name);
    enum status status = request->params > 0 ? STATUS_OK : load_shape(request, arena, diag);
    if (status != STATUS_OK)
        return status;
    if (request->options.seq_len == 0 && (request->fit || request->options.micro_batch > 0))
        return diag_input(diag, (struct source_pos){.file = request->name},
            "activations depend on the length of a sequence; give --seq-len");
    status = check_adapters(request, arena, diag);
    status = status == STATUS_OK ? load_known_gpus(request, arena, diag) : status;
    return status == STATUS_OK ? check_job(request, diag) : status;
}

void memory_free(struct memory_request *request)
{
    vec_free(&request->overrides);
    arena_release(&request->texts);
}
