/* Convolution nets: ResNet v1.5, ResNeXt and RegNet-Y as torchvision builds them (models/resnet.py,
 * regnet.py; ResNet: Kaiming He et al., arXiv 1512.03385; ResNeXt: 1611.05431; RegNet: 2003.13678).
 * Names are ResNet's; RegNet's tensors are called differently there
 * ("trunk_output.block1.block1-0.f.a.0.weight"), and come in the same order except for the
 * shortcut, which stands first. A layer that FSDP can wrap is one residual block; stem and
 * classifier are the root.
 *
 * Kernels are those of channels_last in eager mode: ReLU and the residual sum in place, as
 * torchvision writes them. */
#include "model/family.h"

static void convnet_norm_tensors(struct model_builder *b, const char *name, int64_t channels)
{
    build_tensor(b, arena_printf(b->arena, "%s.weight", name), channels, 1);
    build_tensor(b, arena_printf(b->arena, "%s.bias", name), channels, 1);
    b->n_batch_norms++;
    b->batch_norm_channels += channels;
}

static void conv_tensors(struct model_builder *b, int i, int64_t in, int64_t out, int64_t window)
{
    build_tensor(b, arena_printf(b->arena, "conv%d.weight", i), out, in * window);
    convnet_norm_tensors(b, arena_printf(b->arena, "bn%d", i), out);
}

static void squeeze_tensors(struct model_builder *b, int64_t channels, int64_t squeezed)
{
    build_tensor(b, "se.fc1.weight", squeezed, channels);
    build_tensor(b, "se.fc1.bias", squeezed, 1);
    build_tensor(b, "se.fc2.weight", channels, squeezed);
    build_tensor(b, "se.fc2.bias", channels, 1);
}

/* A residual block: where it stands and what goes in and out. */
struct place {
    int stage, index; /* within its stage */
    const struct model_conv_stage *shape;
    int64_t in, size; /* channels; positions along a side */
    int stride;
};

/* ResNet's stem halves the image twice, so its first stage does not; RegNet's halves it once. */
static int stage_stride(const struct model_conv *conv, int stage)
{
    return stage == 0 && conv->stem_pool ? 1 : 2;
}

static int64_t halved(int64_t size)
{
    return (size + 1) / 2;
}

static int64_t stem_size(const struct model_shape *s)
{
    return s->conv.stem_pool ? halved(halved(s->image_size)) : halved(s->image_size);
}

/* layer: of the model, 1 .. number of blocks. */
static struct place convnet_place_of(const struct model_shape *s, int layer)
{
    struct place at = {.shape = &s->conv.stages[0],
        .in = s->conv.stem_width,
        .size = stem_size(s),
        .index = layer - 1};
    while (at.index >= (int)at.shape->blocks) {
        at.index -= (int)at.shape->blocks;
        at.in = at.shape->width;
        at.size = stage_stride(&s->conv, at.stage) == 2 ? halved(at.size) : at.size;
        at.stage++;
        BUG_IF(at.stage >= MODEL_CONV_STAGES, "layer %d is beyond the last block", layer);
        at.shape++;
    }
    at.stride = at.index == 0 ? stage_stride(&s->conv, at.stage) : 1;
    if (at.index > 0) {
        at.in = at.shape->width;
        at.size = stage_stride(&s->conv, at.stage) == 2 ? halved(at.size) : at.size;
    }
    return at;
}

static bool has_shortcut(const struct place *at)
{
    return at->stride != 1 || at->in != at->shape->width;
}

static int64_t squeezed_width(const struct model_shape *s, const struct place *at)
{
    return (int64_t)(s->conv.squeeze * (double)at->in + 0.5);
}

static void convnet_block_tensors(struct model_builder *b, int layer)
{
    enum { WINDOW = 3 * 3 };
    const struct model_shape *s = b->shape;
    struct place at = convnet_place_of(s, layer);
    const struct model_conv_stage *stage = at.shape;
    build_layer(
        b, LAYER_ENCODER_BLOCK, arena_printf(b->arena, "layer%d.%d", at.stage + 1, at.index));
    if (s->conv.block == CONV_BASIC) {
        conv_tensors(b, 1, at.in, stage->width, WINDOW);
        conv_tensors(b, 2, stage->width, stage->width, WINDOW);
    } else {
        conv_tensors(b, 1, at.in, stage->inner, 1);
        conv_tensors(b, 2, stage->inner / stage->groups, stage->inner, WINDOW);
        if (s->conv.squeeze > 0)
            squeeze_tensors(b, stage->inner, squeezed_width(s, &at));
        conv_tensors(b, 3, stage->inner, stage->width, 1);
    }
    if (!has_shortcut(&at))
        return;
    build_tensor(b, "downsample.0.weight", stage->width, at.in);
    convnet_norm_tensors(b, "downsample.1", stage->width);
}

static int convnet_blocks_of(const struct model_conv *conv)
{
    int64_t n = 0;
    for (int i = 0; i < MODEL_CONV_STAGES; i++)
        n += conv->stages[i].blocks;
    return (int)n;
}

static int stem_kernel(const struct model_conv *conv)
{
    return conv->stem_pool ? 7 : 3;
}

