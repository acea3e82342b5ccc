/* Conditions of the user's (--where) over columns of points and over settings.
 *
 * The expression is SQL, but names of settings have dots, which SQL takes for tables. So
 * where_rewrite() goes through it token by token: quoted texts and numbers pass as they are, a name
 * that is a column becomes a quoted column, and a name of a setting, or the last part of one,
 * becomes a subquery for the setting's value; what is neither is passed on as a keyword or a
 * mistake for SQLite to name. Then the points that it does not hold of are deleted from
 * shown_setting.
 *
 * What is subtle: any SQL can stand there. It is prepared once with an authorizer that allows
 * reading only; it must be one expression; a progress handler interrupts one that takes too many
 * steps of SQLite's machine, and results are bounded in bytes. A newline ends a comment in it
 * before the bracket closes. */
#include "store/where.h"

#include <ctype.h>
#include <string.h>

/* All texts of the first column, at most n; in the arena. */
static int texts(const char **out, int n, struct store *store, char *sql, struct arena *arena)
{
    sqlite3_stmt *statement = NULL;
    int found = 0;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK)
        while (found < n && sqlite3_step(statement) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(statement, 0);
            out[found++] = arena_strdup(arena, text ? text : "");
        }
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return found;
}

/* The whole path wins over the last part of another: a LIKE would take _ and % in names for
 * patterns. */
const char *where_path(struct store *store, const char *name, bool *many, struct arena *arena)
{
    const char *found[2];
    *many = false;
    if (texts(found, 1, store,
            sqlite3_mprintf("SELECT path FROM shown_setting WHERE path = %Q LIMIT 1", name), arena))
        return found[0];
    int n = texts(found, 2, store,
        sqlite3_mprintf("SELECT DISTINCT path FROM shown_setting WHERE substr(path, -length(%Q) - "
                        "1) = '.' || %Q",
            name, name),
        arena);
    *many = n > 1;
    return n == 1 ? found[0] : NULL;
}

const char *where_differ(struct store *store, struct arena *arena)
{
    const char *found[1];
    int n = texts(found, 1, store,
        sqlite3_mprintf(
            "WITH one AS (SELECT path, text, min(place) AS place, min(position) AS first FROM "
            "shown_setting JOIN main.point AS p ON p.id = point_id "
            "  WHERE own AND path NOT LIKE 'published.%%' AND path NOT IN ('run', 'strategy', "
            "'model') GROUP BY 1, 2), many AS (SELECT path, count(*) AS n, min(place) AS place "
            "FROM one GROUP BY path HAVING count(*) > 1) SELECT group_concat(path || ' (' || "
            "(SELECT group_concat(text, ', ') FROM (SELECT text FROM one WHERE one.path = "
            "many.path ORDER BY first LIMIT 8)) || iif(n > 8, ' ...', '') || ')', ', ') "
            "FROM (SELECT * FROM many ORDER BY n DESC, place LIMIT 8) AS many"),
        arena);
    return n == 1 && *found[0] ? arena_printf(arena, "they differ in %s", found[0])
                               : "all have the same settings";
}

const char *where_example(struct store *store, struct arena *arena)
{
    const char *found[1];
    int n = texts(found, 1, store,
        sqlite3_mprintf(
            "SELECT path || ' = ' || quote(value) FROM shown_setting "
            "WHERE own AND path NOT LIKE 'published.%%' AND path NOT IN ('run', "
            "'strategy', 'model') AND path IN (SELECT path FROM shown_vary) ORDER BY "
            "(SELECT n FROM shown_vary WHERE shown_vary.path = shown_setting.path) DESC, (SELECT "
            "position FROM main.point AS p WHERE p.id = point_id) LIMIT 1"),
        arena);
    return n == 1 ? found[0] : NULL;
}

static struct source_pos where_at(void)
{
    return (struct source_pos){.file = "--where"};
}

