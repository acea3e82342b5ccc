/* `flopcast model`: the layers and tensors of a model, or of a rank's share of it. */
#include "cli/cli.h"
#include "cli/memory.h"
#include "rows/rows.h"

#include "base/files.h"

#include <inttypes.h>
#include <stdio.h>

COMMAND(cmd_model, 24, "model", 0, "show the layers and tensors of a model file",
    "flopcast model llama3.1-8b");

/* A row a tensor, of each kind of layer once: layers says how many are alike. */
static void model_add_records(struct rows *rows, const struct model *model, int stage)
{
    for (int i = 0; i < model->n_tensors; i++) {
        const struct model_tensor *tensor = &model->tensors[i];
        int layers = 0;
        for (int l = 0; l < model->n_layers; l++)
            layers += model->layers[l].alike == tensor->layer;
        if (layers > 0)
            ROWS_CELLS(rows, cell_text("model", model->shape.name),
                cell_text("family", model_family_names[model->shape.family]),
                cell_int("stage", stage), cell_int("model_params", model->params),
                cell_text("layer", model->layers[tensor->layer].name), cell_int("layers", layers),
                cell_text("tensor", tensor->name),
                cell_text("split_over", tensor->split & 1U << AXIS_TP   ? "tensor"
                                        : tensor->split & 1U << AXIS_EP ? "expert"
                                                                        : NULL),
                cell_int("rows", tensor->rows), cell_int("columns", tensor->cols),
                cell_int("params", tensor->numel),
                cell_int("params_of_all_layers", tensor->numel * layers));
    }
}

/* "first block, last block": of a stage with model chunks, each. */
static const char *model_blocks_of(const struct model *model, struct arena *arena)
{
    const char *text = "";
    for (int c = 0; c < (model->n_chunks > 0 ? model->n_chunks : 1); c++) {
        int first = model->n_chunks > 0 ? model->chunks[c] : 1;
        int end = c + 1 < model->n_chunks ? model->chunks[c + 1] : model->n_layers;
        if (first < end)
            text = arena_printf(arena, "%s%s%d to %d", text, *text ? ", " : "",
                model->layers[first].number - 1, model->layers[end - 1].number - 1);
    }
    return *text ? text : "none";
}

static void model_add_stage(
    struct table *table, const struct model *model, int stage, struct arena *arena)
{
    static const char *const ends[] = {"-", "embedding", "head, loss", "embedding, head, loss"};
    double whole = 0, experts = 0;
    for (int i = 0; i < model->n_tensors; i++) {
        const struct model_tensor *tensor = &model->tensors[i];
        whole += tensor->split == 0 ? (double)tensor->numel : 0;
        experts += tensor->split & 1U << AXIS_EP ? (double)tensor->numel : 0;
    }
    table_row(table);
    table_number(table, "stage", "", 0, stage);
    table_text(table, "blocks", "from 0", model_blocks_of(model, arena));
    table_text(table, "ends", "", ends[model->ends]);
    table_number(table, "parameters", "of a rank", 0, (double)model->params);
    table_number(table, "whole", "on each rank", 0, whole);
    if (model->shape.moe.experts > 0)
        table_number(table, "experts", "of a rank", 0, experts);
    table_number(table, "weights", "GiB in BF16", 2, 2 * (double)model->params / GIB);
}

/* What the ranks of each stage hold: tensor and expert ranks of one stage have alike. */
static void model_print_ranks(FILE *out, const struct memory_request *request, struct arena *arena)
{
    const struct scenario_point *point = &request->job.point;
    const struct scenario *options = &point->options;
    struct job job =
        strategy_job(&options->strategy, &point->model, &point->hw, (int)options->cluster.gpus);
    int stages = (int)options->strategy.parallelism.pipeline;
    struct rows rows = {0};
    struct table table = {0};
    for (int s = 0; s < stages; s++) {
        const struct model *model = strategy_rank_model(&job, s, arena);
        if (request->format != RECORDS_TABLE)
            model_add_records(&rows, model, s);
        else
            model_add_stage(&table, model, s, arena);
    }
    if (request->format != RECORDS_TABLE) {
        rows_finish(out, &rows, request->format);
        return;
    }
    fprintf(out, "%s: %" PRId64 " parameters; a copy on %" PRId64 " GPUs", point->model.shape.name,
        point->model.params, options->cluster.gpus);
    memory_print_degrees(out, &request->job);
    fputs("\n\n", out);
    table_finish(out, &table);
    fputc('\n', out);
    model_print_layers(out, strategy_rank_model(&job, 0, arena));
}

int cmd_model(int argc, char **argv)
{
    struct memory_request request = {.model = true};
    memory_parse(&request, argc, argv,
        "Show a model: layers, parameter tensors, FLOPs. FILE is one of scenarios/models or a "
        "Hugging Face config.json.\vWith --tensor, --pipeline or --expert: what the ranks of each "
        "stage hold, as Megatron-LM cuts a model, and the tensors of a rank of the first stage (of "
        "all stages with --format csv or json).");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK) {
        const struct model *model = &request.job.point.model;
        if (memory_copy_gpus(&request.job.point.options.strategy.parallelism) > 1) {
            model_print_ranks(stdout, &request, &arena);
        } else if (request.format == RECORDS_TABLE) {
            model_print(stdout, model);
        } else {
            struct rows rows = {0};
            model_add_records(&rows, model, 0);
            rows_finish(stdout, &rows, request.format);
        }
    }
    memory_free(&request);
    arena_release(&arena);
    return cli_report(&diag);
}
