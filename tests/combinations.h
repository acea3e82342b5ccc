/* Cases drawn at random: models of every family and the options of strategies, independently. Most
 * of them are jobs that strategy_check has nothing against. The seed is fixed, so a number always
 * names the same case. */
#ifndef FLOPCAST_TESTS_COMBINATIONS_H
#define FLOPCAST_TESTS_COMBINATIONS_H

#include "check_and_compile.h"
#include "shapes.h"
#include "base/rng.h"
#include "strategy/strategy.h"

struct drawn {
    int number;
    const struct model_shape *shape;
    int gpus;
    struct strategy_options options;
};

static inline int below(struct rng_stream *rng, int n)
{
    return (int)(rng_uniform(rng) * n);
}

static inline bool one_in(struct rng_stream *rng, int n)
{
    return below(rng, n) == 0;
}

static inline int64_t one_of(struct rng_stream *rng, const int64_t *values, int n)
{
    return values[below(rng, n)];
}
#define ONE_OF(rng, ...)                                                                           \
    one_of(rng, (const int64_t[]){__VA_ARGS__},                                                    \
        (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)))

/* The families, and what takes other paths: T5 v1.1, minGPT, Qwen2 without groups, BERT with masked
 * positions only, DeepViT, a DHEN whose layers take adapters, ResNet-18, RegNet-Y. Convolutions are
 * few, they cost most of the time. */
static inline const struct model_shape *draw_shape(struct rng_stream *rng)
{
    static struct model_shape gated_t5, min_gpt, whole_llama, masked_bert, deep_vit, linear_dhen,
        basic_resnet, regnet;
    gated_t5 = small_t5;
    gated_t5.name = "t5 v1.1";
    gated_t5.gated_ffn = gated_t5.composed_gelu = true;
    gated_t5.tied_embeddings = false;
    min_gpt = small_gpt;
    min_gpt.name = "mingpt";
    min_gpt.composed_gelu = true;
    min_gpt.tied_embeddings = false;
    whole_llama = small_llama;
    whole_llama.name = "qwen2 without groups";
    whole_llama.biases = whole_llama.tied_embeddings = true;
    whole_llama.n_kv_heads = whole_llama.n_heads;
    masked_bert = small_bert;
    masked_bert.name = "bert, masked positions";
    masked_bert.head_share = 0.25;
    deep_vit = small_vit;
    deep_vit.name = "deepvit";
    deep_vit.mixes_heads = true;
    linear_dhen = small_dhen;
    linear_dhen.name = "dhen without convolution";
    linear_dhen.dhen.convolution = false;
    basic_resnet = small_resnet;
    basic_resnet.name = "resnet, basic blocks";
    basic_resnet.conv.block = CONV_BASIC;
    regnet = small_resnet;
    regnet.name = "regnet";
    regnet.conv.stem_pool = false;
    regnet.conv.squeeze = 0.25;
    const struct model_shape *const shapes[] = {&small_gpt, &small_t5, &small_llama, &small_bert,
        &small_vit, &small_dhen, &gated_t5, &min_gpt, &whole_llama, &masked_bert, &deep_vit,
        &linear_dhen};
    const struct model_shape *const convolutions[] = {&small_resnet, &basic_resnet, &regnet};
    enum {
        N = sizeof shapes / sizeof *shapes,
        N_CONVOLUTIONS = sizeof convolutions / sizeof *convolutions
    };
    return one_in(rng, 32) ? convolutions[below(rng, N_CONVOLUTIONS)] : shapes[below(rng, N)];
}

/* Tokens of a micro-batch that are a multiple of 16 and such that are none, which FP8 does not
 * take; the last micro-batch may differ in that, either way. */
static inline void draw_batch(
    struct rng_stream *rng, struct train_options *train, const struct model_shape *shape)
{
    int64_t own = model_sample_tokens(shape);
    train->seq_len = own > 0 ? own : ONE_OF(rng, 32, 24, 20);
    train->decoder_seq_len = shape->family == MODEL_T5 ? ONE_OF(rng, train->seq_len, 8) : 0;
    train->micro_batch = ONE_OF(rng, 1, 2, 3, 5);
    train->grad_accum = one_in(rng, 3) ? 3 : 1;
    train->device_batch = one_in(rng, 3) && train->grad_accum == 1 ? 1 + below(rng, 9) : 0;
}

