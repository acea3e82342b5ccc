/* An answer and its rows in the database: one transaction from store_answer_begin() to
 * store_answer_end(), which commits it or rolls it back by the status that it is given.
 *
 * Rows of different answers have different columns, so a row is a JSON object in one column. What
 * is subtle: a REAL keeps its point ("2.0"), as SQLite's JSON functions would read "2" as an
 * INTEGER, and a number is written with 17 digits, so that it reads back to the same bits. */
#include "store/answer.h"

#include "store/insert.h"

#include "config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char what_answered[] = "store the results";

/* An object; for free(). What is not known is left out, which SQL reads as NULL. */
static char *json_of(const struct record_cell *cells, int n)
{
    char *text = NULL, number[32];
    size_t size = 0;
    const char *before = "";
    FILE *out = xmemstream(&text, &size);
    fputc('{', out);
    for (const struct record_cell *cell = cells; cell < cells + n; cell++) {
        if (cell->kind == RECORD_NULL || (cell->kind == RECORD_REAL && !isfinite(cell->real)))
            continue;
        fputs(before, out);
        before = ", ";
        json_write_string(out, cell->name);
        fputs(": ", out);
        snprintf(number, sizeof number, "%.17g", cell->real);
        if (cell->kind == RECORD_TEXT)
            json_write_string(out, cell->text);
        else if (cell->kind == RECORD_REAL)
            fprintf(out, "%s%s", number, strpbrk(number, ".e") ? "" : ".0");
        else
            record_write(out, cell);
    }
    fputc('}', out);
    fclose(out);
    return text;
}

enum status store_answer_begin(struct store_answer *out, struct store *store, const char *kind,
    const struct record_cell *head, int n, struct diag *diag)
{
    *out = (struct store_answer){0};
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what_answered, diag);
    if (status != STATUS_OK)
        return status;
    char *text = json_of(head, n);
    status = insert_row(store, "INTO answer",
        RECORD_CELLS(cell_text("version", FLOPCAST_VERSION), cell_text("kind", kind),
            cell_text("cells", text)),
        what_answered, diag);
    free(text);
    if (status != STATUS_OK)
        return database_end(store, status, what_answered, diag);
    *out = (struct store_answer){.store = store, .id = sqlite3_last_insert_rowid(store->db)};
    return STATUS_OK;
}

enum status store_answer_put(struct store_answer *answer, const char *part,
    const struct record_cell *cells, int n, struct diag *diag)
{
    char *text = json_of(cells, n);
    int64_t position = answer->rows++;
    enum status status = insert_row(answer->store, "INTO answer_row",
        RECORD_CELLS(cell_int("answer_id", answer->id), cell_int("position", position),
            cell_text("part", part), cell_text("cells", text)),
        what_answered, diag);
    free(text);
    return status;
}

enum status store_answer_end(struct store_answer *answer, enum status status, struct diag *diag)
{
    return database_end(answer->store, status, what_answered, diag);
}
