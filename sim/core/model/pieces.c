/* TransformerEngine's user buffers and torch.compile's micro_pipeline_tp (model/parallel.h):
 * collectives in pieces beside pieces of GEMMs.
 *
 * A finished program is rewritten once, op by op: a gather with its wait and the GEMM behind it, or
 * a GEMM with its reduce-scatter and wait, become a row of pieces; all else is kept. first[] and
 * last[] remember for each old op which new ones it became, and the lives of activations are moved
 * by them: born at the first piece, freed after the last.
 *
 * Subtle: pieces of a GEMM read the operand that is not cut whole, so they move more bytes than the
 * GEMM did, but share its waves (kernel_work.pieces). Gathered rows travel as peer copies. */
#include "model/tape_core.h"

/* user_buffers: of a GEMM whose result's collective begins while it goes on, and of that collective
 * (transformer_engine/pytorch/module/base.py, num_splits). */
enum { OUTPUT_PIECES = 4 };

/* What TransformerEngine cuts into pieces one call into C++ launches (comm_gemm_overlap.h,
 * split_overlap_ag and split_overlap_rs); torch.compile's are a loop in Python. */
struct splitting {
    const struct model_op *ops; /* of a pass, n */
    int n;
    int64_t ranks;
    bool by_copies; /* micro_pipeline: results are scattered by copies, too */
    struct arena *arena;
    VEC(struct model_op) made;
    int *first, *last; /* op by op: the first and the last of those that it became */
};

static bool pieces_is_exchange(const struct model_op *op, enum coll_kind kind)
{
    return op->kind == MODEL_COMM && op->comm.axes == AXES_TP && op->comm.kind == kind;
}

static bool is_linear(const struct model_op *op)
{
    return op->kind == MODEL_KERNEL && op->work.kind == KERNEL_GEMM && op->param_use >= 0 &&
           op->work.batch == 1;
}

/* Of a weight alone, in FP8. */
static bool is_cast_of_weight(const struct model_op *op)
{
    return op->kind == MODEL_KERNEL && op->work.kind != KERNEL_GEMM && op->param_use >= 0;
}

/* One of `pieces` of a GEMM, cut along its rows or its columns. Each reads the other operand whole.
 */
static struct model_op piece_of(
    struct splitting *s, const struct model_op *gemm, int64_t pieces, int i, bool rows)
{
    struct model_op piece = *gemm;
    double share = 1 / (double)pieces, m = (double)gemm->work.m, n = (double)gemm->work.n;
    double cut = (rows ? m : n) / (m + n);
    piece.name = arena_printf(s->arena, "%s.%d", gemm->name, i);
    piece.inner = i > 0 && !s->by_copies;
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
    piece.inner = !s->by_copies;
    piece.comm.kind = kind;
    piece.comm.bytes = bytes;
    return piece;
}

static struct model_op pieces_pass_over(
    const char *name, enum kernel_kind kind, double read_bytes, double write_bytes)
{
    return (struct model_op){.kind = MODEL_KERNEL,
        .name = name,
        .work = kernel_stream(kind, read_bytes, write_bytes, 0),
        .param_grad = -1,
        .param_share = -1,
        .param_use = -1};
}

/* Gather at `at`, wait, GEMM of all rows at `last`: the own rows first; while they are multiplied
 * those of the rank before arrive, which go on to the next one, and so on. */
static void ring_exchange(struct splitting *s, int at, int last)
{
    const struct model_op *gather = &s->ops[at], *wait = &s->ops[at + 1], *gemm = &s->ops[last];
    double shard = gather->comm.bytes / (double)s->ranks;
    s->first[at] = s->made.n;
    const char *into =
        arena_printf(s->arena, s->by_copies ? "%s.symm_mem" : "%s.user_buffer", gather->name);
    vec_push(&s->made, pieces_pass_over(into, KERNEL_COPY, shard, shard));
    for (int i = 0; i < s->ranks; i++) {
        if (i + 1 < s->ranks)
            vec_push(&s->made, transfer_of(s, gather, COLL_PEER_COPY, shard, i));
        s->first[last] = i == 0 ? s->made.n : s->first[last];
        vec_push(&s->made, piece_of(s, gemm, s->ranks, i, true));
        if (i + 1 < s->ranks)
            vec_push(&s->made, *wait);
    }
    s->first[at + 1] = s->first[at];
    s->last[at] = s->last[at + 1] = s->last[last] = s->made.n - 1;
}

