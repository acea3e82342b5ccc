/* What a GPU kernel is, by its name.
 *
 * rules[] is searched from the top, and the first text in the name decides, so the order is part
 * of the rule: copies by the driver and fused kernels of torch.compile first, tables of
 * embeddings before optimizers, attention before softmax, norms and copies before products, and
 * general words ("elementwise", "bias") last. A name that no text is in is TRACE_OTHER. NCCL's
 * kernels are found by the beginning of the name and give the kind of collective, where it says
 * one. */
#include "foreign/trace.h"

#include <string.h>

/* Case does not count; the first text that is in the name decides. Classes are those of kernel/kernel.h, so that a
 * class means the same on both sides: changes of layout, concatenation and fills are copies there, sums and casts are
 * elementwise. Names are those of PyTorch, cuBLAS, cuDNN, CUTLASS, Triton, Apex, FlashAttention, TransformerEngine,
 * FBGEMM and bitsandbytes; of ROCm those of Tensile ("Cijk_"), Composable Kernel, MIOpen and AOTriton. */
static const struct {
    const char *text;
    enum kernel_kind kind;
} rules[] = {
    {"Memcpy HtoD", KERNEL_HOST_COPY},
    {"Memcpy DtoH", KERNEL_HOST_COPY},
    {"Memcpy", KERNEL_COPY},
    {"Memset", KERNEL_COPY},
    /* as ROCm calls copies */
    {"CopyHostToDevice", KERNEL_HOST_COPY},
    {"CopyDeviceToHost", KERNEL_HOST_COPY},
    {"COPY_HOST_TO_DEVICE", KERNEL_HOST_COPY},
    {"COPY_DEVICE_TO_HOST", KERNEL_HOST_COPY},
    {"FillBuffer", KERNEL_COPY},
    /* torch.compile: what is fused is one elementwise kernel, whatever is in it; its templates are products */
    {"triton_tem_fused__flex_attention", KERNEL_ATTENTION},
    {"triton_tem_fused_flex_attention", KERNEL_ATTENTION},
    {"triton_tem", KERNEL_GEMM},
    {"triton_mm", KERNEL_GEMM},
    {"triton_poi", KERNEL_ELEMENTWISE},
    {"triton_red", KERNEL_ELEMENTWISE},
    {"triton_per", KERNEL_ELEMENTWISE},
    /* tables of embeddings, with the optimizer that is fused into their gradient */
    {"embedding", KERNEL_EMBEDDING},
    {"fbgemm_gpu", KERNEL_EMBEDDING},
    {"permute_pooled_embs", KERNEL_EMBEDDING},
    {"linearize_index", KERNEL_EMBEDDING},
    {"bounds_check_indices", KERNEL_EMBEDDING},
    {"indexSelect", KERNEL_EMBEDDING},
    {"vectorized_gather_kernel", KERNEL_EMBEDDING},
    {"compute_grad_weight", KERNEL_EMBEDDING},
    {"sum_and_scatter", KERNEL_EMBEDDING},
    {"indexing_backward", KERNEL_EMBEDDING},
    {"adam", KERNEL_OPTIMIZER},
    {"adagrad", KERNEL_OPTIMIZER},
    {"FusedSgd", KERNEL_OPTIMIZER},
    {"lamb_", KERNEL_OPTIMIZER},
    {"optimizer", KERNEL_OPTIMIZER},
    {"multi_tensor_apply", KERNEL_OPTIMIZER},
    {"flash_", KERNEL_ATTENTION},
    {"flash::", KERNEL_ATTENTION},
    {"fmha", KERNEL_ATTENTION},
    {"attention", KERNEL_ATTENTION},
    {"_attn_", KERNEL_ATTENTION},
    {"attn_fwd", KERNEL_ATTENTION},
    {"bwd_kernel_d", KERNEL_ATTENTION},
    {"sdpa", KERNEL_ATTENTION},
    {"nll_loss", KERNEL_LOSS},
    {"cross_entropy", KERNEL_LOSS},
    {"LogSoftMax", KERNEL_LOSS},
    {"log_softmax", KERNEL_LOSS},
    {"mse_", KERNEL_LOSS},
    {"softmax", KERNEL_SOFTMAX},
    {"layer_norm", KERNEL_NORM},
    {"LayerNorm", KERNEL_NORM},
    {"rms_norm", KERNEL_NORM},
    {"RMSNorm", KERNEL_NORM},
    {"ln_fwd", KERNEL_NORM},
    {"ln_bwd", KERNEL_NORM},
    {"rmsnorm_", KERNEL_NORM},
    {"GammaBeta", KERNEL_NORM},
    {"RowwiseMoments", KERNEL_NORM},
    {"batch_norm", KERNEL_NORM},
    {"batchnorm", KERNEL_NORM},
    {"::bn_", KERNEL_NORM},
    {"group_norm", KERNEL_NORM},
    {"GroupNorm", KERNEL_NORM},
    {"CatArrayBatchedCopy", KERNEL_COPY},
    {"nchwToNhwc", KERNEL_COPY},
    {"nhwcToNchw", KERNEL_COPY},
    {"nchw_to_nhwc", KERNEL_COPY},
    {"FillFunctor", KERNEL_COPY},
    {"split_with_sizes_copy", KERNEL_COPY},
    {"chunk_cat", KERNEL_COPY},
    {"gemm", KERNEL_GEMM},
    {"gemv", KERNEL_GEMM},
    {"cutlass", KERNEL_GEMM},
    {"cublas", KERNEL_GEMM},
    {"xmma", KERNEL_GEMM},
    {"nvjet", KERNEL_GEMM},
    {"splitKreduce", KERNEL_GEMM},
    {"Cijk_", KERNEL_GEMM},
    {"convol", KERNEL_GEMM},
    {"AsmConv", KERNEL_GEMM},
    {"naive_conv", KERNEL_GEMM},
    {"grouped_conv", KERNEL_GEMM},
    {"cudnn_conv", KERNEL_GEMM},
    {"wgrad", KERNEL_GEMM},
    {"dgrad", KERNEL_GEMM},
    {"fprop", KERNEL_GEMM},
    {"winograd", KERNEL_GEMM},
    {"cask_cudnn", KERNEL_GEMM},
    {"implicit_con", KERNEL_GEMM},
    {"dot_kernel", KERNEL_GEMM},
    {"elementwise", KERNEL_ELEMENTWISE},
    {"reduce_kernel", KERNEL_ELEMENTWISE},
    {"triton", KERNEL_ELEMENTWISE},
    {"dropout", KERNEL_ELEMENTWISE},
    {"gelu", KERNEL_ELEMENTWISE},
    {"relu", KERNEL_ELEMENTWISE},
    {"silu", KERNEL_ELEMENTWISE},
    {"swiglu", KERNEL_ELEMENTWISE},
    {"rotary", KERNEL_ELEMENTWISE},
    {"rope", KERNEL_ELEMENTWISE},
    {"pointwise", KERNEL_ELEMENTWISE},
    {"max_pool", KERNEL_ELEMENTWISE},
    {"avg_pool", KERNEL_ELEMENTWISE},
    {"adaptive_average", KERNEL_ELEMENTWISE},
    {"pooling_", KERNEL_ELEMENTWISE},
    {"cast_", KERNEL_ELEMENTWISE},
    {"bias", KERNEL_ELEMENTWISE},
};

