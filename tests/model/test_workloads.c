/* What a workload's options add to programs and leave out of them. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "programs.h"

static void without_dropout_there_is_no_dropout_kernel(void **state)
{
    (void)state;
    struct model_shape dry = small_t5;
    dry.dropout = 0;
    struct run r = run(&dry, DTYPE_BF16, ATTENTION_NAIVE);
    for (int i = 0; i < r.segments.n; i++)
        assert_int_equal(count(r.segments.at[i].program->forward,
                             r.segments.at[i].program->n_forward, "dropout"),
            0);
    arena_release(&r.arena);
}

/* NEFTune: zeros, noise, sum after the embedding of every stack; no gradient but the embedding's
 * passes it. */
static void neftune_is_three_kernels_at_the_entry(void **state)
{
    (void)state;
    const struct model_shape *const shapes[] = {&small_llama, &small_gpt, &small_t5};
    for (int s = 0; s < 3; s++) {
        struct run plain = run(shapes[s], DTYPE_BF16, ATTENTION_NAIVE);
        struct model_workload w = workload(shapes[s], DTYPE_BF16, ATTENTION_NAIVE);
        struct model_segments noisy = {0};
        w.neftune = true;
        model_segments(&noisy, &plain.model, &w, &plain.arena);
        for (int i = 0; i < noisy.n; i++) {
            bool entry =
                noisy.at[i].kind == SEGMENT_ENTRY || noisy.at[i].kind == SEGMENT_DECODER_ENTRY;
            const struct model_program *with = noisy.at[i].program,
                                       *without = plain.segments.at[i].program;
            assert_int_equal(with->n_forward - without->n_forward, entry ? 3 : 0);
            assert_int_equal(with->n_backward, without->n_backward);
        }
        arena_release(&plain.arena);
    }
}

/* FP32. Of small_gpt the logits of 1,000 words, or the scores of 4 heads where they are longer;
 * T5's decoder may see more tokens than its encoder; all copies of a token may meet on one rank, 2
 * of 8 experts' 2 x 48 gate and up. Of images the stem's result, 8 channels of 64 x 64. */
static void largest_tensor_is_its_closed_form(void **state)
{
    (void)state;
    struct model_shape routed = small_moe;
    routed.vocab = 10;
    const double float_bytes = 4;
    assert_true(model_largest_tensor_bytes(&small_gpt, 2, 128, 0) == float_bytes * 2 * 128 * 1000);
    assert_true(
        model_largest_tensor_bytes(&small_gpt, 2, 512, 0) == float_bytes * 2 * 512 * (4 * 512));
    assert_true(
        model_largest_tensor_bytes(&small_t5, 2, 128, 512) == float_bytes * 2 * 512 * (4 * 512));
    assert_true(
        model_largest_tensor_bytes(&routed, 2, 128, 0) == float_bytes * 2 * 128 * (2 * 8 * 2 * 48));
    assert_true(
        model_largest_tensor_bytes(&small_resnet, 2, 1, 0) == float_bytes * 2 * 64 * 64 * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_dropout_there_is_no_dropout_kernel),
        cmocka_unit_test(neftune_is_three_kernels_at_the_entry),
        cmocka_unit_test(largest_tensor_is_its_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
