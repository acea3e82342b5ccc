/* Kernels of a profile of Nsight Systems, which is an SQLite database (nsys export --type
 * sqlite), into the tables of measurements, by SQL alone.
 *
 * The profile is attached read-only as `nsys`. Which tables and columns it has differs between
 * versions and between programs, as empty tables are left out, so nsys_find_parts() asks first and
 * insert_kernels() puts together a query of what is there. Correlation ids tie a kernel to the
 * CUDA call that launched it, the call's thread to the NVTX range around it.
 *
 * What is subtle: the file comes from elsewhere, so only ordinary tables are read, SQLite is in
 * defensive mode, cells are checked, and the file is opened as immutable. The range around a
 * launch is found by one sort of all pushes, pops and launches of a thread instead of a join of
 * all ranges with all launches, which would be quadratic. */
#include "store/database.h"
#include "store/import.h"

#include <stdio.h>
#include <string.h>

struct profile {
    struct store_import *import;
    const char *path;
    struct diag *diag;
};

/* A profile comes from elsewhere: what SQLite finds wrong while it is read is the file's fault,
 * unless SQLite names a fault of the disk or of writing. */
static enum status profile_fail(const struct profile *p)
{
    sqlite3 *db = p->import->store->db;
    switch (sqlite3_extended_errcode(db) & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_NOMEM:
        return database_fail(p->import->store, "import the profile", p->diag);
    default:
        return diag_input(p->diag, (struct source_pos){.file = p->path},
            "cannot read it as a Nsight Systems profile: %s; make it with `nsys export --type "
            "sqlite`",
            sqlite3_errmsg(db));
    }
}

/* Whether the table of the profile has all these columns ('a','b'; n of them). Only ordinary tables
 * count: a view or a virtual table in a file from elsewhere could run anything. */
