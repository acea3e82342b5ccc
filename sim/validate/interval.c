#include "validate/interval.h"

#include "base/rng.h"
#include "validate/lessons.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WANTED = 0.9; /* of the rows inside their intervals: the definition of a 90 % interval */

static int family_of(const struct validate_table *table, int row, enum discrepancy_class which)
{
    const struct validate_row *rows = table->rows.at;
    for (int i = 0; i < row; i++)
        if (which == DISCREPANCY_PER_DOUBLING ? rows[i].curve == rows[row].curve
                                              : lessons_same_family(&rows[i], &rows[row]))
            return i;
    return row;
}

static int source_of(const struct validate_table *table, int row)
{
    for (int i = 0; i < row; i++)
        if (lessons_same_source(table->rows.at[i].source, table->rows.at[row].source))
            return i;
    return row;
}

/* Whether the row has an interval of this class; DISCREPANCY_CLASSES: any of speed. */
static bool applies(const struct validate_row *row, enum discrepancy_class which)
{
    if (which == DISCREPANCY_PER_DOUBLING)
        return row->ratio_interval.known;
    return row->interval.known && (which == DISCREPANCY_CLASSES || row->leaves_out == which);
}

static struct validate_interval *interval_of(struct validate_row *row, enum discrepancy_class which)
{
    return which == DISCREPANCY_PER_DOUBLING ? &row->ratio_interval : &row->interval;
}

/* Sorted by need, without weights. */
static struct lessons lessons_of(const struct validate_table *table, enum discrepancy_class which)
{
    struct lessons lessons = {.list = xcalloc((size_t)table->rows.n + 1, sizeof *lessons.list)};
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        const struct validate_interval *interval = interval_of(row, which);
        if (applies(row, which) && !*row->used_in_fit)
            lessons.list[lessons.n++] = (struct lesson){.need = interval->need / interval->scale,
                .family = family_of(table, i, which),
                .source = source_of(table, i),
                .waiting = row->waiting_share,
                .scale = interval->scale};
    }
    lessons_sort(&lessons);
    return lessons;
}

/* How many rows a family has, and families a source, by the number of the row that stands for it; how many sources. */
struct census {
    int *rows, *families, sources, all_families;
};

static struct census census_of(const struct lessons *lessons, int n_rows)
{
    struct census census = {
        .rows = xcalloc((size_t)n_rows + 1, sizeof(int)), .families = xcalloc((size_t)n_rows + 1, sizeof(int))};
    for (int i = 0; i < lessons->n; i++)
        if (census.rows[lessons->list[i].family]++ == 0) {
            census.all_families++;
            census.sources += census.families[lessons->list[i].source]++ == 0;
        }
    return census;
}

static void free_census(struct census *census)
{
    free(census->rows);
    free(census->families);
}

/* The estimate by all lessons, every source the same, and its standard error, of sources drawn with replacement. */
static struct validate_discrepancy estimate(
    struct lessons *lessons, int n_rows, double (*of)(const struct lessons *), uint64_t stream_id)
{
    int n_sources = 0;
    struct census census = census_of(lessons, n_rows);
    int *sources = xcalloc((size_t)n_rows + 1, sizeof *sources), *times = xcalloc((size_t)n_rows + 1, sizeof *times);
    struct validate_discrepancy out = {.rows = lessons->n, .families = census.all_families, .sources = census.sources};
    for (int i = 0; i < n_rows; i++)
        if (census.families[i] > 0)
            sources[n_sources++] = i;
    double again[VALIDATE_RESAMPLES];
    struct rng_stream stream = rng_stream(0, 0, stream_id);
    for (int b = -1; b < VALIDATE_RESAMPLES; b++) { /* -1: each source once */
        for (int i = 0; i < n_rows; i++)
            times[i] = b < 0;
        for (int s = 0; s < n_sources && b >= 0; s++)
            times[sources[(int)(rng_uniform(&stream) * n_sources)]]++;
        for (int i = 0; i < lessons->n; i++) {
            struct lesson *lesson = &lessons->list[i];
            lesson->weight =
                (double)times[lesson->source] / census.families[lesson->source] / census.rows[lesson->family];
        }
        *(b < 0 ? &out.value : &again[b]) = of(lessons);
    }
    out.std_error = gsl_stats_sd(again, 1, VALIDATE_RESAMPLES);
    free_census(&census);
    free(sources);
    free(times);
    free(lessons->list);
    return out;
}

