/* The CSV of flopcast_measure: every row checked, then a line a category and format.
 *
 * Columns are found by name; those up to `kind` must be there, the others are of newer versions.
 * All rows must be of one run: GPU, driver, CUDA, date and version as in the first row, kind
 * measured. A time needs least <= median <= most, except of category memory, whose result is
 * bytes. All mistakes of a file are reported.
 *
 * sustained: the first window is named burst, the later ones follow in time. The settled rate is
 * the median over the second half of these, when clocks have settled. */
#include "import/measure.h"

#include "base/units.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The columns that are looked at. Times are in microseconds and clocks in megahertz, as their names
 * say. */
enum column {
    CATEGORY,
    KERNEL,
    DTYPE,
    BYTES,
    FLOP,
    MEDIAN,
    LEAST,
    MOST,
    CLOCK,
    GPU,
    DRIVER,
    CUDA,
    DATE,
    VERSION,
    KIND,
    NEEDED, /* the columns before; those behind may be missing */
    M = NEEDED,
    N,
    K,
    BATCH,
    SMS,
    BESIDE,
    CACHE,
    COLUMNS,
};
static const char *const column_names[COLUMNS] = {"category", "kernel", "dtype", "bytes", "flop",
    "time_us_median", "time_us_min", "time_us_max", "sm_clock_MHz", "gpu", "driver", "cuda", "date",
    "version", "kind", "m", "n", "k", "batch", "sms", "beside", "cache"};

static enum status find_columns(
    int columns[COLUMNS], const struct csv_table *table, const char *name, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < COLUMNS; i++) {
        columns[i] = csv_column(table, column_names[i]);
        if (columns[i] < 0 && i < NEEDED)
            status = diag_input(diag, (struct source_pos){.file = name},
                "no column '%s'; a file of flopcast_measure is wanted", column_names[i]);
    }
    if (status == STATUS_OK && csv_rows(table) == 0)
        status =
            diag_input(diag, (struct source_pos){.file = name}, "no row: nothing was measured");
    return status;
}

enum { MOST_SIDE = 1 << 30 };

/* A number that is empty or not negative. */
static enum status measure_take_number(
    double *out, const struct csv_table *table, int row, int column, struct diag *diag)
{
    enum status status = csv_number(table, row, column, 0, out, diag);
    if (status == STATUS_OK && *out < 0)
        status =
            diag_input(diag, csv_pos(table, row), "%g is negative, which no size or time is", *out);
    return status;
}

/* What all rows of a file have in common, by its first row. */
static enum status check_same(
    const struct csv_table *table, const int columns[COLUMNS], int row, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = GPU; i <= VERSION; i++) {
        const char *here = csv_cell(table, row, columns[i]),
                   *first = csv_cell(table, 0, columns[i]);
        if (strcmp(here, first) != 0)
            status = diag_input(diag, csv_pos(table, row),
                "%s '%.60s' where the first row has '%.60s'; one run a file", column_names[i], here,
                first);
    }
    const char *kind = csv_cell(table, row, columns[KIND]);
    if (strcmp(kind, "planned") == 0)
        return diag_input(diag, csv_pos(table, row), "a row of a dry run, which measured nothing");
    if (strcmp(kind, "measured") != 0)
        return diag_input(diag, csv_pos(table, row), "kind '%.40s'; 'measured' is wanted", kind);
    return status;
}

static enum status check_time(const struct csv_table *table, int row,
    const struct measured_row *what, double least_us, double median_us, double most_us,
    struct diag *diag)
{
    struct source_pos at = csv_pos(table, row);
    if (!*what->category || !*what->kernel)
        return diag_input(diag, at, "no %s", *what->category ? "kernel" : "category");
    if (strcmp(what->category, "memory") == 0)
        return STATUS_OK; /* bytes are the result; none at all may be one */
    if (median_us <= 0)
        return diag_input(diag, at, "no time_us_median");
    if (!(least_us <= median_us && median_us <= most_us))
        return diag_input(diag, at,
            "a median of %g us is not between the least, %g us, and the most, %g us", median_us,
            least_us, most_us);
    return STATUS_OK;
}

