/* Kernels that move bytes: the passes of naive attention, norms, elementwise, embedding, cross-entropy, AdamW. Each is
 * written as eager PyTorch's kernel moves data (one pass over HBM, one block a row where a row is reduced), so that its
 * bandwidth, not its cleverness, is measured. bytes are those that must pass HBM: every tensor read or written once, so
 * a row that is read again from L2 counts once. Flash attention is not here: a short kernel would measure itself. */
#include "calibrate/measure.h"

#include <cuda_bf16.h>

namespace {

typedef __nv_bfloat16 bf16;
const int THREADS = 256;

__device__ float load(const float *p, size_t i)
{
    return p[i];
}
__device__ float load(const bf16 *p, size_t i)
{
    return __bfloat162float(p[i]);
}
__device__ void store(float *p, size_t i, float x)
{
    p[i] = x;
}
__device__ void store(bf16 *p, size_t i, float x)
{
    p[i] = __float2bfloat16(x);
}

enum op { ADD, SCALE, MASK, GELU, DROPOUT, CAST };

/* A cheap hash in place of Philox: dropout's cost is its traffic. */
__device__ bool kept(size_t i)
{
    return ((unsigned)i * 2654435761u >> 24) >= 26; /* 26 of 256: a tenth is dropped */
}

/* out[i] from a[i] and, for ADD and MASK, b[i] or b[i mod period]; DROPOUT also writes its mask of bytes. */
template <op OP, class T>
__global__ void pointwise(T *out, const T *a, const T *b, unsigned char *mask, size_t n, size_t period)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float x = load(a, i);
        if (OP == ADD)
            x += load(b, i);
        if (OP == SCALE)
            x *= 0.125f;
        if (OP == MASK)
            x += load(b, i % period);
        if (OP == GELU)
            x *= 0.5f * (1.0f + erff(x * 0.70710678f)); /* 1 / sqrt(2) */
        if (OP == DROPOUT) {
            bool keep = kept(i);
            mask[i] = keep;
            x = keep ? x * (1.0f / 0.9f) : 0.0f;
        }
        if (OP == CAST)
            ((bf16 *)out)[i] = __float2bfloat16(x);
        else
            store(out, i, x);
    }
}

enum reduction { SUM, MAX };

template <reduction R> __device__ float of_block(float x)
{
    __shared__ float partial[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, x, step);
        x = R == SUM ? x + other : fmaxf(x, other);
    }
    __syncthreads(); /* the result before this one has been read */
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = x;
    __syncthreads();
    x = partial[0];
    for (int i = 1; i < THREADS / 32; i++)
        x = R == SUM ? x + partial[i] : fmaxf(x, partial[i]);
    return x;
}

/* A block a row. FUSED: scale, causal mask and dropout in the same pass, as Megatron's and Apex's fused softmax. */
template <bool FUSED, class T> __global__ void softmax(T *out, const T *in, unsigned char *mask, int n, int seq)
{
    const size_t row = blockIdx.x, at = row * (size_t)n;
    const int limit = FUSED ? (int)(row % (size_t)seq) + 1 : n;
    const float scale = FUSED ? 0.125f : 1.0f;
    float top = -3.0e38f, sum = 0;
    for (int i = (int)threadIdx.x; i < limit; i += THREADS)
        top = fmaxf(top, load(in, at + i) * scale);
    top = of_block<MAX>(top);
    for (int i = (int)threadIdx.x; i < limit; i += THREADS)
        sum += __expf(load(in, at + i) * scale - top);
    sum = of_block<SUM>(sum);
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        float x = i < limit ? __expf(load(in, at + i) * scale - top) / sum : 0.0f;
        if (FUSED) {
            bool keep = kept(at + i);
            mask[at + i] = keep;
            x = keep ? x * (1.0f / 0.9f) : 0.0f;
        }
        store(out, at + i, x);
    }
}

