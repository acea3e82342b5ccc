/* Timing, rows, random data: what every category of flopcast_measure uses. */
#include "microbench/microbench.h"

#include <algorithm>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const number_names[NUMBER_COUNT] = {"fp32", "tf32", "bf16", "fp16", "fp8", "int8"};

namespace {

/* Choices of method; none of them describes hardware. */
const double SAMPLE_S =
    300e-6; /* a sample spans this much, so that the event's half microsecond is 0.2 % */
const double CASE_S = 0.3; /* spent on the samples of a case */
const int SAMPLES_MIN = 10, SAMPLES_MAX = 50;
const int GROUP_MAX = 200; /* calls in a sample; the queue of a stream holds about 1000 */
const size_t L2_MAX_BYTES = 256 << 20; /* twice the largest L2 of a GPU so far (B200: 126 MB) */
const size_t WORKSPACE_BYTES = (size_t)16 << 30;
const unsigned long long CLOCK_NS =
    200000; /* over which cycles are counted: a tick of 1 us is 0.5 % of it */

/* nvml.h's declarations, as its documentation gives them: the header is not part of every toolkit.
 */
const int NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0;

} // namespace

struct measure_nvml {
    void *library, *device;
    int (*clock)(void *device, int type, unsigned *MHz);
    int (*power)(void *device, unsigned *mW);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
};

void measure_fail(const char *file, int line, const char *call, const char *why)
{
    fprintf(stderr, "flopcast_measure: error: %s:%d: %s: %s\n", file, line, call, why);
    exit(1);
}

size_t number_bytes(number dtype)
{
    return dtype == FP32 || dtype == TF32 ? 4 : dtype == FP8 || dtype == INT8 ? 1 : 2;
}

double measure_now_s(void)
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* NULL when the library or one of its functions is missing. */
static measure_nvml *open_nvml(measure_session &session)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "flopcast_measure: no libnvidia-ml.so.1, so memory clock, power and "
                        "temperature stay empty\n");
        return NULL;
    }
    auto init = (int (*)(void))dlsym(library, "nvmlInit_v2");
    auto find = (int (*)(const char *, void **))dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    auto driver = (int (*)(char *, unsigned))dlsym(library, "nvmlSystemGetDriverVersion");
    measure_nvml nvml = {library, NULL, NULL, NULL, NULL};
    nvml.clock = (int (*)(void *, int, unsigned *))dlsym(library, "nvmlDeviceGetClockInfo");
    nvml.power = (int (*)(void *, unsigned *))dlsym(library, "nvmlDeviceGetPowerUsage");
    nvml.temperature = (int (*)(void *, int, unsigned *))dlsym(library, "nvmlDeviceGetTemperature");
    char bus[32];
    CUDA_TRY(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    if (!init || !find || !driver || !nvml.clock || !nvml.power || !nvml.temperature ||
        init() != 0 || find(bus, &nvml.device) != 0) {
        fprintf(stderr, "flopcast_measure: libnvidia-ml.so.1 does not answer, so memory clock, "
                        "power and temperature stay empty\n");
        dlclose(library);
        return NULL;
    }
    if (driver(session.driver, sizeof session.driver) != 0)
        session.driver[0] = '\0'; /* the CUDA version that it supports is known still */
    return new measure_nvml(nvml);
}

