#include "cli/output.h"
#include "cli/sure.h"
#include "cli/table.h"
#include "cli/vary.h"
#include "cli/words.h"
#include "scenario/sample.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double GiB = 0x1p30; /* what PyTorch and nvidia-smi count in */

struct jobs {
    const struct scenario_set *set;
    const struct scenario_result *results;
    const struct vary *vary;
    struct arena *arena;
};

/* Of several points what tells them apart, too; GPUs first, as a narrow screen cuts the end. */
static const char *point_label(const struct jobs *jobs, int i)
{
    const char *gpus = arena_printf(jobs->arena, "%" PRId64 " GPUs", jobs->set->points[i].options.cluster.gpus);
    return jobs->set->n_points == 1
               ? gpus
               : arena_printf(jobs->arena, "%s, %s", gpus, vary_name(jobs->vary, &jobs->set->points[i], jobs->arena));
}

static bool is_alike(const struct exec_program *a, const struct exec_program *b)
{
    const struct exec_breakdown *x = &a->breakdown, *y = &b->breakdown;
    static const double SHOWN_S = 0.5e-4, SHOWN_BYTES = 0.05 * 0x1p30; /* half of the last digit */
    return fabs(x->compute_s - y->compute_s) < SHOWN_S && fabs(x->exposed_comm_s - y->exposed_comm_s) < SHOWN_S &&
           fabs(x->bubble_s - y->bubble_s) < SHOWN_S && fabs(x->host_bound_s - y->host_bound_s) < SHOWN_S &&
           fabs(x->other_idle_s - y->other_idle_s) < SHOWN_S &&
           fabs(a->memory.peak_allocated_bytes - b->memory.peak_allocated_bytes) < SHOWN_BYTES &&
           fabs(a->memory.peak_reserved_bytes - b->memory.peak_reserved_bytes) < SHOWN_BYTES;
}

/* The last of the programs from p on that are alike; kinds of GPU have a row each. */
static int last_alike(const struct exec_result *exec, int p)
{
    int last = p;
    while (!exec->kinds && last + 1 < exec->n_programs && is_alike(&exec->programs[p], &exec->programs[last + 1]))
        last++;
    return last;
}

static int count_groups(const struct exec_result *exec)
{
    int n = 0;
    for (int p = 0; p < exec->n_programs; p = last_alike(exec, p) + 1)
        n++;
    return n;
}

static void add_program(const struct jobs *jobs, struct table *table, int i, int p, int last)
{
    const struct exec_result *exec = &jobs->results[i].exec;
    int shown = exec->fullest >= p && exec->fullest <= last ? exec->fullest : p;
    const struct exec_breakdown *part = &exec->programs[shown].breakdown;
    const struct exec_memory *memory = &exec->programs[shown].memory;
    const char *fullest = shown == exec->fullest ? " (fullest)" : "";
    table_row(table);
    table_text(table, "point", "", point_label(jobs, i));
    if (exec->kinds) {
        const struct hw *hw = &jobs->set->points[i].hw;
        const char *name = p ? hw->second_gpu.name : hw->gpu.name;
        table_text(table, "GPU", "", arena_printf(jobs->arena, "%s%s", name, fullest));
        table_number(table, "batch", "/GPU", 0, jobs->results[i].micro_batch[p]);
    } else
        table_number_as(table, "program", "",
            p == last ? arena_printf(jobs->arena, "%d%s", p, fullest)
                      : arena_printf(jobs->arena, "%d to %d%s", p, last, fullest));
    table_number(table, "compute", "s", 4, part->compute_s);
    table_number(table, "exposed comm", "s", 4, part->exposed_comm_s);
    if (!exec->kinds)
        table_number(table, "bubble", "s", 4, part->bubble_s);
    table_number(table, "host bound", "s", 4, part->host_bound_s);
    table_number(table, "other idle", "s", 4, part->other_idle_s);
    table_number(table, "HBM peak", "GiB", 1, memory->peak_allocated_bytes / GiB);
    table_number(table, "reserved", "GiB", 1, memory->peak_reserved_bytes / GiB);
}

/* Rows of all points of several programs. */
static int count_rows(const struct jobs *jobs)
{
    int n = 0;
    for (int i = 0; i < jobs->set->n_points; i++) {
        const struct exec_result *exec = &jobs->results[i].exec;
        n += exec->n_programs < 2 || exec->status != EXEC_OK ? 0 : count_groups(exec);
    }
    return n;
}

