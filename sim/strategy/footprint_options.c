/* Options of a job as those of its footprint, and back. */
#include "strategy/footprint.h"

static const int dtypes[PRECISION_COUNT] = {
    [PRECISION_FP32] = FOOTPRINT_FP32,
    [PRECISION_TF32] = FOOTPRINT_TF32,
    [PRECISION_BF16_MIXED] = FOOTPRINT_BF16_MIXED,
    [PRECISION_FP16_MIXED] = FOOTPRINT_FP16_MIXED,
    [PRECISION_BF16] = FOOTPRINT_BF16,
    [PRECISION_BF16_MASTER] = FOOTPRINT_BF16_MASTER,
    [PRECISION_FP8_MIXED] = FOOTPRINT_FP8_MIXED,
};

static int strategy_of(const struct strategy_options *options)
{
    static const int zero[] = {FOOTPRINT_ZERO1, FOOTPRINT_ZERO2, FOOTPRINT_ZERO3};
    switch ((enum strategy_kind)options->kind) {
    case STRATEGY_DEEPSPEED:
        return zero[options->zero.stage - 1];
    case STRATEGY_INTERNEVO:
        return FOOTPRINT_ZERO1;
    case STRATEGY_DDP:
    case STRATEGY_SINGLE_DEVICE:
        return FOOTPRINT_DDP;
    case STRATEGY_FSDP:
    case STRATEGY_COUNT:
        break;
    }
    return FOOTPRINT_FSDP;
}

struct footprint_options footprint_options_of(const struct strategy_options *options, int64_t gpus)
{
    const struct train_options *train = &options->train;
    return (struct footprint_options){
        .dtype = dtypes[train->precision],
        .optimizer = train->optimizer,
        .strategy = strategy_of(options),
        .gpus = gpus,
        .micro_batch = train->micro_batch,
        .seq_len = train->seq_len,
        .decoder_seq_len = train->decoder_seq_len,
        .checkpointing = train->activation_checkpointing,
        .attention = train->attention,
        .cross_entropy = train->cross_entropy,
        .fusion = train->fusion,
        .drop_logits = train->drop_logits,
        .offload = (options->kind == STRATEGY_FSDP && options->fsdp.cpu_offload) ||
                   (options->kind == STRATEGY_DEEPSPEED && options->zero.offload_optimizer),
        .lora_rank = train->lora_rank,
        .lora_targets = train->lora_targets,
        .base = train->qlora ? BASE_NF4 : BASE_HALF,
    };
}

/* Pure 16-bit formats are alike here; nobody trains in INT8. */
static int precision_of(int dtype)
{
    for (int i = 0; i < PRECISION_COUNT; i++)
        if (dtypes[i] == dtype)
            return i;
    return PRECISION_BF16;
}

struct strategy_options footprint_strategy_options(const struct footprint_options *options)
{
    struct strategy_options out = strategy_default_options();
    bool fsdp = options->strategy == FOOTPRINT_FSDP, ddp = options->strategy == FOOTPRINT_DDP;
    out.kind = fsdp ? STRATEGY_FSDP : ddp ? STRATEGY_DDP : STRATEGY_DEEPSPEED;
    out.zero.stage = fsdp || ddp ? out.zero.stage : options->strategy - FOOTPRINT_ZERO1 + 1;
    out.fsdp.cpu_offload = out.zero.offload_optimizer = options->offload;
    struct train_options *train = &out.train;
    train->precision = precision_of(options->dtype);
    train->optimizer = options->optimizer;
    train->micro_batch = options->micro_batch;
    train->seq_len = options->seq_len;
    train->decoder_seq_len = options->decoder_seq_len;
    train->activation_checkpointing = options->checkpointing;
    train->attention = options->attention;
    train->cross_entropy = options->cross_entropy;
    train->fusion = options->fusion;
    train->drop_logits = options->drop_logits;
    train->lora_rank = options->lora_rank;
    train->lora_targets = options->lora_targets;
    train->qlora = options->base == BASE_NF4;
    return out;
}

bool footprint_can_run(const struct footprint_options *options)
{
    return options->dtype != FOOTPRINT_INT8 && options->base != BASE_INT8;
}

static struct source_pos nowhere(const void *self, const char *path)
{
    (void)self, (void)path;
    return (struct source_pos){0};
}

bool footprint_possible(const struct footprint_options *options)
{
    struct strategy_options strategy = footprint_strategy_options(options);
    struct diag diag = DIAG_INIT;
    return strategy_check_options(&strategy, &(struct strategy_places){nowhere, NULL}, &diag) == STATUS_OK;
}
