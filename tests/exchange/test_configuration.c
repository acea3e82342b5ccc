/* What settings of other frameworks become. Whole files, written after published ones, are imported
 * and run by tests/cli/scenario_import.sh. */
#include "exchange/configuration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA FLOPCAST_TEST_DIR "/data/"

static void import_text(struct configuration *config, enum configuration_format format,
    const char *text, int gpus, struct diag *diag)
{
    char path[] = "/tmp/flopcast-configuration-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    configuration_read(config, path, format, diag);
    unlink(path);
    if (diag->worst == STATUS_OK)
        configuration_finish(
            config, &(struct configuration_given){.name = "x", .gpus = gpus}, diag);
}

static const char *of(const struct configuration *config, const char *key)
{
    for (int i = 0; i < config->puts.n; i++)
        if (strcmp(config->puts.at[i].path, key) == 0)
            return config->puts.at[i].text;
    return "-";
}

static const char *of_model(const struct configuration *config, const char *key)
{
    for (int i = 0; i < config->model.n; i++)
        if (strcmp(config->model.at[i].path, key) == 0)
            return config->model.at[i].text;
    return "-";
}

struct expected {
    const char *key, *text;
};

static void check(
    enum configuration_format format, const char *text, int gpus, const struct expected *expected)
{
    struct arena arena = ARENA_INIT;
    struct configuration config = {.arena = &arena};
    struct diag diag = DIAG_INIT;
    import_text(&config, format, text, gpus, &diag);
    assert_string_equal(diag.text, "");
    for (; expected->key; expected++) {
        bool model = strncmp(expected->key, "model:", 6) == 0;
        const char *is = model ? of_model(&config, expected->key + 6) : of(&config, expected->key);
        if (strcmp(is, expected->text) != 0)
            fail_msg("%s: %s is %s, not %s", text, expected->key, is, expected->text);
    }
    configuration_free(&config);
    arena_release(&arena);
}
#define CHECK(format, text, gpus, ...)                                                             \
    check(format, text, gpus, (const struct expected[]){__VA_ARGS__, {0}})

/* train_batch_size = micro-batch x steps x ranks (_set_batch_related_parameters of
 * deepspeed/runtime/config.py): 256 = 4 x 2 x 32. */
static void deepspeed_batches(void **state)
{
    (void)state;
    const enum configuration_format ds = CONFIGURATION_DEEPSPEED;
    CHECK(ds,
        "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, "
        "\"gradient_accumulation_steps\": 2}",
        0, {"cluster.gpus", "32"}, {"train.micro_batch", "4"}, {"train.grad_accum", "2"},
        {"train.precision", "fp32"}, {"deepspeed.zero_optimization.stage", "0"},
        {"strategy", "deepspeed"});
    CHECK(ds,
        "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, "
        "\"gradient_accumulation_steps\": 2}",
        32, {"cluster.gpus", "32"}, {"train.grad_accum", "2"});
    CHECK(ds, "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4}", 0,
        {"train.global_batch", "256"}, {"train.micro_batch", "4"}, {"cluster.gpus", "-"});
    CHECK(ds, "{\"train_batch_size\": 256, \"gradient_accumulation_steps\": 2}", 32,
        {"train.micro_batch", "4"}, {"train.grad_accum", "2"});
    CHECK(ds, "{\"train_batch_size\": 256}", 32, {"train.micro_batch", "8"});
    CHECK(ds,
        "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, "
        "\"gradient_accumulation_steps\": 2, "
        "\"tensor_parallel\": {\"autotp_size\": 2}}",
        0, {"cluster.gpus", "64"});
    CHECK(ds,
        "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2, "
        "\"reduce_bucket_size\": 2e8}}",
        0, {"train.precision", "bf16_mixed"},
        {"deepspeed.zero_optimization.reduce_bucket_size", "200000000"});
}

static void accelerate_plugins(void **state)
{
    (void)state;
    const enum configuration_format yaml = CONFIGURATION_ACCELERATE;
    CHECK(yaml,
        "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config: {fsdp_sharding_strategy: 5}\n",
        8, {"fsdp.sharding_strategy", "_HYBRID_SHARD_ZERO2"}, {"fsdp.backward_prefetch", "None"},
        {"train.autocast", "-"});
    CHECK(yaml,
        "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false, "
        "fsdp_activation_checkpointing: true}\n",
        8, {"fsdp.reshard_after_forward", "never"}, {"fsdp.version", "2"},
        {"train.activation_checkpointing", "full"});
    CHECK(yaml, "distributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: 4\n", 0,
        {"strategy", "ddp"}, {"train.autocast", "true"}, {"train.precision", "fp16_mixed"},
        {"cluster.gpus", "4"});
}

