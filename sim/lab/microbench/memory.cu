/* HBM: bandwidth by size and by the number of SMs that draw. PCIe and peers: copies by size. */
#include "microbench/microbench.h"

#include <stdlib.h>
#include <string.h>

namespace {

const int SM_THREADS = 1024; /* of a block that has its SM for itself */
const int UNROLL = 4; /* 16-byte loads in flight per thread: 64 KiB an SM, four times what latency x
                         bandwidth asks for */

enum stream_kind { COPY, SCALE, TRIAD };
const char *const stream_names[] = {"copy", "scale", "triad"};
const double stream_passes[] = {2, 2, 3}; /* arrays read and written */

__device__ float4 plus_scaled(float4 a, float f, float4 b)
{
    return make_float4(a.x + f * b.x, a.y + f * b.y, a.z + f * b.z, a.w + f * b.w);
}

/* out = a (copy), f a (scale), a + f b (triad); n counts float4. */
template <stream_kind KIND>
__global__ void stream_kernel(float4 *out, const float4 *a, const float4 *b, float f, size_t n)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride * UNROLL) {
        float4 x[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (i + u * stride < n) {
                x[u] = a[i + u * stride];
                if (KIND == TRIAD)
                    y[u] = b[i + u * stride];
            }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (i + u * stride < n)
                out[i + u * stride] = KIND == COPY ? x[u]
                                      : KIND == SCALE
                                          ? plus_scaled(make_float4(0, 0, 0, 0), f, x[u])
                                          : plus_scaled(x[u], f, y[u]);
    }
}

/* Waits, as a collective does for its peers: of each block one thread reads the clock, and nothing
 * is moved. */
__global__ void hold_kernel(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < ns);
}

/* Blocks that take all shared memory of an SM stand alone on it, so `sms` blocks are on `sms` SMs.
 */
template <class KERNEL> int whole_sm(KERNEL *kernel)
{
    int shared = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    return shared;
}

template <stream_kind KIND>
void stream_launch(const measure_session &session, float4 *out, const float4 *a, const float4 *b,
    size_t n, int sms, cudaStream_t on)
{
    int shared = sms > 0 ? whole_sm(stream_kernel<KIND>) : 0;
    int blocks = sms > 0 ? sms : session.sms * 2; /* two blocks of 1024 threads fill an SM */
    stream_kernel<KIND><<<blocks, SM_THREADS, (size_t)shared, on>>>(out, a, b, 0.5f, n);
}

} // namespace

static void stream(measure_session &session, stream_kind kind, size_t array_bytes, int sms)
{
    measure_case what = {};
    what.category = "hbm";
    what.kernel = stream_names[kind];
    what.dtype = "fp32";
    what.n = (long long)array_bytes / 4;
    what.bytes = stream_passes[kind] * (double)array_bytes;
    what.sms = sms;
    measure_kernel(session, what, [=](measure_session &s) -> measure_launch {
        auto a = (float4 *)measure_random(s, FP32, array_bytes / 4);
        auto b = kind == TRIAD ? (float4 *)measure_random(s, FP32, array_bytes / 4) : a;
        auto out = (float4 *)measure_take(s, array_bytes);
        size_t n = array_bytes / sizeof *a;
        const measure_session *at = &s;
        if (sms > s.sms)
            return measure_launch();
        if (kind == COPY)
            return [=](cudaStream_t on) { stream_launch<COPY>(*at, out, a, b, n, sms, on); };
        if (kind == SCALE)
            return [=](cudaStream_t on) { stream_launch<SCALE>(*at, out, a, b, n, sms, on); };
        return [=](cudaStream_t on) { stream_launch<TRIAD>(*at, out, a, b, n, sms, on); };
    });
}

void measure_copy_by(const measure_session &session, void *dst, const void *src, size_t bytes,
    int sms, cudaStream_t on)
{
    stream_launch<COPY>(
        session, (float4 *)dst, (const float4 *)src, NULL, bytes / sizeof(float4), sms, on);
}

void measure_hold(double time_s, int sms, cudaStream_t on)
{
    int shared = whole_sm(hold_kernel);
    hold_kernel<<<sms, 1, (size_t)shared, on>>>((unsigned long long)(time_s * 1e9));
}

