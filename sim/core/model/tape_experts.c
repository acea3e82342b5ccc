/* Experts: the choice of a router, rows that move to experts and back, products of many matrices,
 * and the exchanges of expert parallelism. Sources: Megatron-LM, megatron/core/transformer/moe
 * (router.py, token_dispatcher.py, experts.py); Hugging Face transformers, modeling_mixtral.py.
 *
 * Rows move by kernels that cost their bytes (KERNEL_EMBEDDING), and products are a batch of equal
 * ones. An exchange is two calls: tape_send_rows() starts it, tape_arrive() waits for it, and what
 * is recorded between runs beside it. In backward the roles change: the gradient of tape_arrive()
 * starts the exchange back, that of tape_send_rows() waits. Only one exchange is on its way at a
 * time (tape->sent keeps its source alive until it is awaited). */
#include "model/tape_core.h"

enum {
    SWIGLU_OPS = 6, /* SiLU is 4; two products; backward each factor's derivative, a sum */
    SWIGLU_GRAD_OPS = 14,
    RELU2_OPS = 3, /* a maximum, a square, a product; backward both again, each factor's derivative,
                      a sum */
    RELU2_GRAD_OPS = 8
};

static double tape_experts_bytes_of(const struct tape *tape, int buffer)
{
    return (double)tape->buffers.at[buffer].life.bytes;
}

int64_t tape_rows(const struct tape *tape, int x)
{
    return tape_at(tape, x).rows;
}

/* ---- the router's choice ---- */

static void top_k_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), grad_x = tape_new_grad(tape, op->in[0]);
    tape_pass(
        tape, KERNEL_COPY, tape_suffix(tape, op->name, "zero"), 0, BUFFERS(NO_BUFFER), grad_x);
    double bytes = tape_experts_bytes_of(tape, grad);
    tape_launch(tape, tape_suffix(tape, op->name, "dgrad"),
        kernel_stream(
            KERNEL_EMBEDDING, bytes + tape_experts_bytes_of(tape, op->saved[0]), bytes, 0),
        0, BUFFERS(grad, op->saved[0], grad_x));
    tape_give(tape, op->in[0], grad_x);
}

int tape_top_k(struct tape *tape, const char *name, int scores, int64_t k, int64_t passes)
{
    struct tape_value in = tape_at(tape, scores);
    struct tape_op op = {.backward = top_k_backward, .name = tape_name(tape, name), .in = {scores}};
    int choice = in.buffer;
    for (int64_t i = 0; i < passes; i++) {
        int next = tape_buffer(
            tape, tape_suffix(tape, op.name, "choice"), in.rows, in.cols, in.element_bytes);
        tape_elementwise(tape, tape_suffix(tape, op.name, "choice"), 1, choice, NO_BUFFER, next);
        choice = next;
    }
    op.out = tape_value(tape, op.name, in.rows, k, in.element_bytes, in.needs_grad);
    op.saved[0] = tape_buffer(tape, tape_suffix(tape, op.name, "indices"), in.rows, k, LONG_BYTES);
    int out = tape_at(tape, op.out).buffer;
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_ELEMENTWISE, tape_experts_bytes_of(tape, choice),
            tape_experts_bytes_of(tape, out) + tape_experts_bytes_of(tape, op.saved[0]),
            (double)(in.rows * in.cols)),
        0, BUFFERS(choice, out, op.saved[0]));
    tape_push(tape, op);
    return op.out;
}

/* A kernel over a number an expert. */
static void few(struct tape *tape, const char *name, const char *suffix, int64_t experts)
{
    double bytes = (double)(experts * FLOAT_BYTES);
    tape_launch(tape, tape_suffix(tape, name, suffix),
        kernel_stream(KERNEL_ELEMENTWISE, bytes, bytes, 0), 0, BUFFERS(NO_BUFFER));
}

/* The coefficient's and the product's gradients; each score's is its expert's. */
static void aux_loss_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    few(tape, op->name, "scale.dgrad", op->n);
    few(tape, op->name, "mul.dgrad", op->n);
    tape_elementwise(tape, tape_suffix(tape, op->name, "grad.add"), 1, grad, NO_BUFFER, grad);
    tape_give(tape, op->in[0], grad);
}

