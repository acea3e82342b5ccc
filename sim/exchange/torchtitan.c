/* torchtitan's configuration: torchtitan/config/job_config.py; where names have moved, also those of 2024
 * (torchtitan/config_manager.py). */
#include "exchange/rules.h"
#include "exchange/toml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DTYPES "bfloat16 float32"
static const struct rule rules[] = {
    {"model.name", RULE_FACT, NULL, NULL},
    {"model.flavor", RULE_FACT, NULL, NULL},
    {"model.converters", RULE_FACT, NULL, "[] [float8]"},
    {"model.norm_type", RULE_HELD, NULL, "rmsnorm"},
    {"training.local_batch_size", RULE_FACT, NULL, NULL},
    {"training.batch_size", RULE_FACT, NULL, NULL},
    {"training.global_batch_size", RULE_FACT, NULL, NULL},
    {"training.seq_len", RULE_INT, "train.seq_len", NULL},
    {"training.max_norm", RULE_FACT, NULL, NULL},
    {"training.compile", RULE_WORDS, "train.fusion", "true=inductor false=eager"},
    {"compile.enable", RULE_WORDS, "train.fusion", "true=inductor false=eager"},
    {"training.mixed_precision_param", RULE_FACT, NULL, DTYPES},
    {"training.mixed_precision_reduce", RULE_WORDS, "fsdp.reduce_dtype", "float32=fp32 bfloat16=bf16"},
    {"training.enable_cpu_offload", RULE_BOOL, "fsdp.cpu_offload", NULL},
    {"training.data_parallel_replicate_degree", RULE_FACT, NULL, NULL},
    {"training.data_parallel_shard_degree", RULE_FACT, NULL, NULL},
    {"training.tensor_parallel_degree", RULE_INT, "parallelism.tensor", NULL},
    {"training.fsdp_reshard_after_forward", RULE_WORDS, "fsdp.reshard_after_forward",
        "default=default always=always never=never"},
    {"parallelism.data_parallel_replicate_degree", RULE_FACT, NULL, NULL},
    {"parallelism.data_parallel_shard_degree", RULE_FACT, NULL, NULL},
    {"parallelism.fsdp_reshard_after_forward", RULE_WORDS, "fsdp.reshard_after_forward",
        "default=default always=always never=never"},
    {"parallelism.tensor_parallel_degree", RULE_INT, "parallelism.tensor", NULL},
    {"parallelism.disable_loss_parallel", RULE_HELD, NULL, "false"},
    {"parallelism.enable_async_tensor_parallel", RULE_WORDS, "parallelism.tensor_overlap",
        "true=micro_pipeline false=none"},
    {"experimental.enable_async_tensor_parallel", RULE_WORDS, "parallelism.tensor_overlap",
        "true=micro_pipeline false=none"},
    {"parallelism.context_parallel_degree", RULE_INT, "parallelism.context", NULL},
    {"experimental.context_parallel_degree", RULE_INT, "parallelism.context", NULL},
    {"parallelism.context_parallel_rotate_method", RULE_WORDS, "parallelism.context_kind",
        "allgather=all_gather alltoall=p2p"}, /* of a ring's keys and values */
    {"parallelism.pipeline_parallel_degree", RULE_INT, "parallelism.pipeline", NULL},
    {"experimental.pipeline_parallel_degree", RULE_INT, "parallelism.pipeline", NULL},
    {"parallelism.pipeline_parallel_schedule", RULE_FACT, NULL, "1F1B GPipe Interleaved1F1B"},
    {"experimental.pipeline_parallel_schedule", RULE_FACT, NULL, "1F1B GPipe Interleaved1F1B"},
    {"parallelism.pipeline_parallel_microbatch_size", RULE_FACT, NULL, NULL},
    {"parallelism.expert_parallel_degree", RULE_INT, "parallelism.expert", NULL},
    {"parallelism.expert_tensor_parallel_degree", RULE_INT, "parallelism.expert_tensor", NULL},
    {"activation_checkpoint.mode", RULE_FACT, NULL, "none full selective"},
    {"activation_checkpoint.selective_ac_option", RULE_FACT, NULL, NULL},
    {"activation_checkpoint.selective_ac_type", RULE_FACT, NULL, NULL},
    {"optimizer.name", RULE_WORDS, "train.optimizer", "AdamW=adamw Adam=adam"},
    {"optimizer.implementation", RULE_WORDS, "train.optimizer_impl", "fused=fused foreach=foreach for-loop=for_loop"},
    {"optimizer.fused", RULE_WORDS, "train.optimizer_impl", "true=fused false=foreach"},
    {"optimizer.early_step_in_backward", RULE_HELD, NULL, "false"},
    {"optimizer.*", RULE_ASIDE, NULL, NULL},
    {"lr_scheduler.*", RULE_ASIDE, NULL, NULL},
    {"float8.enable_float8_linear", RULE_FACT, NULL, "true false"},
    {"float8.enable_fsdp_float8_all_gather", RULE_BOOL, "fsdp.float8_all_gather", NULL},
    {"float8.recipe_name", RULE_WORDS, "train.fp8_recipe", "tensorwise=tensorwise rowwise=rowwise"},
    {"float8.precompute_float8_dynamic_scale_for_fsdp", RULE_ASIDE, NULL, NULL},
    {"float8.filter_fqns", RULE_ASIDE, NULL, NULL}, /* the head, which is never in FP8 here */
    {"float8.force_recompute_fp8_weight_in_bwd", RULE_ASIDE, NULL, NULL},
    {"job.*", RULE_ASIDE, NULL, NULL},
    {"profiling.*", RULE_ASIDE, NULL, NULL},
    {"metrics.*", RULE_ASIDE, NULL, NULL},
    {"checkpoint.*", RULE_ASIDE, NULL, NULL},
    {"validation.*", RULE_ASIDE, NULL, NULL},
    {"comm.*", RULE_ASIDE, NULL, NULL},
    {"debug.*", RULE_ASIDE, NULL, NULL},
    {"model.hf_assets_path", RULE_ASIDE, NULL, NULL},
    {"model.tokenizer_path", RULE_ASIDE, NULL, NULL},
    {"model.print_after_conversion", RULE_ASIDE, NULL, NULL},
    {"training.dataset", RULE_ASIDE, NULL, NULL},
    {"training.dataset_path", RULE_ASIDE, NULL, NULL},
    {"training.steps", RULE_ASIDE, NULL, NULL},
    {"training.warmup_steps", RULE_ASIDE, NULL, NULL},
    {"training.seed", RULE_ASIDE, NULL, NULL},
    {"training.deterministic", RULE_HELD, NULL, "false"},
    {"training.gc_freq", RULE_ASIDE, NULL, NULL},
    {"compile.components", RULE_HELD, NULL, "[model,loss] [loss,model]"},
};
enum { N_RULES = sizeof rules / sizeof *rules };

