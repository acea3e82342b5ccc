/* Arguments of Megatron-LM (megatron/training/arguments.py) and of Megatron-DeepSpeed beside them. */
#include "exchange/megatron.h"
#include "exchange/shell.h"

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

static enum status take_argument(struct configuration *config, const struct shell_argument *argument, struct diag *diag)
{
    struct configuration_setting setting = {.name = dashed(argument->name, config->arena),
        .value = argument->value ? argument->value : "",
        .bare = !argument->value,
        .at = argument->at,
        .value_at = argument->value ? argument->value_at : argument->at};
    setting.unset = argument->unset;
    enum status status = rules_apply(config, megatron_rules, megatron_n_rules, &setting, diag);
    vec_push(&config->settings, setting);
    return status;
}

/* Programs of Megatron-LM that do not train a GPT: what the arguments would give is another model. A model that is
 * trained by the same steps can be named with --model. */
static const struct {
    const char *part, *what; /* of the program's name */
    const char *model;       /* may be named; NULL: none */
} others[] = {
    {"pretrain_bert", "a BERT", "bert-large"},
    {"pretrain_t5", "a T5", "t5-11b"},
    {"pretrain_vision", "a model of images", "vit_h_14"},
    {"pretrain_vlm", "a model of images and text", NULL},
    {"pretrain_mamba", "a state-space model", NULL},
    {"pretrain_retro", "a RETRO", NULL},
    {"pretrain_ict", "a retriever", NULL},
    {"pretrain_realm", "a retriever", NULL},
    {"train_rl", "a model by reinforcement learning, whose generation of samples is not simulated", NULL},
    {"text_generation", "nothing: it generates text", NULL},
    {"inference", "nothing: it generates text", NULL},
};

static bool trains_gpt(const char *program)
{
    return strstr(program, "pretrain_gpt") != NULL;
}

/* A script that names a program of these, and none that trains a GPT. */
static enum status check_programs(
    const struct configuration *config, const struct shell_arguments *arguments, struct diag *diag)
{
    for (int p = 0; p < arguments->programs.n; p++)
        if (trains_gpt(arguments->programs.at[p].name))
            return STATUS_OK;
    bool named = config->given && config->given->model;
    for (int p = 0; p < arguments->programs.n; p++)
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            const struct shell_program *program = &arguments->programs.at[p];
            if (!strstr(program->name, others[i].part) || (others[i].model && named))
                continue;
            return others[i].model
                       ? diag_input(diag, program->at,
                             "%s trains %s, and a model is made of these arguments for a GPT only; --model %s, say, "
                             "names it",
                             program->name, others[i].what, others[i].model)
                       : diag_input(diag, program->at, "%s trains %s; only scripts that train a GPT are read",
                             program->name, others[i].what);
        }
    return STATUS_OK;
}

enum status megatron_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct shell_arguments arguments = {0};
    char *text = NULL;
    size_t n = 0;
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    if (status == STATUS_OK)
        status = shell_read(&arguments, path, text, n, config->arena, diag);
    if (status == STATUS_OK && arguments.list.n == 0)
        status = diag_input(diag, (struct source_pos){path, 1, 1},
            "there are no arguments '--name value'; is it a file of DeepSpeed (.json), accelerate (.yaml) or "
            "torchtitan (.toml)? Then --from says so");
    if (status == STATUS_OK)
        status = check_programs(config, &arguments, diag);
    for (int i = 0; i < arguments.list.n; i++) {
        enum status one = take_argument(config, &arguments.list.at[i], diag);
        status = status == STATUS_OK ? one : status;
    }
    shell_free(&arguments);
    free(text);
    return status;
}

static void finish_gpus(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *per_node = setting_find(config, "--nproc-per-node");
    struct configuration_setting *nodes = setting_find(config, "--nnodes");
    int64_t gpus = times(setting_int(config, "--nproc-per-node", 0, diag), setting_int(config, "--nnodes", 1, diag));
    bool known = per_node && !setting_open(config, "--nnodes") && (!nodes || nodes->words == NULL);
    if (gpus > 0 && known && !put_find(config, "cluster.gpus"))
        put_setting(config, "cluster.gpus", number_text(config, gpus), per_node);
    if (!known)
        setting_aside(per_node, "it is multiplied by --nnodes, which is not known");
    if (known) {
        setting_aside(per_node, "--gpus says it");
        setting_aside(nodes, "with --nproc-per-node");
    }
}

static void finish_recomputation(struct configuration *config)
{
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
        put_setting(config, "train.activation_checkpointing", selective ? "core_attn" : "full", granularity);
    }
    setting_aside(modules, "of --recompute-granularity selective");
}

static void finish_pipeline(struct configuration *config, bool deepspeed, struct diag *diag)
{
    struct configuration_setting *each = setting_find(config, "--num-layers-per-virtual-pipeline-stage");
    int64_t per_chunk = setting_int(config, "--num-layers-per-virtual-pipeline-stage", 0, diag);
    int64_t stages = put_int(config, PAR "pipeline", 1);
    const char *text = put_model_find(config, "n_layers");
    int64_t blocks = text ? strtoll(text, NULL, 10) : 0;
    if (each && per_chunk > 0 && stages > 0 && blocks % times(per_chunk, stages) == 0 && blocks > 0)
        put_setting(config, PAR "virtual", number_text(config, blocks / times(per_chunk, stages)), each);
    if (stages > 1 && put_int(config, PAR "virtual", 1) == 1 && !deepspeed && !put_find(config, PAR "overlap_p2p_comm"))
        put_assumed(config, PAR "overlap_p2p_comm", "false", "Megatron-LM's without virtual stages");
}