/* The row is kept also with a mistake, since its status goes up and the caller drops the file. */
static enum status measure_take_row(
    struct measured_file *file, const int columns[COLUMNS], int row, struct diag *diag)
{
    const struct csv_table *table = file->table;
    struct measured_row what = {.category = csv_cell(table, row, columns[CATEGORY]),
        .kernel = csv_cell(table, row, columns[KERNEL]),
        .dtype = csv_cell(table, row, columns[DTYPE]),
        .beside = csv_cell(table, row, columns[BESIDE]),
        .cache = csv_cell(table, row, columns[CACHE])};
    double median_us = 0, least_us = 0, most_us = 0, clock_MHz = 0;
    struct {
        double *to;
        enum column column;
    } numbers[] = {{&what.bytes, BYTES}, {&what.flop, FLOP}, {&median_us, MEDIAN},
        {&least_us, LEAST}, {&most_us, MOST}, {&clock_MHz, CLOCK}, {&what.m, M}, {&what.n, N},
        {&what.k, K}, {&what.batch, BATCH}, {&what.sms, SMS}};
    enum status status = check_same(table, columns, row, diag);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (measure_take_number(numbers[i].to, table, row, columns[numbers[i].column], diag) !=
            STATUS_OK)
            status = STATUS_INPUT;
    if (status == STATUS_OK && !(what.m <= MOST_SIDE && what.n <= MOST_SIDE &&
                                   what.k <= MOST_SIDE && what.batch <= MOST_SIDE))
        status =
            diag_input(diag, csv_pos(table, row), "a side above %d, which no GPU holds", MOST_SIDE);
    if (status == STATUS_OK)
        status = check_time(table, row, &what, least_us, median_us, most_us, diag);
    what.time_s = median_us * 1e-6;
    what.sm_clock_hz = clock_MHz * 1e6;
    vec_push(&file->rows, what);
    return status;
}

static enum status measure_take_table(
    struct measured_file *file, const char *name, struct diag *diag)
{
    int columns[COLUMNS];
    enum status worst = find_columns(columns, file->table, name, diag);
    if (worst != STATUS_OK)
        return worst;
    for (int row = 0; row < csv_rows(file->table); row++) {
        enum status status = measure_take_row(file, columns, row, diag);
        worst = status > worst ? status : worst;
    }
    file->gpu = csv_cell(file->table, 0, columns[GPU]);
    file->driver = csv_cell(file->table, 0, columns[DRIVER]);
    file->cuda = csv_cell(file->table, 0, columns[CUDA]);
    file->date = csv_cell(file->table, 0, columns[DATE]);
    file->version = csv_cell(file->table, 0, columns[VERSION]);
    return worst;
}

enum status measured_read(struct measured_file *out, const char *path, struct diag *diag)
{
    *out = (struct measured_file){0};
    enum status status = csv_load(&out->table, path, diag);
    return status == STATUS_OK ? measure_take_table(out, path, diag) : status;
}

enum status measured_read_text(
    struct measured_file *out, const char *name, const char *text, size_t n, struct diag *diag)
{
    *out = (struct measured_file){0};
    enum status status = csv_load_text(&out->table, name, text, n, diag);
    return status == STATUS_OK ? measure_take_table(out, name, diag) : status;
}

void measured_file_free(struct measured_file *file)
{
    csv_release(file->table);
    vec_free(&file->rows);
}

static bool same_group(const struct measured_row *a, const struct measured_row *b)
{
    return strcmp(a->category, b->category) == 0 && strcmp(a->dtype, b->dtype) == 0;
}

