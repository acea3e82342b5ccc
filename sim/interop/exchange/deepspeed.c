/* DeepSpeed's configuration: deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py.
 *
 * One table of rules, then what several settings say together: precision, the three numbers of
 * the batch, "auto", the optimizer. Its finish function runs behind those of all other formats,
 * as the batch divides over ranks that a script or accelerate may state. What is subtle: of
 * train_batch_size, micro-batch and accumulation the missing one follows from the others; with
 * all three the number of GPUs follows, or contradicts the file, which is an error as in
 * DeepSpeed. "auto" is what transformers' Trainer makes of the model's hidden size, and is left
 * aside where no model is known. */
#include "exchange/rules.h"

#include <string.h>

#define ZERO "zero_optimization."
#define OUR "deepspeed.zero_optimization."
static const struct rule rules[] = {
    {"train_batch_size gradient_accumulation_steps", RULE_FACT, NULL, NULL},
    {"train_micro_batch_size_per_gpu", RULE_INT, "train.micro_batch", NULL},
    {"bf16.enabled bfloat16.enabled fp16.enabled", RULE_FACT, "train.precision", "true false auto"},
    {"fp16.auto_cast", RULE_HELD, NULL, "false"},
    {"fp16.*", RULE_ASIDE, NULL, "loss scaling"},
    {"bf16.immediate_grad_update bfloat16.immediate_grad_update", RULE_ASIDE, NULL, "of pipelines"},
    {"amp.enabled sparse_gradients progressive_layer_drop.enabled hybrid_engine.enabled elasticity.enabled "
     "curriculum_learning.enabled data_efficiency.enabled quantize_training.enabled autotuning.enabled",
        RULE_HELD, NULL, "false"},
    {"amp.* progressive_layer_drop.* hybrid_engine.* elasticity.* curriculum_learning.* data_efficiency.* "
     "quantize_training.* autotuning.*",
        RULE_ASIDE, NULL, "by its 'enabled'"},
    {"optimizer.type", RULE_WORDS, "train.optimizer", "Adam=adam AdamW=adamw SGD=sgd Lion=lion FusedLion=lion"},
    {"optimizer.params.torch_adam", RULE_FACT, NULL, "true false"},
    {"optimizer.params.* optimizer.legacy_fusion", RULE_ASIDE, NULL, "of the update's value"},
    {"scheduler.*", RULE_ASIDE, NULL, "learning rate"},
    {"gradient_clipping", RULE_ASIDE, NULL, "the norm is computed in any case"},
    {ZERO "stage", RULE_INT, OUR "stage", NULL},
    {ZERO "reduce_bucket_size", RULE_INT, OUR "reduce_bucket_size", NULL},
    {ZERO "allgather_bucket_size", RULE_INT, OUR "allgather_bucket_size", NULL},
    {ZERO "overlap_comm", RULE_BOOL, OUR "overlap_comm", NULL},
    {ZERO "use_multi_rank_bucket_allreduce", RULE_BOOL, OUR "use_multi_rank_bucket_allreduce", NULL},
    {ZERO "stage3_prefetch_bucket_size " ZERO "prefetch_bucket_size", RULE_INT, OUR "stage3_prefetch_bucket_size",
        NULL},
    {ZERO "stage3_param_persistence_threshold " ZERO "param_persistence_threshold", RULE_INT,
        OUR "stage3_param_persistence_threshold", NULL},
    {ZERO "stage3_max_live_parameters " ZERO "max_live_parameters", RULE_INT, OUR "stage3_max_live_parameters", NULL},
    {ZERO "stage3_max_reuse_distance " ZERO "max_reuse_distance", RULE_INT, OUR "stage3_max_reuse_distance", NULL},
    {ZERO "sub_group_size", RULE_SLIGHT, NULL, "the optimizer updates all in one group"},
    {ZERO "offload_optimizer.device", RULE_WORDS, OUR "offload_optimizer", "none=false cpu=true"},
    {ZERO "offload_optimizer.ratio", RULE_HELD, NULL, "1 1.0"},
    {ZERO "offload_optimizer.*", RULE_ASIDE, NULL, "of the device"},
    {ZERO "offload_param.device", RULE_HELD, NULL, "none"},
    {ZERO "offload_param.*", RULE_ASIDE, NULL, "of the device"},
    {ZERO "cpu_offload", RULE_BOOL, OUR "offload_optimizer", NULL}, /* before 0.5 */
    {ZERO "cpu_offload_params", RULE_HELD, NULL, "false"},
    {ZERO "contiguous_gradients " ZERO "reduce_scatter " ZERO "allgather_partitions", RULE_HELD, NULL, "true"},
    {ZERO "round_robin_gradients " ZERO "zero_quantized_weights " ZERO "zero_quantized_gradients " ZERO
          "zero_quantized_nontrainable_weights " ZERO "mics_hierarchical_params_gather",
        RULE_HELD, NULL, "false"},
    {ZERO "zero_hpz_partition_size", RULE_HELD, NULL, "1"},
    {ZERO "mics_shard_size", RULE_HELD, NULL, "-1"},
    {ZERO "memory_efficient_linear " ZERO "legacy_stage1", RULE_SLIGHT, NULL, "DeepSpeed's default is simulated"},
    {ZERO "stage3_gather_16bit_weights_on_model_save " ZERO "stage3_gather_fp16_weights_on_model_save " ZERO
          "gather_16bit_weights_on_model_save " ZERO "elastic_checkpoint " ZERO "load_from_fp32_weights",
        RULE_ASIDE, NULL, "saving and loading"},
    {ZERO "ignore_unused_parameters", RULE_ASIDE, NULL, "a check"},
    {"tensor_parallel.autotp_size", RULE_INT, "parallelism.tensor", NULL},
    {"prescale_gradients gradient_predivide_factor", RULE_ASIDE, NULL,
        "whether gradients are divided before they are reduced or after"},
    {"data_types.grad_accum_dtype", RULE_HELD, NULL, "null fp32"},
    {"communication_data_type disable_allgather", RULE_REFUSED, NULL,
        "gradients are reduced in the format of training, parameters gathered by all_gather"},
    {"activation_checkpointing.partition_activations activation_checkpointing.cpu_checkpointing "
     "activation_checkpointing.contiguous_memory_optimization",
        RULE_HELD, NULL, "false"},
    {"activation_checkpointing.*", RULE_ASIDE, NULL, "the model says what is checkpointed"},
    {"compression_training.*", RULE_SLIGHT, "compression_training",
        "fake quantization, masks and the teacher are not simulated; the model that is named is the one that is "
        "trained"},
    {"sparse_attention.*", RULE_REFUSED, NULL, "all of a sequence's attention is simulated"},
    {"aio.* nebula.*", RULE_ASIDE, NULL, "of NVMe and of saving"},
    {"steps_per_print wall_clock_breakdown dump_state memory_breakdown monitor_config.* tensorboard.* wandb.* "
     "csv_monitor.* comet.* comms_logger.* flops_profiler.* eigenvalue.*",
        RULE_ASIDE, NULL, "logging"},
    {"zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_allow_comm_data_type_fp32", RULE_ASIDE, NULL,
        "a check"},
    {"checkpoint.* load_universal_checkpoint use_data_before_expert_parallelism seed", RULE_ASIDE, NULL,
        "saving and loading"},
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
    bool left = (bf16 && strcmp(bf16->value, "auto") == 0) || (fp16 && strcmp(fp16->value, "auto") == 0);
    if (bf16 && strcmp(bf16->value, "true") == 0)
        put_setting(config, "train.precision", "bf16_mixed", bf16);
    else if (fp16 && strcmp(fp16->value, "true") == 0)
        put_setting(config, "train.precision", "fp16_mixed", fp16);
    else if (left && !put_find(config, "train.precision"))
        vec_push(&config->missing, "train.precision: --set train.precision=bf16_mixed, say; the file says auto");
    else if (!put_find(config, "train.precision"))
        put_assumed(config, "train.precision", "fp32", "as neither bf16 nor fp16 is enabled");
    struct configuration_setting *both[] = {bf16, fp16};
    for (int i = 0; i < 2; i++) {
        if (both[i] && !both[i]->words && strcmp(both[i]->value, "auto") == 0)
            setting_aside(both[i], "auto: see train.precision");
        else if (both[i] && !both[i]->words)
            setting_aside(both[i], strcmp(both[i]->value, "false") == 0 ? "off" : "the other format is on, too");
    }
}