static void print_programs(
    FILE *out, const struct scenario_set *set, const struct scenario_result *results, const struct vary *vary)
{
    enum { MANY = 8 };
    struct arena arena = ARENA_INIT;
    const struct jobs jobs = {set, results, vary, &arena};
    struct table table = {0};
    bool kinds = false, some = false, many = count_rows(&jobs) > MANY;
    for (int i = 0; i < jobs.set->n_points; i++) {
        const struct exec_result *exec = &jobs.results[i].exec;
        if (exec->n_programs < 2 || exec->status != EXEC_OK)
            continue;
        bool whole = !many || exec->kinds;
        kinds |= exec->kinds;
        some |= !whole;
        for (int p = 0, last; p < exec->n_programs; p = last + 1) {
            last = last_alike(exec, p);
            if (whole || (exec->fullest >= p && exec->fullest <= last))
                add_program(&jobs, &table, i, p, last);
        }
    }
    const char *head = some ? "\nby program, of more than 8 lines the fullest of each point:\n" : "\nby program:\n";
    fputs(table.rows == 0 ? "" : kinds ? "\nby kind of GPU:\n" : head, out);
    table_finish(out, &table);
    arena_release(&arena);
}

static void print_plan(const struct plan *plan, const struct scenario_point *point, bool first)
{
    printf("%s%s: %s %s, batch %lld, %lld GPU%s\n", first ? "" : "\n", point->options.name, point->model.shape.name,
        strategy_label(&point->options.strategy), (long long)point->options.strategy.train.micro_batch,
        (long long)point->options.cluster.gpus, plural(point->options.cluster.gpus));
    plan_explain(stdout, plan, &point->hw);
}

void output_plans(const struct scenario_set *set, bool quiet, struct diag *diag)
{
    for (int i = 0; i < set->n_points && diag->worst == STATUS_OK; i++) {
        const struct scenario_point *point = &set->points[i];
        struct arena arena = ARENA_INIT;
        struct plan plan;
        if (scenario_compile(&plan, point, &arena, diag) == STATUS_OK) {
            if (!quiet)
                print_plan(&plan, point, i == 0);
            plan_release(&plan);
        }
        arena_release(&arena);
    }
}

struct view {
    const struct scenario_set *set;
    const struct scenario_result *results;
    struct arena *arena;
    struct vary vary; /* only what no other column shows */
    struct sure *sure;
    bool published, published_allocated, published_reserved, sampled;
    const struct record_column *shown[RECORD_MAX_CELLS]; /* those that have a place, by it */
    int n_shown;
    bool one_model, one_strategy, one_batch; /* in all points */
};

static bool is_shown(const struct view *view, const struct record_column *column)
{
    bool shown = !column->shown_if;
    for (int i = 0; i < view->set->n_points && !shown; i++)
        shown = column->shown_if(&(struct record_source){&view->set->points[i], &view->results[i]});
    return shown && column->shown.heading;
}

static int by_place(const void *a, const void *b)
{
    const struct record_column *const *x = a, *const *y = b;
    return (*x)->shown.place - (*y)->shown.place;
}

static void find_shown(struct view *view)
{
    for (int i = 0; i < n_record_columns; i++)
        if (is_shown(view, &record_columns[i]))
            view->shown[view->n_shown++] = &record_columns[i];
    qsort(view->shown, (size_t)view->n_shown, sizeof *view->shown, by_place);
}

static void view_begin(struct view *view)
{
    find_shown(view);
    vary_find_unnamed(&view->vary, view->set, view->arena);
    view->sampled = view->results[0].n_samples > 0;
    const struct scenario_point *first = &view->set->points[0];
    view->one_model = view->one_strategy = view->one_batch = true;
    for (int i = 0; i < view->set->n_points; i++) {
        const struct scenario_point *point = &view->set->points[i];
        const struct scenario_published *published = &point->published;
        view->published |= published->found;
        view->published_allocated |= published->found && published->peak_allocated_bytes > 0;
        view->published_reserved |= published->found && published->peak_reserved_bytes > 0;
        view->one_model &= strcmp(point->model.shape.name, first->model.shape.name) == 0;
        view->one_strategy &=
            strcmp(strategy_label(&point->options.strategy), strategy_label(&first->options.strategy)) == 0;
        view->one_batch &= point->options.strategy.train.micro_batch == first->options.strategy.train.micro_batch;
    }
}

/* The number, or a dash where there is none. */
static void number(
    struct table *table, const char *name, const char *unit, int spare, bool known, int digits, double value)
{
    table_number(table, name, unit, digits, known ? value : TABLE_UNKNOWN);
    table_spare(table, spare);
}

