/* Rows of one database into another: runs with their points, and what belongs to points; then
 * samples and outcomes, which are known by their identity alone. Source and target are two
 * connections. A row is read by SELECT * from the one and inserted into the other by the names of
 * its columns, so no list of columns stands here; numbers of rows that the target gives itself (id,
 * run_id, point_id, hardware_id, model_id, simulated_id) are put in their place. Runs are matched
 * by scenario and sweep digest, points by position in their run, documents by their text. Points
 * are copied in the order of their positions, and temp.merged maps each point's number in the
 * source to that in the target, so that simulated_id can follow a point which was merged before.
 *
 * What is subtle: INSERT OR IGNORE makes a second merge add nothing, and lets a band be added to a
 * point that the target had without one. A point that both have must be equal to the bit in all
 * columns but those that differ between any two runs. */
#include "store/merge.h"

#include "store/database.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

static const char what[] = "merge the databases";

/* Rows of one table, from a query on the source into the target. */
struct copy {
    const char *table;
    sqlite3_stmt *from, *into;
};

struct merge {
    struct store *into, *from;
    const char *path; /* of the source */
    struct copy run, point, children[6], sample, outcome;
    sqlite3_stmt *find_run, *find_document, *find_point, *known, *note, *noted, *shards, *add_shard;
    struct store_merged *out;
    struct diag *diag;
};

/* A column of the row that is not copied, but put in place. */
struct placed {
    const char *column;
    int64_t value; /* 0: NULL */
};

static enum status fail_into(struct merge *merge)
{
    return database_fail(merge->into, what, merge->diag);
}

static enum status fail_from(struct merge *merge)
{
    return database_fail(merge->from, "read the database", merge->diag);
}

/* Where it is not yet. */
static bool prepare(struct store *store, sqlite3_stmt **statement, const char *sql)
{
    return *statement || sqlite3_prepare_v2(store->db, sql, -1, statement, NULL) == SQLITE_OK;
}

/* The names come from the statement that reads, so a column that both databases have by the same
 * schema version is copied. */
