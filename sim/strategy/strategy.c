#include "strategy/strategy.h"

#include "strategy/emit.h"

const char *const precision_names[] = {
    "fp32", "tf32", "bf16_mixed", "fp16_mixed", "bf16", "bf16_master", "fp8_mixed", NULL};
const char *const checkpointing_names[] = {"none", "full", "selective", NULL};
const char *const image_format_names[] = {"contiguous", "channels_last", "channels_last_amp", NULL};
const char *const sharding_strategy_names[] = {
    "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", NULL};
const char *const backward_prefetch_names[] = {"BACKWARD_PRE", "BACKWARD_POST", "None", NULL};
const char *const reduce_dtype_names[] = {"param_dtype", "fp32", "bf16", "fp16", NULL};
const char *const strategy_kind_names[] = {"fsdp", "ddp", "deepspeed", "internevo", "single_device", NULL};
const char *const stage3_fetch_names[] = {"trace", "blocking", NULL};
const char *const overlap_comm_names[] = {"null", "false", "true", NULL};

/* Host costs: assumed. Eager PyTorch issues an op in 5 to 20 us of Python and dispatcher (NVIDIA's Nsight guide gives
 * about 20 us for an elementwise launch round trip on V100; the tiny-kernel rows of results/measured/launch.csv
 * give 2.6 us of it to the driver); autograd runs in C++ at about half. FSDP's hooks run some hundred lines of Python.
 * A view (narrow, a slice) launches nothing: a binding, a dispatch and an object, 1.5 to 3 us. To be measured (issue
 * 3). */
struct strategy_options strategy_default_options(void)
{
    return (struct strategy_options){
        .kind = STRATEGY_FSDP,
        .train = {.micro_batch = 1,
            .seq_len = 512,
            .decoder_seq_len = 0,
            .grad_accum = 1,
            .precision = PRECISION_BF16_MIXED,
            .optimizer = OPTIMIZER_ADAMW,
            .optimizer_impl = OPTIMIZER_FOREACH,
            .activation_checkpointing = CHECKPOINT_NONE,
            .checkpoint_interval = 1,
            .checkpoint_early_stop = true,
            .attention = ATTENTION_NAIVE},
        .fsdp = {.sharding_strategy = FULL_SHARD,
            .backward_prefetch = BACKWARD_PRE,
            .reduce_dtype = REDUCE_PARAM_DTYPE,
            .limit_all_gathers = true,
            .no_sync = false,
            .version = 1,
            .max_inflight_all_gathers = 2},
        .ddp = {.bucket_cap_bytes = 25 * 0x1p20, .first_bucket_bytes = 0x1p20, .broadcast_buffers = true},
        .zero = {.stage = 1,
            .reduce_bucket_size = 500000000,
            .allgather_bucket_size = 500000000,
            .overlap_comm = OVERLAP_NULL,
            .stage3_prefetch_bucket_size = 50000000,
            .stage3_param_persistence_threshold = 100000,
            .stage3_max_live_parameters = 1000000000,
            .stage3_max_reuse_distance = 1000000000},
        .internevo = {.zero1 = -1, .reduce_bucket_size = 1 << 29, .overlap_sync_grad = true},
        .host = {.kernel_issue_s = 10e-6,
            .backward_issue_s = 5e-6,
            .collective_issue_s = 30e-6,
            .view_s = 2e-6,
            .unit_hook_s = 100e-6,
            .step_s = 1e-3},
    };
}

