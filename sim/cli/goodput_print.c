#include "cli/goodput.h"

#include "cli/table.h"
#include "cli/vary.h"
#include "cli/words.h"
#include "hw/power.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double PERCENT = 100, S_PER_DAY = 86400, S_PER_HOUR = 3600, KWH_PER_MWH = 1e3, USD_PER_MILLION = 1e6;
static const char *const time_heads[GOODPUT_TIMES] = {
    "training", "checkpoints", "lost work", "detection", "waiting for nodes", "restart", "fewer nodes", "slow nodes"};

double goodput_time_share(const struct goodput_point *point, int time)
{
    double sum = 0;
    for (int cause = 0; cause <= GOODPUT_NO_CAUSE; cause++)
        sum += point->time_share[time][cause];
    return sum;
}

static double of_cause(const struct goodput_point *point, int cause)
{
    double sum = 0;
    for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
        sum += point->time_share[time][cause];
    return sum;
}

/* Columns of times: two are shown where a job is elastic, or has nodes that get slow. */
static bool is_shown(const struct goodput_point *points, int n, int time)
{
    bool shown = time != GOODPUT_SHRUNK && time != GOODPUT_SLOWED;
    for (int i = 0; i < n; i++) {
        const struct goodput_options *options = &points[i].job.options;
        shown = shown || (time == GOODPUT_SHRUNK && options->elastic_nodes > 0) ||
                (time == GOODPUT_SLOWED && options->slow_node_mtbf_s > 0);
    }
    return shown;
}

static double all_interruptions(const struct goodput_point *point)
{
    double sum = 0;
    for (int cause = 0; cause < GOODPUT_CAUSES; cause++)
        sum += point->interruptions[cause];
    return sum;
}

/* Days that the tokens take at a share; not known where nothing trains. */
static double days_of(const struct goodput_command *command, const struct goodput_point *point, double share)
{
    return share > 0 ? command->tokens.n / point->tokens_per_s / share / S_PER_DAY : TABLE_UNKNOWN;
}

/* By the luck of failures and by how sure the step is: two errors beside each other, so in the logarithm their
 * distances from the mean add as squares. */
static struct validate_sides days_range(const struct goodput_command *command, const struct goodput_point *point)
{
    const struct regime *step = point->regime;
    double share = point->share.mean, mean = days_of(command, point, share);
    double faster = hypot(log(point->share.high / share), step->known ? log(step->factors.high) : 0);
    double slower = hypot(log(share / point->share.low), step->known ? log(step->factors.low) : 0);
    return (struct validate_sides){mean * exp(-faster), mean * exp(slower)};
}

/* "88.9 to 91.3" */
static const char *range(struct arena *arena, double low, double high, int digits)
{
    return arena_printf(arena, "%.*f to %.*f", digits, low, digits, high);
}

static double known(const struct goodput_point *point, double value)
{
    return point->ok ? value : TABLE_UNKNOWN;
}

/* What depends on the step. */
static const char *of_step(struct arena *arena, const struct goodput_point *point, double value, int digits)
{
    return point->ok ? sure_number(arena, point->regime, value, digits) : "-";
}

/* What is paid for, where tokens are given. */
static void print_totals(
    struct table *table, const struct goodput_command *command, const struct goodput_point *point, struct arena *arena)
{
    const struct regime *regime = point->regime;
    double days = days_of(command, point, point->share.mean), usd = days * point->usd_per_day / USD_PER_MILLION;
    struct validate_sides ends = days_range(command, point);
    bool some = point->ok && point->share.low > 0;
    table_number_as(table, "days", "", some ? sure_number(arena, regime, days, 1) : "-");
    table_text(table, "90 %", "",
        some ? arena_printf(
                   arena, "%s to %s", sure_number(arena, regime, ends.low, 1), sure_number(arena, regime, ends.high, 1))
             : "-");
    table_number_as(table, "cost", "M$", some && usd > 0 ? sure_number(arena, regime, usd, 3) : "-");
    table_number_as(
        table, "energy", "MWh", some ? sure_number(arena, regime, days * point->kwh_per_day / KWH_PER_MWH, 0) : "-");
}

static void print_points(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena)
{
    struct table table = {0};
    struct vary vary;
    vary_find_unnamed(&vary, set, arena);
    for (int i = 0; i < set->n_points; i++) {
        const struct goodput_point *point = &points[i];
        table_row(&table);
        table_text(&table, "job", "", vary_name(&vary, &set->points[i], arena));
        table_number(&table, "GPUs", "", 0, (double)set->points[i].options.cluster.gpus);
        table_number(&table, "GPUs", "spare", 0, known(point, point->spare_gpus));
        table_number_as(&table, "step", "s", of_step(arena, point, point->job.step_s, 3));
        table_number(&table, "fails every", "h", 2, known(point, point->costs.mtbf_s / S_PER_HOUR));
        table_number(&table, "checkpoint every", "min", 1, known(point, point->interval_s / 60));
        table_number(&table, "goodput", "%", 1, known(point, PERCENT * point->share.mean));
        table_text(&table, "90 %", "by failures",
            point->ok ? range(arena, PERCENT * point->share.low, PERCENT * point->share.high, 1) : "OOM");
        table_number_as(&table, "TFLOPS/GPU", "step", of_step(arena, point, point->tflops_per_gpu, 1));
        table_number_as(
            &table, "TFLOPS/GPU", "effective", of_step(arena, point, point->tflops_per_gpu * point->share.mean, 1));
        if (command->tokens.n > 0)
            print_totals(&table, command, point, arena);
    }
    table_finish(out, &table);
    vec_free(&vary.options);
}

