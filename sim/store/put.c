#include "store/database.h"
#include "store/insert.h"

#include "hw/hw.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

static const char what[] = "store the run";

struct transaction {
    struct store *store;
    struct insert run, document, point, memory, timeline, band, span;
    struct diag *diag;
};

/* The id of the document with this text, put in when it is new. */
static enum status put_document(struct transaction *t, const char *json, int64_t *id)
{
    if (!t->document.statement &&
        sqlite3_prepare_v2(t->store->db,
            "INSERT INTO document (json) VALUES (?) ON CONFLICT DO UPDATE SET json = json RETURNING id", -1,
            &t->document.statement, NULL) != SQLITE_OK)
        return database_fail(t->store, what, t->diag);
    sqlite3_stmt *statement = t->document.statement;
    bool ok =
        sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW;
    if (ok)
        *id = sqlite3_column_int64(statement, 0);
    enum status status = ok ? STATUS_OK : database_fail(t->store, what, t->diag);
    sqlite3_reset(statement);
    return status;
}

static char *table_json(const struct config_table *table, const void *from, const struct config_origins *origins)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    config_write_json(out, table, from, origins);
    fclose(out);
    return text;
}

static char *hardware_json(const struct hw *hw)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    fputs("{\"cluster\": ", out);
    config_write_json(out, &hw_cluster_table, &hw->cluster, NULL);
    fputs(", \"node\": ", out);
    config_write_json(out, &hw_node_table, &hw->node, NULL);
    fputs(", \"gpu\": ", out);
    config_write_json(out, &hw_gpu_table, &hw->gpu, NULL);
    fputs("}", out);
    fclose(out);
    return text;
}

static enum status put_memory(struct transaction *t, int64_t point_id, const struct exec_result *exec)
{
    bool ok = exec->status == EXEC_OK;
    enum status status = STATUS_OK;
    for (int i = 0; i < HBM_CATEGORY_COUNT && status == STATUS_OK; i++) {
        struct record_cell cells[] = {cell_int("point_id", point_id), cell_text("category", hbm_category_names[i]),
            cell_real("peak_bytes", ok, exec->memory.peak_category_bytes[i]),
            cell_real("required_bytes", !ok, exec->memory.required_category_bytes[i])};
        status = insert_row(t->store, &t->memory, cells, sizeof cells / sizeof *cells, what, t->diag);
    }
    return status;
}

static enum status put_timeline(struct transaction *t, int64_t point_id, const struct exec_result *exec)
{
    static const char *const columns[HBM_CATEGORY_COUNT] = {
        [HBM_PARAMETERS] = "parameters_bytes",
        [HBM_GRADIENTS] = "gradients_bytes",
        [HBM_OPTIMIZER] = "optimizer_bytes",
        [HBM_ACTIVATIONS] = "activations_bytes",
        [HBM_GATHERED] = "gathered_bytes",
        [HBM_BUFFERS] = "buffers_bytes",
        [HBM_CONTEXT] = "context_bytes",
        [HBM_NCCL] = "nccl_bytes",
    };
    enum status status = STATUS_OK;
    for (int s = 0; s < exec->n_timeline && status == STATUS_OK; s++) {
        const struct exec_memory_sample *sample = &exec->timeline[s];
        struct record_cell cells[4 + HBM_CATEGORY_COUNT] = {cell_int("point_id", point_id), cell_int("sample", s),
            cell_real("time_s", true, sample->time_s), cell_real("reserved_bytes", true, sample->reserved_bytes)};
        for (int i = 0; i < HBM_CATEGORY_COUNT; i++)
            cells[4 + i] = cell_real(columns[i], true, sample->category_bytes[i]);
        status = insert_row(t->store, &t->timeline, cells, sizeof cells / sizeof *cells, what, t->diag);
    }
    return status;
}

static enum status put_band(struct transaction *t, int64_t point_id, const struct scenario_result *result)
{
    struct record record;
    struct record_cell cells[1 + RECORD_MAX_CELLS] = {cell_int("point_id", point_id)};
    if (result->n_samples == 0)
        return STATUS_OK;
    record_fill_band(&record, result);
    for (int i = 0; i < record.n; i++)
        cells[1 + i] = record.cells[i];
    return insert_row(t->store, &t->band, cells, 1 + record.n, what, t->diag);
}

