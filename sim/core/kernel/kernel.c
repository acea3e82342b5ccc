/* The duration of a kernel from its work: compute, memory and floor, and how they are put together
 * (kernel.h).
 *
 * kernel_time() gives the parts, kernel_duration_s() the sum. Callers that change one part (noise,
 * a slow clock) take the parts. Kinds that no unit of the GPU limits come first: images decoded by
 * the host, recorded times, copies over the host link. All others have the same four numbers.
 *
 * Subtle: with_accumulation() turns a lower bound of the whole into a longer compute part, by
 * inverting kernel_busy_s(), so that the bound also holds when the parts are put together again. A
 * recorded kernel takes the modelled parts scaled to its recorded time alone; beside collectives
 * each part then grows as the model says.
 *
 * kernel_same() and kernel_digest() must know every member of kernel_work that changes a time:
 * plans keep equal kernels once. A member that kernel_same() forgets makes two kernels one. */
#include "kernel/kernel.h"

#include "base/digest.h"
#include "kernel/attention.h"
#include "kernel/gemm.h"

#include <math.h>
#include <string.h>

const char *const attention_flop_names[ATTENTION_FLOP_COUNT + 1] = {
    [ATTENTION_FLOP_CAUSAL] = "causal",
    [ATTENTION_FLOP_FULL] = "full",
};

const char *const kernel_kind_names[KERNEL_KIND_COUNT + 1] = {
    [KERNEL_GEMM] = "gemm",
    [KERNEL_ATTENTION] = "attention",
    [KERNEL_SOFTMAX] = "softmax",
    [KERNEL_NORM] = "norm",
    [KERNEL_ELEMENTWISE] = "elementwise",
    [KERNEL_EMBEDDING] = "embedding",
    [KERNEL_LOSS] = "loss",
    [KERNEL_OPTIMIZER] = "optimizer",
    [KERNEL_COPY] = "copy",
    [KERNEL_HOST_COPY] = "host_copy",
    [KERNEL_DECODE] = "decode",
    [KERNEL_RECORDED] = "recorded",
};

/* Assumed: share of the HBM bandwidth that a kernel keeps even if collectives ask for all of it. */
static const double MEMORY_SHARE_MIN = 0.10;

struct kernel_work kernel_gemm(int64_t m, int64_t n, int64_t k, int64_t batch, enum dtype math,
    int64_t operand_bytes, int64_t result_bytes)
{
    BUG_IF(m <= 0 || n <= 0 || k <= 0 || batch <= 0, "a GEMM of %ld x %ld x %ld, %ld times",
        (long)m, (long)n, (long)k, (long)batch);
    double products = (double)m * (double)n * (double)batch;
    double operand = math == DTYPE_FP4 ? KERNEL_FP4_BYTES : (double)operand_bytes;
    return (struct kernel_work){
        .kind = KERNEL_GEMM,
        .math = math,
        .flop = 2.0 * products * (double)k,
        .read_bytes = ((double)m + (double)n) * (double)k * (double)batch * operand,
        .write_bytes = products * (double)result_bytes,
        .m = m,
        .n = n,
        .k = k,
        .batch = batch,
    };
}

struct kernel_work kernel_stream(
    enum kernel_kind kind, double read_bytes, double write_bytes, double flop)
{
    BUG_IF(kind == KERNEL_GEMM, "a GEMM has a shape: use kernel_gemm()");
    return (struct kernel_work){
        .kind = kind, .flop = flop, .read_bytes = read_bytes, .write_bytes = write_bytes};
}

bool kernel_same(const struct kernel_work *a, const struct kernel_work *b)
{
    return a->kind == b->kind && a->math == b->math && a->flop == b->flop &&
           a->read_bytes == b->read_bytes && a->write_bytes == b->write_bytes &&
           a->added_bytes == b->added_bytes && a->row_pieces == b->row_pieces && a->m == b->m &&
           a->n == b->n && a->k == b->k && a->batch == b->batch && a->gathers == b->gathers &&
           a->pieces == b->pieces && a->recorded_ns == b->recorded_ns && a->causal == b->causal &&
           a->window == b->window && a->backward == b->backward && a->pairs == b->pairs &&
           a->graphed == b->graphed;
}

