/* The options of a command: a table that says for each where its value goes in a struct of the
 * command's. A mistake is a usage error: it is printed, and the program ends. */
#ifndef FLOPCAST_OPTIONS_ARGUMENTS_H
#define FLOPCAST_OPTIONS_ARGUMENTS_H

#include "base/files.h"
#include "base/vec.h"
#include "rows/records.h"
#include "scenario/scenario.h"

#include <argp.h>
#include <stddef.h>

/* What is made of a value, and what stands for it in the command's struct. */
enum option_kind {
    OPTION_TEXT,    /* const char *: as it is */
    OPTION_FLAG,    /* bool: true, as the option takes no value */
    OPTION_COUNT,   /* int from 1 to most */
    OPTION_COUNT64, /* the same as int64_t */
    OPTION_SAMPLES, /* int: how many samples to draw; an interval takes two */
    OPTION_NAME, /* int or an enum: the index in names (NULL-terminated), which a message lists */
    OPTION_SET,  /* struct overrides: KEY=VALUE */
    OPTION_SEED, /* struct overrides: of run.seed */
    OPTION_SETTING, /* struct overrides: of the setting `path`; with commas a list, which is swept
                     */
    OPTION_TAKE     /* anything: what take() makes of it */
};

/* A value on the command line; option: without its dashes. */
struct argument {
    const char *option, *text;
    struct argp_state *state;
};

/* An option may be given once; a list several times. */
struct command_option {
    const char *name, *value; /* value: what stands for it in the help; NULL: it takes none */
    const char *doc;
    enum option_kind kind;
    int most;
    size_t member; /* offset */
    const char *const *names;
    void (*take)(void *member, const struct argument *argument);
    int flags;        /* argp's, and those below */
    char letter;      /* a short name, too; 0: none */
    const char *path; /* OPTION_SETTING: "train.seq_len" */
    const char *text; /* OPTION_SETTING that takes no value: what is set */
    int kilo;         /* OPTION_COUNT, OPTION_COUNT64: what k stands for, as in 8k; 0: 1000 */
};
/* The member of a command's struct that an option or an argument goes to. */
#define AT(type, at) .member = offsetof(struct type, at)
/* OPTION_LIST: may be given again. Of OPTION_KEYS (OPTION_SET is), a list of KEY=VALUE, each key
 * once, or once more after an option with OPTION_NEXT. */
enum { OPTION_LIST = 1 << 16, OPTION_KEYS = 1 << 17, OPTION_NEXT = 1 << 18 };

/* What is given with --set, its texts and the list in the heap until overrides_free(). */
struct overrides {
    VEC(struct scenario_override) list;
    VEC(const char *) names; /* of each what messages call it, "--gpus"; NULL: --set */
    struct arena texts;
};
void overrides_free(struct overrides *overrides);
void overrides_push(struct overrides *overrides, const char *name, struct scenario_override one);
/* scenario_load() with them. */
enum status overrides_load(struct scenario_set *out, const char *path,
    const struct overrides *overrides, struct arena *arena, struct diag *diag);

/* Options beside the command's own: --wide, of one that prints tables (rows/table.h); with --jobs
 * N, of one that simulates several points. */
enum common_options { COMMON_NONE, COMMON_TABLE, COMMON_SIMULATE };

struct command_line {
    const struct command_option *options; /* up to one without a name */
    const char *args_doc, *doc;           /* as argp's */
    enum common_options common;
    /* Where the command takes one argument: what it is, as "scenario", and where it goes, a const
     * char *. */
    const char *one;
    size_t member;
    const char *missing; /* the message where there is no argument; NULL: it may be left out */
    enum files_kind
        files; /* that an argument may be the short name of, for completion; FILES_ANY: of none */
    /* Where it takes another number of them, each. */
    void (*take)(void *command, const struct argument *argument);
    void (*check)(void *command, struct argp_state *state); /* after the last */
};

/* argp_parse() by such a table. An option that is given too often is a usage error; the last one is
 * not taken silently. */
void command_line_parse(const struct command_line *line, int argc, char **argv, void *command);
/* argp_parse() of what takes no options. */
void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/* Settings of a job that are options, too, of every command that takes a scenario or a model, by
 * the names that `capacity` and `memory` have for them: each is --set of its path. In struct
 * overrides `overrides` of type. */
#define SETTING_OPTION(type, name_, value_, path_, doc_)                                           \
    {                                                                                              \
        name_, value_, doc_ " (" path_ ")", OPTION_SETTING, .member = offsetof(type, overrides),   \
                                                            .path = path_                          \
    }
#define JOB_OPTIONS(type)                                                                          \
    SETTING_OPTION(                                                                                \
        type, "strategy", "S", "strategy", "As in fsdp, fsdp2, ddp, zero3 or megatron"),           \
        SETTING_OPTION(type, "global-batch", "N", "train.global_batch",                            \
            "Sequences of all GPUs to an optimizer step"),                                         \
        JOB_SEARCHED_OPTIONS(type)
/* The same of a command that has another --precision. */
#define JOB_MEMORY_OPTIONS(type)                                                                   \
    SETTING_OPTION(                                                                                \
        type, "strategy", "S", "strategy", "As in fsdp, fsdp2, ddp, zero3 or megatron"),           \
        SETTING_OPTION(type, "global-batch", "N", "train.global_batch",                            \
            "Sequences of all GPUs to an optimizer step"),                                         \
        JOB_PLACED_OPTIONS(type)
