/* Models of images: flop against the published ones and the closed form, the products of a
 * convolution, what batch norm and pooling move. The laws that hold for every family are in
 * test_programs.c. */
#include "model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../shapes.h"
#include "kernel_named.h"

enum { BATCH = 2 };

struct run {
    struct arena arena;
    struct model model;
    struct model_segments segments;
};

static void lay_out_in(struct run *r, const struct model_shape *shape, int64_t images,
    enum dtype math, bool channels_last)
{
    struct model_workload w = {.micro_batch = images,
        .seq_len = model_sample_tokens(shape),
        .math = math,
        .storage = math == DTYPE_TF32 ? DTYPE_FP32 : math,
        .channels_last = channels_last,
        .loss_fp32 = true};
    model_build(&r->model, shape, &r->arena);
    model_segments(&r->segments, &r->model, &w, &r->arena);
    assert_int_equal(model_tokens(&r->model, &w), images); /* throughput is in images */
}

static void lay_out(struct run *r, const struct model_shape *shape, int64_t images)
{
    lay_out_in(r, shape, images, DTYPE_FP16, true);
}

static struct run run_file(const char *name)
{
    static struct diag diag;
    diag = DIAG_INIT;
    struct run r = {.arena = ARENA_INIT};
    struct model_shape shape;
    if (model_load(&shape,
            arena_printf(&r.arena, FLOPCAST_SOURCE_DIR "/scenarios/models/%s.yaml", name), false,
            &r.arena, &diag))
        fail_msg("%s", diag.text);
    lay_out(&r, &shape, 1);
    return r;
}

/* torchvision's documentation of its weights, GFLOPS (10^9 multiply-adds, two decimals; 2 flop
 * each). Theirs leave out what the classes of attention multiply in PyTorch's fused kernels, 12
 * layers x 2 x 197^2 x 768 for vit_b_16 and alike for others, 0.7 to 3 %: hence 4 % there. */
static void forward_flop_is_the_published(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double gmac, tolerance;
    } expected[] = {
        {"resnet18", 1.81, 0.004},
        {"resnet34", 3.66, 0.004},
        {"resnet50", 4.09, 0.004},
        {"resnet101", 7.80, 0.004},
        {"resnet152", 11.51, 0.004},
        {"resnext101_32x8d", 16.41, 0.004},
        {"regnet_y_16gf", 15.91, 0.004},
        {"regnet_y_32gf", 32.28, 0.004},
        {"regnet_y_128gf", 127.52, 0.004},
        {"vit_b_16", 17.56, 0.04},
        {"vit_l_16", 61.55, 0.04},
        {"vit_h_14", 167.29, 0.04},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct run r = run_file(expected[i].name);
        double gmac = model_forward_flop(&r.segments) / 2e9;
        if (fabs(gmac / expected[i].gmac - 1) > expected[i].tolerance)
            fail_msg("%s: %.3f x 10^9 multiply-adds, published %.2f", expected[i].name, gmac,
                expected[i].gmac);
        arena_release(&r.arena);
    }
}

/* ViT: as BERT's blocks; the patches, the classifier on one token. */
static void vits_forward_flop_is_the_closed_form(void **state)
{
    (void)state;
    const double b = BATCH, n = 16, s = 17, d = 64;
    struct run r = {.arena = ARENA_INIT};
    lay_out(&r, &small_vit, BATCH);
    double blocks = 3 * (24 * b * s * d * d + 4 * b * s * s * d);
    assert_true(model_block_forward_flop(&r.segments) == blocks);
    assert_true(
        model_forward_flop(&r.segments) == blocks + 2 * b * n * (4 * 4 * 3) * d + 2 * b * d * 10);
    arena_release(&r.arena);
    /* DeepViT: a product of heads x heads for every pair of tokens, and 3 (h^2 + 2 h) parameters
     * more. */
    struct model_shape deep = small_vit;
    deep.mixes_heads = true;
    struct run mixed = {.arena = ARENA_INIT};
    lay_out(&mixed, &deep, BATCH);
    assert_true(model_block_forward_flop(&mixed.segments) == blocks + 3 * 2 * b * s * s * 4 * 4);
    assert_int_equal(mixed.model.params - r.model.params, 3 * (4 * 4 + 2 * 4));
    arena_release(&mixed.arena);
}

