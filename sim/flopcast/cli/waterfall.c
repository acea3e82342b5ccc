/* `flopcast waterfall`: why each curve of a scenario loses throughput as it grows, and where the
 * time goes at its large end.
 *
 * A curve is all points that differ only in GPUs; its smallest and largest cluster are compared
 * by study/explain.h. Then the large end is simulated once more with rank 0 traced, for the
 * compute stream and the collectives. Programs get rows of four tables in one list, with a
 * column that says which; people get a table and sentences for each.
 *
 * What is subtle: a curve of which an end is out of memory is skipped with a warning as long as
 * another one can be explained; if none can, the same is an error. All curves of one command are
 * stored with the id of the first, so that a figure shows them together. */
#include "cli/cli.h"

#include "base/files.h"
#include "options/arguments.h"
#include "cli/comm.h"
#include "rows/rows.h"
#include "rows/vary.h"
#include "options/waiting.h"
#include "rows/words.h"
#include "scenario/identity.h"
#include "scenario/sure.h"
#include "store/answer.h"
#include "study/explain.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

COMMAND(cmd_waterfall, 8, "waterfall", 0, "say why a job loses throughput as it grows",
    "flopcast waterfall llama2_7b_h100_fsdp --from 8 --to 64");

enum { MOST_ITEMS = 1000000 };

struct explain {
    const char *file, *db, *from, *to;
    int top;
    enum records_format format;
    struct rows rows; /* of a table for people, of all for programs */
    struct overrides overrides;
    struct arena arena;
    struct store *store;
    int64_t first; /* explanation stored */
    struct vary vary;
    bool explained;                   /* a curve at least */
    struct diag skipped, unexplained; /* curves that are out of memory: as warnings, as errors */
};

static const struct command_option waterfall_options[] = {
    {"from", "GPUS", "The small cluster (default: the smallest of the scenario)", OPTION_TEXT,
        AT(explain, from)},
    {"to", "GPUS", "The large cluster (default: the largest)", OPTION_TEXT, AT(explain, to)},
    {"set", "KEY=VALUE", "Set an option, as in --set train.micro_batch=16; may be repeated",
        OPTION_SET, AT(explain, overrides)},
    {"seed", "N", "The same as --set run.seed=N", OPTION_SEED, AT(explain, overrides)},
    JOB_OPTIONS(struct explain),
    {"db", "PATH", "Store the parts in this database, for `flopcast plot waterfall`", OPTION_TEXT,
        AT(explain, db)},
    {"top", "N", "Show the N longest items of the critical path, and of collectives (default: 12)",
        OPTION_COUNT, AT(explain, top), .most = MOST_ITEMS},
    RECORDS_OPTION(struct explain),
    {0},
};

static const char doc[] =
    "Explain why a job loses throughput as it grows: two runs, on a small and a large cluster, "
    "from which one cause after the other is removed; and what the compute stream of rank 0 does "
    "and waits for on the large one.\vThe parts "
    "add up to the change. Order: allocator (time of cudaMalloc, and stalls for retries), "
    "stragglers (all noise, slow GPUs), latency (hops of collectives), bandwidth (NICs and "
    "switches), contention (kernels slowed by collectives beside them), host (cost of issuing), "
    "bubble (stages of a pipeline wait for one another); the rest is what remains, above 0 if a "
    "larger cluster saves work. Each line says how TFLOPS/GPU change; by collectives: the part of "
    "a kernel's time that collectives beside it add.";

/* A curve, and what is being said of it. */
struct explained {
    struct rows *rows;
    struct arena *arena; /* lives as long as the rows */
    const char *label;
    int64_t small_gpus, large_gpus;
};

enum explained_table {
    EXPLAINED_CAUSES,
    EXPLAINED_PARALLELISM,
    EXPLAINED_STREAM,
    EXPLAINED_COLLECTIVES
};

/* Of the waterfall the change of a cause (and their sum), of the compute stream the time of an item
 * in the last step of the large cluster, and of its collectives that of those which are alike; of
 * parallelism time is that of moving, TABLE_UNKNOWN of the bubble. */
struct explained_row {
    enum explained_table table;
    const char *item, *away, *bound_by;
    double change, of_small, times, time_s, step_s, by_collectives_s, exposed_s, busbw_Bps;
};