static void name_versions(measure_session &session)
{
    int runtime = 0, driver = 0;
    CUDA_TRY(cudaRuntimeGetVersion(&runtime));
    CUDA_TRY(cudaDriverGetVersion(&driver));
    snprintf(session.cuda, sizeof session.cuda, "%d.%d", runtime / 1000,
        runtime % 1000 / 10); /* 13000 is 13.0 */
    if (!session.driver[0])
        snprintf(
            session.driver, sizeof session.driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
}

void measure_begin(measure_session &session)
{
    session.start_s = measure_now_s();
    if (session.dry_run)
        return;
    cudaDeviceProp properties;
    CUDA_TRY(cudaSetDevice(0));
    CUDA_TRY(cudaFree(0)); /* makes the context */
    CUDA_TRY(cudaMemGetInfo(&session.free_at_start_bytes, &session.total_bytes));
    CUDA_TRY(cudaGetDeviceProperties(&properties, 0));
    snprintf(session.gpu, sizeof session.gpu, "%s", properties.name);
    session.sms = properties.multiProcessorCount;
    session.nvml = open_nvml(session);
    name_versions(session);
    CUDA_TRY(cudaStreamCreateWithFlags(&session.stream, cudaStreamNonBlocking));
    session.workspace_bytes = std::min(WORKSPACE_BYTES, session.free_at_start_bytes / 2);
    CUDA_TRY(cudaMalloc((void **)&session.workspace, session.workspace_bytes));
    CUDA_TRY(cudaMalloc(&session.flush, L2_MAX_BYTES));
    CUDA_TRY(cudaMalloc((void **)&session.cycles_ns, 2 * sizeof *session.cycles_ns));
    CUBLAS_TRY(cublasCreate(&session.cublas));
}

void measure_end(measure_session &session)
{
    if (session.dry_run)
        return;
    CUBLAS_TRY(cublasDestroy(session.cublas));
    CUDA_TRY(cudaFree(session.cycles_ns));
    CUDA_TRY(cudaFree(session.flush));
    CUDA_TRY(cudaFree(session.workspace));
    CUDA_TRY(cudaStreamDestroy(session.stream));
    if (session.nvml)
        dlclose(session.nvml->library);
    delete session.nvml;
}

void measure_header(measure_session &session)
{
    fputs("category,kernel,dtype,m,n,k,batch,bytes,flop,sms,gpus,beside,cache,samples,time_us_"
          "median,time_us_min,time_us_max,sm_clock_MHz,memory_clock_MHz,power_W,temperature_C,"
          "start_s,gpu,driver,cuda,date,version,kind\n",
        session.out);
}

/* Names of GPUs may hold commas; none of our texts holds a quote. */
static void put_text(FILE *out, const char *text)
{
    fprintf(out, text && strchr(text, ',') ? "\"%s\"," : "%s,", text ? text : "");
}

static void put_number(FILE *out, double value)
{
    if (value > 0)
        fprintf(out, "%.10g", value);
    fputc(',', out);
}

static __device__ unsigned long long global_ns(void)
{
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Cycles of an SM and nanoseconds, from one tick of the GPU's timer (1 us apart on some) to
 * another. */
static __global__ void count_cycles(unsigned long long *cycles_ns, unsigned long long span_ns)
{
    unsigned long long before = global_ns(), first, last;
    do
        first = global_ns();
    while (first == before);
    long long start = clock64();
    do
        last = global_ns();
    while (last - first < span_ns);
    cycles_ns[0] = (unsigned long long)(clock64() - start);
    cycles_ns[1] = last - first;
}

static double sm_clock_MHz(measure_session &session)
{
    unsigned long long counted[2];
    count_cycles<<<1, 1, 0, session.stream>>>(session.cycles_ns, CLOCK_NS);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaStreamSynchronize(session.stream));
    CUDA_TRY(cudaMemcpy(counted, session.cycles_ns, sizeof counted, cudaMemcpyDeviceToHost));
    return (double)counted[0] / (double)counted[1] * 1e3;
}

/* NVML first: what the caller has queued still runs then. */
static void put_state(measure_session &session)
{
    unsigned memory = 0, milliwatt = 0, celsius = 0;
    if (const measure_nvml *nvml =
            session.nvml) { /* a figure that the GPU does not report stays empty */
        nvml->clock(nvml->device, NVML_CLOCK_MEM, &memory);
        nvml->power(nvml->device, &milliwatt);
        nvml->temperature(nvml->device, NVML_TEMPERATURE_GPU, &celsius);
    }
    put_number(session.out, session.dry_run ? 0 : sm_clock_MHz(session));
    put_number(session.out, memory);
    put_number(session.out, milliwatt * 1e-3);
    put_number(session.out, celsius);
}

void measure_row(measure_session &session, const measure_case &what, measure_samples samples)
{
    FILE *out = session.out;
    std::sort(samples.begin(), samples.end());
    size_t n = samples.size();
    double median = n == 0 ? 0 : (samples[(n - 1) / 2] + samples[n / 2]) / 2;
    put_text(out, what.category);
    put_text(out, what.kernel);
    put_text(out, what.dtype);
    for (long long size : {what.m, what.n, what.k, what.batch})
        put_number(out, (double)size);
    put_number(out, what.bytes);
    put_number(out, what.flop);
    put_number(out, what.sms);
    put_number(out, what.gpus > 0 ? what.gpus : 1);
    put_text(out, what.beside);
    put_text(out, what.cache);
    put_number(out, (double)n);
    put_number(out, median * 1e6);
    put_number(out, n == 0 ? 0 : samples.front() * 1e6);
    put_number(out, n == 0 ? 0 : samples.back() * 1e6);
    put_state(session);
    fprintf(out, "%.3f,", session.dry_run ? 0.0 : measure_now_s() - session.start_s);
    const char *const provenance[] = {
        session.gpu, session.driver, session.cuda, session.date, FLOPCAST_MEASURE_VERSION};
    for (const char *text : provenance)
        put_text(out, text);
    fputs(session.dry_run ? "planned\n" : "measured\n", out);
    fflush(out); /* a run of many minutes that is stopped keeps what it has */
}

void *measure_take(measure_session &session, size_t bytes)
{
    size_t padded = (bytes + 255) / 256 * 256; /* what cudaMalloc aligns to */
    if (padded > session.workspace_bytes - session.used_bytes) {
        session.overflow = true;
        return NULL;
    }
    session.used_bytes += padded;
    return session.workspace + session.used_bytes - padded;
}

/* Random bits from a counter (the finaliser of MurmurHash3, public domain): the same data in every
 * run. */
static __device__ unsigned scramble(size_t i)
{
    unsigned x = (unsigned)i ^ (unsigned)(i >> 32) * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

template <class T> static __global__ void fill(T *to, size_t n, float scale)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = (T)(((float)scramble(i) * 0x1p-31f - 1.0f) * scale);
}

static __global__ void fill_indices(int *to, size_t n, unsigned below)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = (int)(scramble(i) % below);
}

