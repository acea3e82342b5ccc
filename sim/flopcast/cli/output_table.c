/* The table of `flopcast run` for people, and the notes below it.
 *
 * Columns come from three places: settings that name a point (model, strategy, what is swept),
 * the speed with its interval and what was published beside it, and the shown columns of
 * store/record.h in the order of their places. A column that says nothing in all points is left
 * out, and each has a rank by which a narrow terminal drops it (table_spare()). Below stand
 * notes on what a reader could take wrongly, each only where it applies.
 *
 * What is subtle: points that are other readings of one publication (published.readings) are
 * folded into the row of the first; only their range is shown, unless there is room for all.
 * Programs (stages) whose numbers print alike share a row. Points that are out of memory for the
 * same reason share a paragraph, found by the text of the reason. */
#include "cli/output.h"
#include "cli/output_view.h"
#include "rows/sure.h"
#include "rows/table.h"
#include "rows/vary.h"
#include "rows/words.h"
#include "scenario/sample.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct jobs {
    const struct scenario_set *set;
    const struct scenario_result *results;
    const struct vary *vary;
    struct arena *arena;
};

/* Of several points what tells them apart, too; GPUs first, as a narrow screen cuts the end. */
static const char *point_label(const struct jobs *jobs, int i)
{
    const char *gpus =
        arena_printf(jobs->arena, "%" PRId64 " GPUs", jobs->set->points[i].options.cluster.gpus);
    return jobs->set->n_points == 1
               ? gpus
               : arena_printf(jobs->arena, "%s, %s", gpus,
                     vary_name(jobs->vary, &jobs->set->points[i], jobs->arena));
}

/* Equal means equal as printed. */
static bool output_table_is_alike(const struct exec_program *a, const struct exec_program *b)
{
    const struct exec_breakdown *x = &a->breakdown, *y = &b->breakdown;
    static const double SHOWN_S = 0.5e-4, SHOWN_BYTES = 0.05 * 0x1p30; /* half of the last digit */
    return fabs(x->compute_s - y->compute_s) < SHOWN_S &&
           fabs(x->exposed_comm_s - y->exposed_comm_s) < SHOWN_S &&
           fabs(x->bubble_s - y->bubble_s) < SHOWN_S &&
           fabs(x->host_bound_s - y->host_bound_s) < SHOWN_S &&
           fabs(x->other_idle_s - y->other_idle_s) < SHOWN_S &&
           fabs(a->memory.peak_allocated_bytes - b->memory.peak_allocated_bytes) < SHOWN_BYTES &&
           fabs(a->memory.peak_reserved_bytes - b->memory.peak_reserved_bytes) < SHOWN_BYTES;
}

