/* torchtitan's configuration: torchtitan/config/job_config.py; where names have moved, also
 * those of 2024 (torchtitan/config_manager.py).
 *
 * The TOML is read as a document and goes through the rules; many rules only check, and
 * the finish functions below make settings of them, in an order in which degrees come before
 * batch and schedule. What is subtle: either() takes a setting by its present or its old name.
 * local_batch_size is a micro-batch, but in a pipeline the batch of a whole step, which is cut
 * into micro-batches. A model is a name and a flavor, looked up in called.yaml; the longest name
 * that fits wins, as experiments extend names. FP8 has had three names. What is not in the file
 * is torchtitan's default, and stands among the assumptions.
 *
 * What one key says stands in scenarios/import/torchtitan.yaml, with the order of these steps. */
#include "exchange/rules.h"
#include "exchange/toml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LINEAR "quantize.linear.float8."
enum status torchtitan_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct config_doc *doc = NULL;
    char *text = NULL;
    size_t n = 0;
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    if (status == STATUS_OK)
        status = toml_parse(&doc, path, text, n, diag);
    if (status == STATUS_OK)
        status = rules_apply_document(
            config, doc, &importer_of(config, CONFIGURATION_TORCHTITAN)->rules, diag);
    config_free(doc);
    free(text);
    return status;
}

/* Of a name that has moved, whichever is there. */
static struct configuration_setting *either(
    struct configuration *config, const char *now, const char *before)
{
    struct configuration_setting *setting = setting_find(config, now);
    return setting ? setting : setting_find(config, before);
}

/* torchtitan/models/<name>: whether it is this one, which experiments call by a longer name
 * (llama3_simple_fsdp); then its length, and the flavor behind. */
static size_t is_of_name(const struct called_so *so, const char *name, const char **flavor)
{
    size_t before = strlen(CALLED_TORCHTITAN), n = strcspn(so->theirs + before, "/");
    if (strncmp(so->theirs, CALLED_TORCHTITAN, before) != 0 ||
        strncmp(name, so->theirs + before, n) != 0 || (name[n] && !strchr("_.", name[n])))
        return 0;
    *flavor = so->theirs + before + n + 1;
    return n;
}

static void refuse_model(const struct configuration_setting *name,
    const struct configuration_setting *flavor, const char *known, struct diag *diag)
{
    diag_input(diag, flavor->value_at,
        "flopcast has no model for torchtitan's %s %s%s%s; --model NAME takes another, or a "
        "Hugging Face config.json",
        name->value, flavor->value, *known ? "; of its flavors it has " : "", known);
}

/* The flavor says the size. */
static void torchtitan_finish_model(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *name = setting_find(config, "model.name");
    struct configuration_setting *flavor = setting_find(config, "model.flavor");
    if (put_find(config, "model") || !name || !flavor)
        return;
    struct called called = called_load(config->arena);
    const char *model = NULL, *known = "";
    size_t longest = 0;
    for (int i = 0; i < called.list.n; i++) {
        const char *size = NULL;
        size_t n = is_of_name(&called.list.at[i], name->value, &size);
        if (n > 0 && name->value[n] == '\0')
            known = arena_printf(config->arena, "%s%s%s", known, *known ? ", " : "", size);
        if (n > longest && strcmp(size, flavor->value) == 0) {
            model = called.list.at[i].ours;
            longest = n;
        }
    }
    vec_free(&called.list);
    if (!model) {
        refuse_model(name, flavor, known, diag);
        return;
    }
    put_setting(config, "model", model, flavor);
    setting_aside(name, "with the flavor");
}

/* A local batch is what a rank takes at once, but in a pipeline, which cuts it into micro-batches.
 */