void *measure_random(measure_session &session, number dtype, size_t n)
{
    void *to = measure_take(session, n * number_bytes(dtype));
    if (!to)
        return NULL;
    int blocks = session.sms * 8;
    switch (dtype) {
    case BF16:
        fill<<<blocks, 256, 0, session.stream>>>((__nv_bfloat16 *)to, n, 1.0f);
        break;
    case FP16:
        fill<<<blocks, 256, 0, session.stream>>>((__half *)to, n, 1.0f);
        break;
    case FP8:
        fill<<<blocks, 256, 0, session.stream>>>((__nv_fp8_e4m3 *)to, n, 1.0f);
        break;
    case INT8:
        fill<<<blocks, 256, 0, session.stream>>>((signed char *)to, n, 127.0f);
        break;
    default:
        fill<<<blocks, 256, 0, session.stream>>>((float *)to, n, 1.0f);
    }
    CUDA_TRY(cudaGetLastError());
    return to;
}

int *measure_indices(measure_session &session, size_t n, int below)
{
    int *to = (int *)measure_take(session, n * sizeof *to);
    if (to)
        fill_indices<<<session.sms * 8, 256, 0, session.stream>>>(to, n, (unsigned)below);
    CUDA_TRY(cudaGetLastError());
    return to;
}

static double between_s(cudaEvent_t first, cudaEvent_t last)
{
    float ms = 0;
    CUDA_TRY(cudaEventElapsedTime(&ms, first, last));
    return (double)ms * 1e-3;
}

/* Nothing waits for the host between two samples: the GPU never idles, and a sample is the time
 * from one event to the next. */
