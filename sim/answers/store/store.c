/* The database file: opening it, its schema and version, transactions, and the words for what can
 * go wrong. The application id tells a database of flopcast from others, user_version which schema
 * it has; an empty file gets the tables in a transaction that looks again whether another program
 * was faster. schema.sql holds marks in place of the columns that store/record.h lists. A reader
 * also opens for writing where it can, because a journal that a killed program left must be rolled
 * back, and then sets query_only.
 *
 * What is subtle: WAL is used only while a run is written. One transaction a point is cheap that
 * way, and at the end the file is again a single one that can be copied. Where WAL does not work (a
 * network disk, say) the rollback journal stays, slower and as safe. Every error goes through
 * database_fail(), which adds what the user can do about it by SQLite's primary code. */
#include "store/store.h"

#include "base/arena.h"
#include "config/config.h"
#include "store/database.h"
#include "store/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 6 }; /* another one is another database: nothing is brought over */

static struct source_pos store_whole_file(const struct store *store)
{
    return (struct source_pos){.file = store->path};
}

static const char *remedy(int code)
{
    switch (code & 0xff) { /* the low byte is the primary code */
    case SQLITE_FULL:
    case SQLITE_IOERR:
        return "free space on the disk; the database holds what it held before";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return "it must be a file that you may write, in a folder that exists and that you may "
               "write";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program is writing to it; try again when it has finished";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return "the file is damaged or no database; restore a copy of it or name another file";
    case SQLITE_INTERRUPT:
        return "a query of it took too long; a view in it may have no end";
    default:
        return "this is unexpected";
    }
}

enum status database_fail(struct store *store, const char *what, struct diag *diag)
{
    return diag_io(diag, store_whole_file(store), "cannot %s: %s; %s", what,
        sqlite3_errmsg(store->db), remedy(sqlite3_extended_errcode(store->db)));
}

enum status database_exec(struct store *store, const char *sql, const char *what, struct diag *diag)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? STATUS_OK
               : database_fail(store, what, diag);
}

