/* Results of points out of the database: the inverse of store/put.c, without time lines and
 * spans.
 *
 * Three statements are prepared once and serve every point: the row of the point, its memory by
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

void fetch_begin(struct fetch *fetch, struct store *store)
{
    *fetch = (struct fetch){.store = store};
}

void fetch_end(struct fetch *fetch)
{
    sqlite3_finalize(fetch->point);
    sqlite3_finalize(fetch->memory);
    sqlite3_finalize(fetch->program);
}

static int fetch_prepare(struct fetch *fetch)
{
    if (fetch->program)
        return SQLITE_OK;
    sqlite3_str *sql = sqlite3_str_new(fetch->store->db);
    sqlite3_str_appendf(sql, "SELECT %s", others);
    for (int i = 0; i < n_record_columns; i++)
        if (!record_columns[i].get)
            sqlite3_str_appendf(sql, ", %s", record_columns[i].name);
    sqlite3_str_appendall(sql, " FROM point WHERE id = ?");
    char *text = sqlite3_str_finish(sql);
    sqlite3_finalize(fetch->point);
    int code = sqlite3_prepare_v2(fetch->store->db, text, -1, &fetch->point, NULL);
    sqlite3_free(text);
    sqlite3_finalize(fetch->memory);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(fetch->store->db,
            "SELECT category, peak_bytes, required_bytes FROM memory WHERE point_id = ?", -1,
            &fetch->memory, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(fetch->store->db,
            "SELECT count(*) OVER (), * FROM program WHERE point_id = ? ORDER BY program", -1,
            &fetch->program, NULL);
    return code;
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

enum status fetch_result(struct fetch *fetch, int64_t point_id, struct scenario_result *out,
    struct arena *arena, struct diag *diag)
{
    int code = fetch_prepare(fetch);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(fetch->point, 1, point_id);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(fetch->memory, 1, point_id);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(fetch->program, 1, point_id);
    if (code == SQLITE_OK && (code = sqlite3_step(fetch->point)) == SQLITE_ROW) {
        take_point(fetch->point, out, arena);
        struct exec_memory *memory = &out->exec.memory;
        while ((code = sqlite3_step(fetch->memory)) == SQLITE_ROW) {
            int category = fetch_name_of(fetch->memory, 0, hbm_category_names, HBM_CATEGORY_COUNT);
            memory->peak_category_bytes[category] = sqlite3_column_double(fetch->memory, 1);
            memory->required_category_bytes[category] = sqlite3_column_double(fetch->memory, 2);
        }
        if (code == SQLITE_DONE)
            code = take_programs(fetch->program, &out->exec, arena);
    }
    enum status status =
        code == SQLITE_DONE ? STATUS_OK : database_fail(fetch->store, fetch_what, diag);
    sqlite3_reset(fetch->point);
    sqlite3_reset(fetch->memory);
    sqlite3_reset(fetch->program);
    return status;
}
