/* The autograd rules, one at a time, on the block of a one-layer GPT (d_model 8, so that a tensor
 * of 4 rows has 32 elements). */
#include "model/tape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 4, WIDTH = 8, ELEMENTS = ROWS * WIDTH, BF16_BYTES = 2 };

struct fixture {
    struct arena arena;
    struct model model;
    struct model_workload workload;
    struct tape *tape;
    int x;
};

static const struct model_shape shape = {.name = "tiny",
    .family = MODEL_GPT,
    .d_model = WIDTH,
    .d_ff = 32,
    .d_kv = WIDTH,
    .n_heads = 1,
    .n_kv_heads = 1,
    .n_layers = 1,
    .vocab = 10,
    .tied_embeddings = true,
    .biases = true,
    .dropout = 0.1};

static void open_tape_as(struct fixture *f, bool autocast)
{
    *f = (struct fixture){.arena = ARENA_INIT,
        .workload = {.micro_batch = 1,
            .seq_len = ROWS,
            .math = DTYPE_BF16,
            .storage = DTYPE_BF16,
            .autocast = autocast}};
    model_build(&f->model, &shape, &f->arena);
    f->tape = tape_open(&f->model, 1, &f->workload, &f->arena);
    f->x = tape_input(f->tape, "x", ROWS, WIDTH);
}

static void open_tape(struct fixture *f)
{
    open_tape_as(f, false);
}

