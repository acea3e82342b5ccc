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

static struct model_workload workload_of(bool fp8, int64_t length, enum kernel_fusion fusion)
{
    return (struct model_workload){.micro_batch = BATCH,
        .seq_len = length,
        .math = DTYPE_BF16,
        .storage = DTYPE_BF16,
        .attention = ATTENTION_FLASH,
        .fp8 = fp8,
        .fusion = (int)fusion,
        .loss_fp32 = true};
}

static struct run run_of(struct model_workload w, struct model_parallel parallel)
{
    struct model whole;
    struct run r = {.arena = ARENA_INIT};
    w.parallel = parallel;
    model_build(&whole, &small_bert, &r.arena);
    model_shard(&r.model, &whole, &parallel, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static struct run run_with(
    bool fp8, int64_t length, enum kernel_fusion fusion, struct model_parallel parallel)
{
    return run_of(workload_of(fp8, length, fusion), parallel);
}

static struct run run(bool fp8, int64_t length)
{
    return run_with(fp8, length, FUSION_EAGER, (struct model_parallel){0});
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
    const struct model_op *cast =
        kernel_named(p->forward, p->n_forward, "intermediate.dense.x.cast");
    assert_true(cast->work.read_bytes == BF16_BYTES * x && cast->work.write_bytes == 2 * x);
    cast = kernel_named(p->forward, p->n_forward, "intermediate.dense.weight.cast");
    assert_true(
        cast->work.read_bytes == BF16_BYTES * weight && cast->work.write_bytes == 2 * weight);
    const struct model_op *product = kernel_named(p->forward, p->n_forward, "intermediate.dense");
    assert_int_equal(product->work.math, DTYPE_FP8);
    assert_true(product->work.read_bytes == x + weight);
    assert_true(product->work.write_bytes == BF16_BYTES * y);
    cast = kernel_named(p->backward, p->n_backward, "intermediate.dense.grad.cast");
    assert_true(cast->work.read_bytes == BF16_BYTES * y && cast->work.write_bytes == 2 * y);
    assert_int_equal(
        kernel_named(p->backward, p->n_backward, "intermediate.dense.dgrad")->work.math, DTYPE_FP8);
    assert_int_equal(
        kernel_named(p->backward, p->n_backward, "intermediate.dense.wgrad")->work.math, DTYPE_FP8);
    /* Backward keeps the transposes, a byte an element; GELU's result, which only the next layer
     * multiplied, goes. */
    assert_int_equal(saved_bytes(p, "intermediate.dense.x.cast.transpose"), (int64_t)x);
    assert_int_equal(saved_bytes(p, "intermediate.dense.x.cast"), 0);
    assert_int_equal(saved_bytes(p, "intermediate.gelu"), 0);
    arena_release(&r.arena);
}

static double read_by(const struct model_op *ops, int n, const char *name)
{
    return kernel_named(ops, n, name)->work.read_bytes;
}

static double written_by(const struct model_op *ops, int n, const char *name)
{
    return kernel_named(ops, n, name)->work.write_bytes;
}

/* MXFP8: of each 32 values a byte more; the same kernels, whose products read bytes. */
static void blocks_of_32_have_scales(void **state)
{
    (void)state;
    struct model_workload w = workload_of(true, 24, FUSION_TRANSFORMER_ENGINE);
    w.fp8_recipe = FP8_MXFP8;
    struct run r = run_of(w, (struct model_parallel){0});
    const struct model_program *p = r.segments.at[1].program;
    const double x = BATCH * 24 * WIDTH;
    assert_true(read_by(p->forward, p->n_forward, "intermediate.dense.x.cast") == BF16_BYTES * x);
    assert_true(
        written_by(p->forward, p->n_forward, "intermediate.dense.x.cast") == 2 * x * 33 / 32);
    assert_int_equal(saved_bytes(p, "intermediate.dense.x.cast.transpose"), (int64_t)(x * 33 / 32));
    assert_int_equal(
        kernel_named(p->forward, p->n_forward, "intermediate.dense")->work.math, DTYPE_FP8);
    arena_release(&r.arena);
}

/* NVFP4: half a byte and a byte for each 16. Each operand that varies is read three times, for its
 * largest value, along its rows and along its columns, and the three products are in FP4. */
static void operands_in_four_bits(void **state)
{
    (void)state;
    struct model_workload w = workload_of(true, 24, FUSION_TRANSFORMER_ENGINE);
    w.fp4 = true;
    struct run r = run_of(w, (struct model_parallel){0});
    const struct model_program *p = r.segments.at[1].program;
    const double rows = BATCH * 24, x = rows * WIDTH, y = rows * 256, weight = WIDTH * 256,
                 narrow = 9.0 / 16;
    static const char *const passes[] = {".amax", "", ".transpose"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "intermediate.dense.x.cast%s", passes[i]);
        assert_true(read_by(p->forward, p->n_forward, name) == BF16_BYTES * x);
        assert_true(written_by(p->forward, p->n_forward, name) == (i > 0 ? narrow * x : 4));
        snprintf(name, sizeof name, "intermediate.dense.grad.cast%s", passes[i]);
        assert_true(read_by(p->backward, p->n_backward, name) == BF16_BYTES * y);
        assert_true(written_by(p->backward, p->n_backward, name) == (i > 0 ? narrow * y : 4));
    }
    /* Magnitude, the larger one, and a product with a Hadamard matrix of 16 x 16. */
    assert_true(
        kernel_named(p->forward, p->n_forward, "intermediate.dense.x.cast.amax")->work.flop ==
        (2 + 32) * x);
    assert_true(read_by(p->forward, p->n_forward, "intermediate.dense") == narrow * (x + weight));
    assert_int_equal(
        kernel_named(p->forward, p->n_forward, "intermediate.dense")->work.math, DTYPE_FP4);
    assert_int_equal(
        kernel_named(p->backward, p->n_backward, "intermediate.dense.dgrad")->work.math, DTYPE_FP4);
    assert_int_equal(
        kernel_named(p->backward, p->n_backward, "intermediate.dense.wgrad")->work.math, DTYPE_FP4);
    assert_int_equal(saved_bytes(p, "intermediate.dense.x.cast.transpose"), (int64_t)(narrow * x));
    arena_release(&r.arena);
}

/* Attention, norms and the heads are BF16's; flop are the same, and every parameter still gets its
 * gradient once. */
static void the_rest_is_as_before(void **state)
{
    (void)state;
    struct run plain = run(false, 24), fp8 = run(true, 24);
    assert_true(model_forward_flop(&plain.segments) == model_forward_flop(&fp8.segments));
    for (int i = 0; i < fp8.segments.n; i++) {
        const struct model_program *a = plain.segments.at[i].program,
                                   *b = fp8.segments.at[i].program;
        int completed[2] = {0, 0};
        for (int k = 0; k < a->n_backward; k++)
            completed[0] += a->backward[k].param_grad >= 0;
        for (int k = 0; k < b->n_backward; k++)
            completed[1] += b->backward[k].param_grad >= 0;
        assert_int_equal(completed[0], completed[1]);
        if (fp8.segments.at[i].kind == SEGMENT_BLOCK)
            assert_true(b->n_forward ==
                        a->n_forward + 2 * 6); /* q, k, v, output, two of the feed-forward */
        else
            assert_int_equal(b->n_forward, a->n_forward);
    }
    assert_int_equal(kernel_named(fp8.segments.at[1].program->forward,
                         fp8.segments.at[1].program->n_forward, "attention.self.flash")
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
    assert_int_equal(
        fp8.segments.at[1].program->n_forward, plain.segments.at[1].program->n_forward);
    arena_release(&plain.arena);
    arena_release(&fp8.arena);
    /* nor are the 36 rows of each of two ranks: they travel in BF16 */
    struct model_parallel parallel = {
        .tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC};
    struct run shared = run_with(true, 36, FUSION_TRANSFORMER_ENGINE, parallel);
    const struct model_program *p = shared.segments.at[1].program;
    assert_int_equal(count_named(p->forward, p->n_forward, "intermediate.in.cast"), 0);
    assert_true(kernel_named(p->forward, p->n_forward, "intermediate.in/all_gather")->comm.bytes ==
                BF16_BYTES * BATCH * 36 * WIDTH);
    arena_release(&shared.arena);
}

static const struct model_op *at_named(
    const struct model_program *p, const char *name, const char *next)
{
    const struct model_op *op = kernel_named(p->backward, p->n_backward, name);
    assert_string_equal(op[1].name, next);
    return op;
}

/* Megatron-Core on two ranks: rows are cast by who has them, gathered at a byte an element, and
 * transposed where they arrive; weights are in FP8 already. */
static void gathers_are_in_fp8(void **state)
{
    (void)state;
    struct model_parallel parallel = {
        .tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC};
    struct run r = run_with(true, 32, FUSION_TRANSFORMER_ENGINE, parallel);
    const struct model_program *p = r.segments.at[1].program;
    const double x = BATCH * 32 * WIDTH, y = BATCH * 32 * 128;
    const struct model_op *cast = kernel_named(p->forward, p->n_forward, "intermediate.in.cast");
    assert_true(cast->work.read_bytes == BF16_BYTES * x / 2 && cast->work.write_bytes == x / 2);
    assert_string_equal(cast[1].name, "intermediate.in/all_gather");
    assert_true(cast[1].comm.bytes == x && cast[2].kind == MODEL_WAIT);
    assert_string_equal(cast[3].name, "intermediate.dense");
    assert_true(cast[3].work.math == DTYPE_FP8 && cast[3].work.read_bytes == x + WIDTH * 128);
    const struct model_op *again =
        at_named(p, "intermediate.in.again/all_gather", "intermediate.dense.dgrad");
    assert_true(again->comm.bytes == x);
    const struct model_op *transpose =
        kernel_named(p->backward, p->n_backward, "intermediate.dense.x.transpose");
    assert_true(transpose->work.read_bytes == x && transpose->work.write_bytes == x);
    assert_string_equal(transpose[1].name, "intermediate.dense.wgrad");
    /* The second layer's gradient: its rows are cast, gathered, and need no cast behind. */
    const struct model_op *grad =
        kernel_named(p->backward, p->n_backward, "output.dense.grad/all_gather");
    assert_true(grad->comm.bytes == x && grad[-1].work.write_bytes == x / 2);
    assert_string_equal(grad[2].name, "output.dense.dgrad");
    assert_true(grad[2].work.write_bytes == BF16_BYTES * y);
    for (int k = 0; k < p->n_forward; k++)
        assert_null(strstr(p->forward[k].name, "weight.cast"));
    /* The gradient of what entered is in the storage format. */
    assert_true(kernel_named(p->backward, p->n_backward, "intermediate.in.dgrad/reduce_scatter")
                    ->comm.bytes == BF16_BYTES * x);
    arena_release(&r.arena);
}

/* Which weights the strategy keeps so: matrices of blocks. */
static void weights_of_blocks_are_kept_in_fp8(void **state)
{
    (void)state;
    struct run r = run_with(true, 32, FUSION_TRANSFORMER_ENGINE, (struct model_parallel){0});
    const struct model_workload w = {.fp8 = true, .fusion = FUSION_TRANSFORMER_ENGINE},
                                plain = {.fusion = FUSION_TRANSFORMER_ENGINE};
    for (int t = 0; t < r.model.n_tensors; t++) {
        const struct model_tensor *tensor = &r.model.tensors[t];
        bool of_block = tensor->layer > 0 && tensor->cols > 1;
        assert_int_equal(model_keeps_fp8(&r.model, &w, tensor), of_block);
        assert_false(model_keeps_fp8(&r.model, &plain, tensor));
    }
    arena_release(&r.arena);
}

/* With adapters on every matrix, 2 x 32 rows of llama's block: what is frozen multiplies in FP8,
 * forward and for the gradient of its input; its input is cast alone, without a transpose; adapters
 * multiply in BF16. */
static void frozen_matrices_multiply_in_fp8(void **state)
{
    (void)state;
    enum { RANK = 16, LENGTH = 32 };
    for (int recipe = FP8_DELAYED; recipe <= FP8_ROWWISE; recipe++) {
        struct run r = {.arena = ARENA_INIT};
        struct model whole;
        struct model_workload w = {.micro_batch = BATCH,
            .seq_len = LENGTH,
            .math = DTYPE_BF16,
            .storage = DTYPE_BF16,
            .attention = ATTENTION_FLASH,
            .fp8 = true,
            .fp8_recipe = recipe,
            .loss_fp32 = true};
        model_build(&whole, &small_llama, &r.arena);
        model_adapt(&r.model, &whole, RANK, NULL, &r.arena);
        model_segments(&r.segments, &r.model, &w, &r.arena);
        const struct model_program *p =
            r.segments.at[2].program; /* the second block: its input has a gradient */
        const struct model_op *up = kernel_named(p->forward, p->n_forward, "mlp.up_proj");
        assert_int_equal(up->work.math, DTYPE_FP8);
        assert_int_equal(
            kernel_named(p->backward, p->n_backward, "mlp.up_proj.dgrad")->work.math, DTYPE_FP8);
        assert_int_equal(count_named(p->backward, p->n_backward, "mlp.up_proj.wgrad"), 0);
        assert_int_equal(
            kernel_named(p->forward, p->n_forward, "mlp.up_proj.lora_A")->work.math, DTYPE_BF16);
        assert_int_equal(
            kernel_named(p->backward, p->n_backward, "mlp.up_proj.lora_B.wgrad")->work.math,
            DTYPE_BF16);
        const double x = BATCH * LENGTH * 64;
        const struct model_op *cast = kernel_named(p->forward, p->n_forward, "mlp.up_proj.x.cast");
        assert_true(cast->work.read_bytes == BF16_BYTES * x && cast->work.write_bytes == x);
        for (int t = 0; t < r.model.n_tensors; t++) {
            const struct model_workload kept = {.fp8 = true, .fusion = FUSION_TRANSFORMER_ENGINE};
            bool of_block = model_is_block_matrix(&r.model, &r.model.tensors[t]);
            assert_int_equal(model_keeps_fp8(&r.model, &kept, &r.model.tensors[t]),
                of_block && r.model.tensors[t].frozen);
        }
        arena_release(&r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_cast_with_their_transposes),
        cmocka_unit_test(blocks_of_32_have_scales),
        cmocka_unit_test(operands_in_four_bits),
        cmocka_unit_test(the_rest_is_as_before),
        cmocka_unit_test(sides_that_fp8_cannot_take_stay),
        cmocka_unit_test(gathers_are_in_fp8),
        cmocka_unit_test(weights_of_blocks_are_kept_in_fp8),
        cmocka_unit_test(frozen_matrices_multiply_in_fp8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
