/* torch.compile: what fused kernels move and what no longer lives between them. The laws that hold
 * for every program are in test_programs.c, which runs them on fused ones too. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../shapes.h"
#include "kernel_named.h"

enum { BATCH = 2, LENGTH = 24, ROWS = BATCH * LENGTH, WIDTH = 64, FF = 160, BF16_BYTES = 2 };

struct run {
    struct arena arena;
    struct model_segments segments;
};

static int rotary = ROTARY_REAL;
static bool swiglu_fp8_input;

static struct run run_compiled(const struct model_shape *shape, enum kernel_fusion fusion,
    enum compiled_part compiled, int64_t lora_rank)
{
    struct run r = {.arena = ARENA_INIT};
    struct model model, adapted;
    struct model_workload w = {.micro_batch = BATCH,
        .seq_len = LENGTH,
        .math = DTYPE_BF16,
        .storage = DTYPE_BF16,
        .attention = ATTENTION_FLASH,
        .fusion = (int)fusion,
        .rotary = rotary,
        .swiglu_fp8_input = swiglu_fp8_input,
        .compiled = (int)compiled,
        .loss_fp32 = true};
    model_build(&model, shape, &r.arena);
    model_adapt(&adapted, &model, lora_rank, NULL, &r.arena);
    model_segments(&r.segments, &adapted, &w, &r.arena);
    return r;
}

static struct run run_adapted(
    const struct model_shape *shape, enum kernel_fusion fusion, int64_t lora_rank)
{
    return run_compiled(shape, fusion, COMPILED_MODEL, lora_rank);
}

static struct run run(const struct model_shape *shape, enum kernel_fusion fusion)
{
    return run_adapted(shape, fusion, 0);
}

static double bytes(const struct model_op *kernels, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += kernels[i].work.read_bytes + kernels[i].work.write_bytes;
    return sum;
}

static double saved(const struct model_program *p)
{
    double sum = 0;
    for (int i = 0; i < p->n_activations; i++)
        if (!p->activations[i].born_in_backward && p->activations[i].backward_last >= 0)
            sum += (double)p->activations[i].bytes;
    return sum;
}

static const struct model_op *before(const struct model_op *kernels, int n, const char *name)
{
    for (int i = 1; i < n; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i - 1];
    fail_msg("nothing before %s", name);
    return NULL;
}

/* silu(gate) * up: reads both, writes what down_proj multiplies; silu(gate) itself is never
 * written. */
static void a_group_reads_its_inputs_once_and_writes_its_result(void **state)
{
    (void)state;
    struct run r = run(&small_llama, FUSION_INDUCTOR);
    const struct model_program *p = r.segments.at[1].program;
    const struct model_op *act = before(p->forward, p->n_forward, "mlp.down_proj");
    const double tensor = (double)ROWS * FF * BF16_BYTES;
    assert_true(act->work.kind == KERNEL_ELEMENTWISE);
    assert_true(act->work.read_bytes == 2 * tensor);
    assert_true(act->work.write_bytes == tensor);
    /* The first norm of a block: 6 kernels and 3 FP32 tensors in eager mode, here x is read and the
     * result written; the reciprocal root of each row, 4 bytes, is kept for backward. */
    const struct model_op *norm = &p->forward[0];
    const double x = (double)ROWS * WIDTH * BF16_BYTES;
    assert_true(norm->work.read_bytes == x);
    assert_true(norm->work.write_bytes >= x && norm->work.write_bytes <= x + 2.0 * ROWS * 4);
    arena_release(&r.arena);
}

/* Products and attention are the same kernels as before; the rest is fewer, moves less and keeps
 * less. */
static void products_stay_and_the_rest_shrinks(void **state)
{
    (void)state;
    struct run eager = run(&small_llama, FUSION_EAGER), fused = run(&small_llama, FUSION_INDUCTOR);
    assert_true(model_forward_flop(&eager.segments) == model_forward_flop(&fused.segments));
    for (int i = 0; i < eager.segments.n; i++) {
        const struct model_program *a = eager.segments.at[i].program,
                                   *b = fused.segments.at[i].program;
        assert_true(b->n_forward <= a->n_forward && b->n_backward <= a->n_backward);
        assert_true(bytes(b->forward, b->n_forward) <= bytes(a->forward, a->n_forward));
        assert_true(bytes(b->backward, b->n_backward) <= bytes(a->backward, a->n_backward));
        assert_true(saved(b) <= saved(a));
    }
    const struct model_program *a = eager.segments.at[1].program, *b = fused.segments.at[1].program;
    assert_true(b->n_forward < a->n_forward / 2);
    assert_true(saved(b) < 0.75 * saved(a));
    arena_release(&eager.arena);
    arena_release(&fused.arena);
}