/* "auto": what transformers' Trainer and accelerate put there, of the model's hidden size
 * (transformers/integrations/deepspeed.py, trainer_config_finalize). */
static void finish_auto(struct configuration *config)
{
    int64_t width = model_width(config);
    const struct {
        const char *name, *key, *formula;
        int64_t value;
    } sizes[] = {
        {ZERO "reduce_bucket_size", OUR "reduce_bucket_size", "hidden size squared", times(width, width)},
        {ZERO "stage3_prefetch_bucket_size", OUR "stage3_prefetch_bucket_size", "0.9 x hidden size squared",
            times(width, width) / 10 * 9 + times(width, width) % 10 * 9 / 10},
        {ZERO "stage3_param_persistence_threshold", OUR "stage3_param_persistence_threshold", "10 x hidden size",
            times(width, 10)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct configuration_setting *setting = setting_open(config, sizes[i].name);
        if (!setting)
            continue;
        if (width > 0)
            put_setting(config, sizes[i].key, number_text(config, sizes[i].value), setting);
        else if (!put_find(config, "model") && !put_find(config, sizes[i].key))
            setting_aside(setting, "auto: the Trainer works it out of the model, which is missing");
        if (width > 0 && setting->fate == FATE_TAKEN)
            assume(config, arena_printf(config->arena, "%s: %s, as transformers' Trainer makes of auto", sizes[i].key,
                               sizes[i].formula));
    }
    struct configuration_setting *steps = setting_find(config, "gradient_accumulation_steps");
    if (steps && strcmp(steps->value, "auto") == 0 && !put_find(config, "train.grad_accum") &&
        !put_find(config, "train.global_batch") && !put_find(config, "train.device_batch"))
        put_assumed(config, "train.grad_accum", "1", "the default of transformers' Trainer, as the file says auto");
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

/* OneBitAdam is Adam until its freeze_step, and compresses what it communicates from then on (onebit/adam.py): the
 * first part is simulated, and the file says so. ZeroOneAdam compresses from the beginning, Lamb has norms of each
 * tensor. */
static void finish_optimizer(struct configuration *config, struct configuration_setting *type)
{
    if (strcmp(type->value, "OneBitAdam") == 0) {
        type->fate = FATE_TAKEN;
        type->words = "Adam until freeze_step; see assumptions";
        put_assumed(config, "train.optimizer", "adam",
            "as OneBitAdam until its freeze_step; what it compresses from then on is not simulated");
    }
    if (!put_find(config, "train.optimizer"))
        put_assumed(config, "train.optimizer", "adamw", "in place of what is not simulated");
}

void deepspeed_finish(struct configuration *config, struct diag *diag)
{
    if (!put_find(config, "strategy"))
        put_assumed(config, "strategy", "deepspeed", NULL);
    finish_precision(config);
    finish_batch(config, diag);
    finish_auto(config);
    if (!put_find(config, OUR "stage"))
        put_assumed(config, OUR "stage", "0", "DeepSpeed's default");
    struct configuration_setting *type = setting_find(config, "optimizer.type");
    if (type && !put_find(config, "train.optimizer"))
        finish_optimizer(config, type);
    struct configuration_setting *plain = setting_find(config, "optimizer.params.torch_adam");
    if (type) {
        bool foreach = plain && strcmp(plain->value, "true") == 0;
        if (plain)
            put_setting(config, "train.optimizer_impl", foreach ? "foreach" : "fused", plain);
        else
            put_assumed(config, "train.optimizer_impl", "fused", "as DeepSpeed builds FusedAdam and FusedLion");
    }
}
