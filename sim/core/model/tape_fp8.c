/* Linear layers in FP8 and NVFP4, as TransformerEngine's Linear runs them (tape.h).
 *
 * cast_transpose() is the heart: one kernel that leaves an operand and its transpose, or for NVFP4
 * three. Forward keeps the transposes of input and weight for backward in place of the input. What
 * was gathered in FP8 arrives without a transpose, and backward makes it. Whether weights are cast
 * here or once a step by the strategy depends on the stack (keeps_weights()). */
#include "model/tape_core.h"

#include <math.h>

enum {
    FP8_STEP = TAPE_FP8_STEP, /* TransformerEngine refuses other products (cuBLASLt's alignment) */
    CAST_OPS = 3,             /* scale, convert, largest absolute value */
    SCALE_BYTES = 4,          /* FP32 */
    AMAX_OPS = 2,             /* abs, max */
    HADAMARD_OPS = 32,        /* a product with a matrix of 16 x 16, an element */
};

/* Each block of values has a scale, found as it is cast; operands lie along both sides. */
static bool by_block(const struct tape *tape)
{
    return tape->workload->fp4 || tape->workload->fp8_recipe == FP8_MXFP8;
}

/* An element in the narrow format with its share of a scale: MXFP8 has one of a byte for 32, NVFP4
 * for 16. */
double model_narrow_bytes(const struct model_workload *workload)
{
    static const double block_bytes = 33.0 / 32;
    return workload->fp4                       ? KERNEL_FP4_BYTES
           : workload->fp8_recipe == FP8_MXFP8 ? block_bytes
                                               : FP8_BYTES;
}

bool model_turns_fp8(const struct model_workload *workload)
{
    return !workload->any_layout || workload->fp4 || workload->fp8_recipe == FP8_MXFP8;
}

static int narrow_buffer(struct tape *tape, const char *name, int64_t rows, int64_t cols)
{
    if (!by_block(tape))
        return tape_buffer(tape, name, rows, cols, FP8_BYTES);
    double bytes = (double)rows * (double)cols * model_narrow_bytes(tape->workload);
    return tape_buffer(tape, name, 1, (int64_t)ceil(bytes), 1);
}

bool tape_in_fp8(const struct tape *tape, const struct tape_op *op)
{
    const struct model_tensor *weight = tape_tensor(tape, op->weight);
    return tape->workload->fp8 && model_is_block_matrix(tape->model, weight) &&
           !model_is_adapter(weight) && op->m % FP8_STEP == 0 && op->n % FP8_STEP == 0 &&
           op->k % FP8_STEP == 0;
}

bool model_keeps_fp8(const struct model *model, const struct model_workload *workload,
    const struct model_tensor *tensor)
{
    bool in_block = model->layers[tensor->layer].role != LAYER_ROOT && tensor->cols > 1;
    return workload->fp8 && workload->fusion == FUSION_TRANSFORMER_ENGINE && in_block &&
           !model_is_adapter(tensor) && tensor->rows % FP8_STEP == 0 &&
           tensor->cols % FP8_STEP == 0;
}

bool tape_quantizes(const struct tape *tape, int64_t rows)
{
    const struct model_layer *layer = &tape->model->layers[tape->layer];
    bool one_scale = tape->workload->fp8_recipe == FP8_TENSORWISE;
    if (!tape->workload->fp8 || by_block(tape) || tape->workload->autocast ||
        (!one_scale && !tape_has_transformer_engine(tape)) || layer->role == LAYER_ROOT ||
        rows % FP8_STEP)
        return false;
    for (int i = 0; i < layer->n_tensors; i++) {
        const struct model_tensor *matrix = tape_tensor(tape, i);
        if (model_is_block_matrix(tape->model, matrix) && matrix->rows >= FP8_STEP &&
            (matrix->frozen || matrix->rows % FP8_STEP || matrix->cols % FP8_STEP))
            return false;
    }
    return true;
}

void tape_set_apart(struct tape *tape)
{
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].apart = true;
}

int tape_find_scale(struct tape *tape, const char *name, int from, double elements, double more_ops)
{
    const char *amax = tape_suffix(tape, name, "amax");
    double wide = elements * (double)tape->storage_bytes;
    int scale = tape_buffer(tape, amax, 1, 1, SCALE_BYTES);
    tape_launch(tape, amax,
        kernel_stream(KERNEL_ELEMENTWISE, wide, SCALE_BYTES, (AMAX_OPS + more_ops) * elements), 0,
        BUFFERS(scale, from));
    tape_set_apart(tape);
    return scale;
}

/* Linear layers of FP8 are torchao's. */
static bool by_torchao(const struct tape *tape)
{
    return !by_block(tape) && tape->workload->fp8_recipe != FP8_DELAYED;
}

