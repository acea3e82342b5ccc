/* Operations on images: convolutions as products whose operand is gathered, batch norm, pooling,
 * what is learned and added or put in front.
 *
 * A convolution is a GEMM with the bytes of its tensors, not of the unfolded matrix, and
 * conv_efficiency of its rate (gathers). Its gradient for the input is a product for each phase of
 * the stride. Changes of layout around tensor cores and Winograd's fewer multiplications are
 * applied at each of the three products. */
#include "model/tape_core.h"

enum {
    NORM_STATISTICS_OPS = 4, /* sum, difference, square, sum */
    NORM_APPLY_OPS = 4,      /* centre, scale, weight, bias */
    NORM_GRAD_SUMS_OPS = 4,  /* sum g, normalise, g x, sum */
    BATCH_NORM_GRAD_OPS = 6, /* (g - mean g - x mean gx) scale */
};

static int64_t strided(int64_t positions, int64_t stride)
{
    return (positions + stride - 1) / stride;
}

int64_t tape_window_size(const struct tape_window *window)
{
    return strided(window->size, window->stride);
}

/* A product whose operand is gathered: bytes are those of the tensors, not those of the unfolded
 * matrix. */
static void launch_conv(struct tape *tape, const char *name, const struct tape_op *op,
    struct kernel_work work, double read_bytes, double write_bytes, const int *buffers)
{
    work.gathers = true;
    work.flop = 2.0 * (double)(op->m * op->n * op->batch) * (double)op->k;
    work.read_bytes = read_bytes;
    work.write_bytes = write_bytes;
    tape_launch(tape, name, work, work.flop * tape_tensor(tape, op->weight)->counted, buffers);
}

static struct kernel_work tape_image_product(
    const struct tape *tape, int64_t m, int64_t n, int64_t k, int64_t groups)
{
    return kernel_gemm(
        m, n, k, groups, tape->workload->math, tape->storage_bytes, tape->storage_bytes);
}

static double tape_image_bytes_of(const struct tape *tape, int buffer)
{
    return (double)tape->buffers.at[buffer].life.bytes;
}

static double weight_bytes(const struct tape *tape, int param)
{
    return (double)(tape_tensor(tape, param)->numel * tape->storage_bytes);
}

/* cuDNN's change of layout before or after a kernel on tensor cores. */
static void relayout(struct tape *tape, const char *name, int buffer)
{
    const struct model_workload *w = tape->workload;
    if (w->channels_last || w->math == DTYPE_FP32 || w->fusion == FUSION_INDUCTOR)
        return;
    double bytes = tape_image_bytes_of(tape, buffer);
    tape_launch(tape, tape_suffix(tape, name, "relayout"),
        kernel_stream(KERNEL_COPY, bytes, bytes, 0), 0, BUFFERS(buffer));
}

/* Elements to sum over; fewer if the window is one of 3 x 3 that runs on Winograd's. */
static int64_t summed(
    const struct tape *tape, const struct tape_op *op, int64_t channels, int64_t elements)
{
    enum { WINDOW = 3 * 3, DIRECT = 36, WINOGRAD = 16 }; /* multiplications for 2 x 2 results */
    bool winograd = tape->workload->math == DTYPE_FP32 && op->batch == 1 && op->choice == 1 &&
                    op->k == WINDOW * channels;
    return winograd ? elements * WINOGRAD / DIRECT : elements;
}

/* Of the parameters. */
static void conv_gradients(struct tape *tape, const struct tape_op *op, int grad)
{
    struct tape_value in = tape_at(tape, op->in[0]);
    const char *name = tape_suffix(tape, op->name, "wgrad");
    relayout(tape, name, grad);
    relayout(tape, name, in.buffer);
    launch_conv(tape, name, op,
        tape_image_product(
            tape, op->n, op->k, summed(tape, op, in.cols / op->batch, op->m), op->batch),
        tape_image_bytes_of(tape, grad) + tape_image_bytes_of(tape, in.buffer),
        weight_bytes(tape, op->weight), BUFFERS(grad, in.buffer));
    tape_complete(tape, op->weight);
    tape_bias_gradient(tape, op, grad, op->n * op->batch);
}

/* op: m positions of the output, n channels of it in a group, k the window in a group, batch the
 * groups, choice the phases of the stride: a position of the input sees one of choice parts of the
 * window (none sees it all, none is skipped: kernels of 1 have one phase, and the positions between
 * are zeros). */
static void conv_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op), x = op->in[0];
    struct tape_value in = tape_at(tape, x);
    if (in.needs_grad) {
        const char *name = tape_suffix(tape, op->name, "dgrad");
        relayout(tape, name, grad);
        int grad_x = tape_new_grad(tape, x);
        int64_t channels = in.cols / op->batch, window = op->n * (op->k / channels);
        window = summed(tape, op, channels, window);
        launch_conv(tape, name, op,
            tape_image_product(tape, op->m * op->choice, channels,
                (window + op->choice - 1) / op->choice, op->batch),
            tape_image_bytes_of(tape, grad) + weight_bytes(tape, op->weight),
            tape_image_bytes_of(tape, grad_x), BUFFERS(grad, grad_x));
        tape_use(tape, op->weight);
        relayout(tape, name, grad_x);
        tape_give(tape, x, grad_x);
    }
    if (tape_trains(tape, op->weight))
        conv_gradients(tape, op, grad);
}