/* torch.compile of blocks: these as Inductor has them, what is before and behind them as eager
 * PyTorch does. The loss of T tokens and V words then has its logits in FP32 and their log-softmax,
 * 4 T V each, where Inductor's has neither. */
static void what_is_not_compiled_is_eager(void **state)
{
    (void)state;
    struct run eager = run(&small_llama, FUSION_EAGER), fused = run(&small_llama, FUSION_INDUCTOR);
    struct run blocks = run_compiled(&small_llama, FUSION_INDUCTOR, COMPILED_BLOCKS, 0);
    for (int i = 0; i < eager.segments.n; i++) {
        const struct model_program *got = blocks.segments.at[i].program;
        bool block = blocks.segments.at[i].kind == SEGMENT_BLOCK;
        const struct model_program *want = (block ? &fused : &eager)->segments.at[i].program;
        assert_int_equal(got->n_forward, want->n_forward);
        assert_int_equal(got->n_backward, want->n_backward);
        assert_true(bytes(got->forward, got->n_forward) == bytes(want->forward, want->n_forward));
        assert_true(
            bytes(got->backward, got->n_backward) == bytes(want->backward, want->n_backward));
        assert_true(saved(got) == saved(want));
    }
    const int last = blocks.segments.n - 1;
    const struct model_program *head = blocks.segments.at[last].program,
                               *inlined = fused.segments.at[last].program;
    const int64_t wide = 4 * (int64_t)ROWS * small_llama.vocab;
    int whole = 0;
    for (int i = 0; i < head->n_activations; i++)
        whole += !head->activations[i].born_in_backward && head->activations[i].bytes == wide;
    assert_int_equal(whole, 2);
    for (int i = 0; i < inlined->n_activations; i++)
        assert_true(inlined->activations[i].bytes < wide);
    arena_release(&eager.arena);
    arena_release(&fused.arena);
    arena_release(&blocks.arena);
}

/* The results of a matrix and of its adapter are not kept for what their sum would do for: fused
 * blocks keep no more than eager ones. */
static void adapters_keep_no_more(void **state)
{
    (void)state;
    static const struct model_shape *const shapes[] = {&small_gpt, &small_llama, &small_bert};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct run eager = run_adapted(shapes[s], FUSION_EAGER, 4),
                   fused = run_adapted(shapes[s], FUSION_INDUCTOR, 4);
        for (int i = 0; i < eager.segments.n; i++)
            assert_true(saved(fused.segments.at[i].program) <= saved(eager.segments.at[i].program));
        arena_release(&eager.arena);
        arena_release(&fused.arena);
    }
}

/* Eager layer norms sum over rows for their weights' gradients as PyTorch's kernel does, Inductor's
 * as it likes. */
static void sums_over_rows_are_eager(void **state)
{
    (void)state;
    for (int fusion = FUSION_EAGER; fusion <= FUSION_INDUCTOR; fusion++) {
        struct run r = run(&small_gpt, (enum kernel_fusion)fusion);
        const struct model_program *p = r.segments.at[1].program;
        int sums = 0;
        for (int k = 0; k < p->n_backward; k++)
            sums += p->backward[k].work.kind == KERNEL_NORM && p->backward[k].work.m > 0;
        assert_int_equal(sums, fusion == FUSION_EAGER ? 2 : 0); /* ln_1, ln_2 */
        arena_release(&r.arena);
    }
}

/* Megatron-Core's block of a Llama with its projections fused: a kernel each for what Python writes
 * in many. Attention takes fewer key heads as they are; values are copied, so that backward needs
 * nothing of what the projection gave. */