/* The last of the programs from p on that are alike. */
static int last_alike(const struct exec_result *exec, int p)
{
    int last = p;
    while (last + 1 < exec->n_programs &&
           output_table_is_alike(&exec->programs[p], &exec->programs[last + 1]))
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

/* The fullest one stands for a range that it is in. */
static void add_program(const struct jobs *jobs, struct table *table, int i, int p, int last)
{
    const struct exec_result *exec = &jobs->results[i].exec;
    int shown = exec->fullest >= p && exec->fullest <= last ? exec->fullest : p;
    const struct exec_breakdown *part = &exec->programs[shown].breakdown;
    const struct exec_memory *memory = &exec->programs[shown].memory;
    const char *fullest = shown == exec->fullest ? " (fullest)" : "";
    table_row(table);
    table_text(table, "point", "", point_label(jobs, i));
    table_number_as(table, "program", "",
        p == last ? arena_printf(jobs->arena, "%d%s", p, fullest)
                  : arena_printf(jobs->arena, "%d to %d%s", p, last, fullest));
    table_number(table, "compute", "s", 4, part->compute_s);
    table_number(table, "exposed comm", "s", 4, part->exposed_comm_s);
    table_number(table, "bubble", "s", 4, part->bubble_s);
    table_number(table, "host bound", "s", 4, part->host_bound_s);
    table_number(table, "other idle", "s", 4, part->other_idle_s);
    table_number(table, "HBM peak", "GiB", 1, memory->peak_allocated_bytes / GIB);
    table_number(table, "reserved", "GiB", 1, memory->peak_reserved_bytes / GIB);
}

/* Rows of all points of several programs. */
static int output_table_count_rows(const struct jobs *jobs)
{
    int n = 0;
    for (int i = 0; i < jobs->set->n_points; i++) {
        const struct exec_result *exec = &jobs->results[i].exec;
        n += exec->n_programs < 2 || exec->status != EXEC_OK ? 0 : count_groups(exec);
    }
    return n;
}

static void print_programs(FILE *out, const struct scenario_set *set,
    const struct scenario_result *results, const struct vary *vary)
{
    enum { MANY = 8 };
    struct arena arena = ARENA_INIT;
    const struct jobs jobs = {set, results, vary, &arena};
    struct table table = {0};
    bool some = false, many = output_table_count_rows(&jobs) > MANY;
    for (int i = 0; i < jobs.set->n_points; i++) {
        const struct exec_result *exec = &jobs.results[i].exec;
        if (exec->n_programs < 2 || exec->status != EXEC_OK)
            continue;
        some |= many;
        for (int p = 0, last; p < exec->n_programs; p = last + 1) {
            last = last_alike(exec, p);
            if (!many || (exec->fullest >= p && exec->fullest <= last))
                add_program(&jobs, &table, i, p, last);
        }
    }
    const char *head = some ? "\nby program, of more than 8 lines the fullest of each point:\n"
                            : "\nby program:\n";
    fputs(table.rows == 0 ? "" : head, out);
    table_finish(out, &table);
    arena_release(&arena);
}

static void print_plan(const struct plan *plan, const struct scenario_point *point, bool first)
{
    printf("%s%s: %s %s, batch %lld, %lld GPU%s\n", first ? "" : "\n", point->options.name,
        point->model.shape.name, strategy_label(&point->options.strategy),
        (long long)point->options.strategy.train.micro_batch,
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

static bool output_table_is_shown(const struct view *view, const struct record_column *column)
{
    bool shown = !column->shown_if;
    for (int i = 0; i < view->set->n_points && !shown; i++)
        shown = column->shown_if(&(struct record_source){&view->set->points[i], &view->results[i]});
    return shown && column->shown.heading;
}

static int output_table_by_place(const void *a, const void *b)
{
    const struct record_column *const *x = a, *const *y = b;
    return (*x)->shown.place - (*y)->shown.place;
}

static void find_shown(struct view *view)
{
    for (int i = 0; i < n_record_columns; i++)
        if (output_table_is_shown(view, &record_columns[i]))
            view->shown[view->n_shown++] = &record_columns[i];
    qsort(view->shown, (size_t)view->n_shown, sizeof *view->shown, output_table_by_place);
}

/* A setting that the command line gave is no reading any more. */
bool view_is_reading(const struct view *view, const char *path)
{
    const struct scenario_point *first = &view->set->points[0];
    const char *at = first->options.published.readings;
    bool named = false;
    for (size_t n; at && *at && !named; at += n + (at[n] != '\0')) {
        n = strcspn(at, ", ");
        named = strncmp(at, path, n) == 0 && path[n] == '\0';
    }
    return named && scenario_origin(first, path).kind != ORIGIN_COMMAND_LINE;
}

static bool same_but_readings(const struct view *view, const struct vary *all, int a, int b)
{
    for (int v = 0; v < all->options.n; v++)
        if (!view_is_reading(view, all->options.at[v].path) &&
            vary_differs(
                &all->options.at[v], &view->set->points[a].options, &view->set->points[b].options))
            return false;
    return true;
}

/* all: rows for all points, as there is room. reading_of: the first point that differs in
 * readings alone, or the point itself. */
static void find_readings(struct view *view, bool all)
{
    struct vary vary;
    vary_find(&vary, view->set, view->arena);
    bool any = view->set->points[0].options.published.readings != NULL;
    view->reading_of = ARENA_ARRAY(view->arena, int, view->set->n_points);
    for (int i = 0; i < view->set->n_points; i++) {
        view->reading_of[i] = i;
        for (int j = 0; j < i && any && view->reading_of[i] == i; j++)
            if (view->reading_of[j] == j && same_but_readings(view, &vary, i, j))
                view->reading_of[i] = j;
        view->folded |= !all && view->reading_of[i] != i;
    }
    vec_free(&vary.options);
}

const struct sure_range *view_range(const struct view *view, int i)
{
    return sure_of_speed(view->sure, &view->set->points[i], view->results[i].mfu);
}

static void view_begin(struct view *view, bool all)
{
    find_readings(view, all);
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
        view->one_strategy &= strcmp(strategy_label(&point->options.strategy),
                                  strategy_label(&first->options.strategy)) == 0;
        view->one_batch &=
            point->options.strategy.train.micro_batch == first->options.strategy.train.micro_batch;
    }
}

/* The number, or a dash where there is none. */
static void output_table_number(struct table *table, const char *name, const char *unit, int spare,
    bool known, int digits, double value)
{
    table_number(table, name, unit, digits, known ? value : TABLE_UNKNOWN);
    table_spare(table, spare);
}

/* A number to as many digits as its interval has, a text of them, or a dash. */
static void output_table_sure_cell(struct table *table, const char *name, const char *unit,
    int spare, bool known, const char *text)
{
    table_number_as(table, name, unit, known ? text : "-");
    table_spare(table, spare);
}

static void spread(struct table *table, const char *name, int spare, struct scenario_band band,
    const struct sure_range *range)
{
    struct arena *arena = &table->numbers;
    output_table_sure_cell(table, name, "TFLOPS/GPU", spare, band.n > 0,
        arena_printf(arena, "%s-%s", sure_number(arena, range, band.low, 2),
            sure_number(arena, range, band.high, 2)));
}

static void deviation(struct table *table, const char *unit, int spare, bool known,
    double simulated, double published)
{
    double off = known ? simulated / published - 1 : 0;
    table_number_as(
        table, "deviation", unit, known ? words_number(&table->numbers, 100 * off, 1, true) : "-");
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
        if (view->folded && view_is_reading(view, option->path))
            continue;
        table_text(table, option->path, "", vary_short(option, &point->options, view->arena));
    }
    table_number(table, "batch", "/GPU", 0, (double)point->options.strategy.train.micro_batch);
    table_spare(table, view->one_batch ? RECORD_SPARE_BATCH : 0);
    table_number(table, "GPUs", "", 0, (double)point->options.cluster.gpus);
}

static void add_shown(struct view *view, struct table *table, const struct record_column *column,
    const struct record_source *source, const struct sure_range *range)
{
    const char *heading = column->shown.heading;
    double value = column->shown.scale * record_number(source->result, column);
    if (column->shown.counted)
        heading = arena_printf(view->arena, "%s%s", words_counted_all(view->set), heading);
    if (column->shown.of_step)
        value /= source->result->exec.step_time_s;
    int digits = column->shown.digits;
    struct arena *arena = &table->numbers;
    output_table_sure_cell(table, heading, column->shown.unit, (int)column->shown.spare,
        !column->known || column->known(source),
        column->shown.sure ? sure_number(arena, range, value, digits)
                           : arena_printf(arena, "%.*f", digits, value));
}

static void add_published_memory(struct view *view, struct table *table,
    const struct scenario_point *point, const struct exec_result *exec)
{
    bool ok = exec->status == EXEC_OK;
    const struct exec_memory *memory = &exec->memory;
    double allocated = point->published.peak_allocated_bytes,
           reserved = point->published.peak_reserved_bytes;
    if (view->published_allocated) {
        output_table_number(table, "published", "peak GiB", RECORD_SPARE_ALLOCATED, allocated > 0,
            1, allocated / GIB);
        deviation(table, "% of peak", RECORD_SPARE_ALLOCATED_DEVIATION, ok && allocated > 0,
            memory->peak_allocated_bytes, allocated);
    }
    if (view->published_reserved) {
        output_table_number(table, "published", "reserved GiB", RECORD_SPARE_RESERVED, reserved > 0,
            1, reserved / GIB);
        deviation(table, "% of reserved", RECORD_SPARE_RESERVED_DEVIATION, ok && reserved > 0,
            memory->peak_reserved_bytes, reserved);
    }
}

/* The range of the other readings' speeds; "-" where there are none. */
static void add_readings(
    struct view *view, struct table *table, int i, const struct sure_range *range)
{
    double low = HUGE_VAL, high = 0;
    for (int j = 0; j < view->set->n_points; j++)
        if (j != i && view->reading_of[j] == i && view->results[j].exec.status == EXEC_OK) {
            low = fmin(low, view->results[j].tflops_per_gpu);
            high = fmax(high, view->results[j].tflops_per_gpu);
        }
    const char *from = sure_number(view->arena, range, low, 2),
               *to = sure_number(view->arena, range, high, 2);
    table_number_as(table, "other readings", "TFLOPS/GPU",
        !(high > 0)             ? "-"
        : strcmp(from, to) == 0 ? from
                                : arena_printf(view->arena, "%s-%s", from, to));
}

static void output_table_add_point(struct view *view, struct table *table, int i)
{
    const struct scenario_point *point = &view->set->points[i];
    const struct scenario_result *result = &view->results[i];
    const struct scenario_published *published = &point->published;
    bool ok = result->exec.status == EXEC_OK,
         known = published->found && published->tflops_per_gpu > 0;
    static const struct sure_range none = {0};
    const struct sure_range *range = ok ? view_range(view, i) : &none;
    struct arena *arena = view->arena;
    table_row(table);
    name_point(view, table, point);
    table_number_as(table, "TFLOPS", "/GPU (90 %)",
        ok ? sure_with_range(arena, range, result->tflops_per_gpu, 2) : "OOM");
    table_mark(table, ok ? TABLE_PLAIN : TABLE_BAD);
    if (view->sure->measured.n > 0)
        output_table_sure_cell(table, "simulated", "TFLOPS", 0, ok,
            sure_number(arena, range, result->tflops_per_gpu, 2));
    if (view->folded)
        add_readings(view, table, i, range);
    if (view->sampled) {
        struct scenario_band band = scenario_band(result, SAMPLED_TFLOPS);
        output_table_sure_cell(table, "median of samples", "TFLOPS/GPU", RECORD_SPARE_NUMBERS,
            band.n > 0, sure_number(arena, range, band.median, 2));
        spread(table, "spread of inputs", 0, band, range);
    }
    if (view->published) {
        table_number_as(table, "published", "TFLOPS/GPU",
            published->found && published->oom ? "OOM"
            : known ? arena_printf(view->arena, "%.2f", published->tflops_per_gpu)
                    : "-");
        deviation(table, "%", 0, ok && known, result->tflops_per_gpu, published->tflops_per_gpu);
    }
    for (int c = 0; c < view->n_shown; c++)
        add_shown(view, table, view->shown[c], &(struct record_source){point, result}, range);
    add_published_memory(view, table, point, &result->exec);
}

/* Why a point is out of memory, behind its name and a line end; NULL: it is not. Free it. */
static char *oom_text(struct view *view, int i)
{
    char *text = NULL;
    size_t n = 0;
    if (view->results[i].exec.status != EXEC_OOM)
        return NULL;
    FILE *out = xmemstream(&text, &n);
    fputs(vary_name(&view->vary, &view->set->points[i], view->arena), out);
    fputc('\n', out);
    words_oom(out, &view->results[i].exec);
    fclose(out);
    return text;
}

/* Sequences of the largest step of the whole job. */
static int64_t largest_batch(const struct scenario_set *set)
{
    int64_t most = 0;
    for (int i = 0; i < set->n_points; i++) {
        const struct scenario *options = &set->points[i].options;
        int64_t ranks = strategy_data_ranks(&options->strategy.parallelism, options->cluster.gpus),
                batch = strategy_batch(&options->strategy.train).samples * ranks;
        most = batch > most ? batch : most;
    }
    return most;
}

/* The search of what fits, with what the command line gave except the micro-batch and what is
 * recomputed, which it is to find. Of a model it compares strategies, which takes the batch of the
 * job. */
static void print_remedy(FILE *out, const struct view *view)
{
    static const char *const searched[] = {
        "train.micro_batch", "train.activation_checkpointing", NULL};
    const struct scenario *first = &view->set->points[0].options;
    const char *batch = "";
    if (strcmp(first->model_path, view->set->file) == 0 && first->strategy.train.global_batch == 0)
        batch = arena_printf(view->arena, " --global-batch %" PRId64, largest_batch(view->set));
    fputc('\n', out);
    words_command(out, "what fits: ",
        arena_printf(view->arena, "flopcast tune %s%s%s", words_file(view->arena, view->set->file),
            view_overrides(view, searched), batch));
}

/* Points that lack the same for the same reason are reported together: DDP lacks as much on 8 GPUs
 * as on 512. */
static void output_table_print_ooms(FILE *out, struct view *view)
{
    enum { MOST_REASONS = 6 }; /* on a screen */
    int n = view->set->n_points, reasons = 0, more = 0;
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
        int64_t last = gpus;
        for (int j = i + 1; j < n; j++)
            if (texts[j] && strcmp(texts[j], texts[i]) == 0) {
                int64_t other = view->set->points[j].options.cluster.gpus;
                if (other != last) { /* else they differ in what means nothing here */
                    sizes = arena_printf(view->arena, "%s, %" PRId64, sizes, other);
                    several = true;
                }
                last = other;
                free(texts[j]);
                texts[j] = NULL;
            }
        bool shown = ++reasons <= MOST_REASONS || screen_width(out) == 0;
        more += !shown;
        if (!shown) {
            free(texts[i]);
            continue;
        }
        fputc('\n', out);
        words_paragraph_of(out, "out of memory: %.*s%s %s GPU%s", name, texts[i],
            several ? ", on" : ",", sizes, several ? "s" : plural(gpus));
        words_lines(out, texts[i] + name + 1);
        free(texts[i]);
    }
    free(texts);
    if (more > 0) {
        fputc('\n', out);
        words_paragraph_of(
            out, "out of memory, too, with other numbers: %d more (--wide: all)", more);
    }
    if (reasons > 0)
        print_remedy(out, view);
}

