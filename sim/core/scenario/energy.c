#include "scenario/energy.h"

#include "hw/power.h"

#include <math.h>

struct scenario_energy scenario_energy(
    const struct scenario_point *point, const struct scenario_result *result)
{
    const struct exec_result *exec = &result->exec;
    if (exec->status != EXEC_OK || !(exec->step_time_s > 0))
        return (struct scenario_energy){0};
    struct hw_power power = hw_power_of(&point->hw);
    double gpu = hw_power_gpu(&power, fmin(exec->breakdown.compute_s / exec->step_time_s, 1));
    struct scenario_energy out = {
        .gpu_power_w = gpu,
        .power_w = hw_power_at_meter(&power, gpu),
        .waiting_power_w = hw_power_at_meter(&power, power.waiting_w),
        .idle_power_w = hw_power_at_meter(&power, power.idle_w),
    };
    out.per_token_j =
        result->tokens_per_s_per_gpu > 0 ? out.power_w / result->tokens_per_s_per_gpu : 0;
    return out;
}
