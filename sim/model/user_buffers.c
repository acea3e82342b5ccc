/* TransformerEngine's user buffers (model/parallel.h): collectives in pieces beside pieces of GEMMs. */
#include "model/tape_core.h"

static const unsigned AXES_TP = 1U << AXIS_TP;

/* Of a GEMM whose result's collective begins while it goes on, and of that collective
 * (transformer_engine/pytorch/module/base.py, num_splits). */
enum { OUTPUT_PIECES = 4 };

struct splitting {
    const struct model_op *ops; /* of a pass, n */
    int n;
    int64_t ranks;
    struct arena *arena;
    VEC(struct model_op) made;
    int *first, *last; /* op by op: the first and the last of those that it became */
};

static bool is_exchange(const struct model_op *op, enum coll_kind kind)
{
    return op->kind == MODEL_COMM && op->comm.axes == AXES_TP && op->comm.kind == kind;
}

static bool is_linear(const struct model_op *op)
{
    return op->kind == MODEL_KERNEL && op->work.kind == KERNEL_GEMM && op->param_use >= 0 && op->work.batch == 1;
}

/* One of `pieces` of a GEMM, cut along its rows or its columns. Each reads the other operand whole. */
static struct model_op piece_of(struct splitting *s, const struct model_op *gemm, int64_t pieces, int i, bool rows)
{
    struct model_op piece = *gemm;
    double share = 1 / (double)pieces, m = (double)gemm->work.m, n = (double)gemm->work.n;
    double cut = (rows ? m : n) / (m + n);
    piece.name = arena_printf(s->arena, "%s.%d", gemm->name, i);
    piece.work.pieces = pieces;
    piece.work.flop *= share;
    piece.work.read_bytes *= cut * share + 1 - cut;
    piece.work.write_bytes *= share;
    piece.model_flop *= share;
    piece.masked_flop *= share;
    return piece;
}

static struct model_op transfer_of(
    struct splitting *s, const struct model_op *comm, enum coll_kind kind, double bytes, int i)
{
    struct model_op piece = *comm;
    piece.name = arena_printf(s->arena, "%s.%d", comm->name, i);
    piece.comm.kind = kind;
    piece.comm.bytes = bytes;
    return piece;
}

/* Gather, wait, GEMM of all rows: the own rows first; while they are multiplied those of the rank before arrive, which
 * go on to the next one, and so on. */
static void ring_exchange(struct splitting *s, int at)
{
    const struct model_op *gather = &s->ops[at], *wait = &s->ops[at + 1], *gemm = &s->ops[at + 2];
    double shard = gather->comm.bytes / (double)s->ranks;
    s->first[at] = s->made.n;
    struct model_op into = {.kind = MODEL_KERNEL,
        .name = arena_printf(s->arena, "%s.user_buffer", gather->name),
        .work = kernel_stream(KERNEL_COPY, shard, shard, 0),
        .param_grad = -1,
        .param_share = -1,
        .param_use = -1};
    vec_push(&s->made, into);
    for (int i = 0; i < s->ranks; i++) {
        if (i + 1 < s->ranks)
            vec_push(&s->made, transfer_of(s, gather, COLL_PEER_COPY, shard, i));
        s->first[at + 2] = i == 0 ? s->made.n : s->first[at + 2];
        vec_push(&s->made, piece_of(s, gemm, s->ranks, i, true));
        if (i + 1 < s->ranks)
            vec_push(&s->made, *wait);
    }
    s->first[at + 1] = s->first[at];
    for (int i = at; i < at + 3; i++)
        s->last[i] = s->made.n - 1;
}

/* GEMM, reduce-scatter of its result, wait: some columns of the result after the others. */
static void pipeline(struct splitting *s, int at)
{
    const struct model_op *gemm = &s->ops[at], *scatter = &s->ops[at + 1], *wait = &s->ops[at + 2];
    s->first[at] = s->made.n;
    for (int i = 0; i < OUTPUT_PIECES; i++) {
        vec_push(&s->made, piece_of(s, gemm, OUTPUT_PIECES, i, false));
        s->first[at + 1] = i == 0 ? s->made.n : s->first[at + 1];
        vec_push(&s->made, transfer_of(s, scatter, COLL_REDUCE_SCATTER, scatter->comm.bytes / OUTPUT_PIECES, i));
    }
    vec_push(&s->made, *wait);
    s->first[at + 2] = s->made.n - 1;
    for (int i = at; i < at + 3; i++)
        s->last[i] = s->made.n - 1;
}

static void keep(struct splitting *s, int at)
{
    s->first[at] = s->last[at] = s->made.n;
    vec_push(&s->made, s->ops[at]);
}

static void split(struct splitting *s)
{
    s->first = ARENA_ARRAY(s->arena, int, s->n);
    s->last = ARENA_ARRAY(s->arena, int, s->n);
    for (int k = 0; k < s->n;) {
        const struct model_op *op = &s->ops[k];
        bool three = k + 2 < s->n;
        if (three && is_exchange(op, COLL_ALL_GATHER) && op[1].kind == MODEL_WAIT && is_linear(&op[2])) {
            ring_exchange(s, k);
            k += 3;
        } else if (three && is_linear(op) && is_exchange(&op[1], COLL_REDUCE_SCATTER) && op[2].kind == MODEL_WAIT) {
            pipeline(s, k);
            k += 3;
        } else {
            keep(s, k++);
        }
    }
}

/* The ops in the arena. */
static struct model_op *take(struct splitting *s, int *n)
{
    struct model_op *ops = ARENA_ARRAY(s->arena, struct model_op, s->made.n);
    for (int i = 0; i < s->made.n; i++)
        ops[i] = s->made.at[i];
    *n = s->made.n;
    vec_free(&s->made);
    return ops;
}

void model_use_user_buffers(struct model_program *program, int64_t ranks, struct arena *arena)
{
    struct splitting forward = {.ops = program->forward, .n = program->n_forward, .ranks = ranks, .arena = arena};
    struct splitting backward = {.ops = program->backward, .n = program->n_backward, .ranks = ranks, .arena = arena};
    split(&forward);
    split(&backward);
    for (int i = 0; i < program->n_activations; i++) {
        struct model_activation *life = &program->activations[i];
        const struct splitting *born = life->born_in_backward ? &backward : &forward;
        if (life->born < born->n)
            life->born = born->first[life->born];
        if (life->forward_last >= 0)
            life->forward_last = forward.last[life->forward_last];
        if (life->backward_last >= 0)
            life->backward_last = backward.last[life->backward_last];
    }
    program->n_rerun = program->n_rerun > 0 ? forward.last[program->n_rerun - 1] + 1 : 0;
    program->forward = take(&forward, &program->n_forward);
    program->backward = take(&backward, &program->n_backward);
}