static const char *cluster_of(const struct view *view)
{
    const struct scenario_set *set = view->set;
    const char *first = set->points[0].hw.cluster.name;
    for (int i = 1; i < set->n_points; i++)
        if (strcmp(set->points[i].hw.cluster.name, first) != 0)
            return "several clusters";
    return first;
}

/* Of the largest job. The simulated mean is over clusters with and without a slow node. This
 * line takes the two apart. */
static void print_slow(FILE *out, const struct view *view)
{
    static const double LEAST_SHARE = 0.01, NEARLY_ALL = 0.995;
    int last = -1;
    for (int i = 0; i < view->set->n_points; i++)
        if (view->results[i].slow.share >= LEAST_SHARE &&
            (last < 0 || view->set->points[i].options.cluster.gpus >
                             view->set->points[last].options.cluster.gpus))
            last = i;
    if (last < 0)
        return;
    const struct scenario_result *of = &view->results[last];
    double tflops_s = of->tflops_per_gpu * of->exec.step_time_s;
    int hosts = hw_hosts_per_node(&view->set->points[last].hw);
    bool nearly_all = of->slow.share >= NEARLY_ALL;
    const char *share = nearly_all ? "practically all"
                                   : arena_printf(view->arena, "%.2g %% of", 100 * of->slow.share);
    fputc('\n', out);
    words_paragraph(out, arena_printf(view->arena,
                             "slow %s: %s clusters of %.0f GPUs have one: %.1f TFLOPS/GPU, others "
                             "%.1f; above is the mean",
                             hosts > 1 ? "hosts" : "nodes", share,
                             (double)view->set->points[last].options.cluster.gpus,
                             tflops_s / of->slow.some_s, tflops_s / of->slow.none_s));
}

