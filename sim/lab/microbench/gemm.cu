/* Matrix products: the shapes of the project's models, and how fast a GPU multiplies for half a
 * minute. */
#include "microbench/microbench.h"

#include <cublasLt.h>
#include <memory>
#include <string.h>
#include <unistd.h>

namespace {

const size_t LT_WORKSPACE_BYTES =
    32 << 20; /* what NVIDIA's documentation of cublasSetWorkspace advises for Hopper */

/* Weights [n, k] of linear layers of scenarios/models; m is the number of tokens. */
const struct weight {
    const char *layer;
    long long n, k;
} weights[] = {
    {"t5-large ff in", 4096, 1024},
    {"t5-3b ff in", 16384, 1024},
    {"t5-3b ff out", 1024, 16384},
    {"t5-11b q", 16384, 1024},
    {"t5-11b attention out", 1024, 16384},
    {"t5-11b ff in", 65536, 1024},
    {"t5-11b ff out", 1024, 65536},
    {"gpt2 ff in", 3072, 768},
    {"gpt2 head", 50257, 768}, /* rows of an odd number of elements: what alignment takes */
    {"gpt2 head, padded", 50304, 768},
    {"mpt-1b qkv", 6144, 2048},
    {"mpt-7b qkv", 12288, 4096},
    {"mpt-30b ff in", 28672, 7168},
    {"llama2-7b ff in", 11008, 4096},
    {"llama2-7b ff out", 4096, 11008},
    {"llama3.1-8b kv", 1024, 4096},
    {"llama3.1-8b ff in", 14336, 4096},
    {"llama3.1-70b q", 8192, 8192},
    {"llama3.1-70b ff in", 28672, 8192},
    {"gpt3-175b attention out", 12288, 12288},
    {"gpt3-175b ff in", 49152, 12288},
    {"llama3.1-8b head", 128256, 4096},
    {"square", 4096, 4096},
    {"square", 8192, 8192},
};
const long long token_counts[] = {512, 2048, 8192};

/* Products of naive attention, batch = sequences x heads, of queries with keys and of scores with
 * values. */
const struct attention {
    const char *model;
    long long batch, seq, head;
} attentions[] = {{"t5-large, 8 sequences", 128, 512, 64}, {"t5-11b, 8 sequences", 1024, 512, 128},
    {"llama2-7b, 4 sequences", 128, 2048, 128}, {"gpt3-175b, 2 sequences", 192, 2048, 128}};

struct lt_product { /* what a launch needs, made once */
    cublasLtHandle_t lt = NULL;
    cublasLtMatmulDesc_t product = NULL;
    cublasLtMatrixLayout_t a = NULL, b = NULL, c = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found = {};
    lt_product() = default;
    lt_product(const lt_product &) = delete;
    lt_product &operator=(const lt_product &) = delete;
    ~lt_product()
    {
        cublasLtMatmulPreferenceDestroy(preference);
        for (cublasLtMatrixLayout_t layout : {a, b, c})
            cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulDescDestroy(product);
        cublasLtDestroy(lt);
    }
};

cudaDataType_t operand_type(number dtype)
{
    const cudaDataType_t types[NUMBER_COUNT] = {
        CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F, CUDA_R_8F_E4M3, CUDA_R_8I};
    return types[dtype];
}

} // namespace

/* cuBLASLt takes 8-bit operands in the layout "tn" only; fp8 to bf16 (as TransformerEngine), int8
 * to int32. */