int tape_aux_loss(struct tape *tape, const char *name, int scores, unsigned axes)
{
    struct tape_value out = tape_at(tape, scores);
    struct tape_op op = {.backward = aux_loss_backward,
        .name = tape_name(tape, name),
        .in = {scores},
        .n = out.cols};
    double mask = (double)(out.rows * out.cols * BYTE), counts = (double)(out.cols * LONG_BYTES);
    int own = tape_buffer(tape, tape_suffix(tape, op.name, "counts"), 1, out.cols, LONG_BYTES);
    tape_launch(tape, tape_suffix(tape, op.name, "counts"),
        kernel_stream(KERNEL_ELEMENTWISE, mask, counts, mask), 0, BUFFERS(own));
    if (axes) {
        tape_communicate(tape, op.name, COLL_ALL_REDUCE, axes, own);
        tape_await(tape);
    }
    tape_launch(tape, tape_suffix(tape, op.name, "sum"),
        kernel_stream(KERNEL_ELEMENTWISE, tape_experts_bytes_of(tape, out.buffer), counts,
            (double)(out.rows * out.cols)),
        0, BUFFERS(out.buffer, own));
    few(tape, op.name, "mul", out.cols);
    few(tape, op.name, "mul.sum", out.cols);
    few(tape, op.name, "scale", 1);
    few(tape, op.name, "track", 1); /* save_to_aux_losses_tracker */
    out.name = op.name;
    vec_push(&tape->values, out);
    op.out = tape->values.n - 1;
    tape_push(tape, op);
    return op.out;
}

static void spread_backward(struct tape *tape, const struct tape_op *op)
{
    int grad_x = tape_new_grad(tape, op->in[0]);
    double bytes = tape_experts_bytes_of(tape, grad_x);
    tape_launch(tape, tape_suffix(tape, op->name, "dgrad"),
        kernel_stream(KERNEL_EMBEDDING, bytes, bytes, 0), 0, BUFFERS(tape_grad(tape, op), grad_x));
    tape_give(tape, op->in[0], grad_x);
}

int tape_spread(struct tape *tape, const char *name, int x, int64_t cols)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = spread_backward, .name = tape_name(tape, name), .in = {x}};
    op.out = tape_value(tape, op.name, in.rows, cols, in.element_bytes, in.needs_grad);
    int out = tape_at(tape, op.out).buffer;
    double bytes = tape_experts_bytes_of(tape, in.buffer);
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op.name, "zero"), 0, BUFFERS(NO_BUFFER), out);
    tape_launch(tape, op.name, kernel_stream(KERNEL_EMBEDDING, bytes, bytes, 0), 0,
        BUFFERS(in.buffer, out));
    tape_push(tape, op);
    return op.out;
}

void tape_count(struct tape *tape, const char *name, int64_t tokens, int64_t experts, int64_t ranks,
    unsigned axes)
{
    const char *counts = tape_name(tape, name);
    int own = tape_buffer(tape, counts, ranks, experts, LONG_BYTES);
    double mask = (double)(tokens * experts * BYTE), all = tape_experts_bytes_of(tape, own),
           few = all / (double)ranks;
    tape_launch(tape, counts, kernel_stream(KERNEL_ELEMENTWISE, mask, few, mask), 0, BUFFERS(own));
    if (ranks > 1) {
        tape_communicate(tape, counts, COLL_ALL_GATHER, axes, own);
        tape_await(tape);
    }
    tape_launch(tape, tape_suffix(tape, counts, "to_host"), kernel_stream(KERNEL_COPY, all, all, 0),
        0, BUFFERS(own));
    tape_mark_kept(tape);
    tape_host_wait(tape, arena_printf(tape->arena, "%s.tolist", name), true);
}

/* ---- rows to experts and back ---- */

