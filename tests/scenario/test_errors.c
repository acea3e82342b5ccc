/* What is wrong with a scenario is reported at its place, with what would be right, word for word.
 */
#include "workspace.h"

struct wrong {
    const char *text;                  /* of x.yaml */
    struct scenario_override override; /* key NULL: none */
    const char *message;
};

static void assert_reported(const struct wrong *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct loaded *loaded =
            load_text(cases[i].text, &cases[i].override, cases[i].override.key != NULL);
        assert_string_equal(loaded->diag.text, cases[i].message);
        assert_int_equal(loaded->status, STATUS_INPUT);
        assert_int_equal(loaded->set.n_points, 0);
        unload(loaded);
    }
}

static void sweeps(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        {BASE "sweep: {cluster.gpus: [8, 16]}\n", {0},
            "x.yaml:7:8: error: 'sweep' is a list of axes, as in '- cluster.gpus: [8, 16]'\n"},
        {BASE "sweep:\n  - cluster.gpus\n", {0},
            "x.yaml:8:5: error: an axis of 'sweep' is a mapping, as in 'cluster.gpus: [8, 16]'\n"},
        {BASE "sweep:\n  - cluster.gpus: 8\n", {0},
            "x.yaml:8:19: error: 'cluster.gpus' is swept over a list of values, as in [8, 16]\n"},
        {BASE "sweep:\n  - cluster.gpu: [8, 16]\n", {0},
            "x.yaml:8:5: error: unknown key 'gpu' in 'cluster'; did you mean 'gpus'?\n"},
        {BASE "sweep:\n  - cluster.gpus: [8, 16]\n    train.micro_batch: [1]\n", {0},
            "x.yaml:9:5: error: 'train.micro_batch' has 1 values, 'cluster.gpus' beside it has 2; "
            "keys of one axis go together, value by value\n"},
        {BASE "sweep:\n  - cluster.gpus: [8]\n  - cluster.gpus: [16]\n", {0},
            "x.yaml:9:5: error: 'cluster.gpus' is swept twice (first at line 8); merge the "
            "lists\n"},
        {BASE "sweep:\n  - cluster.gpus: [8, 64]\n  - train.micro_batch: [1, 2]\n", {0},
            "x.yaml:8:23: error: 64 GPUs, but cluster 'four nodes' has 32 (4 nodes of 8); use at "
            "most that many\n"},
        {BASE, {"train.micro_batch", "[]"},
            "--set train.micro_batch:1:1: error: an empty list sweeps nothing; write [8, 16]\n"},
        {BASE, {"train.micro_batch", ""},
            "--set train.micro_batch: error: no value; write one after '='\n"},
        {BASE, {"sweep", "[8, 16]"},
            "--set sweep: error: 'sweep' is for files; sweep a key by a list, as in --set "
            "cluster.gpus='[8, 16]'\n"},
        {BASE, {"strategy", "FSDP"},
            "--set strategy:1:1: error: 'FSDP' is not one of fsdp, ddp, deepspeed, internevo, "
            "single_device, megatron, nanotron, zero1, zero2, zero3, fsdp1, fsdp2, FULL_SHARD, "
            "SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD; did you mean 'fsdp'?\n"},
        {BASE, {"model", "[tiny.json, none.json]"},
            "--set model:1:13: error: cannot open 'none.json': No such file or directory; paths "
            "are relative to the working directory\n"},
        {BASE, {"deepspeed.zero_optimization.allgather_bucket_size", "[0, 1000000]"},
            "--set deepspeed.zero_optimization.allgather_bucket_size:1:2: error: '0' is too small; "
            "the least allowed is 1000000\n"},
        {BASE, {"deepspeed.zero_optimization.reduce_bucket_size", "0"},
            "--set deepspeed.zero_optimization.reduce_bucket_size:1:1: error: '0' is too small; "
            "the least allowed is 1\n"},
        {BASE, {"train.micro_bath", "8"},
            "--set train.micro_bath: error: unknown key 'micro_bath' in 'train'; did you mean "
            "'micro_batch'?\n"},
    };
    assert_reported(cases, sizeof cases / sizeof *cases);
}

/* Megatron-LM's, torchtitan's, DeepSpeed's, InternEvo's spellings; in files at the key, in a sweep,
 * in a section. */
