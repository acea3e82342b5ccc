/* Element by element: functions of one tensor, sums, products, dropout, casts.
 *
 * Each function is a row of a table: what autograd saves for it, how many kernels its derivative is
 * in eager mode, how many operations an element costs. Broadcast and promoted operands get their
 * gradients by a further kernel, a sum or a cast. In-place versions make another value in the same
 * buffer. */
#include "model/tape_core.h"

enum saves { SAVES_NOTHING, SAVES_INPUT, SAVES_RESULT };

/* ops: arithmetic operations of the formula for one element, a transcendental function counted as
 * one. backward_kernels: how many eager PyTorch launches for the derivative; those before the last
 * make the factor by which the gradient is multiplied. */
struct pointwise {
    enum saves saves;
    int backward_kernels;
    double ops;
};

static const struct pointwise pointwise[TAPE_FUNCTION_COUNT] = {
    [TAPE_SCALE] = {SAVES_NOTHING, 1, 1},
    [TAPE_SHIFT] = {SAVES_NOTHING, 0, 1},
    [TAPE_MASK] = {SAVES_NOTHING, 1, 1},
    [TAPE_POWER] = {SAVES_INPUT, 3, 1},  /* grad * (p * x^(p - 1)) */
    [TAPE_RSQRT] = {SAVES_RESULT, 3, 1}, /* grad * (-0.5 * r^3) */
    [TAPE_TANH] = {SAVES_RESULT, 1, 1},
    [TAPE_RELU] = {SAVES_RESULT, 1, 1},
    [TAPE_GELU] = {SAVES_INPUT, 1, 5}, /* 0.5 * x * (1 + erf(x * c)) */
    [TAPE_SILU] = {SAVES_INPUT, 1, 4}, /* x / (1 + exp(-x)) */
    [TAPE_SIGMOID] = {SAVES_RESULT, 1, 3},
};

static void map_backward(struct tape *tape, const struct tape_op *op)
{
    const struct pointwise *f = &pointwise[op->choice];
    struct tape_value x = tape_at(tape, op->in[0]);
    int grad = tape_grad(tape, op), factor = NO_BUFFER;
    if (f->saves != SAVES_NOTHING)
        factor = f->saves == SAVES_INPUT ? x.buffer : tape_at(tape, op->out).buffer;
    const char *name = tape_suffix(tape, op->name, "dgrad");
    for (int i = 1; i < f->backward_kernels; i++) {
        int next = tape_buffer(
            tape, tape_suffix(tape, op->name, "factor"), x.rows, x.cols, x.element_bytes);
        tape_elementwise(tape, name, 1, factor, NO_BUFFER, next);
        factor = next;
    }
    if (f->backward_kernels > 0) {
        int grad_x = tape_new_grad(tape, op->in[0]);
        tape_elementwise(tape, name, f->ops, grad, factor, grad_x);
        grad = grad_x;
    }
    tape_give(tape, op->in[0], grad);
}

int tape_map(struct tape *tape, const char *name, enum tape_function function, int x)
{
    struct tape_op op = {.backward = map_backward,
        .name = tape_name(tape, name),
        .in = {x, NO_VALUE},
        .choice = (int)function};
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, tape_at(tape, x), pointwise[function].ops);
}

/* Its kernel is the first of those that it launches. */
static void scale_apart_backward(struct tape *tape, const struct tape_op *op)
{
    int kernel = tape->program[BACKWARD].n;
    tape_back(tape, op, KERNEL_ELEMENTWISE, pointwise[TAPE_SCALE].ops, NO_BUFFER);
    tape->program[BACKWARD].at[kernel].apart = true;
}

int tape_scale_apart(struct tape *tape, const char *name, int x)
{
    struct tape_op op = {
        .backward = scale_apart_backward, .name = tape_name(tape, name), .in = {x, NO_VALUE}};
    int out = tape_apply(tape, op, KERNEL_ELEMENTWISE, tape_at(tape, x), pointwise[TAPE_SCALE].ops);
    tape->program[FORWARD].at[tape->program[FORWARD].n - 1].apart = true;
    return out;
}

int tape_map_in_place(struct tape *tape, const char *name, enum tape_function function, int x)
{
    struct tape_value result = tape_at(tape, x);
    BUG_IF(pointwise[function].saves == SAVES_INPUT, "%s.%s overwrites what its gradient needs",
        tape->scope, name);
    struct tape_op op = {.backward = map_backward,
        .name = tape_name(tape, name),
        .in = {x, NO_VALUE},
        .choice = (int)function};
    result.name = op.name;
    vec_push(&tape->values, result);
    op.out = tape->values.n - 1;
    tape_elementwise(
        tape, op.name, pointwise[function].ops, result.buffer, NO_BUFFER, result.buffer);
    tape_push(tape, op);
    return op.out;
}