static void scatter_add_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), grad_x = tape_new_grad(tape, op->in[1]);
    double bytes = tape_times(op->row_cost) * tape_experts_bytes_of(tape, grad_x);
    tape_launch(tape, tape_suffix(tape, op->name, "dgrad"),
        kernel_stream(KERNEL_EMBEDDING, bytes, bytes, 0), 0, BUFFERS(grad, grad_x));
    tape_give(tape, op->in[0], grad);
    tape_give(tape, op->in[1], grad_x);
}

int tape_scatter_add(struct tape *tape, const char *name, int into, int x)
{
    struct tape_value sum = tape_at(tape, into), rows = tape_at(tape, x);
    BUG_IF(sum.cols != rows.cols, "%s.%s: rows of %ld and %ld", tape->scope, name, (long)sum.cols,
        (long)rows.cols);
    struct tape_op op = {.backward = scatter_add_backward,
        .name = tape_name(tape, name),
        .in = {into, x},
        .row_cost = tape->row_cost};
    double read = tape_experts_bytes_of(tape, rows.buffer),
           all = tape_experts_bytes_of(tape, sum.buffer), times = tape_times(op.row_cost);
    double touched =
        rows.rows < sum.rows ? (double)(rows.rows * sum.cols * sum.element_bytes) : all;
    sum.name = op.name;
    sum.needs_grad = sum.needs_grad || rows.needs_grad;
    vec_push(&tape->values, sum);
    op.out = tape->values.n - 1;
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_EMBEDDING, times * (read + touched), times * touched,
            (double)(rows.rows * rows.cols)),
        0, BUFFERS(rows.buffer, sum.buffer));
    tape_push(tape, op);
    return op.out;
}

static void runs_backward(struct tape *tape, const struct tape_op *op)
{
    int *grads = ARENA_ARRAY(tape->arena, int, op->n + 1), grad_x = tape_new_grad(tape, op->in[0]);
    for (int64_t i = 0; i < op->n; i++) {
        grads[i] = tape_at(tape, op->list[i]).grad;
        tape->values.at[op->list[i]].grad = NO_BUFFER;
    }
    grads[op->n] = NO_BUFFER;
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op->name, "dgrad"), 0, grads, grad_x);
    tape_give(tape, op->in[0], grad_x);
}

const int *tape_runs(struct tape *tape, const char *name, int x, int64_t n)
{
    struct tape_value in = tape_at(tape, x);
    int *parts = ARENA_ARRAY(tape->arena, int, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t rows = in.rows * (i + 1) / n - in.rows * i / n;
        parts[i] = tape_value(tape, tape_name(tape, name), rows > 0 ? rows : 1, in.cols,
            in.element_bytes, in.needs_grad);
        tape->buffers.at[tape_at(tape, parts[i]).buffer].view_of = in.buffer;
    }
    tape_push(tape, (struct tape_op){.backward = runs_backward,
                        .name = tape_name(tape, name),
                        .in = {x},
                        .out = parts[0],
                        .n = n,
                        .list = parts});
    return parts;
}

static void stack_backward(struct tape *tape, const struct tape_op *op)
{
    for (int64_t i = 0; i < op->n; i++) {
        int part = tape_new_grad(tape, op->list[i]);
        tape->buffers.at[part].view_of = tape_grad(tape, op);
        tape_give(tape, op->list[i], part);
    }
}

