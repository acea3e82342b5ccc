/* Attention of a sequence over ranks of AXIS_CP by PyTorch's context_parallel() (model/parallel.h):
 * what _templated_ring_attention, _templated_ring_attention_backward and _SDPAMerger of
 * _attention.py run.
 *
 * Three things differ from TransformerEngine's ring (tape_context.c): results of steps are merged
 * one after the other in FP32, by a chain of elementwise kernels; gradients of keys travel in FP32,
 * in an exchange a step; and half parts are joined to whole ones by copies (torch.cat). Compiled,
 * each collective is waited for where it stands (is_traced()); eager, it runs beside the step's
 * kernel, and keys and gradients that are on their way together are one message. */
#include "model/tape_context.h"

static struct context_part tape_ring_part_of(
    const struct tape *tape, const struct tape_op *op, int64_t step)
{
    if (step == 0 || !op->causal || !tape->workload->parallel.context_sequential)
        return context_ring_part(tape, op, step);
    return (struct context_part){
        op->m, op->n, (double)op->m * (double)op->n, 1 / (double)context_ranks(tape), false};
}

/* Of all queries and keys of this rank, but half of the one or the other. */
static bool is_half(int64_t part, int64_t whole)
{
    return part < whole;
}

/* Keys, values or both side by side: n positions of them. */
static int keys_buffer(struct tape *tape, const struct tape_op *op, const char *name, int64_t n,
    int64_t times, int64_t element_bytes)
{
    struct tape_value k = tape_at(tape, op->in[1]), v = tape_at(tape, op->in[2]);
    return tape_buffer(tape, tape_suffix(tape, op->name, name), k.rows / op->n * n,
        times * (k.cols + v.cols), element_bytes);
}

/* A kernel that moves so much, of parts of these buffers. */
static void tape_ring_stream(struct tape *tape, const struct tape_op *op, const char *name,
    enum kernel_kind kind, double read, double write, const int *buffers)
{
    double ops = kind == KERNEL_COPY ? 0 : write / FLOAT_BYTES;
    tape_launch(
        tape, tape_suffix(tape, op->name, name), kernel_stream(kind, read, write, ops), 0, buffers);
}

/* ---- messages ---- */

/* TorchInductor leaves the wait where funcol traced it. */
static bool is_traced(const struct tape *tape)
{
    return tape->workload->fusion == FUSION_INDUCTOR;
}

static bool tape_ring_gathers(const struct tape *tape)
{
    return tape->workload->parallel.context_kind == CONTEXT_RING_ALLGATHER;
}

/* Keys and values of a step: in a buffer each, or in one (v: NO_BUFFER). */
struct keys {
    int k, v;
};

struct message {
    int from, to;
    struct keys next; /* where those of the next step are */
    bool begun;
};

static void tape_ring_await(struct tape *tape, const struct message *message)
{
    if (!message->begun)
        return;
    tape_await(tape);
    tape_touch(tape, message->from);
    tape_touch(tape, message->to);
}

static struct message tape_ring_send(struct tape *tape, const struct tape_op *op, const char *name,
    enum coll_kind kind, int from, int to, double bytes)
{
    struct message message = {from, to, {to, NO_BUFFER}, true};
    tape_communicate(tape, tape_suffix(tape, op->name, name), kind, AXES_CP, from);
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].comm.bytes = bytes;
    tape_touch(tape, to);
    if (is_traced(tape))
        tape_ring_await(tape, &message);
    message.begun = !is_traced(tape);
    return message;
}

/* Keys and values, one behind the other, for the ranks that multiply by them next. all_gather:
 * once, at step 0; without torch.compile the copy is made at each step, although nothing is sent.
 */
static struct message send_keys(
    struct tape *tape, const struct tape_op *op, int64_t step, struct keys here)
{
    const struct message nothing = {NO_BUFFER, NO_BUFFER, here, false};
    bool there = tape_ring_gathers(tape) && step > 0;
    if (step + 1 == context_ranks(tape) || (there && is_traced(tape)))
        return nothing;
    double bytes = context_key_bytes(tape, op, op->n);
    int joined = keys_buffer(tape, op, "kv.cat", op->n, 1, tape->storage_bytes);
    tape_ring_stream(
        tape, op, "kv.cat", KERNEL_COPY, bytes, bytes, BUFFERS(joined, here.k, here.v));
    if (there)
        return nothing;
    int64_t times = tape_ring_gathers(tape) ? context_ranks(tape) : 1;
    return tape_ring_send(tape, op, "kv",
        tape_ring_gathers(tape) ? COLL_ALL_GATHER : COLL_SEND_RECV, joined,
        keys_buffer(tape, op, "kv", op->n, times, tape->storage_bytes), bytes * (double)times);
}

