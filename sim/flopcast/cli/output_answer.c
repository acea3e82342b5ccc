/* The answer in sentences above the table of `flopcast run`: of one point how fast it is and
 * what limits it, of a sweep over GPUs what each curve loses from its smallest to its largest
 * cluster, else the fastest point; and the command that says why.
 *
 * Points of a curve are found by scenario_curve(), a digest of all settings but the GPU count:
 * one sort, then one pass for both ends. A loss is split by parts of a step, of the same work:
 * each part's growth is scaled so that all of them add up to the loss. What is subtle: the
 * interval of a loss is that of a ratio of two predictions (sure_of_ratio()), and is not made of
 * the intervals of both. Curves that are other readings of one publication have no line; the
 * range of what they lose stands in that of the first. */
#include "cli/output_view.h"

#include "base/files.h"
#include "rows/words.h"
#include "scenario/identity.h"
#include "scenario/causes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one point ---- */

static struct scenario_step output_answer_step_of(const struct scenario_result *result)
{
    return scenario_step(&result->exec.breakdown, result->exec.memory.alloc_stall_s);
}

/* "limited by kernels (93 % of the step)", with what else takes a tenth. */
static const char *limits(struct arena *arena, const struct scenario_result *result)
{
    static const double LEAST = 0.1;
    struct scenario_step step = output_answer_step_of(result);
    int most = 0;
    for (int p = 1; p < STEP_PART_COUNT; p++)
        most = step.part_s[p] > step.part_s[most] ? p : most;
    const char *text = arena_printf(arena, "limited by %s (%.0f %% of the step",
        scenario_step_parts[most].name, PERCENT * step.part_s[most] / result->exec.step_time_s);
    for (int p = 0; p < STEP_PART_COUNT; p++)
        if (p != most && step.part_s[p] >= LEAST * result->exec.step_time_s)
            text = arena_printf(arena, "%s, %s %.0f %%", text, scenario_step_parts[p].name,
                PERCENT * step.part_s[p] / result->exec.step_time_s);
    return arena_printf(arena, "%s)", text);
}

static const char *output_answer_room(struct view *view, const struct exec_memory *memory)
{
    double peak = sure_peak_bytes(memory);
    if (memory->alloc_retries_a_step > 0)
        return arena_printf(view->arena,
            "just fits: cudaMalloc fails and is tried again %.1f times a step",
            memory->alloc_retries_a_step);
    return arena_printf(view->arena, "%s, %.1f GiB to spare",
        sure_said_to_fit(view->arena, view->sure, peak, memory->capacity_bytes),
        fmax(0, (memory->capacity_bytes - peak) / GIB));
}

static const char *output_answer_said(struct view *view, int i)
{
    const struct scenario_result *result = &view->results[i];
    const struct exec_memory *memory = &result->exec.memory;
    double lacking = (memory->required_bytes - memory->capacity_bytes) / GIB;
    if (result->exec.status != EXEC_OK)
        return lacking > 0 ? arena_printf(view->arena, "does not fit: %.1f GiB short of %.1f",
                                 lacking, memory->capacity_bytes / GIB)
                           : "does not fit: what is free lies in gaps between tensors";
    const char *of =
        arena_printf(view->arena, "%s/s a GPU", words_counted(&view->set->points[i].model.shape));
    return arena_printf(view->arena, "%s, %.*f %% MFU; %s; %s",
        sure_said(view->arena, view_range(view, i), result->tokens_per_s_per_gpu, of),
        result->mfu < 0.1 ? 1 : 0, PERCENT * result->mfu, limits(view->arena, result),
        output_answer_room(view, memory));
}

/* The fastest of those that have rows; -1: none ran. */
static int fastest(const struct view *view)
{
    int best = -1;
    for (int i = 0; i < view->set->n_points; i++)
        if (view->results[i].exec.status == EXEC_OK &&
            !(view->folded && view->reading_of[i] != i) &&
            (best < 0 ||
                view->results[i].tokens_per_s_per_gpu > view->results[best].tokens_per_s_per_gpu))
            best = i;
    return best;
}

