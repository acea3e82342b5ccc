/* accelerate's configuration: accelerate/commands/config/config_args.py, utils/dataclasses.py. */
#include "exchange/rules.h"

#include <string.h>

#define DS "deepspeed_config."
#define OUR "deepspeed.zero_optimization."
static const struct rule rules[] = {
    {"distributed_type", RULE_WORDS, "strategy", "FSDP=fsdp DEEPSPEED=deepspeed MULTI_GPU=ddp NO=single_device"},
    {"mixed_precision", RULE_WORDS, "train.precision", "bf16=bf16_mixed fp16=fp16_mixed fp8=fp8_mixed no=fp32"},
    {"num_processes", RULE_INT, "cluster.gpus", NULL},
    {"num_machines", RULE_ASIDE, NULL, NULL},
    {"gradient_accumulation_steps", RULE_INT, "train.grad_accum", NULL},
    {"gradient_clipping", RULE_ASIDE, NULL, NULL},
    {"fsdp_config.fsdp_version", RULE_INT, "fsdp.version", NULL},
    {"fsdp_config.fsdp_sharding_strategy", RULE_WORDS, "fsdp.sharding_strategy",
        "1=FULL_SHARD 2=SHARD_GRAD_OP 3=NO_SHARD 4=HYBRID_SHARD 5=_HYBRID_SHARD_ZERO2 FULL_SHARD=FULL_SHARD "
        "SHARD_GRAD_OP=SHARD_GRAD_OP NO_SHARD=NO_SHARD HYBRID_SHARD=HYBRID_SHARD "
        "HYBRID_SHARD_ZERO2=_HYBRID_SHARD_ZERO2"},
    {"fsdp_config.fsdp_reshard_after_forward", RULE_FACT, NULL,
        "true false FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2"},
    {"fsdp_config.fsdp_backward_prefetch", RULE_WORDS, "fsdp.backward_prefetch",
        "BACKWARD_PRE=BACKWARD_PRE BACKWARD_POST=BACKWARD_POST NO_PREFETCH=None"},
    {"fsdp_config.fsdp_backward_prefetch_policy", RULE_WORDS, "fsdp.backward_prefetch",
        "BACKWARD_PRE=BACKWARD_PRE BACKWARD_POST=BACKWARD_POST NO_PREFETCH=None"},
    {"fsdp_config.fsdp_forward_prefetch", RULE_BOOL, "fsdp.forward_prefetch", NULL},
    {"fsdp_config.fsdp_offload_params", RULE_BOOL, "fsdp.cpu_offload", NULL},
    {"fsdp_config.fsdp_activation_checkpointing", RULE_WORDS, "train.activation_checkpointing", "true=full false=none"},
    {"fsdp_config.fsdp_auto_wrap_policy", RULE_HELD, NULL, "TRANSFORMER_BASED_WRAP"},
    {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", RULE_ASIDE, NULL, NULL}, /* units are the model's blocks */
    {"fsdp_config.fsdp_use_orig_params", RULE_ASIDE, NULL, NULL},
    {"fsdp_config.fsdp_sync_module_states", RULE_ASIDE, NULL, NULL},
    {"fsdp_config.fsdp_state_dict_type", RULE_ASIDE, NULL, NULL},
    {"fsdp_config.fsdp_cpu_ram_efficient_loading", RULE_ASIDE, NULL, NULL},
    {DS "zero_stage", RULE_INT, OUR "stage", NULL},
    {DS "offload_optimizer_device", RULE_WORDS, OUR "offload_optimizer", "none=false cpu=true"},
    {DS "offload_param_device", RULE_HELD, NULL, "none"},
    {DS "gradient_accumulation_steps", RULE_INT, "train.grad_accum", NULL},
    {DS "train_micro_batch_size_per_gpu", RULE_INT, "train.micro_batch", NULL},
    {DS "gradient_clipping", RULE_ASIDE, NULL, NULL},
    {DS "zero3_init_flag", RULE_ASIDE, NULL, NULL},
    {DS "zero3_save_16bit_model", RULE_ASIDE, NULL, NULL},
    {DS "deepspeed_multinode_launcher", RULE_ASIDE, NULL, NULL},
    {DS "deepspeed_hostfile", RULE_ASIDE, NULL, NULL},
    {DS "deepspeed_config_file", RULE_FACT, NULL, NULL},
    {"parallelism_config.parallelism_config_dp_replicate_size", RULE_FACT, NULL, NULL},
    {"parallelism_config.parallelism_config_dp_shard_size", RULE_FACT, NULL, NULL},
    {"parallelism_config.parallelism_config_tp_size", RULE_INT, "parallelism.tensor", NULL},
    {"parallelism_config.parallelism_config_cp_size", RULE_INT, "parallelism.context", NULL},
    {"parallelism_config.parallelism_config_cp_comm_strategy", RULE_WORDS, "parallelism.context_kind",
        "allgather=all_gather alltoall=a2a"},
    {"dynamo_config.dynamo_backend", RULE_WORDS, "train.fusion", "INDUCTOR=inductor NO=eager"},
    {"dynamo_config.*", RULE_ASIDE, NULL, NULL},
    {"use_cpu", RULE_HELD, NULL, "false"},
    {"compute_environment", RULE_ASIDE, NULL, NULL},
    {"debug", RULE_ASIDE, NULL, NULL},
    {"downcast_bf16", RULE_ASIDE, NULL, NULL}, /* TPU */
    {"enable_cpu_affinity", RULE_ASIDE, NULL, NULL},
    {"gpu_ids", RULE_ASIDE, NULL, NULL},
    {"machine_rank", RULE_ASIDE, NULL, NULL},
    {"main_process_ip", RULE_ASIDE, NULL, NULL},
    {"main_process_port", RULE_ASIDE, NULL, NULL},
    {"main_training_function", RULE_ASIDE, NULL, NULL},
    {"rdzv_backend", RULE_ASIDE, NULL, NULL},
    {"same_network", RULE_ASIDE, NULL, NULL},
    {"tpu_env", RULE_ASIDE, NULL, NULL},
    {"tpu_use_cluster", RULE_ASIDE, NULL, NULL},
    {"tpu_use_sudo", RULE_ASIDE, NULL, NULL},
    {"commands", RULE_ASIDE, NULL, NULL},
};
enum { N_RULES = sizeof rules / sizeof *rules };

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

enum status accelerate_read(struct configuration *config, const char *path, struct diag *diag)
{
    enum status status = rules_apply_file(config, path, rules, N_RULES, diag);
    return status == STATUS_OK ? read_named(config, path, diag) : status;
}

/* fully_shard's is true or false; accelerate's FSDP 1 also takes the names of sharding strategies there. */
static void finish_reshard(struct configuration *config)
{
    struct configuration_setting *reshard = setting_find(config, "fsdp_config.fsdp_reshard_after_forward");
    if (!reshard || reshard->words)
        return;
    bool is_true = strcmp(reshard->value, "true") == 0, is_false = strcmp(reshard->value, "false") == 0;
    bool second = put_int(config, "fsdp.version", 1) == 2;
    if (second && (is_true || is_false))
        put_setting(config, "fsdp.reshard_after_forward", is_true ? "always" : "never", reshard);
    else if (is_true || is_false)
        setting_aside(reshard, "of FSDP 2");
    else
        put_setting(config, "fsdp.sharding_strategy",
            strcmp(reshard->value, "HYBRID_SHARD_ZERO2") == 0 ? "_HYBRID_SHARD_ZERO2" : reshard->value, reshard);
}

static void finish_hybrid(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *copies =
        setting_find(config, "parallelism_config.parallelism_config_dp_replicate_size");
    struct configuration_setting *shard = setting_find(config, "parallelism_config.parallelism_config_dp_shard_size");
    if (copies && setting_int(config, copies->name, 1, diag) > 1) {
        put_setting(config, "fsdp.sharding_strategy", "HYBRID_SHARD", copies);
        if (shard)
            put_setting(config, "fsdp.sharding_group_size",
                number_text(config, setting_int(config, shard->name, 0, diag)), shard);
    }
    setting_aside(copies, "one copy");
    setting_aside(shard, "all ranks of data parallelism");
}

void accelerate_finish(struct configuration *config, struct diag *diag)
{
    const char *strategy = put_find(config, "strategy");
    bool fsdp = strategy && strcmp(strategy, "fsdp") == 0;
    if (fsdp && !put_find(config, "fsdp.backward_prefetch"))
        put_assumed(config, "fsdp.backward_prefetch", "None", "accelerate's default, not PyTorch's");
    if (strategy && strcmp(strategy, "ddp") == 0 && put_find(config, "train.precision") &&
        !setting_is(config, "mixed_precision", "no"))
        put_assumed(config, "train.autocast", "true", "as accelerate trains in mixed precision without FSDP");
    finish_reshard(config);
    finish_hybrid(config, diag);
}
