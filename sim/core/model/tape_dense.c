/* What multiplies: linear layers, batched products, flash attention; and the embedding lookup, a
 * product with one-hot rows.
 *
 * A linear layer records m x k by k x n; backward is two products, dgrad and wgrad, of which a
 * frozen matrix has only the first. Around these stand, where the workload asks for it: casts
 * (autocast), widening from NF4, FP8 (tape_fp8.c, tape_float8.c), the collectives of tensor
 * parallelism (tape_parallel.c), adapters, and shares of a gradient that several segments make
 * (tape_turn). FlashAttention is one kernel forward; backward is a row sum, zeros for dq in FP32,
 * the kernel, and a cast of dq.
 *
 * Subtle: model FLOP and the kernel's FLOP differ for causal attention: the model counts all pairs,
 * the mask's part of which is noted as masked_flop, and the kernel does half. */
#include "kernel/attention.h"
#include "model/tape_core.h"

#include <string.h>

/* bitsandbytes' kDequantizeBlockwise: look up and scale; the constants are widened before (8 bits:
 * 1/64 of it). */
enum { DEQUANTIZE_OPS = 2 };

static struct kernel_work gemm(
    const struct tape *tape, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    return kernel_gemm(
        m, n, k, batch, tape->workload->math, tape->storage_bytes, tape->storage_bytes);
}

static void launch_gemm(
    struct tape *tape, const char *name, struct kernel_work work, const int *buffers)
{
    tape_launch(tape, name, work, work.flop, buffers);
}

/* A product that has to do with a matrix of the layer. */
static void launch_linear(struct tape *tape, const struct tape_op *op, const char *name,
    struct kernel_work work, const int *buffers)
{
    tape_launch(tape, name, work, work.flop * tape_counted(tape, op->weight), buffers);
}

/* Add a later share of a parameter's gradient to the first; mark the kernel that makes it complete.
 */
static void complete_share(struct tape *tape, const struct tape_op *op)
{
    enum tape_turn turn = (enum tape_turn)op->choice;
    if (turn == TURN_MIDDLE || turn == TURN_LAST) {
        double elements = (double)tape_tensor(tape, op->weight)->numel;
        double bytes = elements * (double)tape->residual_bytes;
        tape_launch(tape, tape_suffix(tape, op->name, "weight.grad.add"),
            kernel_stream(KERNEL_ELEMENTWISE, 2 * bytes, bytes, elements), 0, BUFFERS(NO_BUFFER));
    }
    if (turn == TURN_ONLY || turn == TURN_LAST)
        tape_complete(tape, op->weight);
    if (turn == TURN_FIRST)
        tape_begin_shares(tape, op->weight);
}

/* Where the matrix lies in NF4: a kernel that widens it into a buffer for the product that follows;
 * else NO_BUFFER. */
static int tape_dense_widen(struct tape *tape, const struct tape_op *op)
{
    const struct model_tensor *weight = tape_tensor(tape, op->weight);
    if (!tape->workload->nf4 || !weight->frozen || !model_is_block_matrix(tape->model, weight))
        return NO_BUFFER;
    const char *name = tape_suffix(tape, op->name, "dequantize");
    int wide = tape_buffer(tape, name, weight->rows, weight->cols, tape->storage_bytes);
    double elements = (double)weight->numel;
    tape_launch(tape, name,
        kernel_stream(KERNEL_COPY, model_nf4_bytes(weight->numel),
            elements * (double)tape->storage_bytes, DEQUANTIZE_OPS * elements),
        0, BUFFERS(wide));
    return wide;
}

/* A product with a matrix of the layer; buffers: what it reads and writes. */
static void tape_dense_multiply(struct tape *tape, const struct tape_op *op, const char *name,
    struct kernel_work work, const int *buffers)
{
    launch_linear(tape, op, name, work, buffers);
    tape_use(tape, op->weight);
}