/* Times since the last measured step began; what began before it (prefetched work) has a time below 0. */
static enum status put_spans(struct transaction *t, int64_t point_id, const struct exec_result *exec)
{
    enum status status = STATUS_OK;
    for (int s = 0; s < exec->n_spans && status == STATUS_OK; s++) {
        const struct exec_span *span = &exec->spans[s];
        struct record_cell cells[] = {cell_int("point_id", point_id), cell_int("span", s), cell_int("rank", span->rank),
            cell_text("stream", plan_stream_names[span->stream]), cell_text("phase", plan_phase_names[span->phase]),
            cell_text("name", span->name), cell_int("is_collective", span->is_collective),
            cell_real("start_s", true, s_from_ps(span->start - exec->last_step_start)),
            cell_real("moving_s", true, s_from_ps(span->moving - exec->last_step_start)),
            cell_real("end_s", true, s_from_ps(span->end - exec->last_step_start)),
            cell_real("alone_s", !span->is_collective, s_from_ps(span->alone))};
        status = insert_row(t->store, &t->span, cells, sizeof cells / sizeof *cells, what, t->diag);
    }
    return status;
}

static enum status put_point(struct transaction *t, int64_t run_id, int position, const struct scenario_point *point,
    const struct scenario_result *result)
{
    int64_t hardware_id = 0, model_id = 0;
    char *config = table_json(&scenario_table, &point->options, &point->origins);
    char *hardware = hardware_json(&point->hw);
    char *model = table_json(&model_shape_table, &point->model.shape, NULL);
    enum status status = put_document(t, hardware, &hardware_id);
    if (status == STATUS_OK)
        status = put_document(t, model, &model_id);
    if (status == STATUS_OK) {
        struct record record;
        record_fill(&record, point, result);
        struct record_cell cells[6 + RECORD_MAX_CELLS] = {cell_int("run_id", run_id), cell_int("position", position),
            cell_text("config", config), cell_int("hardware_id", hardware_id), cell_int("model_id", model_id),
            cell_real("wall_s", true, result->wall_s)};
        for (int i = 0; i < record.n; i++)
            cells[6 + i] = record.cells[i];
        status = insert_row(t->store, &t->point, cells, 6 + record.n, what, t->diag);
    }
    free(config);
    free(hardware);
    free(model);
    int64_t id = sqlite3_last_insert_rowid(t->store->db);
    if (status == STATUS_OK)
        status = put_memory(t, id, &result->exec);
    if (status == STATUS_OK)
        status = put_timeline(t, id, &result->exec);
    if (status == STATUS_OK)
        status = put_band(t, id, result);
    if (status == STATUS_OK)
        status = put_spans(t, id, &result->exec);
    return status;
}

enum status store_put(
    struct store *store, const struct scenario_set *set, const struct scenario_result *results, struct diag *diag)
{
    BUG_IF(set->n_points == 0, "a run without points");
    struct transaction t = {.store = store,
        .diag = diag,
        .run = {.table = "run"},
        .point = {.table = "point"},
        .memory = {.table = "memory"},
        .timeline = {.table = "timeline"},
        .band = {.table = "band"},
        .span = {.table = "span"}};
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    const struct scenario *first = &set->points[0].options;
    struct record_cell cells[] = {cell_text("scenario", first->name), cell_text("description", first->description),
        cell_text("file", set->file), cell_text("version", FLOPCAST_VERSION)};
    status = insert_row(store, &t.run, cells, sizeof cells / sizeof *cells, what, diag);
    int64_t run_id = sqlite3_last_insert_rowid(store->db);
    for (int i = 0; i < set->n_points && status == STATUS_OK; i++)
        status = put_point(&t, run_id, i, &set->points[i], &results[i]);
    sqlite3_finalize(t.run.statement);
    sqlite3_finalize(t.document.statement);
    sqlite3_finalize(t.point.statement);
    sqlite3_finalize(t.memory.statement);
    sqlite3_finalize(t.timeline.statement);
    sqlite3_finalize(t.band.statement);
    sqlite3_finalize(t.span.statement);
    return database_end(store, status, what, diag);
}
