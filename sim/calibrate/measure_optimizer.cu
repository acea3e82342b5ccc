/* AdamW's step in fp32: one kernel (fused=True), and the passes of _foreach operations (foreach=True). */
#include "calibrate/measure_stream.cuh"

namespace {

/* Decay 0.01, betas 0.9 and 0.999, rate 1e-4. n counts float4. */
__global__ void adamw(float *p, const float *g, float *m, float *v, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
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

/* x = f(x), f(x, y) or f(x, y, z). */
enum pass { MUL, SQRT, LERP, ADDCMUL, ADDCDIV };
const struct {
    const char *name;
    int tensors; /* read and written */
} passes[] = {
    {"foreach mul", 2}, {"foreach sqrt", 2}, {"foreach lerp", 3}, {"foreach addcmul", 4}, {"foreach addcdiv", 4}};

template <pass PASS> __global__ void foreach_pass(float *to, const float *y, const float *z, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
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
    measure_case what =
        stream_case("optimizer", passes[PASS].name, FP32, 0, (long long)n, (double)n * 4 * passes[PASS].tensors);
    measure_kernel(session, what, [=](measure_session &s) {
        auto x = (float *)measure_random(s, FP32, n), y = (float *)measure_random(s, FP32, n);
        auto z = (float *)measure_random(s, FP32, n);
        int blocks = blocks_for<float>(s, n);
        return [=](cudaStream_t on) { foreach_pass<PASS><<<blocks, THREADS, 0, on>>>(x, y, z, n / 4); };
    });
}

/* Reads p, g, m, v and writes p, m, v. */
void fused(measure_session &session, size_t n)
{
    measure_kernel(session, stream_case("optimizer", "adamw fused", FP32, 0, (long long)n, (double)n * 4 * 7),
        [=](measure_session &s) {
            auto p = (float *)measure_random(s, FP32, n), g = (float *)measure_random(s, FP32, n);
            auto m = (float *)measure_random(s, FP32, n), v = (float *)measure_take(s, n * sizeof(float));
            int blocks = blocks_for<float>(s, n);
            if (!s.overflow)
                CUDA_TRY(cudaMemsetAsync(v, 0, n * sizeof *v, s.stream)); /* a second moment is not negative */
            return [=](cudaStream_t on) { adamw<<<blocks, THREADS, 0, on>>>(p, g, m, v, n / 4); };
        });
}

} // namespace

void measure_optimizer(measure_session &session)
{
    for (size_t n : {1 << 20, 16 << 20, 256 << 20}) {
        fused(session, n);
        one_pass<MUL>(session, n);
        one_pass<SQRT>(session, n);
        one_pass<LERP>(session, n);
        one_pass<ADDCMUL>(session, n);
        one_pass<ADDCDIV>(session, n);
    }
}
