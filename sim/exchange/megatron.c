/* Arguments of Megatron-LM (megatron/training/arguments.py) and of Megatron-DeepSpeed beside them. */
#include "exchange/rules.h"
#include "exchange/shell.h"

#include <stdlib.h>
#include <string.h>

#define PAR "parallelism."
#define MEG "megatron."
static const struct rule rules[] = {{"--nproc-per-node", RULE_FACT, NULL, NULL}, {"--nnodes", RULE_FACT, NULL, NULL},
    {"--num-layers", RULE_MODEL, "n_layers", NULL}, {"--encoder-num-layers", RULE_MODEL, "n_layers", NULL},
    {"--hidden-size", RULE_MODEL, "d_model", NULL}, {"--ffn-hidden-size", RULE_MODEL, "d_ff", NULL},
    {"--num-attention-heads", RULE_MODEL, "n_heads", NULL}, {"--num-query-groups", RULE_MODEL, "n_kv_heads", NULL},
    {"--kv-channels", RULE_MODEL, "d_kv", NULL}, {"--max-position-embeddings", RULE_FACT, NULL, NULL},
    {"--pad-vocab-size-to", RULE_FACT, NULL, NULL}, {"--padded-vocab-size", RULE_FACT, NULL, NULL},
    {"--vocab-size", RULE_FACT, NULL, NULL}, {"--make-vocab-size-divisible-by", RULE_FACT, NULL, NULL},
    {"--tokenizer-type", RULE_FACT, NULL, NULL}, {"--merge-file", RULE_FACT, NULL, NULL},
    {"--position-embedding-type", RULE_FACT, NULL, "learned_absolute rope alibi none"},
    {"--use-rotary-position-embeddings", RULE_FACT, NULL, NULL}, {"--rotary-percent", RULE_FACT, NULL, NULL},
    {"--normalization", RULE_FACT, NULL, "LayerNorm RMSNorm"}, {"--swiglu", RULE_FACT, NULL, NULL},
    {"--group-query-attention", RULE_FACT, NULL, NULL},
    {"--untie-embeddings-and-output-weights", RULE_FACT, NULL, NULL}, {"--disable-bias-linear", RULE_FACT, NULL, NULL},
    {"--embed-layernorm", RULE_FACT, NULL, NULL}, {"--hidden-dropout", RULE_FACT, NULL, NULL},
    {"--attention-dropout", RULE_FACT, NULL, NULL}, {"--num-experts", RULE_FACT, NULL, NULL},
    {"--moe-router-topk", RULE_FACT, NULL, NULL}, {"--moe-ffn-hidden-size", RULE_FACT, NULL, NULL},
    {"--seq-length", RULE_INT, "train.seq_len", NULL}, {"--micro-batch-size", RULE_INT, "train.micro_batch", NULL},
    {"--global-batch-size", RULE_INT, "train.global_batch", NULL},
    {"--rampup-batch-size", RULE_ASIDE, NULL, NULL}, /* the batch that it ends at is simulated */
    {"--bf16", RULE_SET, "train.precision", "bf16_mixed"}, {"--fp16", RULE_SET, "train.precision", "fp16_mixed"},
    {"--fp8-format", RULE_FACT, NULL, "hybrid e4m3"},
    {"--fp8-recipe", RULE_WORDS, "train.fp8_recipe", "delayed=delayed tensorwise=tensorwise"},
    {"--fp8-param-gather", RULE_SET, MEG "fp8_param_gather", "true"},
    {"--optimizer", RULE_WORDS, "train.optimizer", "adam=adam sgd=sgd"},
    {"--recompute-activations", RULE_SET, "train.activation_checkpointing", "core_attn"},
    {"--checkpoint-activations", RULE_SET, "train.activation_checkpointing", "full"},
    {"--recompute-granularity", RULE_FACT, NULL, "full selective"},
    {"--recompute-method", RULE_WORDS, "train.recompute_method", "uniform=uniform block=block"},
    {"--recompute-num-layers", RULE_INT, "train.recompute_num_layers", NULL},
    {"--recompute-modules", RULE_FACT, NULL, NULL},
    {"--checkpoint-num-layers", RULE_INT, "train.recompute_num_layers", NULL},
    {"--tensor-model-parallel-size", RULE_INT, PAR "tensor", NULL},
    {"--pipeline-model-parallel-size", RULE_INT, PAR "pipeline", NULL},
    {"--context-parallel-size", RULE_INT, PAR "context", NULL},
    {"--cp-comm-type", RULE_WORDS, PAR "context_kind", "p2p=p2p all_gather=all_gather a2a=a2a"},
    {"--expert-model-parallel-size", RULE_INT, PAR "expert", NULL},
    {"--expert-tensor-parallel-size", RULE_INT, PAR "expert_tensor", NULL},
    {"--sequence-parallel", RULE_SET, PAR "sequence", "true"},
    {"--num-layers-per-virtual-pipeline-stage", RULE_FACT, NULL, NULL},
    {"--num-virtual-stages-per-pipeline-rank", RULE_INT, PAR "virtual", NULL},
    {"--decoder-first-pipeline-num-layers", RULE_INT, PAR "first_layers", NULL},
    {"--decoder-last-pipeline-num-layers", RULE_INT, PAR "last_layers", NULL},
    {"--no-overlap-p2p-communication", RULE_SET, PAR "overlap_p2p_comm", "false"},
    {"--scatter-gather-tensors-in-pipeline", RULE_SET, PAR "scatter_gather", "true"},
    {"--no-scatter-gather-tensors-in-pipeline", RULE_SET, PAR "scatter_gather", "false"},
    {"--tp-comm-overlap", RULE_SET, PAR "tensor_overlap", "user_buffers"},
    {"--no-async-tensor-model-parallel-allreduce", RULE_SET, PAR "tensor_overlap", "none"},
    {"--use-distributed-optimizer", RULE_SET, MEG "use_distributed_optimizer", "true"},
    {"--overlap-grad-reduce", RULE_SET, MEG "overlap_grad_reduce", "true"},
    {"--overlap-param-gather", RULE_SET, MEG "overlap_param_gather", "true"},
    {"--accumulate-allreduce-grads-in-fp32", RULE_SET, MEG "grad_reduce_in_fp32", "true"},
    {"--grad-reduce-in-bf16", RULE_SET, MEG "grad_reduce_in_fp32", "false"},
    {"--no-check-for-nan-in-loss-and-grad", RULE_SET, MEG "check_for_nan_in_grad", "false"},
    {"--ddp-average-in-collective", RULE_SET, MEG "average_in_collective", "true"},
    {"--ddp-bucket-size", RULE_INT, MEG "bucket_size", NULL},
    {"--use-flash-attn", RULE_SET, "train.attention", "flash"},
    {"--attention-backend", RULE_WORDS, "train.attention",
        "flash=flash fused=flash auto=flash unfused=naive local=naive"},
    {"--transformer-impl", RULE_WORDS, "train.fusion", "transformer_engine=transformer_engine local=torchscript"},
    {"--cross-entropy-loss-fusion", RULE_SET, "train.cross_entropy", "fused"},
    {"--cross-entropy-fusion-impl", RULE_WORDS, "train.cross_entropy", "native=fused te=te"},
    {"--moe-grouped-gemm", RULE_SET, "train.expert_kernels", "grouped"},
    {"--moe-token-dispatcher-type", RULE_WORDS, "train.moe_token_dispatcher_type",
        "alltoall=alltoall allgather=allgather flex=flex"},
    {"--moe-pad-expert-input-to-capacity", RULE_SET, "train.moe_pad_expert_input_to_capacity", "true"},
    {"--moe-shared-expert-overlap", RULE_SET, "train.moe_shared_expert_overlap", "true"},
    {"--deepspeed", RULE_FACT, NULL, NULL}, {"--deepspeed-config", RULE_FACT, NULL, NULL},
    {"--zero-stage", RULE_INT, "deepspeed.zero_optimization.stage", NULL},
    {"--deepspeed-activation-checkpointing", RULE_ASIDE, NULL, NULL},
    {"--pp-partition-method", RULE_WORDS, PAR "partition_method",
        "uniform=uniform type:transformer=type:transformer type:transformer|embedding=type:transformer|embedding"},
    {"--use-mcore-models", RULE_ASIDE, NULL, NULL}, {"--no-masked-softmax-fusion", RULE_FACT, NULL, NULL},
    {"--no-gradient-accumulation-fusion", RULE_ASIDE, NULL, NULL},
    /* No part in speed or memory. */
    {"--DDP-impl", RULE_ASIDE, NULL, NULL}, {"--abort-on-unmet-fused-kernel-constraints", RULE_ASIDE, NULL, NULL},
    {"--adam-beta1", RULE_ASIDE, NULL, NULL}, {"--adam-beta2", RULE_ASIDE, NULL, NULL},
    {"--adam-eps", RULE_ASIDE, NULL, NULL}, {"--apply-layernorm-1p", RULE_ASIDE, NULL, NULL},
    {"--ckpt-format", RULE_ASIDE, NULL, NULL}, {"--clip-grad", RULE_ASIDE, NULL, NULL},
    {"--codecarbon-dir", RULE_ASIDE, NULL, NULL}, {"--data-cache-path", RULE_ASIDE, NULL, NULL},
    {"--data-impl", RULE_ASIDE, NULL, NULL}, {"--data-path", RULE_ASIDE, NULL, NULL},
    {"--dataloader-type", RULE_ASIDE, NULL, NULL}, {"--distributed-backend", RULE_ASIDE, NULL, NULL},
    {"--distributed-timeout-minutes", RULE_ASIDE, NULL, NULL}, {"--eval-interval", RULE_ASIDE, NULL, NULL},
    {"--eval-iters", RULE_ASIDE, NULL, NULL}, {"--exit-duration-in-mins", RULE_ASIDE, NULL, NULL},
    {"--exit-interval", RULE_ASIDE, NULL, NULL}, {"--hysteresis", RULE_ASIDE, NULL, NULL},
    {"--init-method-std", RULE_ASIDE, NULL, NULL}, {"--initial-loss-scale", RULE_ASIDE, NULL, NULL},
    {"--kill-switch-path", RULE_ASIDE, NULL, NULL}, {"--load", RULE_ASIDE, NULL, NULL},
    {"--log-interval", RULE_ASIDE, NULL, NULL}, {"--log-throughput", RULE_ASIDE, NULL, NULL},
    {"--log-timers-to-tensorboard", RULE_ASIDE, NULL, NULL},
    {"--log-batch-size-to-tensorboard", RULE_ASIDE, NULL, NULL},
    {"--log-validation-ppl-to-tensorboard", RULE_ASIDE, NULL, NULL}, {"--log-level", RULE_ASIDE, NULL, NULL},
    {"--log-level-replica", RULE_ASIDE, NULL, NULL}, {"--loss-scale", RULE_ASIDE, NULL, NULL},
    {"--loss-scale-window", RULE_ASIDE, NULL, NULL}, {"--lr", RULE_ASIDE, NULL, NULL},
    {"--lr-decay-iters", RULE_ASIDE, NULL, NULL}, {"--lr-decay-samples", RULE_ASIDE, NULL, NULL},
    {"--lr-decay-style", RULE_ASIDE, NULL, NULL}, {"--lr-warmup-fraction", RULE_ASIDE, NULL, NULL},
    {"--lr-warmup-init", RULE_ASIDE, NULL, NULL}, {"--lr-warmup-iters", RULE_ASIDE, NULL, NULL},
    {"--lr-warmup-samples", RULE_ASIDE, NULL, NULL}, {"--manual-gc", RULE_ASIDE, NULL, NULL},
    {"--master-addr", RULE_ASIDE, NULL, NULL}, {"--master-port", RULE_ASIDE, NULL, NULL},
    {"--max-restarts", RULE_ASIDE, NULL, NULL}, {"--min-loss-scale", RULE_ASIDE, NULL, NULL},
    {"--min-lr", RULE_ASIDE, NULL, NULL}, {"--mock-data", RULE_ASIDE, NULL, NULL},
    {"--moe-aux-loss-coeff", RULE_ASIDE, NULL, NULL}, {"--moe-router-load-balancing-type", RULE_ASIDE, NULL, NULL},
    {"--no-load-optim", RULE_ASIDE, NULL, NULL}, {"--no-load-rng", RULE_ASIDE, NULL, NULL},
    {"--node-rank", RULE_ASIDE, NULL, NULL}, {"--norm-epsilon", RULE_ASIDE, NULL, NULL},
    {"--num-workers", RULE_ASIDE, NULL, NULL}, {"--partition-activations", RULE_FACT, NULL, NULL},
    {"--rdzv-backend", RULE_ASIDE, NULL, NULL}, {"--rdzv-endpoint", RULE_ASIDE, NULL, NULL},
    {"--rdzv-id", RULE_ASIDE, NULL, NULL}, {"--rotary-base", RULE_ASIDE, NULL, NULL},
    {"--save", RULE_ASIDE, NULL, NULL}, {"--save-interval", RULE_ASIDE, NULL, NULL}, {"--seed", RULE_ASIDE, NULL, NULL},
    {"--split", RULE_ASIDE, NULL, NULL}, {"--tee", RULE_ASIDE, NULL, NULL},
    {"--tensorboard-dir", RULE_ASIDE, NULL, NULL}, {"--tensorboard-log-interval", RULE_ASIDE, NULL, NULL},
    {"--tensorboard-queue-size", RULE_ASIDE, NULL, NULL}, {"--tokenizer-model", RULE_ASIDE, NULL, NULL},
    {"--tokenizer-name-or-path", RULE_ASIDE, NULL, NULL}, {"--train-iters", RULE_ASIDE, NULL, NULL},
    {"--train-samples", RULE_ASIDE, NULL, NULL}, {"--train-weighted-split-paths-path", RULE_ASIDE, NULL, NULL},
    {"--train-data-path", RULE_ASIDE, NULL, NULL}, {"--valid-num-workers", RULE_ASIDE, NULL, NULL},
    {"--valid-data-path", RULE_ASIDE, NULL, NULL}, {"--test-data-path", RULE_ASIDE, NULL, NULL},
    {"--valid-weighted-split-paths-path", RULE_ASIDE, NULL, NULL}, {"--vocab-file", RULE_ASIDE, NULL, NULL},
    {"--wandb-exp-name", RULE_ASIDE, NULL, NULL}, {"--wandb-project", RULE_ASIDE, NULL, NULL},
    {"--wandb-save-dir", RULE_ASIDE, NULL, NULL}, {"--weight-decay", RULE_ASIDE, NULL, NULL},
    {"--weight-decay-incr-style", RULE_ASIDE, NULL, NULL}};
