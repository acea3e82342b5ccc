/* The kernel of an operator of ATen, by its name and shapes.
 *
 * families[] is read from the top, and the last row fits everything: an operator that nobody
 * knows is an elementwise kernel over its inputs and outputs. A trailing * is a prefix; other
 * names must match whole. What is subtle: views launch nothing; convolutions are refused, as
 * their FLOP do not follow from the shapes of inputs and outputs alone; the result's size gives
 * m and n of a product and the matrix its k; attention with as many queries as keys counts as
 * causal. */
#include "foreign/ops.h"

#include <string.h>

int64_t ops_dtype(const char *name, enum dtype *math)
{
    static const struct {
        const char *name;
        enum dtype math;
        int64_t bytes;
    } types[] = {{"bfloat16", DTYPE_BF16, 2}, {"float16", DTYPE_FP16, 2}, {"float32", DTYPE_FP32, 4},
        {"float64", DTYPE_FP32, 8}, {"float8_e4m3fn", DTYPE_FP8, 1}, {"float8_e5m2", DTYPE_FP8, 1},
        {"int8", DTYPE_INT8, 1}, {"uint8", DTYPE_INT8, 1}, {"bool", DTYPE_INT8, 1}, {"int16", DTYPE_FP32, 2},
        {"int32", DTYPE_FP32, 4}, {"int64", DTYPE_FP32, 8}, {"complex64", DTYPE_FP32, 8}};
    static const char prefix[] = "torch.";
    name += strncmp(name, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0) {
            *math = types[i].math;
            return types[i].bytes;
        }
    return 0;
}

/* Names that begin so, the first that fits. */
static const struct family {
    const char *prefix;
    enum { VIEW, PRODUCT, ATTENTION, CONVOLUTION, STREAM } what;
    enum kernel_kind kind; /* STREAM */
    int matrix;            /* PRODUCT: its first factor among the inputs */
} families[] = {{"mm", PRODUCT, KERNEL_GEMM, 0}, {"bmm", PRODUCT, KERNEL_GEMM, 0}, {"addmm", PRODUCT, KERNEL_GEMM, 1},
    {"baddbmm", PRODUCT, KERNEL_GEMM, 1}, {"linear", PRODUCT, KERNEL_GEMM, 0}, {"_scaled_mm", PRODUCT, KERNEL_GEMM, 0},
    {"_grouped_mm", PRODUCT, KERNEL_GEMM, 0}, {"_scaled_dot_product", ATTENTION, KERNEL_ATTENTION, 0},
    {"_flash_attention", ATTENTION, KERNEL_ATTENTION, 0}, {"_efficient_attention", ATTENTION, KERNEL_ATTENTION, 0},
    {"convolution", CONVOLUTION, KERNEL_GEMM, 0}, {"_convolution", CONVOLUTION, KERNEL_GEMM, 0},
    {"view", VIEW, KERNEL_COPY, 0}, {"_unsafe_view", VIEW, KERNEL_COPY, 0}, {"_reshape_alias", VIEW, KERNEL_COPY, 0},
    {"alias", VIEW, KERNEL_COPY, 0}, {"as_strided", VIEW, KERNEL_COPY, 0}, {"t", VIEW, KERNEL_COPY, 0},
    {"transpose", VIEW, KERNEL_COPY, 0}, {"permute", VIEW, KERNEL_COPY, 0}, {"expand", VIEW, KERNEL_COPY, 0},
    {"unsqueeze", VIEW, KERNEL_COPY, 0}, {"squeeze", VIEW, KERNEL_COPY, 0}, {"slice", VIEW, KERNEL_COPY, 0},
    {"select", VIEW, KERNEL_COPY, 0}, {"split", VIEW, KERNEL_COPY, 0}, {"split_with_sizes", VIEW, KERNEL_COPY, 0},
    {"unbind", VIEW, KERNEL_COPY, 0}, {"detach", VIEW, KERNEL_COPY, 0}, {"empty", VIEW, KERNEL_COPY, 0},
    {"empty_like", VIEW, KERNEL_COPY, 0}, {"empty_strided", VIEW, KERNEL_COPY, 0}, {"new_empty", VIEW, KERNEL_COPY, 0},
    {"new_empty_strided", VIEW, KERNEL_COPY, 0}, {"view_as_complex", VIEW, KERNEL_COPY, 0},
    {"view_as_real", VIEW, KERNEL_COPY, 0}, {"set_", VIEW, KERNEL_COPY, 0}, {"resize_", VIEW, KERNEL_COPY, 0},
    {"native_layer_norm*", STREAM, KERNEL_NORM, 0}, {"native_group_norm*", STREAM, KERNEL_NORM, 0},
    {"native_batch_norm*", STREAM, KERNEL_NORM, 0}, {"_fused_rms_norm*", STREAM, KERNEL_NORM, 0},
    {"linalg_vector_norm", STREAM, KERNEL_NORM, 0}, {"_softmax*", STREAM, KERNEL_SOFTMAX, 0},
    {"_log_softmax*", STREAM, KERNEL_LOSS, 0}, {"nll_loss*", STREAM, KERNEL_LOSS, 0},
    {"embedding*", STREAM, KERNEL_EMBEDDING, 0}, {"_fused_adam*", STREAM, KERNEL_OPTIMIZER, 0},
    {"_fused_sgd*", STREAM, KERNEL_OPTIMIZER, 0}, {"_foreach_*", STREAM, KERNEL_OPTIMIZER, 0},
    {"copy_", STREAM, KERNEL_COPY, 0}, {"_to_copy", STREAM, KERNEL_COPY, 0}, {"clone", STREAM, KERNEL_COPY, 0},
    {"cat", STREAM, KERNEL_COPY, 0}, {"zero_", STREAM, KERNEL_COPY, 0}, {"fill_*", STREAM, KERNEL_COPY, 0},
    {"zeros*", STREAM, KERNEL_COPY, 0}, {"ones*", STREAM, KERNEL_COPY, 0}, {"full*", STREAM, KERNEL_COPY, 0},
    {"new_zeros", STREAM, KERNEL_COPY, 0}, {"", STREAM, KERNEL_ELEMENTWISE, 0}};