static void transformer_engine_has_other_kernels(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.fused_projections = true;
    struct run r = run(&shape, FUSION_TRANSFORMER_ENGINE);
    const struct model_program *p = r.segments.at[1].program;
    static const char *const forward[] = {"input_layernorm", "self_attn.qkv_proj",
        "self_attn.v.contiguous", "self_attn.rope.fused", "self_attn.flash", "self_attn.o_proj",
        "self_attn.residual", "post_attention_layernorm", "mlp.gate_up_proj", "mlp.swiglu",
        "mlp.down_proj", "mlp.residual"};
    assert_int_equal(p->n_forward, sizeof forward / sizeof *forward);
    for (int k = 0; k < p->n_forward; k++)
        assert_string_equal(p->forward[k].name, forward[k]);
    for (int i = 0; i < p->n_activations; i++)
        if (strcmp(p->activations[i].name, "self_attn.qkv_proj") == 0)
            assert_int_equal(p->activations[i].backward_last, -1);
    const double tensor = (double)ROWS * FF * BF16_BYTES;
    const struct model_op *swiglu = before(p->forward, p->n_forward, "mlp.down_proj");
    assert_true(swiglu->work.read_bytes == 2 * tensor && swiglu->work.write_bytes == tensor);
    const struct model_op *back = before(p->backward, p->n_backward, "mlp.gate_up_proj.dgrad");
    assert_string_equal(back->name, "mlp.swiglu.dgrad");
    assert_true(back->work.read_bytes == 3 * tensor && back->work.write_bytes == 2 * tensor);
    arena_release(&r.arena);
}

static int64_t kept_of(const struct model_program *p, const char *name)
{
    for (int i = 0; i < p->n_activations; i++)
        if (strcmp(p->activations[i].name, name) == 0 && p->activations[i].backward_last >= 0)
            return p->activations[i].bytes;
    return 0;
}

/* activation_func_fp8_input_store: a byte an element of gate and up is kept for backward instead of
 * two, by a kernel each way that reads and writes both formats. */
static void swiglu_keeps_its_input_in_fp8(void **state)
{
    (void)state;
    struct model_shape shape = small_llama;
    shape.fused_projections = true;
    const int64_t elements = 2 * (int64_t)ROWS * FF;
    struct run wide = run(&shape, FUSION_TRANSFORMER_ENGINE);
    swiglu_fp8_input = true;
    struct run narrow = run(&shape, FUSION_TRANSFORMER_ENGINE);
    swiglu_fp8_input = false;
    const struct model_program *w = wide.segments.at[1].program, *n = narrow.segments.at[1].program;
    assert_int_equal(kept_of(w, "mlp.gate_up_proj"), BF16_BYTES * elements);
    assert_int_equal(kept_of(n, "mlp.gate_up_proj"), 0);
    assert_int_equal(kept_of(n, "mlp.swiglu.input.fp8"), elements);
    const double both = (double)elements * (BF16_BYTES + 1);
    assert_true(bytes(n->forward, n->n_forward) - bytes(w->forward, w->n_forward) == both);
    assert_true(bytes(n->backward, n->n_backward) - bytes(w->backward, w->n_backward) == both);
    arena_release(&wide.arena);
    arena_release(&narrow.arena);
}

/* Megatron-LM's --no-rope-fusion: of queries and of keys each a product with cosines, half of a
 * head turned about, its product with sines, a sum. */
static void rotary_positions_can_be_unfused(void **state)
{
    (void)state;
    rotary = ROTARY_UNFUSED;
    struct run r = run(&small_llama, FUSION_TRANSFORMER_ENGINE);
    rotary = ROTARY_REAL;
    const struct model_program *p = r.segments.at[1].program;
    static const char *const names[] = {
        "self_attn.rope.cos", "self_attn.rope.sin", "self_attn.rope.add"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        assert_int_equal(count_named(p->forward, p->n_forward, names[k]), 2);
    /* One half is negated, then both are joined. */
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.rope.rotate"), 4);
    assert_int_equal(count_named(p->forward, p->n_forward, "self_attn.rope.fused"), 0);
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_reads_its_inputs_once_and_writes_its_result),
        cmocka_unit_test(products_stay_and_the_rest_shrinks),
        cmocka_unit_test(what_is_not_compiled_is_eager),
        cmocka_unit_test(adapters_keep_no_more),
        cmocka_unit_test(transformer_engine_has_other_kernels),
        cmocka_unit_test(swiglu_keeps_its_input_in_fp8),
        cmocka_unit_test(rotary_positions_can_be_unfused),
        cmocka_unit_test(sums_over_rows_are_eager),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
