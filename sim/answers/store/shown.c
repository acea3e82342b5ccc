/* What a figure shows, as temporary tables on the connection: which points, over which setting, in
 * which curves and panels (shown.h describes the tables). Steps: the runs that were chosen; their
 * settings, one row a point and setting; out go the points that the condition does not hold of
 * (where.c); names of curves; the setting of the x axis; panels, as long as there are more curves
 * than one panel has colors for; colors and ticks. The bulk is SQL (shown_sql and the others), and
 * C decides only what SQL cannot say. Where the user chose runs or points, temporary views of the
 * tables' names then hide all other rows from the queries of a figure.
 *
 * What is subtle: the authorizer sees every column that a query reads, by which an option that a
 * figure does not use is found out; it is also what keeps a condition of the user's from writing.
 * The connection is read-only (query_only) but while these tables are made. Views of the database
 * itself see through temporary views, so they are made again as temporary ones. */
#include "store/shown.h"

#include "base/units.h"
#include "store/database.h"
#include "store/sheet.h"
#include "store/where.h"
#include "scenario/sure.h"

#include <math.h>
#include <string.h>

enum { MOST_CURVES = 12 }; /* that one panel has colors for (plots/curves.gp) */

static const char doing[] = "find what to show";

/* The SQL is freed. */
static enum status store_shown_run(struct store *store, char *sql, struct diag *diag)
{
    enum status status = database_exec(store, sql, doing, diag);
    sqlite3_free(sql);
    return status;
}

static enum status shown_count(struct store *store, int *out, char *sql, struct diag *diag)
{
    enum status status = database_int(store, sql, out, diag);
    sqlite3_free(sql);
    return status;
}

/* ---- functions of queries ---- */

/* quantity_text(value, unit): "26.2 MB"; NULL where there is no unit. */
static void quantity_text(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    const char *unit = (const char *)sqlite3_value_text(values[1]);
    char text[64];
    for (int d = DIM_NONE + 1; d < DIM_COUNT && unit && *unit; d++)
        if (strcmp(dimension_unit((enum dimension)d), unit) == 0) {
            quantity_format(text, sizeof text, sqlite3_value_double(values[0]), (enum dimension)d);
            sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
        }
}

static char *shown_rounded(double value, int digits)
{
    double unit = pow(10, -digits);
    return digits > 0 ? sqlite3_mprintf("%.*f", digits, value)
                      : sqlite3_mprintf("%,lld", (long long)(round(value / unit) * unit));
}

/* with_interval(value, low, high, digits): see shown.h. */
static void shown_with_interval(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    bool known = sqlite3_value_type(values[1]) != SQLITE_NULL &&
                 sqlite3_value_type(values[2]) != SQLITE_NULL;
    double low = sqlite3_value_double(values[1]), high = sqlite3_value_double(values[2]);
    int most = sqlite3_value_int(values[3]), digits = known ? sure_digits(low, high, most) : most;
    char *value = shown_rounded(sqlite3_value_double(values[0]), digits),
         *from = shown_rounded(low, digits), *to = shown_rounded(high, digits);
    char *text =
        known ? sqlite3_mprintf("%s (%s-%s)", value, from, to) : sqlite3_mprintf("%s", value);
    sqlite3_result_text(context, text, -1, sqlite3_free);
    sqlite3_free(value);
    sqlite3_free(from);
    sqlite3_free(to);
}

/* figure_room(n, most, what, how): see shown.h. */
static void figure_room(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    struct store *store = sqlite3_user_data(context);
    int64_t have = sqlite3_value_int64(values[0]), most = sqlite3_value_int64(values[1]);
    if (have <= most) {
        sqlite3_result_int(context, 1);
        return;
    }
    struct arena arena = ARENA_INIT;
    const char *example = where_example(store, &arena);
    store->refused = true;
    sqlite3_result_error(context,
        arena_printf(&arena,
            "%lld %s are more than a figure has room for (%lld); choose points with --where, as in "
            "--where \"%s\"%s; %s",
            (long long)have, (const char *)sqlite3_value_text(values[2]), (long long)most,
            example ? example : "gpus >= 64", (const char *)sqlite3_value_text(values[3]),
            where_differ(store, &arena)),
        -1);
    arena_release(&arena);
}

