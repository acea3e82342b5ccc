/* FP8: what TransformerEngine's Linear casts, multiplies and keeps. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../shapes.h"
#include "kernel_named.h"

enum { BATCH = 2, BF16_BYTES = 2, WIDTH = 64 };

struct run {
    struct arena arena;
    struct model model;
    struct model_segments segments;
};

static struct run run(bool fp8, int64_t length)
{
    struct run r = {.arena = ARENA_INIT};
    struct model_workload w = {.micro_batch = BATCH,
        .seq_len = length,
        .math = DTYPE_BF16,
        .storage = DTYPE_BF16,
        .attention = ATTENTION_FLASH,
        .fp8 = fp8,
        .loss_fp32 = true};
    model_build(&r.model, &small_bert, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static int64_t saved_bytes(const struct model_program *p, const char *name)
{
    for (int i = 0; i < p->n_activations; i++)
        if (strcmp(p->activations[i].name, name) == 0)
            return p->activations[i].backward_last >= 0 ? p->activations[i].bytes : 0;
    return 0;
}

/* BERT's first feed-forward layer: 48 rows of 64 to 256. */
static void operands_are_cast_with_their_transposes(void **state)
{
    (void)state;
    struct run r = run(true, 24);
    const struct model_program *p = r.segments.at[1].program;
    const double rows = BATCH * 24, x = rows * WIDTH, y = rows * 256, weight = WIDTH * 256;
    const struct model_op *cast = kernel_named(p->forward, p->n_forward, "intermediate.dense.x.cast");
    assert_true(cast->work.read_bytes == BF16_BYTES * x && cast->work.write_bytes == 2 * x);
    cast = kernel_named(p->forward, p->n_forward, "intermediate.dense.weight.cast");
    assert_true(cast->work.read_bytes == BF16_BYTES * weight && cast->work.write_bytes == 2 * weight);
    const struct model_op *product = kernel_named(p->forward, p->n_forward, "intermediate.dense");
    assert_int_equal(product->work.math, DTYPE_FP8);
    assert_true(product->work.read_bytes == x + weight);
    assert_true(product->work.write_bytes == BF16_BYTES * y);
    cast = kernel_named(p->backward, p->n_backward, "intermediate.dense.grad.cast");
    assert_true(cast->work.read_bytes == BF16_BYTES * y && cast->work.write_bytes == 2 * y);
    assert_int_equal(kernel_named(p->backward, p->n_backward, "intermediate.dense.dgrad")->work.math, DTYPE_FP8);
    assert_int_equal(kernel_named(p->backward, p->n_backward, "intermediate.dense.wgrad")->work.math, DTYPE_FP8);
    /* Backward keeps the transposes, a byte an element; GELU's result, which only the next layer multiplied, goes. */
    assert_int_equal(saved_bytes(p, "intermediate.dense.x.cast.transpose"), (int64_t)x);
    assert_int_equal(saved_bytes(p, "intermediate.dense.x.cast"), 0);
    assert_int_equal(saved_bytes(p, "intermediate.gelu"), 0);
    arena_release(&r.arena);
}

/* Attention, norms and the heads are BF16's; flop are the same, and every parameter still gets its gradient once. */
static void the_rest_is_as_before(void **state)
{
    (void)state;
    struct run plain = run(false, 24), fp8 = run(true, 24);
    assert_true(model_forward_flop(&plain.segments) == model_forward_flop(&fp8.segments));
    for (int i = 0; i < fp8.segments.n; i++) {
        const struct model_program *a = plain.segments.at[i].program, *b = fp8.segments.at[i].program;
        int completed[2] = {0, 0};
        for (int k = 0; k < a->n_backward; k++)
            completed[0] += a->backward[k].param_grad >= 0;
        for (int k = 0; k < b->n_backward; k++)
            completed[1] += b->backward[k].param_grad >= 0;
        assert_int_equal(completed[0], completed[1]);
        if (fp8.segments.at[i].kind == SEGMENT_BLOCK)
            assert_true(b->n_forward == a->n_forward + 2 * 6); /* q, k, v, output, two of the feed-forward */
        else
            assert_int_equal(b->n_forward, a->n_forward);
    }
    assert_int_equal(
        kernel_named(fp8.segments.at[1].program->forward, fp8.segments.at[1].program->n_forward, "attention.self.flash")
            ->work.math,
        DTYPE_BF16);
    arena_release(&plain.arena);
    arena_release(&fp8.arena);
}

/* 2 x 20 rows are no multiple of 16: the product stays in BF16. */
static void sides_that_fp8_cannot_take_stay(void **state)
{
    (void)state;
    struct run plain = run(false, 20), fp8 = run(true, 20);
    assert_int_equal(fp8.segments.at[1].program->n_forward, plain.segments.at[1].program->n_forward);
    arena_release(&plain.arena);
    arena_release(&fp8.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_cast_with_their_transposes),
        cmocka_unit_test(the_rest_is_as_before),
        cmocka_unit_test(sides_that_fp8_cannot_take_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