static enum status nsys_has_columns(
    const struct profile *p, const char *table, const char *columns, int n, bool *out)
{
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf(
        "SELECT count(*) = %d FROM pragma_table_info(%Q, 'nsys') WHERE name IN (%s) AND EXISTS "
        "(SELECT 1 FROM pragma_table_list WHERE schema = 'nsys' AND name = %Q AND type = 'table')",
        n, table, columns, table);
    bool ok = sql &&
              sqlite3_prepare_v2(p->import->store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    if (ok)
        *out = sqlite3_column_int(statement, 0) != 0;
    enum status status = ok ? STATUS_OK : profile_fail(p);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return status;
}

/* Which thread launched each kernel, when. Correlation ids repeat between processes, so both are
 * the key. */
static const char launches[] =
    "SELECT correlationId AS correlation, globalTid & ~0xffffff AS process, globalTid AS "
    "thread, min(start) AS time FROM nsys.CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1, 2";
static const char no_launches[] =
    "SELECT 0 AS correlation, 0 AS process, 0 AS thread, 0 AS time WHERE 0";

/* Push/pop ranges (event type 59) of nonzero length; a text stands in the row or in StringIds. */
static const char ranges_format[] =
    "SELECT globalTid AS thread, start, \"end\", %s AS text FROM nsys.NVTX_EVENTS "
    "WHERE eventType = 59 AND \"end\" > start";
static const char no_ranges[] = "SELECT 0 AS thread, 0 AS start, 0 AS \"end\", '' AS text WHERE 0";
static const char string_text[] = "(SELECT value FROM nsys.StringIds WHERE id = textId)";

/* Ranges of a thread nest, so each thread is a sequence of pushes, pops and launches with a depth,
 * and the range around a launch at depth d is the last push to depth d before it: one sort, however
 * many ranges lie outside. At one instant pops come first, then pushes (the longer outside), then
 * launches. Temporary tables, because SQLite joins them by their keys and results of a WITH by
 * trying all pairs. */
static const char events_format[] =
    "CREATE TEMP TABLE launch (correlation INTEGER, process INTEGER, thread INTEGER, time "
    "INTEGER,\n"
    "  PRIMARY KEY (correlation, process)) WITHOUT ROWID;\n"
    "INSERT INTO launch %s;\n"
    "CREATE TEMP TABLE range AS %s;\n"
    "CREATE TEMP TABLE event (position INTEGER PRIMARY KEY, thread, kind, depth, text, "
    "correlation, process);\n"
    "CREATE TEMP TABLE around (correlation INTEGER, process INTEGER, text TEXT, PRIMARY KEY "
    "(correlation, process))\n"
    "  WITHOUT ROWID;\n"
    "WITH mixed (thread, time, kind, tie, step, text, correlation, process) AS (\n"
    "  SELECT thread, start, 1, -\"end\", 1, text, NULL, NULL FROM range\n"
    "  UNION ALL SELECT thread, \"end\", 0, 0, -1, NULL, NULL, NULL FROM range\n"
    "  UNION ALL SELECT thread, time, 2, 0, 0, NULL, correlation, process FROM launch)\n"
    "INSERT INTO event SELECT NULL, thread, kind,\n"
    "  sum(step) OVER (PARTITION BY thread ORDER BY time, kind, tie ROWS UNBOUNDED PRECEDING),\n"
    "  text, correlation, process FROM mixed ORDER BY thread, time, kind, tie;\n"
    "WITH latest AS (SELECT *, max(position) FILTER (WHERE kind = 1) OVER (PARTITION BY thread, "
    "depth ORDER BY position\n"
    "  ROWS UNBOUNDED PRECEDING) AS push FROM event)\n"
    "INSERT INTO around SELECT latest.correlation, latest.process, push.text FROM latest JOIN "
    "event AS push\n"
    "  ON push.position = latest.push WHERE latest.kind = 2 AND latest.depth > 0;\n";

static const char kernels_format[] =
    "INSERT INTO main.kernel_measurement (source_id, position, name_id, process, device, stream, "
    "start_s, duration_s,\n"
    "    collective, nvtx_range)\n"
    "  SELECT %lld, kernel.rowid, kernel_name.id, (globalPid >> 24) & 0xffffff, deviceId, "
    "streamId, start / 1e9,\n"
    "    (\"end\" - start) / 1e9, CASE\n"
    "      WHEN name NOT LIKE 'nccl%%' THEN NULL\n"
    "      WHEN name LIKE '%%AllReduce%%' THEN 'all_reduce'\n"
    "      WHEN name LIKE '%%AllGather%%' THEN 'all_gather'\n"
    "      WHEN name LIKE '%%ReduceScatter%%' THEN 'reduce_scatter'\n"
    "      WHEN name LIKE '%%Broadcast%%' THEN 'broadcast'\n"
    "      WHEN name LIKE '%%SendRecv%%' THEN 'send_recv'\n"
    "      WHEN name LIKE '%%Reduce%%' THEN 'reduce' END,\n"
    "    around.text\n"
    "  FROM nsys.CUPTI_ACTIVITY_KIND_KERNEL AS kernel\n"
    "  LEFT JOIN nsys.StringIds AS string ON string.id = shortName\n"
    "  LEFT JOIN main.kernel_name ON kernel_name.name = string.value\n"
    "  LEFT JOIN temp.around ON around.correlation = correlationId AND around.process = globalPid";

static const char insert_names[] =
    "INSERT OR IGNORE INTO main.kernel_name (name) SELECT value FROM nsys.StringIds\n"
    "  WHERE id IN (SELECT shortName FROM nsys.CUPTI_ACTIVITY_KIND_KERNEL)";

/* What a profile of this kind of program has, and what Nsight Systems leaves out when it is empty.
 */
struct parts {
    bool kernels, strings, launches, ranges, text, text_id, gpus;
};

static enum status nsys_find_parts(const struct profile *p, struct parts *parts)
{
    const struct {
        const char *table, *columns;
        int n;
        bool *found;
    } wanted[] = {
        {"CUPTI_ACTIVITY_KIND_KERNEL",
            "'start', 'end', 'deviceId', 'streamId', 'correlationId', 'globalPid', 'shortName'", 7,
            &parts->kernels},
        {"StringIds", "'id', 'value'", 2, &parts->strings},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "'start', 'correlationId', 'globalTid'", 3,
            &parts->launches},
        {"NVTX_EVENTS", "'start', 'end', 'eventType', 'globalTid'", 4, &parts->ranges},
        {"NVTX_EVENTS", "'text'", 1, &parts->text},
        {"NVTX_EVENTS", "'textId'", 1, &parts->text_id},
        {"TARGET_INFO_GPU", "'name'", 1, &parts->gpus},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == STATUS_OK; i++)
        status =
            nsys_has_columns(p, wanted[i].table, wanted[i].columns, wanted[i].n, wanted[i].found);
    return status;
}