/* People see collectives by comm_table(). One list of columns for all four tables: a heading
 * only where the table has the column. */
static void waterfall_add(const struct explained *e, const struct explained_row *row)
{
    static const char *const names[] = {
        "waterfall", "parallelism", "compute_stream", "collectives"};
    static const char *const heads[] = {"cause", "parallelism", "compute stream", NULL};
    bool cause = row->table == EXPLAINED_CAUSES, parallel = row->table == EXPLAINED_PARALLELISM;
    bool stream = row->table == EXPLAINED_STREAM, comm = row->table == EXPLAINED_COLLECTIVES;
    bool timed = !cause && !isnan(row->time_s);
    double share = cause ? 0 : (parallel ? row->exposed_s : row->time_s) / row->step_s;
    struct rows *rows = e->rows;
    rows_next(rows);
    rows_text(rows, COLUMN("curve"), e->label);
    rows_int(rows, COLUMN("small_gpus"), e->small_gpus);
    rows_int(rows, COLUMN("large_gpus"), e->large_gpus);
    rows_text(rows, COLUMN("table"), names[row->table]);
    rows_text(rows, COLUMN("item", heads[row->table], stream ? "of rank 0" : NULL),
        arena_strdup(e->arena, row->item));
    rows_real(rows,
        COLUMN("change_tflops_per_gpu", cause ? "change" : NULL, "TFLOPS/GPU", .digits = 3,
            .sign = true),
        cause, row->change);
    rows_real(rows,
        COLUMN("change_of_small", cause ? "of the small" : NULL, "%", 100, 2, .sign = true), cause,
        row->of_small);
    rows_text(rows, COLUMN(NULL, cause ? "taken away" : NULL), row->away);
    rows_real(rows, COLUMN("times", stream ? "times" : NULL), stream || comm, row->times);
    rows_real(rows,
        COLUMN("time_s",
            stream     ? "time"
            : parallel ? "moving"
                       : NULL,
            "ms", 1e3, 2),
        timed, row->time_s);
    rows_real(rows, COLUMN(NULL, parallel ? "hidden" : NULL, "ms", 1e3, 2), true,
        fmax(0, row->time_s - row->exposed_s));
    rows_real(rows, COLUMN(NULL, parallel ? "exposed" : NULL, "ms", 1e3, 2), true, row->exposed_s);
    rows_real(rows, COLUMN("of_step", stream || parallel ? "of the step" : NULL, "%", 100, 1),
        !cause, share);
    rows_real(rows, COLUMN("by_collectives_s", stream ? "by collectives" : NULL, "ms", 1e3, 2),
        stream, row->by_collectives_s);
    rows_real(rows, COLUMN("exposed_s"), parallel || comm, row->exposed_s);
    rows_real(rows, COLUMN("busbw_Bps"), comm, row->busbw_Bps);
    rows_text(rows, COLUMN("bound_by"), row->bound_by);
}

/* People get a table of each part, programs all rows at the end. */
static void end_table(struct explain *explain)
{
    if (explain->format != RECORDS_TABLE)
        return;
    rows_finish(stdout, &explain->rows, RECORDS_TABLE);
    explain->rows = (struct rows){0};
}

static void add_causes(const struct explained *e, const struct scenario_waterfall *w)
{
    for (int i = 0; i <= CAUSE_COUNT; i++) {
        double change = -(i == CAUSE_REST ? w->rest : w->part[i]);
        if (scenario_waterfall_has(w, i))
            waterfall_add(e,
                &(struct explained_row){EXPLAINED_CAUSES, scenario_causes[i].name,
                    scenario_causes[i].away, .change = change, .of_small = change / w->small[0]});
    }
    waterfall_add(
        e, &(struct explained_row){EXPLAINED_CAUSES, "sum", "", .change = w->large[0] - w->small[0],
               .of_small = w->large[0] / w->small[0] - 1});
}

static void add_stream(const struct explained *e, const struct scenario_path *path, int top)
{
    for (int i = 0; i < path->items.n && i < top; i++) {
        const struct scenario_path_item *item = &path->items.at[i];
        waterfall_add(
            e, &(struct explained_row){EXPLAINED_STREAM,
                   .item = item->waiting ? arena_printf(e->arena, "waits for %s", item->name)
                                         : item->name,
                   .times = item->times, .time_s = item->seconds, .step_s = path->step_s,
                   .by_collectives_s = item->beside_s});
    }
}

