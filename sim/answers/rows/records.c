#include "rows/records.h"

#include "config/config.h"
#include "config/csv.h"

#include <inttypes.h>
#include <math.h>

const char *const records_format_names[RECORDS_FORMAT_COUNT + 1] = {
    [RECORDS_TABLE] = "table", [RECORDS_CSV] = "csv", [RECORDS_JSON] = "json"};

/* 15 digits: what a double holds for certain, and what the database prints. */
void records_csv_cell(FILE *out, const struct record_cell *cell)
{
    if (cell->kind == RECORD_INT)
        fprintf(out, "%" PRId64, cell->integer);
    else if (cell->kind == RECORD_REAL)
        fprintf(out, "%.15g", cell->real);
    else if (cell->kind == RECORD_TEXT)
        csv_write_text(out, cell->text);
}

void records_json_cell(FILE *out, const struct record_cell *cell)
{
    json_write_string(out, cell->name);
    fputs(": ", out);
    if (cell->kind == RECORD_TEXT)
        json_write_string(out, cell->text);
    else if (!record_write(out, cell)) /* JSON has no numbers that are not finite */
        fputs("null", out);
}

struct records records_begin(FILE *out, enum records_format format)
{
    BUG_IF(format == RECORDS_TABLE, "a table is not for programs");
    fputs(format == RECORDS_JSON ? "[" : "", out);
    return (struct records){.out = out, .format = format};
}

void records_row(struct records *records, const struct record_cell *cells, int n)
{
    FILE *out = records->out;
    bool json = records->format == RECORDS_JSON;
    for (int i = 0; i < n && !json && records->n == 0; i++) {
        fputs(i ? "," : "", out);
        csv_write_text(out, cells[i].name);
    }
    fputs(!json && records->n == 0 ? "\r\n" : json ? records->n ? ",\n  {" : "\n  {" : "", out);
    for (int i = 0; i < n; i++) {
        fputs(i ? json ? ", " : "," : "", out);
        if (json)
            records_json_cell(out, &cells[i]);
        else
            records_csv_cell(out, &cells[i]);
    }
    fputs(json ? "}" : "\r\n", out);
    records->n++;
}

void records_end(struct records *records)
{
    fputs(records->format == RECORDS_JSON ? "\n]\n" : "", records->out);
}
