#include "validate/regime.h"

#include "validate/interval.h"
#include "validate/lessons.h"

#include <float.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WANTED = 0.9; /* of the runs of a new source inside: the definition of a 90 % interval */

static const char *products(const char *precision)
{
    bool full = strcmp(precision, "fp32") == 0 || strcmp(precision, "tf32") == 0;
    bool fp8 = strncmp(precision, "fp8", strlen("fp8")) == 0, fp4 = strncmp(precision, "fp4", strlen("fp4")) == 0;
    return fp8 ? "FP8" : fp4 ? "FP4" : full ? "32 bit" : "16 bit";
}

static const char *const shared_axes[] = {"TP", "CP", "PP"};
enum { SHARED_AXES = sizeof shared_axes / sizeof *shared_axes };

/* A bit an axis. */
static unsigned axes_of(const char *layout)
{
    unsigned axes = 0;
    for (unsigned i = 0; i < SHARED_AXES; i++)
        axes |= strstr(layout, shared_axes[i]) ? 1U << i : 0;
    return axes;
}

static bool is_alone(const struct nearest_job *job)
{
    return strcmp(job->layout, "one GPU") == 0;
}

enum regime_rung regime_rung_of(const struct nearest_job *a, const struct nearest_job *b)
{
    unsigned axes_a = axes_of(a->layout), axes_b = axes_of(b->layout);
    if (strcmp(a->arch, b->arch) != 0)
        return REGIME_ALL;
    if (strcmp(products(a->precision), products(b->precision)) != 0)
        return REGIME_GENERATION;
    if (a->experts != b->experts || !axes_a != !axes_b)
        return REGIME_PRECISION;
    return axes_a == axes_b && is_alone(a) == is_alone(b) ? REGIME_ALIKE : REGIME_SHARED;
}

int regime_digits(double low, double high, int most)
{
    double half = fabs(high - low) / 2;
    return half > 0 ? (int)fmin(most, -floor(log10(half / 20))) : most;
}

const char *regime_name(struct arena *arena, const struct nearest_job *job, enum regime_rung rung)
{
    unsigned axes = axes_of(job->layout);
    const char *shared = axes ? "" : "data parallelism";
    for (unsigned i = 0; i < SHARED_AXES; i++)
        if (axes & 1U << i)
            shared = arena_printf(arena, "%s%s%s", shared, *shared ? "+" : "", shared_axes[i]);
    const char *experts = job->experts ? ", experts" : "";
    switch (rung) {
    case REGIME_ALIKE:
        return arena_printf(
            arena, "%s, %s, %s%s", job->arch, products(job->precision), is_alone(job) ? job->layout : shared, experts);
    case REGIME_SHARED:
        return arena_printf(arena, "%s, %s, %s%s", job->arch, products(job->precision),
            axes ? "ranks that share a model" : "one GPU or data parallelism", experts);
    case REGIME_PRECISION:
        return arena_printf(arena, "%s, %s", job->arch, products(job->precision));
    case REGIME_GENERATION:
        return job->arch;
    case REGIME_ALL:
    case REGIME_RUNGS:
        break;
    }
    return "all runs";
}

/* ---- which runs count ---- */

struct found {
    struct lesson lesson;
    double error; /* |predicted / measured - 1| */
    enum regime_rung rung;
    bool of_gpu; /* the job's */
};

static double ratio_of(const struct validate_row *row, enum regime_of of)
{
    return of == REGIME_OF_SPEED ? row->error + 1 : row->predicted_peak_bytes / row->measured_peak_bytes;
}

static bool counts(const struct validate_row *row, int r, enum regime_of of)
{
    bool known = of == REGIME_OF_SPEED ? row->has_error : row->measured_peak_bytes > 0 && row->predicted_peak_bytes > 0;
    return known && row->same == r && !*row->used_in_fit;
}

static int source_named(const struct nearest_runs *runs, const char *name)
{
    int r = 0;
    while (name && r < runs->table.rows.n && strcmp(runs->table.rows.at[r].source, name) != 0)
        r++;
    return name && r < runs->table.rows.n ? runs->sources[r] : -1;
}

static double scale_of(const struct nearest_runs *runs, enum regime_of of, double waiting)
{
    return of == REGIME_OF_SPEED && runs->waiting > 0 ? discrepancy_scale(runs->waiting, waiting) : 1;
}

