/* What the host pays: launching, waiting, allocating; and the memory that CUDA takes for itself. */
#include "microbench/microbench.h"

namespace {

const int LAUNCHES =
    500; /* fewer than a stream's queue holds (about 1000), so the host is never held up */
const int REPEATS = 20;

__global__ void empty_kernel() {}

/* Eager PyTorch passes tensors by value in such a block of parameters. */
struct parameters {
    char bytes[256];
};
__global__ void empty_kernel_with_parameters(parameters) {}

} // namespace

static void launch_case(
    measure_session &session, const char *kernel, const std::function<double(cudaStream_t)> &time)
{
    measure_case what = {};
    what.category = "launch";
    what.kernel = kernel;
    measure_by(session, what, [=](measure_session &s) {
        measure_samples samples;
        time(s.stream); /* warm-up */
        for (int i = 0; i < REPEATS; i++) {
            CUDA_TRY(cudaStreamSynchronize(s.stream));
            samples.push_back(time(s.stream));
        }
        return samples;
    });
}

/* Host seconds of one call, of LAUNCHES without waiting. */
static double enqueue_s(const std::function<void(void)> &call)
{
    double start_s = measure_now_s();
    for (int i = 0; i < LAUNCHES; i++)
        call();
    return (measure_now_s() - start_s) / LAUNCHES;
}

static double graph_s(cudaStream_t on)
{
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CUDA_TRY(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < LAUNCHES; i++)
        empty_kernel<<<1, 32, 0, on>>>();
    CUDA_TRY(cudaStreamEndCapture(on, &graph));
    CUDA_TRY(cudaGraphInstantiateWithFlags(&ready, graph, 0));
    CUDA_TRY(cudaGraphLaunch(ready, on)); /* uploads it */
    CUDA_TRY(cudaStreamSynchronize(on));
    double start_s = measure_now_s();
    CUDA_TRY(cudaGraphLaunch(ready, on));
    CUDA_TRY(cudaStreamSynchronize(on));
    double one_s = (measure_now_s() - start_s) / LAUNCHES;
    CUDA_TRY(cudaGraphExecDestroy(ready));
    CUDA_TRY(cudaGraphDestroy(graph));
    return one_s;
}

void measure_launching(measure_session &session)
{
    launch_case(session, "host enqueues an empty kernel",
        [](cudaStream_t on) { return enqueue_s([=] { empty_kernel<<<1, 32, 0, on>>>(); }); });
    launch_case(session, "host enqueues a kernel with 256 B of parameters", [](cudaStream_t on) {
        return enqueue_s([=] { empty_kernel_with_parameters<<<1, 32, 0, on>>>(parameters()); });
    });
    launch_case(session, "empty kernels one after the other, GPU and host", [](cudaStream_t on) {
        double start_s = measure_now_s();
        enqueue_s([=] { empty_kernel<<<1, 32, 0, on>>>(); });
        CUDA_TRY(cudaStreamSynchronize(on));
        return (measure_now_s() - start_s) / LAUNCHES;
    });
    launch_case(session, "empty kernels of one graph", graph_s);
    launch_case(session, "launch and wait for an empty kernel", [](cudaStream_t on) {
        double start_s = measure_now_s();
        empty_kernel<<<1, 32, 0, on>>>();
        CUDA_TRY(cudaStreamSynchronize(on));
        return measure_now_s() - start_s;
    });
    launch_case(
        session, "host records an event and lets a stream wait for it", [](cudaStream_t on) {
            cudaEvent_t event;
            CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
            double one_s = enqueue_s([=] {
                CUDA_TRY(cudaEventRecord(event, on));
                CUDA_TRY(cudaStreamWaitEvent(on, event, 0));
            });
            CUDA_TRY(cudaEventDestroy(event));
            return one_s;
        });
    launch_case(session, "two events around nothing, GPU", [](cudaStream_t on) {
        cudaEvent_t first, last;
        float ms = 0;
        CUDA_TRY(cudaEventCreate(&first));
        CUDA_TRY(cudaEventCreate(&last));
        empty_kernel<<<1, 32, 0, on>>>();
        CUDA_TRY(cudaEventRecord(first, on));
        CUDA_TRY(cudaEventRecord(last, on));
        CUDA_TRY(cudaEventSynchronize(last));
        CUDA_TRY(cudaEventElapsedTime(&ms, first, last));
        CUDA_TRY(cudaEventDestroy(first));
        CUDA_TRY(cudaEventDestroy(last));
        return (double)ms * 1e-3;
    });
}

