/* `flopcast goodput`: months of training out of one simulated step, failures and checkpoints.
 *
 * The step is simulated once a point. From hardware and scenario follow how many parts can fail
 * (GPUs, hosts, links, switches), what a checkpoint and a restart cost, and how large the state
 * is; goodput/ then simulates histories with random failures, on all cores, and this command
 * averages them. Without a given interval of checkpoints the best one is searched.
 *
 * What is subtle: sizes that would simulate for hours or train next to nothing are refused
 * before, with the setting to change. Intervals of days, dollars and energy combine two
 * independent causes in the logarithm: the spread of the histories and how sure the step is.
 * Spares and nodes that are away are paid for, too, and draw idle power. */
#include "cli/goodput.h"

#include "base/files.h"
#include "cli/cli.h"
#include "rows/table.h"
#include "options/waiting.h"
#include "hw/power.h"
#include "scenario/energy.h"
#include "strategy/states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

COMMAND(cmd_goodput, 18, "goodput", 0, "months of training: what failures and checkpoints cost",
    "flopcast goodput llama2_7b_h100_fsdp --set cluster.gpus=512");

static const double HOURS_PER_DAY = 24, W_PER_KW = 1e3;

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
        table_text(
            &table, "default", "", config_value_text(field, (const char *)&defaults + at, &arena));
        table_text(&table, "kind", "", kinds[number->number.kind]);
        table_text(&table, "source", "", number->number.source);
    }
    for (const struct hw_power_default *number = hw_power_defaults; number->key; number++) {
        struct quantity q = number->number;
        table_row(&table);
        table_text(&table, "setting", "", number->key);
        table_text(&table, "default", "",
            arena_printf(&arena, "%g +- %g %s", q.value, q.std_error, number->unit));
        table_text(&table, "kind", "", kinds[q.kind]);
        table_text(&table, "source", "", q.source);
    }
    table_finish(out, &table);
    arena_release(&arena);
}

/* ---- the histories ---- */

enum {
    DEFAULT_DAYS = 30,
    DEFAULT_SEEDS = 20,
    MOST_EVENTS = 10000000
}; /* MOST_EVENTS: of a history; a second or so */

static void take_days(void *days, const struct argument *argument)
{
    char *end = NULL;
    double value = strtod(argument->text, &end);
    if (end == argument->text || *end || !(value > 0 && value <= GOODPUT_MAX_DAYS))
        argp_error(argument->state, "--days %s: a number of days up to %d is wanted, as in 30",
            argument->text, GOODPUT_MAX_DAYS);
    *(double *)days = value;
}

static const struct command_option goodput_options[] = {
    {"set", "KEY=VALUE", "Set an option, as in goodput.checkpoint_interval=10min; may be repeated",
        OPTION_SET, AT(goodput_command, overrides)},
    JOB_OPTIONS(struct goodput_command),
    {"days", "D",
        "Days that a history lasts (default: goodput.days of the scenario, else as many as "
        "--tokens take without a failure, else 30)",
        OPTION_TAKE, AT(goodput_command, days), .take = take_days},
    {"seeds", "N", "Histories, whose spread the intervals are (default: 20)", OPTION_SAMPLES,
        AT(goodput_command, seeds)},
    {"tokens", "N",
        "Days, dollars and energy of a training on this number of tokens (images, samples), as in "
        "15T",
        OPTION_TAKE, AT(goodput_command, tokens), .take = argument_tokens},
    PRICE_OPTION(struct goodput_command),
    MEASURED_OPTION(struct goodput_command),
    {"db", "PATH", "Store the points in this database, for `flopcast plot goodput`", OPTION_TEXT,
        AT(goodput_command, db)},
    {"sources", NULL, "Print the numbers that a scenario need not set, with kind and source",
        OPTION_FLAG, AT(goodput_command, sources)},
    RECORDS_OPTION(struct goodput_command),
    {0},
};

/* Where a setting of the section was set; the file where it was not. */
static struct source_pos goodput_place(const struct scenario_point *point, const char *path)
{
    for (int i = point->origins.list.n - 1; i >= 0; i--)
        if (strcmp(point->origins.list.at[i].path, path) == 0)
            return point->origins.list.at[i].at;
    return (struct source_pos){.file = point->file};
}

/* Parameters that are trained, of LoRA the adapters, and the optimizer's state of them, wherever
 * they lie meanwhile. Offload does not change what a checkpoint holds, so it is switched off
 * here; of one GPU, so that nothing is sharded. */
