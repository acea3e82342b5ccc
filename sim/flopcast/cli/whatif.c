/* `flopcast whatif`: a scenario as it is and changed, side by side, with difference and ratio.
 *
 * The base and each change are a struct whatif_variant with its own set of points. All get what
 * --base says, a change gets its own settings behind that. Points are compared one by one in the
 * order of the sweep, so sets must have equally many; where they do not, the message names the
 * setting that sweeps. Each is simulated with rank 0 traced, for its collectives, which changes
 * nothing in the result.
 *
 * What is subtle: steps of the two sides may have different numbers of tokens (another batch,
 * more GPUs); then speeds are compared and not step times. A point that is out of memory shows
 * what it would need in place of its peak. Where identities of all points are the same, nothing
 * is simulated. */
#include "cli/cli.h"

#include "base/files.h"
#include "options/arguments.h"
#include "cli/comm.h"
#include "cli/own_runs.h"
#include "rows/rows.h"
#include "rows/sure.h"
#include "rows/vary.h"
#include "options/waiting.h"
#include "rows/words.h"
#include "scenario/identity.h"
#include "store/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

COMMAND(cmd_whatif, 14, "whatif", 0, "compare a scenario with changed ones, side by side",
    "flopcast whatif llama2_7b_h100_fsdp --base cluster.gpus=64 \\\n    --set "
    "train.micro_batch=1");

enum { MOST_COLLECTIVES = 6 }; /* of a side, in a table */

/* The scenario as it is, or a changed one: what is set on top of what holds for all. */
struct whatif_variant {
    VEC(struct scenario_override) overrides;
    const char *label; /* "train.micro_batch=16 run.seed=2" */
    struct scenario_set set;
    struct scenario_result *results; /* a point each, as comms; of the struct whatif */
    struct scenario_comm *comms;
    const struct sure_range **given; /* a point each, given what was measured; NULL: nothing was */
};

struct whatif {
    const char *file;
    enum records_format format;
    struct overrides overrides; /* of all */
    struct own_texts measured;
    struct own_runs own;
    struct sure sure;
    VEC(struct whatif_variant) variants; /* the first is the scenario as it is */
    struct scenario_set all;             /* their points, one variant after the other */
    struct scenario_result *results;
    struct arena *arenas;
    struct arena arena;
};

static void begin_variant(struct whatif *whatif, const char *label)
{
    vec_push(&whatif->variants, (struct whatif_variant){.label = label});
}

static void take_change(void *self, const struct argument *argument)
{
    struct whatif *whatif = self;
    if (whatif->variants.n == 1)
        begin_variant(whatif, "");
    struct whatif_variant *variant = &whatif->variants.at[whatif->variants.n - 1];
    vec_push(&variant->overrides, argument_override(argument, &whatif->arena));
    variant->label = arena_printf(
        &whatif->arena, "%s%s%s", variant->label, *variant->label ? " " : "", argument->text);
}

static bool lacks_change(const struct whatif *whatif)
{
    return whatif->variants.n == 1 || whatif->variants.at[whatif->variants.n - 1].overrides.n == 0;
}

static void take_or(void *self, const struct argument *argument)
{
    if (lacks_change(self))
        argp_error(
            argument->state, "--or stands between two changes, as in --set A=1 --or --set A=2");
    begin_variant(self, "");
}

static void whatif_check(void *self, struct argp_state *state)
{
    if (lacks_change(self))
        argp_error(state, "a change is missing, as in --set train.micro_batch=16");
}

static const struct command_option whatif_options[] = {
    {"set", "KEY=VALUE", "The change; several together are one changed scenario", OPTION_TAKE,
        .take = take_change, .flags = OPTION_KEYS},
    {"or", NULL, "Changes after this are another changed scenario", OPTION_TAKE, .take = take_or,
        .flags = OPTION_LIST | OPTION_NEXT},
    {"base", "KEY=VALUE",
        "Set it in the scenario and in all changed ones, as in cluster.gpus=64; so do the options "
        "below",
        OPTION_SET, .member = offsetof(struct whatif, overrides)},
    MEASURED_OPTION(struct whatif),
    JOB_OPTIONS(struct whatif),
    RECORDS_OPTION(struct whatif),
    {0},
};

