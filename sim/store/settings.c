/* v_settings: a row a point, a column a setting, "cluster.gpus" say. Its text follows the table of settings, so it is
 * made anew where a program with other settings opens the database for writing. */
#include "store/database.h"

#include "base/arena.h"
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_columns(FILE *out, const struct config_table *table, const char *prefix, struct arena *arena)
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
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
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
    enum status status =
        database_join(&stands, store, "SELECT sql FROM sqlite_schema WHERE name = 'v_settings'", NULL, diag);
    if (status == STATUS_OK && (!stands || strcmp(stands, text) != 0)) {
        status = database_exec(store, "BEGIN IMMEDIATE; DROP VIEW IF EXISTS v_settings", what, diag);
        if (status == STATUS_OK)
            status = database_exec(store, text, what, diag);
        status = database_end(store, status, what, diag);
    }
    sqlite3_free(stands);
    free(text);
    return status;
}