static double enough(const struct lessons *lessons)
{
    return lessons_enough(lessons, WANTED, false);
}

struct validate_discrepancy validate_discrepancy(const struct validate_table *table, enum discrepancy_class which)
{
    struct lessons lessons = lessons_of(table, which);
    for (int i = 0; i < lessons.n; i++)
        lessons.list[i].need = fabs(lessons.list[i].need);
    lessons_sort(&lessons);
    return estimate(&lessons, table->rows.n, enough, (uint64_t)which);
}

/* - log likelihood, the best width of the errors put in: of needs that are Laplace-distributed, so that few that are
 * far off decide little. */
static double unlikelihood(const struct lessons *lessons, double waiting)
{
    double weight = 0, sum = 0, logs = 0;
    for (int i = 0; i < lessons->n; i++) {
        const struct lesson *lesson = &lessons->list[i];
        double scale = discrepancy_scale(waiting, lesson->waiting);
        weight += lesson->weight;
        sum += lesson->weight * fabs(lesson->need) / scale;
        logs += lesson->weight * log(scale);
    }
    return log(sum / weight) + logs / weight;
}

static double likeliest(const struct lessons *lessons)
{
    enum { STEPS = 200 };
    static const double STEP = 0.1; /* an eighth of the standard error and less */
    double best = 1, least = unlikelihood(lessons, best);
    for (int i = 1; i <= STEPS; i++) {
        double waiting = 1 + STEP * i, is = unlikelihood(lessons, waiting);
        best = is < least ? waiting : best;
        least = fmin(is, least);
    }
    return best;
}

struct validate_discrepancy validate_waiting(const struct validate_table *table)
{
    struct lessons lessons = lessons_of(table, DISCREPANCY_CLASSES);
    for (int i = 0; i < lessons.n; i++)
        lessons.list[i].need *= lessons.list[i].scale;
    return estimate(&lessons, table->rows.n, likeliest, DISCREPANCY_CLASSES);
}

/* What the others teach about a row of this family and source. known: its source's other families count. */
static struct validate_sides learned(
    struct lessons *lessons, const struct census *census, int family, int source, bool known, double filed)
{
    int own = census->families[source] - (census->rows[family] > 0); /* other families of the source */
    int others = census->all_families - census->families[source];
    int sources = census->sources - (census->families[source] > 0);
    if ((known ? own : 0) + others < VALIDATE_LEAST_UNITS)
        return (struct validate_sides){filed, filed};
    /* Those of other sources are as much as this many of the own ones. */
    double all_others = known ? fmin(others, fmax(0, VALIDATE_LEAST_UNITS - own)) : 1;
    for (int i = 0; i < lessons->n; i++) {
        struct lesson *lesson = &lessons->list[i];
        bool is_own = lesson->source == source;
        double of_source = is_own ? (known && lesson->family != family ? 1.0 : 0)
                                  : all_others / sources / census->families[lesson->source];
        lesson->weight = of_source / census->rows[lesson->family];
    }
    return lessons_sides(lessons);
}

static struct scenario_result sampled(const struct validate_row *row)
{
    return (struct scenario_result){.samples = row->samples, .n_samples = row->n_samples};
}

/* Of a measurement outside of a band how much more that would need: below 0 on the side of slower ones. */
static double need_of(struct scenario_band band, double measured)
{
    double need = scenario_widening(band, measured);
    return measured < band.median ? -need : need;
}