int tape_gelu_new(struct tape *tape, int x)
{
    int half = tape_map(tape, "gelu.half", TAPE_SCALE, x);
    int wide = tape->workload->autocast
                   ? tape_cast(tape, "gelu.cube.autocast", x, dtype_bytes(DTYPE_FP32))
                   : x;
    int cube = tape_map(tape, "gelu.cube", TAPE_POWER, wide);
    int inner =
        tape_add(tape, "gelu.inner", x, tape_map(tape, "gelu.cube.scale", TAPE_SCALE, cube));
    int bend = tape_map(
        tape, "gelu.tanh", TAPE_TANH, tape_map(tape, "gelu.inner.scale", TAPE_SCALE, inner));
    return tape_mul(tape, "gelu", half, tape_map(tape, "gelu.shift", TAPE_SHIFT, bend));
}

/* The gradient of a broadcast operand is the sum over the rows that it was broadcast to, that of a
 * promoted one a cast. */
static void give_sum(struct tape *tape, const struct tape_op *op, int value, int grad)
{
    struct tape_value v = tape_at(tape, value);
    bool promoted = v.element_bytes != tape_at(tape, op->out).element_bytes;
    bool broadcast = v.rows * v.cols < tape->buffers.at[grad].elements;
    if (v.needs_grad && (promoted || broadcast)) {
        int fit = tape_new_grad(tape, value);
        tape_elementwise(
            tape, tape_suffix(tape, op->name, broadcast ? "sum" : "to"), 1, grad, NO_BUFFER, fit);
        grad = fit;
    }
    tape_give(tape, value, grad);
}

static void add_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    give_sum(tape, op, op->in[0], grad);
    if (op->in[1] != NO_VALUE)
        give_sum(tape, op, op->in[1], grad);
}

int tape_add(struct tape *tape, const char *name, int a, int b)
{
    struct tape_value left = tape_at(tape, a), right = tape_at(tape, b);
    struct tape_value sum = left.rows * left.cols < right.rows * right.cols ? right : left;
    sum.element_bytes =
        left.element_bytes > right.element_bytes ? left.element_bytes : right.element_bytes;
    sum.needs_grad = left.needs_grad || right.needs_grad;
    struct tape_op op = {.backward = add_backward, .name = tape_name(tape, name), .in = {a, b}};
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, sum, 1);
}

int tape_add_mask(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    struct tape_value sum = tape_at(tape, x);
    sum.rows = rows;
    sum.cols = cols;
    struct tape_op op = {
        .backward = add_backward, .name = tape_name(tape, name), .in = {x, NO_VALUE}};
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, sum, 1);
}

int tape_add_in_place(struct tape *tape, const char *name, int a, int b)
{
    struct tape_value sum = tape_at(tape, a), right = tape_at(tape, b);
    BUG_IF(sum.rows * sum.cols != right.rows * right.cols, "%s.%s broadcasts in place", tape->scope,
        name);
    struct tape_op op = {.backward = add_backward, .name = tape_name(tape, name), .in = {a, b}};
    sum.name = op.name;
    vec_push(&tape->values, sum);
    op.out = tape->values.n - 1;
    tape_elementwise(tape, op.name, 1, sum.buffer, right.buffer, sum.buffer);
    tape_push(tape, op);
    return op.out;
}

/* The gradient of one factor: grad times the other, then summed to the factor's shape or cast to
 * its format. */
static void mul_factor(struct tape *tape, const struct tape_op *op, int factor, int other)
{
    struct tape_value v = tape_at(tape, factor), out = tape_at(tape, op->out);
    if (!v.needs_grad)
        return;
    const char *name = tape_suffix(tape, op->name, "dgrad");
    int grad =
        tape_buffer(tape, tape_suffix(tape, v.name, "grad"), out.rows, out.cols, out.element_bytes);
    tape_elementwise(tape, name, 1, out.grad, tape_at(tape, other).buffer, grad);
    if (v.rows < out.rows || v.cols < out.cols || v.element_bytes != out.element_bytes) {
        int fit = tape_new_grad(tape, factor);
        tape_elementwise(tape, name, 1, grad, NO_BUFFER, fit);
        grad = fit;
    }
    tape_give(tape, factor, grad);
}

