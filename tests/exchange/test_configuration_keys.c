/* The settings that 270 files of four projects have most often (40 Megatron-LM scripts' arguments,
 * 40 keys of DeepSpeed, 27 of torchtitan, 20 of accelerate; counted on 2026-11-23 where flopcast
 * did not understand them): each is understood, left aside with a word why, or refused with one;
 * none is passed over. Refused are values that few files have, of what is not simulated. Two of
 * accelerate's, invalid_key and another_invalid_key, stand in no list: no program reads them. */
#include "exchange/configuration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum fate { TAKEN, ASIDE, OPEN, REFUSED, OTHER_JOB };
static const enum configuration_fate fates[] = {
    FATE_TAKEN, FATE_ASIDE, FATE_OPEN, FATE_NOT_UNDERSTOOD};

struct expected {
    const char *text, *name; /* a file, and the setting in it */
    enum fate fate;
};

static void check(
    enum configuration_format format, const struct expected *expected, const char *model)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    const struct configuration_given given = {.name = "x", .gpus = 8, .model = model};
    struct configuration config = {.arena = &arena, .given = &given};
    char path[] = "/tmp/flopcast-keys-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(
        write(file, expected->text, strlen(expected->text)), (ssize_t)strlen(expected->text));
    close(file);
    enum status status = configuration_read(&config, path, format, &diag);
    unlink(path);
    if (status == STATUS_OK)
        status = configuration_finish(&config, &given, &diag);
    if ((status != STATUS_OK) != (expected->fate == OTHER_JOB))
        fail_msg("%s: %s", expected->text, diag.text);
    const struct configuration_setting *found = NULL;
    for (int i = 0; i < config.settings.n && status == STATUS_OK; i++)
        if (strcmp(config.settings.at[i].name, expected->name) == 0)
            found = &config.settings.at[i];
    if (status == STATUS_OK && (!found || found->fate != fates[expected->fate]))
        fail_msg("%s: fate of %s is %d, not %d (%s)", expected->text, expected->name,
            found ? (int)found->fate : -1, (int)fates[expected->fate],
            found && found->words ? found->words : "");
    if (found && !found->words) /* a word why */
        fail_msg("%s: nothing is said of %s", expected->text, expected->name);
    configuration_free(&config);
    arena_release(&arena);
}
#define CHECK_ALL(format, list, model)                                                             \
    for (size_t i = 0; i < sizeof(list) / sizeof *(list); i++)                                     \
    check(format, &(list)[i], model)

