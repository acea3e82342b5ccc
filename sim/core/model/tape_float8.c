/* Linear layers in FP8, as torchao's Float8Linear runs them (tape.h).
 *
 * Every operand is needed along its rows and, for products that sum over its rows, across.
 * input_along(), input_across() and their siblings of weight and gradient make these, or, with
 * torch.compile, find what was made already: a value remembers both casts. */
#include "model/tape_core.h"

enum {
    FLOAT8_CAST_OPS = 3, /* multiply, clamp, convert */
};

static bool by_row(const struct tape *tape)
{
    return tape->workload->fp8_recipe == FP8_ROWWISE;
}

static double elements_of(int64_t rows, int64_t cols)
{
    return (double)rows * (double)cols;
}

/* The largest absolute value of the whole tensor, of those of all ranks of AXIS_TP. from:
 * NO_BUFFER: a weight. */
static void find_scale(struct tape *tape, const char *name, int from, double elements)
{
    int scale = tape_find_scale(tape, name, from, elements, 0);
    if (model_tensor_ranks(&tape->workload->parallel) > 1 && from != NO_BUFFER && !by_row(tape))
        tape_exchange(
            tape, tape_suffix(tape, name, "amax"), COLL_ALL_REDUCE, 1U << AXIS_TP, scale, scale);
}

/* One kernel that reads and writes every element once, alone. */
static int tape_float8_pass_over(struct tape *tape, enum kernel_kind kind, const char *name,
    int from, int64_t from_bytes, int64_t rows, int64_t cols, double ops)
{
    double elements = elements_of(rows, cols);
    int to = tape_buffer(tape, name, rows, cols, FP8_BYTES);
    tape_launch(tape, name,
        kernel_stream(kind, elements * (double)from_bytes, elements * FP8_BYTES, ops * elements), 0,
        BUFFERS(to, from));
    tape_set_apart(tape);
    return to;
}

/* An operand along its rows. Scales of rows need no pass before: a row is still at hand when it is
 * cast. */
int tape_float8_cast(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols)
{
    if (from != NO_BUFFER && tape_is_quantized(tape, from))
        return from;
    if (!by_row(tape))
        find_scale(tape, name, from, elements_of(rows, cols));
    return tape_float8_pass_over(tape, KERNEL_ELEMENTWISE, tape_suffix(tape, name, "cast"), from,
        tape->storage_bytes, rows, cols, FLOAT8_CAST_OPS);
}

/* The same operand along its columns, as products that sum over its rows take it: what was cast
 * already, copied; with scales of rows other scales and another cast. */
static int across(
    struct tape *tape, const char *name, int wide, int narrow, int64_t rows, int64_t cols)
{
    const char *transposed = tape_suffix(tape, name, "transpose");
    if (!by_row(tape))
        return tape_float8_pass_over(
            tape, KERNEL_COPY, transposed, narrow, FP8_BYTES, cols, rows, 0);
    find_scale(tape, transposed, wide, elements_of(rows, cols));
    return tape_float8_pass_over(tape, KERNEL_ELEMENTWISE, transposed, wide, tape->storage_bytes,
        cols, rows, FLOAT8_CAST_OPS);
}

/* TorchInductor makes once what several layers take of the same input. */
static bool tape_float8_shares(const struct tape *tape)
{
    return tape->workload->fusion == FUSION_INDUCTOR;
}

static int input_along(struct tape *tape, const struct tape_op *op)
{
    struct tape_value *x = &tape->values.at[op->in[0]];
    if (tape_float8_shares(tape) && x->float8[0] != NO_BUFFER)
        return x->float8[0];
    int cast = tape_float8_cast(
        tape, tape_suffix(tape, op->name, "x"), x->buffer, op->m * tape_matrices(op), op->k);
    tape->values.at[op->in[0]].float8[0] = cast;
    return cast;
}

static int input_across(struct tape *tape, const struct tape_op *op)
{
    int known = tape->values.at[op->in[0]].float8[1];
    if (tape_float8_shares(tape) && known != NO_BUFFER)
        return known;
    int cast = across(tape, tape_suffix(tape, op->name, "x"), tape_at(tape, op->in[0]).buffer,
        op->saved[0], op->m * tape_matrices(op), op->k);
    tape->values.at[op->in[0]].float8[1] = cast;
    return cast;
}

/* Kernels of the pass from `first` on read the layer's weight. */
static void use_weight(struct tape *tape, const struct tape_op *op, int first)
{
    for (int k = first; k < tape->program[tape->pass].n; k++)
        tape->program[tape->pass].at[k].param_use = op->weight;
}

/* Weights that were gathered in FP8 are what they are. */
static int weight_along(struct tape *tape, const struct tape_op *op)
{
    if (tape->workload->fp8_weights)
        return NO_BUFFER;
    int first = tape->program[tape->pass].n;
    int cast = tape_float8_cast(
        tape, tape_suffix(tape, op->name, "weight"), NO_BUFFER, op->n * tape_matrices(op), op->k);
    use_weight(tape, op, first);
    return cast;
}

static int weight_across(struct tape *tape, const struct tape_op *op)
{
    int first = tape->program[tape->pass].n;
    int turned = across(tape, tape_suffix(tape, op->name, "weight"), NO_BUFFER, op->saved[1],
        op->n * tape_matrices(op), op->k);
    use_weight(tape, op, first);
    return turned;
}

/* plain: the gradient along its rows. */
static void tape_float8_weight_gradient(
    struct tape *tape, const struct tape_op *op, int grad, int plain)
{
    const char *name = tape_suffix(tape, op->name, "grad");
    int turned = across(tape, name, grad, plain, op->m * tape_matrices(op), op->n),
        input = input_across(tape, op);
    tape_fp8_multiply(tape, op, tape_suffix(tape, op->name, "wgrad"), op->n, op->k, op->m,
        BUFFERS(turned, input));
    tape_complete(tape, op->weight);
}

static void float8_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0];
    const char *name = tape_suffix(tape, op->name, "grad");
    bool trains = tape_trains(tape, op->weight);
    if (trains)
        tape_bias_gradient(tape, op, grad, op->n);
    int plain = tape_float8_cast(tape, name, grad, op->m * tape_matrices(op), op->n);
    if (tape_at(tape, x).needs_grad) {
        int weight = weight_across(tape, op), grad_x = tape_new_grad(tape, x);
        tape_fp8_multiply(tape, op, tape_suffix(tape, op->name, "dgrad"), op->m, op->k, op->n,
            BUFFERS(plain, grad_x, weight));
        tape_use(tape, op->weight);
        tape_give(tape, x, grad_x);
    }
    tape_reduce_entered(tape, op);
    if (trains)
        tape_float8_weight_gradient(tape, op, grad, plain);
    tape_await_reduced(tape, op);
}

int tape_float8_linear(struct tape *tape, struct tape_op op)
{
    op.backward = float8_backward;
    int x = op.saved[0] = input_along(tape, &op), weight = op.saved[1] = weight_along(tape, &op);
    return tape_fp8_forward(tape, op, x, weight);
}