static double state_bytes(const struct scenario_point *point)
{
    struct strategy_options strategy = point->options.strategy;
    struct arena scratch = ARENA_INIT;
    struct model adapted;
    model_adapt(
        &adapted, &point->model, strategy.train.lora_rank, strategy.train.lora_targets, &scratch);
    strategy.fsdp.cpu_offload = strategy.zero.offload_optimizer = 0;
    struct states states = states_of(adapted.trained, &strategy, 1, false);
    arena_release(&scratch);
    return states.weights + states.optimizer;
}

/* A switch is counted by its leaf ports; one node has no links that could fail. */
static struct goodput_job goodput_job_of(
    const struct scenario_point *point, const struct scenario_result *result)
{
    int64_t gpus = point->options.cluster.gpus, hosts = hw_hosts(&point->hw, gpus),
            in_rack = hw_hosts_per_node(&point->hw);
    int64_t nodes = (hosts + in_rack - 1) / in_rack,
            ports = (int64_t)point->hw.cluster.network.leaf_ports.value;
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

/* Days of which next to nothing would train. A restart that lasts b comes to its end with
 * probability exp(-b / mtbf). */
static void check_failures(
    const struct goodput_point *out, const struct scenario_point *point, struct diag *diag)
{
    static const double MOST_TRIES = 1e4; /* in the mean, until a restart comes to its end */
    double back_s = out->costs.restart_s + out->costs.load_s, mtbf_s = out->costs.mtbf_s;
    if (out->days * S_PER_DAY / mtbf_s > MOST_EVENTS)
        diag_input(diag, goodput_place(point, "goodput.gpu_mtbf"),
            "the job would fail every %.3g s, which in %g days is more often than %d times; give "
            "longer goodput.*_mtbf or fewer --days",
            mtbf_s, out->days, MOST_EVENTS);
    else if (exp(back_s / mtbf_s) > MOST_TRIES)
        diag_input(diag, goodput_place(point, "goodput.gpu_mtbf"),
            "the job would fail every %.3g s, and a restart takes %.3g s: of %g restarts less than "
            "one ends, so nothing trains; give longer goodput.*_mtbf, fewer GPUs or a shorter "
            "goodput.restart_time",
            mtbf_s, back_s, MOST_TRIES);
}

static void check_tokens(const struct goodput_command *command, const struct goodput_point *out,
    struct arena *arena, struct diag *diag)
{
    double of_step = out->tokens_per_s * out->job.step_s;
    if (command->tokens.n > 0 && command->tokens.n < of_step)
        diag_input(diag,
            (struct source_pos){.file = arena_printf(arena, "--tokens %s", command->tokens.text)},
            "one step of the job takes %.0f; months of training are meant, as in 15T", of_step);
}

/* What would take too long to simulate, or means nothing. */
static enum status goodput_check(
    const struct goodput_point *out, const struct scenario_point *point, struct diag *diag)
{
    const struct goodput_options *o = &out->job.options;
    int64_t hosts = out->job.parts[GOODPUT_NODE];
    double seconds = out->days * S_PER_DAY,
           interval_s = fmax(o->checkpoint_interval_s, out->job.step_s);
    if (o->mtbf_s[GOODPUT_SWITCH] > 0 && out->job.parts[GOODPUT_LINK] > 0 &&
        out->job.parts[GOODPUT_SWITCH] == 0)
        diag_input(diag, goodput_place(point, "goodput.switch_mtbf"),
            "the cluster's file does not say how many switches there are; give "
            "cluster.network.leaf_ports, or count "
            "them "
            "in goodput.link_mtbf");
    if (o->elastic_nodes > 0 && (o->elastic_nodes >= hosts || hosts % o->elastic_nodes != 0))
        diag_input(diag, goodput_place(point, "goodput.elastic_nodes"),
            "replicas of %lld hosts do not divide the job's %lld into two or more; give hosts of a "
            "data-parallel replica",
            (long long)o->elastic_nodes, (long long)hosts);
    check_failures(out, point, diag);
    if (o->checkpoint_interval_s > 0 && seconds / interval_s > MOST_EVENTS)
        diag_input(diag, goodput_place(point, "goodput.checkpoint_interval"),
            "%g days hold more than %d checkpoints; give a longer interval or fewer --days",
            out->days, MOST_EVENTS);
    return diag->worst;
}

/* Of all that is paid for: the job's GPUs in steps and waiting, and spares and nodes that are
 * away, idle. Lost work draws as much power as work that counts. */
static double kwh_per_day(const struct goodput_point *out, const struct scenario_energy *energy,
    double gpus, double spares)
{
    double steps =
        goodput_time_share(out, GOODPUT_TRAINING) + goodput_time_share(out, GOODPUT_LOST);
    double away = goodput_time_share(out, GOODPUT_SHRUNK);
    double job_w = steps * energy->power_w + away * energy->idle_power_w +
                   (1 - steps - away) * energy->waiting_power_w;
    return (gpus * job_w + spares * energy->idle_power_w) * HOURS_PER_DAY / W_PER_KW;
}

/* Shares of time are means over histories; the band of goodput is over them, too, capped at 1. */
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
    out->share = goodput_band(shares, n); /* of rounded nanoseconds */
    out->share = (struct goodput_band){
        fmin(out->share.mean, 1), fmin(out->share.low, 1), fmin(out->share.high, 1)};
    free(shares);
}

