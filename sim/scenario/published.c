#include "config/csv.h"
#include "scenario/file.h"

#include <string.h>

enum column {
    COLUMN_ID,
    COLUMN_FIGURE,
    COLUMN_MODEL,
    COLUMN_STRATEGY,
    COLUMN_GPUS,
    COLUMN_MICRO_BATCH,
    COLUMN_TFLOPS,
    COLUMN_ALLOCATED,
    COLUMN_RESERVED,
    COLUMN_OOM,
    COLUMN_KIND,
    COLUMN_SOURCE,
    COLUMN_COUNT,
};
static const char *const column_names[COLUMN_COUNT] = {"id", "figure", "model", "strategy", "gpus", "micro_batch",
    "tflops_per_gpu", "peak_allocated_bytes", "peak_reserved_bytes", "oom", "kind", "source"};

static bool find_columns(
    int columns[COLUMN_COUNT], const struct csv_table *csv, struct source_pos at, struct diag *diag)
{
    bool all = true;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        columns[i] = csv_column(csv, column_names[i]);
        if (columns[i] >= 0)
            continue;
        diag_input(diag, at, "the published figures lack the column '%s'", column_names[i]);
        all = false;
    }
    return all;
}

static bool text_matches(const char *cell, const char *value)
{
    return !*cell || strcmp(cell, value) == 0;
}

static bool number_matches(const struct csv_table *csv, int row, int column, int64_t value, struct diag *diag)
{
    double cell = 0;
    csv_number(csv, row, column, (double)value, &cell, diag);
    return cell == (double)value;
}

static bool row_matches(const struct csv_table *csv, int row, const int columns[COLUMN_COUNT],
    const struct scenario_point *point, struct diag *diag)
{
    const struct scenario *options = &point->options;
    return text_matches(csv_cell(csv, row, columns[COLUMN_MODEL]), point->model.shape.name) &&
           text_matches(csv_cell(csv, row, columns[COLUMN_STRATEGY]), strategy_label(&options->strategy)) &&
           number_matches(csv, row, columns[COLUMN_GPUS], options->cluster.gpus, diag) &&
           number_matches(csv, row, columns[COLUMN_MICRO_BATCH], options->strategy.train.micro_batch, diag);
}

static void read_row(struct scenario_published *out, const struct csv_table *csv, int row,
    const int columns[COLUMN_COUNT], struct arena *arena, struct diag *diag)
{
    const char *oom = csv_cell(csv, row, columns[COLUMN_OOM]);
    if (*oom && strcmp(oom, "y") != 0 && strcmp(oom, "n") != 0)
        diag_input(diag, csv_pos(csv, row), "column 'oom' is '%.40s'; write y or n", oom);
    *out = (struct scenario_published){.found = true,
        .id = arena_strdup(arena, csv_cell(csv, row, columns[COLUMN_ID])),
        .source = arena_printf(
            arena, "%s (%s)", csv_cell(csv, row, columns[COLUMN_SOURCE]), csv_cell(csv, row, columns[COLUMN_KIND])),
        .oom = strcmp(oom, "y") == 0};
    csv_number(csv, row, columns[COLUMN_TFLOPS], 0, &out->tflops_per_gpu, diag);
    csv_number(csv, row, columns[COLUMN_ALLOCATED], 0, &out->peak_allocated_bytes, diag);
    csv_number(csv, row, columns[COLUMN_RESERVED], 0, &out->peak_reserved_bytes, diag);
}

void published_find(struct scenario_published *out, const struct csv_table *csv, const struct scenario_point *point,
    struct source_pos figure_at, struct arena *arena, struct diag *diag)
{
    const char *figure = point->options.published.figure;
    int columns[COLUMN_COUNT];
    if (!find_columns(columns, csv, (struct source_pos){.file = point->options.published.file}, diag))
        return;
    int found = -1;
    bool any = false;
    for (int row = 0; row < csv_rows(csv); row++) {
        if (strcmp(csv_cell(csv, row, columns[COLUMN_FIGURE]), figure) != 0)
            continue;
        any = true;
        if (!row_matches(csv, row, columns, point, diag))
            continue;
        if (found >= 0)
            diag_input(diag, csv_pos(csv, row),
                "matches a point that line %d matches too; fill in what tells them apart", csv_pos(csv, found).line);
        found = row;
    }
    if (!any)
        diag_input(diag, figure_at, "'%s' has no row of figure '%.40s'", point->options.published.file, figure);
    if (found >= 0)
        read_row(out, csv, found, columns, arena, diag);
}