int tape_stack(struct tape *tape, const char *name, const int *parts, int64_t n)
{
    struct tape_op op = {
        .backward = stack_backward, .name = tape_name(tape, name), .n = n, .list = parts};
    struct tape_value first = tape_at(tape, parts[0]);
    int *reads = ARENA_ARRAY(tape->arena, int, n + 1);
    int64_t rows = 0;
    for (int64_t i = 0; i < n; i++) {
        reads[i] = tape_at(tape, parts[i]).buffer;
        rows += tape_rows(tape, parts[i]);
    }
    reads[n] = NO_BUFFER;
    op.out = tape_value(tape, op.name, rows, first.cols, first.element_bytes, first.needs_grad);
    tape_pass(tape, KERNEL_COPY, op.name, 0, reads, tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

/* ---- products of experts ---- */

static void tape_experts_multiply(struct tape *tape, const struct tape_op *op, const char *name,
    int64_t m, int64_t n, int64_t k, const int *buffers)
{
    struct kernel_work work = kernel_gemm(
        m, n, k, op->batch, tape->workload->math, tape->storage_bytes, tape->storage_bytes);
    tape_launch(tape, name, work, op->model_flop, buffers);
    tape_of_experts(tape, op->batch);
}

static void experts_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0];
    if (tape_at(tape, x).needs_grad) {
        int grad_x = tape_new_grad(tape, x);
        tape_experts_multiply(tape, op, tape_suffix(tape, op->name, "dgrad"), op->m, op->k, op->n,
            BUFFERS(grad, grad_x));
        tape_use(tape, op->weight);
        tape_give(tape, x, grad_x);
    }
    if (!tape_trains(tape, op->weight))
        return;
    tape_experts_multiply(tape, op, tape_suffix(tape, op->name, "wgrad"), op->n, op->k, op->m,
        BUFFERS(grad, tape_at(tape, x).buffer));
    if (op->part == 0)
        tape_complete(tape, op->weight);
    else if (op->part + 1 == op->parts)
        tape_begin_shares(tape, op->weight);
    if (op->bias == NO_PARAM)
        return;
    tape_bias_sum(tape, op, grad, op->batch * op->n);
    if (op->part == 0)
        tape_complete(tape, op->bias);
}

/* GroupedLinear does. */
static bool in_fp8(const struct tape *tape, const struct tape_op *op)
{
    return tape->workload->fp8 && op->parts == 1 && op->n % TAPE_FP8_STEP == 0 &&
           op->k % TAPE_FP8_STEP == 0;
}

int tape_experts(
    struct tape *tape, const char *name, const char *suffix, int x, struct tape_experts of)
{
    x = tape_autocast(tape, tape_suffix(tape, name, suffix), x);
    struct tape_value in = tape_at(tape, x);
    int weight = tape_find(tape, name, suffix);
    BUG_IF(weight == NO_PARAM, "layer %d has no %s.%s.%s", tape->layer, tape->scope, name, suffix);
    struct tape_op op = {.backward = experts_backward,
        .name = tape_name(tape, tape_suffix(tape, name, suffix)),
        .in = {x},
        .weight = weight,
        .bias = tape_find(tape, name, arena_printf(tape->arena, "%s_bias", suffix)),
        .m = (in.rows + of.experts - 1) / of.experts,
        .n = tape_tensor(tape, weight)->numel / in.cols / of.stack,
        .k = in.cols,
        .batch = of.experts,
        .part = of.part,
        .parts = of.stack / of.experts};
    op.model_flop =
        2 * of.rows * (double)of.experts / (double)of.stack * (double)op.n * (double)op.k;
    if (in_fp8(tape, &op)) {
        op.m = (op.m + TAPE_FP8_STEP - 1) / TAPE_FP8_STEP * TAPE_FP8_STEP;
        return tape_fp8_linear(tape, op);
    }
    op.out = tape_value(tape, op.name, in.rows, op.n, tape->storage_bytes, true);
    tape_experts_multiply(
        tape, &op, op.name, op.m, op.n, op.k, BUFFERS(in.buffer, tape_at(tape, op.out).buffer));
    tape_use(tape, weight);
    if (tape->workload->expert_kernels == EXPERTS_LOOP)
        tape_mark_mm(tape, &op);
    tape_push(tape, op);
    return op.out;
}

/* f(x) times the probability of its row; choice: enum activation. */
enum activation { SWIGLU, SQUARED_RELU };
static const struct {
    int64_t inputs;       /* of an element of the result */
    double ops, grad_ops; /* of an element of the result; backward that of probabilities, too */
} activations[] = {
    [SWIGLU] = {2, SWIGLU_OPS, SWIGLU_GRAD_OPS}, [SQUARED_RELU] = {1, RELU2_OPS, RELU2_GRAD_OPS}};

