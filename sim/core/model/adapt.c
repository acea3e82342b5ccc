/* Low-rank adapters beside the matrices of a model: model_adapt() makes a model with the same
 * layers in which every tensor is frozen and each target has lora_A and lora_B behind it. Tensors
 * are renumbered, as an adapter stands behind its matrix in the list; layers that were alike stay
 * alike. An adapter's tensor is cut over ranks on the side that is not the residual stream's. */
#include "model/model.h"

#include "base/vec.h"

#include <string.h>

double model_nf4_bytes(int64_t numel)
{
    enum { MILLIBITS_A_BYTE = 8000 };
    return (double)numel * MODEL_NF4_MILLIBITS / MILLIBITS_A_BYTE;
}

/* Experts' matrices lie in one parameter, which is no linear layer's. */
static bool is_stack(const struct model_tensor *tensor)
{
    const char *last = strrchr(tensor->name, '.');
    return last && strcmp(last, ".weight") != 0;
}

bool model_is_block_matrix(const struct model *model, const struct model_tensor *tensor)
{
    bool filter = strstr(tensor->name, ".conv1d.") != NULL;
    return model->layers[tensor->layer].role != LAYER_ROOT && tensor->cols > 1 &&
           !is_stack(tensor) && !filter;
}

int64_t model_block_matrices(const struct model *model, const struct model_tensor *tensor)
{
    const struct model_moe *moe = &model->shape.moe;
    if (model_is_block_matrix(model, tensor))
        return 1;
    bool experts = tensor->cols > 1 && strstr(tensor->name, ".experts.");
    return !experts ? 0 : moe->local > 0 ? moe->local : moe->experts;
}

/* The linear layer of a tensor is called so: "q_proj" of "model.layers.0.self_attn.q_proj.weight".
 */
static bool adapt_is_called(const struct model_tensor *tensor, const char *name, size_t n)
{
    const char *end = strrchr(tensor->name, '.'), *start = end;
    while (start && start > tensor->name && start[-1] != '.')
        start--;
    return start && (size_t)(end - start) == n && strncmp(name, start, n) == 0;
}

/* The list after its first name. */
static const char *behind_name(const char *targets)
{
    targets += strcspn(targets, ",");
    return targets + (*targets == ',');
}

static bool is_target(
    const struct model *model, const struct model_tensor *tensor, const char *targets)
{
    if (!model_is_block_matrix(model, tensor))
        return false;
    for (const char *at = targets; at && *at; at = behind_name(at))
        if (adapt_is_called(tensor, at, strcspn(at, ",")))
            return true;
    return !targets;
}

bool model_is_adapter(const struct model_tensor *tensor)
{
    return strstr(tensor->name, ".lora_A.") || strstr(tensor->name, ".lora_B.");
}

bool model_takes_adapters(const struct model_shape *shape)
{
    return shape->family != MODEL_CONVNET && !shape->dhen.convolution;
}

const char *model_unknown_target(
    const struct model *model, const char *targets, struct arena *arena)
{
    if (targets && !*targets)
        return "";
    for (const char *at = targets; at && *at; at = behind_name(at)) {
        size_t n = strcspn(at, ",");
        bool known = false;
        for (int t = 0; t < model->n_tensors && !known; t++)
            known = model_is_block_matrix(model, &model->tensors[t]) &&
                    adapt_is_called(&model->tensors[t], at, n);
        if (!known)
            return arena_printf(arena, "%.*s", (int)n, at);
    }
    return NULL;
}

typedef VEC(struct model_tensor) tensor_list;

static void add_adapters(tensor_list *list, const struct model *model,
    const struct model_tensor *beside, int64_t rank, struct arena *arena)
{
    int module = (int)(strrchr(beside->name, '.') - beside->name);
    bool transposed = model->shape.family == MODEL_GPT; /* Conv1D: in x out */
    int64_t in = transposed ? beside->rows : beside->cols,
            out = transposed ? beside->cols : beside->rows;
    const char *a = arena_printf(arena, "%.*s.lora_A.weight", module, beside->name);
    const char *b = arena_printf(arena, "%.*s.lora_B.weight", module, beside->name);
    unsigned cut_in = in == model->shape.d_model ? 0 : beside->split;
    unsigned cut_out = out == model->shape.d_model ? 0 : beside->split;
    vec_push(list, (struct model_tensor){a, rank, in, rank * in, beside->layer, false, cut_in, 1});
    vec_push(
        list, (struct model_tensor){b, out, rank, out * rank, beside->layer, false, cut_out, 1});
}

void model_adapt(struct model *out, const struct model *model, int64_t rank, const char *targets,
    struct arena *arena)
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
            if (!is_target(model, &tensor, targets))
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
    vec_keep(out->tensors, &list, arena);
}