/* Where the time goes: a row for each cause, and all of them together. */
static void print_waterfall(FILE *out, const struct goodput_point *point)
{
    struct table table = {0};
    for (int cause = 0; cause <= GOODPUT_CAUSES + 1; cause++) {
        bool all = cause == GOODPUT_CAUSES + 1;
        if (!all && of_cause(point, cause) == 0)
            continue;
        table_row(&table);
        table_text(&table, "cause", "", all ? "all" : cause == GOODPUT_NO_CAUSE ? "none" : goodput_cause_names[cause]);
        table_number(&table, "interruptions", "", 1,
            all                         ? all_interruptions(point)
            : cause == GOODPUT_NO_CAUSE ? TABLE_UNKNOWN
                                        : point->interruptions[cause]);
        double sum = 0;
        for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++) {
            if (!is_shown(point, 1, time))
                continue;
            double share = all ? goodput_time_share(point, time) : point->time_share[time][cause];
            table_number(&table, time_heads[time], "%", 2, PERCENT * share);
            sum += share;
        }
        table_number(&table, "sum", "%", 2, PERCENT * sum);
    }
    table_finish(out, &table);
}

/* The same of several points, a row each. */
static void print_times(
    FILE *out, const struct scenario_set *set, const struct goodput_point *points, struct arena *arena)
{
    struct table table = {0};
    struct vary vary;
    vary_find_unnamed(&vary, set, arena);
    fputs("\nWhere the rest of the time goes:\n\n", out);
    for (int i = 0; i < set->n_points; i++) {
        table_row(&table);
        table_text(&table, "job", "", vary_name(&vary, &set->points[i], arena));
        table_number(&table, "GPUs", "", 0, (double)set->points[i].options.cluster.gpus);
        table_number(&table, "interruptions", "", 1, known(&points[i], all_interruptions(&points[i])));
        for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++) {
            double share = known(&points[i], PERCENT * goodput_time_share(&points[i], time));
            if (is_shown(points, set->n_points, time))
                table_number(&table, time_heads[time], "%", 2, share);
        }
    }
    table_finish(out, &table);
    vec_free(&vary.options);
    fputs("\nby cause, of one point: --set\n", out);
}

static void print_costs(FILE *out, const struct goodput_point *point)
{
    char bytes[32];
    const struct goodput_costs *costs = &point->costs;
    fprintf(out, "\na checkpoint of %s: training waits %.3g s",
        quantity_format(bytes, sizeof bytes, costs->bytes, DIM_BYTES), costs->stall_s);
    if (point->job.options.async_checkpoint)
        fprintf(out, ", then it is written for %.3g s", costs->write_s);
    fprintf(out, "; a restart takes %.0f s and %.3g s to load it\n", costs->restart_s, costs->load_s);
    fprintf(
        out, "best interval: Young %.3g min, Daly %.3g min", goodput_young_s(costs) / 60, goodput_daly_s(costs) / 60);
    fprintf(out, point->job.options.checkpoint_interval_s > 0 ? "; given: %.3g min\n" : "; found: %.3g min\n",
        point->interval_s / 60);
    fprintf(out, "%.1f interruptions, %.1f of them hangs, and %.0f checkpoints in %g days\n", all_interruptions(point),
        point->hangs, point->checkpoints, point->days);
}

void goodput_print_table(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena)
{
    fprintf(out, "%s, %d histories", set->points[0].options.name, command->seeds);
    bool alike = points[0].ok;
    for (int i = 1; i < set->n_points; i++)
        alike = alike && points[i].days == points[0].days;
    if (alike)
        fprintf(out, " of %.4g days", points[0].days);
    if (command->tokens.n > 0)
        fprintf(out, ", %s %s", command->tokens.text, words_counted_all(set));
    fputs("\n\n", out);
    print_points(out, command, set, points, arena);
    if (set->n_points > 1) {
        print_times(out, set, points, arena);
    } else if (points[0].ok) {
        fprintf(out, "\nWhere the other %.1f %% of the time go:\n\n", PERCENT * (1 - points[0].share.mean));
        print_waterfall(out, &points[0]);
        print_costs(out, &points[0]);
        fprintf(out, "GPUs paid: %" PRId64 " + %.0f spare (goodput.hot_spares)%s\n",
            set->points[0].options.cluster.gpus, points[0].spare_gpus,
            command->tokens.n > 0 ? "; 90 % of days: by the luck of failures and by how sure the step is" : "");
    }
    if (set->points[0].options.assumptions)
        words_assumptions(out, set->points[0].options.assumptions);
}

enum { MAX_CELLS = 64 };
struct row {
    struct record_cell cells[MAX_CELLS];
    int n;
};

