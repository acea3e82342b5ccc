/* Along rows (mean, softmax, norm, loss) and moving (copies, views).
 *
 * A layer norm is one fused kernel. An RMS norm is a chain of elementwise ones, or one kernel with
 * flash-attn's or TransformerEngine's. Moving rows is a copy, or a gather that costs its bytes
 * times row_cost. Views have no kernel: their gradient is passed on, and that of a split or of runs
 * is concatenated. */
#include "model/tape_core.h"

/* Arithmetic operations of the formulae for one element, a transcendental function counted as one.
 */
enum {
    MEAN_OPS = 1,         /* add */
    SOFTMAX_OPS = 5,      /* compare, subtract, exp, add, divide */
    SOFTMAX_GRAD_OPS = 4, /* y (g - sum(g y)): multiply, add, subtract, multiply */
    NORM_OPS = 7,         /* mean, variance (3), centre, scale, weight and bias in one */
    NORM_GRAD_OPS = 9,    /* two sums (4), combination (5) */
    WEIGHT_GRAD_OPS = 4   /* normalise, multiply, two sums */
};

static void mean_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(tape, op, KERNEL_ELEMENTWISE, 1, NO_BUFFER); /* expand / n writes every element */
}

int tape_mean(struct tape *tape, const char *name, int x)
{
    struct tape_value mean = tape_at(tape, x);
    struct tape_op op = {
        .backward = mean_backward, .name = tape_name(tape, name), .in = {x, NO_VALUE}};
    mean.cols = 1;
    return tape_apply(tape, op, KERNEL_NORM, mean, MEAN_OPS);
}

/* choice: enum kernel_kind, because the loss's log_softmax works as the softmax does. */
static void softmax_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(
        tape, op, (enum kernel_kind)op->choice, SOFTMAX_GRAD_OPS, tape_at(tape, op->out).buffer);
}

static int softmax(
    struct tape *tape, const char *name, enum kernel_kind kind, int x, int64_t element_bytes)
{
    struct tape_value shares = tape_at(tape, x);
    struct tape_op op = {.backward = softmax_backward,
        .name = tape_name(tape, name),
        .in = {x, NO_VALUE},
        .choice = (int)kind};
    shares.element_bytes = element_bytes;
    return tape_apply(tape, op, kind, shares, SOFTMAX_OPS);
}

/* at::softmax (SoftMax.cpp) widens within the kernel where the input is FP16, else by a cast before
 * it. */
int tape_softmax(struct tape *tape, const char *name, int x, bool fp32)
{
    if (tape->workload->autocast || (fp32 && tape->workload->storage != DTYPE_FP16))
        x = tape_cast(tape, tape_suffix(tape, name, "float"), x, FLOAT_BYTES);
    return softmax(
        tape, name, KERNEL_SOFTMAX, x, fp32 ? FLOAT_BYTES : tape_at(tape, x).element_bytes);
}

/* nll_loss: reads one element a row; its gradient is zero but there. */
static void nll_backward(struct tape *tape, const struct tape_op *op)
{
    int grad_x = tape_new_grad(tape, op->in[0]);
    const char *name = tape_suffix(tape, op->name, "dgrad");
    tape_pass(
        tape, KERNEL_COPY, tape_suffix(tape, op->name, "zero"), 0, BUFFERS(NO_BUFFER), grad_x);
    struct tape_value x = tape_at(tape, op->in[0]);
    tape_launch(tape, name,
        kernel_stream(KERNEL_LOSS, 0, (double)(x.rows * x.element_bytes), (double)x.rows), 0,
        BUFFERS(tape_grad(tape, op), grad_x));
    tape_give(tape, op->in[0], grad_x);
}

/* A loss for each row by one kernel back, which reads the logits and what forward left in
 * op.saved[0]. */
static void fused_loss_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    int grad_x = tape_new_grad(tape, op->in[0]);
    tape_pass(tape, KERNEL_LOSS, tape_suffix(tape, op->name, "dgrad"), SOFTMAX_OPS,
        BUFFERS(x.buffer, op->saved[0], tape_grad(tape, op)), grad_x);
    tape_give(tape, op->in[0], grad_x);
}