/* A number to as many digits as its interval has, a text of them, or a dash. */
static void sure_cell(struct table *table, const char *name, const char *unit, int spare, bool known, const char *text)
{
    table_number_as(table, name, unit, known ? text : "-");
    table_spare(table, spare);
}

static void range(
    struct table *table, const char *name, int spare, struct scenario_band band, const struct regime *regime)
{
    struct arena *arena = &table->numbers;
    sure_cell(table, name, "TFLOPS/GPU", spare, band.n > 0,
        arena_printf(
            arena, "%s .. %s", sure_number(arena, regime, band.low, 2), sure_number(arena, regime, band.high, 2)));
}

static void deviation(struct table *table, const char *unit, int spare, bool known, double simulated, double published)
{
    double off = known ? simulated / published - 1 : 0;
    table_number_as(table, "deviation", unit, known ? words_number(&table->numbers, 100 * off, 1, true) : "-");
    table_spare(table, spare);
    if (fabs(off) > TABLE_FAR_OFF)
        table_mark(table, TABLE_DOUBTFUL);
}

/* The point's settings. */
static void name_point(struct view *view, struct table *table, const struct scenario_point *point)
{
    table_text(table, "model", "", point->model.shape.name);
    table_spare(table, view->one_model ? RECORD_SPARE_MODEL : 0);
    table_text(table, "strategy", "", strategy_label(&point->options.strategy));
    table_spare(table, view->one_strategy ? RECORD_SPARE_STRATEGY : 0);
    for (int v = 0; v < view->vary.options.n; v++) {
        const struct vary_option *option = &view->vary.options.at[v];
        table_text(table, option->path, "", vary_short(option, &point->options, view->arena));
    }
    table_number(table, "batch", "/GPU", 0, (double)point->options.strategy.train.micro_batch);
    table_spare(table, view->one_batch ? RECORD_SPARE_BATCH : 0);
    table_number(table, "GPUs", "", 0, (double)point->options.cluster.gpus);
}

static void add_shown(struct view *view, struct table *table, const struct record_column *column,
    const struct record_source *source, const struct regime *regime)
{
    const char *heading = column->shown.heading;
    double value = column->shown.scale * record_number(source->result, column);
    if (column->shown.counted)
        heading = arena_printf(view->arena, "%s%s", words_counted_all(view->set), heading);
    if (column->shown.of_step)
        value /= source->result->exec.step_time_s;
    int digits = column->shown.digits;
    struct arena *arena = &table->numbers;
    sure_cell(table, heading, column->shown.unit, (int)column->shown.spare, !column->known || column->known(source),
        column->shown.sure ? sure_number(arena, regime, value, digits) : arena_printf(arena, "%.*f", digits, value));
}

static void add_published_memory(
    struct view *view, struct table *table, const struct scenario_point *point, const struct exec_result *exec)
{
    bool ok = exec->status == EXEC_OK;
    const struct exec_memory *memory = &exec->memory;
    double allocated = point->published.peak_allocated_bytes, reserved = point->published.peak_reserved_bytes;
    if (view->published_allocated) {
        number(table, "published", "peak GiB", RECORD_SPARE_ALLOCATED, allocated > 0, 1, allocated / GiB);
        deviation(table, "% of peak", RECORD_SPARE_ALLOCATED_DEVIATION, ok && allocated > 0,
            memory->peak_allocated_bytes, allocated);
    }
    if (view->published_reserved) {
        number(table, "published", "reserved GiB", RECORD_SPARE_RESERVED, reserved > 0, 1, reserved / GiB);
        deviation(table, "% of reserved", RECORD_SPARE_RESERVED_DEVIATION, ok && reserved > 0,
            memory->peak_reserved_bytes, reserved);
    }
}

