/* Section megatron (base/settings.h): Megatron-LM's arguments of data parallelism. */
#define SETTINGS_OF megatron_options

SETTING(BOOL, use_distributed_optimizer, false,
    "gradients are reduce-scattered, the optimizer's state is sharded, weights are gathered",
    .when = "megatron.use_megatron_fsdp = false")
SETTING(BOOL, overlap_grad_reduce, false, "buckets of gradients are reduced while backward goes on")
SETTING(BOOL, overlap_param_gather, false,
    "weights are gathered in the next forward pass, bucket by bucket")
/* main_grad is FP32. */
SETTING(BOOL, grad_reduce_in_fp32, true, "gradients are added up and reduced in FP32",
    .alias = "accumulate_allreduce_grads_in_fp32")
SETTING(BOOL, check_for_nan_in_grad, true, "the norm of each bucket is taken before it is reduced")
/* ddp_average_in_collective. */
SETTING(BOOL, average_in_collective, false, "NCCL divides; else a pass over each bucket does")
SETTING(BOOL, fp8_param_gather, false,
    "precision fp8_mixed and fp4_mixed: weights that multiply in FP8 or NVFP4 are kept and "
    "gathered in it, beside the FP32 shards",
    .when = "train.precision = fp8_mixed | fp4_mixed")
SETTING(BOOL, fp8_amax_reduce, false,
    "precision fp8_mixed: largest values are all-reduced over tensor, context and data ranks after "
    "each pass of a micro-batch through a chunk (TransformerEngine's delayed scaling with "
    "Megatron-Core, 2023 to 2025)",
    .when = "train.precision = fp8_mixed")
/* See schedule.h. */
SETTING(BOOL, overlap_moe_expert_parallel_comm, false,
    "the forward pass of a micro-batch and the backward pass of another are launched in turns, "
    "each one's kernels beside the other's exchanges of experts' tokens; in a pipeline with "
    "parallelism.virtual of 2 and more")
/* ddp_bucket_size. */
SETTING(INT, bucket_size, 0,
    "elements of a bucket; 0: 40 million, or a million for each rank of a group", SETTING_ELEMENTS)
/* See megatron_fsdp.c. */
SETTING(BOOL, use_megatron_fsdp, false, "Megatron-FSDP in place of DistributedDataParallel")
SETTING(ENUM, data_parallel_sharding_strategy, 0,
    "Megatron-FSDP: what is sharded; optim: the optimizer's state, grads: gradients, params: "
    "weights",
    .when = "megatron.use_megatron_fsdp = true", .names = megatron_sharding_names)
SETTING(INT, suggested_communication_unit_size, 0,
    "Megatron-FSDP: elements that are gathered or reduced at once; 0: two units, and 10^9 at least",
    .when = "megatron.use_megatron_fsdp = true", SETTING_ELEMENTS)
SETTING(BOOL, fsdp_double_buffer, false, "Megatron-FSDP: buffers of two units for the whole run",
    .when = "megatron.use_megatron_fsdp = true & megatron.data_parallel_sharding_strategy = "
            "optim_grads_params")
SETTING(INT, num_distributed_optimizer_instances, 0,
    "Megatron-FSDP: copies of what is sharded, with an all-reduce between them once a step (HSDP); "
    "0: one",
    .min = 0, .max = STRATEGY_MAX_GPUS)
SETTING(ENUM, outer_dp_sharding_strategy, 0,
    "Megatron-FSDP: optim shards the optimizer's state over these copies, too",
    .when = "megatron.num_distributed_optimizer_instances > 1", .names = megatron_outer_names)
/* By --use-precision-aware-optimizer. */
SETTING(ENUM, exp_avg_dtype, 0, "Adam's first moments, as TransformerEngine's FusedAdam keeps them",
    .names = moment_dtype_names)
SETTING(ENUM, exp_avg_sq_dtype, 0, "and its second ones", .names = moment_dtype_names)

#undef SETTINGS
#undef SETTINGS_OF
