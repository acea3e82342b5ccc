/* Primus, AMD's front of Megatron-LM and torchtitan (github AMD-AGI/Primus,
 * examples/<framework>/configs): a module names the framework, a file of defaults
 * (pre_trainer.yaml), a file of the model, and overrides, which are the framework's own settings:
 * Megatron's as keys of its namespace, torchtitan's as its sections. ${NAME:default} is what the
 * environment may say otherwise. The defaults of pre_trainer.yaml are recalled. Which key becomes
 * what: scenarios/import/primus.yaml. */
#include "exchange/megatron.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

static const char *argument_of(
    const struct configuration *config, const char *key, const char *before)
{
    const struct importer *importer = importer_of(config, CONFIGURATION_PRIMUS);
    for (int i = 0; i < importer->n_renamed; i++)
        key = strcmp(importer->renamed[i].key, key) == 0 ? importer->renamed[i].value : key;
    char *text = arena_printf(config->arena, "--%s%s", before, key);
    for (char *at = text; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return text;
}

static bool is_word(const char *value, const char *one, const char *other)
{
    return strcmp(value, one) == 0 || strcmp(value, other) == 0;
}

/* A key of the namespace: a switch is an argument that is there or not, or, where it is on by
 * default, one that switches it off. */
static enum status apply_argument(
    struct configuration *config, struct configuration_setting *setting, struct diag *diag)
{
    const char *key =
        setting->name; /* kept of what says nothing, so that no argument is found there */
    const struct rules *rules = &importer_of(config, CONFIGURATION_MEGATRON)->rules;
    const char *off_name = argument_of(config, key, "no_");
    const struct rule *off_rule = rules_find(rules, off_name);
    const char *name = argument_of(config, key, "");
    const struct rule *rule = rules_find(rules, name);
    bool flag = rule && rule->kind == RULE_SET;
    bool on = is_word(setting->value, "true", "True") || (flag && strcmp(setting->value, "1") == 0);
    bool off =
        is_word(setting->value, "false", "False") || (flag && strcmp(setting->value, "0") == 0);
    if (is_word(setting->value, "null", "None") && !setting->unset) {
        setting_aside(setting, "null: Megatron-LM's default");
        return STATUS_OK;
    }
    if (off && !off_rule) {
        setting_aside(setting, "off");
        return STATUS_OK;
    }
    if (on && !rule && off_rule) {
        setting_aside(setting, "Megatron-LM's default");
        return STATUS_OK;
    }
    setting->name = off ? off_name : name;
    if (on || off) {
        setting->bare = true;
        setting->value = "";
    }
    return rules_apply(config, rules, setting, diag);
}

struct overrides {
    struct configuration *config;
    bool titan;
};

static enum status primus_apply(struct configuration *config, struct configuration_setting *setting,
    void *self, struct diag *diag)
{
    const struct overrides *of = self;
    const struct importer *importer = importer_of(config, CONFIGURATION_PRIMUS);
    const struct rules *own = of->titan ? &importer->torchtitan : &importer->megatron;
    if (rules_find(&importer->rules, setting->name))
        return rules_apply(config, &importer->rules, setting, diag);
    if (rules_find(own, setting->name))
        return rules_apply(config, own, setting, diag);
    return of->titan ? rules_apply(config, &importer_of(config, CONFIGURATION_TORCHTITAN)->rules,
                           setting, diag)
                     : apply_argument(config, setting, diag);
}

static enum status read_module(
    struct configuration *config, struct config_node module, const char *path, struct diag *diag)
{
    struct config_node framework = config_find(module, "framework"),
                       given = config_find(module, "overrides");
    const char *name = config_text(framework);
    struct overrides of = {config, strcmp(name, "torchtitan") == 0};
    struct source_pos at = config_pos(module);
    at.file = path;
    if (!of.titan && strcmp(name, "megatron") != 0) {
        if (framework.doc)
            at = config_pos(framework), at.file = path;
        return diag_input(diag, at,
            "modules of the framework '%.40s' are not read; those of megatron and torchtitan are",
            name);
    }
    enum status status = rules_visit(config, module, path, "overrides", primus_apply, &of, diag);
    if (status || config_kind(given) != CONFIG_MAPPING)
        return status;
    return rules_visit(config, given, path, NULL, primus_apply, &of, diag);
}

enum status primus_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct config_doc *doc = NULL;
    struct overrides names = {config, false};
    enum status status = config_load(&doc, path, diag);
    struct config_node modules =
        status ? (struct config_node){0} : config_find(config_root(doc), "modules");
    path = arena_strdup(config->arena, path);
    if (!status && (config_kind(modules) != CONFIG_MAPPING || config_count(modules) == 0))
        status = diag_input(diag, (struct source_pos){path, 1, 1},
            "Primus' configuration has 'modules', and of these pre_trainer, say");
    if (!status)
        status = rules_visit(config, config_root(doc), path, "modules", primus_apply, &names, diag);
    if (!status && config_count(modules) != 1)
        status = diag_input(diag, (struct source_pos){path, 1, 1},
            "one module is read, as pre_trainer; here are %d", config_count(modules));
    if (!status)
        status = read_module(config, config_item(modules, 0), path, diag);
    config_free(doc);
    return status;
}

