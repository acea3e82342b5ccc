/* BERT: the layout of its blocks, flop in closed form, and what sets it apart from decoders. The
 * laws that hold for every family are in test_programs.c. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../shapes.h"
#include "kernel_named.h"

enum { BATCH = 2, LENGTH = 24 };

struct run {
    struct arena arena;
    struct model model;
    struct model_segments segments;
};

/* head_share: of the positions. The last segment is the head, the one before it a block. */
static struct run run(double head_share, enum attention_kernel attention)
{
    struct run r = {.arena = ARENA_INIT};
    struct model_shape shape = small_bert;
    shape.head_share = head_share;
    struct model_workload w = {.micro_batch = BATCH,
        .seq_len = LENGTH,
        .math = DTYPE_BF16,
        .storage = DTYPE_BF16,
        .attention = (int)attention,
        .loss_fp32 = true};
    model_build(&r.model, &shape, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    return r;
}

static const struct model_program *from_the_end(const struct run *r, int back)
{
    return r->segments.at[r->segments.n - 1 - back].program;
}

/* Names as in BertForPreTraining().state_dict(), in the order of a block's parameters. */
static void bert_blocks_are_laid_out_as_in_pytorch(void **state)
{
    (void)state;
    const char *const block[] = {"attention.self.query.weight", "attention.self.query.bias",
        "attention.self.key.weight", "attention.self.key.bias", "attention.self.value.weight",
        "attention.self.value.bias", "attention.output.dense.weight", "attention.output.dense.bias",
        "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
        "intermediate.dense.weight", "intermediate.dense.bias", "output.dense.weight",
        "output.dense.bias", "output.LayerNorm.weight", "output.LayerNorm.bias"};
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    struct model model;
    assert_int_equal(model_load(&shape, FLOPCAST_SOURCE_DIR "/scenarios/models/bert-large.yaml",
                         false, &arena, &diag),
        STATUS_OK);
    model_build(&model, &shape, &arena);
    assert_int_equal(model.n_layers, 1 + 24);
    const struct model_layer *layer = &model.layers[24];
    assert_int_equal(layer->n_tensors, sizeof block / sizeof *block);
    for (int i = 0; i < layer->n_tensors; i++)
        assert_string_equal(model.tensors[layer->first_tensor + i].name,
            arena_printf(&arena, "bert.encoder.layer.23.%s", block[i]));
    assert_int_equal(layer->alike, 1);
    assert_int_equal(layer->params, 12596224); /* 12 d^2 + 13 d, d = 1024 */
    arena_release(&arena);
}

static void forward_flop_is_the_closed_form(void **state)
{
    (void)state;
    const double b = BATCH, s = LENGTH, d = 64, v = 1000;
    /* BERT: blocks as GPT's; pooler and sentence head on a token a sequence, 2 d^2 + 2 * 2 d;
     * transform and word head on the share of the positions. */
    for (int masked = 0; masked < 2; masked++)
        for (int attention = ATTENTION_NAIVE; attention <= ATTENTION_FLASH; attention++) {
            double share = masked ? 0.25 : 1;
            struct run m = run(share, (enum attention_kernel)attention);
            double blocks = 3 * (24 * b * s * d * d + 4 * b * s * s * d);
            double heads = b * (2 * d * d + 4 * d) + share * b * s * (2 * d * d + 2 * d * v);
            assert_true(model_block_forward_flop(&m.segments) == blocks);
            assert_true(model_forward_flop(&m.segments) == blocks + heads);
            arena_release(&m.arena);
        }
}

/* An encoder sees both sides: its flash kernel computes all pairs of positions, 2 * 2 s^2 d a
 * sequence, and the backward one five products for two. */
static void berts_flash_attention_is_not_causal(void **state)
{
    (void)state;
    struct run r = run(1, ATTENTION_FLASH);
    const struct model_program *p = from_the_end(&r, 1);
    const double pairs = 4.0 * BATCH * LENGTH * LENGTH * 64;
    assert_true(kernel_named(p->forward, p->n_forward, "attention.self.flash")->work.flop == pairs);
    assert_true(kernel_named(p->backward, p->n_backward, "attention.self.flash.dgrad")->work.flop ==
                2.5 * pairs);
    arena_release(&r.arena);
}

/* The masked rows, and the first of each sequence, come from the last block's output: their
 * gradients are added there, and the head neither reads nor writes more rows than it was asked for.
 */
static void berts_heads_see_the_rows_that_they_predict(void **state)
{
    (void)state;
    struct run r = run(0.25, ATTENTION_NAIVE); /* 0.25 * 2 * 24 = 12 rows of 64, BF16 */
    const struct model_program *p = from_the_end(&r, 0);
    const double masked = 12 * 64 * 2, first = BATCH * 64 * 2, all = BATCH * LENGTH * 64 * 2;
    assert_true(kernel_named(p->forward, p->n_forward, "cls.predictions.masked")->work.read_bytes ==
                masked);
    assert_true(
        kernel_named(p->forward, p->n_forward, "bert.pooler.first")->work.write_bytes == first);
    assert_true(
        kernel_named(p->backward, p->n_backward, "cls.predictions.masked.dgrad")->work.read_bytes ==
        masked);
    assert_true(
        kernel_named(p->backward, p->n_backward, "cls.predictions.masked.zero")->work.write_bytes ==
        all);
    arena_release(&r.arena);
}

/* What each class of transformers multiplies beyond the blocks, b = 2 sequences of s = 24, d = 64,
 * v = 1000, 3 classes: the words' head b s (2 d^2 + 2 d v), the pooler b 2 d^2, a classifier b 2 d
 * 3. A class without a part of the head has none of its tensors. */
static void a_head_multiplies_what_its_class_does(void **state)
{
    (void)state;
    const double b = BATCH, s = LENGTH, d = 64, v = 1000;
    const double words = b * s * (2 * d * d + 2 * d * v), pooler = b * 2 * d * d;
    const double flop[BERT_HEAD_COUNT] = {
        words + pooler + b * 2 * d * 2, words, pooler + b * 2 * d * 3, pooler};
    for (int head = 0; head < BERT_HEAD_COUNT; head++) {
        struct arena arena = ARENA_INIT;
        struct model_shape shape = small_bert;
        struct model model;
        struct model_segments segments;
        struct model_workload w = {
            .micro_batch = BATCH, .seq_len = LENGTH, .math = DTYPE_BF16, .storage = DTYPE_BF16};
        shape.head = head;
        shape.classes = head == BERT_CLASSIFICATION ? 3 : 0;
        model_build(&model, &shape, &arena);
        model_segments(&segments, &model, &w, &arena);
        assert_true(
            model_forward_flop(&segments) - model_block_forward_flop(&segments) == flop[head]);
        bool has_pooler = false, has_words = false;
        for (int i = 0; i < model.layers[0].n_tensors; i++) {
            has_pooler |= strcmp(model.tensors[i].name, "bert.pooler.dense.weight") == 0;
            has_words |=
                strcmp(model.tensors[i].name, "cls.predictions.transform.dense.weight") == 0;
        }
        const struct model_program *last = segments.at[segments.n - 1].program;
        int drops = 0;
        for (int i = 0; i < last->n_forward; i++)
            drops += strcmp(last->forward[i].name, "dropout") == 0;
        assert_int_equal(drops, head == BERT_CLASSIFICATION); /* before the classifier */
        assert_int_equal(has_pooler, head != BERT_MASKED_LM);
        assert_int_equal(has_words, head == BERT_PRETRAINING || head == BERT_MASKED_LM);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bert_blocks_are_laid_out_as_in_pytorch),
        cmocka_unit_test(forward_flop_is_the_closed_form),
        cmocka_unit_test(berts_flash_attention_is_not_causal),
        cmocka_unit_test(berts_heads_see_the_rows_that_they_predict),
        cmocka_unit_test(a_head_multiplies_what_its_class_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
