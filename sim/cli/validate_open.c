#include "cli/validate_open.h"

#include "cli/table.h"
#include "cli/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void add_row(struct table *table, struct arena *arena, const struct validate_row *row)
{
    table_cell(table, row->id);
    table_cell(table, row->model);
    table_cell(table, row->gpu);
    table_cell(table, row->strategy);
    table_cell(table, arena_printf(arena, "%" PRId64, row->gpus));
    table_cell(table, row->has_error ? words_number(arena, 100 * row->error, 1, true) : "-");
    table_cell(
        table, row->has_ratio ? words_number(arena, 100 * (row->predicted_ratio - row->measured_ratio), 1, true) : "-");
    bool peaks = row->measured_peak_bytes > 0 && row->predicted_peak_bytes > 0;
    table_cell(table,
        peaks ? words_number(arena, 100 * (row->predicted_peak_bytes / row->measured_peak_bytes - 1), 1, true) : "-");
    bool oom = row->status == VALIDATE_OOM;
    table_cell(table, oom == row->measured_oom ? "" : oom ? "simulated out of memory" : "published out of memory");
}

static void print_cause(FILE *out, const struct validate_table *rows, int first)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"id", "", true}, {"model", "", true}, {"GPU", "", true},
        {"strategy", "", true}, {"GPUs", "", false}, {"speed", "%", false}, {"ratio", "points", false},
        {"memory", "%", false}, {"", "", true}};
    table_columns(&table, columns, NULL, sizeof columns / sizeof *columns);
    const char *cause = rows->rows.at[first].suspected_cause;
    for (int i = first; i < rows->rows.n; i++)
        if (rows->rows.at[i].open && strcmp(rows->rows.at[i].suspected_cause, cause) == 0)
            add_row(&table, &arena, &rows->rows.at[i]);
    fprintf(out, "\n%s\n", *cause ? cause : "No cause is suspected.");
    table_print(out, &table);
    table_free(&table);
    arena_release(&arena);
}

void validate_open_print(FILE *out, const struct validate_table *rows)
{
    int n = 0;
    for (int i = 0; i < rows->rows.n; i++)
        n += rows->rows.at[i].open;
    fprintf(out,
        "%d run%s whose prediction is off, and for which no number was changed. Deviations: predicted from "
        "measured.\n",
        n, plural(n));
    for (int i = 0; i < rows->rows.n; i++) {
        bool first = rows->rows.at[i].open;
        for (int j = 0; j < i && first; j++)
            first = !rows->rows.at[j].open ||
                    strcmp(rows->rows.at[j].suspected_cause, rows->rows.at[i].suspected_cause) != 0;
        if (first)
            print_cause(out, rows, i);
    }
}

enum status validate_open_print_nccl(FILE *out, const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    enum status status = csv_load(&csv, path, diag);
    if (status != STATUS_OK)
        return status;
    fputs("\nTables of collectives; `flopcast calibrate fit nccl` prints the error of each:\n", out);
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *state = csv_cell(csv, r, csv_column(csv, "status"));
        const char *cause = csv_cell(csv, r, csv_column(csv, "suspected_cause"));
        if (*state)
            fprintf(out, "  %s: %s, %s nodes, %s (%s)%s%s\n", state, csv_cell(csv, r, csv_column(csv, "collective")),
                csv_cell(csv, r, csv_column(csv, "nodes")), csv_cell(csv, r, csv_column(csv, "gpu")),
                csv_cell(csv, r, csv_column(csv, "source")), *cause ? ". " : "", cause);
    }
    csv_release(csv);
    return STATUS_OK;
}
