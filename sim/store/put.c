#include "store/database.h"
#include "store/record.h"

#include "hw/hw.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

static const char what[] = "store the run";

/* An INSERT that is prepared from the names of its first row; every later row must have the same names. */
struct insert {
    const char *table;
    sqlite3_stmt *statement;
};

struct transaction {
    struct store *store;
    struct insert run, document, point, memory, timeline;
    struct diag *diag;
};

static struct record_cell cell_int(const char *name, int64_t value)
{
    return (struct record_cell){.name = name, .kind = RECORD_INT, .integer = value};
}

static struct record_cell cell_real(const char *name, bool known, double value)
{
    return (struct record_cell){.name = name, .kind = known ? RECORD_REAL : RECORD_NULL, .real = value};
}

static struct record_cell cell_text(const char *name, const char *text)
{
    return (struct record_cell){.name = name, .kind = text ? RECORD_TEXT : RECORD_NULL, .text = text};
}

static enum status prepare(struct transaction *t, struct insert *insert, const struct record_cell *cells, int n)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size);
    BUG_IF(!out, "open_memstream failed");
    fprintf(out, "INSERT INTO %s (", insert->table);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? ", " : "", cells[i].name);
    fputs(") VALUES (", out);
    for (int i = 0; i < n; i++)
        fputs(i ? ", ?" : "?", out);
    fputc(')', out);
    fclose(out);
    int code = sqlite3_prepare_v2(t->store->db, sql, -1, &insert->statement, NULL);
    free(sql);
    return code == SQLITE_OK ? STATUS_OK : database_fail(t->store, what, t->diag);
}

static int bind(sqlite3_stmt *statement, int i, const struct record_cell *cell)
{
    switch (cell->kind) {
    case RECORD_INT:
        return sqlite3_bind_int64(statement, i, cell->integer);
    case RECORD_REAL:
        return sqlite3_bind_double(statement, i, cell->real);
    case RECORD_TEXT:
        return sqlite3_bind_text(statement, i, cell->text, -1, SQLITE_STATIC);
    case RECORD_NULL:
        break;
    }
    return sqlite3_bind_null(statement, i);
}

static enum status insert(struct transaction *t, struct insert *into, const struct record_cell *cells, int n)
{
    if (!into->statement && prepare(t, into, cells, n) != STATUS_OK)
        return STATUS_IO;
    BUG_IF(sqlite3_bind_parameter_count(into->statement) != n, "rows of %s differ", into->table);
    int code = SQLITE_OK;
    for (int i = 0; i < n && code == SQLITE_OK; i++)
        code = bind(into->statement, i + 1, &cells[i]);
    if (code == SQLITE_OK)
        code = sqlite3_step(into->statement);
    enum status status = code == SQLITE_DONE ? STATUS_OK : database_fail(t->store, what, t->diag);
    sqlite3_reset(into->statement);
    return status;
}

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
        status = insert(t, &t->memory, cells, sizeof cells / sizeof *cells);
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
        status = insert(t, &t->timeline, cells, sizeof cells / sizeof *cells);
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
        status = insert(t, &t->point, cells, 6 + record.n);
    }
    free(config);
    free(hardware);
    free(model);
    int64_t id = sqlite3_last_insert_rowid(t->store->db);
    if (status == STATUS_OK)
        status = put_memory(t, id, &result->exec);
    if (status == STATUS_OK)
        status = put_timeline(t, id, &result->exec);
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
        .timeline = {.table = "timeline"}};
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    const struct scenario *first = &set->points[0].options;
    struct record_cell cells[] = {cell_text("scenario", first->name), cell_text("description", first->description),
        cell_text("file", set->file), cell_text("version", FLOPCAST_VERSION)};
    status = insert(&t, &t.run, cells, sizeof cells / sizeof *cells);
    int64_t run_id = sqlite3_last_insert_rowid(store->db);
    for (int i = 0; i < set->n_points && status == STATUS_OK; i++)
        status = put_point(&t, run_id, i, &set->points[i], &results[i]);
    sqlite3_finalize(t.run.statement);
    sqlite3_finalize(t.document.statement);
    sqlite3_finalize(t.point.statement);
    sqlite3_finalize(t.memory.statement);
    sqlite3_finalize(t.timeline.statement);
    return database_end(store, status, what, diag);
}
