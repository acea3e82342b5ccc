/* What torchtitan's blocks have besides: torchao's FP8, rotary positions in complex numbers,
 * products in pieces beside pieces of the collectives of tensor parallelism (async TP). */
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

enum { BF16_BYTES = 2, WIDTH = 64, SEQUENCES = 2 * BATCH, ROWS = SEQUENCES * LENGTH, TP = 2 };
/* Elements of what q_proj reads, of its matrix. */
static const double X = (double)ROWS * WIDTH, WEIGHT = (double)WIDTH * WIDTH;

static struct model_workload float8(int recipe)
{
    struct model_workload w = workload(&small_llama, DTYPE_BF16, ATTENTION_FLASH);
    w.micro_batch = SEQUENCES; /* so that a rank has a multiple of 16 rows */
    w.fusion = FUSION_INDUCTOR;
    w.fp8 = recipe >= 0;
    w.fp8_recipe = recipe >= 0 ? recipe : 0;
    return w;
}

static struct run block_of(struct model_workload w)
{
    struct run r = {.arena = ARENA_INIT};
    struct model whole;
    model_build(&whole, &small_llama, &r.arena);
    assert_null(model_shard_wrong(&small_llama, &w, &r.arena));
    model_shard(&r.model, &whole, &w.parallel, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static const struct model_program *program_of(const struct run *r)
{
    return r->segments.at[1].program;
}

static void expect_bytes(
    const struct model_op *ops, int n, const char *name, double reads, double writes)
{
    const struct model_op *op = kernel_named(ops, n, name);
    assert_true(op->work.read_bytes == reads);
    assert_true(op->work.write_bytes == writes);
}

/* tensorwise: each operand is read for its largest value and once more to be cast, 2 bytes each;
 * products that sum over rows take copies of what was cast, a byte each way. q, k and v have one
 * input, which is cast once. */
static void tensors_are_scaled_by_a_separate_pass(void **state)
{
    (void)state;
    struct run r = block_of(float8(FP8_TENSORWISE));
    const struct model_program *p = program_of(&r);
    const struct model_op *f = p->forward, *b = p->backward;
    expect_bytes(f, p->n_forward, "self_attn.q_proj.x.amax", BF16_BYTES * X, FLOAT_BYTES);
    expect_bytes(f, p->n_forward, "self_attn.q_proj.x.cast", BF16_BYTES * X, X);
    expect_bytes(f, p->n_forward, "self_attn.q_proj.weight.cast", BF16_BYTES * WEIGHT, WEIGHT);
    assert_int_equal(count_named(f, p->n_forward, "self_attn.k_proj.x.cast"), 0);
    assert_int_equal(count_named(f, p->n_forward, "mlp.up_proj.x.cast"), 0);
    expect_bytes(b, p->n_backward, "self_attn.q_proj.grad.cast", BF16_BYTES * X, X);
    expect_bytes(b, p->n_backward, "self_attn.q_proj.grad.transpose", X, X);
    expect_bytes(b, p->n_backward, "self_attn.q_proj.weight.transpose", WEIGHT, WEIGHT);
    /* v_proj comes first in backward, and turns the input of all three */
    expect_bytes(b, p->n_backward, "self_attn.v_proj.x.transpose", X, X);
    assert_int_equal(count_named(b, p->n_backward, "self_attn.q_proj.x.transpose"), 0);
    static const char *const products[] = {
        "self_attn.q_proj.dgrad", "self_attn.q_proj.wgrad", "mlp.down_proj.wgrad"};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        assert_int_equal(kernel_named(b, p->n_backward, products[i])->work.math, DTYPE_FP8);
    arena_release(&r.arena);
}

/* Matrices that come in FP8 are cast nowhere, and still turned. Eagerly each layer casts its input.
 */
static void weights_may_come_in_fp8(void **state)
{
    (void)state;
    struct model_workload w = float8(FP8_TENSORWISE);
    w.fp8_weights = true;
    w.fusion = FUSION_EAGER;
    struct run r = block_of(w);
    const struct model_program *p = program_of(&r);
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.q_proj.weight.cast"), 0);
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.q_proj.weight.amax"), 0);
    assert_int_equal(
        count_named(p->backward, p->n_backward, "self_attn.q_proj.weight.transpose"), 1);
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.k_proj.x.cast"), 1);
    arena_release(&r.arena);
}

/* rowwise: one kernel along rows; across them other scales, found by a pass and cast from 16 bits
 * by another. */
static void rows_are_scaled_as_they_are_cast(void **state)
{
    (void)state;
    struct run r = block_of(float8(FP8_ROWWISE));
    const struct model_program *p = program_of(&r);
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.q_proj.x.amax"), 0);
    expect_bytes(p->forward, p->n_forward, "self_attn.q_proj.x.cast", BF16_BYTES * X, X);
    expect_bytes(p->backward, p->n_backward, "self_attn.q_proj.grad.transpose.amax", BF16_BYTES * X,
        FLOAT_BYTES);
    expect_bytes(p->backward, p->n_backward, "self_attn.q_proj.grad.transpose", BF16_BYTES * X, X);
    arena_release(&r.arena);
}

/* FLOP, and gradients that become complete, are those of BF16. */
static void recipes_do_the_same_work(void **state)
{
    (void)state;
    for (int tensor = 1; tensor <= TP; tensor++)
        for (int overlap = 0; overlap < TENSOR_OVERLAP_COUNT; overlap++)
            for (int recipe = -1; recipe < FP8_RECIPE_COUNT; recipe++) {
                struct model_workload w = float8(recipe), plain = float8(-1);
                w.parallel = (struct model_parallel){.tensor = tensor, .sequence = tensor > 1};
                plain.parallel = w.parallel;
                w.parallel.tensor_overlap = overlap;
                struct run a = block_of(plain), b = block_of(w);
                assert_near(model_step_flop(&b.segments), model_step_flop(&a.segments), 1e-12);
                int completed[2] = {0, 0};
                for (int k = 0; k < program_of(&a)->n_backward; k++)
                    completed[0] += program_of(&a)->backward[k].param_grad >= 0;
                for (int k = 0; k < program_of(&b)->n_backward; k++)
                    completed[1] += program_of(&b)->backward[k].param_grad >= 0;
                assert_int_equal(completed[0], completed[1]);
                arena_release(&a.arena);
                arena_release(&b.arena);
            }
}

/* Query heads, 4 of 16, are widened to FP32 and multiplied by a kernel that nothing joins;
 * rotate_half fuses. */
static void complex_rotary_positions_stay_apart(void **state)
{
    (void)state;
    struct model_workload w = float8(-1);
    w.rotary = ROTARY_COMPLEX;
    struct run r = block_of(w);
    const struct model_program *p = program_of(&r);
    const double keys = X / 2;
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.rope.mul"), 2);
    assert_int_equal(count_named(p->backward, p->n_backward, "self_attn.rope.mul.dgrad"), 2);
    expect_bytes(p->forward, p->n_forward, "self_attn.rope.mul", FLOAT_BYTES * X, FLOAT_BYTES * X);
    expect_bytes(p->backward, p->n_backward, "self_attn.rope.mul.dgrad", FLOAT_BYTES * keys,
        FLOAT_BYTES * keys);
    arena_release(&r.arena);
}

static struct run cut(int recipe, int overlap)
{
    struct model_workload w = float8(recipe);
    w.parallel = (struct model_parallel){.tensor = TP, .sequence = true, .tensor_overlap = overlap};
    return block_of(w);
}

/* Communications of a kind; the bytes of all of them. */
static int sent(const struct model_op *ops, int n, enum coll_kind kind, double *bytes)
{
    int found = 0;
    *bytes = 0;
    for (int i = 0; i < n; i++)
        if (ops[i].kind == MODEL_COMM && ops[i].comm.kind == kind) {
            found++;
            *bytes += ops[i].comm.bytes;
        }
    return found;
}

/* torchao's layouts of DTensor: what is gathered goes in FP8, 1 byte in place of 2, in forward and
 * backward twice each; scales are found over all ranks. Rowwise it goes in BF16. What is scattered
 * always does. */
static void gathers_are_in_fp8(void **state)
{
    (void)state;
    for (int recipe = -1; recipe < FP8_RECIPE_COUNT; recipe++) {
        struct run r = cut(recipe, TENSOR_BLOCKING);
        const struct model_program *p = program_of(&r);
        double bytes = 0, element = recipe == FP8_TENSORWISE ? 1 : BF16_BYTES;
        assert_int_equal(sent(p->forward, p->n_forward, COLL_ALL_GATHER, &bytes), 2);
        assert_true(bytes == 2 * element * X);
        assert_int_equal(sent(p->backward, p->n_backward, COLL_ALL_GATHER, &bytes), 2);
        assert_true(bytes == 2 * element * X);
        assert_int_equal(sent(p->forward, p->n_forward, COLL_REDUCE_SCATTER, &bytes), 2);
        assert_true(bytes == 2 * BF16_BYTES * X);
        int scales = sent(p->forward, p->n_forward, COLL_ALL_REDUCE, &bytes);
        assert_int_equal(scales,
            recipe == FP8_TENSORWISE ? 4 : 0); /* of what enters, and of o_proj's and down_proj's */
        arena_release(&r.arena);
    }
}

/* Pieces of a product, which make up all of it. */
static int count_pieces(const struct model_op *ops, int n, const char *name)
{
    char piece[64];
    int found = 0;
    double flop = 0, whole = 0;
    for (;; found++) {
        snprintf(piece, sizeof piece, "%s.%d", name, found);
        if (count_named(ops, n, piece) == 0)
            break;
        const struct kernel_work *work = &kernel_named(ops, n, piece)->work;
        assert_int_equal(work->pieces, TP);
        flop += work->flop;
        whole = 2.0 * (double)(work->m * work->n * work->k);
    }
    assert_near(flop, whole, 1e-12);
    return found;
}

/* In place of both gathers of forward, both scatters, and the gathers of backward tp - 1 copies of
 * a piece each; the products beside them are tp pieces. Input gradients, sums over layers, are
 * scattered as before. */
static void pieces_of_products_run_beside_copies(void **state)
{
    (void)state;
    for (int recipe = -1; recipe < FP8_DELAYED; recipe++) {
        struct run r = cut(recipe, TENSOR_MICRO_PIPELINE);
        const struct model_program *p = program_of(&r);
        double bytes = 0;
        assert_int_equal(sent(p->forward, p->n_forward, COLL_PEER_COPY, &bytes), 4 * (TP - 1));
        assert_true(bytes == 4 * BF16_BYTES * X * (TP - 1) / TP);
        assert_int_equal(sent(p->forward, p->n_forward, COLL_ALL_GATHER, &bytes), 0);
        assert_int_equal(sent(p->forward, p->n_forward, COLL_REDUCE_SCATTER, &bytes), 0);
        assert_int_equal(sent(p->backward, p->n_backward, COLL_PEER_COPY, &bytes), 2 * (TP - 1));
        assert_int_equal(sent(p->backward, p->n_backward, COLL_REDUCE_SCATTER, &bytes), 2);
        static const char *const in_pieces[] = {
            "self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"};
        for (size_t i = 0; i < sizeof in_pieces / sizeof *in_pieces; i++) {
            assert_int_equal(count_pieces(p->forward, p->n_forward, in_pieces[i]), TP);
        }
        expect_bytes(p->forward, p->n_forward, "mlp.down_proj/reduce_scatter.sum", BF16_BYTES * X,
            BF16_BYTES * X / TP);
        expect_bytes(p->forward, p->n_forward, "mlp.in/all_gather.symm_mem", BF16_BYTES * X / TP,
            BF16_BYTES * X / TP);
        assert_int_equal(count_named(p->forward, p->n_forward, "mlp.up_proj"), 1);
        assert_int_equal(count_pieces(p->backward, p->n_backward, "mlp.down_proj.dgrad"), TP);
        assert_int_equal(count_named(p->backward, p->n_backward, "mlp.down_proj.wgrad"), 1);
        arena_release(&r.arena);
    }
}

static void expect_order(const struct model_op *ops, int n, const char *const *names, int n_names)
{
    const struct model_op *at = kernel_named(ops, n, names[0]);
    for (int i = 0; i < n_names; i++)
        assert_string_equal(at[i].name, names[i]);
}

/* The own rows first where rows are gathered, last where they are scattered. A weight is cast
 * before both copies and products. What selective checkpointing keeps of a reduce-scatter is the
 * sum. */
static void pieces_come_in_order(void **state)
{
    (void)state;
    struct run r = cut(FP8_TENSORWISE, TENSOR_MICRO_PIPELINE);
    const struct model_program *p = program_of(&r);
    static const char *const gathered[] = {"mlp.gate_proj.weight.amax", "mlp.gate_proj.weight.cast",
        "mlp.in/all_gather.symm_mem", "mlp.in/all_gather.0", "mlp.gate_proj.0", "wait",
        "mlp.gate_proj.1"};
    expect_order(p->forward, p->n_forward, gathered, sizeof gathered / sizeof *gathered);
    static const char *const scattered[] = {"mlp.down_proj.0", "mlp.down_proj/reduce_scatter.0",
        "mlp.down_proj.1", "wait", "mlp.down_proj/reduce_scatter.sum"};
    expect_order(p->forward, p->n_forward, scattered, sizeof scattered / sizeof *scattered);
    assert_true(kernel_named(p->forward, p->n_forward, "mlp.down_proj/reduce_scatter.sum")->kept);
    arena_release(&r.arena);
}

/* With scales of rows a cast stands between gather and product, so only scatters are in pieces. */
static void a_cast_keeps_gathers_whole(void **state)
{
    (void)state;
    double bytes = 0;
    struct run r = cut(FP8_ROWWISE, TENSOR_MICRO_PIPELINE);
    const struct model_program *p = program_of(&r);
    assert_int_equal(sent(p->forward, p->n_forward, COLL_PEER_COPY, &bytes), 2 * (TP - 1));
    assert_int_equal(sent(p->forward, p->n_forward, COLL_ALL_GATHER, &bytes), 2);
    arena_release(&r.arena);
    r = cut(FP8_TENSORWISE, TENSOR_MICRO_PIPELINE);
    p = program_of(&r);
    assert_int_equal(sent(p->forward, p->n_forward, COLL_PEER_COPY, &bytes), 4 * (TP - 1));
    assert_true(bytes == (2 * 1 + 2 * BF16_BYTES) * X * (TP - 1) / TP);
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_scaled_by_a_separate_pass),
        cmocka_unit_test(weights_may_come_in_fp8),
        cmocka_unit_test(rows_are_scaled_as_they_are_cast),
        cmocka_unit_test(recipes_do_the_same_work),
        cmocka_unit_test(complex_rotary_positions_stay_apart),
        cmocka_unit_test(gathers_are_in_fp8),
        cmocka_unit_test(pieces_of_products_run_beside_copies),
        cmocka_unit_test(pieces_come_in_order),
        cmocka_unit_test(a_cast_keeps_gathers_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
