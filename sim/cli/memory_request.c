/* Options of `flopcast memory` and `flopcast fit`, and the files that they name. */
#include "cli/memory.h"

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
    KEY_CROSS_ENTROPY,
    KEY_OFFLOAD,
    KEY_LORA,
    KEY_LORA_TARGETS,
    KEY_QLORA
};

static const struct argp_option options[] = {
    {.name = "dtype",
        .key = KEY_DTYPE,
        .arg = "D",
        .doc = "fp32, bf16_mixed (default), fp16_mixed, bf16, fp16 or int8"},
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
    {.name = "qlora",
        .key = KEY_QLORA,
        .doc =
            "with --lora: the blocks' matrices in 4 bits, everything else in FP32, as prepare_model_for_kbit_training "
            "leaves it; full checkpointing, as it turns on"},
    {.name = "format", .key = KEY_FORMAT, .arg = "F", .doc = "table (default), csv or json"},
    {.name = "gpu",
        .key = KEY_GPU,
        .arg = "FILE",
        .doc = "GPU file (topologies/gpus/...) instead of all known ones: what would make it fit, too"},
    {0},
};

/* The index of text in names; what names the option in the message. */
static int choice(struct argp_state *state, const char *what, const char *const *names, const char *text)
{
    size_t n = 0;
    for (; names[n]; n++)
        if (strcmp(names[n], text) == 0)
            return (int)n;
    const char *near = nearest_name(text, names, n);
    argp_error(state, "--%s %s is not known; did you mean '%s'?", what, text, near ? near : names[0]);
    return 0;
}

