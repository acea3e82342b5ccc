/* Attention of a sequence whose parts are on the ranks of AXIS_CP (tape_flash()), as
 * TransformerEngine runs it.
 *
 * All kinds use one call of the attention kernel, context_launch(), for a part: some queries
 * against some keys. Model FLOP of a rank are those of its queries and all keys, divided among the
 * parts. Under the causal mask ranks do different parts in different steps but the same amount; the
 * program is that of the middle rank.
 *
 * p2p keeps two buffers of keys and values, what is here and what comes, and the exchange of a step
 * runs beside its attention. Results of the steps are kept until the end and put together by their
 * logsumexps. Backward goes around from where forward ended, with the gradients of keys and values
 * travelling along. all_gather and a2a (ulysses()) wait for each collective at once. */
#include "model/tape_context.h"

/* ---- one call of the attention kernel ---- */

/* All pairs of this rank's queries and all keys. */
static double tape_context_model_flop(const struct tape *tape, const struct tape_op *op)
{
    return 2.0 * (double)op->batch * (double)op->m * (double)(op->n * context_ranks(tape)) *
           (double)(op->k + op->value_dim);
}

static double query_elements(const struct tape_op *op, int64_t m)
{
    return (double)op->batch * (double)m * (double)op->k;
}

static double out_elements(const struct tape_op *op, int64_t m)
{
    return (double)op->batch * (double)m * (double)op->value_dim;
}

double context_key_bytes(const struct tape *tape, const struct tape_op *op, int64_t n)
{
    double all = context_bytes(tape, tape_at(tape, op->in[1]).buffer) +
                 context_bytes(tape, tape_at(tape, op->in[2]).buffer);
    return all * (double)n / (double)op->n;
}

void context_launch(struct tape *tape, const char *name, const struct tape_op *op,
    struct context_part part, bool backward, const int *buffers)
{
    double queries = query_elements(op, part.m) * (double)tape->storage_bytes;
    double outs = out_elements(op, part.m) * (double)tape->storage_bytes;
    double keys = context_key_bytes(tape, op, part.n),
           rows = (double)op->batch * (double)part.m * FLOAT_BYTES;
    struct kernel_work work = {.kind = KERNEL_ATTENTION,
        .math = tape->workload->math,
        .flop = 2.0 * (double)op->batch * part.pairs * (double)(op->k + op->value_dim) *
                (backward ? tape_flash_backward_products(op) : 1) * tape_document_pairs(tape),
        .m = part.m,
        .n = part.n,
        .k = op->k,
        .batch = op->batch,
        .pairs = tape->workload->document_pairs,
        .causal = part.causal,
        .backward = backward};
    work.read_bytes = backward ? queries + outs + keys + 2 * rows : queries + keys;
    work.write_bytes = backward ? query_elements(op, part.m) * FLOAT_BYTES + keys : outs + rows;
    tape_launch(tape, name, work,
        tape_context_model_flop(tape, op) * part.share * (backward ? 2 : 1), buffers);
    tape_count_masked(tape, op->causal);
}

void context_launch_backward(struct tape *tape, const struct tape_op *op, struct context_part part,
    const int *keys, int sums, int grad_q, const int *grads)
{
    int grad = tape_grad(tape, op), out = tape_at(tape, op->out).buffer,
        q = tape_at(tape, op->in[0]).buffer;
    double elements = out_elements(op, part.m), bytes = elements * (double)tape->storage_bytes;
    const char *name = tape_suffix(tape, op->name, "delta");
    int delta = tape_buffer(tape, name, op->batch * part.m, 1, FLOAT_BYTES);
    tape_launch(tape, name,
        kernel_stream(KERNEL_ELEMENTWISE, 2 * bytes, context_bytes(tape, delta), 2 * elements), 0,
        BUFFERS(grad, out, delta));
    name = tape_suffix(tape, op->name, "dq.zero");
    int wide = tape_buffer(tape, name, op->batch * part.m, op->k, FLOAT_BYTES);
    tape_pass(tape, KERNEL_COPY, name, 0, BUFFERS(NO_BUFFER), wide);
    context_launch(tape, tape_suffix(tape, op->name, "dgrad"), op, part, true,
        BUFFERS(grad, q, sums, delta, wide, keys[0], grads[0]));
    if (keys[1] != NO_BUFFER)
        tape_touch(tape, keys[1]);
    if (grads[1] != NO_BUFFER)
        tape_touch(tape, grads[1]);
    tape_elementwise(tape, tape_suffix(tape, op->name, "dq"), 1, wide, NO_BUFFER, grad_q);
}

