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
    "beside them), host (cost of issuing); the rest is what remains, above 0 if a larger cluster saves work. Each line "
    "says how TFLOPS/GPU change; by collectives: the part of a kernel's time that collectives beside it add.";

/* A change with a number of digits; what rounds to nothing has no sign. */
static const char *change(double value, int digits, struct arena *arena)
{
    double unit = pow(10, -digits);
    return fabs(value) < unit / 2 ? arena_printf(arena, "%.*f", digits, 0.0)
                                  : arena_printf(arena, "%+.*f", digits, value);
}

static void print_waterfall(FILE *out, const struct scenario_waterfall *w, struct arena *arena)
{
    struct table table = {0};
    table_column(&table, "cause", "", true);
    table_column(&table, "change", "TFLOPS/GPU", false);
    table_column(&table, "of the small", "%", false);
    table_column(&table, "taken away", "", true);
    for (int i = 0; i <= CAUSE_COUNT; i++) {
        double part = i == CAUSE_REST ? w->rest : w->part[i];
        table_cell(&table, scenario_causes[i].name);
        table_cell(&table, change(-part, 3, arena));
        table_cell(&table, change(-100 * part / w->small[0], 2, arena));
        table_cell(&table, scenario_causes[i].away);
    }
    double loss = w->small[0] - w->large[0];
    table_cell(&table, "sum");
    table_cell(&table, change(-loss, 3, arena));
    table_cell(&table, change(-100 * loss / w->small[0], 2, arena));
    table_cell(&table, "");
    table_print(out, &table);
    table_free(&table);
}

static void print_path(FILE *out, const struct scenario_path *path, int top, struct arena *arena)
{
    struct table table = {0};
    table_column(&table, "compute stream", "of rank 0", true);
    table_column(&table, "times", "", false);
    table_column(&table, "time", "ms", false);
    table_column(&table, "of the step", "%", false);
    table_column(&table, "by collectives", "ms", false);
    for (int i = 0; i < path->items.n && i < top; i++) {
        const struct scenario_path_item *item = &path->items.at[i];
        table_cell(&table, item->waiting ? arena_printf(arena, "waits for %s", item->name) : item->name);
        table_cell(&table, arena_printf(arena, "%d", item->times));
        table_cell(&table, arena_printf(arena, "%.2f", 1e3 * item->seconds));
        table_cell(&table, arena_printf(arena, "%.1f", 100 * item->seconds / path->step_s));
        table_cell(&table, arena_printf(arena, "%.2f", 1e3 * item->beside_s));
    }
    table_print(out, &table);
    table_free(&table);
}

/* Why the curve falls, where the time of its large end goes, and there op by op. */
static void print_curve(struct explain *explain, const struct scenario_point *small, const struct scenario_point *large,
    const char *label, const struct scenario_waterfall *waterfall, const struct exec_result *result)
{
    struct arena arena = ARENA_INIT;
    int64_t gpus = large->options.cluster.gpus;
    printf("%s%s, %" PRId64 " -> %" PRId64 " GPUs: %.2f -> %.2f TFLOPS/GPU\n\n", explain->explained ? "\n" : "", label,
        small->options.cluster.gpus, gpus, waterfall->small[0], waterfall->large[0]);
    print_waterfall(stdout, waterfall, &arena);
    struct scenario_loss loss = scenario_waterfall_loss(waterfall, small, large);
    putchar('\n');
    words_paragraph(stdout, scenario_loss_sentence(&arena, &loss));
    struct scenario_step step = scenario_step(&result->breakdown, result->memory.alloc_stall_s);
    const char *point = arena_printf(&arena, "%s, %" PRId64 " GPU%s", label, gpus, plural(gpus));
    putchar('\n');
    words_paragraph(stdout, arena_printf(&arena, "%s: %s", point, scenario_step_sentence(&arena, &step)));
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

static void add_cause(struct explained *e, const char *cause, double change, double of_small)
{
    RECORDS_ROW(e->records, cell_text("curve", e->label), cell_int("small_gpus", e->small_gpus),
        cell_int("large_gpus", e->large_gpus), cell_text("table", "waterfall"), cell_text("item", cause),
        cell_real("change_tflops_per_gpu", true, change), cell_real("change_of_small", true, of_small),
        cell_text("times", NULL), cell_real("time_s", false, 0), cell_real("of_step", false, 0),
        cell_real("by_collectives_s", false, 0), cell_real("exposed_s", false, 0), cell_real("busbw_Bps", false, 0),
        cell_text("bound_by", NULL));
}

static void add_item(struct explained *e, const struct scenario_path_item *item, double step_s, struct arena *arena)
{
    RECORDS_ROW(e->records, cell_text("curve", e->label), cell_int("small_gpus", e->small_gpus),
        cell_int("large_gpus", e->large_gpus), cell_text("table", "compute_stream"),
        cell_text("item", item->waiting ? arena_printf(arena, "waits for %s", item->name) : item->name),
        cell_real("change_tflops_per_gpu", false, 0), cell_real("change_of_small", false, 0),
        cell_int("times", item->times), cell_real("time_s", true, item->seconds),
        cell_real("of_step", true, item->seconds / step_s), cell_real("by_collectives_s", true, item->beside_s),
        cell_real("exposed_s", false, 0), cell_real("busbw_Bps", false, 0), cell_text("bound_by", NULL));
}

static void add_collective(
    struct explained *e, const struct scenario_comm_item *item, double step_s, struct arena *arena)
{
    RECORDS_ROW(e->records, cell_text("curve", e->label), cell_int("small_gpus", e->small_gpus),
        cell_int("large_gpus", e->large_gpus), cell_text("table", "collectives"),
        cell_text("item", scenario_comm_name(arena, item)), cell_real("change_tflops_per_gpu", false, 0),
        cell_real("change_of_small", false, 0), cell_int("times", item->times),
        cell_real("time_s", true, item->moving_s), cell_real("of_step", true, item->moving_s / step_s),
        cell_real("by_collectives_s", false, 0), cell_real("exposed_s", true, item->exposed_s),
        cell_real("busbw_Bps", true, item->bus_bytes / item->moving_s),
        cell_text("bound_by", coll_bound_names[scenario_comm_most(item->bound_s)]));
}

static void add_records(struct explain *explain, const struct scenario_point *small, const struct scenario_point *large,
    const char *label, const struct scenario_waterfall *w, const struct exec_result *result)
{
    struct arena arena = ARENA_INIT;
    struct explained e = {&explain->records, label, small->options.cluster.gpus, large->options.cluster.gpus};
    for (int i = 0; i <= CAUSE_COUNT; i++) {
        double part = i == CAUSE_REST ? w->rest : w->part[i];
        add_cause(&e, scenario_causes[i].name, -part, -part / w->small[0]);
    }
    add_cause(&e, "sum", w->large[0] - w->small[0], w->large[0] / w->small[0] - 1);
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

int cmd_explain(int argc, char **argv)
{
    const struct command_line line = {
        options, "SCENARIO", doc, arguments_simulate, "scenario", AT(file), .missing = "a scenario file is missing"};
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
