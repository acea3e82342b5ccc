#include "strategy/footprint.h"

#include <math.h>

const char *const footprint_dtype_names[FOOTPRINT_DTYPE_COUNT + 1] = {
    "fp32", "tf32", "bf16_mixed", "fp16_mixed", "fp8_mixed", "bf16_master", "bf16", "fp16", "int8", NULL};
const char *const footprint_base_names[BASE_COUNT + 1] = {"16bit", "int8", "nf4", NULL};
const char *const footprint_strategy_names[FOOTPRINT_STRATEGY_COUNT + 1] = {
    "ddp", "zero1", "zero2", "zero3", "fsdp", NULL};

/* Bytes of one element. */
struct format {
    double weight, gradient, master, state, compute;
};
static const struct format formats[FOOTPRINT_DTYPE_COUNT] = {
    [FOOTPRINT_FP32] = {4, 4, 0, 4, 4},
    [FOOTPRINT_TF32] = {4, 4, 0, 4, 4},
    [FOOTPRINT_BF16_MIXED] = {4, 4, 0, 4, 2},
    [FOOTPRINT_FP16_MIXED] = {4, 4, 0, 4, 2},
    [FOOTPRINT_FP8_MIXED] = {4, 4, 0, 4, 2},
    [FOOTPRINT_BF16_MASTER] = {2, 2, 4, 4, 2},
    [FOOTPRINT_BF16] = {2, 2, 0, 2, 2},
    [FOOTPRINT_FP16] = {2, 2, 0, 2, 2},
    [FOOTPRINT_INT8] = {1, 1, 0, 1, 1},
};
/* DeepSpeed's mixed precision: 16-bit weights and gradients, FP32 weights and moments with the optimizer (arXiv
 * 1910.02054). */
static const struct format deepspeed_mixed = {2, 2, 4, 4, 2};

enum {
    /* DeepSpeed, runtime/zero/config.py: reduce_bucket_size, stage3_max_live_parameters; elements. */
    DS_BUCKET = 500000000,
    DS_MAX_LIVE = 1000000000,
    /* PyTorch FSDP, _limiter_utils.py: _max_num_inflight_all_gathers. */
    FSDP_INFLIGHT = 2,
    FLOAT_BYTES = 4,
};

bool footprint_is_mixed(int dtype)
{
    return dtype == FOOTPRINT_BF16_MIXED || dtype == FOOTPRINT_FP16_MIXED || dtype == FOOTPRINT_FP8_MIXED;
}

static struct format format_of(const struct footprint_options *options)
{
    bool mixed = footprint_is_mixed(options->dtype);
    bool deepspeed = options->strategy >= FOOTPRINT_ZERO1 && options->strategy <= FOOTPRINT_ZERO3;
    return mixed && deepspeed ? deepspeed_mixed : formats[options->dtype];
}

double footprint_optimizer_state(int64_t params, const struct model *model, int optimizer, int dtype)
{
    int64_t element_bytes = (int64_t)formats[dtype].state, bytes = 0, side = (int64_t)ceil(sqrt((double)params));
    bool square = optimizer == OPTIMIZER_ADAFACTOR || optimizer == OPTIMIZER_ADAFACTOR_MOMENTUM;
    if (!model) /* as one tensor; Adafactor's a square matrix, the O(sqrt P) of the rule */
        return (double)optimizer_state_bytes(optimizer,
            square ? (struct optimizer_tensor){side, side} : (struct optimizer_tensor){params, 1}, element_bytes);
    for (int i = 0; i < model->n_tensors; i++)
        bytes += optimizer_state_bytes(
            optimizer, (struct optimizer_tensor){model->tensors[i].rows, model->tensors[i].cols}, element_bytes);
    return (double)bytes;
}

/* Elements of the largest tensor, 0 without a shape. */
static double largest_tensor(const struct model *model)
{
    int64_t most = 0;
    for (int i = 0; model && i < model->n_tensors; i++)
        most = model->tensors[i].numel > most ? model->tensors[i].numel : most;
    return (double)most;
}

