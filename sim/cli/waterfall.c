#include "cli/cli.h"

#include "base/files.h"
#include "cli/arguments.h"
#include "cli/comm.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/vary.h"
#include "cli/words.h"
#include "store/explanation.h"
#include "store/record.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MOST_ITEMS = 1000000 };

struct explain {
    const char *file, *db, *from, *to;
    int top;
    enum records_format format;
    struct records records; /* where that is not the table */
    struct overrides overrides;
    struct arena arena;
    struct store *store;
    int64_t first; /* explanation stored */
    struct vary vary;
    bool explained;                   /* a curve at least */
    struct diag skipped, unexplained; /* curves that are out of memory: as warnings, as errors */
};

#define AT(at) .member = offsetof(struct explain, at)
static const struct command_option options[] = {
    {"from", "GPUS", "The small cluster (default: the smallest of the scenario)", OPTION_TEXT, AT(from)},
    {"to", "GPUS", "The large cluster (default: the largest)", OPTION_TEXT, AT(to)},
    {"set", "KEY=VALUE", "Set an option, as in --set train.micro_batch=16; may be repeated", OPTION_SET, AT(overrides)},
    {"seed", "N", "The same as --set run.seed=N", OPTION_SEED, AT(overrides)},
    {"db", "PATH", "Store the parts in this database, for `flopcast plot waterfall`", OPTION_TEXT, AT(db)},
    {"top", "N", "Show the N longest items of the critical path, and of collectives (default: 12)", OPTION_COUNT,
        AT(top), .most = MOST_ITEMS},
    RECORDS_OPTION(struct explain),
    {0},
};

static const char doc[] =
    "Explain why a job loses throughput as it grows: two runs, on a small and a large cluster, from which one cause "
    "after the other is removed; and what the compute stream of rank 0 does and waits for on the large one.\vThe parts "
    "add up to the change. Order: allocator (time of cudaMalloc, and stalls for retries), stragglers (all noise, slow "
    "GPUs), latency (hops of collectives), bandwidth (NICs and switches), contention (kernels slowed by collectives "
    "beside them), host (cost of issuing), bubble (stages of a pipeline wait for one another); the rest is what "
    "remains, above 0 if a larger cluster saves work. Each line "
    "says how TFLOPS/GPU change; by collectives: the part of a kernel's time that collectives beside it add.";

static void add_part(struct table *table, const char *cause, double change, double of_small, const char *away)
{
    table_row(table);
    table_text(table, "cause", "", cause);
    table_number_as(table, "change", "TFLOPS/GPU", words_number(&table->numbers, change, 3, true));
    table_number_as(table, "of the small", "%", words_number(&table->numbers, 100 * change / of_small, 2, true));
    table_text(table, "taken away", "", away);
}

static void print_waterfall(FILE *out, const struct scenario_waterfall *w)
{
    struct table table = {0};
    for (int i = 0; i <= CAUSE_COUNT; i++)
        if (scenario_waterfall_has(w, i))
            add_part(&table, scenario_causes[i].name, -(i == CAUSE_REST ? w->rest : w->part[i]), w->small[0],
                scenario_causes[i].away);
    add_part(&table, "sum", w->large[0] - w->small[0], w->small[0], "");
    table_finish(out, &table);
}

static const char *item_name(const struct scenario_path_item *item, struct arena *arena)
{
    return item->waiting ? arena_printf(arena, "waits for %s", item->name) : item->name;
}

static void print_path(FILE *out, const struct scenario_path *path, int top, struct arena *arena)
{
    struct table table = {0};
    for (int i = 0; i < path->items.n && i < top; i++) {
        const struct scenario_path_item *item = &path->items.at[i];
        table_row(&table);
        table_text(&table, "compute stream", "of rank 0", item_name(item, arena));
        table_number(&table, "times", "", 0, item->times);
        table_number(&table, "time", "ms", 2, 1e3 * item->seconds);
        table_number(&table, "of the step", "%", 1, 100 * item->seconds / path->step_s);
        table_number(&table, "by collectives", "ms", 2, 1e3 * item->beside_s);
    }
    table_finish(out, &table);
}