/* A share of another peak than that of 16 bit, which jobs beside it have. */
static void print_narrow(FILE *out, const struct view *view, int precision, const char *text)
{
    for (int i = 0; i < view->set->n_points; i++)
        if ((int)view->set->points[i].options.strategy.train.precision == precision) {
            fputc('\n', out);
            words_paragraph(out, text);
            return;
        }
}

/* What was published is of another run. */
static void output_table_print_left_out(FILE *out, const struct scenario_set *set)
{
    const char *names = NULL;
    for (int i = 0; i < set->n_points && !names; i++)
        names = set->points[i].published.left_out;
    if (names) {
        fputc('\n', out);
        words_paragraph_of(out, "published figures left out: %s %s", names,
            strchr(names, ',') ? "differ" : "differs");
    }
}

/* TFLOPS and MFU beside each other that count other FLOP. */
static void print_formula(FILE *out, const struct view *view)
{
    static const double FAR = 0.1;
    for (int i = 0; i < view->set->n_points; i++) {
        const struct scenario_point *point = &view->set->points[i];
        const struct scenario_result *result = &view->results[i];
        bool two = point->model.shape.family == MODEL_T5;
        if (result->exec.status != EXEC_OK || point->options.flops_formula != FLOPS_PARAMETERS ||
            fabs(result->tflops_per_gpu / result->model_tflops_per_gpu - 1) < FAR)
            continue;
        fputc('\n', out);
        words_paragraph_of(out,
            "MFU: of the model's own FLOP, here %.0f of %.0f TFLOPS/GPU. The column TFLOPS has the "
            "source's formula, 6 x parameters x tokens%s.",
            result->model_tflops_per_gpu, result->model_tflops_per_gpu / result->mfu,
            two ? ", which counts each token through both stacks, of which it passes one" : "");
        return;
    }
}

