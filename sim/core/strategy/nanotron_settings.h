/* Section nanotron (base/settings.h): nanotron's configuration of data parallelism and optimizer,
 * see nanotron.c. */
#define SETTINGS_OF nanotron_options

SETTING(INT, zero_stage, 0,
    "0: DDP, 1: the optimizer's state is sharded, gradients are all-reduced in one go", .min = 0,
    .max = 1)
SETTING_AS(NUMBER, "ddp_bucket_cap", ddp_bucket_cap_bytes, 25 * 0x1p20,
    "ddp_bucket_cap_mb, of gradients in BF16", .dimension = DIM_BYTES, .min = 1, .max = 0x1p50)
SETTING(INT, cuda_device_max_connections, 1,
    "CUDA_DEVICE_MAX_CONNECTIONS: 1, kernels start in the order of their issue; 0: not set",
    .min = 0, .max = 32)

#undef SETTINGS
#undef SETTINGS_OF