static bool prepare_insert(struct merge *merge, struct copy *copy, const char *skipped)
{
    if (copy->into)
        return true;
    sqlite3_str *sql = sqlite3_str_new(merge->into->db);
    int n = sqlite3_column_count(copy->from), kept = 0;
    sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO %s (", copy->table);
    for (int c = 0; c < n; c++)
        if (strcmp(sqlite3_column_name(copy->from, c), skipped) != 0)
            sqlite3_str_appendf(sql, "%s%s", kept++ ? ", " : "", sqlite3_column_name(copy->from, c));
    sqlite3_str_appendall(sql, ") VALUES (");
    for (int c = 0; c < kept; c++)
        sqlite3_str_appendall(sql, c ? ", ?" : "?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    bool ok = text && prepare(merge->into, &copy->into, text);
    sqlite3_free(text);
    return ok;
}

/* The row at which `from` stands, without its column `skipped` ("id": the target numbers for itself). */
static enum status copy_row(
    struct merge *merge, struct copy *copy, const char *skipped, const struct placed *placed, int n_placed)
{
    if (!prepare_insert(merge, copy, skipped))
        return fail_into(merge);
    int code = SQLITE_OK, next = 1;
    for (int c = 0; c < sqlite3_column_count(copy->from) && code == SQLITE_OK; c++) {
        const char *name = sqlite3_column_name(copy->from, c);
        const struct placed *own = NULL;
        for (int i = 0; i < n_placed && !own; i++)
            own = strcmp(placed[i].column, name) == 0 ? &placed[i] : NULL;
        if (strcmp(name, skipped) == 0)
            continue;
        code = !own              ? sqlite3_bind_value(copy->into, next, sqlite3_column_value(copy->from, c))
               : own->value == 0 ? sqlite3_bind_null(copy->into, next)
                                 : sqlite3_bind_int64(copy->into, next, own->value);
        next++;
    }
    if (code == SQLITE_OK)
        code = sqlite3_step(copy->into);
    enum status status = code == SQLITE_DONE ? STATUS_OK : fail_into(merge);
    sqlite3_reset(copy->into);
    return status;
}

/* An integer that a statement with these values finds; 0: no row, or NULL. */
static enum status find(struct merge *merge, struct store *store, sqlite3_stmt *statement, int64_t *out)
{
    int code = sqlite3_step(statement);
    *out = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    enum status status =
        code == SQLITE_ROW || code == SQLITE_DONE ? STATUS_OK : database_fail(store, what, merge->diag);
    sqlite3_reset(statement);
    return status;
}

/* ---- runs ---- */

static int column_of(sqlite3_stmt *statement, const char *name)
{
    for (int c = 0; c < sqlite3_column_count(statement); c++)
        if (strcmp(sqlite3_column_name(statement, c), name) == 0)
            return c;
    BUG_IF(true, "no column '%s'", name);
}

/* The target's run for that at which merge->run.from stands. The newest run of this sweep: a
 * target may have several, where one was simulated --again. */
static enum status place_run(struct merge *merge, int64_t *id)
{
    static const char sql[] = "SELECT id FROM run WHERE scenario = ? AND sweep = ? ORDER BY id DESC LIMIT 1";
    sqlite3_stmt *from = merge->run.from;
    if (!prepare(merge->into, &merge->find_run, sql))
        return fail_into(merge);
    sqlite3_bind_value(merge->find_run, 1, sqlite3_column_value(from, column_of(from, "scenario")));
    sqlite3_bind_value(merge->find_run, 2, sqlite3_column_value(from, column_of(from, "sweep")));
    enum status status = find(merge, merge->into, merge->find_run, id);
    if (status != STATUS_OK || *id > 0)
        return status;
    status = copy_row(merge, &merge->run, "id", NULL, 0);
    *id = sqlite3_last_insert_rowid(merge->into->db);
    merge->out->runs += status == STATUS_OK;
    return status;
}

/* The target's number of a document. */
static enum status place_document(struct merge *merge, int column, int64_t *id)
{
    static const char sql[] =
        "INSERT INTO document (json) VALUES (?) ON CONFLICT DO UPDATE SET json = json RETURNING id";
    if (!prepare(merge->from, &merge->find_document, "SELECT json FROM document WHERE id = ?"))
        return fail_from(merge);
    sqlite3_bind_value(merge->find_document, 1, sqlite3_column_value(merge->point.from, column));
    if (sqlite3_step(merge->find_document) != SQLITE_ROW) {
        sqlite3_reset(merge->find_document);
        return fail_from(merge);
    }
    if (!prepare(merge->into, &merge->known, sql)) /* finalized with the others */
        return fail_into(merge);
    sqlite3_bind_value(merge->known, 1, sqlite3_column_value(merge->find_document, 0));
    enum status status = find(merge, merge->into, merge->known, id);
    sqlite3_reset(merge->find_document);
    return status;
}

static bool same_value(sqlite3_stmt *a, int i, sqlite3_stmt *b, int j)
{
    int type = sqlite3_column_type(a, i);
    if (type != sqlite3_column_type(b, j))
        return false;
    if (type == SQLITE_FLOAT) {
        double values[] = {sqlite3_column_double(a, i), sqlite3_column_double(b, j)};
        uint64_t bits[2]; /* a NaN is stored as NULL, and 0 without a sign; what differs is another number */
        memcpy(bits, values, sizeof bits);
        return bits[0] == bits[1];
    }
    if (type == SQLITE_INTEGER)
        return sqlite3_column_int64(a, i) == sqlite3_column_int64(b, j);
    return type == SQLITE_NULL ||
           (sqlite3_column_bytes(a, i) == sqlite3_column_bytes(b, j) &&
               strcmp((const char *)sqlite3_column_text(a, i), (const char *)sqlite3_column_text(b, j)) == 0);
}

/* Whether the target has the point of this position (*id > 0), which must then be as the source's. */
static enum status compare_point(struct merge *merge, int64_t run_id, int64_t *id)
{
    static const char *const own[] = {"id", "run_id", "config", "wall_s", "hardware_id", "model_id", "simulated_id"};
    sqlite3_stmt *from = merge->point.from;
    if (!prepare(merge->into, &merge->find_point, "SELECT * FROM point WHERE run_id = ? AND position = ?"))
        return fail_into(merge);
    sqlite3_bind_int64(merge->find_point, 1, run_id);
    sqlite3_bind_value(merge->find_point, 2, sqlite3_column_value(from, column_of(from, "position")));
    int code = sqlite3_step(merge->find_point);
    const char *differs = NULL;
    *id = code == SQLITE_ROW ? sqlite3_column_int64(merge->find_point, column_of(merge->find_point, "id")) : 0;
    for (int c = 0; c < sqlite3_column_count(from) && code == SQLITE_ROW && !differs; c++) {
        const char *name = sqlite3_column_name(from, c);
        bool compared = true;
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            compared = compared && strcmp(own[i], name) != 0;
        if (compared && !same_value(from, c, merge->find_point, column_of(merge->find_point, name)))
            differs = name;
    }
    enum status status = code == SQLITE_ROW || code == SQLITE_DONE ? STATUS_OK : fail_into(merge);
    if (differs)
        status = diag_input(merge->diag, (struct source_pos){.file = merge->path},
            "point %d of its run differs in '%s' from the same point of '%s'; a run gives the same results wherever it "
            "runs, so one of them was changed: leave one of the two out",
            sqlite3_column_int(from, column_of(from, "position")) + 1, differs, merge->into->path);
    sqlite3_reset(merge->find_point);
    return status;
}

/* What belongs to a point and is not there yet (a band may come later than its point). */
static enum status copy_children(struct merge *merge, int64_t from, int64_t to)
{
    const struct placed placed[] = {{"point_id", to}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof merge->children / sizeof *merge->children && status == STATUS_OK; i++) {
        struct copy *copy = &merge->children[i];
        char *sql = sqlite3_mprintf("SELECT * FROM %s WHERE point_id = ?", copy->table);
        bool ok = prepare(merge->from, &copy->from, sql);
        sqlite3_free(sql);
        if (!ok)
            return fail_from(merge);
        sqlite3_bind_int64(copy->from, 1, from);
        int code;
        while ((code = sqlite3_step(copy->from)) == SQLITE_ROW && status == STATUS_OK)
            status = copy_row(merge, copy, "", placed, 1);
        if (status == STATUS_OK && code != SQLITE_DONE)
            status = fail_from(merge);
        sqlite3_reset(copy->from);
    }
    return status;
}

/* From now on the source's point has this number in the target. */
static enum status note_point(struct merge *merge, int64_t from, int64_t to)
{
    if (!prepare(merge->into, &merge->note, "INSERT INTO temp.merged VALUES (?, ?)"))
        return fail_into(merge);
    sqlite3_bind_int64(merge->note, 1, from);
    sqlite3_bind_int64(merge->note, 2, to);
    int64_t none;
    return find(merge, merge->into, merge->note, &none);
}

static enum status noted_point(struct merge *merge, int column, int64_t *id)
{
    if (!prepare(merge->into, &merge->noted, "SELECT target FROM temp.merged WHERE source = ?"))
        return fail_into(merge);
    sqlite3_bind_value(merge->noted, 1, sqlite3_column_value(merge->point.from, column));
    return find(merge, merge->into, merge->noted, id);
}

static enum status add_point(struct merge *merge, int64_t run_id, int64_t *id)
{
    sqlite3_stmt *from = merge->point.from;
    struct placed placed[] = {{"run_id", run_id}, {"hardware_id", 0}, {"model_id", 0}, {"simulated_id", 0}};
    enum status status = place_document(merge, column_of(from, "hardware_id"), &placed[1].value);
    if (status == STATUS_OK)
        status = place_document(merge, column_of(from, "model_id"), &placed[2].value);
    if (status == STATUS_OK)
        status = noted_point(merge, column_of(from, "simulated_id"), &placed[3].value);
    if (status == STATUS_OK)
        status = copy_row(merge, &merge->point, "id", placed, 4);
    *id = sqlite3_last_insert_rowid(merge->into->db);
    merge->out->points += status == STATUS_OK;
    return status;
}

/* A point is noted also where the target had it: a later one may have taken its result from
 * there. */
static enum status merge_points(struct merge *merge, int64_t from_run, int64_t run_id)
{
    enum status status = STATUS_OK;
    if (!prepare(merge->from, &merge->point.from, "SELECT * FROM point WHERE run_id = ? ORDER BY position"))
        return fail_from(merge);
    sqlite3_bind_int64(merge->point.from, 1, from_run);
    int code;
    while (status == STATUS_OK && (code = sqlite3_step(merge->point.from)) == SQLITE_ROW) {
        int64_t from = sqlite3_column_int64(merge->point.from, column_of(merge->point.from, "id")), id = 0;
        status = compare_point(merge, run_id, &id);
        if (status == STATUS_OK && id == 0)
            status = add_point(merge, run_id, &id);
        if (status == STATUS_OK)
            status = note_point(merge, from, id);
        if (status == STATUS_OK)
            status = copy_children(merge, from, id);
    }
    if (status == STATUS_OK && code != SQLITE_DONE)
        status = fail_from(merge);
    sqlite3_reset(merge->point.from);
    return status;
}

/* A shard counts as finished as soon as one of the two databases says so. */
static enum status merge_shards(struct merge *merge, int64_t from_run, int64_t run_id)
{
    if (!prepare(merge->from, &merge->shards, "SELECT shards, shard, points, finished FROM shard WHERE run_id = ?"))
        return fail_from(merge);
    if (!prepare(merge->into, &merge->add_shard,
            "INSERT INTO shard (run_id, shards, shard, points, finished) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET finished = max(finished, excluded.finished)"))
        return fail_into(merge);
    sqlite3_bind_int64(merge->shards, 1, from_run);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && sqlite3_step(merge->shards) == SQLITE_ROW) {
        int64_t none;
        sqlite3_bind_int64(merge->add_shard, 1, run_id);
        for (int c = 0; c < 4; c++)
            sqlite3_bind_value(merge->add_shard, c + 2, sqlite3_column_value(merge->shards, c));
        status = find(merge, merge->into, merge->add_shard, &none);
    }
    sqlite3_reset(merge->shards);
    return status;
}

static enum status merge_runs(struct merge *merge)
{
    if (!prepare(merge->from, &merge->run.from, "SELECT * FROM run ORDER BY id"))
        return fail_from(merge);
    enum status status = STATUS_OK;
    int code;
    while (status == STATUS_OK && (code = sqlite3_step(merge->run.from)) == SQLITE_ROW) {
        int64_t from = sqlite3_column_int64(merge->run.from, column_of(merge->run.from, "id")), id = 0;
        status = place_run(merge, &id);
        if (status == STATUS_OK)
            status = merge_points(merge, from, id);
        if (status == STATUS_OK)
            status = merge_shards(merge, from, id);
    }
    return status == STATUS_OK && code != SQLITE_DONE ? fail_from(merge) : status;
}

/* ---- what is known by what it is of ---- */

static enum status merge_rows(struct merge *merge, struct copy *copy, int *added)
{
    char *sql = sqlite3_mprintf("SELECT * FROM %s", copy->table);
    bool ok = prepare(merge->from, &copy->from, sql);
    sqlite3_free(sql);
    if (!ok)
        return fail_from(merge);
    enum status status = STATUS_OK;
    int code;
    while (status == STATUS_OK && (code = sqlite3_step(copy->from)) == SQLITE_ROW) {
        status = copy_row(merge, copy, "", NULL, 0);
        *added += sqlite3_changes(merge->into->db);
    }
    return status == STATUS_OK && code != SQLITE_DONE ? fail_from(merge) : status;
}

/* ---- a source ---- */

/* Tables that are not merged, and that have a row. */
static void warn_left_out(struct merge *merge)
{
    static const char sql[] =
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT IN "
        "('run', 'point', 'document', 'memory', 'timeline', 'program', 'band', 'given', 'span', 'shard', 'sample', "
        "'outcome')";
    sqlite3_stmt *tables = NULL;
    sqlite3_str *names = sqlite3_str_new(merge->from->db);
    int code = sqlite3_prepare_v2(merge->from->db, sql, -1, &tables, NULL);
    while (code == SQLITE_OK && sqlite3_step(tables) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(tables, 0);
        char *query = sqlite3_mprintf("SELECT 1 FROM main.\"%w\" LIMIT 1", name);
        sqlite3_stmt *row = NULL;
        if (sqlite3_prepare_v2(merge->from->db, query, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
            sqlite3_str_appendf(names, "%s%s", sqlite3_str_length(names) ? ", " : "", name);
        sqlite3_finalize(row);
        sqlite3_free(query);
    }
    sqlite3_finalize(tables);
    char *list = sqlite3_str_finish(names);
    if (list && *list)
        diag_warn(merge->diag, (struct source_pos){.file = merge->path},
            "runs, samples and outcomes are merged; these of its tables are not: %s", list);
    sqlite3_free(list);
}

static void release(struct merge *merge)
{
    struct copy *copies[] = {&merge->run, &merge->point, &merge->sample, &merge->outcome};
    sqlite3_stmt *statements[] = {merge->find_run, merge->find_document, merge->find_point, merge->known, merge->note,
        merge->noted, merge->shards, merge->add_shard};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        sqlite3_finalize(copies[i]->from);
        sqlite3_finalize(copies[i]->into);
    }
    for (size_t i = 0; i < sizeof merge->children / sizeof *merge->children; i++) {
        sqlite3_finalize(merge->children[i].from);
        sqlite3_finalize(merge->children[i].into);
    }
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sqlite3_finalize(statements[i]);
}

/* Everything of one source is one transaction of the target. */
enum status store_merge(struct store *into, const char *path, struct store_merged *out, struct diag *diag)
{
    struct merge merge = {.into = into,
        .path = path,
        .run = {.table = "run"},
        .point = {.table = "point"},
        .children = {{.table = "memory"}, {.table = "timeline"}, {.table = "program"}, {.table = "band"},
            {.table = "given"}, {.table = "span"}},
        .sample = {.table = "sample"},
        .outcome = {.table = "outcome"},
        .out = out,
        .diag = diag};
    *out = (struct store_merged){0};
    enum status status = store_open(&merge.from, path, STORE_READ, diag);
    if (status == STATUS_OK)
        status =
            database_exec(into, "CREATE TEMP TABLE merged (source INTEGER PRIMARY KEY, target INTEGER)", what, diag);
    if (status == STATUS_OK)
        status = database_exec(into, "BEGIN IMMEDIATE", what, diag);
    if (status == STATUS_OK) {
        status = merge_runs(&merge);
        if (status == STATUS_OK)
            status = merge_rows(&merge, &merge.sample, &out->samples);
        if (status == STATUS_OK)
            status = merge_rows(&merge, &merge.outcome, &out->outcomes);
        release(&merge);
        status = database_end(into, status, what, diag);
        database_exec(into, "DROP TABLE temp.merged", what, diag);
    }
    if (status == STATUS_OK)
        warn_left_out(&merge);
    store_close(merge.from);
    return status;
}

/* ---- shards ---- */

enum status store_check_shards(struct store *store, struct diag *diag)
{
    /* the numbers of shards that are not there, and of those that were not finished, of each division into shards */
    static const char sql[] =
        "WITH RECURSIVE division AS (SELECT DISTINCT run_id, shards FROM shard), "
        "number AS (SELECT run_id, shards, 1 AS shard FROM division UNION ALL "
        "SELECT run_id, shards, shard + 1 FROM number WHERE shard < shards) "
        "SELECT scenario, v_unfinished.finished, v_unfinished.points, "
        "group_concat(number.shard || '/' || number.shards, ', ') FILTER (WHERE shard.shard IS NULL), "
        "group_concat(number.shard || '/' || number.shards, ', ') FILTER (WHERE shard.finished = 0) "
        "FROM number JOIN v_unfinished USING (run_id) LEFT JOIN shard USING (run_id, shards, shard) "
        "GROUP BY run_id, number.shards ORDER BY run_id, number.shards";
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    enum status status = STATUS_OK;
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *missing = (const char *)sqlite3_column_text(statement, 3);
        const char *stopped = (const char *)sqlite3_column_text(statement, 4);
        status = diag_io(diag, (struct source_pos){.file = store->path},
            "'%s' has %d of %d points;%s%s%s%s%s; run %s, then merge again", sqlite3_column_text(statement, 0),
            sqlite3_column_int(statement, 1), sqlite3_column_int(statement, 2), missing ? " missing: shard " : "",
            missing ? missing : "", missing && stopped ? ";" : "", stopped ? " stopped before its end: shard " : "",
            stopped ? stopped : "", (missing && strchr(missing, ',')) || (missing && stopped) ? "them" : "it");
        code = SQLITE_OK;
    }
    if (code != SQLITE_OK && code != SQLITE_DONE)
        status = database_fail(store, "look for shards", diag);
    sqlite3_finalize(statement);
    return status;
}
