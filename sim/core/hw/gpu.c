/* The table of a GPU's file, its checks, and the sizes of number formats.
 *
 * The fields below are the file format: key, place in struct hw_gpu, dimension, bounds and help.
 * Reading, printing, overriding, drawing and `flopcast help gpus` all walk them, so a member of
 * struct hw_gpu that is missing here cannot be given, and a help text here is what a user reads.
 * Bounds catch a wrong unit, not a wrong value.
 *
 * Subtle: the sections of number formats have one table, placed at multiples of sizeof(struct
 * hw_gemm). A format is used where its peak is set; check_gemm() therefore refuses a format that is
 * given in part. The other optional numbers are set or not on their own, and what unset means
 * stands beside the member in hw.h.
 *
 * A GPU of CDNA is read as any other, with a warning: its file has only a data sheet and
 * assumptions behind it. */
#include "hw/table.h"

#include <string.h>

const char *const dtype_names[DTYPE_COUNT + 1] = {
    [DTYPE_FP32] = "fp32",
    [DTYPE_TF32] = "tf32",
    [DTYPE_BF16] = "bf16",
    [DTYPE_FP16] = "fp16",
    [DTYPE_FP8] = "fp8",
    [DTYPE_INT8] = "int8",
    [DTYPE_FP4] = "fp4",
};

double dtype_size(enum dtype dtype)
{
    static const double bytes[DTYPE_COUNT] = {[DTYPE_FP32] = 4,
        [DTYPE_TF32] = 4,
        [DTYPE_BF16] = 2,
        [DTYPE_FP16] = 2,
        [DTYPE_FP8] = 1,
        [DTYPE_INT8] = 1,
        [DTYPE_FP4] = 0.5};
    BUG_IF(dtype < 0 || dtype >= DTYPE_COUNT, "number format %d", (int)dtype);
    return bytes[dtype];
}

int64_t dtype_bytes(enum dtype dtype)
{
    return dtype == DTYPE_FP4 ? 1 : (int64_t)dtype_size(dtype);
}

/* One number format. The first four are required as a group: see check_gemm(). */
static const struct config_field gemm_fields[] = {
    HW_OPTIONAL(struct hw_gemm, peak, "Dense peak of the dtype.", HW_FLOPS),
    HW_OPTIONAL(struct hw_gemm, efficiency, "Share of the peak that full waves with long K reach.",
        HW_SHARE),
    HW_OPTIONAL(struct hw_gemm, k_overhead, "Prologue and epilogue of a tile, in elements of K.",
        HW_COUNT(0, 1e4)),
    HW_OPTIONAL(struct hw_gemm, load_bandwidth,
        "Rate at which all SMs together load operand tiles.", HW_BANDWIDTH),
    HW_OPTIONAL(struct hw_gemm, tile_share,
        "Share of an SM's peak that a tile of up to 128 x 128 reaches.", HW_SHARE),
    HW_OPTIONAL(struct hw_gemm, single_efficiency,
        "Efficiency of kernels for one GEMM, not a batch.", HW_SHARE),
};
enum { GEMM_REQUIRED = 4 };
static const struct config_table gemm_table = CONFIG_TABLE("a number format of a GPU", gemm_fields);

#define FORMAT(format, index)                                                                      \
    {                                                                                              \
        .key = format, .type = FIELD_SECTION, .offset = (index) * sizeof(struct hw_gemm),          \
        .help = "GEMMs in " format ".", .section = &gemm_table                                     \
    }
static const struct config_field format_fields[DTYPE_COUNT] = {
    FORMAT("fp32", DTYPE_FP32),
    FORMAT("tf32", DTYPE_TF32),
    FORMAT("bf16", DTYPE_BF16),
    FORMAT("fp16", DTYPE_FP16),
    FORMAT("fp8", DTYPE_FP8),
    FORMAT("int8", DTYPE_INT8),
    FORMAT("fp4", DTYPE_FP4),
};
static const struct config_table format_table = CONFIG_TABLE("the GEMMs of a GPU", format_fields);

static const struct config_field power_fields[] = {
    HW_OPTIONAL(struct hw_gpu_power, idle,
        "Power without a process on the GPU. Default: 0.12 of tdp.", HW_ANY_POWER),
    HW_OPTIONAL(struct hw_gpu_power, busy,
        "Share of tdp while the compute stream runs kernels. Default: 0.9.", HW_SHARE),
    HW_OPTIONAL(
        struct hw_gpu_power, waiting, "Share of tdp while it waits. Default: 0.4.", HW_SHARE),
};
static const struct config_table power_table = CONFIG_TABLE("the power of a GPU", power_fields);