/* ---- what queries read ---- */

static int authorize(void *self, int action, const char *table, const char *column,
    const char *database, const char *view)
{
    struct store *store = self;
    (void)database, (void)view;
    if (action == SQLITE_READ && table) {
        bool shown = strncmp(table, "shown", strlen("shown")) == 0;
        if (shown || strcmp(table, "point") == 0 || strcmp(table, "run") == 0)
            store->reads |= STORE_READS_POINTS;
        if (strcmp(table, "answer") == 0 && column && strcmp(column, "scenario") == 0)
            store->reads |= STORE_READS_EXPLANATIONS;
        if (strcmp(table, "shown") == 0 && column && strcmp(column, "x") == 0)
            store->reads |= STORE_READS_X;
        if (strcmp(table, "shown") == 0 && column && strcmp(column, "panel") == 0)
            store->reads |= STORE_READS_PANELS;
    }
    bool reads = action == SQLITE_READ || action == SQLITE_SELECT || action == SQLITE_FUNCTION ||
                 action == SQLITE_RECURSIVE;
    return store->reading_only && !reads ? SQLITE_DENY : SQLITE_OK;
}

unsigned store_reads(const struct store *store)
{
    return store->reads;
}

/* ---- runs ---- */

static enum status choose_scenario(
    struct store *store, const char *scenario, int place, struct diag *diag)
{
    static const char all_scenarios[] = "SELECT scenario FROM main.run UNION SELECT scenario FROM "
                                        "main.answer WHERE scenario IS NOT NULL";
    int known = 0;
    char *all = NULL;
    enum status status = shown_count(store, &known,
        sqlite3_mprintf("SELECT count(*) FROM (%s) WHERE scenario = %Q", all_scenarios, scenario),
        diag);
    if (status == STATUS_OK && known)
        return store_shown_run(store,
            sqlite3_mprintf(
                "INSERT OR IGNORE INTO shown_run SELECT max(id), %d FROM main.run WHERE scenario = "
                "%Q HAVING max(id) IS NOT NULL; INSERT OR IGNORE INTO shown_scenario VALUES (%Q)",
                place, scenario, scenario),
            diag);
    if (status == STATUS_OK)
        status = database_join(&all, store, all_scenarios, NULL, diag);
    if (status == STATUS_OK)
        status = diag_input(diag, (struct source_pos){.file = store->path},
            "there is no run of scenario '%s'%s%s", scenario,
            all ? "; there are: " : " and of no other", all ? all : "");
    sqlite3_free(all);
    return status;
}

static enum status choose_run(struct store *store, int64_t id, int place, struct diag *diag)
{
    int known = 0;
    char *all = NULL;
    enum status status = shown_count(store, &known,
        sqlite3_mprintf("SELECT count(*) FROM main.run WHERE id = %lld", (long long)id), diag);
    if (status == STATUS_OK && known)
        return store_shown_run(store,
            sqlite3_mprintf(
                "INSERT OR IGNORE INTO shown_run VALUES (%lld, %d)", (long long)id, place),
            diag);
    if (status == STATUS_OK)
        status = database_join(&all, store,
            "SELECT printf('%d (%s of %s, %d points)', id, scenario, created_utc, (SELECT count(*) "
            "FROM main.point WHERE run_id = run.id)) FROM (SELECT * FROM main.run ORDER BY id DESC "
            "LIMIT 12) AS run",
            NULL, diag);
    if (status == STATUS_OK)
        status =
            diag_input(diag, (struct source_pos){.file = store->path}, "there is no run %lld%s%s",
                (long long)id, all ? "; the newest are: " : " and no other", all ? all : "");
    sqlite3_free(all);
    return status;
}

