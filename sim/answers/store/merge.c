/* The source is attached to the target's connection, and each kind of row goes over by one INSERT
 * ... SELECT. Numbers of rows are the target's: temporary tables say which row of the source has
 * become which (run_as, document_as, point_as). What both have is compared when all are there, and
 * a difference rolls everything back. */
#include "store/merge.h"

#include "store/database.h"

#include <stdlib.h>
#include <string.h>

static const char what_merged[] = "merge the databases";

struct merge {
    struct store *into;
    const char *path; /* of the source */
    struct diag *diag;
};

/* The columns of a table but those in `without`, as "'a', 'b'", with commas between them. For
 * sqlite3_free(). */
static char *list_columns(struct merge *merge, const char *table, const char *without)
{
    char *out = NULL;
    char *sql = sqlite3_mprintf(
        "SELECT name FROM pragma_table_info('%s') WHERE name NOT IN (%s)", table, without);
    database_join(&out, merge->into, sql, NULL, merge->diag);
    sqlite3_free(sql);
    return out;
}

/* The statement, for which sqlite3_free() is called. added: by how many rows it changes; NULL:
 * nobody asks. */
static enum status change_rows(struct merge *merge, char *sql, int *added)
{
    enum status status = database_exec(merge->into, sql, what_merged, merge->diag);
    sqlite3_free(sql);
    if (added && status == STATUS_OK)
        *added += sqlite3_changes(merge->into->db);
    return status;
}

/* Inserts rows, by a statement of sqlite3_mprintf() that names columns; both are freed. Then a
 * script says which row of the source has become which. */
static enum status insert_rows(
    struct merge *merge, char *columns, char *insert, int *added, const char *script)
{
    enum status status = change_rows(merge, insert, added);
    sqlite3_free(columns);
    return status == STATUS_OK ? database_exec(merge->into, script, what_merged, merge->diag)
                               : status;
}

/* A run of the same scenario and sweep is the same run: the newest there is, or the source's first.
 */
static enum status merge_runs(struct merge *merge, int *added)
{
    char *columns = list_columns(merge, "run", "'id'");
    return insert_rows(merge, columns,
        sqlite3_mprintf(
            "INSERT INTO main.run (%s) SELECT %s FROM source.run AS s "
            "WHERE id IN (SELECT min(id) FROM source.run GROUP BY scenario, sweep) AND NOT EXISTS "
            "(SELECT 1 FROM main.run AS m WHERE m.scenario = s.scenario AND m.sweep = s.sweep) "
            "ORDER BY id",
            columns, columns),
        added,
        "CREATE TEMP TABLE run_as AS SELECT s.id AS source, max(m.id) AS target FROM source.run AS "
        "s JOIN main.run AS m USING (scenario, sweep) GROUP BY s.id");
}

static enum status merge_documents(struct merge *merge)
{
    return database_exec(merge->into,
        "INSERT INTO main.document (json) SELECT json FROM source.document "
        "WHERE id IN (SELECT hardware_id FROM source.point UNION SELECT model_id FROM "
        "source.point) ORDER BY id ON CONFLICT DO NOTHING;"
        "CREATE TEMP TABLE document_as AS SELECT s.id AS source, m.id AS target FROM "
        "source.document AS s JOIN main.document AS m USING (json);"
        "CREATE INDEX temp.document_source ON document_as(source)",
        what_merged, merge->diag);
}

/* What simulated_id names may be one of the points that come: it is set when all are there. */
static enum status merge_points(struct merge *merge, int *added)
{
    char *columns =
        list_columns(merge, "point", "'id', 'run_id', 'hardware_id', 'model_id', 'simulated_id'");
    return insert_rows(merge, columns,
        sqlite3_mprintf(
            "CREATE TEMP TABLE had AS SELECT coalesce(max(id), 0) AS point FROM main.point;"
            "INSERT INTO main.point (run_id, hardware_id, model_id, %s) "
            "SELECT run_as.target, hardware.target, model.target, %s FROM source.point "
            "JOIN run_as ON run_as.source = run_id JOIN document_as AS hardware ON hardware.source "
            "= hardware_id JOIN document_as AS model ON model.source = model_id "
            "WHERE true ORDER BY run_id, position ON CONFLICT (run_id, position) DO NOTHING",
            columns, columns),
        added,
        "CREATE TEMP TABLE point_as AS SELECT s.id AS source, m.id AS target FROM source.point AS "
        "s "
        "JOIN run_as ON run_as.source = s.run_id "
        "JOIN main.point AS m ON m.run_id = run_as.target AND m.position = s.position;"
        "CREATE INDEX temp.point_source ON point_as(source);"
        "CREATE INDEX temp.point_target ON point_as(target);"
        "UPDATE main.point SET simulated_id = (SELECT of.target FROM point_as AS own "
        "JOIN source.point AS s ON s.id = own.source "
        "JOIN point_as AS of ON of.source = s.simulated_id WHERE own.target = point.id) "
        "WHERE id > (SELECT point FROM had)");
}