static void assert_product(
    const struct model_op *k, int64_t m, int64_t n, int64_t depth, int64_t batch)
{
    assert_int_equal(k->work.kind, KERNEL_GEMM);
    assert_int_equal(k->work.m, m);
    assert_int_equal(k->work.n, n);
    assert_int_equal(k->work.k, depth);
    assert_int_equal(k->work.batch, batch);
}

/* small_resnet, images of 64: 16 x 16 behind the stem. layer2.0, the third block: 16 channels in, 8
 * within in 2 groups, stride 2 to 8 x 8. */
static void convolutions_are_implicit_products(void **state)
{
    (void)state;
    struct run r = {.arena = ARENA_INIT};
    lay_out(&r, &small_resnet, BATCH);
    const struct model_program *p = r.segments.at[3].program;
    const int64_t in = (int64_t)BATCH * 16 * 16, out = (int64_t)BATCH * 8 * 8,
                  window = 3 * 3 * 8 / 2;
    assert_string_equal(r.model.layers[3].name, "layer2.0");
    const struct model_op *forward = kernel_named(p->forward, p->n_forward, "conv2");
    assert_product(forward, out, 4, window, 2);
    /* Each element of the input and of the weights is read once, not once for every window that it
     * is in. */
    assert_true(forward->work.read_bytes == 2.0 * (double)(in * 8 + 8 * window));
    assert_true(forward->work.write_bytes == 2.0 * (double)(out * 8));
    /* Stride 2: an input position sees a quarter of the window in the mean, so that nothing is
     * multiplied in vain. */
    const struct model_op *dgrad = kernel_named(p->backward, p->n_backward, "conv2.dgrad");
    assert_product(dgrad, in, 4, 4 * 3 * 3 / 4, 2);
    assert_product(kernel_named(p->backward, p->n_backward, "conv2.wgrad"), 4, window, out, 2);
    assert_true(dgrad->work.flop == forward->work.flop);
    /* The shortcut's window of 1 with stride 2 sees every fourth position; the gradient of all of
     * them is written. */
    const struct model_op *shortcut =
        kernel_named(p->backward, p->n_backward, "downsample.0.dgrad");
    assert_product(shortcut, out, 16, 32, 1);
    assert_true(shortcut->work.write_bytes == 2.0 * (double)(in * 16));
    arena_release(&r.arena);
}

static double relayouts(const struct model_op *kernels, int n, const char *of)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        if (strncmp(kernels[i].name, of, strlen(of)) == 0 && strstr(kernels[i].name, ".relayout")) {
            assert_int_equal(kernels[i].work.kind, KERNEL_COPY);
            bytes += kernels[i].work.read_bytes + kernels[i].work.write_bytes;
        }
    return bytes;
}

/* layer1.1 (no shortcut), conv1: 16 x 16 positions, 16 channels to 8. On tensor cores cuDNN turns
 * what lies in NCHW round, and back: x and y forward, dy and dx for the gradient of the input, dy
 * and x for that of the weights, each read and written once. Not in channels_last, and not in FP32,
 * whose kernels take NCHW. */
static void layouts_are_changed_for_tensor_cores(void **state)
{
    (void)state;
    const struct {
        enum dtype math;
        bool channels_last;
        double bytes; /* an element, read and written */
    } cases[] = {{DTYPE_TF32, false, 8}, {DTYPE_FP16, false, 4}, {DTYPE_TF32, true, 0},
        {DTYPE_FP32, false, 0}};
    const double x = BATCH * 16.0 * 16 * 16, y = BATCH * 16.0 * 16 * 8;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run r = {.arena = ARENA_INIT};
        lay_out_in(&r, &small_resnet, BATCH, cases[i].math, cases[i].channels_last);
        const struct model_program *p = r.segments.at[2].program;
        assert_true(relayouts(p->forward, p->n_forward, "conv1") == cases[i].bytes * (x + y));
        assert_true(
            relayouts(p->backward, p->n_backward, "conv1") == cases[i].bytes * (2 * x + 2 * y));
        arena_release(&r.arena);
    }
}

/* layer1.1, conv2: 8 channels, 3 x 3, stride 1. Winograd's F(2 x 2, 3 x 3) multiplies 16 times
 * where 36 are written down: 8 x 9 x 16 / 36 = 32 elements of k. The flop that are counted stay
 * those of the convolution. layer2.0's conv2 has two groups and a stride, 1 x 1 windows have
 * nothing to save, tensor cores have no such kernel. */
