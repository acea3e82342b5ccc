/* What kernels of a block and of the head read and write, by hand: of T tokens in BF16 a hidden
 * state is X = 2 T d bytes, keys of half of the heads K, scores of all pairs C = 2 B h L^2, the
 * inner width G = 2 T d_ff, logits V = 2 T words, a number a token in FP32 R = 4 T; of experts P =
 * 2 T experts logits of the router, and their inner width of 2 T tokens E. FP32 is twice that.
 * Weights are W with their shape. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "programs.h"

enum {
    T = BATCH * LENGTH,
    X = 2 * T * 64,
    K = X / 2,
    C = 2 * BATCH * 4 * LENGTH * LENGTH,
    G = 2 * T * 160,
    V = 2 * T * 1000,
    R = 4 * T,
    H = 4 * R, /* a number in FP32 for each token of each of 4 heads */
    P = 2 * T * 8,
    E = 2 * 2 * T * 48,
    W_FFN = 2 * 64 * 160,
    W_WORDS = 2 * 64 * 1000,
};

struct row {
    const char *name; /* of ops that have just this name, their sum */
    double reads, writes;
};

/* Rotary embedding of queries and keys: x cos + rotate(x) sin, where rotate negates one half and
 * writes both again. A norm of Llama in FP32: square, mean, root, product, and the weight in BF16.
 */
static const struct row block_forward[] = {
    {"input_layernorm.float", X, 2 * X},
    {"input_layernorm.pow", 2 * X, 2 * X},
    {"input_layernorm.mean", 2 * X, R},
    {"input_layernorm.eps", R, R},
    {"input_layernorm.rsqrt", R, R},
    {"input_layernorm.mul", 2 * X + R, 2 * X},
    {"input_layernorm.to", 2 * X, X},
    {"input_layernorm", X, X},
    {"self_attn.rope.cos", X + K, X + K},
    {"self_attn.rope.rotate", 1.5 * (X + K), 1.5 * (X + K)},
    {"self_attn.rope.sin", X + K, X + K},
    {"self_attn.rope.add", 2 * (X + K), X + K},
    {"self_attn.k.repeat", K, X},
    {"self_attn.v.repeat", K, X},
    {"self_attn.q.copy", X, X},
    {"self_attn.scores", 2 * X, C},
    {"self_attn.scores.scale", C, C},
    {"self_attn.scores.mask", C, C},
    {"self_attn.softmax.float", C, 2 * C},
    {"self_attn.softmax", 2 * C, 2 * C},
    {"self_attn.weights.to", 2 * C, C},
    {"self_attn.context", C + X, X},
    {"self_attn.context.copy", X, X},
    {"self_attn.residual", 2 * X, X},
    {"mlp.gate_proj", X + W_FFN, G},
    {"mlp.act_fn", G, G},
    {"mlp.mul", 2 * G, G},
    {"mlp.down_proj", G + W_FFN, X},
    {"mlp.residual", 2 * X, X},
    {NULL, 0, 0},
};

/* A product's gradient is two products; of x^2 a power, a product and that with the gradient; what
 * is cut out of a tensor becomes a part of zeros. */
static const struct row block_backward[] = {
    {"mlp.down_proj.dgrad", X + W_FFN, G},
    {"mlp.down_proj.wgrad", X + G, W_FFN},
    {"mlp.mul.dgrad", 2 * 2 * G, 2 * G},
    {"mlp.act_fn.dgrad", 2 * G, G},
    {"post_attention_layernorm.grad.add", 2 * X, X},
    {"post_attention_layernorm.wgrad", 2 * X + X, X + 2 * 64},
    {"post_attention_layernorm.dgrad", X, X},
    {"post_attention_layernorm.to.dgrad", X, 2 * X},
    {"post_attention_layernorm.mul.dgrad", (2 * X + R) + 4 * X + 2 * X, 2 * X + 2 * X + R},
    {"post_attention_layernorm.rsqrt.dgrad", R + R + 2 * R, 3 * R},
    {"post_attention_layernorm.mean.dgrad", R, 2 * X},
    {"post_attention_layernorm.pow.dgrad", 2 * X + 2 * X + 4 * X, 3 * 2 * X},
    {"post_attention_layernorm.float.grad.add", 4 * X, 2 * X},
    {"post_attention_layernorm.float.dgrad", 2 * X, X},
    {"self_attn.context.copy.dgrad", X, X},
    {"self_attn.context.dgrad.a", 2 * X, C},
    {"self_attn.context.dgrad.b", C + X, X},
    {"self_attn.weights.to.dgrad", C, 2 * C},
    {"self_attn.softmax.dgrad", 4 * C, 2 * C},
    {"self_attn.softmax.float.dgrad", 2 * C, C},
    {"self_attn.scores.scale.dgrad", C, C},
    {"self_attn.scores.dgrad.a", C + X, X},
    {"self_attn.v.repeat.dgrad", X, K},
    {"self_attn.rope.sin.dgrad", X + K, X + K},
    {"self_attn.rope.rotate.dgrad", 1.5 * (X + K), (0.5 + 2 * 1.5) * (X + K)},
    {"self_attn.q_proj.grad.add", 2 * 2 * X, 2 * X},
    {"hidden_states.grad.add", 2 * X, X},
    {NULL, 0, 0},
};

/* Flash attention keeps a number a query and head; backward makes another from outputs and their
 * gradient, adds up the queries' gradient in FP32, and writes those of keys and values. */
static const struct row flash_forward[] = {{"self_attn.flash", 3 * X, X + H}, {NULL, 0, 0}};
static const struct row flash_backward[] = {
    {"self_attn.flash.delta", 2 * X, H},
    {"self_attn.flash.dq.zero", 0, 2 * X},
    {"self_attn.flash.dgrad", 4 * X + 2 * H, 2 * X + 2 * X},
    {"self_attn.flash.dq", 2 * X, X},
    {NULL, 0, 0},
};