static void add_collectives(const struct explained *e, const struct scenario_comm *comm, int top)
{
    for (int i = 0; i < comm->n_items && i < top; i++) {
        const struct scenario_comm_item *item = &comm->items[i];
        waterfall_add(
            e, &(struct explained_row){EXPLAINED_COLLECTIVES,
                   .item = scenario_comm_name(e->arena, item), .times = item->times,
                   .time_s = item->moving_s, .step_s = comm->step_s, .exposed_s = item->exposed_s,
                   .busbw_Bps = item->bus_bytes / item->moving_s,
                   .bound_by = coll_bound_names[scenario_comm_most(item->bound_s)]});
    }
}

/* What parallelism costs in a step: the bubble, and communication by what it is for. */
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

static void add_parallelism(const struct explained *e, const struct exec_result *result)
{
    const struct exec_breakdown *part = &result->breakdown;
    double step_s = result->step_time_s;
    if (exec_has_stages(result))
        waterfall_add(
            e, &(struct explained_row){EXPLAINED_PARALLELISM, .item = "bubble",
                   .time_s = TABLE_UNKNOWN, .step_s = step_s, .exposed_s = part->bubble_s});
    for (int i = 0; i < PARALLELISMS && is_parallel(result); i++) {
        const struct exec_comm_time *comm = &part->comm[parallelisms[i]];
        if (comm->moving_s > 0)
            waterfall_add(
                e, &(struct explained_row){EXPLAINED_PARALLELISM,
                       .item = plan_parallelism_names[parallelisms[i]], .time_s = comm->moving_s,
                       .step_s = step_s, .exposed_s = comm->exposed_s});
    }
}

/* Which stage the others wait for. The stage with most compute is the one that the others wait
 * for. */
static void waterfall_print_stages(FILE *out, const struct exec_result *result, struct arena *arena)
{
    int most = 0;
    for (int p = 1; p < result->n_programs; p++)
        if (result->programs[p].breakdown.compute_s > result->programs[most].breakdown.compute_s)
            most = p;
    const struct exec_breakdown *slowest = &result->programs[most].breakdown;
    fputc('\n', out);
    words_paragraph(
        out, arena_printf(arena,
                 "Stages wait for one another for %.1f %% of a step (the bubble). Stage %d of %d "
                 "computes longest, %.1f ms of %.1f ms, and waits for %.1f ms.",
                 100 * result->breakdown.bubble_s / result->step_time_s, most, result->n_programs,
                 1e3 * slowest->compute_s, 1e3 * result->step_time_s, 1e3 * slowest->bubble_s));
}

static void waterfall_print_comm(const struct scenario_comm *comm, const struct hw *hw,
    const char *point, int top, struct arena *arena)
{
    puts("\nits collectives, from when the last member has arrived:\n");
    comm_table(stdout, &(struct comm_side){"", comm}, 1, top, arena);
    putchar('\n');
    words_paragraph(stdout, scenario_comm_sentence(arena, point, comm, hw));
    const char *channels = scenario_channels_sentence(arena, comm, hw);
    words_paragraph(stdout, channels ? channels : "");
}

/* What measured curves of such jobs lose beyond what any cause here has. */
static void print_unexplained(
    FILE *out, const struct scenario *job, double small_tflops, struct arena *arena)
{
    struct sure_numbers filed;
    if (!sure_is_data_parallel(job) || !sure_load_own(&filed, arena))
        return;
    const struct sure_loss *loss = &filed.loss;
    fputc('\n', out);
    words_paragraph(
        out, arena_printf(arena,
                 "not explained: measured curves of DDP and FSDP lose %.1f +- %.1f %% more than is "
                 "predicted, in the mean; here %.1f TFLOPS/GPU. No cause above has it",
                 100 * loss->value, 100 * loss->std_error, loss->value * small_tflops));
}