/* The same, and, without torch.compile, the gradients that the step before left in grads, which
 * come in *sum. */
static struct message send_both(struct tape *tape, const struct tape_op *op, int64_t step,
    struct keys here, int grads, int *sum)
{
    struct message keys = send_keys(tape, op, step, here);
    if (grads == NO_BUFFER)
        return keys;
    *sum = keys_buffer(tape, op, "dkv", op->n, 1, FLOAT_BYTES);
    if (!keys.begun) {
        struct message message = tape_ring_send(
            tape, op, "dkv", COLL_SEND_RECV, grads, *sum, context_bytes(tape, grads));
        message.next = keys.next;
        return message;
    }
    tape->program[tape->pass].at[tape->program[tape->pass].n - 1].comm.bytes +=
        context_bytes(tape, grads);
    tape_touch(tape, grads);
    tape_touch(tape, *sum);
    return keys;
}

/* key.contiguous(), value.contiguous(): they lie as heads of positions. */
static struct keys local_keys(struct tape *tape, const struct tape_op *op)
{
    static const char *const names[] = {"k.contiguous", "v.contiguous"};
    int to[2];
    for (int i = 0; i < 2; i++) {
        struct tape_value x = tape_at(tape, op->in[1 + i]);
        const char *name = tape_suffix(tape, op->name, names[i]);
        to[i] = tape_buffer(tape, name, x.rows, x.cols, tape->storage_bytes);
        tape_pass(tape, KERNEL_COPY, name, 0, BUFFERS(x.buffer), to[i]);
    }
    return (struct keys){to[0], to[1]};
}

/* ---- forward ---- */

struct merged {
    int out, sums; /* in FP32; NO_BUFFER: nothing yet */
};

/* A kernel on a number a row: from two into a new buffer. */
static int of_rows(
    struct tape *tape, const struct tape_op *op, const char *name, int64_t m, int a, int b)
{
    double bytes = (double)op->batch * (double)m * FLOAT_BYTES;
    int to = tape_buffer(tape, tape_suffix(tape, op->name, name), op->batch * m, 1, FLOAT_BYTES);
    tape_ring_stream(tape, op, name, KERNEL_ELEMENTWISE, (b == NO_BUFFER ? 1 : 2) * bytes, bytes,
        BUFFERS(to, a, b));
    return to;
}

/* Out of these halves a new whole, as _partial_update makes it by torch.cat. */
static int tape_ring_join(
    struct tape *tape, const struct tape_op *op, const char *name, int old, int half, int64_t rows)
{
    double bytes = context_bytes(tape, old);
    int64_t cols = tape->buffers.at[old].elements / rows;
    int to = tape_buffer(tape, tape_suffix(tape, op->name, name), rows, cols, FLOAT_BYTES);
    tape_ring_stream(tape, op, name, KERNEL_COPY, bytes, bytes, BUFFERS(to, old, half));
    return to;
}

/* out - sigmoid(block_lse - lse) (out - block_out), lse - logsigmoid(lse - block_lse): a kernel for
 * each operation. */
static void merge(struct tape *tape, const struct tape_op *op, struct context_part part, int out,
    int sums, struct merged *merged)
{
    double elements = (double)op->batch * (double)part.m * (double)op->value_dim,
           wide = elements * FLOAT_BYTES;
    int64_t rows = op->batch * part.m;
    int block =
        tape_buffer(tape, tape_suffix(tape, op->name, "float"), rows, op->value_dim, FLOAT_BYTES);
    tape_elementwise(tape, tape_suffix(tape, op->name, "float"), 1, out, NO_BUFFER, block);
    if (merged->out == NO_BUFFER) {
        *merged = (struct merged){block, sums};
        return;
    }
    int weights = of_rows(tape, op, "lse.difference", part.m, sums, merged->sums);
    weights = of_rows(tape, op, "lse.sigmoid", part.m, weights, NO_BUFFER);
    int difference = tape_buffer(
        tape, tape_suffix(tape, op->name, "difference"), rows, op->value_dim, FLOAT_BYTES);
    tape_ring_stream(tape, op, "difference", KERNEL_ELEMENTWISE, 2 * wide, wide,
        BUFFERS(difference, merged->out, block));
    int weighted = tape_buffer(
        tape, tape_suffix(tape, op->name, "weighted"), rows, op->value_dim, FLOAT_BYTES);
    tape_elementwise(
        tape, tape_suffix(tape, op->name, "weighted"), 1, difference, weights, weighted);
    int result =
        tape_buffer(tape, tape_suffix(tape, op->name, "merge"), rows, op->value_dim, FLOAT_BYTES);
    tape_ring_stream(tape, op, "merge", KERNEL_ELEMENTWISE, 2 * wide, wide,
        BUFFERS(result, merged->out, weighted));
    int lse = of_rows(tape, op, "lse.back", part.m, merged->sums, sums);
    lse = of_rows(tape, op, "lse.logsigmoid", part.m, lse, NO_BUFFER);
    lse = of_rows(tape, op, "lse.merge", part.m, merged->sums, lse);
    bool half = is_half(part.m, op->m);
    merged->sums =
        half ? tape_ring_join(tape, op, "lse.cat", merged->sums, lse, op->batch * op->m) : lse;
    merged->out =
        half ? tape_ring_join(tape, op, "cat", merged->out, result, op->batch * op->m) : result;
}