enum { N_RULES = sizeof rules / sizeof *rules };

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
    if (argument->unset)
        setting.words = arena_printf(config->arena, "the file does not say what %s is", argument->unset);
    const char *why = setting.words;
    setting.words = NULL;
    struct configuration_setting aside = setting;
    enum status status = STATUS_OK;
    if (!why)
        status = rules_apply(config, rules, N_RULES, &setting, diag);
    else if (rules_apply(config, rules, N_RULES, &aside, &(struct diag){0}) == STATUS_OK && aside.fate == FATE_ASIDE)
        setting = aside;
    else
        setting.words = why;
    vec_push(&config->settings, setting);
    return status;
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
    for (int i = 0; i < arguments.list.n; i++) {
        enum status one = take_argument(config, &arguments.list.at[i], diag);
        status = status == STATUS_OK ? one : status;
    }
    vec_free(&arguments.list);
    free(text);
    return status;
}

static void finish_gpus(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *per_node = setting_find(config, "--nproc-per-node");
    struct configuration_setting *nodes = setting_find(config, "--nnodes");
    int64_t gpus = times(setting_int(config, "--nproc-per-node", 0, diag), setting_int(config, "--nnodes", 1, diag));
    bool known = per_node && per_node->words == NULL && (!nodes || nodes->words == NULL);
    if (gpus > 0 && known && !put_find(config, "cluster.gpus"))
        put_setting(config, "cluster.gpus", number_text(config, gpus), per_node);
    if (!known)
        setting_refuse(per_node, "it is multiplied by --nnodes, which is not known");
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
    finish_gpus(config, diag);
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
    if (file && config->has[CONFIGURATION_DEEPSPEED])
        setting_aside(file, "read");
    setting_refuse(file, "name that file, too");
    megatron_model(config, diag);
}
