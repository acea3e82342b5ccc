#include "cli/cli.h"
#include "cli/one_file.h"

#include "base/files.h"
#include "model/model.h"

#include <stdio.h>

int cmd_model(int argc, char **argv)
{
    const char *named = one_file_parse(argc, argv,
        "Show a model: layers, parameter tensors, FLOPs. FILE is one of scenarios/models or a Hugging Face "
        "config.json.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model_shape shape;
    if (model_load(&shape, files_find(&arena, named), &arena, &diag) == STATUS_OK) {
        struct model model;
        model_build(&model, &shape, &arena);
        model_print(stdout, &model);
    }
    arena_release(&arena);
    return cli_report(&diag);
}