/* Layer norm (CENTRED) and RMS norm, with weight. */
template <bool CENTRED, class T> __global__ void norm(T *out, const T *in, const T *weight, int n)
{
    const size_t at = (size_t)blockIdx.x * (size_t)n;
    float sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        float x = load(in, at + i);
        sum += x;
        squares += x * x;
    }
    float mean = CENTRED ? of_block<SUM>(sum) / (float)n : 0.0f;
    float inverse = rsqrtf(of_block<SUM>(squares) / (float)n - mean * mean + 1e-5f);
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        store(out, at + i, (load(in, at + i) - mean) * inverse * load(weight, (size_t)i));
}

template <class T> __global__ void embedding(T *out, const T *table, const int *tokens, int width)
{
    for (int i = (int)threadIdx.x; i < width; i += THREADS)
        out[(size_t)blockIdx.x * (size_t)width + i] = table[(size_t)tokens[blockIdx.x] * (size_t)width + i];
}

/* Loss of a row of logits and, in place of them, its gradient (softmax less one at the label). */
template <class T> __global__ void cross_entropy(float *loss, T *gradient, const T *logits, const int *labels, int n)
{
    const size_t at = (size_t)blockIdx.x * (size_t)n;
    float top = -3.0e38f, sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        top = fmaxf(top, load(logits, at + i));
    top = of_block<MAX>(top);
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        sum += __expf(load(logits, at + i) - top);
    sum = of_block<SUM>(sum);
    const int label = labels[blockIdx.x];
    if (threadIdx.x == 0)
        loss[blockIdx.x] = logf(sum) + top - load(logits, at + label);
    for (int i = (int)threadIdx.x; i < n; i += THREADS)
        store(gradient, at + i, __expf(load(logits, at + i) - top) / sum - (i == label ? 1.0f : 0.0f));
}

/* AdamW with decay 0.01, betas 0.9 and 0.999, rate 1e-4, as one kernel (fused=True). */
__global__ void adamw(float *p, const float *g, float *m, float *v, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float slope = g[i], first = 0.9f * m[i] + 0.1f * slope, second = 0.999f * v[i] + 0.001f * slope * slope;
        m[i] = first;
        v[i] = second;
        p[i] = p[i] * (1.0f - 1e-6f) - 1e-4f * first / (sqrtf(second) + 1e-8f);
    }
}

/* x = f(x, y, z): a pass of PyTorch's _foreach operations, which make AdamW's step of foreach=True. */
enum pass { MUL, LERP, ADDCMUL, SQRT, ADDCDIV };
template <pass PASS> __global__ void foreach_pass(float *x, const float *y, const float *z, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x[i] = PASS == MUL       ? x[i] * 0.999f
               : PASS == LERP    ? x[i] + 0.1f * (y[i] - x[i])
               : PASS == ADDCMUL ? x[i] + 0.001f * y[i] * z[i]
               : PASS == SQRT    ? sqrtf(fabsf(y[i]))
                                 : x[i] - 1e-4f * y[i] / (z[i] + 1e-8f);
}

int blocks_for(const measure_session &s, size_t n)
{
    size_t wanted = (n + THREADS - 1) / THREADS, most = (size_t)s.sms * 32; /* 4 waves of 8 blocks an SM */
    return (int)(wanted < most ? wanted : most);
}

template <class T> number number_of(void);
template <> number number_of<float>(void)
{
    return FP32;
}
template <> number number_of<bf16>(void)
{
    return BF16;
}

measure_case stream_case(const char *category, const char *kernel, number dtype, long long m, long long n, double bytes)
{
    measure_case what = {};
    what.category = category;
    what.kernel = kernel;
    what.dtype = number_names[dtype];
    what.m = m;
    what.n = n;
    what.bytes = bytes;
    return what;
}

/* tensors: read and written, of T; with b, mask and the cast's result counted by their own size. */
template <op OP, class T>
void one_pointwise(measure_session &session, const char *category, const char *kernel, long long m, long long n)
{
    double each = (double)(m * n), bytes = 2 * each * sizeof(T);
    size_t count = (size_t)(m * n), period = OP == MASK ? (size_t)(n * n) : count;
    if (OP == ADD || OP == MASK)
        bytes += (double)period * sizeof(T);
    if (OP == DROPOUT)
        bytes += each;
    if (OP == CAST)
        bytes = each * (sizeof(T) + sizeof(bf16));
    measure_kernel(session, stream_case(category, kernel, number_of<T>(), m, n, bytes), [=](measure_session &s) {
        T *a = (T *)measure_random(s, number_of<T>(), count), *out = (T *)measure_take(s, count * sizeof(T));
        T *b = OP == ADD || OP == MASK ? (T *)measure_random(s, number_of<T>(), period) : NULL;
        auto mask = OP == DROPOUT ? (unsigned char *)measure_take(s, count) : NULL;
        int blocks = blocks_for(s, count);
        return [=](cudaStream_t on) { pointwise<OP, T><<<blocks, THREADS, 0, on>>>(out, a, b, mask, count, period); };
    });
}

