/* The row of a CSV of published figures that is a point's: same figure, model, strategy, GPUs and
 * micro-batch. An empty cell matches all, so a row states only what tells it from others of its
 * figure. Two rows that match are an error. */
#include "config/csv.h"
#include "scenario/file.h"

#include <string.h>

static bool published_has_columns(
    const struct csv_table *csv, struct source_pos at, struct diag *diag)
{
    static const char *const names[] = {"id", "figure", "model", "strategy", "gpus", "micro_batch",
        "tflops_per_gpu", "peak_allocated_bytes", "peak_reserved_bytes", "oom", "kind", "source"};
    int before = diag->n_errors;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (csv_column(csv, names[i]) < 0)
            diag_input(diag, at, "the published figures lack the column '%s'", names[i]);
    return diag->n_errors == before;
}

static const char *published_cell(const struct csv_table *csv, int row, const char *column)
{
    return csv_cell(csv, row, csv_column(csv, column));
}

static bool text_matches(const char *given, const char *value)
{
    return !*given || strcmp(given, value) == 0;
}

static bool number_matches(
    const struct csv_table *csv, int row, const char *column, int64_t value, struct diag *diag)
{
    double number = 0;
    csv_number(csv, row, csv_column(csv, column), (double)value, &number, diag);
    return number == (double)value;
}

static bool row_matches(
    const struct csv_table *csv, int row, const struct scenario_point *point, struct diag *diag)
{
    const struct scenario *options = &point->options;
    return text_matches(published_cell(csv, row, "model"), point->model.shape.name) &&
           text_matches(published_cell(csv, row, "strategy"), strategy_label(&options->strategy)) &&
           number_matches(csv, row, "gpus", options->cluster.gpus, diag) &&
           number_matches(csv, row, "micro_batch", options->strategy.train.micro_batch, diag);
}

static void published_read_row(struct scenario_published *out, const struct csv_table *csv, int row,
    struct arena *arena, struct diag *diag)
{
    const char *oom = published_cell(csv, row, "oom");
    if (*oom && strcmp(oom, "y") != 0 && strcmp(oom, "n") != 0)
        diag_input(diag, csv_pos(csv, row), "column 'oom' is '%.40s'; write y or n", oom);
    *out = (struct scenario_published){.found = true,
        .id = arena_strdup(arena, published_cell(csv, row, "id")),
        .source = arena_printf(
            arena, "%s (%s)", published_cell(csv, row, "source"), published_cell(csv, row, "kind")),
        .oom = strcmp(oom, "y") == 0};
    csv_number(csv, row, csv_column(csv, "tflops_per_gpu"), 0, &out->tflops_per_gpu, diag);
    csv_number(
        csv, row, csv_column(csv, "peak_allocated_bytes"), 0, &out->peak_allocated_bytes, diag);
    csv_number(
        csv, row, csv_column(csv, "peak_reserved_bytes"), 0, &out->peak_reserved_bytes, diag);
}

void published_find(struct scenario_published *out, const struct csv_table *csv,
    const struct scenario_point *point, struct source_pos figure_at, struct arena *arena,
    struct diag *diag)
{
    const char *figure = point->options.published.figure;
    if (!published_has_columns(
            csv, (struct source_pos){.file = point->options.published.file}, diag))
        return;
    int found = -1;
    bool any = false;
    for (int row = 0; row < csv_rows(csv); row++) {
        if (strcmp(published_cell(csv, row, "figure"), figure) != 0)
            continue;
        any = true;
        if (!row_matches(csv, row, point, diag))
            continue;
        if (found >= 0)
            diag_input(diag, csv_pos(csv, row),
                "matches a point that line %d matches too; fill in what distinguishes them",
                csv_pos(csv, found).line);
        found = row;
    }
    if (!any)
        diag_input(diag, figure_at, "'%s' has no row of figure '%.40s'",
            point->options.published.file, figure);
    if (found >= 0)
        published_read_row(out, csv, found, arena, diag);
}