/* A column of the points, as where_keep() offers them. */
static bool is_column(struct store *store, const char *name, struct arena *arena)
{
    const char *found[1];
    return strcmp(name, "scenario") == 0 || strcmp(name, "run") == 0 ||
           texts(found, 1, store,
               sqlite3_mprintf("SELECT name FROM main.pragma_table_info('point') WHERE name = %Q "
                               "COLLATE NOCASE",
                   name),
               arena) > 0;
}

/* The candidates are whole paths, columns, and last parts of paths. */
static enum status unknown(
    struct store *store, const char *name, struct arena *arena, struct diag *diag)
{
    const char **names = NULL;
    int n = 0, room = 256;
    do { /* until all have room */
        room *= 2;
        names = ARENA_ARRAY(arena, const char *, room);
        n = texts(names, room, store,
            sqlite3_mprintf("SELECT DISTINCT path FROM shown_setting UNION SELECT name FROM "
                            "main.pragma_table_info('point') UNION SELECT replace(path, "
                            "rtrim(path, replace(path, '.', '')), '') FROM shown_setting"),
            arena);
    } while (n == room);
    const char *near = nearest_name(name, names, (size_t)n);
    if (near)
        return diag_input(
            diag, where_at(), "there is no setting or column '%s'; did you mean '%s'?", name, near);
    return diag_input(diag, where_at(),
        "there is no setting or column '%s'; `flopcast help settings` lists settings, the table "
        "point of the database has the columns",
        name);
}

/* Writes what stands for a name of the user's: a column, or the value of a setting. */
static enum status where_write_name(sqlite3_str *out, struct store *store, const char *name,
    bool quoted, struct arena *arena, struct diag *diag)
{
    bool many, dotted = strchr(name, '.') != NULL;
    if (!dotted && is_column(store, name, arena)) {
        sqlite3_str_appendf(out, "\"%w\"", name);
        return STATUS_OK;
    }
    const char *path = where_path(store, name, &many, arena);
    if (path)
        sqlite3_str_appendf(out,
            "(SELECT value FROM temp.shown_setting AS s WHERE s.point_id = candidate.id AND s.path "
            "= %Q)",
            path);
    else if (many)
        return diag_input(diag, where_at(),
            "'%s' is the name of several settings; give the whole, as in train.micro_batch", name);
    else if (quoted || dotted)
        return unknown(store, name, arena, diag);
    else
        sqlite3_str_appendall(
            out, name); /* a word of SQL's, or SQLite says that there is no such column */
    return STATUS_OK;
}

/* The end of a quoted text that begins at from; one that does not end takes all. */
static const char *end_of_quote(const char *from)
{
    char close = *from == '[' ? ']' : *from;
    const char *c = from + 1;
    while (*c && (*c != close || (c[1] == close && close != ']')))
        c += *c == close ? 2 : 1;
    return *c ? c + 1 : c;
}

/* Names of settings have dots, which SQL gives another meaning: the expression with each name
 * replaced. A name before "(" is a function or IN, a name between quotes is always one of these. */
