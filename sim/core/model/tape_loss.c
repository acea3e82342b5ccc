/* The loss of words, of which each rank of AXIS_TP has a part (tape_word_loss()): four ways of the
 * stacks, each written as its source runs it, kernel by kernel. All find the largest logit, the sum
 * of exponentials and the label's logit of each row over all ranks; they differ in which tensors of
 * rows x words exist at once, which decides the peak of memory, and in how many small collectives
 * they take. tape_end_loss() marks the logits that the training loop holds. */
#include "model/tape_core.h"

static int64_t tape_loss_ranks(const struct tape *tape)
{
    return model_tensor_ranks(&tape->workload->parallel);
}

/* A number, or several, a row, made by a kernel from a value, and summed (or the largest taken)
 * over the ranks. */
static int row_numbers(
    struct tape *tape, const char *name, double ops, int from, int also, int64_t numbers)
{
    int result = tape_buffer(tape, name, tape_at(tape, from).rows, numbers, FLOAT_BYTES);
    tape_pass(tape, KERNEL_LOSS, name, ops, BUFFERS(tape_at(tape, from).buffer, also), result);
    return result;
}

static void reduce_numbers(struct tape *tape, const char *name, int buffer)
{
    if (tape_loss_ranks(tape) == 1)
        return;
    tape_exchange(tape, name, COLL_ALL_REDUCE, AXES_TP, buffer, buffer);
}

/* Softmax less the labels' ones, times the loss's gradient, where the softmax lies. */
static void word_loss_backward(struct tape *tape, const struct tape_op *op)
{
    int softmax = tape_at(tape, op->in[0]).buffer, grad = tape_grad(tape, op);
    double row_bytes = (double)(tape_at(tape, op->in[0]).rows * FLOAT_BYTES);
    const char *name = tape_suffix(tape, op->name, "dgrad");
    tape_launch(tape, tape_suffix(tape, op->name, "labels"),
        kernel_stream(KERNEL_LOSS, row_bytes, row_bytes, 0), 0, BUFFERS(softmax));
    tape_pass(tape, KERNEL_LOSS, name, 1, BUFFERS(softmax, grad), softmax);
    tape_give(tape, op->in[0], softmax);
}

static int eager_word_loss(struct tape *tape, const char *name, int logits)
{
    int wide = tape_cast(tape, tape_suffix(tape, name, "float"), logits, FLOAT_BYTES);
    struct tape_op op = {
        .backward = word_loss_backward, .name = tape_name(tape, name), .in = {wide}};
    struct tape_value x = tape_at(tape, wide);
    const char *const max = tape_suffix(tape, op.name, "max"), *const sum = tape_suffix(
                                                                   tape, op.name, "sum_exp");
    const char *const label = tape_suffix(tape, op.name, "label");
    double row_bytes = (double)(x.rows * FLOAT_BYTES);
    int largest = row_numbers(tape, max, 1, wide, NO_BUFFER, 1);
    reduce_numbers(tape, max, largest);
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op.name, "subtract"), 1,
        BUFFERS(x.buffer, largest), x.buffer);
    int predicted = tape_buffer(tape, label, x.rows, 1, FLOAT_BYTES);
    tape_launch(tape, label, kernel_stream(KERNEL_LOSS, row_bytes, row_bytes, 0), 0,
        BUFFERS(x.buffer, predicted));
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op.name, "exp"), 1, BUFFERS(x.buffer), x.buffer);
    int sums = row_numbers(tape, sum, 1, wide, NO_BUFFER, 1);
    reduce_numbers(tape, label, predicted);
    reduce_numbers(tape, sum, sums);
    op.out = tape_value(tape, op.name, x.rows, 1, FLOAT_BYTES, true);
    tape_elementwise(tape, op.name, 2, predicted, sums, tape_at(tape, op.out).buffer);
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op.name, "divide"), 1, BUFFERS(x.buffer, sums),
        x.buffer);
    tape_push(tape, op);
    return op.out;
}

/* From the softmax, which is in FP32, to the logits' format. */
static void fused_word_loss_backward(struct tape *tape, const struct tape_op *op)
{
    int grad_x = tape_new_grad(tape, op->in[0]);
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op->name, "dgrad"), 1,
        BUFFERS(op->saved[0], tape_grad(tape, op)), grad_x);
    tape_give(tape, op->in[0], grad_x);
}