static void parallelism_by_other_names(void **state)
{
    (void)state;
    static const struct {
        const char *key, *form;
    } keys[] = {
        {"tensor_parallel", "tensor"},
        {"tp", "tensor"},
        {"tp_size", "tensor"},
        {"tensor_parallel_degree", "tensor"},
        {"tensor-model-parallel-size", "tensor"},
        {"model_parallel_size", "tensor"},
        {"parallelism.tensor_parallel_degree", "tensor"},
        {"train.tensor_parallel", "tensor"},
        {"strategy.tp", "tensor"},
        {"pp", "pipeline"},
        {"pipeline_parallel_degree", "pipeline"},
        {"virtual_pipeline_model_parallel_size", "pipeline"},
        {"pipe_parallel_size", "pipeline"},
        {"pipeline_parallel_schedule", "pipeline"},
        {"cp", "context"},
        {"context_parallel_degree", "context"},
        {"ulysses_degree", "sequence"},
        {"ep_size", "expert"},
        {"expert_parallel_degree", "expert"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct loaded *loaded = load_text(BASE,
            &(struct scenario_override){.key = keys[i].key, .value = i % 2 ? "[1, 8]" : "8"}, 1);
        char sentence[64];
        snprintf(sentence, sizeof sentence, "%s parallelism is ", keys[i].form);
        if (loaded->diag.n_errors != 1 || !strstr(loaded->diag.text, sentence) ||
            !strstr(loaded->diag.text, "of the section 'parallelism'") ||
            strstr(loaded->diag.text, "unknown"))
            fail_msg("%s: %s", keys[i].key, loaded->diag.text);
        unload(loaded);
    }
    struct loaded *loaded = load_text(BASE "tensor_parallel: 8\n", NULL, 0);
    assert_non_null(strstr(
        loaded->diag.text, "x.yaml:7:1: error: 'tensor_parallel': tensor parallelism is 'tensor'"));
    unload(loaded);
    loaded = load_text(BASE "parallelism:\n  pipeline_parallel_degree: 8\n", NULL, 0);
    assert_non_null(
        strstr(loaded->diag.text, ": error: 'pipeline_parallel_degree': pipeline parallelism is"));
    unload(loaded);
    loaded = load_text(BASE "sweep:\n  - tp: [1, 8]\n", NULL, 0);
    assert_non_null(strstr(loaded->diag.text, ":5: error: 'tp': tensor parallelism is"));
    unload(loaded);
    /* Other unknown keys stay what they were. */
    loaded = load_text(BASE "parallel: 8\n", NULL, 0);
    assert_non_null(strstr(loaded->diag.text, "unknown key 'parallel'"));
    unload(loaded);
}

static void other_files_of_the_project(void **state)
{
    (void)state;
    static const struct {
        const char *path, *message;
        bool model; /* a job without a cluster: each key that it lacks is an error */
    } cases[] = {
        {"/topologies/gpus/a100-sxm4-80gb.yaml",
            "this file has the keys of a GPU, not of a scenario; nodes name it", .model = false},
        {"/topologies/nodes/dgx-2.yaml",
            "this file has the keys of a node, not of a scenario; clusters name it",
            .model = false},
        {"/topologies/clusters/dgx-2-ib.yaml",
            "this file has the keys of a cluster, not of a scenario; scenarios name it under "
            "'cluster: ",
            .model = false},
        {"/scenarios/models/t5-11b.yaml",
            "'cluster.topology' is not given; say it, as in --topology h100-8x400g", .model = true},
        {"/topologies/fitted/sure.yaml",
            "this file has the keys of the file of intervals, not of a scenario; it says how sure",
            .model = false},
        {NULL, "'cluster.topology' is not given; say it, as in --topology h100-8x400g",
            .model = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct scenario_set set;
        const char *path = cases[i].path
                               ? arena_printf(&arena, "%s%s", FLOPCAST_SOURCE_DIR, cases[i].path)
                               : "tiny.json"; /* Hugging Face's */
        assert_int_equal(scenario_load(&set, path, NULL, 0, &arena, &diag), STATUS_INPUT);
        if (!strstr(diag.text, cases[i].message) || (diag.n_errors == 1) == cases[i].model)
            fail_msg("%s: %s", path, diag.text);
        arena_release(&arena);
    }
}

static void values_of_a_sweep_are_checked_where_they_stand(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE "sweep:\n  - train.micro_batch: [1, 0, 2]\n", NULL, 0);
    assert_int_equal(strncmp(loaded->diag.text, "x.yaml:8:28: error: ", 20), 0);
    assert_int_equal(loaded->diag.n_errors, 1);
    unload(loaded);
}

/* The text of x.yaml up to line 6, one line of it replaced. */
#define MODEL "model: tiny.json\n"
#define CLUSTER "cluster: {topology: cluster.yaml, gpus: 8}\n"
#define TRAIN "train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}\n"

static void points_that_make_no_sense(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        {"name: x\n" MODEL "cluster: {topology: cluster.yaml, gpus: 12}\n" TRAIN, {0},
            "x.yaml:3:41: error: 12 GPUs leave a node of 'four nodes' partly used; use a multiple "
            "of its 8 GPUs, as in 8\n"},
        {"name: x\n" MODEL "cluster: {topology: nowhere.yaml, gpus: 8}\n" TRAIN, {0},
            "x.yaml:3:21: error: cannot open 'nowhere.yaml': No such file or directory; paths are "
            "relative to the scenario file\n"},
        {"name: x\nmodel: nothing.json\n" CLUSTER TRAIN "sweep:\n  - cluster.gpus: [8, 16]\n", {0},
            "x.yaml:2:8: error: cannot open 'nothing.json': No such file or directory; paths are "
            "relative to the scenario file\n"},
        {"name: x\n" MODEL CLUSTER
         "train: {micro_batch: 2, seq_len: 2048, precision: fp16_mixed}\n",
            {0},
            "x.yaml:4:34: error: 2048 tokens, but model 'tiny.json' has 1024 learned positions; "
            "use at most that many or give max_positions\n"},
        {"name: x\n" MODEL CLUSTER
         "train: {micro_batch: 2, seq_len: 128, decoder_seq_len: 128, precision: fp16_mixed}\n",
            {0},
            "x.yaml:4:56: error: model 'tiny.json' has no second stack for decoder tokens; leave "
            "'decoder_seq_len' out\n"},
        {"name: x\n" MODEL CLUSTER TRAIN "stack: none.yaml\n", {0},
            "x.yaml:5:8: error: cannot open 'none.yaml': No such file or directory; paths are "
            "relative to the scenario file\n"},
        {BASE, {"run.max_split_size_mb", "20"},
            "--set run.max_split_size_mb:1:1: error: 20 MiB, but PyTorch takes more than 20 only; "
            "use that, or 0 for none\n"},
        {"name: x\n" MODEL CLUSTER TRAIN "run: {steps: 900, warmup_steps: 200}\n", {0},
            "x.yaml:5:14: error: 900 steps and 200 before them; use at most 1000 in all\n"},
        {"name: x\n" MODEL CLUSTER TRAIN, {"train.qlora", "true"},
            "--set train.qlora:1:1: error: 'train.qlora' says more about 'train.lora_rank', which "
            "is not given; give it\n"},
        {"name: x\n" MODEL CLUSTER "train: {micro_batch: 2, seq_len: 128, precision: fp32, "
         "lora_rank: 8, lora_targets: q_proj}\n",
            {0},
            "x.yaml:4:84: error: no linear layer of a block of 'tiny.json' is called 'q_proj'; see "
            "`flopcast model`\n"},
        {"name: x\n" MODEL CLUSTER TRAIN, {"train.recompute_modules", "core_attn,attn"},
            "--set train.recompute_modules:1:1: error: 'attn' begins with no part of a block that "
            "is recomputed by itself; take some of core_attn, moe, layernorm, moe_act, "
            "mla_up_proj, mlp and shared_experts, with a comma between\n"},
        {"name: x\n" MODEL CLUSTER TRAIN, {"train.recompute_modules", "layernorm"},
            "--set train.recompute_modules:1:1: error: of 'tiny.json' only core_attn is recomputed "
            "by itself; take that\n"},
        {"name: x\n" MODEL CLUSTER TRAIN, {"train.device_batch", "[4096, 4097]"},
            "--set train.device_batch:1:8: error: 2049 micro-steps of 2 sequences in an optimizer "
            "step, of which at most 2048 are simulated; use a larger 'train.micro_batch' or a "
            "smaller batch\n"},
        {"name: x\n" MODEL CLUSTER
         "train: {micro_batch: 1, seq_len: 128, precision: fp16_mixed, global_batch: 4}\n",
            {0},
            "x.yaml:4:76: error: 4 sequences do not divide over 8 ranks of data parallelism; take "
            "8\n"},
        {"name: x\n" MODEL CLUSTER TRAIN "published: {figure: 7c}\n", {0},
            "x.yaml:5:21: error: 'published' needs both 'file' and 'figure'\n"},
        {"name: x\n" MODEL CLUSTER TRAIN "assumptions: none\n", {0},
            "x.yaml:5:14: error: 'assumptions' is a list of sentences: lines of '- text'\n"},
        {"name: x\n" CLUSTER TRAIN, {0},
            "x.yaml: error: 'model' is not given; write it in the file, sweep it or use --set (as "
            "in 'model: models/t5-11b.yaml')\n"},
        {"name: x\n" MODEL CLUSTER
         "train: {micro_batch: 1048576, seq_len: 1024, precision: fp16_mixed}\n"
         "sweep:\n  - cluster.gpus: [8, 16]\n",
            {"train.seq_len", "16777216"},
            "--set train.seq_len:1:1: error: 16777216 tokens, but model 'tiny.json' has 1024 "
            "learned positions; use at most that many or give max_positions\n"
            "x.yaml:4:22: error: 1048576 sequences of 16777216 tokens make a tensor of 4.7e+21 "
            "bytes; use a smaller batch or shorter sequences\n"},
    };
    assert_reported(cases, sizeof cases / sizeof *cases);
}

