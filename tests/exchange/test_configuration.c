/* What settings of other frameworks become. Whole files, written after published ones, are imported and run by
 * tests/cli/scenario_import.sh. */
#include "exchange/configuration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA FLOPCAST_TEST_DIR "/data/"

static void import_text(
    struct configuration *config, enum configuration_format format, const char *text, int gpus, struct diag *diag)
{
    char path[] = "/tmp/flopcast-configuration-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    configuration_read(config, path, format, diag);
    unlink(path);
    if (diag->worst == STATUS_OK)
        configuration_finish(config, &(struct configuration_given){.name = "x", .gpus = gpus}, diag);
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

static void check(enum configuration_format format, const char *text, int gpus, const struct expected *expected)
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
#define CHECK(format, text, gpus, ...) check(format, text, gpus, (const struct expected[]){__VA_ARGS__, {0}})

/* train_batch_size = micro-batch x steps x ranks (_set_batch_related_parameters of deepspeed/runtime/config.py): 256 =
 * 4 x 2 x 32. */
static void deepspeed_batches(void **state)
{
    (void)state;
    const enum configuration_format ds = CONFIGURATION_DEEPSPEED;
    CHECK(ds, "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2}",
        0, {"cluster.gpus", "32"}, {"train.micro_batch", "4"}, {"train.grad_accum", "2"}, {"train.precision", "fp32"},
        {"deepspeed.zero_optimization.stage", "0"}, {"strategy", "deepspeed"});
    CHECK(ds, "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2}",
        32, {"cluster.gpus", "32"}, {"train.grad_accum", "2"});
    CHECK(ds, "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4}", 0, {"train.global_batch", "256"},
        {"train.micro_batch", "4"}, {"cluster.gpus", "-"});
    CHECK(ds, "{\"train_batch_size\": 256, \"gradient_accumulation_steps\": 2}", 32, {"train.micro_batch", "4"},
        {"train.grad_accum", "2"});
    CHECK(ds, "{\"train_batch_size\": 256}", 32, {"train.micro_batch", "8"});
    CHECK(ds,
        "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2, "
        "\"tensor_parallel\": {\"autotp_size\": 2}}",
        0, {"cluster.gpus", "64"});
    CHECK(ds, "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2, \"reduce_bucket_size\": 2e8}}", 0,
        {"train.precision", "bf16_mixed"}, {"deepspeed.zero_optimization.reduce_bucket_size", "200000000"});
}

static void accelerate_plugins(void **state)
{
    (void)state;
    const enum configuration_format yaml = CONFIGURATION_ACCELERATE;
    CHECK(yaml, "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config: {fsdp_sharding_strategy: 5}\n", 8,
        {"fsdp.sharding_strategy", "_HYBRID_SHARD_ZERO2"}, {"fsdp.backward_prefetch", "None"}, {"train.autocast", "-"});
    CHECK(yaml,
        "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false, "
        "fsdp_activation_checkpointing: true}\n",
        8, {"fsdp.reshard_after_forward", "never"}, {"fsdp.version", "2"}, {"train.activation_checkpointing", "full"});
    CHECK(yaml, "distributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: 4\n", 0, {"strategy", "ddp"},
        {"train.autocast", "true"}, {"train.precision", "fp16_mixed"}, {"cluster.gpus", "4"});
}

/* 8 x 2 x 4 x 2 = 128 ranks. */
static void torchtitan_degrees(void **state)
{
    (void)state;
    const enum configuration_format toml = CONFIGURATION_TORCHTITAN;
    CHECK(toml,
        "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 16\nseq_len = 4096\n"
        "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 8\n"
        "tensor_parallel_degree = 4\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"\n",
        0, {"model", "llama3.1-70b"}, {"cluster.gpus", "128"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"},
        {"fsdp.sharding_group_size", "8"}, {"parallelism.virtual", "2"}, {"parallelism.schedule", "1F1B"},
        {"train.device_batch", "16"}, {"train.micro_batch", "1"}, {"parallelism.sequence", "true"});
    CHECK(toml, "[training]\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"2\"\n", 8,
        {"train.activation_checkpointing", "full"}, {"train.checkpoint_interval", "2"}, {"train.seq_len", "2048"},
        {"train.micro_batch", "8"});
    CHECK(toml, "[training]\ndata_parallel_shard_degree = 8\ncompile = true\n[model]\nconverters = [\"float8\"]\n", 0,
        {"cluster.gpus", "8"}, {"train.fusion", "inductor"}, {"train.precision", "fp8_mixed"},
        {"train.fp8_recipe", "tensorwise"});
}

/* Rows of the embedding: 50,257 up to a multiple of 128 x 8 = 51,200, as the 175B of arXiv 2104.04473 has. Llama's
 * feed-forward layer: 4096 x 4 x 2 / 3 = 10,922, down to a multiple of 64: 10,880. */
static void megatron_models(void **state)
{
    (void)state;
    const enum configuration_format sh = CONFIGURATION_MEGATRON;
    CHECK(sh,
        "p --num-layers 96 --hidden-size 12288 --num-attention-heads 96 --max-position-embeddings 2048 "
        "--tensor-model-parallel-size 8 --tokenizer-type GPT2BPETokenizer --fp16 --enable-cuda-graph",
        0, {"model:vocab", "51200"}, {"model:d_ff", "49152"}, {"model:family", "gpt"}, {"model:max_positions", "2048"},
        {"model:dropout", "0.1"}, {"strategy", "megatron"}, {"megatron.grad_reduce_in_fp32", "false"},
        {"megatron.use_distributed_optimizer", "false"}, {"stack", "megatron-core"}, {"train.cuda_graphs", "true"});
    CHECK(sh,
        "p --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention "
        "--num-query-groups 8 --swiglu --normalization RMSNorm --use-rotary-position-embeddings "
        "--untie-embeddings-and-output-weights --disable-bias-linear --vocab-size 32000 --bf16 "
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 --hidden-dropout 0.0 "
        "--recompute-granularity selective --num-experts 8 --moe-router-topk 2",
        0, {"model:family", "llama"}, {"model:d_ff", "10880"}, {"model:n_kv_heads", "8"},
        {"model:tied_embeddings", "false"}, {"model:moe.experts", "8"}, {"model:moe.experts_per_token", "2"},
        {"model:dropout", "0"}, {"parallelism.virtual", "4"}, {"train.activation_checkpointing", "core_attn"},
        {"megatron.grad_reduce_in_fp32", "true"});
    CHECK(sh, "p --optimizer dist_muon --muon-momentum 0.95 --muon-tp-mode blockwise --bf16", 0,
        {"train.optimizer", "muon"}, {"train.muon_distributed", "true"});
    CHECK(sh, "torchrun --nproc_per_node 8 --nnodes 4 p --deepspeed --zero-stage 1 --checkpoint-activations", 0,
        {"cluster.gpus", "32"}, {"strategy", "deepspeed"}, {"deepspeed.zero_optimization.stage", "1"},
        {"stack", "megatron-deepspeed-2022"});
}

/* Several files are one job: a batch of 256 is 4 x 2 x 32 ranks of data parallelism, and tensor parallelism is 4. */
static void files_go_together(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct configuration config = {.arena = &arena};
    struct diag diag = DIAG_INIT;
    configuration_read(&config, DATA "ds_config_zero3.json", CONFIGURATION_DEEPSPEED, &diag);
    import_text(&config, CONFIGURATION_MEGATRON,
        "p --deepspeed --tensor-model-parallel-size 4 --micro-batch-size 4 --bf16 --zero-stage 1", 128, &diag);
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
        {CONFIGURATION_DEEPSPEED, "{\"train_batch_size\": \"many\"}", ":1:22: error: train_batch_size is 'many'"},
        {CONFIGURATION_DEEPSPEED, "[1]", ":1:1: error: a configuration is an object"},
        {CONFIGURATION_DEEPSPEED,
            "{\"train_batch_size\": 100, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2}",
            ":1:22: error: train_batch_size of 100 is not 4 x gradient_accumulation_steps 2 x 8 ranks"},
        {CONFIGURATION_ACCELERATE, "fsdp_config:\n  fsdp_offload_params: maybe\n",
            ":2:24: error: fsdp_config.fsdp_offload_params is 'maybe'; true or false is wanted"},
        {CONFIGURATION_TORCHTITAN, "[training]\nseq_len = \"long\"\n", ":2:11: error: training.seq_len is 'long'"},
        {CONFIGURATION_MEGATRON, "p --num-layers\n", ":1:3: error: --num-layers is ''; a whole number is wanted"},
        {CONFIGURATION_MEGATRON, "echo hello\n", ":1:1: error: there are no arguments '--name value'"}};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepspeed_batches),
        cmocka_unit_test(accelerate_plugins),
        cmocka_unit_test(torchtitan_degrees),
        cmocka_unit_test(megatron_models),
        cmocka_unit_test(files_go_together),
        cmocka_unit_test(mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