/* ---- backward ---- */

/* += of what a step made, in FP32: of n keys the keys, then the values; or of m queries. */
static void tape_ring_add_keys(
    struct tape *tape, const struct tape_op *op, int64_t n, int step, int sum)
{
    static const char *const names[] = {"dk.add", "dv.add"};
    for (int i = 0; i < 2; i++) {
        struct tape_value x = tape_at(tape, op->in[1 + i]);
        int64_t rows = x.rows / op->n * n;
        double elements = (double)rows * (double)x.cols;
        tape_ring_stream(tape, op, names[i], KERNEL_ELEMENTWISE,
            elements * (double)(FLOAT_BYTES + tape->storage_bytes), elements * FLOAT_BYTES,
            BUFFERS(step, sum));
    }
}

static void add_queries(struct tape *tape, const struct tape_op *op, int64_t m, int step, int *sum)
{
    double elements = (double)op->batch * (double)m * (double)op->k;
    tape_ring_stream(tape, op, "dq.add", KERNEL_ELEMENTWISE,
        elements * (double)(FLOAT_BYTES + tape->storage_bytes), elements * FLOAT_BYTES,
        BUFFERS(step, *sum));
    if (is_half(m, op->m))
        *sum = tape_ring_join(tape, op, "dq.cat", *sum, step, op->batch * op->m);
}

/* zeros_like in FP32, of keys and of values. */
static int zero_keys(struct tape *tape, const struct tape_op *op)
{
    static const char *const names[] = {"dk.zero", "dv.zero"};
    int sum = keys_buffer(tape, op, "dkv", op->n, 1, FLOAT_BYTES);
    for (int i = 0; i < 2; i++) {
        struct tape_value x = tape_at(tape, op->in[1 + i]);
        tape_ring_stream(tape, op, names[i], KERNEL_COPY, 0,
            (double)x.rows * (double)x.cols * FLOAT_BYTES, BUFFERS(sum));
    }
    return sum;
}

/* What came from the rank before, with this step's added, laid out to be sent on. A half is added
 * to, then made a whole again by a copy each of keys and values. */
static int sum_keys(
    struct tape *tape, const struct tape_op *op, struct context_part part, int step, int sum)
{
    double bytes = context_bytes(tape, sum);
    tape_ring_add_keys(tape, op, part.n, step, sum);
    if (is_half(part.n, op->n)) {
        static const char *const names[] = {"dk.cat", "dv.cat"};
        int whole = keys_buffer(tape, op, "dkv.whole", op->n, 1, FLOAT_BYTES);
        for (int i = 0; i < 2; i++)
            tape_ring_stream(
                tape, op, names[i], KERNEL_COPY, bytes / 2, bytes / 2, BUFFERS(sum, whole));
        sum = whole;
    }
    int joined = keys_buffer(tape, op, "dkv.cat", op->n, 1, FLOAT_BYTES);
    tape_ring_stream(tape, op, "dkv.cat", KERNEL_COPY, bytes, bytes, BUFFERS(sum, joined));
    return joined;
}

/* The kernels of one step; its gradients of queries are added here, those of keys are in the buffer
 * that it returns. */
