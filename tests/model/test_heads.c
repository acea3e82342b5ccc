/* How attention without a fused kernel brings q, k and v to its batched products, family by family.
 */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../shapes.h"
#include "kernel_named.h"

enum { BATCH = 2, LENGTH = 24, BF16_BYTES = 2 };

struct run {
    struct arena arena;
    struct model model;
    struct model_segments segments;
};

static const struct model_program *block_in(
    struct run *r, const struct model_shape *shape, enum dtype dtype)
{
    *r = (struct run){.arena = ARENA_INIT};
    struct model_workload w = {.micro_batch = BATCH,
        .seq_len = LENGTH,
        .math = dtype,
        .storage = dtype,
        .attention = ATTENTION_NAIVE,
        .loss_fp32 = true};
    model_build(&r->model, shape, &r->arena);
    model_segments(&r->segments, &r->model, &w, &r->arena);
    return r->segments.at[1].program;
}

static const struct model_program *block_of(struct run *r, const struct model_shape *shape)
{
    return block_in(r, shape, DTYPE_BF16);
}

/* Kernels of that name, and what they read and write. */
#define FORWARD_COUNT(p, name) count_named((p)->forward, (p)->n_forward, name)
#define BACKWARD_COUNT(p, name) count_named((p)->backward, (p)->n_backward, name)

static double moved(const struct model_op *kernels, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += kernels[i].work.read_bytes + kernels[i].work.write_bytes;
    return bytes;
}

/* torch.matmul of (batch, heads, length, head dimension) copies what it multiplies; its gradient
 * comes back by a copy. */
static void heads_of_a_batch_first_model_are_copied(void **state)
{
    (void)state;
    struct run r;
    const struct model_program *p = block_of(&r, &small_bert);
    static const char *const copies[] = {"q.copy", "k.copy", "v.copy", "context.copy"};
    for (int i = 0; i < 4; i++) {
        const char *name = arena_printf(&r.arena, "attention.self.%s", copies[i]);
        assert_int_equal(FORWARD_COUNT(p, name), 1);
        assert_int_equal(BACKWARD_COUNT(p, arena_printf(&r.arena, "%s.dgrad", name)), 1);
    }
    arena_release(&r.arena);
}

/* torch.bmm reads (length, batch x heads, head dimension) by its strides: q, k, v are not copied.
 * Their gradients are (batch x heads, length, head dimension) and are, back into rows of the linear
 * layers; the context is, and its gradient is read by strides. So a copy of BATCH x LENGTH x 64
 * elements goes in forward three times and in backward once, 2 bytes read and 2 written an element
 * each. */
static void heads_of_a_sequence_first_bert_are_read_where_they_lie(void **state)
{
    (void)state;
    const double copy = 2.0 * BF16_BYTES * BATCH * LENGTH * 64;
    struct run first, second;
    struct model_shape shape = small_bert;
    shape.sequence_first = true;
    const struct model_program *a = block_of(&first, &small_bert), *b = block_of(&second, &shape);
    assert_int_equal(a->n_forward - b->n_forward, 3);
    assert_int_equal(a->n_backward - b->n_backward, 1);
    assert_true(moved(a->forward, a->n_forward) - moved(b->forward, b->n_forward) == 3 * copy);
    assert_true(moved(a->backward, a->n_backward) - moved(b->backward, b->n_backward) == copy);
    assert_int_equal(FORWARD_COUNT(b, "attention.self.context.copy"), 1);
    assert_int_equal(BACKWARD_COUNT(b, "attention.self.q.copy.dgrad"), 1);
    assert_int_equal(BACKWARD_COUNT(b, "attention.self.context.copy.dgrad"), 0);
    arena_release(&first.arena);
    arena_release(&second.arena);
}

/* Megatron-LM: as above, but q, k and v are parts of one tensor, whose gradient is their
 * concatenation: no other copies in backward, four less. The product scales, and one kernel masks
 * and normalises: scale and mask each read and wrote all scores, in forward and in backward, 4
 * heads x 24 x 24 a sequence. */