static void print_readings(FILE *out, const struct view *view)
{
    const char *first = "";
    for (int v = 0; v < view->vary.options.n; v++) {
        const struct vary_option *option = &view->vary.options.at[v];
        if (view_is_reading(view, option->path))
            first = arena_printf(view->arena, "%s%s%s %s", first, *first ? ", " : "", option->path,
                vary_short(option, &view->set->points[0].options, view->arena));
    }
    fputc('\n', out);
    words_paragraph_of(out,
        "other readings of what the publication leaves open than %s: --wide has a row for each of "
        "%d points",
        first, view->set->n_points);
}

static void print_sampled(FILE *out, const struct view *view)
{
    fputc('\n', out);
    words_paragraph_of(out,
        "spread of inputs: 5 to 95 %% of %d samples, with numbers drawn from their standard errors "
        "and other seeds. What the model leaves out is not in it: the 90 %% beside TFLOPS, which "
        "measured runs give, have it",
        view->results[0].n_samples);
}

static void output_table_print_notes(FILE *out, struct view *view)
{
    if (view->folded)
        print_readings(out, view);
    if (view->published_allocated || view->published_reserved) {
        fputc('\n', out);
        words_paragraph(out, "published peaks of memory: the peak beside HBM peak (allocated by "
                             "tensors), reserved beside reserved");
    }
    output_table_print_left_out(out, view->set);
    print_formula(out, view);
    print_narrow(out, view, PRECISION_FP8_MIXED,
        "MFU of fp8_mixed: of FP8's dense peak, which is twice that of 16 bit");
    print_narrow(out, view, PRECISION_FP4_MIXED,
        "MFU of fp4_mixed: of NVFP4's dense peak, which is four times that of 16 bit or more");
    print_programs(out, view->set, view->results, &view->vary);
    if (view->sampled)
        print_sampled(out, view);
    sure_print(out, view->sure);
    print_slow(out, view);
    output_table_print_ooms(out, view);
    view_curves(out, view);
}

static void output_table_print_title(FILE *out, const struct view *view)
{
    const struct scenario *first = &view->set->points[0].options;
    words_paragraph_of(out, "%s%s%s", first->name, first->description ? ": " : "",
        first->description ? first->description : "");
    words_paragraph(out, cluster_of(view));
    fputc('\n', out);
}

void output_table(FILE *out, const struct scenario_set *set, const struct scenario_result *results,
    struct sure *sure)
{
    struct arena arena = ARENA_INIT;
    struct view view = {.set = set, .results = results, .arena = &arena, .sure = sure};
    view_begin(&view, screen_width(out) == 0);
    view_answer(out, &view);
    output_table_print_title(out, &view);
    struct table table = {0};
    for (int i = 0; i < set->n_points; i++)
        if (!view.folded || view.reading_of[i] == i)
            output_table_add_point(&view, &table, i);
    if (table.rows == 1)
        table_print_row(out, &table);
    else
        table_print(out, &table);
    table_free(&table);
    output_table_print_notes(out, &view);
    if (set->points[0].options.assumptions)
        words_assumptions(out, set->points[0].options.assumptions);
    vec_free(&view.vary.options);
    arena_release(&arena);
}