/* " (2 more as fast)": by no more than a table shows. */
static const char *as_fast(const struct view *view, int best)
{
    static const double ALIKE = 5e-4;
    int n = 0;
    for (int i = 0; i < view->set->n_points; i++)
        n += i != best && view->results[i].exec.status == EXEC_OK &&
             view->results[i].tokens_per_s_per_gpu >
                 (1 - ALIKE) * view->results[best].tokens_per_s_per_gpu;
    return n > 0 ? arena_printf(view->arena, " (%d more as fast)", n) : "";
}

/* ---- curves ---- */

/* A point and the curve that it lies on. */
struct member {
    uint64_t key;
    int point;
};

/* Ends of a curve: the points with the smallest and the largest cluster that ran, and those that
 * were published; -1: none. */
struct curve {
    int point; /* its first point in the sweep */
    int first, last, published_first, published_last;
};

static double output_answer_gpus_of(const struct view *view, int i)
{
    return (double)view->set->points[i].options.cluster.gpus;
}

static void extend(const struct view *view, int *first, int *last, int i)
{
    if (*first < 0 || output_answer_gpus_of(view, i) < output_answer_gpus_of(view, *first))
        *first = i;
    if (*last < 0 || output_answer_gpus_of(view, i) > output_answer_gpus_of(view, *last))
        *last = i;
}

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->point - y->point;
}

static int by_point(const void *a, const void *b)
{
    const struct curve *x = a, *y = b;
    return x->point - y->point;
}

/* Those of several sizes. */
static int find_curves(struct curve *curves, const struct view *view)
{
    int n = view->set->n_points, n_curves = 0, several = 0;
    struct member *members = xcalloc((size_t)n, sizeof *members);
    for (int i = 0; i < n; i++)
        members[i] = (struct member){scenario_curve(&view->set->points[i].options), i};
    qsort(members, (size_t)n, sizeof *members, by_key);
    for (int m = 0; m < n; m++) {
        int i = members[m].point;
        const struct scenario_published *published = &view->set->points[i].published;
        if (m == 0 || members[m].key != members[m - 1].key)
            curves[n_curves++] = (struct curve){i, -1, -1, -1, -1};
        struct curve *curve = &curves[n_curves - 1];
        if (view->results[i].exec.status == EXEC_OK)
            extend(view, &curve->first, &curve->last, i);
        if (published->found && published->tflops_per_gpu > 0)
            extend(view, &curve->published_first, &curve->published_last, i);
    }
    free(members);
    for (int c = 0; c < n_curves; c++)
        if (curves[c].first != curves[c].last)
            curves[several++] = curves[c];
    qsort(curves, (size_t)several, sizeof *curves, by_point);
    return several;
}

/* Fractions of the small cluster's throughput; below 0: a gain. */
static double output_answer_loss_of(const struct view *view, const struct curve *curve)
{
    return 1 -
           view->results[curve->last].tflops_per_gpu / view->results[curve->first].tflops_per_gpu;
}

/* " (3.9 to 10.7 in 9 of 10)": between what it lies as curves were measured. Of a gain the ends
 * are turned round, so that both are printed as amounts above 0. */
static const char *sure_of_loss(struct view *view, const struct curve *curve)
{
    const struct scenario_point *point = &view->set->points[curve->last];
    double doublings = log2(output_answer_gpus_of(view, curve->last) /
                            output_answer_gpus_of(view, curve->first)),
           loss = output_answer_loss_of(view, curve);
    struct sure_range range = sure_of_ratio(view->sure, point, doublings);
    double low = 1 - (1 - loss) * range.high, high = 1 - (1 - loss) * range.low,
           sign = loss < 0 ? -1 : 1;
    return range.known ? arena_printf(view->arena, " (%.1f to %.1f)",
                             PERCENT * sign * (loss < 0 ? high : low),
                             PERCENT * sign * (loss < 0 ? low : high))
                       : "";
}

static const char *output_answer_change(struct arena *arena, double loss)
{
    return arena_printf(arena, "%s %s %%", loss < 0 ? "gains" : "loses",
        words_number(arena, PERCENT * fabs(loss), 1, false));
}

/* The loss by parts of a step, of the same work: "kernels 1.3, stragglers 1.0", of which none is
 * below a tenth of a point. "": there are none. Parts that shrink count against those that grow.
 * Printed are those of a tenth of a point and more. */