static void megatron(void **state)
{
    (void)state;
#define GPT "p --num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 1000 --bf16 "
#define LLAMA                                                                                      \
    GPT "--swiglu --position-embedding-type rope --normalization RMSNorm --disable-bias-linear "
#define MOE LLAMA "--num-experts 8 "
#define FSDP GPT "--use-megatron-fsdp "
    static const struct expected list[] = {
        {GPT "--no-masked-softmax-fusion --attention-backend unfused", "--no-masked-softmax-fusion",
            TAKEN},
        {LLAMA "--no-masked-softmax-fusion", "--no-masked-softmax-fusion", ASIDE},
        {GPT "--pretrained-checkpoint a/b", "--pretrained-checkpoint", ASIDE},
        {GPT "--attention-softmax-in-fp32", "--attention-softmax-in-fp32", ASIDE},
        {GPT "--attention-softmax-in-fp32 --no-masked-softmax-fusion --attention-backend unfused",
            "--attention-softmax-in-fp32", REFUSED},
        {LLAMA "--no-rope-fusion", "--no-rope-fusion", TAKEN},
        {GPT "--no-rope-fusion", "--no-rope-fusion", ASIDE},
        {GPT "--task MNLI", "--task", OTHER_JOB},
        {GPT "--img-h 224", "--img-h", OTHER_JOB},
        {GPT "--img-w 224", "--img-w", OTHER_JOB},
        {GPT "--patch-dim 14", "--patch-dim", OTHER_JOB},
        {GPT "--decoder-seq-length 512", "--decoder-seq-length", TAKEN},
        {GPT "--auto-detect-ckpt-format", "--auto-detect-ckpt-format", ASIDE},
        {GPT "--inference-max-seq-length 512", "--inference-max-seq-length", ASIDE},
        {MOE "--moe-router-dtype fp32", "--moe-router-dtype", ASIDE},
        {GPT "--use-checkpoint-args", "--use-checkpoint-args", ASIDE},
        {GPT "--pipeline-model-parallel-size $PP", "--pipeline-model-parallel-size", OPEN},
        {GPT "--tensor-model-parallel-size $TP", "--tensor-model-parallel-size", OPEN},
        {GPT "--squared-relu", "--squared-relu", ASIDE},
        {LLAMA "--squared-relu", "--squared-relu", REFUSED},
        {GPT "--use-te", "--use-te", TAKEN},
        {GPT "--language-model-type llama3_8b", "--language-model-type", OTHER_JOB},
        {GPT "--tokenizer-prompt-format llama3", "--tokenizer-prompt-format", ASIDE},
        {GPT "--finetune", "--finetune", ASIDE},
        {GPT "--hybrid-layer-pattern M-M*", "--hybrid-layer-pattern", OTHER_JOB},
        {LLAMA "--qk-layernorm", "--qk-layernorm", TAKEN},
        {GPT "--qk-layernorm", "--qk-layernorm", REFUSED},
        {MOE "--moe-router-score-function sigmoid", "--moe-router-score-function", TAKEN},
        {GPT "--disable-vision-class-token", "--disable-vision-class-token", OTHER_JOB},
        {LLAMA "--add-qkv-bias", "--add-qkv-bias", TAKEN},
        {GPT "--inference-max-requests 8", "--inference-max-requests", ASIDE},
        {GPT "--temperature 1.0", "--temperature", ASIDE},
        {GPT "--pixel-shuffle", "--pixel-shuffle", OTHER_JOB},
        {GPT "--out-seq-length 100", "--out-seq-length", OTHER_JOB},
        {GPT "--calculate-per-token-loss", "--calculate-per-token-loss", ASIDE},
        {MOE "--moe-router-topk-scaling-factor 2.5", "--moe-router-topk-scaling-factor", TAKEN},
        {GPT "--log-num-zeros-in-grad", "--log-num-zeros-in-grad", ASIDE},
        {GPT "--log-params-norm", "--log-params-norm", ASIDE},
    };
    CHECK_ALL(CONFIGURATION_MEGATRON, list, NULL);
}