static void groups_that_make_no_sense(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        {"name: x\n" MODEL CLUSTER TRAIN
         "fsdp: {sharding_strategy: HYBRID_SHARD, sharding_group_size: 3}\n",
            {0},
            "x.yaml:5:62: error: HYBRID_SHARD shards over 3 GPUs, which does not divide the job's "
            "8; use a divisor\n"},
        {"name: x\n" MODEL "cluster: {topology: cluster.yaml, gpus: 24}\n" TRAIN
         "fsdp: {sharding_strategy: HYBRID_SHARD, sharding_group_size: 6}\n",
            {0},
            "x.yaml:5:62: error: groups of 6 GPUs in nodes of 8: some lie on more nodes than "
            "others, or have more GPUs on one node than on another, which is not simulated; take a "
            "divisor or a multiple of 8\n"},
        {"name: x\n" MODEL "cluster: {topology: cluster.yaml, gpus: 4}\n" TRAIN
         "fsdp: {sharding_strategy: HYBRID_SHARD}\n",
            {0},
            "x.yaml:3:41: error: HYBRID_SHARD shards over 8 GPUs (a node), but the job has 4; use "
            "more GPUs, a smaller 'fsdp.sharding_group_size' or FULL_SHARD\n"},
        {"name: x\n" MODEL "cluster: {topology: cluster.yaml, gpus: 24}\n" TRAIN
         "strategy: internevo\ninternevo: {zero1: 12}\n",
            {0},
            "x.yaml:6:20: error: groups of 12 GPUs in nodes of 8: some lie on more nodes than "
            "others, or have more GPUs on one node than on another, which is not simulated; take a "
            "divisor or a multiple of 8\n"
            "x.yaml:4:50: error: InternEvo keeps 16-bit weights and gradients, and FP32 copies "
            "with the optimizer; take bf16_master\n"},
    };
    assert_reported(cases, sizeof cases / sizeof *cases);
}