static void weighted_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]), probs = tape_at(tape, op->in[1]),
                      out = tape_at(tape, op->out);
    int grad = tape_grad(tape, op), grad_x = tape_new_grad(tape, op->in[0]),
        grad_probs = tape_new_grad(tape, op->in[1]);
    double read = tape_experts_bytes_of(tape, grad) + tape_experts_bytes_of(tape, x.buffer) +
                  tape_experts_bytes_of(tape, probs.buffer);
    tape_launch(tape, tape_suffix(tape, op->name, "dgrad"),
        kernel_stream(KERNEL_ELEMENTWISE, read,
            tape_experts_bytes_of(tape, grad_x) + tape_experts_bytes_of(tape, grad_probs),
            activations[op->choice].grad_ops * (double)(out.rows * out.cols)),
        0, BUFFERS(grad, x.buffer, probs.buffer, grad_x, grad_probs));
    tape_give(tape, op->in[0], grad_x);
    tape_give(tape, op->in[1], grad_probs);
}

static int weighted(struct tape *tape, const char *name, enum activation function, int x, int probs)
{
    struct tape_value in = tape_at(tape, x), by = tape_at(tape, probs);
    BUG_IF(by.rows != in.rows || by.cols != 1, "%s.%s: a probability a row", tape->scope, name);
    struct tape_op op = {.backward = weighted_backward,
        .name = tape_name(tape, name),
        .in = {x, probs},
        .choice = (int)function};
    int64_t cols = in.cols / activations[function].inputs;
    op.out = tape_value(tape, op.name, in.rows, cols, in.element_bytes, in.needs_grad);
    int out = tape_at(tape, op.out).buffer;
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_ELEMENTWISE,
            tape_experts_bytes_of(tape, in.buffer) + tape_experts_bytes_of(tape, by.buffer),
            tape_experts_bytes_of(tape, out), activations[function].ops * (double)(in.rows * cols)),
        0, BUFFERS(in.buffer, by.buffer, out));
    tape_push(tape, op);
    return op.out;
}

int tape_weighted_swiglu(struct tape *tape, const char *name, int x, int probs)
{
    return weighted(tape, name, SWIGLU, x, probs);
}

int tape_weighted_squared_relu(struct tape *tape, const char *name, int x, int probs)
{
    return weighted(tape, name, SQUARED_RELU, x, probs);
}

/* Element by element into another format, a buffer as x is. */
static int convert(
    struct tape *tape, const struct tape_op *op, const char *name, int from, int64_t bytes)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    name = tape_suffix(tape, op->name, name);
    int to = tape_buffer(tape, name, x.rows, x.cols, bytes);
    tape_pass(tape, KERNEL_COPY, name, 0, BUFFERS(from, NO_BUFFER), to);
    return to;
}

static void swiglu_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    bool narrow = op->saved[0] != NO_BUFFER;
    int from = narrow ? convert(tape, op, "input.to", op->saved[0], x.element_bytes) : x.buffer;
    tape_back(tape, op, KERNEL_ELEMENTWISE, SWIGLU_GRAD_OPS / 2.0, from);
}

int tape_swiglu(struct tape *tape, const char *name, int x)
{
    struct tape_op op = {
        .backward = swiglu_backward, .name = tape_name(tape, name), .in = {x, NO_VALUE}};
    struct tape_value out = tape_at(tape, x);
    op.saved[0] = tape->workload->swiglu_fp8_input
                      ? convert(tape, &op, "input.fp8", out.buffer, FP8_BYTES)
                      : NO_BUFFER;
    out.cols /= 2;
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, out, SWIGLU_OPS / 2.0);
}

static void squared_relu_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(tape, op, KERNEL_ELEMENTWISE, RELU2_OPS, tape_at(tape, op->in[0]).buffer);
}

int tape_squared_relu(struct tape *tape, const char *name, int x)
{
    const char *square = arena_printf(tape->arena, "%s.square", name);
    if (!tape_has_transformer_engine(tape))
        return tape_map(tape, square, TAPE_POWER,
            tape_map(tape, arena_printf(tape->arena, "%s.relu", name), TAPE_RELU, x));
    struct tape_op op = {
        .backward = squared_relu_backward, .name = tape_name(tape, square), .in = {x, NO_VALUE}};
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, tape_at(tape, x), RELU2_OPS - 1);
}