/* 8 x 2 x 4 x 2 = 128 ranks. */
static void torchtitan_degrees(void **state)
{
    (void)state;
    const enum configuration_format toml = CONFIGURATION_TORCHTITAN;
    CHECK(toml,
        "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 16\nseq_len "
        "= 4096\n"
        "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 8\n"
        "tensor_parallel_degree = 4\npipeline_parallel_degree = 2\npipeline_parallel_schedule = "
        "\"Interleaved1F1B\"\n",
        0, {"model", "llama3.1-70b"}, {"cluster.gpus", "128"},
        {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"fsdp.sharding_group_size", "8"},
        {"parallelism.virtual", "2"}, {"parallelism.schedule", "1F1B"},
        {"train.device_batch", "16"}, {"train.micro_batch", "1"}, {"parallelism.sequence", "true"});
    CHECK(toml,
        "[training]\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"2\"\n",
        8, {"train.activation_checkpointing", "full"}, {"train.checkpoint_interval", "2"},
        {"train.seq_len", "2048"}, {"train.micro_batch", "8"});
    CHECK(toml,
        "[training]\ndata_parallel_shard_degree = 8\ncompile = true\n[model]\nconverters = "
        "[\"float8\"]\n",
        0, {"cluster.gpus", "8"}, {"train.fusion", "inductor"}, {"train.precision", "fp8_mixed"},
        {"train.fp8_recipe", "tensorwise"});
}

/* 61 blocks over 4 stages of two at a time: 7 chunks each, as whole as they go; 16 nodes of eight.
 */
static void automodel_recipes(void **state)
{
    (void)state;
    const enum configuration_format yaml = CONFIGURATION_ACCELERATE; /* its keys say whose it is */
    CHECK(yaml,
        "recipe: a\nstep_scheduler: {local_batch_size: 8, global_batch_size: 512}\n"
        "distributed: {strategy: fsdp2, pp_size: 4, ep_size: 32, activation_checkpointing: true, "
        "pipeline: {pp_schedule: interleaved1f1b, pp_microbatch_size: 2, layers_per_stage: 2}}\n"
        "model: {config: {pretrained_model_name_or_path: deepseek-ai/DeepSeek-V3}, backend: "
        "{dispatcher: deepep, dispatcher_num_sms: 64, experts: gmm}}\nbenchmark: {num_nodes: "
        "16}\ndataset: {seq_len: 2048}\n",
        0, {"model", "deepseek-v3"}, {"cluster.gpus", "128"}, {"parallelism.virtual", "7"},
        {"train.device_batch", "8"}, {"train.micro_batch", "2"}, {"train.global_batch", "-"},
        {"train.moe_deepep_num_sms", "64"}, {"train.moe_token_dispatcher_type", "flex"},
        {"train.precision", "bf16"}, {"train.seq_len", "2048"},
        {"train.activation_checkpointing", "full"}, {"fsdp.version", "2"},
        {"fsdp.reshard_after_forward", "never"});
    CHECK(yaml,
        "recipe: a\nstep_scheduler: {local_batch_size: 8}\nmodel: {pretrained_model_name_or_path: "
        "Qwen/Qwen3-8B}\n"
        "optimizer: {_target_: torch.optim.AdamW, fused: true}\nloss_fn: {_target_: "
        "a.FusedLinearCrossEntropy}\n"
        "benchmark: {num_nodes: 2}\nci: {cluster_tag: gb200}\n",
        0, {"model", "qwen3-8b"}, {"cluster.gpus", "8"}, {"train.micro_batch", "8"},
        {"train.optimizer", "adamw"}, {"train.optimizer_impl", "fused"},
        {"train.cross_entropy", "fused"}, {"parallelism.schedule", "-"});
}

#define PRIMUS(framework, model, overrides)                                                        \
    "exp_name: a\nmodules: {pre_trainer: {framework: " framework                                   \
    ", config: pre_trainer.yaml, model: " model ", overrides: {" overrides "}}}\n"
/* Switches of Megatron's namespace are arguments that are there or not; 7 + 6 x 8 + 7 blocks are a
 * layout's. */
static void primus_overrides(void **state)
{
    (void)state;
    const enum configuration_format yaml = CONFIGURATION_ACCELERATE;
    CHECK(yaml,
        PRIMUS("megatron", "\"${M:qwen3_30B_A3B}.yaml\"",
            "micro_batch_size: 2, seq_length: \"${S:-4096}\", expert_model_parallel_size: 8, "
            "sequence_parallel: 1, overlap_grad_reduce: true, overlap_param_gather: false, "
            "use_turbo_deepep: true, turbo_deepep_num_cu: 80, lr_decay_iters: null, "
            "recompute_granularity: full, recompute_num_layers: 0"),
        0, {"model", "qwen3-30b-a3b"}, {"train.seq_len", "4096"},
        {"megatron.overlap_grad_reduce", "true"}, {"megatron.overlap_param_gather", "false"},
        {"megatron.use_distributed_optimizer", "true"}, {"train.moe_deepep_num_sms", "80"},
        {"train.activation_checkpointing", "-"}, {"cluster.gpus", "8"},
        {"train.precision", "bf16_mixed"}, {"parallelism.sequence", "-"});
    CHECK(yaml,
        PRIMUS("megatron", "glm4.5.yaml",
            "pipeline_model_parallel_size: 4, fp8: hybrid, use_torch_fsdp2: true"),
        0, {"strategy", "fsdp"}, {"fsdp.version", "2"}, {"megatron.overlap_grad_reduce", "-"},
        {"stack", "pytorch-2.11"}, {"train.fp8_recipe", "tensorwise"},
        {"train.precision", "fp8_mixed"});
    CHECK(yaml,
        PRIMUS("megatron", "qwen2.5_72B.yaml",
            "pipeline_model_parallel_size: 8, pipeline_model_parallel_layout: "
            "\"Et*7|t*11|t*11|t*11|t*11|t*11|t*11|t*7,L\""),
        0, {"parallelism.first_layers", "7"}, {"parallelism.last_layers", "7"},
        {"parallelism.virtual", "-"});
    CHECK(yaml, PRIMUS("megatron", "llama3.1_405B.yaml", "pipeline_model_parallel_size: 8"), 0,
        {"parallelism.partition_method", "weighted"});
    CHECK(yaml,
        PRIMUS("torchtitan", "llama3.1_70B-fp8.yaml",
            "training: {local_batch_size: 4}, activation_checkpoint: {mode: full}"),
        0, {"model", "llama3.1-70b"}, {"train.precision", "fp8_mixed"}, {"train.micro_batch", "4"},
        {"strategy", "fsdp"});
}