/* Without a choice it is the newest run; place keeps the order in which runs were given. */
static enum status shown_choose(
    struct store *store, const struct store_show *show, struct diag *diag)
{
    enum status status = database_exec(store,
        "CREATE TEMP TABLE shown_run (run_id INTEGER PRIMARY KEY, place INTEGER NOT NULL); "
        "CREATE TEMP TABLE shown_scenario (scenario TEXT PRIMARY KEY)",
        doing, diag);
    if (status == STATUS_OK && show->n_choices == 0)
        status = database_exec(store,
            "INSERT INTO shown_run SELECT max(run_id), 1 FROM main.point HAVING max(run_id) IS NOT "
            "NULL",
            doing, diag);
    for (int i = 0; i < show->n_choices && status == STATUS_OK; i++)
        status = show->choices[i].scenario
                     ? choose_scenario(store, show->choices[i].scenario, i, diag)
                     : choose_run(store, show->choices[i].run, i, diag);
    return status;
}

/* ---- the x axis and the panels ---- */

/* The path of a setting that an option names, or why not. Errors name what does differ, as a
 * setting that is the same in all points makes a figure of one column. */
static enum status store_shown_named(const char **path, struct store *store, const char *option,
    const char *name, struct arena *arena, struct diag *diag)
{
    bool many;
    int differs = 0, points = 0;
    *path = where_path(store, name, &many, arena);
    enum status status =
        shown_count(store, &points, sqlite3_mprintf("SELECT count(*) FROM shown_point"), diag);
    if (status != STATUS_OK || (points == 0 && !*path)) {
        *path = "cluster.gpus"; /* there is nothing to show, which says the figure */
        return status;
    }
    struct source_pos at = {.file = option};
    if (!*path && many)
        return diag_input(diag, at,
            "'%s' is the name of several settings; give the whole, as in train.micro_batch", name);
    if (!*path)
        return diag_input(diag, at,
            "there is no setting '%s' (`flopcast help settings` lists them); %s", name,
            where_differ(store, arena));
    status = shown_count(store, &differs,
        sqlite3_mprintf("SELECT count(*) FROM shown_vary WHERE path = %Q", *path), diag);
    if (status == STATUS_OK && !differs && points > 1)
        status = diag_input(diag, at, "'%s' is the same in all %d points; %s", *path, points,
            where_differ(store, arena));
    return status;
}

/* shown_asked has one row: the path, whether the user asked for it, and the condition for the
 * figure's title. */
static enum status set_axis(
    struct store *store, const char *x, const char *where, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    const char *path = NULL;
    enum status status = database_exec(store,
        "CREATE TEMP TABLE shown_asked (path TEXT NOT NULL, asked INTEGER NOT NULL, condition "
        "TEXT)",
        doing, diag);
    if (status == STATUS_OK && x)
        status = store_shown_named(&path, store, "--x", x, &arena, diag);
    if (status == STATUS_OK && x)
        status = store_shown_run(
            store, sqlite3_mprintf("INSERT INTO shown_asked VALUES (%Q, 1, NULL)", path), diag);
    else if (status ==
             STATUS_OK) /* the cluster's size; else, of what is in the names, what differs most */
        status = database_exec(store,
            "INSERT INTO shown_asked SELECT path, 0, NULL FROM (SELECT path, n, place FROM "
            "shown_vary WHERE path IN ('cluster.gpus', 'train.micro_batch', 'model', 'strategy') "
            "OR path IN (SELECT path FROM shown_named) UNION ALL SELECT 'cluster.gpus', 0, 0) "
            "ORDER BY path = 'cluster.gpus' AND n > 0 DESC, path NOT IN ('scenario', 'run') DESC, "
            "n DESC, place LIMIT 1",
            doing, diag);
    if (status == STATUS_OK)
        status = store_shown_run(
            store, sqlite3_mprintf("UPDATE shown_asked SET condition = %Q", where), diag);
    arena_release(&arena);
    return status;
}

