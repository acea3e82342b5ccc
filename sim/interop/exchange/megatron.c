/* Arguments of Megatron-LM (megatron/training/arguments.py) and of Megatron-DeepSpeed beside them.
 *
 * The file is a shell script or a list of arguments (shell.h); launchers take what is theirs
 * (launch.h), all else goes through the rules, names with '_' read as '-'. A script that
 * starts a program of another model is refused, unless --model names one that is trained by the
 * same steps.
 *
 * The functions of megatron_calls settle what several arguments say: precision and optimizer, GPUs,
 * tensor parallelism, recomputation, pipeline, sharding, then either DeepSpeed or Megatron's own
 * defaults, and the model last (megatron_model.c). What is subtle: Megatron-LM has its options off
 * unless they are given, stacks may have them on, so what is not given is put as false
 * (leave_off()). A setting that another one makes void is taken out of the puts again
 * (switch_off()).
 *
 * What one key says stands in scenarios/import/megatron.yaml, with the order of these steps. */
#include "exchange/megatron.h"

#include <stdlib.h>
#include <string.h>

#define PAR "parallelism."
#define MEG "megatron."

/* Python's argparse has one name, torchrun takes both spellings. */
static const char *dashed(const char *name, struct arena *arena)
{
    char *text = arena_strdup(arena, name);
    for (char *at = text; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return text;
}

bool megatron_sets(const struct configuration *config, const char *name)
{
    const struct rule *rule = rules_find(
        &importer_of(config, CONFIGURATION_MEGATRON)->rules, dashed(name, config->arena));
    return rule && rule->kind != RULE_ASIDE;
}

static enum status megatron_take_argument(
    struct configuration *config, const struct shell_argument *argument, struct diag *diag)
{
    struct configuration_setting setting = {.name = dashed(argument->name, config->arena),
        .value = argument->value ? argument->value : "",
        .bare = !argument->value,
        .at = argument->at,
        .value_at = argument->value ? argument->value_at : argument->at};
    setting.unset = argument->unset;
    enum status status = STATUS_OK;
    if (!megatron_launcher(config, &setting, argument))
        status = rules_apply(
            config, &importer_of(config, CONFIGURATION_MEGATRON)->rules, &setting, diag);
    vec_push(&config->settings, setting);
    return status;
}

static bool trains_gpt(const char *program)
{
    return strstr(program, "pretrain_gpt") != NULL;
}

/* A script that names a program of another sort, and none that trains a GPT. */
static enum status check_programs(
    const struct configuration *config, const struct shell_arguments *arguments, struct diag *diag)
{
    const struct importer *importer = importer_of(config, CONFIGURATION_MEGATRON);
    for (int p = 0; p < arguments->programs.n; p++)
        if (trains_gpt(arguments->programs.at[p].name))
            return STATUS_OK;
    bool named = config->given && config->given->model;
    for (int p = 0; p < arguments->programs.n; p++)
        for (int i = 0; i < importer->n_others; i++) {
            const struct shell_program *program = &arguments->programs.at[p];
            const struct importer_other *other = &importer->others[i];
            if (!strstr(program->name, other->name) || (other->model && named))
                continue;
            return other->model ? diag_input(diag, program->at,
                                      "%s trains %s, and a model is made of these arguments for a "
                                      "GPT only; --model %s, say, names it",
                                      program->name, other->what, other->model)
                                : diag_input(diag, program->at,
                                      "%s trains %s; only scripts that train a GPT are read",
                                      program->name, other->what);
        }
    return STATUS_OK;
}

static bool is_python(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

enum status megatron_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct shell_arguments arguments = {0};
    char *text = NULL;
    size_t n = 0;
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    if (status == STATUS_OK && is_python(path))
        status = diag_input(diag, (struct source_pos){.file = path},
            "scripts of Python are not read; `flopcast help settings fsdp` has the settings of "
            "PyTorch's FSDP (fully_shard: fsdp.version: 2), and accelerate's YAML can be imported");
    if (status == STATUS_OK)
        status = shell_read(&arguments, path, text, n, config->arena, diag);
    if (status == STATUS_OK && arguments.list.n == 0)
        status = diag_input(diag, (struct source_pos){path, 1, 1},
            "there are no arguments '--name value'; is it a file of DeepSpeed (.json), accelerate "
            "(.yaml) or torchtitan (.toml)? Then --from says so");
    if (status == STATUS_OK)
        status = check_programs(config, &arguments, diag);
    for (int i = 0; i < arguments.list.n; i++) {
        enum status one = megatron_take_argument(config, &arguments.list.at[i], diag);
        status = status == STATUS_OK ? one : status;
    }
    shell_free(&arguments);
    free(text);
    return status;
}

static void finish_recomputation(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *granularity = setting_find(config, "--recompute-granularity");
    struct configuration_setting *modules = setting_find(config, "--recompute-modules");
    bool selective = granularity && strcmp(granularity->value, "selective") == 0;
    if (modules && selective) { /* core_attn moe -> core_attn,moe */
        char *list = arena_strdup(config->arena, modules->value);
        for (char *at = list; *at; at++)
            *at = *at == ' ' ? ',' : *at;
        put_setting(config, "train.recompute_modules", list, modules);
        setting_aside(granularity, "by --recompute-modules");
    } else if (granularity && !granularity->words) {
        put_setting(config, "train.activation_checkpointing", selective ? "core_attn" : "full",
            granularity);
    }
    setting_aside(modules, "of --recompute-granularity selective");
}

static void finish_pipeline(struct configuration *config, struct diag *diag)
{
    bool deepspeed = setting_find(config, "--deepspeed") != NULL;
    struct configuration_setting *each =
        setting_find(config, "--num-layers-per-virtual-pipeline-stage");
    int64_t per_chunk = setting_int(config, "--num-layers-per-virtual-pipeline-stage", 0, diag);
    int64_t stages = put_int(config, PAR "pipeline", 1);
    const char *text = put_model_find(config, "n_layers");
    int64_t blocks = text ? strtoll(text, NULL, 10) : 0;
    if (each && per_chunk > 0 && stages > 0 && blocks % times(per_chunk, stages) == 0 && blocks > 0)
        put_setting(
            config, PAR "virtual", number_text(config, blocks / times(per_chunk, stages)), each);
    if (stages > 1 && put_int(config, PAR "virtual", 1) == 1 && !deepspeed &&
        !put_find(config, PAR "overlap_p2p_comm"))
        put_assumed(
            config, PAR "overlap_p2p_comm", "false", "Megatron-LM's without virtual stages");
}

/* The setting, where there is one, is put aside with these words, and its key is as if it had not
 * been given. */
static void switch_off(struct configuration *config, struct configuration_setting *setting,
    const char *key, const char *words)
{
    if (!setting || !put_find(config, key))
        return;
    put_remove(config, key);
    *setting = (struct configuration_setting){.name = setting->name,
        .value = "",
        .bare = true,
        .at = setting->at,
        .fate = FATE_ASIDE,
        .words = words};
}

/* Without tensor parallelism Megatron-LM switches sequence parallelism off, and has nothing to
 * overlap (validate_args). */
static void finish_tensor(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *sequence = setting_find(config, "--sequence-parallel");
    struct configuration_setting *overlap = setting_find(config, "--tp-comm-overlap");
    if (put_int(config, PAR "tensor", 1) > 1 ||
        setting_open(config, "--tensor-model-parallel-size"))
        return;
    switch_off(config, sequence, PAR "sequence",
        "Megatron-LM switches it off where tensor parallelism is 1");
    switch_off(config, overlap, PAR "tensor_overlap", "of tensor parallelism, which is 1");
}

/* DeepSpeed's own file, if it is among those that are read. */
static void finish_deepspeed(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *file = setting_find(config, "--deepspeed-config");
    if (file && config->has[CONFIGURATION_DEEPSPEED])
        setting_aside(file, "read");
    setting_refuse(file, "name that file, too");
}

const struct importer_call megatron_calls[] = {{"gpus", megatron_gpus},
    {"allocator", megatron_allocator}, {"tensor", finish_tensor},
    {"recomputation", finish_recomputation}, {"pipeline", finish_pipeline},
    {"deepspeed", finish_deepspeed}, {"model", megatron_model}, {"family", megatron_family},
    {"rotary", megatron_rotary}, {"vocab", megatron_vocab}, {"width", megatron_width},
    {"positions", megatron_positions}, {"window", megatron_window}, {"dropout", megatron_dropout},
    {"experts", megatron_experts}, {0}};