static enum status where_rewrite(sqlite3_str *out, struct store *store, const char *expression,
    struct arena *arena, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (const char *c = expression; *c && status == STATUS_OK;) {
        const char *end = c + 1;
        bool quoted = strchr("\"`[", *c) != NULL;
        if (isalpha((unsigned char)*c) || *c == '_') {
            end = c + strspn(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
        } else if (isdigit((unsigned char)*c)) { /* 1e6 */
            end = c + strspn(c, "0123456789.abcdefxABCDEFX");
            sqlite3_str_append(out, c, (int)(end - c));
            c = end;
            continue;
        } else if (quoted) {
            end = end_of_quote(c);
        } else {
            end = *c == '\'' ? end_of_quote(c) : end;
            sqlite3_str_append(out, c, (int)(end - c));
            c = end;
            continue;
        }
        int n = (int)(end - c);
        const char *name = quoted ? arena_printf(arena, "%.*s", n > 1 ? n - 2 : 0, c + 1)
                                  : arena_printf(arena, "%.*s", n, c);
        if (end[strspn(end, " \t\n")] == '(' && !quoted)
            sqlite3_str_appendall(out, name); /* a function, or IN (...) */
        else
            status = where_write_name(out, store, name, quoted, arena, diag);
        c = end;
    }
    return status;
}

static enum status where_refuse(
    struct store *store, const char *expression, struct arena *arena, struct diag *diag)
{
    static const char no_column[] = "no such column: ";
    const char *why = sqlite3_errmsg(store->db);
    if (strncmp(why, no_column, strlen(no_column)) == 0)
        return unknown(store, arena_strdup(arena, why + strlen(no_column)), arena, diag);
    return diag_input(diag, where_at(),
        "'%s' is no condition on points: %s; as in: gpus >= 64 AND train.micro_batch = 8",
        expression, why);
}

enum {
    STEPS_AT_ONCE = 1000000,
    MOST_STEPS = 200 /* times as many: a thousand points take one */,
    MOST_BYTES = 10000000
};

static int too_long(void *steps)
{
    return ++*(int *)steps > MOST_STEPS;
}

static int reads_too_long(void *steps)
{
    enum { MOST_READ_STEPS = 300 }; /* some 10 s; a timeline of 30,000 spans takes 2 */
    return ++*(int *)steps > MOST_READ_STEPS;
}

void where_bound_reading(struct store *store)
{
    sqlite3_progress_handler(store->db, STEPS_AT_ONCE, reads_too_long, &store->read_steps);
}

void where_limit(struct where_limit *limit, sqlite3 *db)
{
    *limit = (struct where_limit){0, sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MOST_BYTES)};
    sqlite3_progress_handler(db, STEPS_AT_ONCE, too_long, &limit->steps);
}

void where_unlimit(struct where_limit *limit, sqlite3 *db)
{
    sqlite3_progress_handler(db, 0, NULL, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, limit->bytes);
}

bool where_was_too_long(const struct where_limit *limit)
{
    return limit->steps > MOST_STEPS;
}

/* The first preparation finds mistakes with an error that names them; the DELETE runs the
 * condition. What the points differ in is read before, as afterwards they are gone. */
enum status where_keep(struct store *store, const char *expression, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    sqlite3_str *text = sqlite3_str_new(store->db);
    enum status status = where_rewrite(text, store, expression, &arena, diag);
    char *condition = sqlite3_str_finish(text);
    char *sql = sqlite3_mprintf("SELECT id FROM (SELECT p.*, r.scenario, run_id AS run FROM "
                                "main.point AS p JOIN main.run AS r ON r.id = run_id WHERE run_id "
                                "IN (SELECT run_id FROM shown_run)) AS candidate WHERE (%s\n)",
        condition ? condition : "");
    char *take_out = sqlite3_mprintf("DELETE FROM shown_setting WHERE point_id NOT IN (%s)", sql);
    sqlite3_stmt *statement = NULL;
    const char *rest = "";
    if (status == STATUS_OK) {
        store->reading_only = true;
        int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, &rest);
        store->reading_only = false;
        if (code != SQLITE_OK)
            status = where_refuse(store, expression, &arena, diag);
        else if (*rest)
            status = diag_input(diag, where_at(),
                "'%s' is more than one expression; join conditions with AND", expression);
    }
    sqlite3_finalize(statement);
    const char *differ = where_differ(store, &arena);
    struct where_limit limit;
    where_limit(&limit, store->db);
    if (status == STATUS_OK && sqlite3_exec(store->db, take_out, NULL, NULL, NULL) != SQLITE_OK)
        status = where_was_too_long(&limit)
                     ? diag_input(diag, where_at(),
                           "'%s' takes too long; write a simpler condition", expression)
                     : where_refuse(store, expression, &arena, diag);
    where_unlimit(&limit, store->db);
    where_bound_reading(store);
    if (status == STATUS_OK && sqlite3_changes(store->db) > 0) {
        int left = 0;
        status = database_int(store, "SELECT count(*) FROM shown_setting", &left, diag);
        if (status == STATUS_OK && left == 0)
            status =
                diag_input(diag, where_at(), "'%s' is true of no point; %s", expression, differ);
    }
    sqlite3_free(condition);
    sqlite3_free(sql);
    sqlite3_free(take_out);
    arena_release(&arena);
    return status;
}
