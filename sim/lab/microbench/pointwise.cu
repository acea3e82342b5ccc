/* Kernels that move bytes: the passes of naive attention, norms, elementwise, embedding,
 * cross-entropy. Each moves data as eager PyTorch's kernel does (one pass over HBM, 16 bytes a
 * thread, one block a row where a row is reduced). bytes are those that must pass HBM, every tensor
 * read or written once: a row that is read again comes from L1 or L2. Flash attention is not here:
 * a short kernel would measure itself. */
#include "microbench/stream.cuh"

#include <algorithm>

namespace {

enum op { ADD, SCALED, MASK, GELU, DROPOUT, CAST };

/* A cheap hash in place of Philox: dropout's cost is its traffic. */
__device__ bool kept(size_t i)
{
    return ((unsigned)i * 2654435761u >> 24) >= 26; /* 26 of 256: a tenth is dropped */
}

/* out from a and, for ADD and MASK, b (which repeats after `period`); DROPOUT also writes its mask
 * of bytes. n and period count packs. */
template <op OP, class T>
__global__ void pointwise(
    T *out, const T *a, const T *b, unsigned char *mask, size_t n, size_t period)
{
    constexpr int W = WIDTH<T>;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        float x[W], other[W], keep[W];
        load(x, a, i);
        if (OP == ADD || OP == MASK)
            load(other, b, OP == MASK ? i % period : i);
#pragma unroll
        for (int u = 0; u < W; u++) {
            if (OP == ADD || OP == MASK)
                x[u] += other[u];
            if (OP == SCALED)
                x[u] *= 0.125f;
            if (OP == GELU)
                x[u] *= 0.5f * (1.0f + erff(x[u] * 0.70710678f)); /* 1 / sqrt(2) */
            if (OP == DROPOUT) {
                keep[u] = kept(i * W + u);
                x[u] *= keep[u] * (1.0f / 0.9f);
            }
        }
        if (OP == DROPOUT)
            store(mask, i, keep);
        if (OP == CAST)
            store((bf16 *)out, i, x);
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
    for (int i = 1; i < (int)blockDim.x / 32; i++)
        x = R == SUM ? x + partial[i] : fmaxf(x, partial[i]);
    return x;
}

const float LOWEST = -3.0e38f; /* below every value in the data */

/* The greatest of the first `limit` elements of a row, and the sum of exponentials over it. */
template <class T>
__device__ void row_sums(const T *row, int limit, float scale, float *top, float *sum)
{
    constexpr int W = WIDTH<T>;
    float x[W], most = LOWEST, total = 0;
    for (int i = (int)threadIdx.x; i * W < limit; i += (int)blockDim.x) {
        load(x, row, (size_t)i);
        for (int u = 0; u < W; u++)
            most = fmaxf(most, i * W + u < limit ? x[u] * scale : LOWEST);
    }
    most = of_block<MAX>(most);
    for (int i = (int)threadIdx.x; i * W < limit; i += (int)blockDim.x) {
        load(x, row, (size_t)i);
        for (int u = 0; u < W; u++)
            total += i * W + u < limit ? __expf(x[u] * scale - most) : 0.0f;
    }
    *top = most;
    *sum = of_block<SUM>(total);
}

/* FUSED: scale, causal mask and dropout in the same pass, as Megatron's fused softmax. */
template <bool FUSED, class T>
__global__ void softmax(T *out, const T *in, unsigned char *mask, int n)
{
    constexpr int W = WIDTH<T>;
    const size_t at = (size_t)blockIdx.x * (size_t)n;
    const int limit = FUSED ? (int)(blockIdx.x % (unsigned)n) + 1 : n;
    const float scale = FUSED ? 0.125f : 1.0f;
    float x[W], keep[W], top, sum;
    row_sums(in + at, limit, scale, &top, &sum);
    for (int i = (int)threadIdx.x; i * W < n; i += (int)blockDim.x) {
        load(x, in + at, (size_t)i);
        for (int u = 0; u < W; u++) {
            x[u] = i * W + u < limit ? __expf(x[u] * scale - top) / sum : 0.0f;
            if (FUSED) {
                keep[u] = kept(at + (size_t)(i * W + u));
                x[u] *= keep[u] * (1.0f / 0.9f);
            }
        }
        if (FUSED)
            store(mask + at, (size_t)i, keep);
        store(out + at, (size_t)i, x);
    }
}

/* Layer norm (CENTRED) and RMS norm, with weight. */
template <bool CENTRED, class T> __global__ void norm(T *out, const T *in, const T *weight, int n)
{
    constexpr int W = WIDTH<T>;
    const size_t at = (size_t)blockIdx.x * (size_t)n;
    float x[W], w[W], sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i * W < n; i += (int)blockDim.x) {
        load(x, in + at, (size_t)i);
        for (int u = 0; u < W; u++) {
            sum += x[u];
            squares += x[u] * x[u];
        }
    }
    const float mean = CENTRED ? of_block<SUM>(sum) / (float)n : 0.0f;
    const float inverse = rsqrtf(of_block<SUM>(squares) / (float)n - mean * mean + 1e-5f);
    for (int i = (int)threadIdx.x; i * W < n; i += (int)blockDim.x) {
        load(x, in + at, (size_t)i);
        load(w, weight, (size_t)i);
        for (int u = 0; u < W; u++)
            x[u] = (x[u] - mean) * inverse * w[u];
        store(out + at, (size_t)i, x);
    }
}