const char *strategy_label(const struct strategy_options *options)
{
    static const char *const stages[] = {"ZeRO-0", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
    switch ((enum strategy_kind)options->kind) {
    case STRATEGY_DDP:
        return "DDP";
    case STRATEGY_DEEPSPEED:
        return stages[options->zero.stage];
    case STRATEGY_INTERNEVO:
        return "hybrid ZeRO-1";
    case STRATEGY_SINGLE_DEVICE:
        return "single device";
    case STRATEGY_FSDP:
    case STRATEGY_COUNT:
        break;
    }
    return sharding_strategy_names[options->fsdp.sharding_strategy];
}

struct model_workload strategy_workload(const struct strategy_options *options, const struct model *model)
{
    static const enum dtype math[PRECISION_COUNT] = {[PRECISION_FP32] = DTYPE_FP32,
        [PRECISION_TF32] = DTYPE_TF32,
        [PRECISION_BF16_MIXED] = DTYPE_BF16,
        [PRECISION_FP16_MIXED] = DTYPE_FP16,
        [PRECISION_BF16] = DTYPE_BF16,
        [PRECISION_BF16_MASTER] = DTYPE_BF16,
        [PRECISION_FP8_MIXED] = DTYPE_BF16};
    const struct train_options *train = &options->train;
    bool two_stacks = model->shape.family == MODEL_T5;
    enum dtype dtype = math[train->precision];
    return (struct model_workload){
        .micro_batch = train->micro_batch,
        .seq_len = train->seq_len,
        .decoder_seq_len = !two_stacks                  ? 0
                           : train->decoder_seq_len > 0 ? train->decoder_seq_len
                                                        : train->seq_len,
        .math = dtype,
        .storage = dtype == DTYPE_TF32 ? DTYPE_FP32 : dtype,
        .attention = train->attention,
        .cross_entropy = train->cross_entropy,
        .fusion = train->fusion,
        .autocast = train->autocast,
        .channels_last = train->memory_format == IMAGE_CHANNELS_LAST ||
                         (train->memory_format == IMAGE_CHANNELS_LAST_AMP && dtype_bytes(dtype) == 2),
        .fp8 = train->precision == PRECISION_FP8_MIXED,
        .loss_fp32 = true,
        .neftune = train->neftune,
        .nf4 = train->qlora,
        .drops_logits = train->drop_logits,
    };
}

int64_t strategy_micro_steps(const struct train_options *train)
{
    return train->device_batch > 0 ? (train->device_batch + train->micro_batch - 1) / train->micro_batch
                                   : train->grad_accum;
}

static enum status check_batch(const struct train_options *train, struct source_pos at, struct diag *diag)
{
    long long follows = strategy_micro_steps(train);
    if (train->grad_accum > 1 && train->grad_accum != follows)
        return diag_input(diag, at,
            "train.device_batch of %lld makes %lld micro-steps of up to %lld sequences, but train.grad_accum is %lld; "
            "leave one of them out",
            (long long)train->device_batch, follows, (long long)train->micro_batch, (long long)train->grad_accum);
    if (follows > STRATEGY_MAX_MICRO_STEPS)
        return diag_input(diag, at,
            "%lld micro-steps of %lld sequences in an optimizer step, of which at most %d are simulated; use a larger "
            "train.micro_batch or a smaller batch",
            follows, (long long)train->micro_batch, STRATEGY_MAX_MICRO_STEPS);
    if (train->optimizer == OPTIMIZER_LOMO && follows > 1)
        return diag_input(diag, at,
            "LOMO uses a gradient up at once and cannot add several; take train.grad_accum: 1 and no more in "
            "train.device_batch than in train.micro_batch");
    return STATUS_OK;
}

static enum status check_autocast(
    const struct strategy_options *options, const struct model_shape *shape, struct source_pos at, struct diag *diag)
{
    int precision = options->train.precision;
    if (!options->train.autocast)
        return STATUS_OK;
    if (precision != PRECISION_BF16_MIXED && precision != PRECISION_FP16_MIXED)
        return diag_input(
            diag, at, "train.autocast is of bf16_mixed and fp16_mixed; take one of them as train.precision");
    if (options->kind == STRATEGY_DEEPSPEED)
        return diag_input(diag, at, "DeepSpeed casts the model itself; leave train.autocast out");
    if (model_sample_tokens(shape) > 0)
        return diag_input(diag, at, "train.autocast is simulated for models of tokens; leave it out");
    return STATUS_OK;
}

static enum status check_fsdp(
    const struct fsdp_options *options, const struct hw *hw, int gpus, struct source_pos at, struct diag *diag)
{
    int strategy = options->sharding_strategy;
    if (strategy != HYBRID_SHARD && strategy != HYBRID_SHARD_ZERO2)
        return STATUS_OK;
    int64_t group = options->sharding_group_size ? options->sharding_group_size : hw_gpus_per_node(hw);
    if (group < gpus && gpus % group != 0)
        return diag_input(diag, at, "%d GPUs cannot be cut into sharding groups of %lld; take a multiple of it", gpus,
            (long long)group);
    return STATUS_OK;
}

static enum status check_internevo(
    const struct strategy_options *options, int gpus, struct source_pos at, struct diag *diag)
{
    int precision = options->train.precision;
    if (precision == PRECISION_BF16_MIXED || precision == PRECISION_FP16_MIXED || precision == PRECISION_FP8_MIXED)
        return diag_input(diag, at,
            "InternEvo keeps 16-bit weights and gradients, and FP32 copies with the optimizer; take train.precision: "
            "bf16_master");
    if (gpus % internevo_zero1_size(&options->internevo, gpus) != 0)
        return diag_input(diag, at, "%d GPUs cannot be cut into zero1 groups of %lld; take a divisor", gpus,
            (long long)options->internevo.zero1);
    return STATUS_OK;
}

static bool is_zero(const struct strategy_options *options)
{
    return options->kind == STRATEGY_DEEPSPEED || options->kind == STRATEGY_INTERNEVO;
}

static bool offloads(const struct strategy_options *options)
{
    return (options->kind == STRATEGY_FSDP && options->fsdp.cpu_offload) ||
           (options->kind == STRATEGY_DEEPSPEED && options->zero.offload_optimizer);
}

static enum status check_offload(
    const struct strategy_options *options, const struct hw *hw, struct source_pos at, struct diag *diag)
{
    if (!quantity_is_set(hw->node.host_bandwidth) || !quantity_is_set(hw->node.host_memory))
        return diag_input(diag, at,
            "node '%s' has no host_memory and host_bandwidth, which offloading needs; give both", hw->node.name);
    if (options->train.optimizer == OPTIMIZER_LOMO)
        return diag_input(diag, at, "LOMO steps on the GPU, inside backward; take another train.optimizer");
    if (options->kind == STRATEGY_FSDP && strategy_micro_steps(&options->train) > 1 && !options->fsdp.no_sync)
        return diag_input(
            diag, at, "FSDP with cpu_offload cannot accumulate reduced gradients; take fsdp.no_sync: true");
    return STATUS_OK;
}

static enum status check_images(const struct model *model, const struct hw *hw, struct source_pos at, struct diag *diag)
{
    if (model->shape.image_size == 0)
        return diag_input(diag, at, "'%s' takes no images; leave out train.decode_images", model->shape.name);
    if (hw->gpu.host_image_s > 0)
        return STATUS_OK;
    return diag_input(diag, at, "node '%s' has no image_time, which train.decode_images needs; give it", hw->node.name);
}

/* What the ranks of a node keep in host memory fits there. */
static enum status check_host(const struct plan *plan, const struct hw *hw, struct source_pos at, struct diag *diag)
{
    int ranks = hw_ranks_of_node(hw, plan->ranks);
    if (plan->host_bytes * ranks <= hw->node.host_memory.value || plan->host_bytes <= 0)
        return STATUS_OK;
    return diag_input(diag, at, "%d ranks offload %.0f GB each, but node '%s' has %.0f GB; use more GPUs", ranks,
        plan->host_bytes / 1e9, hw->node.name, hw->node.host_memory.value / 1e9);
}

enum status strategy_compile(struct plan *out, const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus, struct source_pos at, struct arena *arena, struct diag *diag)
{
    struct model_workload workload = strategy_workload(options, model);
    enum dtype math = workload.fp8 ? DTYPE_FP8 : workload.math;
    if (!kernel_supported(&hw->gpu, math))
        return diag_input(diag, at, "%s has no %s matrix multiplication; take another train.precision", hw->gpu.name,
            dtype_names[math]);
    if (options->train.attention == ATTENTION_FLASH && !model_takes_flash(&model->shape))
        return diag_input(diag, at,
            "'%s' does more to its scores than flash attention can (T5's position bias, DeepViT's mixing of heads); "
            "take "
            "attention: naive",
            model->shape.name);
    if (options->kind == STRATEGY_SINGLE_DEVICE && gpus > 1)
        return diag_input(diag, at,
            "strategy 'single_device' is a model on one GPU, not on %d; take strategy: ddp, or cluster.gpus: 1", gpus);
    int precision = options->train.precision;
    if (options->kind == STRATEGY_DEEPSPEED && (precision == PRECISION_BF16 || precision == PRECISION_BF16_MASTER))
        return diag_input(diag, at, "DeepSpeed keeps FP32 master weights of its own; take train.precision: bf16_mixed");
    if (options->kind == STRATEGY_INTERNEVO) {
        enum status status = check_internevo(options, gpus, at, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (options->train.lora_rank > 0 && options->kind == STRATEGY_INTERNEVO)
        return diag_input(diag, at, "adapters are simulated with ddp, fsdp and deepspeed; take one of these");
    if (options->train.optimizer == OPTIMIZER_LOMO && is_zero(options))
        return diag_input(
            diag, at, "ZeRO's optimizer steps after backward, LOMO within it; take strategy: ddp or fsdp");
    if (check_batch(&options->train, at, diag) != STATUS_OK ||
        check_autocast(options, &model->shape, at, diag) != STATUS_OK)
        return STATUS_INPUT;
    if (options->kind == STRATEGY_FSDP) {
        enum status status = check_fsdp(&options->fsdp, hw, gpus, at, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (offloads(options) && check_offload(options, hw, at, diag) != STATUS_OK)
        return STATUS_INPUT;
    if (options->train.decode_images && check_images(model, hw, at, diag) != STATUS_OK)
        return STATUS_INPUT;
    static void (*const compile[STRATEGY_COUNT])(struct emit *) = {[STRATEGY_FSDP] = compile_fsdp,
        [STRATEGY_DDP] = compile_ddp,
        [STRATEGY_DEEPSPEED] = compile_deepspeed,
        [STRATEGY_INTERNEVO] = compile_internevo,
        [STRATEGY_SINGLE_DEVICE] = compile_ddp};
    struct emit emit;
    emit_begin(&emit, out, options, model, hw, gpus, arena);
    compile[options->kind](&emit);
    emit_end(&emit);
    return check_host(out, hw, at, diag);
}