void tape_bias_sum(struct tape *tape, const struct tape_op *op, int grad, int64_t biases)
{
    tape_run(tape, (struct tape_stream){.kind = KERNEL_ELEMENTWISE,
                       .name = tape_suffix(tape, op->name, "bgrad"),
                       .ops = 1,
                       .reads = BUFFERS(grad),
                       .write = NO_BUFFER,
                       .param_bytes = (double)(biases * tape->storage_bytes)});
}

void tape_bias_gradient(struct tape *tape, const struct tape_op *op, int grad, int64_t biases)
{
    if (op->bias == NO_PARAM)
        return;
    tape_bias_sum(tape, op, grad, biases);
    tape_complete(tape, op->bias);
}

/* from: the input. */
static void linear_gradients(struct tape *tape, const struct tape_op *op, int grad, int from)
{
    launch_linear(tape, op, tape_suffix(tape, op->name, "wgrad"),
        gemm(tape, op->n, op->k, op->m, 1), BUFFERS(grad, from));
    complete_share(tape, op);
    tape_bias_gradient(tape, op, grad, op->n);
}

static void linear_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0];
    bool trains = tape_trains(tape, op->weight);
    int from = trains ? tape_gather_again(tape, x) : NO_BUFFER;
    if (tape_at(tape, x).needs_grad) {
        int wide = tape_dense_widen(tape, op), grad_x = tape_new_grad(tape, x);
        tape_dense_multiply(tape, op, tape_suffix(tape, op->name, "dgrad"),
            gemm(tape, op->m, op->k, op->n, 1), BUFFERS(grad, grad_x, wide));
        tape_give(tape, x, grad_x);
    }
    tape_await_again(tape, x);
    tape_reduce_entered(tape, op);
    if (trains)
        linear_gradients(tape, op, grad, from);
    tape_await_reduced(tape, op);
}

/* The first user of what entered is the last in backward. */
static void note_user(struct tape *tape, const struct tape_op *op)
{
    struct tape_value *x = &tape->values.at[op->in[0]];
    if (x->entered.from != NO_VALUE && x->entered.first_user == NO_VALUE)
        x->entered.first_user = op->out;
}

static int linear(struct tape *tape, const char *name, int bias, int x, enum tape_turn turn)
{
    x = tape_autocast(tape, name, x);
    struct tape_value in = tape_at(tape, x);
    int weight = tape_find(tape, name, "weight");
    BUG_IF(weight == NO_PARAM, "layer %d has no %s.%s.weight", tape->layer, tape->scope, name);
    int64_t numel = tape_tensor(tape, weight)->numel;
    BUG_IF(numel % in.cols, "%s.%s: %ld weights, rows of %ld", tape->scope, name, (long)numel,
        (long)in.cols);
    struct tape_op op = {.backward = linear_backward,
        .name = tape_name(tape, name),
        .in = {x},
        .weight = weight,
        .bias = bias,
        .m = in.rows,
        .n = numel / in.cols,
        .k = in.cols,
        .choice = (int)turn};
    if (turn == TURN_ONLY && tape_in_fp8(tape, &op)) {
        op.out = tape_fp8_linear(tape, op);
        note_user(tape, &op);
        return op.out;
    }
    BUG_IF(in.element_bytes != tape->storage_bytes, "%s is not in the storage format", in.name);
    int wide = tape_dense_widen(tape, &op);
    op.out = tape_value(tape, op.name, op.m, op.n, tape->storage_bytes, true);
    tape_dense_multiply(tape, &op, op.name, gemm(tape, op.m, op.n, op.k, 1),
        BUFFERS(in.buffer, tape_at(tape, op.out).buffer, wide));
    tape_mark_mm(tape, &op);
    note_user(tape, &op);
    tape_push(tape, op);
    return op.out;
}

/* Plus lora_B(lora_A(x)), scaled, where the layer has adapters (peft/tuners/lora/layer.py,
 * Linear.forward). */
