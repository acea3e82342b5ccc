#include "store/study.h"

#include "store/database.h"
#include "store/insert.h"

#include <string.h>

static const char what[] = "store the results";

enum { ADDED = 2, MOST_CELLS = 40 };

static enum status put_rows(struct store *store, const struct store_study *study, struct diag *diag)
{
    struct insert head = {.table = study->table}, rows = {.table = study->rows_table};
    struct record_cell cells[MOST_CELLS];
    char id_name[64];
    BUG_IF(study->n_head + ADDED > MOST_CELLS || study->n_cells + ADDED > MOST_CELLS, "more than %d cells", MOST_CELLS);
    snprintf(id_name, sizeof id_name, "%s_id", study->table);
    cells[0] = cell_text("version", FLOPCAST_VERSION);
    memcpy(&cells[1], study->head, (size_t)study->n_head * sizeof *cells);
    enum status status = insert_row(store, &head, cells, study->n_head + 1, what, diag);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    if (study->id)
        *study->id = id;
    cells[0] = cell_int(id_name, id);
    for (int i = 0; i < study->n_rows && status == STATUS_OK; i++) {
        cells[1] = cell_int("position", i);
        memcpy(&cells[ADDED], &study->cells[(ptrdiff_t)i * study->n_cells], (size_t)study->n_cells * sizeof *cells);
        status = insert_row(store, &rows, cells, study->n_cells + ADDED, what, diag);
    }
    sqlite3_finalize(head.statement);
    sqlite3_finalize(rows.statement);
    return status;
}

enum status store_put_study(struct store *store, const struct store_study *study, struct diag *diag)
{
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    return database_end(store, put_rows(store, study, diag), what, diag);
}

enum status store_put_explanation(struct store *store, const struct scenario_waterfall *waterfall, const char *label,
    const struct scenario_point *small, const struct scenario_point *large, int64_t *first, struct diag *diag)
{
    const struct record_cell head[] = {cell_text("scenario", small->options.name), cell_text("label", label),
        cell_int("small_gpus", small->options.cluster.gpus), cell_int("large_gpus", large->options.cluster.gpus),
        cell_real("small_tflops_per_gpu", true, waterfall->small[0]),
        cell_real("large_tflops_per_gpu", true, waterfall->large[0]),
        *first > 0 ? cell_int("first_id", *first) : cell_text("first_id", NULL)};
    enum { CELLS = 2 };
    struct record_cell parts[CELLS * (CAUSE_COUNT + 1)];
    int n = 0;
    for (int i = 0; i <= CAUSE_COUNT; i++) {
        if (!scenario_waterfall_has(waterfall, i))
            continue;
        parts[n++] = cell_text("cause", scenario_causes[i].name);
        parts[n++] = cell_real("lost_tflops_per_gpu", true, i == CAUSE_REST ? waterfall->rest : waterfall->part[i]);
    }
    int64_t id = 0;
    const struct store_study study = {.table = "explanation",
        .rows_table = "explanation_part",
        .head = head,
        .n_head = sizeof head / sizeof *head,
        .cells = parts,
        .n_cells = CELLS,
        .n_rows = n / CELLS,
        .id = &id};
    enum status status = store_put_study(store, &study, diag);
    if (status == STATUS_OK && *first == 0)
        *first = id;
    return status;
}