static const char *output_answer_parts(
    struct arena *arena, const struct view *view, const struct curve *curve)
{
    static const double LEAST = 0.05;
    const struct scenario_result *from = &view->results[curve->first],
                                 *to = &view->results[curve->last];
    struct scenario_step small = output_answer_step_of(from), large = output_answer_step_of(to);
    double grown[STEP_PART_COUNT], sum = 0, loss = PERCENT * output_answer_loss_of(view, curve);
    double small_work = from->tflops_per_gpu * from->exec.step_time_s,
           large_work = to->tflops_per_gpu * to->exec.step_time_s;
    for (int p = 0; p < STEP_PART_COUNT; p++)
        sum += grown[p] = large.part_s[p] / large_work - small.part_s[p] / small_work;
    const char *text = "";
    for (int most; sum != 0;) {
        most = 0;
        for (int p = 1; p < STEP_PART_COUNT; p++)
            most = fabs(grown[p]) > fabs(grown[most]) ? p : most;
        double points = loss * grown[most] / sum;
        if (fabs(points) < LEAST || fabs(loss) < LEAST)
            break;
        text = arena_printf(arena, "%s%s %s %.1f", text,
            *text ? "," : "; by parts of the step:", scenario_step_parts[most].name, points);
        grown[most] = 0;
    }
    return text;
}

/* How sure the change along a curve is. */
static const char *samples(struct view *view, const struct curve *curve)
{
    const struct scenario_result *from = &view->results[curve->first],
                                 *to = &view->results[curve->last];
    struct scenario_band band = scenario_ratio_band(from, to);
    if (!view->sampled || band.n == 0)
        return "";
    return arena_printf(view->arena,
        "; median of %d samples %+.1f %%, spread of inputs %+.1f to %+.1f %%", band.n,
        PERCENT * (band.median - 1), PERCENT * (band.low - 1), PERCENT * (band.high - 1));
}

static bool same_sizes(const struct view *view, const struct curve *curve)
{
    return curve->published_first != curve->published_last &&
           output_answer_gpus_of(view, curve->published_first) ==
               output_answer_gpus_of(view, curve->first) &&
           output_answer_gpus_of(view, curve->published_last) ==
               output_answer_gpus_of(view, curve->last);
}

/* "; other readings lose 2.3 to 5.2 %" of curves that are readings of this one. */
static const char *other_readings(
    struct view *view, const struct curve *curves, int n, const struct curve *of)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int c = 0; c < n; c++) {
        bool other = &curves[c] != of && view->reading_of[curves[c].first] == of->first &&
                     view->reading_of[curves[c].last] == of->last;
        low = other ? fmin(low, PERCENT * output_answer_loss_of(view, &curves[c])) : low;
        high = other ? fmax(high, PERCENT * output_answer_loss_of(view, &curves[c])) : high;
    }
    return low > high ? ""
                      : arena_printf(view->arena, "; other readings %.1f to %.1f %%", low, high);
}

/* Of the reading that stands for all no setting that others have otherwise. */
static const char *output_answer_name_of(struct view *view, int i)
{
    struct vary named = {0};
    for (int v = 0; v < view->vary.options.n; v++)
        if (!(view->folded && view_is_reading(view, view->vary.options.at[v].path)))
            vec_push(&named.options, view->vary.options.at[v]);
    const char *name = vary_name(&named, &view->set->points[i], view->arena);
    vec_free(&named.options);
    return name;
}

static const char *curve_text(struct view *view, const struct curve *curves, int n, int c)
{
    const struct curve *curve = &curves[c];
    const struct scenario_point *points = view->set->points;
    struct arena *arena = view->arena;
    double from = view->results[curve->first].tflops_per_gpu,
           to = view->results[curve->last].tflops_per_gpu;
    const char *published = "";
    if (same_sizes(view, curve)) {
        double first = points[curve->published_first].published.tflops_per_gpu,
               last = points[curve->published_last].published.tflops_per_gpu;
        published = arena_printf(arena, "; published: %s, %.1f to %.1f",
            output_answer_change(arena, 1 - last / first), first, last);
    }
    return arena_printf(arena, "%s: %s%s from %.0f to %.0f GPUs, %.1f to %.1f TFLOPS/GPU%s%s%s%s",
        output_answer_name_of(view, curve->first),
        output_answer_change(arena, output_answer_loss_of(view, curve)), sure_of_loss(view, curve),
        output_answer_gpus_of(view, curve->first), output_answer_gpus_of(view, curve->last), from,
        to, output_answer_parts(arena, view, curve), samples(view, curve), published,
        other_readings(view, curves, n, curve));
}