static int adapt(struct tape *tape, const char *name, int x, int out)
{
    const char *a = tape_suffix(tape, name, "lora_A"), *b = tape_suffix(tape, name, "lora_B");
    if (!tape_has(tape, a))
        return out;
    int delta = linear(tape, b, NO_PARAM, linear(tape, a, NO_PARAM, x, TURN_ONLY), TURN_ONLY);
    delta = tape_map(tape, tape_suffix(tape, name, "lora_scale"), TAPE_SCALE, delta);
    return tape_add(tape, tape_suffix(tape, name, "lora_add"), out, delta);
}

int tape_linear_shared(struct tape *tape, const char *name, int x, enum tape_turn turn)
{
    return adapt(tape, name, x, linear(tape, name, tape_find(tape, name, "bias"), x, turn));
}

int tape_linear_tied(
    struct tape *tape, const char *name, const char *bias, int x, enum tape_turn turn)
{
    int found = NO_PARAM;
    const struct model_layer *layer = &tape->model->layers[tape->layer];
    for (int i = 0; i < layer->n_tensors && found == NO_PARAM; i++)
        if (strcmp(tape_tensor(tape, i)->name, bias) == 0)
            found = i;
    BUG_IF(found == NO_PARAM, "layer %d has no %s", tape->layer, bias);
    return linear(tape, name, found, x, turn);
}

int tape_linear(struct tape *tape, const char *name, int x)
{
    return tape_linear_shared(tape, name, x, TURN_ONLY);
}

int tape_linear_router(struct tape *tape, const char *name, int x)
{
    int first = tape->program[FORWARD].n, out = tape_linear(tape, name, x);
    for (int k = first; k < tape->program[FORWARD].n; k++)
        tape->program[FORWARD].at[k].mm = false;
    return out;
}

int tape_linear_row(struct tape *tape, const char *name, int x)
{
    if (model_tensor_ranks(&tape->workload->parallel) == 1)
        return tape_linear(tape, name, x);
    int out = adapt(tape, name, x, linear(tape, name, NO_PARAM, x, TURN_ONLY));
    return tape_leave(tape, name, tape_find(tape, name, "bias"), out);
}

static void embedding_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    double zeros = (double)(tape_tensor(tape, op->weight)->numel * tape->residual_bytes);
    double rows = (double)(op->m * op->n * tape->residual_bytes);
    tape_launch(tape, tape_suffix(tape, op->name, "zero"), kernel_stream(KERNEL_COPY, 0, zeros, 0),
        0, BUFFERS(NO_BUFFER));
    tape_run(tape, (struct tape_stream){.kind = KERNEL_EMBEDDING,
                       .name = tape_suffix(tape, op->name, "wgrad"),
                       .ops = 1,
                       .reads = BUFFERS(grad),
                       .write = NO_BUFFER,
                       .param_bytes = rows});
    complete_share(tape, op);
}

int tape_embedding(struct tape *tape, const char *name, int64_t rows, enum tape_turn turn)
{
    int weight = tape_find(tape, name, "weight");
    BUG_IF(weight == NO_PARAM, "layer %d has no %s.weight", tape->layer, name);
    struct tape_op op = {.backward = embedding_backward,
        .name = tape_name(tape, name),
        .weight = weight,
        .m = rows,
        .n = tape_tensor(tape, weight)->cols,
        .choice = (int)turn};
    op.out = tape_value(tape, op.name, rows, op.n, tape->residual_bytes, tape_trains(tape, weight));
    double bytes = (double)(op.m * op.n * tape->residual_bytes);
    tape_launch(tape, op.name, kernel_stream(KERNEL_EMBEDDING, bytes, bytes, 0), 0,
        BUFFERS(tape_at(tape, op.out).buffer));
    tape_use(tape, weight);
    tape_push(tape, op);
    return op.out;
}

void tape_count_masked(struct tape *tape, bool causal)
{
    struct model_op *op = &tape->program[tape->pass].at[tape->program[tape->pass].n - 1];
    op->masked_flop =
        (1 - (causal ? ATTENTION_CAUSAL_SHARE : 1) * tape_document_pairs(tape)) * op->model_flop;
}