static void torchtitan_finish_batch(struct configuration *config, struct diag *diag)
{
    enum { DEFAULT_BATCH = 8, DEFAULT_LENGTH = 2048 };
    struct configuration_setting *local =
        either(config, "training.local_batch_size", "training.batch_size");
    struct configuration_setting *whole = setting_find(config, "training.global_batch_size");
    struct configuration_setting *piece =
        setting_find(config, "parallelism.pipeline_parallel_microbatch_size");
    bool pipeline = put_int(config, "parallelism.pipeline", 1) > 1;
    const char *key = pipeline ? "train.device_batch" : "train.micro_batch";
    if (local)
        put_setting(config, key,
            number_text(config, setting_int(config, local->name, DEFAULT_BATCH, diag)), local);
    else
        put_assumed(config, key, number_text(config, DEFAULT_BATCH), "torchtitan's default");
    if (pipeline && piece)
        put_setting(config, "train.micro_batch",
            number_text(config, setting_int(config, piece->name, 1, diag)), piece);
    else if (pipeline)
        put_assumed(config, "train.micro_batch", "1", "torchtitan's default in a pipeline");
    setting_aside(piece, "of pipelines");
    if (whole && setting_int(config, whole->name, -1, diag) > 0 && !pipeline)
        put_setting(config, "train.global_batch",
            number_text(config, setting_int(config, whole->name, -1, diag)), whole);
    else if (whole && setting_int(config, whole->name, -1, diag) > 0)
        setting_refuse(whole, "in a pipeline local_batch_size is simulated as the whole step");
    else
        setting_aside(whole, "that of one local batch a rank");
    if (!put_find(config, "train.seq_len"))
        put_assumed(
            config, "train.seq_len", number_text(config, DEFAULT_LENGTH), "torchtitan's default");
}

static void finish_degrees(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *copies = either(config,
        "parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree");
    struct configuration_setting *shard = either(
        config, "parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree");
    struct configuration_setting *type = setting_find(config, "training.data_parallel_type");
    shard = shard ? shard : setting_find(config, "training.data_parallel_degree"); /* 2024 */
    int64_t n_copies = copies ? setting_int(config, copies->name, 1, diag) : 1;
    int64_t n_shard = shard ? setting_int(config, shard->name, -1, diag) : -1;
    int64_t ranks = model_ranks(config);
    int64_t context = put_int(config, "parallelism.context", 1);
    bool named = type && !type->words && strcmp(type->value, "ddp") == 0;
    bool ddp = named || (n_copies > 1 && n_shard == 1);
    if (ddp)
        put_setting(config, "strategy", "ddp", named ? type : shard);
    else
        put_assumed(config, "strategy", "fsdp", NULL);
    if (!ddp)
        put_assumed(config, "fsdp.version", "2", NULL);
    if (n_copies > 1 && !ddp)
        put_setting(config, "fsdp.sharding_strategy", "HYBRID_SHARD", copies);
    if (n_copies > 1 && n_shard > 1)
        put_setting(config, "fsdp.sharding_group_size",
            number_text(config, times(n_shard, context)), shard);
    if (n_shard > 0 && n_copies > 0 && !put_find(config, "cluster.gpus"))
        put_setting(config, "cluster.gpus",
            number_text(config, times(times(n_copies, n_shard), ranks)), shard);
    if (type && !type->words)
        setting_aside(type, "by the degrees");
    setting_aside(copies, "one copy of the model");
    setting_aside(shard, n_shard < 0 ? "all ranks that are left" : "by the GPUs");
}

/* Selective by operator, or every n-th block in full. */
static void finish_checkpointing(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *mode = setting_find(config, "activation_checkpoint.mode");
    struct configuration_setting *option = either(config,
        "activation_checkpoint.selective_ac_option", "activation_checkpoint.selective_ac_type");
    const char *how = mode && !mode->words ? mode->value : "selective";
    bool selective = strcmp(how, "selective") == 0;
    bool by_block = selective && option && isdigit((unsigned char)*option->value);
    if (mode && !mode->words)
        put_setting(config, "train.activation_checkpointing", by_block ? "full" : how, mode);
    else if (!mode)
        put_assumed(config, "train.activation_checkpointing", by_block ? "full" : how,
            "torchtitan's default");
    if (by_block)
        put_setting(config, "train.checkpoint_interval",
            number_text(config, strtoll(option->value, NULL, 10)), option);
    else if (option && selective && strcmp(option->value, "op") != 0)
        setting_refuse(option, "known are: op, and a number of blocks");
    setting_aside(option, selective ? "by operator" : "of selective checkpointing");
}

