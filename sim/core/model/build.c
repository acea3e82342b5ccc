/* Layers and tensors out of a shape. */
#include "model/family.h"

#include <string.h>

const char *const model_family_names[MODEL_FAMILY_COUNT + 1] = {[MODEL_T5] = "t5",
    [MODEL_GPT] = "gpt",
    [MODEL_LLAMA] = "llama",
    [MODEL_NEOX] = "neox",
    [MODEL_BERT] = "bert",
    [MODEL_VIT] = "vit",
    [MODEL_CONVNET] = "convnet",
    [MODEL_DHEN] = "dhen"};
const char *const conv_block_names[CONV_BLOCK_COUNT + 1] = {
    [CONV_BASIC] = "basic", [CONV_BOTTLENECK] = "bottleneck"};

const struct model_family_code *model_family_code(const struct model_shape *shape)
{
    static const struct model_family_code *const families[MODEL_FAMILY_COUNT] = {
        [MODEL_T5] = &model_family_t5,
        [MODEL_GPT] = &model_family_gpt,
        [MODEL_LLAMA] = &model_family_llama,
        [MODEL_NEOX] = &model_family_neox,
        [MODEL_BERT] = &model_family_bert,
        [MODEL_VIT] = &model_family_vit,
        [MODEL_CONVNET] = &model_family_convnet,
        [MODEL_DHEN] = &model_family_dhen};
    BUG_IF(shape->family < 0 || shape->family >= MODEL_FAMILY_COUNT, "family %d", shape->family);
    return families[shape->family];
}

void build_layer(struct model_builder *builder, enum layer_role role, const char *name)
{
    struct model_layer layer = {.name = name, .role = role, .first_tensor = builder->tensors.n};
    vec_push(&builder->layers, layer);
}

void build_tensor(struct model_builder *builder, const char *name, int64_t rows, int64_t cols)
{
    int owner = builder->layers.n - 1;
    struct model_layer *layer = &builder->layers.at[owner];
    if (layer->role != LAYER_ROOT)
        name = arena_printf(builder->arena, "%s.%s", layer->name, name);
    vec_push(&builder->tensors,
        (struct model_tensor){name, rows, cols, rows * cols, owner, false, 0, 1});
    layer->n_tensors++;
    layer->params += rows * cols;
    layer->trained += rows * cols;
}

void build_linear(struct model_builder *builder, const char *name, int64_t in, int64_t out)
{
    build_tensor(builder, arena_printf(builder->arena, "%s.weight", name), out, in);
    build_tensor(builder, arena_printf(builder->arena, "%s.bias", name), out, 1);
}

void build_buffer(struct model_builder *builder, const char *name, int64_t numel)
{
    build_tensor(builder, name, numel, 1);
    builder->tensors.at[builder->tensors.n - 1].frozen = true;
    builder->layers.at[builder->layers.n - 1].trained -= numel;
}

void build_split(struct model_builder *builder, unsigned axes)
{
    builder->tensors.at[builder->tensors.n - 1].split |= axes;
}

/* Layers with the same role, window, chunk and shapes of tensors have one program; their names may
 * differ. */
static bool model_build_alike(
    const struct model *model, const struct model_layer *a, const struct model_layer *b)
{
    if (a->role != b->role || a->n_tensors != b->n_tensors)
        return false;
    if (model_window(&model->shape, (int)(a - model->layers)) !=
        model_window(&model->shape, (int)(b - model->layers)))
        return false;
    if (model_chunk(&model->shape, (int)(a - model->layers)) !=
        model_chunk(&model->shape, (int)(b - model->layers)))
        return false;
    for (int i = 0; i < a->n_tensors; i++) {
        const struct model_tensor *x = &model->tensors[a->first_tensor + i],
                                  *y = &model->tensors[b->first_tensor + i];
        if (x->rows != y->rows || x->cols != y->cols)
            return false;
    }
    return true;
}

static int first_alike(const struct model *model, int layer)
{
    for (int i = 0; i < layer; i++)
        if (model->layers[i].alike == i &&
            model_build_alike(model, &model->layers[i], &model->layers[layer]))
            return i;
    return layer;
}

void model_build(struct model *out, const struct model_shape *shape, struct arena *arena)
{
    struct model_builder builder = {.shape = shape, .arena = arena};
    model_family_code(shape)->layers(&builder);
    *out = (struct model){
        .shape = *shape,
        .n_layers = builder.layers.n,
        .n_tensors = builder.tensors.n,
        .tables = {.name = "tables",
            .rows = shape->d_model > 0
                        ? (int64_t)(shape->dhen.tables.params / (double)shape->d_model)
                        : 0,
            .cols = shape->d_model,
            .numel = (int64_t)shape->dhen.tables.params,
            .split = AXES_DP,
            .counted = 1},
        .ends = MODEL_BOTH_ENDS,
        .n_batch_norms = builder.n_batch_norms,
        .batch_norm_channels = builder.batch_norm_channels,
    };
    vec_keep(out->layers, &builder.layers, arena);
    vec_keep(out->tensors, &builder.tensors, arena);
    for (int i = 0; i < out->n_layers; i++) {
        out->layers[i].alike = first_alike(out, i);
        out->layers[i].number = i;
        out->params += out->layers[i].params;
        out->trained += out->layers[i].trained;
    }
}
