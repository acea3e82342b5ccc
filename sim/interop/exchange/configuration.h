/* Configurations of other frameworks as a flopcast scenario:
 *
 *   deepspeed   DeepSpeed's JSON (deepspeed/runtime/config.py, runtime/zero/config.py)
 *   accelerate  Hugging Face accelerate's YAML: FSDP and DeepSpeed plugins, a deepspeed_config_file
 *               that it names
 *   torchtitan  torchtitan's TOML (torchtitan/config/job_config.py, and the names of 2024)
 *   megatron    arguments of Megatron-LM and Megatron-DeepSpeed (megatron/training/arguments.py): a
 *               shell script that defines them, or a file of arguments; with the model that they
 *               describe. What stands before the program is its launchers' (exchange/launch.h): of
 *               numactl, srun, mpirun, nsys, containers, torchrun, deepspeed, accelerate and of the
 *               script's head for Slurm, PBS or LSF only the numbers of nodes, processes and GPUs
 *               count. PYTORCH_CUDA_ALLOC_CONF becomes settings of run
 *   automodel   NeMo AutoModel's recipes in YAML
 *   primus      Primus' YAML (AMD) of Megatron-LM and torchtitan
 *
 * A comment "# flopcast: KEY=VALUE" at the beginning of a line is a setting of the scenario, which
 * holds over the file's own (exchange/emit.h writes such for what a trainer has no option for); the
 * command line holds over both.
 *
 * A variable with a default, ${NAME:-8192}, has it. A model that is named is flopcast's of that
 * name, or is missing, by its name.
 *
 * Each setting has one of four fates: it became settings of the scenario; it is left aside, as it
 * changes neither speed nor memory (learning rates, paths, logs), or hardly, which is then an
 * assumption; its value is left to others ("auto", a variable that the script does not set), so
 * that the user must say it; or it is not understood, with the reason where there is one: such a
 * setting may change speed or memory, and is an assumption of the scenario, too. What a framework
 * does where its file is silent is its default and an assumption of the scenario, not flopcast's
 * default. Files of jobs of another sort (images, state-space models, text generation,
 * reinforcement learning) are refused, and so are those of other programs (axolotl, LLaMA-Factory
 * ..., scripts of Python), by name.
 *
 * Ignored: which branch of a script runs (all of it is read, the last value holds), what a script
 * takes from its environment or from other programs. */
#ifndef FLOPCAST_EXCHANGE_CONFIGURATION_H
#define FLOPCAST_EXCHANGE_CONFIGURATION_H

#include "config/config.h"
#include "scenario/scenario.h"

#include <stdbool.h>
#include <stdio.h>

enum configuration_format {
    CONFIGURATION_DEEPSPEED,
    CONFIGURATION_ACCELERATE,
    CONFIGURATION_TORCHTITAN,
    CONFIGURATION_MEGATRON,
    CONFIGURATION_AUTOMODEL,
    CONFIGURATION_PRIMUS,
    CONFIGURATION_FORMAT_COUNT
};
extern const char
    *const configuration_format_names[CONFIGURATION_FORMAT_COUNT + 1]; /* "deepspeed", ..., NULL */

/* FATE_OPEN: the file leaves its value to others. */
enum configuration_fate { FATE_NOT_UNDERSTOOD, FATE_TAKEN, FATE_ASIDE, FATE_OPEN };

/* A setting as its file has it. */
struct configuration_setting {
    const char *name;     /* dotted: "zero_optimization.stage"; of arguments with their dashes */
    const char *value;    /* a list: "[1,2]"; of an argument without one "" */
    bool bare;            /* an argument without a value */
    const char *unset;    /* a variable in its value that the file does not set; NULL: none */
    const char *key;      /* of the scenario, which it would set; NULL: several or none */
    struct source_pos at; /* of the name */
    struct source_pos value_at;
    enum configuration_fate fate;
    const char *words; /* taken: what it became; not understood: why, or NULL */
};

/* A setting of the scenario, or of the model that is written beside it, by its path and as YAML. */
struct configuration_put {
    const char *path, *text;
    const char *from;                              /* "ds_config.json:3:5 train_batch_size" */
    enum { PUT_FILES, PUT_COMMENT, PUT_GIVEN } by; /* of a path the highest holds */
};

/* What the trainer has no option for, in a comment of its file that begins a line: "# flopcast:
 * KEY=VALUE". */
struct configuration_said {
    const char *key, *value;
    const char *from; /* "llama.toml:2:1 # flopcast" */
};

/* What the user adds to the files; NULL, 0: nothing. */
struct configuration_given {
    const char *name, *model, *topology, *stack;
    int gpus;
    const struct scenario_override *sets;
    int n_sets;
};

struct importer;
struct configuration {
    struct arena *arena;
    const struct importer *importers[CONFIGURATION_FORMAT_COUNT]; /* as exchange/rules.h has them;
                                                                     NULL: not read yet */
    const struct configuration_given *given; /* may be set before files are read: a model that is
                                              * named is not asked of them; NULL: not known yet */
    bool has[CONFIGURATION_FORMAT_COUNT];
    VEC(struct configuration_setting) settings;
    VEC(struct configuration_put) puts, model; /* each path once */
    VEC(struct configuration_said) said;
    VEC(const char *) assumptions; /* sentences */
    VEC(const char *)
    missing; /* what neither the files nor the user gave: "cluster.gpus: --gpus N" */
};

/* By the file's ending, .json, .yaml or .yml, .toml; all else is megatron. YAML that has the keys
 * of automodel or primus is read as theirs where accelerate is said. */
enum configuration_format configuration_format_of(const char *path);

/* Adds a file's settings. Texts live in out->arena, which the caller sets. All mistakes are
 * reported. */
enum status configuration_read(struct configuration *out, const char *path,
    enum configuration_format format, struct diag *diag);

/* Works out what follows from several settings, and what is missing. Call once, when all files are
 * read. */
enum status configuration_finish(
    struct configuration *config, const struct configuration_given *given, struct diag *diag);

int configuration_count(const struct configuration *config, enum configuration_fate fate);

/* The scenario as YAML, each line with where it comes from. model_file: how it names the model that
 * configuration_write_model() writes; NULL: there is none. */
void configuration_write(FILE *out, const struct configuration *config, const char *model_file);
/* The model that Megatron's arguments describe. */
bool configuration_has_model(const struct configuration *config);
void configuration_write_model(FILE *out, const struct configuration *config, const char *name);

void configuration_free(struct configuration *config);

#endif
