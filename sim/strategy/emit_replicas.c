/* Gradients that ranks hold in common beside data parallelism: of a tied table on both ends of a pipeline, and of what
 * tensor parallelism does not cut. */
#include "strategy/emit.h"

plan_wait emit_all_reduce(struct emit *emit, const char *name, double bytes, int group, enum plan_parallelism serves)
{
    emit->builder.serves = serves;
    plan_wait op = emit_collective(
        emit, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE), name, COLL_ALL_REDUCE, bytes, group);
    emit->builder.serves = PARALLEL_DATA;
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, op);
    return op;
}

plan_wait emit_add_over_model(struct emit *emit, const char *what, double bytes)
{
    plan_wait tensor = emit_all_reduce(emit, arena_printf(emit->arena, "%s/all_reduce.tp", what), bytes,
        emit_group(emit, "tp", 1U << AXIS_TP), PARALLEL_TENSOR);
    plan_wait pipeline = emit_all_reduce(emit, arena_printf(emit->arena, "%s/all_reduce.pp", what), bytes,
        emit_group(emit, "pp", 1U << AXIS_PP), PARALLEL_PIPELINE);
    return pipeline != PLAN_NO_OP ? pipeline : tensor;
}

int64_t emit_partial_elements(const struct emit *emit)
{
    int64_t elements = 0;
    for (int s = 0; s < emit->segments.n; s++) {
        const struct model_segment *at = &emit->segments.at[s];
        for (int k = 0; k < at->program->n_backward; k++) {
            const struct model_op *op = &at->program->backward[k];
            if (op->param_grad >= 0 && op->partial)
                elements += emit->model->tensors[at->tensor_base + op->param_grad].numel;
        }
    }
    return elements;
}

void emit_reduce_tied_embedding(struct emit *emit, int64_t element_bytes)
{
    const struct schedule *at = &emit->schedule;
    bool ends = at->stage == 0 || at->stage == at->stages - 1;
    if (at->stages == 1 || !ends || !emit->model->shape.tied_embeddings)
        return;
    int group =
        plan_group_of(&emit->builder, "embedding", mesh_pair(&emit->builder.plan->mesh, AXIS_PP, 0, at->stages - 1));
    int64_t numel = emit->model->tensors[0].numel; /* the root begins with the table of words */
    emit_all_reduce(emit, "embedding.grad/all_reduce", (double)(numel * element_bytes), group, PARALLEL_PIPELINE);
}