enum status torchtitan_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct config_doc *doc = NULL;
    char *text = NULL;
    size_t n = 0;
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    if (status == STATUS_OK)
        status = toml_parse(&doc, path, text, n, diag);
    if (status == STATUS_OK)
        status = rules_apply_document(config, doc, rules, N_RULES, diag);
    config_free(doc);
    free(text);
    return status;
}

/* Of a name that has moved, whichever is there. */
static struct configuration_setting *either(struct configuration *config, const char *now, const char *before)
{
    struct configuration_setting *setting = setting_find(config, now);
    return setting ? setting : setting_find(config, before);
}

static void finish_model(struct configuration *config)
{
    static const struct {
        const char *name, *flavor, *model;
    } known[] = {{"llama3", "8B", "llama3.1-8b"}, {"llama3", "70B", "llama3.1-70b"},
        {"llama3", "405B", "llama3.1-405b"}, {"deepseek_v3", "16B", "deepseek-v2-lite"},
        {"deepseek_v3", "671B", "deepseek-v3"}, {"qwen3", "30B-A3B", "qwen3-30b-a3b"}};
    struct configuration_setting *name = setting_find(config, "model.name");
    struct configuration_setting *flavor = setting_find(config, "model.flavor");
    for (size_t i = 0; i < sizeof known / sizeof *known && name && flavor; i++)
        if (strcmp(known[i].name, name->value) == 0 && strcmp(known[i].flavor, flavor->value) == 0) {
            put_setting(config, "model", known[i].model, flavor);
            setting_aside(name, "with the flavor");
            return;
        }
    setting_refuse(name, "flopcast has no such model of torchtitan's; give --model");
    setting_refuse(flavor, "flopcast has no such model of torchtitan's; give --model");
}