/* Two of 8 experts a token: their shares in FP32 (2 R) with indices of 8 bytes, which scatter and
 * gather 2 T rows. Both halves of SwiGLU are 2 E. */
static const struct row experts_forward[] = {
    {"mlp.gate", X + 2 * 64 * 8, P},
    {"mlp.router.softmax.float", P, 2 * P},
    {"mlp.router.softmax", 2 * P, 2 * P},
    {"mlp.router.topk", 2 * P, 2 * R + 4 * R},
    {"mlp.router.probs.zero", 0, 2 * P},
    {"mlp.router.probs", 2 * R, 2 * R},
    {"mlp.permute", 2 * X, 2 * X},
    {"mlp.permute_probs", 2 * R, 2 * R},
    {"mlp.tokens_per_expert", 2 * R, 8 * 8},
    {"mlp.experts.swiglu", 2 * E + 2 * R, E},
    {"mlp.unpermute.zero", 0, X},
    {"mlp.unpermute", 2 * X + X, X},
    {"mlp.shared.add", 2 * X, X},
    {"mlp.shared_expert.mul", 2 * G / 2, G / 2},
    {NULL, 0, 0},
};
static const struct row experts_backward[] = {
    {"mlp.unpermute.dgrad", 2 * X, 2 * X},
    {"mlp.experts.swiglu.dgrad", 2 * E + E + 2 * R, 2 * E + 2 * R},
    {"mlp.permute.zero", 0, X},
    {"mlp.permute.dgrad", 2 * X, 2 * X},
    {"mlp.router.topk.zero", 0, 2 * P},
    {"mlp.router.topk.dgrad", 2 * R + 4 * R, 2 * R},
    {"mlp.router.softmax.dgrad", 4 * P, 2 * P},
    {"mlp.router.softmax.float.dgrad", 2 * P, P},
    {"mlp.gate.wgrad", P + X, 2 * 64 * 8},
    {NULL, 0, 0},
};

/* The loss in FP32: a log-softmax of all logits, the label's of each token. */
static const struct row head_forward[] = {
    {"lm_head", X + W_WORDS, V},
    {"loss.float", V, 2 * V},
    {"loss.log_softmax", 2 * V, 2 * V},
    {"loss.nll", R, 4},
    {NULL, 0, 0},
};
static const struct row head_backward[] = {
    {"loss.nll.zero", 0, 2 * V},
    {"loss.nll.dgrad", 0, R},
    {"loss.log_softmax.dgrad", 4 * V, 2 * V},
    {"loss.float.dgrad", 2 * V, V},
    {"lm_head.dgrad", V + W_WORDS, X},
    {"lm_head.wgrad", V + X, W_WORDS},
    {NULL, 0, 0},
};
static const struct row entry_forward[] = {{"model.embed_tokens", X, X}, {NULL, 0, 0}};
static const struct row entry_backward[] = {
    {"model.embed_tokens.zero", 0, W_WORDS}, {"model.embed_tokens.wgrad", X, X}, {NULL, 0, 0}};

static void check(const struct model_op *ops, int n, const struct row *rows)
{
    for (; rows->name; rows++) {
        double reads = 0, writes = 0;
        for (int i = 0; i < n; i++)
            if (ops[i].kind != MODEL_COMM && strcmp(ops[i].name, rows->name) == 0) {
                reads += ops[i].work.read_bytes;
                writes += ops[i].work.write_bytes;
            }
        if (reads != rows->reads || writes != rows->writes)
            fail_msg("%s reads %g and writes %g, not %g and %g", rows->name, reads, writes,
                rows->reads, rows->writes);
    }
}

static void both(
    const struct model_program *program, const struct row *forward, const struct row *backward)
{
    check(program->forward, program->n_forward, forward);
    check(program->backward, program->n_backward, backward);
}

static void kernels_move_what_counting_says(void **state)
{
    (void)state;
    struct run naive = run(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    both(block(&naive, 1), block_forward, block_backward);
    both(naive.segments.at[0].program, entry_forward, entry_backward);
    both(naive.segments.at[naive.segments.n - 1].program, head_forward, head_backward);
    arena_release(&naive.arena);
    struct run flash = run(&small_llama, DTYPE_BF16, ATTENTION_FLASH);
    both(block(&flash, 1), flash_forward, flash_backward);
    arena_release(&flash.arena);
    struct run experts = run(&small_moe, DTYPE_BF16, ATTENTION_FLASH);
    both(block(&experts, 2), experts_forward, experts_backward);
    arena_release(&experts.arena);
}

/* Sums over rows add each number once, and write a bias, 2 bytes each: of GPT's qkv, output and
 * both products of the feed-forward layer. */
static void biases_sum_rows(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int width;
    } biases[] = {{"attn.c_attn.bgrad", 192}, {"attn.c_proj.bgrad", 64}, {"mlp.c_fc.bgrad", 256},
        {"mlp.c_proj.bgrad", 64}};
    struct run r = run(&small_gpt, DTYPE_BF16, ATTENTION_FLASH);
    const struct model_program *p = block(&r, 1);
    for (size_t b = 0; b < sizeof biases / sizeof *biases; b++)
        for (int i = 0; i < p->n_backward; i++) {
            const struct kernel_work *work = &p->backward[i].work;
            if (strcmp(p->backward[i].name, biases[b].name) != 0)
                continue;
            assert_true(work->read_bytes == 2. * T * biases[b].width &&
                        work->write_bytes == 2. * biases[b].width);
            assert_true(work->flop == (double)T * biases[b].width);
        }
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_move_what_counting_says),
        cmocka_unit_test(biases_sum_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