static void mul_backward(struct tape *tape, const struct tape_op *op)
{
    mul_factor(tape, op, op->in[0], op->in[1]);
    mul_factor(tape, op, op->in[1], op->in[0]);
}

int tape_mul(struct tape *tape, const char *name, int a, int b)
{
    struct tape_value product = tape_at(tape, a), right = tape_at(tape, b);
    bool by_row = product.rows == right.rows && (right.cols == product.cols || right.cols == 1);
    bool by_column = product.cols == right.cols && product.rows % right.rows == 0;
    BUG_IF(!by_row && !by_column, "%s.%s: the shapes do not fit", tape->scope, name);
    if (right.element_bytes > product.element_bytes) /* type promotion */
        product.element_bytes = right.element_bytes;
    product.needs_grad = product.needs_grad || right.needs_grad;
    struct tape_op op = {.backward = mul_backward, .name = tape_name(tape, name), .in = {a, b}};
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, product, 1);
}

static void tape_pointwise_weight_gradient(struct tape *tape, const struct tape_op *op, int grad)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    const char *name = tape_suffix(tape, op->name, "wgrad");
    int product =
        tape_buffer(tape, tape_suffix(tape, op->name, "product"), x.rows, x.cols, x.element_bytes);
    tape_elementwise(tape, name, 1, grad, x.buffer, product);
    tape_run(tape, (struct tape_stream){.kind = KERNEL_ELEMENTWISE,
                       .name = name,
                       .ops = 1,
                       .reads = BUFFERS(product),
                       .write = NO_BUFFER,
                       .param_bytes = (double)(x.cols * x.element_bytes)});
    tape_complete(tape, op->weight);
}

static void mul_weight_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    if (tape_trains(tape, op->weight))
        tape_pointwise_weight_gradient(tape, op, grad);
    tape_back(tape, op, KERNEL_ELEMENTWISE, 1, NO_BUFFER);
}

int tape_mul_weight(struct tape *tape, const char *name, int x)
{
    struct tape_op op = {.backward = mul_weight_backward,
        .name = tape_name(tape, name),
        .in = {x, NO_VALUE},
        .weight = tape_find(tape, name, "weight")};
    BUG_IF(op.weight == NO_PARAM, "layer %d has no %s.weight", tape->layer, op.name);
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, tape_at(tape, x), 1);
}

/* native_dropout: one kernel that draws, multiplies and writes a mask of a byte an element. */
enum { DROPOUT_OPS = 3 }; /* compare, mask, scale; the random number generator is not counted */

static void dropout_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(tape, op, KERNEL_ELEMENTWISE, DROPOUT_OPS - 1, op->saved[0]);
}

int tape_dropout(struct tape *tape, const char *name, int x)
{
    if (!(tape->model->shape.dropout > 0))
        return x;
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = dropout_backward, .name = tape_name(tape, name), .in = {x}};
    op.out = tape_value(tape, op.name, in.rows, in.cols, in.element_bytes, in.needs_grad);
    op.saved[0] = tape_buffer(tape, tape_suffix(tape, op.name, "mask"), in.rows, in.cols, 1);
    double elements = (double)in.rows * (double)in.cols,
           bytes = elements * (double)in.element_bytes;
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_ELEMENTWISE, bytes, bytes + elements, DROPOUT_OPS * elements), 0,
        BUFFERS(in.buffer, tape_at(tape, op.out).buffer, op.saved[0]));
    tape_push(tape, op);
    return op.out;
}

static void cast_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(tape, op, KERNEL_ELEMENTWISE, 1, NO_BUFFER);
}

int tape_cast(struct tape *tape, const char *name, int x, int64_t element_bytes)
{
    struct tape_value result = tape_at(tape, x);
    if (result.element_bytes == element_bytes)
        return x;
    result.element_bytes = element_bytes;
    struct tape_op op = {
        .backward = cast_backward, .name = tape_name(tape, name), .in = {x, NO_VALUE}};
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, result, 1);
}

int tape_autocast(struct tape *tape, const char *name, int x)
{
    return tape->workload->autocast
               ? tape_cast_to_storage(tape, tape_suffix(tape, name, "autocast"), x)
               : x;
}

int tape_cast_to_storage(struct tape *tape, const char *name, int x)
{
    return tape_cast(tape, name, x, tape->storage_bytes);
}