static void add_point(struct view *view, struct table *table, int i)
{
    const struct scenario_point *point = &view->set->points[i];
    const struct scenario_result *result = &view->results[i];
    const struct scenario_published *published = &point->published;
    bool ok = result->exec.status == EXEC_OK, known = published->found && published->tflops_per_gpu > 0;
    const struct regime *regime = sure_of(view->sure, point, REGIME_OF_SPEED, scenario_waiting_share(result));
    struct arena *arena = view->arena;
    table_row(table);
    name_point(view, table, point);
    table_number_as(table, "TFLOPS", "/GPU", ok ? sure_number(arena, regime, result->tflops_per_gpu, 2) : "OOM");
    table_mark(table, ok ? TABLE_PLAIN : TABLE_BAD);
    if (view->sampled) {
        struct scenario_band band = scenario_band(result, SAMPLED_TFLOPS);
        sure_cell(table, "median", "TFLOPS/GPU", 0, band.n > 0, sure_number(arena, regime, band.median, 2));
        range(table, "90 % by numbers", RECORD_SPARE_NUMBERS, band, regime);
        range(table, "90 % in all", 0, scenario_widen(band, result->discrepancy), regime);
    } else {
        sure_cell(table, "90 %", "TFLOPS/GPU", RECORD_SPARE_INTERVAL, ok,
            sure_range(arena, regime, result->tflops_per_gpu, 2));
    }
    if (view->published) {
        table_number_as(table, "published", "TFLOPS/GPU",
            published->found && published->oom ? "OOM"
            : known                            ? arena_printf(view->arena, "%.2f", published->tflops_per_gpu)
                                               : "-");
        deviation(table, "%", 0, ok && known, result->tflops_per_gpu, published->tflops_per_gpu);
    }
    for (int c = 0; c < view->n_shown; c++)
        add_shown(view, table, view->shown[c], &(struct record_source){point, result}, regime);
    add_published_memory(view, table, point, &result->exec);
}

/* Why a point is out of memory, behind its name and a line end; NULL: it is not. Free it. */
static char *oom_text(struct view *view, int i)
{
    char *text = NULL;
    size_t n = 0;
    if (view->results[i].exec.status != EXEC_OOM)
        return NULL;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    fputs(vary_name(&view->vary, &view->set->points[i], view->arena), out);
    fputc('\n', out);
    words_oom(out, &view->results[i].exec);
    fclose(out);
    return text;
}

static bool has_overrides(const struct scenario_point *point)
{
    for (int i = 0; i < point->origins.list.n; i++)
        if (point->origins.list.at[i].kind == ORIGIN_COMMAND_LINE)
            return true;
    return false;
}

/* Points that lack the same for the same reason are reported together: DDP lacks as much on 8 GPUs as on 512. */
static void print_ooms(FILE *out, struct view *view)
{
    int n = view->set->n_points;
    bool any = false;
    char **texts = xcalloc((size_t)n, sizeof *texts);
    for (int i = 0; i < n; i++)
        texts[i] = oom_text(view, i);
    for (int i = 0; i < n; i++) {
        if (!texts[i])
            continue;
        int name = (int)strcspn(texts[i], "\n");
        int64_t gpus = view->set->points[i].options.cluster.gpus;
        const char *sizes = arena_printf(view->arena, "%" PRId64, gpus);
        bool several = false;
        for (int j = i + 1; j < n; j++)
            if (texts[j] && strcmp(texts[j], texts[i]) == 0) {
                sizes = arena_printf(view->arena, "%s, %" PRId64, sizes, view->set->points[j].options.cluster.gpus);
                several = true;
                free(texts[j]);
                texts[j] = NULL;
            }
        fprintf(out, "\nout of memory: %.*s%s %s GPU%s\n%s", name, texts[i], several ? ", on" : ",", sizes,
            several ? "s" : plural(gpus), texts[i] + name + 1);
        any = true;
        free(texts[i]);
    }
    free(texts);
    if (any)
        fprintf(out, "\nwhat fits: flopcast tune %s%s\n", view->set->file,
            has_overrides(&view->set->points[0]) ? " with what --set gives here" : "");
}

/* A point and the curve that it lies on. */
struct member {
    uint64_t key;
    int point;
};

/* Ends of a curve: the points with the smallest and the largest cluster that ran, and those that were published; -1:
 * none. */
struct curve {
    int point; /* its first point in the sweep */
    int first, last, published_first, published_last;
};

static double gpus_of(const struct view *view, int i)
{
    return (double)view->set->points[i].options.cluster.gpus;
}

static void extend(const struct view *view, int *first, int *last, int i)
{
    if (*first < 0 || gpus_of(view, i) < gpus_of(view, *first))
        *first = i;
    if (*last < 0 || gpus_of(view, i) > gpus_of(view, *last))
        *last = i;
}

static void print_change(FILE *out, const char *what, double from, double to)
{
    fprintf(out, "%s %.2f -> %.2f TFLOPS/GPU (%+.1f %%)", what, from, to, 100 * (to / from - 1));
}

