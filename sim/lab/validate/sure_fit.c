/* The intervals of predictions, by published runs: how far measurements lie from predictions, a
 * side at a time. A row is its logarithm and its terms; a fit gets a list of weights, 0 for rows
 * that are left out, and every maker weighs the same. Each side has a scale exp(b0 + sum of b x
 * terms), found by minimising the smoothed loss of a quantile (pinball) with BFGS: beyond it lies
 * half of what an interval leaves out. Errors are clipped at CLIP, and a small ridge keeps terms
 * finite. Then both sides are widened to cover the wanted share of the weight. Ratios and peaks are
 * plain weighted quantiles.
 *
 * sure_leave_out() repeats the fit without each maker and scores the intervals on that one:
 * coverage, width, Winkler's score. What is subtle: the same row counts once however many tables
 * have it, and what is left out is a maker, never a row. For a generation of GPUs without runs the
 * factors new_slower and new_faster are the worst of what leaving out a known generation needs. */
#include "validate/sure_fit.h"

#include "base/file_write.h"
#include "base/files.h"
#include "validate/sure_kin.h"

#include <gsl/gsl_multimin.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WANTED = SURE_WANTED;
static const double CLIP = 1, SMOOTH = 0.01, RIDGE = 1e-4, FIRST_SCALE = 0.18, PENALTY = 20;
enum { GENERATION_LEAST = 3, MOST_STEPS = 200 };

/* ---- rows ---- */

static int maker_of(const struct validate_table *table, int row)
{
    int first = 0;
    while (first < row &&
           !validate_same_maker(table->rows.at[first].source, table->rows.at[row].source))
        first++;
    return first;
}

/* The generation of the GPU of a name; "": there is no such file. Each is read once. */
struct sure_arch {
    const char *gpu, *arch;
};
struct sure_archs {
    VEC(struct sure_arch) list;
};
static const char *sure_fit_arch_of(struct sure_archs *archs, const char *gpu, struct arena *arena)
{
    for (int i = 0; i < archs->list.n; i++)
        if (strcmp(archs->list.at[i].gpu, gpu) == 0)
            return archs->list.at[i].arch;
    struct hw_gpu read;
    struct diag unread = DIAG_INIT;
    bool good = hw_load_gpu(&read, files_find(arena, FILES_GPUS, gpu), arena, &unread) == STATUS_OK;
    vec_push(&archs->list, (struct sure_arch){gpu, good ? read.arch : ""});
    return good ? read.arch : "";
}

static bool has_speed(const struct validate_row *row, int r)
{
    return row->has_error && row->same == r && !*row->used_in_fit;
}

static struct sure_rows speeds_of(const struct validate_table *table, struct arena *arena)
{
    struct sure_rows rows = {.list = ARENA_ARRAY(arena, struct sure_row, table->rows.n + 1)};
    struct sure_archs archs = {0};
    for (int r = 0; r < table->rows.n; r++) {
        const struct validate_row *row = &table->rows.at[r];
        if (!has_speed(row, r))
            continue;
        const char *arch = sure_fit_arch_of(&archs, row->gpu, arena);
        const char *precision =
            row->csv ? csv_cell(row->csv, row->csv_row, csv_column(row->csv, "precision")) : "";
        double nodes = row->node_gpus > 0 ? (double)row->gpus / (double)row->node_gpus : 1;
        rows.list[rows.n++] = (struct sure_row){.error = -log(1 + row->error),
            .terms =
                sure_terms(row->mfu, precision, nodes, arch, strstr(row->layout, "TP") != NULL),
            .arch = arch,
            .maker = maker_of(table, r),
            .at = r};
    }
    vec_free(&archs.list);
    return rows;
}

