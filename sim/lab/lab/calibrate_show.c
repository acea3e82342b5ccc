#include "base/files.h"
#include "base/vec.h"
#include "options/arguments.h"
#include "lab/lab.h"
#include "rows/records.h"
#include "rows/table.h"
#include "hw/draw.h"
#include "store/store.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Assumed: below the first a pair is no news; at the second either error is three times (1 / sqrt(1 - r^2) = 3.2) what
 * it would be if the other number were known. */
static const double SHOWN = 0.5, NEARLY_ONE = 0.95;

struct pair {
    const struct hw_fit *fit;
    int a, b;
    double correlation;
};
typedef VEC(struct pair) pairs;

/* b before a, of the rows of a Cholesky factor of correlations. */
static double correlation(const struct hw_fit *fit, int a, int b)
{
    double sum = 0;
    for (int k = 0; k <= b; k++)
        sum += fit->factor[a * fit->n + k] * fit->factor[b * fit->n + k];
    return sum;
}

static int closest_first(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    double by = fabs(b->correlation) - fabs(a->correlation);
    if (by != 0)
        return by > 0 ? 1 : -1;
    return a->a != b->a ? a->a - b->a : a->b - b->b;
}

static void print_pair(struct table *table, struct arena *arena, const struct pair *pair)
{
    const int at[] = {pair->a, pair->b};
    for (int i = 0; i < 2; i++) {
        table_cell(table, pair->fit->keys[at[i]]);
        table_cell(table, pair->fit->ids[at[i]]);
    }
    table_cell(table, arena_printf(arena, "%.2f", pair->correlation));
}

/* The pairs of a file as topologies/fitted/correlations.yaml that go together by half or more, the closest first. Above
 * 0.95 one sum or product of the two is measured, and neither of them: a warning each. */
static enum status print_file(FILE *out, const char *path, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct hw_fits fits = {0};
    struct table table = {0};
    pairs found = {0};
    enum status status = hw_fits_load(&fits, path, &arena, diag);
    for (int f = 0; f < fits.n && status == STATUS_OK; f++)
        for (int a = 0; a < fits.list[f].n; a++)
            for (int b = 0; b < a; b++) {
                struct pair pair = {&fits.list[f], b, a, correlation(&fits.list[f], a, b)};
                if (fabs(pair.correlation) >= SHOWN)
                    vec_push(&found, pair);
            }
    if (found.n > 0)
        qsort(found.at, (size_t)found.n, sizeof *found.at, closest_first);
    static const struct table_column columns[] = {{"number", "", true}, {"fit", "", true}, {"goes with", "", true},
        {"fit", "", true}, {"correlation", "", false}};
    table_columns(&table, columns, NULL, sizeof columns / sizeof *columns);
    for (int i = 0; i < found.n; i++) {
        const struct pair *pair = &found.at[i];
        print_pair(&table, &arena, pair);
        if (fabs(pair->correlation) > NEARLY_ONE)
            diag_warn(diag, (struct source_pos){.file = path},
                "%s (%s) and %s (%s) have a correlation of %.2f: the data determine one number of the two; measure one "
                "of them, or give it a prior",
                pair->fit->keys[pair->a], pair->fit->ids[pair->a], pair->fit->keys[pair->b], pair->fit->ids[pair->b],
                pair->correlation);
    }
    if (status == STATUS_OK && found.n > 0) {
        fprintf(out, "\ncorrelations of filed numbers, of %.1f or more:\n", SHOWN);
        table_print(out, &table);
    }
    vec_free(&found);
    table_free(&table);
    arena_release(&arena);
    return status;
}

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
        print_file(stdout, files_own(&arena, "topologies/fitted/correlations.yaml"), &diag);
    }
    store_close(store);
    arena_release(&arena);
    return cli_report(&diag);
}
