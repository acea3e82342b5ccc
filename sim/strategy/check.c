/* What a strategy refuses: options of a job that exclude one another, or that a model or a cluster cannot do. */
#include "strategy/strategy.h"

#include <stdio.h>

static struct source_pos at(const struct strategy_places *places, const char *path)
{
    return places->at(places->self, path);
}

static enum status check_batch(
    const struct train_options *train, const struct strategy_places *places, struct diag *diag)
{
    long long follows = strategy_batch(train).micro_batches;
    if (train->grad_accum > 1 && train->grad_accum != follows)
        return diag_input(diag, at(places, "train.device_batch"),
            "train.device_batch of %lld makes %lld micro-steps of up to %lld sequences, but train.grad_accum is %lld; "
            "leave one of them out",
            (long long)train->device_batch, follows, (long long)train->micro_batch, (long long)train->grad_accum);
    if (follows > STRATEGY_MAX_MICRO_STEPS)
        return diag_input(diag, at(places, train->device_batch > 0 ? "train.device_batch" : "train.grad_accum"),
            "%lld micro-steps of %lld sequences in an optimizer step, of which at most %d are simulated; use a larger "
            "'train.micro_batch' or a smaller batch",
            follows, (long long)train->micro_batch, STRATEGY_MAX_MICRO_STEPS);
    if (train->optimizer == OPTIMIZER_LOMO && follows > 1)
        return diag_input(diag, at(places, "train.optimizer"),
            "LOMO uses a gradient up at once and cannot add several; take train.grad_accum: 1 and no more in "
            "train.device_batch than in train.micro_batch");
    if (train->optimizer == OPTIMIZER_LOMO && train->clip_grad_norm)
        return diag_input(diag, at(places, "train.clip_grad_norm"),
            "LOMO would need a second backward pass to clip gradients by their norm, which is not simulated; leave it "
            "out");
    return STATUS_OK;
}

static enum status check_autocast(
    const struct strategy_options *options, const struct strategy_places *places, struct diag *diag)
{
    int precision = options->train.precision;
    struct source_pos autocast = at(places, "train.autocast");
    if (!options->train.autocast)
        return STATUS_OK;
    if (precision != PRECISION_BF16_MIXED && precision != PRECISION_FP16_MIXED)
        return diag_input(
            diag, autocast, "train.autocast is of bf16_mixed and fp16_mixed; take one of them as train.precision");
    if (options->kind == STRATEGY_DEEPSPEED)
        return diag_input(diag, autocast, "DeepSpeed casts the model itself; leave train.autocast out");
    return STATUS_OK;
}

static enum status check_internevo(
    const struct strategy_options *options, const struct strategy_places *places, struct diag *diag)
{
    int precision = options->train.precision;
    if (precision == PRECISION_BF16_MIXED || precision == PRECISION_FP16_MIXED || precision == PRECISION_FP8_MIXED)
        return diag_input(diag, at(places, "train.precision"),
            "InternEvo keeps 16-bit weights and gradients, and FP32 copies with the optimizer; take bf16_master");
    if (options->train.lora_rank > 0)
        return diag_input(diag, at(places, "train.lora_rank"),
            "adapters are simulated with ddp, fsdp and deepspeed; take one of these");
    return STATUS_OK;
}

static bool is_zero(const struct strategy_options *options)
{
    return options->kind == STRATEGY_DEEPSPEED || options->kind == STRATEGY_INTERNEVO;
}

/* The setting that moves something to the host; NULL: none does. */
static const char *offload_path(const struct strategy_options *options)
{
    if (options->kind == STRATEGY_FSDP && options->fsdp.cpu_offload)
        return "fsdp.cpu_offload";
    if (options->kind == STRATEGY_DEEPSPEED && options->zero.offload_optimizer)
        return "deepspeed.zero_optimization.offload_optimizer";
    return NULL;
}

static enum status check_offload(
    const struct strategy_options *options, const struct strategy_places *places, struct diag *diag)
{
    const char *path = offload_path(options);
    if (!path)
        return STATUS_OK;
    if (options->train.optimizer == OPTIMIZER_LOMO)
        return diag_input(
            diag, at(places, "train.optimizer"), "LOMO steps on the GPU, inside backward; take another optimizer");
    if (options->kind == STRATEGY_FSDP && strategy_batch(&options->train).micro_batches > 1 && !options->fsdp.no_sync)
        return diag_input(diag, at(places, path),
            "FSDP with cpu_offload cannot accumulate reduced gradients; take fsdp.no_sync: true");
    return STATUS_OK;
}

enum status strategy_check_options(
    const struct strategy_options *options, const struct strategy_places *places, struct diag *diag)
{
    int precision = options->train.precision;
    if (options->kind == STRATEGY_DEEPSPEED && (precision == PRECISION_BF16 || precision == PRECISION_BF16_MASTER))
        return diag_input(
            diag, at(places, "train.precision"), "DeepSpeed keeps FP32 master weights of its own; take bf16_mixed");
    if (options->kind == STRATEGY_INTERNEVO && check_internevo(options, places, diag) != STATUS_OK)
        return STATUS_INPUT;
    if (options->train.optimizer == OPTIMIZER_LOMO && is_zero(options))
        return diag_input(diag, at(places, "train.optimizer"),
            "ZeRO's optimizer steps after backward, LOMO within it; take strategy ddp or fsdp, or another optimizer");
    if (check_batch(&options->train, places, diag) != STATUS_OK || check_autocast(options, places, diag) != STATUS_OK)
        return STATUS_INPUT;
    return check_offload(options, places, diag);
}

