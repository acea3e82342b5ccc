#include "cli/arguments.h"
#include "cli/calibrate_correlations.h"
#include "cli/cli.h"
#include "cli/records.h"
#include "cli/table.h"

#include "base/files.h"
#include "store/store.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct show {
    const char *db;
    enum records_format format;
};

static const struct command_option options[] = {
    {"db", "PATH", "The database of `flopcast calibrate fit nccl --db` (default: results/flopcast.db)", OPTION_TEXT,
        .member = offsetof(struct show, db)},
    RECORDS_OPTION(struct show),
    {0},
};

static void refuse(void *show, const struct argument *argument)
{
    (void)show;
    argp_error(argument->state, "'%s' is one argument too many", argument->text);
}

#define NO_FIT "the database holds no fit; make one with: flopcast calibrate fit nccl --db FILE"

/* Four digits, and the unit that the files use most: microseconds, GB/s. */
#define SCALED(column) "printf('%.4g', " column " * CASE unit WHEN 's' THEN 1e6 WHEN 'B/s' THEN 1e-9 ELSE 1 END)"
static const char parameters_sql[] = "SELECT key AS parameter, family, " SCALED("value") " AS value, " SCALED(
    "std_error") " AS '+-', "
                 "CASE unit WHEN 's' THEN 'us' WHEN 'B/s' THEN 'GB/s' ELSE unit END AS unit, "
                 "printf('%.1f', 100 * std_error / value) AS '%', sizes, places AS 'rests on tables' FROM "
                 "v_nccl_parameter";
static const char tables_sql[] =
    "SELECT place AS 'table', printf('%s, %d x %d', collective, nodes, ranks / nodes) AS what, topology, "
    "iif(large_error, printf('%.1f', 100 * large_error), '') AS '>= 1 MiB %', iif(small_error, printf('%.1f', 100 * "
    "small_error), '') AS '< 64 KiB %', source "
    "FROM v_nccl_table WHERE use = 'fit' ORDER BY place";

/* For programs: the parameters in the units that the column names. */
static const char records_sql[] = "SELECT key AS parameter, family, value, std_error, unit, sizes, places AS "
                                  "rests_on_tables FROM v_nccl_parameter";

struct recorded {
    struct records records;
    struct arena arena;
    const char *names[RECORD_MAX_CELLS];
    bool named;
};

static void take_record(void *self, int n, const struct store_value *values)
{
    struct recorded *r = self;
    struct record_cell cells[RECORD_MAX_CELLS];
    BUG_IF(n > RECORD_MAX_CELLS, "%d columns", n);
    for (int i = 0; i < n; i++) {
        if (!r->named)
            r->names[i] = arena_strdup(&r->arena, values[i].text);
        else if (values[i].kind == STORE_NUMBER)
            cells[i] = cell_real(r->names[i], true, strtod(values[i].text, NULL));
        else
            cells[i] = cell_text(r->names[i], values[i].text);
    }
    if (r->named)
        records_row(&r->records, cells, n);
    r->named = true;
}

static enum status print_records(struct store *store, enum records_format format, struct diag *diag)
{
    struct recorded r = {.records = records_begin(stdout, format)};
    enum status status =
        store_query(store, records_sql, (struct source_pos){.file = "calibrate show"}, take_record, &r, diag);
    records_end(&r.records);
    if (status == STATUS_OK && r.records.n == 0)
        status = diag_input(diag, (struct source_pos){0}, NO_FIT);
    arena_release(&r.arena);
    return status;
}

/* Rows of a query: the first call brings the heads. */
struct printed {
    struct table table;
    struct arena arena;
    int rows;
    unsigned numbers; /* bit i: column i is of numbers */
};

static void take_row(void *self, int n, const struct store_value *values)
{
    struct printed *p = self;
    for (int i = 0; i < n; i++) {
        const char *text = arena_strdup(&p->arena, values[i].text ? values[i].text : "");
        if (p->rows == 0)
            table_column(&p->table, text, "", (p->numbers >> i & 1) == 0);
        else
            table_cell(&p->table, text);
    }
    p->rows++;
}

static enum status print_query(struct store *store, const char *sql, unsigned numbers, struct diag *diag)
{
    struct printed p = {.numbers = numbers};
    enum status status = store_query(store, sql, (struct source_pos){.file = "calibrate show"}, take_row, &p, diag);
    if (status == STATUS_OK && p.rows < 2)
        status = diag_input(diag, (struct source_pos){0}, NO_FIT);
    if (status == STATUS_OK)
        table_print(stdout, &p.table);
    table_free(&p.table);
    arena_release(&p.arena);
    return status;
}

int calibrate_show(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .take = refuse,
        .common = COMMON_TABLE,
        .doc =
            "Print the newest fit of a database: every parameter with its standard error and the tables of nccl-tests "
            "that it rests on (those whose prediction it moves), then these tables and what the fit leaves of "
            "them, and how the filed numbers of all fits go together; above 0.95 that is warned of.\vflopcast plot "
            "residuals draws what is left by size; flopcast plot busbw every table."};
    struct show show = {.db = "results/flopcast.db"};
    command_line_parse(&line, argc, argv, &show);
    const char *db = show.db;
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    struct arena arena = ARENA_INIT;
    enum status status = STATUS_OK;
    if (access(db, F_OK) != 0)
        status = diag_io(&diag, (struct source_pos){.file = db},
            "cannot open the database: %s; make one with: flopcast calibrate fit nccl --db %s", strerror(errno), db);
    else
        status = store_open(&store, db, STORE_READ, &diag);
    bool table = show.format == RECORDS_TABLE;
    if (status == STATUS_OK && !table)
        print_records(store, show.format, &diag);
    if (status == STATUS_OK && table)
        status = print_query(store, parameters_sql, 1u << 2 | 1u << 3 | 1u << 5 | 1u << 6, &diag);
    if (status == STATUS_OK && table) {
        putchar('\n');
        print_query(store, tables_sql, 1u << 0 | 1u << 3 | 1u << 4, &diag);
        calibrate_correlations_print(stdout, files_own(&arena, "topologies/fitted/correlations.yaml"), &diag);
    }
    store_close(store);
    arena_release(&arena);
    return cli_report(&diag);
}