template <bool FUSED, class T> void one_softmax(measure_session &session, long long m, long long n)
{
    double bytes = (double)(m * n) * (2 * sizeof(T) + (FUSED ? 1 : 0));
    size_t count = (size_t)(m * n);
    const char *kernel = FUSED ? "fused scale, causal mask, softmax, dropout" : "softmax";
    measure_kernel(session, stream_case("attention", kernel, number_of<T>(), m, n, bytes), [=](measure_session &s) {
        T *in = (T *)measure_random(s, number_of<T>(), count), *out = (T *)measure_take(s, count * sizeof(T));
        auto mask = FUSED ? (unsigned char *)measure_take(s, count) : NULL;
        return [=](cudaStream_t on) { softmax<FUSED, T><<<(int)m, THREADS, 0, on>>>(out, in, mask, (int)n, (int)n); };
    });
}

template <bool CENTRED, class T> void one_norm(measure_session &session, long long m, long long n)
{
    double bytes = 2 * (double)(m * n) * sizeof(T);
    const char *kernel = CENTRED ? "layer norm" : "rms norm";
    measure_kernel(session, stream_case("norm", kernel, number_of<T>(), m, n, bytes), [=](measure_session &s) {
        T *in = (T *)measure_random(s, number_of<T>(), (size_t)(m * n));
        T *weight = (T *)measure_random(s, number_of<T>(), (size_t)n),
          *out = (T *)measure_take(s, (size_t)(m * n) * sizeof(T));
        return [=](cudaStream_t on) { norm<CENTRED, T><<<(int)m, THREADS, 0, on>>>(out, in, weight, (int)n); };
    });
}

template <class T> void one_embedding(measure_session &session, long long m, long long n, int vocab)
{
    double bytes = (double)(m * n) * 2 * sizeof(T) + (double)m * sizeof(int);
    measure_kernel(
        session, stream_case("embedding", "embedding", number_of<T>(), m, n, bytes), [=](measure_session &s) {
            T *table = (T *)measure_random(s, number_of<T>(), (size_t)vocab * (size_t)n);
            T *out = (T *)measure_take(s, (size_t)(m * n) * sizeof(T));
            int *tokens = measure_indices(s, (size_t)m, vocab);
            return [=](cudaStream_t on) { embedding<T><<<(int)m, THREADS, 0, on>>>(out, table, tokens, (int)n); };
        });
}

template <class T> void one_loss(measure_session &session, long long m, long long vocab)
{
    double bytes = 2 * (double)(m * vocab) * sizeof(T);
    measure_kernel(session, stream_case("loss", "cross-entropy, forward and gradient", number_of<T>(), m, vocab, bytes),
        [=](measure_session &s) {
            T *logits = (T *)measure_random(s, number_of<T>(), (size_t)(m * vocab));
            T *gradient = (T *)measure_take(s, (size_t)(m * vocab) * sizeof(T));
            auto loss = (float *)measure_take(s, (size_t)m * sizeof(float));
            int *labels = measure_indices(s, (size_t)m, (int)vocab);
            return [=](cudaStream_t on) {
                cross_entropy<T><<<(int)m, THREADS, 0, on>>>(loss, gradient, logits, labels, (int)vocab);
            };
        });
}

