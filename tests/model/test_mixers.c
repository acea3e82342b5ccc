/* Linear attention, scans, sparse attention, chunks, sinks: FLOP and bytes in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel_named.h"
#include "../near.h"
#include "programs.h"

enum { TOKENS = BATCH * LENGTH };

static const struct model_op *forward(const struct run *r, int layer, const char *name)
{
    const struct model_program *p = block(r, layer);
    return kernel_named(p->forward, p->n_forward, name);
}

static const struct model_op *backward(const struct run *r, int layer, const char *name)
{
    const struct model_program *p = block(r, layer);
    return kernel_named(p->backward, p->n_backward, name);
}

static struct run run_flash(const struct model_shape *shape)
{
    return run_as(shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_EAGER);
}

/* FLOP of a token and head: 2 C (3 N + 2 P) + C^2 + 6 N P, C 64. Bytes in BF16: q, k, v and the two
 * rates of each head read, values written; of each chunk (one, of 48 tokens) a state of N x P of
 * each head in FP32 both. */
static void a_delta_rule_has_its_closed_form(void **state)
{
    (void)state;
    struct model_shape shape = small_moe;
    enum { HEADS = 4, P = 6, GROUPS = 2, N = 8, C = 64 };
    shape.mixer = (struct model_mixer){MIXER_DELTANET, HEADS, P, GROUPS, N, 4, 0, 2, 0, false};
    struct run r = run_flash(&shape);
    const struct model_op *scan = forward(&r, 1, "self_attn.scan"),
                          *back = backward(&r, 1, "self_attn.scan.dgrad");
    const double flop = (double)TOKENS * HEADS * (2 * C * (3 * N + 2 * P) + C * C + 6 * N * P);
    const double columns = 2 * GROUPS * N + HEADS * P, states = 4.0 * HEADS * N * P;
    assert_near(scan->work.flop, flop, 0);
    assert_near(back->work.flop, 3 * flop, 0);
    assert_near(back->model_flop, 2 * flop, 0);
    assert_near(scan->work.read_bytes, 2.0 * TOKENS * (columns + 2 * HEADS) + states, 0);
    assert_near(scan->work.write_bytes, 2.0 * TOKENS * HEADS * P + states, 0);
    /* A filter of four positions and SiLU of q, k and v. */
    assert_near(forward(&r, 1, "self_attn.conv1d")->work.flop, TOKENS * columns * (2 * 4 + 4), 0);
    assert_int_equal(count(block(&r, 1)->forward, block(&r, 1)->n_forward, "flash"),
        0); /* and every second attends */
    assert_int_equal(count(block(&r, 2)->forward, block(&r, 2)->n_forward, "self_attn.flash"), 1);
    arena_release(&r.arena);
}

/* Mamba: 9 N a channel; Mamba 2: 2 C N of each group, 2 C P + 4 N P of each head, C 256. */
static void scans_have_their_closed_form(void **state)
{
    (void)state;
    struct model_shape mamba = small_llama, mamba2 = small_llama;
    mamba.mixer = (struct model_mixer){MIXER_MAMBA, 1, 128, 1, 4, 4, 3, 2, 1, false};
    mamba2.mixer = (struct model_mixer){MIXER_MAMBA2, 4, 8, 2, 6, 4, 0, 0, 0, false};
    mamba2.d_ff = 0;
    struct run r = run_flash(&mamba), s = run_flash(&mamba2);
    assert_near(forward(&r, 2, "self_attn.scan")->work.flop, TOKENS * 9.0 * 4 * 128, 0);
    assert_int_equal(
        count(block(&r, 1)->forward, block(&r, 1)->n_forward, "scan"), 0); /* 1 of 2 attends */
    assert_near(forward(&s, 1, "self_attn.scan")->work.flop,
        TOKENS * (2.0 * 256 * 6 * 2 + 4 * (2.0 * 256 * 8 + 4 * 6 * 8)), 0);
    assert_int_equal(count(block(&s, 1)->forward, block(&s, 1)->n_forward, "mlp"), 0);
    /* d (2 P h + 2 g N + h) + conv (h P + 2 g N) and its bias, norms, 3 h, h P d; no feed-forward
     * layer. */
    assert_int_equal(s.model.layers[1].params,
        64 * (2 * 32 + 24 + 4) + 5 * (32 + 24) + 32 + 64 + 3 * 4 + 32 * 64);
    arena_release(&r.arena);
    arena_release(&s.arena);
}

/* Scores of all pairs that the mask leaves: 2 D h S^2 / 2 a sequence; then attention to 5 of 24
 * keys: S w - w^2 / 2 pairs, two products over 24 and 16 (queries and values). */