static int fused_cross_entropy(struct tape *tape, const char *name, int logits)
{
    struct tape_value x = tape_at(tape, logits);
    struct tape_op op = {
        .backward = fused_loss_backward, .name = tape_name(tape, name), .in = {logits}};
    op.saved[0] =
        tape_buffer(tape, tape_suffix(tape, op.name, "logsumexp"), x.rows, 1, FLOAT_BYTES);
    op.out = tape_value(tape, op.name, x.rows, 1, FLOAT_BYTES,
        true); /* a loss for each row; their mean is nothing */
    tape_pass(tape, KERNEL_LOSS, op.name, SOFTMAX_OPS, BUFFERS(x.buffer, op.saved[0]),
        tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

static int eager_cross_entropy(struct tape *tape, const char *name, int logits)
{
    const char *outer = tape->scope;
    tape_scope(tape, tape_name(tape, name));
    int wide = tape->workload->loss_fp32 ? tape_cast(tape, "float", logits, FLOAT_BYTES) : logits;
    int log = softmax(tape, "log_softmax", KERNEL_LOSS, wide, tape_at(tape, wide).element_bytes);
    struct tape_value in = tape_at(tape, log);
    struct tape_op op = {.backward = nll_backward, .name = tape_name(tape, "nll"), .in = {log}};
    op.out = tape_value(tape, op.name, 1, 1, in.element_bytes, true);
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_LOSS, (double)(in.rows * in.element_bytes), (double)in.element_bytes,
            (double)in.rows),
        0, BUFFERS(in.buffer, tape_at(tape, op.out).buffer));
    tape_push(tape, op);
    tape_scope(tape, outer);
    return op.out;
}

int tape_cross_entropy(struct tape *tape, const char *name, int logits)
{
    bool fused = tape->workload->cross_entropy == CROSS_ENTROPY_FUSED;
    return tape_end_loss(tape, logits,
        fused ? fused_cross_entropy(tape, name, logits) : eager_cross_entropy(tape, name, logits));
}

/* The training loop holds the logits until backward or the next step; then they are listed to the
 * end of this program. */
int tape_end_loss(struct tape *tape, int logits, int loss)
{
    tape->buffers.at[tape_at(tape, logits).buffer]
        .held[tape->workload->drops_logits ? FORWARD : BACKWARD] = true;
    tape->loss = loss;
    return loss;
}

int tape_add_losses(struct tape *tape, const char *name, int a, int b)
{
    tape->loss = tape_add(tape, name, a, b);
    return tape->loss;
}

/* Gradients of weight and bias come from the same two kernels: partial sums over blocks of rows,
 * then their sum. struct model_op names one parameter, so the first names the weight and the second
 * the bias, microseconds later. */
static void norm_gradients(struct tape *tape, const struct tape_op *op, int grad)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    const char *name = tape_suffix(tape, op->name, "wgrad");
    double vectors = (op->bias == NO_PARAM ? 1 : 2) * (double)(x.cols * x.element_bytes);
    tape_run(tape, (struct tape_stream){.kind = KERNEL_NORM,
                       .name = name,
                       .ops = WEIGHT_GRAD_OPS,
                       .reads = BUFFERS(grad, x.buffer, op->saved[0], op->saved[1]),
                       .write = NO_BUFFER,
                       .param_bytes = vectors,
                       .rows = x.rows,
                       .cols = x.cols});
    tape_complete(tape, op->weight);
    if (op->bias != NO_PARAM) {
        tape_launch(tape, tape_suffix(tape, op->name, "bgrad"),
            kernel_stream(KERNEL_NORM, vectors, vectors, 0), 0, BUFFERS(NO_BUFFER));
        tape_complete(tape, op->bias);
    }
}

static void layer_norm_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    int grad = tape_grad(tape, op), grad_x = tape_new_grad(tape, op->in[0]);
    tape_pass(tape, KERNEL_NORM, tape_suffix(tape, op->name, "dgrad"), NORM_GRAD_OPS,
        BUFFERS(grad, x.buffer, op->saved[0], op->saved[1]), grad_x);
    if (tape_trains(tape, op->weight))
        norm_gradients(tape, op, grad);
    tape_give(tape, op->in[0], grad_x);
}