/* Others that decide about the model, and must not be passed over. */
static void megatron_model(void **state)
{
    (void)state;
    static const struct expected list[] = {
        {MOE "--moe-layer-freq '([0]*1+[1]*3)'", "--moe-layer-freq", TAKEN},
        {MOE "--moe-layer-freq '([0]+[1])*2'", "--moe-layer-freq", TAKEN},
        {MOE "--moe-layer-freq 2", "--moe-layer-freq", TAKEN},
        {MOE "--moe-layer-freq '([1]+[0]*2+[1])'", "--moe-layer-freq", OTHER_JOB},
        {MOE "--moe-layer-freq [0]*3+[1]*58", "--moe-layer-freq", OTHER_JOB}, /* 61, of 4 */
        {MOE "--moe-layer-freq '((((((((([1]'", "--moe-layer-freq", OTHER_JOB},
        {MOE "--moe-shared-expert-intermediate-size 512", "--moe-shared-expert-intermediate-size",
            TAKEN},
        {MOE "--moe-router-pre-softmax", "--moe-router-pre-softmax", TAKEN},
        {MOE "--moe-router-padding-for-quantization", "--moe-router-padding-for-quantization",
            TAKEN},
        {MOE "--moe-router-padding-for-fp8", "--moe-router-padding-for-fp8", TAKEN},
        {GPT "--num-experts 8", "--num-experts", OTHER_JOB},
        {LLAMA "--multi-latent-attention --kv-lora-rank 64", "--kv-lora-rank", TAKEN},
        {LLAMA "--mtp-num-layers 1", "--mtp-num-layers", TAKEN},
        {LLAMA "--mtp-num-layers 1 --mtp-loss-scaling-factor 0.1", "--mtp-loss-scaling-factor",
            ASIDE},
        {GPT "--mtp-num-layers 1", "--mtp-num-layers", REFUSED},
        {LLAMA "--window-size 127,0", "--window-size", TAKEN},
        {GPT "--no-position-embedding", "--no-position-embedding", TAKEN},
        {GPT "--sequence-parallel", "--sequence-parallel", ASIDE},
        {GPT "--tensor-model-parallel-size 2 --sequence-parallel", "--sequence-parallel", TAKEN},
        {GPT "--use-torch-fsdp2", "--use-torch-fsdp2", REFUSED},
        {GPT "--cpu-offloading-num-layers 2", "--cpu-offloading-num-layers", TAKEN},
        {GPT "--use-megatron-fsdp", "--use-megatron-fsdp", TAKEN},
        {FSDP "--use-distributed-optimizer", "--use-distributed-optimizer", ASIDE},
        {GPT "--use-distributed-optimizer", "--use-distributed-optimizer", TAKEN},
        {GPT "--fp8-recipe tensorwise", "--fp8-recipe", TAKEN},
        {FSDP "--data-parallel-sharding-strategy optim_grads", "--data-parallel-sharding-strategy",
            TAKEN},
        {FSDP "--data-parallel-sharding-strategy full", "--data-parallel-sharding-strategy",
            REFUSED},
        {FSDP "--fsdp-double-buffer", "--fsdp-double-buffer", TAKEN},
        {FSDP "--suggested-communication-unit-size 1000", "--suggested-communication-unit-size",
            TAKEN},
        {FSDP "--num-distributed-optimizer-instances 2", "--num-distributed-optimizer-instances",
            TAKEN},
        {FSDP "--outer-dp-sharding-strategy optim", "--outer-dp-sharding-strategy", TAKEN},
        {FSDP "--nccl-ub", "--nccl-ub", ASIDE},
        {FSDP "--init-model-with-meta-device", "--init-model-with-meta-device", ASIDE},
        {FSDP "--megatron-fsdp-main-grads-dtype bf16", "--megatron-fsdp-main-grads-dtype", TAKEN},
        {FSDP "--megatron-fsdp-grad-comm-dtype bf16 --megatron-fsdp-main-grads-dtype bf16",
            "--megatron-fsdp-main-grads-dtype", TAKEN},
        {FSDP "--megatron-fsdp-grad-comm-dtype bf16 --megatron-fsdp-main-grads-dtype fp32",
            "--megatron-fsdp-main-grads-dtype", REFUSED},
    };
    CHECK_ALL(CONFIGURATION_MEGATRON, list, NULL);
}

static void megatron_rl(void **state)
{
    (void)state;
    static const struct expected list[] = {
        {GPT "--grpo-group-size 4", "--grpo-group-size", OTHER_JOB},
        {GPT "--grpo-prompts-per-step 64", "--grpo-prompts-per-step", OTHER_JOB},
        {GPT "--grpo-iterations 2", "--grpo-iterations", OTHER_JOB},
        {GPT "--grpo-clamp-eps-lower 0.2", "--grpo-clamp-eps-lower", OTHER_JOB},
        {GPT "--grpo-clamp-eps-upper 0.2", "--grpo-clamp-eps-upper", OTHER_JOB},
        {GPT "--grpo-kl-beta 0", "--grpo-kl-beta", ASIDE},
        {GPT "--langrl-env-config a.yaml", "--langrl-env-config", OTHER_JOB},
    };
    CHECK_ALL(CONFIGURATION_MEGATRON, list, NULL);
}