static bool has_line(const struct view *view, const struct curve *curve)
{
    return !view->folded || view->reading_of[curve->first] == curve->first;
}

enum { MOST_CURVES = 4 };

static int output_answer_count_lines(const struct view *view, const struct curve *curves, int n)
{
    int lines = 0;
    for (int c = 0; c < n; c++)
        lines += has_line(view, &curves[c]);
    return lines;
}

static void print_curves(FILE *out, struct view *view, const struct curve *curves, int n)
{
    for (int c = 0; c < n; c++)
        if (has_line(view, &curves[c]))
            words_paragraph(out, curve_text(view, curves, n, c));
}

/* The command that takes causes away one after the other, of the scenario's smallest and largest
 * cluster. */
static void print_why(FILE *out, const struct view *view)
{
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < view->set->n_points; i++) {
        int64_t gpus = view->set->points[i].options.cluster.gpus;
        least = gpus < least ? gpus : least;
        most = gpus > most ? gpus : most;
    }
    words_command(out, "by cause: ",
        arena_printf(view->arena, "flopcast waterfall %s --from %" PRId64 " --to %" PRId64 "%s",
            words_file(view->arena, view->set->file), least, most,
            view_overrides(view, (const char *const[]){"cluster.gpus", NULL})));
}

/* Curves that have no room: the range of what they lose. */
static void print_range(FILE *out, struct view *view, const struct curve *curves, int n)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    int lines = 0;
    for (int c = 0; c < n; c++)
        if (has_line(view, &curves[c])) {
            low = fmin(low, PERCENT * output_answer_loss_of(view, &curves[c]));
            high = fmax(high, PERCENT * output_answer_loss_of(view, &curves[c]));
            lines++;
        }
    words_paragraph(out,
        arena_printf(view->arena,
            "%d curves lose %s to %s %% from their smallest to their largest cluster", lines,
            words_number(view->arena, low, 1, false), words_number(view->arena, high, 1, false)));
}

static bool is_quiet(const struct scenario_set *set)
{
    for (int i = 0; i < set->n_points; i++)
        if (exec_noise_is_on(&set->points[i].options.exec.noise))
            return false;
    return true;
}

/* What a balanced router leaves out, which real ones are not. */
static void print_routing(FILE *out, const struct view *view)
{
    const struct scenario_point *point = &view->set->points[0];
    const struct strategy_options *options = &point->options.strategy;
    const struct model_moe *moe = &point->model.shape.moe;
    bool balanced = !strategy_draws_experts(options) && !(options->train.expert_imbalance > 1);
    if (view->set->n_points > 1 || moe->experts == 0 || options->parallelism.model.expert < 2 ||
        !balanced)
        return;
    struct model_workload workload = strategy_workload(options, &point->model);
    words_paragraph(out,
        arena_printf(view->arena,
            "routing is balanced, as benchmarks force it; with a trained router the busiest GPU's "
            "experts have about %.1f times as many tokens: --set train.expert_routing=learned",
            model_learned_load(&workload, moe->experts, moe->per_token)));
}

/* More than four curves get their range here and their lines below the table (view_curves()). */
void view_answer(FILE *out, struct view *view)
{
    struct curve *curves = xcalloc((size_t)view->set->n_points, sizeof *curves);
    int n = find_curves(curves, view), lines = output_answer_count_lines(view, curves, n),
        best = fastest(view);
    if (view->set->n_points == 1)
        words_paragraph(out, output_answer_said(view, 0)), print_routing(out, view);
    else if (lines > MOST_CURVES)
        print_range(out, view, curves, n);
    else if (lines > 0)
        print_curves(out, view, curves, n);
    else if (best >= 0)
        words_paragraph(
            out, arena_printf(view->arena, "fastest of %d%s: %s, %.0f GPUs: %s",
                     view->set->n_points, as_fast(view, best), output_answer_name_of(view, best),
                     output_answer_gpus_of(view, best), output_answer_said(view, best)));
    else
        words_paragraph(
            out, arena_printf(view->arena, "none of %d points fits", view->set->n_points));
    if (lines > 0 && is_quiet(view->set))
        words_paragraph(
            out, "no noise in these jobs, GPUs and networks alike: stragglers cost nothing");
    if (lines > 0)
        print_why(out, view);
    fputc('\n', out);
    free(curves);
}

