/* The mean over clusters with and without slow hosts, from one run of each kind.
 *
 * With N hosts that are slow independently, 1 - (1 - share)^N of clusters have one at least. Those
 * clusters have N share over that probability slow hosts in the mean; a step with a fractional
 * number is taken between two runs with whole numbers. Each run has its slow hosts as an option, so
 * it is deterministic, and they go on at once, with one quiet run as their reference.
 *
 * What the step becomes longer by goes to compute on slow hosts and to exposed communication on the
 * others, by their shares, so that the breakdown still adds up to the step. */
#include "scenario/lottery.h"

#include "crew/crew.h"

#include <math.h>

double lottery_some(const struct noise_options *noise, int hosts)
{
    if (!(noise->gpu_speed_spread > 0) || !(noise->straggler_slowdown > 0) || noise->drawn_speeds ||
        noise->slow_hosts > 0)
        return 0;
    return -expm1(hosts * log1p(-noise->straggler_share));
}

/* Walks the binomial distribution upwards: each term from the one before it, until their sum passes
 * u. The first terms of tens of thousands of hosts are less than a double can be: they are passed
 * by their logarithms, and what they add up to is nothing. */
int64_t lottery_at(double u, double share, int hosts)
{
    if (share >= 1)
        return hosts;
    static const double LEAST = -700; /* exp() of less is on its way to 0 */
    double log_of_this = hosts * log1p(-share);
    int64_t slow = 0;
    for (; log_of_this < LEAST && slow < hosts; slow++)
        log_of_this += log((double)(hosts - slow) / (double)(slow + 1) * share / (1 - share));
    double of_this = exp(log_of_this);
    for (double below = of_this; below <= u && slow < hosts; below += of_this)
        of_this *= (double)(hosts - slow) / (double)(slow + 1) * share / (1 - share), slow++;
    return slow;
}

/* Without slow hosts, and with as many as are between two numbers. */
enum { NONE_SLOW, FEWER_SLOW, MORE_SLOW, MOST_RUNS };

struct lottery_runs {
    const struct plan *plan;
    const struct hw *hw;
    struct exec_options options;
    struct arena *arena;
    struct exec_result *none;
    int n;
    int64_t slow_hosts[MOST_RUNS];
    double step_s[MOST_RUNS]; /* 0: it does not come to an end */
};

static double lottery_step(const struct exec_result *result)
{
    return result->status == EXEC_OK && !result->overlong ? result->step_time_s : 0;
}

static double step_with(const struct lottery_runs *runs, int64_t slow_hosts)
{
    struct arena arena = ARENA_INIT;
    struct exec_options options = runs->options;
    struct exec_result result;
    options.noise.slow_hosts = slow_hosts;
    options.fold = FOLD_SLOWEST;
    options.n_trace_ranks = 0;
    exec_run(&result, runs->plan, runs->hw, &options, &arena);
    double step_s = lottery_step(&result);
    arena_release(&arena);
    return step_s;
}

static enum status lottery_run(void *self, int run, struct diag *diag)
{
    struct lottery_runs *runs = self;
    (void)diag;
    if (run == NONE_SLOW)
        exec_run(runs->none, runs->plan, runs->hw, &runs->options, runs->arena);
    runs->step_s[run] =
        run == NONE_SLOW ? lottery_step(runs->none) : step_with(runs, runs->slow_hosts[run]);
    return STATUS_OK;
}

/* Between two runs; a run that would count for less is not made. */
static const double LEAST_WEIGHT = 0.05;

/* How much of the way from FEWER_SLOW to MORE_SLOW the mean is. */
static double lottery_plan(struct lottery_runs *runs, double slow_hosts)
{
    double above = slow_hosts - floor(slow_hosts);
    int64_t fewer = (int64_t)slow_hosts + (above > 1 - LEAST_WEIGHT);
    bool between = above >= LEAST_WEIGHT && above <= 1 - LEAST_WEIGHT;
    runs->slow_hosts[FEWER_SLOW] = fewer;
    runs->slow_hosts[MORE_SLOW] = fewer + 1;
    runs->n = between ? MOST_RUNS : MORE_SLOW;
    return between ? above : 0;
}

static void lottery_run_all(struct lottery_runs *runs)
{
    static const int order[MOST_RUNS] = {NONE_SLOW, FEWER_SLOW, MORE_SLOW}; /* the longest first */
    struct exec_reference reference = {0};
    struct diag silent = DIAG_INIT;
    exec_refer(&reference, runs->plan, runs->hw, &runs->options, runs->arena);
    runs->options.reference = &reference;
    if (reference.ended)
        runs->n = 1;
    if (runs->options.progress)
        runs->options.progress->runs = runs->n;
    crew_run(&(struct crew_loop){.n = runs->n, .order = order, .self = runs, .job = lottery_run},
        &silent);
    exec_reference_release(&reference);
}

static void lengthen(struct exec_breakdown *parts, double computed_s, double waited_s)
{
    parts->compute_s += computed_s;
    parts->exposed_comm_s += waited_s;
    parts->comm[PARALLEL_DATA].exposed_s += waited_s;
    parts->comm_wait_s += waited_s;
}

void lottery_simulate(struct scenario_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options, struct arena *arena)
{
    struct exec_result *exec = &out->exec;
    int hosts = (int)hw_hosts(hw, plan->mesh.ranks);
    double some = lottery_some(&options->noise, hosts);
    if (!(some > 0)) {
        exec_run(exec, plan, hw, options, arena);
        return;
    }
    struct lottery_runs runs = {
        .plan = plan, .hw = hw, .options = *options, .arena = arena, .none = exec};
    double slow_hosts = fmin(hosts, hosts * options->noise.straggler_share / some),
           above = lottery_plan(&runs, slow_hosts);
    lottery_run_all(&runs);
    for (int run = 0; run < runs.n; run++)
        if (!(runs.step_s[run] > 0)) /* nor that of a quiet run which ended too soon */
            return;
    double none_s = runs.step_s[NONE_SLOW], fewer_s = runs.step_s[FEWER_SLOW],
           some_s = fewer_s + (above > 0 ? above * (runs.step_s[MORE_SLOW] - fewer_s) : 0);
    double more_s = some * (some_s - none_s);
    out->slow = (struct scenario_slow){some, none_s, some_s};
    exec->step_time_s = none_s + more_s;
    exec->nvlink_utilisation *= none_s / exec->step_time_s;
    exec->nic_utilisation *= none_s / exec->step_time_s;
    double computed_s = more_s * slow_hosts / hosts, waited_s = more_s - computed_s;
    lengthen(&exec->breakdown, computed_s, waited_s);
    for (int p = 0; p < exec->n_programs; p++)
        lengthen(&exec->programs[p].breakdown, computed_s, waited_s);
}