static int find(struct found *found, const struct nearest_runs *runs, const struct nearest_job *job, enum regime_of of,
    const char *except)
{
    const struct validate_row *rows = runs->table.rows.at;
    enum regime_rung *rungs = xcalloc((size_t)runs->table.rows.n + 1, sizeof *rungs);
    int n = 0, left_out = source_named(runs, except);
    for (int r = 0; r < runs->table.rows.n; r++) {
        rungs[r] = runs->regimes[r] == r ? regime_rung_of(job, &runs->jobs[r]) : rungs[runs->regimes[r]];
        if (counts(&rows[r], r, of) && runs->sources[r] != left_out)
            found[n++] = (struct found){
                .lesson = {.need = -log(ratio_of(&rows[r], of)) / scale_of(runs, of, rows[r].waiting_share),
                    .family = runs->families[r],
                    .source = runs->sources[r]},
                .error = fabs(ratio_of(&rows[r], of) - 1),
                .rung = rungs[r],
                .of_gpu = strcmp(runs->jobs[r].gpu, job->gpu) == 0};
    }
    free(rungs);
    return n;
}

/* ---- weights ---- */

/* Rows of a family, families of a source, on one rung, by their numbers. */
struct census {
    int *rows, *families;
    size_t numbers;
};

static void census_rung(struct census *census, struct regime *out, const struct found *found, int n, int rung)
{
    memset(census->rows, 0, census->numbers * sizeof *census->rows);
    memset(census->families, 0, census->numbers * sizeof *census->families);
    for (int i = 0; i < n; i++) {
        if (found[i].rung != (enum regime_rung)rung)
            continue;
        out->runs[rung]++;
        if (census->rows[found[i].lesson.family]++ > 0)
            continue;
        out->families[rung]++;
        out->sources[rung] += census->families[found[i].lesson.source]++ == 0;
    }
}

/* What a rung weighs is what those before it lack. */
static void weigh(struct regime *out, struct found *found, int n, size_t numbers)
{
    struct census census = {
        .rows = xcalloc(numbers, sizeof(int)), .families = xcalloc(numbers, sizeof(int)), .numbers = numbers};
    double sum = 0;
    for (int rung = 0; rung < REGIME_RUNGS; rung++) {
        census_rung(&census, out, found, n, rung);
        double lacking = fmax(0, VALIDATE_LEAST_UNITS - sum);
        double weight = rung == REGIME_ALIKE ? out->families[rung] : fmin(out->families[rung], lacking);
        for (int i = 0; i < n; i++) {
            struct lesson *lesson = &found[i].lesson;
            if (found[i].rung == (enum regime_rung)rung)
                lesson->weight =
                    weight / out->sources[rung] / census.families[lesson->source] / census.rows[lesson->family];
        }
        sum += weight;
    }
    free(census.rows);
    free(census.families);
}

/* ---- what they say ---- */

static void summarise(struct regime *out, const struct found *found, int n)
{
    double *errors = xcalloc((size_t)n + 1, sizeof *errors);
    size_t count = 0;
    while (out->runs[out->first] == 0)
        out->first++;
    for (int i = 0; i < n; i++)
        if (found[i].rung == out->first) {
            errors[count++] = found[i].error;
            out->of_gpu += found[i].of_gpu;
        }
    gsl_sort(errors, 1, count);
    out->median = gsl_stats_median_from_sorted_data(errors, 1, count);
    out->p90 = gsl_stats_quantile_from_sorted_data(errors, 1, count, 0.9);
    free(errors);
}

/* The sides of the interval by found runs, of a job that never waits, in the logarithm. */
static struct validate_sides sides_of(const struct found *found, int n)
{
    struct lessons lessons = {.list = xcalloc((size_t)n, sizeof *lessons.list), .n = n};
    for (int i = 0; i < n; i++)
        lessons.list[i] = found[i].lesson;
    lessons_sort(&lessons);
    struct validate_sides sides = lessons_sides(&lessons);
    free(lessons.list);
    return sides;
}

struct regime regime_waiting(const struct regime *regime, const struct nearest_runs *runs, double waiting)
{
    struct regime out = *regime;
    double scale = fmax(1, runs->new_source[out.of][out.poor]) * scale_of(runs, out.of, waiting);
    out.waiting = out.of == REGIME_OF_SPEED ? waiting : 0;
    out.factors = (struct validate_sides){exp(-scale * out.sides.low), exp(scale * out.sides.high)};
    return out;
}

void regime_find(struct regime *out, const struct nearest_runs *runs, const struct nearest_job *job, enum regime_of of,
    double waiting, const char *except)
{
    struct found *found = xcalloc((size_t)runs->table.rows.n + 1, sizeof *found);
    int n = find(found, runs, job, of, except);
    *out = (struct regime){.known = n > 0, .of = of};
    if (n > 0) {
        weigh(out, found, n, (size_t)runs->table.rows.n);
        summarise(out, found, n);
        out->sides = sides_of(found, n);
        out->poor = out->families[REGIME_ALIKE] < VALIDATE_LEAST_UNITS;
        *out = regime_waiting(out, runs, waiting);
    }
    free(found);
}

/* ---- a source that is new ---- */