/* A local batch is what a rank takes at once, but in a pipeline, which cuts it into micro-batches. */
static void finish_batch(struct configuration *config, struct diag *diag)
{
    enum { DEFAULT_BATCH = 8, DEFAULT_LENGTH = 2048 };
    struct configuration_setting *local = either(config, "training.local_batch_size", "training.batch_size");
    struct configuration_setting *whole = setting_find(config, "training.global_batch_size");
    struct configuration_setting *piece = setting_find(config, "parallelism.pipeline_parallel_microbatch_size");
    bool pipeline = put_int(config, "parallelism.pipeline", 1) > 1;
    const char *key = pipeline ? "train.device_batch" : "train.micro_batch";
    if (local)
        put_setting(config, key, number_text(config, setting_int(config, local->name, DEFAULT_BATCH, diag)), local);
    else
        put_assumed(config, key, number_text(config, DEFAULT_BATCH), "torchtitan's default");
    if (pipeline && piece)
        put_setting(config, "train.micro_batch", number_text(config, setting_int(config, piece->name, 1, diag)), piece);
    else if (pipeline)
        put_assumed(config, "train.micro_batch", "1", "torchtitan's default in a pipeline");
    setting_aside(piece, "of pipelines");
    if (whole && setting_int(config, whole->name, -1, diag) > 0 && !pipeline)
        put_setting(
            config, "train.global_batch", number_text(config, setting_int(config, whole->name, -1, diag)), whole);
    else if (whole && setting_int(config, whole->name, -1, diag) > 0)
        setting_refuse(whole, "in a pipeline local_batch_size is simulated as the whole step");
    else
        setting_aside(whole, "that of one local batch a rank");
    if (!put_find(config, "train.seq_len"))
        put_assumed(config, "train.seq_len", number_text(config, DEFAULT_LENGTH), "torchtitan's default");
}

static void finish_degrees(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *copies =
        either(config, "parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree");
    struct configuration_setting *shard =
        either(config, "parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree");
    int64_t n_copies = copies ? setting_int(config, copies->name, 1, diag) : 1;
    int64_t n_shard = shard ? setting_int(config, shard->name, -1, diag) : -1;
    int64_t ranks = model_ranks(config);
    int64_t context = put_int(config, "parallelism.context", 1);
    bool ddp = n_copies > 1 && n_shard == 1;
    if (ddp)
        put_setting(config, "strategy", "ddp", shard);
    else
        put_assumed(config, "strategy", "fsdp", NULL);
    if (!ddp)
        put_assumed(config, "fsdp.version", "2", NULL);
    if (n_copies > 1 && !ddp)
        put_setting(config, "fsdp.sharding_strategy", "HYBRID_SHARD", copies);
    if (n_copies > 1 && n_shard > 1)
        put_setting(config, "fsdp.sharding_group_size", number_text(config, times(n_shard, context)), shard);
    if (n_shard > 0 && n_copies > 0 && !put_find(config, "cluster.gpus"))
        put_setting(config, "cluster.gpus", number_text(config, times(times(n_copies, n_shard), ranks)), shard);
    setting_aside(copies, "one copy of the model");
    setting_aside(shard, n_shard < 0 ? "all ranks that are left" : "by the GPUs");
}

