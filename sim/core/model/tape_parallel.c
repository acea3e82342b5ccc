/* Between the ranks of AXIS_TP: into the region where each has a part of heads, columns or words
 * (enter), out of it (leave), and rows or columns of all.
 *
 * tape->region says where the record is, and ops keep it for their backward pass: it decides which
 * parameters' gradients are parts of a sum (tape_partial) and how much of a product this rank
 * counts (tape_counted).
 *
 * With sequence parallelism an enter is an all-gather and its gradient a reduce-scatter, and a
 * leave the other way round. Where collectives run beside products (tensor_overlap), the value that
 * entered remembers its source, its first user and what is on its way: backward gathers the shard
 * again before the first product, and reduces the gradient after the last user's.
 *
 * Subtle: the first user in forward is the last in backward. gather_dim 1 adds a copy to each
 * gather and reduce-scatter, unless the product beside it is cut into pieces (lays_out()). */
#include "model/tape_core.h"

static int64_t tape_parallel_ranks(const struct tape *tape)
{
    return model_tensor_ranks(&tape->workload->parallel);
}

static bool scatters(const struct tape *tape)
{
    return tape_parallel_ranks(tape) > 1 && tape->workload->parallel.sequence;
}

double tape_counted(const struct tape *tape, int weight)
{
    const struct model_tensor *tensor = tape_tensor(tape, weight);
    bool own_rows = scatters(tape) && tape->region == REGION_OUTSIDE && !(tensor->split & AXES_TP);
    double counted = own_rows ? 1 : tensor->counted;
    bool alike = tape->region == REGION_ALIKE;
    return alike ? counted / (double)model_context_ranks(&tape->workload->parallel) : counted;
}

bool tape_partial(const struct tape *tape, int param)
{
    if (tape_parallel_ranks(tape) == 1 || tape_tensor(tape, param)->split & AXES_TP)
        return false;
    return tape->region == REGION_CUT || (tape->region == REGION_OUTSIDE && scatters(tape));
}

/* A value that is another one in the same memory. */
static int tape_parallel_alias(struct tape *tape, int x, const char *name)
{
    struct tape_value value = tape_at(tape, x);
    value.name = name;
    value.shared = value.foreign = false;
    vec_push(&tape->values, value);
    return tape->values.n - 1;
}

/* A value of as many rows more or fewer. */
static int resize(struct tape *tape, int x, const char *name, int64_t rows)
{
    struct tape_value in = tape_at(tape, x);
    return tape_value(tape, name, rows, in.cols, in.element_bytes, in.needs_grad);
}

/* ---- along the sequence ---- */

/* What NCCL gathers, or takes to be scattered, has the ranks' parts one behind the other, and
 * samples come first: funcol lays it out anew by torch.cat(torch.chunk()). Async TP's products in
 * pieces write and read where it belongs; cut: there are such. */
static bool lays_out(const struct tape *tape, bool cut)
{
    const struct model_parallel *parallel = &tape->workload->parallel;
    bool in_pieces = parallel->tensor_overlap != TENSOR_BLOCKING &&
                     tape->model->layers[tape->layer].role != LAYER_ROOT;
    return parallel->gather_dim == 1 && !(in_pieces && cut);
}

/* Scales of rows are found in what was gathered, before the product. */
static bool casts_gathered(const struct tape *tape)
{
    return tape->workload->fp8 && !tape->workload->fp4 && tape->workload->fp8_recipe == FP8_ROWWISE;
}

/* The gradient of what entered is a sum of several layers'. */
static bool has_several_users(const struct tape *tape, int x)
{
    int users = 0;
    for (int i = 0; i < tape->ops.n; i++)
        users += tape->ops.at[i].in[0] == x;
    return users > 1;
}

static int buffer_like(struct tape *tape, const char *name, int buffer)
{
    struct tape_buffer like = tape->buffers.at[buffer];
    return tape_buffer(tape, name, like.elements, 1, like.life.bytes / like.elements);
}