/* The setting, where there is one, is put aside with these words, and its key is as if it had not been given. */
static void switch_off(
    struct configuration *config, struct configuration_setting *setting, const char *key, const char *words)
{
    if (!setting || !put_find(config, key))
        return;
    put_remove(config, key);
    *setting = (struct configuration_setting){
        .name = setting->name, .value = "", .bare = true, .at = setting->at, .fate = FATE_ASIDE, .words = words};
}

/* Without tensor parallelism Megatron-LM switches sequence parallelism off, and has nothing to overlap
 * (validate_args). */
static void finish_tensor(struct configuration *config)
{
    struct configuration_setting *sequence = setting_find(config, "--sequence-parallel");
    struct configuration_setting *overlap = setting_find(config, "--tp-comm-overlap");
    if (put_int(config, PAR "tensor", 1) > 1 || setting_open(config, "--tensor-model-parallel-size"))
        return;
    switch_off(config, sequence, PAR "sequence", "Megatron-LM switches it off where tensor parallelism is 1");
    switch_off(config, overlap, PAR "tensor_overlap", "of tensor parallelism, which is 1");
}

/* Options of the softmax between two GEMMs, which fused attention does not have; its softmax is in FP32. */
static void finish_softmax(struct configuration *config, bool gpt)
{
    struct configuration_setting *unfused = setting_find(config, "--no-masked-softmax-fusion");
    struct configuration_setting *wide = setting_find(config, "--attention-softmax-in-fp32");
    const char *attention = put_find(config, "train.attention");
    bool naive = attention && strcmp(attention, "naive") == 0;
    if (!naive || !gpt)
        setting_aside(unfused, naive ? "simulated so" : "of attention in separate kernels");
    if (naive && gpt && unfused)
        setting_refuse(wide, "without fusion the softmax is simulated in the format of training");
    else
        setting_aside(wide, "flash attention and the fused softmax have it in FP32");
}

/* What Megatron-LM does only when it is asked to; stacks have it the other way. */
static void finish_switches(struct configuration *config)
{
    static const char *const off[] = {
        MEG "use_distributed_optimizer", MEG "overlap_grad_reduce", MEG "overlap_param_gather"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (!put_find(config, off[i]))
            put_assumed(config, off[i], "false", NULL);
    const char *precision = put_find(config, "train.precision");
    if (!put_find(config, MEG "grad_reduce_in_fp32"))
        put_assumed(config, MEG "grad_reduce_in_fp32", strcmp(precision, "bf16_mixed") == 0 ? "true" : "false",
            "Megatron-LM's default with this precision");
    if (!put_find(config, "train.attention") && setting_find(config, "--checkpoint-activations"))
        put_assumed(config, "train.attention", "naive", "as when --checkpoint-activations was an argument");
}

void megatron_finish(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *deepspeed = setting_find(config, "--deepspeed");
    struct configuration_setting *file = setting_find(config, "--deepspeed-config");
    struct configuration_setting *fp8 = setting_find(config, "--fp8-format");
    if (fp8 && !fp8->words)
        put_setting(config, "train.precision", "fp8_mixed", fp8);
    if (!put_find(config, "train.precision"))
        put_assumed(config, "train.precision", "fp32", "neither --bf16 nor --fp16 is given");
    if (!put_find(config, "train.optimizer"))
        put_assumed(config, "train.optimizer", "adam", "Megatron-LM's default");
    if (setting_is(config, "--optimizer", "dist_muon"))
        put_setting(config, "train.muon_distributed", "true", setting_find(config, "--optimizer"));
    finish_gpus(config, diag);
    finish_tensor(config);
    finish_recomputation(config);
    finish_pipeline(config, deepspeed != NULL, diag);
    if (deepspeed) {
        put_setting(config, "strategy", "deepspeed", deepspeed);
        put_assumed(config, "stack", "megatron-deepspeed-2022", "the version is not in the file");
        if (!put_find(config, "deepspeed.zero_optimization.stage"))
            put_assumed(config, "deepspeed.zero_optimization.stage", "1", "Megatron-DeepSpeed's default");
    } else {
        bool old = setting_find(config, "--checkpoint-activations") || setting_find(config, "--DDP-impl");
        put_assumed(config, "strategy", "megatron", NULL);
        put_assumed(config, "stack", old ? "megatron-2021" : "megatron-core", "the version is not in the file");
        finish_switches(config);
    }
    struct configuration_setting *pipeline = setting_find(config, "--no-pipeline-parallel");
    setting_aside(pipeline, "one stage");
    struct configuration_setting *partition = setting_find(config, "--partition-activations");
    if (put_int(config, PAR "tensor", 1) == 1)
        setting_aside(partition, "of tensor parallelism");
    setting_refuse(partition, "each rank of tensor parallelism keeps whole inputs of blocks");
    if (file && config->has[CONFIGURATION_DEEPSPEED])
        setting_aside(file, "read");
    setting_refuse(file, "name that file, too");
    megatron_model(config, diag);
    const char *family = put_model_find(config, "family");
    finish_softmax(config, family && strcmp(family, "gpt") == 0);
}
