/* A pipeline stage's share of a model: some of its blocks, and of the root what the model's ends
 * need; with the head what predicts several tokens.
 *
 * Which tensors of the root belong to which end is not written down anywhere: the programs of both
 * ends are recorded, and what their kernels use is marked. A frozen tensor has no gradient kernel,
 * so the root counts as trained for that. */
#include "model/family.h"

/* What the programs of the model's ends use of the root's tensors: bit 0 the embedding's, bit 1 the
 * head's. */
static void mark_ops(unsigned *ends, const struct model_op *ops, int n, unsigned end)
{
    for (int i = 0; i < n; i++) {
        const int used[] = {ops[i].param_use, ops[i].param_grad, ops[i].param_share};
        for (size_t k = 0; k < sizeof used / sizeof *used; k++)
            if (used[k] >= 0)
                ends[used[k]] |= end;
    }
}

/* As if all of the root were trained: of what is frozen no kernel says that it is used. */
static struct model root_trained(const struct model *model, struct arena *arena)
{
    struct model out = *model;
    out.tensors = ARENA_ARRAY(arena, struct model_tensor, model->n_tensors);
    for (int t = 0; t < model->n_tensors; t++) {
        out.tensors[t] = model->tensors[t];
        out.tensors[t].frozen = out.tensors[t].frozen && out.tensors[t].layer != 0;
    }
    return out;
}

static unsigned *find_ends(
    const struct model *model, const struct model_workload *workload, struct arena *arena)
{
    unsigned *ends = ARENA_ARRAY(arena, unsigned, model->layers[0].n_tensors);
    struct model whole = root_trained(model, arena);
    struct model_segments segments;
    model_segments(&segments, &whole, workload, arena);
    for (int s = 0; s < segments.n; s++) {
        const struct model_program *program = segments.at[s].program;
        if (segments.at[s].kind == SEGMENT_BLOCK)
            continue;
        unsigned end = segments.at[s].kind == SEGMENT_ENTRY ? MODEL_ENTRY : MODEL_EXIT;
        mark_ops(ends, program->forward, program->n_forward, end);
        mark_ops(ends, program->backward, program->n_backward, end);
    }
    return ends;
}

/* Append a layer, of the root only the tensors of these ends (NULL: all). */
static void copy_layer(struct model *out, const struct model *model, int layer,
    const unsigned *tensor_ends, unsigned ends)
{
    struct model_layer *copy = &out->layers[out->n_layers];
    *copy = model->layers[layer];
    copy->first_tensor = out->n_tensors;
    copy->n_tensors = 0;
    copy->params = copy->trained = 0;
    for (int t = 0; t < model->layers[layer].n_tensors; t++) {
        const struct model_tensor *from = &model->tensors[model->layers[layer].first_tensor + t];
        if (tensor_ends && !(tensor_ends[t] & ends))
            continue;
        struct model_tensor *to = &out->tensors[out->n_tensors++];
        *to = *from;
        to->layer = out->n_layers;
        copy->n_tensors++;
        copy->params += to->numel;
        copy->trained += to->frozen ? 0 : to->numel;
    }
    copy->alike = out->n_layers;
    for (int i = 1; i < out->n_layers; i++)
        if (model->layers[out->layers[i].number].alike == model->layers[layer].alike) {
            copy->alike = i;
            break;
        }
    out->params += copy->params;
    out->trained += copy->trained;
    out->n_layers++;
}

void model_stage(struct model *out, const struct model *model, const struct model_stage *stage,
    const struct model_workload *workload, struct arena *arena)
{
    BUG_IF(model->n_chunks > 0, "a stage of a stage");
    int n_blocks = 0, n_mtp = stage->ends & MODEL_EXIT ? (int)model->shape.mtp_layers : 0;
    for (int c = 0; c < stage->n_chunks; c++)
        n_blocks += stage->chunks[c].n;
    *out = *model;
    out->layers = ARENA_ARRAY(arena, struct model_layer, 1 + n_blocks + n_mtp);
    out->tensors = ARENA_ARRAY(arena, struct model_tensor, model->n_tensors);
    out->chunks = ARENA_ARRAY(arena, int, stage->n_chunks);
    out->n_layers = out->n_tensors = 0;
    out->params = out->trained = 0;
    out->ends = stage->ends;
    copy_layer(out, model, 0, find_ends(model, workload, arena), stage->ends);
    for (int c = 0; c < stage->n_chunks; c++) {
        out->chunks[out->n_chunks++] = out->n_layers;
        for (int i = 0; i < stage->chunks[c].n; i++)
            copy_layer(out, model, 1 + stage->chunks[c].first + i, NULL, 0);
    }
    for (int i = 0; i < n_mtp; i++)
        copy_layer(out, model, 1 + model_blocks(model) + i, NULL, 0);
}

const struct model_program *model_border(int64_t output_bytes, struct arena *arena)
{
    struct model_program *border = ARENA_NEW(arena, struct model_program);
    border->n_activations = 2;
    border->activations = ARENA_ARRAY(arena, struct model_activation, border->n_activations);
    border->activations[0] = (struct model_activation){
        .name = "received", .bytes = output_bytes, .forward_last = -1, .backward_last = -1};
    border->activations[1] = (struct model_activation){.name = "received.grad",
        .bytes = output_bytes,
        .born_in_backward = true,
        .forward_last = -1,
        .backward_last = -1};
    border->output = 0;
    border->output_bytes = output_bytes;
    border->input_grad = -1;
    border->output_grad = 1;
    return border;
}
