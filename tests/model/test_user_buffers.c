/* TransformerEngine's user buffers: the same bytes and FLOP as asynchronous communication has, in
 * pieces. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "kernel_named.h"
#include "programs.h"

enum { BF16_BYTES = 2, WIDTH = 64, PIECES = 4 };
/* The activation between two layers: of a whole micro-batch, bytes. */
static const double A = (double)BATCH * LENGTH * WIDTH * BF16_BYTES;

static struct run cut(const struct model_shape *shape, int64_t ranks, bool sequence, int overlap)
{
    struct model_parallel parallel = {
        .tensor = ranks, .sequence = sequence, .tensor_overlap = overlap};
    return run_part(shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_EAGER, &parallel);
}

struct sums {
    double gathered, scattered, flop, model_flop,
        written; /* gathered, scattered: that each rank sends, of A */
    int kernels;
};

static struct sums sums_of(const struct model_op *ops, int n, int64_t ranks)
{
    struct sums sums = {0};
    double share = (double)(ranks - 1) / (double)ranks;
    for (int i = 0; i < n; i++) {
        const struct model_op *op = &ops[i];
        bool product = op->kind == MODEL_KERNEL && op->work.kind == KERNEL_GEMM;
        sums.flop += product ? op->work.flop : 0;
        sums.written += product ? op->work.write_bytes : 0;
        sums.model_flop += op->model_flop;
        if (op->kind != MODEL_COMM)
            continue;
        sums.gathered += op->comm.kind == COLL_PEER_COPY    ? op->comm.bytes
                         : op->comm.kind == COLL_ALL_GATHER ? share * op->comm.bytes
                                                            : 0;
        sums.scattered += op->comm.kind == COLL_REDUCE_SCATTER ? share * op->comm.bytes : 0;
    }
    return sums;
}

static void assert_same(struct sums a, struct sums b)
{
    assert_near(a.gathered, b.gathered, 1e-12);
    assert_near(a.scattered, b.scattered, 1e-12);
    assert_near(a.flop, b.flop, 1e-12);
    assert_near(a.model_flop, b.model_flop, 1e-12);
    assert_near(a.written, b.written, 1e-12);
}

static void pieces_add_up(void **state)
{
    (void)state;
    static const struct model_shape *const shapes[] = {
        &small_gpt, &small_llama, &small_neox, &small_bert};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t ranks = 2; ranks <= 4; ranks *= 2) {
            struct run async = cut(shapes[s], ranks, true, TENSOR_ASYNC);
            struct run pieces = cut(shapes[s], ranks, true, TENSOR_USER_BUFFERS);
            for (int i = 0; i < async.segments.n; i++) {
                const struct model_program *a = async.segments.at[i].program,
                                           *b = pieces.segments.at[i].program;
                assert_same(sums_of(a->forward, a->n_forward, ranks),
                    sums_of(b->forward, b->n_forward, ranks));
                assert_same(sums_of(a->backward, a->n_backward, ranks),
                    sums_of(b->backward, b->n_backward, ranks));
            }
            arena_release(&async.arena);
            arena_release(&pieces.arena);
        }
}

static void assert_order(const struct model_op *at, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        assert_string_equal(at[i].name, names[i]);
}

/* Forward of the feed-forward layer on two ranks; in backward the gradient comes as the input does
 * in forward, and what runs beside GEMMs already is left as it is. */
