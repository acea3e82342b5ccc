#include "validate/interval.h"

#include "base/rng.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WANTED = 0.9; /* of the rows inside their intervals: the definition of a 90 % interval */

/* What a row says about a discrepancy. family, unit: the first row that has the same. */
struct lesson {
    double need;
    int family, unit;
};
struct lessons {
    struct lesson *list;
    int n;
};

static bool same_family(const struct validate_row *a, const struct validate_row *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->gpu, b->gpu) == 0 && strcmp(a->model, b->model) == 0;
}

static int family_of(const struct validate_table *table, int row, enum discrepancy_class which)
{
    const struct validate_row *rows = table->rows.at;
    for (int i = 0; i < row; i++)
        if (which == DISCREPANCY_PER_DOUBLING ? rows[i].curve == rows[row].curve : same_family(&rows[i], &rows[row]))
            return i;
    return row;
}

static int unit_of(const struct validate_table *table, int row, enum discrepancy_class which)
{
    if (which == DISCREPANCY_WITH_STACK)
        return family_of(table, row, which);
    for (int i = 0; i < row; i++)
        if (strcmp(table->rows.at[i].source, table->rows.at[row].source) == 0)
            return i;
    return row;
}

/* Whether the row has an interval of this class. */
static bool applies(const struct validate_row *row, enum discrepancy_class which)
{
    if (which == DISCREPANCY_PER_DOUBLING)
        return row->ratio_interval.known;
    return row->interval.known && row->leaves_out == which;
}

static struct validate_interval *interval_of(struct validate_row *row, enum discrepancy_class which)
{
    return which == DISCREPANCY_PER_DOUBLING ? &row->ratio_interval : &row->interval;
}

static struct lessons lessons_of(const struct validate_table *table, enum discrepancy_class which)
{
    struct lessons lessons = {.list = xcalloc((size_t)table->rows.n + 1, sizeof *lessons.list)};
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        const struct validate_interval *interval = interval_of(row, which);
        if (applies(row, which) && !*row->used_in_fit)
            lessons.list[lessons.n++] = (struct lesson){
                interval->need / interval->doublings_root, family_of(table, i, which), unit_of(table, i, which)};
    }
    return lessons;
}

static int by_need(const void *a, const void *b)
{
    const struct lesson *x = a, *y = b;
    return (x->need > y->need) - (x->need < y->need);
}

/* The smallest need that is enough for WANTED of the weight. times[unit]: how often the unit counts. lessons are
 * sorted by need. */
static double enough(const struct lessons *lessons, const int *times, int n_rows)
{
    int *members = xcalloc((size_t)n_rows + 1, sizeof *members);
    double total = 0, sum = 0, found = 0;
    for (int i = 0; i < lessons->n; i++)
        members[lessons->list[i].family]++;
    for (int i = 0; i < lessons->n; i++)
        total += (double)times[lessons->list[i].unit] / members[lessons->list[i].family];
    for (int i = 0; i < lessons->n && sum < WANTED * total; i++) {
        sum += (double)times[lessons->list[i].unit] / members[lessons->list[i].family];
        found = lessons->list[i].need;
    }
    free(members);
    return found;
}

/* The rows that stand for units, and for families: their numbers. */
static int count_units(const struct lessons *lessons, int *units, bool families)
{
    int n = 0;
    for (int i = 0; i < lessons->n; i++) {
        int id = families ? lessons->list[i].family : lessons->list[i].unit;
        bool known = false;
        for (int u = 0; u < n && !known; u++)
            known = units[u] == id;
        if (!known)
            units[n++] = id;
    }
    return n;
}

