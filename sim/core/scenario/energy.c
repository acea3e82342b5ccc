#include "scenario/energy.h"

#include "hw/power.h"
#include "scenario/kinds.h"

#include <math.h>

/* The GPU draws busy power for its kernels' time and waiting power for the rest; host, NICs and
 * switches draw the same all the time. */
static struct scenario_energy of_kind(const struct hw *hw, const struct exec_breakdown *breakdown, double step_s)
{
    struct hw_power power = hw_power_of(hw);
    double gpu = hw_power_gpu(&power, fmin(breakdown->compute_s / step_s, 1));
    return (struct scenario_energy){
        .gpu_power_w = gpu,
        .power_w = hw_power_at_meter(&power, gpu),
        .waiting_power_w = hw_power_at_meter(&power, power.waiting_w),
        .idle_power_w = hw_power_at_meter(&power, power.idle_w),
    };
}

/* Of a kind of GPU; of all where a summary is all that there is of the run. */
static const struct exec_breakdown *breakdown_of(const struct exec_result *exec, int kind)
{
    return kind < exec->n_programs ? &exec->programs[kind].breakdown : &exec->breakdown;
}

struct scenario_energy scenario_energy(const struct scenario_point *point, const struct scenario_result *result)
{
    const struct exec_result *exec = &result->exec;
    if (exec->status != EXEC_OK || !(exec->step_time_s > 0))
        return (struct scenario_energy){0};
    struct scenario_energy out = of_kind(&point->hw, &exec->breakdown, exec->step_time_s);
    if (exec->kinds) {
        struct hw hw = hw_of_second(&point->hw);
        struct scenario_energy first = of_kind(&point->hw, breakdown_of(exec, 0), exec->step_time_s);
        struct scenario_energy second = of_kind(&hw, breakdown_of(exec, 1), exec->step_time_s);
        out.gpu_power_w = kinds_mean(point, first.gpu_power_w, second.gpu_power_w);
        out.power_w = kinds_mean(point, first.power_w, second.power_w);
        out.waiting_power_w = kinds_mean(point, first.waiting_power_w, second.waiting_power_w);
        out.idle_power_w = kinds_mean(point, first.idle_power_w, second.idle_power_w);
    }
    out.per_token_j = result->tokens_per_s_per_gpu > 0 ? out.power_w / result->tokens_per_s_per_gpu : 0;
    return out;
}