/* V100 has no BF16. Which formats it has is the topology's business: they are not repeated here. */
static void precision_that_the_gpu_lacks(void **state)
{
    (void)state;
    const struct scenario_override set = {"train.precision", "bf16_mixed"};
    struct loaded *loaded = load_text(BASE, &set, 1);
    static const char start[] =
        "--set train.precision:1:1: error: bf16_mixed multiplies in bf16, which GPU 'V100";
    assert_memory_equal(loaded->diag.text, start, sizeof start - 1);
    assert_non_null(strstr(loaded->diag.text, "it can in fp32, fp16"));
    unload(loaded);
}

/* Reported once a scenario, of what stands beside the strategy or on the command line; not where
 * any point reads it. */
static void settings_that_nothing_reads(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        {BASE "fsdp: {sharding_strategy: NO_SHARD, no_sync: true}\n", {0},
            "x.yaml:7:27: warning: 'fsdp.sharding_strategy' is not read where 'strategy' is ddp; "
            "leave it out, or take fsdp\n"},
        {BASE, {"deepspeed.zero_optimization.stage", "2"},
            "--set deepspeed.zero_optimization.stage:1:1: warning: "
            "'deepspeed.zero_optimization.stage' is not read "
            "where 'strategy' is ddp; leave it out, or take deepspeed\n"},
        {BASE "ddp: {bucket_cap: 25 MiB}\nfsdp: {no_sync: true}\n", {"strategy", "deepspeed"},
            ""}, /* meant for another strategy */
        {BASE, {"train.checkpoint_interval", "2"},
            "--set train.checkpoint_interval:1:1: warning: 'train.checkpoint_interval' is not read "
            "where 'train.activation_checkpointing' is none; leave it out, or take full, selective "
            "or core_attn\n"},
        {BASE, {"train.memory_format", "channels_last"},
            "--set train.memory_format:1:1: warning: 'train.memory_format' is not read where "
            "'model' is tiny.json; leave it out, or take a model of images\n"},
        {BASE, {"train.expert_kernels", "loop"},
            "--set train.expert_kernels:1:1: warning: 'train.expert_kernels' is not read where "
            "'model' is tiny.json; leave it out, or take a mixture of experts\n"},
        {BASE, {"train.expert_spread", "0.5"},
            "--set train.expert_spread:1:1: warning: 'train.expert_spread' is not read where "
            "'model' is tiny.json; leave it out, or take a mixture of experts that GPUs share\n"},
        {BASE, {"train.moe_flex_dispatcher_backend", "hybridep"},
            "--set train.moe_flex_dispatcher_backend:1:1: warning: "
            "'train.moe_flex_dispatcher_backend' is not read "
            "where 'train.moe_token_dispatcher_type' is alltoall; leave it out, or take flex\n"},
        {BASE, {"train.moe_permute_fusion", "false"},
            "--set train.moe_permute_fusion:1:1: warning: 'train.moe_permute_fusion' is not read "
            "where 'model' is tiny.json; leave it out, or take a mixture of experts\n"},
        {BASE, {"train.moe_router_padding_for_quantization", "true"},
            "--set train.moe_router_padding_for_quantization:1:1: warning: "
            "'train.moe_router_padding_for_quantization' is not read where 'train.precision' is "
            "fp16_mixed; leave it out, or take fp8_mixed or fp4_mixed\n"},
        {BASE, {"train.activation_func_fp8_input_store", "true"},
            "--set train.activation_func_fp8_input_store:1:1: warning: "
            "'train.activation_func_fp8_input_store' is not "
            "read "
            "where 'train.fusion' is eager; leave it out, or take transformer_engine\n"},
        {BASE, {"train.moe_aux_loss", "true"},
            "--set train.moe_aux_loss:1:1: warning: 'train.moe_aux_loss' is not read where 'model' "
            "is tiny.json; leave it out, or take a mixture of experts\n"},
        {BASE, {"train.moe_pad_expert_input_to_capacity", "true"},
            "--set train.moe_pad_expert_input_to_capacity:1:1: warning: "
            "'train.moe_pad_expert_input_to_capacity' is "
            "not "
            "read where 'train.moe_expert_capacity_factor' is 0; leave it out, or take more than "
            "0\n"},
        {BASE, {"train.expert_imbalance", "1.5"},
            "--set train.expert_imbalance:1:1: warning: 'train.expert_imbalance' is not read where "
            "'model' is tiny.json; leave it out, or take a mixture of experts that GPUs share\n"},
        {BASE, {"train.weight_decay", "true"},
            "--set train.weight_decay:1:1: warning: 'train.weight_decay' is not read where "
            "'train.optimizer' is adamw; leave it out, or take sgd or sgd_momentum\n"},
        {BASE "sweep: [{train.optimizer: [sgd], train.weight_decay: [true]}]\n", {0}, ""},
        {BASE, {"train.clip_grad_norm", "true"}, ""},
        {BASE, {"run.garbage_collection_threshold", "0.8"},
            "--set run.garbage_collection_threshold:1:1: warning: "
            "'run.garbage_collection_threshold' is not read where "
            "'run.memory_fraction' is 0; leave it out, or take more than 0\n"},
        {BASE "fsdp: {version: 2, limit_all_gathers: false}\nsweep: [{strategy: [fsdp]}]\n", {0},
            "x.yaml:7:39: warning: 'fsdp.limit_all_gathers' is not read where 'fsdp.version' is 2; "
            "leave it out, or take 1\n"},
        {BASE "megatron: {fp8_param_gather: true}\nsweep: [{strategy: [megatron]}]\n", {0},
            "x.yaml:7:30: warning: 'megatron.fp8_param_gather' is not read where 'train.precision' "
            "is fp16_mixed; leave it out, or take fp8_mixed or fp4_mixed\n"},
        {BASE "fsdp: {no_sync: true}\nsweep: [{strategy: [ddp, fsdp]}]\n", {0}, ""},
        {BASE "sweep: [{strategy: [ddp, fsdp], fsdp.no_sync: [false, true]}]\n", {0}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded *loaded =
            load_text(cases[i].text, &cases[i].override, cases[i].override.key != NULL);
        assert_string_equal(loaded->diag.text, cases[i].message);
        assert_int_equal(loaded->status, STATUS_OK);
        unload(loaded);
    }
}

