/* accelerate's configuration: accelerate/commands/config/config_args.py, utils/dataclasses.py.
 *
 * YAML of other programs looks alike, so check_owner() refuses those that some keys together
 * give away, by name. A DeepSpeed file that the configuration names is read too, relative to its
 * own folder, and is then one more format of the same configuration. What is subtle:
 * fsdp_reshard_after_forward is a switch in FSDP 2 and a sharding strategy in FSDP 1. Defaults
 * here are accelerate's, not PyTorch's: no backward prefetch, no_sync while gradients
 * accumulate, autocast with DDP. */
#include "exchange/rules.h"

#include <string.h>

#define DS "deepspeed_config."
#define OUR "deepspeed.zero_optimization."
#define FSDP "fsdp_config."
#define FP8 "fp8_config."
#define MEG "megatron_lm_config.megatron_lm_"
#define DEGREE "parallelism_config.parallelism_config_"
#define SHARDING                                                                                                       \
    "1=FULL_SHARD 2=SHARD_GRAD_OP 3=NO_SHARD 4=HYBRID_SHARD 5=_HYBRID_SHARD_ZERO2 FULL_SHARD=FULL_SHARD "              \
    "SHARD_GRAD_OP=SHARD_GRAD_OP NO_SHARD=NO_SHARD HYBRID_SHARD=HYBRID_SHARD HYBRID_SHARD_ZERO2=_HYBRID_SHARD_ZERO2"