template <class T> __global__ void embedding(T *out, const T *table, const int *tokens, int n)
{
    float x[WIDTH<T>];
    for (int i = (int)threadIdx.x; i * WIDTH<T> < n; i += (int)blockDim.x) {
        load(x, table + (size_t)tokens[blockIdx.x] * (size_t)n, (size_t)i);
        store(out + (size_t)blockIdx.x * (size_t)n, (size_t)i, x);
    }
}

/* Loss of a row of logits and its gradient: softmax, less one at the label. */
template <class T>
__global__ void cross_entropy(float *loss, T *gradient, const T *logits, const int *labels, int n)
{
    constexpr int W = WIDTH<T>;
    const size_t at = (size_t)blockIdx.x * (size_t)n;
    const int label = labels[blockIdx.x];
    float x[W], top, sum;
    row_sums(logits + at, n, 1.0f, &top, &sum);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = logf(sum) + top - (float)logits[at + (size_t)label];
    for (int i = (int)threadIdx.x; i * W < n; i += (int)blockDim.x) {
        load(x, logits + at, (size_t)i);
        for (int u = 0; u < W; u++)
            x[u] = __expf(x[u] - top) / sum - (i * W + u == label ? 1.0f : 0.0f);
        store(gradient + at, (size_t)i, x);
    }
}

/* Threads of the block of a row: whole warps, no more than the row has packs for. */
template <class T> int row_threads(long long n)
{
    long long packs = n / WIDTH<T>;
    return (int)std::min<long long>(THREADS, (packs + 31) / 32 * 32);
}

template <class T> const number number_of = BF16;
template <> const number number_of<float> = FP32;

template <op OP, class T>
void one_pointwise(
    measure_session &session, const char *category, const char *kernel, long long m, long long n)
{
    double each = (double)(m * n), bytes = 2 * each * sizeof(T);
    size_t count = (size_t)(m * n), period = OP == MASK ? (size_t)(n * n) : count;
    if (OP == ADD || OP == MASK)
        bytes += (double)period * sizeof(T);
    if (OP == DROPOUT)
        bytes += each;
    if (OP == CAST)
        bytes = each * (sizeof(T) + sizeof(bf16));
    measure_kernel(
        session, stream_case(category, kernel, number_of<T>, m, n, bytes), [=](measure_session &s) {
            T *a = (T *)measure_random(s, number_of<T>, count),
              *out = (T *)measure_take(s, count * sizeof(T));
            T *b = OP == ADD || OP == MASK ? (T *)measure_random(s, number_of<T>, period) : NULL;
            auto mask = OP == DROPOUT ? (unsigned char *)measure_take(s, count) : NULL;
            int blocks = blocks_for<T>(s, count);
            return [=](cudaStream_t on) {
                pointwise<OP, T><<<blocks, THREADS, 0, on>>>(
                    out, a, b, mask, count / WIDTH<T>, period / WIDTH<T>);
            };
        });
}

template <bool FUSED, class T> void one_softmax(measure_session &session, long long m, long long n)
{
    double bytes = (double)(m * n) * (2 * sizeof(T) + (FUSED ? 1 : 0));
    size_t count = (size_t)(m * n);
    const char *kernel = FUSED ? "fused scale, causal mask, softmax, dropout" : "softmax";
    measure_kernel(session, stream_case("attention", kernel, number_of<T>, m, n, bytes),
        [=](measure_session &s) {
            T *in = (T *)measure_random(s, number_of<T>, count),
              *out = (T *)measure_take(s, count * sizeof(T));
            auto mask = FUSED ? (unsigned char *)measure_take(s, count) : NULL;
            return [=](cudaStream_t on) {
                softmax<FUSED, T><<<(unsigned)m, row_threads<T>(n), 0, on>>>(out, in, mask, (int)n);
            };
        });
}

