/* A study (waterfall, sensitivity, goodput ...) as one row of a table and its rows in another,
 * in one transaction. The rows refer to the head by TABLE_id and are numbered by position. */
#include "store/study.h"

#include "store/database.h"
#include "store/insert.h"

#include <string.h>

static const char what[] = "store the results";

enum { ADDED = 2, MOST_CELLS = 40 };

static enum status put_rows(struct store *store, const struct store_study *study, struct diag *diag)
{
    char head[64], rows[64];
    struct record_cell cells[MOST_CELLS];
    char id_name[64];
    BUG_IF(study->n_head + ADDED > MOST_CELLS || study->n_cells + ADDED > MOST_CELLS,
        "more than %d cells", MOST_CELLS);
    snprintf(head, sizeof head, "INTO %s", study->table);
    snprintf(rows, sizeof rows, "INTO %s", study->rows_table);
    snprintf(id_name, sizeof id_name, "%s_id", study->table);
    cells[0] = cell_text("version", FLOPCAST_VERSION);
    memcpy(&cells[1], study->head, (size_t)study->n_head * sizeof *cells);
    enum status status = insert_row(store, head, cells, study->n_head + 1, what, diag);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (study->id)
        *study->id = id;
    cells[0] = cell_int(id_name, id);
    for (int i = 0; i < study->n_rows && status == STATUS_OK; i++) {
        cells[1] = cell_int("position", i);
        memcpy(&cells[ADDED], &study->cells[(ptrdiff_t)i * study->n_cells],
            (size_t)study->n_cells * sizeof *cells);
        status = insert_row(store, rows, cells, study->n_cells + ADDED, what, diag);
    }
    return status;
}

enum status store_put_study(struct store *store, const struct store_study *study, struct diag *diag)
{
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    return database_end(store, put_rows(store, study, diag), what, diag);
}