/* compare; subtract, exp, add */
enum { MAX_OPS = 1, SUM_OPS = 3, NUMBERS = 2 };

static int fused_word_loss(struct tape *tape, const char *name, int logits)
{
    struct tape_op op = {
        .backward = fused_word_loss_backward, .name = tape_name(tape, name), .in = {logits}};
    struct tape_value x = tape_at(tape, logits);
    const char *const max = tape_suffix(tape, op.name, "max"), *const sums = tape_suffix(
                                                                   tape, op.name, "sums");
    int wide = tape_buffer(tape, tape_suffix(tape, op.name, "float"), x.rows, x.cols, FLOAT_BYTES);
    int largest = tape_buffer(tape, max, x.rows, 1, FLOAT_BYTES);
    tape_pass(tape, KERNEL_LOSS, max, MAX_OPS, BUFFERS(x.buffer), wide);
    reduce_numbers(tape, max, largest);
    int both = tape_buffer(
        tape, sums, x.rows, NUMBERS, FLOAT_BYTES); /* the label's logit, the exponentials */
    int softmax = tape_buffer(tape, tape_suffix(tape, op.name, "exp"), x.rows, x.cols, FLOAT_BYTES);
    tape_pass(tape, KERNEL_LOSS, sums, SUM_OPS, BUFFERS(wide, largest, both), softmax);
    reduce_numbers(tape, sums, both);
    op.out = tape_value(tape, op.name, x.rows, 1, FLOAT_BYTES, true);
    tape_elementwise(tape, op.name, 2, both, NO_BUFFER, tape_at(tape, op.out).buffer);
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op.name, "divide"), 1, BUFFERS(softmax, both),
        softmax);
    op.saved[0] = softmax;
    tape_push(tape, op);
    return op.out;
}

/* The gradient, which lies where the logits were, times that of the loss. */
static void te_word_loss_backward(struct tape *tape, const struct tape_op *op)
{
    int logits = op->saved[0];
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op->name, "dgrad"), 1,
        BUFFERS(logits, tape_grad(tape, op)), logits);
    tape_give(tape, op->in[0], logits);
}

static int te_word_loss(struct tape *tape, const char *name, int logits)
{
    enum { STATISTICS = 3 }; /* the largest logit, the sum of exponentials, the label's logit */
    struct tape_op op = {
        .backward = te_word_loss_backward, .name = tape_name(tape, name), .in = {logits}};
    struct tape_value x = tape_at(tape, logits);
    const char *const own = tape_suffix(tape, op.name, "online_softmax");
    int statistics = row_numbers(tape, own, SUM_OPS, logits, NO_BUFFER, STATISTICS);
    if (tape_loss_ranks(tape) > 1) {
        int all = tape_buffer(tape, tape_suffix(tape, op.name, "statistics"),
            x.rows * tape_loss_ranks(tape), STATISTICS, FLOAT_BYTES);
        tape_exchange(tape, own, COLL_ALL_GATHER, AXES_TP, statistics, all);
        statistics = all;
    }
    op.out = tape_value(tape, op.name, x.rows, 1, FLOAT_BYTES, true);
    tape_pass(tape, KERNEL_LOSS, op.name, SUM_OPS,
        BUFFERS(x.buffer, statistics, tape_at(tape, op.out).buffer), x.buffer);
    op.saved[0] = x.buffer;
    tape_push(tape, op);
    return op.out;
}