static int64_t count(struct argp_state *state, const char *what, const char *text)
{
    enum { MOST = 1 << 24 };
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > MOST)
        argp_error(state, "--%s %s is not a count; write a whole number from 1 to %d", what, text, MOST);
    return value;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct memory_request *request = state->input;
    struct footprint_options *footprint = &request->options;
    switch (key) {
    case KEY_DTYPE:
        footprint->dtype = choice(state, "dtype", footprint_dtype_names, text);
        return 0;
    case KEY_OPTIMIZER:
        footprint->optimizer = choice(state, "optimizer", optimizer_names, text);
        return 0;
    case KEY_STRATEGY:
        footprint->strategy = choice(state, "strategy", footprint_strategy_names, text);
        return 0;
    case KEY_GPUS:
        footprint->gpus = count(state, "gpus", text);
        return 0;
    case KEY_BATCH:
        footprint->micro_batch = count(state, "micro-batch", text);
        return 0;
    case KEY_SEQ:
        footprint->seq_len = count(state, "seq-len", text);
        return 0;
    case KEY_DECODER_SEQ:
        footprint->decoder_seq_len = count(state, "decoder-seq-len", text);
        return 0;
    case KEY_CHECKPOINTING:
        footprint->checkpointing = choice(state, "checkpointing", checkpointing_names, text);
        return 0;
    case KEY_ATTENTION:
        footprint->attention = choice(state, "attention", attention_kernel_names, text);
        return 0;
    case KEY_FORMAT:
        request->format = choice(state, "format", memory_format_names, text);
        return 0;
    case KEY_GPU:
        request->gpu_path = text;
        return 0;
    case KEY_CROSS_ENTROPY:
        footprint->cross_entropy = choice(state, "cross-entropy", cross_entropy_names, text);
        return 0;
    case KEY_OFFLOAD:
        footprint->offload = true;
        return 0;
    case KEY_LORA:
        footprint->lora_rank = count(state, "lora", text);
        return 0;
    case KEY_LORA_TARGETS:
        footprint->lora_targets = text;
        return 0;
    case KEY_QLORA:
        footprint->qlora = true;
        footprint->checkpointing = CHECKPOINT_FULL;
        return 0;
    case ARGP_KEY_ARG:
        if (request->name)
            argp_error(state, "one MODEL at a time");
        request->name = text;
        return 0;
    case ARGP_KEY_END:
        if (!footprint->lora_rank && (footprint->qlora || footprint->lora_targets))
            argp_error(state, "--qlora and --lora-targets say more about --lora RANK, which is missing");
        if (!request->name)
            argp_error(state, "MODEL is missing: a model file, or a parameter count such as 11.3B");
        if (footprint->micro_batch && !footprint->seq_len)
            argp_error(state, "activations need both --micro-batch and --seq-len");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp memory_argp = {.options = options, .parser = parse};

/* "1B", "11.3B", "124M", "7e9": parameters; 0 when text is something else. */
static int64_t parameter_count(const char *text)
{
    static const struct {
        char suffix;
        double factor;
    } suffixes[] = {{'\0', 1}, {'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}};
    enum { MOST_LOG10 = 15 };
    if (!isdigit((unsigned char)*text) || strpbrk(text, "xX")) /* strtod would read hexadecimal */
        return 0;
    char *end = NULL;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        double params = value * suffixes[i].factor;
        if (toupper((unsigned char)*end) == suffixes[i].suffix && (!*end || !end[1]) && params >= 1 &&
            params < pow(10, MOST_LOG10))
            return llround(params);
    }
    return 0;
}

static enum status load_known_gpus(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    glob_t found = {0};
    enum status status = STATUS_OK;
    if (request->gpu_path || glob(FLOPCAST_SOURCE_DIR "/topologies/gpus/*.yaml", 0, NULL, &found) != 0)
        found.gl_pathc = 0;
    request->n_gpus = request->gpu_path ? 1 : (int)found.gl_pathc;
    request->gpus = ARENA_ARRAY(arena, struct hw_gpu, request->n_gpus);
    for (int i = 0; i < request->n_gpus && status == STATUS_OK; i++)
        status = hw_load_gpu(&request->gpus[i], request->gpu_path ? request->gpu_path : found.gl_pathv[i], arena, diag);
    globfree(&found);
    return status;
}

enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag)
{
    request->params = parameter_count(request->name);
    if (request->params == 0) {
        struct model_shape shape = {0};
        if (access(request->name, R_OK) != 0)
            return diag_input(diag, (struct source_pos){.file = request->name},
                "cannot open: %s; MODEL is a model file or a number of parameters, as in 11.3B", strerror(errno));
        enum status status = model_load(&shape, request->name, arena, diag);
        if (status != STATUS_OK)
            return status;
        model_build(&request->model, &shape, arena);
        request->params = request->model.params;
        request->has_model = true;
        if (shape.family == MODEL_T5 && request->options.decoder_seq_len == 0)
            request->options.decoder_seq_len = request->options.seq_len;
        if (shape.family == MODEL_T5 && request->options.attention == ATTENTION_FLASH)
            return diag_input(diag, (struct source_pos){.file = request->name},
                "T5 adds a position bias to its scores, which flash attention cannot; use --attention naive");
        if (shape.family != MODEL_T5)
            request->options.decoder_seq_len = 0;
        if (shape.max_positions > 0 && request->options.seq_len > shape.max_positions)
            return diag_input(diag, (struct source_pos){.file = request->name},
                "%" PRId64 " tokens, but it has %" PRId64 " learned positions; use at most that many",
                request->options.seq_len, shape.max_positions);
    }
    if (request->options.lora_rank > 0 && !request->has_model)
        return diag_input(diag, (struct source_pos){.file = request->name},
            "adapters depend on the matrices of the model; give a model file instead of a number of parameters");
    if (request->has_model && request->options.lora_rank > 0 &&
        footprint_lora_params(&request->model, 1, request->options.lora_targets) == 0)
        return diag_input(diag, (struct source_pos){.file = request->name},
            "no linear layer of a block is called as in --lora-targets %s; see 'flopcast model %s'",
            request->options.lora_targets, request->name);
    return load_known_gpus(request, arena, diag);
}