int tape_layer_norm(struct tape *tape, const char *name, int x)
{
    if (tape->workload->autocast)
        x = tape->model->shape.low_precision_norm
                ? tape_cast_to_storage(tape, tape_suffix(tape, name, "downcast"), x)
                : tape_cast(tape, tape_suffix(tape, name, "float"), x, FLOAT_BYTES);
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = layer_norm_backward,
        .name = tape_name(tape, name),
        .in = {x},
        .weight = tape_find(tape, name, "weight"),
        .bias = tape_find(tape, name, "bias")};
    BUG_IF(op.weight == NO_PARAM, "layer %d has no %s.weight", tape->layer, op.name);
    op.out = tape_value(tape, op.name, in.rows, in.cols, in.element_bytes, true);
    op.saved[0] = tape_buffer(tape, tape_suffix(tape, op.name, "mean"), in.rows, 1, FLOAT_BYTES);
    op.saved[1] = tape_buffer(tape, tape_suffix(tape, op.name, "rstd"), in.rows, 1, FLOAT_BYTES);
    tape_pass(
        tape, KERNEL_NORM, op.name, NORM_OPS, BUFFERS(in.buffer), tape_at(tape, op.out).buffer);
    tape_touch(tape, op.saved[0]);
    tape_touch(tape, op.saved[1]);
    tape_push(tape, op);
    return op.out;
}

int tape_rms_norm(struct tape *tape, const char *name, int x, bool multiply_in_fp32)
{
    if (tape_has_flash_attn(tape) || tape_has_transformer_engine(tape))
        return tape_layer_norm(tape, name, x);
    int wide = tape_cast(tape, tape_suffix(tape, name, "float"), x, FLOAT_BYTES);
    int square = tape_map(tape, tape_suffix(tape, name, "pow"), TAPE_POWER, wide);
    int variance = tape_mean(tape, tape_suffix(tape, name, "mean"), square);
    variance = tape_map(tape, tape_suffix(tape, name, "eps"), TAPE_SHIFT, variance);
    int factor = tape_map(tape, tape_suffix(tape, name, "rsqrt"), TAPE_RSQRT, variance);
    int normed =
        tape_mul(tape, tape_suffix(tape, name, "mul"), multiply_in_fp32 ? wide : x, factor);
    return tape_mul_weight(tape, name,
        tape_cast(tape, tape_suffix(tape, name, "to"), normed, tape_at(tape, x).element_bytes));
}

/* A copy out of x into a new value of rows x cols, and its gradient back. */
static void copy_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(tape, op, KERNEL_COPY, 0, NO_BUFFER);
}

static int tape_rows_copy(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols,
    void (*backward)(struct tape *, const struct tape_op *))
{
    struct tape_value out = tape_at(tape, x);
    BUG_IF(rows * cols % (out.rows * out.cols), "%s.%s: a copy into another number of elements",
        tape->scope, name);
    struct tape_op op = {.backward = backward, .name = tape_name(tape, name), .in = {x, NO_VALUE}};
    out.rows = rows;
    out.cols = cols;
    return tape_apply(tape, op, KERNEL_COPY, out, 0);
}

int tape_copy(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    return tape_rows_copy(tape, name, x, rows, cols, copy_backward);
}

int tape_clone(struct tape *tape, const char *name, int x)
{
    struct tape_value in = tape_at(tape, x);
    return tape_copy(tape, name, x, in.rows, in.cols);
}

static void view_backward(struct tape *tape, const struct tape_op *op)
{
    tape_give(tape, op->in[0], tape_grad(tape, op));
}

static int as_view(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols,
    void (*backward)(struct tape *, const struct tape_op *))
{
    struct tape_value in = tape_at(tape, x);
    BUG_IF(rows * cols != in.rows * in.cols, "%s.%s: a view of another number of elements",
        tape->scope, name);
    struct tape_op op = {.backward = backward, .name = tape_name(tape, name), .in = {x}};
    op.out = tape_value(tape, op.name, rows, cols, in.element_bytes, in.needs_grad);
    tape->buffers.at[tape_at(tape, op.out).buffer].view_of = in.buffer;
    tape_push(tape, op);
    return op.out;
}

int tape_to_heads(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    struct tape_value in = tape_at(tape, x);
    if (!tape->model->shape.sequence_first)
        return tape_copy(tape, name, x, rows, cols);
    bool concatenated = tape->buffers.at[in.buffer].view_of != NO_BUFFER; /* a part of a split */
    return as_view(tape, name, x, rows, cols, concatenated ? view_backward : copy_backward);
}

