/* Rows of one point into the database: the point, its memory by category, its programs (stages,
 * kinds of GPUs), its time line of memory, spans of streams and of the host. The caller holds
 * the transaction.
 *
 * Hardware and model are documents in JSON, which most points of a run share: a digest of the
 * tables' fields finds the row of one that was written before without writing its JSON again,
 * and the table itself keeps equal texts once. The digests live as long as struct put;
 * put_forget() drops them after a rollback, as their rows are gone.
 *
 * What is subtle: times of spans are since the begin of the last measured step, so what began
 * before it has a negative time. A point whose result came from the database has no time line in
 * memory; it is copied from the point that has it. Its spans are not. */
#include "store/put.h"

#include "base/digest.h"
#include "hw/hw.h"
#include "model/model.h"
#include "store/fetch.h"

#include <stdio.h>
#include <stdlib.h>

const char put_what[] = "store the run";

void put_end(struct put *put)
{
    vec_free(&put->documents);
}

void put_forget(struct put *put)
{
    put->documents.n = 0;
}

static void write_hardware(FILE *out, const struct hw *hw)
{
    fputs("{\"cluster\": ", out);
    config_write_json(out, &hw_cluster_table, &hw->cluster, NULL);
    fputs(", \"node\": ", out);
    config_write_json(out, &hw_node_table, &hw->node, NULL);
    fputs(", \"gpu\": ", out);
    config_write_json(out, &hw_gpu_table, &hw->gpu, NULL);
    fputs("}", out);
}

/* The hardware's document, or where hw is NULL the model's; points mostly share theirs. */
static enum status put_document(struct put *put, const struct hw *hw,
    const struct model_shape *shape, int64_t *id, struct diag *diag)
{
    uint64_t digest = DIGEST_INIT;
    if (hw) {
        digest = config_digest(digest, &hw_cluster_table, &hw->cluster);
        digest = config_digest(digest, &hw_node_table, &hw->node);
        digest = config_digest(digest, &hw_gpu_table, &hw->gpu);
    } else {
        digest = config_digest(digest, &model_shape_table, shape);
    }
    for (int i = 0; i < put->documents.n; i++)
        if (put->documents.at[i].digest == digest) {
            *id = put->documents.at[i].id;
            return STATUS_OK;
        }
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    if (hw)
        write_hardware(out, hw);
    else
        config_write_json(out, &model_shape_table, shape, NULL);
    fclose(out);
    enum status status = insert_unique(put->store,
        "INSERT INTO document (json) VALUES (?) ON CONFLICT DO UPDATE SET json = json RETURNING id",
        text, id, put_what, diag);
    if (status == STATUS_OK)
        vec_push(&put->documents, (struct put_document){digest, *id});
    free(text);
    return status;
}

static enum status put_memory(
    struct put *put, int64_t point_id, const struct exec_result *exec, struct diag *diag)
{
    bool ok = exec->status == EXEC_OK;
    enum status status = STATUS_OK;
    for (int i = 0; i < HBM_CATEGORY_COUNT && status == STATUS_OK; i++)
        status = insert_row(put->store, "INTO memory",
            RECORD_CELLS(cell_int("point_id", point_id),
                cell_text("category", hbm_category_names[i]),
                cell_real("peak_bytes", ok, exec->memory.peak_category_bytes[i]),
                cell_real("required_bytes", !ok, exec->memory.required_category_bytes[i])),
            put_what, diag);
    return status;
}

/* Where there are several programs. */
static enum status put_programs(
    struct put *put, int64_t point_id, const struct exec_result *exec, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int p = 0; p < exec->n_programs && exec->n_programs > 1 && status == STATUS_OK; p++) {
        struct record_cell cells[3 + RECORD_MAX_CELLS] = {cell_int("point_id", point_id),
            cell_int("program", p), cell_int("fullest", p == exec->fullest)};
        int n = 3;
        for (int i = 0; i < n_record_columns; i++)
            if (record_columns[i].program)
                cells[n++] = cell_real(record_columns[i].name, true,
                    *record_of_program(&exec->programs[p], &record_columns[i]));
        status = insert_row(put->store, "INTO program", cells, n, put_what, diag);
    }
    return status;
}

