/* Section internevo (base/settings.h): InternEvo's parallel.zero1 and hybrid_zero_optimizer. */
#define SETTINGS_OF internevo_options

/* 8 for those of a node, say; 1: none. */
SETTING(INT, zero1, -1, "GPUs that share the optimizer's states; 0 or less: all", .min = -1,
    .max = STRATEGY_MAX_GPUS)
SETTING(INT, reduce_bucket_size, 1 << 29, "elements of gradients reduced at once", .min = 1,
    .max = 0x1p50)
SETTING(BOOL, overlap_sync_grad, true, "reduce while backward goes on")
SETTING(BOOL, overlap_sync_param, false, "broadcast weights while the next forward pass goes on")

#undef SETTINGS
#undef SETTINGS_OF