/* ---- exchanges ---- */

static enum coll_kind gradient_of(enum coll_kind kind)
{
    return kind == COLL_ALL_GATHER       ? COLL_REDUCE_SCATTER
           : kind == COLL_REDUCE_SCATTER ? COLL_ALL_GATHER
                                         : kind;
}

/* Both are there until the communication is awaited. */
static void tape_experts_send(struct tape *tape, const char *name, const struct tape_op *op,
    enum coll_kind kind, int from, int to)
{
    int before = tape->sent;
    tape_communicate(tape, name, kind, op->axes,
        tape_experts_bytes_of(tape, from) > tape_experts_bytes_of(tape, to) ? from : to);
    if (op->route.routing) {
        struct model_comm *comm =
            &tape->program[tape->pass].at[tape->program[tape->pass].n - 1].comm;
        comm->bytes = op->route.bytes;
        comm->routing = op->route.routing;
    }
    tape_touch(tape, from);
    tape_touch(tape, to);
    if (before != NO_BUFFER)
        tape_touch(tape, before);
    tape->sent = from;
}

/* Collectives of other axes may have come and gone since. */
static void await_sent(struct tape *tape, unsigned axes)
{
    tape_await(tape);
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].comm.axes = axes;
    if (tape->sent != NO_BUFFER)
        tape_touch(tape, tape->sent);
    tape->sent = NO_BUFFER;
}

static void exchange_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    await_sent(tape, op->axes);
    tape_touch(tape, grad);
    tape_give(tape, op->in[0], grad);
}

static int send_rows(struct tape *tape, struct tape_op op, int64_t rows)
{
    struct tape_value in = tape_at(tape, op.in[0]);
    op.backward = exchange_backward;
    op.out = tape_value(tape, op.name, rows, in.cols, in.element_bytes, in.needs_grad);
    tape_experts_send(
        tape, op.name, &op, (enum coll_kind)op.choice, in.buffer, tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

int tape_send_rows(
    struct tape *tape, const char *name, enum coll_kind kind, unsigned axes, int x, int64_t rows)
{
    return send_rows(tape,
        (struct tape_op){
            .name = tape_name(tape, name), .in = {x}, .choice = (int)kind, .axes = axes},
        rows);
}

int tape_send_routed(struct tape *tape, const char *name, unsigned axes, int x, int64_t rows,
    struct tape_route route)
{
    const struct tape_op op = {.name = tape_name(tape, name),
        .in = {x},
        .choice = COLL_ALL_TO_ALL,
        .axes = axes,
        .route = route};
    return send_rows(tape, op, rows);
}

/* The gradient goes on its way: it is that of what was sent. */
static void arrive_backward(struct tape *tape, const struct tape_op *op)
{
    int back = tape_new_grad(tape, op->in[1]);
    tape_experts_send(tape, tape_suffix(tape, op->name, "dgrad"), op,
        gradient_of((enum coll_kind)op->choice), tape_grad(tape, op), back);
    tape_give(tape, op->in[0], back);
}

int tape_arrive(struct tape *tape, int exchanged)
{
    struct tape_value value = tape_at(tape, exchanged);
    struct tape_op op = {.backward = arrive_backward, .name = value.name};
    for (int i = tape->ops.n - 1; i >= 0; i--)
        if (tape->ops.at[i].backward == exchange_backward && tape->ops.at[i].out == exchanged) {
            op.in[0] = exchanged;
            op.in[1] = tape->ops.at[i].in[0];
            op.choice = tape->ops.at[i].choice;
            op.axes = tape->ops.at[i].axes;
            op.route = tape->ops.at[i].route;
        }
    await_sent(tape, op.axes);
    tape_touch(tape, value.buffer);
    vec_push(&tape->values, value);
    op.out = tape->values.n - 1;
    tape_push(tape, op);
    return op.out;
}
