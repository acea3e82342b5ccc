/* Linear attention and scans, as their kernels do them, chunk by chunk: C positions, state
 * dimension N (of keys and queries), values of dimension P. A token of a head takes flop
 *   Mamba 2 (SSD; Dao and Gu, arXiv 2405.21060, section 6; C = 256) 2 C N g + 2 C P + 4 N P C B' of
 *     each of the g groups a head, its product with X, what goes into the state and what comes out
 *     of it
 *   gated DeltaNet (arXiv 2412.06464; WY form of arXiv 2406.06484; C = 64) 2 C (3 N + 2 P) + C C +
 *     6 N P K K', the inverse of a triangle of C x C, its products with K and V, Q K', that with
 *     what is new, and three products with the state
 *   Mamba (arXiv 2312.00752, section 3.3) 9 N P: a decay, an input and an output of each state,
 *   element by element
 * The chunks' states, N x P of a head in FP32, are written and read. Backward: twice the products,
 * and once those of forward, whose states are not kept.
 *
 * Kind of the rates: assumed. Products run as those of flash attention with C keys, element by
 * element as other such kernels; no measured time of these kernels is at hand: up to twice as long
 * or half as long. */
#include "model/tape_core.h"

enum { SSD_CHUNK = 256, DELTA_CHUNK = 64, SCAN_OPS = 9, SILU_OPS = 4, SCAN_PARAMS = 3 };

static int64_t tape_scan_chunk_of(const struct model_mixer *m)
{
    return m->kind == MIXER_MAMBA2 ? SSD_CHUNK : DELTA_CHUNK;
}

/* flop of a token in a forward pass. */
static double tape_scan_flop(const struct model_mixer *m)
{
    const double c = (double)tape_scan_chunk_of(m), n = (double)m->state, p = (double)m->head_dim,
                 heads = (double)m->heads;
    if (m->kind == MIXER_MAMBA)
        return heads * SCAN_OPS * n * p;
    if (m->kind == MIXER_MAMBA2)
        return 2 * c * n * (double)m->groups + heads * (2 * c * p + 4 * n * p);
    return heads * (2 * c * (3 * n + 2 * p) + c * c + 6 * n * p);
}

static double tape_scan_bytes_of(const struct tape *tape, int buffer)
{
    return (double)tape->buffers.at[buffer].life.bytes;
}

static const struct model_mixer *mixer_of(const struct tape *tape)
{
    return &tape->model->shape.mixer;
}

/* The chunks' states, which live as long as the kernel; Mamba's stay in registers: NO_BUFFER. */
static int states_of(struct tape *tape, const struct tape_op *op, const char *name)
{
    const struct model_mixer *m = mixer_of(tape);
    int64_t chunks = (op->m + tape_scan_chunk_of(m) - 1) / tape_scan_chunk_of(m);
    return m->kind == MIXER_MAMBA ? NO_BUFFER
                                  : tape_buffer(tape, tape_suffix(tape, op->name, name),
                                        chunks * m->heads, m->state * m->head_dim, FLOAT_BYTES);
}

/* read, write, states: bytes; the last both. */
static struct kernel_work scan_work(const struct tape *tape, const struct tape_op *op, double read,
    double write, double times, double states)
{
    const struct model_mixer *m = mixer_of(tape);
    double flop = times * tape_scan_flop(m) * (double)op->m;
    if (m->kind == MIXER_MAMBA)
        return kernel_stream(KERNEL_ELEMENTWISE, read, write, flop);
    return (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = tape->workload->math,
        .flop = flop,
        .read_bytes = read + states,
        .write_bytes = write + states,
        .m = tape->workload->seq_len,
        .n = tape_scan_chunk_of(m),
        .k = m->state,
        .batch = m->heads * tape->workload->micro_batch,
        .backward = times > 1};
}

static double tape_scan_model_flop(const struct tape *tape, const struct tape_op *op)
{
    return tape_scan_flop(mixer_of(tape)) * (double)op->m;
}

/* Parameters get their gradients by sums over what the kernel leaves for each position. */
static void complete_all(struct tape *tape, const struct tape_op *op)
{
    for (int64_t i = 0; i < op->n; i++) {
        if (!tape_trains(tape, op->list[i]))
            continue;
        double bytes = (double)(tape_tensor(tape, op->list[i])->numel * FLOAT_BYTES);
        tape_launch(tape, tape_suffix(tape, op->name, "wgrad"),
            kernel_stream(KERNEL_ELEMENTWISE, (double)(op->m * mixer_of(tape)->heads * FLOAT_BYTES),
                bytes, bytes),
            0, BUFFERS(NO_BUFFER));
        tape_complete(tape, op->list[i]);
    }
}

