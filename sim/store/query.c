#include "store/database.h"

#include <string.h>

enum { MAX_COLUMNS = 100 };

static const char reading[] = "read the results";

static void row_names(sqlite3_stmt *statement, int n, struct store_value *values)
{
    for (int i = 0; i < n; i++)
        values[i] = (struct store_value){STORE_TEXT, sqlite3_column_name(statement, i)};
}

static void row_values(sqlite3_stmt *statement, int n, struct store_value *values)
{
    for (int i = 0; i < n; i++) {
        int type = sqlite3_column_type(statement, i);
        values[i].kind = type == SQLITE_NULL                              ? STORE_NULL
                         : type == SQLITE_INTEGER || type == SQLITE_FLOAT ? STORE_NUMBER
                                                                          : STORE_TEXT;
        values[i].text = (const char *)sqlite3_column_text(statement, i);
    }
}

static enum status step_all(struct store *store, sqlite3_stmt *statement, store_row row, void *self, struct diag *diag)
{
    struct store_value values[MAX_COLUMNS];
    int n = sqlite3_column_count(statement);
    row_names(statement, n, values);
    row(self, n, values);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        row_values(statement, n, values);
        row(self, n, values);
    }
    return code == SQLITE_DONE ? STATUS_OK : database_fail(store, reading, diag);
}

/* The first column of the statement, "a, b, c", or with each name put into the format, twice; NULL when there is no
 * row. For sqlite3_free(). */
static enum status join(char **out, struct store *store, const char *sql, const char *format, struct diag *diag)
{
    sqlite3_str *text = sqlite3_str_new(store->db);
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        if (format)
            sqlite3_str_appendf(text, format, name, name);
        else
            sqlite3_str_appendf(text, "%s%s", sqlite3_str_length(text) ? ", " : "", name);
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : database_fail(store, reading, diag);
    sqlite3_finalize(statement);
    *out = sqlite3_str_finish(text);
    return status;
}

static const char all_scenarios[] = "SELECT scenario FROM run UNION SELECT scenario FROM explanation ORDER BY 1";

static enum status check_known(struct store *store, const char *scenario, struct diag *diag)
{
    char *sql = sqlite3_mprintf("SELECT 1 FROM (%s) WHERE scenario = %Q", all_scenarios, scenario);
    char *found = NULL, *all = NULL;
    enum status status = join(&found, store, sql, NULL, diag);
    if (status == STATUS_OK && !found)
        status = join(&all, store, all_scenarios, NULL, diag);
    if (status == STATUS_OK && !found)
        status = diag_input(diag, (struct source_pos){.file = store->path}, "there is no run of scenario '%s'%s%s",
            scenario, all ? "; there are: " : " and of no other", all ? all : "");
    sqlite3_free(all);
    sqlite3_free(found);
    sqlite3_free(sql);
    return status;
}

/* The SQL function that the narrowed views call, so that it is known whether any was read. */
static void narrowed_to(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n, (void)values;
    struct store *store = sqlite3_user_data(context);
    store->scenario_read = true;
    sqlite3_result_text(context, store->scenario, -1, SQLITE_STATIC);
}

bool store_narrow_counted(const struct store *store)
{
    return store->scenario_read;
}

enum status store_narrow(struct store *store, const char *scenario, struct diag *diag)
{
    /* A temporary view hides what it is called after from statements, not from the views of the database. */
    char *views = NULL;
    enum status status = check_known(store, scenario, diag);
    if (status == STATUS_OK)
        status = join(&views, store,
            "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c "
            "WHERE m.type IN ('table', 'view') AND c.name = 'scenario'",
            "CREATE TEMP VIEW \"%w\" AS SELECT * FROM main.\"%w\" WHERE scenario = narrowed_to();", diag);
    store->scenario = scenario;
    sqlite3_create_function(store->db, "narrowed_to", 0, SQLITE_UTF8, store, narrowed_to, NULL, NULL);
    if (status == STATUS_OK)
        status = database_exec(store, "PRAGMA query_only = 0", "configure the connection", diag);
    if (status == STATUS_OK)
        status = database_exec(store, views, "narrow the results", diag);
    if (status == STATUS_OK)
        status = database_exec(store, "PRAGMA query_only = 1", "configure the connection", diag);
    sqlite3_free(views);
    return status;
}

void store_parameters(struct store *store, struct store_parameter *parameters, int n)
{
    store->parameters = parameters;
    store->n_parameters = n;
}

static enum status bind_all(struct store *store, sqlite3_stmt *statement, struct source_pos at, struct diag *diag)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        struct store_parameter *found = NULL;
        for (int p = 0; p < store->n_parameters && name; p++)
            if (strcmp(store->parameters[p].name, name) == 0)
                found = &store->parameters[p];
        if (!found)
            return diag_input(diag, at, "SQL: nothing gives the parameter '%s' a value", name ? name : "?");
        found->used = true;
        if (found->given)
            sqlite3_bind_double(statement, i, found->value);
    }
    return STATUS_OK;
}

enum status store_query(
    struct store *store, const char *sql, struct source_pos at, store_row row, void *self, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    enum status status;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, &rest);
    if ((code & 0xff) == SQLITE_ERROR)
        status =
            diag_input(diag, at, "SQL: %s; `sqlite3 DB .schema` shows tables and views", sqlite3_errmsg(store->db));
    else if (code != SQLITE_OK)
        status = database_fail(store, reading, diag);
    else if (!statement || sqlite3_column_count(statement) == 0 || !sqlite3_stmt_readonly(statement))
        status = diag_input(diag, at, "SQL: this does not read; write one SELECT");
    else if (rest[strspn(rest, " \t\r\n;")] != '\0')
        status = diag_input(diag, at, "SQL: more than one statement; give each its own name");
    else if (sqlite3_column_count(statement) > MAX_COLUMNS)
        status = diag_input(diag, at, "SQL: more than %d columns; select fewer", MAX_COLUMNS);
    else if ((status = bind_all(store, statement, at, diag)) == STATUS_OK)
        status = step_all(store, statement, row, self, diag);
    sqlite3_finalize(statement);
    return status;
}