static void gather_rows(struct tape *tape, const char *name, int from, int to)
{
    int parts = lays_out(tape, !casts_gathered(tape))
                    ? buffer_like(tape, tape_suffix(tape, name, "parts"), to)
                    : to;
    tape_exchange(tape, name, COLL_ALL_GATHER, AXES_TP, from, parts);
    if (parts != to)
        tape_pass(tape, KERNEL_COPY, tape_suffix(tape, name, "cat"), 0, BUFFERS(parts), to);
}

/* What is reduce-scattered. cut: the product before it. */
static int rows_to_reduce(struct tape *tape, const char *name, int from, bool cut)
{
    if (!lays_out(tape, cut))
        return from;
    const char *cat = tape_suffix(tape, name, "cat");
    int parts = buffer_like(tape, cat, from);
    tape_pass(tape, KERNEL_COPY, cat, 0, BUFFERS(from), parts);
    return parts;
}

/* ---- enter ---- */

/* Where the ranks' gradients of what entered are summed: its shard's, with sequence, or in place.
 */
static int sum_buffer(struct tape *tape, int from, int grad)
{
    return scatters(tape) ? tape_new_grad(tape, from) : grad;
}

static enum coll_kind sum_kind(const struct tape *tape)
{
    return scatters(tape) ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE;
}

static void enter_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), sum = tape_at(tape, op->out).entered.reduced;
    if (sum == NO_BUFFER) {
        const char *name = tape_suffix(tape, op->name, "dgrad");
        if (scatters(tape))
            grad = rows_to_reduce(tape, name, grad, !has_several_users(tape, op->out));
        sum = sum_buffer(tape, op->in[0], grad);
        tape_exchange(tape, name, sum_kind(tape), AXES_TP, grad, sum);
    }
    tape_give(tape, op->in[0], sum);
}

int tape_enter(struct tape *tape, const char *name, int x)
{
    if (tape_parallel_ranks(tape) == 1)
        return x;
    x = tape_autocast(tape, name, x);
    if (scatters(tape) && tape_quantizes(tape, tape_at(tape, x).rows))
        x = tape_quantize(tape, tape_name(tape, name), x);
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = enter_backward, .name = tape_name(tape, name), .in = {x}};
    if (scatters(tape)) {
        op.out = resize(tape, x, op.name, in.rows * tape_parallel_ranks(tape));
        gather_rows(tape, op.name, in.buffer, tape_at(tape, op.out).buffer);
    } else {
        op.out = tape_parallel_alias(tape, x, op.name);
    }
    int overlap = tape->workload->parallel.tensor_overlap;
    if (overlap == TENSOR_ASYNC || overlap == TENSOR_USER_BUFFERS)
        tape->values.at[op.out].entered.from = x;
    tape_push(tape, op);
    tape->region = REGION_CUT;
    return op.out;
}

int tape_gather_again(struct tape *tape, int x)
{
    struct tape_value *value = &tape->values.at[x];
    if (value->entered.from == NO_VALUE || !scatters(tape))
        return value->buffer;
    if (value->entered.again == NO_BUFFER) {
        struct tape_value shard = tape_at(tape, value->entered.from);
        const char *name = tape_suffix(tape, value->name, "again");
        int again = tape_buffer(tape, name, value->rows, value->cols, value->element_bytes);
        tape_communicate(tape, name, COLL_ALL_GATHER, AXES_TP, again);
        tape_touch(tape, shard.buffer);
        value->entered.again = again;
        value->entered.pending = true;
    }
    return value->entered.again;
}

void tape_await_again(struct tape *tape, int x)
{
    struct tape_value *value = &tape->values.at[x];
    if (!value->entered.pending)
        return;
    tape_await(tape);
    tape_touch(tape, tape_at(tape, value->entered.from).buffer);
    tape_touch(tape, value->entered.again);
    value->entered.pending = false;
}

static bool is_last_user(const struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    return x.needs_grad && x.entered.from != NO_VALUE && x.entered.first_user == op->out;
}