/* A kernel that reads an operand and writes it in the narrow format. */
static int tape_fp8_cast(
    struct tape *tape, const char *name, int from, int64_t rows, int64_t cols, double ops)
{
    double elements = (double)rows * (double)cols, wide = elements * (double)tape->storage_bytes;
    int to = narrow_buffer(tape, name, rows, cols);
    tape_launch(tape, name,
        kernel_stream(KERNEL_ELEMENTWISE, wide, elements * model_narrow_bytes(tape->workload),
            ops * elements),
        0, BUFFERS(to, from));
    if (tape->workload->fp4)
        tape_set_apart(tape);
    return to;
}

int tape_quantized_buffer(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols)
{
    if (by_torchao(tape))
        return tape_float8_cast(tape, name, from, rows, cols);
    if (tape->workload->fp4)
        tape_find_scale(tape, name, from, (double)rows * (double)cols, 0);
    return tape_fp8_cast(tape, tape_suffix(tape, name, "cast"), from, rows, cols, CAST_OPS);
}

static void quantize_backward(struct tape *tape, const struct tape_op *op)
{
    tape_give(tape, op->in[0], tape_grad(tape, op));
}

int tape_quantize(struct tape *tape, const char *name, int x)
{
    struct tape_value value = tape_at(tape, x);
    struct tape_op op = {
        .backward = quantize_backward, .name = tape_suffix(tape, name, "cast"), .in = {x}};
    value.buffer = tape_quantized_buffer(tape, name, value.buffer, value.rows, value.cols);
    value.name = op.name;
    value.element_bytes = FP8_BYTES;
    value.float8[0] = value.float8[1] = NO_BUFFER;
    value.shared = value.foreign = false;
    vec_push(&tape->values, value);
    op.out = tape->values.n - 1;
    tape_push(tape, op);
    return op.out;
}

bool tape_is_quantized(const struct tape *tape, int buffer)
{
    return tape->buffers.at[buffer].life.bytes == tape->buffers.at[buffer].elements * FP8_BYTES;
}

/* Weights stay in FP8 for a step, or for good, each beside its transpose (model/tape.h). */
static bool keeps_weights(const struct tape *tape)
{
    return tape_has_transformer_engine(tape);
}

/* Of what is in FP8 or NVFP4 already. */
static int transpose(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols)
{
    if (!model_turns_fp8(tape->workload))
        return from;
    double bytes = (double)rows * (double)cols * model_narrow_bytes(tape->workload);
    int to = narrow_buffer(tape, name, cols, rows);
    tape_launch(tape, name, kernel_stream(KERNEL_COPY, bytes, bytes, 0), 0, BUFFERS(to, from));
    return to;
}

/* One kernel writes the operand and its transpose: Hopper's FP8 products want both operands along
 * k, MXFP8 other scales along either side. NVFP4 takes three: the largest value before and behind a
 * Hadamard transform of 16 columns, the operand, and its transpose behind that transform, which the
 * weight's gradient is made of. from: a buffer, or NO_BUFFER for a weight. Returns the operand;
 * *transposed outlives the pass. */
static int cast_transpose(
    struct tape *tape, const char *name, int from, int64_t rows, int64_t cols, int *transposed)
{
    const char *turned = tape_suffix(tape, name, "transpose");
    double elements = (double)rows * (double)cols;
    if (tape->workload->fp4) {
        tape_find_scale(tape, name, from, elements, HADAMARD_OPS);
        int plain = tape_fp8_cast(tape, name, from, rows, cols, CAST_OPS);
        *transposed = tape_fp8_cast(tape, turned, from, cols, rows, CAST_OPS + HADAMARD_OPS);
        return plain;
    }
    if (!model_turns_fp8(tape->workload))
        return *transposed = tape_fp8_cast(tape, name, from, rows, cols, CAST_OPS);
    int plain = narrow_buffer(tape, name, rows, cols);
    *transposed = narrow_buffer(tape, turned, cols, rows);
    tape_launch(tape, name,
        kernel_stream(KERNEL_ELEMENTWISE, elements * (double)tape->storage_bytes,
            2 * elements * model_narrow_bytes(tape->workload), CAST_OPS * elements),
        0, BUFFERS(plain, *transposed, from));
    return plain;
}

int64_t tape_matrices(const struct tape_op *op)
{
    return op->batch > 0 ? op->batch : 1;
}

void tape_fp8_multiply(struct tape *tape, const struct tape_op *op, const char *name, int64_t m,
    int64_t n, int64_t k, const int *buffers)
{
    enum dtype math = tape->workload->fp4 ? DTYPE_FP4 : DTYPE_FP8;
    struct kernel_work work =
        kernel_gemm(m, n, k, tape_matrices(op), math, FP8_BYTES, tape->storage_bytes);
    tape_launch(tape, name, work,
        op->model_flop > 0 ? op->model_flop : work.flop * tape_counted(tape, op->weight), buffers);
    tape_of_experts(tape, op->batch);
}