enum status database_end(
    struct store *store, enum status status, const char *what, struct diag *diag)
{
    if (status == STATUS_OK)
        status = database_exec(store, "COMMIT", what, diag);
    if (status != STATUS_OK && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(
            store->db, "ROLLBACK", NULL, NULL, NULL); /* the first error is the one to report */
    return status;
}

sqlite3_stmt **database_kept(struct store *store, const char *key)
{
    for (int i = 0; i < store->kept.n; i++)
        if (strcmp(store->kept.at[i].key, key) == 0)
            return &store->kept.at[i].statement;
    vec_push(&store->kept, (struct kept_statement){sqlite3_mprintf("%s", key), NULL});
    return &store->kept.at[store->kept.n - 1].statement;
}

sqlite3_stmt *database_statement(struct store *store, const char *sql)
{
    sqlite3_stmt **kept = database_kept(store, sql);
    if (!*kept)
        sqlite3_prepare_v2(store->db, sql, -1, kept, NULL);
    return *kept;
}

enum status database_int(struct store *store, const char *sql, int *out, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    if (ok)
        *out = sqlite3_column_int(statement, 0);
    enum status status = ok ? STATUS_OK : database_fail(store, "read the database", diag);
    sqlite3_finalize(statement);
    return status;
}

/* Whose database it is and which schema it has: 0 for an empty file. */
static enum status read_version(struct store *store, int *version, struct diag *diag)
{
    int application = 0, objects = 0;
    /* as one transaction, since another program may be making the tables */
    enum status status = database_exec(store, "SAVEPOINT look", "read the database", diag);
    if (status == STATUS_OK)
        status = database_int(store, "PRAGMA application_id", &application, diag);
    if (status == STATUS_OK)
        status = database_int(store, "PRAGMA user_version", version, diag);
    if (status == STATUS_OK)
        status = database_int(store, "SELECT count(*) FROM sqlite_schema", &objects, diag);
    sqlite3_exec(store->db, "RELEASE look", NULL, NULL, NULL);
    if (status != STATUS_OK)
        return status;
    if (application != STORE_APPLICATION_ID && (application != 0 || *version != 0 || objects != 0))
        return diag_io(diag, store_whole_file(store),
            "this is the SQLite database of another program; name another file");
    if (*version != 0 && *version != SCHEMA_VERSION)
        return diag_io(diag, store_whole_file(store),
            "the database is of another version of flopcast (schema %d; this one, %s, has %d); "
            "read it with that version, or simulate again into another file",
            *version, FLOPCAST_VERSION, SCHEMA_VERSION);
    return STATUS_OK;
}

/* schema.sql, where "@point", "@program" and "@outcome" are the columns of store/record.h, and any
 * other "@name" a column whose value is that of the JSON object `cells`; for free(). */
static char *schema_text(void)
{
    static const char *const tables[] = {
        [RECORD_POINT] = "point", [RECORD_PROGRAM] = "program", [RECORD_OUTCOME] = "outcome"};
    struct arena arena = ARENA_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    for (const char *rest = schema_sql; *rest;) {
        int length = (int)strcspn(rest, "@"), table = RECORD_OUTCOME;
        fprintf(out, "%.*s", length, rest);
        rest += length;
        if (!*rest)
            break;
        length = (int)strspn(++rest, "abcdefghijklmnopqrstuvwxyz_0123456789");
        const char *name = arena_printf(&arena, "%.*s", length, rest);
        while (table >= 0 && strcmp(tables[table], name) != 0)
            table--;
        if (table >= 0)
            record_declare(out, (enum record_table)table);
        else
            fprintf(out, "cells ->> '%s' AS %s", name, name);
        rest += length;
    }
    arena_release(&arena);
    fclose(out);
    return text;
}

static enum status make_tables(struct store *store, struct diag *diag)
{
    static const char what[] = "set up the tables";
    char mark[96];
    int version = 0;
    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d",
        STORE_APPLICATION_ID, SCHEMA_VERSION);
    enum status status = database_exec(store, "BEGIN IMMEDIATE", what, diag);
    if (status != STATUS_OK)
        return status;
    /* Another program may have made them since we looked. */
    status = read_version(store, &version, diag);
    char *tables = schema_text();
    if (status == STATUS_OK && version == 0)
        status = database_exec(store, tables, what, diag);
    free(tables);
    if (status == STATUS_OK)
        status = database_exec(store, mark, what, diag);
    return database_end(store, status, what, diag);
}

static enum status store_set_up(struct store *store, enum store_mode mode, struct diag *diag)
{
    int version = 0;
    enum status status = read_version(store, &version, diag);
    if (status != STATUS_OK)
        return status;
    if (mode == STORE_READ && version == 0)
        return diag_io(diag, store_whole_file(store),
            "the database is empty; fill it with: flopcast run SCENARIO --db %s", store->path);
    if (mode == STORE_WRITE && sqlite3_db_readonly(store->db, "main") == 1)
        return diag_io(diag, store_whole_file(store), "the database is read-only; %s",
            remedy(SQLITE_READONLY));
    if (version == 0)
        status = make_tables(store, diag);
    if (status == STATUS_OK && sqlite3_db_readonly(store->db, "main") != 1)
        status = database_settings(store, diag);
    if (status == STATUS_OK &&
        mode == STORE_READ) /* before there is anything temporary, which it takes away */
        status =
            database_exec(store, "PRAGMA temp_store = MEMORY", "configure the connection", diag);
    if (status == STATUS_OK && mode == STORE_READ)
        status = database_causes(store, diag);
    if (status == STATUS_OK)
        status = database_exec(store,
            mode == STORE_READ ? "PRAGMA query_only = 1" : "PRAGMA foreign_keys = 1",
            "configure the connection", diag);
    return status;
}

