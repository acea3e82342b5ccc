/* accelerate's configuration: accelerate/commands/config/config_args.py, utils/dataclasses.py.
 *
 * YAML of other programs looks alike, so check_owner() refuses those that some keys together
 * give away, by name. A DeepSpeed file that the configuration names is read too, relative to its
 * own folder, and is then one more format of the same configuration. What is subtle:
 * fsdp_reshard_after_forward is a switch in FSDP 2 and a sharding strategy in FSDP 1. Defaults
 * here are accelerate's, not PyTorch's: no backward prefetch, no_sync while gradients
 * accumulate, autocast with DDP.
 *
 * What one key says stands in scenarios/import/accelerate.yaml, with the order of these steps. */
#include "exchange/rules.h"

#include <string.h>

#define DS "deepspeed_config."
#define FP8 "fp8_config."
#define MEGATRON_LM "megatron_lm_config.megatron_lm_"
#define DEGREE "parallelism_config.parallelism_config_"
/* The DeepSpeed file that a configuration names, in its own folder where it is relative. */
static enum status read_named(struct configuration *config, const char *path, struct diag *diag)
{
    struct configuration_setting *named = setting_find(config, DS "deepspeed_config_file");
    if (!named)
        return STATUS_OK;
    const char *slash = strrchr(path, '/'), *file = named->value;
    if (slash && *file != '/')
        file = arena_printf(config->arena, "%.*s%s", (int)(slash - path + 1), path, file);
    named->fate = FATE_TAKEN;
    named->words = "read, too";
    return configuration_read(config, file, CONFIGURATION_DEEPSPEED, diag);
}

static bool has_all(struct config_node root, const char *keys, struct arena *arena)
{
    for (const char *at = keys; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!config_find(root, arena_printf(arena, "%.*s", (int)strcspn(at, " "), at)).doc)
            return false;
    return true;
}

static enum status check_owner(const struct configuration *config, struct config_node root,
    const char *path, struct diag *diag)
{
    const struct importer *importer = importer_of(config, CONFIGURATION_ACCELERATE);
    for (int i = 0; i < importer->n_others; i++)
        if (has_all(root, importer->others[i].name, config->arena))
            return diag_input(diag, (struct source_pos){path, 1, 1},
                "this is %s's configuration, which is not read yet; of accelerate's and "
                "DeepSpeed's files those that it uses can be imported, or its settings given to "
                "flopcast run MODEL by --set ('flopcast help settings')",
                importer->others[i].what);
    return STATUS_OK;
}

enum status accelerate_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status == STATUS_OK)
        status = check_owner(config, config_root(doc), path, diag);
    if (status == STATUS_OK)
        status = rules_apply_document(
            config, doc, &importer_of(config, CONFIGURATION_ACCELERATE)->rules, diag);
    config_free(doc);
    return status == STATUS_OK ? read_named(config, path, diag) : status;
}

static void finish_hybrid(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *copies = setting_find(config, DEGREE "dp_replicate_size");
    struct configuration_setting *shard = setting_find(config, DEGREE "dp_shard_size");
    if (copies && setting_int(config, copies->name, 1, diag) > 1) {
        put_setting(config, "fsdp.sharding_strategy", "HYBRID_SHARD", copies);
        if (shard)
            put_setting(config, "fsdp.sharding_group_size",
                number_text(config, setting_int(config, shard->name, 0, diag)), shard);
    }
    setting_aside(copies, "one copy");
    setting_aside(shard, "all ranks of data parallelism");
}

const struct importer_call accelerate_calls[] = {{"hybrid", finish_hybrid}, {0}};