static struct goodput_total times(struct goodput_total days, double a_day)
{
    return (struct goodput_total){days.mean * a_day, days.low * a_day, days.high * a_day};
}

/* Of tokens. Where nothing trains no number of days is known, and where nothing does in the worst
 * histories no longest one. Faster and slower ends are widened separately, as both causes are
 * skewed. */
static void set_totals(struct goodput_point *p, double tokens)
{
    const struct sure_range *step = p->range;
    double share = p->share.mean;
    if (!p->ok || !(tokens > 0) || !(share > 0))
        return;
    double faster = hypot(log(p->share.high / share), step->known ? log(step->high) : 0);
    double slower = hypot(log(share / p->share.low), step->known ? log(step->low) : 0);
    double days = tokens / p->tokens_per_s / share / S_PER_DAY;
    p->total_days = (struct goodput_total){
        days, days * exp(-faster), p->share.low > 0 ? days * exp(slower) : 0};
    p->total_usd = times(p->total_days, p->usd_per_day);
    p->total_kwh = times(p->total_days, p->kwh_per_day);
}

static void goodput_simulate_point(struct goodput_point *out, const struct goodput_command *command,
    const struct scenario_point *point, const struct scenario_result *result, struct arena *arena,
    struct diag *diag)
{
    double gpus = (double)point->options.cluster.gpus;
    *out = (struct goodput_point){.ok = result->exec.status == EXEC_OK};
    if (!out->ok)
        return;
    out->job = goodput_job_of(point, result);
    out->costs = goodput_costs(&out->job);
    out->tflops_per_gpu = result->tflops_per_gpu;
    out->tokens_per_s = result->tokens_per_s_per_gpu * gpus;
    double spares = (double)goodput_hot_spares(&out->job) * hw_gpus_per_host(&point->hw);
    out->spare_gpus = spares;
    out->price_usd_per_gpu_hour = point->hw.gpu.price.value;
    out->usd_per_day = (gpus + spares) * out->price_usd_per_gpu_hour * HOURS_PER_DAY;
    double without_failures = command->tokens.n / out->tokens_per_s / S_PER_DAY;
    double scenario_days = out->job.options.days;
    out->days = command->days > 0       ? command->days
                : scenario_days > 0     ? scenario_days
                : command->tokens.n > 0 ? fmin(without_failures, GOODPUT_MAX_DAYS)
                                        : DEFAULT_DAYS;
    check_tokens(command, out, arena, diag);
    if (goodput_check(out, point, diag) != STATUS_OK)
        return;
    uint64_t seed = (uint64_t)point->options.exec.seed;
    double given = out->job.options.checkpoint_interval_s;
    out->interval_s =
        given > 0 ? given : goodput_search_s(&out->job, command->seeds, out->days, seed);
    struct goodput_run *runs = xcalloc((size_t)command->seeds, sizeof *runs);
    goodput_simulate_all(runs, command->seeds, &out->job, out->interval_s, out->days, seed);
    average(out, runs, command->seeds);
    free(runs);
    struct scenario_energy energy = scenario_energy(point, result);
    out->kwh_per_day = kwh_per_day(out, &energy, gpus, spares);
}

/* How sure a step is. Where something was measured the result becomes what that makes of it, and
 * its interval is around it. Then everything behind works on the measured speed, and the interval
 * is relative to it. */
