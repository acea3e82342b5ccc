/* What a run leaves: times of steps, what ranks spent them on, how busy the links were. Breakdowns
 * are sums over measured steps of each rank, weighted to means over the job and over each program;
 * with two kinds of node by their ranks. The idle time that is not explained is the rest of the
 * step, and never below 0. */
#include "exec/state.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

/* seconds: that a picosecond of the rank stands for. */
static void add_spent(struct exec_breakdown *sum, const struct rank *rank, double seconds)
{
    double s[SPENT_COUNT];
    for (int i = 0; i < SPENT_COUNT; i++)
        s[i] = (double)rank->spent[i] * seconds;
    sum->compute_s += s[SPENT_COMPUTE];
    sum->contention_s += s[SPENT_CONTENTION];
    sum->optimizer_s += s[SPENT_OPTIMIZER];
    sum->exposed_comm_s += s[SPENT_EXPOSED_COMM];
    sum->exposed_wait_s += s[SPENT_EXPOSED_WAIT];
    sum->host_bound_s += s[SPENT_HOST_BOUND];
    sum->comm_s += s[SPENT_COMM];
    sum->comm_latency_s += s[SPENT_COMM_LATENCY];
    sum->comm_wait_s += s[SPENT_COMM_WAIT];
    sum->bubble_s += s[SPENT_BUBBLE];
    sum->stage_wait_s += s[SPENT_STAGE_WAIT];
    for (int p = 0; p < PARALLEL_COUNT; p++) {
        sum->comm[p].moving_s += s[SPENT_MOVING + p];
        sum->comm[p].exposed_s += s[SPENT_EXPOSED + p];
    }
}

/* Of links that each node has as many of, one node after the other; where few ranks are simulated,
 * those of their nodes. */
static double utilisation(struct sim *sim, int first, int end, double span_s)
{
    const bool *nodes = sim->fold.watched;
    double carried = 0, capacity = 0;
    int of_node = (end - first) / sim->fabric.nodes;
    for (int l = first; l < end; l++) {
        if (nodes && !nodes[(l - first) / of_node])
            continue;
        carried += sim->measure.carried[l];
        capacity += sim->machine->net.capacity.at[l];
    }
    return capacity > 0 && span_s > 0 ? carried / (capacity * span_s) : 0;
}

/* The step less what is known of it; nothing where ranks end apart by more than that. */
static void set_idle(struct exec_breakdown *breakdown, double step_s)
{
    breakdown->other_idle_s = fmax(0, step_s - breakdown->compute_s - breakdown->exposed_comm_s -
                                          breakdown->bubble_s - breakdown->host_bound_s);
}

static void breakdown_result(struct sim *sim)
{
    struct exec_result *result = sim->result;
    double n = (double)sim->options->steps * (double)PS_PER_S;
    result->breakdown = (struct exec_breakdown){0}; /* a reference run may have left its own */
    for (int p = 0; p < result->n_programs; p++)
        result->programs[p].breakdown = (struct exec_breakdown){0};
    for (int r = 0; r < sim->n_ranks; r++) {
        const struct rank *rank = &sim->ranks[r];
        struct exec_program *program = &result->programs[rank->program];
        /* as many ranks run one program as any other */
        add_spent(&program->breakdown, rank, sim->plan->n_programs / n / sim->n_ranks);
        add_spent(&result->breakdown, rank, 1.0 / n / sim->n_ranks);
    }
    for (int p = 0; p < result->n_programs; p++)
        set_idle(&result->programs[p].breakdown, result->step_time_s);
    set_idle(&result->breakdown, result->step_time_s);
}

void timing_result(struct sim *sim)
{
    struct exec_result *result = sim->result;
    int32_t warmup = (int32_t)sim->options->warmup_steps, n = (int32_t)sim->options->steps;
    double *steps = ARENA_ARRAY(sim->arena, double, n);
    for (int32_t i = 0; i < n; i++) {
        ps_t before = warmup + i > 0 ? sim->measure.step_end[warmup + i - 1] : 0;
        steps[i] = s_from_ps(sim->measure.step_end[warmup + i] - before);
    }
    result->step_time_s = gsl_stats_mean(steps, 1, (size_t)n);
    result->step_time_sd_s = n > 1 ? gsl_stats_sd(steps, 1, (size_t)n) : 0;
    gsl_sort(steps, 1, (size_t)n);
    result->step_time_p05_s = gsl_stats_quantile_from_sorted_data(steps, 1, (size_t)n, 0.05);
    result->step_time_p95_s = gsl_stats_quantile_from_sorted_data(steps, 1, (size_t)n, 0.95);
    breakdown_result(sim);
    double span_s = s_from_ps(sim->measure.step_end[sim->total_steps - 1] - sim->measure.from);
    result->nvlink_utilisation = utilisation(sim, 0, sim->fabric.first_nic, span_s);
    result->nic_utilisation =
        utilisation(sim, sim->fabric.first_nic, sim->fabric.first_leaf, span_s);
}