/* shared: of jobs whose ranks share a model, or of the others. */
static struct sure_rows ratios_of(
    const struct validate_table *table, bool shared, struct arena *arena)
{
    struct sure_rows rows = {.list = ARENA_ARRAY(arena, struct sure_row, table->rows.n + 1)};
    for (int r = 0; r < table->rows.n; r++) {
        const struct validate_row *row = &table->rows.at[r];
        bool shares = strstr(row->layout, "TP") || strstr(row->layout, "CP") ||
                      strstr(row->layout, "EP") || strstr(row->layout, "PP");
        if (shares != shared || !row->has_ratio || row->smallest == r || row->same != r ||
            *row->used_in_fit || row->measured_ratio <= 0 || row->predicted_ratio <= 0)
            continue;
        double doublings =
            fabs(log2((double)row->gpus / (double)table->rows.at[row->smallest].gpus));
        if (doublings > 0)
            rows.list[rows.n++] = (struct sure_row){
                .error = log(row->measured_ratio / row->predicted_ratio) / sqrt(doublings),
                .maker = maker_of(table, r),
                .at = r};
    }
    return rows;
}

static struct sure_rows peaks_of(const struct validate_table *table, struct arena *arena)
{
    struct sure_rows rows = {.list = ARENA_ARRAY(arena, struct sure_row, table->rows.n + 1)};
    for (int r = 0; r < table->rows.n; r++) {
        const struct validate_row *row = &table->rows.at[r];
        if (row->measured_peak_bytes > 0 && row->predicted_peak_bytes > 0 && row->same == r &&
            !*row->used_in_fit)
            rows.list[rows.n++] = (struct sure_row){
                .error = log(row->measured_peak_bytes / row->predicted_peak_bytes),
                .maker = maker_of(table, r),
                .at = r};
    }
    return rows;
}

/* ---- weights and quantiles ---- */

/* Every maker the same, and in it every row; 0 of the maker that is left out (-1: none), and of
 * rows on other generations than arch (of_arch), or on it (not); NULL: all. Returns how many makers
 * there are. */
static int sure_fit_weigh(double *weights, const struct sure_rows *rows, int left_out,
    const char *arch, bool of_arch, int n_table)
{
    int *count = xcalloc((size_t)n_table + 1, sizeof *count), makers = 0;
    for (int i = 0; i < rows->n; i++) {
        const struct sure_row *row = &rows->list[i];
        bool in = row->maker != left_out && (!arch || (strcmp(row->arch, arch) == 0) == of_arch);
        weights[i] = in;
        makers += in && count[row->maker] == 0;
        count[row->maker] += in;
    }
    for (int i = 0; i < rows->n; i++)
        weights[i] = weights[i] > 0 ? 1.0 / makers / count[rows->list[i].maker] : 0;
    free(count);
    return makers;
}

double sure_quantile(const double *values, const double *weights, int n, double share)
{
    size_t *order = xcalloc((size_t)n + 1, sizeof *order);
    gsl_sort_index(order, values, 1, (size_t)n);
    double total = 0, sum = 0, found = 0;
    for (int i = 0; i < n; i++)
        total += weights[i];
    for (int i = 0; i < n; i++) {
        if (weights[order[i]] <= 0)
            continue;
        found = values[order[i]];
        sum += weights[order[i]];
        if (sum >= share * total)
            break;
    }
    free(order);
    return found;
}

/* ---- the scale of a side ---- */

struct side {
    const struct sure_rows *rows;
    const double *weights;
    double sign;  /* -1: slower */
    int first, n; /* of its terms */
};

static double logit_of(const struct side *side, const struct sure_row *row, const double *b)
{
    double sum = b[0];
    for (int t = 0; t < side->n; t++)
        sum += b[1 + t] * row->terms.of[side->first + t];
    return sum;
}

/* The smooth maximum of 0 and the excess, SMOOTH log(1 + exp(excess / SMOOTH)), is written so
 * that exp() cannot overflow. */
static void sure_fit_loss_of(const gsl_vector *at, void *self, double *loss, gsl_vector *slope)
{
    const struct side *side = self;
    const double beyond = (1 - WANTED) / 2;
    *loss = 0;
    if (slope)
        gsl_vector_set_zero(slope);
    for (int i = 0; i < side->rows->n; i++) {
        const struct sure_row *row = &side->rows->list[i];
        if (side->weights[i] <= 0)
            continue;
        double scale = exp(fmin(logit_of(side, row, at->data), 5));
        double excess = fmin(fmax(side->sign * row->error, -CLIP), CLIP) - scale,
               x = excess / SMOOTH;
        *loss +=
            side->weights[i] * (SMOOTH * (fmax(x, 0) + log1p(exp(-fabs(x)))) - beyond * excess);
        double d = -side->weights[i] * (1 / (1 + exp(-x)) - beyond) * scale;
        for (int t = 0; slope && t <= side->n; t++)
            *gsl_vector_ptr(slope, (size_t)t) +=
                d * (t == 0 ? 1 : row->terms.of[side->first + t - 1]);
    }
    for (int t = 1; t <= side->n; t++) {
        double b = gsl_vector_get(at, (size_t)t);
        *loss += RIDGE * b * b;
        if (slope)
            *gsl_vector_ptr(slope, (size_t)t) += 2 * RIDGE * b;
    }
}