struct validate_discrepancy validate_discrepancy(const struct validate_table *table, enum discrepancy_class which)
{
    int n_rows = table->rows.n;
    struct lessons lessons = lessons_of(table, which);
    int *units = xcalloc((size_t)n_rows + 1, sizeof *units), *times = xcalloc((size_t)n_rows + 1, sizeof *times);
    struct validate_discrepancy out = {.rows = lessons.n, .families = count_units(&lessons, units, true)};
    out.units = count_units(&lessons, units, false);
    qsort(lessons.list, (size_t)lessons.n, sizeof *lessons.list, by_need);
    for (int u = 0; u < out.units; u++)
        times[units[u]] = 1;
    out.value = enough(&lessons, times, n_rows);
    double again[VALIDATE_RESAMPLES];
    struct rng_stream stream = rng_stream(0, 0, (uint64_t)which);
    for (int b = 0; b < VALIDATE_RESAMPLES; b++) {
        memset(times, 0, sizeof *times * (size_t)n_rows);
        for (int u = 0; u < out.units; u++)
            times[units[(int)(rng_uniform(&stream) * out.units)]]++;
        again[b] = enough(&lessons, times, n_rows);
    }
    out.std_error = gsl_stats_sd(again, 1, VALIDATE_RESAMPLES);
    free(units);
    free(times);
    free(lessons.list);
    return out;
}

/* What the others teach about a row of this unit. */
static double learned(const struct lessons *lessons, int unit, double filed, int n_rows)
{
    int *units = xcalloc((size_t)n_rows + 1, sizeof *units), *times = xcalloc((size_t)n_rows + 1, sizeof *times);
    int n = count_units(lessons, units, false), others = 0;
    for (int u = 0; u < n; u++) {
        times[units[u]] = units[u] != unit;
        others += units[u] != unit;
    }
    double value = others < VALIDATE_LEAST_UNITS ? filed : enough(lessons, times, n_rows);
    free(units);
    free(times);
    return value;
}

static struct scenario_result sampled(const struct validate_row *row)
{
    return (struct scenario_result){.samples = row->samples, .n_samples = row->n_samples};
}

/* Bands by numbers alone, and how much more each row would need. */
static void set_needs(struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        row->interval = row->ratio_interval = (struct validate_interval){.doublings_root = 1};
        struct scenario_result result = sampled(row);
        row->interval.numbers = scenario_band(&result, SAMPLED_TOKENS);
        row->interval.known = row->has_error && row->interval.numbers.n > 0;
        if (row->interval.known)
            row->interval.need = scenario_widening(row->interval.numbers, row->measured.tokens_per_s_per_gpu);
    }
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        if (!row->interval.known || !row->has_ratio || row->smallest == i)
            continue;
        struct scenario_result from = sampled(&table->rows.at[row->smallest]), to = sampled(row);
        struct validate_interval *ratio = &row->ratio_interval;
        double doublings = log2((double)row->gpus / (double)table->rows.at[row->smallest].gpus);
        ratio->numbers = scenario_ratio_band(&from, &to);
        ratio->known = ratio->numbers.n > 0;
        ratio->doublings_root = sqrt(doublings);
        if (ratio->known)
            ratio->need = scenario_widening(ratio->numbers, row->measured_ratio);
    }
}

void validate_intervals(struct validate_table *table, const struct discrepancy *filed)
{
    set_needs(table);
    validate_widen(table, filed);
}

void validate_widen(struct validate_table *table, const struct discrepancy *filed)
{
    for (int c = 0; c < DISCREPANCY_CLASSES; c++) {
        enum discrepancy_class which = (enum discrepancy_class)c;
        struct lessons lessons = lessons_of(table, which);
        qsort(lessons.list, (size_t)lessons.n, sizeof *lessons.list, by_need);
        for (int i = 0; i < table->rows.n; i++) {
            struct validate_interval *interval = interval_of(&table->rows.at[i], which);
            if (!applies(&table->rows.at[i], which))
                continue;
            interval->discrepancy = learned(&lessons, unit_of(table, i, which), filed->of[c].value, table->rows.n) *
                                    interval->doublings_root;
            interval->all = scenario_widen(interval->numbers, interval->discrepancy);
            interval->covers = interval->need <= interval->discrepancy;
        }
        free(lessons.list);
    }
}
