/* Kernels and tensors of whole segments: closed forms for flop and saved bytes, and laws that hold
 * for every model. */
#include "model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "variants.h"

static double flop(const struct model_op *kernels, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += kernels[i].model_flop;
    return sum;
}

static void forward_flop_is_the_closed_form(void **state)
{
    (void)state;
    const double b = BATCH, s = LENGTH, t = DECODER_LENGTH, d = 64, v = 1000;
    /* GPT, d_ff = 4d: q, k, v 2 d 3d, projection 2 d^2, feed-forward 2 * 2 * 4 d^2 a token = 24
     * d^2; scores and context 2 * 2 s d a token. Flash attention counts the same, though its causal
     * kernel does half of the second term. */
    for (int attention = ATTENTION_NAIVE; attention <= ATTENTION_FLASH; attention++) {
        struct run g = run(&small_gpt, DTYPE_BF16, (enum attention_kernel)attention);
        double one = 24 * b * s * d * d + 4 * b * s * s * d;
        const struct model_program *p = block(&g, 1);
        assert_true(flop(p->forward, p->n_forward) == one);
        assert_true(model_block_forward_flop(&g.segments) == 3 * one);
        assert_true(model_forward_flop(&g.segments) == 3 * one + 2 * b * s * d * v);
        arena_release(&g.arena);
    }
    /* T5, i = heads x head dimension: encoder block: 4 projections of 2 d i, attention 4 s i,
     * feed-forward 4 d ff a token. Decoder block: the same on t tokens, and in cross-attention q
     * and o on t, k and v on s tokens, attention 4 t s i. */
    struct run e = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    const double i = 4 * 32, ff = 96;
    double encoder = 8 * b * s * d * i + 4 * b * s * s * i + 4 * b * s * d * ff;
    double decoder = 8 * b * t * d * i + 4 * b * t * t * i + 4 * b * (t + s) * d * i +
                     4 * b * t * s * i + 4 * b * t * d * ff;
    assert_true(model_block_forward_flop(&e.segments) == 3 * encoder + 2 * decoder);
    assert_true(model_forward_flop(&e.segments) == 3 * encoder + 2 * decoder + 2 * b * t * d * v);
    arena_release(&e.arena);
    /* Llama: q and o 4 d i, k and v 4 d j with j = key heads x head dimension, three matrices 6 d
     * ff, attention 4 s i a token. */
    struct run l = run(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    const double li = 4 * 16, lj = 2 * 16, lff = 160;
    double one = b * s * (4 * d * li + 4 * d * lj + 6 * d * lff + 4 * s * li);
    assert_true(model_forward_flop(&l.segments) == 3 * one + 2 * b * s * d * v);
    arena_release(&l.arena);
}

/* What comes from the loader, an image or dense inputs, needs no gradient: the first product is
 * spared one; so is what an indexer reads, which is detached. */
static double spared_flop(const struct run *r, int segment)
{
    const struct model_program *p = r->segments.at[segment].program;
    double detached = 0;
    int k = 0;
    for (int i = 0; i < p->n_forward; i++)
        detached += strstr(p->forward[i].name, "indexer.w") ? p->forward[i].model_flop : 0;
    if (detached > 0)
        return detached;
    if (segment > 0 || model_sample_tokens(&r->model.shape) == 0)
        return 0;
    while (!(p->forward[k].model_flop > 0))
        k++;
    return p->forward[k].model_flop;
}

static void check_backward_flop(const struct run *r)
{
    for (int i = 0; i < r->segments.n; i++) {
        const struct model_program *p = r->segments.at[i].program;
        assert_true(flop(p->backward, p->n_backward) ==
                    2 * flop(p->forward, p->n_forward) - spared_flop(r, i));
    }
}

static void backward_flop_is_twice_forward(void **state)
{
    (void)state;
    for_every_variant(check_backward_flop);
}

static void check_lives(const struct run *r)
{
    for (int i = 0; i < r->segments.n; i++) {
        const struct model_program *p = r->segments.at[i].program;
        assert_true(p->n_forward > 0 && p->n_backward > 0);
        for (int j = 0; j < p->n_activations; j++) {
            const struct model_activation *a = &p->activations[j];
            assert_true(a->bytes > 0 && a->born >= 0);
            assert_true(a->forward_last < p->n_forward && a->backward_last < p->n_backward);
            if (a->born_in_backward)
                assert_true(a->forward_last == -1 && a->backward_last >= a->born);
            else
                assert_true(a->forward_last >= a->born && a->backward_last >= -1);
        }
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* What the kernel writes: not what the segment was handed, and which is listed from its first
 * kernel on, and not the sums of a norm's rows, which it keeps beside its result. */
static double written_by(const struct model_program *p, int kernel)
{
    static const char *const others[] = {"position_bias", "encoder_hidden_states", "images",
        "pixel_values", "inputs", ".mean", ".rstd"};
    double bytes = 0;
    for (int i = 0; i < p->n_activations; i++) {
        const struct model_activation *a = &p->activations[i];
        bool counts = !a->born_in_backward && a->born == kernel;
        for (size_t o = 0; o < sizeof others / sizeof *others; o++)
            counts = counts && !ends_with(a->name, others[o]);
        bytes += counts ? (double)a->bytes : 0;
    }
    return bytes;
}

/* What an eager forward kernel writes is a tensor that is there from then on, unless it writes in
 * place, or a piece. */
static void check_writes(const struct run *r)
{
    for (int i = 0; i < r->segments.n && r->fusion == FUSION_EAGER; i++) {
        const struct model_program *p = r->segments.at[i].program;
        for (int k = 0; k < p->n_forward; k++) {
            double born = written_by(p, k), writes = p->forward[k].work.write_bytes;
            bool into_buffer = ends_with(p->forward[k].name, ".user_buffer") ||
                               ends_with(p->forward[k].name, ".symm_mem");
            if (p->forward[k].work.pieces > 1 || into_buffer)
                assert_true(writes <= born || born == 0);
            else if (p->forward[k].kind == MODEL_KERNEL && born != 0 && born != writes)
                fail_msg("%s: %s writes %g bytes, %g are there", r->model.shape.name,
                    p->forward[k].name, writes, born);
        }
    }
}

static void check_borders(const struct run *r)
{
    for (int i = 0; i < r->segments.n; i++) {
        const struct model_program *p = r->segments.at[i].program;
        bool last = i + 1 == r->segments.n, blocks = r->segments.at[i].kind == SEGMENT_BLOCK;
        assert_int_equal(p->output == -1, last);
        assert_int_equal(p->reruns, blocks);
        if (last)
            break;
        assert_int_equal(p->activations[p->output].bytes, p->output_bytes);
        /* The next segment to begin from this output ends with its gradient; this segment begins
         * with it. */
        const struct model_segment *next = &r->segments.at[i + 1];
        int begins = 0, ends = 0;
        for (int j = 0; j < p->n_activations; j++)
            begins += p->activations[j].born_in_backward && p->activations[j].born == 0 &&
                      p->activations[j].bytes == p->output_bytes;
        for (int j = 0; j < next->program->n_activations; j++)
            ends += next->program->activations[j].born_in_backward &&
                    next->program->activations[j].bytes == p->output_bytes &&
                    next->program->activations[j].backward_last == next->program->n_backward - 1;
        assert_true(begins > 0 && ends > 0);
    }
}

static void check_gradients(const struct run *r)
{
    int *times = xcalloc((size_t)r->model.n_tensors, sizeof *times);
    int embedding_segment = -1;
    for (int i = r->segments.n - 1; i >= 0; i--) {
        const struct model_segment *segment = &r->segments.at[i];
        for (int j = 0; j < segment->program->n_forward; j++)
            assert_int_equal(segment->program->forward[j].param_grad, -1);
        for (int j = 0; j < segment->program->n_backward; j++) {
            int param = segment->program->backward[j].param_grad;
            if (param < 0)
                continue;
            assert_true(param < r->model.layers[segment->layer].n_tensors);
            times[segment->tensor_base + param]++;
            if (segment->layer == 0 && param == 0)
                embedding_segment = i; /* of images: the stem's window, the class token */
        }
    }
    for (int i = 0; i < r->model.n_tensors; i++)
        if (times[i] != !r->model.tensors[i].frozen)
            fail_msg("%s gets its gradient %d times", r->model.tensors[i].name, times[i]);
    assert_int_equal(embedding_segment,
        0); /* the shared embedding is complete with the encoder's, the last of the step */
    free(times);
}

static void check_part(const struct run *r)
{
    check_lives(r);
    check_writes(r);
    check_borders(r);
    check_gradients(r);
}

/* Every tensor is used after its birth, what kernels write is there, gradients cross the borders of
 * segments, every parameter gets its gradient once. One pass: to cut a model costs most. */
static void laws_of_every_part(void **state)
{
    (void)state;
    for_every_part(check_part);
}

static void weight_gradients_have_the_weights_shape(void **state)
{
    (void)state;
    struct run r = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    const struct model_program *p = block(&r, 2);
    int matrices = 0;
    for (int i = 0; i < p->n_backward; i++) {
        const struct model_op *k = &p->backward[i];
        if (k->work.kind != KERNEL_GEMM || k->param_grad < 0)
            continue;
        const struct model_tensor *tensor =
            &r.model.tensors[r.model.layers[2].first_tensor + k->param_grad];
        assert_int_equal(k->work.m, tensor->rows);
        assert_int_equal(k->work.n, tensor->cols);
        assert_int_equal(k->work.k, BATCH * LENGTH);
        assert_true(k->work.write_bytes == 2.0 * (double)tensor->numel);
        matrices++;
    }
    assert_int_equal(matrices, 6); /* q, k, v, o, wi, wo */
    arena_release(&r.arena);
}

static double saved_bytes(const struct model_program *p)
{
    double bytes = 0;
    for (int i = 0; i < p->n_activations; i++)
        if (!p->activations[i].born_in_backward && p->activations[i].backward_last >= 0)
            bytes += (double)p->activations[i].bytes;
    return bytes;
}

/* Korthikanti et al. (arXiv 2205.05198, equation 1) count s b h (34 + 5 a s / h) bytes for a GPT
 * layer in 16 bits. Ours differs by
 *   - 2 s b h: the input of the first LayerNorm is the segment before's output and not listed,
 *   + 16 s b: mean and reciprocal deviation of two LayerNorms in FP32, which they leave out.
 * gelu_new saves x, tanh, x / 2 and 1 + tanh, each 8 s b h, where a fused GELU saves x: + 24 s b h.
 * Flash attention saves no scores (- 5 a s^2 b) but the logarithms of their sums in FP32 (+ 4 a s
 * b). */
static void gpt_saves_what_korthikanti_counts(void **state)
{
    (void)state;
    const double s = LENGTH, b = BATCH, h = 64, a = 4;
    double expected = s * b * h * (34 + 5 * a * s / h) - 2 * s * b * h + 16 * s * b;
    struct run fused = run(&small_gpt, DTYPE_FP16, ATTENTION_NAIVE),
               flash = run(&small_gpt, DTYPE_FP16, ATTENTION_FLASH);
    struct model_shape shape = small_gpt;
    shape.composed_gelu = true;
    struct run composed = run(&shape, DTYPE_FP16, ATTENTION_NAIVE);
    assert_true(fabs(saved_bytes(block(&fused, 1)) - expected) < 0.5);
    assert_true(fabs(saved_bytes(block(&composed, 1)) - (expected + 24 * s * b * h)) < 0.5);
    assert_true(
        fabs(saved_bytes(block(&flash, 1)) - (expected - 5 * a * s * s * b + 4 * a * s * b)) < 0.5);
    arena_release(&fused.arena);
    arena_release(&flash.arena);
    arena_release(&composed.arena);
}

/* T5 encoder block in 16 bits, in elements N = b s d, I = b s h d_kv, F = b s d_ff, S = b h s^2:
 *   norms: x in FP32 4N, normalised 2N, result 2N, deviations 4 b s, twice; the second one's input
 *   2N attention: q, k, v copied 6I, softmax in FP32 4S, dropout's mask S and result 2S, context
 *   copied 2I, mask N feed-forward: ReLU's result 2F, dropout's mask F and result 2F, mask N */
static void t5_saves_fp32_probabilities(void **state)
{
    (void)state;
    const double rows = BATCH * LENGTH, n = rows * 64, i = rows * 4 * 32, f = rows * 96,
                 scores = rows * 4 * LENGTH;
    struct run r = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    assert_true(saved_bytes(block(&r, 2)) == 20 * n + 8 * rows + 8 * i + 7 * scores + 5 * f);
    arena_release(&r.arena);
}

/* The passes over the scores, in FP32 storage and with 16 bits: the cast of the scores and the cast
 * back come on top. */
static void t5_attention_passes(void **state)
{
    (void)state;
    const char *const names[] = {"SelfAttention.scores", "SelfAttention.scores.bias",
        "SelfAttention.scores.float", "SelfAttention.softmax", "SelfAttention.weights.type_as",
        "SelfAttention.dropout", "SelfAttention.context"};
    for (int wide = 0; wide < 2; wide++) {
        struct run r = run(&small_t5, wide ? DTYPE_FP32 : DTYPE_BF16, ATTENTION_NAIVE);
        const struct model_program *p = block(&r, 2);
        int passes = 0;
        for (int k = 0; k < p->n_forward; k++)
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                passes += strcmp(p->forward[k].name + strlen("layer.0."), names[i]) == 0;
        assert_int_equal(passes, wide ? 5 : 7);
        arena_release(&r.arena);
    }
}

static void first_blocks_make_what_the_others_share(void **state)
{
    (void)state;
    struct run r = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    const struct model_program *first = block(&r, 1), *second = block(&r, 2),
                               *decoder = block(&r, 4), *last = block(&r, 5);
    assert_ptr_equal(second, block(&r, 3));
    assert_ptr_not_equal(first, second);
    assert_int_equal(count(first->forward, first->n_forward, "relative_attention_bias"), 1);
    assert_int_equal(count(second->forward, second->n_forward, "relative_attention_bias"), 0);
    assert_int_equal(count(second->backward, second->n_backward, "position_bias.grad.add"), 1);
    /* Keys and values of cross-attention both add to the gradient of the encoder's output. */
    assert_int_equal(count(last->backward, last->n_backward, "encoder_hidden_states.grad.add"), 2);
    assert_int_equal(count(decoder->forward, decoder->n_forward, "EncDecAttention.zeros"), 1);
    /* The bias of b h s^2 elements is there from the first kernel to the last in a block that was
     * handed it. */
    bool found = false;
    for (int i = 0; i < second->n_activations; i++) {
        const struct model_activation *a = &second->activations[i];
        if (strcmp(a->name, "position_bias") != 0)
            continue;
        found = true;
        assert_int_equal(a->bytes, 2 * BATCH * 4 * LENGTH * LENGTH);
        assert_int_equal(a->born, 0);
        assert_int_equal(a->forward_last, second->n_forward - 1);
        assert_int_equal(a->backward_last, -1);
    }
    assert_true(found);
    arena_release(&r.arena);
}

static void segments_come_in_forward_order(void **state)
{
    (void)state;
    const enum segment_kind expected[] = {SEGMENT_ENTRY, SEGMENT_BLOCK, SEGMENT_BLOCK,
        SEGMENT_BLOCK, SEGMENT_STACK_EXIT, SEGMENT_DECODER_ENTRY, SEGMENT_BLOCK, SEGMENT_BLOCK,
        SEGMENT_EXIT};
    struct run r = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    assert_int_equal(r.segments.n, sizeof expected / sizeof *expected);
    for (int i = 0; i < r.segments.n; i++)
        assert_int_equal(r.segments.at[i].kind, expected[i]);
    struct model_workload w = workload(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    assert_int_equal(model_tokens(&r.model, &w), BATCH * (LENGTH + DECODER_LENGTH));
    arena_release(&r.arena);
}

/* torchtitan's selective checkpointing keeps every second aten.mm. Llama: q, v, gate and down of q,
 * k, v, o, gate, up, down, and fused attention; GPT, whose products have biases (aten.addmm, which
 * the list has not): attention alone. */
static void selective_checkpointing_keeps_every_second_product(void **state)
{
    (void)state;
    const struct {
        const struct model_shape *shape;
        const char *kept[6];
    } cases[] = {
        {&small_llama, {"self_attn.q_proj", "self_attn.v_proj", "self_attn.flash", "mlp.gate_proj",
                           "mlp.down_proj"}},
        {&small_gpt, {"attn.flash"}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct run r = run(cases[c].shape, DTYPE_BF16, ATTENTION_FLASH);
        const struct model_program *p = block(&r, 1);
        int n = 0;
        for (int i = 0; i < p->n_forward; i++)
            if (p->forward[i].kept)
                assert_string_equal(p->forward[i].name, cases[c].kept[n++]);
        assert_null(cases[c].kept[n]);
        arena_release(&r.arena);
    }
}

/* LlamaRMSNorm casts its input and saves the cast, LayerNorm and T5LayerNorm save the input. The
 * first segment has none. */
static void who_drops_its_input(void **state)
{
    (void)state;
    const struct model_shape *const shapes[] = {&small_llama, &small_gpt, &small_t5};
    for (int s = 0; s < 3; s++) {
        struct run r = run(shapes[s], DTYPE_BF16, ATTENTION_NAIVE);
        for (int i = 0; i < r.segments.n; i++)
            assert_int_equal(r.segments.at[i].program->drops_input, s == 0 && i > 0);
        arena_release(&r.arena);
    }
}

/* T5Attention.forward() holds queries, keys, values and scores until it returns: they outlive its
 * last product, o. */
static void locals_of_t5_live_until_attention_returns(void **state)
{
    (void)state;
    static const char *const locals[] = {"q", "k", "v", "scores"};
    struct run r = run(&small_t5, DTYPE_BF16, ATTENTION_NAIVE);
    const struct model_program *p = block(&r, 2);
    int end = 0, found = 0;
    while (strcmp(p->forward[end].name, "layer.0.SelfAttention.o") != 0)
        end++;
    for (int a = 0; a < p->n_activations; a++)
        for (size_t i = 0; i < sizeof locals / sizeof *locals; i++) {
            char name[64];
            snprintf(name, sizeof name, "layer.0.SelfAttention.%s", locals[i]);
            if (strcmp(p->activations[a].name, name) != 0 || p->activations[a].born_in_backward)
                continue;
            found++;
            assert_true(p->activations[a].forward_last >= end);
        }
    assert_int_equal(found, 4);
    arena_release(&r.arena);
}

/* Shares of a table's gradient are added up, each after the first by a kernel: of one that the head
 * shares with the embedding, T5's with both of its embeddings, and untied with one another. */
static void shares_of_a_table_are_added(void **state)
{
    (void)state;
    struct model_shape untied_t5 = small_t5, untied_gpt = small_gpt;
    untied_t5.tied_embeddings = untied_gpt.tied_embeddings = false;
    const struct {
        const struct model_shape *shape;
        const char *name;
        int sums;
    } tables[] = {{&small_gpt, "transformer.wte.weight.grad.add", 1},
        {&untied_gpt, "transformer.wte.weight.grad.add", 0},
        {&small_t5, "shared.weight.grad.add", 2}, {&untied_t5, "shared.weight.grad.add", 1}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct run r = run(tables[i].shape, DTYPE_BF16, ATTENTION_NAIVE);
        int sums = 0;
        for (int s = 0; s < r.segments.n; s++)
            sums += count(r.segments.at[s].program->backward, r.segments.at[s].program->n_backward,
                tables[i].name);
        assert_int_equal(sums, tables[i].sums);
        arena_release(&r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_a_table_are_added),
        cmocka_unit_test(locals_of_t5_live_until_attention_returns),
        cmocka_unit_test(forward_flop_is_the_closed_form),
        cmocka_unit_test(backward_flop_is_twice_forward),
        cmocka_unit_test(laws_of_every_part),
        cmocka_unit_test(weight_gradients_have_the_weights_shape),
        cmocka_unit_test(gpt_saves_what_korthikanti_counts),
        cmocka_unit_test(t5_saves_fp32_probabilities),
        cmocka_unit_test(t5_attention_passes),
        cmocka_unit_test(first_blocks_make_what_the_others_share),
        cmocka_unit_test(segments_come_in_forward_order),
        cmocka_unit_test(selective_checkpointing_keeps_every_second_product),
        cmocka_unit_test(who_drops_its_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