static enum status no_kernels(const struct profile *p)
{
    return diag_input(p->diag, (struct source_pos){.file = p->path},
        "no GPU kernels in it; profile with `nsys profile --trace=cuda,nvtx`, then `nsys export "
        "--type sqlite`");
}

static enum status nsys_run(const struct profile *p, const char *sql)
{
    return sqlite3_exec(p->import->store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? STATUS_OK
                                                                                  : profile_fail(p);
}

/* Frees sql, which sqlite3_mprintf made. */
static enum status run_made(const struct profile *p, char *sql)
{
    BUG_IF(!sql, "out of memory");
    enum status status = nsys_run(p, sql);
    sqlite3_free(sql);
    return status;
}

/* The text of a range stands in the row, in StringIds, or in both places, according to the
 * version. */
static enum status insert_kernels(const struct profile *p, const struct parts *parts)
{
    char text[128], ranges[sizeof ranges_format + sizeof text];
    snprintf(text, sizeof text, parts->text && parts->text_id ? "coalesce(text, %s)" : "%s",
        parts->text_id ? string_text
        : parts->text  ? "text"
                       : "NULL");
    snprintf(ranges, sizeof ranges, ranges_format, text);
    enum status status =
        run_made(p, sqlite3_mprintf(events_format, parts->launches ? launches : no_launches,
                        parts->ranges ? ranges : no_ranges));
    return status == STATUS_OK
               ? run_made(p, sqlite3_mprintf(kernels_format, (long long)p->import->source_id))
               : status;
}

/* The name goes into a URI: everything but plain characters as %XX. immutable: no file is made
 * beside it. */
static enum status attach(const struct profile *p)
{
    VEC(char) uri = {0};
    for (const char *c = p->path; *c; c++) {
        char code[4];
        bool plain = strchr("/._-", *c) || (*c >= '0' && *c <= '9') ||
                     ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z');
        snprintf(code, sizeof code, plain ? "%c" : "%%%02X", (unsigned char)*c);
        for (const char *d = code; *d; d++)
            vec_push(&uri, *d);
    }
    sqlite3_db_config(p->import->store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    enum status status = run_made(
        p, sqlite3_mprintf("ATTACH 'file:%.*s?mode=ro&immutable=1' AS nsys", uri.n, uri.at));
    vec_free(&uri);
    return status == STATUS_OK ? nsys_run(p, "PRAGMA nsys.cell_size_check = 1") : status;
}

enum status store_import_nsys(
    struct store_import *import, const char *path, struct store_nsys *result, struct diag *diag)
{
    const struct profile p = {import, path, diag};
    struct parts parts = {0};
    enum status status = attach(&p);
    if (status == STATUS_OK)
        status = nsys_find_parts(&p, &parts);
    if (status == STATUS_OK && !(parts.kernels && parts.strings))
        status = no_kernels(&p);
    if (status == STATUS_OK)
        status = nsys_run(&p, insert_names);
    if (status == STATUS_OK)
        status = insert_kernels(&p, &parts);
    if (status != STATUS_OK)
        return status;
    result->kernels = sqlite3_changes64(import->store->db);
    if (result->kernels == 0)
        return no_kernels(&p);
    long long id = (long long)import->source_id;
    char sql[128];
    snprintf(sql, sizeof sql,
        "SELECT count(*) FROM kernel_measurement WHERE source_id = %lld AND collective IS NOT NULL",
        id);
    status = import_read_int(import, sql, &result->collectives, diag);
    if (status == STATUS_OK && parts.gpus)
        status = run_made(
            &p, sqlite3_mprintf("UPDATE measurement_source SET gpu = (SELECT min(name) FROM "
                                "nsys.TARGET_INFO_GPU) WHERE id = %lld",
                    id));
    return status;
}
