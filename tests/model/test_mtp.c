/* Multi-token prediction: parameters, FLOP and messages in closed form, on whole models and on
 * stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "exchanges.h"
#include "kernel_named.h"

enum { TOKENS = BATCH * LENGTH, WIDTH = 64, VOCAB = 1000, LAYERS = 2, BLOCKS = 3 };

static struct model_shape predicting(const struct model_shape *shape, bool tied)
{
    struct model_shape out = *shape;
    out.mtp_layers = LAYERS;
    out.tied_embeddings = tied;
    return out;
}

/* Each layer has a block of the last one's kind, 2 h^2 and three norms. Its forward pass has the
 * block's FLOP, 4 h^2 and 2 V h a token: with the backward pass 6 (V h + 2 h^2), as Megatron-LM's
 * training.py reports. */
static void a_layer_has_its_closed_form(void **state)
{
    (void)state;
    const struct model_shape *const shapes[] = {&small_llama, &small_moe, &small_deepseek};
    const int64_t own = 2 * WIDTH * WIDTH + 3 * WIDTH;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int tied = 0; tied < 2; tied++) {
            struct model_shape plain = *shapes[s], shape = predicting(shapes[s], tied);
            plain.tied_embeddings = tied;
            struct run without = run_as(&plain, FORMAT_BF16, ATTENTION_FLASH, FUSION_EAGER);
            struct run with = run_as(&shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_EAGER);
            const struct model_moe *moe = &plain.moe;
            int64_t block = without.model.layers[BLOCKS].params,
                    added = with.model.params - without.model.params;
            int64_t unmet = 3 * (moe->experts - moe->per_token) * WIDTH * moe->d_ff;
            assert_int_equal(added, LAYERS * (block + own));
            assert_int_equal(model_active_params(&shape, with.model.params) -
                                 model_active_params(&plain, without.model.params),
                added - LAYERS * unmet);
            const struct model_segments last = {&without.segments.at[BLOCKS], 1};
            double flop =
                LAYERS * (model_forward_flop(&last) + 2.0 * TOKENS * (VOCAB + 2 * WIDTH) * WIDTH);
            assert_near(model_forward_flop(&with.segments) - model_forward_flop(&without.segments),
                flop, 0);
            assert_near(
                model_step_flop(&with.segments) - model_step_flop(&without.segments), 3 * flop, 0);
            assert_int_equal(with.segments.n, without.segments.n + 2 * LAYERS);
            arena_release(&without.arena);
            arena_release(&with.arena);
        }
}

/* Windows, mixers and experts that come in turns: a fourth block would differ, this is as the
 * third. */
static void a_layer_is_as_the_last_block(void **state)
{
    (void)state;
    struct model_shape shape = predicting(&small_moe, false);
    shape.mixer = (struct model_mixer){
        MIXER_DELTANET, 4, 6, 2, 8, 4, 0, 2, 0, false}; /* every second attends */
    shape.moe.every = 2, shape.moe.dense_layers = 0;
    for (int layer = BLOCKS; layer <= BLOCKS + LAYERS; layer++) {
        assert_true(model_mixes(&shape, layer));
        assert_int_equal(model_local_experts(&shape, layer - 1), 0);
    }
    shape.mixer = (struct model_mixer){0};
    shape.sliding_window = 7, shape.full_attention_every = 2;
    for (int layer = BLOCKS; layer <= BLOCKS + LAYERS; layer++)
        assert_int_equal(model_window(&shape, layer), 7);
    struct run r = run_as(&shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_EAGER);
    assert_ptr_equal(block(&r, BLOCKS + 1), block(&r, BLOCKS + LAYERS));
    assert_string_equal(r.model.layers[BLOCKS + 1].name, "model.layers.3");
    arena_release(&r.arena);
}

/* t ranks have each h / t columns of eh_proj. With A the residual stream of a micro-batch: what it
 * takes, 2 A, is gathered, its columns, A, are gathered, and each rank goes on with its rows;
 * backward A of those is gathered, and 2 A scattered. Without sequence 2 A is all-reduced backward,
 * and A gathered forward. */