static enum status curves(struct store *store, int *out, struct diag *diag)
{
    return shown_count(
        store, out, sqlite3_mprintf("SELECT count(DISTINCT curve) FROM shown_label"), diag);
}

/* A panel for each value of a setting that distinguished curves. */
static enum status give_panels(struct store *store, const char *path, struct diag *diag)
{
    return store_shown_run(store,
        sqlite3_mprintf(
            "UPDATE shown_part SET role = 'panel' WHERE path = %Q AND role = 'curve'", path),
        diag);
}

/* Settings that distinguish curves, and the number of their values. */
enum { MOST_FACETS = 12 };
struct facets {
    int n;
    struct {
        char *path;
        int values;
    } at[MOST_FACETS];
};

static enum status find_facets(struct facets *out, struct store *store, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db,
        "SELECT path, count(DISTINCT text) AS n FROM shown_part WHERE role = 'curve' GROUP BY path "
        "HAVING n > 1 ORDER BY n DESC, path",
        -1, &statement, NULL);
    *out = (struct facets){0};
    while (code == SQLITE_OK && out->n < MOST_FACETS && sqlite3_step(statement) == SQLITE_ROW) {
        out->at[out->n].path = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
        out->at[out->n++].values = sqlite3_column_int(statement, 1);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_OK ? STATUS_OK : database_fail(store, doing, diag);
}

/* The settings, as bits, that leave few enough curves in the fewest panels, where all their
 * values are crossed. All subsets are tried: at most 2^12 of them. */
static unsigned choose_facets(const struct facets *facets, int n_curves)
{
    unsigned best = (1U << facets->n) - 1;
    double fewest = HUGE_VAL;
    for (unsigned set = 1; set < 1U << facets->n; set++) {
        double panels = 1;
        for (int i = 0; i < facets->n; i++)
            panels *= set >> i & 1 ? facets->at[i].values : 1;
        if (n_curves <= MOST_CURVES * panels && panels < fewest) {
            fewest = panels;
            best = set;
        }
    }
    return best;
}

/* Panels where there are more curves than one can show. Where values are not all crossed a choice
 * may leave more; then there is another among what is left. */
static enum status set_panels(struct store *store, const char *facet, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct facets facets = {0};
    const char *asked = NULL;
    int n = 0;
    bool any = facet != NULL;
    enum status status =
        facet ? store_shown_named(&asked, store, "--facet", facet, &arena, diag) : STATUS_OK;
    if (status == STATUS_OK && facet)
        status = give_panels(store, asked, diag);
    while (
        status == STATUS_OK && (status = curves(store, &n, diag)) == STATUS_OK && n > MOST_CURVES) {
        status = find_facets(&facets, store, diag);
        unsigned set = choose_facets(&facets, n);
        for (int i = 0; i < facets.n; i++) {
            if (set >> i & 1 && status == STATUS_OK)
                status = give_panels(store, facets.at[i].path, diag);
            sqlite3_free(facets.at[i].path);
        }
        any = any || facets.n > 0;
        if (facets.n == 0)
            break;
    }
    if (status == STATUS_OK && any) /* what all have in common then stands above the panels */
        status = database_exec(store,
            "UPDATE shown_part SET role = 'all' WHERE role = 'curve' AND path NOT IN (SELECT path "
            "FROM shown_vary)",
            doing, diag);
    arena_release(&arena);
    return status;
}

/* ---- the rest of the database ---- */

/* Temporary views hide what they are called after from statements, but not from the views of the
 * database: these are made again as temporary ones. */
