/* The work of a GPU kernel, and its duration on a GPU, isolated or beside a collective. Pure: no
 * clock, no state.
 *
 * A kernel is described by its work (flop, bytes, shape), never by a time, so that changing the GPU
 * changes the time. Its duration is busy(max(compute, rows), memory) x traffic + floor, where
 * busy(a, b) = (a^4 + b^4)^(1/4) (kernel_busy_s()): blocks of threads load, multiply and store in
 * turn, so the units hide each other's time all but where both take nearly as long. The exponent is
 * assumed; with it the rates of a GPT's linear layers on GH200 predict the products of unfused
 * attention, limited by both, within 3 % in the median instead of 7 (`flopcast calibrate fit
 * kernels`).
 * - compute: kernel/gemm.h for GEMMs; kernel/attention.h for fused attention; flop / vector_flops
 *   for the rest; all by the SMs that are free.
 * - rows: the gradients of a layer norm's weight and bias are sums over rows, for which PyTorch
 *   starts one block of threads for every KERNEL_COLUMNS_OF_BLOCK columns, even if there are few:
 *   norm_row_time a row (optional), a block at a time on an SM (1,024 threads that hold 16 loaded
 *   values each). Up to 2.6 (GammaBetaBackwardCUDAKernel_32x32, recalled).
 * - memory: bytes / the lower of two rates: hbm_bandwidth x hbm_efficiency less what collectives
 *   take, but never below a tenth of it (the memory controller starves nobody); and the part of it
 *   that the free SMs can draw, which is all of it with memory_sms. Softmax, norm, elementwise,
 *   embedding and loss kernels reach pointwise_efficiency of it.
 * - traffic: 1 + overlap_traffic x (what collectives take / hbm_bandwidth): their bytes pass
 *   through L2, as those of GEMMs do that HBM does not limit. Bytes that nobody moves cost nothing:
 *   a collective that waits holds SMs only.
 * - a product that adds to its result (weight gradients into main_grad) loads and stores it behind
 *   its last multiplication, where there is less to hide it: the kernel takes at least compute and
 *   accumulate_exposed (optional) of the time of added_bytes. Measured: of large products in BF16
 *   that add to FP32 0.45 on A100 and 0.71 on B200 (results/measured/accumulate.csv; gpu_tables.h).
 * - copies to and from the host: bytes over the GPU's own link, part of the floor; collectives do
 *   not slow them. Ignored: links that GPUs share.
 * - decoding images: host_image_s for each image of each GPU, independent of GPU and collectives.
 *   Ignored: these host threads share cores with the training loop.
 * - floor: kernel_floor or gemm_floor, in a CUDA graph less 0.485 of kernel_floor (tiny kernels in
 *   a row on A100 and H200, results/measured/launch.csv); a kernel is never shorter. Where a
 *   collective is resident when it starts, overlap_start more: a cost of each kernel, which only
 *   short ones feel.
 *
 * What stands beside collectives was checked on kernels in traces of training jobs and on published
 * slowdowns (calibrate/overlap_fit.h, which also says what is left out: threads that poll in
 * protocol LL, L2 hits that a short kernel loses).
 *
 * Ignored for now: L2 hits (bytes are what PyTorch's eager kernels move between HBM and SMs).
 * Clocks that fall at the power limit are part of gemm_sustained. */
#ifndef FLOPCAST_KERNEL_KERNEL_H
#define FLOPCAST_KERNEL_KERNEL_H

#include "hw/hw.h"

#include <math.h>

#include <stdbool.h>
#include <stdint.h>

enum kernel_kind {
    KERNEL_GEMM,      /* m, n, k, batch set */
    KERNEL_ATTENTION, /* one fused flash attention kernel */
    KERNEL_SOFTMAX,
    KERNEL_NORM,
    KERNEL_ELEMENTWISE, /* add, dropout, activation, cast, scaling */
    KERNEL_EMBEDDING,
    KERNEL_LOSS,
    KERNEL_OPTIMIZER,
    KERNEL_COPY,      /* memcpy, memset, concatenation on the device */
    KERNEL_HOST_COPY, /* to or from pinned host memory: read_bytes */
    KERNEL_DECODE,   /* images of a batch (m), decoded by the host for this GPU and others (batch of
                        them) */
    KERNEL_RECORDED, /* of a trace: m ns, whatever the GPU; with n 1 collectives beside it slow it
                        as they slow what the SMs alone limit, else nothing does */
    KERNEL_KIND_COUNT,
};
extern const char *const kernel_kind_names[KERNEL_KIND_COUNT + 1];

/* How FLOP of attention under the causal mask are counted; FLOP of all else are the same.
 *   causal  pairs of a query and a key that the mask leaves, half of all. A flash kernel does
 *           these, one without fusion does all: hardware FLOP count what is executed, so a model's
 *           are never more. (Megatron-LM since 2024)
 *   full    all pairs, for the model and for every kernel: PaLM's appendix B (arXiv 2204.02311),
 *           Megatron-LM's older formula, llm-foundry, torchtitan. A flash kernel may then exceed
 *           the GPU's peak. */
enum attention_flop { ATTENTION_FLOP_CAUSAL, ATTENTION_FLOP_FULL, ATTENTION_FLOP_COUNT };
extern const char *const attention_flop_names[ATTENTION_FLOP_COUNT + 1]; /* "causal", "full" */
/* Of the pairs of a query and a key those that the causal mask leaves. */
static const double ATTENTION_CAUSAL_SHARE = 0.5;

