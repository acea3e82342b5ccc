/* A fit and its rows in the database: one transaction from store_fit_begin() to store_fit_end(),
 * which commits it or rolls it back by the status that it is given.
 *
 * Rows of different fits have different columns, so a row is a JSON object in one column. What
 * is subtle: a REAL keeps its point ("2.0"), as SQLite's JSON functions would read "2" as an
 * INTEGER, and a number is written with 17 digits, so that it reads back to the same bits. */
#include "store/fit.h"

#include "store/database.h"
#include "store/insert.h"

#include "config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char what[] = "store the fit";

struct store_fit {
    struct store *store;
    int64_t id, rows;
};

enum status store_fit_begin(struct store_fit **out, struct store *store, const char *kind,
    const char *measured, struct diag *diag)
{
    *out = NULL;
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    status = INSERT_ROW(store, "INTO fit", what, diag, cell_text("version", FLOPCAST_VERSION),
        cell_text("kind", kind), cell_text("measured", measured));
    if (status != STATUS_OK)
        return database_end(store, status, what, diag);
    *out = xcalloc(1, sizeof **out);
    **out = (struct store_fit){.store = store, .id = sqlite3_last_insert_rowid(store->db)};
    return STATUS_OK;
}

/* All digits of a number, and REAL stays REAL: "2.0". */
static void write_cell(FILE *out, const struct record_cell *cell)
{
    char text[32];
    json_write_string(out, cell->name);
    fputs(": ", out);
    if (cell->kind == RECORD_TEXT) {
        json_write_string(out, cell->text);
    } else if (cell->kind == RECORD_REAL && isfinite(cell->real)) {
        snprintf(text, sizeof text, "%.17g", cell->real);
        fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    } else if (!record_write(out, cell)) {
        fputs("null", out);
    }
}

/* An object; for free(). */
static char *json_of(const struct record_cell *cells, int n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    BUG_IF(!out, "open_memstream failed");
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "{", out);
        write_cell(out, &cells[i]);
    }
    fputc('}', out);
    fclose(out);
    return text;
}

enum status store_fit_put(struct store_fit *fit, const char *part, const struct record_cell *cells,
    int n, struct diag *diag)
{
    char *text = json_of(cells, n);
    enum status status =
        INSERT_ROW(fit->store, "INTO fit_row", what, diag, cell_int("fit_id", fit->id),
            cell_int("position", fit->rows++), cell_text("part", part), cell_text("cells", text));
    free(text);
    return status;
}

enum status store_fit_end(struct store_fit *fit, enum status status, struct diag *diag)
{
    status = database_end(fit->store, status, what, diag);
    free(fit);
    return status;
}