/* What torchtitan's FP8 and async TP cannot go with. */
static void recipes_of_fp8_and_pieces(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        {BASE "sweep: [{strategy: [fsdp], train.fp8_recipe: [rowwise]}]\n", {0},
            "x.yaml:7:47: error: rowwise is a recipe of FP8; take train.precision: fp8_mixed\n"},
        {BASE "sweep: [{train.fusion: [transformer_engine], train.fp8_recipe: [rowwise]}]\n", {0},
            "x.yaml:7:65: error: rowwise is a recipe of torchao, transformer_engine scales by "
            "earlier steps or by block; take delayed or mxfp8, or another train.fusion\n"
            "x.yaml:7:65: error: rowwise is a recipe of FP8; take train.precision: fp8_mixed\n"},
        {BASE "fsdp: {version: 1, float8_all_gather: true}\nsweep: [{strategy: [fsdp]}]\n", {0},
            "x.yaml:7:39: error: FP8 is gathered by fully_shard where each matrix has one scale; "
            "take fsdp.version: 2 and train.fp8_recipe: tensorwise, without adapters\n"},
        {BASE "sweep: [{parallelism.tensor: [2], parallelism.tensor_overlap: [micro_pipeline]}]\n",
            {0},
            "x.yaml:7:64: error: micro_pipeline copies parts of the sequence between the GPUs of a "
            "node; take parallelism.sequence: true and at most 8 tensor ranks\n"},
        {BASE "sweep: [{parallelism.tensor: [2], parallelism.sequence: [true], "
              "parallelism.gather_dim: [1]}]\n",
            {0},
            "x.yaml:7:90: error: Megatron-LM's overlap 'async' gathers dimension 0; take that, or "
            "parallelism.tensor_overlap: none or micro_pipeline, which are DTensor's\n"},
        {BASE, {"train.fp8_recipe", "mxfp8"},
            "--set train.fp8_recipe:1:1: error: mxfp8 is TransformerEngine's; take train.fusion: "
            "transformer_engine, or another recipe\n"
            "--set train.fp8_recipe:1:1: error: mxfp8 is a recipe of FP8; take train.precision: "
            "fp8_mixed\n"
            "--set train.fp8_recipe:1:1: error: mxfp8 needs Blackwell or newer, and GPU "
            "'V100-SXM2-32GB' is Volta; take delayed\n"},
        {BASE, {"train.fp8_recipe", "blockwise"},
            "--set train.fp8_recipe:1:1: error: 'blockwise' is not one of delayed, tensorwise, "
            "rowwise, mxfp8 (fp8_mixed: TransformerEngine's delayed scaling, or by block on "
            "Blackwell (mxfp8), or torchao's by tensor or by row)\n"},
    };
    assert_reported(cases, sizeof cases / sizeof *cases);
}