static enum status shown_narrow(
    struct store *store, const struct store_show *show, struct diag *diag)
{
    char *views = NULL;
    bool scenarios = false;
    for (int i = 0; i < show->n_choices; i++)
        scenarios = scenarios || show->choices[i].scenario;
    enum status status = database_join(&views, store,
        "SELECT 'CREATE TEMP' || substr(sql, length('CREATE') + 1) FROM main.sqlite_schema WHERE "
        "type = 'view' AND name <> 'v_newest_run' ORDER BY rowid",
        "%s; ", diag);
    if (status == STATUS_OK)
        status = database_exec(store,
            "CREATE TEMP VIEW run AS SELECT * FROM main.run WHERE id IN (SELECT run_id FROM "
            "shown_run); CREATE TEMP VIEW v_newest_run AS SELECT * FROM run; "
            "CREATE TEMP VIEW point AS SELECT * FROM main.point WHERE id IN (SELECT point_id FROM "
            "shown_point)",
            doing, diag);
    if (status == STATUS_OK && scenarios)
        status = database_exec(store,
            "CREATE TEMP TABLE answer AS SELECT * FROM main.answer WHERE scenario IS NULL OR "
            "scenario IN (SELECT scenario FROM shown_scenario)",
            doing, diag);
    if (status == STATUS_OK)
        status = database_exec(store, views, doing, diag);
    sqlite3_free(views);
    return status;
}

/* The order matters: each step reads tables of the ones before it. */
static enum status shown_fill(struct store *store, const struct store_show *show, struct diag *diag)
{
    enum status status = shown_choose(store, show, diag);
    if (status == STATUS_OK)
        status = database_exec(store, shown_sql, doing, diag);
    if (status == STATUS_OK && show->where)
        status = where_keep(store, show->where, diag);
    if (status == STATUS_OK)
        status = database_exec(store, shown_names_sql, doing, diag);
    if (status == STATUS_OK)
        status = set_axis(store, show->x, show->where, diag);
    if (status == STATUS_OK)
        status = database_exec(store, shown_x_sql, doing, diag);
    if (status == STATUS_OK)
        status = set_panels(store, show->facet, diag);
    if (status == STATUS_OK)
        status = database_exec(store, shown_figure_sql, doing, diag);
    if (status == STATUS_OK && (show->n_choices > 0 || show->where))
        status = shown_narrow(store, show, diag);
    return status;
}

enum status store_show(struct store *store, const struct store_show *show, struct diag *diag)
{
    sqlite3_create_function(store->db, "quantity_text", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
        quantity_text, NULL, NULL);
    sqlite3_create_function(
        store->db, "with_interval", 4, SQLITE_UTF8, NULL, shown_with_interval, NULL, NULL);
    sqlite3_create_function(
        store->db, "figure_room", 4, SQLITE_UTF8, store, figure_room, NULL, NULL);
    sqlite3_set_authorizer(store->db, authorize, store);
    where_bound_reading(store);
    enum status status =
        database_exec(store, "PRAGMA query_only = 0", "configure the connection", diag);
    if (status == STATUS_OK)
        status = shown_fill(store, show, diag);
    if (status == STATUS_OK)
        status = database_exec(store, "PRAGMA query_only = 1", "configure the connection", diag);
    store->reads = 0;
    return status;
}

enum { MAX_COLUMNS = 100 };

static const char reading[] = "read the results";

static void row_names(sqlite3_stmt *statement, int n, struct store_value *values)
{
    for (int i = 0; i < n; i++)
        values[i] =
            (struct store_value){.kind = STORE_TEXT, .text = sqlite3_column_name(statement, i)};
}

static void row_values(sqlite3_stmt *statement, int n, struct store_value *values)
{
    for (int i = 0; i < n; i++) {
        int type = sqlite3_column_type(statement, i);
        values[i].kind = type == SQLITE_NULL                              ? STORE_NULL
                         : type == SQLITE_INTEGER || type == SQLITE_FLOAT ? STORE_NUMBER
                                                                          : STORE_TEXT;
        values[i].number = values[i].kind == STORE_NUMBER ? sqlite3_column_double(statement, i) : 0;
        values[i].text = (const char *)sqlite3_column_text(statement, i);
    }
}

