/* Layouts of 8 GPUs by number, for laws of what combinations.h does not draw. Include after
 * cmocka.h. */
#ifndef FLOPCAST_TESTS_LAW_LAYOUTS_H
#define FLOPCAST_TESTS_LAW_LAYOUTS_H

#include "strategy/strategy.h"

enum { LAYOUTS = 64 };
static const int layout_kinds[] = {
    STRATEGY_MEGATRON, STRATEGY_NANOTRON, STRATEGY_DEEPSPEED, STRATEGY_FSDP};
enum { LAYOUT_KINDS = sizeof layout_kinds / sizeof *layout_kinds };

static inline struct strategy_options layout(int kind, int number)
{
    struct strategy_options options = strategy_default_options();
    struct parallelism_options *parallel = &options.parallelism;
    options.kind = kind;
    options.train.seq_len = 64;
    options.train.micro_batch = 1;
    options.train.grad_accum = 4;
    options.train.attention = ATTENTION_FLASH;
    options.train.activation_checkpointing = number / 3 % 3;
    parallel->model.tensor = number % 2 ? 2 : 1;
    parallel->model.sequence = number % 2;
    parallel->pipeline = number / 2 % 2 ? 2 : 1;
    parallel->virtual_stages = parallel->pipeline > 1 ? 1 + number / 5 % 2 : 1;
    parallel->overlap_p2p_comm = number / 4 % 2;
    options.megatron.use_distributed_optimizer = number / 4 % 2;
    options.megatron.overlap_grad_reduce = number / 8 % 2;
    options.megatron.overlap_param_gather = options.megatron.overlap_grad_reduce && number / 16 % 2;
    options.megatron.average_in_collective = number / 7 % 2;
    options.megatron.bucket_size = number / 32 % 2 ? 5000 : 0;
    options.nanotron.zero_stage = number / 4 % 2;
    options.nanotron.ddp_bucket_cap_bytes = number / 8 % 2 ? 10000 : 25 << 20;
    options.zero.stage = number / 4 % 2;
    options.zero.stage3_param_persistence_threshold = 0;
    options.fsdp.version = 2;
    options.fsdp.sharding_strategy = number / 4 % 2 ? HYBRID_SHARD : FULL_SHARD;
    options.fsdp.sharding_group_size = 2;
    options.fsdp.reduce_dtype = number / 8 % 2 ? REDUCE_FP32 : REDUCE_PARAM_DTYPE;
    return options;
}

#endif