/* GEMM, reduce-scatter of its result, wait: some columns of the result after the others. */
static void pipeline(struct splitting *s, int at)
{
    const struct model_op *gemm = &s->ops[at], *scatter = &s->ops[at + 1], *wait = &s->ops[at + 2];
    s->first[at] = s->made.n;
    for (int i = 0; i < OUTPUT_PIECES; i++) {
        vec_push(&s->made, piece_of(s, gemm, OUTPUT_PIECES, i, false));
        s->first[at + 1] = i == 0 ? s->made.n : s->first[at + 1];
        vec_push(&s->made,
            transfer_of(s, scatter, COLL_REDUCE_SCATTER, scatter->comm.bytes / OUTPUT_PIECES, i));
    }
    vec_push(&s->made, *wait);
    s->first[at + 2] = s->made.n - 1;
    for (int i = at; i < at + 3; i++)
        s->last[i] = s->made.n - 1;
}

/* The same by copies of rows to the ranks whose they are, the own ones last; then the sum. */
static void scatter_by_copies(struct splitting *s, int at)
{
    const struct model_op *gemm = &s->ops[at], *scatter = &s->ops[at + 1], *wait = &s->ops[at + 2];
    double bytes = scatter->comm.bytes, share = bytes / (double)s->ranks;
    s->first[at] = s->made.n;
    for (int i = 0; i < s->ranks; i++) {
        vec_push(&s->made, piece_of(s, gemm, s->ranks, i, true));
        if (i + 1 < s->ranks)
            vec_push(&s->made, transfer_of(s, scatter, COLL_PEER_COPY, share, i));
    }
    vec_push(&s->made, *wait);
    struct model_op sum = pieces_pass_over(
        arena_printf(s->arena, "%s.sum", scatter->name), KERNEL_ELEMENTWISE, bytes, share);
    double elements = (double)gemm->work.m * (double)gemm->work.n;
    sum.work.flop = elements * (1 - 1 / (double)s->ranks);
    sum.kept = scatter->kept;
    s->first[at + 1] = s->first[at + 2] = s->made.n;
    vec_push(&s->made, sum);
    for (int i = at; i < at + 3; i++)
        s->last[i] = s->made.n - 1;
}

static void pieces_keep(struct splitting *s, int at)
{
    s->first[at] = s->last[at] = s->made.n;
    vec_push(&s->made, s->ops[at]);
}

/* The GEMM that multiplies what is gathered at `at`; -1: other kernels read it first. */
static int multiplied_at(const struct splitting *s, int at)
{
    if (!pieces_is_exchange(&s->ops[at], COLL_ALL_GATHER) || at + 1 >= s->n ||
        s->ops[at + 1].kind != MODEL_WAIT)
        return -1;
    int k = at + 2;
    while (s->by_copies && k < s->n && is_cast_of_weight(&s->ops[k]))
        k++;
    return k < s->n && is_linear(&s->ops[k]) ? k : -1;
}

static void pieces_split(struct splitting *s)
{
    s->first = ARENA_ARRAY(s->arena, int, s->n);
    s->last = ARENA_ARRAY(s->arena, int, s->n);
    for (int k = 0; k < s->n;) {
        const struct model_op *op = &s->ops[k];
        int multiplied = multiplied_at(s, k);
        bool three = k + 2 < s->n;
        if (multiplied >= 0) {
            for (int i = k + 2; i < multiplied; i++)
                pieces_keep(s, i);
            ring_exchange(s, k, multiplied);
            k = multiplied + 1;
        } else if (three && is_linear(op) && pieces_is_exchange(&op[1], COLL_REDUCE_SCATTER) &&
                   op[2].kind == MODEL_WAIT) {
            if (s->by_copies)
                scatter_by_copies(s, k);
            else
                pipeline(s, k);
            k += 3;
        } else {
            pieces_keep(s, k++);
        }
    }
}

/* The ops in the arena. */
static struct model_op *pieces_take(struct splitting *s, int *n)
{
    struct model_op *ops;
    *n = s->made.n;
    vec_keep(ops, &s->made, s->arena);
    return ops;
}

void model_cut_into_pieces(
    struct model_program *program, const struct model_parallel *parallel, struct arena *arena)
{
    bool by_copies = parallel->tensor_overlap == TENSOR_MICRO_PIPELINE;
    struct splitting forward = {
        program->forward, program->n_forward, parallel->tensor, by_copies, .arena = arena};
    struct splitting backward = {
        program->backward, program->n_backward, parallel->tensor, by_copies, .arena = arena};
    pieces_split(&forward);
    pieces_split(&backward);
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
    program->forward = pieces_take(&forward, &program->n_forward);
    program->backward = pieces_take(&backward, &program->n_backward);
}