/* What parallelism costs in a step, as tables and records have it: the bubble, and communication by what it is for. */
static const enum plan_parallelism parallelisms[] = {
    PARALLEL_TENSOR, PARALLEL_CONTEXT, PARALLEL_EXPERT, PARALLEL_PIPELINE, PARALLEL_DATA};
enum { PARALLELISMS = sizeof parallelisms / sizeof *parallelisms };

static bool is_parallel(const struct exec_result *result)
{
    bool found = exec_has_stages(result);
    for (int p = 0; p < PARALLEL_COUNT; p++)
        found = found || (p != PARALLEL_DATA && result->breakdown.comm[p].moving_s > 0);
    return found;
}

static void add_parallelism(struct table *table, const char *name, double moving_s, double exposed_s, double step_s)
{
    table_row(table);
    table_text(table, "parallelism", "", name);
    table_number(table, "moving", "ms", 2, 1e3 * moving_s);
    table_number(table, "hidden", "ms", 2, 1e3 * fmax(0, moving_s - exposed_s));
    table_number(table, "exposed", "ms", 2, 1e3 * exposed_s);
    table_number(table, "of the step", "%", 1, 100 * exposed_s / step_s);
}

static void print_parallelism(FILE *out, const struct exec_result *result, struct arena *arena)
{
    struct table table = {0};
    const struct exec_breakdown *part = &result->breakdown;
    if (!is_parallel(result))
        return;
    if (exec_has_stages(result))
        add_parallelism(&table, "bubble", TABLE_UNKNOWN, part->bubble_s, result->step_time_s);
    for (int i = 0; i < PARALLELISMS; i++) {
        const struct exec_comm_time *comm = &part->comm[parallelisms[i]];
        if (comm->moving_s > 0)
            add_parallelism(
                &table, plan_parallelism_names[parallelisms[i]], comm->moving_s, comm->exposed_s, result->step_time_s);
    }
    fputs("\nwhat parallelism costs, mean over ranks:\n\n", out);
    table_finish(out, &table);
    if (exec_has_stages(result)) {
        int most = 0;
        for (int p = 1; p < result->n_programs; p++)
            if (result->programs[p].breakdown.compute_s > result->programs[most].breakdown.compute_s)
                most = p;
        const struct exec_breakdown *slowest = &result->programs[most].breakdown;
        fputc('\n', out);
        words_paragraph(out, arena_printf(arena,
                                 "Stages wait for one another for %.1f %% of a step (the bubble). Stage %d of %d "
                                 "computes longest, %.1f ms "
                                 "of %.1f ms, and waits for %.1f ms.",
                                 100 * part->bubble_s / result->step_time_s, most, result->n_programs,
                                 1e3 * slowest->compute_s, 1e3 * result->step_time_s, 1e3 * slowest->bubble_s));
    }
}