/* ---- what follows from several settings ---- */

/* Sizes among the overrides are those of the model that is named, or of another one. */
static void check_sizes(struct configuration *config, struct diag *diag)
{
    struct model_shape shape = {0};
    if (!model_named(config, &shape))
        return;
    const struct {
        const char *name;
        int64_t size;
    } sizes[] = {{"--num-layers", shape.n_layers}, {"--hidden-size", shape.d_model},
        {"--ffn-hidden-size", shape.d_ff}, {"--num-attention-heads", shape.n_heads},
        {"--num-query-groups", shape.n_kv_heads}, {"--num-experts", shape.moe.experts}};
    config->model.n = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct configuration_setting *setting = setting_find(config, sizes[i].name);
        if (!setting)
            continue;
        bool same = setting_int(config, setting->name, sizes[i].size, diag) == sizes[i].size;
        setting->key = NULL;
        setting->fate = same ? FATE_ASIDE : FATE_NOT_UNDERSTOOD;
        setting->words = same ? "of the model, which is named"
                              : arena_printf(config->arena,
                                    "the model, which is named, has %lld; --model takes another",
                                    (long long)sizes[i].size);
    }
}

static void primus_finish_model(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *model = setting_find(config, "model");
    const struct importer *importer = importer_of(config, CONFIGURATION_PRIMUS);
    for (int i = 0; model && !put_find(config, "model") && i < importer->n_others; i++) {
        const struct importer_other *other = &importer->others[i];
        if (strncmp(model->value, other->name, strlen(other->name)) == 0)
            diag_input(diag, model->value_at,
                "model: %s is %s, which is not simulated; --model NAME takes another one",
                model->value, other->what);
    }
    if (model)
        put_called(config, model->value, model);
    check_sizes(config, diag);
}

/* "Et*7|t*8|t*8|t*7,L": an embedding, blocks, a head with its loss, of each chunk. As many blocks
 * as it says are simulated at the ends, as equal numbers as can be between them. */
static void finish_layout(struct configuration *config)
{
    struct configuration_setting *layout = setting_find(config, "pipeline_model_parallel_layout");
    int64_t stages = put_int(config, "parallelism.pipeline", 1), chunks = 0, first = 0, last = 0,
            uneven = 0, before = 0;
    if (!layout || value_is_off(layout->value) || stages < 2) {
        setting_aside(layout, "of pipelines");
        return;
    }
    for (const char *at = layout->value; *at; at += *at == '|') {
        const char *blocks = at + strcspn(at, "t|");
        last = *blocks != 't' ? 0 : blocks[1] == '*' ? strtoll(blocks + 2, NULL, 10) : 1;
        uneven += chunks > 1 && last != before;
        before = last;
        first = chunks++ == 0 ? last : first;
        at += strcspn(at, "|");
    }
    uneven -= uneven > 0 && chunks > 2; /* the last one */
    if (chunks % stages || chunks < stages) {
        setting_refuse(layout, "a layout has as many parts for each stage");
        return;
    }
    if (chunks > stages)
        put_setting(config, "parallelism.virtual", number_text(config, chunks / stages), layout);
    if (uneven == 0 && chunks == stages) {
        put_setting(config, "parallelism.first_layers", number_text(config, first), layout);
        put_setting(config, "parallelism.last_layers", number_text(config, last), layout);
    } else {
        put_setting(config, "parallelism.partition_method", "weighted", layout);
        assume(config, "pipeline_model_parallel_layout: stages are simulated as equal as can be");
    }
}

/* Numbers of blocks that do not divide: Primus gives the rest to some of the stages. */
static void primus_finish_stages(struct configuration *config)
{
    int64_t blocks = model_blocks_named(config);
    int64_t chunks = times(
        put_int(config, "parallelism.pipeline", 1), put_int(config, "parallelism.virtual", 1));
    bool said = put_find(config, "parallelism.first_layers") ||
                put_find(config, "parallelism.last_layers") ||
                put_find(config, "parallelism.partition_method");
    if (!said && blocks > 0 && chunks > 1 && blocks % chunks)
        put_assumed(config, "parallelism.partition_method", "weighted",
            "as the blocks do not divide over the stages");
}

static void finish_recomputed(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *number = setting_find(config, "recompute_num_layers");
    struct configuration_setting *granularity = setting_find(config, "--recompute-granularity");
    int64_t n =
        number && !value_is_off(number->value) ? setting_int(config, number->name, 0, diag) : 0;
    bool full = granularity && strcmp(granularity->value, "full") == 0;
    if (n > 0 && full)
        put_setting(config, "train.recompute_num_layers", number_text(config, n), number);
    else if (number && full && strcmp(number->value, "0") == 0)
        setting_aside(granularity, "of no blocks: recompute_num_layers is 0"),
            put_remove(config, "train.recompute_method");
    setting_aside(number, "of full recomputation; null and 0: none is named");
}