static void torchtitan(void **state)
{
    (void)state;
#define M(rest) "[model]\nname = \"llama3\"\nflavor = \"8B\"\n" rest
#define FP8(rest) M("converters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\n" rest)
    static const struct expected list[] = {
        {M(""), "model.name", ASIDE},
        {M(""), "model.flavor", TAKEN},
        {"[model]\nname = \"flux\"\nflavor = \"flux-dev\"\n", "model.flavor", OTHER_JOB},
        {M("[encoder]\nclip_encoder = \"a\"\n"), "encoder.clip_encoder", OTHER_JOB},
        {M("[encoder]\nmax_t5_encoding_len = 256\n"), "encoder.max_t5_encoding_len", OTHER_JOB},
        {M("[encoder]\nautoencoder_path = \"a\"\n"), "encoder.autoencoder_path", OTHER_JOB},
        {M("[training]\nclassifier_free_guidance_prob = 0.1\n"),
            "training.classifier_free_guidance_prob", OTHER_JOB},
        {M("[eval]\nenable_classifer_free_guidance = true\n"),
            "eval.enable_classifer_free_guidance", ASIDE},
        {M("[eval]\nclassifer_free_guidance_scale = 5.0\n"), "eval.classifer_free_guidance_scale",
            ASIDE},
        {M("[eval]\nsave_img_folder = \"a\"\n"), "eval.save_img_folder", ASIDE},
        {M("[eval]\neval_freq = 10\n"), "eval.eval_freq", ASIDE},
        {FP8("enable_fsdp_float8_all_gather = true\n"),
            "quantize.linear.float8.enable_fsdp_float8_all_gather", TAKEN},
        {FP8("precompute_float8_dynamic_scale_for_fsdp = true\n"),
            "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", ASIDE},
        {FP8("filter_fqns = [\"output\"]\n"), "quantize.linear.float8.filter_fqns", ASIDE},
        {FP8("filter_fqns = [\"attention.wk\"]\n"), "quantize.linear.float8.filter_fqns", REFUSED},
        {FP8("recipe_name = \"rowwise\"\n"), "quantize.linear.float8.recipe_name", TAKEN},
        {FP8(""), "model.converters", TAKEN},
        {M("converters = \"float8\"\n"), "model.converters", TAKEN},
        {M("converters = [\"float8\"]\n"), "model.converters", TAKEN},
        {M("converters = []\n"), "model.converters", ASIDE},
        {M("converters = [\"quantize.linear.mx\"]\n"), "model.converters", REFUSED},
        {M("converters = [\"quantize.linear.float8\", \"quantize.grouped_mm.float8\"]\n"),
            "model.converters", REFUSED},
        {M("[training]\ndata_parallel_degree = 8\n"), "training.data_parallel_degree", ASIDE},
        {M("[training]\nfp8_linear = \"\"\n"), "training.fp8_linear", ASIDE},
        {M("[training]\nfp8_linear = \"dynamic\"\n"), "training.fp8_linear", TAKEN},
        {M("[training]\npipeline_parallel_degree = 2\n"), "training.pipeline_parallel_degree",
            TAKEN},
        {M("[training]\nimg_size = 256\n"), "training.img_size", OTHER_JOB},
        {M("[encoder]\nt5_encoder = \"t5\"\n"), "encoder.t5_encoder", OTHER_JOB},
        {M("norm_type = \"rmsnorm\"\n"), "model.norm_type", ASIDE},
        {M("norm_type = \"fused_rmsnorm\"\n"), "model.norm_type", ASIDE},
        {M("[experimental]\ncustom_args_module = \"a.b\"\n"), "experimental.custom_args_module",
            ASIDE},
        {M("[quantize.grouped_mm.float8]\nfqns = [\"experts\"]\n"),
            "quantize.grouped_mm.float8.fqns", ASIDE},
        {M("[quantize.linear.mx]\nfilter_fqns = [\"output\"]\n"), "quantize.linear.mx.filter_fqns",
            ASIDE},
        {M("[training]\nclassifer_free_guidance_prob = 0.1\n"),
            "training.classifer_free_guidance_prob", OTHER_JOB},
        {M("[eval]\ndenoising_steps = 50\n"), "eval.denoising_steps", ASIDE},
        {M("[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n"), "compile.components",
            ASIDE},
        {M("[quantize.grouped_mm.mx]\nfqns = [\"experts\"]\n"), "quantize.grouped_mm.mx.fqns",
            ASIDE},
    };
    CHECK_ALL(CONFIGURATION_TORCHTITAN, list, NULL);
}