/* C = A B: dA = dC B^T, dB = A^T dC. */
static void matmul_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    const char *const suffixes[2] = {"dgrad.a", "dgrad.b"};
    const struct kernel_work work[2] = {
        gemm(tape, op->m, op->k, op->n, op->batch),
        gemm(tape, op->k, op->n, op->m, op->batch),
    };
    for (int i = 0; i < 2; i++) {
        int grad_in = tape_new_grad(tape, op->in[i]);
        launch_gemm(tape, tape_suffix(tape, op->name, suffixes[i]), work[i],
            BUFFERS(grad, tape_at(tape, op->in[1 - i]).buffer, grad_in));
        tape_count_masked(tape, op->causal);
        tape_give(tape, op->in[i], grad_in);
    }
}

int tape_matmul(struct tape *tape, const char *name, int a, int b, int64_t batch, int64_t m,
    int64_t n, int64_t k, bool causal)
{
    a = tape_autocast(tape, name, a);
    b = tape_autocast(tape, name, b);
    struct tape_value left = tape_at(tape, a), right = tape_at(tape, b);
    BUG_IF(left.rows * left.cols != batch * m * k || right.rows * right.cols != batch * k * n,
        "%s.%s: the operands' shapes do not fit", tape->scope, name);
    BUG_IF(!left.needs_grad || !right.needs_grad, "%s.%s: a constant operand", tape->scope, name);
    struct tape_op op = {.backward = matmul_backward,
        .name = tape_name(tape, name),
        .in = {a, b},
        .m = m,
        .n = n,
        .k = k,
        .batch = batch,
        .causal = causal};
    op.out = tape_value(tape, op.name, batch * m, n, tape->storage_bytes, true);
    launch_gemm(tape, op.name, gemm(tape, m, n, k, batch),
        BUFFERS(left.buffer, right.buffer, tape_at(tape, op.out).buffer));
    tape_count_masked(tape, causal);
    tape_push(tape, op);
    return op.out;
}

int tape_scores(struct tape *tape, const struct tape_attention *shape, int q, int k)
{
    int64_t products = shape->batch * shape->heads;
    tape_begin_part(tape, RECOMPUTE_CORE_ATTN);
    q = tape_to_heads(tape, "q.copy", q, products * shape->queries, shape->head_dim);
    k = tape_to_heads(tape, "k.copy", k, products * shape->keys, shape->head_dim);
    int scores = tape_matmul(tape, "scores", q, k, products, shape->queries, shape->keys,
        shape->head_dim, !shape->both_ways);
    return tape->model->shape.fused_softmax ? scores
                                            : tape_map(tape, "scores.scale", TAPE_SCALE, scores);
}

int tape_context(struct tape *tape, const struct tape_attention *shape, int weights, int v)
{
    int64_t products = shape->batch * shape->heads;
    v = tape_to_heads(tape, "v.copy", v, products * shape->keys, shape->head_dim);
    int context = tape_matmul(tape, "context", weights, v, products, shape->queries,
        shape->head_dim, shape->keys, !shape->both_ways);
    context = tape_from_heads(tape, "context.copy", context, shape->batch * shape->queries,
        shape->heads * shape->head_dim);
    tape_end_part(tape, RECOMPUTE_CORE_ATTN);
    return context;
}

/* FlashAttention 2 (Dao, arXiv 2307.08691): the causal kernel skips the tiles above the diagonal,
 * half of the work. Its backward kernel does five products where the forward one does two (it
 * computes the scores again): three over the head dimension of queries and keys, forward one, and
 * two over that of values, forward one. */
double tape_flash_backward_products(const struct tape_op *op)
{
    return (double)(3 * op->k + 2 * op->value_dim) / (double)(op->k + op->value_dim);
}

static struct kernel_work flash_work(const struct tape *tape, const struct tape_op *op,
    bool backward, const int *reads, const int *writes, double flop)
{
    struct kernel_work work = {.kind = KERNEL_ATTENTION,
        .math = tape->workload->math,
        .flop = flop * tape_document_pairs(tape),
        .m = op->m,
        .n = op->n,
        .k = op->k,
        .batch = op->batch,
        .pairs = tape->workload->document_pairs,
        .causal = op->causal,
        .window = op->window,
        .backward = backward};
    for (; *reads != NO_BUFFER; reads++)
        work.read_bytes += (double)tape->buffers.at[*reads].life.bytes;
    for (; *writes != NO_BUFFER; writes++)
        work.write_bytes += (double)tape->buffers.at[*writes].life.bytes;
    return work;
}

