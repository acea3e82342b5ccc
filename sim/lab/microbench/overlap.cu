/* What kernels cost each other: a kernel in front, timed alone and beside a background that lasts
 * longer than it. */
#include "microbench/microbench.h"

#include <algorithm>
#include <math.h>
#include <string>
#ifdef FLOPCAST_MEASURE_NCCL
#include <nccl.h>
#endif

namespace {

const int FRONT_CALLS = 10; /* in a sample; the background is sized to last twice as long */
const int SAMPLES = 12;

/* A stream of the highest priority: a block of the background gets the next SM that is free, as
 * NCCL's do. */
cudaStream_t background_stream(void)
{
    int lowest = 0, highest = 0;
    cudaStream_t stream;
    CUDA_TRY(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    CUDA_TRY(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest));
    return stream;
}

double median_s(measure_samples samples)
{
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
}

} // namespace

/* Seconds of a call of front on stream `at`, while background calls run on stream `behind`. The
 * front starts when the first call of the background is done; a sample in which the background
 * ended before the front is thrown away, for it is not beside anything. */
static measure_samples time_beside(const measure_launch &front, cudaStream_t at, double front_s,
    const measure_launch &background, cudaStream_t behind, double background_s)
{
    cudaEvent_t begun, first, last, ended;
    measure_samples samples;
    int calls = (int)ceil(3 * FRONT_CALLS * front_s / background_s) + 2;
    calls = std::min(calls, 400); /* a stream's queue holds about 1000 */
    for (cudaEvent_t *event : {&begun, &first, &last, &ended})
        CUDA_TRY(cudaEventCreate(event));
    for (int i = 0; i < SAMPLES; i++) {
        float ms = 0, after_ms = 0;
        CUDA_TRY(cudaDeviceSynchronize());
        background(behind);
        CUDA_TRY(cudaEventRecord(begun, behind));
        for (int call = 0; call < calls; call++)
            background(behind);
        CUDA_TRY(cudaEventRecord(ended, behind));
        CUDA_TRY(cudaStreamWaitEvent(at, begun, 0));
        CUDA_TRY(cudaEventRecord(first, at));
        for (int call = 0; call < FRONT_CALLS; call++)
            front(at);
        CUDA_TRY(cudaEventRecord(last, at));
        CUDA_TRY(cudaDeviceSynchronize());
        CUDA_TRY(cudaEventElapsedTime(&ms, first, last));
        CUDA_TRY(cudaEventElapsedTime(&after_ms, last, ended));
        if (after_ms >= 0)
            samples.push_back((double)ms * 1e-3 / FRONT_CALLS);
    }
    for (cudaEvent_t event : {begun, first, last, ended})
        CUDA_TRY(cudaEventDestroy(event));
    return samples;
}

namespace {

/* In front: products of m x n by k, of which the small ones fill the SMs once or a few times, and a
 * copy (m 0). */
const struct front {
    const char *kernel;
    long long m, n, k;
} fronts[] = {{"tn; square", 8192, 8192, 8192}, {"tn; square", 4096, 4096, 4096},
    {"tn; llama3.1-8b ff in", 2048, 14336, 4096}, {"tn; llama3.1-8b q", 2048, 4096, 4096},
    {"copy", 0, 0, 0}};
const size_t FRONT_BYTES = (size_t)256 << 20,
             BACKGROUND_BYTES = (size_t)64 << 20; /* of the copies */

measure_case beside_case(const front &f, const char *beside)
{
    measure_case what = {};
    what.category = "overlap";
    what.kernel = f.kernel;
    what.dtype = f.m ? "bf16" : "fp32";
    what.m = f.m;
    what.n = f.n;
    what.k = f.k;
    what.batch = f.m > 0;
    what.flop = 2.0 * (double)f.m * (double)f.n * (double)f.k;
    what.bytes =
        f.m ? 2.0 * (double)(f.m * f.k + f.n * f.k + f.m * f.n) : 2.0 * (double)FRONT_BYTES;
    what.beside = beside;
    return what;
}

measure_launch front_launch(measure_session &s, const front &f)
{
    const measure_session *at = &s;
    if (f.m)
        return measure_gemm_launch(s, BF16, "tn", f.m, f.n, f.k, 1);
    void *from = measure_random(s, FP32, FRONT_BYTES / 4), *to = measure_take(s, FRONT_BYTES);
    return [=](cudaStream_t on) { measure_copy_by(*at, to, from, FRONT_BYTES, 0, on); };
}

/* What a collective with this number of channels does to compute, without the collective: while it
 * moves (a copy), or waits (hold, one launch of which outlasts the kernel in front, so that no
 * block of that gets its SMs). */
measure_launch background_launch(measure_session &s, bool moves, int sms, double front_s)
{
    const measure_session *at = &s;
    if (!moves)
        return [=](cudaStream_t on) { measure_hold(3 * FRONT_CALLS * front_s, sms, on); };
    void *source = measure_random(s, FP32, BACKGROUND_BYTES / 4),
         *target = measure_take(s, BACKGROUND_BYTES);
    return
        [=](cudaStream_t on) { measure_copy_by(*at, target, source, BACKGROUND_BYTES, sms, on); };
}

} // namespace