static double loss_alone(const gsl_vector *at, void *self)
{
    double loss;
    sure_fit_loss_of(at, self, &loss, NULL);
    return loss;
}

static void slope_alone(const gsl_vector *at, void *self, gsl_vector *slope)
{
    double loss;
    sure_fit_loss_of(at, self, &loss, slope);
}

/* b[0], then a coefficient a term. */
static void fit_side(double *b, struct side *side)
{
    size_t n = (size_t)side->n + 1;
    gsl_vector *start = gsl_vector_calloc(n);
    gsl_vector_set(start, 0, log(FIRST_SCALE));
    gsl_multimin_function_fdf what = {loss_alone, slope_alone, sure_fit_loss_of, n, side};
    gsl_multimin_fdfminimizer *search =
        gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, n);
    gsl_multimin_fdfminimizer_set(search, &what, start, 0.1, 0.1);
    for (int i = 0; i < MOST_STEPS && gsl_multimin_fdfminimizer_iterate(search) == 0 &&
                    gsl_multimin_test_gradient(search->gradient, 1e-7) != 0;
         i++)
        ;
    for (size_t t = 0; t < n; t++)
        b[t] = gsl_vector_get(search->x, t);
    gsl_multimin_fdfminimizer_free(search);
    gsl_vector_free(start);
}

/* How many times a side of these numbers must be wider to hold `share` of the weight. */
static double times_wider(const struct sure_numbers *numbers, const struct sure_rows *rows,
    const double *weights, bool faster, double share)
{
    double *needs = xcalloc((size_t)rows->n + 1, sizeof *needs);
    for (int i = 0; i < rows->n; i++) {
        struct sure_range range = sure_speed(numbers, &rows->list[i].terms, true);
        needs[i] = rows->list[i].error / (faster ? log(range.high) : log(range.low));
    }
    double wider = sure_quantile(needs, weights, rows->n, share);
    free(needs);
    return fmax(wider, 0);
}

/* Slower, faster and their coefficients, of rows with a weight. terms: false for one constant. */
static struct sure_numbers sure_fit_fit(
    const struct sure_rows *rows, const double *weights, int makers, bool terms)
{
    struct sure_numbers out = {.new_slower = 1, .new_faster = 1};
    for (int faster = 0; faster <= 1; faster++) {
        struct side side = {.rows = rows,
            .weights = weights,
            .sign = faster ? 1 : -1,
            .first = faster ? SURE_SLOWER_TERMS : 0,
            .n = terms ? (faster ? SURE_TERMS - SURE_SLOWER_TERMS : SURE_SLOWER_TERMS) : 0};
        double b[SURE_TERMS + 1] = {0};
        fit_side(b, &side);
        *(faster ? &out.faster : &out.slower) = exp(b[0]);
        memcpy(out.of + side.first, b + 1, (size_t)side.n * sizeof *b);
    }
    double share = 1 - (1 - sure_within(makers)) / 2;
    double wider[2];
    for (int faster = 0; faster <= 1; faster++)
        wider[faster] = times_wider(&out, rows, weights, faster, share);
    out.slower *= wider[0];
    out.faster *= wider[1];
    return out;
}

/* ---- what is left out ---- */