static bool varies(const struct vary *vary, const char *path)
{
    for (int i = 0; i < vary->options.n; i++)
        if (strcmp(vary->options.at[i].path, path) == 0)
            return true;
    return false;
}

/* "cluster.gpus and model": what this set sweeps and the other does not, or sweeps otherwise.
 * First what only this set sweeps; if there is none, all that it sweeps. */
static const char *swept_keys(
    const struct scenario_set *set, const struct scenario_set *other, struct arena *arena)
{
    struct vary here, there;
    vary_find(&here, set, arena);
    vary_find(&there, other, arena);
    const char *text = "";
    for (int all = 0; all < 2 && !*text; all++)
        for (int i = 0; i < here.options.n; i++)
            if (all || !varies(&there, here.options.at[i].path))
                text = arena_printf(
                    arena, "%s%s%s", text, *text ? " and " : "", here.options.at[i].path);
    vec_free(&here.options);
    vec_free(&there.options);
    return text;
}

/* Points are compared in the order of the sweep, so every changed scenario has to have as many. */
static void whatif_load(struct whatif *whatif, int v, struct diag *diag)
{
    struct whatif_variant *variant = &whatif->variants.at[v], *base = &whatif->variants.at[0];
    struct overrides all = {0};
    for (int i = 0; i < whatif->overrides.list.n; i++)
        overrides_push(&all, whatif->overrides.names.at[i], whatif->overrides.list.at[i]);
    for (int i = 0; i < variant->overrides.n; i++)
        overrides_push(&all, NULL, variant->overrides.at[i]);
    enum status status = overrides_load(&variant->set, whatif->file, &all, &whatif->arena, diag);
    overrides_free(&all);
    if (status != STATUS_OK || diag->worst != STATUS_OK ||
        variant->set.n_points == base->set.n_points)
        return;
    bool fewer = variant->set.n_points < base->set.n_points;
    const char *keys = swept_keys(
        fewer ? &base->set : &variant->set, fewer ? &variant->set : &base->set, &whatif->arena);
    diag_input(diag, (struct source_pos){.file = whatif->file},
        fewer
            ? "%d point%s, but %d with %s; give %s one value with --base, or as many in the change"
            : "%d point%s, but %d with %s, which sweeps %s; give it one value, or as many with "
              "--base",
        base->set.n_points, plural(base->set.n_points), variant->set.n_points, variant->label,
        keys);
}

/* All points of all variants at once. */
static void whatif_simulate(struct whatif *whatif, struct diag *diag)
{
    static const int rank_0 = 0; /* whose collectives are looked at; that changes nothing */
    int each = whatif->variants.at[0].set.n_points, n = whatif->variants.n * each;
    whatif->all.points = ARENA_ARRAY(&whatif->arena, struct scenario_point, n);
    whatif->all.n_points = n;
    whatif->results = xcalloc((size_t)n, sizeof *whatif->results);
    whatif->arenas = xcalloc((size_t)n, sizeof *whatif->arenas);
    struct scenario_comm *comms = ARENA_ARRAY(&whatif->arena, struct scenario_comm, n);
    for (int i = 0; i < n; i++) {
        struct scenario_point *point = &whatif->all.points[i];
        *point = whatif->variants.at[i / each].set.points[i % each];
        point->options.exec.trace_ranks = &rank_0;
        point->options.exec.n_trace_ranks = 1;
        point->options.exec.trace_gaps = true;
    }
    struct waiting *waiting =
        waiting_begin("whatif", whatif->all.points[0].options.name, "points", &whatif->all, false);
    scenario_simulate_all(
        whatif->results, whatif->arenas, &whatif->all, waiting_count, waiting, diag);
    waiting_end(waiting);
    for (int i = 0; i < n && diag->worst == STATUS_OK; i++)
        scenario_comm(&comms[i], &whatif->results[i].exec, &whatif->arena);
    for (int v = 0; v < whatif->variants.n; v++) {
        whatif->variants.at[v].results = whatif->results + (ptrdiff_t)v * each;
        whatif->variants.at[v].comms = comms + (ptrdiff_t)v * each;
    }
}