static double malloc_s(size_t bytes, bool time_free)
{
    void *block = NULL;
    double start_s = measure_now_s();
    CUDA_TRY(cudaMalloc(&block, bytes));
    double malloc_end_s = measure_now_s();
    CUDA_TRY(cudaFree(block));
    return time_free ? measure_now_s() - malloc_end_s : malloc_end_s - start_s;
}

static measure_samples allocate(size_t bytes, bool time_free)
{
    measure_samples samples;
    for (int i = 0; i < REPEATS; i++)
        samples.push_back(malloc_s(bytes, time_free));
    return samples;
}

/* What PyTorch's caching allocator does when cudaMalloc fails: waits for the device, gives all
 * cached blocks back, asks again (c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks). Here
 * with `blocks` cached blocks of this size. */
static measure_samples retry(const measure_session &session, size_t bytes, int blocks)
{
    measure_samples samples;
    for (int i = 0; i < REPEATS / 4; i++) {
        std::vector<void *> cached((size_t)blocks);
        void *wanted = NULL, *refused = NULL;
        for (void *&block : cached)
            CUDA_TRY(cudaMalloc(&block, bytes));
        double start_s = measure_now_s();
        if (cudaMalloc(&refused, session.total_bytes) ==
            cudaSuccess) /* some of it is taken already */
            measure_fail(__FILE__, __LINE__, "cudaMalloc", "did not refuse all memory of the GPU");
        (void)cudaGetLastError();
        CUDA_TRY(cudaDeviceSynchronize());
        for (void *block : cached)
            CUDA_TRY(cudaFree(block));
        CUDA_TRY(cudaMalloc(&wanted, bytes));
        samples.push_back(measure_now_s() - start_s);
        CUDA_TRY(cudaFree(wanted));
    }
    return samples;
}

static double used_since_bytes(size_t free_before)
{
    size_t free_now = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&free_now, &total));
    return (double)free_before - (double)free_now;
}

void measure_memory(measure_session &session)
{
    measure_case what = {};
    what.category = "memory";
    what.kernel = "context, driver and other processes, after the first call";
    measure_bytes(
        session, what, [&] { return (double)(session.total_bytes - session.free_at_start_bytes); });
    what.kernel = "cuBLAS handle and its first product, bf16";
    measure_bytes(session, what, [&] {
        size_t free_before = 0, total = 0;
        cublasHandle_t own = session.cublas;
        session.used_bytes = 0;
        session.overflow = false;
        CUDA_TRY(cudaMemGetInfo(&free_before, &total));
        CUBLAS_TRY(cublasCreate(&session.cublas));
        measure_gemm_launch(session, BF16, "tn", 4096, 4096, 4096, 1)(session.stream);
        CUDA_TRY(cudaStreamSynchronize(session.stream));
        double bytes = used_since_bytes(free_before);
        CUBLAS_TRY(cublasDestroy(session.cublas));
        session.cublas = own;
        return bytes;
    });
}

void measure_allocation(measure_session &session)
{
    for (bool time_free : {false, true})
        for (size_t bytes = 2 << 20; bytes <= (size_t)4 << 30;
             bytes *= 4) { /* 2 MiB: the page of cudaMalloc */
            measure_case what = {};
            what.category = "allocation";
            what.kernel = time_free ? "cudaFree" : "cudaMalloc";
            what.bytes = (double)bytes;
            measure_by(
                session, what, [=](measure_session &) { return allocate(bytes, time_free); });
        }
    for (int blocks : {1, 8, 32, 128}) {
        measure_case what = {};
        what.category = "allocation";
        what.kernel = "refused cudaMalloc, wait, cudaFree of batch blocks, cudaMalloc";
        what.batch = blocks;
        what.bytes = 20 << 20; /* PyTorch's kLargeBuffer */
        measure_by(session, what, [=](measure_session &s) { return retry(s, 20 << 20, blocks); });
    }
}