static void finish_schedule(struct configuration *config)
{
    struct configuration_setting *schedule =
        either(config, "parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule");
    if (put_int(config, "parallelism.pipeline", 1) == 1) {
        setting_aside(schedule, "of pipelines");
        return;
    }
    put_assumed(config, "parallelism.partition_method", "weighted", NULL);
    if (!schedule || schedule->words)
        return;
    bool interleaved = strcmp(schedule->value, "Interleaved1F1B") == 0;
    put_setting(config, "parallelism.schedule", interleaved ? "1F1B" : schedule->value, schedule);
    if (interleaved)
        put_setting(config, "parallelism.virtual", "2", schedule);
}

/* Selective by operator, or every n-th block in full. */
static void finish_checkpointing(struct configuration *config)
{
    struct configuration_setting *mode = setting_find(config, "activation_checkpoint.mode");
    struct configuration_setting *option =
        either(config, "activation_checkpoint.selective_ac_option", "activation_checkpoint.selective_ac_type");
    const char *how = mode && !mode->words ? mode->value : "selective";
    bool selective = strcmp(how, "selective") == 0;
    bool by_block = selective && option && isdigit((unsigned char)*option->value);
    if (mode && !mode->words)
        put_setting(config, "train.activation_checkpointing", by_block ? "full" : how, mode);
    else if (!mode)
        put_assumed(config, "train.activation_checkpointing", by_block ? "full" : how, "torchtitan's default");
    if (by_block)
        put_setting(config, "train.checkpoint_interval", number_text(config, strtoll(option->value, NULL, 10)), option);
    else if (option && selective && strcmp(option->value, "op") != 0)
        setting_refuse(option, "known are: op, and a number of blocks");
    setting_aside(option, selective ? "by operator" : "of selective checkpointing");
}

static void finish_precision(struct configuration *config)
{
    struct configuration_setting *param = setting_find(config, "training.mixed_precision_param");
    struct configuration_setting *converters = setting_find(config, "model.converters");
    struct configuration_setting *float8 = setting_find(config, "float8.enable_float8_linear");
    bool full = param && strcmp(param->value, "float32") == 0;
    if (param)
        put_setting(config, "train.precision", full ? "fp32" : "bf16_mixed", param);
    else
        put_assumed(config, "train.precision", "bf16_mixed", "torchtitan's default");
    if (converters && strcmp(converters->value, "[float8]") == 0)
        put_setting(config, "train.precision", "fp8_mixed", converters);
    else if (float8 && strcmp(float8->value, "true") == 0)
        put_setting(config, "train.precision", "fp8_mixed", float8);
    if (!converters || !converters->words)
        setting_aside(converters, "none");
    setting_aside(float8, "off");
    bool fp8 = strcmp(put_find(config, "train.precision"), "fp8_mixed") == 0;
    if (fp8 && !put_find(config, "train.fp8_recipe"))
        put_assumed(config, "train.fp8_recipe", "tensorwise", "torchao's default");
    if (!put_find(config, "fsdp.reduce_dtype") && strcmp(put_find(config, "strategy"), "fsdp") == 0)
        put_assumed(config, "fsdp.reduce_dtype", "fp32", "torchtitan's default");
}

void torchtitan_finish(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *norm = setting_find(config, "training.max_norm");
    finish_model(config);
    finish_degrees(config, diag);
    finish_batch(config, diag);
    finish_schedule(config);
    finish_checkpointing(config);
    finish_precision(config);
    if (norm)
        put_setting(config, "train.clip_grad_norm", strtod(norm->value, NULL) > 0 ? "true" : "false", norm);
    if (put_int(config, "parallelism.tensor", 1) > 1)
        put_assumed(config, "parallelism.sequence", "true", "torchtitan's tensor parallelism always has it");
    put_assumed(config, "train.attention", "flash", "scaled_dot_product_attention");
    put_assumed(config, "train.rotary", "complex", "torchtitan's apply_rotary_emb");
    put_assumed(config, "stack", "torchtitan", "the version is not in the file");
}