/* Speeds of a variant's points, given what was measured. */
static void take_given(struct whatif *whatif, struct whatif_variant *variant)
{
    variant->given = ARENA_ARRAY(&whatif->arena, const struct sure_range *, variant->set.n_points);
    for (int i = 0; i < variant->set.n_points; i++)
        variant->given[i] =
            sure_of_speed(&whatif->sure, &variant->set.points[i], variant->results[i].mfu);
}

/* All points are what they are as it is. */
static bool is_same(const struct whatif_variant *base, const struct whatif_variant *changed)
{
    for (int i = 0; i < base->set.n_points; i++) {
        struct scenario_identity one, other;
        scenario_identify(&one, &base->set.points[i]);
        scenario_identify(&other, &changed->set.points[i]);
        if (strcmp(one.text, other.text) != 0)
            return false;
    }
    return true;
}

/* Whether a table would be one of 1.000. */
static bool is_all_the_same(const struct whatif *whatif)
{
    bool same = true;
    for (int v = 1; v < whatif->variants.n; v++)
        same = same && is_same(&whatif->variants.at[0], &whatif->variants.at[v]);
    return same;
}

static void whatif_release(struct whatif *whatif)
{
    for (int i = 0; i < whatif->all.n_points; i++)
        arena_release(&whatif->arenas[i]);
    free(whatif->arenas);
    free(whatif->results);
    for (int v = 0; v < whatif->variants.n; v++)
        vec_free(&whatif->variants.at[v].overrides);
    vec_free(&whatif->variants);
    vec_free(&whatif->own.list);
    own_runs_free(&whatif->measured);
    sure_end(&whatif->sure);
    overrides_free(&whatif->overrides);
    arena_release(&whatif->arena);
}

/* One line of the comparison: a cell of record.h in a unit for people, or a time of collectives. */
struct quantity_row {
    const char *cell, *or_cell; /* or_cell: where cell is NULL, what an OOM point has instead */
    const char *name, *unit;
    double scale;
    size_t offset; /* of a time in struct scenario_comm; 0: a cell of record.h */
    int digits;
    bool given; /* speed given what was measured */
};
static const double PER_GIB = 1 / 0x1p30;

struct quantity_rows {
    VEC(struct quantity_row) list;
};

static double comm_value(const struct whatif_variant *variant, int point, size_t offset)
{
    return *(const double *)(const void *)((const char *)&variant->comms[point] + offset);
}

/* A time of collectives, where some variant has one. */
static void add_comm_row(struct quantity_rows *rows, const struct whatif *whatif, int point,
    const char *cell, const char *name, size_t offset)
{
    bool any = false;
    for (int v = 0; v < whatif->variants.n; v++)
        any = any || comm_value(&whatif->variants.at[v], point, offset) > 0;
    if (any)
        vec_push(
            &rows->list, (struct quantity_row){cell, NULL, name, "ms", MS_PER_S, offset, 1, false});
}

/* What is compared of a point; free the list. Rows that no variant has (bubble without stages,
 * bounds of no collective) are left out. */