static void published_figures(void **state)
{
    (void)state;
    write_text("two.csv",
        "id,figure,model,strategy,gpus,micro_batch,tflops_per_gpu,peak_allocated_bytes,"
        "peak_reserved_bytes,oom,kind,source\n"
        "a,1,,,8,,1,,,n,table,paper\n"
        "b,1,,DDP,,,2,,,n,table,paper\n");
    write_text("few.csv", "id,figure\na,1\n");
    static const struct wrong cases[] = {
        {BASE "published: {file: two.csv, figure: 1}\n", {0},
            "two.csv:3:1: error: matches a point that line 2 matches too; fill in what "
            "distinguishes them\n"},
        {BASE "published: {file: two.csv, figure: 9}\n", {0},
            "x.yaml:7:36: error: 'two.csv' has no row of figure '9'\n"},
        {BASE "published: {file: three.csv, figure: 9}\n", {0},
            "x.yaml:7:19: error: cannot open 'three.csv': No such file or directory; paths are "
            "relative to the scenario file\n"},
    };
    assert_reported(cases, sizeof cases / sizeof *cases);
    struct loaded *loaded = load_text(BASE "published: {file: few.csv, figure: 1}\n", NULL, 0);
    assert_int_equal(loaded->diag.n_errors, 10);
    assert_non_null(strstr(
        loaded->diag.text, "few.csv: error: the published figures lack the column 'model'\n"));
    unload(loaded);
}