/* Of the members in which kernels differ in practice; kernels of the same digest may differ in
 * others. */
uint64_t kernel_digest(const struct kernel_work *work)
{
    uint64_t bits[3];
    const double values[3] = {work->flop, work->read_bytes, work->write_bytes};
    memcpy(bits, values, sizeof bits);
    uint64_t digest = digest_word(
        DIGEST_INIT, ((uint64_t)work->kind << 32) | (uint64_t)(work->m + work->recorded_ns));
    for (int i = 0; i < 3; i++)
        digest = digest_word(digest, bits[i]);
    return digest_word(digest, ((uint64_t)work->n << 32) ^ (uint64_t)work->k);
}

struct kernel_share kernel_whole_gpu(const struct hw_gpu *gpu)
{
    return (struct kernel_share){.sms = gpu->sms.value};
}

int kernel_supported(const struct hw_gpu *gpu, enum dtype math)
{
    return quantity_is_set(gpu->gemm[math].peak);
}

/* A block for some columns walks down all rows. */
static double rows_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms)
{
    if (work->kind != KERNEL_NORM || !quantity_is_set(gpu->norm_row_time))
        return 0;
    double blocks = ceil((double)work->n / KERNEL_COLUMNS_OF_BLOCK);
    return (double)work->m * gpu->norm_row_time.value * ceil(blocks / sms);
}

static double compute_s(const struct kernel_work *work, const struct hw_gpu *gpu, double sms)
{
    if (work->kind == KERNEL_GEMM)
        return gemm_compute_s(work, gpu, sms);
    if (work->kind == KERNEL_ATTENTION)
        return attention_compute_s(work, gpu, sms);
    return fmax(
        work->flop / (gpu->vector_flops.value * sms / gpu->sms.value), rows_s(work, gpu, sms));
}

/* Copies and optimizer steps stream as the kernels do that hbm_efficiency was measured with; GEMMs
 * and fused attention have their own limits. */
static double memory_efficiency(const struct kernel_work *work, const struct hw_gpu *gpu)
{
    bool pointwise = work->kind == KERNEL_SOFTMAX || work->kind == KERNEL_NORM ||
                     work->kind == KERNEL_ELEMENTWISE || work->kind == KERNEL_EMBEDDING ||
                     work->kind == KERNEL_LOSS;
    bool known = pointwise && quantity_is_set(gpu->pointwise_efficiency);
    return gpu->hbm_efficiency.value * (known ? gpu->pointwise_efficiency.value : 1);
}

static double memory_s(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_share share)
{
    double all_Bps = gpu->hbm_bandwidth.value * memory_efficiency(work, gpu);
    double left_Bps = fmax(all_Bps - share.hbm_Bps, MEMORY_SHARE_MIN * all_Bps);
    double drawn_Bps = all_Bps * share.sms / gpu->memory_sms.value;
    double bytes = work->read_bytes + work->write_bytes + work->row_pieces * gpu->row_gap.value;
    return bytes / fmin(left_Bps, drawn_Bps);
}

/* compute_s, or as much more as the units must need so that the kernel is no shorter than compute_s
 * and what adding to the result exposes. */
static double with_accumulation(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_time time)
{
    if (!(work->added_bytes > 0) || !quantity_is_set(gpu->accumulate_exposed))
        return time.compute_s;
    double added_s = time.memory_s * work->added_bytes / (work->read_bytes + work->write_bytes);
    double least_s = time.compute_s + gpu->accumulate_exposed.value * added_s;
    if (least_s <= kernel_busy_s(time.compute_s, time.memory_s))
        return time.compute_s;
    double share = time.memory_s / least_s, square = share * share;
    return least_s * sqrt(sqrt(1 - square * square));
}