static void columns_are_gathered(void **state)
{
    (void)state;
    const struct model_shape shape = predicting(&small_llama, false);
    const double a = 2.0 * TOKENS * WIDTH;
    for (int64_t ranks = 2; ranks <= 4; ranks *= 2)
        for (int sequence = 0; sequence < 2; sequence++) {
            struct run r =
                shard(&shape, (struct model_parallel){.tensor = ranks, .sequence = sequence});
            const struct model_program *p = block(&r, BLOCKS + 1), *plain = block(&r, BLOCKS);
            const enum coll_kind into = sequence ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE;
            const struct model_tensor *matrix =
                &r.model.tensors[r.model.layers[BLOCKS + 1].first_tensor];
            assert_int_equal(matrix->rows, WIDTH / ranks);
            assert_int_equal(matrix->split, 1 << AXIS_TP);
            assert_int_equal(exchanges(p->forward, p->n_forward, COLL_ALL_GATHER, 2 * a), sequence);
            assert_int_equal(exchanges(p->forward, p->n_forward, COLL_ALL_GATHER, a),
                exchanges(plain->forward, plain->n_forward, COLL_ALL_GATHER, a) + 1);
            assert_int_equal(all_exchanges(p->forward, p->n_forward),
                all_exchanges(plain->forward, plain->n_forward) + 1 + sequence);
            assert_int_equal(exchanges(p->backward, p->n_backward, into, 2 * a), 1);
            assert_int_equal(all_exchanges(p->backward, p->n_backward),
                all_exchanges(plain->backward, plain->n_backward) + 1 + sequence);
            arena_release(&r.arena);
        }
}

static int gradients(
    const struct model *model, const struct model_segments *segments, const char *name)
{
    int times = 0;
    for (int s = 0; s < segments->n; s++)
        for (int k = 0; k < segments->at[s].program->n_backward; k++) {
            const struct model_op *op = &segments->at[s].program->backward[k];
            times += op->param_grad >= 0 &&
                     strcmp(model->tensors[segments->at[s].tensor_base + op->param_grad].name,
                         name) == 0;
        }
    return times;
}

static int added(const struct model_segments *segments)
{
    int times = 0;
    for (int s = 0; s < segments->n; s++)
        times += count(segments->at[s].program->backward, segments->at[s].program->n_backward,
            "weight.grad.add");
    return times;
}

/* Two blocks on the first of two stages, one on the last with both layers, the head and the
 * embedding. Each stage's embedding gets its gradient once, out of its uses there: each layer looks
 * up words, and where embeddings are tied each head multiplies by the table, too. */
static void the_last_stage_has_the_layers(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++)
        for (int s = 0; s < 2; s++) {
            struct arena arena = ARENA_INIT;
            const struct model_shape shape = predicting(&small_deepseek, tied);
            struct model_workload w = workload(&shape, DTYPE_BF16, ATTENTION_FLASH);
            struct model_chunk chunks[] = {{0, 2}, {2, 1}};
            struct model_stage part = {&chunks[s], 1, s == 0 ? MODEL_ENTRY : MODEL_EXIT};
            struct model model, stage;
            struct model_segments segments;
            model_build(&model, &shape, &arena);
            model_stage(&stage, &model, &part, &w, &arena);
            model_segments(&segments, &stage, &w, &arena);
            assert_int_equal(model_blocks(&model), BLOCKS);
            assert_int_equal(stage.n_layers, 1 + (s == 0 ? 2 : 1 + LAYERS));
            assert_string_equal(stage.tensors[0].name, "model.embed_tokens.weight");
            assert_int_equal(gradients(&stage, &segments, "model.embed_tokens.weight"), 1);
            assert_int_equal(gradients(&stage, &segments, "lm_head.weight"), s == 1 && !tied);
            int uses = s == 0 ? 1 : LAYERS + LAYERS + 1, matrices = s == 0 || tied ? 1 : 2;
            assert_int_equal(added(&segments), uses - matrices);
            arena_release(&arena);
        }
}

/* The layer's block, eh_proj with it, multiplies in FP8; the head does not. */
static void its_block_is_in_fp8(void **state)
{
    (void)state;
    const struct model_shape shape = predicting(&small_llama, false);
    struct model_workload w = workload(&shape, DTYPE_BF16, ATTENTION_FLASH);
    struct run r = {.arena = ARENA_INIT};
    w.fp8 = true;
    model_build(&r.model, &shape, &r.arena);
    model_segments(&r.segments, &r.model, &w, &r.arena);
    const struct model_program *p = block(&r, BLOCKS + 1),
                               *head = r.segments.at[r.segments.n - 1].program;
    assert_int_equal(kernel_named(p->forward, p->n_forward, "eh_proj")->work.math, DTYPE_FP8);
    assert_int_equal(
        kernel_named(head->forward, head->n_forward, "lm_head")->work.math, DTYPE_BF16);
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_has_its_closed_form),
        cmocka_unit_test(a_layer_is_as_the_last_block),
        cmocka_unit_test(columns_are_gathered),
        cmocka_unit_test(the_last_stage_has_the_layers),
        cmocka_unit_test(its_block_is_in_fp8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