/* zeros, one of them less at each label; plus exp(log-softmax); times the loss's gradient. */
static void loss_parallel_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    const char *const zeros = tape_suffix(tape, op->name, "zeros"), *const exp = tape_suffix(
                                                                        tape, op->name, "exp");
    const char *const sum = tape_suffix(tape, op->name, "add");
    double row_bytes = (double)(x.rows * FLOAT_BYTES);
    int labels = tape_buffer(tape, zeros, x.rows, x.cols, FLOAT_BYTES);
    tape_pass(tape, KERNEL_COPY, zeros, 0, BUFFERS(NO_BUFFER), labels);
    tape_launch(tape, tape_suffix(tape, op->name, "labels"),
        kernel_stream(KERNEL_LOSS, 0, row_bytes, 0), 0, BUFFERS(labels));
    int softmax = tape_buffer(tape, exp, x.rows, x.cols, FLOAT_BYTES);
    tape_elementwise(tape, exp, 1, op->saved[0], NO_BUFFER, softmax);
    int both = tape_buffer(tape, sum, x.rows, x.cols, FLOAT_BYTES);
    tape_elementwise(tape, sum, 1, labels, softmax, both);
    int grad_x = tape_new_grad(tape, op->in[0]);
    tape_elementwise(
        tape, tape_suffix(tape, op->name, "dgrad"), 1, both, tape_grad(tape, op), grad_x);
    tape_touch(tape, labels);
    tape_touch(tape, op->saved[0]);
    tape_give(tape, op->in[0], grad_x);
}

static int loss_parallel(struct tape *tape, const char *name, int logits)
{
    int wide = tape_cast(tape, tape_suffix(tape, name, "float"), logits, FLOAT_BYTES);
    struct tape_op op = {
        .backward = loss_parallel_backward, .name = tape_name(tape, name), .in = {wide}};
    struct tape_value x = tape_at(tape, wide);
    const char *const max = tape_suffix(tape, op.name, "max"), *const sum = tape_suffix(
                                                                   tape, op.name, "sum_exp");
    const char *const label = tape_suffix(tape, op.name, "label"), *const exp = tape_suffix(
                                                                       tape, op.name, "exp");
    const char *const subtract = tape_suffix(tape, op.name, "subtract");
    double row_bytes = (double)(x.rows * FLOAT_BYTES);
    int largest = row_numbers(tape, max, 1, wide, NO_BUFFER, 1);
    reduce_numbers(tape, max, largest);
    int shifted = tape_buffer(tape, subtract, x.rows, x.cols, FLOAT_BYTES);
    tape_elementwise(tape, subtract, 1, x.buffer, largest, shifted);
    int exps = tape_buffer(tape, exp, x.rows, x.cols, FLOAT_BYTES);
    tape_elementwise(tape, exp, 1, shifted, NO_BUFFER, exps);
    int sums = tape_buffer(tape, sum, x.rows, 1, FLOAT_BYTES);
    tape_pass(tape, KERNEL_LOSS, sum, 1, BUFFERS(exps), sums);
    reduce_numbers(tape, sum, sums);
    op.saved[0] =
        tape_buffer(tape, tape_suffix(tape, op.name, "log_softmax"), x.rows, x.cols, FLOAT_BYTES);
    tape_elementwise(
        tape, tape_suffix(tape, op.name, "log_softmax"), 1, shifted, sums, op.saved[0]);
    int predicted = tape_buffer(tape, label, x.rows, 1, FLOAT_BYTES);
    tape_launch(tape, label, kernel_stream(KERNEL_LOSS, row_bytes, row_bytes, 0), 0,
        BUFFERS(op.saved[0], predicted));
    tape_touch(tape, x.buffer); /* F.cross_entropy's caller holds it */
    reduce_numbers(tape, label, predicted);
    op.out = tape_value(tape, op.name, 1, 1, FLOAT_BYTES, true);
    tape_elementwise(tape, op.name, 1, predicted, NO_BUFFER, tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

/* Megatron-LM has the loss of shared-out words on one rank, too. */
static bool is_megatron(const struct tape *tape)
{
    return tape_has_transformer_engine(tape) || tape->workload->fusion == FUSION_TORCHSCRIPT;
}

int tape_word_loss(struct tape *tape, const char *name, int logits)
{
    int kind = tape->workload->cross_entropy;
    if (kind == CROSS_ENTROPY_TE)
        return tape_end_loss(tape, logits, te_word_loss(tape, name, logits));
    if (tape_loss_ranks(tape) == 1 && !is_megatron(tape))
        return tape_cross_entropy(tape, name, logits);
    if (kind == CROSS_ENTROPY_LOSS_PARALLEL && tape_loss_ranks(tape) > 1)
        return tape_end_loss(tape, logits, loss_parallel(tape, name, logits));
    bool fused = kind == CROSS_ENTROPY_FUSED;
    return tape_end_loss(tape, logits,
        fused ? fused_word_loss(tape, name, logits) : eager_word_loss(tape, name, logits));
}