/* The same of a command that has another --strategy and --global-batch. */
#define JOB_SEARCHED_OPTIONS(type)                                                                 \
    JOB_PLACED_OPTIONS(type),                                                                      \
        SETTING_OPTION(                                                                            \
            type, "precision", "P", "train.precision", "As in bf16_mixed or fp8_mixed"),           \
    {                                                                                              \
        "dtype", "P", "The same as --precision", OPTION_SETTING,                                   \
            .member = offsetof(type, overrides), .path = "train.precision", .flags = OPTION_HIDDEN \
    }
#define JOB_PLACED_OPTIONS(type)                                                                   \
    SETTING_OPTION(type, "topology", "FILE", "cluster.topology",                                   \
        "Cluster file, or its name, as h100-8x400g"),                                              \
        SETTING_OPTION(type, "gpus", "N", "cluster.gpus",                                          \
            "GPUs of the job; 8,64,512 sweeps, here and below"),                                   \
        SETTING_OPTION(                                                                            \
            type, "seq-len", "T", "train.seq_len", "Tokens of a sequence, as 4096 or 8k"),         \
        SETTING_OPTION(                                                                            \
            type, "micro-batch", "B", "train.micro_batch", "Sequences on a GPU at once"),          \
        SETTING_OPTION(type, "checkpointing", "C", "train.activation_checkpointing",               \
            "none, full, selective or core_attn"),                                                 \
        SETTING_OPTION(type, "attention", "A", "train.attention", "naive or flash"),               \
        SETTING_OPTION(type, "optimizer", "O", "train.optimizer", "As in adamw"),                  \
        SETTING_OPTION(                                                                            \
            type, "stack", "FILE", "stack", "Stack profile, or its name, as megatron-core"),       \
        SETTING_OPTION(type, "tensor", "N", "parallelism.tensor", "GPUs of tensor parallelism"),   \
        SETTING_OPTION(                                                                            \
            type, "context", "N", "parallelism.context", "GPUs of context parallelism"),           \
        SETTING_OPTION(type, "pipeline", "N", "parallelism.pipeline", "Stages of a pipeline"),     \
        SETTING_OPTION(type, "virtual", "N", "parallelism.virtual", "Model chunks of a stage"),    \
        SETTING_OPTION(type, "expert", "N", "parallelism.expert", "GPUs of expert parallelism"),   \
        SETTING_OPTION(type, "expert-tensor", "N", "parallelism.expert_tensor",                    \
            "GPUs that share an expert's width"),                                                  \
        SETTING_OPTION(type, "lora", "RANK", "train.lora_rank",                                    \
            "Train adapters of this rank on a frozen model"),                                      \
        {"no-noise", NULL,                                                                         \
            "GPUs, hosts and network without variation: much faster of many GPUs (noise=off)",     \
            OPTION_SETTING, .member = offsetof(type, overrides), .path = "noise", .text = "off"},  \
        SETTING_OPTION(type, "fold", "F", "run.fold",                                              \
            "slowest: with noise the nodes of the slowest GPUs alone, faster"),                    \
        FORCE_MODEL(type)
/* --force of a command that reads a model into struct overrides `overrides` of type. */
#define FORCE_MODEL_HELP                                                                           \
    "Read a config.json of Hugging Face although it has keys that change the model and are not "   \
    "known here"
#define FORCE_MODEL(type)                                                                          \
    {                                                                                              \
        "force", NULL, FORCE_MODEL_HELP " (force=true)", OPTION_SETTING,                           \
            .member = offsetof(type, overrides), .path = "force", .text = "true"                   \
    }

/* --shard I/N: the I-th of N parts, which a job array does. */
struct shard {
    int shard, shards; /* 0: not given, all */
};
void argument_shard(void *shard, const struct argument *argument);
#define SHARD_OPTION(type, what)                                                                   \
    {                                                                                              \
        "shard", "I/N",                                                                            \
            "Do the I-th of N parts of the " what                                                  \
            ", all of about the same cost, as one job of a job array "                             \
            "(Slurm's, a cloud's); `flopcast merge` puts the databases together",                  \
            OPTION_TAKE, .member = offsetof(type, shard), .take = argument_shard                   \
    }

/* --algo, --proto: what NCCL_ALGO and NCCL_PROTO would be set to, in any case; in struct coll_force
 * `force` of type. */
#define FORCE_OPTIONS(type, force)                                                                 \
    {"algo", "NAME", FORCE_ALGORITHMS ", as NCCL_ALGO", OPTION_TAKE,                               \
        .member = offsetof(type, force.algorithm), .take = argument_algorithm},                    \
    {                                                                                              \
        "proto", "NAME", FORCE_PROTOCOLS ", as NCCL_PROTO", OPTION_TAKE,                           \
            .member = offsetof(type, force.protocol), .take = argument_protocol                    \
    }
#define FORCE_ALGORITHMS                                                                           \
    "Ring, Tree, NVLS, NVLSTree, CollNetDirect, CollNetChain, PAT, P2P or Hierarchical"
#define FORCE_PROTOCOLS "LL, LL128 or Simple"
void argument_algorithm(void *algorithm, const struct argument *argument);
void argument_protocol(void *protocol, const struct argument *argument);

/* The option --format of commands that print a table, or this; type has it as `format`. */
#define RECORDS_OPTION(type)                                                                       \
    {                                                                                              \
        "format", "FORMAT", "table (default), csv or json", OPTION_NAME,                           \
            .member = offsetof(type, format), .names = records_format_names                        \
    }

/* --tokens N: from 1, as count_parse() reads it, with its text. */
struct token_count {
    double n; /* 0: not given */
    const char *text;
};
void argument_tokens(void *token_count, const struct argument *argument);

/* Index in names (NULL-terminated), which a message lists. */
int argument_name(const struct argument *argument, const char *const *names);

/* KEY=VALUE; the key is copied into the arena, the value borrowed. */
struct scenario_override argument_override(const struct argument *argument, struct arena *arena);

#endif
