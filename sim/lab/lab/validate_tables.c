/* What `flopcast validate` says of its rows: validate/tables/NAME.sql on a database in memory.
 *
 * evidence_open() puts one row a run into table `row`, the cells of validation_record() and then
 * those that only printing needs, and makes the views that other scripts share. An empty table
 * gets the columns of a row of nothing, so the scripts run. Whatever is counted or summed is
 * said in SQL, not here; a script by_N_NAME is a breakdown that --by offers, in the order of N. */
#include "base/vec.h"
#include "rows/sheet.h"
#include "lab/validate_parts.h"
#include "rows/words.h"
#include "validate/validation.h"
#include "validate/tables.h"

/* Behind those of validation_record(). Rows are numbered from 1, as SQLite does it. */
static int evidence_cells(struct record_cell *cells, const struct validate_row *row)
{
    bool loaded = row->set.n_points == 1;
    const struct record_cell more[] = {
        cell_int("same", row->same),
        cell_int("smallest",
            row->smallest +
                1), /* the row of the curve's smallest cluster, where there is a ratio */
        cell_int("node_gpus", row->node_gpus),
        cell_text("apart", row->apart),
        cell_int("open", row->open),
        cell_text("suspected_cause", row->suspected_cause),
        cell_int("has_verdict", row->has_verdict),
        row->interval.known ? cell_int("covered", row->interval.covers)
                            : cell_text("covered", NULL),
        cell_real("first_sight_error", row->has_first_sight, row->first_sight_error),
        cell_int("first_sight_missed", row->first_sight_missed),
        cell_text("first_sight_file", row->first_sight_file),
        cell_text("predicted_by", row->predicted_by),
        cell_text("made_by", row->made_by),
        cell_int("stale", row->stale),
        cell_int("loaded", loaded), /* not read back */
        cell_text("counted", loaded ? words_counted(&row->set.points[0].model.shape) : NULL),
    };
    enum { MORE = sizeof more / sizeof *more };
    validation_record(cells, row);
    memcpy(cells + VALIDATION_CELLS, more, sizeof more);
    return VALIDATION_CELLS + MORE;
}

enum status evidence_open(struct store **out, const struct validate_table *rows, struct diag *diag)
{
    enum status status = store_open_memory(out, diag);
    if (status != STATUS_OK)
        return status;
    VEC(struct record_cell) cells = {0};
    int n_cells = 0;
    for (int i = 0; i < rows->rows.n; i++) {
        struct record_cell row[RECORD_MAX_CELLS];
        n_cells = evidence_cells(row, &rows->rows.at[i]);
        for (int c = 0; c < n_cells; c++)
            vec_push(&cells, row[c]);
    }
    struct record_cell none[RECORD_MAX_CELLS];
    static const struct validate_row nothing = {0};
    if (rows->rows.n == 0)
        n_cells = evidence_cells(none, &nothing);
    status =
        store_put_rows(*out, "row", rows->rows.n ? cells.at : none, n_cells, rows->rows.n, diag);
    vec_free(&cells);
    return status == STATUS_OK ? evidence_print(stdout, *out, "views", diag) : status;
}

enum status evidence_put_csv(
    struct store *evidence, const char *table, const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    enum status status = csv_load(&csv, path, diag);
    if (status == STATUS_OK)
        status = store_put_csv(evidence, table, csv, diag);
    csv_release(csv);
    return status;
}

enum status evidence_print(FILE *out, struct store *evidence, const char *name, struct diag *diag)
{
    const struct text *script = texts_find(validate_tables, name);
    BUG_IF(!script, "no table '%s'", name);
    return sheet_print(out, evidence, script, RECORDS_TABLE, NULL, diag);
}

int evidence_breakdowns(struct breakdown *out, int room)
{
    static const char head[] = "by_N_";
    int n = 0;
    for (const struct text *table = validate_tables; table->name; table++)
        if (strncmp(table->name, head, strlen("by_")) == 0 && n < room)
            out[n++] = (struct breakdown){table->name + strlen(head), table->name};
    return n;
}