static struct quantity_rows quantities(struct whatif *whatif, int point)
{
    static const struct quantity_row records[] = {
        {"step_time_s", NULL, "step", "s", 1, 0, 4, false},
        {"tflops_per_gpu", NULL, "TFLOPS/GPU", "", 1, 0, 2, false},
        {"tokens_per_s_per_gpu", NULL, NULL, "", 1, 0, 0, false}, /* or images, samples */
        {"tokens_per_s_per_gpu_given", NULL, "  given what was measured", "", 1, 0, 0, true},
        {"mfu", NULL, "MFU", "%", PERCENT, 0, 2, false},
        {"exposed_comm_s", NULL, "exposed comm", "ms", MS_PER_S, 0, 1, false},
        {"bubble_s", NULL, "bubble", "ms", MS_PER_S, 0, 1, false},
        {"contention_s", NULL, "slower by comm", "ms", MS_PER_S, 0, 1, false},
        {"host_bound_s", NULL, "host-bound", "ms", MS_PER_S, 0, 1, false},
        {"peak_allocated_bytes", "required_bytes", "HBM peak", "GiB", PER_GIB, 0, 2, false},
        {"peak_reserved_bytes", NULL, "reserved", "GiB", PER_GIB, 0, 2, false},
    };
    struct arena *arena = &whatif->arena;
    struct quantity_rows rows = {0};
    bool stages = false;
    for (int v = 0; v < whatif->variants.n; v++)
        stages = stages || exec_has_stages(&whatif->variants.at[v].results[point].exec);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        if ((stages || strcmp(records[i].cell, "bubble_s") != 0) &&
            (!records[i].given || whatif->variants.at[0].given))
            vec_push(&rows.list, records[i]);
    add_comm_row(&rows, whatif, point, "collectives_s", "collectives",
        offsetof(struct scenario_comm, moving_s));
    for (int b = 0; b < COLL_BOUND_COUNT; b++)
        add_comm_row(&rows, whatif, point,
            arena_printf(arena, "bound_by_%s_s", coll_bound_names[b]),
            arena_printf(arena, "  bound by %s", coll_bound_names[b]),
            offsetof(struct scenario_comm, bound_s) + sizeof(double) * (size_t)b);
    return rows;
}

static const struct record_cell *find_cell(const struct record *record, const char *name)
{
    for (int c = 0; c < record->n; c++)
        if (strcmp(record->cells[c].name, name) == 0)
            return record->cells[c].kind == RECORD_NULL ? NULL : &record->cells[c];
    return NULL;
}

/* False where the point has no such value. */
static bool whatif_value_of(
    double *value, const struct whatif_variant *variant, int point, const struct quantity_row *row)
{
    if (row->given) {
        const struct scenario_result *result = &variant->results[point];
        *value = result->tokens_per_s_per_gpu * variant->given[point]->middle;
        return result->exec.status == EXEC_OK && variant->given[point]->known;
    }
    if (row->offset > 0) {
        *value = comm_value(variant, point, row->offset) * row->scale;
        return variant->results[point].exec.status == EXEC_OK;
    }
    struct record record;
    record_fill(&record, &variant->set.points[point], &variant->results[point]);
    const struct record_cell *cell = find_cell(&record, row->cell);
    if (!cell && row->or_cell)
        cell = find_cell(&record, row->or_cell);
    if (cell)
        *value = cell->real * row->scale;
    return cell != NULL;
}

/* "397", or given what was measured "397 (350-463)"; "OOM". */
static const char *whatif_said(const struct whatif_variant *variant, int point,
    const struct quantity_row *row, bool has, double value, struct arena *arena)
{
    if (has && row->given)
        return sure_with_range(arena, variant->given[point],
            variant->results[point].tokens_per_s_per_gpu, row->digits);
    return has ? arena_printf(arena, "%.*f", row->digits, value) : "OOM";
}

