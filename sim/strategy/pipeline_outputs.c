/* What the model gives back, by micro-batch (pipeline.h, merge_outputs). */
#include "strategy/pipeline.h"

/* Bytes of the logits; 0: this chunk has no head. */
static int64_t output_bytes(const struct emit *emit, struct cell cell)
{
    const struct model_segment *last = &emit->segments.at[emit->chunk_begin[cell.chunk + 1] - 1];
    if (last->kind != SEGMENT_EXIT)
        return 0;
    for (int k = last->program->n_forward - 1; k >= 0; k--) {
        const struct model_op *op = &last->program->forward[k];
        if (op->kind == MODEL_KERNEL && op->work.kind == KERNEL_GEMM)
            return op->work.m * op->work.n * op->work.batch * dtype_bytes(emit->workload.storage);
    }
    return 0;
}

void pipeline_keep_output(struct emit *emit, struct cell cell)
{
    const struct parallelism_options *options = &emit->options->parallelism;
    int64_t bytes = options->pipeline > 1 && options->merge_outputs ? output_bytes(emit, cell) : 0;
    if (bytes == 0)
        return;
    int buffer = plan_alloc(&emit->builder, STREAM_COMPUTE, "output_chunks", bytes, HBM_ACTIVATIONS);
    vec_push(&emit->outputs, buffer);
    emit->output_bytes += bytes;
}

void pipeline_merge_outputs(struct emit *emit)
{
    if (emit->outputs.n == 0)
        return;
    double bytes = (double)emit->output_bytes;
    int merged = plan_alloc(&emit->builder, STREAM_COMPUTE, "merge_outputs", emit->output_bytes, HBM_ACTIVATIONS);
    plan_kernel(&emit->builder, STREAM_COMPUTE, "merge_outputs", kernel_stream(KERNEL_COPY, bytes, bytes, 0),
        emit->options->host.kernel_issue_s);
    emit_free(emit, &merged, PLAN_NO_OP);
    for (int i = 0; i < emit->outputs.n; i++)
        emit_free(emit, &emit->outputs.at[i], PLAN_NO_OP);
    vec_free(&emit->outputs);
    emit->output_bytes = 0;
}
