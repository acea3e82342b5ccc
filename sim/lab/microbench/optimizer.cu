/* Steps in fp32: AdamW's as one kernel (fused=True) and as the passes of _foreach operations
 * (foreach=True); SGD's with and without momentum and Lion's (arXiv 2302.06675) as one kernel. */
#include "microbench/stream.cuh"

namespace {

/* Decay 0.01, betas 0.9 and 0.999, rate 1e-4. n counts float4. */
__global__ void adamw(float *p, const float *g, float *m, float *v, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        float weight[4], slope[4], first[4], second[4];
        load(weight, p, i);
        load(slope, g, i);
        load(first, m, i);
        load(second, v, i);
#pragma unroll
        for (int u = 0; u < 4; u++) {
            first[u] = 0.9f * first[u] + 0.1f * slope[u];
            second[u] = 0.999f * second[u] + 0.001f * slope[u] * slope[u];
            weight[u] = weight[u] * (1.0f - 1e-6f) - 1e-4f * first[u] / (sqrtf(second[u]) + 1e-8f);
        }
        store(m, i, first);
        store(v, i, second);
        store(p, i, weight);
    }
}

/* One moment at most. */
enum simple { SGD, SGD_MOMENTUM, LION };
const struct {
    const char *name;
    int tensors; /* p and g read, p written; a moment read and written */
} simples[] = {{"sgd fused", 3}, {"sgd_momentum fused", 5}, {"lion fused", 5}};

template <simple KIND> __global__ void simple_step(float *p, const float *g, float *m, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        float weight[4], slope[4], moment[4];
        load(weight, p, i);
        load(slope, g, i);
        if (KIND != SGD)
            load(moment, m, i);
#pragma unroll
        for (int u = 0; u < 4; u++) {
            float way = slope[u];
            if (KIND == SGD_MOMENTUM)
                way = moment[u] = 0.9f * moment[u] + slope[u];
            if (KIND == LION) {
                way = copysignf(1.0f, 0.9f * moment[u] + 0.1f * slope[u]);
                moment[u] = 0.99f * moment[u] + 0.01f * slope[u];
            }
            weight[u] = weight[u] * (1.0f - 1e-6f) - 1e-4f * way;
        }
        if (KIND != SGD)
            store(m, i, moment);
        store(p, i, weight);
    }
}

template <simple KIND> void one_simple(measure_session &session, size_t n)
{
    measure_case what = stream_case("optimizer", simples[KIND].name, FP32, 0, (long long)n,
        (double)n * 4 * simples[KIND].tensors);
    measure_kernel(session, what, [=](measure_session &s) {
        auto p = (float *)measure_random(s, FP32, n), g = (float *)measure_random(s, FP32, n);
        auto m = (float *)measure_random(s, FP32, n);
        int blocks = blocks_for<float>(s, n);
        return
            [=](cudaStream_t on) { simple_step<KIND><<<blocks, THREADS, 0, on>>>(p, g, m, n / 4); };
    });
}

/* x = f(x), f(x, y) or f(x, y, z). */
enum pass { MUL, SQRT, LERP, ADDCMUL, ADDCDIV };
const struct {
    const char *name;
    int tensors; /* read and written */
} passes[] = {{"foreach mul", 2}, {"foreach sqrt", 2}, {"foreach lerp", 3}, {"foreach addcmul", 4},
    {"foreach addcdiv", 4}};

template <pass PASS>
__global__ void foreach_pass(float *to, const float *y, const float *z, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        float x[4], a[4], b[4];
        load(x, to, i);
        if (PASS >= LERP)
            load(a, y, i);
        if (PASS >= ADDCMUL)
            load(b, z, i);
#pragma unroll
        for (int u = 0; u < 4; u++)
            x[u] = PASS == MUL       ? x[u] * 0.999f
                   : PASS == SQRT    ? sqrtf(fabsf(x[u]))
                   : PASS == LERP    ? x[u] + 0.1f * (a[u] - x[u])
                   : PASS == ADDCMUL ? x[u] + 0.001f * a[u] * b[u]
                                     : x[u] - 1e-4f * a[u] / (fabsf(b[u]) + 1e-8f);
        store(to, i, x);
    }
}

template <pass PASS> void one_pass(measure_session &session, size_t n)
{
    measure_case what = stream_case("optimizer", passes[PASS].name, FP32, 0, (long long)n,
        (double)n * 4 * passes[PASS].tensors);
    measure_kernel(session, what, [=](measure_session &s) {
        auto x = (float *)measure_random(s, FP32, n), y = (float *)measure_random(s, FP32, n);
        auto z = (float *)measure_random(s, FP32, n);
        int blocks = blocks_for<float>(s, n);
        return [=](cudaStream_t on) {
            foreach_pass<PASS><<<blocks, THREADS, 0, on>>>(x, y, z, n / 4);
        };
    });
}

/* Reads p, g, m, v and writes p, m, v. */
void fused(measure_session &session, size_t n)
{
    measure_kernel(session,
        stream_case("optimizer", "adamw fused", FP32, 0, (long long)n, (double)n * 4 * 7),
        [=](measure_session &s) {
            auto p = (float *)measure_random(s, FP32, n), g = (float *)measure_random(s, FP32, n);
            auto m = (float *)measure_random(s, FP32, n),
                 v = (float *)measure_take(s, n * sizeof(float));
            int blocks = blocks_for<float>(s, n);
            if (!s.overflow)
                CUDA_TRY(cudaMemsetAsync(
                    v, 0, n * sizeof *v, s.stream)); /* a second moment is not negative */
            return [=](cudaStream_t on) { adamw<<<blocks, THREADS, 0, on>>>(p, g, m, v, n / 4); };
        });
}

} // namespace

void measure_optimizer(measure_session &session)
{
    for (size_t n : {1 << 20, 16 << 20, 256 << 20}) {
        fused(session, n);
        one_simple<SGD>(session, n);
        one_simple<SGD_MOMENTUM>(session, n);
        one_simple<LION>(session, n);
        one_pass<MUL>(session, n);
        one_pass<SQRT>(session, n);
        one_pass<LERP>(session, n);
        one_pass<ADDCMUL>(session, n);
        one_pass<ADDCDIV>(session, n);
    }
}