static void print_cells(
    struct table *table, struct whatif *whatif, int point, const struct quantity_row *row)
{
    struct arena *arena = &whatif->arena;
    double before = 0, after = 0;
    const struct whatif_variant *base = &whatif->variants.at[0];
    bool had = whatif_value_of(&before, base, point, row);
    const char *name = row->name;
    if (!name)
        name = arena_printf(arena, "%s/s/GPU", words_counted(&base->set.points[point].model.shape));
    table_row(table);
    table_text(table, "", "", *row->unit ? arena_printf(arena, "%s, %s", name, row->unit) : name);
    table_number_as(table, "as it is", "", whatif_said(base, point, row, had, before, arena));
    for (int v = 1; v < whatif->variants.n; v++) {
        const struct whatif_variant *changed = &whatif->variants.at[v];
        bool has = whatif_value_of(&after, changed, point, row);
        table_number_as(table, arena_printf(arena, "(%d)", v), "",
            whatif_said(changed, point, row, has, after, arena));
        table_number_as(table, "difference", "",
            had && has ? words_number(arena, after - before, row->digits, true) : "-");
        table_number(
            table, "ratio", "", 3, had && has && before != 0 ? after / before : TABLE_UNKNOWN);
    }
}

static void whatif_print_ooms(FILE *out, const struct whatif *whatif, int point)
{
    for (int v = 0; v < whatif->variants.n; v++) {
        const struct exec_result *exec = &whatif->variants.at[v].results[point].exec;
        if (exec->status != EXEC_OOM)
            continue;
        fputc('\n', out);
        words_paragraph_of(out, "out of memory%s%s:", v ? " with " : " as it is",
            v ? whatif->variants.at[v].label : "");
        words_oom(out, exec);
    }
}

/* Both sides fit. tokens is of a step of the whole job, and exactly 1 where it is the same up to
 * rounding. */
static struct scenario_change change_of(
    const struct whatif_variant *base, const struct whatif_variant *changed, int point)
{
    const struct scenario_result *before = &base->results[point], *after = &changed->results[point];
    double time = after->exec.step_time_s / before->exec.step_time_s;
    double before_gpus = (double)base->set.points[point].options.cluster.gpus;
    double after_gpus = (double)changed->set.points[point].options.cluster.gpus;
    double tokens = time * after->tokens_per_s_per_gpu * after_gpus /
                    (before->tokens_per_s_per_gpu * before_gpus);
    bool same = fabs(tokens - 1) < 1e-9; /* up to rounding */
    return (struct scenario_change){
        time, same ? 1 : tokens, words_counted(&base->set.points[point].model.shape)};
}

static bool fits(const struct whatif_variant *variant, int point)
{
    return variant->results[point].exec.status == EXEC_OK;
}

/* What binds the collectives of each side, and what that has to do with the change. */
static void whatif_print_comm(FILE *out, struct whatif *whatif, int point)
{
    struct arena *arena = &whatif->arena;
    const struct whatif_variant *base = &whatif->variants.at[0];
    int n = 0, shown = 0;
    struct comm_side *sides = ARENA_ARRAY(arena, struct comm_side, whatif->variants.n);
    for (int v = 0; v < whatif->variants.n; v++) {
        const struct scenario_comm *comm = &whatif->variants.at[v].comms[point];
        shown += comm->n_items;
        if (whatif->variants.at[v].results[point].exec.status == EXEC_OK)
            sides[n++] = (struct comm_side){v ? arena_printf(arena, "(%d)", v) : "as it is", comm};
    }
    if (n == 0 || shown == 0)
        return;
    fputs("\ncollectives of rank 0's last step (above: means of all ranks and steps):\n\n", out);
    comm_table(out, sides, n, MOST_COLLECTIVES, arena);
    const char *channels = "";
    for (int v = 0; v < whatif->variants.n; v++) {
        const struct whatif_variant *variant = &whatif->variants.at[v];
        const struct hw *hw = &variant->set.points[point].hw;
        if (variant->results[point].exec.status != EXEC_OK)
            continue;
        const char *label = v ? arena_printf(arena, "(%d)", v) : "as it is";
        fputc('\n', out);
        words_paragraph(out, scenario_comm_sentence(arena, label, &variant->comms[point], hw));
        const char *now = scenario_channels_sentence(arena, &variant->comms[point], hw);
        if (now && strcmp(now, channels) != 0)
            words_paragraph(out, channels = now);
    }
    double before_s = base->results[point].exec.step_time_s;
    for (int v = 1; v < whatif->variants.n && before_s > 0; v++) {
        const struct whatif_variant *variant = &whatif->variants.at[v];
        if (variant->results[point].exec.status != EXEC_OK)
            continue;
        struct scenario_change change = change_of(base, variant, point);
        fputc('\n', out);
        words_paragraph(
            out, scenario_comm_change(arena, arena_printf(arena, "(%d) %s", v, variant->label),
                     &base->comms[point], &variant->comms[point], &change));
    }
}

