/* Results of `flopcast run` as CSV and JSON: the columns of store/record.h, how far they are
 * from what was published, swept settings, samples.
 *
 * All numbers are in base SI with 15 digits. What is subtle: the head of a CSV is written once
 * for all scenarios of a command, so its columns of swept settings are those of any of them;
 * JSON holds every setting of a point with its origin, and a number that is not finite as null. */
#include "cli/output.h"

#include "rows/records.h"
#include "rows/vary.h"
#include "config/csv.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void write_names(FILE *out, const struct record *record)
{
    for (int c = 0; c < record->n; c++)
        fprintf(out, ",%s", record->cells[c].name);
}

void output_csv_head(FILE *out, const struct vary *columns, const struct scenario_set *set,
    const struct scenario_result *results)
{
    struct record record;
    record_fill(&record, &set->points[0], &results[0]);
    fputs("scenario", out);
    write_names(out, &record);
    fputs(",swept", out);
    record_fill_deviation(&record, &set->points[0], &results[0]);
    write_names(out, &record);
    for (int i = 0; i < columns->options.n; i++) {
        const struct vary_option *option = &columns->options.at[i];
        bool is_number =
            option->field->type == FIELD_NUMBER || option->field->type == FIELD_SOURCED;
        const char *unit = is_number ? dimension_unit(option->field->dimension) : "";
        char name[256];
        snprintf(name, sizeof name, *unit ? "%s (%s)" : "%s", option->path, unit);
        fputc(',', out);
        csv_write_text(out, name);
    }
    record_fill_band(&record, &results[0]);
    if (results[0].n_samples > 0)
        write_names(out, &record);
    fputs("\r\n", out);
}

static void write_cells(FILE *out, const struct record_cell *cells, int n)
{
    for (int c = 0; c < n; c++) {
        fputc(',', out);
        records_csv_cell(out, &cells[c]);
    }
}

void output_csv(FILE *out, const struct vary *columns, const struct scenario_set *set,
    const struct scenario_result *results)
{
    struct arena arena = ARENA_INIT;
    struct vary vary;
    vary_find(&vary, set, &arena);
    for (int i = 0; i < set->n_points; i++) {
        const struct scenario_point *point = &set->points[i];
        struct record record;
        record_fill(&record, point, &results[i]);
        csv_write_text(out, point->options.name);
        write_cells(out, record.cells, record.n);
        fputc(',', out);
        csv_write_text(out, vary_assignments(&vary, point, &arena));
        record_fill_deviation(&record, point, &results[i]);
        write_cells(out, record.cells, record.n);
        for (int c = 0; c < columns->options.n; c++) {
            struct record_cell cell = vary_cell(&columns->options.at[c], &point->options);
            write_cells(out, &cell, 1);
        }
        record_fill_band(&record, &results[i]);
        if (results[i].n_samples > 0)
            write_cells(out, record.cells, record.n);
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

static void json_cells(FILE *out, const struct record *record)
{
    for (int c = 0; c < record->n; c++) {
        fputs(",\n   ", out);
        records_json_cell(out, &record->cells[c]);
    }
}

static void json_point(
    FILE *out, const struct scenario_point *point, const struct scenario_result *result)
{
    struct record record;
    record_fill(&record, point, result);
    fputs("{\"scenario\": ", out);
    json_write_string(out, point->options.name);
    json_cells(out, &record);
    record_fill_band(&record, result);
    if (result->n_samples > 0)
        json_cells(out, &record);
    record_fill_deviation(&record, point, result);
    json_cells(out, &record);
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

void output_json(
    FILE *out, const struct scenario_set *set, const struct scenario_result *results, bool first)
{
    for (int i = 0; i < set->n_points; i++) {
        if (i > 0 || !first)
            fputs(",\n  ", out);
        json_point(out, &set->points[i], &results[i]);
    }
}