static void widen_new(struct sure_numbers *out, const struct sure_rows *rows, int n_table)
{
    double *weights = xcalloc((size_t)rows->n + 1, sizeof *weights);
    for (int i = 0; i < out->n_generations; i++) {
        const struct sure_evidence *generation = &out->generations[i];
        if (generation->makers < GENERATION_LEAST)
            continue;
        int others = sure_fit_weigh(weights, rows, -1, generation->generation, false, n_table);
        struct sure_numbers without = sure_fit_fit(rows, weights, others, true);
        sure_fit_weigh(weights, rows, -1, generation->generation, true, n_table);
        double share = 1 - (1 - WANTED) / 2;
        out->new_slower = fmax(out->new_slower, times_wider(&without, rows, weights, false, share));
        out->new_faster = fmax(out->new_faster, times_wider(&without, rows, weights, true, share));
    }
    free(weights);
}

static void set_generations(
    struct sure_numbers *out, const struct sure_rows *rows, int n_table, struct arena *arena)
{
    double *errors = xcalloc((size_t)rows->n + 1, sizeof *errors),
           *weights = xcalloc((size_t)rows->n + 1, sizeof *weights);
    out->generations = ARENA_ARRAY(arena, struct sure_evidence, HW_ARCHS + 1);
    for (int a = 0; a < HW_ARCHS; a++) {
        size_t n = 0;
        for (int i = 0; i < rows->n; i++)
            if (strcmp(rows->list[i].arch, hw_archs[a]) == 0)
                errors[n++] = fabs(exp(-rows->list[i].error) - 1);
        if (n == 0)
            continue;
        gsl_sort(errors, 1, n);
        out->generations[out->n_generations++] = (struct sure_evidence){.generation = hw_archs[a],
            .runs = (int64_t)n,
            .makers = sure_fit_weigh(weights, rows, -1, hw_archs[a], true, n_table),
            .median = gsl_stats_median_from_sorted_data(errors, 1, n),
            .p90 = gsl_stats_quantile_from_sorted_data(errors, 1, n, 0.9)};
    }
    free(errors);
    free(weights);
}

/* weights, values: room for them. */
static struct sure_ratios fit_ratios(
    const struct sure_rows *ratios, double *weights, double *values, int n_table)
{
    int makers = sure_fit_weigh(weights, ratios, -1, NULL, false, n_table);
    const double beyond = (1 - WANTED) / 2;
    for (int i = 0; i < ratios->n; i++)
        values[i] = ratios->list[i].error;
    return (struct sure_ratios){ratios->n, makers,
        fmax(0, -sure_quantile(values, weights, ratios->n, beyond)),
        fmax(0, sure_quantile(values, weights, ratios->n, 1 - beyond))};
}

bool sure_fit(struct sure_numbers *out, const struct validate_table *table, struct arena *arena)
{
    struct sure_rows speeds = speeds_of(table, arena), peaks = peaks_of(table, arena);
    struct sure_rows ratios[2] = {ratios_of(table, false, arena), ratios_of(table, true, arena)};
    struct validate_loss loss = validate_loss(table);
    double *weights = xcalloc((size_t)table->rows.n + 1, sizeof *weights);
    double *values = xcalloc((size_t)table->rows.n + 1, sizeof *values);
    int n = table->rows.n, makers = sure_fit_weigh(weights, &speeds, -1, NULL, false, n);
    bool enough = makers >= GENERATION_LEAST && ratios[0].n > 0 && ratios[1].n > 0 && loss.n > 0 &&
                  peaks.n > 0;
    *out = enough ? sure_fit_fit(&speeds, weights, makers, true) : (struct sure_numbers){0};
    if (enough) {
        out->runs = speeds.n;
        out->makers = makers;
        set_generations(out, &speeds, n, arena);
        widen_new(out, &speeds, n);
        for (int shared = 0; shared <= 1; shared++)
            out->ratios[shared] = fit_ratios(&ratios[shared], weights, values, n);
        out->loss = (struct sure_loss){
            loss.n, loss.sources, loss.measured - loss.predicted, loss.std_error};
        out->peak_runs = peaks.n;
        out->peak_makers = sure_fit_weigh(weights, &peaks, -1, NULL, false, n);
        for (int i = 0; i < peaks.n; i++)
            values[i] = peaks.list[i].error;
        for (int q = 0; q < SURE_QUANTILES; q++)
            out->peak[q] =
                sure_quantile(values, weights, peaks.n, (q + 1.0) / (SURE_QUANTILES + 1));
        struct sure_kins kins = {0};
        sure_kins_find(&kins, table, &speeds);
        sure_kins_fit(out, &kins, &speeds, -1);
        sure_kins_free(&kins);
    }
    free(weights);
    free(values);
    return enough;
}