static enum status check_model(const struct strategy_options *options, const struct model *model, const struct hw *hw,
    const struct strategy_places *places, struct diag *diag)
{
    const struct train_options *train = &options->train;
    if (train->attention == ATTENTION_FLASH && !model_takes_flash(&model->shape))
        return diag_input(diag, at(places, "train.attention"),
            "'%s' does more to its scores than flash attention can (T5's position bias, DeepViT's mixing of heads); "
            "take attention: naive",
            model->shape.name);
    if (train->autocast && model_sample_tokens(&model->shape) > 0)
        return diag_input(
            diag, at(places, "train.autocast"), "train.autocast is simulated for models of tokens; leave it out");
    struct source_pos images = at(places, "train.decode_images");
    if (train->decode_images && model->shape.image_size == 0)
        return diag_input(diag, images, "'%s' takes no images; leave out train.decode_images", model->shape.name);
    if (train->decode_images && hw->gpu.host_image_s <= 0)
        return diag_input(
            diag, images, "node '%s' has no image_time, which train.decode_images needs; give it", hw->node.name);
    return STATUS_OK;
}

static enum status check_gpus(const struct strategy_options *options, const struct hw *hw, int gpus,
    const struct strategy_places *places, struct diag *diag)
{
    int sharding = options->fsdp.sharding_strategy;
    bool hybrid = options->kind == STRATEGY_FSDP && (sharding == HYBRID_SHARD || sharding == HYBRID_SHARD_ZERO2);
    int64_t group = options->fsdp.sharding_group_size ? options->fsdp.sharding_group_size : hw_gpus_per_node(hw);
    if (options->kind == STRATEGY_SINGLE_DEVICE && gpus > 1)
        return diag_input(diag, at(places, "strategy"),
            "strategy 'single_device' is a model on one GPU, not on %d; take strategy: ddp, or cluster.gpus: 1", gpus);
    if (hybrid && group < gpus && gpus % group != 0)
        return diag_input(diag, at(places, "fsdp.sharding_group_size"),
            "%d GPUs cannot be cut into sharding groups of %lld; take a multiple of it", gpus, (long long)group);
    if (options->kind == STRATEGY_INTERNEVO && gpus % internevo_zero1_size(&options->internevo, gpus) != 0)
        return diag_input(diag, at(places, "internevo.zero1"),
            "%d GPUs cannot be cut into zero1 groups of %lld; take a divisor", gpus,
            (long long)options->internevo.zero1);
    if (options->kind == STRATEGY_INTERNEVO)
        group = internevo_zero1_size(&options->internevo, gpus);
    int64_t node = hw_gpus_per_node(hw);
    if ((hybrid || options->kind == STRATEGY_INTERNEVO) && group < gpus && gpus > node && node % group != 0 &&
        group % node != 0)
        return diag_input(diag, at(places, hybrid ? "fsdp.sharding_group_size" : "internevo.zero1"),
            "groups of %lld GPUs in nodes of %lld: some lie on more nodes than others, or have more GPUs on one node "
            "than on another, which is not simulated; take a divisor or a multiple of %lld",
            (long long)group, (long long)node, (long long)node);
    return STATUS_OK;
}

enum status strategy_check_precision(const struct train_options *train, const struct hw_gpu *gpu,
    const struct strategy_places *places, struct diag *diag)
{
    enum dtype math = strategy_math(train);
    if (kernel_supported(gpu, math))
        return STATUS_OK;
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (kernel_supported(gpu, (enum dtype)i) && used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", dtype_names[i]);
    return diag_input(diag, at(places, "train.precision"), "%s multiplies in %s, which GPU '%s' cannot; it can in %s",
        precision_names[train->precision], dtype_names[math], gpu->name, known);
}

enum status strategy_check(const struct strategy_options *options, const struct model *model, const struct hw *hw,
    int gpus, const struct strategy_places *places, struct diag *diag)
{
    if (strategy_check_precision(&options->train, &hw->gpu, places, diag) != STATUS_OK)
        return STATUS_INPUT;
    if (check_model(options, model, hw, places, diag) != STATUS_OK ||
        check_gpus(options, hw, gpus, places, diag) != STATUS_OK ||
        strategy_check_options(options, places, diag) != STATUS_OK)
        return STATUS_INPUT;
    const char *offload = offload_path(options);
    if (offload && (!quantity_is_set(hw->node.host_bandwidth) || !quantity_is_set(hw->node.host_memory)))
        return diag_input(diag, at(places, offload),
            "node '%s' has no host_memory and host_bandwidth, which offloading needs; give both", hw->node.name);
    return STATUS_OK;
}