/* ---- p2p ---- */

struct context_part context_ring_part(
    const struct tape *tape, const struct tape_op *op, int64_t step)
{
    int64_t rank = (context_ranks(tape) - 1) / 2;
    double share = 1 / (double)context_ranks(tape), square = (double)op->m * (double)op->n;
    if (!op->causal)
        return (struct context_part){op->m, op->n, square, share, false};
    if (step == 0)
        return (struct context_part){op->m, op->n, square * ATTENTION_CAUSAL_SHARE, share, true};
    bool before = step <= rank;
    return (struct context_part){
        before ? op->m : op->m / 2, before ? op->n / 2 : op->n, square / 2, share, false};
}

/* To the next rank, from the one before; the caller waits. */
static void begin_exchange(struct tape *tape, const char *name, double bytes, int from, int to)
{
    tape_communicate(tape, name, COLL_SEND_RECV, AXES_CP, from);
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].comm.bytes = bytes;
    tape_touch(tape, to);
}

static void await_exchange(struct tape *tape, int from, int to)
{
    tape_await(tape);
    tape_touch(tape, from);
    tape_touch(tape, to);
}

static int key_buffer(struct tape *tape, const struct tape_op *op, const char *name, int64_t times)
{
    struct tape_value k = tape_at(tape, op->in[1]), v = tape_at(tape, op->in[2]);
    return tape_buffer(tape, name, k.rows, times * (k.cols + v.cols), tape->storage_bytes);
}

/* to += from, or first a part of to = from. */
static void launch_add(
    struct tape *tape, const char *name, double bytes, bool first, int from, int to)
{
    double elements = bytes / (double)tape->storage_bytes;
    tape_launch(tape, name,
        kernel_stream(KERNEL_ELEMENTWISE, first ? bytes : 2 * bytes, bytes, elements), 0,
        BUFFERS(from, to));
}

/* The buffers hold keys, values and their gradients side by side; the first and the last exchange
 * carry half of that. */
static void tape_context_ring_backward(struct tape *tape, const struct tape_op *op)
{
    const char *grad_name = tape_suffix(tape, op->name, "dkv"),
               *add_name = tape_suffix(tape, op->name, "dkv.add");
    double keys = context_key_bytes(tape, op, op->n);
    int64_t steps = context_ranks(tape);
    int grad_q = tape_new_grad(tape, op->in[0]);
    int pair[2]; /* each has keys, values and their gradients: what is here, what comes */
    pair[0] = key_buffer(tape, op, tape_suffix(tape, op->name, "kv"), 2);
    pair[1] = key_buffer(tape, op, tape_suffix(tape, op->name, "kv"), 2);
    tape_launch(tape, tape_suffix(tape, op->name, "kv.copy"),
        kernel_stream(KERNEL_COPY, keys, keys, 0), 0, BUFFERS(op->saved[1], pair[0], pair[1]));
    for (int64_t i = 0; i < steps; i++) {
        int here = pair[i % 2], there = pair[(i + 1) % 2];
        struct context_part part = context_ring_part(tape, op, steps - 1 - i);
        begin_exchange(tape, grad_name, i == 0 || i == steps - 1 ? keys : 2 * keys, here, there);
        int step_q = tape_buffer(tape, tape_suffix(tape, op->name, "dq.step"), op->batch * part.m,
            op->k, tape->storage_bytes);
        int step_keys = key_buffer(tape, op, tape_suffix(tape, op->name, "dkv.step"), 1);
        context_launch_backward(
            tape, op, part, BUFFERS(here), op->saved[0], step_q, BUFFERS(step_keys));
        launch_add(tape, tape_suffix(tape, op->name, "dq.add"), context_bytes(tape, step_q), i == 0,
            step_q, grad_q);
        await_exchange(tape, here, there);
        launch_add(tape, add_name, context_key_bytes(tape, op, part.n), i == 0, step_keys, there);
    }
    tape_give(tape, op->in[0], grad_q);
    for (int i = 1; i <= 2; i++) {
        int grad = tape_new_grad(tape, op->in[i]);
        tape->buffers.at[grad].view_of = pair[steps % 2];
        tape_give(tape, op->in[i], grad);
    }
}