/* One line for the rows that are alike to row `first`, which is the first of them. */
static void measure_print_group(FILE *out, const struct measured_file *file, int first)
{
    const struct measured_row *group = &file->rows.at[first];
    double flops = 0, Bps = 0, shortest_s = HUGE_VAL, most_bytes = 0;
    char text[32];
    int n = 0;
    for (int i = first; i < file->rows.n; i++) {
        const struct measured_row *row = &file->rows.at[i];
        if (!same_group(row, group))
            continue;
        n++;
        most_bytes = fmax(most_bytes, row->bytes);
        if (row->time_s <= 0)
            continue;
        shortest_s = fmin(shortest_s, row->time_s);
        flops = fmax(flops, row->flop / row->time_s);
        Bps = fmax(Bps, row->bytes / row->time_s);
    }
    fprintf(out, "  %-12s %-5s %4d row%s", group->category, group->dtype, n, n > 1 ? "s" : " ");
    if (shortest_s == HUGE_VAL)
        fprintf(out, "  up to %s", quantity_format(text, sizeof text, most_bytes, DIM_BYTES));
    else
        fprintf(out, "  from %s", quantity_format(text, sizeof text, shortest_s, DIM_SECONDS));
    if (flops > 0)
        fprintf(out, ", up to %s", quantity_format(text, sizeof text, flops, DIM_FLOP_PER_S));
    else if (Bps > 0 && strcmp(group->category, "allocation") != 0)
        fprintf(out, ", up to %s", quantity_format(text, sizeof text, Bps, DIM_BYTES_PER_S));
    fputc('\n', out);
}

static void print_sustained(FILE *out, const struct measured_file *file, const char *dtype)
{
    struct measured_sustained s;
    char burst[32], sustained[32], clock[32];
    if (!measured_sustained(&s, file, dtype))
        return;
    fprintf(out, "  %s sustained: %s, %.1f %% of the %s in the burst", dtype,
        quantity_format(sustained, sizeof sustained, s.sustained_flops, DIM_FLOP_PER_S),
        100 * s.sustained_flops / s.burst_flops,
        quantity_format(burst, sizeof burst, s.burst_flops, DIM_FLOP_PER_S));
    if (s.sustained_clock_hz > 0)
        fprintf(
            out, ", at %s", quantity_format(clock, sizeof clock, s.sustained_clock_hz, DIM_HERTZ));
    fputc('\n', out);
}

void measured_print_source(FILE *out, const struct measured_file *file)
{
    fprintf(out, "%d rows of %s, driver %s, CUDA %s, %s, by flopcast_measure %s\n", file->rows.n,
        file->gpu, file->driver, file->cuda, file->date, file->version);
}

void measured_print(FILE *out, const struct measured_file *file)
{
    measured_print_source(out, file);
    for (int i = 0; i < file->rows.n; i++) {
        bool seen = false;
        for (int before = 0; before < i && !seen; before++)
            seen = same_group(&file->rows.at[before], &file->rows.at[i]);
        if (seen)
            continue;
        measure_print_group(out, file, i);
        if (strcmp(file->rows.at[i].category, "sustained") == 0)
            print_sustained(out, file, file->rows.at[i].dtype);
    }
}

bool measured_sustained(
    struct measured_sustained *out, const struct measured_file *file, const char *dtype)
{
    VEC(double) flops = {0}, clocks = {0};
    *out = (struct measured_sustained){0};
    for (int i = 0; i < file->rows.n; i++) {
        const struct measured_row *row = &file->rows.at[i];
        if (strcmp(row->category, "sustained") != 0 || strcmp(row->dtype, dtype) != 0 ||
            row->time_s <= 0)
            continue;
        if (strcmp(row->kernel, "burst") == 0) {
            out->burst_flops = row->flop / row->time_s;
        } else {
            vec_push(&flops, row->flop / row->time_s);
            vec_push(&clocks, row->sm_clock_hz);
        }
    }
    bool known = out->burst_flops > 0 && flops.n > 0;
    if (known) {
        size_t settled = (size_t)flops.n / 2, n = (size_t)flops.n - settled;
        /* windows stand in the order of time */
        out->sustained_flops = gsl_stats_median(flops.at + settled, 1, n);
        out->sustained_clock_hz = gsl_stats_median(clocks.at + settled, 1, n);
    }
    vec_free(&flops);
    vec_free(&clocks);
    return known;
}
