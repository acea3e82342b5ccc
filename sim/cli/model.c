#include "cli/cli.h"
#include "cli/records.h"

#include "base/files.h"
#include "model/model.h"

#include <stdio.h>

/* A row a tensor, of each kind of layer once: layers says how many are alike. */
static void print_records(FILE *out, const struct model *model, enum records_format format)
{
    struct records records = records_begin(out, format);
    for (int i = 0; i < model->n_tensors; i++) {
        const struct model_tensor *tensor = &model->tensors[i];
        int layers = 0;
        for (int l = 0; l < model->n_layers; l++)
            layers += model->layers[l].alike == tensor->layer;
        if (layers > 0)
            RECORDS_ROW(&records, cell_text("model", model->shape.name),
                cell_text("family", model_family_names[model->shape.family]), cell_int("model_params", model->params),
                cell_text("layer", model->layers[tensor->layer].name), cell_int("layers", layers),
                cell_text("tensor", tensor->name), cell_int("rows", tensor->rows), cell_int("columns", tensor->cols),
                cell_int("params", tensor->numel), cell_int("params_of_all_layers", tensor->numel * layers));
    }
    records_end(&records);
}

int cmd_model(int argc, char **argv)
{
    const struct one_file file = one_file_parse(argc, argv,
        "Show a model: layers, parameter tensors, FLOPs. FILE is one of scenarios/models or a Hugging Face "
        "config.json.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    if (model_load(&shape, files_find(&arena, FILES_MODELS, file.path), &arena, &diag) == STATUS_OK) {
        struct model model;
        model_build(&model, &shape, &arena);
        if (file.format == RECORDS_TABLE)
            model_print(stdout, &model);
        else
            print_records(stdout, &model, file.format);
    }
    arena_release(&arena);
    return cli_report(&diag);
}
