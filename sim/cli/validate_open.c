#include "cli/validate_parts.h"

#include "cli/table.h"
#include "cli/words.h"

#include <string.h>

static void percent(struct table *table, const char *name, const char *unit, bool known, double part)
{
    table_number_as(table, name, unit, known ? words_number(&table->numbers, 100 * part, 1, true) : "-");
}

static void add_row(struct table *table, const struct validate_row *row)
{
    bool peaks = row->measured_peak_bytes > 0 && row->predicted_peak_bytes > 0, oom = row->status == VALIDATE_OOM;
    table_row(table);
    table_text(table, "id", "", row->id);
    table_text(table, "model", "", row->model);
    table_text(table, "GPU", "", row->gpu);
    table_text(table, "strategy", "", row->strategy);
    table_number(table, "GPUs", "", 0, (double)row->gpus);
    percent(table, "speed", "%", row->has_error, row->error);
    percent(table, "ratio", "points", row->has_ratio, row->predicted_ratio - row->measured_ratio);
    percent(table, "memory", "%", peaks, peaks ? row->predicted_peak_bytes / row->measured_peak_bytes - 1 : 0);
    table_text(table, "", "",
        oom == row->measured_oom ? ""
        : oom                    ? "simulated out of memory"
                                 : "published out of memory");
}

static void print_cause(FILE *out, const struct validate_table *rows, int first)
{
    struct table table = {0};
    const char *cause = rows->rows.at[first].suspected_cause;
    for (int i = first; i < rows->rows.n; i++)
        if (rows->rows.at[i].open && strcmp(rows->rows.at[i].suspected_cause, cause) == 0)
            add_row(&table, &rows->rows.at[i]);
    fprintf(out, "\n%s\n", *cause ? cause : "No cause is suspected.");
    table_finish(out, &table);
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