static measure_launch lt_launch(measure_session &session, number dtype, const void *a,
    const void *b, void *c, int m, int n, int k)
{
    auto p = std::make_shared<lt_product>();
    bool fp8 = dtype == FP8;
    cublasOperation_t transposed = CUBLAS_OP_T;
    void *scratch = measure_take(session, LT_WORKSPACE_BYTES);
    size_t scratch_bytes = LT_WORKSPACE_BYTES;
    CUBLAS_TRY(cublasLtCreate(&p->lt));
    CUBLAS_TRY(cublasLtMatmulDescCreate(
        &p->product, fp8 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32I, fp8 ? CUDA_R_32F : CUDA_R_32I));
    CUBLAS_TRY(cublasLtMatmulDescSetAttribute(
        p->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    CUBLAS_TRY(cublasLtMatrixLayoutCreate(&p->a, operand_type(dtype), k, n, k));
    CUBLAS_TRY(cublasLtMatrixLayoutCreate(&p->b, operand_type(dtype), k, m, k));
    CUBLAS_TRY(cublasLtMatrixLayoutCreate(&p->c, fp8 ? CUDA_R_16BF : CUDA_R_32I, n, m, n));
    CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&p->preference));
    CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(p->preference,
        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &scratch_bytes, sizeof scratch_bytes));
    int n_found = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        p->lt, p->product, p->a, p->b, p->c, p->c, p->preference, 1, &p->found, &n_found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && n_found == 0))
        return measure_launch(); /* fp8 before Hopper */
    CUBLAS_TRY(status);
    return [=](cudaStream_t on) {
        const float one = 1, zero = 0;
        const int one_i = 1, zero_i = 0;
        CUBLAS_TRY(cublasLtMatmul(p->lt, p->product, fp8 ? (const void *)&one : &one_i, b, p->a, a,
            p->b, fp8 ? (const void *)&zero : &zero_i, c, p->c, c, p->c, &p->found.algo, scratch,
            LT_WORKSPACE_BYTES, on));
    };
}

measure_launch measure_gemm_launch(measure_session &session, number dtype, const char *layout,
    long long m, long long n, long long k, long long batch)
{
    void *a = measure_random(session, dtype, (size_t)(m * k * batch));
    void *b = measure_random(session, dtype, (size_t)(n * k * batch));
    void *c =
        measure_take(session, (size_t)(m * n * batch) * (dtype == INT8     ? 4
                                                            : dtype == FP8 ? 2
                                                                           : number_bytes(dtype)));
    if (session.overflow)
        return measure_launch();
    if (dtype == FP8 || dtype == INT8)
        return lt_launch(session, dtype, a, b, c, (int)m, (int)n, (int)k);
    cublasOperation_t of_b = layout[0] == 't' ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t of_a = layout[1] == 't' ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute = dtype == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cudaDataType_t type = operand_type(dtype);
    cublasHandle_t cublas = session.cublas;
    /* Column-major cuBLAS computes the transpose of our row-major product: first operand B, second
     * A. */
    return [=](cudaStream_t on) {
        const float one = 1, zero = 0;
        CUBLAS_TRY(cublasSetStream(cublas, on));
        CUBLAS_TRY(cublasGemmStridedBatchedEx(cublas, of_b, of_a, (int)n, (int)m, (int)k, &one, b,
            type, (int)(of_b == CUBLAS_OP_T ? k : n), n * k, a, type,
            (int)(of_a == CUBLAS_OP_T ? m : k), m * k, &zero, c, type, (int)n, m * n, (int)batch,
            compute, CUBLAS_GEMM_DEFAULT));
    };
}

static measure_case gemm_case(const char *category, const char *kernel, number dtype, long long m,
    long long n, long long k, long long batch)
{
    measure_case what = {};
    double result_bytes = dtype == INT8 ? 4 : dtype == FP8 ? 2 : (double)number_bytes(dtype);
    what.category = category;
    what.kernel = kernel;
    what.dtype = number_names[dtype];
    what.m = m;
    what.n = n;
    what.k = k;
    what.batch = batch;
    what.flop = 2.0 * (double)m * (double)n * (double)k * (double)batch;
    what.bytes = (double)batch * ((double)(m * k + n * k) * (double)number_bytes(dtype) +
                                     (double)(m * n) * result_bytes);
    return what;
}