static void deepspeed(void **state)
{
    (void)state;
#define C(rest) "{\"compression_training\": {" rest "}}"
    static const struct expected list[] = {
        {C("\"weight_quantization\": {\"shared_parameters\": {\"fp16_mixed_quantize\": "
           "{\"enabled\": true}}}"),
            "compression_training.weight_quantization.shared_parameters.fp16_mixed_quantize."
            "enabled",
            ASIDE},
        {C("\"weight_quantization\": {\"different_groups\": {\"wq1\": {\"modules\": [\"a\"]}}}"),
            "compression_training.weight_quantization.different_groups.wq1.modules", ASIDE},
        {C("\"sparse_pruning\": {\"shared_parameters\": {\"method\": \"l1\"}}"),
            "compression_training.sparse_pruning.shared_parameters.method", ASIDE},
        {C("\"layer_reduction\": {\"keep_number_layer\": 6}"),
            "compression_training.layer_reduction.keep_number_layer", ASIDE},
        {C("\"row_pruning\": {\"shared_parameters\": {\"enabled\": true}}"),
            "compression_training.row_pruning.shared_parameters.enabled", ASIDE},
        {"{\"train_micro_batch_size_per_gpu\": \"auto\"}", "train_micro_batch_size_per_gpu", OPEN},
        {"{\"prescale_gradients\": true}", "prescale_gradients", ASIDE},
        {"{\"optimizer\": {\"type\": \"OneBitAdam\"}}", "optimizer.type", TAKEN},
        {"{\"optimizer\": {\"type\": \"ZeroOneAdam\"}}", "optimizer.type", REFUSED},
        {"{\"optimizer\": {\"type\": \"auto\"}}", "optimizer.type", OPEN},
        {"{\"fp16\": {\"enabled\": false}}", "fp16.enabled", ASIDE},
        {"{\"fp16\": {\"enabled\": true}}", "fp16.enabled", TAKEN},
        {"{\"fp16\": {\"enabled\": \"auto\"}}", "fp16.enabled", ASIDE}, /* see what is missing */
        {"{\"zero_optimization\": {\"reduce_bucket_size\": \"auto\"}}",
            "zero_optimization.reduce_bucket_size", TAKEN},
    };
    CHECK_ALL(CONFIGURATION_DEEPSPEED, list, "llama2-7b");
}

/* Compression begins after training as modelled, or beside it: all 35 keys of it among the first 40
 * are left aside. */
static void deepspeed_compression(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "weight_quantization.shared_parameters.fp16_mixed_quantize.enabled",
        "weight_quantization.shared_parameters.enabled",
        "weight_quantization.shared_parameters.quantizer_kernel",
        "weight_quantization.shared_parameters.schedule_offset",
        "weight_quantization.shared_parameters.quantize_groups",
        "weight_quantization.shared_parameters.quantize_verbose",
        "weight_quantization.shared_parameters.quantization_type",
        "weight_quantization.shared_parameters.quantize_weight_in_forward",
        "weight_quantization.shared_parameters.rounding",
        "weight_quantization.different_groups.wq1.params.start_bits",
        "weight_quantization.different_groups.wq1.params.target_bits",
        "weight_quantization.different_groups.wq1.params.quantization_period",
        "weight_quantization.different_groups.wq1.modules",
        "activation_quantization.shared_parameters.enabled",
        "activation_quantization.shared_parameters.quantization_type",
        "activation_quantization.shared_parameters.range_calibration",
        "activation_quantization.shared_parameters.schedule_offset",
        "activation_quantization.different_groups.aq1.params.bits",
        "activation_quantization.different_groups.aq1.modules",
        "sparse_pruning.shared_parameters.enabled",
        "sparse_pruning.shared_parameters.schedule_offset",
        "sparse_pruning.shared_parameters.method",
        "sparse_pruning.different_groups.sp1.params.dense_ratio",
        "sparse_pruning.different_groups.sp1.modules", "layer_reduction.enabled",
        "layer_reduction.keep_number_layer", "layer_reduction.module_name_prefix",
        "layer_reduction.teacher_layer", "layer_reduction.other_module_name",
        "row_pruning.shared_parameters.enabled", "row_pruning.shared_parameters.schedule_offset",
        "row_pruning.shared_parameters.method",
        "row_pruning.different_groups.rp1.params.dense_ratio",
        "row_pruning.different_groups.rp1.modules",
        "row_pruning.different_groups.rp1.related_modules"};
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = "{\"compression_training\": {\"", *ends = "\": 1}}";
        for (const char *at = keys[i]; *at; at++) {
            text = *at == '.' ? arena_printf(&arena, "%s\": {\"", text)
                              : arena_printf(&arena, "%s%c", text, *at);
            ends = *at == '.' ? arena_printf(&arena, "%s}", ends) : ends;
        }
        check(CONFIGURATION_DEEPSPEED,
            &(struct expected){arena_printf(&arena, "%s%s", text, ends),
                arena_printf(&arena, "compression_training.%s", keys[i]), ASIDE},
            "llama2-7b");
    }
    arena_release(&arena);
}