static void finish_layers(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *ids = setting_find(config, "recompute_layer_ids");
    struct configuration_setting *chunks =
        setting_find(config, "virtual_pipeline_model_parallel_size");
    if (chunks && put_int(config, "parallelism.pipeline", 1) > 1 && !value_is_off(chunks->value))
        put_setting(config, "parallelism.virtual",
            number_text(config, setting_int(config, chunks->name, 1, diag)), chunks);
    setting_aside(chunks, "of pipelines");
    setting_refuse(ids, "the first recompute_num_layers of a stage are recomputed");
    finish_layout(config);
    finish_recomputed(config, diag);
    primus_finish_stages(config);
}

/* PyTorch's fully_shard around Megatron's model, in place of Megatron's data parallelism. */
static void finish_fsdp2(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *fsdp2 = setting_find(config, "use_torch_fsdp2");
    if (!fsdp2 || strcmp(fsdp2->value, "true") != 0) {
        setting_aside(fsdp2, "off");
        return;
    }
    for (int i = config->puts.n - 1; i >= 0; i--)
        if (strncmp(config->puts.at[i].path, "megatron.", strlen("megatron.")) == 0)
            put_remove(config, config->puts.at[i].path);
    for (int i = 0; i < config->settings.n; i++) {
        struct configuration_setting *setting = &config->settings.at[i];
        if (setting->key && strncmp(setting->key, "megatron.", strlen("megatron.")) == 0)
            setting->fate = FATE_ASIDE, setting->words = "of Megatron-LM's own data parallelism";
    }
    put_setting(config, "strategy", "fsdp", fsdp2);
    put_assumed(config, "fsdp.version", "2", NULL);
    put_assumed(config, "stack", "pytorch-2.11", "whose fully_shard it is");
    const char *precision = put_find(config, "train.precision");
    if (precision && strcmp(precision, "fp8_mixed") == 0)
        put_assumed(
            config, "train.fp8_recipe", "tensorwise", "as FSDP's weights are cast by each layer");
}

/* No file says how many: one node, or as many as hold a copy of the model. */
static void primus_finish_gpus(struct configuration *config, struct diag *diag)
{
    (void)diag;
    enum { A_NODE = 8 };
    int64_t copy = model_ranks(config), stages = put_int(config, "parallelism.pipeline", 1);
    int64_t experts = times(put_int(config, "parallelism.expert", 1), stages),
            least = copy > experts ? copy : experts;
    if (least >= 1 && !put_find(config, "cluster.gpus"))
        put_assumed(config, "cluster.gpus",
            number_text(config, times((least + A_NODE - 1) / A_NODE, A_NODE)),
            "nodes of eight GPUs, as few as hold the model; --gpus says otherwise");
}

/* --cross-entropy-loss-fusion asks for the kernel that --cross-entropy-fusion-impl names, whichever
 * comes first. */
static void finish_loss(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *kernel = setting_find(config, "--cross-entropy-fusion-impl");
    struct configuration_setting *on = setting_find(config, "--cross-entropy-loss-fusion");
    if (kernel && on && on->bare && strcmp(kernel->value, "te") == 0)
        put_setting(config, "train.cross_entropy", "te", kernel);
    else if (kernel && !on)
        put_remove(config, "train.cross_entropy"), kernel->fate = FATE_ASIDE,
                                                   kernel->words = "of cross_entropy_loss_fusion";
}

static void finish_megatron(struct configuration *config, struct diag *diag)
{
    importer_follow(config, CONFIGURATION_MEGATRON, "finish", diag);
}

static void finish_torchtitan(struct configuration *config, struct diag *diag)
{
    importer_follow(config, CONFIGURATION_TORCHTITAN, "finish", diag);
}

static void finish_framework(struct configuration *config, struct diag *diag)
{
    bool titan = setting_is(config, "framework", "torchtitan");
    importer_follow(config, CONFIGURATION_PRIMUS, titan ? "torchtitan" : "megatron", diag);
}

/* A model in FP8 is one by its file's name. */
static void primus_finish_float8(struct configuration *config, struct diag *diag)
{
    (void)diag;
    const struct configuration_setting *model = setting_find(config, "model");
    if ((model && strstr(model->value, "-fp8")) ||
        setting_is(config, "primus_turbo.use_turbo_mx_linear", "true"))
        put_assumed(config, "train.precision", "fp8_mixed", "as the model's file is called");
}

const struct importer_call primus_calls[] = {{"model", primus_finish_model},
    {"gpus", primus_finish_gpus}, {"framework", finish_framework}, {"loss", finish_loss},
    {"layers", finish_layers}, {"megatron", finish_megatron}, {"fsdp2", finish_fsdp2},
    {"float8", primus_finish_float8}, {"torchtitan", finish_torchtitan}, {0}};