/* Why the curve falls, where the time of its large end goes, and there op by op. */
static void print_curve(struct explain *explain, const struct scenario_point *small, const struct scenario_point *large,
    const char *label, const struct scenario_waterfall *waterfall, const struct exec_result *result)
{
    struct arena arena = ARENA_INIT;
    int64_t gpus = large->options.cluster.gpus;
    printf("%s%s, %" PRId64 " -> %" PRId64 " GPUs: %.2f -> %.2f TFLOPS/GPU\n\n", explain->explained ? "\n" : "", label,
        small->options.cluster.gpus, gpus, waterfall->small[0], waterfall->large[0]);
    print_waterfall(stdout, waterfall);
    struct scenario_loss loss = scenario_waterfall_loss(waterfall, small, large);
    putchar('\n');
    words_paragraph(stdout, scenario_loss_sentence(&arena, &loss));
    struct scenario_step step = scenario_step(&result->breakdown, result->memory.alloc_stall_s);
    const char *point = arena_printf(&arena, "%s, %" PRId64 " GPU%s", label, gpus, plural(gpus));
    putchar('\n');
    words_paragraph(stdout, arena_printf(&arena, "%s: %s", point, scenario_step_sentence(&arena, &step)));
    print_parallelism(stdout, result, &arena);
    struct scenario_path path;
    scenario_path(&path, result, &arena);
    printf("\nthe last step on %" PRId64 " GPUs, %.4f s:\n\n", gpus, path.step_s);
    print_path(stdout, &path, explain->top, &arena);
    struct scenario_comm comm;
    scenario_comm(&comm, result, &arena);
    if (comm.n_items > 0) {
        puts("\nits collectives, from when the last member has arrived:\n");
        comm_table(stdout, &(struct comm_side){"", &comm}, 1, explain->top, &arena);
        putchar('\n');
        words_paragraph(stdout, scenario_comm_sentence(&arena, point, &comm, &large->hw));
        const char *channels = scenario_channels_sentence(&arena, &comm, &large->hw);
        words_paragraph(stdout, channels ? channels : "");
    }
    explain->explained = true;
    vec_free(&path.items);
    arena_release(&arena);
}

/* A curve and what a row of it says: of the waterfall the change of a cause (and their sum), of the compute stream the
 * time of an item in the last step of the large cluster, and of its collectives that of those which are alike. */
struct explained {
    struct records *records;
    const char *label;
    int64_t small_gpus, large_gpus;
};

/* TABLE_UNKNOWN, NULL: not of this table. */
struct explained_row {
    const char *table, *item;
    double change, change_of_small, times, time_s, of_step, by_collectives_s, exposed_s, busbw_Bps;
    const char *bound_by;
};

static struct record_cell known(const char *name, double value)
{
    return cell_real(name, !isnan(value), value);
}

static void add_row(struct explained *e, const struct explained_row *row)
{
    RECORDS_ROW(e->records, cell_text("curve", e->label), cell_int("small_gpus", e->small_gpus),
        cell_int("large_gpus", e->large_gpus), cell_text("table", row->table), cell_text("item", row->item),
        known("change_tflops_per_gpu", row->change), known("change_of_small", row->change_of_small),
        known("times", row->times), known("time_s", row->time_s), known("of_step", row->of_step),
        known("by_collectives_s", row->by_collectives_s), known("exposed_s", row->exposed_s),
        known("busbw_Bps", row->busbw_Bps), cell_text("bound_by", row->bound_by));
}

static void add_cause(struct explained *e, const char *cause, double change, double of_small)
{
    add_row(e, &(struct explained_row){"waterfall", cause, change, of_small, TABLE_UNKNOWN, TABLE_UNKNOWN,
                   TABLE_UNKNOWN, TABLE_UNKNOWN, TABLE_UNKNOWN, TABLE_UNKNOWN, NULL});
}

static void add_item(struct explained *e, const struct scenario_path_item *item, double step_s, struct arena *arena)
{
    add_row(
        e, &(struct explained_row){"compute_stream", item_name(item, arena), TABLE_UNKNOWN, TABLE_UNKNOWN, item->times,
               item->seconds, item->seconds / step_s, item->beside_s, TABLE_UNKNOWN, TABLE_UNKNOWN, NULL});
}

static void add_collective(
    struct explained *e, const struct scenario_comm_item *item, double step_s, struct arena *arena)
{
    add_row(e, &(struct explained_row){"collectives", scenario_comm_name(arena, item), TABLE_UNKNOWN, TABLE_UNKNOWN,
                   item->times, item->moving_s, item->moving_s / step_s, TABLE_UNKNOWN, item->exposed_s,
                   item->bus_bytes / item->moving_s, coll_bound_names[scenario_comm_most(item->bound_s)]});
}