static inline void draw_train(
    struct rng_stream *rng, struct train_options *train, const struct model_shape *shape)
{
    draw_batch(rng, train, shape);
    train->precision = below(rng, PRECISION_FP8_MIXED + 1); /* fp4_mixed needs TransformerEngine */
    train->optimizer = below(rng, OPTIMIZER_MUON);          /* which is younger than the digests */
    train->optimizer_impl = below(rng, OPTIMIZER_IMPL_COUNT);
    train->activation_checkpointing = below(rng, CHECKPOINT_SEARCHED);
    train->checkpoint_interval = ONE_OF(rng, 1, 1, 2);
    train->checkpoint_early_stop = one_in(rng, 2);
    train->attention =
        model_takes_flash(shape) && one_in(rng, 2) ? ATTENTION_FLASH : ATTENTION_NAIVE;
    train->cross_entropy =
        below(rng, CROSS_ENTROPY_TE); /* te and loss_parallel are younger than the digests */
    train->fusion = one_in(rng, 4) ? FUSION_INDUCTOR : FUSION_EAGER;
    train->memory_format = below(rng, IMAGE_FORMAT_COUNT);
    train->use_cache = one_in(rng, 2);
    train->drop_logits = one_in(rng, 2);
    train->neftune = one_in(rng, 4);
    train->clip_grad_norm = train->optimizer != OPTIMIZER_LOMO && one_in(rng, 2);
    train->decode_images = shape->image_size > 0 && one_in(rng, 2);
    train->lora_rank =
        model_takes_adapters(shape) && train->optimizer != OPTIMIZER_LOMO && one_in(rng, 3) ? 4 : 0;
    bool half =
        train->precision == PRECISION_BF16_MIXED || train->precision == PRECISION_FP16_MIXED;
    train->autocast = half && one_in(rng, 2);
    train->qlora =
        train->lora_rank > 0 && half && one_in(rng, 2); /* else refused by scenario/check.c */
}

static inline void draw_fsdp(struct rng_stream *rng, struct fsdp_options *fsdp, int gpus)
{
    fsdp->sharding_strategy = below(rng, SHARDING_COUNT);
    fsdp->backward_prefetch = below(rng, BACKWARD_PREFETCH_COUNT);
    fsdp->reduce_dtype = below(rng, REDUCE_DTYPE_COUNT);
    fsdp->limit_all_gathers = one_in(rng, 2);
    fsdp->forward_prefetch = one_in(rng, 2);
    fsdp->cpu_offload = one_in(rng, 4);
    fsdp->no_sync = one_in(rng, 2);
    fsdp->version = 1 + below(rng, 2);
    fsdp->max_inflight_all_gathers = ONE_OF(rng, 1, 2, 3);
    fsdp->sharding_group_size = gpus < 8 ? gpus : ONE_OF(rng, 0, 1, 4, 8);
}

static inline void draw_ddp(struct rng_stream *rng, struct ddp_options *ddp)
{
    ddp->bucket_cap_bytes = (double)ONE_OF(rng, 1, 100000, 25 << 20);
    ddp->first_bucket_bytes = (double)ONE_OF(rng, 1, 1 << 20);
    ddp->gradient_as_bucket_view = one_in(rng, 2);
    ddp->broadcast_buffers = one_in(rng, 2);
}

static inline void draw_zero(struct rng_stream *rng, struct zero_options *zero)
{
    zero->stage = 1 + below(rng, 3);
    zero->reduce_bucket_size = ONE_OF(rng, 1, 5000, 500000000);
    zero->allgather_bucket_size = ONE_OF(rng, 10000, 500000000);
    zero->overlap_comm = below(rng, OVERLAP_COUNT);
    zero->use_multi_rank_bucket_allreduce = one_in(rng, 2);
    zero->stage3_prefetch_bucket_size = ONE_OF(rng, 0, 5000, 500000000);
    zero->stage3_param_persistence_threshold = ONE_OF(rng, 0, 100, 100000);
    zero->stage3_max_live_parameters = ONE_OF(rng, 0, 10000, 1000000000);
    zero->stage3_fetch = below(rng, FETCH_COUNT);
    zero->stage3_max_reuse_distance = ONE_OF(rng, 0, 10000, 1000000000);
    zero->offload_optimizer = one_in(rng, 4);
}

static inline void draw_internevo(struct rng_stream *rng, struct internevo_options *internevo)
{
    internevo->zero1 = ONE_OF(rng, -1, 1, 8);
    internevo->reduce_bucket_size = ONE_OF(rng, 1, 5000, 500000000);
    internevo->overlap_sync_grad = one_in(rng, 2);
    internevo->overlap_sync_param = one_in(rng, 2);
}