/* How sure the change along a curve is. */
static void print_change_band(FILE *out, struct view *view, const struct curve *curve)
{
    const struct scenario_result *from = &view->results[curve->first], *to = &view->results[curve->last];
    struct scenario_band band = scenario_ratio_band(from, to);
    double doublings = log2(gpus_of(view, curve->last) / gpus_of(view, curve->first));
    struct scenario_band wide = scenario_widen(band, to->discrepancy_doubling * sqrt(doublings));
    if (band.n > 0)
        fprintf(out,
            "; median of %d samples %+.1f %%, 90 %% between %+.1f and %+.1f %%, with what the model leaves out between "
            "%+.1f and %+.1f %%",
            band.n, 100 * (band.median - 1), 100 * (band.low - 1), 100 * (band.high - 1), 100 * (wide.low - 1),
            100 * (wide.high - 1));
}

static void print_curve(FILE *out, struct view *view, const struct curve *curve)
{
    const struct scenario_point *points = view->set->points;
    fputs(vary_name(&view->vary, &points[curve->first], view->arena), out);
    fprintf(out, ", %.0f -> %.0f GPUs: ", gpus_of(view, curve->first), gpus_of(view, curve->last));
    print_change(
        out, "simulated", view->results[curve->first].tflops_per_gpu, view->results[curve->last].tflops_per_gpu);
    if (view->sampled)
        print_change_band(out, view, curve);
    if (curve->published_first != curve->published_last) {
        double from = points[curve->published_first].published.tflops_per_gpu;
        double to = points[curve->published_last].published.tflops_per_gpu;
        bool alike = gpus_of(view, curve->published_first) == gpus_of(view, curve->first) &&
                     gpus_of(view, curve->published_last) == gpus_of(view, curve->last);
        if (alike)
            print_change(out, "; published", from, to);
    }
    fputc('\n', out);
}

/* Whether b is another reading of the publication: what was published is the same for both curves. */
static bool same_published(const struct view *view, const struct curve *a, const struct curve *b)
{
    const struct scenario_point *points = view->set->points;
    return a->published_first >= 0 && b->published_first >= 0 && a->first != a->last && b->first != b->last &&
           strcmp(points[a->published_first].published.id, points[b->published_first].published.id) == 0 &&
           strcmp(points[a->published_last].published.id, points[b->published_last].published.id) == 0;
}

static double change_of(const struct view *view, const struct curve *curve)
{
    return 100 * (view->results[curve->last].tflops_per_gpu / view->results[curve->first].tflops_per_gpu - 1);
}

/* Where a scenario sweeps what a publication leaves open, several curves answer to the same published one: the range of
 * their changes. */
