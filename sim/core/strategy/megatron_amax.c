/* megatron.fp8_amax_reduce: the scales of TransformerEngine's delayed scaling
 * (transformer_engine/pytorch/fp8.py of 1.11, reduce_and_update_fp8_tensors at the exit of
 * fp8_autocast, which Megatron-Core enters for each chunk of a micro-batch, and once in its
 * backward pass). The largest values of all tensors are all-reduced at once over TP, CP and DP, the
 * compute stream waits, and a kernel updates their histories. The process group is a separate one,
 * so they do not stand behind reductions of gradients. Ignored: that of a recomputation. */
#include "strategy/megatron.h"

/* Of a matrix: input, weight and output forward; gradients of output and input backward; values
 * kept of each. */
enum { FORWARD_SCALES = 3, BACKWARD_SCALES = 2, AMAX_HISTORY = 1024 };

/* Of the matrices of a chunk in the mean: some kB, all of it latency. */
static void reduce_amax(struct emit *emit, int scales, const char *name)
{
    struct megatron *self = emit->state;
    const unsigned axes = AXES_DENSE | 1U << AXIS_TP;
    if (self->scaled == 0 || emit_degree(emit, axes) == 1)
        return;
    double values = (double)(self->scaled * scales) / emit->schedule.chunks;
    plan_wait op = emit_collective(emit, plan_queue(&emit->builder, "amax", QUEUE_COMM),
        plan_last_op(&emit->builder, STREAM_COMPUTE), name, COLL_ALL_REDUCE, values * FLOAT_BYTES,
        emit_group(emit, "amax", axes));
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, op);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "fp8_scales",
        values * AMAX_HISTORY * FLOAT_BYTES, values * AMAX_HISTORY * FLOAT_BYTES);
}

void megatron_reduce_amax_forward(struct emit *emit, int segment)
{
    int end = emit->chunk_begin[emit->cell.chunk + 1], next = segment + 1;
    while (next < end && emit->segments.at[next].kind == SEGMENT_BORDER)
        next++;
    if (next == end)
        reduce_amax(emit, FORWARD_SCALES, "amax.forward/all_reduce");
}

void megatron_reduce_amax_backward(struct emit *emit)
{
    if (emit->cell.kind != CELL_BACKWARD_WEIGHT)
        reduce_amax(emit, BACKWARD_SCALES, "amax.backward/all_reduce");
}