/* Elements of one GPU's shard: FSDP pads each unit to a multiple of the GPUs. */
static double shard_elements(int64_t params, const struct model *model, const struct footprint_options *options)
{
    double gpus = (double)options->gpus, shard = 0;
    if (options->strategy != FOOTPRINT_FSDP || !model)
        return ceil((double)params / gpus);
    for (int i = 0; i < model->n_layers; i++)
        shard += ceil((double)model->layers[i].params / gpus);
    return shard;
}

/* What stands beside the shards while they are computed with. */
static double copies_bytes(
    int64_t params, const struct model *model, const struct footprint_options *options, struct format format)
{
    double largest = 0;
    switch ((enum footprint_strategy)options->strategy) {
    case FOOTPRINT_ZERO3:
        return format.compute * (double)(params < DS_MAX_LIVE ? params : DS_MAX_LIVE);
    case FOOTPRINT_FSDP: /* the root stays gathered; the units in flight and the gradient of one of them */
        for (int i = 1; model && i < model->n_layers; i++)
            largest = fmax(largest, (double)model->layers[i].params);
        return model ? format.compute * ((double)model->layers[0].params + (FSDP_INFLIGHT + 1) * largest) : 0;
    case FOOTPRINT_DDP: /* autocast keeps the cast weights until backward has used them */
        return format.compute < format.weight ? format.compute * (double)params : 0;
    case FOOTPRINT_ZERO1:
    case FOOTPRINT_ZERO2:
    case FOOTPRINT_STRATEGY_COUNT:
        break;
    }
    return 0;
}

static double buffer_bytes(int64_t params, int strategy, struct format format)
{
    if (strategy == FOOTPRINT_DDP) /* gradient_as_bucket_view is off by default: buckets hold a second copy */
        return format.gradient * (double)params;
    if (strategy == FOOTPRINT_FSDP)
        return 0;
    /* torch.empty(reduce_bucket_size), however small the model is, and what is reduced, joined in another buffer */
    return format.gradient * (double)(DS_BUCKET + (params < DS_BUCKET ? params : DS_BUCKET));
}

/* The part of each that is on one GPU. */
struct footprint_shares {
    double weights, gradients, optimizer;
};

static double quantised_bytes(const struct model_tensor *tensor, int base)
{
    return base == BASE_NF4 ? model_nf4_bytes(tensor->numel) : (double)(tensor->numel + FLOAT_BYTES * tensor->rows);
}

/* A layer as kernels see it, adapters included, in 16 bits; quantised matrices stay so. */
static double adapted_layer(const struct model *model, const struct footprint_options *options, int layer)
{
    enum { HALF_BYTES = 2 };
    double bytes = 0;
    const struct model_layer *at = &model->layers[layer];
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        const struct model_tensor *tensor = &model->tensors[t];
        bool quantised = options->base != BASE_HALF && model_is_block_matrix(model, tensor);
        bytes += quantised ? quantised_bytes(tensor, options->base) : (double)(HALF_BYTES * tensor->numel);
        if (model_is_target(model, tensor, options->lora_targets))
            bytes += (double)(HALF_BYTES * options->lora_rank * (tensor->rows + tensor->cols));
    }
    return bytes;
}

/* What stands beside the kept weights: gathered units of FSDP; what autocast casts: adapters, and QLoRA's FP32 rest. */
static double adapted_copies(const struct model *model, const struct footprint_options *options, double adapters)
{
    double largest = 0, rest = 0;
    if (options->strategy == FOOTPRINT_FSDP && options->gpus > 1) {
        for (int i = 1; i < model->n_layers; i++)
            largest = fmax(largest, adapted_layer(model, options, i));
        return adapted_layer(model, options, 0) + (FSDP_INFLIGHT + 1) * largest;
    }
    for (int i = 0; i < model->n_tensors && options->base != BASE_HALF; i++)
        rest += model_is_block_matrix(model, &model->tensors[i]) ? 0 : (double)model->tensors[i].numel;
    return 2 * (rest + adapters);
}