/* "mm" of "aten.mm.default" and of "aten::mm". */
static size_t base_of(const char *name, const char **base)
{
    const char *at = strstr(name, "::"), *dot = strchr(name, '.');
    *base = at ? at + 2 : dot ? dot + 1 : name;
    return strcspn(*base, ".");
}

static bool fits(const struct family *family, const char *base, size_t n)
{
    size_t prefix = strlen(family->prefix);
    bool open =
        prefix == 0 || family->prefix[prefix - 1] == '*' || family->what == ATTENTION || family->what == CONVOLUTION;
    size_t compared = prefix > 0 && family->prefix[prefix - 1] == '*' ? prefix - 1 : prefix;
    return strncmp(base, family->prefix, compared) == 0 && (open ? n >= compared : n == compared);
}

static double last(const struct op_tensor *tensor, int from_end)
{
    return tensor->n >= from_end ? tensor->size[tensor->n - from_end] : 1;
}

static bool is_size(double value)
{
    return value >= 1 && value <= 0x1p31;
}

/* m gathers all leading dimensions of the result. */
static enum ops_found product(struct kernel_work *out, const struct op_shapes *shapes, const struct family *family,
    enum dtype math, int64_t bytes)
{
    const struct op_tensor *result = &shapes->out[0], *matrix = &shapes->in[family->matrix];
    bool batched = strstr(family->prefix, "bmm") != NULL;
    double n = last(result, 1), k = last(matrix, 1), batch = batched ? last(result, 3) : 1, numel = 1;
    for (int i = 0; i < result->n; i++)
        numel *= result->size[i];
    double m = numel / (n * batch);
    if (shapes->n_out == 0 || shapes->n_in <= family->matrix || !is_size(m) || !is_size(n) || !is_size(k) ||
        !is_size(batch))
        return OPS_REFUSED;
    *out = kernel_gemm((int64_t)m, (int64_t)n, (int64_t)k, (int64_t)batch, math, bytes, bytes);
    return OPS_KERNEL;
}

/* Queries and keys of batch x heads x positions x dimension; backward: behind the gradient of the result, with 2.5
 * times the FLOP, since the scores are computed anew (Dao, arXiv 2205.14135). */
static enum ops_found attention(
    struct kernel_work *out, const char *name, const struct op_shapes *shapes, enum dtype math, int64_t bytes)
{
    enum { FLOP_OF_PAIR = 4 };
    bool backward = strstr(name, "backward") != NULL;
    const struct op_tensor *q = &shapes->in[backward], *k = &shapes->in[backward + 1];
    double heads = last(q, 4) * last(q, 3), m = last(q, 2), n = last(k, 2), d = last(q, 1);
    if (shapes->n_in < 2 + backward || !is_size(heads) || !is_size(m) || !is_size(n) || !is_size(d))
        return OPS_REFUSED;
    double forward = FLOP_OF_PAIR * m * n * d * heads * (m == n ? ATTENTION_CAUSAL_SHARE : 1);
    *out = (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = math,
        .flop = forward * (backward ? 2.5 : 1),
        .read_bytes = shapes->in_numel * (double)bytes,
        .write_bytes = shapes->out_numel * (double)bytes,
        .m = (int64_t)m,
        .n = (int64_t)n,
        .k = (int64_t)d,
        .batch = (int64_t)heads,
        .causal = m == n,
        .backward = backward};
    return OPS_KERNEL;
}

enum ops_found ops_kernel(
    struct kernel_work *out, const char *name, const struct op_shapes *shapes, enum dtype math, int64_t element_bytes)
{
    const char *base;
    size_t n = base_of(name, &base);
    const struct family *family = families;
    while (!fits(family, base, n))
        family++;
    double reads = shapes->in_numel, writes = shapes->out_numel;
    switch (family->what) {
    case VIEW:
        return OPS_VIEW;
    case PRODUCT:
        return product(out, shapes, family, math, element_bytes);
    case ATTENTION:
        return attention(out, name, shapes, math, element_bytes);
    case CONVOLUTION:
        return OPS_REFUSED;
    case STREAM:
        break;
    }
    if (family->kind == KERNEL_EMBEDDING) /* of the table the rows that are wanted */
        reads = reads < writes ? reads : writes;
    *out = kernel_stream(family->kind, reads * (double)element_bytes, writes * (double)element_bytes, writes);
    return OPS_KERNEL;
}