static void an_indexer_leaves_few_pairs(void **state)
{
    (void)state;
    struct model_shape shape = small_deepseek;
    shape.mla.index_heads = 2, shape.mla.index_head_dim = 6, shape.mla.index_topk = 5;
    struct run r = run_flash(&shape), whole = run_flash(&small_deepseek);
    const double pairs = LENGTH * 5 - 5 * 5 / 2.0, heads = (double)shape.n_heads;
    const double dims = (double)(shape.d_kv + shape.mla.v_head_dim);
    assert_near(forward(&r, 1, "self_attn.indexer")->work.flop,
        BATCH * 2.0 * 6 * 2 * LENGTH * LENGTH / 2, 0);
    assert_near(forward(&r, 1, "self_attn.flash")->work.flop, BATCH * heads * 2 * pairs * dims, 0);
    assert_near(forward(&whole, 1, "self_attn.flash")->work.flop,
        BATCH * heads * LENGTH * LENGTH * dims, 0);
    /* h D x q_lora_rank, D x d, a norm with a bias, h x d. */
    const int64_t more = 2 * 6 * shape.mla.q_lora_rank + 6 * 64 + 2 * 6 + 2 * 64;
    assert_int_equal(r.model.params - whole.model.params, 3 * more);
    arena_release(&r.arena);
    arena_release(&whole.arena);
}

/* Six chunks of 4 positions: S C / 2 pairs in place of S^2 / 2; every second block sees all and
 * turns nothing. */
static void chunks_are_sequences_to_attention(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.attention_chunk = 4, shape.full_attention_every = 2, shape.full_unrotated = true;
    struct run r = run_flash(&shape);
    const double whole = BATCH * 4.0 * 2 * LENGTH * LENGTH * 16;
    assert_near(forward(&r, 2, "self_attn.flash")->work.flop, whole, 0);
    assert_near(forward(&r, 1, "self_attn.flash")->work.flop, whole * 4 / LENGTH, 0);
    assert_int_equal(count(block(&r, 2)->forward, block(&r, 2)->n_forward, "rope"), 0);
    assert_true(count(block(&r, 1)->forward, block(&r, 1)->n_forward, "rope") > 0);
    arena_release(&r.arena);
}

/* Nemotron-H: a block has one of the scan, attention (4 heads of 16, 2 for keys, no positions) and
 * an MLP of two matrices and ReLU squared, and one norm; attention alone has keys and values to
 * cache. */
static void a_pattern_says_the_one_sublayer_of_a_block(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.pattern = "M*-", shape.gated_ffn = false, shape.squared_relu = true,
    shape.rotary_share = 0;
    shape.mixer = (struct model_mixer){MIXER_MAMBA2, 4, 8, 2, 6, 4, 0, 0, 0, false};
    struct run r = run_flash(&shape);
    struct model_workload w = workload(&shape, DTYPE_BF16, ATTENTION_FLASH);
    static const char *const kernels[] = {"self_attn.scan", "self_attn.flash", "mlp.act_fn.square"};
    const int64_t params[] = {64 * (2 * 32 + 24 + 4) + 5 * (32 + 24) + 32 + 3 * 4 + 32 * 64,
        2 * 64 * 64 + 2 * 64 * 32, 2 * 64 * 160};
    const double flop[] = {2.0 * TOKENS * 64 * (2 * 32 + 24 + 4 + 32),
        2.0 * TOKENS * (2 * 64 * 64 + 2 * 64 * 32), 4.0 * TOKENS * 64 * 160};
    for (int b = 1; b <= 3; b++) {
        const struct model_program *p = block(&r, b);
        double products = 0;
        for (int k = 0; k < 3; k++)
            assert_int_equal(count_named(p->forward, p->n_forward, kernels[k]), k == b - 1);
        for (int k = 0; k < p->n_forward; k++)
            products += p->forward[k].work.kind == KERNEL_GEMM ? p->forward[k].work.flop : 0;
        assert_near(products, flop[b - 1], 0);
        assert_int_equal(r.model.layers[b].params, params[b - 1] + 64);
        assert_int_equal(count(p->forward, p->n_forward, "post_attention_layernorm"), 0);
        assert_int_equal(model_cache_bytes(&r.model, &w, b), b == 2 ? 2 * TOKENS * 2 * 2 * 16 : 0);
    }
    assert_near(forward(&r, 3, "mlp.act_fn.square")->work.write_bytes, 2.0 * TOKENS * 160, 0);
    arena_release(&r.arena);
}

/* Nemotron 3: two experts of 8 and a shared one, two matrices each; a kernel each way of x (and, of
 * experts, a number a row) gives as much. */