static void megatrons_scores_pass_one_kernel(void **state)
{
    (void)state;
    const double copy = 2.0 * BF16_BYTES * BATCH * LENGTH * 64,
                 pass = 2.0 * BF16_BYTES * BATCH * 4 * LENGTH * LENGTH;
    struct run first, second;
    struct model_shape shape = small_gpt;
    shape.sequence_first = shape.fused_softmax = true;
    const struct model_program *a = block_of(&first, &small_gpt), *b = block_of(&second, &shape);
    assert_int_equal(a->n_forward - b->n_forward, 3 + 2);
    assert_int_equal(a->n_backward - b->n_backward, 4 + 2);
    assert_true(
        moved(a->forward, a->n_forward) - moved(b->forward, b->n_forward) == 3 * copy + 2 * pass);
    assert_true(moved(a->backward, a->n_backward) - moved(b->backward, b->n_backward) ==
                4 * copy + 2 * pass);
    assert_int_equal(FORWARD_COUNT(b, "attn.softmax"), 1);
    assert_int_equal(BACKWARD_COUNT(b, "attn.split.dgrad"), 1);
    arena_release(&first.arena);
    arena_release(&second.arena);
}

/* Heads times sequences that are no multiple of 4: PyTorch's kernels, in FP32: cast, scale, mask,
 * softmax and cast where one kernel was, as many in backward. */
static void odd_heads_are_not_megatrons(void **state)
{
    (void)state;
    struct model_shape even = small_gpt, odd = small_gpt;
    even.sequence_first = even.fused_softmax = odd.sequence_first = odd.fused_softmax = true;
    odd.n_heads = odd.n_kv_heads = 3;
    struct run first, second;
    const struct model_program *a = block_of(&first, &even), *b = block_of(&second, &odd);
    assert_int_equal(b->n_forward - a->n_forward, 4);
    assert_int_equal(b->n_backward - a->n_backward, 4);
    assert_int_equal(FORWARD_COUNT(b, "attn.softmax.float"), 1);
    arena_release(&first.arena);
    arena_release(&second.arena);
}

/* softmax(scores, dtype=torch.float32) of Llama: BF16 scores are widened by a kernel, 2 bytes read
 * and 4 written an element, and so is their gradient narrowed; a kernel that takes FP16 and gives
 * FP32 does without both. */
static void softmax_widens_bf16_by_a_cast(void **state)
{
    (void)state;
    const double scores = BATCH * 4.0 * LENGTH * LENGTH;
    struct run first, second;
    const struct model_program *bf16 = block_in(&first, &small_llama, DTYPE_BF16),
                               *fp16 = block_in(&second, &small_llama, DTYPE_FP16);
    assert_int_equal(FORWARD_COUNT(bf16, "self_attn.softmax.float"), 1);
    assert_int_equal(FORWARD_COUNT(fp16, "self_attn.softmax.float"), 0);
    /* The cast moves 6 bytes an element, the softmax after it 4 + 4 instead of 2 + 4. */
    assert_true(moved(bf16->forward, bf16->n_forward) - moved(fp16->forward, fp16->n_forward) ==
                (6 + 2) * scores);
    /* The softmax's gradient reads 4 + 4 and writes 4 instead of 2; the cast moves 6. */
    assert_true(moved(bf16->backward, bf16->n_backward) - moved(fp16->backward, fp16->n_backward) ==
                (6 + 2) * scores);
    arena_release(&first.arena);
    arena_release(&second.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_a_batch_first_model_are_copied),
        cmocka_unit_test(heads_of_a_sequence_first_bert_are_read_where_they_lie),
        cmocka_unit_test(odd_heads_are_not_megatrons),
        cmocka_unit_test(megatrons_scores_pass_one_kernel),
        cmocka_unit_test(softmax_widens_bf16_by_a_cast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
