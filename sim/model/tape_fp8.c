/* Linear layers in FP8, as TransformerEngine's Linear runs them (tape.h). */
#include "model/tape_core.h"

enum {
    FP8_BYTES = 1,
    FP8_STEP = TAPE_FP8_STEP, /* TransformerEngine refuses other products (cuBLASLt's alignment) */
    CAST_OPS = 3,             /* scale, convert, largest absolute value */
};

bool tape_in_fp8(const struct tape *tape, const struct tape_op *op)
{
    const struct model_tensor *weight = tape_tensor(tape, op->weight);
    return tape->workload->fp8 && model_is_block_matrix(tape->model, weight) && !weight->frozen &&
           op->m % FP8_STEP == 0 && op->n % FP8_STEP == 0 && op->k % FP8_STEP == 0;
}

/* One kernel writes the operand and its transpose in FP8: Hopper's FP8 products want both operands along k.
 * from: a buffer, or NO_BUFFER for a weight. Returns the operand; *transposed outlives the pass. */
static int cast_transpose(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols, int *transposed)
{
    double elements = (double)rows * (double)cols;
    int plain = tape_buffer(tape, name, rows, cols, FP8_BYTES);
    *transposed = tape_buffer(tape, tape_suffix(tape, name, "transpose"), cols, rows, FP8_BYTES);
    tape_launch(tape, name,
        kernel_stream(
            KERNEL_ELEMENTWISE, elements * (double)tape->storage_bytes, 2 * elements * FP8_BYTES, CAST_OPS * elements),
        0, BUFFERS(plain, *transposed, from));
    return plain;
}

static int64_t matrices(const struct tape_op *op)
{
    return op->batch > 0 ? op->batch : 1;
}

static void multiply(
    struct tape *tape, const struct tape_op *op, const char *name, int64_t m, int64_t n, int64_t k, const int *buffers)
{
    struct kernel_work work = kernel_gemm(m, n, k, matrices(op), DTYPE_FP8, FP8_BYTES, tape->storage_bytes);
    tape_launch(
        tape, name, work, op->model_flop > 0 ? op->model_flop : work.flop * tape_counted(tape, op->weight), buffers);
}

/* The bias's gradient is summed by the kernel that casts, and ready with it. */
static void fp8_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0], transposed = NO_BUFFER;
    int plain =
        cast_transpose(tape, tape_suffix(tape, op->name, "grad.cast"), grad, op->m * matrices(op), op->n, &transposed);
    if (op->bias != NO_PARAM)
        tape_complete(tape, op->bias);
    if (tape_at(tape, x).needs_grad) {
        int grad_x = tape_new_grad(tape, x);
        multiply(
            tape, op, tape_suffix(tape, op->name, "dgrad"), op->m, op->k, op->n, BUFFERS(plain, op->saved[1], grad_x));
        tape_use(tape, op->weight);
        tape_give(tape, x, grad_x);
    }
    tape_reduce_entered(tape, op);
    multiply(tape, op, tape_suffix(tape, op->name, "wgrad"), op->n, op->k, op->m, BUFFERS(transposed, op->saved[0]));
    tape_complete(tape, op->weight);
    tape_await_reduced(tape, op);
}

int tape_fp8_linear(struct tape *tape, struct tape_op op)
{
    op.backward = fp8_backward;
    int x = cast_transpose(tape, tape_suffix(tape, op.name, "x.cast"), tape_at(tape, op.in[0]).buffer,
        op.m * matrices(&op), op.k, &op.saved[0]);
    int weight = cast_transpose(
        tape, tape_suffix(tape, op.name, "weight.cast"), NO_BUFFER, op.n * matrices(&op), op.k, &op.saved[1]);
    tape_use(tape, op.weight);
    op.out =
        tape_value(tape, op.name, op.batch > 0 ? tape_at(tape, op.in[0]).rows : op.m, op.n, tape->storage_bytes, true);
    multiply(tape, &op, op.name, op.m, op.n, op.k, BUFFERS(x, weight, tape_at(tape, op.out).buffer));
    tape_use(tape, op.weight);
    tape_push(tape, op);
    return op.out;
}