static void one_gemm(measure_session &session, const char *name, number dtype, const char *layout,
    long long m, long long n, long long k, long long batch)
{
    char kernel[80];
    snprintf(kernel, sizeof kernel, "%s; %s", layout, name);
    measure_kernel(session, gemm_case("gemm", kernel, dtype, m, n, k, batch),
        [=](measure_session &s) { return measure_gemm_launch(s, dtype, layout, m, n, k, batch); });
}

void measure_gemm(measure_session &session)
{
    for (int dtype = 0; dtype < NUMBER_COUNT; dtype++)
        for (const weight &w : weights)
            for (long long m : token_counts)
                one_gemm(session, w.layer, (number)dtype, "tn", m, w.n, w.k, 1);
    for (const weight &w : weights) { /* the two products of the backward pass, of 8192 tokens */
        one_gemm(session, w.layer, BF16, "nn", 8192, w.k, w.n, 1);
        one_gemm(session, w.layer, BF16, "nt", w.n, w.k, 8192, 1);
    }
    for (number dtype : {FP32, BF16, FP16})
        for (const attention &a : attentions) {
            char name[64];
            snprintf(name, sizeof name, "scores of %s", a.model);
            one_gemm(session, name, dtype, "tn", a.seq, a.seq, a.head, a.batch);
            snprintf(name, sizeof name, "context of %s", a.model);
            one_gemm(session, name, dtype, "nn", a.seq, a.head, a.seq, a.batch);
        }
}

/* One product again and again, as training does, against the same product after a rest. Each row is
 * a window of half a second with the clocks right after it; start_s orders them. "burst" is the
 * first tenth of a second. */
static void sustain(measure_session &session, number dtype)
{
    const long long side = 8192; /* fills every GPU's SMs many times over */
    const double rest_s = 5;     /* without work, so that the burst starts cool */
    const double burst_s = 0.1, window_s = 0.5;
    const int calls = 16; /* in a sample: waiting for it costs 10 us of at least 10 ms */
    measure_case what = gemm_case("sustained", "burst", dtype, side, side, side, 1);
    what.cache = "warm";
    if (session.dry_run) {
        measure_row(session, what, measure_samples());
        what.kernel = "window";
        measure_row(session, what, measure_samples());
        return;
    }
    session.used_bytes = 0;
    session.overflow = false;
    measure_launch launch = measure_gemm_launch(session, dtype, "tn", side, side, side, 1);
    if (!launch) {
        fprintf(
            stderr, "flopcast_measure: sustained %s: left out, not possible here\n", what.dtype);
        return;
    }
    launch(session.stream); /* loads the module */
    CUDA_TRY(cudaStreamSynchronize(session.stream));
    sleep((unsigned)rest_s);
    cudaEvent_t first, last;
    CUDA_TRY(cudaEventCreate(&first));
    CUDA_TRY(cudaEventCreate(&last));
    measure_samples samples;
    double begin_s = measure_now_s(), window_end_s = begin_s + burst_s;
    while (measure_now_s() < begin_s + session.sustain_s) {
        float ms = 0;
        CUDA_TRY(cudaEventRecord(first, session.stream));
        for (int i = 0; i < calls; i++)
            launch(session.stream);
        CUDA_TRY(cudaEventRecord(last, session.stream));
        CUDA_TRY(cudaEventSynchronize(last));
        CUDA_TRY(cudaEventElapsedTime(&ms, first, last));
        samples.push_back((double)ms * 1e-3 / calls);
        if (measure_now_s() >= window_end_s) {
            for (int i = 0; i < calls; i++) /* not timed: the GPU works while its clocks are read */
                launch(session.stream);
            measure_row(session, what, samples);
            samples.clear();
            what.kernel = "window";
            window_end_s = measure_now_s() + window_s;
        }
    }
    CUDA_TRY(cudaEventDestroy(first));
    CUDA_TRY(cudaEventDestroy(last));
}

void measure_sustained(measure_session &session)
{
    for (number dtype : {BF16, TF32, FP8, FP32})
        sustain(session, dtype);
}