template <bool CENTRED, class T> void one_norm(measure_session &session, long long m, long long n)
{
    double bytes = 2 * (double)(m * n) * sizeof(T);
    const char *kernel = CENTRED ? "layer norm" : "rms norm";
    measure_kernel(
        session, stream_case("norm", kernel, number_of<T>, m, n, bytes), [=](measure_session &s) {
            T *in = (T *)measure_random(s, number_of<T>, (size_t)(m * n));
            T *weight = (T *)measure_random(s, number_of<T>, (size_t)n);
            T *out = (T *)measure_take(s, (size_t)(m * n) * sizeof(T));
            return [=](cudaStream_t on) {
                norm<CENTRED, T>
                    <<<(unsigned)m, row_threads<T>(n), 0, on>>>(out, in, weight, (int)n);
            };
        });
}

template <class T> void one_embedding(measure_session &session, long long m, long long n, int vocab)
{
    double bytes = (double)(m * n) * 2 * sizeof(T) + (double)m * sizeof(int);
    measure_kernel(session, stream_case("embedding", "embedding", number_of<T>, m, n, bytes),
        [=](measure_session &s) {
            T *table = (T *)measure_random(s, number_of<T>, (size_t)vocab * (size_t)n);
            T *out = (T *)measure_take(s, (size_t)(m * n) * sizeof(T));
            int *tokens = measure_indices(s, (size_t)m, vocab);
            return [=](cudaStream_t on) {
                embedding<T><<<(unsigned)m, row_threads<T>(n), 0, on>>>(out, table, tokens, (int)n);
            };
        });
}

template <class T> void one_loss(measure_session &session, long long m, long long n)
{
    double bytes = 2 * (double)(m * n) * sizeof(T);
    const char *kernel = "cross-entropy, forward and gradient";
    measure_kernel(
        session, stream_case("loss", kernel, number_of<T>, m, n, bytes), [=](measure_session &s) {
            T *logits = (T *)measure_random(s, number_of<T>, (size_t)(m * n));
            T *gradient = (T *)measure_take(s, (size_t)(m * n) * sizeof(T));
            auto loss = (float *)measure_take(s, (size_t)m * sizeof(float));
            int *labels = measure_indices(s, (size_t)m, (int)n);
            return [=](cudaStream_t on) {
                cross_entropy<T><<<(unsigned)m, row_threads<T>(n), 0, on>>>(
                    loss, gradient, logits, labels, (int)n);
            };
        });
}

/* Rows = sequences x heads x queries, of as many keys: the first three attentions of gemm.cu. */
template <class T> void attention_passes(measure_session &session)
{
    const struct {
        long long rows, seq;
    } shapes[] = {{128 * 512, 512}, {1024 * 512, 512}, {128 * 2048, 2048}};
    for (auto shape : shapes) {
        one_pointwise<SCALED, T>(session, "attention", "scale", shape.rows, shape.seq);
        one_pointwise<MASK, T>(session, "attention", "mask, added", shape.rows, shape.seq);
        one_softmax<false, T>(session, shape.rows, shape.seq);
        one_pointwise<DROPOUT, T>(session, "attention", "dropout", shape.rows, shape.seq);
        one_softmax<true, T>(session, shape.rows, shape.seq);
    }
}

const long long TOKENS = 8192; /* of the kernels below: 4 sequences of 2048, 16 of 512 */

template <class T> void norms(measure_session &session)
{
    for (long long width : {1024, 4096, 8192, 16384}) {
        one_norm<true, T>(session, TOKENS, width);
        one_norm<false, T>(session, TOKENS, width);
    }
}

template <class T> void elementwise(measure_session &session)
{
    for (long long width : {1024, 4096, 16384}) {
        one_pointwise<ADD, T>(session, "elementwise", "add", TOKENS, width);
        one_pointwise<GELU, T>(session, "elementwise", "gelu", TOKENS, width);
        one_pointwise<DROPOUT, T>(session, "elementwise", "dropout", TOKENS, width);
    }
}

} // namespace

void measure_attention(measure_session &session)
{
    attention_passes<float>(session);
    attention_passes<bf16>(session);
}

void measure_norm(measure_session &session)
{
    norms<float>(session);
    norms<bf16>(session);
}

void measure_elementwise(measure_session &session)
{
    elementwise<float>(session);
    elementwise<bf16>(session);
    one_pointwise<CAST, float>(session, "elementwise", "cast to bf16", TOKENS, 16384);
}

void measure_embedding(measure_session &session)
{
    one_embedding<float>(session, TOKENS, 1024, 32128); /* T5's vocabulary */
    one_embedding<bf16>(session, TOKENS, 1024, 32128);
    one_embedding<bf16>(session, TOKENS, 4096, 128256); /* Llama 3's */
}

void measure_loss(measure_session &session)
{
    for (long long vocab : {32128, 128256}) {
        one_loss<float>(session, TOKENS / 2, vocab);
        one_loss<bf16>(session, TOKENS / 2, vocab);
    }
}
