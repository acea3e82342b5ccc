/* What families of decoders differ in: Qwen3, Phi-3, Gemma, GPT-NeoX, Falcon, OPT, BLOOM beside
 * Llama and GPT. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "programs.h"

static bool same_flop(const struct model_shape *a, const struct model_shape *b)
{
    struct run one = run(a, DTYPE_BF16, ATTENTION_NAIVE),
               other = run(b, DTYPE_BF16, ATTENTION_NAIVE);
    bool same = one.model.params == other.model.params &&
                model_forward_flop(&one.segments) == model_forward_flop(&other.segments) &&
                model_step_flop(&one.segments) == model_step_flop(&other.segments);
    arena_release(&one.arena);
    arena_release(&other.arena);
    return same;
}

/* One matrix of 64 + 32 + 32 rows has as many parameters as three; so has one of twice the
 * feed-forward width. Its gradient is one GEMM. */
static void fused_projections_are_the_same_work(void **state)
{
    (void)state;
    struct model_shape fused = small_llama;
    fused.fused_projections = true;
    assert_true(same_flop(&small_llama, &fused));
    struct run r = run(&fused, DTYPE_BF16, ATTENTION_NAIVE);
    const struct model_program *p = block(&r, 1);
    assert_int_equal(count(p->forward, p->n_forward, "qkv_proj"), 1);
    assert_int_equal(count(p->forward, p->n_forward, "q_proj"), 0);
    assert_int_equal(count(p->backward, p->n_backward, "qkv_proj.wgrad"), 1);
    assert_int_equal(count(p->backward, p->n_backward, "split.dgrad"), 1); /* the concatenation */
    assert_int_equal(count(p->backward, p->n_backward, "chunk.dgrad"), 1);
    arena_release(&r.arena);
}

/* Bytes that backward finds of q, k and v as flash attention reads them, in units of one of them.
 */
static double kept_around_attention(const struct model_shape *shape)
{
    struct run r = run_as(shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_FLASH_ATTN);
    const struct model_program *p = block(&r, 1);
    double bytes = 0, one = (double)(2 * BATCH * LENGTH * shape->n_heads * shape->d_kv);
    for (int a = 0; a < p->n_activations; a++) {
        const struct model_activation *at = &p->activations[a];
        bool copied = strstr(at->name, ".contiguous") || strstr(at->name, ".permute") ||
                      strstr(at->name, ".cat");
        bytes += copied && !at->born_in_backward && at->backward_last >= 0 ? (double)at->bytes : 0;
    }
    arena_release(&r.arena);
    return bytes / one;
}

/* nanotron: with as many key heads as heads q is a part of the copy of all three, which lives as
 * long, beside k and v as they were joined; with half as many key heads q has a copy alone. */
static void flash_attn_keeps_the_whole_copy(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.fused_projections = true;
    assert_true(kept_around_attention(&shape) == 1); /* k and v are repeated into other tensors */
    shape.n_kv_heads = shape.n_heads;
    assert_true(kept_around_attention(&shape) == 3 + 2);
}

/* NeoX: as GPT-2, as d_ff = 4 d. Falcon's block with one key head: q 2 d^2, k and v 2 d 2 d_head,
 * projection 2 d^2, feed-forward 16 d^2 a token, attention 4 s d; one norm less. Both add attention
 * and feed-forward layer to one another first. */
static void neox_and_falcon_go_side_by_side(void **state)
{
    (void)state;
    const double b = BATCH, s = LENGTH, d = 64, v = 1000;
    struct model_shape falcon = small_neox;
    falcon.n_kv_heads = 1, falcon.shared_norm = true, falcon.rotary_share = 1;
    struct run n = run(&small_neox, DTYPE_BF16, ATTENTION_FLASH),
               f = run(&falcon, DTYPE_BF16, ATTENTION_FLASH);
    assert_true(model_forward_flop(&n.segments) ==
                3 * (24 * b * s * d * d + 4 * b * s * s * d) + 2 * b * s * d * v);
    assert_true(model_forward_flop(&f.segments) ==
                3 * (b * s * (20 * d * d + 4 * d * 16) + 4 * b * s * s * d) + 2 * b * s * d * v);
    const struct model_program *one = block(&n, 1), *other = block(&f, 1);
    assert_int_equal(count(one->forward, one->n_forward, "layernorm"), 2);
    assert_int_equal(count(other->forward, other->n_forward, "layernorm"), 1);
    assert_int_equal(count(one->forward, one->n_forward, "parallel.add"), 1);
    assert_int_equal(
        count(one->forward, one->n_forward, "rope.cat"), 2); /* a quarter of each head is turned */
    assert_int_equal(count(other->forward, other->n_forward, "rope.cat"), 0);
    assert_int_equal(count(other->forward, other->n_forward, "repeat"), 2);
    arena_release(&n.arena);
    arena_release(&f.arena);
}