/* ---- how well it holds ---- */

double sure_interval_score(const struct sure_range *range, double ratio)
{
    return range->high - range->low +
           PENALTY * (fmax(range->low - ratio, 0) + fmax(ratio - range->high, 0));
}

static struct sure_score score_all(
    const struct sure_rows *rows, const struct sure_range *ranges, int n_table, bool *covers)
{
    struct sure_score out = {0};
    double *covered = xcalloc((size_t)n_table + 1, sizeof *covered),
           *score = xcalloc((size_t)n_table + 1, sizeof *score);
    double *widths = xcalloc((size_t)rows->n + 1, sizeof *widths);
    int *count = xcalloc((size_t)n_table + 1, sizeof *count), makers = 0;
    for (int i = 0; i < rows->n; i++) {
        const struct sure_row *row = &rows->list[i];
        double ratio = exp(row->error), s = sure_interval_score(&ranges[i], ratio);
        bool in = ratio >= ranges[i].low && ratio <= ranges[i].high;
        covered[row->maker] += in;
        score[row->maker] += s;
        count[row->maker]++;
        out.covered_rows += (double)in / rows->n;
        out.score_rows += s / rows->n;
        widths[i] = ranges[i].high - ranges[i].low;
        if (covers)
            covers[row->at] = in;
    }
    for (int m = 0; m < n_table; m++)
        makers += count[m] > 0;
    for (int m = 0; m < n_table; m++)
        if (count[m] > 0) {
            out.covered_makers += covered[m] / count[m] / makers;
            out.score_makers += score[m] / count[m] / makers;
        }
    gsl_sort(widths, 1, (size_t)rows->n);
    out.width = gsl_stats_median_from_sorted_data(widths, 1, (size_t)rows->n);
    free(covered);
    free(score);
    free(widths);
    free(count);
    return out;
}

struct sure_left_out sure_leave_out(const struct validate_table *table, struct arena *arena)
{
    struct sure_rows rows = speeds_of(table, arena);
    int n = table->rows.n;
    struct sure_left_out out = {.rows = rows.n,
        .covers = ARENA_ARRAY(arena, bool, n + 1),
        .ranges = ARENA_ARRAY(arena, struct sure_range, n + 1)};
    memset(out.covers, 0, ((size_t)n + 1) * sizeof *out.covers);
    memset(out.ranges, 0, ((size_t)n + 1) * sizeof *out.ranges);
    bool *done = xcalloc((size_t)rows.n + 1, sizeof *done);
    double *weights = xcalloc((size_t)rows.n + 1, sizeof *weights);
    struct sure_kins kins = {0};
    sure_kins_find(&kins, table, &rows);
    struct sure_range *ranges[2];
    for (int terms = 0; terms <= 1; terms++)
        ranges[terms] = ARENA_ARRAY(arena, struct sure_range, rows.n + 1);
    out.makers = sure_fit_weigh(weights, &rows, -1, NULL, false, n);
    for (int first = 0; first < rows.n && out.makers > 1; first++) {
        int maker = rows.list[first].maker;
        if (done[first])
            continue;
        int others = sure_fit_weigh(weights, &rows, maker, NULL, false, n);
        for (int terms = 0; terms <= 1; terms++) {
            struct sure_numbers numbers = sure_fit_fit(&rows, weights, others, terms);
            for (int i = first; i < rows.n; i++)
                if (rows.list[i].maker == maker)
                    ranges[terms][i] = sure_speed(&numbers, &rows.list[i].terms, true);
            if (terms) {
                sure_kins_fit(&numbers, &kins, &rows, maker);
                sure_kins_apply(&kins, &numbers, &rows, maker);
            }
        }
        for (int i = first; i < rows.n; i++)
            done[i] |= rows.list[i].maker == maker;
    }
    if (rows.n > 0 && out.makers > 1) {
        out.by_constant = score_all(&rows, ranges[0], n, NULL);
        out.by_terms = score_all(&rows, ranges[1], n, out.covers);
        for (int i = 0; i < rows.n; i++)
            out.ranges[rows.list[i].at] = ranges[1][i];
        out.given = sure_kins_score(&kins, &rows);
    }
    sure_kins_free(&kins);
    free(weights);
    free(done);
    return out;
}

