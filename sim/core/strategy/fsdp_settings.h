/* Section fsdp (base/settings.h). */
#define SETTINGS_OF fsdp_options

SETTING(ENUM, sharding_strategy, FULL_SHARD, "as in torch.distributed.fsdp.ShardingStrategy",
    .names = sharding_strategy_names)
SETTING(ENUM, backward_prefetch, BACKWARD_PRE, "when backward gathers the next unit",
    .names = backward_prefetch_names)
SETTING(ENUM, reduce_dtype, REDUCE_PARAM_DTYPE, "number format that gradients travel in",
    .names = reduce_dtype_names)
SETTING(BOOL, limit_all_gathers, true, "version 1: the host waits before it gathers too far ahead",
    .when = "fsdp.version = 1")
SETTING(BOOL, forward_prefetch, false, "forward gathers the next unit early")
/* CPUOffload(offload_params=True). */
SETTING(BOOL, cpu_offload, false, "shards, their gradients and the optimizer live in host memory")
/* Of all but the last micro-step. */
SETTING(BOOL, no_sync, false, "accumulate gradients without communication")
SETTING(INT, sharding_group_size, 0, "HYBRID_SHARD: GPUs that share one copy; 0: those of a node",
    .when = "fsdp.sharding_strategy = HYBRID_SHARD | _HYBRID_SHARD_ZERO2", .min = 0,
    .max = STRATEGY_MAX_GPUS)
SETTING(ENUM, reshard_after_forward, 0,
    "version 2: blocks are gathered again in backward; default: as the sharding strategy says, in "
    "a pipeline never",
    .when = "fsdp.version = 2", .names = reshard_after_forward_names)
/* FP8 tensorwise: matrices of blocks are cast before they are gathered, by scales that are
 * computed after the optimizer's step for all of them (torchao's
 * enable_fsdp_float8_all_gather with precompute_float8_dynamic_scale_for_fsdp). */
SETTING(BOOL, float8_all_gather, false,
    "version 2, fp8_recipe tensorwise: the matrices of blocks are gathered in FP8")
/* 2 goes parameter by parameter. */
SETTING(INT, version, 1, "1: FullyShardedDataParallel, 2: fully_shard", .min = 1, .max = 2)
/* The rate limiter, as PyTorch has it. */
SETTING(INT, max_inflight_all_gathers, 2, "of limit_all_gathers", .when = "fsdp.version = 1",
    .min = 1, .max = 1024)

#undef SETTINGS
#undef SETTINGS_OF
