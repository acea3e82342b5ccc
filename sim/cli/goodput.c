#include "base/files.h"
#include "cli/cli.h"
#include "cli/price.h"
#include "cli/rows.h"
#include "cli/sure.h"
#include "cli/vary.h"
#include "cli/words.h"
#include "goodput/goodput.h"
#include "hw/power.h"
#include "scenario/energy.h"
#include "scenario/kinds.h"
#include "strategy/states.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct goodput_command {
    const char *file, *db;
    enum records_format format;
    double days; /* 0: not said */
    struct token_count tokens;
    int seeds;
    bool sources;
    struct overrides overrides;
    struct prices prices;
    struct arena arena;
};

/* A point whose step fits into memory; others have ok false. Means and bands are over seeds. */
struct goodput_point {
    bool ok;
    struct goodput_job job;
    struct goodput_costs costs;
    double days, interval_s;
    struct goodput_band share;
    double time_share[GOODPUT_TIMES][GOODPUT_CAUSES + 1];
    double interruptions[GOODPUT_CAUSES], hangs, checkpoints; /* of a history */
    double tflops_per_gpu, tokens_per_s;                      /* while it trains; tokens of the whole job */
    const struct regime *regime;                              /* how sure the step is */
    double spare_gpus;                                        /* of hot spares, beside those of the job */
    double usd_per_day, kwh_per_day;                          /* of all GPUs, those of spares too; 0: not known */
};

static const double PERCENT = 100, S_PER_DAY = 86400, S_PER_HOUR = 3600, HOURS_PER_DAY = 24;
static const double W_PER_KW = 1e3, KWH_PER_MWH = 1e3;
static const char *const time_heads[GOODPUT_TIMES] = {
    "training", "checkpoints", "lost work", "detection", "waiting for hosts", "restart", "fewer hosts", "slow hosts"};
static const char *const cause_heads[GOODPUT_CAUSES] = {
    "GPU", "host", "link", "switch", "software", "maintenance", "slow host"};

/* A share of the time (enum goodput_time), of all causes. */
static double time_share_of(const struct goodput_point *point, int time)
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
    rows_real_as(rows, COLUMN("cost_usd", given ? "cost" : NULL, "$"), asked && usd > 0, usd,
        some ? sure_number(arena, regime, usd, 0) : "-");
    rows_real_as(rows, COLUMN("energy_kwh", given ? "energy" : NULL, "MWh"), asked, kwh,
        some ? sure_number(arena, regime, kwh / KWH_PER_MWH, 1) : "-");
}

static void fill_causes(struct rows *rows, const struct goodput_point *p, struct arena *arena)
{
    for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
        rows_real(
            rows, COLUMN(arena_printf(arena, "%s_share", goodput_time_names[time])), p->ok, time_share_of(p, time));
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
        table_text(&table, "cause", "", all ? "all" : cause == GOODPUT_NO_CAUSE ? "none" : cause_heads[cause]);
        table_number(&table, "interruptions", "", 1,
            all                         ? all_interruptions(point)
            : cause == GOODPUT_NO_CAUSE ? TABLE_UNKNOWN
                                        : point->interruptions[cause]);
        double sum = 0;
        for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++) {
            if (!is_shown(point, 1, time))
                continue;
            double share = all ? time_share_of(point, time) : point->time_share[time][cause];
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
            double share = known(&points[i], PERCENT * time_share_of(&points[i], time));
            if (is_shown(points, set->n_points, time))
                table_number(&table, time_heads[time], "%", 2, share);
        }
    }
    table_finish(out, &table);
    vec_free(&vary.options);
    fputs("\nof one point (--set takes away the others) this is also by cause\n", out);
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

static void print(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
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
        rows_real(rows, COLUMN(goodput_time_names[time]), p->ok, time_share_of(p, time));
    rows_real(rows, COLUMN("step_tflops_per_gpu"), p->ok, p->tflops_per_gpu);
}

