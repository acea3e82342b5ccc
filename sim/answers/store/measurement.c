/* Measured times of collectives and kernels into the database, in one transaction from
 * store_import_begin() to store_import_end().
 *
 * A source is a file, known by the digest of its bytes: one that is stored already is reported
 * and adds nothing. Names of kernels repeat many times, so they are rows of a table kernel_name,
 * and a measurement has their number. What is subtle: a time of 0 is stored as NULL (not
 * measured), and so is a number of nodes of 0. */
#include "store/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char what_measured[] = "store the measurements";

enum status store_import_begin(struct store_import **out, struct store *store, struct diag *diag)
{
    *out = NULL;
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what_measured, diag);
    if (status != STATUS_OK)
        return status;
    *out = xcalloc(1, sizeof **out);
    **out = (struct store_import){.store = store};
    return STATUS_OK;
}

static enum status find_source(
    struct store_import *import, const char *digest, struct store_known *known, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(import->store->db,
        "SELECT file, created_utc FROM measurement_source WHERE digest = ?", -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, 1, digest, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    known->known = code == SQLITE_ROW;
    if (known->known) {
        snprintf(
            known->file, sizeof known->file, "%s", (const char *)sqlite3_column_text(statement, 0));
        snprintf(known->created_utc, sizeof known->created_utc, "%s",
            (const char *)sqlite3_column_text(statement, 1));
    }
    enum status status = code == SQLITE_ROW || code == SQLITE_DONE
                             ? STATUS_OK
                             : database_fail(import->store, what_measured, diag);
    sqlite3_finalize(statement);
    return status;
}

enum status store_import_source(struct store_import *import, const char *format, const char *file,
    uint64_t digest, struct store_known *known, struct diag *diag)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, digest);
    enum status status = find_source(import, text, known, diag);
    if (status != STATUS_OK || known->known)
        return status;
    status = insert_row(import->store, "INTO measurement_source",
        RECORD_CELLS(
            cell_text("format", format), cell_text("file", file), cell_text("digest", text)),
        what_measured, diag);
    import->source_id = sqlite3_last_insert_rowid(import->store->db);
    return status;
}

enum status store_import_collective(
    struct store_import *import, const struct collective_measurement *row, struct diag *diag)
{
    struct record_cell nodes = cell_int("nodes", row->nodes);
    if (row->nodes == 0)
        nodes.kind = RECORD_NULL;
    return insert_row(import->store, "INTO collective_measurement",
        RECORD_CELLS(cell_int("source_id", import->source_id), cell_int("position", row->position),
            cell_text("collective", row->collective), cell_int("ranks", row->ranks), nodes,
            cell_text("algorithm", row->algorithm), cell_text("protocol", row->protocol),
            cell_text("dtype", row->dtype), cell_int("bytes", row->bytes),
            cell_real("out_of_place_s", row->out_of_place_s > 0, row->out_of_place_s),
            cell_real("in_place_s", row->in_place_s > 0, row->in_place_s)),
        what_measured, diag);
}

enum status store_import_kernel(
    struct store_import *import, const struct kernel_measurement *row, struct diag *diag)
{
    int64_t name_id = 0;
    enum status status = insert_unique(import->store,
        "INSERT INTO kernel_name (name) VALUES (?) ON CONFLICT DO UPDATE SET name = name RETURNING "
        "id",
        row->name, &name_id, what_measured, diag);
    if (status != STATUS_OK)
        return status;
    return insert_row(import->store, "INTO kernel_measurement",
        RECORD_CELLS(cell_int("source_id", import->source_id), cell_int("position", row->position),
            cell_int("name_id", name_id), cell_int("device", row->device),
            cell_int("stream", row->stream), cell_real("start_s", true, row->start_s),
            cell_real("duration_s", true, row->duration_s),
            cell_text("collective", row->collective)),
        what_measured, diag);
}

enum status store_import_about(
    struct store_import *import, const struct measurement_about *about, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(import->store->db,
        "UPDATE measurement_source SET source = ?, gpu = ?, network = ?, nccl_version = ?, note = "
        "?, healthy = ?, partial = ? WHERE id = ?",
        -1, &statement, NULL);
    const char *const texts[] = {
        about->source, about->gpu, about->network, about->nccl_version, about->note};
    const int64_t numbers[] = {!about->unhealthy, about->partial, import->source_id};
    int i = 1; /* a NULL text binds NULL */
    for (size_t k = 0; k < sizeof texts / sizeof *texts && code == SQLITE_OK; k++)
        code = sqlite3_bind_text(statement, i++, texts[k], -1, SQLITE_STATIC);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers && code == SQLITE_OK; k++)
        code = sqlite3_bind_int64(statement, i++, numbers[k]);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    enum status status =
        code == SQLITE_DONE ? STATUS_OK : database_fail(import->store, what_measured, diag);
    sqlite3_finalize(statement);
    return status;
}

enum status import_read_int(
    struct store_import *import, const char *sql, int64_t *out, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(import->store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    if (ok)
        *out = sqlite3_column_int64(statement, 0);
    enum status status = ok ? STATUS_OK : database_fail(import->store, what_measured, diag);
    sqlite3_finalize(statement);
    return status;
}

enum status store_import_end(struct store_import *import, enum status status, struct diag *diag)
{
    status = database_end(import->store, status, what_measured, diag);
    free(import);
    return status;
}
