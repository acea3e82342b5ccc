/* flopcast calibrate show: the newest fit of a database by SQL scripts, then how filed numbers
 * go together.
 *
 * The correlations are no part of the database: they are read from
 * topologies/fitted/correlations.yaml, whose loader gives a Cholesky factor a fit, multiplied
 * out to pairs, and put into a database in memory, where scripts print and choose them. Pairs
 * that are nearly one are warnings, one each: a query gives the texts. */
#include "base/files.h"
#include "base/vec.h"
#include "calibrate/tables.h"
#include "options/arguments.h"
#include "options/command.h"
#include "rows/sheet.h"
#include "hw/draw.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

COMMAND(calibrate_show, 50, "calibrate show", 0, "print a fit that is in a database",
    "flopcast calibrate fit nccl --db my.db &&\nflopcast calibrate show --db my.db");

/* b before a, of the rows of a Cholesky factor of correlations. */
static double calibrate_show_correlation(const struct hw_fit *fit, int a, int b)
{
    double sum = 0;
    for (int k = 0; k <= b; k++)
        sum += fit->factor[a * fit->n + k] * fit->factor[b * fit->n + k];
    return sum;
}

/* All pairs of a file as topologies/fitted/correlations.yaml, as table pair. */
static enum status put_pairs(struct store *store, const char *path, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct hw_fits fits = {0};
    VEC(struct record_cell) cells = {0};
    int n_pairs = 0;
    enum { CELLS = 7 };
    enum status status = hw_fits_load(&fits, path, &arena, diag);
    for (int f = 0; f < fits.n; f++)
        for (int a = 0; a < fits.list[f].n; a++)
            for (int b = 0; b < a; b++, n_pairs++) {
                const struct hw_fit *fit = &fits.list[f];
                const struct record_cell pair[CELLS] = {cell_text("number", fit->keys[b]),
                    cell_text("fit", fit->ids[b]), cell_text("other", fit->keys[a]),
                    cell_text("other_fit", fit->ids[a]),
                    cell_real("correlation", true, calibrate_show_correlation(fit, a, b)),
                    cell_int("place", b), cell_int("other_place", a)};
                for (int c = 0; c < CELLS; c++)
                    vec_push(&cells, pair[c]);
            }
    if (status == STATUS_OK && n_pairs > 0)
        status = store_put_rows(store, "pair", cells.at, CELLS, n_pairs, diag);
    vec_free(&cells);
    arena_release(&arena);
    return n_pairs > 0 ? status : STATUS_INPUT;
}

struct warned {
    const char *path;
    struct diag *diag;
    int rows;
};

static void warn_near(void *self, int n, const struct store_value *values)
{
    struct warned *warned = self;
    (void)n;
    if (warned->rows++ > 0) /* the first has the names */
        diag_warn(warned->diag, (struct source_pos){.file = warned->path}, "%s", values[0].text);
}

/* How the filed numbers go together, the closest first. Of those that are nearly one, a sum or
 * product of the two is measured, and neither of them: a warning each. */
static void print_correlations(const char *path, struct diag *diag)
{
    struct store *store = NULL;
    struct warned warned = {path, diag, 0};
    if (store_open_memory(&store, diag) == STATUS_OK && put_pairs(store, path, diag) == STATUS_OK &&
        sheet_print(stdout, store, texts_find(calibrate_tables, "correlations"), RECORDS_TABLE,
            NULL, diag) == STATUS_OK)
        store_query(store, texts_find(calibrate_tables, "correlations_near")->text,
            (struct source_pos){.file = path}, warn_near, &warned, diag);
    store_close(store);
}

struct show {
    const char *db;
    enum records_format format;
};

static const struct command_option calibrate_show_options[] = {
    {"db", "PATH",
        "The database of `flopcast calibrate fit nccl --db` (default: results/flopcast.db)",
        OPTION_TEXT, .member = offsetof(struct show, db)},
    RECORDS_OPTION(struct show),
    {0},
};

static void calibrate_show_refuse(void *show, const struct argument *argument)
{
    (void)show;
    argp_error(argument->state, "'%s' is one argument too many", argument->text);
}

int calibrate_show(int argc, char **argv)
{
    const struct command_line line = {.options = calibrate_show_options,
        .take = calibrate_show_refuse,
        .common = COMMON_TABLE,
        .doc = "Print the newest fit of a database: every parameter with its standard error and "
               "the tables of nccl-tests that it rests on (those whose prediction it moves), then "
               "these tables and what the fit leaves of them, and how the filed numbers of all "
               "fits go together; above 0.95 that is warned of.\vflopcast plot residuals draws "
               "what is left by size; flopcast plot busbw every table."};
    struct show show = {.db = "results/flopcast.db"};
    command_line_parse(&line, argc, argv, &show);
    const char *db = show.db;
    struct diag diag = DIAG_INIT;
    struct store *store = NULL;
    struct arena arena = ARENA_INIT;
    enum status status = STATUS_OK;
    if (access(db, F_OK) != 0)
        status = diag_io(&diag, (struct source_pos){.file = db},
            "cannot open the database: %s; make one with: flopcast calibrate fit nccl --db %s",
            strerror(errno), db);
    else
        status = store_open(&store, db, STORE_READ, &diag);
    bool table = show.format == RECORDS_TABLE;
    int rows = 0;
    if (status == STATUS_OK)
        status = sheet_print(stdout, store,
            texts_find(calibrate_tables, table ? "nccl" : "nccl_records"), show.format, &rows,
            &diag);
    if (status == STATUS_OK && rows == 0)
        status = diag_input(&diag, (struct source_pos){0},
            "the database holds no fit; make one with: flopcast calibrate fit nccl --db FILE");
    if (status == STATUS_OK && table)
        print_correlations(files_own(&arena, "topologies/fitted/correlations.yaml"), &diag);
    store_close(store);
    arena_release(&arena);
    return cli_report(&diag);
}