static void beside_sms(measure_session &session, const front &f, bool moves, int sms)
{
    char beside[64];
    snprintf(beside, sizeof beside, "%s %d SMs", moves ? "copy on" : "hold of", sms);
    measure_by(session, beside_case(f, sms > 0 ? beside : NULL), [=](measure_session &s) {
        measure_launch front = front_launch(s, f);
        if (s.overflow || sms >= s.sms)
            return measure_samples();
        measure_samples alone = measure_warm(s, front);
        if (sms == 0)
            return alone;
        measure_launch background = background_launch(s, moves, sms, median_s(alone));
        if (s.overflow)
            return measure_samples();
        double background_s = median_s(measure_warm(s, background));
        cudaStream_t behind = background_stream();
        measure_samples samples =
            time_beside(front, s.stream, median_s(alone), background, behind, background_s);
        CUDA_TRY(cudaStreamDestroy(behind));
        return samples;
    });
}

void measure_overlap(measure_session &session)
{
    for (const front &f : fronts) {
        beside_sms(session, f, false, 0);
        for (bool moves : {true, false})
            for (int sms : {2, 4, 8, 16, 24, 32})
                beside_sms(session, f, moves, sms);
    }
}

#ifdef FLOPCAST_MEASURE_NCCL

#define NCCL_TRY(call)                                                                             \
    do {                                                                                           \
        ncclResult_t error_ = (call);                                                              \
        if (error_ != ncclSuccess)                                                                 \
            measure_fail(__FILE__, __LINE__, #call, ncclGetErrorString(error_));                   \
    } while (0)

namespace {

const size_t NCCL_MOST_BYTES = (size_t)1 << 30;
const char *const collectives[] = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"};

struct ring { /* one rank a GPU, all in this process */
    int gpus;
    std::vector<ncclComm_t> comms;
    std::vector<cudaStream_t> streams;
    std::vector<char *> from, to; /* NCCL_MOST_BYTES each */
    double bytes;                 /* of GPU 0 that the communicator took */
};

/* bytes as nccl-tests counts them: the larger of what a rank sends and what it receives. */
void collective(const ring &r, int kind, int gpu, size_t bytes, cudaStream_t on)
{
    size_t count = bytes / sizeof(float), part = count / (size_t)r.gpus;
    size_t g = (size_t)gpu;
    const auto from = (const float *)r.from[g];
    auto to = (float *)r.to[g];
    switch (kind) {
    case 0:
        NCCL_TRY(ncclAllReduce(from, to, count, ncclFloat, ncclSum, r.comms[g], on));
        return;
    case 1:
        NCCL_TRY(ncclAllGather(from, to, part, ncclFloat, r.comms[g], on));
        return;
    case 2:
        NCCL_TRY(ncclReduceScatter(from, to, part, ncclFloat, ncclSum, r.comms[g], on));
        return;
    case 3:
        NCCL_TRY(ncclBroadcast(from, to, count, ncclFloat, 0, r.comms[g], on));
        return;
    default:
        for (int peer = 0; peer < r.gpus; peer++) {
            NCCL_TRY(ncclSend(from + (size_t)peer * part, part, ncclFloat, peer, r.comms[g], on));
            NCCL_TRY(ncclRecv(to + (size_t)peer * part, part, ncclFloat, peer, r.comms[g], on));
        }
    }
}

void make_ring(ring &r)
{
    size_t n = (size_t)r.gpus, before = 0, after = 0, total = 0;
    r.comms.resize(n);
    r.streams.resize(n);
    r.from.resize(n);
    r.to.resize(n);
    std::vector<float> data(NCCL_MOST_BYTES / sizeof(float));
    unsigned x = 1;
    for (float &value :
        data) { /* the generator of Numerical Recipes: random enough not to be compressed */
        x = x * 1664525u + 1013904223u;
        value = (float)x * 0x1p-31f - 1.0f;
    }
    for (int gpu = 0; gpu < r.gpus; gpu++) {
        size_t g = (size_t)gpu;
        CUDA_TRY(cudaSetDevice(gpu));
        CUDA_TRY(cudaMalloc((void **)&r.from[g], NCCL_MOST_BYTES));
        CUDA_TRY(cudaMalloc((void **)&r.to[g], NCCL_MOST_BYTES));
        CUDA_TRY(cudaMemcpy(r.from[g], data.data(), NCCL_MOST_BYTES, cudaMemcpyHostToDevice));
        r.streams[g] = background_stream();
    }
    CUDA_TRY(cudaSetDevice(0));
    CUDA_TRY(cudaMemGetInfo(&before, &total));
    NCCL_TRY(ncclCommInitAll(r.comms.data(), r.gpus, NULL));
    CUDA_TRY(cudaSetDevice(0));
    CUDA_TRY(cudaMemGetInfo(&after, &total));
    r.bytes = (double)before - (double)after;
}

void free_ring(ring &r)
{
    for (size_t g = 0; g < r.comms.size(); g++) {
        CUDA_TRY(cudaSetDevice((int)g));
        NCCL_TRY(ncclCommDestroy(r.comms[g]));
        CUDA_TRY(cudaStreamDestroy(r.streams[g]));
        CUDA_TRY(cudaFree(r.from[g]));
        CUDA_TRY(cudaFree(r.to[g]));
    }
    CUDA_TRY(cudaSetDevice(0));
}

/* On every GPU; GPU 0's call goes to the stream that is given, which is timed. */
measure_launch everywhere(const ring &r, int kind, size_t bytes)
{
    const ring *all = &r;
    return [=](cudaStream_t on) {
        NCCL_TRY(ncclGroupStart());
        for (int gpu = 0; gpu < all->gpus; gpu++)
            collective(*all, kind, gpu, bytes, gpu == 0 ? on : all->streams[(size_t)gpu]);
        NCCL_TRY(ncclGroupEnd());
    };
}

measure_case collective_case(const char *category, int kind, size_t bytes, int gpus)
{
    measure_case what = {};
    what.category = category;
    what.kernel = collectives[kind];
    what.dtype = "fp32";
    what.bytes = (double)bytes;
    what.gpus = gpus;
    return what;
}

/* A collective beside a GEMM, and the GEMM beside the collective; on GPU 0, the others only
 * communicate. */
void beside_gemm(measure_session &session, const ring &r, int kind, bool collective_in_front)
{
    const long long side = 8192;
    const size_t bytes = (size_t)256 << 20;
    measure_case what = collective_case("overlap", kind, bytes, r.gpus);
    what.beside = "tn; square; bf16; 8192";
    std::string beside = std::string(collectives[kind]) + " of 256 MiB";
    if (!collective_in_front) {
        what.kernel = "tn; square";
        what.dtype = "bf16";
        what.m = what.n = what.k = side;
        what.batch = 1;
        what.bytes = 3.0 * (double)side * (double)side * 2;
        what.flop = 2.0 * (double)side * (double)side * (double)side;
        what.beside = beside.c_str();
    }
    measure_by(session, what, [&](measure_session &s) {
        measure_launch gemm = measure_gemm_launch(s, BF16, "tn", side, side, side, 1);
        measure_launch comm = everywhere(r, kind, bytes);
        if (s.overflow)
            return measure_samples();
        double gemm_s = median_s(measure_warm(s, gemm)), comm_s = median_s(measure_warm(s, comm));
        return collective_in_front
                   ? time_beside(comm, r.streams[0], comm_s, gemm, s.stream, gemm_s)
                   : time_beside(gemm, s.stream, gemm_s, comm, r.streams[0], comm_s);
    });
}

} // namespace

void measure_nccl(measure_session &session)
{
    ring r = {};
    r.gpus = 2; /* the least; of a dry run */
    if (!session.dry_run) {
        CUDA_TRY(cudaGetDeviceCount(&r.gpus));
        if (r.gpus < 2) {
            fprintf(stderr, "flopcast_measure: nccl: left out, it takes two GPUs\n");
            return;
        }
        make_ring(r);
    }
    for (int kind = 0; kind < (int)(sizeof collectives / sizeof *collectives); kind++)
        for (size_t bytes = 1 << 10; bytes <= NCCL_MOST_BYTES; bytes *= 4)
            measure_by(session, collective_case("nccl", kind, bytes, r.gpus),
                [&](measure_session &s) { return measure_warm(s, everywhere(r, kind, bytes)); });
    for (int kind = 0; kind < 3; kind++) /* those of DDP and FSDP */
        for (bool collective_in_front : {false, true})
            beside_gemm(session, r, kind, collective_in_front);
    measure_case what = {};
    what.category = "memory";
    what.kernel = "NCCL communicator of all GPUs";
    what.gpus = r.gpus;
    measure_bytes(session, what, [&] { return r.bytes; });
    if (!session.dry_run)
        free_ring(r);
}

#else

void measure_nccl(measure_session &)
{
    fprintf(stderr, "flopcast_measure: nccl: left out, this program was built without NCCL\n");
}

#endif