enum status store_open(
    struct store **out, const char *path, enum store_mode mode, struct diag *diag)
{
    struct store *store = xcalloc(1, sizeof *store);
    store->path = path;
    *out = NULL;
    if (!*path) { /* SQLite would take it for a database that vanishes */
        free(store);
        return diag_input(diag, (struct source_pos){0},
            "--db '': the database needs a name, as in results/my.db");
    }
    /* A reader too opens for writing, where the file allows it: after a kill -9 the first to come
     * rolls the journal back. */
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | (mode == STORE_WRITE ? SQLITE_OPEN_CREATE : 0);
    enum status status;
    if (sqlite3_open_v2(path, &store->db, flags, NULL) == SQLITE_OK) {
        sqlite3_extended_result_codes(store->db, 1);
        sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
        database_functions(store);
        status = store_set_up(store, mode, diag);
    } else if (mode == STORE_READ) {
        status = diag_io(diag, store_whole_file(store),
            "cannot open the database: %s; make one with: flopcast run SCENARIO --db %s",
            sqlite3_errmsg(store->db), path);
    } else {
        status = database_fail(store, "open the database", diag);
    }
    if (status == STATUS_OK)
        *out = store;
    else
        store_close(store);
    return status;
}

unsigned char *database_bytes(struct store *store, size_t *n)
{
    enum {
        WRITE_VERSION = 18,
        READ_VERSION = 19,
        ROLLBACK = 1
    }; /* of the header: in memory there is no WAL */
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(store->db, "main", &size, 0);
    BUG_IF(!bytes || size <= READ_VERSION, "a database of %lld bytes", (long long)size);
    bytes[WRITE_VERSION] = bytes[READ_VERSION] = ROLLBACK;
    *n = (size_t)size;
    return bytes;
}

bool database_take(struct store *store, const char *as, const unsigned char *bytes, size_t n)
{
    unsigned char *own = sqlite3_malloc64(n);
    BUG_IF(!own, "no memory for %zu bytes", n);
    memcpy(own, bytes, n);
    return sqlite3_deserialize(store->db, as, own, (sqlite3_int64)n, (sqlite3_int64)n,
               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK;
}

void database_begin_wal(struct store *store)
{
    sqlite3_stmt *statement = NULL;
    bool wal = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL) ==
                   SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW &&
               strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    sqlite3_finalize(statement);
    if (wal)
        sqlite3_exec(store->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
}

/* Without patience: where another program has the file open, it is left to that one to end the
 * log. */
void database_end_wal(struct store *store)
{
    sqlite3_busy_timeout(store->db, 0);
    sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    sqlite3_exec(store->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (int i = 0; i < store->kept.n; i++) {
        sqlite3_finalize(store->kept.at[i].statement);
        sqlite3_free(store->kept.at[i].key);
    }
    vec_free(&store->kept);
    sqlite3_close(store->db);
    free(store);
}

/* v_settings: a row a point, a column a setting, "cluster.gpus" say. Its text follows the table of
 * settings, so it is made anew where a program with other settings opens the database for writing.
 */

static void put_columns(
    FILE *out, const struct config_table *table, const char *prefix, struct arena *arena)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const char *path = arena_printf(arena, "%s%s", prefix, field->key);
        if (field->type == FIELD_SECTION || field->type == FIELD_OVERRIDES)
            put_columns(out, field->section, arena_printf(arena, "%s.", path), arena);
        else
            fprintf(out, ",\n  json_extract(config, '$.%s.value') AS \"%s\"", path, path);
    }
}

/* "CREATE VIEW ...", for free(). */
static char *view_text(void)
{
    struct arena arena = ARENA_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    fputs("CREATE VIEW v_settings AS SELECT\n  id AS point_id, run_id, position", out);
    put_columns(out, &scenario_table, "", &arena);
    fputs("\nFROM point", out);
    fclose(out);
    arena_release(&arena);
    return text;
}

enum status database_settings(struct store *store, struct diag *diag)
{
    static const char what[] = "set up the view of settings";
    char *text = view_text(), *stands = NULL;
    enum status status = database_join(
        &stands, store, "SELECT sql FROM sqlite_schema WHERE name = 'v_settings'", NULL, diag);
    if (status == STATUS_OK && (!stands || strcmp(stands, text) != 0)) {
        status =
            database_exec(store, "BEGIN IMMEDIATE; DROP VIEW IF EXISTS v_settings", what, diag);
        if (status == STATUS_OK)
            status = database_exec(store, text, what, diag);
        status = database_end(store, status, what, diag);
    }
    sqlite3_free(stands);
    free(text);
    return status;
}