/* The optimizer's state of adapters, of which a rank steps on this share: tensor by tensor, or flat. */
static double adapters_state(
    const struct model *model, const struct footprint_options *options, double adapters, double share)
{
    int64_t element_bytes = (int64_t)formats[FOOTPRINT_FP32].state, bytes = 0;
    if (share < 1)
        return (double)optimizer_state_bytes(
            options->optimizer, (struct optimizer_tensor){(int64_t)(adapters * share), 1}, element_bytes);
    struct arena scratch = ARENA_INIT;
    struct model adapted;
    model_adapt(&adapted, model, options->lora_rank, options->lora_targets, &scratch);
    for (int i = 0; i < adapted.n_tensors; i++) {
        const struct model_tensor *tensor = &adapted.tensors[i];
        if (!tensor->frozen)
            bytes += optimizer_state_bytes(
                options->optimizer, (struct optimizer_tensor){tensor->rows, tensor->cols}, element_bytes);
    }
    arena_release(&scratch);
    return (double)bytes;
}

/* A frozen model and its adapters; the base is kept as it is computed with. What a strategy shards is of whole tensors
 * here. */
static struct footprint adapted_footprint(
    const struct model *model, const struct footprint_options *options, struct footprint_shares shares)
{
    BUG_IF(!model, "adapters without a model");
    double adapters = (double)footprint_lora_params(model, options->lora_rank, options->lora_targets);
    double base = options->base == BASE_HALF ? 2 * (double)model->params
                                             : footprint_quantised_base(model, options->base, FLOAT_BYTES);
    struct format adapter = formats[FOOTPRINT_FP32];
    return (struct footprint){
        .weights = (base + FLOAT_BYTES * adapters) * shares.weights,
        .gradients = FLOAT_BYTES * adapters * shares.gradients,
        .optimizer = adapters_state(model, options, adapters, shares.optimizer),
        .copies = adapted_copies(model, options, adapters),
        .buffers = options->gpus > 1 ? buffer_bytes((int64_t)adapters, options->strategy, adapter) : 0,
    };
}

static void move_to_host(struct footprint *footprint, bool fsdp)
{
    footprint->host = footprint->optimizer;
    footprint->optimizer = 0;
    if (!fsdp)
        return;
    footprint->host += footprint->weights + footprint->gradients;
    footprint->weights = footprint->gradients = 0;
}

/* Elements of the largest tensor that the optimizer steps on, of so many in all: a tensor, a unit's shard, or one flat
 * tensor (DeepSpeed). */
static double largest_step(const struct model *model, const struct footprint_options *options, double elements)
{
    double largest = 0;
    if (options->strategy == FOOTPRINT_DDP)
        return largest_tensor(model);
    if (options->strategy != FOOTPRINT_FSDP)
        return elements;
    for (int i = 0; i < model->n_layers; i++)
        largest = fmax(largest, ceil((double)model->layers[i].params / (double)options->gpus));
    return largest;
}

/* What a step on so many elements makes for itself: gradients in FP32 where they are not, and the temporaries of
 * foreach, PyTorch's default, or of a loop. DeepSpeed's FusedAdam has none. */
static double step_bytes(
    const struct model *model, const struct footprint_options *options, struct format format, double elements)
{
    bool deepspeed = options->strategy >= FOOTPRINT_ZERO1 && options->strategy <= FOOTPRINT_ZERO3;
    struct optimizer_temporaries temporaries = optimizer_temporaries(options->optimizer);
    double widened = format.master > 0 ? FLOAT_BYTES * elements : 0;
    double made =
        (deepspeed ? 0 : temporaries.all * elements) + temporaries.one * largest_step(model, options, elements);
    return options->offload || options->optimizer == OPTIMIZER_LOMO ? 0 : widened + format.state * made;
}

