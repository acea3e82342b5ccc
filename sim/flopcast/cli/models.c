/* `flopcast help models`: the models that come along with their sizes, and the keys of a model
 * file. Each model is loaded and built, so the numbers of parameters are those of a simulation. */
#include "base/files.h"
#include "cli/cli.h"
#include "rows/table.h"
#include "config/config.h"
#include "scenario/scenario.h"

#include <math.h>
#include <string.h>

/* "7.0B", "124M": as models are called by their size. */
static const char *models_size_text(struct arena *arena, int64_t params)
{
    static const struct {
        double factor;
        const char *suffix;
    } sizes[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}};
    size_t i = 0, last = sizeof sizes / sizeof *sizes - 1;
    while (i < last && (double)params < sizes[i].factor)
        i++;
    return arena_printf(arena, "%.3g%s", (double)params / sizes[i].factor, sizes[i].suffix);
}

static void add_model(struct table *table, const char *name, struct arena *arena, struct diag *diag)
{
    struct model_shape shape = {0};
    struct model model;
    if (model_load(&shape, files_find(arena, FILES_MODELS, name), false, arena, diag) != STATUS_OK)
        return;
    model_build(&model, &shape, arena);
    table_row(table);
    table_text(table, "model", "", name);
    table_text(table, "family", "", model_family_names[shape.family]);
    table_number_as(table, "size", "", models_size_text(arena, model.params));
    table_number(table, "parameters", "", 0, (double)model.params);
    table_number(table, "blocks", "", 0, (double)(shape.n_layers + shape.n_decoder_layers));
    table_number(table, "width", "", 0, shape.d_model > 0 ? (double)shape.d_model : TABLE_UNKNOWN);
    table_number(table, "positions", "", 0,
        shape.max_positions > 0 ? (double)shape.max_positions : TABLE_UNKNOWN);
}

static void print_models(struct arena *arena, struct diag *diag)
{
    struct table table = {0};
    struct files_names names = files_names(arena, FILES_MODELS);
    for (int i = 0; i < names.list.n; i++)
        add_model(&table, names.list.at[i].name, arena, diag);
    vec_free(&names.list);
    table_finish(stdout, &table);
}

int models_help(void)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    puts("The models that come along. Their names stand for them wherever a model is asked for: "
         "'model: llama3.1-8b' in a\n"
         "scenario, --set model=llama3.1-8b, 'flopcast model llama3.1-8b', which shows layers and "
         "tensors.\n");
    print_models(&arena, &diag);
    printf("\n"
           "What a model file holds: needed or not (-), what it is with its default, what is "
           "allowed. A family that needs more\n"
           "says so. Copy one of scenarios/models, or name a Hugging Face config.json instead, of "
           "model_type\n%s.\n\n",
        model_type_names(&arena, &diag));
    config_print_reference(stdout, &model_shape_table, NULL);
    arena_release(&arena);
    return cli_report(&diag);
}