/* "ncclDevKernel_AllGather_RING_LL(...)", "ncclKernel_AllReduce_RING_LL_Sum_half(...)". "Reduce" is the end of
 * AllReduce, so it comes last. RCCL's "ncclDevKernel_Generic(...)" does all of them, and MSCCL's say no kind. */
static int8_t nccl_kind(const char *name)
{
    static const struct {
        const char *text;
        enum coll_kind kind;
    } kinds[] = {{"_AllReduce", COLL_ALL_REDUCE}, {"_AllGather", COLL_ALL_GATHER},
        {"_ReduceScatter", COLL_REDUCE_SCATTER}, {"_Broadcast", COLL_BROADCAST}, {"_SendRecv", COLL_SEND_RECV},
        {"_Reduce", COLL_REDUCE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(name, kinds[i].text))
            return (int8_t)kinds[i].kind;
    return TRACE_UNKNOWN_KIND;
}

/* With what a template's name has before it. */
static bool is_nccl(const char *name)
{
    static const char *const prefixes[] = {"nccl", "rccl", "msccl"};
    name += strncmp(name, "void ", strlen("void ")) == 0 ? strlen("void ") : 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

int trace_classify(const char *name, int8_t *kind)
{
    *kind = TRACE_UNKNOWN_KIND;
    if (is_nccl(name)) {
        *kind = nccl_kind(name);
        return TRACE_COLLECTIVE;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcasestr(name, rules[i].text))
            return (int)rules[i].kind;
    return TRACE_OTHER;
}