/* All mistakes of a text come in one go. */
static void every_mistake_is_reported(void **state)
{
    (void)state;
    struct loaded *loaded =
        load_text("name: x\nmodle: tiny.json\ntrain: {micro_batch: 0}\nsweep: 3\n", NULL, 0);
    assert_int_equal(loaded->diag.n_errors, 3);
    assert_non_null(strstr(loaded->diag.text,
        "x.yaml:2:1: error: unknown key 'modle' in a scenario; did you mean 'model'?"));
    unload(loaded);
}

/* A setting that the job does not read is warned of where what decides says otherwise, and nowhere
 * else: not with its default, not where it is read. */
static void settings_that_are_not_read(void **state)
{
    (void)state;
#define DENSE "model=gpt2"
#define EXPERTS "model=mixtral-8x7b"
    static const struct {
        const char *sets; /* key=value, by spaces; the first key is the one that is warned of */
        bool warned;
    } cases[] = {
        {"parallelism.merge_outputs=true " DENSE, true},
        {"parallelism.merge_outputs=false " DENSE, false},
        {"parallelism.merge_outputs=true parallelism.pipeline=2 strategy=fsdp fsdp.version=2 "
         "model=llama2-7b",
            false},
        {"parallelism.gather_dim=1 " DENSE, true},
        {"parallelism.gather_dim=0 " DENSE, false},
        {"parallelism.gather_dim=1 parallelism.sequence=true parallelism.tensor=2 "
         "parallelism.tensor_overlap=none " DENSE,
            false},
        {"parallelism.schedule=GPipe " DENSE, true},
        {"parallelism.schedule=1F1B " DENSE, false},
        {"parallelism.schedule=GPipe parallelism.pipeline=2 " DENSE, false},
        {"train.checkpoint_interval=2 " DENSE, true},
        {"train.checkpoint_interval=1 " DENSE, false},
        {"train.checkpoint_interval=2 train.activation_checkpointing=full strategy=fsdp " DENSE,
            false},
        {"train.recompute_num_layers=2 " DENSE, true},
        {"train.recompute_num_layers=1 " DENSE, false},
        {"train.recompute_num_layers=2 train.activation_checkpointing=full " DENSE, false},
        {"train.clip_grad_norm=true " DENSE, true},
        {"train.clip_grad_norm=false " DENSE, false},
        {"train.clip_grad_norm=true strategy=fsdp " DENSE, false},
        {"train.muon_distributed=true " DENSE, true},
        {"train.weight_decay=true " DENSE, true},
        {"train.weight_decay=true train.optimizer=sgd strategy=ddp " DENSE, false},
        {"train.weight_decay=true train.optimizer=sgd_momentum strategy=ddp " DENSE, false},
        {"train.expert_kernels=loop " DENSE, true},
        {"train.expert_kernels=grouped " DENSE, false},
        {"train.expert_kernels=loop " EXPERTS, false},
        {"train.moe_token_dispatcher_type=allgather " EXPERTS, true},
        {"train.moe_token_dispatcher_type=alltoall " EXPERTS, false},
        {"train.moe_token_dispatcher_type=allgather parallelism.expert=2 " EXPERTS, false},
        {"train.expert_imbalance=1.5 " EXPERTS, true},
        {"train.expert_imbalance=1 " EXPERTS, false},
        {"train.expert_imbalance=1.5 parallelism.expert=2 " EXPERTS, false},
        {"train.expert_routing=learned " EXPERTS, true},
        {"train.expert_routing=balanced " EXPERTS, false},
        {"train.expert_routing=learned parallelism.expert=2 " EXPERTS, false},
        {"train.expert_spread=0.1 " EXPERTS, true},
        {"train.expert_spread=0.1 parallelism.expert=2 " EXPERTS, false},
        {"train.moe_flex_dispatcher_backend=hybridep parallelism.expert=2 " EXPERTS, true},
        {"train.moe_flex_dispatcher_backend=hybridep train.moe_token_dispatcher_type=flex "
         "parallelism.expert=2 " EXPERTS,
            false},
        {"train.moe_pad_expert_input_to_capacity=true parallelism.expert=2 " EXPERTS, true},
        {"train.moe_pad_expert_input_to_capacity=true train.moe_expert_capacity_factor=1 "
         "parallelism.expert=2 " EXPERTS,
            false},
        {"train.moe_aux_loss=true " DENSE, true},
        {"train.moe_aux_loss=true " EXPERTS, false},
        {"train.moe_permute_fusion=false " DENSE, true},
        {"train.moe_permute_fusion=false " EXPERTS, false},
        {"train.moe_router_padding_for_quantization=true " EXPERTS, true},
        {"train.moe_router_padding_for_quantization=true train.precision=fp8_mixed "
         "strategy=megatron train.fusion=transformer_engine " EXPERTS,
            false},
        {"train.memory_format=channels_last " DENSE, true},
        {"train.compiled=blocks " DENSE, true},
        {"train.compiled=blocks train.fusion=inductor strategy=fsdp " DENSE, false},
        {"run.garbage_collection_threshold=0.8 " DENSE, true},
        {"run.garbage_collection_threshold=0.8 run.memory_fraction=0.9 " DENSE, false},
        {"fsdp.sharding_group_size=4 strategy=fsdp " DENSE, true},
        {"fsdp.sharding_group_size=0 strategy=fsdp " DENSE, false},
        {"fsdp.sharding_group_size=4 strategy=fsdp fsdp.sharding_strategy=HYBRID_SHARD " DENSE,
            false},
        {"fsdp.sharding_group_size=4 strategy=fsdp "
         "fsdp.sharding_strategy=_HYBRID_SHARD_ZERO2 " DENSE,
            false},
        {"fsdp.limit_all_gathers=false strategy=fsdp " DENSE, false},
        {"fsdp.limit_all_gathers=false strategy=fsdp fsdp.version=2 " DENSE, true},
        {"fsdp.reshard_after_forward=never strategy=fsdp " DENSE, true},
        {"fsdp.reshard_after_forward=never strategy=fsdp fsdp.version=2 " DENSE, false},
        {"megatron.fp8_param_gather=true " DENSE, true},
        {"megatron.fp8_param_gather=true train.precision=fp8_mixed " DENSE, false},
        {"fsdp.version=2 " DENSE, true},
        {"fsdp.version=2 strategy=fsdp " DENSE, false},
        {"megatron.overlap_grad_reduce=true strategy=fsdp " DENSE, true},
        {"megatron.overlap_grad_reduce=true " DENSE, false},
    };
    static const char text[] = "name: x\nmodel: gpt2\ncluster: {topology: h100-8x400g, gpus: 8}\n"
                               "train: {micro_batch: 1, seq_len: 512}\nstrategy: megatron\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario_override sets[8];
        char words[200], *rest = NULL, expected[100];
        int n = 0;
        snprintf(words, sizeof words, "%s", cases[i].sets);
        for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
            char *value = strchr(word, '=');
            *value = '\0';
            sets[n++] = (struct scenario_override){word, value + 1};
        }
        struct loaded *loaded = load_text(text, sets, n);
        snprintf(expected, sizeof expected, "warning: '%s' is not read where ", sets[0].key);
        if (loaded->status != STATUS_OK ||
            (strstr(loaded->diag.text, expected) != NULL) != cases[i].warned)
            fail_msg("%s: %s", cases[i].sets, loaded->diag.text);
        unload(loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_are_not_read),
        cmocka_unit_test(sweeps),
        cmocka_unit_test(parallelism_by_other_names),
        cmocka_unit_test(other_files_of_the_project),
        cmocka_unit_test(values_of_a_sweep_are_checked_where_they_stand),
        cmocka_unit_test(points_that_make_no_sense),
        cmocka_unit_test(groups_that_make_no_sense),
        cmocka_unit_test(precision_that_the_gpu_lacks),
        cmocka_unit_test(settings_that_nothing_reads),
        cmocka_unit_test(recipes_of_fp8_and_pieces),
        cmocka_unit_test(published_figures),
        cmocka_unit_test(every_mistake_is_reported),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