/* Of a kernel whose time is recorded, that of one that is not. */
static struct kernel_time kernel_recorded(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_share share)
{
    struct kernel_work modelled = *work;
    double alone_s = (double)work->recorded_ns * 1e-9;
    modelled.recorded_ns = 0;
    struct kernel_time whole = kernel_time(&modelled, gpu, kernel_whole_gpu(gpu));
    struct kernel_time time = kernel_time(&modelled, gpu, share);
    double busy_s = kernel_busy_s(whole.compute_s, whole.memory_s);
    time.floor_s = busy_s > 0 ? fmin(time.floor_s, alone_s) : alone_s;
    double times = busy_s > 0 ? (alone_s - time.floor_s) / busy_s : 0;
    time.compute_s *= times;
    time.memory_s *= times;
    return time;
}

/* Of kernel_floor: 2.621 us in a stream and 1.337 in a graph on A100, 2.427 and 1.260 on H200. */
static const double SAVED_IN_GRAPH = 0.485;

struct kernel_time kernel_time(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_share share)
{
    BUG_IF(!(share.sms > 0) || share.sms > gpu->sms.value, "a kernel on %g of %g SMs", share.sms,
        gpu->sms.value);
    BUG_IF(!(share.hbm_Bps >= 0), "collectives take %g B/s of HBM", share.hbm_Bps);
    int multiplies = work->kind == KERNEL_GEMM || work->kind == KERNEL_ATTENTION;
    BUG_IF(multiplies && !kernel_supported(gpu, work->math), "%s cannot multiply in %s", gpu->name,
        dtype_names[work->math]);
    if (work->kind == KERNEL_DECODE)
        return (struct kernel_time){
            .floor_s = (double)work->m * (double)work->batch * gpu->host_image_s};
    if (work->recorded_ns > 0)
        return kernel_recorded(work, gpu, share);
    if (work->kind == KERNEL_RECORDED)
        return (struct kernel_time){
            .compute_s = work->n ? (double)work->m * 1e-9 * gpu->sms.value / share.sms : 0,
            .floor_s = work->n ? 0 : (double)work->m * 1e-9};
    if (work->kind == KERNEL_HOST_COPY)
        return (struct kernel_time){
            .floor_s = work->read_bytes / gpu->host_link_Bps + gpu->kernel_floor.value};
    struct kernel_time time = {
        .compute_s = compute_s(work, gpu, share.sms),
        .memory_s = memory_s(work, gpu, share),
        .floor_s = work->kind == KERNEL_GEMM ? gpu->gemm_floor.value : gpu->kernel_floor.value,
        .start_s = gpu->overlap_start.value,
    };
    time.compute_s = with_accumulation(work, gpu, time);
    if (work->graphed)
        time.floor_s = fmax(0, time.floor_s - SAVED_IN_GRAPH * gpu->kernel_floor.value);
    return time;
}

bool kernel_power_limited(const struct kernel_work *work, const struct hw_gpu *gpu)
{
    if (work->kind != KERNEL_GEMM && work->kind != KERNEL_ATTENTION)
        return false;
    const struct hw_gemm *gemm = &gpu->gemm[work->math];
    double sustained = gemm->peak.value * gemm->efficiency.value;
    sustained *= quantity_is_set(gpu->gemm_sustained) ? gpu->gemm_sustained.value : 1;
    double least =
        work->kind == KERNEL_GEMM ? POWER_GEMM * sustained : POWER_ATTENTION * gemm->peak.value;
    return work->flop >= least * kernel_duration_s(work, gpu, kernel_whole_gpu(gpu));
}

double kernel_traffic(const struct hw_gpu *gpu, double hbm_Bps)
{
    return 1 + gpu->overlap_traffic.value * fmin(1, hbm_Bps / gpu->hbm_bandwidth.value);
}

double kernel_duration_s(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_share share)
{
    struct kernel_time time = kernel_time(work, gpu, share);
    double busy_s =
        kernel_busy_s(time.compute_s, time.memory_s) * kernel_traffic(gpu, share.hbm_Bps);
    return busy_s + time.floor_s + (share.sms < gpu->sms.value ? time.start_s : 0);
}