static void launch_flash(struct tape *tape, const char *name, const struct tape_op *op,
    bool backward, const int *reads, const int *writes, double flop, double model_flop)
{
    tape_launch(tape, name, flash_work(tape, op, backward, reads, writes, flop), model_flop, reads);
    tape_count_masked(tape, op->causal);
    for (; *writes != NO_BUFFER; writes++)
        tape_touch(tape, *writes);
}

/* flop of both products over all pairs of positions; with a window over twice the pairs that it
 * leaves, as the usual formulae count a causal model's. */
static double attention_flop(const struct tape_op *op)
{
    if (op->window > 0)
        return 2.0 * (double)op->batch * 2 * attention_window_pairs(op->n, op->window) *
               (double)(op->k + op->value_dim);
    return 2.0 * (double)(op->batch * op->m * op->n) * (double)(op->k + op->value_dim);
}

static double flash_share(const struct tape_op *op)
{
    return op->causal ? ATTENTION_CAUSAL_SHARE : 1;
}

static void flash_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value q = tape_at(tape, op->in[0]), k = tape_at(tape, op->in[1]),
                      v = tape_at(tape, op->in[2]);
    int grad = tape_grad(tape, op), out = tape_at(tape, op->out).buffer, lse = op->saved[0];
    double flop = attention_flop(op);
    int delta =
        tape_buffer(tape, tape_suffix(tape, op->name, "delta"), op->batch * op->m, 1, FLOAT_BYTES);
    int wide =
        tape_buffer(tape, tape_suffix(tape, op->name, "dq.float"), q.rows, q.cols, FLOAT_BYTES);
    tape_elementwise(tape, tape_suffix(tape, op->name, "delta"), 2, grad, out, delta);
    tape_pass(
        tape, KERNEL_COPY, tape_suffix(tape, op->name, "dq.zero"), 0, BUFFERS(NO_BUFFER), wide);
    int grad_k = tape_new_grad(tape, op->in[1]), grad_v = tape_new_grad(tape, op->in[2]);
    launch_flash(tape, tape_suffix(tape, op->name, "dgrad"), op, true,
        BUFFERS(grad, q.buffer, k.buffer, v.buffer, lse, delta), BUFFERS(wide, grad_k, grad_v),
        flop * flash_share(op) * tape_flash_backward_products(op), 2 * flop);
    int grad_q = tape_new_grad(tape, op->in[0]);
    tape_elementwise(tape, tape_suffix(tape, op->name, "dq"), 1, wide, NO_BUFFER, grad_q);
    tape_give(tape, op->in[0], grad_q);
    tape_give(tape, op->in[1], grad_k);
    tape_give(tape, op->in[2], grad_v);
}

int tape_flash(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape)
{
    bool alone = model_context_ranks(&tape->workload->parallel) == 1;
    return (alone ? tape_flash_alone : tape_flash_context)(tape, name, q, k, v, shape);
}

struct tape_op tape_flash_op(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape)
{
    return (struct tape_op){.name = tape_name(tape, name),
        .in = {q, k, v},
        .m = shape.queries,
        .n = shape.keys,
        .k = shape.head_dim,
        .batch = shape.batch * shape.heads,
        .causal = !shape.both_ways,
        .window = shape.window < shape.keys ? shape.window : 0,
        .value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim};
}

