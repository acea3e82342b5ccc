/* Activations of the first blocks in host memory (train.cpu_offloading_num_layers):
 * TransformerEngine's AsyncDoubleBufferGroupOffloadHandler
 * (transformer_engine/pytorch/cpu_offload.py of 2.x), recalled.
 *
 * What a block keeps for its backward pass, its input with it, is copied to pinned host memory
 * beside the kernels: the first block's behind its forward pass, the next one's when that has been
 * waited for. Of N blocks out of M the i-th is waited for behind block (M / N) (i + 1) - 1, so that
 * copies spread over all of forward, and its memory is free from there on. Backward copies back at
 * the same places, one block at a time, and waits at the next.
 *
 * Ignored: tensors that TransformerEngine leaves on the GPU. Refused: pipelines and recomputation,
 * as Megatron-LM does. */
#include "strategy/emit.h"

struct blocks {
    int all, away; /* M, N */
};

static struct blocks offload_blocks_of(const struct emit *emit)
{
    return (struct blocks){
        emit->blocks[emit->segments.n - 1], (int)emit->options->train.cpu_offloading_num_layers};
}

/* The block behind which the copy of the i-th is waited for. Where N does not divide M, the first
 * ones have one more. */
static int waited_behind(struct blocks blocks, int i)
{
    int over = blocks.all % blocks.away;
    return blocks.all / blocks.away * (i + 1) - 1 + (i < over ? i + 1 : over);
}

/* From 0; -1: the segment is no block. */
static int block_at(const struct emit *emit, int segment)
{
    return emit->segments.at[segment].program->reruns ? emit->blocks[segment] - 1 : -1;
}

static int segment_of(const struct emit *emit, int block)
{
    int s = 0;
    while (block_at(emit, s) != block)
        s++;
    return s;
}

static int queue(struct emit *emit, bool to_host)
{
    return plan_queue(&emit->builder, to_host ? "d2h" : "h2d", QUEUE_SIDE);
}

static void offload_copy(struct emit *emit, bool to_host, int segment, double bytes)
{
    int stream = queue(emit, to_host);
    plan_stream_wait(&emit->builder, stream, plan_last_op(&emit->builder, STREAM_COMPUTE));
    emit_host_copy(emit, stream,
        emit_name(
            emit, emit->segments.at[segment].layer, to_host ? "device_to_host" : "host_to_device"),
        bytes);
}

/* All that the block keeps except its output, the input of the next block; -1: its input. */
static bool goes(const struct emit *emit, int segment, int activation)
{
    const struct model_program *at = emit->segments.at[segment].program;
    int *saved = activation < 0
                     ? &emit->saved[segment - 1][emit->segments.at[segment - 1].program->output]
                     : &emit->saved[segment][activation];
    return *saved != PLAN_NO_OP && activation != at->output;
}

static struct offloaded tensor_of(const struct emit *emit, int block, int segment, int activation)
{
    return activation < 0 ? (struct offloaded){block, segment - 1,
                                emit->segments.at[segment - 1].program->output}
                          : (struct offloaded){block, segment, activation};
}

static double offload_bytes_of(const struct emit *emit, struct offloaded at)
{
    return (double)emit->segments.at[at.segment].program->activations[at.activation].bytes;
}

static void offload_send(struct emit *emit, int block)
{
    int segment = segment_of(emit, block);
    double bytes = 0;
    for (int a = -1; a < emit->segments.at[segment].program->n_activations; a++) {
        if (!goes(emit, segment, a))
            continue;
        struct offloaded at = tensor_of(emit, block, segment, a);
        vec_push(&emit->offloaded, at);
        bytes += offload_bytes_of(emit, at);
    }
    offload_copy(emit, true, segment, bytes);
    if (emit->on_first)
        emit_keep_on_host(emit, (int64_t)bytes);
}

void offload_behind_forward(struct emit *emit, int segment)
{
    struct blocks blocks = offload_blocks_of(emit);
    int block = block_at(emit, segment);
    if (blocks.away == 0 || block < 0)
        return;
    if (block == 0)
        offload_send(emit, 0);
    if (emit->n_away == blocks.away || waited_behind(blocks, emit->n_away) != block)
        return;
    plan_stream_wait(
        &emit->builder, STREAM_COMPUTE, plan_last_op(&emit->builder, queue(emit, true)));
    for (int i = 0; i < emit->offloaded.n; i++) {
        struct offloaded at = emit->offloaded.at[i];
        if (at.block == emit->n_away)
            emit_free(emit, &emit->saved[at.segment][at.activation], PLAN_NO_OP);
    }
    if (++emit->n_away < blocks.away)
        offload_send(emit, emit->n_away);
}

/* Those of one block, which were sent last. */
static void fetch(struct emit *emit, int block)
{
    double bytes = 0;
    for (; emit->offloaded.n > 0 && emit->offloaded.at[emit->offloaded.n - 1].block == block;
         emit->offloaded.n--) {
        struct offloaded at = emit->offloaded.at[emit->offloaded.n - 1];
        emit_receive_into(emit, at.segment, at.activation);
        bytes += offload_bytes_of(emit, at);
    }
    offload_copy(emit, false, segment_of(emit, block), bytes);
}

void offload_before_backward(struct emit *emit, int segment)
{
    struct blocks blocks = offload_blocks_of(emit);
    int block = block_at(emit, segment);
    if (blocks.away == 0 || block < 0)
        return;
    bool fetches = emit->n_away > 0 && waited_behind(blocks, emit->n_away - 1) == block;
    if (fetches || block == 0)
        plan_stream_wait(
            &emit->builder, STREAM_COMPUTE, plan_last_op(&emit->builder, queue(emit, false)));
    if (fetches)
        fetch(emit, --emit->n_away);
    if (block == 0)
        plan_stream_wait(
            &emit->builder, STREAM_COMPUTE, plan_last_op(&emit->builder, queue(emit, false)));
}