static enum status step_all(
    struct store *store, sqlite3_stmt *statement, store_row row, void *self, struct diag *diag)
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
    if (code != SQLITE_DONE && store->refused)
        return diag_input(diag, (struct source_pos){0}, "%s", sqlite3_errmsg(store->db));
    return code == SQLITE_DONE ? STATUS_OK : database_fail(store, reading, diag);
}

enum status database_join(
    char **out, struct store *store, const char *sql, const char *format, struct diag *diag)
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
            sqlite3_str_appendf(text, format, name);
        else
            sqlite3_str_appendf(text, "%s%s", sqlite3_str_length(text) ? ", " : "", name);
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : database_fail(store, reading, diag);
    sqlite3_finalize(statement);
    *out = sqlite3_str_finish(text);
    return status;
}

void store_parameters(struct store *store, struct store_parameter *parameters, int n)
{
    store->parameters = parameters;
    store->n_parameters = n;
}

static enum status bind_all(
    struct store *store, sqlite3_stmt *statement, struct source_pos at, struct diag *diag)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        struct store_parameter *found = NULL;
        for (int p = 0; p < store->n_parameters && name; p++)
            if (strcmp(store->parameters[p].name, name) == 0)
                found = &store->parameters[p];
        if (!found)
            return diag_input(
                diag, at, "SQL: nothing gives the parameter '%s' a value", name ? name : "?");
        found->used = true;
        if (found->given)
            sqlite3_bind_double(statement, i, found->value);
    }
    return STATUS_OK;
}

void store_warn_unfinished(struct store *store, struct diag *diag)
{
    /* main: what the database has, not what a figure's --where leaves of it (temporary tables of
     * the same names) */
    static const char sql[] = "SELECT scenario, finished, points FROM main.v_unfinished WHERE "
                              "run_id = (SELECT max(id) FROM main.run)";
    sqlite3_stmt *statement = NULL;
    bool found = (store->reads & STORE_READS_POINTS) &&
                 sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
                 sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        diag_warn(diag, (struct source_pos){.file = store->path},
            "the newest run of '%s' has %d of %d points; it is under way, or was stopped: the same "
            "command goes on",
            (const char *)sqlite3_column_text(statement, 0), sqlite3_column_int(statement, 1),
            sqlite3_column_int(statement, 2));
    sqlite3_finalize(statement);
}

enum status store_query(struct store *store, const char *sql, struct source_pos at, store_row row,
    void *self, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    enum status status;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, &rest);
    if ((code & 0xff) == SQLITE_ERROR)
        status = diag_input(diag, at, "SQL: %s; `sqlite3 DB .schema` shows tables and views",
            sqlite3_errmsg(store->db));
    else if (code != SQLITE_OK)
        status = database_fail(store, reading, diag);
    else if (!statement || sqlite3_column_count(statement) == 0 ||
             !sqlite3_stmt_readonly(statement))
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

enum status store_next(struct store *store, const char **script, struct source_pos at,
    store_row row, void *self, struct diag *diag)
{
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    int code = sqlite3_prepare_v2(store->db, *script, -1, &statement, script);
    bool gives = sqlite3_column_count(statement) > 0;
    if (code != SQLITE_OK)
        status = diag_input(diag, at, "SQL: %s", sqlite3_errmsg(store->db));
    else if (sqlite3_column_count(statement) > MAX_COLUMNS)
        status = diag_input(diag, at, "SQL: more than %d columns; select fewer", MAX_COLUMNS);
    else if (gives)
        status = step_all(store, statement, row, self, diag);
    else if (statement && sqlite3_step(statement) != SQLITE_DONE)
        status = database_fail(store, reading, diag);
    sqlite3_finalize(statement);
    return status;
}