int tape_conv(struct tape *tape, const char *name, int x, struct tape_window window)
{
    struct tape_value in = tape_at(tape, x);
    int64_t width = window.width ? window.width : window.size,
            step = window.kernel < window.stride ? window.kernel : window.stride;
    struct tape_op op = {.backward = conv_backward,
        .name = tape_name(tape, name),
        .in = {x},
        .weight = tape_find(tape, name, "weight"),
        .bias = tape_find(tape, name, "bias"),
        .m = window.images * tape_window_size(&window) * strided(width, window.stride),
        .k = in.cols / window.groups * window.kernel * window.kernel,
        .batch = window.groups,
        .choice = (int)(step * step)};
    BUG_IF(op.weight == NO_PARAM, "layer %d has no %s.weight", tape->layer, op.name);
    const struct model_tensor *weight = tape_tensor(tape, op.weight);
    BUG_IF(weight->cols != op.k || in.rows != window.images * window.size * width ||
               in.cols % window.groups,
        "%s: %ld positions of %ld channels do not fit a window of %ld weights", op.name,
        (long)in.rows, (long)in.cols, (long)weight->cols);
    op.n = weight->rows / window.groups;
    relayout(tape, op.name, in.buffer);
    bool needs_grad = in.needs_grad || tape_trains(tape, op.weight);
    op.out = tape_value(tape, op.name, op.m, weight->rows, tape->storage_bytes, needs_grad);
    int out = tape_at(tape, op.out).buffer;
    int64_t window_k = summed(tape, &op, in.cols, op.k);
    launch_conv(tape, op.name, &op, tape_image_product(tape, op.m, op.n, window_k, op.batch),
        tape_image_bytes_of(tape, in.buffer) + weight_bytes(tape, op.weight),
        tape_image_bytes_of(tape, out), BUFFERS(in.buffer, out));
    tape_use(tape, op.weight);
    relayout(tape, op.name, out);
    if (op.bias != NO_PARAM)
        tape_elementwise(tape, tape_suffix(tape, op.name, "bias"), 1, out, NO_BUFFER, out);
    tape_push(tape, op);
    return op.out;
}

/* struct model_op names one parameter: the weight is named by the kernel that sums both gradients,
 * the bias by the one after it. Frozen, it still needs the sums for the gradient of its input. */
static void batch_norm_backward(struct tape *tape, const struct tape_op *op)
{
    struct tape_value x = tape_at(tape, op->in[0]);
    int grad = tape_grad(tape, op), grad_x = tape_new_grad(tape, op->in[0]);
    tape_run(tape, (struct tape_stream){.kind = KERNEL_NORM,
                       .name = tape_suffix(tape, op->name, "wgrad"),
                       .ops = NORM_GRAD_SUMS_OPS,
                       .reads = BUFFERS(grad, x.buffer, op->saved[0]),
                       .write = NO_BUFFER,
                       .param_bytes = 2 * (double)(x.cols * FLOAT_BYTES)});
    if (tape_trains(tape, op->weight))
        tape_complete(tape, op->weight);
    tape_pass(tape, KERNEL_NORM, tape_suffix(tape, op->name, "dgrad"), BATCH_NORM_GRAD_OPS,
        BUFFERS(grad, x.buffer, op->saved[0]), grad_x);
    if (tape_trains(tape, op->bias))
        tape_complete(tape, op->bias);
    tape_give(tape, op->in[0], grad_x);
}