/* Rows of the embedding: 50,257 up to a multiple of 128 x 8 = 51,200, as the 175B of arXiv
 * 2104.04473 has. Llama's feed-forward layer: 4096 x 4 x 2 / 3 = 10,922, down to a multiple of 64:
 * 10,880. */
static void megatron_models(void **state)
{
    (void)state;
    const enum configuration_format sh = CONFIGURATION_MEGATRON;
    CHECK(sh,
        "p --num-layers 96 --hidden-size 12288 --num-attention-heads 96 --max-position-embeddings "
        "2048 --tensor-model-parallel-size 8 --tokenizer-type GPT2BPETokenizer --fp16 "
        "--cuda-graph-impl local",
        0, {"model:vocab", "51200"}, {"model:d_ff", "49152"}, {"model:family", "gpt"},
        {"model:max_positions", "2048"}, {"model:dropout", "0.1"}, {"strategy", "megatron"},
        {"megatron.grad_reduce_in_fp32", "false"}, {"megatron.use_distributed_optimizer", "false"},
        {"stack", "megatron-core"}, {"train.cuda_graphs", "layer"});
    CHECK(sh,
        "p --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention "
        "--num-query-groups 8 --swiglu --normalization RMSNorm --use-rotary-position-embeddings "
        "--untie-embeddings-and-output-weights --disable-bias-linear --vocab-size 32000 --bf16 "
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 "
        "--hidden-dropout 0.0 --recompute-granularity selective --num-experts 8 --moe-router-topk "
        "2",
        0, {"model:family", "llama"}, {"model:d_ff", "10880"}, {"model:n_kv_heads", "8"},
        {"model:tied_embeddings", "false"}, {"model:moe.experts", "8"},
        {"model:moe.experts_per_token", "2"}, {"model:dropout", "0"}, {"parallelism.virtual", "4"},
        {"train.activation_checkpointing", "core_attn"}, {"megatron.grad_reduce_in_fp32", "true"});
    CHECK(sh, "p --optimizer dist_muon --muon-momentum 0.95 --muon-tp-mode blockwise --bf16", 0,
        {"train.optimizer", "muon"}, {"train.muon_distributed", "true"});
    CHECK(sh,
        "torchrun --nproc_per_node 8 --nnodes 4 p --deepspeed --zero-stage 1 "
        "--checkpoint-activations",
        0, {"cluster.gpus", "32"}, {"strategy", "deepspeed"},
        {"deepspeed.zero_optimization.stage", "1"}, {"stack", "megatron-deepspeed-2022"});
}

/* torchtitan's rules with their other side: what a pipeline, plain DDP, a switch of an older name
 * or a default make. */
static void torchtitan_rules(void **state)
{
    (void)state;
    const enum configuration_format toml = CONFIGURATION_TORCHTITAN;
    CHECK(toml, "[training]\nmixed_precision_param = \"float32\"\n", 8, {"strategy", "fsdp"},
        {"fsdp.version", "2"}, {"fsdp.sharding_strategy", "-"}, {"train.precision", "fp32"},
        {"train.activation_checkpointing", "selective"}, {"train.checkpoint_interval", "-"},
        {"parallelism.sequence", "-"}, {"fsdp.reduce_dtype", "fp32"}, {"train.fp8_recipe", "-"},
        {"train.clip_grad_norm", "-"}, {"train.global_batch", "-"}, {"cluster.gpus", "8"});
    CHECK(toml,
        "[training]\nmixed_precision_param = \"bfloat16\"\nmixed_precision_reduce = "
        "\"bfloat16\"\nmax_norm = 0\n",
        8, {"train.precision", "bf16_mixed"}, {"fsdp.reduce_dtype", "bf16"},
        {"train.clip_grad_norm", "false"});
    CHECK(toml, "[training]\nmax_norm = 1.0\nglobal_batch_size = 64\n", 8,
        {"train.clip_grad_norm", "true"}, {"train.global_batch", "64"},
        {"train.precision", "bf16_mixed"});
    CHECK(toml, "[training]\ndata_parallel_type = \"ddp\"\n", 8, {"strategy", "ddp"},
        {"fsdp.version", "-"}, {"fsdp.reduce_dtype", "-"});
    CHECK(toml,
        "[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n", 0,
        {"strategy", "ddp"}, {"cluster.gpus", "4"}, {"fsdp.sharding_strategy", "-"});
    /* a group of shards is 8 x 2 ranks of context parallelism; replicas alone leave its size to
     * what is left */
    CHECK(toml,
        "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 8\n"
        "context_parallel_degree = 2\n",
        0, {"fsdp.sharding_group_size", "16"}, {"cluster.gpus", "32"});
    CHECK(toml, "[parallelism]\ndata_parallel_replicate_degree = 2\n", 16,
        {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"fsdp.sharding_group_size", "-"},
        {"cluster.gpus", "16"});
    CHECK(toml,
        "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"GPipe\"\n"
        "pipeline_parallel_microbatch_size = 2\n",
        8, {"parallelism.schedule", "GPipe"}, {"parallelism.virtual", "-"},
        {"train.micro_batch", "2"}, {"train.device_batch", "8"},
        {"parallelism.partition_method", "weighted"});
    CHECK(toml,
        "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = "
        "\"ZBVZeroBubble\"\n",
        8, {"parallelism.schedule", "ZBVZeroBubble"}, {"parallelism.virtual", "2"});
    CHECK(toml,
        "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"DualPipeV\"\n",
        8, {"parallelism.schedule", "DualPipeV"}, {"parallelism.virtual", "2"});
    CHECK(toml,
        "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1f1b\"\n", 8,
        {"parallelism.schedule", "1F1B"}, {"parallelism.virtual", "-"});
    CHECK(toml, "[parallelism]\npipeline_parallel_schedule = \"Interleaved1F1B\"\n", 8,
        {"parallelism.schedule", "-"}, {"parallelism.virtual", "-"},
        {"parallelism.partition_method", "-"}, {"train.device_batch", "-"});
    CHECK(toml, "[activation_checkpoint]\nmode = \"full\"\nselective_ac_option = \"2\"\n", 8,
        {"train.activation_checkpointing", "full"}, {"train.checkpoint_interval", "-"});
    CHECK(toml, "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n", 8,
        {"train.activation_checkpointing", "selective"}, {"train.checkpoint_interval", "-"});
    CHECK(toml, "[float8]\nenable_float8_linear = true\nrecipe_name = \"rowwise\"\n", 8,
        {"train.precision", "fp8_mixed"}, {"train.fp8_recipe", "rowwise"});
    CHECK(toml, "[float8]\nenable_float8_linear = false\nrecipe_name = \"rowwise\"\n", 8,
        {"train.precision", "bf16_mixed"}, {"train.fp8_recipe", "-"});
}

