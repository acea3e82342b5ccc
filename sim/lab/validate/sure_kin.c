/* How far one measurement of a user's own says what another run will do, by how alike the two are.
 *
 * Runs of one maker are pairs of a kin: the same layout, model, or only the maker. Slopes are by
 * least absolute values: the weighted median of one error over another, weights the other's size; a
 * closer kin has at least the slope of a farther one. Of the same job at another size the slope,
 * and by how much intervals are widened until they hold what is wanted, are found together, by the
 * interval score of runs with the smallest size of their curve given: a slope too near 1 asks for
 * wide intervals, one too small gives what is measured away.
 *
 * What is subtle: a maker with two rows weighs as much as one with hundreds, and pairs grow with
 * the square of a maker's rows, so of them every k-th is taken, about MOST_PAIRS of a maker and
 * kin; a first pass counts them. */
#include "validate/sure_kin.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 2000 }; /* of a maker and kin, about */
static const double LEAST_ERROR = 1e-6, MOST_ALIKE = 0.97;

double sure_within(int makers)
{
    static const double MOST = 0.995;
    return fmin(SURE_WANTED * (1 + 1.0 / makers), MOST);
}

static enum sure_kin kin_of(const struct validate_row *a, const struct validate_row *b)
{
    bool model = strcmp(a->model, b->model) == 0 && strcmp(a->gpu, b->gpu) == 0 &&
                 strcmp(a->framework, b->framework) == 0,
         layout =
             model && strcmp(a->layout, b->layout) == 0 && strcmp(a->strategy, b->strategy) == 0;
    return a->curve == b->curve ? SURE_JOB : layout ? SURE_LAYOUT : model ? SURE_MODEL : SURE_MAKER;
}

static double doublings_of(const struct validate_row *a, const struct validate_row *b)
{
    return fabs(log2((double)a->gpus / (double)b->gpus));
}

static void push_pair(struct sure_kins *kins, enum sure_kin kin, const struct sure_row *of,
    const struct sure_row *over)
{
    if (fabs(over->error) > LEAST_ERROR)
        vec_push(&kins->pairs[kin],
            (struct sure_pair){of->error / over->error, fabs(over->error), of->maker});
}

/* Every maker the same: the weights of its pairs of a kin add up to their mean size. */
static void weigh_maker(struct sure_kins *kins, const int first[SURE_JOB])
{
    for (int kin = 0; kin < SURE_JOB; kin++)
        for (int i = first[kin]; i < kins->pairs[kin].n; i++)
            kins->pairs[kin].at[i].weight /= kins->pairs[kin].n - first[kin];
}

static void find_pairs(struct sure_kins *kins, const struct validate_table *table,
    const struct sure_rows *rows, const int *own, int n)
{
    int first[SURE_JOB], count[SURE_JOB] = {0}, passed[SURE_JOB] = {0};
    for (int kin = 0; kin < SURE_JOB; kin++)
        first[kin] = kins->pairs[kin].n;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                const struct sure_row *of = &rows->list[own[i]], *over = &rows->list[own[j]];
                const struct validate_row *a = &table->rows.at[of->at],
                                          *b = &table->rows.at[over->at];
                enum sure_kin kin = kin_of(a, b);
                if (i == j || kin == SURE_JOB)
                    continue;
                int step = 1 + count[kin] / MOST_PAIRS;
                if (pass == 0)
                    count[kin]++;
                else if (passed[kin]++ % step == 0)
                    push_pair(kins, kin, of, over);
            }
    weigh_maker(kins, first);
}

static void find_sizes(struct sure_kins *kins, const struct validate_table *table,
    const struct sure_rows *rows, const int *own, int n)
{
    int first = kins->sizes.n;
    for (int i = 0; i < n; i++) {
        const struct validate_row *row = &table->rows.at[rows->list[own[i]].at];
        int smallest = -1;
        for (int j = 0; j < n; j++) {
            const struct validate_row *other = &table->rows.at[rows->list[own[j]].at];
            if (other->curve == row->curve && other->gpus < row->gpus &&
                (smallest < 0 || other->gpus < table->rows.at[rows->list[smallest].at].gpus))
                smallest = own[j];
        }
        if (smallest >= 0)
            vec_push(&kins->sizes,
                (struct sure_size){.row = own[i],
                    .smallest = smallest,
                    .doublings = doublings_of(row, &table->rows.at[rows->list[smallest].at])});
    }
    for (int i = first; i < kins->sizes.n; i++)
        kins->sizes.at[i].of_maker = kins->sizes.n - first;
}

void sure_kins_find(
    struct sure_kins *kins, const struct validate_table *table, const struct sure_rows *rows)
{
    int *own = xcalloc((size_t)rows->n + 1, sizeof *own);
    for (int i = 0; i < rows->n; i++) {
        int n = 0, maker = rows->list[i].maker;
        bool first = true;
        for (int j = 0; j < rows->n; j++) {
            if (rows->list[j].maker != maker)
                continue;
            first &= j >= i;
            own[n++] = j;
        }
        if (!first)
            continue;
        find_pairs(kins, table, rows, own, n);
        find_sizes(kins, table, rows, own, n);
    }
    free(own);
}

static double slope(const struct sure_kins *kins, enum sure_kin kin, int left_out)
{
    int n = 0, all = kins->pairs[kin].n;
    double *slopes = xcalloc((size_t)all + 1, sizeof *slopes),
           *weights = xcalloc((size_t)all + 1, sizeof *weights);
    for (int i = 0; i < all; i++) {
        const struct sure_pair *pair = &kins->pairs[kin].at[i];
        if (pair->maker == left_out)
            continue;
        slopes[n] = pair->slope;
        weights[n++] = pair->weight;
    }
    double found = sure_quantile(slopes, weights, n, 0.5);
    free(slopes);
    free(weights);
    return found;
}

