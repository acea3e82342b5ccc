/* DeepSpeed's configuration: deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py. */
#include "exchange/rules.h"

#include <string.h>

#define ZERO "zero_optimization."
#define OUR "deepspeed.zero_optimization."
static const struct rule rules[] = {
    {"train_batch_size", RULE_FACT, NULL, NULL},
    {"train_micro_batch_size_per_gpu", RULE_INT, "train.micro_batch", NULL},
    {"gradient_accumulation_steps", RULE_FACT, NULL, NULL},
    {"bf16.enabled", RULE_FACT, NULL, "true false auto"},
    {"bfloat16.enabled", RULE_FACT, NULL, "true false auto"},
    {"fp16.enabled", RULE_FACT, NULL, "true false auto"},
    {"fp16.*", RULE_ASIDE, NULL, NULL}, /* loss scaling */
    {"bf16.immediate_grad_update", RULE_ASIDE, NULL, NULL},
    {"optimizer.type", RULE_WORDS, "train.optimizer", "Adam=adam AdamW=adamw SGD=sgd Lion=lion FusedLion=lion"},
    {"optimizer.params.torch_adam", RULE_FACT, NULL, "true false"},
    {"optimizer.params.*", RULE_ASIDE, NULL, NULL},
    {"scheduler.*", RULE_ASIDE, NULL, NULL},
    {"gradient_clipping", RULE_ASIDE, NULL, NULL}, /* the norm is computed in any case */
    {ZERO "stage", RULE_INT, OUR "stage", NULL},
    {ZERO "reduce_bucket_size", RULE_INT, OUR "reduce_bucket_size", NULL},
    {ZERO "allgather_bucket_size", RULE_INT, OUR "allgather_bucket_size", NULL},
    {ZERO "overlap_comm", RULE_BOOL, OUR "overlap_comm", NULL},
    {ZERO "use_multi_rank_bucket_allreduce", RULE_BOOL, OUR "use_multi_rank_bucket_allreduce", NULL},
    {ZERO "stage3_prefetch_bucket_size", RULE_INT, OUR "stage3_prefetch_bucket_size", NULL},
    {ZERO "prefetch_bucket_size", RULE_INT, OUR "stage3_prefetch_bucket_size", NULL},
    {ZERO "stage3_param_persistence_threshold", RULE_INT, OUR "stage3_param_persistence_threshold", NULL},
    {ZERO "param_persistence_threshold", RULE_INT, OUR "stage3_param_persistence_threshold", NULL},
    {ZERO "stage3_max_live_parameters", RULE_INT, OUR "stage3_max_live_parameters", NULL},
    {ZERO "max_live_parameters", RULE_INT, OUR "stage3_max_live_parameters", NULL},
    {ZERO "stage3_max_reuse_distance", RULE_INT, OUR "stage3_max_reuse_distance", NULL},
    {ZERO "max_reuse_distance", RULE_INT, OUR "stage3_max_reuse_distance", NULL},
    {ZERO "offload_optimizer.device", RULE_WORDS, OUR "offload_optimizer", "none=false cpu=true"},
    {ZERO "offload_optimizer.pin_memory", RULE_ASIDE, NULL, NULL},
    {ZERO "offload_param.device", RULE_HELD, NULL, "none"},
    {ZERO "offload_param.pin_memory", RULE_ASIDE, NULL, NULL},
    {ZERO "cpu_offload", RULE_BOOL, OUR "offload_optimizer", NULL}, /* before 0.5 */
    {ZERO "contiguous_gradients", RULE_HELD, NULL, "true"},
    {ZERO "reduce_scatter", RULE_HELD, NULL, "true"},
    {ZERO "allgather_partitions", RULE_HELD, NULL, "true"},
    {ZERO "round_robin_gradients", RULE_HELD, NULL, "false"},
    {ZERO "zero_hpz_partition_size", RULE_HELD, NULL, "1"},
    {ZERO "zero_quantized_weights", RULE_HELD, NULL, "false"},
    {ZERO "zero_quantized_gradients", RULE_HELD, NULL, "false"},
    {ZERO "mics_shard_size", RULE_HELD, NULL, "-1"},
    {ZERO "stage3_gather_16bit_weights_on_model_save", RULE_ASIDE, NULL, NULL},
    {ZERO "stage3_gather_fp16_weights_on_model_save", RULE_ASIDE, NULL, NULL},
    {ZERO "gather_16bit_weights_on_model_save", RULE_ASIDE, NULL, NULL},
    {ZERO "elastic_checkpoint", RULE_ASIDE, NULL, NULL},
    {ZERO "ignore_unused_parameters", RULE_ASIDE, NULL, NULL},
    {ZERO "load_from_fp32_weights", RULE_ASIDE, NULL, NULL},
    {"tensor_parallel.autotp_size", RULE_INT, "parallelism.tensor", NULL},
    {"prescale_gradients", RULE_HELD, NULL, "false"},
    {"sparse_gradients", RULE_HELD, NULL, "false"},
    {"data_types.grad_accum_dtype", RULE_HELD, NULL, "null fp32"},
    {"steps_per_print", RULE_ASIDE, NULL, NULL},
    {"wall_clock_breakdown", RULE_ASIDE, NULL, NULL},
    {"dump_state", RULE_ASIDE, NULL, NULL},
    {"memory_breakdown", RULE_ASIDE, NULL, NULL},
    {"zero_allow_untested_optimizer", RULE_ASIDE, NULL, NULL},
    {"zero_force_ds_cpu_optimizer", RULE_ASIDE, NULL, NULL},
    {"checkpoint.*", RULE_ASIDE, NULL, NULL},
    {"tensorboard.*", RULE_ASIDE, NULL, NULL},
    {"wandb.*", RULE_ASIDE, NULL, NULL},
    {"csv_monitor.*", RULE_ASIDE, NULL, NULL},
    {"comms_logger.*", RULE_ASIDE, NULL, NULL},
    {"flops_profiler.*", RULE_ASIDE, NULL, NULL},
};
enum { N_RULES = sizeof rules / sizeof *rules };