static const struct model_activation *find(const struct model_program *p, const char *name)
{
    for (int i = 0; i < p->n_activations; i++)
        if (strcmp(p->activations[i].name, name) == 0)
            return &p->activations[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void assert_kernels(
    const struct model_op *kernels, int n, const char *const *names, int n_names)
{
    assert_int_equal(n, n_names);
    for (int i = 0; i < n_names; i++)
        assert_string_equal(kernels[i].name, names[i]);
}
#define ASSERT_KERNELS(kernels, n, ...)                                                            \
    assert_kernels(kernels, n, (const char *const[]){__VA_ARGS__},                                 \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* y = relu(x W + b): ReLU saves its result, the layer its input (not listed: it is the segment's),
 * and the layer's own output is freed once ReLU has read it. */
static void a_layer_and_its_activation(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    tape_scope(f.tape, "attn");
    int hidden = tape_linear(f.tape, "c_proj", f.x);
    struct model_program *p = tape_close(f.tape, tape_map(f.tape, "act", TAPE_RELU, hidden));
    ASSERT_KERNELS(p->forward, p->n_forward, "attn.c_proj", "attn.act");
    ASSERT_KERNELS(p->backward, p->n_backward, "attn.act.dgrad", "attn.c_proj.dgrad",
        "attn.c_proj.wgrad", "attn.c_proj.bgrad");
    /* ln_1 has tensors 0 and 1, c_attn 2 and 3, c_proj 4 and 5 */
    assert_int_equal(p->backward[2].param_grad, 4);
    assert_int_equal(p->backward[3].param_grad, 5);
    assert_int_equal(p->n_activations, 2 + 3); /* hidden, act; gradients of act, hidden and x */
    assert_int_equal(find(p, "attn.c_proj")->backward_last, -1);
    assert_int_equal(find(p, "attn.act")->backward_last, 0);
    assert_int_equal(find(p, "x.grad")->backward_last, 3);
    assert_int_equal(p->output_bytes, ELEMENTS * BF16_BYTES);
    arena_release(&f.arena);
}

/* y = x + relu(norm(x)): the gradient of y is that of x too, and takes the branch's in place: one
 * add, no new tensor. */
static void a_residual_gradient_is_added_in_place(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    int branch = tape_map(f.tape, "act", TAPE_RELU, tape_layer_norm(f.tape, "ln_1", f.x));
    struct model_program *p = tape_close(f.tape, tape_add(f.tape, "y", f.x, branch));
    ASSERT_KERNELS(p->backward, p->n_backward, "act.dgrad", "ln_1.dgrad", "ln_1.wgrad",
        "ln_1.bgrad", "x.grad.add");
    const struct model_activation *grad = find(p, "y.grad");
    assert_int_equal(grad->born, 0);
    assert_int_equal(grad->backward_last, 4);
    assert_int_equal(find(p, "x.grad")->born, 1); /* the branch's share, freed by the add */
    const struct kernel_work *dgrad = &p->backward[1].work,
                             *wgrad = &p->backward[2].work; /* the latter sums over rows */
    assert_true(dgrad->m == 0 && wgrad->m * wgrad->n == ELEMENTS);
    arena_release(&f.arena);
}

/* y = (x + a) + b, a = relu(x), b = relu(x): when a's share arrives at x, the gradient there is b's
 * and y's at once, and b has not used it yet; adding in place would spoil it. */
static void a_gradient_still_needed_is_not_overwritten(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    int b = tape_map(f.tape, "b", TAPE_RELU, f.x), a = tape_map(f.tape, "a", TAPE_RELU, f.x);
    struct model_program *p =
        tape_close(f.tape, tape_add(f.tape, "y", tape_add(f.tape, "s", f.x, a), b));
    ASSERT_KERNELS(p->backward, p->n_backward, "a.dgrad", "x.grad.add", "b.dgrad", "x.grad.add");
    assert_int_equal(find(p, "y.grad")->backward_last, 2); /* b.dgrad still reads it */
    int x_grads = 0;
    for (int i = 0; i < p->n_activations; i++)
        x_grads += strcmp(p->activations[i].name, "x.grad") == 0;
    assert_int_equal(x_grads, 3); /* a's share, the sum, b's share */
    arena_release(&f.arena);
}

/* y = x + W norm(x) under autocast: the norm stays in FP32, the product casts its input, the sum is
 * in the wider format and casts the gradient of the narrower term. */
static void autocast_casts_what_is_multiplied(void **state)
{
    (void)state;
    struct fixture f;
    open_tape_as(&f, true);
    int normed = tape_layer_norm(f.tape, "ln_1", f.x);
    tape_scope(f.tape, "attn");
    int out = tape_linear(f.tape, "c_proj", normed);
    tape_scope(f.tape, "");
    struct model_program *p = tape_close(f.tape, tape_add(f.tape, "y", f.x, out));
    ASSERT_KERNELS(p->forward, p->n_forward, "ln_1", "attn.c_proj.autocast", "attn.c_proj", "y");
    ASSERT_KERNELS(p->backward, p->n_backward, "y.to", "attn.c_proj.dgrad", "attn.c_proj.wgrad",
        "attn.c_proj.bgrad", "attn.c_proj.autocast.dgrad", "ln_1.dgrad", "ln_1.wgrad", "ln_1.bgrad",
        "x.grad.add");
    assert_int_equal(p->output_bytes, 2 * ELEMENTS * BF16_BYTES);
    assert_int_equal(find(p, "ln_1")->bytes, 2 * ELEMENTS * BF16_BYTES);
    assert_int_equal(find(p, "ln_1")->backward_last, -1); /* what the product saves is the cast */
    assert_int_equal(find(p, "attn.c_proj.autocast")->backward_last, 2); /* wgrad */
    assert_int_equal(find(p, "attn.c_proj")->bytes, ELEMENTS * BF16_BYTES);
    arena_release(&f.arena);
}

/* gelu_new in Python: 0.5 * x, pow, * 0.044715, +, * c, tanh, 1 +, *. */
static void gelu_new_is_eight_kernels(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    struct model_program *p = tape_close(f.tape, tape_gelu_new(f.tape, f.x));
    assert_int_equal(p->n_forward, 8);
    /* product 2, shift 0, tanh 1, scale 1, add 0, scale 1, pow 3, half 1; x's gradient comes in
     * three shares: 2 adds */
    assert_int_equal(p->n_backward, 2 + 1 + 1 + 1 + 3 + 1 + 2);
    assert_int_equal(find(p, "gelu.tanh")->backward_last, 2);
    assert_int_equal(find(p, "gelu.cube")->backward_last, -1);
    arena_release(&f.arena);
}

/* Under autocast torch.pow takes and gives FP32, and x + and x / 2 * are promoted by what comes of
 * it: of GPT-2's GELU under autocast on H100 (results/measured/one_gpu.csv) peaks of memory are
 * those of FP32 tensors. */
static void gelu_new_is_promoted_by_pow(void **state)
{
    (void)state;
    struct fixture f;
    open_tape_as(&f, true);
    int bf16 = tape_cast_to_storage(f.tape, "x.to", f.x);
    struct model_program *p = tape_close(f.tape, tape_gelu_new(f.tape, bf16));
    ASSERT_KERNELS(p->forward, p->n_forward, "x.to", "gelu.half", "gelu.cube.autocast", "gelu.cube",
        "gelu.cube.scale", "gelu.inner", "gelu.inner.scale", "gelu.tanh", "gelu.shift", "gelu");
    assert_int_equal(find(p, "gelu.half")->bytes, ELEMENTS * BF16_BYTES);
    assert_int_equal(find(p, "gelu.tanh")->bytes, ELEMENTS * 4);
    assert_int_equal(p->output_bytes, ELEMENTS * 4);
    arena_release(&f.arena);
}

/* LlamaRMSNorm and T5LayerNorm in 16 bits: float, pow, mean, + eps, rsqrt, *, to, weight *. */
static void rms_norm_is_eight_kernels(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    struct model_program *p = tape_close(f.tape, tape_rms_norm(f.tape, "ln_1", f.x, false));
    ASSERT_KERNELS(p->forward, p->n_forward, "ln_1.float", "ln_1.pow", "ln_1.mean", "ln_1.eps",
        "ln_1.rsqrt", "ln_1.mul", "ln_1.to", "ln_1");
    assert_int_equal(find(p, "ln_1.float")->bytes, ELEMENTS * 4);
    assert_int_equal(find(p, "ln_1.rsqrt")->bytes, ROWS * 4);
    assert_true(
        find(p, "ln_1.float")->backward_last > 0 && find(p, "ln_1.rsqrt")->backward_last > 0);
    assert_int_equal(find(p, "ln_1.pow")->backward_last, -1);
    assert_int_equal(find(p, "ln_1.mul")->backward_last, -1);
    arena_release(&f.arena);
}

static void dropout_keeps_a_mask_of_bytes(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    struct model_program *p = tape_close(f.tape, tape_dropout(f.tape, "drop", f.x));
    const struct model_activation *mask = find(p, "drop.mask");
    assert_int_equal(mask->bytes, ELEMENTS);
    assert_int_equal(mask->backward_last, 0);
    assert_true(p->forward[0].work.read_bytes == ELEMENTS * BF16_BYTES);
    assert_true(p->forward[0].work.write_bytes == ELEMENTS * BF16_BYTES + ELEMENTS);
    arena_release(&f.arena);
}

static void a_split_is_views_and_its_gradient_a_concatenation(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    int parts[3];
    const int64_t widths[3] = {WIDTH, WIDTH, WIDTH};
    tape_scope(f.tape, "attn");
    tape_split(f.tape, "split", tape_linear(f.tape, "c_attn", f.x), widths, parts, 3);
    int sum = tape_add(f.tape, "qk", parts[0], parts[1]);
    sum = tape_add(f.tape, "sum", sum, tape_map(f.tape, "v", TAPE_GELU, parts[2]));
    struct model_program *p = tape_close(f.tape, sum);
    ASSERT_KERNELS(p->forward, p->n_forward, "attn.c_attn", "attn.qk", "attn.v", "attn.sum");
    assert_string_equal(p->backward[1].name, "attn.split.dgrad");
    assert_true(p->backward[1].work.write_bytes == 3 * ELEMENTS * BF16_BYTES);
    /* GELU saves its input, a third of the layer's output: the whole stays. */
    assert_int_equal(find(p, "attn.c_attn")->backward_last, 0);
    arena_release(&f.arena);
}

/* The two halves of 8 columns, turned one way and handed on the other: the concatenation reads and
 * writes 32 elements, its gradient is two views, and the split's is a concatenation again. */
static void a_concatenation_gives_views_back(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    int parts[2];
    const int64_t widths[2] = {WIDTH / 2, WIDTH / 2};
    tape_split(f.tape, "slice", tape_map(f.tape, "a", TAPE_SCALE, f.x), widths, parts, 2);
    struct model_program *p = tape_close(
        f.tape, tape_cat(f.tape, "cat", tape_map(f.tape, "cos", TAPE_SCALE, parts[0]), parts[1]));
    ASSERT_KERNELS(p->forward, p->n_forward, "a", "cos", "cat");
    ASSERT_KERNELS(p->backward, p->n_backward, "cos.dgrad", "slice.dgrad", "a.dgrad");
    assert_true(p->forward[2].work.read_bytes == ELEMENTS * BF16_BYTES);
    assert_true(p->forward[2].work.write_bytes == ELEMENTS * BF16_BYTES);
    assert_true(p->backward[1].work.read_bytes == ELEMENTS * BF16_BYTES);
    assert_true(p->backward[1].work.write_bytes == ELEMENTS * BF16_BYTES);
    arena_release(&f.arena);
}

/* Whichever half is trained, its gradient comes back; the other, given from outside and frozen,
 * gets none. */
static void a_concatenation_trains_either_half(void **state)
{
    (void)state;
    for (int left = 0; left < 2; left++) {
        struct fixture f;
        open_tape(&f);
        int frozen = tape_shared(f.tape, "bias", ROWS, WIDTH, false),
            a = tape_map(f.tape, "a", TAPE_SCALE, f.x);
        struct model_program *p =
            tape_close(f.tape, tape_cat(f.tape, "cat", left ? a : frozen, left ? frozen : a));
        ASSERT_KERNELS(p->backward, p->n_backward, "a.dgrad");
        arena_release(&f.arena);
    }
}

static void a_local_variable_keeps_a_tensor(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    int a = tape_map(f.tape, "a", TAPE_SCALE, f.x);
    int b = tape_map(f.tape, "b", TAPE_SCALE, a);
    int c = tape_map(f.tape, "c", TAPE_SCALE, b);
    tape_keep(f.tape, a);
    struct model_program *p = tape_close(f.tape, c);
    assert_int_equal(find(p, "a")->forward_last, 2);
    assert_int_equal(find(p, "b")->forward_last, 2);
    assert_int_equal(find(p, "a")->backward_last, -1);
    arena_release(&f.arena);
}

/* rotate_half: neg, cat; backward: neg, then for each half zeros and a copy, and one add of the
 * two. */
static void rotate_half(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    struct model_program *p = tape_close(f.tape, tape_rotate_half(f.tape, "rotate", f.x));
    assert_int_equal(p->n_forward, 2);
    assert_int_equal(p->n_backward, 1 + 2 + 2 + 1);
    assert_string_equal(p->backward[5].name, "x.grad.add");
    arena_release(&f.arena);
}

/* The halves' gradients are as large as what is rotated, here four times the tape's first value:
 * zeros are written whole, half of them is read and written by the copy, and the sum reads two and
 * writes one. */
static void halves_have_the_size_of_what_is_rotated(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    tape_scope(f.tape, "mlp");
    int wide = tape_linear(f.tape, "c_fc", f.x);
    const double bytes = 4 * ELEMENTS * BF16_BYTES;
    struct model_program *p = tape_close(f.tape, tape_rotate_half(f.tape, "rotate", wide));
    static const double reads[] = {0.5, 0, 0.5, 0, 0.5, 2}, writes[] = {0.5, 1, 0.5, 1, 0.5, 1};
    for (int i = 0; i < 6; i++) {
        assert_true(p->backward[i].work.read_bytes == reads[i] * bytes);
        assert_true(p->backward[i].work.write_bytes == writes[i] * bytes);
    }
    arena_release(&f.arena);
}

/* The head's share of a tied weight is not complete; the embedding's adds to it and is. */
static void shares_of_a_tied_weight(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    struct model_program *block = tape_close(f.tape, tape_map(f.tape, "a", TAPE_SCALE, f.x));
    assert_int_equal(block->n_backward, 1);
    struct tape *head = tape_open(&f.model, 0, &f.workload, &f.arena);
    int x = tape_input(head, "x", ROWS, WIDTH);
    int logits = tape_linear_shared(head, "transformer.wte", x, TURN_FIRST);
    struct model_program *p = tape_close(head, tape_cross_entropy(head, "loss", logits));
    for (int i = 0; i < p->n_backward; i++)
        assert_int_equal(p->backward[i].param_grad, -1);
    assert_int_equal(p->output, -1);
    struct tape *entry = tape_open(&f.model, 0, &f.workload, &f.arena);
    p = tape_close(entry, tape_embedding(entry, "transformer.wte", ROWS, TURN_LAST));
    ASSERT_KERNELS(p->backward, p->n_backward, "transformer.wte.zero", "transformer.wte.wgrad",
        "transformer.wte.weight.grad.add");
    assert_int_equal(p->backward[1].param_grad, -1);
    assert_int_equal(p->backward[2].param_grad, 0);
    assert_true(p->backward[0].work.write_bytes == 10.0 * WIDTH * BF16_BYTES);
    arena_release(&f.arena);
}

/* Eager: logits to FP32, log_softmax, nll, and back; fused: one kernel each way, in the logits' own
 * format. ROWS rows of 10 words. The fused kernels read the logits (and a sum a row), and write a
 * loss a row, or the gradient. */
static void a_fused_loss_is_one_kernel_each_way(void **state)
{
    (void)state;
    for (int fused = 0; fused < 2; fused++) {
        struct fixture f;
        open_tape(&f);
        tape_close(f.tape, tape_map(f.tape, "a", TAPE_SCALE, f.x));
        f.workload.cross_entropy = fused ? CROSS_ENTROPY_FUSED : CROSS_ENTROPY_EAGER;
        f.workload.loss_fp32 = true;
        struct tape *head = tape_open(&f.model, 0, &f.workload, &f.arena);
        int x = tape_input(head, "x", ROWS, WIDTH);
        struct model_program *p =
            tape_close(head, tape_cross_entropy(head, "loss",
                                 tape_linear_shared(head, "transformer.wte", x, TURN_ONLY)));
        assert_int_equal(p->n_forward, fused ? 2 : 4);
        assert_int_equal(
            p->n_backward, fused ? 3 : 6); /* 1, or zero + nll + log_softmax + cast; dgrad, wgrad */
        if (fused) {
            double logits = ROWS * 10.0 * BF16_BYTES, row = ROWS * 4.0;
            assert_true(p->forward[1].work.read_bytes == logits + row &&
                        p->forward[1].work.write_bytes == row);
            assert_true(p->backward[0].work.read_bytes == logits + 2 * row &&
                        p->backward[0].work.write_bytes == logits);
        }
        arena_release(&f.arena);
    }
}

/* del pred: logits live to the end of the forward pass where backward does not read them. */
static void dropped_logits(void **state)
{
    (void)state;
    struct fixture f;
    open_tape(&f);
    f.workload.drops_logits = f.workload.loss_fp32 = true;
    int logits = tape_add_mask(f.tape, "logits", f.x, ROWS, 10);
    const struct model_program *p = tape_close(f.tape, tape_cross_entropy(f.tape, "loss", logits));
    assert_int_equal(find(p, "logits")->backward_last, -1);
    assert_int_equal(find(p, "logits")->forward_last, p->n_forward - 1);
    arena_release(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_and_its_activation),
        cmocka_unit_test(a_residual_gradient_is_added_in_place),
        cmocka_unit_test(a_gradient_still_needed_is_not_overwritten),
        cmocka_unit_test(autocast_casts_what_is_multiplied),
        cmocka_unit_test(gelu_new_is_eight_kernels),
        cmocka_unit_test(gelu_new_is_promoted_by_pow),
        cmocka_unit_test(rms_norm_is_eight_kernels),
        cmocka_unit_test(dropout_keeps_a_mask_of_bytes),
        cmocka_unit_test(a_split_is_views_and_its_gradient_a_concatenation),
        cmocka_unit_test(a_concatenation_gives_views_back),
        cmocka_unit_test(a_concatenation_trains_either_half),
        cmocka_unit_test(a_local_variable_keeps_a_tensor),
        cmocka_unit_test(rotate_half),
        cmocka_unit_test(halves_have_the_size_of_what_is_rotated),
        cmocka_unit_test(shares_of_a_tied_weight),
        cmocka_unit_test(a_fused_loss_is_one_kernel_each_way),
        cmocka_unit_test(dropped_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
