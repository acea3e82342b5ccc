/* One list of rows for both readers: cells for programs, texts in a table for people.
 *
 * A COLUMN() says both: its name is for programs, its heading for people; without a name
 * programs do not get it, without a heading people do not see it. rows.most bounds the rows in
 * the table, never those in the cells. Every row must have the same number of cells, as their
 * width is the cells over the rows. */
#include "rows/rows.h"

#include "rows/words.h"
#include "store/answer.h"

static bool people_see(const struct rows *rows)
{
    return rows->most == 0 || rows->n <= rows->most;
}

static void rows_put(
    struct rows *rows, const struct rows_column *column, struct record_cell cell, const char *text)
{
    const char *unit = column->unit ? column->unit : "";
    if (column->name)
        vec_push(&rows->cells, cell);
    if (!column->heading || !people_see(rows))
        return;
    text = cell.kind != RECORD_NULL ? text : column->unknown ? column->unknown : "-";
    if (cell.kind == RECORD_TEXT)
        table_text(&rows->table, column->heading, unit, text);
    else
        table_number_as(&rows->table, column->heading, unit, text);
    table_spare(&rows->table, column->spare);
}

void rows_next(struct rows *rows)
{
    rows->n++;
    if (people_see(rows))
        table_row(&rows->table);
}

void rows_cells(struct rows *rows, const struct record_cell *cells, int n)
{
    rows->n++;
    for (int i = 0; i < n; i++)
        vec_push(&rows->cells, cells[i]);
}

void rows_text(struct rows *rows, struct rows_column column, const char *text)
{
    rows_put(rows, &column, cell_text(column.name, text), text);
}

void rows_int(struct rows *rows, struct rows_column column, int64_t value)
{
    rows_put(rows, &column, cell_int(column.name, value),
        words_number(&rows->table.numbers, (double)value, 0, false));
}

void rows_real(struct rows *rows, struct rows_column column, bool known, double value)
{
    double shown = known ? value * (column.scale != 0 ? column.scale : 1) : 0;
    struct arena *arena = &rows->table.numbers;
    rows_put(rows, &column, cell_real(column.name, known, value),
        column.sign ? words_number(arena, shown, column.digits, true)
                    : arena_printf(arena, "%.*f", column.digits, shown));
}

void rows_real_as(
    struct rows *rows, struct rows_column column, bool known, double value, const char *text)
{
    rows_put(rows, &column, cell_real(column.name, known, value),
        arena_strdup(&rows->table.numbers, text));
}

void rows_number_as(struct rows *rows, const char *heading, const char *unit, const char *text)
{
    if (people_see(rows))
        table_number_as(&rows->table, heading, unit, text);
}

void rows_mark(struct rows *rows, enum table_mark mark)
{
    if (people_see(rows))
        table_mark(&rows->table, mark);
}

void rows_print(FILE *out, const struct rows *rows, enum records_format format)
{
    if (format == RECORDS_TABLE) {
        if (rows->table.columns.n > 0)
            table_print(out, &rows->table);
        return;
    }
    struct records records = records_begin(out, format);
    int width = rows->n > 0 ? rows->cells.n / rows->n : 0;
    for (int i = 0; i < rows->n; i++)
        records_row(&records, &rows->cells.at[(ptrdiff_t)i * width], width);
    records_end(&records);
}

void rows_free(struct rows *rows)
{
    table_free(&rows->table);
    vec_free(&rows->cells);
}

void rows_finish(FILE *out, struct rows *rows, enum records_format format)
{
    rows_print(out, rows, format);
    rows_free(rows);
}

enum status rows_keep(const struct rows *rows, const char *db, const char *kind,
    const struct record_cell *head, int n_head, struct diag *diag)
{
    struct store *store = NULL;
    struct store_answer answer;
    int width = rows->n > 0 ? rows->cells.n / rows->n : 0;
    enum status status = store_open(&store, db, STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = store_answer_begin(&answer, store, kind, head, n_head, diag);
    bool begun = status == STATUS_OK;
    for (int i = 0; i < rows->n && status == STATUS_OK; i++)
        status =
            store_answer_put(&answer, "row", &rows->cells.at[(ptrdiff_t)i * width], width, diag);
    if (begun)
        status = store_answer_end(&answer, status, diag);
    store_close(store);
    return status;
}