/* Time is that of moving. */
static void add_parallel_records(struct explained *e, const struct exec_result *result)
{
    const struct exec_breakdown *part = &result->breakdown;
    double step_s = result->step_time_s;
    if (exec_has_stages(result))
        add_row(e, &(struct explained_row){"parallelism", "bubble", TABLE_UNKNOWN, TABLE_UNKNOWN, TABLE_UNKNOWN,
                       TABLE_UNKNOWN, part->bubble_s / step_s, TABLE_UNKNOWN, part->bubble_s, TABLE_UNKNOWN, NULL});
    for (int i = 0; i < PARALLELISMS && is_parallel(result); i++) {
        const struct exec_comm_time *comm = &part->comm[parallelisms[i]];
        if (comm->moving_s > 0)
            add_row(e, &(struct explained_row){"parallelism", plan_parallelism_names[parallelisms[i]], TABLE_UNKNOWN,
                           TABLE_UNKNOWN, TABLE_UNKNOWN, comm->moving_s, comm->exposed_s / step_s, TABLE_UNKNOWN,
                           comm->exposed_s, TABLE_UNKNOWN, NULL});
    }
}

static void add_records(struct explain *explain, const struct scenario_point *small, const struct scenario_point *large,
    const char *label, const struct scenario_waterfall *w, const struct exec_result *result)
{
    struct arena arena = ARENA_INIT;
    struct explained e = {&explain->records, label, small->options.cluster.gpus, large->options.cluster.gpus};
    for (int i = 0; i <= CAUSE_COUNT; i++) {
        double part = i == CAUSE_REST ? w->rest : w->part[i];
        if (scenario_waterfall_has(w, i))
            add_cause(&e, scenario_causes[i].name, -part, -part / w->small[0]);
    }
    add_cause(&e, "sum", w->large[0] - w->small[0], w->large[0] / w->small[0] - 1);
    add_parallel_records(&e, result);
    struct scenario_path path;
    scenario_path(&path, result, &arena);
    for (int i = 0; i < path.items.n && i < explain->top; i++)
        add_item(&e, &path.items.at[i], path.step_s, &arena);
    struct scenario_comm comm;
    scenario_comm(&comm, result, &arena);
    for (int i = 0; i < comm.n_items && i < explain->top; i++)
        add_collective(&e, &comm.items[i], comm.step_s, &arena);
    explain->explained = true;
    vec_free(&path.items);
    arena_release(&arena);
}

static enum status explain_curve(
    struct explain *explain, const struct scenario_point *small, const struct scenario_point *large, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct scenario_waterfall waterfall;
    const char *label = vary_name(&explain->vary, small, &arena);
    struct diag own = DIAG_INIT;
    enum status status = scenario_explain(&waterfall, small, large, &own);
    if (status == STATUS_INPUT) { /* other curves may fit where this one does not */
        int n;
        const char *why = diag_first(&own, &n);
        diag_warn(&explain->skipped, small->gpus_at, "%s: %.*s", label, n, why);
        diag_merge(&explain->unexplained, &own);
        arena_release(&arena);
        return STATUS_OK;
    }
    diag_merge(diag, &own);
    struct scenario_point traced = *large;
    static const int rank_0 = 0;
    traced.options.exec.trace_ranks = &rank_0;
    traced.options.exec.n_trace_ranks = 1;
    struct scenario_result result;
    if (status == STATUS_OK)
        status = scenario_simulate(&result, &traced, &arena, diag);
    bool table = explain->format == RECORDS_TABLE;
    if (status == STATUS_OK)
        (table ? print_curve : add_records)(explain, small, large, label, &waterfall, &result.exec);
    if (status == STATUS_OK && explain->store)
        status = store_put_explanation(explain->store, &waterfall, label, small, large, &explain->first, diag);
    arena_release(&arena);
    return status;
}