int tape_batch_norm(struct tape *tape, const char *name, int x)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {.backward = batch_norm_backward,
        .name = tape_name(tape, name),
        .in = {x},
        .weight = tape_find(tape, name, "weight"),
        .bias = tape_find(tape, name, "bias")};
    BUG_IF(
        op.weight == NO_PARAM || op.bias == NO_PARAM, "layer %d has no %s", tape->layer, op.name);
    op.saved[0] =
        tape_buffer(tape, tape_suffix(tape, op.name, "mean_rstd"), 2, in.cols, FLOAT_BYTES);
    tape_pass(tape, KERNEL_NORM, tape_suffix(tape, op.name, "statistics"), NORM_STATISTICS_OPS,
        BUFFERS(in.buffer), op.saved[0]);
    op.out = tape_value(tape, op.name, in.rows, in.cols, in.element_bytes, true);
    tape_pass(tape, KERNEL_NORM, op.name, NORM_APPLY_OPS, BUFFERS(in.buffer, op.saved[0]),
        tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

/* The largest of a window remembers where it was found (64 bits); a mean has nothing to remember.
 */
static void pool_backward(struct tape *tape, const struct tape_op *op)
{
    tape_back(tape, op, KERNEL_ELEMENTWISE, 1, op->saved[0]);
}

int tape_pool(struct tape *tape, const char *name, enum tape_pool kind, int x, int64_t rows)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = {
        .backward = pool_backward, .name = tape_name(tape, name), .in = {x}, .saved = {NO_BUFFER}};
    op.out = tape_value(tape, op.name, rows, in.cols, in.element_bytes, in.needs_grad);
    if (kind == TAPE_POOL_MAX)
        op.saved[0] =
            tape_buffer(tape, tape_suffix(tape, op.name, "indices"), rows, in.cols, LONG_BYTES);
    int out = tape_at(tape, op.out).buffer;
    double written = tape_image_bytes_of(tape, out) +
                     (op.saved[0] == NO_BUFFER ? 0 : tape_image_bytes_of(tape, op.saved[0]));
    tape_launch(tape, op.name,
        kernel_stream(KERNEL_ELEMENTWISE, tape_image_bytes_of(tape, in.buffer), written,
            (double)(in.rows * in.cols)),
        0, BUFFERS(in.buffer, out, op.saved[0]));
    tape_push(tape, op);
    return op.out;
}

int tape_images(struct tape *tape, const char *name, int64_t rows, int64_t cols)
{
    int images = tape_value(tape, tape_name(tape, name), rows, cols, FLOAT_BYTES, false);
    tape->buffers.at[tape_at(tape, images).buffer].handed = true;
    tape->region = REGION_ALIKE;
    return images;
}

/* The gradient of something learned that all images share: a sum over them. */
static void give_learned(struct tape *tape, const struct tape_op *op, int grad)
{
    tape_run(tape, (struct tape_stream){.kind = KERNEL_ELEMENTWISE,
                       .name = tape_suffix(tape, op->name, "wgrad"),
                       .ops = 1,
                       .reads = BUFFERS(grad),
                       .write = NO_BUFFER,
                       .param_bytes = weight_bytes(tape, op->weight)});
    tape_complete(tape, op->weight);
}

static void prepend_backward(struct tape *tape, const struct tape_op *op)
{
    int grad = tape_grad(tape, op);
    if (tape_trains(tape, op->weight)) {
        double row_bytes = (double)(op->m * tape_at(tape, op->out).cols * tape->storage_bytes);
        tape_launch(tape, tape_suffix(tape, op->name, "wgrad"),
            kernel_stream(KERNEL_ELEMENTWISE, row_bytes, weight_bytes(tape, op->weight), 0), 0,
            BUFFERS(grad));
        tape_complete(tape, op->weight);
    }
    if (!tape_at(tape, op->in[0]).needs_grad)
        return;
    int grad_x = tape_new_grad(tape, op->in[0]);
    tape_launch(tape, tape_suffix(tape, op->name, "dgrad"),
        kernel_stream(
            KERNEL_COPY, tape_image_bytes_of(tape, grad_x), tape_image_bytes_of(tape, grad_x), 0),
        0, BUFFERS(grad, grad_x));
    tape_give(tape, op->in[0], grad_x);
}

static struct tape_op learned(struct tape *tape, const char *scope, const char *tensor, int x)
{
    struct tape_op op = {.name = tape_suffix(tape, scope, tensor), .in = {x, NO_VALUE}};
    op.weight = tape_find(tape, scope, tensor);
    BUG_IF(op.weight == NO_PARAM, "layer %d has no %s", tape->layer, op.name);
    return op;
}

int tape_prepend(struct tape *tape, const char *scope, const char *tensor, int x, int64_t images)
{
    struct tape_value in = tape_at(tape, x);
    struct tape_op op = learned(tape, scope, tensor, x);
    op.backward = prepend_backward;
    op.m = images;
    bool needs_grad = in.needs_grad || tape_trains(tape, op.weight);
    op.out = tape_value(tape, op.name, in.rows + images, in.cols, in.element_bytes, needs_grad);
    tape_pass(tape, KERNEL_COPY, op.name, 0, BUFFERS(in.buffer), tape_at(tape, op.out).buffer);
    tape_push(tape, op);
    return op.out;
}

static void add_learned_backward(struct tape *tape, const struct tape_op *op)
{
    if (tape_trains(tape, op->weight))
        give_learned(tape, op, tape_grad(tape, op));
    tape_give(tape, op->in[0], tape_grad(tape, op));
}

int tape_add_learned(struct tape *tape, const char *scope, const char *tensor, int x)
{
    struct tape_op op = learned(tape, scope, tensor, x);
    op.backward = add_learned_backward;
    struct tape_value sum = tape_at(tape, x);
    sum.needs_grad = sum.needs_grad || tape_trains(tape, op.weight);
    return tape_apply(tape, op, KERNEL_ELEMENTWISE, sum, 1);
}