static void collectives_come_in_pieces(void **state)
{
    (void)state;
    struct run r = cut(&small_gpt, 2, true, TENSOR_USER_BUFFERS);
    const struct model_program *p = block(&r, 1);
    static const char *const in[] = {
        "mlp.in/all_gather.user_buffer", "mlp.in/all_gather.0", "mlp.c_fc.0", "wait", "mlp.c_fc.1"};
    const struct model_op *at = kernel_named(p->forward, p->n_forward, in[0]);
    assert_order(at, in, sizeof in / sizeof *in);
    assert_true(at[1].comm.kind == COLL_PEER_COPY && at[1].comm.bytes == A / 2);
    assert_true(at[2].work.pieces == 2 &&
                at[2].work.flop * 2 == 2.0 * BATCH * LENGTH * WIDTH * (double)at[2].work.n);
    static const char *const out[] = {"mlp.c_proj.0", "mlp.c_proj/reduce_scatter.0", "mlp.c_proj.1",
        "mlp.c_proj/reduce_scatter.1", "mlp.c_proj.2", "mlp.c_proj/reduce_scatter.2",
        "mlp.c_proj.3", "mlp.c_proj/reduce_scatter.3", "wait"};
    at = kernel_named(p->forward, p->n_forward, out[0]);
    assert_order(at, out, sizeof out / sizeof *out);
    assert_true(at[1].comm.bytes == A / PIECES && at[0].work.pieces == PIECES);
    for (int i = 0; i < 8; i++) /* one call launches them, and another one the next product */
        assert_int_equal(at[i].inner, i > 0);
    assert_false(at[9].inner);
    static const char *const gradient[] = {"mlp.c_proj.grad/all_gather.0", "mlp.c_proj.dgrad.0",
        "wait", "mlp.c_proj.dgrad.1", "mlp.c_proj.wgrad"};
    at = kernel_named(p->backward, p->n_backward, gradient[0]);
    assert_order(at, gradient, sizeof gradient / sizeof *gradient);
    static const char *const bulk[] = {"mlp.in.again/all_gather", "mlp.c_fc.dgrad", "wait",
        "mlp.in.dgrad/reduce_scatter", "mlp.c_fc.wgrad"};
    at = kernel_named(p->backward, p->n_backward, bulk[0]);
    assert_order(at, bulk, sizeof bulk / sizeof *bulk);
    arena_release(&r.arena);
}

/* The head is no transformer layer, and without sequence there is nothing to gather. */
static void elsewhere_all_is_as_it_was(void **state)
{
    (void)state;
    for (int sequence = 0; sequence <= 1; sequence++) {
        struct run async = cut(&small_llama, 2, sequence, TENSOR_ASYNC);
        struct run pieces = cut(&small_llama, 2, sequence, TENSOR_USER_BUFFERS);
        for (int i = 0; i < async.segments.n; i++) {
            const struct model_program *a = async.segments.at[i].program,
                                       *b = pieces.segments.at[i].program;
            bool cuts = sequence && async.segments.at[i].kind == SEGMENT_BLOCK;
            assert_int_equal(a->n_forward == b->n_forward && a->n_backward == b->n_backward, !cuts);
        }
        arena_release(&async.arena);
        arena_release(&pieces.arena);
    }
}

/* What one piece writes, all later ones still need; nothing is let go of between them. */
static void tensors_live_through_all_pieces(void **state)
{
    (void)state;
    struct run r = cut(&small_gpt, 4, true, TENSOR_USER_BUFFERS);
    const struct model_program *p = block(&r, 1);
    int first =
        (int)(kernel_named(p->forward, p->n_forward, "mlp.in/all_gather.user_buffer") - p->forward);
    int last = (int)(kernel_named(p->forward, p->n_forward, "mlp.c_fc.3") - p->forward);
    int seen = 0;
    for (int i = 0; i < p->n_activations; i++) {
        const struct model_activation *a = &p->activations[i];
        if (a->born_in_backward ||
            (strcmp(a->name, "mlp.in") != 0 && strcmp(a->name, "mlp.c_fc") != 0))
            continue;
        assert_true(a->born == first + (strcmp(a->name, "mlp.c_fc") == 0 ? 2 : 0) &&
                    a->forward_last >= last);
        seen++;
    }
    assert_int_equal(seen, 2);
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_add_up),
        cmocka_unit_test(collectives_come_in_pieces),
        cmocka_unit_test(elsewhere_all_is_as_it_was),
        cmocka_unit_test(tensors_live_through_all_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