static const struct rule rules[] = {
    {"distributed_type", RULE_WORDS, "strategy",
        "FSDP=fsdp DEEPSPEED=deepspeed MEGATRON_LM=megatron MULTI_GPU=ddp NO=single_device no=single_device"},
    {"mixed_precision", RULE_WORDS, "train.precision", "bf16=bf16_mixed fp16=fp16_mixed fp8=fp8_mixed no=fp32"},
    {"num_processes", RULE_INT, "cluster.gpus", NULL},
    {"gradient_accumulation_steps", RULE_INT, "train.grad_accum", NULL},
    {"fsdp_config deepspeed_config megatron_lm_config fp8_config mpirun_config ipex_config dynamo_config "
     "parallelism_config",
        RULE_HELD, NULL, "{} null"}, /* what is in them has other names */
    {FSDP "fsdp_version", RULE_INT, "fsdp.version", NULL},
    {FSDP "fsdp_sharding_strategy", RULE_WORDS, "fsdp.sharding_strategy", SHARDING},
    {FSDP "fsdp_reshard_after_forward", RULE_FACT, NULL,
        "true false FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2"},
    {FSDP "fsdp_backward_prefetch " FSDP "fsdp_backward_prefetch_policy", RULE_WORDS, "fsdp.backward_prefetch",
        "BACKWARD_PRE=BACKWARD_PRE BACKWARD_POST=BACKWARD_POST NO_PREFETCH=None null=None"},
    {FSDP "fsdp_forward_prefetch", RULE_BOOL, "fsdp.forward_prefetch", NULL},
    {FSDP "fsdp_offload_params", RULE_BOOL, "fsdp.cpu_offload", NULL},
    {FSDP "fsdp_activation_checkpointing", RULE_WORDS, "train.activation_checkpointing", "true=full false=none"},
    {FSDP "fsdp_auto_wrap_policy", RULE_HELD, NULL, "TRANSFORMER_BASED_WRAP"},
    {FSDP "fsdp_min_num_params", RULE_REFUSED, NULL, "the model's blocks are wrapped"},
    {FSDP "fsdp_ignored_modules", RULE_REFUSED, NULL, "all of the model is sharded"},
    {FSDP "fsdp_transformer_layer_cls_to_wrap", RULE_ASIDE, NULL, "the model's blocks"},
    {FSDP "fsdp_use_orig_params " FSDP "fsdp_sync_module_states " FSDP "fsdp_cpu_ram_efficient_loading", RULE_ASIDE,
        NULL, "of the start"},
    {FSDP "fsdp_state_dict_type", RULE_ASIDE, NULL, "saving"},
    {FP8 "backend", RULE_WORDS, "train.fp8_recipe",
        "TE=delayed te=delayed AO=tensorwise ao=tensorwise torchao=tensorwise"},
    {FP8 "override_linear_precision", RULE_FACT, NULL, NULL},
    {FP8 "enable_fsdp_float8_all_gather", RULE_BOOL, "fsdp.float8_all_gather", NULL},
    {FP8 "amax_history_len " FP8 "amax_history_length " FP8 "amax_compute_algo " FP8 "amax_compute_algorithm " FP8
         "interval " FP8 "margin",
        RULE_ASIDE, NULL, "of the scales' values"},
    {FP8 "fp8_format", RULE_HELD, NULL, "HYBRID hybrid E4M3 e4m3"}, /* both have one byte and one speed */
    {FP8 "use_autocast_during_eval", RULE_ASIDE, NULL, "of evaluation"},
    {MEG "tp_degree", RULE_INT, "parallelism.tensor", NULL},
    {MEG "pp_degree", RULE_INT, "parallelism.pipeline", NULL},
    {MEG "num_micro_batches", RULE_INT, "train.grad_accum", NULL},
    {MEG "sequence_parallelism", RULE_FACT, NULL, "true false"},
    {MEG "recompute_activations", RULE_WORDS, "train.activation_checkpointing", "true=core_attn false=none"},
    {MEG "use_distributed_optimizer", RULE_BOOL, "megatron.use_distributed_optimizer", NULL},
    {MEG "gradient_clipping gradient_clipping " DS "gradient_clipping", RULE_ASIDE, NULL,
        "the norm is computed in any case"},
    {DS "zero_stage", RULE_INT, OUR "stage", NULL},
    {DS "offload_optimizer_device", RULE_WORDS, OUR "offload_optimizer", "none=false cpu=true"},
    {DS "offload_param_device", RULE_HELD, NULL, "none"},
    {DS "gradient_accumulation_steps", RULE_INT, "train.grad_accum", NULL},
    {DS "train_micro_batch_size_per_gpu", RULE_INT, "train.micro_batch", NULL},
    {DS "zero3_init_flag " DS "zero3_save_16bit_model " DS "offload_optimizer_nvme_path " DS "offload_param_nvme_path",
        RULE_ASIDE, NULL, "of the start and of saving"},
    {DS "deepspeed_multinode_launcher " DS "deepspeed_hostfile " DS "deepspeed_exclusion_filter " DS
        "deepspeed_inclusion_filter " DS "deepspeed_moe_layer_cls_names",
        RULE_ASIDE, NULL, "of the launcher"},
    {DS "deepspeed_config_file", RULE_FACT, NULL, NULL},
    {DEGREE "dp_replicate_size " DEGREE "dp_shard_size", RULE_FACT, NULL, NULL},
    {DEGREE "tp_size", RULE_INT, "parallelism.tensor", NULL},
    {DEGREE "cp_size", RULE_INT, "parallelism.context", NULL},
    {DEGREE "sp_size", RULE_HELD, NULL, "1"},
    {DEGREE "sp_*", RULE_ASIDE, NULL, "of sp_size"},
    {DEGREE "cp_backend", RULE_HELD, NULL, "torch"},
    {DEGREE "cp_comm_strategy", RULE_WORDS, "parallelism.context_kind", "allgather=all_gather alltoall=a2a"},
    {"dynamo_config.dynamo_backend dynamo_backend", RULE_WORDS, "train.fusion",
        "INDUCTOR=inductor inductor=inductor NO=eager no=eager"},
    {"dynamo_config.*", RULE_ASIDE, NULL, "of torch.compile"},
    {"use_cpu use_xpu", RULE_OTHER, NULL, "processors that are no GPUs"},
    {"downcast_bf16 tpu_env tpu_name tpu_zone tpu_use_cluster tpu_use_sudo tpu_vm", RULE_ASIDE, NULL, "of TPUs"},
    {"compute_environment debug enable_cpu_affinity gpu_ids machine_rank num_machines main_process_ip "
     "main_process_port main_training_function rdzv_backend same_network mpirun_config.* ipex_config.* commands "
     "command_file",
        RULE_ASIDE, NULL, "of the launcher"},
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

/* YAML of other programs, by keys that stand in it together. */
static const struct {
    const char *whose, *keys;
} others[] = {
    {"axolotl", "base_model micro_batch_size"},
    {"axolotl", "base_model datasets"},
    {"LLaMA-Factory", "model_name_or_path finetuning_type"},
    {"LLaMA-Factory", "model_name_or_path stage"},
    {"torchtune", "tokenizer model optimizer dataset"},
    {"nanotron", "parallelism tokens model"},
    {"LLM Foundry", "max_seq_len global_train_batch_size"},
    {"TRL", "model_name_or_path per_device_train_batch_size"},
};

static bool has_all(struct config_node root, const char *keys, struct arena *arena)
{
    for (const char *at = keys; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!config_find(root, arena_printf(arena, "%.*s", (int)strcspn(at, " "), at)).doc)
            return false;
    return true;
}

static enum status check_owner(struct config_node root, const char *path, struct arena *arena, struct diag *diag)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has_all(root, others[i].keys, arena))
            return diag_input(diag, (struct source_pos){path, 1, 1},
                "this is %s's configuration, which is not read yet; of accelerate's and DeepSpeed's files those that "
                "it "
                "uses can be imported, or its settings given to flopcast run MODEL by --set ('flopcast help settings')",
                others[i].whose);
    return STATUS_OK;
}