struct footprint footprint_of(
    int64_t params, const struct model *model, const struct footprint_options *options, struct arena *scratch)
{
    BUG_IF(options->gpus < 1, "%lld GPUs", (long long)options->gpus);
    struct footprint_options alone = *options;
    if (options->gpus == 1 && !options->offload) /* FSDP and ZeRO over one GPU are plain training */
        alone.strategy = FOOTPRINT_DDP;
    bool fsdp = alone.strategy == FOOTPRINT_FSDP, several = options->gpus > 1;
    struct format format = format_of(&alone);
    double whole = (double)params, shard = shard_elements(params, model, &alone);
    double weights = fsdp || alone.strategy == FOOTPRINT_ZERO3 ? shard : whole;
    double gradients = fsdp || alone.strategy >= FOOTPRINT_ZERO2 ? shard : whole;
    double optimized = fsdp || alone.strategy >= FOOTPRINT_ZERO1 ? shard : whole;
    bool flat = optimized < whole; /* shards are cut from flattened tensors: no rows and columns are left to factor */
    double state = flat ? (double)optimizer_state_bytes(options->optimizer,
                              (struct optimizer_tensor){(int64_t)optimized, 1}, (int64_t)format.state)
                        : footprint_optimizer_state(params, model, options->optimizer, options->dtype);
    bool lomo = options->optimizer == OPTIMIZER_LOMO; /* a gradient is used as soon as it is there */
    struct footprint out = {
        .weights = format.weight * weights,
        .gradients = format.gradient * (lomo ? largest_tensor(model) : gradients),
        .optimizer = format.master * optimized + state,
        .copies = several || options->offload || alone.strategy == FOOTPRINT_DDP
                      ? copies_bytes(params, model, &alone, format)
                      : 0,
        .buffers = several && !lomo ? buffer_bytes(params, alone.strategy, format) : 0,
    };
    if (options->lora_rank > 0)
        out = adapted_footprint(
            model, &alone, (struct footprint_shares){weights / whole, gradients / whole, optimized / whole});
    if (options->offload && alone.strategy != FOOTPRINT_DDP)
        move_to_host(&out, fsdp);
    if (model)
        out.tables = (double)(model_table_bytes(&model->shape, options->gpus) +
                              model_table_state_bytes(&model->shape, options->gpus));
    if (model && options->micro_batch > 0)
        out.activations = footprint_activations(model, options, scratch);
    if (model && options->micro_batch > 0 && options->lora_rank == 0)
        out.step = fmax(0, step_bytes(model, &alone, format, optimized) - out.activations - out.copies);
    return out;
}

double footprint_total(const struct footprint *footprint)
{
    return footprint->weights + footprint->gradients + footprint->optimizer + footprint->copies + footprint->buffers +
           footprint->tables + footprint->activations + footprint->step;
}

double footprint_kv_cache(
    const struct model_shape *shape, int64_t batch, int64_t context, int64_t encoder_context, int64_t element_bytes)
{
    bool decodes = shape->family == MODEL_GPT || shape->family == MODEL_LLAMA, t5 = shape->family == MODEL_T5;
    int64_t layers = t5 ? shape->n_decoder_layers : decodes ? shape->n_layers : 0;
    int64_t tokens = t5 ? context + encoder_context : context;
    return 2.0 * (double)batch * (double)layers * (double)(shape->n_kv_heads * shape->d_kv) * (double)tokens *
           (double)element_bytes;
}

int64_t footprint_lora_params(const struct model *model, int64_t rank, const char *targets)
{
    int64_t params = 0;
    for (int i = 0; i < model->n_tensors; i++)
        if (model_is_target(model, &model->tensors[i], targets))
            params += rank * (model->tensors[i].rows + model->tensors[i].cols);
    return params;
}

double footprint_quantised_base(const struct model *model, int base, int64_t rest_bytes)
{
    double bytes = 0;
    for (int i = 0; i < model->n_tensors; i++) {
        const struct model_tensor *tensor = &model->tensors[i];
        bytes +=
            model_is_block_matrix(model, tensor) ? quantised_bytes(tensor, base) : (double)(tensor->numel * rest_bytes);
    }
    return bytes;
}

double footprint_neftune(const struct model *model, const struct footprint_options *options)
{
    double element = formats[options->dtype].compute;
    return 2 * element * (double)(options->micro_batch * options->seq_len * model->shape.d_model);
}