static enum status store_put_timeline(
    struct put *put, int64_t point_id, const struct exec_result *exec, struct diag *diag)
{
    enum { MORE = 4, CELLS = MORE + HBM_CATEGORY_COUNT };
    char columns[HBM_CATEGORY_COUNT][32];
    enum status status = STATUS_OK;
    for (int i = 0; i < HBM_CATEGORY_COUNT; i++)
        snprintf(columns[i], sizeof columns[i], "%s_bytes", hbm_category_names[i]);
    for (int s = 0; s < exec->n_timeline && status == STATUS_OK; s++) {
        const struct exec_memory_sample *sample = &exec->timeline[s];
        struct record_cell cells[CELLS] = {cell_int("point_id", point_id), cell_int("sample", s),
            cell_real("time_s", true, sample->time_s),
            cell_real("reserved_bytes", true, sample->reserved_bytes)};
        for (int i = 0; i < HBM_CATEGORY_COUNT; i++)
            cells[MORE + i] = cell_real(columns[i], true, sample->category_bytes[i]);
        status = insert_row(put->store, "INTO timeline", cells, CELLS, put_what, diag);
    }
    return status;
}

enum status put_band(
    struct put *put, int64_t point_id, const struct scenario_result *result, struct diag *diag)
{
    struct record record;
    struct record_cell cells[1 + RECORD_MAX_CELLS] = {cell_int("point_id", point_id)};
    record_fill_band(&record, result);
    for (int i = 0; i < record.n; i++)
        cells[1 + i] = record.cells[i];
    return insert_row(put->store, "INTO band", cells, 1 + record.n, put_what, diag);
}

static struct record_cell some_int(const char *name, bool known, int64_t value)
{
    return known ? cell_int(name, value) : cell_text(name, NULL);
}

/* host: what the host thread does; NULL: a span of a stream. */
static enum status put_span(struct put *put, int64_t point_id, const struct exec_result *exec,
    int at, const struct exec_span *span, const char *host, struct diag *diag)
{
    bool of_cell = span->cell.pass != NULL;
    ps_t step = exec->last_step_start;
    return insert_row(put->store, "INTO span",
        RECORD_CELLS(cell_int("point_id", point_id), cell_int("span", at),
            cell_int("rank", span->rank), cell_text("stream", span->queue),
            cell_text("phase", plan_phase_names[span->phase]), cell_text("name", span->name),
            cell_int("is_collective", span->is_collective),
            cell_real("start_s", true, s_from_ps(span->start - step)),
            cell_real("moving_s", true, s_from_ps(span->moving - step)),
            cell_real("end_s", true, s_from_ps(span->end - step)),
            cell_real("alone_s", !host && !span->is_collective, s_from_ps(span->alone)),
            cell_text("host", host),
            some_int("program", !host && exec_has_stages(exec), span->program),
            some_int("micro_batch", of_cell, span->cell.micro_batch),
            some_int("chunk", of_cell, span->cell.chunk), cell_text("pass", span->cell.pass)),
        put_what, diag);
}

/* Those of streams, then the host thread's. */
static enum status store_put_spans(
    struct put *put, int64_t point_id, const struct exec_result *exec, struct diag *diag)
{
    static const char *const kinds[] = {[HOST_ISSUE] = "issues",
        [HOST_WORK] = "works",
        [HOST_WAITS] = "waits",
        [HOST_FULL_QUEUE] = "queue",
        [HOST_ALLOCATES] = "allocates"};
    enum status status = STATUS_OK;
    for (int s = 0; s < exec->n_spans && status == STATUS_OK; s++)
        status = put_span(put, point_id, exec, s, &exec->spans[s], NULL, diag);
    for (int s = 0; s < exec->n_host_spans && status == STATUS_OK; s++) {
        const struct exec_host_span *host = &exec->host_spans[s];
        const struct exec_span span = {.start = host->start,
            .moving = host->start,
            .end = host->end,
            .rank = host->rank,
            .phase = host->phase,
            .name = host->name,
            .queue = "host"};
        if (host->kind != HOST_STEP && host->end != host->start)
            status =
                put_span(put, point_id, exec, exec->n_spans + s, &span, kinds[host->kind], diag);
    }
    return status;
}

