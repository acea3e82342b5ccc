/* Low-rank adapters beside the matrices of a model. */
#include "model/model.h"

#include "base/vec.h"

#include <string.h>

double model_nf4_bytes(int64_t numel)
{
    enum { MILLIBITS_A_BYTE = 8000 };
    return (double)numel * MODEL_NF4_MILLIBITS / MILLIBITS_A_BYTE;
}

bool model_is_block_matrix(const struct model *model, const struct model_tensor *tensor)
{
    return model->layers[tensor->layer].role != LAYER_ROOT && tensor->cols > 1;
}

/* The linear layer of a tensor ("q_proj" of "model.layers.0.self_attn.q_proj.weight") stands in the list. */
bool model_is_target(const struct model *model, const struct model_tensor *tensor, const char *targets)
{
    const char *end = strrchr(tensor->name, '.');
    if (!model_is_block_matrix(model, tensor) || !end)
        return false;
    const char *start = end;
    while (start > tensor->name && start[-1] != '.')
        start--;
    size_t n = (size_t)(end - start);
    for (const char *at = targets; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncmp(at, start, n) == 0)
            return true;
    return !targets;
}

typedef VEC(struct model_tensor) tensor_list;

static void add_adapters(
    tensor_list *list, const struct model *model, const struct model_tensor *beside, int64_t rank, struct arena *arena)
{
    int module = (int)(strrchr(beside->name, '.') - beside->name);
    bool transposed = model->shape.family == MODEL_GPT; /* Conv1D: in x out */
    int64_t in = transposed ? beside->rows : beside->cols, out = transposed ? beside->cols : beside->rows;
    const char *a = arena_printf(arena, "%.*s.lora_A.weight", module, beside->name);
    const char *b = arena_printf(arena, "%.*s.lora_B.weight", module, beside->name);
    vec_push(list, (struct model_tensor){a, rank, in, rank * in, beside->layer, false});
    vec_push(list, (struct model_tensor){b, out, rank, out * rank, beside->layer, false});
}

void model_adapt(struct model *out, const struct model *model, int64_t rank, const char *targets, struct arena *arena)
{
    *out = *model;
    if (rank == 0)
        return;
    tensor_list list = {0};
    out->layers = ARENA_ARRAY(arena, struct model_layer, model->n_layers);
    out->trained = 0;
    for (int l = 0; l < model->n_layers; l++) {
        struct model_layer *layer = &out->layers[l];
        *layer = model->layers[l];
        layer->first_tensor = list.n;
        layer->trained = 0;
        for (int t = 0; t < model->layers[l].n_tensors; t++) {
            struct model_tensor tensor = model->tensors[model->layers[l].first_tensor + t];
            tensor.frozen = true;
            vec_push(&list, tensor);
            if (!model_is_target(model, &tensor, targets))
                continue;
            add_adapters(&list, model, &tensor, rank, arena);
            layer->trained += rank * (tensor.rows + tensor.cols);
        }
        layer->n_tensors = list.n - layer->first_tensor;
        layer->params += layer->trained;
        out->trained += layer->trained;
    }
    out->params += out->trained;
    out->n_tensors = list.n;
    out->tensors = ARENA_ARRAY(arena, struct model_tensor, list.n);
    if (list.n > 0)
        memcpy(out->tensors, list.at, sizeof *list.at * (size_t)list.n);
    vec_free(&list);
}