/* Smallest and largest cluster of every curve, in the order of the scenario. */
static void explain_curves(struct explain *explain, const struct scenario_set *set, struct diag *diag)
{
    bool any = false;
    vary_find_unnamed(&explain->vary, set, &explain->arena);
    for (int i = 0; i < set->n_points && diag->worst == STATUS_OK; i++) {
        uint64_t curve = record_curve(&set->points[i].options);
        int small = i, large = i;
        bool opens = true;
        for (int j = 0; j < set->n_points; j++) {
            if (record_curve(&set->points[j].options) != curve)
                continue;
            opens = opens && j >= i;
            if (set->points[j].options.cluster.gpus < set->points[small].options.cluster.gpus)
                small = j;
            if (set->points[j].options.cluster.gpus > set->points[large].options.cluster.gpus)
                large = j;
        }
        if (!opens || small == large)
            continue;
        explain_curve(explain, &set->points[small], &set->points[large], diag);
        any = true;
    }
    if (!any && diag->worst == STATUS_OK)
        diag_input(diag, (struct source_pos){.file = set->file},
            "no two sizes of the cluster to compare; give --from and --to that differ, or sweep cluster.gpus");
    diag_merge(diag, explain->explained ? &explain->skipped : &explain->unexplained);
}

/* The scenario with the two clusters that were asked for; where only one was, the other is the scenario's own. */
static void load(struct scenario_set *set, struct explain *explain, struct diag *diag)
{
    struct arena *arena = &explain->arena;
    explain->file = files_find(arena, FILES_SCENARIOS, explain->file);
    if (!explain->from != !explain->to && scenario_load(set, explain->file, explain->overrides.list.at,
                                              explain->overrides.list.n, arena, diag) == STATUS_OK) {
        int64_t least = set->points[0].options.cluster.gpus, most = least;
        for (int i = 1; i < set->n_points; i++) {
            int64_t gpus = set->points[i].options.cluster.gpus;
            least = gpus < least ? gpus : least;
            most = gpus > most ? gpus : most;
        }
        explain->from = explain->from ? explain->from : arena_printf(arena, "%" PRId64, least);
        explain->to = explain->to ? explain->to : arena_printf(arena, "%" PRId64, most);
    }
    if (diag->worst != STATUS_OK)
        return;
    if (explain->from)
        vec_push(&explain->overrides.list,
            (struct scenario_override){"cluster.gpus", arena_printf(arena, "[%s, %s]", explain->from, explain->to)});
    int n = explain->overrides.list.n;
    const char **names = ARENA_ARRAY(arena, const char *, n); /* NULL: --set KEY */
    if (explain->from)
        names[n - 1] = "--from, --to";
    scenario_load_from(set, explain->file, explain->overrides.list.at, names, ORIGIN_COMMAND_LINE, n, arena, diag);
}

int cmd_waterfall(int argc, char **argv)
{
    const struct command_line line = {options, "SCENARIO", doc, COMMON_SIMULATE, "scenario", AT(file),
        .missing = "a scenario file is missing", .files = FILES_SCENARIOS};
    struct explain explain = {.top = 12};
    command_line_parse(&line, argc, argv, &explain);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    load(&set, &explain, &diag);
    if (diag.worst == STATUS_OK && explain.db)
        store_open(&explain.store, explain.db, STORE_WRITE, &diag);
    bool table = explain.format == RECORDS_TABLE;
    if (diag.worst == STATUS_OK && !table)
        explain.records = records_begin(stdout, explain.format);
    if (diag.worst == STATUS_OK)
        explain_curves(&explain, &set, &diag);
    if (explain.records.out)
        records_end(&explain.records);
    store_close(explain.store);
    vec_free(&explain.vary.options);
    overrides_free(&explain.overrides);
    arena_release(&explain.arena);
    return cli_report(&diag);
}
