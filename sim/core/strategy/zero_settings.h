/* Section deepspeed (base/settings.h): DeepSpeed's zero_optimization; sizes in elements, as there.
 */
#define SETTINGS_OF zero_options

/* Sizes are in elements, as there. Stage 0: see zero_off.c. */
SETTING(INT, stage, 1,
    "what is sharded: 1, 2 or 3; 0: nothing, by BF16_Optimizer or FP16_Optimizer", .min = 0,
    .max = 3)
/* A bucket of reductions may be small: it takes whole gradients, one at least. */
SETTING(INT, reduce_bucket_size, 500000000, "elements of gradients reduced at once", .min = 1,
    .max = 0x1p50)
/* At least that: with 10^12 parameters a million collectives. */
SETTING(INT, allgather_bucket_size, 500000000,
    "stages 1 and 2: elements of parameters gathered at once after the step", .min = 1000000,
    .max = 0x1p50)
/* null is true for stage 3 only. */
SETTING(
    ENUM, overlap_comm, OVERLAP_NULL, "reduce while backward goes on", .names = overlap_comm_names)
/* See zero.c. */
SETTING(BOOL, use_multi_rank_bucket_allreduce, true,
    "stages 1 and 2: a bucket is all-reduced (DeepSpeed since 2023), not its parts reduced to "
    "their owners")
/* 0 of what is prefetched, persists or is reused means nothing is. */
SETTING(INT, stage3_prefetch_bucket_size, 50000000, "elements of parameters gathered ahead",
    SETTING_ELEMENTS)
SETTING(INT, stage3_param_persistence_threshold, 100000,
    "parameters with fewer elements are never sharded", SETTING_ELEMENTS)
/* ZeRO-Offload, with DeepSpeedCPUAdam. */
SETTING(BOOL, offload_optimizer, false,
    "FP32 weights and optimizer states live in host memory, where the CPU steps")
SETTING(INT, stage3_max_live_parameters, 1000000000,
    "nothing is prefetched while this number of elements is unsharded", SETTING_ELEMENTS)
/* What the version does, see zero.c. */
SETTING(ENUM, stage3_fetch, 0,
    "how stage 3 gathers: trace (DeepSpeed 0.6 and later) or blocking (before)",
    .names = stage3_fetch_names)
SETTING(INT, stage3_max_reuse_distance, 1000000000,
    "parameters needed again within this number of elements are not released", SETTING_ELEMENTS)

#undef SETTINGS
#undef SETTINGS_OF
