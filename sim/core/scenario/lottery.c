/* The mean over clusters with and without slow hosts, from one run of each kind.
 *
 * With N hosts that are slow independently, 1 - (1 - share)^N of clusters have one at least. Those
 * clusters have N share over that probability slow hosts in the mean; a step with a fractional
 * number is taken between two runs with whole numbers. Each run has its slow hosts as an option, so
 * it is deterministic.
 *
 * What the step becomes longer by goes to compute on slow hosts and to exposed communication on the
 * others, by their shares, so that the breakdown still adds up to the step. */
#include "scenario/lottery.h"

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

/* 0: it does not come to an end. */
static double step_with(const struct plan *plan, const struct hw *hw,
    const struct exec_options *like, int64_t slow_hosts)
{
    struct arena arena = ARENA_INIT;
    struct exec_options options = *like;
    struct exec_result result;
    options.noise.slow_hosts = slow_hosts;
    options.fold = FOLD_SLOWEST;
    options.n_trace_ranks = 0;
    exec_run(&result, plan, hw, &options, &arena);
    double step_s = result.status == EXEC_OK && !result.overlong ? result.step_time_s : 0;
    arena_release(&arena);
    return step_s;
}

/* Between two runs; a run that would count for less is not made. */
static const double LEAST_WEIGHT = 0.05;

static double step_with_some(const struct plan *plan, const struct hw *hw,
    const struct exec_options *like, double slow_hosts)
{
    double above = slow_hosts - floor(slow_hosts);
    int64_t fewer = (int64_t)slow_hosts;
    if (above < LEAST_WEIGHT)
        return step_with(plan, hw, like, fewer);
    if (above > 1 - LEAST_WEIGHT)
        return step_with(plan, hw, like, fewer + 1);
    double with_fewer_s = step_with(plan, hw, like, fewer),
           with_more_s = step_with(plan, hw, like, fewer + 1);
    return with_fewer_s > 0 && with_more_s > 0 ? with_fewer_s + above * (with_more_s - with_fewer_s)
                                               : 0;
}

static void lengthen(struct exec_breakdown *parts, double computed_s, double waited_s)
{
    parts->compute_s += computed_s;
    parts->exposed_comm_s += waited_s;
    parts->comm[PARALLEL_DATA].exposed_s += waited_s;
    parts->comm_wait_s += waited_s;
}

void lottery_mean(struct scenario_result *out, const struct plan *plan, const struct hw *hw,
    const struct exec_options *options)
{
    struct exec_result *exec = &out->exec;
    int hosts = (int)hw_hosts(hw, plan->mesh.ranks);
    double some = lottery_some(&options->noise, hosts), none_s = exec->step_time_s;
    if (!(some > 0) || exec->status != EXEC_OK || exec->overlong)
        return;
    double slow_hosts = fmin(hosts, hosts * options->noise.straggler_share / some);
    double some_s = step_with_some(plan, hw, options, slow_hosts);
    if (!(some_s > 0))
        return;
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
