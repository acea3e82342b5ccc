/* Section noise (base/settings.h): what varies from GPU to GPU, kernel to kernel, host to host. The
 * defaults are the cluster's own quantities; all 0: nothing does. */
#define SETTINGS_OF noise_options
#define OF_CLUSTER "; the cluster's where not given"

/* Where a GPU stands among its kind is one constant of the chip, and kernels follow it by what
 * limits them: those at the power limit (kernel_power_limited()) by gpu_speed_spread, other compute
 * by gpu_speed_spread_below, bytes of HBM not at all. */
SETTING(NUMBER, gpu_speed_spread, 0,
    "persistent, per GPU: relative standard deviation of speed at the power limit; 0: GPUs are "
    "alike" OF_CLUSTER,
    SETTING_FRACTION)
SETTING(NUMBER, gpu_speed_spread_below, 0, "the same of compute below the power limit" OF_CLUSTER,
    SETTING_FRACTION)
SETTING(NUMBER, kernel_jitter, 0, "per kernel: log-standard deviation of its duration" OF_CLUSTER,
    SETTING_FRACTION)
SETTING(NUMBER, network_jitter, 0,
    "per collective and link between nodes: log-standard deviation of its duration; the slowest "
    "link decides" OF_CLUSTER,
    SETTING_FRACTION)
SETTING(NUMBER, host_jitter, 0, "of a host burst of 1 ms: log-standard deviation" OF_CLUSTER,
    SETTING_FRACTION)
/* Slow machines, the tail that the normal distribution of gpu_speed_spread does not have. */
SETTING(NUMBER, straggler_share, 0,
    "probability that a host is slow (a node; of a rack a tray), where GPUs differ at all "
    "(gpu_speed_spread); a point is the mean" OF_CLUSTER,
    SETTING_FRACTION)
SETTING(NUMBER, straggler_slowdown, 0, "by how much longer kernels take on a slow host" OF_CLUSTER,
    SETTING_FRACTION)
/* At times that are the interval apart in the mean and independent of each other and of other ranks
 * (exponential gaps), where the thread begins a step or goes on after it was blocked. Both 0: none,
 * as where training loops collect on all ranks at once. */
SETTING_AS(NUMBER, "host_pause", host_pause_s, 0,
    "garbage collection in Python: how long a rank's host thread stands still",
    .dimension = DIM_SECONDS, .min = 0, .max = 1e6)
SETTING_AS(NUMBER, "host_pause_interval", host_pause_interval_s, 0,
    "time between two such pauses of a rank, in the mean", .dimension = DIM_SECONDS, .min = 0,
    .max = 1e6)
/* Hosts that are slow, too, with the luck of a single cluster, which in a job of 8 GPUs is 0.6 of
 * the spread. */
SETTING(BOOL, drawn_speeds, false,
    "speeds of GPUs are drawn one by one, not those of the typical cluster")

#undef SETTINGS
#undef SETTINGS_OF
#undef OF_CLUSTER