static void accelerate(void **state)
{
    (void)state;
#define FP8_KEY(key, value)                                                                        \
    "mixed_precision: fp8\nfp8_config: {" key ": " value "}\n", "fp8_config." key
    static const struct expected list[] = {
        {"deepspeed_config: {}\n", "deepspeed_config", ASIDE},
        {"fsdp_config: {}\n", "fsdp_config", ASIDE},
        {"megatron_lm_config: {}\n", "megatron_lm_config", ASIDE},
        {"distributed_type: MEGATRON_LM\nmegatron_lm_config: {megatron_lm_tp_degree: 2}\n",
            "megatron_lm_config.megatron_lm_tp_degree", TAKEN},
        {FP8_KEY("backend", "TE"), TAKEN},
        {FP8_KEY("backend", "MSAMP"), REFUSED},
        {FP8_KEY("amax_history_len", "1024"), ASIDE},
        {FP8_KEY("amax_compute_algo", "max"), ASIDE},
        {FP8_KEY("fp8_format", "HYBRID"), ASIDE},
        {FP8_KEY("interval", "1"), ASIDE},
        {FP8_KEY("margin", "0"), ASIDE},
        {FP8_KEY("override_linear_precision", "'(false, false, false)'"), ASIDE},
        {FP8_KEY("override_linear_precision", "[true, false, false]"), REFUSED},
        {FP8_KEY("use_autocast_during_eval", "false"), ASIDE},
        {"distributed_type: MEGATRON_LM\n", "distributed_type", TAKEN},
        {"distributed_type: XLA\n", "distributed_type", REFUSED},
        {"mpirun_config: {mpirun_hostfile: a}\n", "mpirun_config.mpirun_hostfile", ASIDE},
        {"use_cpu: true\n", "use_cpu", OTHER_JOB},
        {"use_cpu: false\n", "use_cpu", ASIDE},
        {"tpu_name: a\n", "tpu_name", ASIDE},
        {"tpu_zone: a\n", "tpu_zone", ASIDE},
        {"command_file: null\n", "command_file", ASIDE},
        {"fsdp_config: {fsdp_ignored_modules: null}\n", "fsdp_config.fsdp_ignored_modules", ASIDE},
        {"fsdp_config: {fsdp_ignored_modules: a}\n", "fsdp_config.fsdp_ignored_modules", REFUSED},
    };
    CHECK_ALL(CONFIGURATION_ACCELERATE, list, "llama2-7b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(megatron), cmocka_unit_test(megatron_model),
        cmocka_unit_test(megatron_rl), cmocka_unit_test(torchtitan), cmocka_unit_test(deepspeed),
        cmocka_unit_test(deepspeed_compression), cmocka_unit_test(accelerate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