template <class T> void attention_passes(measure_session &session)
{
    /* rows = sequences x heads x queries, of as many keys: the shapes of measure_gemm.cu's attention. */
    const struct {
        long long rows, seq;
    } shapes[] = {{128 * 512, 512}, {1024 * 512, 512}, {128 * 2048, 2048}};
    for (auto shape : shapes) {
        one_pointwise<SCALE, T>(session, "attention", "scale", shape.rows, shape.seq);
        one_pointwise<MASK, T>(session, "attention", "mask, added", shape.rows, shape.seq);
        one_softmax<false, T>(session, shape.rows, shape.seq);
        one_pointwise<DROPOUT, T>(session, "attention", "dropout", shape.rows, shape.seq);
        one_softmax<true, T>(session, shape.rows, shape.seq);
    }
}

template <pass PASS> void one_pass(measure_session &session, const char *kernel, int tensors, size_t n)
{
    measure_kernel(session, stream_case("optimizer", kernel, FP32, 0, (long long)n, (double)n * 4 * tensors),
        [=](measure_session &s) {
            auto x = (float *)measure_random(s, FP32, n), y = (float *)measure_random(s, FP32, n);
            auto z = (float *)measure_random(s, FP32, n);
            int blocks = blocks_for(s, n);
            return [=](cudaStream_t on) { foreach_pass<PASS><<<blocks, THREADS, 0, on>>>(x, y, z, n); };
        });
}

} // namespace

void measure_attention(measure_session &session)
{
    attention_passes<float>(session);
    attention_passes<bf16>(session);
}

template <class T> static void norms(measure_session &session)
{
    for (long long width : {1024, 4096, 8192, 16384}) { /* 8192 tokens */
        one_norm<true, T>(session, 8192, width);
        one_norm<false, T>(session, 8192, width);
    }
}

void measure_norm(measure_session &session)
{
    norms<float>(session);
    norms<bf16>(session);
}

template <class T> static void elementwise(measure_session &session)
{
    for (long long width : {1024, 4096, 16384}) {
        one_pointwise<ADD, T>(session, "elementwise", "add", 8192, width);
        one_pointwise<GELU, T>(session, "elementwise", "gelu", 8192, width);
        one_pointwise<DROPOUT, T>(session, "elementwise", "dropout", 8192, width);
    }
}

void measure_elementwise(measure_session &session)
{
    elementwise<float>(session);
    elementwise<bf16>(session);
    one_pointwise<CAST, float>(session, "elementwise", "cast to bf16", 8192, 16384);
}

void measure_embedding(measure_session &session)
{
    one_embedding<float>(session, 8192, 1024, 32128); /* T5's vocabulary */
    one_embedding<bf16>(session, 8192, 1024, 32128);
    one_embedding<bf16>(session, 8192, 4096, 128256); /* Llama 3's */
}

void measure_loss(measure_session &session)
{
    for (long long vocab : {32128, 128256}) {
        one_loss<float>(session, 4096, vocab);
        one_loss<bf16>(session, 4096, vocab);
    }
}

/* Tensors read and written by each pass: x = f(x) 2, f(x, y) 3, f(x, y, z) 4; the fused step reads p, g, m, v and
 * writes p, m, v. */
void measure_optimizer(measure_session &session)
{
    for (size_t n : {1 << 20, 16 << 20, 256 << 20}) {
        measure_kernel(session, stream_case("optimizer", "adamw fused", FP32, 0, (long long)n, (double)n * 4 * 7),
            [=](measure_session &s) {
                auto p = (float *)measure_random(s, FP32, n), g = (float *)measure_random(s, FP32, n);
                auto m = (float *)measure_random(s, FP32, n), v = (float *)measure_random(s, FP32, n);
                int blocks = blocks_for(s, n);
                if (!s.overflow)
                    CUDA_TRY(cudaMemsetAsync(v, 0, n * sizeof *v, s.stream)); /* a second moment is not negative */
                return [=](cudaStream_t on) { adamw<<<blocks, THREADS, 0, on>>>(p, g, m, v, n); };
            });
        one_pass<MUL>(session, "foreach mul", 2, n);
        one_pass<LERP>(session, "foreach lerp", 3, n);
        one_pass<ADDCMUL>(session, "foreach addcmul", 4, n);
        one_pass<SQRT>(session, "foreach sqrt", 2, n);
        one_pass<ADDCDIV>(session, "foreach addcdiv", 4, n);
    }
}