struct point_change {
    double more; /* a fraction of the step */
    int point;
};

static int by_change(const void *a, const void *b)
{
    const struct point_change *x = a, *y = b;
    return x->more != y->more ? (x->more < y->more ? -1 : 1) : x->point - y->point;
}

/* Of a sweep, what becomes of the step over all points that fit on both sides; of tokens/s where
 * steps have other numbers of tokens. One sentence a change; of a sweep the median, with the points
 * of least and most change. */
static const char *verdict(struct whatif *whatif, int v)
{
    const struct whatif_variant *base = &whatif->variants.at[0], *changed = &whatif->variants.at[v];
    struct arena *arena = &whatif->arena;
    int n = 0, all = base->set.n_points;
    bool speeds = false;
    struct point_change *found = ARENA_ARRAY(arena, struct point_change, all);
    for (int i = 0; i < all; i++)
        speeds = speeds ||
                 (fits(base, i) && fits(changed, i) && change_of(base, changed, i).tokens != 1);
    for (int i = 0; i < all; i++)
        if (fits(base, i) && fits(changed, i)) {
            struct scenario_change change = change_of(base, changed, i);
            found[n++] =
                (struct point_change){(speeds ? change.tokens / change.time : change.time) - 1, i};
        }
    if (is_same(base, changed))
        return "nothing changed, the scenario has that already";
    if (n == 0 && all == 1)
        return fits(base, 0)      ? "out of memory"
               : fits(changed, 0) ? "fits, which it does not as it is"
                                  : "out of memory, as it is, too";
    if (n == 0)
        return arena_printf(arena, "none of %d points fits on both sides", all);
    if (all == 1) {
        struct scenario_change change = change_of(base, changed, 0);
        return scenario_change_sentence(arena, &change);
    }
    qsort(found, (size_t)n, sizeof *found, by_change);
    const struct point_change *least = &found[0], *most = &found[n - 1];
    const char *oom =
        n < all ? arena_printf(arena, "; of %d others one side is out of memory", all - n) : "";
    return arena_printf(arena,
        "%s %+.1f %% in the median of %d points, from %+.1f %% (%s) to %+.1f %% (%s)%s",
        speeds ? arena_printf(arena, "%s/s change by", words_counted_all(&base->set))
               : "the step changes by",
        PERCENT * (found[(n - 1) / 2].more + found[n / 2].more) / 2, n, PERCENT * least->more,
        words_point(&base->set.points[least->point], arena), PERCENT * most->more,
        words_point(&base->set.points[most->point], arena), oom);
}

static void whatif_print_table(FILE *out, struct whatif *whatif)
{
    const struct whatif_variant *base = &whatif->variants.at[0];
    for (int v = 1; v < whatif->variants.n; v++)
        words_paragraph(out, arena_printf(&whatif->arena, "(%d) %s: %s.", v,
                                 whatif->variants.at[v].label, verdict(whatif, v)));
    for (int i = 0; i < base->set.n_points; i++) {
        struct table table = {0};
        fprintf(out, "\n%s\n\n", words_point(&base->set.points[i], &whatif->arena));
        struct quantity_rows rows = quantities(whatif, i);
        for (int q = 0; q < rows.list.n; q++)
            print_cells(&table, whatif, i, &rows.list.at[q]);
        table_finish(out, &table);
        vec_free(&rows.list);
        whatif_print_comm(out, whatif, i);
        whatif_print_ooms(out, whatif, i);
    }
    if (whatif->own.list.n > 0)
        sure_print(out, &whatif->sure);
    own_runs_print(out, &whatif->own);
}

