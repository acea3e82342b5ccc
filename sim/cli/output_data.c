#include "cli/output.h"

#include "cli/vary.h"
#include "config/csv.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* 15 digits: what a double holds for certain, and what the database prints. */
void output_csv_cell(FILE *out, const struct record_cell *cell)
{
    if (cell->kind == RECORD_INT)
        fprintf(out, "%" PRId64, cell->integer);
    else if (cell->kind == RECORD_REAL)
        fprintf(out, "%.15g", cell->real);
    else if (cell->kind == RECORD_TEXT)
        csv_write_text(out, cell->text);
}

void output_csv_head(FILE *out, const struct scenario_set *set, const struct scenario_result *results)
{
    struct record record;
    record_fill(&record, &set->points[0], &results[0]);
    fputs("scenario", out);
    for (int c = 0; c < record.n; c++)
        fprintf(out, ",%s", record.cells[c].name);
    fputs(",swept", out);
    record_fill_band(&record, &results[0]);
    for (int c = 0; c < record.n && results[0].n_samples > 0; c++)
        fprintf(out, ",%s", record.cells[c].name);
    fputs("\r\n", out);
}

void output_csv(FILE *out, const struct scenario_set *set, const struct scenario_result *results)
{
    struct arena arena = ARENA_INIT;
    struct vary vary;
    vary_find(&vary, set, &arena);
    for (int i = 0; i < set->n_points; i++) {
        struct record record;
        record_fill(&record, &set->points[i], &results[i]);
        csv_write_text(out, set->points[i].options.name);
        for (int c = 0; c < record.n; c++) {
            fputc(',', out);
            output_csv_cell(out, &record.cells[c]);
        }
        fputc(',', out);
        csv_write_text(out, vary_assignments(&vary, &set->points[i], &arena));
        record_fill_band(&record, &results[i]);
        for (int c = 0; c < record.n && results[i].n_samples > 0; c++) {
            fputc(',', out);
            output_csv_cell(out, &record.cells[c]);
        }
        fputs("\r\n", out);
    }
    vec_free(&vary.options);
    arena_release(&arena);
}

static void json_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.15g", value);
    else
        fputs("null", out);
}

void output_json_cell(FILE *out, const struct record_cell *cell)
{
    fprintf(out, "\"%s\": ", cell->name);
    if (cell->kind == RECORD_INT)
        fprintf(out, "%" PRId64, cell->integer);
    else if (cell->kind == RECORD_REAL)
        json_number(out, cell->real);
    else if (cell->kind == RECORD_TEXT)
        json_write_string(out, cell->text);
    else
        fputs("null", out);
}

static void json_point(FILE *out, const struct scenario_point *point, const struct scenario_result *result)
{
    struct record record;
    record_fill(&record, point, result);
    fputs("{\"scenario\": ", out);
    json_write_string(out, point->options.name);
    for (int c = 0; c < record.n; c++) {
        fputs(",\n   ", out);
        output_json_cell(out, &record.cells[c]);
    }
    record_fill_band(&record, result);
    for (int c = 0; c < record.n && result->n_samples > 0; c++) {
        fputs(",\n   ", out);
        output_json_cell(out, &record.cells[c]);
    }
    const struct exec_memory *memory = &result->exec.memory;
    bool ok = result->exec.status == EXEC_OK;
    fprintf(out, ",\n   \"memory\": {\"%s\": {", ok ? "peak_bytes" : "required_bytes");
    for (int i = 0; i < HBM_CATEGORY_COUNT; i++) {
        fprintf(out, "%s\"%s\": ", i ? ", " : "", hbm_category_names[i]);
        json_number(out, ok ? memory->peak_category_bytes[i] : memory->required_category_bytes[i]);
    }
    fputs("}},\n   \"config\": ", out);
    config_write_json(out, &scenario_table, &point->options, &point->origins);
    fputs("}", out);
}

void output_json(FILE *out, const struct scenario_set *set, const struct scenario_result *results, bool first)
{
    for (int i = 0; i < set->n_points; i++) {
        if (i > 0 || !first)
            fputs(",\n  ", out);
        json_point(out, &set->points[i], &results[i]);
    }
}
