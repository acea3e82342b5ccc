#include "store/explanation.h"

#include "store/database.h"
#include "store/insert.h"

static const char what[] = "store the explanation";

enum status store_put_explanation(struct store *store, const struct scenario_waterfall *waterfall, const char *label,
    const struct scenario_point *small, const struct scenario_point *large, int64_t *first, struct diag *diag)
{
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    struct insert head = {.table = "explanation"}, parts = {.table = "explanation_part"};
    struct record_cell cells[] = {cell_text("version", FLOPCAST_VERSION), cell_text("scenario", small->options.name),
        cell_text("label", label), cell_int("small_gpus", small->options.cluster.gpus),
        cell_int("large_gpus", large->options.cluster.gpus),
        cell_real("small_tflops_per_gpu", true, waterfall->small[0]),
        cell_real("large_tflops_per_gpu", true, waterfall->large[0]),
        *first > 0 ? cell_int("first_id", *first) : cell_text("first_id", NULL)};
    status = insert_row(store, &head, cells, sizeof cells / sizeof *cells, what, diag);
    int64_t id = sqlite3_last_insert_rowid(store->db);
    for (int i = 0, position = 0; i <= CAUSE_COUNT && status == STATUS_OK; i++) {
        if (!scenario_waterfall_has(waterfall, i))
            continue;
        struct record_cell part[] = {cell_int("explanation_id", id), cell_int("position", position++),
            cell_text("cause", scenario_causes[i].name),
            cell_real("lost_tflops_per_gpu", true, i == CAUSE_REST ? waterfall->rest : waterfall->part[i])};
        status = insert_row(store, &parts, part, sizeof part / sizeof *part, what, diag);
    }
    sqlite3_finalize(head.statement);
    sqlite3_finalize(parts.statement);
    status = database_end(store, status, what, diag);
    if (status == STATUS_OK && *first == 0)
        *first = id;
    return status;
}
