/* Months of training out of one simulated step.
 *
 * From hardware and scenario follow how many parts can fail (GPUs, hosts, links, switches), what a
 * checkpoint and a restart cost, and how large the state is; goodput/ then simulates histories with
 * random failures, which are averaged here. Without a given interval of checkpoints the best one is
 * searched.
 *
 * What is subtle: intervals of days, dollars and energy combine two independent causes in the
 * logarithm: the spread of the histories and how sure the step is. */
#include "study/months.h"

#include "hw/power.h"
#include "scenario/energy.h"
#include "strategy/states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double HOURS_PER_DAY = 24, W_PER_KW = 1e3;
enum { DEFAULT_DAYS = 30, MOST_EVENTS = 10000000 /* of a history; a second or so */ };

double months_time_share(const struct months_point *point, int time)
{
    double sum = 0;
    for (int cause = 0; cause <= GOODPUT_NO_CAUSE; cause++)
        sum += point->time_share[time][cause];
    return sum;
}

double months_cause_share(const struct months_point *point, int cause)
{
    double sum = 0;
    for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
        sum += point->time_share[time][cause];
    return sum;
}

double months_interruptions(const struct months_point *point)
{
    double sum = 0;
    for (int cause = 0; cause < GOODPUT_CAUSES; cause++)
        sum += point->interruptions[cause];
    return sum;
}

bool months_source(struct months_source *out, int i, struct arena *arena)
{
    struct goodput_options defaults = goodput_default_options();
    const struct goodput_number *number = goodput_numbers;
    const struct hw_power_default *power = hw_power_defaults;
    for (; number->key && i > 0; i--)
        number++;
    if (number->key) {
        size_t at = 0;
        const struct config_field *field = config_field_at(&goodput_table, number->key, &at);
        *out = (struct months_source){arena_printf(arena, "goodput.%s", number->key),
            config_value_text(field, (const char *)&defaults + at, arena),
            hw_kind_name(number->number.kind), number->number.source};
        return true;
    }
    for (; power->key && i > 0; i--)
        power++;
    if (!power->key)
        return false;
    struct quantity q = power->number;
    *out = (struct months_source){power->key,
        arena_printf(arena, "%g +- %g %s", q.value, q.std_error, power->unit), hw_kind_name(q.kind),
        q.source};
    return true;
}

/* Where a setting of the section was set; the file where it was not. */
static struct source_pos months_place(const struct scenario_point *point, const char *path)
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
static struct goodput_job months_job(
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
    const struct months_point *out, const struct scenario_point *point, struct diag *diag)
{
    static const double MOST_TRIES = 1e4; /* in the mean, until a restart comes to its end */
    double back_s = out->costs.restart_s + out->costs.load_s, mtbf_s = out->costs.mtbf_s;
    if (out->days * S_PER_DAY / mtbf_s > MOST_EVENTS)
        diag_input(diag, months_place(point, "goodput.gpu_mtbf"),
            "the job would fail every %.3g s, which in %g days is more often than %d times; give "
            "longer goodput.*_mtbf or fewer --days",
            mtbf_s, out->days, MOST_EVENTS);
    else if (exp(back_s / mtbf_s) > MOST_TRIES)
        diag_input(diag, months_place(point, "goodput.gpu_mtbf"),
            "the job would fail every %.3g s, and a restart takes %.3g s: of %g restarts less than "
            "one ends, so nothing trains; give longer goodput.*_mtbf, fewer GPUs or a shorter "
            "goodput.restart_time",
            mtbf_s, back_s, MOST_TRIES);
}

static void check_tokens(const struct months_asked *asked, const struct months_point *out,
    struct arena *arena, struct diag *diag)
{
    double of_step = out->tokens_per_s * out->job.step_s;
    if (asked->tokens > 0 && asked->tokens < of_step)
        diag_input(diag,
            (struct source_pos){.file = arena_printf(arena, "--tokens %s", asked->tokens_text)},
            "one step of the job takes %.0f; months of training are meant, as in 15T", of_step);
}

/* What would take too long to simulate, or means nothing. */
static enum status months_check(
    const struct months_point *out, const struct scenario_point *point, struct diag *diag)
{
    const struct goodput_options *o = &out->job.options;
    int64_t hosts = out->job.parts[GOODPUT_NODE];
    double seconds = out->days * S_PER_DAY,
           interval_s = fmax(o->checkpoint_interval_s, out->job.step_s);
    if (o->mtbf_s[GOODPUT_SWITCH] > 0 && out->job.parts[GOODPUT_LINK] > 0 &&
        out->job.parts[GOODPUT_SWITCH] == 0)
        diag_input(diag, months_place(point, "goodput.switch_mtbf"),
            "the cluster's file does not say how many switches there are; give "
            "cluster.network.leaf_ports, or count "
            "them "
            "in goodput.link_mtbf");
    if (o->elastic_nodes > 0 && (o->elastic_nodes >= hosts || hosts % o->elastic_nodes != 0))
        diag_input(diag, months_place(point, "goodput.elastic_nodes"),
            "replicas of %lld hosts do not divide the job's %lld into two or more; give hosts of a "
            "data-parallel replica",
            (long long)o->elastic_nodes, (long long)hosts);
    check_failures(out, point, diag);
    if (o->checkpoint_interval_s > 0 && seconds / interval_s > MOST_EVENTS)
        diag_input(diag, months_place(point, "goodput.checkpoint_interval"),
            "%g days hold more than %d checkpoints; give a longer interval or fewer --days",
            out->days, MOST_EVENTS);
    return diag->worst;
}