/* The first point that the target has otherwise: every column but those that say when, how long and
 * which row. */
static enum status compare_points(struct merge *merge)
{
    static const char differ[] = "SELECT printf('WHEN s.\"%w\" IS NOT m.\"%w\" THEN %Q ', name, "
                                 "name, name) FROM pragma_table_info('point') "
                                 "WHERE name NOT IN ('id', 'run_id', 'config', 'wall_s', "
                                 "'hardware_id', 'model_id', 'simulated_id')";
    char *cases = NULL;
    if (database_join(&cases, merge->into, differ, "%s", merge->diag) != STATUS_OK)
        return STATUS_IO;
    char *sql = sqlite3_mprintf(
        "SELECT s.position + 1, CASE %s END AS differs FROM point_as "
        "JOIN source.point AS s ON s.id = source JOIN main.point AS m ON m.id = target "
        "WHERE differs IS NOT NULL ORDER BY s.id LIMIT 1",
        cases);
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(merge->into->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    enum status status = code == SQLITE_DONE ? STATUS_OK : STATUS_IO;
    if (code == SQLITE_ROW)
        status = diag_input(merge->diag, (struct source_pos){.file = merge->path},
            "point %d of its run differs in '%s' from the same point of '%s'; a run gives the same "
            "results wherever it runs, so one of them was changed: leave one of the two out",
            sqlite3_column_int(statement, 0), sqlite3_column_text(statement, 1), merge->into->path);
    else if (code != SQLITE_DONE)
        database_fail(merge->into, what_merged, merge->diag);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    sqlite3_free(cases);
    return status;
}

/* What belongs to points and is not there yet (a band may come later than its point). */
static enum status merge_children(struct merge *merge)
{
    static const char *const tables[] = {"memory", "timeline", "program", "band", "given", "span"};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == STATUS_OK; i++) {
        char *columns = list_columns(merge, tables[i], "'point_id'");
        status = change_rows(merge,
            sqlite3_mprintf(
                "INSERT OR IGNORE INTO main.%s (point_id, %s) SELECT target, %s FROM source.%s "
                "JOIN point_as ON source = point_id",
                tables[i], columns, columns, tables[i]),
            NULL);
        sqlite3_free(columns);
    }
    return status == STATUS_OK
               ? database_exec(merge->into,
                     "INSERT INTO main.shard (run_id, shards, shard, points, finished) "
                     "SELECT target, shards, shard, points, finished FROM source.shard JOIN run_as "
                     "ON source = run_id WHERE true ON CONFLICT DO UPDATE SET finished = "
                     "max(finished, excluded.finished)",
                     what_merged, merge->diag)
               : status;
}

/* Rows that are known by what they are of. */
static enum status merge_table(struct merge *merge, const char *table, int *added)
{
    char *columns = list_columns(merge, table, "''");
    enum status status = change_rows(merge,
        sqlite3_mprintf("INSERT OR IGNORE INTO main.%s (%s) SELECT %s FROM source.%s", table,
            columns, columns, table),
        added);
    sqlite3_free(columns);
    return status;
}