void tape_reduce_entered(struct tape *tape, const struct tape_op *op)
{
    if (!is_last_user(tape, op))
        return;
    struct tape_value x = tape_at(tape, op->in[0]);
    int sum = sum_buffer(tape, x.entered.from, x.grad);
    tape_communicate(tape, tape_suffix(tape, x.name, "dgrad"), sum_kind(tape), AXES_TP, x.grad);
    tape_touch(tape, sum);
    tape->values.at[op->in[0]].entered.reduced = sum;
}

void tape_await_reduced(struct tape *tape, const struct tape_op *op)
{
    if (!is_last_user(tape, op))
        return;
    struct tape_value x = tape_at(tape, op->in[0]);
    tape_await(tape);
    tape_touch(tape, x.grad);
    tape_touch(tape, x.entered.reduced);
}

/* ---- leave ---- */

static void leave_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0];
    if (op->bias != NO_PARAM && tape_trains(tape, op->bias))
        tape_bias_gradient(tape, op, grad, tape_at(tape, x).cols);
    if (scatters(tape)) {
        struct tape_value in = tape_at(tape, x);
        const char *name = tape_suffix(tape, op->name, "grad");
        int64_t rows = in.rows / tape_parallel_ranks(tape);
        int whole = NO_BUFFER;
        if (tape_quantizes(tape, rows)) {
            grad = tape_quantized_buffer(tape, name, grad, rows, in.cols);
            whole = tape_buffer(tape, name, in.rows, in.cols, dtype_bytes(DTYPE_FP8));
        } else {
            whole = tape_new_grad(tape, x);
        }
        gather_rows(tape, name, grad, whole);
        grad = whole;
    }
    tape_give(tape, x, grad);
}

int tape_leave(struct tape *tape, const char *name, int bias, int x)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {
        .backward = leave_backward, .name = tape_name(tape, name), .in = {x}, .bias = bias};
    tape->region = REGION_OUTSIDE;
    if (scatters(tape)) {
        BUG_IF(in.rows % tape_parallel_ranks(tape), "%s: %ld rows over %ld tape_parallel_ranks",
            op.name, (long)in.rows, (long)tape_parallel_ranks(tape));
        int whole = rows_to_reduce(tape, op.name, in.buffer, true);
        op.out =
            resize(tape, x, tape_suffix(tape, op.name, "sum"), in.rows / tape_parallel_ranks(tape));
        tape_exchange(
            tape, op.name, COLL_REDUCE_SCATTER, AXES_TP, whole, tape_at(tape, op.out).buffer);
    } else {
        op.out = tape_parallel_alias(tape, x, tape_suffix(tape, op.name, "sum"));
        tape_exchange(tape, op.name, COLL_ALL_REDUCE, AXES_TP, in.buffer, in.buffer);
    }
    tape_push(tape, op);
    return op.out;
}

/* ---- rows that all ranks have, beside those that each has ---- */

/* This rank's rows of a buffer. */
static void launch_own(struct tape *tape, const char *name, int from, int own)
{
    double bytes = (double)tape->buffers.at[own].life.bytes;
    tape_launch(tape, name, kernel_stream(KERNEL_COPY, bytes, bytes, 0), 0, BUFFERS(from, own));
}

static void scatter_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), whole = tape_new_grad(tape, op->in[0]);
    tape_exchange(tape, tape_suffix(tape, op->name, "grad"), COLL_ALL_GATHER, AXES_TP, grad, whole);
    tape_give(tape, op->in[0], whole);
}