/* Into command->db (tables goodput, goodput_point). */
static enum status keep(const struct goodput_command *command, const struct scenario_set *set,
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

/* Every default number with its unit, kind and source. */
static void print_sources(FILE *out)
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

/* ---- the histories ---- */

enum { DEFAULT_DAYS = 30, DEFAULT_SEEDS = 20, MOST_EVENTS = 10000000 }; /* MOST_EVENTS: of a history; a second or so */

static void take_days(void *days, const struct argument *argument)
{
    char *end = NULL;
    double value = strtod(argument->text, &end);
    if (end == argument->text || *end || !(value > 0 && value <= GOODPUT_MAX_DAYS))
        argp_error(argument->state, "--days %s: a number of days up to %d is wanted, as in 30", argument->text,
            GOODPUT_MAX_DAYS);
    *(double *)days = value;
}

#define AT(at) .member = offsetof(struct goodput_command, at)
static const struct command_option options[] = {
    {"set", "KEY=VALUE", "Set an option, as in goodput.checkpoint_interval=10min; may be repeated", OPTION_SET,
        AT(overrides)},
    JOB_OPTIONS(struct goodput_command),
    {"days", "D",
        "Days that a history lasts (default: goodput.days of the scenario, else as many as --tokens take without a "
        "failure, else 30)",
        OPTION_TAKE, AT(days), .take = take_days},
    {"seeds", "N", "Histories, whose spread the intervals are (default: 20)", OPTION_SAMPLES, AT(seeds)},
    {"tokens", "N", "Days, dollars and energy of a training on this number of tokens (images, samples), as in 15T",
        OPTION_TAKE, AT(tokens), .take = argument_tokens},
    PRICE_OPTION(struct goodput_command),
    {"db", "PATH", "Store the points in this database, for `flopcast plot goodput`", OPTION_TEXT, AT(db)},
    {"sources", NULL, "Print the numbers that a scenario need not set, with kind and source", OPTION_FLAG, AT(sources)},
    RECORDS_OPTION(struct goodput_command),
    {0},
};

/* Where a setting of the section was set; the file where it was not. */
static struct source_pos place(const struct scenario_point *point, const char *path)
{
    for (int i = point->origins.list.n - 1; i >= 0; i--)
        if (strcmp(point->origins.list.at[i].path, path) == 0)
            return point->origins.list.at[i].at;
    return (struct source_pos){.file = point->file};
}

/* Parameters that are trained, of LoRA the adapters, and the optimizer's state of them, wherever they lie meanwhile. */
static double state_bytes(const struct scenario_point *point)
{
    struct strategy_options strategy = point->options.strategy;
    struct arena scratch = ARENA_INIT;
    struct model adapted;
    model_adapt(&adapted, &point->model, strategy.train.lora_rank, strategy.train.lora_targets, &scratch);
    strategy.fsdp.cpu_offload = strategy.zero.offload_optimizer = 0;
    struct states states = states_of(adapted.trained, &strategy, 1, false);
    arena_release(&scratch);
    return states.weights + states.optimizer;
}

static struct goodput_job job_of(const struct scenario_point *point, const struct scenario_result *result)
{
    int64_t gpus = point->options.cluster.gpus, hosts = hw_hosts(&point->hw, gpus),
            in_rack = hw_hosts_per_node(&point->hw);
    int64_t nodes = (hosts + in_rack - 1) / in_rack, ports = (int64_t)point->hw.cluster.network.leaf_ports.value;
    int64_t links = nodes > 1 ? nodes * (int64_t)point->hw.node.nics.value : 0;
    return (struct goodput_job){
        .options = point->options.goodput,
        .parts = {[GOODPUT_GPU] = gpus,
            [GOODPUT_NODE] = hosts,
            [GOODPUT_LINK] = links,
            [GOODPUT_SWITCH] = ports > 0 ? (links + ports - 1) / ports : 0,
            [GOODPUT_SOFTWARE] = hosts},
        .in_rack = in_rack,
        .step_s = result->exec.step_time_s,
        .state_bytes = state_bytes(point),
    };
}

/* What would take too long to simulate, or means nothing. */
static enum status check(const struct goodput_point *out, const struct scenario_point *point, struct diag *diag)
{
    const struct goodput_options *o = &out->job.options;
    int64_t hosts = out->job.parts[GOODPUT_NODE];
    double seconds = out->days * S_PER_DAY, interval_s = fmax(o->checkpoint_interval_s, out->job.step_s);
    if (o->mtbf_s[GOODPUT_SWITCH] > 0 && out->job.parts[GOODPUT_LINK] > 0 && out->job.parts[GOODPUT_SWITCH] == 0)
        diag_input(diag, place(point, "goodput.switch_mtbf"),
            "the cluster's file does not say how many switches there are; give cluster.network.leaf_ports, or count "
            "them "
            "in goodput.link_mtbf");
    if (o->elastic_nodes > 0 && (o->elastic_nodes >= hosts || hosts % o->elastic_nodes != 0))
        diag_input(diag, place(point, "goodput.elastic_nodes"),
            "replicas of %lld hosts do not divide the job's %lld into two or more; give hosts of a data-parallel "
            "replica",
            (long long)o->elastic_nodes, (long long)hosts);
    if (seconds / out->costs.mtbf_s > MOST_EVENTS)
        diag_input(diag, place(point, "goodput.gpu_mtbf"),
            "the job would fail every %.3g s, which in %g days is more often than %d times; give longer goodput.*_mtbf "
            "or fewer --days",
            out->costs.mtbf_s, out->days, MOST_EVENTS);
    if (o->checkpoint_interval_s > 0 && seconds / interval_s > MOST_EVENTS)
        diag_input(diag, place(point, "goodput.checkpoint_interval"),
            "%g days hold more than %d checkpoints; give a longer interval or fewer --days", out->days, MOST_EVENTS);
    return diag->worst;
}

/* Of all that is paid for: the job's GPUs in steps and waiting, and spares and nodes that are away, idle. */
static double kwh_per_day(
    const struct goodput_point *out, const struct scenario_energy *energy, double gpus, double spares)
{
    double steps = time_share_of(out, GOODPUT_TRAINING) + time_share_of(out, GOODPUT_LOST);
    double away = time_share_of(out, GOODPUT_SHRUNK);
    double job_w = steps * energy->power_w + away * energy->idle_power_w + (1 - steps - away) * energy->waiting_power_w;
    return (gpus * job_w + spares * energy->idle_power_w) * HOURS_PER_DAY / W_PER_KW;
}

static void average(struct goodput_point *out, const struct goodput_run *runs, int n)
{
    double *shares = xcalloc((size_t)n, sizeof *shares);
    for (int i = 0; i < n; i++) {
        shares[i] = goodput_share(&runs[i]);
        for (int time = 0; time < GOODPUT_TIMES; time++)
            for (int cause = 0; cause <= GOODPUT_NO_CAUSE; cause++)
                out->time_share[time][cause] += runs[i].time_s[time][cause] / runs[i].elapsed_s / n;
        for (int cause = 0; cause < GOODPUT_CAUSES; cause++)
            out->interruptions[cause] += (double)runs[i].interruptions[cause] / n;
        out->hangs += (double)runs[i].hangs / n;
        out->checkpoints += (double)runs[i].checkpoints / n;
    }
    out->share = goodput_band(shares, n);
    free(shares);
}

static void simulate_point(struct goodput_point *out, const struct goodput_command *command,
    const struct scenario_point *point, const struct scenario_result *result, struct diag *diag)
{
    double gpus = (double)point->options.cluster.gpus;
    *out = (struct goodput_point){.ok = result->exec.status == EXEC_OK};
    if (!out->ok)
        return;
    out->job = job_of(point, result);
    out->costs = goodput_costs(&out->job);
    out->tflops_per_gpu = result->tflops_per_gpu;
    out->tokens_per_s = result->tokens_per_s_per_gpu * gpus;
    double spares = (double)goodput_hot_spares(&out->job) * hw_gpus_per_host(&point->hw);
    out->spare_gpus = spares;
    double price = kinds_mean(point, point->hw.gpu.price.value, point->hw.second_gpu.price.value);
    out->usd_per_day = (gpus + spares) * price * HOURS_PER_DAY;
    double without_failures = command->tokens.n / out->tokens_per_s / S_PER_DAY;
    double scenario_days = out->job.options.days;
    out->days = command->days > 0       ? command->days
                : scenario_days > 0     ? scenario_days
                : command->tokens.n > 0 ? fmin(without_failures, GOODPUT_MAX_DAYS)
                                        : DEFAULT_DAYS;
    if (check(out, point, diag) != STATUS_OK)
        return;
    uint64_t seed = (uint64_t)point->options.exec.seed;
    double given = out->job.options.checkpoint_interval_s;
    out->interval_s = given > 0 ? given : goodput_search_s(&out->job, command->seeds, out->days, seed);
    struct goodput_run *runs = xcalloc((size_t)command->seeds, sizeof *runs);
    goodput_simulate_all(runs, command->seeds, &out->job, out->interval_s, out->days, seed);
    average(out, runs, command->seeds);
    free(runs);
    struct scenario_energy energy = scenario_energy(point, result);
    out->kwh_per_day = kwh_per_day(out, &energy, gpus, spares);
}

/* The steps, then point by point the histories, which are on all cores themselves. */
static void run_all(
    const struct goodput_command *command, const struct scenario_set *set, struct arena *arena, struct diag *diag)
{
    size_t n = (size_t)set->n_points;
    struct scenario_result *results = xcalloc(n, sizeof *results);
    struct arena *arenas = xcalloc(n, sizeof *arenas);
    struct goodput_point *points = ARENA_ARRAY(arena, struct goodput_point, n);
    struct sure sure = {0};
    enum status status = scenario_simulate_all(results, arenas, set, NULL, NULL, diag);
    for (int i = 0; i < set->n_points && status == STATUS_OK; i++)
        simulate_point(&points[i], command, &set->points[i], &results[i], diag);
    for (int i = 0; i < set->n_points; i++)
        points[i].regime = sure_of(&sure, &set->points[i], REGIME_OF_SPEED, scenario_waiting_share(&results[i]));
    if (diag->worst == STATUS_OK)
        print(stdout, command, set, points, arena);
    if (diag->worst == STATUS_OK && command->format == RECORDS_TABLE)
        sure_print(stdout, &sure);
    if (diag->worst == STATUS_OK && command->db)
        keep(command, set, points, arena, diag);
    sure_end(&sure);
    for (int i = 0; i < set->n_points; i++)
        arena_release(&arenas[i]);
    free(arenas);
    free(results);
}

static void check_arguments(void *self, struct argp_state *state)
{
    struct goodput_command *command = self;
    if (!command->file && !command->sources)
        argp_error(state, "a scenario file is missing");
}

int cmd_goodput(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO|MODEL",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(file),
        .check = check_arguments,
        .doc =
            "Months of training: the simulated step, and GPUs, nodes, links, switches and software that fail, hangs "
            "until the watchdog ends them, hot spares, restarts and checkpoints. Prints the share of time that "
            "trains (goodput), what is left of TFLOPS, and where the rest goes.\v"
            "Section goodput of the scenario says how often parts fail and how checkpoints are written ('flopcast "
            "help settings'); --sources says where its defaults are from. checkpoint_interval 0 s: the interval with "
            "the largest goodput is searched. Intervals of goodput are 5 to 95 % of the histories; those of days "
            "hold the step's, by measured runs of the same regime, too. Dollars and energy count hot spares, too, "
            "which idle: by default none "
            "below "
            "64 nodes, then by the job's size. Energy is at the "
            "meter: GPUs in steps or waiting for one, host, network, PUE."};
    struct goodput_command command = {.seeds = DEFAULT_SEEDS};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    if (command.sources)
        print_sources(stdout);
    if (command.file) {
        command.file = files_find(&command.arena, FILES_SCENARIOS, command.file);
        scenario_load(&set, command.file, command.overrides.list.at, command.overrides.list.n, &command.arena, &diag);
        if (diag.worst == STATUS_OK && prices_set(&command.prices, &set, &command.arena, &diag) == STATUS_OK)
            run_all(&command, &set, &command.arena, &diag);
    }
    overrides_free(&command.overrides);
    prices_free(&command.prices);
    arena_release(&command.arena);
    return cli_report(&diag);
}