/* Each step's result times e to the difference of logsumexps, added up. */
static void put_together(struct tape *tape, const struct tape_op *op, const int *outs)
{
    int out = tape_at(tape, op->out).buffer;
    for (int64_t i = 0; i < context_ranks(tape); i++) {
        launch_add(tape, tape_suffix(tape, op->name, "correct"), context_bytes(tape, outs[i]),
            i == 0, outs[i], out);
        tape_touch(tape, op->saved[0]);
    }
}

static int ring(struct tape *tape, struct tape_op op, struct tape_value query)
{
    const char *kv_name = tape_suffix(tape, op.name, "kv"),
               *sums_name = tape_suffix(tape, op.name, "logsumexp");
    int *outs = ARENA_ARRAY(tape->arena, int, context_ranks(tape));
    op.backward = tape_context_ring_backward;
    int here = key_buffer(tape, &op, kv_name, 1);
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op.name, "kv.cat"), 0,
        BUFFERS(tape_at(tape, op.in[1]).buffer, tape_at(tape, op.in[2]).buffer), here);
    for (int64_t i = 0; i < context_ranks(tape); i++) {
        struct context_part part = context_ring_part(tape, &op, i);
        int there = here;
        if (i + 1 < context_ranks(tape)) {
            there = key_buffer(tape, &op, kv_name, 1);
            begin_exchange(tape, kv_name, context_key_bytes(tape, &op, op.n), here, there);
        }
        outs[i] = tape_buffer(tape, tape_suffix(tape, op.name, "step"), op.batch * part.m,
            op.value_dim, tape->storage_bytes);
        int sums = tape_buffer(tape, sums_name, op.batch * part.m, 1, FLOAT_BYTES);
        op.saved[0] = i == 0 ? sums : op.saved[0];
        context_launch(tape, op.name, &op, part, false, BUFFERS(query.buffer, here, outs[i], sums));
        if (i > 0)
            tape_elementwise(tape, tape_suffix(tape, op.name, "logsumexp.add"), 3, sums,
                op.saved[0], op.saved[0]);
        if (there != here)
            await_exchange(tape, here, there);
        here = there;
    }
    op.saved[1] = here; /* backward goes around from where forward ended */
    op.out = tape_value(
        tape, op.name, query.rows, query.cols / op.k * op.value_dim, tape->storage_bytes, true);
    put_together(tape, &op, outs);
    tape_push(tape, op);
    return op.out;
}

/* ---- all_gather ---- */

enum { CHUNKS = 2 }; /* of a rank */

/* Both chunks of a rank: the keys before the front one's end, and before the back one's, of 2 c
 * chunks. */
static struct context_part gathered_part(
    const struct tape *tape, const struct tape_op *op, int chunk)
{
    int64_t rank = (context_ranks(tape) - 1) / 2, m = op->m / 2;
    int64_t n = m * (chunk == 0 ? rank + 1 : 2 * context_ranks(tape) - rank);
    if (!op->causal)
        return (struct context_part){m, op->n * context_ranks(tape),
            (double)m * (double)(op->n * context_ranks(tape)), 0.5, false};
    return (struct context_part){m, n,
        (double)m * (double)n - (1 - ATTENTION_CAUSAL_SHARE) * (double)m * (double)m, 0.5, false};
}