static int step_backward(struct tape *tape, const struct tape_op *op, struct context_part part,
    struct keys here, int *grad_q)
{
    int sums = op->saved[0];
    if (is_half(part.m, op->m))
        sums = of_rows(tape, op, "lse.contiguous", part.m, sums, NO_BUFFER);
    const char *name = tape_suffix(tape, op->name, "dq.step");
    *grad_q = tape_buffer(tape, name, op->batch * part.m, op->k, tape->storage_bytes);
    int keys = keys_buffer(tape, op, "dkv.step", part.n, 1, tape->storage_bytes);
    context_launch_backward(
        tape, op, part, (const int[]){here.k, here.v}, sums, *grad_q, BUFFERS(keys));
    return keys;
}

static void give_keys(struct tape *tape, const struct tape_op *op, int sum)
{
    int narrow = keys_buffer(tape, op, "dkv.to", op->n, 1, tape->storage_bytes);
    tape_elementwise(tape, tape_suffix(tape, op->name, "dkv.to"), 1, sum, NO_BUFFER, narrow);
    for (int i = 1; i <= 2; i++) {
        int grad = tape_new_grad(tape, op->in[i]);
        tape->buffers.at[grad].view_of = narrow;
        tape_give(tape, op->in[i], grad);
    }
}

static void tape_ring_backward(struct tape *tape, const struct tape_op *op)
{
    int grad_q = tape_buffer(
        tape, tape_suffix(tape, op->name, "dq.sum"), op->batch * op->m, op->k, FLOAT_BYTES);
    tape_pass(
        tape, KERNEL_COPY, tape_suffix(tape, op->name, "dq.zeros"), 0, BUFFERS(NO_BUFFER), grad_q);
    int sum = zero_keys(tape, op), waiting = NO_BUFFER;
    struct keys here = local_keys(tape, op);
    for (int64_t i = 0; i < context_ranks(tape); i++) {
        struct context_part part = tape_ring_part_of(tape, op, i);
        struct message message = send_both(tape, op, i, here, waiting, &sum);
        int step_q, step_keys = step_backward(tape, op, part, here, &step_q);
        tape_ring_await(tape, &message);
        if (waiting != NO_BUFFER)
            tape_touch(tape, waiting);
        here = message.next;
        waiting = sum_keys(tape, op, part, step_keys, sum);
        if (is_traced(tape)) {
            sum = keys_buffer(tape, op, "dkv", op->n, 1, FLOAT_BYTES);
            tape_ring_send(
                tape, op, "dkv", COLL_SEND_RECV, waiting, sum, context_bytes(tape, waiting));
            waiting = NO_BUFFER;
        }
        add_queries(tape, op, part.m, step_q, &grad_q);
    }
    if (waiting != NO_BUFFER) {
        sum = keys_buffer(tape, op, "dkv", op->n, 1, FLOAT_BYTES);
        struct message last = tape_ring_send(
            tape, op, "dkv", COLL_SEND_RECV, waiting, sum, context_bytes(tape, waiting));
        tape_ring_await(tape, &last);
    }
    int grad = tape_new_grad(tape, op->in[0]);
    tape_elementwise(tape, tape_suffix(tape, op->name, "dq.to"), 1, grad_q, NO_BUFFER, grad);
    tape_give(tape, op->in[0], grad);
    give_keys(tape, op, sum);
}

int context_ring(struct tape *tape, struct tape_op op)
{
    struct tape_value query = tape_at(tape, op.in[0]);
    struct merged merged = {NO_BUFFER, NO_BUFFER};
    struct keys here = local_keys(tape, &op);
    op.backward = tape_ring_backward;
    for (int64_t i = 0; i < context_ranks(tape); i++) {
        struct context_part part = tape_ring_part_of(tape, &op, i);
        struct message message = send_keys(tape, &op, i, here);
        int64_t rows = op.batch * part.m;
        int out = tape_buffer(
            tape, tape_suffix(tape, op.name, "step"), rows, op.value_dim, tape->storage_bytes);
        int sums = tape_buffer(tape, tape_suffix(tape, op.name, "logsumexp"), rows, 1, FLOAT_BYTES);
        context_launch(
            tape, op.name, &op, part, false, BUFFERS(query.buffer, out, sums, here.k, here.v));
        merge(tape, &op, part, out, sums, &merged);
        tape_ring_await(tape, &message);
        here = message.next;
    }
    op.out = tape_value(
        tape, op.name, query.rows, query.cols / op.k * op.value_dim, tape->storage_bytes, true);
    tape_elementwise(tape, tape_suffix(tape, op.name, "to"), 1, merged.out, NO_BUFFER,
        tape_at(tape, op.out).buffer);
    op.saved[0] = merged.sums;
    tape_push(tape, op);
    return op.out;
}
