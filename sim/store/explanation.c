#include "store/explanation.h"

#include "store/study.h"

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