/* A run without samples has the prediction as its band: all of its error is left out. */
static void set_interval(
    struct validate_interval *interval, struct scenario_band band, double predicted, double measured, double scale)
{
    if (band.n == 0)
        band = (struct scenario_band){1, predicted, predicted, predicted};
    band.median = sqrt(band.low * band.high); /* so that its two ends, which are kept (stored.h), say all */
    *interval =
        (struct validate_interval){.known = true, .numbers = band, .need = need_of(band, measured), .scale = scale};
}

static double root_of_doublings(const struct validate_table *table, int i)
{
    return sqrt(log2((double)table->rows.at[i].gpus / (double)table->rows.at[table->rows.at[i].smallest].gpus));
}

/* The row has a ratio to a smaller cluster. */
static bool is_scaled(const struct validate_table *table, int i)
{
    const struct validate_row *row = &table->rows.at[i];
    return row->has_error && row->has_ratio && row->smallest != i && row->gpus > table->rows.at[row->smallest].gpus;
}

/* A row's intervals by errors of numbers, of its speed and of its ratio, and what they need. */
static void complete(struct validate_table *table, int i, const struct discrepancy *filed)
{
    struct validate_row *row = &table->rows.at[i];
    if (row->has_error)
        set_interval(&row->interval, row->interval.numbers, row->predicted.tokens_per_s_per_gpu,
            row->measured.tokens_per_s_per_gpu, discrepancy_scale(filed->waiting.value, row->waiting_share));
    if (is_scaled(table, i))
        set_interval(&row->ratio_interval, row->ratio_interval.numbers, row->predicted_ratio, row->measured_ratio,
            root_of_doublings(table, i));
}

void validate_intervals(struct validate_table *table, const struct discrepancy *filed)
{
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        struct scenario_result result = sampled(row), from = sampled(&table->rows.at[row->smallest]);
        row->interval = row->ratio_interval = (struct validate_interval){.scale = 1};
        row->interval.numbers = scenario_band(&result, SAMPLED_TOKENS);
        if (is_scaled(table, i))
            row->ratio_interval.numbers = scenario_ratio_band(&from, &result);
    }
    validate_widen(table, filed);
}

static bool is_enough(const struct validate_interval *interval, struct validate_sides sides)
{
    return interval->need >= -sides.low && interval->need <= sides.high;
}

static void widen(struct validate_interval *interval, struct lessons *lessons, const struct census *census, int family,
    int source, double filed)
{
    double scale = interval->scale;
    struct validate_sides own = learned(lessons, census, family, source, true, filed);
    struct validate_sides as_new = learned(lessons, census, family, source, false, filed);
    interval->discrepancy = (struct validate_sides){own.low * scale, own.high * scale};
    interval->all = scenario_widen(interval->numbers, interval->discrepancy.high);
    interval->all.low = scenario_widen(interval->numbers, interval->discrepancy.low).low;
    interval->covers = is_enough(interval, interval->discrepancy);
    interval->covers_as_new = is_enough(interval, (struct validate_sides){as_new.low * scale, as_new.high * scale});
}

void validate_widen(struct validate_table *table, const struct discrepancy *filed)
{
    for (int i = 0; i < table->rows.n; i++)
        complete(table, i, filed);
    for (int c = 0; c < DISCREPANCY_CLASSES; c++) {
        enum discrepancy_class which = (enum discrepancy_class)c;
        struct lessons lessons = lessons_of(table, which);
        struct census census = census_of(&lessons, table->rows.n);
        for (int i = 0; i < table->rows.n; i++)
            if (applies(&table->rows.at[i], which))
                widen(interval_of(&table->rows.at[i], which), &lessons, &census, family_of(table, i, which),
                    source_of(table, i), filed->of[c].value);
        free_census(&census);
        free(lessons.list);
    }
}