/* A statement a draw: the order of those within an expression is the compiler's. */
static inline struct drawn draw(int number)
{
    struct rng_stream rng = rng_stream(1, 0, (uint64_t)number);
    struct drawn drawn = {.number = number, .options = strategy_default_options()};
    struct strategy_options *options = &drawn.options;
    drawn.shape = draw_shape(&rng);
    options->kind = below(&rng, STRATEGY_MEGATRON); /* layouts of its ranks are drawn apart */
    drawn.gpus = options->kind == STRATEGY_SINGLE_DEVICE ? 1 : (int)ONE_OF(&rng, 1, 4, 8, 16, 32);
    draw_train(&rng, &options->train, drawn.shape);
    draw_fsdp(&rng, &options->fsdp, drawn.gpus);
    draw_ddp(&rng, &options->ddp);
    draw_zero(&rng, &options->zero);
    draw_internevo(&rng, &options->internevo);
    return drawn;
}

static inline void draw_units(struct rng_stream *rng, struct megatron_options *megatron)
{
    megatron->use_megatron_fsdp = true;
    megatron->data_parallel_sharding_strategy = below(rng, SHARD_OPTIM_GRADS_PARAMS + 1);
    megatron->fsdp_double_buffer = one_in(rng, 2);
    megatron->suggested_communication_unit_size = ONE_OF(rng, 0, 1, 20000);
    megatron->num_distributed_optimizer_instances =
        megatron->data_parallel_sharding_strategy >= SHARD_OPTIM_GRADS ? ONE_OF(rng, 0, 1, 2) : 0;
    megatron->outer_dp_sharding_strategy =
        megatron->data_parallel_sharding_strategy == SHARD_OPTIM_GRADS_PARAMS ? below(rng, 2)
                                                                              : SHARD_NOTHING;
}

/* Megatron-FSDP, and activations in host memory; drawn beside draw(), whose cases stay what they
 * were. */
static inline struct drawn draw_megatron_fsdp(int number)
{
    struct rng_stream rng = rng_stream(2, 0, (uint64_t)number);
    struct drawn drawn = draw(number);
    struct train_options *train = &drawn.options.train;
    struct megatron_options *megatron = &drawn.options.megatron;
    drawn.options.kind = STRATEGY_MEGATRON;
    train->precision = (int)ONE_OF(
        &rng, PRECISION_FP32, PRECISION_BF16_MIXED, PRECISION_FP16_MIXED, PRECISION_FP8_MIXED);
    train->fusion = one_in(&rng, 2) ? FUSION_TRANSFORMER_ENGINE : FUSION_EAGER;
    train->autocast = train->qlora = train->clip_grad_norm = false;
    train->optimizer = train->optimizer == OPTIMIZER_LOMO ? OPTIMIZER_ADAMW : train->optimizer;
    train->lora_rank = 0;
    if (train->fusion == FUSION_TRANSFORMER_ENGINE &&
        train->activation_checkpointing == CHECKPOINT_NONE)
        train->cpu_offloading_num_layers = ONE_OF(&rng, 0, 1, 2);
    draw_units(&rng, megatron);
    megatron->overlap_grad_reduce = one_in(&rng, 2);
    megatron->overlap_param_gather = one_in(&rng, 2);
    megatron->grad_reduce_in_fp32 = one_in(&rng, 2);
    megatron->average_in_collective = one_in(&rng, 2);
    megatron->fp8_param_gather = one_in(&rng, 2);
    return drawn;
}

/* A cluster for such cases: one whose host takes some time for an image, so that images can be
 * decoded. */
static inline void load_cluster(struct hw *hw, const char *name, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    hw_load(hw, arena_printf(arena, FLOPCAST_SOURCE_DIR "/topologies/clusters/%s.yaml", name),
        arena, &diag);
    assert_string_equal(diag.text, "");
    hw->gpu.host_image_s = 1e-4;
}

/* Whether the case can be done. Release the plan either way. */
static inline bool compile_drawn(
    struct plan *plan, const struct drawn *drawn, const struct hw *hw, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct model *model = ARENA_ARRAY(arena, struct model, 1);
    *plan = (struct plan){0};
    model_build(model, drawn->shape, arena);
    return check_and_compile(plan, &drawn->options, model, hw, drawn->gpus, arena, &diag) ==
           STATUS_OK;
}

/* As the executor reads it: alike cells are held once. */
static inline bool compile_folded(struct plan *plan, const struct strategy_options *options,
    const struct model *model, const struct hw *hw, int gpus, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct job job = strategy_job(options, model, hw, gpus);
    job.folds = true;
    return strategy_compile(plan, &job, (struct source_pos){0}, arena, &diag) == STATUS_OK;
}

#endif