static void convnet_layers(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    int64_t kernel = stem_kernel(&s->conv), last = s->conv.stages[MODEL_CONV_STAGES - 1].width;
    build_layer(b, LAYER_ROOT, "root");
    build_tensor(b, "conv1.weight", s->conv.stem_width, COLOURS * kernel * kernel);
    convnet_norm_tensors(b, "bn1", s->conv.stem_width);
    build_tensor(b, "fc.weight", s->classes, last);
    build_tensor(b, "fc.bias", s->classes, 1);
    for (int i = 1; i <= convnet_blocks_of(&s->conv); i++)
        convnet_block_tensors(b, i);
}

static int conv_norm(struct tape *t, int i, int x, struct tape_window window)
{
    static const char *const convs[] = {"conv1", "conv2", "conv3"}, *const norms[] = {
                                                                        "bn1", "bn2", "bn3"};
    return tape_batch_norm(t, norms[i - 1], tape_conv(t, convs[i - 1], x, window));
}

/* SqueezeExcitation: a factor for each channel of an image. */
static int squeeze(struct tape *t, int x, int64_t images)
{
    int s = tape_pool(t, "se.avgpool", TAPE_POOL_MEAN, x, images);
    s = tape_map(t, "se.relu", TAPE_RELU, tape_linear(t, "se.fc1", s));
    s = tape_map(t, "se.sigmoid", TAPE_SIGMOID, tape_linear(t, "se.fc2", s));
    return tape_mul(t, "se.scale", x, s);
}

static int convnet_block(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    struct place at = convnet_place_of(s, c->layer);
    int64_t images = c->workload->micro_batch;
    struct tape_window window = {
        .images = images, .size = at.size, .kernel = 1, .stride = 1, .groups = 1};
    int x = tape_input(t, "x", images * at.size * at.size, at.in), out = x;
    if (s->conv.block == CONV_BOTTLENECK)
        out = tape_map_in_place(t, "relu1", TAPE_RELU, conv_norm(t, 1, out, window));
    window.kernel = 3;
    window.stride = at.stride;
    window.groups = s->conv.block == CONV_BASIC ? 1 : at.shape->groups;
    int first = s->conv.block == CONV_BASIC ? 1 : 2;
    out = tape_map_in_place(t, "relu2", TAPE_RELU, conv_norm(t, first, out, window));
    if (s->conv.squeeze > 0)
        out = squeeze(t, out, images);
    window = (struct tape_window){.images = images,
        .size = tape_window_size(&window),
        .kernel = s->conv.block == CONV_BASIC ? 3 : 1,
        .stride = 1,
        .groups = 1};
    out = conv_norm(t, first + 1, out, window);
    if (has_shortcut(&at)) {
        struct tape_window shortcut = {
            .images = images, .size = at.size, .kernel = 1, .stride = at.stride, .groups = 1};
        x = tape_batch_norm(t, "downsample.1", tape_conv(t, "downsample.0", x, shortcut));
    }
    return tape_map_in_place(t, "relu", TAPE_RELU, tape_add_in_place(t, "residual", out, x));
}

static int convnet_entry(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    int64_t images = c->workload->micro_batch;
    struct tape_window window = {.images = images,
        .size = s->image_size,
        .kernel = stem_kernel(&s->conv),
        .stride = 2,
        .groups = 1};
    int x = tape_images(t, "images", images * s->image_size * s->image_size, COLOURS);
    x = conv_norm(t, 1, tape_cast_to_storage(t, "images.to", x), window);
    x = tape_map_in_place(t, "relu", TAPE_RELU, x);
    if (!s->conv.stem_pool)
        return x;
    int64_t size = stem_size(s);
    return tape_pool(t, "maxpool", TAPE_POOL_MAX, x, images * size * size);
}

static int convnet_forward(const struct segment_context *c)
{
    const struct model_shape *s = c->shape;
    int64_t images = c->workload->micro_batch;
    if (c->kind == SEGMENT_ENTRY)
        return convnet_entry(c);
    if (c->kind == SEGMENT_BLOCK)
        return convnet_block(c);
    BUG_IF(c->kind != SEGMENT_EXIT, "a convolution net has one stack");
    struct place last = convnet_place_of(s, convnet_blocks_of(&s->conv));
    int64_t size = last.stride == 2 ? halved(last.size) : last.size;
    int x = tape_input(c->tape, "x", images * size * size, last.shape->width);
    x = tape_pool(c->tape, "avgpool", TAPE_POOL_MEAN, x, images);
    return tape_cross_entropy(c->tape, "loss", tape_linear(c->tape, "fc", x));
}

static const char *convnet_check(const struct model_shape *s, size_t *offset)
{
    *offset = offsetof(struct model_shape, conv);
    if (s->conv.squeeze > 0 && s->conv.block == CONV_BASIC)
        return "squeeze belongs to bottleneck blocks";
    for (int i = 0; i < MODEL_CONV_STAGES; i++) {
        const struct model_conv_stage *stage = &s->conv.stages[i];
        if (stage->blocks == 0)
            return "a convolution net has four stages: give stage1 to stage4";
        if (stage->inner % stage->groups)
            return "the groups of a stage divide its inner width";
        if (i > 0 && stage->width <= s->conv.stages[i - 1].width)
            return "each stage is wider than the one before it"; /* blocks of one shape have one
                                                                    program */
    }
    return NULL;
}

const struct model_family_code model_family_convnet = {
    .defaults = {.family = MODEL_CONVNET,
        .image_size = 224,
        .classes = 1000,
        .conv = {.stem_width = 64, .stem_pool = true}},
    .layers = convnet_layers,
    .forward = convnet_forward,
    .check = convnet_check,
};