measure_samples measure_warm(measure_session &session, const measure_launch &launch)
{
    std::vector<cudaEvent_t> events(SAMPLES_MAX + 1);
    for (cudaEvent_t &event : events)
        CUDA_TRY(cudaEventCreate(&event));
    for (int i = 0; i < 3; i++) /* loads modules, fills caches, raises clocks */
        launch(session.stream);
    CUDA_TRY(cudaEventRecord(events[0], session.stream));
    for (int i = 0; i < 3; i++)
        launch(session.stream);
    CUDA_TRY(cudaEventRecord(events[1], session.stream));
    CUDA_TRY(cudaStreamSynchronize(session.stream));
    double one_s = std::max(between_s(events[0], events[1]) / 3, 1e-7);
    int group = (int)std::min(std::max(SAMPLE_S / one_s, 1.0), (double)GROUP_MAX);
    int n =
        (int)std::min(std::max(CASE_S / (one_s * group), (double)SAMPLES_MIN), (double)SAMPLES_MAX);
    launch(session.stream); /* the first of a queue meets an idle GPU */
    CUDA_TRY(cudaEventRecord(events[0], session.stream));
    for (int i = 0; i < n; i++) {
        for (int call = 0; call < group; call++)
            launch(session.stream);
        CUDA_TRY(cudaEventRecord(events[i + 1], session.stream));
    }
    CUDA_TRY(cudaStreamSynchronize(session.stream));
    measure_samples samples;
    for (int i = 0; i < n; i++)
        samples.push_back(between_s(events[i], events[i + 1]) / group);
    for (cudaEvent_t event : events)
        CUDA_TRY(cudaEventDestroy(event));
    return samples;
}

/* Writing the flush buffer takes longer than launching, so the host is ahead when the kernel's turn
 * comes. */
static measure_samples time_cold(measure_session &session, const measure_launch &launch)
{
    cudaEvent_t first, last;
    measure_samples samples;
    CUDA_TRY(cudaEventCreate(&first));
    CUDA_TRY(cudaEventCreate(&last));
    for (int i = 0; i < 2 * SAMPLES_MIN; i++) {
        CUDA_TRY(cudaMemsetAsync(session.flush, i, L2_MAX_BYTES, session.stream));
        CUDA_TRY(cudaEventRecord(first, session.stream));
        launch(session.stream);
        CUDA_TRY(cudaEventRecord(last, session.stream));
        CUDA_TRY(cudaStreamSynchronize(session.stream));
        samples.push_back(between_s(first, last));
    }
    CUDA_TRY(cudaEventDestroy(first));
    CUDA_TRY(cudaEventDestroy(last));
    return samples;
}

void measure_by(measure_session &session, const measure_case &what,
    const std::function<measure_samples(measure_session &)> &times)
{
    measure_samples samples;
    if (!session.dry_run) {
        session.used_bytes = 0;
        session.overflow = false;
        samples = times(session);
        CUDA_TRY(cudaGetLastError());
        if (samples.empty() || session.overflow) {
            fprintf(stderr, "flopcast_measure: %s %s %s m=%lld n=%lld k=%lld: left out, %s\n",
                what.category, what.kernel, what.dtype ? what.dtype : "", what.m, what.n, what.k,
                session.overflow ? "the workspace is too small" : "not possible here");
            return;
        }
    }
    measure_row(session, what, samples);
}

void measure_kernel(
    measure_session &session, const measure_case &what, const measure_prepare &prepare)
{
    for (const char *cache : {"warm", "cold"}) {
        bool cold = strcmp(cache, "cold") == 0;
        if (cold && what.bytes > (double)L2_MAX_BYTES)
            return; /* the kernel itself empties L2 */
        measure_case which = what;
        which.cache = cache;
        measure_by(session, which, [&](measure_session &s) {
            measure_launch launch = prepare(s);
            if (!launch || s.overflow)
                return measure_samples();
            return cold ? time_cold(s, launch) : measure_warm(s, launch);
        });
    }
}

void measure_bytes(
    measure_session &session, measure_case what, const std::function<double()> &bytes)
{
    if (!session.dry_run)
        what.bytes = bytes();
    measure_row(session, what, measure_samples());
}