/* All of the source that is attached, or nothing. */
static enum status merge_attached(struct merge *merge, struct store_merged *out)
{
    *out = (struct store_merged){0};
    enum status status = database_exec(merge->into, "BEGIN IMMEDIATE", what_merged, merge->diag);
    bool begun = status == STATUS_OK;
    if (status == STATUS_OK)
        status = merge_runs(merge, &out->runs);
    if (status == STATUS_OK)
        status = merge_documents(merge);
    if (status == STATUS_OK)
        status = merge_points(merge, &out->points);
    if (status == STATUS_OK)
        status = compare_points(merge);
    if (status == STATUS_OK)
        status = merge_children(merge);
    if (status == STATUS_OK)
        status = merge_table(merge, "sample", &out->samples);
    if (status == STATUS_OK)
        status = merge_table(merge, "outcome", &out->outcomes);
    if (begun)
        status = database_end(merge->into, status, what_merged, merge->diag);
    return database_exec(merge->into,
               "DROP TABLE IF EXISTS temp.run_as; DROP TABLE IF EXISTS temp.document_as;"
               "DROP TABLE IF EXISTS temp.point_as; DROP TABLE IF EXISTS temp.had; DETACH source",
               what_merged, merge->diag) == STATUS_OK
               ? status
               : STATUS_IO;
}

static void warn_left_out(struct store *from, struct diag *diag)
{
    char *list = NULL;
    database_join(&list, from,
        "SELECT DISTINCT kind FROM main.answer UNION ALL SELECT 'measurements' WHERE EXISTS "
        "(SELECT "
        "1 FROM main.measurement_source)",
        NULL, diag);
    if (list && *list)
        diag_warn(diag, (struct source_pos){.file = from->path},
            "runs, samples and outcomes are merged; these of its answers are not: %s", list);
    sqlite3_free(list);
}

enum status store_merge(
    struct store *into, const char *path, struct store_merged *out, struct diag *diag)
{
    struct merge merge = {into, path, diag};
    struct store *from = NULL;
    *out = (struct store_merged){0};
    enum status status =
        store_open(&from, path, STORE_READ, diag); /* whether it is one, and of this schema */
    char *sql = sqlite3_mprintf("ATTACH %Q AS source", path);
    if (status == STATUS_OK)
        status = database_exec(into, sql, what_merged, diag);
    sqlite3_free(sql);
    if (status == STATUS_OK)
        status = merge_attached(&merge, out);
    if (status == STATUS_OK)
        warn_left_out(from, diag);
    store_close(from);
    return status;
}

enum status store_merge_bytes(struct store *into, const unsigned char *bytes, size_t n,
    struct store_merged *out, struct diag *diag)
{
    struct merge merge = {into, "a rank's database", diag};
    *out = (struct store_merged){0};
    enum status status = database_exec(into, "ATTACH ':memory:' AS source", what_merged, diag);
    if (status != STATUS_OK)
        return status;
    return database_take(into, "source", bytes, n) ? merge_attached(&merge, out)
                                                   : database_fail(into, what_merged, diag);
}

/* ---- shards ---- */

enum status store_check_shards(struct store *store, struct diag *diag)
{
    /* the numbers of shards that are not there, and of those that were not finished, of each
     * division into shards */
    static const char sql[] =
        "WITH RECURSIVE division AS (SELECT DISTINCT run_id, shards FROM shard), "
        "number AS (SELECT run_id, shards, 1 AS shard FROM division UNION ALL "
        "SELECT run_id, shards, shard + 1 FROM number WHERE shard < shards) "
        "SELECT scenario, v_unfinished.finished, v_unfinished.points, "
        "group_concat(number.shard || '/' || number.shards, ', ') FILTER (WHERE shard.shard IS "
        "NULL), group_concat(number.shard || '/' || number.shards, ', ') FILTER (WHERE "
        "shard.finished = 0) FROM number JOIN v_unfinished USING (run_id) LEFT JOIN shard USING "
        "(run_id, shards, shard) GROUP BY run_id, number.shards ORDER BY run_id, number.shards";
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    enum status status = STATUS_OK;
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *missing = (const char *)sqlite3_column_text(statement, 3);
        const char *stopped = (const char *)sqlite3_column_text(statement, 4);
        status = diag_io(diag, (struct source_pos){.file = store->path},
            "'%s' has %d of %d points;%s%s%s%s%s; run %s, then merge again",
            sqlite3_column_text(statement, 0), sqlite3_column_int(statement, 1),
            sqlite3_column_int(statement, 2), missing ? " missing: shard " : "",
            missing ? missing : "", missing && stopped ? ";" : "",
            stopped ? " stopped before its end: shard " : "", stopped ? stopped : "",
            (missing && strchr(missing, ',')) || (missing && stopped) ? "them" : "it");
        code = SQLITE_OK;
    }
    if (code != SQLITE_OK && code != SQLITE_DONE)
        status = database_fail(store, "look for shards", diag);
    sqlite3_finalize(statement);
    return status;
}