/* Of a frozen matrix: the gradient of its input alone. */
static void frozen_backward(struct tape *tape, const struct tape_op *op)
{
    int x = op->in[0];
    if (tape_at(tape, x).needs_grad) {
        int grad = tape_quantized_buffer(tape, tape_suffix(tape, op->name, "grad"),
            tape_grad(tape, op), op->m * tape_matrices(op), op->n);
        int weight = op->saved[1];
        if (tape->workload->frozen_once)
            weight = transpose(tape, tape_suffix(tape, op->name, "weight.transpose"), NO_BUFFER,
                op->n * tape_matrices(op), op->k);
        int grad_x = tape_new_grad(tape, x);
        tape_fp8_multiply(tape, op, tape_suffix(tape, op->name, "dgrad"), op->m, op->k, op->n,
            BUFFERS(grad, grad_x, weight));
        tape_use(tape, op->weight);
        tape_give(tape, x, grad_x);
    }
    tape_reduce_entered(tape, op);
    tape_await_reduced(tape, op);
}

/* The bias's gradient is summed by the kernel that casts, and ready with it. */
static void fp8_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0], transposed = NO_BUFFER, plain = grad;
    int64_t rows = op->m * tape_matrices(op);
    if (!tape_is_quantized(tape, grad))
        plain = cast_transpose(
            tape, tape_suffix(tape, op->name, "grad.cast"), grad, rows, op->n, &transposed);
    int from = op->saved[0] == NO_BUFFER ? tape_gather_again(tape, x) : NO_BUFFER;
    if (op->bias != NO_PARAM)
        tape_complete(tape, op->bias);
    if (tape_at(tape, x).needs_grad) {
        int grad_x = tape_new_grad(tape, x);
        tape_fp8_multiply(tape, op, tape_suffix(tape, op->name, "dgrad"), op->m, op->k, op->n,
            BUFFERS(plain, grad_x, op->saved[1]));
        tape_use(tape, op->weight);
        tape_give(tape, x, grad_x);
    }
    tape_await_again(tape, x);
    tape_reduce_entered(tape, op);
    if (transposed == NO_BUFFER)
        transposed =
            transpose(tape, tape_suffix(tape, op->name, "grad.transpose"), grad, rows, op->n);
    int input = op->saved[0];
    if (input == NO_BUFFER)
        input = transpose(tape, tape_suffix(tape, op->name, "x.transpose"), from, rows, op->k);
    tape_fp8_multiply(tape, op, tape_suffix(tape, op->name, "wgrad"), op->n, op->k, op->m,
        BUFFERS(transposed, input));
    tape_complete(tape, op->weight);
    tape_await_reduced(tape, op);
}

int tape_fp8_forward(struct tape *tape, struct tape_op op, int x, int weight)
{
    op.out = tape_value(tape, op.name, op.batch > 0 ? tape_at(tape, op.in[0]).rows : op.m, op.n,
        tape->storage_bytes, true);
    tape_fp8_multiply(
        tape, &op, op.name, op.m, op.n, op.k, BUFFERS(x, tape_at(tape, op.out).buffer, weight));
    tape_use(tape, op.weight);
    if (op.batch == 0)
        tape_mark_mm(tape, &op);
    tape_push(tape, op);
    return op.out;
}

int tape_fp8_linear(struct tape *tape, struct tape_op op)
{
    if (by_torchao(tape))
        return tape_float8_linear(tape, op);
    bool trains = tape_trains(tape, op.weight);
    op.backward = trains ? fp8_backward : frozen_backward;
    struct tape_value in = tape_at(tape, op.in[0]);
    int x = in.buffer, weight = NO_BUFFER;
    op.saved[0] = op.saved[1] = NO_BUFFER;
    if (!trains)
        x = tape_quantized_buffer(
            tape, tape_suffix(tape, op.name, "x"), in.buffer, op.m * tape_matrices(&op), op.k);
    else if (in.element_bytes != FP8_BYTES)
        x = cast_transpose(tape, tape_suffix(tape, op.name, "x.cast"), in.buffer,
            op.m * tape_matrices(&op), op.k, &op.saved[0]);
    if (!keeps_weights(tape)) {
        weight = cast_transpose(tape, tape_suffix(tape, op.name, "weight.cast"), NO_BUFFER,
            op.n * tape_matrices(&op), op.k, &op.saved[1]);
        tape_use(tape, op.weight);
    }
    return tape_fp8_forward(tape, op, x, weight);
}