enum status deepspeed_read(struct configuration *config, const char *path, struct diag *diag)
{
    return rules_apply_file(config, path, rules, N_RULES, diag);
}

static void finish_precision(struct configuration *config)
{
    struct configuration_setting *bf16 = setting_find(config, "bf16.enabled");
    struct configuration_setting *fp16 = setting_find(config, "fp16.enabled");
    bf16 = bf16 ? bf16 : setting_find(config, "bfloat16.enabled");
    if (bf16 && strcmp(bf16->value, "true") == 0)
        put_setting(config, "train.precision", "bf16_mixed", bf16);
    else if (fp16 && strcmp(fp16->value, "true") == 0)
        put_setting(config, "train.precision", "fp16_mixed", fp16);
    else if (put_find(config, "train.precision"))
        ; /* the user or another file says it */
    else if ((bf16 && strcmp(bf16->value, "auto") == 0) || (fp16 && strcmp(fp16->value, "auto") == 0))
        vec_push(&config->missing, "train.precision: --set train.precision=bf16_mixed, say; the file says auto");
    else
        put_assumed(config, "train.precision", "fp32", "as neither bf16 nor fp16 is enabled");
    if (bf16 && strcmp(bf16->value, "auto") != 0)
        setting_aside(bf16, "see fp16");
    if (fp16 && strcmp(fp16->value, "auto") != 0)
        setting_aside(fp16, "see bf16");
    setting_refuse(bf16, "auto: the trainer that is not in this file decides");
    setting_refuse(fp16, "auto: the trainer that is not in this file decides");
}

/* train_batch_size = micro-batch x gradient_accumulation_steps x ranks of data parallelism: of these three, DeepSpeed
 * works out what is not there (_set_batch_related_parameters), and so is the number of GPUs known where all are. */
static void finish_batch(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *whole = setting_find(config, "train_batch_size");
    struct configuration_setting *steps = setting_find(config, "gradient_accumulation_steps");
    int64_t batch = setting_int(config, "train_batch_size", 0, diag);
    int64_t accumulated = setting_int(config, "gradient_accumulation_steps", 0, diag);
    int64_t micro = put_int(config, "train.micro_batch", 0), gpus = put_int(config, "cluster.gpus", 0);
    int64_t copy = model_ranks(config);
    int64_t data = copy > 0 ? gpus / copy : 0;
    bool all = batch > 0 && micro > 0 && accumulated > 0;
    if (all && gpus == 0 && batch % micro == 0 && batch / micro % accumulated == 0)
        put_setting(config, "cluster.gpus", number_text(config, times(batch / micro / accumulated, copy)), whole);
    else if (all && (gpus == 0 || (double)batch != (double)micro * (double)accumulated * (double)data))
        diag_input(diag, whole->value_at,
            "train_batch_size of %lld is not %lld x gradient_accumulation_steps %lld x %lld ranks of data parallelism; "
            "DeepSpeed refuses it, too: give another --gpus, or leave one of them out",
            (long long)batch, (long long)micro, (long long)accumulated, (long long)data);
    else if (batch > 0 && micro > 0 && !all)
        put_setting(config, "train.global_batch", number_text(config, batch), whole);
    int64_t others = times(data, accumulated > 0 ? accumulated : 1);
    if (batch > 0 && micro == 0 && others > 0 && batch % others == 0)
        put_setting(config, "train.micro_batch", number_text(config, batch / others), whole);
    if (accumulated > 0 && !put_find(config, "train.global_batch"))
        put_setting(config, "train.grad_accum", number_text(config, accumulated), steps);
    setting_aside(whole, "it follows from the others");
    setting_aside(steps, "it follows from the others");
}

void deepspeed_finish(struct configuration *config, struct diag *diag)
{
    if (!put_find(config, "strategy"))
        put_assumed(config, "strategy", "deepspeed", NULL);
    finish_precision(config);
    finish_batch(config, diag);
    if (!put_find(config, OUR "stage"))
        put_assumed(config, OUR "stage", "0", "DeepSpeed's default");
    struct configuration_setting *type = setting_find(config, "optimizer.type");
    if (type && !put_find(config, "train.optimizer"))
        put_assumed(config, "train.optimizer", "adamw", "in place of what is not simulated");
    struct configuration_setting *plain = setting_find(config, "optimizer.params.torch_adam");
    if (type) {
        bool foreach = plain && strcmp(plain->value, "true") == 0;
        if (plain)
            put_setting(config, "train.optimizer_impl", foreach ? "foreach" : "fused", plain);
        else
            put_assumed(config, "train.optimizer_impl", "fused", "as DeepSpeed builds FusedAdam and FusedLion");
    }
}