static struct sure_range range_given(
    const struct sure_numbers *numbers, const struct sure_rows *rows, const struct sure_size *size)
{
    const struct sure_row *row = &rows->list[size->row], *smallest = &rows->list[size->smallest];
    struct sure_range measured = sure_speed(numbers, &smallest->terms, true),
                      range = sure_speed(numbers, &row->terms, true);
    double scaled = sure_scaled(&measured, smallest->error),
           with = sure_alike(numbers, SURE_JOB, size->doublings), among = 1;
    sure_given(&range, numbers, 1, &scaled, &with, &among);
    return range;
}

/* How many times as wide intervals of given sizes must be to hold what is wanted of the makers'
 * weight. */
static double sure_kin_wider(const struct sure_numbers *numbers, const struct sure_kins *kins,
    const struct sure_rows *rows, int left_out)
{
    size_t room = (size_t)kins->sizes.n + 1;
    int n = 0;
    double *needs = xcalloc(room, sizeof *needs), *weights = xcalloc(room, sizeof *weights),
           makers = 0;
    for (int i = 0; i < kins->sizes.n; i++) {
        const struct sure_size *size = &kins->sizes.at[i];
        if (rows->list[size->row].maker == left_out)
            continue;
        struct sure_range range = range_given(numbers, rows, size);
        double beyond = rows->list[size->row].error - log(range.middle);
        needs[n] = beyond / log((beyond < 0 ? range.low : range.high) / range.middle);
        makers += weights[n++] = 1.0 / size->of_maker;
    }
    double found = n > 0 ? sure_quantile(needs, weights, n, sure_within((int)lround(makers))) : 1;
    free(needs);
    free(weights);
    return found;
}

/* The sum of interval scores of given sizes, each maker the same. */
static double sure_kin_score(const struct sure_numbers *numbers, const struct sure_kins *kins,
    const struct sure_rows *rows, int left_out)
{
    double sum = 0;
    for (int i = 0; i < kins->sizes.n; i++) {
        const struct sure_size *size = &kins->sizes.at[i];
        const struct sure_row *row = &rows->list[size->row];
        struct sure_range range = range_given(numbers, rows, size);
        if (row->maker != left_out)
            sum += sure_interval_score(&range, exp(row->error)) / size->of_maker;
    }
    return sum;
}

/* Slopes by themselves; that of the same job together with given_wider, as each says how much the
 * other need be. */
void sure_kins_fit(struct sure_numbers *numbers, const struct sure_kins *kins,
    const struct sure_rows *rows, int left_out)
{
    enum { STEPS = 32 };
    double least = 0, best = HUGE_VAL;
    struct sure_numbers tried;
    for (int kin = 0; kin < SURE_JOB; kin++)
        numbers->alike[kin] = least =
            fmin(fmax(slope(kins, (enum sure_kin)kin, left_out), least), MOST_ALIKE);
    tried = *numbers;
    for (int step = 0; step <= STEPS; step++) {
        tried.alike[SURE_JOB] = least + (MOST_ALIKE - least) * step / STEPS;
        tried.given_wider = 1;
        tried.given_wider = sure_kin_wider(&tried, kins, rows, left_out);
        double score = sure_kin_score(&tried, kins, rows, left_out);
        if (score < best) {
            best = score;
            numbers->alike[SURE_JOB] = tried.alike[SURE_JOB];
            numbers->given_wider = tried.given_wider;
        }
    }
}

void sure_kins_apply(struct sure_kins *kins, const struct sure_numbers *numbers,
    const struct sure_rows *rows, int maker)
{
    for (int i = 0; i < kins->sizes.n; i++)
        if (rows->list[kins->sizes.at[i].row].maker == maker)
            kins->sizes.at[i].range = range_given(numbers, rows, &kins->sizes.at[i]);
}

struct sure_given_score sure_kins_score(const struct sure_kins *kins, const struct sure_rows *rows)
{
    size_t n = (size_t)kins->sizes.n;
    struct sure_given_score out = {.rows = (int)n};
    if (n == 0)
        return out;
    double *before = xcalloc(n, sizeof *before), *after = xcalloc(n, sizeof *after),
           *widths = xcalloc(n, sizeof *widths), makers = 0;
    for (size_t i = 0; i < n; i++) {
        const struct sure_size *size = &kins->sizes.at[i];
        double error = rows->list[size->row].error, ratio = exp(error);
        before[i] = fabs(expm1(-error));
        after[i] = fabs(size->range.middle / ratio - 1);
        widths[i] = size->range.high - size->range.low;
        bool in = ratio >= size->range.low && ratio <= size->range.high;
        out.covered += (double)in / (double)n;
        out.covered_makers += (double)in / size->of_maker;
        makers += 1.0 / size->of_maker;
    }
    out.makers = (int)lround(makers);
    out.covered_makers /= makers;
    gsl_sort(before, 1, n);
    gsl_sort(after, 1, n);
    gsl_sort(widths, 1, n);
    out.before_median = gsl_stats_median_from_sorted_data(before, 1, n);
    out.before_p90 = gsl_stats_quantile_from_sorted_data(before, 1, n, SURE_WANTED);
    out.median = gsl_stats_median_from_sorted_data(after, 1, n);
    out.p90 = gsl_stats_quantile_from_sorted_data(after, 1, n, SURE_WANTED);
    out.width = gsl_stats_median_from_sorted_data(widths, 1, n);
    free(before);
    free(after);
    free(widths);
    return out;
}

void sure_kins_free(struct sure_kins *kins)
{
    for (int kin = 0; kin < SURE_JOB; kin++)
        vec_free(&kins->pairs[kin]);
    vec_free(&kins->sizes);
}