static void experts_of_a_pattern_have_no_gate(void **state)
{
    (void)state;
    struct model_shape shape = small_moe;
    shape.pattern = "E*E", shape.gated_ffn = false, shape.squared_relu = true;
    shape.moe.shared_gate = false, shape.moe.dense_layers = 0;
    struct run r = run_as(&shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_TRANSFORMER_ENGINE);
    const struct model_program *p = block(&r, 1);
    const double flop = 2.0 * TOKENS * 64 * (8 + 2 * 2 * 48 + 2 * 80),
                 hidden = 2.0 * TOKENS * 2 * 48;
    const double shared = 2.0 * TOKENS * 80, numbers = 4.0 * TOKENS * 2;
    const struct model_op *act = forward(&r, 1, "mlp.experts.squared_relu"),
                          *act_back = backward(&r, 1, "mlp.experts.squared_relu.dgrad"),
                          *square = forward(&r, 1, "mlp.shared_experts.act_fn.square");
    double products = 0, back = 0;
    for (int k = 0; k < p->n_forward; k++)
        products += p->forward[k].model_flop;
    for (int k = 0; k < p->n_backward; k++)
        back += p->backward[k].model_flop;
    assert_near(products, flop, 0);
    assert_near(back, 2 * flop, 0);
    assert_int_equal(r.model.layers[1].params,
        8 * 64 + 8 * 2 * 64 * 48 + 2 * 64 * 80 + 64); /* and no norm behind attention */
    assert_near(act->work.read_bytes, hidden + numbers, 0);
    assert_near(act->work.write_bytes, hidden, 0);
    assert_near(act_back->work.read_bytes, 2 * hidden + numbers, 0);
    assert_near(act_back->work.write_bytes, hidden + numbers, 0);
    assert_near(square->work.read_bytes + square->work.write_bytes, 2 * shared, 0);
    assert_int_equal(count(p->forward, p->n_forward, "gate_"), 0);
    assert_int_equal(count(p->forward, p->n_forward, "self_attn"), 0);
    assert_int_equal(count(block(&r, 2)->forward, block(&r, 2)->n_forward, "mlp"), 0);
    arena_release(&r.arena);
}

/* Nemotron 3 Super: experts on a latent of 24, of which the rows have that width on their way to
 * other ranks and back; two matrices of 64 x 24 make it and bring it back; router and shared expert
 * are of the residual stream. */
static void experts_of_a_latent_work_on_its_rows(void **state)
{
    (void)state;
    struct model_shape shape = small_moe;
    shape.moe.latent = 24, shape.moe.shared_gate = false, shape.moe.dense_layers = 0;
    shape.gated_ffn = false, shape.squared_relu = true;
    struct run r = run_as(&shape, FORMAT_BF16, ATTENTION_FLASH, FUSION_TRANSFORMER_ENGINE);
    const struct model_program *p = block(&r, 1);
    const double flop = 2.0 * TOKENS * (64 * 8 + 2 * 64 * 24 + 2 * 2 * 24 * 48 + 2 * 64 * 80);
    double products = 0, back = 0;
    for (int k = 0; k < p->n_forward; k++)
        products += strncmp(p->forward[k].name, "mlp.", 4) == 0 ? p->forward[k].model_flop : 0;
    for (int k = 0; k < p->n_backward; k++)
        back += strncmp(p->backward[k].name, "mlp.", 4) == 0 ? p->backward[k].model_flop : 0;
    assert_near(products, flop, 0);
    assert_near(back, 2 * flop, 0);
    assert_near(forward(&r, 1, "mlp.permute")->work.write_bytes, 2.0 * TOKENS * 2 * 24, 0);
    arena_release(&r.arena);
}

/* gpt-oss: a window in blocks 1, 3, ... from 1 on; n_heads sinks, whose gradient is complete once.
 */
static void sinks_and_windows_of_gpt_oss(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.attention_sinks = true, shape.sliding_window = 7, shape.full_attention_every = 2;
    struct run r = run_flash(&shape);
    const double pair = BATCH * 4.0 * 2 * 2 * 16;
    assert_near(forward(&r, 1, "self_attn.flash")->work.flop, pair * (LENGTH * 7 - 7 * 7 / 2.0), 0);
    assert_near(forward(&r, 2, "self_attn.flash")->work.flop, pair * LENGTH * LENGTH / 2, 0);
    assert_true(backward(&r, 1, "self_attn.sinks.wgrad")->param_grad >= 0);
    struct run without = run_flash(&small_llama);
    assert_int_equal(r.model.params - without.model.params, 3 * 4);
    arena_release(&r.arena);
    arena_release(&without.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delta_rule_has_its_closed_form),
        cmocka_unit_test(scans_have_their_closed_form),
        cmocka_unit_test(an_indexer_leaves_few_pairs),
        cmocka_unit_test(chunks_are_sequences_to_attention),
        cmocka_unit_test(a_pattern_says_the_one_sublayer_of_a_block),
        cmocka_unit_test(experts_of_a_latent_work_on_its_rows),
        cmocka_unit_test(experts_of_a_pattern_have_no_gate),
        cmocka_unit_test(sinks_and_windows_of_gpt_oss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