#define GPU(member, ...) HW_REQUIRED(struct hw_gpu, member, __VA_ARGS__)
const char *const hw_archs[HW_ARCHS] = {
    "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell", "CDNA"};
#define ARCHS "Volta, Turing, Ampere, Ada, Hopper, Blackwell or CDNA"
static const struct config_field gpu_fields[] = {
    {CONFIG_FIELD("name", FIELD_STRING, struct hw_gpu, name, "Name of the GPU."), .required = true},
    HW_EXTENDS(struct hw_gpu, FILES_GPUS),
    {CONFIG_FIELD("arch", FIELD_STRING, struct hw_gpu, arch, ARCHS ": selects NCCL's constants."),
        .required = true},
    {CONFIG_FIELD("silicon", FIELD_STRING, struct hw_gpu, silicon,
        "The chip, as in GH100 (H100, H200, GH200): rates that training showed on one of its cards "
        "hold for all.")},
    GPU(sms, "Streaming multiprocessors.", HW_COUNT(1, 1e4)),
    GPU(hbm_capacity, "HBM that a process can see.", HW_BYTES),
    GPU(hbm_bandwidth, "Peak HBM bandwidth.", HW_BANDWIDTH),
    GPU(hbm_efficiency, "Share of hbm_bandwidth that large streaming kernels reach.", HW_SHARE),
    GPU(l2_capacity, "L2 cache.", HW_BYTES),
    GPU(vector_flops, "Peak of the FP32 units that are not tensor cores.", HW_FLOPS),
    GPU(kernel_floor, "Smallest kernel, back to back in a stream.", HW_LATENCY),
    GPU(gemm_floor, "The same for a GEMM kernel.", HW_LATENCY),
    HW_OPTIONAL(struct hw_gpu, row_gap,
        "Bytes that HBM loses at each piece of a GEMM operand's row.", .dimension = DIM_BYTES,
        .min = 0, .max = 1e4),
    GPU(memory_sms, "SMs that suffice to saturate HBM bandwidth.", HW_COUNT(1, 1e4)),
    GPU(attention_efficiency, "Share of the GEMM peak that the GEMMs of fused attention reach.",
        HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, attention_backward,
        "Rate of the backward kernel of fused attention relative to the forward one.", HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, attention_overhead,
        "Prologue and epilogue of a block of queries, in keys.", .dimension = DIM_NONE, .min = 0,
        .max = 1e4),
    HW_OPTIONAL(struct hw_gpu, attention_backward_overhead,
        "The same of a block of keys in the backward kernel, in queries; default: "
        "attention_overhead.",
        .dimension = DIM_NONE, .min = 0, .max = 1e4),
    HW_OPTIONAL(struct hw_gpu, attention_wide,
        "Rate of fused attention with heads of more than 128 relative to narrower ones.", HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, attention_softmax,
        "Softmax of a pair of query and key in fused attention, in elements of a head.",
        .dimension = DIM_NONE, .min = 0, .max = 1e4),
    GPU(context_bytes, "CUDA context, cuBLAS workspaces and loaded modules.", HW_BYTES),
    GPU(tdp, "Thermal design power.", HW_POWER),
    HW_OPTIONAL(struct hw_gpu, price, "Price of one GPU.", HW_PRICE),
    HW_OPTIONAL(struct hw_gpu, gemm_sustained,
        "Share of the GEMM rates under sustained load (clocks at the power limit).", HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, pointwise_efficiency,
        "Share of the streaming rate that pointwise, norm and loss kernels reach.", HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, norm_row_time,
        "Time of a row in a layer norm's gradients of weight and bias.", HW_LATENCY),
    HW_OPTIONAL(struct hw_gpu, accumulate_exposed,
        "Of the time that a GEMM takes to add to its result (main_grad), the share that nothing "
        "hides.",
        HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, conv_efficiency, "Share of the GEMM rates that convolutions reach.",
        HW_SHARE),
    HW_OPTIONAL(struct hw_gpu, overlap_start,
        "What a kernel loses that starts while a collective is resident.", HW_LATENCY),
    HW_OPTIONAL(struct hw_gpu, overlap_traffic,
        "Slowdown of kernels beside collectives that move, for the share of hbm_bandwidth that "
        "these take.",
        .dimension = DIM_FRACTION, .min = 0, .max = 10),
    HW_OPTIONAL(struct hw_gpu, step_pause,
        "Time between two steps in which the training loop leaves the GPU idle.",
        .dimension = DIM_SECONDS, .min = 0, .max = 10),
    HW_OPTIONAL(
        struct hw_gpu, cuda_malloc, "Host time of one cudaMalloc of a segment.", HW_LATENCY),
    HW_OPTIONAL(struct hw_gpu, cuda_free, "Host time of one cudaFree of a segment.", HW_LATENCY),
    {CONFIG_FIELD(
         "gemm", FIELD_SECTION, struct hw_gpu, gemm, "What GEMMs reach, by number format."),
        .section = &format_table, .required = true},
    {CONFIG_FIELD("power", FIELD_SECTION, struct hw_gpu, power,
         "What it draws, by what it does; no time follows."),
        .section = &power_table},
};
const struct config_table hw_gpu_table = CONFIG_TABLE("a GPU", gpu_fields);

