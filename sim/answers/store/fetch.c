/* Results of points out of the database: the inverse of store/put.c, without time lines and
 * spans.
 *
 * Three statements serve every point: the row of the point, its memory by
 * category, and its programs. The columns are those of record_columns in their order, so the
 * code names none of them: each number goes to the offset that its column has in struct
 * scenario_result. What is subtle: columns with a get function are derived from others and are
 * neither selected nor read back, so FIRST_NUMBER counts the columns that stand before the
 * numbers; a statement that is not reset keeps a lock on the database, so all three are reset on
 * every way out. */
#include "store/fetch.h"

#include "store/record.h"

#include <stdlib.h>
#include <string.h>

const char fetch_what[] = "read the results";

/* What is no number of a result, before these. */
enum {
    STATUS,
    RANKS,
    DIGEST,
    OOM_CATEGORY,
    OOM_OP,
    SLOW_SHARE,
    SLOW_NONE,
    SLOW_SOME,
    FIRST_NUMBER
};
static const char others[] =
    "status, ranks_simulated, digest, oom_category, oom_op, slow_share, slow_none_s, slow_some_s";

/* The point's row. NULL: as sqlite3_errmsg() says. */
static sqlite3_stmt *fetch_point(struct store *store)
{
    sqlite3_stmt **kept = database_kept(store, "a point");
    if (*kept)
        return *kept;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT %s", others);
    for (int i = 0; i < n_record_columns; i++)
        if (!record_columns[i].get)
            sqlite3_str_appendf(sql, ", %s", record_columns[i].name);
    sqlite3_str_appendall(sql, " FROM point WHERE id = ?");
    char *text = sqlite3_str_finish(sql);
    sqlite3_prepare_v2(store->db, text, -1, kept, NULL);
    sqlite3_free(text);
    return *kept;
}

/* Index of the text in names; 0 where it is no text. */
static int fetch_name_of(sqlite3_stmt *statement, int column, const char *const *names, int n)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    for (int i = 0; i < n && text; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return 0;
}

static void take_point(sqlite3_stmt *statement, struct scenario_result *out, struct arena *arena)
{
    const char *digest = (const char *)sqlite3_column_text(statement, DIGEST);
    const char *op = (const char *)sqlite3_column_text(statement, OOM_OP);
    *out = (struct scenario_result){0};
    for (int i = 0, next = FIRST_NUMBER; i < n_record_columns; i++)
        if (!record_columns[i].get) /* one that is not known (NULL) is 0, as it was */
            record_set(out, &record_columns[i], sqlite3_column_double(statement, next++));
    out->exec.status =
        (enum exec_status)fetch_name_of(statement, STATUS, exec_status_names, EXEC_OOM + 1);
    out->exec.ranks_simulated = sqlite3_column_int(statement, RANKS);
    out->exec.digest = digest ? strtoull(digest, NULL, 16) : 0;
    out->exec.memory.oom_category =
        fetch_name_of(statement, OOM_CATEGORY, hbm_category_names, HBM_CATEGORY_COUNT);
    out->slow = (struct scenario_slow){sqlite3_column_double(statement, SLOW_SHARE),
        sqlite3_column_double(statement, SLOW_NONE), sqlite3_column_double(statement, SLOW_SOME)};
    out->exec.memory.oom_op = op ? arena_strdup(arena, op) : NULL;
}

/* How many rows there are, then columns as schema.sql has them. The columns of the table follow
 * record_columns where `program` is set; schema.sql has them in that order after point_id,
 * program and fullest. */
static int take_programs(sqlite3_stmt *statement, struct exec_result *exec, struct arena *arena)
{
    enum { COUNT, POINT, PROGRAM, FULLEST, FIRST_NUMBER_OF };
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        int p = exec->n_programs++;
        if (p == 0)
            exec->programs =
                ARENA_ARRAY(arena, struct exec_program, sqlite3_column_int(statement, COUNT));
        if (sqlite3_column_int(statement, FULLEST))
            exec->fullest = p;
        for (int i = 0, next = FIRST_NUMBER_OF; i < n_record_columns; i++)
            if (record_columns[i].program)
                *record_of_program(&exec->programs[p], &record_columns[i]) =
                    sqlite3_column_double(statement, next++);
    }
    return code;
}

static bool fetch_bind(sqlite3_stmt *statement, int64_t point_id)
{
    return statement && sqlite3_bind_int64(statement, 1, point_id) == SQLITE_OK;
}

enum status fetch_result(struct store *store, int64_t point_id, struct scenario_result *out,
    struct arena *arena, struct diag *diag)
{
    sqlite3_stmt *point = fetch_point(store),
                 *memory = database_statement(store,
                     "SELECT category, peak_bytes, required_bytes FROM memory WHERE point_id = ?"),
                 *program = database_statement(store,
                     "SELECT count(*) OVER (), * FROM program WHERE point_id = ? ORDER BY program");
    int code = SQLITE_ERROR;
    if (fetch_bind(point, point_id) && fetch_bind(memory, point_id) &&
        fetch_bind(program, point_id) && (code = sqlite3_step(point)) == SQLITE_ROW) {
        take_point(point, out, arena);
        struct exec_memory *into = &out->exec.memory;
        while ((code = sqlite3_step(memory)) == SQLITE_ROW) {
            int category = fetch_name_of(memory, 0, hbm_category_names, HBM_CATEGORY_COUNT);
            into->peak_category_bytes[category] = sqlite3_column_double(memory, 1);
            into->required_category_bytes[category] = sqlite3_column_double(memory, 2);
        }
        if (code == SQLITE_DONE)
            code = take_programs(program, &out->exec, arena);
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : database_fail(store, fetch_what, diag);
    sqlite3_reset(point);
    sqlite3_reset(memory);
    sqlite3_reset(program);
    return status;
}