int tape_from_heads(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    return tape_rows_copy(tape, name, x, rows, cols,
        tape->model->shape.sequence_first ? view_backward : copy_backward);
}

int tape_view(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    return as_view(tape, name, x, rows, cols, view_backward);
}

/* Reads x times over and writes that much; the gradient is the sum over the copies. */
int tape_repeat(struct tape *tape, const char *name, int x, int64_t times)
{
    struct tape_value in = tape_at(tape, x);
    return times == 1 ? x : tape_copy(tape, name, x, in.rows * times, in.cols);
}

/* Backward: the sum over the copies. */
int tape_expand(struct tape *tape, const char *name, int x, int64_t times)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = copy_backward, .name = tape_name(tape, name), .in = {x}};
    op.out = tape_value(tape, op.name, in.rows * times, in.cols, in.element_bytes, in.needs_grad);
    tape->buffers.at[tape_at(tape, op.out).buffer].view_of = in.buffer;
    tape_push(tape, op);
    return op.out;
}

static void launch_rows(
    struct tape *tape, const char *name, const struct tape_op *op, int from, int to)
{
    struct tape_value out = tape_at(tape, op->out);
    double bytes = tape_times(op->row_cost) * (double)(out.rows * out.cols * out.element_bytes);
    tape_launch(tape, name, kernel_stream(KERNEL_EMBEDDING, bytes, bytes, 0), 0, BUFFERS(from, to));
}

void tape_row_cost(struct tape *tape, double times)
{
    tape->row_cost = times;
}

double tape_times(double row_cost)
{
    return row_cost > 0 ? row_cost : 1;
}

static void select_backward(struct tape *tape, const struct tape_op *op)
{
    int grad_x = tape_new_grad(tape, op->in[0]);
    tape_pass(
        tape, KERNEL_COPY, tape_suffix(tape, op->name, "zero"), 0, BUFFERS(NO_BUFFER), grad_x);
    launch_rows(tape, tape_suffix(tape, op->name, "dgrad"), op, tape_grad(tape, op), grad_x);
    tape_give(tape, op->in[0], grad_x);
}

int tape_take_rows(struct tape *tape, const char *name, int x, int64_t rows)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = select_backward,
        .name = tape_name(tape, name),
        .in = {x},
        .row_cost = tape->row_cost};
    op.out = tape_value(tape, op.name, rows, in.cols, in.element_bytes, in.needs_grad);
    launch_rows(tape, op.name, &op, in.buffer, tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

int tape_select(struct tape *tape, const char *name, int x, int64_t rows)
{
    int64_t all = tape_at(tape, x).rows;
    BUG_IF(rows > all, "%s.%s: %ld rows of %ld", tape->scope, name, (long)rows, (long)all);
    return tape_take_rows(tape, name, x, rows);
}

static void split_backward(struct tape *tape, const struct tape_op *op)
{
    int parts[3] = {op->out, op->in[1], op->in[2]}, grad_x = tape_new_grad(tape, op->in[0]);
    int reads[3] = {NO_BUFFER, NO_BUFFER, NO_BUFFER};
    for (int i = 0; i < 3 && parts[i] != NO_VALUE; i++) {
        reads[i] = tape_at(tape, parts[i]).grad;
        tape->values.at[parts[i]].grad = NO_BUFFER;
    }
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op->name, "dgrad"), 0,
        BUFFERS(reads[0], reads[1], reads[2]), grad_x);
    tape_give(tape, op->in[0], grad_x);
}

void tape_split(struct tape *tape, const char *name, int x, const int64_t *cols, int parts[], int n)
{
    struct tape_value in = tape_at(tape, x);
    BUG_IF(n < 2 || n > 3, "%s: %d parts", name, n);
    for (int i = 0; i < n; i++) {
        parts[i] = tape_value(
            tape, tape_name(tape, name), in.rows, cols[i], in.element_bytes, in.needs_grad);
        tape->buffers.at[tape_at(tape, parts[i]).buffer].view_of = in.buffer;
    }
    tape_push(tape, (struct tape_op){.backward = split_backward,
                        .name = tape_name(tape, name),
                        .in = {x, parts[1], n == 3 ? parts[2] : NO_VALUE},
                        .out = parts[0]});
}