/* Whether a list, or a word, of converters has one of these. */
static bool converts(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, "[], "), at += strspn(at, "[], "))
        if (strcspn(at, "[], ") == n && strncmp(at, name, n) == 0)
            return true;
    return false;
}

/* What a list of converters holds besides those that are simulated; NULL: nothing. */
static const char *other_converter(struct configuration *config, const char *list)
{
    for (const char *at = list + strspn(list, "[], "); *at;
         at += strcspn(at, "[], "), at += strspn(at, "[], ")) {
        const char *one = arena_printf(config->arena, "%.*s", (int)strcspn(at, "[], "), at);
        if (strcmp(one, "float8") != 0 && strcmp(one, "quantize.linear.float8") != 0)
            return one;
    }
    return NULL;
}

/* model.converters since 2025 (float8, then quantize.linear.float8), before
 * float8.enable_float8_linear, before training.fp8_linear, "" or "dynamic". */
static struct configuration_setting *find_float8(struct configuration *config)
{
    struct configuration_setting *converters = setting_find(config, "model.converters");
    struct configuration_setting *float8 = setting_find(config, "float8.enable_float8_linear");
    struct configuration_setting *linear = setting_find(config, "training.fp8_linear");
    struct configuration_setting *found = NULL;
    const char *other = converters ? other_converter(config, converters->value) : NULL;
    if (converters && other)
        setting_refuse(
            converters, arena_printf(config->arena, "the converter '%s' is not simulated", other));
    if (converters && (converts(converters->value, "float8") ||
                          converts(converters->value, "quantize.linear.float8")))
        found = converters;
    else if (float8 && strcmp(float8->value, "true") == 0)
        found = float8;
    else if (linear && !value_is_off(linear->value))
        found = linear;
    if (found && !other)
        put_setting(config, "train.precision", "fp8_mixed", found);
    if (converters && !other)
        setting_aside(converters, "none");
    setting_aside(float8, "off");
    setting_aside(linear, "off");
    return other ? NULL : found;
}

/* Settings of FP8, which are without effect where it is off. Keys and values alone in BF16 are a
 * small part. */
static void leave_float8(struct configuration *config, bool on)
{
    for (int i = 0; i < config->settings.n; i++) {
        struct configuration_setting *setting = &config->settings.at[i];
        const char *name = setting->name, *leaf = strrchr(name, '.');
        bool linear = strncmp(name, "float8.", strlen("float8.")) == 0 ||
                      strncmp(name, LINEAR, strlen(LINEAR)) == 0;
        bool others = strncmp(name, "quantize.", strlen("quantize.")) == 0 ||
                      strncmp(name, "mx.", strlen("mx.")) == 0;
        if ((!linear && !others) || setting->fate != FATE_NOT_UNDERSTOOD)
            continue;
        if (!linear || !on || !leaf)
            setting_aside(setting, "its converter is not on");
        else if (setting->words)
            continue;
        else if (strcmp(leaf, ".enable_fsdp_float8_all_gather") == 0)
            put_setting(config, "fsdp.float8_all_gather", setting->value, setting);
        else if (strcmp(leaf, ".recipe_name") == 0)
            put_setting(config, "train.fp8_recipe", setting->value, setting);
        else if (strstr(setting->value, "auto_filter") || strstr(setting->value, "attention"))
            setting_refuse(
                setting, "all linear layers of blocks are simulated in FP8, the head is not");
        else
            setting_aside(setting, "the head and routers, which are never in FP8 here");
    }
}

static void torchtitan_finish_float8(struct configuration *config, struct diag *diag)
{
    (void)diag;
    leave_float8(config, find_float8(config) != NULL);
}

const struct importer_call torchtitan_calls[] = {{"model", torchtitan_finish_model},
    {"degrees", finish_degrees}, {"batch", torchtitan_finish_batch},
    {"checkpointing", finish_checkpointing}, {"float8", torchtitan_finish_float8}, {0}};