static void scan_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), grads[3], n = op->in[2] == NO_VALUE ? 2 : 3;
    double read = tape_scan_bytes_of(tape, grad), write = 0;
    for (int i = 0; i < n; i++) {
        grads[i] = tape_new_grad(tape, op->in[i]);
        read += tape_scan_bytes_of(tape, tape_at(tape, op->in[i]).buffer);
        write += tape_scan_bytes_of(tape, grads[i]);
    }
    int states = states_of(tape, op, "states");
    double kept = states == NO_BUFFER ? 0 : tape_scan_bytes_of(tape, states);
    tape_launch(tape, tape_suffix(tape, op->name, "dgrad"),
        scan_work(tape, op, read, write, 3, kept), 2 * tape_scan_model_flop(tape, op),
        BUFFERS(grad, grads[0], grads[1], states));
    for (int i = 0; i < n; i++) {
        tape_touch(tape, tape_at(tape, op->in[i]).buffer);
        tape_touch(tape, grads[i]);
    }
    complete_all(tape, op);
    for (int i = 0; i < n; i++)
        tape_give(tape, op->in[i], grads[i]);
}

/* Those of the mixer's scope that are there. */
static const int *params_of(struct tape *tape, int64_t *n)
{
    static const char *const names[SCAN_PARAMS] = {"A_log", "dt_bias", "D"};
    int *params = ARENA_ARRAY(tape->arena, int, SCAN_PARAMS);
    *n = 0;
    for (int i = 0; i < SCAN_PARAMS; i++) {
        params[*n] = tape_find(tape, "scan", names[i]);
        *n += params[*n] != NO_PARAM;
    }
    return params;
}

int tape_scan(struct tape *tape, const char *name, const struct model_mixer *mixer, int x,
    int gates, int keys)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = scan_backward,
        .name = tape_name(tape, name),
        .in = {x, gates, keys},
        .m = in.rows};
    op.list = params_of(tape, &op.n);
    op.out =
        tape_value(tape, op.name, in.rows, mixer->heads * mixer->head_dim, in.element_bytes, true);
    int out = tape_at(tape, op.out).buffer, rates = tape_at(tape, gates).buffer;
    double read = tape_scan_bytes_of(tape, in.buffer) + tape_scan_bytes_of(tape, rates);
    read += keys == NO_VALUE ? 0 : tape_scan_bytes_of(tape, tape_at(tape, keys).buffer);
    int states = states_of(tape, &op, "states");
    double kept = states == NO_BUFFER ? 0 : tape_scan_bytes_of(tape, states);
    tape_launch(tape, op.name, scan_work(tape, &op, read, tape_scan_bytes_of(tape, out), 1, kept),
        tape_scan_model_flop(tape, &op), BUFFERS(in.buffer, rates, out, states));
    if (keys != NO_VALUE)
        tape_touch(tape, tape_at(tape, keys).buffer);
    tape_push(tape, op);
    return op.out;
}

static void filter_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    int grad = tape_grad(tape, op), grad_x = tape_new_grad(tape, op->in[0]);
    double ops = 4 * (double)op->k + SILU_OPS;
    tape_elementwise(tape, tape_suffix(tape, op->name, "dgrad"), ops, grad, x.buffer, grad_x);
    if (tape_trains(tape, op->weight)) {
        tape_run(tape, (struct tape_stream){.kind = KERNEL_ELEMENTWISE,
                           .name = tape_suffix(tape, op->name, "wgrad"),
                           .ops = 2 * (double)op->k,
                           .reads = BUFFERS(grad, x.buffer),
                           .write = NO_BUFFER,
                           .param_bytes = (double)(x.cols * op->k * x.element_bytes)});
        tape_complete(tape, op->weight);
        tape_bias_gradient(tape, op, grad, x.cols);
    }
    tape_give(tape, op->in[0], grad_x);
}

int tape_filter(struct tape *tape, const char *name, int x, int64_t length)
{
    struct tape_op op = {.backward = filter_backward,
        .name = tape_name(tape, name),
        .in = {x, NO_VALUE},
        .weight = tape_find(tape, name, "weight"),
        .bias = tape_find(tape, name, "bias"),
        .k = length};
    BUG_IF(op.weight == NO_PARAM, "layer %d has no %s.weight", tape->layer, op.name);
    struct tape_value out = tape_at(tape, x);
    out.needs_grad = true;
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, out, 2 * (double)length + SILU_OPS);
}
