/* Fused attention: what the causal mask and a sliding window leave of it. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel_named.h"
#include "programs.h"

/* The causal flash kernel does half of 4 b s^2 h d_kv, its backward 2.5 times that. */
static void flash_does_half_of_what_is_counted(void **state)
{
    (void)state;
    struct run r = run(&small_gpt, DTYPE_BF16, ATTENTION_FLASH);
    const struct model_program *p = block(&r, 1);
    double counted = 4.0 * BATCH * LENGTH * LENGTH * 64;
    int seen = 0;
    for (int i = 0; i < p->n_forward; i++)
        if (p->forward[i].work.kind == KERNEL_ATTENTION && ++seen)
            assert_true(
                p->forward[i].model_flop == counted && p->forward[i].work.flop == counted / 2);
    for (int i = 0; i < p->n_backward; i++)
        if (p->backward[i].work.kind == KERNEL_ATTENTION && ++seen)
            assert_true(p->backward[i].model_flop == 2 * counted &&
                        p->backward[i].work.flop == 2.5 * counted / 2);
    assert_int_equal(seen, 2);
    arena_release(&r.arena);
}

static double masked(const struct model_op *ops, int n)
{
    double flop = 0;
    for (int i = 0; i < n; i++)
        flop += ops[i].masked_flop;
    return flop;
}

/* The causal mask hides half of the model's 4 b s^2 h d_kv, whatever the kernel; backward twice
 * that. BERT has no such mask; of T5 the decoder's attention to itself has it, not that to the
 * encoder. */
static void the_causal_mask_hides_half_of_the_pairs(void **state)
{
    (void)state;
    double half = 4.0 * BATCH * LENGTH * LENGTH * 64 / 2;
    const struct model_shape *const shapes[] = {&small_gpt, &small_llama, &small_bert};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int attention = ATTENTION_NAIVE; attention <= ATTENTION_FLASH; attention++) {
            struct run r = run(shapes[s], DTYPE_BF16, (enum attention_kernel)attention);
            const struct model_program *p = block(&r, 1);
            double expected = shapes[s] == &small_bert ? 0 : half;
            assert_true(masked(p->forward, p->n_forward) == expected);
            assert_true(masked(p->backward, p->n_backward) == 2 * expected);
            assert_true(
                model_step_masked_flop(&r.segments) == 3 * expected * (r.model.n_layers - 1));
            arena_release(&r.arena);
        }
    struct run t5 = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    for (int i = 0; i < t5.segments.n; i++) {
        const struct model_segment *segment = &t5.segments.at[i];
        bool decoder = t5.model.layers[segment->layer].role == LAYER_DECODER_BLOCK &&
                       segment->kind == SEGMENT_BLOCK;
        double own = (double)(small_t5.n_heads * small_t5.d_kv),
               pairs = (double)DECODER_LENGTH * DECODER_LENGTH;
        assert_true(masked(segment->program->forward, segment->program->n_forward) ==
                    (decoder ? 4.0 * BATCH * pairs * own / 2 : 0));
    }
    arena_release(&t5.arena);
}

/* A window of 7 keys: positions 1 to 6 see what is before them, which is counted as the causal half
 * of 7 x 7, the others 7: s w - w^2 / 2 pairs. The usual formulae count twice that, as they count
 * s^2 without a window. Bytes stay: all keys are read. */
static void a_window_narrows_flash_attention(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.sliding_window = 7;
    shape.max_window_layers = 1;
    struct run r = run(&shape, DTYPE_BF16, ATTENTION_FLASH);
    assert_int_equal(r.model.layers[1].alike, 1);
    assert_int_equal(r.model.layers[2].alike, 2); /* the tensors of block 0, another kernel */
    assert_int_equal(r.model.layers[3].alike, 2);
    double whole = 4.0 * BATCH * LENGTH * LENGTH * 64 / 2,
           narrow = 4.0 * BATCH * (LENGTH * 7.0 - 24.5) * 64;
    const struct kernel_work *first =
        &kernel_named(block(&r, 1)->forward, block(&r, 1)->n_forward, "self_attn.flash")->work;
    const struct model_op *second =
        kernel_named(block(&r, 2)->forward, block(&r, 2)->n_forward, "self_attn.flash");
    const struct model_op *back =
        kernel_named(block(&r, 2)->backward, block(&r, 2)->n_backward, "self_attn.flash.dgrad");
    assert_true(first->flop == whole && first->window == 0);
    assert_true(second->work.flop == narrow && second->model_flop == 2 * narrow &&
                second->work.window == 7);
    assert_true(back->work.flop == 2.5 * narrow && back->model_flop == 4 * narrow &&
                back->work.window == 7);
    assert_true(second->work.read_bytes == first->read_bytes &&
                second->work.write_bytes == first->write_bytes);
    arena_release(&r.arena);
    /* A window of the whole length or more is none; naive attention multiplies all and masks. */
    for (int64_t window = LENGTH; window <= LENGTH + 1; window++) {
        shape.sliding_window = window;
        r = run(&shape, DTYPE_BF16, ATTENTION_FLASH);
        struct kernel_work work =
            kernel_named(block(&r, 2)->forward, block(&r, 2)->n_forward, "self_attn.flash")->work;
        assert_true(work.flop == whole && work.window == 0);
        arena_release(&r.arena);
    }
    shape.sliding_window = 7;
    r = run(&shape, DTYPE_BF16, ATTENTION_NAIVE);
    struct run all = run(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    assert_true(model_step_flop(&r.segments) == model_step_flop(&all.segments));
    arena_release(&all.arena);
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flash_does_half_of_what_is_counted),
        cmocka_unit_test(the_causal_mask_hides_half_of_the_pairs),
        cmocka_unit_test(a_window_narrows_flash_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