static void print_readings(FILE *out, struct view *view, const struct curve *curves, int n)
{
    const struct scenario_point *points = view->set->points;
    for (int c = 0; c < n; c++) {
        bool counted = curves[c].first == curves[c].last;
        for (int d = 0; d < c && !counted; d++)
            counted = same_published(view, &curves[d], &curves[c]);
        if (counted)
            continue;
        double low = change_of(view, &curves[c]), high = low;
        int readings = 1;
        for (int d = c + 1; d < n; d++)
            if (same_published(view, &curves[c], &curves[d])) {
                low = fmin(low, change_of(view, &curves[d]));
                high = fmax(high, change_of(view, &curves[d]));
                readings++;
            }
        if (readings == 1)
            continue;
        double from = points[curves[c].published_first].published.tflops_per_gpu;
        double to = points[curves[c].published_last].published.tflops_per_gpu;
        fprintf(out,
            "%s, batch %" PRId64 ", %d readings of the publication: simulated %+.1f to %+.1f %%; published %+.1f %%\n",
            points[curves[c].first].model.shape.name, points[curves[c].first].options.strategy.train.micro_batch,
            readings, high, low, 100 * (to / from - 1));
    }
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

static int find_curves(struct curve *curves, const struct view *view)
{
    int n = view->set->n_points, n_curves = 0;
    struct member *members = xcalloc((size_t)n, sizeof *members);
    for (int i = 0; i < n; i++)
        members[i] = (struct member){record_curve(&view->set->points[i].options), i};
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
    qsort(curves, (size_t)n_curves, sizeof *curves, by_point);
    return n_curves;
}

static void print_curves(FILE *out, struct view *view)
{
    struct curve *curves = xcalloc((size_t)view->set->n_points, sizeof *curves);
    int n = find_curves(curves, view), printed = 0;
    for (int c = 0; c < n; c++)
        if (curves[c].first != curves[c].last) {
            fputs(printed++ ? "" : "\n", out);
            print_curve(out, view, &curves[c]);
        }
    print_readings(out, view, curves, n);
    free(curves);
}

/* "H100-80GB, 8 x 400 Gb/s, and nodes of a second kind: DGX A100". */
static const char *cluster_of(const struct view *view)
{
    const struct scenario_set *set = view->set;
    const struct hw *first = &set->points[0].hw;
    for (int i = 1; i < set->n_points; i++) {
        const struct hw *hw = &set->points[i].hw;
        bool second = hw->second_from > 0 && first->second_from > 0;
        if (strcmp(hw->cluster.name, first->cluster.name) != 0 || (hw->second_from > 0) != (first->second_from > 0) ||
            (second && strcmp(hw->second_node.name, first->second_node.name) != 0))
            return "several clusters";
    }
    if (first->second_from == 0)
        return first->cluster.name;
    return arena_printf(
        view->arena, "%s, and nodes of a second kind: %s", first->cluster.name, first->second_node.name);
}

/* Of the largest job. */
static void print_slow(FILE *out, const struct view *view)
{
    static const double LEAST_SHARE = 0.01, NEARLY_ALL = 0.995;
    int first = -1, last = -1;
    for (int i = 0; i < view->set->n_points; i++)
        if (view->results[i].slow.share >= LEAST_SHARE)
            extend(view, &first, &last, i);
    if (last < 0)
        return;
    const struct scenario_result *of = &view->results[last];
    double tflops_s = of->tflops_per_gpu * of->exec.step_time_s;
    int hosts = hw_hosts_per_node(&view->set->points[last].hw);
    bool nearly_all = of->slow.share >= NEARLY_ALL;
    const char *share = nearly_all ? "practically all" : arena_printf(view->arena, "%.2g %% of", 100 * of->slow.share);
    fputc('\n', out);
    words_paragraph(
        out, arena_printf(view->arena,
                 "slow %s: %s clusters of %.0f GPUs have one: %.1f TFLOPS/GPU, others %.1f; above is the mean",
                 hosts > 1 ? "hosts" : "nodes", share, gpus_of(view, last), tflops_s / of->slow.some_s,
                 tflops_s / of->slow.none_s));
}

/* A share of another peak than that of 16 bit, which jobs beside it have. */
static void print_narrow(FILE *out, const struct view *view, int precision, const char *text)
{
    for (int i = 0; i < view->set->n_points; i++)
        if ((int)view->set->points[i].options.strategy.train.precision == precision) {
            fputs(text, out);
            return;
        }
}

/* What was published is of another run. */
static void print_left_out(FILE *out, const struct scenario_set *set)
{
    const char *names = NULL;
    for (int i = 0; i < set->n_points && !names; i++)
        names = set->points[i].published.left_out;
    if (names)
        fprintf(out, "\npublished figures left out: %s %s\n", names, strchr(names, ',') ? "differ" : "differs");
}

void output_table(FILE *out, const struct scenario_set *set, const struct scenario_result *results)
{
    struct arena arena = ARENA_INIT;
    struct sure sure = {0};
    struct view view = {.set = set, .results = results, .arena = &arena, .sure = &sure};
    const struct scenario *first = &set->points[0].options;
    view_begin(&view);
    fprintf(out, "%s%s%s\n", first->name, first->description ? ": " : "", first->description ? first->description : "");
    fprintf(out, "%s\n\n", cluster_of(&view));
    struct table table = {0};
    for (int i = 0; i < set->n_points; i++)
        add_point(&view, &table, i);
    table_finish(out, &table);
    if (view.published_allocated || view.published_reserved)
        fputs(
            "\npublished peaks of memory: the peak beside HBM peak (allocated by tensors), reserved beside reserved\n",
            out);
    print_left_out(out, set);
    print_narrow(
        out, &view, PRECISION_FP8_MIXED, "\nMFU of fp8_mixed: of FP8's dense peak, which is twice that of 16 bit\n");
    print_narrow(out, &view, PRECISION_FP4_MIXED,
        "\nMFU of fp4_mixed: of NVFP4's dense peak, which is four times that of 16 bit or more\n");
    print_programs(out, set, results, &view.vary);
    sure_print(out, &sure);
    print_slow(out, &view);
    print_ooms(out, &view);
    print_curves(out, &view);
    if (first->assumptions)
        words_assumptions(out, first->assumptions);
    sure_end(&sure);
    vec_free(&view.vary.options);
    arena_release(&arena);
}