int tape_scatter(struct tape *tape, const char *name, int x)
{
    tape->region = REGION_OUTSIDE;
    if (!scatters(tape))
        return x;
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = scatter_backward, .name = tape_name(tape, name), .in = {x}};
    BUG_IF(in.rows % tape_parallel_ranks(tape), "%s: %ld rows over %ld tape_parallel_ranks",
        op.name, (long)in.rows, (long)tape_parallel_ranks(tape));
    op.out = resize(tape, x, op.name, in.rows / tape_parallel_ranks(tape));
    launch_own(tape, op.name, in.buffer, tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

static void gather_backward(struct tape *tape, const struct tape_op *op)
{
    int own = tape_new_grad(tape, op->in[0]);
    launch_own(tape, tape_suffix(tape, op->name, "dgrad"), tape_grad(tape, op), own);
    tape_give(tape, op->in[0], own);
}

int tape_gather(struct tape *tape, const char *name, int x)
{
    tape->region = REGION_ALIKE;
    if (!scatters(tape))
        return x;
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = gather_backward, .name = tape_name(tape, name), .in = {x}};
    op.out = resize(tape, x, op.name, in.rows * tape_parallel_ranks(tape));
    tape_exchange(tape, op.name, COLL_ALL_GATHER, AXES_TP, in.buffer, tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

/* ---- columns ---- */

static void gather_columns_backward(struct tape *tape, const struct tape_op *op)
{
    int own = tape_new_grad(tape, op->in[0]);
    launch_own(tape, tape_suffix(tape, op->name, "dgrad"), tape_grad(tape, op), own);
    tape_give(tape, op->in[0], own);
}

int tape_gather_columns(struct tape *tape, const char *name, int x, int64_t cols)
{
    if (tape_parallel_ranks(tape) == 1)
        return x;
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {
        .backward = gather_columns_backward, .name = tape_name(tape, name), .in = {x}};
    int parts = tape_buffer(tape, op.name, in.rows, cols, in.element_bytes);
    tape_exchange(tape, op.name, COLL_ALL_GATHER, AXES_TP, in.buffer, parts);
    op.out = tape_value(
        tape, tape_suffix(tape, op.name, "cat"), in.rows, cols, in.element_bytes, in.needs_grad);
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op.name, "cat"), 0, BUFFERS(parts),
        tape_at(tape, op.out).buffer);
    tape->region = REGION_ALIKE;
    tape_push(tape, op);
    return op.out;
}

/* ---- words ---- */

/* Zeros over the rows of words that other ranks have, the same in the gradient. */
static void launch_mask(struct tape *tape, const char *name, int buffer)
{
    double others = 1 - 1 / (double)tape_parallel_ranks(tape);
    tape_launch(tape, name,
        kernel_stream(
            KERNEL_ELEMENTWISE, 0, others * (double)tape->buffers.at[buffer].life.bytes, 0),
        0, BUFFERS(buffer));
}

static void mask_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    launch_mask(tape, tape_suffix(tape, op->name, "dgrad"), grad);
    tape_give(tape, op->in[0], grad);
}

static void all_reduce_backward(struct tape *tape, const struct tape_op *op)
{
    tape_give(tape, op->in[0], tape_grad(tape, op));
}

static int all_reduce(struct tape *tape, const char *name, int x)
{
    struct tape_op op = {.backward = all_reduce_backward, .name = tape_name(tape, name), .in = {x}};
    int buffer = tape_at(tape, x).buffer;
    op.out = tape_parallel_alias(tape, x, tape_suffix(tape, op.name, "sum"));
    tape_exchange(tape, op.name, COLL_ALL_REDUCE, AXES_TP, buffer, buffer);
    tape_push(tape, op);
    return op.out;
}

int tape_words(struct tape *tape, const char *name, int64_t rows, enum tape_turn turn, bool summed)
{
    int x = tape_embedding(tape, name, rows, turn);
    if (tape_parallel_ranks(tape) == 1)
        return x;
    struct tape_op op = {.backward = mask_backward,
        .name = tape_suffix(tape, tape_name(tape, name), "mask"),
        .in = {x}};
    op.out = tape_parallel_alias(tape, x, op.name);
    launch_mask(tape, op.name, tape_at(tape, x).buffer);
    tape_push(tape, op);
    tape->region = REGION_ALIKE;
    return summed ? all_reduce(tape, name, op.out) : tape_leave(tape, name, NO_PARAM, op.out);
}