static void add(struct row *row, struct record_cell cell)
{
    BUG_IF(row->n == MAX_CELLS, "more than %d cells", MAX_CELLS);
    row->cells[row->n++] = cell;
}

static void add_totals(struct row *row, const struct goodput_command *command, const struct goodput_point *point)
{
    const struct goodput_band *share = &point->share;
    bool asked = point->ok && command->tokens.n > 0, priced = point->usd_per_day > 0;
    struct validate_sides ends = asked ? days_range(command, point) : (struct validate_sides){0};
    double mean = asked ? days_of(command, point, share->mean) : 0;
    asked = asked && share->mean > 0;
    add(row, cell_real("training_days", asked, mean));
    add(row, cell_real("training_days_p05", asked, ends.low));
    add(row, cell_real("training_days_p95", asked && share->low > 0, ends.high));
    add(row, cell_real("cost_usd", asked && priced, mean * point->usd_per_day));
    add(row, cell_real("energy_kwh", asked, mean * point->kwh_per_day));
}

/* A row a point, shares as fractions, in base SI. */
void goodput_print_records(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena)
{
    struct records records = records_begin(out, command->format);
    struct vary vary;
    vary_find(&vary, set, arena);
    for (int i = 0; i < set->n_points; i++) {
        const struct goodput_point *p = &points[i];
        struct row row = {0};
        add(&row, cell_text("scenario", set->points[i].options.name));
        add(&row, cell_text("model", set->points[i].model.shape.name));
        add(&row, cell_text("swept", vary_assignments(&vary, &set->points[i], arena)));
        add(&row, cell_int("gpus", set->points[i].options.cluster.gpus));
        add(&row, cell_real("spare_gpus", p->ok, p->spare_gpus));
        add(&row, cell_text("status", p->ok ? "ok" : "oom"));
        add(&row, cell_real("days", p->ok, p->days));
        add(&row, cell_int("seeds", command->seeds));
        add(&row, cell_real("step_time_s", p->ok, p->job.step_s));
        add(&row, cell_real("mtbf_s", p->ok && isfinite(p->costs.mtbf_s), p->costs.mtbf_s));
        add(&row, cell_real("checkpoint_bytes", p->ok, p->costs.bytes));
        add(&row, cell_real("checkpoint_stall_s", p->ok, p->costs.stall_s));
        add(&row, cell_real("checkpoint_interval_s", p->ok, p->interval_s));
        add(&row, cell_real("goodput", p->ok, p->share.mean));
        add(&row, cell_real("goodput_p05", p->ok, p->share.low));
        add(&row, cell_real("goodput_p95", p->ok, p->share.high));
        add(&row, cell_real("tflops_per_gpu", p->ok, p->tflops_per_gpu));
        add(&row, cell_real("effective_tflops_per_gpu", p->ok, p->tflops_per_gpu * p->share.mean));
        add(&row, cell_real("effective_tokens_per_s", p->ok, p->tokens_per_s * p->share.mean));
        for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
            add(&row, cell_real(arena_printf(arena, "%s_share", goodput_time_names[time]), p->ok,
                          goodput_time_share(p, time)));
        for (int cause = 0; cause < GOODPUT_CAUSES; cause++) {
            const char *name = goodput_cause_names[cause];
            add(&row, cell_real(arena_printf(arena, "%s_interruptions", name), p->ok, p->interruptions[cause]));
            add(&row, cell_real(arena_printf(arena, "%s_lost_share", name), p->ok, of_cause(p, cause)));
        }
        add(&row, cell_real("hangs", p->ok, p->hangs));
        add_totals(&row, command, p);
        records_row(&records, row.cells, row.n);
    }
    records_end(&records);
    vec_free(&vary.options);
}

void goodput_print_sources(FILE *out)
{
    static const char *const kinds[] = {[QUANTITY_UNSET] = "",
        [QUANTITY_DATASHEET] = "datasheet",
        [QUANTITY_MEASURED] = "measured",
        [QUANTITY_FITTED] = "fitted",
        [QUANTITY_ASSUMED] = "assumed"};
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    struct goodput_options defaults = goodput_default_options();
    for (const struct goodput_number *number = goodput_numbers; number->key; number++) {
        size_t at = 0;
        const struct config_field *field = config_field_at(&goodput_table, number->key, &at);
        table_row(&table);
        table_text(&table, "setting", "", arena_printf(&arena, "goodput.%s", number->key));
        table_text(&table, "default", "", config_value_text(field, (const char *)&defaults + at, &arena));
        table_text(&table, "kind", "", kinds[number->number.kind]);
        table_text(&table, "source", "", number->number.source);
    }
    for (const struct hw_power_default *number = hw_power_defaults; number->key; number++) {
        struct quantity q = number->number;
        table_row(&table);
        table_text(&table, "setting", "", number->key);
        table_text(&table, "default", "", arena_printf(&arena, "%g +- %g %s", q.value, q.std_error, number->unit));
        table_text(&table, "kind", "", kinds[q.kind]);
        table_text(&table, "source", "", q.source);
    }
    table_finish(out, &table);
    arena_release(&arena);
}
