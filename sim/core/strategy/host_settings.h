/* Section host (base/settings.h): what the host pays, in seconds (see host thread in exec.h). The
 * defaults are assumed. Eager PyTorch issues an op in 5 to 20 us of Python and dispatcher (NVIDIA's
 * Nsight guide gives about 20 us for an elementwise launch round trip on V100; the tiny-kernel rows
 * of results/measured/launch.csv give 2.6 us of it to the driver); autograd runs in C++ at about
 * half. FSDP's hooks run some hundred lines of Python. A view (narrow, a slice) launches nothing: a
 * binding, a dispatch and an object, 1.5 to 3 us. */
#define SETTINGS_OF host_options
#define HOST_TIME .dimension = DIM_SECONDS, .min = 0, .max = 3600

/* An op of forward, recomputation or optimizer, in Python. */
SETTING_AS(
    NUMBER, "kernel_issue", kernel_issue_s, 10e-6, "host time of one eager operation", HOST_TIME)
/* In C++. */
SETTING_AS(NUMBER, "backward_issue", backward_issue_s, 5e-6,
    "host time of one kernel of the autograd engine", HOST_TIME)
/* Through ProcessGroupNCCL. */
SETTING_AS(
    NUMBER, "collective_issue", collective_issue_s, 30e-6, "host time of one collective", HOST_TIME)
/* A wrapper compares what ranks call before they call it. Ignored: that hosts
 * meet. */
SETTING_AS(NUMBER, "collective_check", collective_check_s, 0,
    "host time of one collective for each rank of its group, as TORCH_DISTRIBUTED_DEBUG=DETAIL "
    "takes",
    HOST_TIME)
/* The first asks all in turn, and messages between ranks of its node do not cross the
 * network. */
SETTING_AS(NUMBER, "collective_check_in_node", collective_check_in_node, 1,
    "what of that a rank takes that shares the node of the group's first", SETTING_FRACTION)
/* Of ZeRO-3, once a rank. */
SETTING_AS(NUMBER, "view", view_s, 2e-6, "host time of one view of a tensor, in a loop in Python",
    HOST_TIME)
/* As TransformerEngine does; the gradient of each is then an operation of autograd's
 * (backward_issue_s). */
SETTING_AS(NUMBER, "expert_launch", expert_launch_s, 0,
    "host time of each further expert in a grouped GEMM that starts a kernel an expert; 0: one "
    "kernel for all",
    HOST_TIME)
/* See model_op.inner. */
SETTING_AS(NUMBER, "inner_issue", inner_issue_s, 0,
    "host time of each further kernel or copy that one call into C++ launches, as pieces of "
    "user_buffers are; 0: as any other",
    HOST_TIME)
/* In Python. */
SETTING_AS(NUMBER, "unit_hook", unit_hook_s, 100e-6,
    "host time of one hook of an FSDP unit or DDP bucket", HOST_TIME)
/* An engine's instructions, its batches and timers (DeepSpeed's PipelineEngine). */
SETTING_AS(NUMBER, "pass", pass_s, 0,
    "host time of one pass of a micro-batch through a model chunk, beside its operations",
    HOST_TIME)
SETTING_AS(NUMBER, "step", step_s, 1e-3, "host time once a step: data loader, zero_grad, scheduler",
    HOST_TIME)

#undef SETTINGS
#undef SETTINGS_OF
#undef HOST_TIME