void view_curves(FILE *out, struct view *view)
{
    struct curve *curves = xcalloc((size_t)view->set->n_points, sizeof *curves);
    int n = find_curves(curves, view);
    if (output_answer_count_lines(view, curves, n) > MOST_CURVES) {
        fputc('\n', out);
        print_curves(out, view, curves, n);
    }
    free(curves);
}

/* ---- what the command line set ---- */

/* A file of flopcast's own by the name that people give it: "h100". */
static const char *short_name(struct arena *arena, const char *path, const char *file)
{
    static const struct {
        const char *path;
        enum files_kind kind;
    } kinds[] = {
        {"cluster.topology", FILES_CLUSTERS}, {"stack", FILES_STACKS}, {"model", FILES_MODELS}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *stem = words_stem(file, arena), *own = files_short(arena, kinds[k].kind, stem);
        if (strcmp(path, kinds[k].path) != 0 || !own || strcmp(files_own(arena, own), file) != 0)
            continue;
        const char *aliases = "";
        for (int g = 0; g < FILES_GROUPS; g++)
            if (files_groups[g].kind == kinds[k].kind)
                aliases = files_aliases(arena, &files_groups[g], stem);
        size_t n = strcspn(aliases, ",");
        return n > 0 && strncmp(stem, aliases, n) == 0
                   ? arena_printf(arena, "%.*s", (int)n, aliases)
                   : stem;
    }
    return file;
}

/* The values of a setting over the points, as --set takes them. */
static const char *values(const struct view *view, const struct vary_option *option)
{
    const char *text = "";
    int n = 0;
    for (int i = 0; i < view->set->n_points; i++) {
        bool known = false;
        for (int j = 0; j < i && !known; j++)
            known =
                !vary_differs(option, &view->set->points[i].options, &view->set->points[j].options);
        if (!known)
            text = arena_printf(view->arena, "%s%s%s", text, n++ ? ", " : "",
                short_name(view->arena, option->path,
                    vary_text(option, &view->set->points[i].options, view->arena)));
    }
    return n > 1 ? arena_printf(view->arena, "[%s]", text) : text;
}

static bool is_among(const char *const *paths, const char *path)
{
    for (; *paths; paths++)
        if (strcmp(*paths, path) == 0)
            return true;
    return false;
}

/* What the command line set, as options for another command: from the origins of settings, so
 * --no-noise, aliases and options such as --gpus all end up as what they set. */
const char *view_overrides(const struct view *view, const char *const *except)
{
    const struct config_origins *origins = &view->set->points[0].origins;
    const char *text = "";
    bool quiet = false;
    for (int i = 0; i < origins->list.n; i++) {
        const struct config_origin *origin = &origins->list.at[i];
        struct config_origin last = scenario_origin(&view->set->points[0], origin->path);
        bool said = origin->kind != ORIGIN_COMMAND_LINE || last.kind != ORIGIN_COMMAND_LINE ||
                    is_among(except, origin->path);
        for (int k = 0; k < i && !said; k++)
            said = origins->list.at[k].kind == ORIGIN_COMMAND_LINE &&
                   strcmp(origins->list.at[k].path, origin->path) == 0;
        if (said)
            continue;
        if (strcmp(origin->at.file, "--set noise") == 0 ||
            strcmp(origin->at.file, "--no-noise") == 0) { /* noise=off sets many */
            text = quiet ? text : arena_printf(view->arena, "%s --no-noise", text);
            quiet = true;
            continue;
        }
        struct vary_option option = {.path = origin->path};
        option.field = config_field_at(&scenario_table, origin->path, &option.offset);
        if (option.field->type == FIELD_SECTION || option.field->type == FIELD_OVERRIDES)
            continue;
        text = arena_printf(view->arena, "%s --set %s", text,
            words_shell(arena_printf(view->arena, "%s=%s", origin->path, values(view, &option)),
                view->arena));
    }
    return text;
}