struct kernel_work {
    enum kernel_kind kind;
    enum dtype math;    /* what it multiplies in (KERNEL_GEMM, KERNEL_ATTENTION) */
    double flop;        /* floating-point operations; GEMM: 2 m n k batch */
    double read_bytes;  /* from HBM */
    double write_bytes; /* to HBM */
    double added_bytes; /* GEMM: of both what adding to its result moves beyond a plain product's
                           writing (gradient_accumulation_fusion) */
    double row_pieces;  /* GEMM: pieces of operands' rows, each row_gap bytes longer to read
                           (kernel/gemm.h) */
    int64_t m, n, k, batch; /* GEMM: batch independent GEMMs of m x k by k x n; attention: queries,
                               keys, head dimension, heads of all sequences; norm: rows and columns
                               of a sum over rows, or 0 */
    int64_t pieces; /* GEMM: it is one of as many parts of the GEMM of m x n, equally long, that run
                       one after another on streams in turn, so that each fills the last wave of the
                       one before; 0: the whole */
    double pairs;   /* attention: flop count this share of the pairs of positions, those within
                       documents of a packed sequence, in the mean (kernel/documents.h); 0: a
                       sequence is one document */
    bool gathers; /* GEMM: one operand is gathered from an image by the kernel itself (convolution)
                   */
    int64_t window; /* causal attention: keys that a query sees, fewer than n; 0: all before it */
    int64_t recorded_ns; /* what it took alone, by a trace: compute and memory are as much longer or
                            shorter together; 0: what is said above holds */
    bool graphed; /* a node of a CUDA graph, which begins sooner after the one before it than a
                     launch into a stream */
    bool causal, backward; /* attention: flop counts half of the pairs of queries and keys; the
                              gradient's kernel */
};

/* A GEMM's work, with operands read and the result written once; dtypes of operands and result may
 * differ. Operands of math fp4 are NVFP4's, whatever operand_bytes is: half a byte an element, and
 * a scale of a byte for each 16. */
struct kernel_work kernel_gemm(int64_t m, int64_t n, int64_t k, int64_t batch, enum dtype math,
    int64_t operand_bytes, int64_t result_bytes);

static const double KERNEL_FP4_BYTES = 9.0 / 16; /* of an element in NVFP4 */

/* Columns of a thread block that sums over rows. */
enum { KERNEL_COLUMNS_OF_BLOCK = 32 };

/* A kernel that streams these bytes. */
struct kernel_work kernel_stream(
    enum kernel_kind kind, double read_bytes, double write_bytes, double flop);

/* Whether two kernels have the same work in all members; their digests are then equal. */
bool kernel_same(const struct kernel_work *a, const struct kernel_work *b);
uint64_t kernel_digest(const struct kernel_work *work);

/* The part of the GPU that a kernel can use. */
struct kernel_share {
    double sms;     /* free SMs, 1 .. gpu->sms */
    double hbm_Bps; /* HBM bandwidth that collectives take which move, B/s of traffic */
};

struct kernel_share kernel_whole_gpu(const struct hw_gpu *gpu);

/* The parts of a duration, in seconds; rows are part of compute. Traffic is not: kernel_traffic()
 * says by how many times compute and memory are longer. start_s comes to them where a collective is
 * resident at the start. */
struct kernel_time {
    double compute_s, memory_s, floor_s, start_s;
};
double kernel_traffic(const struct hw_gpu *gpu, double hbm_Bps);
struct kernel_time kernel_time(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_share share);

/* How long the SMs and HBM need together, which would need so long alone; compute_s > 0 or memory_s
 * > 0. */
static inline double kernel_busy_s(double compute_s, double memory_s)
{
    double longer = compute_s > memory_s ? compute_s : memory_s;
    double shorter = compute_s > memory_s ? memory_s : compute_s;
    if (shorter == 0) /* nothing to overlap with; also of a kernel that does nothing */
        return longer;
    double share = shorter / longer, square = share * share;
    return longer * sqrt(sqrt(1 + square * square));
}

/* busy(compute, memory) x traffic + floor, and start where SMs are held, seconds. BUG when the GPU
 * has no peak for work->math (check with kernel_supported). */
double kernel_duration_s(
    const struct kernel_work *work, const struct hw_gpu *gpu, struct kernel_share share);
/* Whether it runs at the GPU's power limit, where a chip's own voltage decides its clock: a GEMM
 * that reaches POWER_GEMM of the rate that its GPU sustains, fused attention that reaches
 * POWER_ATTENTION of the peak. Of H200 at 700 W (vLLM 0.22.0's benchmark of 7,056 GEMMs and 1,662
 * flash attentions with their power, ai-dynamo/aiconfigurator): GEMMs from 0.55 of the peak on draw
 * 644 W in the median, from 0.6 on 683 to 691, where the largest reach 0.69; at 0.5 it is 564.
 * Attention draws 687 to 692 W from 0.33 on, 640 at 0.26. */
#define POWER_GEMM 0.8
#define POWER_ATTENTION 0.3
bool kernel_power_limited(const struct kernel_work *work, const struct hw_gpu *gpu);
int kernel_supported(const struct hw_gpu *gpu, enum dtype math);

#endif