/* Why the curve falls, where the time of its large end goes, and there op by op. */
static void waterfall_answer(struct explain *explain, const struct scenario_point *small,
    const struct scenario_point *large, const char *label,
    const struct scenario_waterfall *waterfall, const struct exec_result *result)
{
    struct arena *arena = &explain->arena;
    int64_t gpus = large->options.cluster.gpus;
    bool people = explain->format == RECORDS_TABLE;
    const struct explained e = {&explain->rows, arena, label, small->options.cluster.gpus, gpus};
    struct scenario_path path;
    struct scenario_comm comm;
    scenario_path(&path, result, arena);
    scenario_comm(&comm, result, arena);
    const char *point = arena_printf(arena, "%s, %" PRId64 " GPU%s", label, gpus, plural(gpus));
    if (people) {
        struct scenario_loss loss = scenario_waterfall_loss(waterfall, small, large);
        fputs(explain->explained ? "\n" : "", stdout);
        words_paragraph(stdout, scenario_loss_sentence(arena, &loss));
        putchar('\n');
        words_paragraph_of(stdout, "%s, %" PRId64 " -> %" PRId64 " GPUs: %.2f -> %.2f TFLOPS/GPU",
            label, e.small_gpus, gpus, waterfall->small[0], waterfall->large[0]);
        putchar('\n');
    }
    add_causes(&e, waterfall);
    end_table(explain);
    if (people)
        print_unexplained(stdout, &small->options, waterfall->small[0], arena);
    if (people) {
        struct scenario_step step = scenario_step(&result->breakdown, result->memory.alloc_stall_s);
        putchar('\n');
        words_paragraph(
            stdout, arena_printf(arena, "%s: %s", point, scenario_step_sentence(arena, &step)));
    }
    if (people && is_parallel(result))
        fputs("\nwhat parallelism costs, mean over ranks:\n\n", stdout);
    add_parallelism(&e, result);
    end_table(explain);
    if (people && exec_has_stages(result))
        waterfall_print_stages(stdout, result, arena);
    if (people)
        printf("\nthe last step on %" PRId64 " GPUs, %.4f s:\n\n", gpus, path.step_s);
    add_stream(&e, &path, explain->top);
    end_table(explain);
    if (people && comm.n_items > 0)
        waterfall_print_comm(&comm, &large->hw, point, explain->top, arena);
    else if (!people)
        add_collectives(&e, &comm, explain->top);
    explain->explained = true;
    vec_free(&path.items);
}

/* label: what the curve is. *first: 0 for the first curve of the command, which sets it to its id;
 * the others have it from there, and a figure shows them together. */
static enum status put_explanation(struct store *store, const struct scenario_waterfall *waterfall,
    const char *label, const struct scenario_point *small, const struct scenario_point *large,
    int64_t *first, struct diag *diag)
{
    struct store_answer answer;
    enum status status = store_answer_begin(&answer, store, "explanation",
        RECORD_CELLS(cell_text("scenario", small->options.name), cell_text("label", label),
            cell_int("small_gpus", small->options.cluster.gpus),
            cell_int("large_gpus", large->options.cluster.gpus),
            cell_real("small_tflops_per_gpu", true, waterfall->small[0]),
            cell_real("large_tflops_per_gpu", true, waterfall->large[0]),
            *first > 0 ? cell_int("first_id", *first) : cell_text("first_id", NULL)),
        diag);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i <= CAUSE_COUNT && status == STATUS_OK; i++) {
        if (scenario_waterfall_has(waterfall, i))
            status = store_answer_put(&answer, "row",
                RECORD_CELLS(cell_text("cause", scenario_causes[i].name),
                    cell_real("lost_tflops_per_gpu", true,
                        i == CAUSE_REST ? waterfall->rest : waterfall->part[i])),
                diag);
    }
    status = store_answer_end(&answer, status, diag);
    if (status == STATUS_OK && *first == 0)
        *first = answer.id;
    return status;
}

