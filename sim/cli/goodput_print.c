#include "cli/goodput.h"

#include "cli/rows.h"
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

static double known(const struct goodput_point *point, double value)
{
    return point->ok ? value : TABLE_UNKNOWN;
}

/* What is paid for, where tokens are given. */
static void fill_totals(
    struct rows *rows, const struct goodput_command *command, const struct goodput_point *point, struct arena *arena)
{
    const struct regime *regime = point->regime;
    bool given = command->tokens.n > 0, asked = point->ok && given && point->share.mean > 0;
    bool some = asked && point->share.low > 0;
    struct validate_sides ends = asked ? days_range(command, point) : (struct validate_sides){0};
    double days = asked ? days_of(command, point, point->share.mean) : 0;
    double usd = days * point->usd_per_day, kwh = days * point->kwh_per_day;
    rows_real_as(rows, COLUMN("training_days", given ? "days" : NULL), asked, days,
        some ? sure_number(arena, regime, days, 1) : "-");
    if (given)
        rows_text(rows, COLUMN(NULL, "90 %"),
            some ? arena_printf(arena, "%s to %s", sure_number(arena, regime, ends.low, 1),
                       sure_number(arena, regime, ends.high, 1))
                 : NULL);
    rows_real(rows, COLUMN("training_days_p05"), asked, ends.low);
    rows_real(rows, COLUMN("training_days_p95"), some, ends.high);
    rows_real_as(rows, COLUMN("cost_usd", given ? "cost" : NULL, "M$"), asked && usd > 0, usd,
        some ? sure_number(arena, regime, usd / USD_PER_MILLION, 3) : "-");
    rows_real_as(rows, COLUMN("energy_kwh", given ? "energy" : NULL, "MWh"), asked, kwh,
        some ? sure_number(arena, regime, kwh / KWH_PER_MWH, 0) : "-");
}

static void fill_causes(struct rows *rows, const struct goodput_point *p, struct arena *arena)
{
    for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
        rows_real(rows, COLUMN(arena_printf(arena, "%s_share", goodput_time_names[time])), p->ok,
            goodput_time_share(p, time));
    for (int cause = 0; cause < GOODPUT_CAUSES; cause++) {
        const char *name = goodput_cause_names[cause];
        rows_real(rows, COLUMN(arena_printf(arena, "%s_interruptions", name)), p->ok, p->interruptions[cause]);
        rows_real(rows, COLUMN(arena_printf(arena, "%s_lost_share", name)), p->ok, of_cause(p, cause));
    }
    rows_real(rows, COLUMN("hangs"), p->ok, p->hangs);
}

/* Shares as fractions, in base SI; what depends on the step to as many digits as that is sure. */
static void fill(struct rows *rows, const struct goodput_command *command, const struct scenario_point *point,
    const struct goodput_point *p, struct arena *arena)
{
    const struct regime *regime = p->regime;
    double step_s = p->job.step_s, mtbf_s = p->costs.mtbf_s, effective = p->tflops_per_gpu * p->share.mean;
    bool ok = p->ok;
    rows_int(rows, COLUMN("gpus", "GPUs"), point->options.cluster.gpus);
    rows_real(rows, COLUMN("spare_gpus", "GPUs", "spare"), ok, p->spare_gpus);
    rows_text(rows, COLUMN("status"), ok ? "ok" : "oom");
    rows_real(rows, COLUMN("days"), ok, p->days);
    rows_int(rows, COLUMN("seeds"), command->seeds);
    rows_real_as(rows, COLUMN("step_time_s", "step", "s"), ok, step_s, sure_number(arena, regime, step_s, 3));
    rows_real(rows, COLUMN("mtbf_s"), ok && isfinite(mtbf_s), mtbf_s);
    rows_real(rows, COLUMN(NULL, "fails every", "h", .digits = 2), ok, mtbf_s / S_PER_HOUR);
    rows_real(rows, COLUMN("checkpoint_bytes"), ok, p->costs.bytes);
    rows_real(rows, COLUMN("checkpoint_stall_s"), ok, p->costs.stall_s);
    rows_real(rows, COLUMN("checkpoint_interval_s", "checkpoint every", "min", 1. / 60, 1), ok, p->interval_s);
    rows_real(rows, COLUMN("goodput", "goodput", "%", PERCENT, 1), ok, p->share.mean);
    rows_text(rows, COLUMN(NULL, "90 %", "by failures"),
        ok ? arena_printf(arena, "%.1f to %.1f", PERCENT * p->share.low, PERCENT * p->share.high) : "OOM");
    rows_real(rows, COLUMN("goodput_p05"), ok, p->share.low);
    rows_real(rows, COLUMN("goodput_p95"), ok, p->share.high);
    rows_real_as(rows, COLUMN("tflops_per_gpu", "TFLOPS/GPU", "step"), ok, p->tflops_per_gpu,
        sure_number(arena, regime, p->tflops_per_gpu, 1));
    rows_real_as(rows, COLUMN("effective_tflops_per_gpu", "TFLOPS/GPU", "effective"), ok, effective,
        sure_number(arena, regime, effective, 1));
    rows_real(rows, COLUMN("effective_tokens_per_s"), ok, p->tokens_per_s * p->share.mean);
    fill_causes(rows, p, arena);
    fill_totals(rows, command, p, arena);
}