static const struct sure_range *goodput_take_range(struct sure *sure,
    const struct scenario_point *point, struct scenario_result *result, struct arena *arena)
{
    static const struct sure_range none = {0};
    if (result->exec.status != EXEC_OK)
        return &none;
    const struct sure_range *range = sure_of_speed(sure, point, result->mfu);
    if (!range->known)
        return range;
    result->exec.step_time_s /= range->middle;
    result->tflops_per_gpu *= range->middle;
    result->tokens_per_s_per_gpu *= range->middle;
    struct sure_range *around = ARENA_NEW(arena, struct sure_range);
    *around = (struct sure_range){true, range->low / range->middle, range->high / range->middle, 1};
    return around;
}

/* The steps, then point by point the histories, which are on all cores themselves. */
static void goodput_run_all(const struct goodput_command *command, struct scenario_set *set,
    struct arena *arena, struct diag *diag)
{
    size_t n = (size_t)set->n_points;
    struct scenario_result *results = xcalloc(n, sizeof *results);
    struct arena *arenas = xcalloc(n, sizeof *arenas);
    struct goodput_point *points = ARENA_ARRAY(arena, struct goodput_point, n);
    struct sure sure = {0};
    struct own_runs own = {.command = "goodput"};
    enum status status =
        own_runs_simulate(&own, &sure, &command->measured, set, &command->overrides, arena, diag);
    struct waiting *waiting =
        waiting_begin("goodput", set->points[0].options.name, "points", set, false);
    if (status == STATUS_OK)
        status = scenario_simulate_all(results, arenas, set, waiting_count, waiting, diag);
    for (int i = 0; i < set->n_points && status == STATUS_OK; i++) {
        const struct sure_range *range =
            goodput_take_range(&sure, &set->points[i], &results[i], arena);
        goodput_simulate_point(&points[i], command, &set->points[i], &results[i], arena, diag);
        points[i].range = range;
        set_totals(&points[i], command->tokens.n);
    }
    waiting_end(waiting);
    if (diag->worst == STATUS_OK)
        goodput_print(stdout, command, set, points, arena);
    if (diag->worst == STATUS_OK && command->format == RECORDS_TABLE)
        sure_print(stdout, &sure);
    if (diag->worst == STATUS_OK && command->format == RECORDS_TABLE)
        own_runs_print(stdout, &own);
    if (diag->worst == STATUS_OK && command->db)
        goodput_keep(command, set, points, arena, diag);
    sure_end(&sure);
    vec_free(&own.list);
    for (int i = 0; i < set->n_points; i++)
        arena_release(&arenas[i]);
    free(arenas);
    free(results);
}

static void goodput_check_arguments(void *self, struct argp_state *state)
{
    struct goodput_command *command = self;
    if (!command->file && !command->sources)
        argp_error(state, "a scenario file is missing");
}

int cmd_goodput(int argc, char **argv)
{
    const struct command_line line = {.options = goodput_options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO|MODEL",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(goodput_command, file),
        .check = goodput_check_arguments,
        .doc = "Months of training: the simulated step, and GPUs, nodes, links, switches and "
               "software that fail, hangs until the watchdog ends them, hot spares, restarts and "
               "checkpoints. Prints the share of time that trains (goodput), what is left of "
               "TFLOPS, and where the rest goes.\vSection goodput of the scenario says how often "
               "parts fail and how checkpoints are written ('flopcast help settings'); --sources "
               "says where its defaults are from. checkpoint_interval 0 s: the interval with the "
               "largest goodput is searched. "
               "Intervals of goodput are 5 to 95 % of the histories; those of days, dollars and "
               "energy hold the step's, by measured runs of the same range, too. Dollars and "
               "energy count hot spares, too, which idle: by default none below "
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
        overrides_load(&set, command.file, &command.overrides, &command.arena, &diag);
        if (diag.worst == STATUS_OK && command.db &&
            (command.measured.texts.n > 0 || set.n_measured > 0))
            diag_input(&diag, set.n_measured > 0 ? set.measured[0].at : (struct source_pos){0},
                "what was measured shifts the months that are printed, and --db keeps what is "
                "simulated; leave out one of them");
        if (diag.worst == STATUS_OK &&
            prices_set(&command.prices, &set, &command.arena, &diag) == STATUS_OK)
            goodput_run_all(&command, &set, &command.arena, &diag);
    }
    overrides_free(&command.overrides);
    own_runs_free(&command.measured);
    prices_free(&command.prices);
    arena_release(&command.arena);
    return cli_report(&diag);
}