int tape_flash_alone(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape)
{
    struct tape_op op = tape_flash_op(tape, name, q, k, v, shape);
    op.backward = flash_backward;
    struct tape_value query = tape_at(tape, q), key = tape_at(tape, k), value = tape_at(tape, v);
    op.out = tape_value(
        tape, op.name, query.rows, query.cols / op.k * op.value_dim, tape->storage_bytes, true);
    op.saved[0] =
        tape_buffer(tape, tape_suffix(tape, op.name, "logsumexp"), op.batch * op.m, 1, FLOAT_BYTES);
    double flop = attention_flop(&op);
    launch_flash(tape, op.name, &op, false, BUFFERS(query.buffer, key.buffer, value.buffer),
        BUFFERS(tape_at(tape, op.out).buffer, op.saved[0]), flop * flash_share(&op), flop);
    tape_push(tape, op);
    return op.out;
}

/* ---- what stands beside attention ---- */

/* Another name for a value: what is handed on is the same buffer. */
static int tape_dense_alias(struct tape *tape, struct tape_op op, int of, bool needs_grad)
{
    struct tape_value out = tape_at(tape, of);
    out.name = op.name;
    out.needs_grad = needs_grad;
    vec_push(&tape->values, out);
    op.out = tape->values.n - 1;
    tape_push(tape, op);
    return op.out;
}

static void sinks_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    double rows = (double)(op->m * op->n *
                           FLOAT_BYTES); /* sums of rows, and of gradients with their results */
    if (tape_trains(tape, op->weight)) {
        tape_launch(tape, tape_suffix(tape, op->name, "wgrad"),
            kernel_stream(KERNEL_ELEMENTWISE, 2 * rows, (double)(op->n * FLOAT_BYTES), rows), 0,
            BUFFERS(grad));
        tape_complete(tape, op->weight);
    }
    tape_give(tape, op->in[0], grad);
}

int tape_sinks(struct tape *tape, const char *name, int context, int64_t heads)
{
    const struct tape_op op = {.backward = sinks_backward,
        .name = tape_name(tape, name),
        .in = {context},
        .weight = tape_find(tape, name, ""),
        .m = tape_at(tape, context).rows,
        .n = heads};
    return tape_dense_alias(tape, op, context, true);
}

int tape_detach(struct tape *tape, const char *name, int x)
{
    return tape_dense_alias(
        tape, (struct tape_op){.name = tape_name(tape, name), .in = {x}}, x, false);
}

/* flop of the scores of all pairs. */
static double index_flop(const struct tape_op *op)
{
    return 2.0 * (double)(op->batch * op->m * op->n) * (double)op->k;
}

static void index_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value q = tape_at(tape, op->in[0]), k = tape_at(tape, op->in[1]);
    int grad_q = tape_new_grad(tape, op->in[0]), grad_k = tape_new_grad(tape, op->in[1]);
    double flop = index_flop(op);
    launch_flash(tape, tape_suffix(tape, op->name, "dgrad"), op, true, BUFFERS(q.buffer, k.buffer),
        BUFFERS(grad_q, grad_k), 3 * flop * ATTENTION_CAUSAL_SHARE,
        2 * flop); /* scores again, and two gradients */
    tape_give(tape, op->in[0], grad_q);
    tape_give(tape, op->in[1], grad_k);
    tape_give(tape, op->in[2], tape_grad(tape, op));
}

int tape_index(
    struct tape *tape, const char *name, int q, int k, int goes_on, struct tape_attention shape)
{
    struct tape_op op = {.backward = index_backward,
        .name = tape_name(tape, name),
        .in = {q, k, goes_on},
        .m = shape.queries,
        .n = shape.keys,
        .k = shape.head_dim,
        .batch = shape.batch * shape.heads,
        .causal = true};
    int scores = tape_buffer(
        tape, tape_suffix(tape, op.name, "scores"), shape.batch * op.m, op.n, FLOAT_BYTES);
    double flop = index_flop(&op);
    launch_flash(tape, op.name, &op, false,
        BUFFERS(tape_at(tape, q).buffer, tape_at(tape, k).buffer), BUFFERS(scores),
        flop * ATTENTION_CAUSAL_SHARE, flop);
    tape_pass(tape, KERNEL_ELEMENTWISE, tape_suffix(tape, op.name, "topk"), 1, BUFFERS(scores),
        NO_BUFFER);
    return tape_dense_alias(tape, op, goes_on, true);
}