/* Keys or values of all ranks, chunk by chunk in the order of the sequence. */
static int gather_keys(struct tape *tape, const struct tape_op *op, int x)
{
    struct tape_value part = tape_at(tape, x);
    const char *name = tape_suffix(tape, op->name, "gathered"),
               *order = tape_suffix(tape, op->name, "order");
    int all =
        tape_buffer(tape, name, part.rows * context_ranks(tape), part.cols, tape->storage_bytes);
    tape_exchange(tape, op->name, COLL_ALL_GATHER, AXES_CP, part.buffer, all);
    int ordered =
        tape_buffer(tape, order, part.rows * context_ranks(tape), part.cols, tape->storage_bytes);
    tape_pass(tape, KERNEL_COPY, order, 0, BUFFERS(all), ordered);
    return ordered;
}

static void gathered_backward(struct tape *tape, const struct tape_op *op)
{
    int keys[2] = {gather_keys(tape, op, op->in[1]), gather_keys(tape, op, op->in[2])};
    int grad_q = tape_new_grad(tape, op->in[0]), sums[2];
    const char *name = tape_suffix(tape, op->name, "dkv"),
               *order = tape_suffix(tape, op->name, "dkv.order");
    for (int i = 0; i < 2; i++) {
        struct tape_value part = tape_at(tape, op->in[1 + i]);
        sums[i] = tape_buffer(
            tape, name, part.rows * context_ranks(tape), part.cols, tape->storage_bytes);
        tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op->name, "dkv.zero"), 0, BUFFERS(NO_BUFFER),
            sums[i]);
    }
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        struct context_part part = gathered_part(tape, op, chunk);
        struct tape_value k = tape_at(tape, op->in[1]), v = tape_at(tape, op->in[2]);
        int64_t rows = k.rows / op->n * part.n; /* of the keys that it sees */
        int step_q = tape_buffer(tape, tape_suffix(tape, op->name, "dq.step"), op->batch * part.m,
            op->k, tape->storage_bytes);
        int grads[2] = {tape_buffer(tape, tape_suffix(tape, op->name, "dk.step"), rows, k.cols,
                            tape->storage_bytes),
            tape_buffer(
                tape, tape_suffix(tape, op->name, "dv.step"), rows, v.cols, tape->storage_bytes)};
        context_launch_backward(tape, op, part, BUFFERS(keys[0], keys[1]), op->saved[chunk], step_q,
            BUFFERS(grads[0], grads[1]));
        launch_add(tape, tape_suffix(tape, op->name, "dq.copy"), context_bytes(tape, step_q), true,
            step_q, grad_q);
        for (int i = 0; i < 2; i++)
            launch_add(tape, tape_suffix(tape, name, "add"), context_bytes(tape, grads[i]), false,
                grads[i], sums[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct tape_value part = tape_at(tape, op->in[1 + i]);
        int ordered = tape_buffer(
            tape, order, part.rows * context_ranks(tape), part.cols, tape->storage_bytes);
        tape_pass(tape, KERNEL_COPY, order, 0, BUFFERS(sums[i]), ordered);
        int grad = tape_new_grad(tape, op->in[1 + i]);
        tape_exchange(tape, name, COLL_REDUCE_SCATTER, AXES_CP, ordered, grad);
        tape_give(tape, op->in[1 + i], grad);
    }
    tape_give(tape, op->in[0], grad_q);
}