/* In base SI, empty where a point is out of memory. */
static void whatif_print_records(FILE *out, struct whatif *whatif)
{
    const struct whatif_variant *base = &whatif->variants.at[0];
    int n = whatif->variants.n - 1;
    struct rows cells = {0};
    for (int i = 0; i < n * base->set.n_points; i++) {
        int point = i / n;
        struct quantity_rows rows = quantities(whatif, point);
        for (int q = 0; q < rows.list.n; q++) {
            const struct whatif_variant *changed = &whatif->variants.at[1 + i % n];
            struct quantity_row row = rows.list.at[q];
            row.scale = 1;
            double before = 0, after = 0;
            bool had = whatif_value_of(&before, base, point, &row),
                 has = whatif_value_of(&after, changed, point, &row);
            ROWS_CELLS(&cells,
                cell_text("point", words_point(&base->set.points[point], &whatif->arena)),
                cell_text("change", changed->label),
                cell_text("status", exec_status_names[changed->results[point].exec.status]),
                cell_text("quantity", row.cell), cell_real("as_it_is", had, before),
                cell_real("changed", has, after),
                cell_real("difference", had && has, after - before),
                cell_real(
                    "ratio", had && has && before != 0, had && before != 0 ? after / before : 0));
        }
        vec_free(&rows.list);
    }
    rows_finish(out, &cells, whatif->format);
}

int cmd_whatif(int argc, char **argv)
{
    const struct command_line line = {.options = whatif_options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        .member = offsetof(struct whatif, file),
        .missing = "a scenario file is missing",
        .check = whatif_check,
        .doc = "Simulate a scenario as it is and changed, and print both side by side with "
               "difference and ratio.\vBelow: the collectives of rank 0's last step on each side, "
               "by their bound (latency, protocol, channels, NVLink, PCIe, NIC, network, host "
               "memory, or shared links: other traffic on them). Points of a sweep are compared "
               "one by one, in order. If a point is out of memory, its HBM peak is what it would "
               "need, CUDA context and NCCL included."};
    struct whatif whatif = {.own = {.command = "whatif"}};
    begin_variant(&whatif, "");
    command_line_parse(&line, argc, argv, &whatif);
    struct diag diag = DIAG_INIT;
    whatif.file = files_find(&whatif.arena, FILES_SCENARIOS, whatif.file);
    for (int v = 0; v < whatif.variants.n; v++)
        whatif_load(&whatif, v, &diag);
    bool nothing =
        diag.worst == STATUS_OK && whatif.format == RECORDS_TABLE && is_all_the_same(&whatif);
    if (nothing)
        puts("nothing changed: the scenario has that already");
    if (diag.worst == STATUS_OK && !nothing)
        own_runs_simulate(&whatif.own, &whatif.sure, &whatif.measured, &whatif.variants.at[0].set,
            &whatif.overrides, &whatif.arena, &diag);
    if (diag.worst == STATUS_OK && !nothing)
        whatif_simulate(&whatif, &diag);
    bool given = diag.worst == STATUS_OK && !nothing && whatif.own.list.n > 0;
    for (int v = 0; v < whatif.variants.n && given; v++)
        take_given(&whatif, &whatif.variants.at[v]);
    if (nothing)
        ;
    else if (diag.worst == STATUS_OK && whatif.format != RECORDS_TABLE)
        whatif_print_records(stdout, &whatif);
    else if (diag.worst == STATUS_OK)
        whatif_print_table(stdout, &whatif);
    whatif_release(&whatif);
    return cli_report(&diag);
}