/* finalize of transformers: 0.9 x hidden^2 and 10 x hidden; with no model they stay open.
 * Megatron-DeepSpeed says the precision before DeepSpeed's file does. */
static void deepspeed_rules(void **state)
{
    (void)state;
    const enum configuration_format ds = CONFIGURATION_DEEPSPEED;
    CHECK(ds, "{\"bfloat16\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}}", 8,
        {"train.precision", "bf16_mixed"});
    CHECK(ds, "{\"bf16\": {\"enabled\": false}, \"fp16\": {\"enabled\": true}}", 8,
        {"train.precision", "fp16_mixed"});
    CHECK(ds, "{\"bf16\": {\"enabled\": \"auto\"}}", 8, {"train.precision", "-"});
    CHECK(ds, "{\"gradient_accumulation_steps\": \"auto\"}", 8, {"train.grad_accum", "1"});
    CHECK(ds,
        "{\"gradient_accumulation_steps\": \"auto\", \"train_batch_size\": 64, "
        "\"train_micro_batch_size_per_gpu\": 4}",
        8, {"train.grad_accum", "-"}, {"train.global_batch", "64"});
    CHECK(ds, "{\"gradient_accumulation_steps\": 4}", 8, {"train.grad_accum", "4"},
        {"train.micro_batch", "-"});
    CHECK(ds, "{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"torch_adam\": true}}}", 8,
        {"train.optimizer", "adam"}, {"train.optimizer_impl", "foreach"});
    CHECK(ds, "{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"torch_adam\": false}}}", 8,
        {"train.optimizer", "adamw"}, {"train.optimizer_impl", "fused"});
    CHECK(ds, "{\"optimizer\": {\"type\": \"Lion\"}}", 8, {"train.optimizer", "lion"},
        {"train.optimizer_impl", "fused"});
    CHECK(ds, "{\"optimizer\": {\"type\": \"OneBitAdam\"}}", 8, {"train.optimizer", "adam"});
    CHECK(ds, "{\"optimizer\": {\"type\": \"Lamb\"}}", 8, {"train.optimizer", "adamw"});
    CHECK(ds, "{\"zero_optimization\": {\"stage\": 3}}", 8, {"train.optimizer", "-"},
        {"train.optimizer_impl", "-"});
    struct arena arena = ARENA_INIT;
    struct configuration config = {.arena = &arena};
    struct diag diag = DIAG_INIT;
    char path[] = "/tmp/flopcast-configuration-XXXXXX";
    static const char text[] = "{\"zero_optimization\": {\"reduce_bucket_size\": \"auto\", "
                               "\"stage3_prefetch_bucket_size\": \"auto\", "
                               "\"stage3_param_persistence_threshold\": \"auto\"}}";
    int file = mkstemp(path);
    assert_int_equal(write(file, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(file);
    configuration_read(&config, path, CONFIGURATION_DEEPSPEED, &diag);
    unlink(path);
    configuration_finish(
        &config, &(struct configuration_given){.name = "x", .gpus = 8, .model = "gpt2-xl"}, &diag);
    assert_string_equal(diag.text, ""); /* 1600 wide: 1600^2 = 2,560,000 */
    assert_string_equal(of(&config, "deepspeed.zero_optimization.reduce_bucket_size"), "2560000");
    assert_string_equal(
        of(&config, "deepspeed.zero_optimization.stage3_prefetch_bucket_size"), "2304000");
    assert_string_equal(
        of(&config, "deepspeed.zero_optimization.stage3_param_persistence_threshold"), "16000");
    configuration_free(&config);
    arena_release(&arena);
}

static void accelerate_rules(void **state)
{
    (void)state;
    const enum configuration_format yaml = CONFIGURATION_ACCELERATE;
#define FSDP "distributed_type: FSDP\nmixed_precision: bf16\n"
    CHECK(yaml, FSDP "fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}\n", 8,
        {"fsdp.reshard_after_forward", "always"}, {"fsdp.sharding_strategy", "-"});
    CHECK(yaml, FSDP "fsdp_config: {fsdp_reshard_after_forward: true}\n", 8,
        {"fsdp.reshard_after_forward", "-"}, {"fsdp.sharding_strategy", "-"},
        {"train.autocast", "-"});
    CHECK(yaml, FSDP "fsdp_config: {fsdp_reshard_after_forward: HYBRID_SHARD_ZERO2}\n", 8,
        {"fsdp.sharding_strategy", "_HYBRID_SHARD_ZERO2"});
    CHECK(yaml,
        FSDP "fsdp_config: {fsdp_reshard_after_forward: SHARD_GRAD_OP, fsdp_backward_prefetch: "
             "BACKWARD_PRE}\n",
        8, {"fsdp.sharding_strategy", "SHARD_GRAD_OP"}, {"fsdp.backward_prefetch", "BACKWARD_PRE"});
#define DEGREES FSDP "parallelism_config:\n  parallelism_config_dp_replicate_size: "
    CHECK(yaml, DEGREES "2\n  parallelism_config_dp_shard_size: 4\n", 8,
        {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"fsdp.sharding_group_size", "4"});
    CHECK(yaml, DEGREES "1\n  parallelism_config_dp_shard_size: 4\n", 8,
        {"fsdp.sharding_strategy", "-"}, {"fsdp.sharding_group_size", "-"});
    CHECK(yaml, DEGREES "1\n  parallelism_config_cp_size: 2\n", 8, {"train.attention", "flash"},
        {"parallelism.context", "2"});
    CHECK(yaml, DEGREES "1\n  parallelism_config_cp_size: 1\n", 8, {"train.attention", "-"});
    CHECK(yaml, "distributed_type: MULTI_GPU\nmixed_precision: 'no'\n", 8, {"train.autocast", "-"},
        {"train.precision", "fp32"}, {"fsdp.backward_prefetch", "-"});
    CHECK(yaml, "distributed_type: MULTI_GPU\nmixed_precision: bf16\n", 8,
        {"train.autocast", "true"});
#define MEGATRON_LM                                                                                \
    "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  megatron_lm_sequence_parallelism: "     \
    "true\n"                                                                                       \
    "  megatron_lm_tp_degree: "
    CHECK(
        yaml, MEGATRON_LM "2\n", 8, {"parallelism.sequence", "true"}, {"parallelism.tensor", "2"});
    CHECK(yaml, MEGATRON_LM "1\n", 8, {"parallelism.sequence", "-"});
}

/* validate_args of Megatron-LM: without tensor parallelism no sequence parallelism and no overlap;
 * sends and receives overlap only with virtual stages. 24 blocks in chunks of 3 on 4 stages are 2
 * chunks each. */
static void megatron_rules(void **state)
{
    (void)state;
    const enum configuration_format sh = CONFIGURATION_MEGATRON;
#define GPT "p --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --vocab-size 1000 "
#define ROPE GPT "--position-embedding-type rope "
#define LLAMA ROPE "--swiglu --normalization RMSNorm --disable-bias-linear "
    CHECK(sh, GPT "--sequence-parallel --tp-comm-overlap", 8, {"parallelism.sequence", "-"},
        {"parallelism.tensor_overlap", "-"}, {"model:vocab", "1024"}, {"model:max_positions", "0"},
        {"train.precision", "fp32"}, {"train.optimizer", "adam"},
        {"megatron.overlap_grad_reduce", "false"}, {"megatron.grad_reduce_in_fp32", "false"},
        {"parallelism.overlap_p2p_comm", "-"}, {"model:biases", "-"});
    CHECK(sh, GPT "--sequence-parallel --tensor-model-parallel-size 2", 8,
        {"parallelism.sequence", "true"});
    CHECK(sh, GPT "--fp8-format hybrid --bf16 --overlap-grad-reduce", 8,
        {"train.precision", "fp8_mixed"}, {"megatron.overlap_grad_reduce", "true"},
        {"megatron.grad_reduce_in_fp32", "true"});
    CHECK(sh, GPT "--fp8-format e4m3 --fp8-recipe mxfp8 --bf16", 8,
        {"train.precision", "fp8_mixed"}, {"train.fp8_recipe", "mxfp8"});
    CHECK(sh, GPT "--fp4-format e2m1 --fp4-recipe nvfp4 --bf16", 8,
        {"train.precision", "fp4_mixed"}, {"megatron.grad_reduce_in_fp32", "true"});
    CHECK(sh, GPT "--pipeline-model-parallel-size 4", 8, {"parallelism.overlap_p2p_comm", "false"},
        {"parallelism.virtual", "-"});
    CHECK(sh, GPT "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3", 8,
        {"parallelism.virtual", "2"}, {"parallelism.overlap_p2p_comm", "-"});
    CHECK(sh, GPT "--pipeline-model-parallel-size 4 --deepspeed", 8,
        {"parallelism.overlap_p2p_comm", "-"}, {"deepspeed.zero_optimization.stage", "1"});
    CHECK(sh, GPT "--recompute-granularity full", 8, {"train.activation_checkpointing", "full"});
    CHECK(sh, GPT "--recompute-granularity selective --recompute-modules core_attn moe", 8,
        {"train.activation_checkpointing", "-"}, {"train.recompute_modules", "core_attn,moe"});
    CHECK(sh, GPT "--checkpoint-activations", 8, {"train.attention", "naive"},
        {"stack", "megatron-2021"});
    CHECK(sh, "torchrun --nproc-per-node 8 --nnodes 2 " GPT "", 4, {"cluster.gpus", "4"});
    CHECK(sh, "torchrun --nproc-per-node 8 --nnodes $N " GPT "", 0, {"cluster.gpus", "-"});
    CHECK(sh,
        GPT
        "--max-position-embeddings 4096 --position-embedding-type learned_absolute --squared-relu "
        "--embed-layernorm --no-masked-softmax-fusion",
        8, {"model:max_positions", "4096"}, {"model:embedding_norm", "true"},
        {"model:fused_softmax", "false"}, {"model:sequence_first", "true"},
        {"model:tied_embeddings", "true"}, {"model:d_ff", "4096"}, {"model:family", "gpt"});
    CHECK(sh, GPT "--max-position-embeddings 4096 --no-position-embedding --disable-bias-linear", 8,
        {"model:max_positions", "0"}, {"model:fused_softmax", "true"}, {"model:biases", "false"});
    CHECK(sh, ROPE "--max-position-embeddings 4096", 8, {"model:family", "neox"},
        {"model:rotary_share", "100 %"}, {"model:parallel_residual", "false"},
        {"model:max_positions", "-"}, {"model:sequence_first", "-"}, {"model:fused_softmax", "-"});
    CHECK(sh, ROPE "--rotary-percent 0.25", 8, {"model:rotary_share", "0.25"});
    CHECK(sh, GPT "--swiglu", 8, {"model:family", "gpt"});
    CHECK(sh, LLAMA "--qk-layernorm", 8, {"model:qk_norm", "true"},
        {"model:parallel_residual", "-"}, {"model:biases", "-"}, {"model:rotary_share", "-"});
    CHECK(sh, LLAMA "--add-qkv-bias", 8, {"model:biases", "true"}, {"model:qk_norm", "-"});
    CHECK(sh, LLAMA "--window-size 127,0 --window-attn-skip-freq 4", 8,
        {"model:sliding_window", "128"}, {"model:full_attention_every", "4"});
    CHECK(sh, LLAMA "--window-size '(255,0)'", 8, {"model:sliding_window", "256"},
        {"model:full_attention_every", "-"});
    CHECK(sh,
        LLAMA
        "--tensor-model-parallel-size 2 --make-vocab-size-divisible-by 64 --pad-vocab-size-to 1001",
        8, {"model:vocab", "1001"});
    CHECK(sh, GPT "--make-vocab-size-divisible-by 5 --tensor-model-parallel-size 2", 8,
        {"model:vocab", "1000"});
#define MOE LLAMA "--num-experts 8 "
    CHECK(sh, MOE "--ffn-hidden-size 2816", 8, {"model:moe.experts_per_token", "2"},
        {"model:moe.d_ff", "2816"}, {"model:moe.normalised", "true"}, {"model:moe.router", "-"},
        {"model:moe.every", "-"}, {"model:moe.groups", "-"}, {"model:mla.kv_lora_rank", "-"},
        {"model:moe.shared_gate", "-"});
    CHECK(sh,
        MOE
        "--moe-ffn-hidden-size 512 --moe-router-topk 6 --moe-layer-freq 2 --moe-router-num-groups "
        "4 --moe-router-group-topk 2 --moe-router-score-function sigmoid --moe-router-pre-softmax "
        "--moe-shared-expert-intermediate-size 1024 --moe-shared-expert-gate",
        8, {"model:moe.d_ff", "512"}, {"model:moe.experts_per_token", "6"},
        {"model:moe.every", "2"}, {"model:moe.groups", "4"}, {"model:moe.kept_groups", "2"},
        {"model:moe.router", "sigmoid"}, {"model:moe.normalised", "true"},
        {"model:moe.shared_d_ff", "1024"}, {"model:moe.shared_gate", "true"});
    CHECK(sh,
        MOE "--moe-router-num-groups 1 --moe-router-group-topk 1 --moe-router-pre-softmax "
            "--moe-layer-freq 1",
        8, {"model:moe.groups", "-"}, {"model:moe.kept_groups", "-"},
        {"model:moe.normalised", "false"}, {"model:moe.every", "-"});
    CHECK(sh, MOE "--moe-router-pre-softmax --moe-router-topk-scaling-factor 2.5", 8,
        {"model:moe.normalised", "true"});
    CHECK(sh, MOE "--moe-router-pre-softmax --moe-router-topk-scaling-factor 1.0", 8,
        {"model:moe.normalised", "false"});
    CHECK(sh, MOE "--moe-layer-freq '([0]*3+[1]*21)'", 8, {"model:moe.dense_layers", "3"},
        {"model:moe.every", "1"});
    CHECK(sh, MOE "--moe-layer-freq '([0,1]*12)'", 8, {"model:moe.dense_layers", "0"},
        {"model:moe.every", "2"});
    CHECK(sh, MOE "--moe-layer-freq '([0]*2+([0]*2+[1])*7+[0])'", 8,
        {"model:moe.dense_layers", "2"}, {"model:moe.every", "3"});
    CHECK(sh,
        MOE
        "--multi-latent-attention --q-lora-rank 1536 --group-query-attention --num-query-groups 4",
        8, {"model:mla.kv_lora_rank", "32"}, {"model:mla.q_lora_rank", "1536"},
        {"model:mla.qk_nope_head_dim", "128"}, {"model:mla.qk_rope_head_dim", "64"},
        {"model:mla.v_head_dim", "128"}, {"model:n_kv_heads", "-"});
}

/* A line of the scenario for each setting, in sections, with where it comes from; what a file of
 * the user's says cannot end the comment. */
static void the_scenario_is_yaml(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct configuration config = {.arena = &arena};
    vec_push(
        &config.missing, "cluster.gpus: \xff\x01\xc2\x85\xe2\x80\xa8\xef\xbf\xbe \x7f~ \xc3\xa4");
    vec_push(&config.puts, ((struct configuration_put){"deepspeed.zero_optimization.stage", "2",
                               "a.json:1:2 stage", PUT_FILES}));
    vec_push(&config.puts, ((struct configuration_put){"name", "a \"b\"", NULL, PUT_FILES}));
    vec_push(&config.puts, ((struct configuration_put){"train.seq_len", "128", "b", PUT_FILES}));
    vec_push(&config.puts, ((struct configuration_put){"train.micro_batch", "4", NULL, PUT_FILES}));
    vec_push(&config.puts,
        ((struct configuration_put){"stack", "\"megatron-core\"", "--set", PUT_GIVEN}));
    vec_push(&config.assumptions, "one");
    vec_push(&config.model, ((struct configuration_put){"moe.experts", "8", NULL, PUT_FILES}));
    vec_push(&config.model, ((struct configuration_put){"d_model", "64", "c", PUT_FILES}));
    vec_push(&config.model, ((struct configuration_put){"moe.every", "2", NULL, PUT_FILES}));
    vec_push(&config.model, ((struct configuration_put){"mla.v_head_dim", "16", "d", PUT_FILES}));
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    configuration_write(out, &config, "m.yaml");
    configuration_write_model(out, &config, "m");
    fclose(out);
    assert_string_equal(text,
        "# By `flopcast scenario import`. Behind each setting: where it comes from; without: a "
        "default of the framework, see assumptions.\n# missing: cluster.gpus: ????? ?~ "
        "\xc3\xa4\nmodel: \"m.yaml\"\n"
        "name: \"a \\\"b\\\"\"\nstack: \"megatron-core\" # --set\n"
        "train:\n  micro_batch: 4\n  seq_len: 128 # b\n"
        "deepspeed:\n  zero_optimization:\n    stage: 2 # a.json:1:2 stage\n"
        "assumptions:\n  - \"one\"\n"
        "# By `flopcast scenario import`.\nname: \"m\"\nsource: \"arguments of Megatron-LM; "
        "without a place behind it: its default\"\nd_model: 64 # c\nmoe:\n  experts: 8\n  every: "
        "2\nmla:\n  v_head_dim: 16 # d\n");
    free(text);
    configuration_free(&config);
    arena_release(&arena);
}

/* Several files are one job: a batch of 256 is 4 x 2 x 32 ranks of data parallelism, and tensor
 * parallelism is 4. */
static void files_go_together(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct configuration config = {.arena = &arena};
    struct diag diag = DIAG_INIT;
    configuration_read(&config, DATA "ds_config_zero3.json", CONFIGURATION_DEEPSPEED, &diag);
    import_text(&config, CONFIGURATION_MEGATRON,
        "p --deepspeed --tensor-model-parallel-size 4 --micro-batch-size 4 --bf16 --zero-stage 1",
        128, &diag);
    assert_string_equal(diag.text, "");
    assert_string_equal(of(&config, "train.precision"), "bf16_mixed"); /* the JSON says auto */
    assert_string_equal(of(&config, "deepspeed.zero_optimization.stage"), "1");
    assert_string_equal(of(&config, "cluster.gpus"), "128");
    configuration_free(&config);
    arena_release(&arena);
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    static const struct {
        enum configuration_format format;
        const char *text, *message;
    } cases[] = {{CONFIGURATION_DEEPSPEED, "{\"zero_optimization\":\n {\"stage\": 7}}",
                     ":2:12: error: zero_optimization.stage "
                     "is 7; deepspeed.zero_optimization."
                     "stage is from 0 to 3"},
        {CONFIGURATION_DEEPSPEED, "{\"train_batch_size\": \"many\"}",
            ":1:22: error: train_batch_size is 'many'"},
        {CONFIGURATION_DEEPSPEED, "[1]", ":1:1: error: a configuration is an object"},
        {CONFIGURATION_DEEPSPEED,
            "{\"train_batch_size\": 100, \"train_micro_batch_size_per_gpu\": 4, "
            "\"gradient_accumulation_steps\": 2}",
            ":1:22: error: train_batch_size of 100 is not 4 x gradient_accumulation_steps 2 x 8 "
            "ranks"},
        {CONFIGURATION_ACCELERATE, "fsdp_config:\n  fsdp_offload_params: maybe\n",
            ":2:24: error: fsdp_config.fsdp_offload_params is 'maybe'; true or false is wanted"},
        {CONFIGURATION_TORCHTITAN, "[training]\nseq_len = \"long\"\n",
            ":2:11: error: training.seq_len is 'long'"},
        {CONFIGURATION_MEGATRON, "p --num-layers\n",
            ":1:3: error: --num-layers is ''; a whole number is wanted"},
        {CONFIGURATION_MEGATRON, "echo hello\n",
            ":1:1: error: there are no arguments '--name value'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct configuration config = {.arena = &arena};
        struct diag diag = DIAG_INIT;
        import_text(&config, cases[i].format, cases[i].text, 8, &diag);
        if (!strstr(diag.text, cases[i].message))
            fail_msg("%s is not in: %s", cases[i].message, diag.text);
        configuration_free(&config);
        arena_release(&arena);
    }
}

/* Rules are data of the user's, too: what is wrong in their file has its place there. */
static void mistakes_of_rules_have_their_place(void **state)
{
    (void)state;
    static const char rule[] = "rules:\n- ", step[] = "rules: []\nsteps: {finish: [\n  ";
    static const struct {
        const char *before, *text, *message;
    } cases[] = {{rule, "{names: a, kind: int, key: train.micro_batch}", ""},
        {rule, "{names: a, kind: itn, key: train.micro_batch}",
            ":2:20: error: 'itn' is not one of int, number"},
        {rule, "{names: a, kind: int, key: train.micro_bacth}",
            ":2:30: error: 'train.micro_bacth' is no setting of a scenario"},
        {rule, "{names: a, kind: model, key: train}",
            ":2:32: error: 'train' is no setting of a model"},
        {rule, "{names: a, kind: int}", ":2:3: error: a rule of kind int needs 'key'"},
        {rule, "{names: a, kind: aside}", ":2:3: error: a rule of kind aside needs 'words'"},
        {rule, "{names: a, kind: bool, key: train.autocast, words: b}",
            ":2:3: error: a rule of kind bool has no 'words'"},
        {rule, "{kind: shape}", ":2:3: error: a rule needs the key 'names'"},
        {rule, "names", ":2:3: error: "},
        {step, "{kind: assumed, key: train.micro_batch, words: '2'}]}", ""},
        {step,
            "{kind: assumed, when: \"!a a\", key: train.seq_len, words: '2'}, {kind: assumed, "
            "when: a!=3 a>1 a=1|2* a? b|a parallelism.tensor=1 !strategy=x, key: "
            "train.micro_batch, words: '2'}]}",
            ""},
        {step, "{names: b|a, when: =2, kind: set, words: train.micro_batch=2}]}", ""},
        {step,
            "{names: a, kind: take, key: train.micro_batch, words: 3=3 2=4}, {kind: removed, key: "
            "train.micro_batch}, {names: a*, kind: int, key: train.micro_batch, words: '1'}]}",
            ""},
        {step, "{names: a, kind: assumed, key: train.seq_len, words: '2'}]}",
            ":3:3: error: a step of kind assumed has no 'names'"},
        {step, "{kind: aside, words: b}]}", ":3:3: error: a step of kind aside needs 'names'"},
        {step, "{kind: removed, key: model.d_modell}]}",
            ":3:24: error: 'd_modell' is no setting of a model"},
        {step, "{names: a, kind: set, words: train.b=2}]}",
            ":3:32: error: 'train.b' is no setting of a scenario"},
        {step, "{kind: call, words: nobody}]}",
            ": error: there is nothing to call by the name 'nobody'"}};
    char folder[] = "/tmp/flopcast-rules-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/scenarios", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/scenarios/import", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/scenarios/import/deepspeed.yaml", folder);
    setenv("FLOPCAST_DATA", folder, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct configuration config = {.arena = &arena};
        struct diag diag = DIAG_INIT;
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%s%s\n", cases[i].before, cases[i].text);
        fclose(file);
        import_text(&config, CONFIGURATION_DEEPSPEED, "{\"a\": 2}", 8, &diag);
        const char *wanted =
            *cases[i].message ? arena_printf(&arena, "%s%s", path, cases[i].message) : "";
        if (*wanted ? !strstr(diag.text, wanted)
                    : *diag.text || strcmp(of(&config, "train.micro_batch"), "2") != 0)
            fail_msg("%s: '%s' is not in: %s", cases[i].text, wanted, diag.text);
        configuration_free(&config);
        arena_release(&arena);
    }
    unsetenv("FLOPCAST_DATA");
    char remove[300];
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    assert_int_equal(system(remove), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepspeed_batches),
        cmocka_unit_test(accelerate_plugins),
        cmocka_unit_test(automodel_recipes),
        cmocka_unit_test(primus_overrides),
        cmocka_unit_test(torchtitan_degrees),
        cmocka_unit_test(megatron_models),
        cmocka_unit_test(torchtitan_rules),
        cmocka_unit_test(deepspeed_rules),
        cmocka_unit_test(accelerate_rules),
        cmocka_unit_test(megatron_rules),
        cmocka_unit_test(the_scenario_is_yaml),
        cmocka_unit_test(files_go_together),
        cmocka_unit_test(mistakes_have_their_place),
        cmocka_unit_test(mistakes_of_rules_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
