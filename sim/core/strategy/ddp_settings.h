/* Section ddp (base/settings.h). */
#define SETTINGS_OF ddp_options

SETTING_AS(NUMBER, "bucket_cap", bucket_cap_bytes, 25 * 0x1p20, "bucket_cap_mb",
    .dimension = DIM_BYTES, .min = 1, .max = 0x1p50)
SETTING_AS(NUMBER, "first_bucket", first_bucket_bytes, 0x1p20, "size of the first bucket",
    .dimension = DIM_BYTES, .min = 1, .max = 0x1p50)
SETTING(BOOL, gradient_as_bucket_view, false, "gradients live in the buckets")
SETTING(BOOL, broadcast_buffers, true, "a step begins with rank 0's statistics of BatchNorm")
SETTING(BOOL, zero_grad, true, "gradients are let go of after a step; false: they add up")
SETTING(
    BOOL, divide_buckets, false, "a bucket is divided by a pass over it, as PyTorch did before 1.6")

#undef SETTINGS
#undef SETTINGS_OF
