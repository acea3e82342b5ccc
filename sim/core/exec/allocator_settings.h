/* PyTorch's allocator, the end of section run (base/settings.h): PYTORCH_CUDA_ALLOC_CONF, and
 * torch.cuda.set_per_process_memory_fraction. */
#define SETTINGS_OF hbm_options

SETTING(BOOL, expandable_segments, false, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
SETTING(INT, max_split_size_mb, 0,
    "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:N, MiB above 20; 0: not set", .min = 0,
    .max = 0x1p30)
/* Of what the process may take. */
SETTING(NUMBER, garbage_collection_threshold, 0,
    "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:X; 0: not set. It needs memory_fraction",
    .when = "run.memory_fraction > 0", SETTING_FRACTION)
/* Of the GPU's memory that segments may take. */
SETTING(NUMBER, memory_fraction, 0, "torch.cuda.set_per_process_memory_fraction; 0: not set",
    SETTING_FRACTION)

#undef SETTINGS
#undef SETTINGS_OF