void measure_hbm(measure_session &session)
{
    for (stream_kind kind : {COPY, SCALE, TRIAD})
        for (size_t bytes = 64 << 10; bytes <= (size_t)1 << 30; bytes *= 4)
            stream(session, kind, bytes, 0);
    for (stream_kind kind :
        {COPY, TRIAD}) /* 132: the SMs of H100; 148: B200. More than a GPU has is left out. */
        for (int sms :
            {1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 96, 108, 120, 132, 148})
            stream(session, kind, (size_t)512 << 20, sms);
}

/* The host waits for each copy: that is what a pageable one does anyway, and what a user of one
 * copy sees. */
static measure_samples time_copies(
    measure_session &session, void *dst, const void *src, size_t bytes, cudaMemcpyKind direction)
{
    measure_samples samples;
    for (int i = 0; i < 15; i++) {
        double start_s = measure_now_s();
        CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, direction, session.stream));
        CUDA_TRY(cudaStreamSynchronize(session.stream));
        if (i >= 3) /* warm-up */
            samples.push_back(measure_now_s() - start_s);
    }
    return samples;
}

static void host_copy(measure_session &session, bool pinned, bool to_device, size_t bytes)
{
    char kernel[40];
    snprintf(
        kernel, sizeof kernel, "%s %s", to_device ? "h2d" : "d2h", pinned ? "pinned" : "pageable");
    measure_case what = {};
    what.category = "transfer";
    what.kernel = kernel;
    what.bytes = (double)bytes;
    measure_by(session, what, [=](measure_session &s) {
        void *host = NULL, *device = measure_take(s, bytes);
        if (!device)
            return measure_samples();
        if (pinned)
            CUDA_TRY(cudaMallocHost(&host, bytes));
        else if (!(host = malloc(bytes)))
            measure_fail(__FILE__, __LINE__, "malloc", "out of memory");
        memset(host, 0x5a, bytes); /* touches the pages */
        measure_samples samples = to_device
                                      ? time_copies(s, device, host, bytes, cudaMemcpyHostToDevice)
                                      : time_copies(s, host, device, bytes, cudaMemcpyDeviceToHost);
        if (pinned)
            CUDA_TRY(cudaFreeHost(host));
        else
            free(host);
        return samples;
    });
}

static void peer_copy(measure_session &session, size_t bytes)
{
    measure_case what = {};
    what.category = "transfer";
    what.kernel = "peer";
    what.bytes = (double)bytes;
    what.gpus = 2;
    measure_by(session, what, [=](measure_session &s) {
        int gpus = 0, reaches = 0;
        CUDA_TRY(cudaGetDeviceCount(&gpus));
        if (gpus < 2)
            return measure_samples();
        CUDA_TRY(cudaDeviceCanAccessPeer(&reaches, 0, 1));
        void *from = measure_take(s, bytes), *to = NULL;
        if (!reaches || !from)
            return measure_samples();
        cudaError_t enabled = cudaDeviceEnablePeerAccess(1, 0);
        if (enabled == cudaErrorPeerAccessAlreadyEnabled)
            (void)cudaGetLastError();
        else
            CUDA_TRY(enabled);
        CUDA_TRY(cudaSetDevice(1));
        CUDA_TRY(cudaMalloc(&to, bytes));
        CUDA_TRY(cudaSetDevice(0));
        measure_samples samples = measure_warm(
            s, [=](cudaStream_t on) { CUDA_TRY(cudaMemcpyPeerAsync(to, 1, from, 0, bytes, on)); });
        CUDA_TRY(cudaFree(to));
        return samples;
    });
}

void measure_transfer(measure_session &session)
{
    for (bool pinned : {true, false})
        for (bool to_device : {true, false})
            for (size_t bytes = 16 << 10; bytes <= (size_t)1 << 30; bytes *= 4)
                host_copy(session, pinned, to_device, bytes);
    for (size_t bytes = 16 << 10; bytes <= (size_t)1 << 30; bytes *= 4)
        peer_copy(session, bytes);
}