static int gathered(struct tape *tape, struct tape_op op, struct tape_value query)
{
    op.backward = gathered_backward;
    int k = gather_keys(tape, &op, op.in[1]), v = gather_keys(tape, &op, op.in[2]), outs[CHUNKS];
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        struct context_part part = gathered_part(tape, &op, chunk);
        outs[chunk] = tape_buffer(tape, tape_suffix(tape, op.name, "step"), op.batch * part.m,
            op.value_dim, tape->storage_bytes);
        op.saved[chunk] = tape_buffer(
            tape, tape_suffix(tape, op.name, "logsumexp"), op.batch * part.m, 1, FLOAT_BYTES);
        context_launch(tape, op.name, &op, part, false,
            BUFFERS(query.buffer, k, v, outs[chunk], op.saved[chunk]));
    }
    op.out = tape_value(
        tape, op.name, query.rows, query.cols / op.k * op.value_dim, tape->storage_bytes, true);
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, op.name, "copy"), 0, BUFFERS(outs[0], outs[1]),
        tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

/* ---- a2a ---- */

/* Parts laid out for the ranks, exchanged, and laid out as what comes next reads them. */
static int exchange_parts(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    const char *send_name = tape_suffix(tape, name, "permute"),
               *received_name = tape_suffix(tape, name, "received");
    int send = tape_buffer(tape, send_name, rows, cols, tape->storage_bytes);
    tape_pass(tape, KERNEL_COPY, send_name, 0, BUFFERS(x), send);
    int received = tape_buffer(tape, received_name, rows, cols, tape->storage_bytes);
    tape_exchange(tape, name, COLL_ALL_TO_ALL, AXES_CP, send, received);
    return received;
}

static void all_to_all_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    const char *name = tape_suffix(tape, op->name, "dgrad");
    int received = exchange_parts(tape, name, tape_grad(tape, op), x.rows, x.cols);
    int grad = tape_new_grad(tape, op->in[0]);
    tape_pass(tape, KERNEL_COPY, tape_suffix(tape, name, "order"), 0, BUFFERS(received), grad);
    tape_give(tape, op->in[0], grad);
}

static int all_to_all(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols)
{
    struct tape_op op = {.backward = all_to_all_backward, .name = name, .in = {x}};
    int received = exchange_parts(tape, op.name, tape_at(tape, x).buffer, rows, cols);
    op.out = tape_value(
        tape, tape_suffix(tape, op.name, "order"), rows, cols, tape->storage_bytes, true);
    tape_pass(tape, KERNEL_COPY, tape_at(tape, op.out).name, 0, BUFFERS(received),
        tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

static int ulysses(
    struct tape *tape, const char *name, const int in[3], struct tape_attention shape)
{
    static const char *const names[3] = {"q", "k", "v"};
    struct tape_value query = tape_at(tape, in[0]);
    int64_t n = context_ranks(tape);
    int parts[3];
    for (int i = 0; i < 3; i++) {
        struct tape_value x = tape_at(tape, in[i]);
        parts[i] = all_to_all(tape, tape_suffix(tape, tape_name(tape, name), names[i]), in[i],
            x.rows * n, x.cols / n);
    }
    shape.heads /= n;
    shape.queries *= n;
    shape.keys *= n;
    int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
    int out = tape_flash_alone(tape, name, parts[0], parts[1], parts[2], shape);
    return all_to_all(tape, tape_suffix(tape, tape_name(tape, name), "out"), out, query.rows,
        query.cols / shape.head_dim * value_dim);
}

int tape_flash_context(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape)
{
    BUG_IF(shape.window > 0 && tape->workload->parallel.context_kind != CONTEXT_A2A, "%s: a window",
        name);
    struct tape_op op = tape_flash_op(tape, name, q, k, v, shape);
    switch ((enum context_parallel)tape->workload->parallel.context_kind) {
    case CONTEXT_P2P:
        return ring(tape, op, tape_at(tape, q));
    case CONTEXT_ALL_GATHER:
        return gathered(tape, op, tape_at(tape, q));
    case CONTEXT_RING_ALLGATHER:
    case CONTEXT_RING_ALLTOALL:
        return context_ring(tape, op);
    case CONTEXT_A2A:
    case CONTEXT_PARALLEL_COUNT:
        break;
    }
    return ulysses(tape, name, (const int[]){q, k, v}, shape);
}