/* under_way: what is said while it is. */
static enum status explain_curve(struct explain *explain, const struct scenario_point *small,
    const struct scenario_point *large, const char *under_way, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct scenario_waterfall waterfall;
    const char *label = vary_name(&explain->vary, small, &explain->arena);
    struct diag own = DIAG_INIT;
    struct waiting *waiting =
        waiting_begin("waterfall", small->options.name, under_way, NULL, false);
    enum status status = scenario_explain(&waterfall, small, large, &own);
    if (status == STATUS_INPUT) { /* other curves may fit where this one does not */
        int n;
        const char *why = diag_first(&own, &n);
        diag_warn(&explain->skipped, small->gpus_at, "%s: %.*s", label, n, why);
        diag_merge(&explain->unexplained, &own);
        waiting_end(waiting);
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
    waiting_end(waiting);
    if (status == STATUS_OK)
        waterfall_answer(explain, small, large, label, &waterfall, &result.exec);
    if (status == STATUS_OK && explain->store)
        status =
            put_explanation(explain->store, &waterfall, label, small, large, &explain->first, diag);
    arena_release(&arena);
    return status;
}

/* Smallest and largest cluster of every curve, in the order of the scenario. Quadratic in the
 * points of a scenario. A curve opens at its first point, so that curves keep the scenario's
 * order. */
static void explain_curves(
    struct explain *explain, const struct scenario_set *set, struct diag *diag)
{
    struct {
        int small, large;
    } *curves = xcalloc((size_t)set->n_points, sizeof *curves);
    int n = 0;
    vary_find_unnamed(&explain->vary, set, &explain->arena);
    for (int i = 0; i < set->n_points; i++) {
        uint64_t curve = scenario_curve(&set->points[i].options);
        int small = i, large = i;
        bool opens = true;
        for (int j = 0; j < set->n_points; j++) {
            if (scenario_curve(&set->points[j].options) != curve)
                continue;
            opens = opens && j >= i;
            if (set->points[j].options.cluster.gpus < set->points[small].options.cluster.gpus)
                small = j;
            if (set->points[j].options.cluster.gpus > set->points[large].options.cluster.gpus)
                large = j;
        }
        if (opens && small != large) {
            curves[n].small = small;
            curves[n++].large = large;
        }
    }
    for (int c = 0; c < n && diag->worst == STATUS_OK; c++)
        explain_curve(explain, &set->points[curves[c].small], &set->points[curves[c].large],
            n == 1 ? "under way" : arena_printf(&explain->arena, "curve %d of %d", c + 1, n), diag);
    free(curves);
    if (n == 0 && diag->worst == STATUS_OK)
        diag_input(diag, (struct source_pos){.file = set->file},
            "no two sizes of the cluster to compare; give --from and --to that differ, or sweep "
            "cluster.gpus");
    diag_merge(diag, explain->explained ? &explain->skipped : &explain->unexplained);
}

/* The scenario with the two clusters that were asked for; where only one was, the other is the
 * scenario's own. --from and --to replace cluster.gpus by a sweep over two sizes; their origin
 * is named so in messages. */
static void waterfall_load(struct scenario_set *set, struct explain *explain, struct diag *diag)
{
    struct arena *arena = &explain->arena;
    explain->file = files_find(arena, FILES_SCENARIOS, explain->file);
    if (!explain->from != !explain->to &&
        overrides_load(set, explain->file, &explain->overrides, arena, diag) == STATUS_OK) {
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
        overrides_push(&explain->overrides, "--from, --to",
            (struct scenario_override){
                "cluster.gpus", arena_printf(arena, "[%s, %s]", explain->from, explain->to)});
    if (overrides_load(set, explain->file, &explain->overrides, arena, diag) == STATUS_OK)
        scenario_warn_measured(set, "flopcast waterfall", diag);
}

int cmd_waterfall(int argc, char **argv)
{
    const struct command_line line = {waterfall_options, "SCENARIO", doc, COMMON_SIMULATE,
        "scenario", AT(explain, file), .missing = "a scenario file is missing",
        .files = FILES_SCENARIOS};
    struct explain explain = {.top = 12};
    command_line_parse(&line, argc, argv, &explain);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    waterfall_load(&set, &explain, &diag);
    if (diag.worst == STATUS_OK && explain.db)
        store_open(&explain.store, explain.db, STORE_WRITE, &diag);
    bool asked = diag.worst == STATUS_OK;
    if (asked)
        explain_curves(&explain, &set, &diag);
    if (asked && explain.format != RECORDS_TABLE)
        rows_print(stdout, &explain.rows, explain.format);
    rows_free(&explain.rows);
    store_close(explain.store);
    vec_free(&explain.vary.options);
    overrides_free(&explain.overrides);
    arena_release(&explain.arena);
    return cli_report(&diag);
}