/* The timeline of a point whose result was taken from the database. */
static enum status copy_timeline(struct put *put, int64_t from, int64_t to, struct diag *diag)
{
    static const char sql[] =
        "INSERT INTO timeline SELECT ?, sample, time_s, reserved_bytes, parameters_bytes, "
        "gradients_bytes, optimizer_bytes, activations_bytes, gathered_bytes, buffers_bytes, "
        "context_bytes, nccl_bytes FROM timeline WHERE point_id = ?";
    sqlite3_stmt *copy = database_statement(put->store, sql);
    bool ok = copy && sqlite3_bind_int64(copy, 1, to) == SQLITE_OK &&
              sqlite3_bind_int64(copy, 2, from) == SQLITE_OK && sqlite3_step(copy) == SQLITE_DONE;
    enum status status = ok ? STATUS_OK : database_fail(put->store, put_what, diag);
    sqlite3_reset(copy);
    return status;
}

/* config holds every setting with its origin; identity is what other runs find the result by. */
static enum status store_put_row(struct put *put, const struct put_place *place,
    const struct scenario_point *point, const struct scenario_result *result, int64_t hardware_id,
    int64_t model_id, struct diag *diag)
{
    char *config = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&config, &n);
    config_write_json(out, &scenario_table, &point->options, &point->origins);
    fclose(out);
    struct record record;
    record_fill_kept(&record, point, result);
    enum { MORE = 10 };
    bool slow = result->slow.share > 0;
    struct record_cell cells[MORE + RECORD_MAX_CELLS] = {cell_int("run_id", place->run_id),
        cell_int("position", place->position), cell_text("config", config),
        cell_int("hardware_id", hardware_id), cell_int("model_id", model_id),
        cell_text("identity", place->identity),
        place->simulated_id > 0 ? cell_int("simulated_id", place->simulated_id)
                                : cell_text("simulated_id", NULL),
        cell_real("slow_share", slow, result->slow.share),
        cell_real("slow_none_s", slow, result->slow.none_s),
        cell_real("slow_some_s", slow, result->slow.some_s)};
    for (int i = 0; i < record.n; i++)
        cells[MORE + i] = record.cells[i];
    enum status status =
        insert_row(put->store, "INTO point", cells, MORE + record.n, put_what, diag);
    free(config);
    return status;
}

/* The row of the point goes first, as the others refer to its id. */
enum status put_point(struct put *put, const struct put_place *place,
    const struct scenario_point *point, const struct scenario_result *result, int64_t *id,
    struct diag *diag)
{
    int64_t hardware_id = 0, model_id = 0;
    enum status status = put_document(put, &point->hw, NULL, &hardware_id, diag);
    if (status == STATUS_OK)
        status = put_document(put, NULL, &point->model.shape, &model_id, diag);
    if (status == STATUS_OK)
        status = store_put_row(put, place, point, result, hardware_id, model_id, diag);
    *id = sqlite3_last_insert_rowid(put->store->db);
    if (status == STATUS_OK)
        status = put_memory(put, *id, &result->exec, diag);
    if (status == STATUS_OK)
        status = put_programs(put, *id, &result->exec, diag);
    if (status == STATUS_OK && place->simulated_id > 0)
        return copy_timeline(put, place->simulated_id, *id, diag);
    if (status == STATUS_OK)
        status = store_put_timeline(put, *id, &result->exec, diag);
    if (status == STATUS_OK)
        status = store_put_spans(put, *id, &result->exec, diag);
    return status;
}
