#include "cli/calibrate_correlations.h"

#include "base/vec.h"
#include "cli/table.h"
#include "hw/draw.h"

#include <math.h>
#include <stdlib.h>

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

enum status calibrate_correlations_print(FILE *out, const char *path, struct diag *diag)
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