static void cat_backward(struct tape *tape, const struct tape_op *op)
{
    for (int i = 0; i < 2; i++) {
        int part = tape_new_grad(tape, op->in[i]);
        tape->buffers.at[part].view_of = tape_grad(tape, op);
        tape_give(tape, op->in[i], part);
    }
}

int tape_cat(struct tape *tape, const char *name, int a, int b)
{
    struct tape_value left = tape_at(tape, a), right = tape_at(tape, b);
    struct tape_op op = {.backward = cat_backward, .name = tape_name(tape, name), .in = {a, b}};
    left.cols += right.cols;
    left.needs_grad = left.needs_grad || right.needs_grad;
    return tape_apply(tape, op, KERNEL_COPY, left, 0);
}

/* cat backward hands out views; the slices of x come back as zeros with the half copied in, and are
 * added. */
static void rotate_half_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    const char *name = tape_suffix(tape, op->name, "dgrad");
    int grad = tape_grad(tape, op);
    double half = (double)(x.rows * x.cols) / 2, half_bytes = half * (double)x.element_bytes;
    int negated = tape_buffer(
        tape, tape_suffix(tape, op->name, "neg.grad"), x.rows, x.cols / 2, x.element_bytes);
    tape_launch(tape, name, kernel_stream(KERNEL_ELEMENTWISE, half_bytes, half_bytes, half), 0,
        BUFFERS(grad, negated));
    const int halves[2] = {negated, grad};
    for (int i = 0; i < 2; i++) {
        int grad_x = tape_new_grad(tape, op->in[0]);
        tape_pass(tape, KERNEL_COPY, name, 0, BUFFERS(NO_BUFFER), grad_x);
        tape_launch(tape, name, kernel_stream(KERNEL_COPY, half_bytes, half_bytes, 0), 0,
            BUFFERS(halves[i], grad_x));
        tape_give(tape, op->in[0], grad_x);
    }
}

int tape_rotate_half(struct tape *tape, const char *name, int x)
{
    struct tape_value in = tape_at(tape, x);
    double half = (double)(in.rows * in.cols) / 2, half_bytes = half * (double)in.element_bytes;
    struct tape_op op = {
        .backward = rotate_half_backward, .name = tape_name(tape, name), .in = {x}};
    int negated = tape_buffer(
        tape, tape_suffix(tape, op.name, "neg"), in.rows, in.cols / 2, in.element_bytes);
    tape_launch(tape, op.name, kernel_stream(KERNEL_ELEMENTWISE, half_bytes, half_bytes, half), 0,
        BUFFERS(in.buffer, negated));
    op.out = tape_value(tape, op.name, in.rows, in.cols, in.element_bytes, in.needs_grad);
    tape_launch(tape, op.name, kernel_stream(KERNEL_COPY, 2 * half_bytes, 2 * half_bytes, 0), 0,
        BUFFERS(in.buffer, negated, tape_at(tape, op.out).buffer));
    tape_push(tape, op);
    return op.out;
}

int tape_integers(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols)
{
    int out = tape_value(tape, tape_name(tape, name), rows, cols, LONG_BYTES, false);
    int read = from == NO_VALUE ? NO_BUFFER : tape_at(tape, from).buffer;
    tape_elementwise(tape, tape_at(tape, out).name, 1, read, NO_BUFFER, tape_at(tape, out).buffer);
    return out;
}

int tape_zeros(struct tape *tape, const char *name, int64_t rows, int64_t cols)
{
    int out = tape_value(tape, tape_name(tape, name), rows, cols, tape->residual_bytes, false);
    tape_pass(tape, KERNEL_COPY, tape_at(tape, out).name, 0, BUFFERS(NO_BUFFER),
        tape_at(tape, out).buffer);
    return out;
}

int tape_neftune(struct tape *tape, int x)
{
    struct tape_value in = tape_at(tape, x);
    if (!tape->workload->neftune)
        return x;
    int noise = tape_zeros(tape, "neftune.zeros", in.rows, in.cols);
    tape_elementwise(tape, tape_name(tape, "neftune.uniform_"), 1, NO_BUFFER, NO_BUFFER,
        tape_at(tape, noise).buffer);
    return tape_add(tape, "neftune.add", x, noise);
}