enum status accelerate_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, path, diag);
    if (status == STATUS_OK)
        status = check_owner(config_root(doc), path, config->arena, diag);
    if (status == STATUS_OK)
        status = rules_apply_document(config, doc, rules, N_RULES, diag);
    config_free(doc);
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

/* accelerate's plugin makes a Megatron-LM of these (utils/megatron_lm.py). */
static void finish_megatron(struct configuration *config)
{
    struct configuration_setting *sequence = setting_find(config, MEG "sequence_parallelism");
    bool alone = put_int(config, "parallelism.tensor", 1) == 1;
    if (sequence && !sequence->words && !alone)
        put_setting(config, "parallelism.sequence", sequence->value, sequence);
    else if (sequence && !sequence->words)
        setting_aside(sequence, "of tensor parallelism");
}

void accelerate_finish(struct configuration *config, struct diag *diag)
{
    const char *strategy = put_find(config, "strategy"), *precision = put_find(config, "train.precision");
    bool fsdp = strategy && strcmp(strategy, "fsdp") == 0;
    bool half = precision && (strcmp(precision, "bf16_mixed") == 0 || strcmp(precision, "fp16_mixed") == 0);
    if (fsdp && !put_find(config, "fsdp.backward_prefetch"))
        put_assumed(config, "fsdp.backward_prefetch", "None", "accelerate's default, not PyTorch's");
    if (fsdp)
        put_assumed(config, "fsdp.no_sync", "true", "as accelerate accumulates gradients without sync_each_batch");
    if (strategy && strcmp(strategy, "ddp") == 0 && half)
        put_assumed(config, "train.autocast", "true", "as accelerate trains in mixed precision without FSDP");
    if (put_int(config, "parallelism.context", 1) > 1 && !put_find(config, "train.attention"))
        put_assumed(config, "train.attention", "flash", "PyTorch's context parallelism is of fused attention");
    struct configuration_setting *wide = setting_find(config, FP8 "override_linear_precision");
    if (wide && !strstr(wide->value, "true") && !strstr(wide->value, "True"))
        setting_aside(wide, "simulated so");
    setting_refuse(wide, "all three products of a linear layer are simulated in FP8");
    finish_reshard(config);
    finish_hybrid(config, diag);
    finish_megatron(config);
}
