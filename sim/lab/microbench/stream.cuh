/* Private to pointwise.cu and optimizer.cu: loads and stores of 16 bytes, as PyTorch's vectorised
 * kernels make them; narrower ones would leave bandwidth unused and measure themselves. Elements
 * are float or bf16, computed in float; counts are multiples of WIDTH. */
#ifndef FLOPCAST_MICROBENCH_STREAM_CUH
#define FLOPCAST_MICROBENCH_STREAM_CUH

#include "microbench/microbench.h"

#include <cuda_bf16.h>

namespace {

typedef __nv_bfloat16 bf16;
const int THREADS = 256;

template <class T> constexpr int WIDTH = 16 / (int)sizeof(T); /* elements in 16 bytes */
template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];
};

/* The i-th WIDTH elements. */
template <class T> __device__ void load(float (&x)[WIDTH<T>], const T *p, size_t i)
{
    const auto v = reinterpret_cast<const pack<T, WIDTH<T>> *>(p)[i];
#pragma unroll
    for (int u = 0; u < WIDTH<T>; u++)
        x[u] = (float)v.at[u];
}

template <class T, int N> __device__ void store(T *p, size_t i, const float (&x)[N])
{
    pack<T, N> v;
#pragma unroll
    for (int u = 0; u < N; u++)
        v.at[u] = (T)x[u];
    reinterpret_cast<pack<T, N> *>(p)[i] = v;
}

/* Blocks for count elements, each thread WIDTH of them at a time: at most 4 waves of 8 blocks an
 * SM. */
template <class T> int blocks_for(const measure_session &s, size_t count)
{
    size_t each = THREADS * WIDTH<T>, wanted = (count + each - 1) / each, most = (size_t)s.sms * 32;
    return (int)(wanted < most ? wanted : most);
}

measure_case stream_case(
    const char *category, const char *kernel, number dtype, long long m, long long n, double bytes)
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

} // namespace

#endif