void sure_set_intervals(struct validate_table *table, const struct sure_left_out *left)
{
    for (int r = 0; r < table->rows.n; r++) {
        struct validate_row *row = &table->rows.at[r];
        double speed = row->predicted.tokens_per_s_per_gpu;
        row->interval = (struct validate_interval){0};
        if (left->makers > 1 && left->ranges[r].known)
            row->interval = (struct validate_interval){
                true, left->covers[r], speed * left->ranges[r].low, speed * left->ranges[r].high};
    }
}

/* ---- the file ---- */

enum status sure_write(const char *path, const struct sure_numbers *numbers, struct diag *diag)
{
    char *made = NULL;
    size_t size = 0;
    FILE *out = xmemstream(&made, &size);
    fputs("# How sure predictions are (sim/core/scenario/sure.h): kind fitted, to the published "
          "runs of results/ that no fit rests on, by\n"
          "# `flopcast validate --from results/validated.csv --sure topologies/fitted/sure.yaml` "
          "(sim/lab/validate/sure_fit.h); to be made again\n"
          "# when these change. What it is worth for a maker without runs in it: "
          "results/README.md, How sure.\n",
        out);
    fprintf(out, "speed:\n  runs: %" PRId64 "\n  makers: %" PRId64 "\n", numbers->runs,
        numbers->makers);
    for (int faster = 0; faster <= 1; faster++) {
        fprintf(out, "  %s: %.2f %%\n", faster ? "faster" : "slower",
            100 * (faster ? numbers->faster : numbers->slower));
        for (int t = faster ? SURE_SLOWER_TERMS : 0; t < (faster ? SURE_TERMS : SURE_SLOWER_TERMS);
             t++)
            fprintf(out, "  %s: %.3f\n", sure_term_names[t], numbers->of[t]);
    }
    fprintf(
        out, "  new_slower: %.2f\n  new_faster: %.2f\n", numbers->new_slower, numbers->new_faster);
    fputs("generations:\n", out);
    for (int i = 0; i < numbers->n_generations; i++) {
        const struct sure_evidence *of = &numbers->generations[i];
        fprintf(out,
            "  - {generation: %s, runs: %" PRId64 ", makers: %" PRId64
            ", median: %.1f %%, p90: %.1f %%}\n",
            of->generation, of->runs, of->makers, 100 * of->median, 100 * of->p90);
    }
    for (int shared = 0; shared <= 1; shared++) {
        const struct sure_ratios *of = &numbers->ratios[shared];
        fprintf(out,
            "%s:\n  runs: %" PRId64 "\n  makers: %" PRId64
            "\n  slower: %.2f %%\n  faster: %.2f %%\n",
            shared ? "ratio_shared" : "ratio", of->runs, of->makers, 100 * of->slower,
            100 * of->faster);
    }
    fprintf(out,
        "loss:\n  runs: %" PRId64 "\n  makers: %" PRId64
        "\n  value: %.2f %%\n  std_error: %.2f %%\n",
        numbers->loss.runs, numbers->loss.makers, 100 * numbers->loss.value,
        100 * numbers->loss.std_error);
    fprintf(out,
        "measured:\n  maker: %.2f\n  model: %.2f\n  layout: %.2f\n  job: %.2f\n  wider: %.2f\n",
        numbers->alike[SURE_MAKER], numbers->alike[SURE_MODEL], numbers->alike[SURE_LAYOUT],
        numbers->alike[SURE_JOB], numbers->given_wider);
    fprintf(out, "peak:\n  runs: %" PRId64 "\n  makers: %" PRId64 "\n  quantiles: [",
        numbers->peak_runs, numbers->peak_makers);
    for (int q = 0; q < SURE_QUANTILES; q++)
        fprintf(out, "%s%.3f", q ? ", " : "", numbers->peak[q]);
    fputs("]\n", out);
    fclose(out);
    enum status status = file_write(path, made, size, diag);
    free(made);
    return status;
}
