/* One point from plan to rates, and the loop over all points.
 *
 * scenario_simulate() compiles the plan, runs it, mixes in clusters with slow hosts (lottery.h),
 * and divides FLOP, tokens and samples by the step. The reference run that the executor may make is
 * kept for the lottery's runs of the same plan and freed here. `folds` lets the compiler leave out
 * what ranks that are alike would repeat; a plan that a user reads (scenario_compile) has all of
 * it.
 *
 * MFU counts the model's FLOP against the peak of the precision. HFU counts for each number format
 * what the kernels execute in it against that format's peak, so an FP32 optimizer beside BF16
 * products stays below 1. */
#include "scenario/scenario.h"

#include "scenario/jobs.h"
#include "scenario/lottery.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double scenario_simulate_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct job job_of_point(const struct scenario_point *point)
{
    return strategy_job(
        &point->options.strategy, &point->model, &point->hw, (int)point->options.cluster.gpus);
}

static enum status compile(struct plan *out, const struct scenario_point *point, bool folds,
    struct arena *arena, struct diag *diag)
{
    struct job job = job_of_point(point);
    job.folds = folds;
    return strategy_compile(out, &job, point->gpus_at, arena, diag);
}

enum status scenario_compile(
    struct plan *out, const struct scenario_point *point, struct arena *arena, struct diag *diag)
{
    return compile(out, point, false, arena, diag);
}

static double formula_flop(const struct plan *plan, const struct scenario_point *point)
{
    enum attention_flop counts = (enum attention_flop)point->options.attention_flop;
    switch ((enum flops_formula)point->options.flops_formula) {
    case FLOPS_HARDWARE:
        return plan_hardware_flop(plan, counts);
    case FLOPS_PARAMETERS:
        return 6.0 * (double)model_active_params(&point->model.shape, point->model.params) *
               plan->tokens / plan->mesh.ranks;
    case FLOPS_MODEL:
    case FLOPS_FORMULA_COUNT:
        break;
    }
    return plan_model_flop(plan, counts);
}

static double peak_of(const struct scenario_point *point, enum dtype math)
{
    return point->hw.gpu.gemm[math].peak.value;
}

/* How long a GPU would need at the peaks of what it multiplies in, in the mean over the job. */
static double at_peaks_s(const struct plan *plan, const struct scenario_point *point)
{
    double sum = 0;
    for (enum dtype math = 0; math < DTYPE_COUNT; math++) {
        double flop = plan_math_flop(plan, math);
        sum += flop > 0 ? flop / peak_of(point, math) : 0;
    }
    return sum;
}

/* From out->exec what follows of speeds; they stay 0 where the point does not fit. */
static void set_rates(
    struct scenario_result *out, const struct plan *plan, const struct scenario_point *point)
{
    double step_s = out->exec.step_time_s;
    if (out->exec.status != EXEC_OK || step_s <= 0)
        return;
    enum attention_flop counts = (enum attention_flop)point->options.attention_flop;
    double peak = peak_of(point, strategy_math(&point->options.strategy.train));
    out->mfu = plan_model_flop(plan, ATTENTION_FLOP_CAUSAL) / step_s / peak;
    out->hfu = at_peaks_s(plan, point) / step_s;
    out->model_tflops_per_gpu = plan_model_flop(plan, counts) / step_s * 1e-12;
    out->hw_tflops_per_gpu = plan_hardware_flop(plan, counts) / step_s * 1e-12;
    out->tflops_per_gpu = formula_flop(plan, point) / step_s * 1e-12;
    out->tokens_per_s_per_gpu = plan->tokens / plan->mesh.ranks / step_s;
    out->samples_per_s = plan->samples / step_s;
}

double scenario_waiting_share(const struct scenario_result *result)
{
    const struct exec_result *exec = &result->exec;
    return exec->step_time_s > 0
               ? (exec->breakdown.exposed_comm_s + exec->breakdown.bubble_s) / exec->step_time_s
               : 0;
}

enum status scenario_simulate(struct scenario_result *out, const struct scenario_point *point,
    struct arena *arena, struct diag *diag)
{
    double start_s = scenario_simulate_now_s();
    struct arena work = ARENA_INIT;
    struct plan plan = {0};
    *out = (struct scenario_result){0};
    enum status status = compile(&plan, point, true, &work, diag);
    if (status == STATUS_OK) {
        out->plan_ops = plan_ops(&plan);
        lottery_simulate(out, &plan, &point->hw, &point->options.exec, &work);
        if (out->exec.overlong)
            status = diag_input(diag, point->gpus_at,
                "the run would take more than %.0f days; look for a bandwidth that is far too low "
                "(also in cluster.degraded_links: a link that is gone is 0), or a time of 'host' "
                "that is far too long",
                s_from_ps(PS_HORIZON) / S_PER_DAY);
        set_rates(out, &plan, point);
    }
    plan_release(&plan);
    exec_result_move(&out->exec, &work, arena);
    out->wall_s = scenario_simulate_now_s() - start_s;
    return status;
}

/* ---- all points ---- */

struct simulated {
    struct jobs jobs;
    const struct scenario_set *set;
    struct scenario_result *results;
    struct arena *arenas;
};

static enum status scenario_simulate_point(void *self, int point, struct diag *diag)
{
    struct simulated *all = self;
    return scenario_simulate(
        &all->results[point], &all->set->points[point], &all->arenas[point], diag);
}

static bool end_point(void *self, int point, enum status status)
{
    struct simulated *all = self;
    return jobs_ended(&all->jobs, point, status);
}

enum status scenario_simulate_some(struct scenario_result *results, struct arena *arenas,
    const struct scenario_set *set, const struct scenario_work *work, struct diag *diag)
{
    struct simulated all = {.set = set, .results = results, .arenas = arenas};
    struct crew_loop *loop = &all.jobs.loop;
    int *order = jobs_order(set);
    jobs_begin(&all.jobs, set->n_points, work);
    loop->order = order;
    loop->self = &all;
    loop->job = scenario_simulate_point;
    loop->ended = end_point;
    enum status status = crew_run(loop, diag);
    jobs_end(&all.jobs);
    free(order);
    return status;
}

enum status scenario_simulate_all(struct scenario_result *results, struct arena *arenas,
    const struct scenario_set *set, scenario_progress progress, void *self, struct diag *diag)
{
    struct scenario_work work = {.progress = progress, .self = self};
    return scenario_simulate_some(results, arenas, set, &work, diag);
}