static void print_points(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena)
{
    struct rows rows = {0};
    struct vary all, unnamed;
    vary_find(&all, set, arena);
    vary_find_unnamed(&unnamed, set, arena);
    for (int i = 0; i < set->n_points; i++) {
        const struct scenario_point *point = &set->points[i];
        rows_next(&rows);
        rows_text(&rows, COLUMN(NULL, "job"), vary_name(&unnamed, point, arena));
        rows_text(&rows, COLUMN("scenario"), point->options.name);
        rows_text(&rows, COLUMN("model"), point->model.shape.name);
        rows_text(&rows, COLUMN("swept"), vary_assignments(&all, point, arena));
        fill(&rows, command, point, &points[i], arena);
    }
    rows_finish(out, &rows, command->format);
    vec_free(&all.options);
    vec_free(&unnamed.options);
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

void goodput_print(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena)
{
    if (command->format != RECORDS_TABLE) {
        print_points(out, command, set, points, arena);
        return;
    }
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

/* What distinguishes curves: not the interval, which may be the axis. */
static void leave_out_interval(struct vary *vary)
{
    int kept = 0;
    for (int i = 0; i < vary->options.n; i++)
        if (strcmp(vary->options.at[i].path, "goodput.checkpoint_interval") != 0)
            vary->options.at[kept++] = vary->options.at[i];
    vary->options.n = kept;
}

/* Its columns are those of table goodput_point. */
static void fill_kept(struct rows *rows, const char *label, int64_t gpus, const struct goodput_point *p)
{
    rows_next(rows);
    rows_text(rows, COLUMN("label"), label);
    rows_int(rows, COLUMN("gpus"), gpus);
    rows_real(rows, COLUMN("days"), p->ok, p->days);
    rows_real(rows, COLUMN("step_time_s"), p->ok, p->job.step_s);
    rows_real(rows, COLUMN("job_mtbf_s"), p->ok && isfinite(p->costs.mtbf_s), p->costs.mtbf_s);
    rows_real(rows, COLUMN("checkpoint_interval_s"), p->ok, p->interval_s);
    rows_int(rows, COLUMN("searched"), p->ok && p->job.options.checkpoint_interval_s == 0);
    rows_real(rows, COLUMN("goodput"), p->ok, p->share.mean);
    rows_real(rows, COLUMN("goodput_p05"), p->ok, p->share.low);
    rows_real(rows, COLUMN("goodput_p95"), p->ok, p->share.high);
    for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
        rows_real(rows, COLUMN(goodput_time_names[time]), p->ok, goodput_time_share(p, time));
    rows_real(rows, COLUMN("step_tflops_per_gpu"), p->ok, p->tflops_per_gpu);
}

enum status goodput_store(const struct goodput_command *command, const struct scenario_set *set,
    const struct goodput_point *points, struct arena *arena, struct diag *diag)
{
    struct vary vary;
    struct rows rows = {0};
    vary_find_unnamed(&vary, set, arena);
    leave_out_interval(&vary);
    for (int i = 0; i < set->n_points; i++)
        fill_kept(&rows, vary_name(&vary, &set->points[i], arena), set->points[i].options.cluster.gpus, &points[i]);
    vec_free(&vary.options);
    const struct record_cell head[] = {
        cell_text("scenario", set->points[0].options.name), cell_int("histories", command->seeds)};
    enum status status =
        rows_keep(&rows, command->db, "goodput", "goodput_point", head, sizeof head / sizeof *head, diag);
    rows_free(&rows);
    return status;
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