/* Of all that is paid for: the job's GPUs in steps and waiting, and spares and nodes that are
 * away, idle. Lost work draws as much power as work that counts. */
static double kwh_per_day(const struct months_point *out, const struct scenario_energy *energy,
    double gpus, double spares)
{
    double steps = months_time_share(out, GOODPUT_TRAINING) + months_time_share(out, GOODPUT_LOST);
    double away = months_time_share(out, GOODPUT_SHRUNK);
    double job_w = steps * energy->power_w + away * energy->idle_power_w +
                   (1 - steps - away) * energy->waiting_power_w;
    return (gpus * job_w + spares * energy->idle_power_w) * HOURS_PER_DAY / W_PER_KW;
}

/* Shares of time are means over histories; the band of goodput is over them, too, capped at 1. */
static void average(struct months_point *out, const struct goodput_run *runs, int n)
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

static struct months_total times(struct months_total days, double a_day)
{
    return (struct months_total){days.mean * a_day, days.low * a_day, days.high * a_day};
}

/* Of tokens. Where nothing trains no number of days is known, and where nothing does in the worst
 * histories no longest one. Faster and slower ends are widened separately, as both causes are
 * skewed. */
static void set_totals(struct months_point *p, double tokens)
{
    const struct sure_range *step = p->range;
    double share = p->share.mean;
    if (!p->ok || !(tokens > 0) || !(share > 0))
        return;
    double faster = hypot(log(p->share.high / share), step->known ? log(step->high) : 0);
    double slower = hypot(log(share / p->share.low), step->known ? log(step->low) : 0);
    double days = tokens / p->tokens_per_s / share / S_PER_DAY;
    p->total_days =
        (struct months_total){days, days * exp(-faster), p->share.low > 0 ? days * exp(slower) : 0};
    p->total_usd = times(p->total_days, p->usd_per_day);
    p->total_kwh = times(p->total_days, p->kwh_per_day);
}

void months_simulate(struct months_point *out, const struct months_asked *asked,
    const struct scenario_point *point, const struct scenario_result *result,
    const struct sure_range *range, struct arena *arena, struct diag *diag)
{
    double gpus = (double)point->options.cluster.gpus;
    int n = asked->histories;
    *out = (struct months_point){.ok = result->exec.status == EXEC_OK, .range = range};
    if (!out->ok)
        return;
    out->job = months_job(point, result);
    out->costs = goodput_costs(&out->job);
    out->tflops_per_gpu = result->tflops_per_gpu;
    out->tokens_per_s = result->tokens_per_s_per_gpu * gpus;
    double spares = (double)goodput_hot_spares(&out->job) * hw_gpus_per_host(&point->hw);
    out->spare_gpus = spares;
    out->price_usd_per_gpu_hour = point->hw.gpu.price.value;
    out->usd_per_day = (gpus + spares) * out->price_usd_per_gpu_hour * HOURS_PER_DAY;
    double without_failures = asked->tokens / out->tokens_per_s / S_PER_DAY;
    double scenario_days = out->job.options.days;
    out->days = asked->days > 0     ? asked->days
                : scenario_days > 0 ? scenario_days
                : asked->tokens > 0 ? fmin(without_failures, GOODPUT_MAX_DAYS)
                                    : DEFAULT_DAYS;
    check_tokens(asked, out, arena, diag);
    if (months_check(out, point, diag) != STATUS_OK)
        return;
    uint64_t seed = (uint64_t)point->options.exec.seed;
    double given = out->job.options.checkpoint_interval_s;
    out->interval_s = given > 0 ? given : goodput_search_s(&out->job, n, out->days, seed);
    struct goodput_run *runs = xcalloc((size_t)n, sizeof *runs);
    goodput_simulate_all(runs, n, &out->job, out->interval_s, out->days, seed);
    average(out, runs, n);
    free(runs);
    struct scenario_energy energy = scenario_energy(point, result);
    out->kwh_per_day = kwh_per_day(out, &energy, gpus, spares);
    set_totals(out, asked->tokens);
}