static void fp32_windows_run_on_winograd(void **state)
{
    (void)state;
    const int64_t positions = (int64_t)BATCH * 16 * 16, half = (int64_t)BATCH * 8 * 8;
    struct run r = {.arena = ARENA_INIT}, tensor_cores = {.arena = ARENA_INIT};
    lay_out_in(&r, &small_resnet, BATCH, DTYPE_FP32, false);
    lay_out_in(&tensor_cores, &small_resnet, BATCH, DTYPE_TF32, false);
    const struct model_program *p = r.segments.at[2].program;
    const struct model_op *forward = kernel_named(p->forward, p->n_forward, "conv2");
    assert_product(forward, positions, 8, 32, 1);
    assert_true(forward->work.gathers);
    assert_true(forward->work.flop == 2.0 * (double)positions * 8 * 72);
    assert_product(kernel_named(p->backward, p->n_backward, "conv2.dgrad"), positions, 8, 32, 1);
    assert_product(
        kernel_named(p->backward, p->n_backward, "conv2.wgrad"), 8, 72, positions * 16 / 36, 1);
    assert_product(kernel_named(p->forward, p->n_forward, "conv1"), positions, 8, 16, 1);
    p = tensor_cores.segments.at[2].program;
    assert_product(kernel_named(p->forward, p->n_forward, "conv2"), positions, 8, 72, 1);
    p = r.segments.at[3].program;
    assert_product(kernel_named(p->forward, p->n_forward, "conv2"), half, 4, 36, 2);
    arena_release(&r.arena);
    arena_release(&tensor_cores.arena);
}

/* Batch norm reads its input twice forward, gradient and input twice backward; the max pool's
 * indices are 64 bits. */
static void norm_and_pool_move_what_pytorch_moves(void **state)
{
    (void)state;
    struct run r = {.arena = ARENA_INIT};
    lay_out(&r, &small_resnet, BATCH);
    const struct model_program *p = r.segments.at[0].program;
    const double stem = 2.0 * BATCH * 32 * 32 * 8, pooled = BATCH * 16.0 * 16 * 8,
                 statistics = 2 * 8 * 4;
    assert_true(kernel_named(p->forward, p->n_forward, "bn1.statistics")->work.read_bytes == stem);
    assert_true(
        kernel_named(p->forward, p->n_forward, "bn1")->work.read_bytes == stem + statistics);
    assert_true(
        kernel_named(p->forward, p->n_forward, "maxpool")->work.write_bytes == (2 + 8) * pooled);
    assert_true(kernel_named(p->backward, p->n_backward, "bn1.wgrad")->work.read_bytes ==
                2 * stem + statistics);
    assert_true(kernel_named(p->backward, p->n_backward, "bn1.dgrad")->work.read_bytes ==
                2 * stem + statistics);
    /* images are no parameter and need no gradient */
    for (int i = 0; i < p->n_backward; i++)
        assert_string_not_equal(p->backward[i].name, "conv1.dgrad");
    arena_release(&r.arena);
}

/* The tensor in place of whose values ReLU writes is one buffer: a block of ResNet keeps, of its
 * results, the outputs of its three convolutions, of three norms, and nothing for the ReLUs and the
 * sum. */
static void relu_and_sum_in_place_keep_nothing(void **state)
{
    (void)state;
    struct run r = {.arena = ARENA_INIT};
    lay_out(&r, &small_resnet, BATCH);
    const struct model_program *p = r.segments.at[2].program; /* layer1.1: no shortcut */
    double bytes = 0, positions = 2.0 * BATCH * 16 * 16, vectors = 2 * 4 * (8 + 8 + 16);
    for (int i = 0; i < p->n_activations; i++)
        if (!p->activations[i].born_in_backward && p->activations[i].backward_last >= 0)
            bytes += (double)p->activations[i].bytes;
    assert_true(bytes == positions * 2 * (8 + 8 + 16) + vectors);
    arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_flop_is_the_published),
        cmocka_unit_test(vits_forward_flop_is_the_closed_form),
        cmocka_unit_test(convolutions_are_implicit_products),
        cmocka_unit_test(layouts_are_changed_for_tensor_cores),
        cmocka_unit_test(fp32_windows_run_on_winograd),
        cmocka_unit_test(norm_and_pool_move_what_pytorch_moves),
        cmocka_unit_test(relu_and_sum_in_place_keep_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