/* OPT: three GEMMs for q, k and v, no dropout on the weights of attention. BLOOM: one norm more, in
 * front of all. */
static void opt_and_bloom_are_like_gpt(void **state)
{
    (void)state;
    struct model_shape opt = small_gpt, bloom = small_gpt;
    opt.separate_qkv = opt.relu = opt.keeps_attention = true;
    bloom.embedding_norm = true, bloom.max_positions = 0;
    assert_true(same_flop(&small_gpt, &opt));
    struct run o = run(&opt, DTYPE_BF16, ATTENTION_NAIVE),
               l = run(&bloom, DTYPE_BF16, ATTENTION_NAIVE),
               g = run(&small_gpt, DTYPE_BF16, ATTENTION_NAIVE);
    const struct model_program *p = block(&o, 1), *entry = l.segments.at[0].program;
    assert_int_equal(count(p->forward, p->n_forward, "k_proj"), 1);
    assert_int_equal(count(p->forward, p->n_forward, "mlp.relu"), 1);
    assert_int_equal(count(p->forward, p->n_forward, "attn_dropout"), 0);
    assert_int_equal(count(block(&g, 1)->forward, block(&g, 1)->n_forward, "attn_dropout"), 1);
    assert_int_equal(count(entry->forward, entry->n_forward, "word_embeddings_layernorm"), 1);
    assert_int_equal(l.model.params, g.model.params + 2 * 64 - 32 * 64); /* and no positions */
    arena_release(&o.arena);
    arena_release(&l.arena);
    arena_release(&g.arena);
}

/* Qwen3: a norm of each head's query and key, whose weight is of the head's dimension, 16; Gemma 2:
 * two more norms of the model's width a block, and three kernels for each cap. */
static void norms_and_caps_of_qwen3_and_gemma(void **state)
{
    (void)state;
    struct model_shape qwen = small_llama, gemma = small_llama;
    qwen.qk_norm = gemma.post_norms = true;
    gemma.attention_softcap = 50, gemma.logit_softcap = 30;
    struct run plain = run(&small_llama, DTYPE_BF16, ATTENTION_NAIVE),
               q = run(&qwen, DTYPE_BF16, ATTENTION_NAIVE),
               g = run(&gemma, DTYPE_BF16, ATTENTION_NAIVE),
               flash = run(&gemma, DTYPE_BF16, ATTENTION_FLASH);
    const struct model_program *before = block(&plain, 1), *normed = block(&q, 1),
                               *capped = block(&g, 1), *fused = block(&flash, 1),
                               *head = g.segments.at[g.segments.n - 1].program;
    int norm = count(before->forward, before->n_forward, "input_layernorm");
    assert_int_equal(q.model.params - plain.model.params, 3 * 2 * 16);
    assert_int_equal(normed->n_forward - before->n_forward, 2 * norm);
    assert_int_equal(g.model.params - plain.model.params, 3 * 2 * 64);
    assert_int_equal(capped->n_forward - before->n_forward, 2 * norm + 3);
    assert_int_equal(
        count(fused->forward, fused->n_forward, "scores."), 0); /* within flash attention */
    assert_int_equal(count(head->forward, head->n_forward, "logits."), 3);
    arena_release(&plain.arena);
    arena_release(&q.arena);
    arena_release(&g.arena);
    arena_release(&flash.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_projections_are_the_same_work),
        cmocka_unit_test(flash_attn_keeps_the_whole_copy),
        cmocka_unit_test(neox_and_falcon_go_side_by_side),
        cmocka_unit_test(opt_and_bloom_are_like_gpt),
        cmocka_unit_test(norms_and_caps_of_qwen3_and_gemma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