/* A number format is given whole or not at all, and at least one is given. */
static enum status check_gemm(
    const struct hw_gpu *gpu, const struct hw_source *source, struct diag *diag)
{
    int formats = 0;
    enum status status = STATUS_OK;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const struct hw_gemm *gemm = &gpu->gemm[i];
        int set = quantity_is_set(gemm->peak) + quantity_is_set(gemm->efficiency) +
                  quantity_is_set(gemm->k_overhead) + quantity_is_set(gemm->load_bandwidth);
        formats += set > 0;
        char key[64];
        snprintf(key, sizeof key, "gemm.%s", dtype_names[i]);
        if (set > 0 && set < GEMM_REQUIRED)
            status = diag_input(diag, hw_place(source, key),
                "%s of '%s' is incomplete; it needs peak, efficiency, k_overhead and "
                "load_bandwidth",
                key, gpu->name);
    }
    if (formats == 0)
        status = diag_input(diag, hw_place(source, "gemm"),
            "'%s' multiplies in no number format; gemm: needs at least one of fp32, tf32, bf16, "
            "fp16, fp8, int8, fp4",
            gpu->name);
    return status;
}

/* NCCL's constants and stack profiles are looked up by the name, and an unknown one gets those of
 * an old architecture: a typing error would change predictions silently. */
static enum status check_arch(
    const struct hw_gpu *gpu, const struct hw_source *source, struct diag *diag)
{
    for (int i = 0; i < HW_ARCHS; i++)
        if (strcmp(gpu->arch, hw_archs[i]) == 0)
            return STATUS_OK;
    return diag_input(
        diag, hw_place(source, "arch"), "arch is '%s'; " ARCHS " is wanted", gpu->arch);
}

enum status hw_check_gpu(
    const struct hw_gpu *gpu, const struct hw_source *source, struct diag *diag)
{
    enum status memory = STATUS_OK;
    if (gpu->memory_sms.value > gpu->sms.value)
        memory = diag_input(diag, hw_place(source, "memory_sms"),
            "memory_sms is %g of %g SMs; at most all of them can be needed to saturate HBM",
            gpu->memory_sms.value, gpu->sms.value);
    enum status gemm = check_gemm(gpu, source, diag), arch = check_arch(gpu, source, diag);
    enum status sms = hw_whole(source, "sms", gpu->sms, diag);
    enum status power = STATUS_OK;
    if (gpu->power.idle.value > gpu->tdp.value)
        power = diag_input(diag, hw_place(source, "power.idle"),
            "power.idle is %g W of a tdp of %g W; a GPU without a process draws less than its "
            "limit",
            gpu->power.idle.value, gpu->tdp.value);
    return memory ? memory : gemm ? gemm : arch ? arch : sms ? sms : power;
}

enum status hw_load_gpu_from(struct hw_gpu *out, struct hw_source *source, const char *path,
    struct arena *arena, struct diag *diag)
{
    *out = (struct hw_gpu){0};
    *source = (struct hw_source){.path = path};
    enum status status = hw_read(out, &hw_gpu_table, source, arena, diag);
    if (status == STATUS_OK)
        status = hw_check_gpu(out, source, diag);
    if (status == STATUS_OK && strcmp(out->arch, "CDNA") == 0)
        diag_warn(diag, hw_place(source, "arch"),
            "no run of this GPU is at hand: %s is its data sheet and assumptions, and RCCL is "
            "taken for NCCL",
            out->name);
    return status;
}

enum status hw_load_gpu(
    struct hw_gpu *out, const char *path, struct arena *arena, struct diag *diag)
{
    struct hw_source source;
    enum status status = hw_load_gpu_from(out, &source, path, arena, diag);
    vec_free(&source.keys.list);
    return status;
}

/* Compares the model alone, the part of the file's name before the first '-' or space, as drivers
 * name a GPU in other words than its file. */
bool hw_same_gpu(const char *said, const struct hw_gpu *gpu)
{
    char model[32];
    snprintf(model, sizeof model, "%.*s", (int)strcspn(gpu->name, "- "), gpu->name);
    return strstr(said, model) != NULL;
}