/* A row whose regime was asked for without its source, and how many rows there are of that source. */
struct asked {
    int row, first, rows; /* first: of the same source; it counts them */
    struct regime regime;
};

/* The regime of the row without its source; rows of one source in one regime have it alike. */
static int without_source(struct asked *asked, int *n, const struct nearest_runs *runs, int r, enum regime_of of)
{
    int first = *n, same = *n;
    for (int i = *n - 1; i >= 0; i--)
        if (runs->sources[asked[i].row] == runs->sources[r]) {
            first = asked[i].first;
            same = runs->regimes[asked[i].row] == runs->regimes[r] ? i : same;
        }
    if (same == *n) {
        asked[*n] = (struct asked){.row = r, .first = first};
        regime_find(&asked[(*n)++].regime, runs, &runs->jobs[r], of, 0, runs->table.rows.at[r].source);
    }
    asked[first].rows++;
    return same;
}

/* How many times as wide the interval would just hold the row. */
static double times_of(const struct nearest_runs *runs, int r, const struct regime *regime)
{
    const struct validate_row *row = &runs->table.rows.at[r];
    double need = -log(ratio_of(row, regime->of)) / scale_of(runs, regime->of, row->waiting_share);
    return fabs(need) / fmax(need < 0 ? regime->sides.low : regime->sides.high, DBL_EPSILON);
}

/* Of all rows of regimes that are known, or poorly. place: of a row in asked, or -1. */
static double new_source(const struct nearest_runs *runs, const struct asked *asked, const int *place, bool poor)
{
    struct lessons lessons = {.list = xcalloc((size_t)runs->table.rows.n + 1, sizeof *lessons.list)};
    for (int r = 0; r < runs->table.rows.n; r++) {
        const struct asked *of = &asked[place[r]];
        if (place[r] >= 0 && of->regime.known && of->regime.poor == poor)
            lessons.list[lessons.n++] =
                (struct lesson){.need = times_of(runs, r, &of->regime), .weight = 1.0 / asked[of->first].rows};
    }
    lessons_sort(&lessons);
    double enough = lessons_enough(&lessons, WANTED, false);
    free(lessons.list);
    return enough;
}

void regime_leave_out(struct nearest_runs *runs)
{
    const struct validate_row *rows = runs->table.rows.at;
    size_t room = (size_t)runs->table.rows.n + 1;
    struct asked *asked = xcalloc(room, sizeof *asked);
    int *place = xcalloc(room, sizeof *place);
    for (int of = 0; of < REGIME_OFS; of++) {
        int n = 0;
        for (int r = 0; r < runs->table.rows.n; r++)
            place[r] =
                counts(&rows[r], r, (enum regime_of)of) ? without_source(asked, &n, runs, r, (enum regime_of)of) : -1;
        for (int poor = 0; poor < 2; poor++)
            runs->new_source[of][poor] = new_source(runs, asked, place, poor);
    }
    free(place);
    free(asked);
}

/* ---- in words ---- */

static const double PERCENT = 100, LEAST_WAITING = 0.05; /* less says nothing in two digits */

const char *regime_text(struct arena *arena, const struct regime *regime, const struct nearest_job *job)
{
    static const char *const whats[] = {[REGIME_OF_SPEED] = "speeds", [REGIME_OF_PEAK] = "peaks of memory"};
    if (!regime->known)
        return "not known; results/validated.csv is not at hand";
    enum regime_rung first = regime->first;
    const char *runs = arena_printf(arena, "%d run%s of %d source%s, median error %.2g %%, 9 of 10 within %.2g %%",
        regime->runs[first], plural(regime->runs[first]), regime->sources[first], plural(regime->sources[first]),
        PERCENT * regime->median, PERCENT * regime->p90);
    const char *name = regime_name(arena, job, REGIME_ALIKE);
    const char *basis =
        first > REGIME_ALIKE
            ? arena_printf(arena, "poorly known: no run of this regime (%s) was measured; the nearest (%s): %s", name,
                  regime_name(arena, job, first), runs)
            : arena_printf(arena, "%s, by left-out runs of this regime (%s): %s",
                  regime->poor ? "poorly known" : "known", name, runs);
    const char *waits = regime->waiting >= LEAST_WAITING
                            ? arena_printf(arena, " where %.0f %% of the step waits", PERCENT * regime->waiting)
                            : "";
    const char *own = regime->of_gpu > 0 ? "" : arena_printf(arena, ", none of them on %s", job->gpu);
    return arena_printf(arena, "90 %% of measured %s are %+.0f to %+.0f %% off what is predicted%s; %s%s%s",
        whats[regime->of], PERCENT * (regime->factors.low - 1), PERCENT * (regime->factors.high - 1), waits, basis, own,
        regime->poor ? "; the interval rests on runs that are not alike, too" : "");
}
