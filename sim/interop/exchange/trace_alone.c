/* How long kernels of a trace take without collectives beside them, where the trace does not say
 * so.
 *
 * A recorded duration holds the slowdown by collectives that ran meanwhile. The traced job is
 * simulated as it was traced, on its GPU; each kernel's simulated duration over its duration
 * alone says how much it was slowed, and the recorded one divided by that is the next guess.
 * This is repeated until the step changes by less than 1e-4, ten times at most. What is subtle:
 * it starts from recorded durations as if they were alone, so the first pass slows them twice;
 * the fixed point does not depend on that. */
#include "exchange/trace_alone.h"

#include "exec/exec.h"

#include <math.h>
#include <stdlib.h>

/* Passes at most, and by how much of a step one may still change it. */
enum { PASSES = 10 };
static const double settled = 1e-4;

/* A kernel of which it is not said how long it takes alone. */
static bool is_unsaid(const struct trace_activity *activity)
{
    return activity->class != TRACE_COLLECTIVE && activity->class != KERNEL_HOST_COPY &&
           activity->alone == 0;
}

/* By trace and activity; false: none is, or no collective is beside any. */
static bool find_unsaid(bool **unsaid, const struct trace *traces, int n)
{
    bool any = false, meets = false;
    for (int t = 0; t < n; t++) {
        unsaid[t] = xcalloc((size_t)traces[t].activities.n + 1, sizeof **unsaid);
        for (int i = 0; i < traces[t].activities.n; i++) {
            unsaid[t][i] = is_unsaid(&traces[t].activities.at[i]);
            any |= unsaid[t][i];
            meets |= traces[t].activities.at[i].class == TRACE_COLLECTIVE;
        }
    }
    return any && meets;
}

/* Kernels are slowed by as much as in this run. */
static void take_ratios(struct trace *traces, const struct trace_planned *planned,
    const struct exec_result *run, bool *const *unsaid)
{
    for (int s = 0; s < run->n_spans; s++) {
        const struct exec_span *span = &run->spans[s];
        int32_t i = planned->activities[span->program][span->op];
        int t = planned->rank_of_program[span->program];
        if (i < 0 || !unsaid[t][i] || span->alone <= 0 || span->end <= span->start)
            continue;
        struct trace_activity *activity = &traces[t].activities.at[i];
        double ratio = (double)(span->end - span->start) / (double)span->alone;
        activity->alone = ps_round((double)(activity->end - activity->start) / ratio);
    }
}

/* Only the first rank of each program is traced, as the others do as it does. */
static enum status trace_alone_pass(struct trace *traces, const struct traced_rank *ranks, int n,
    const struct trace_plan_options *options, bool *const *unsaid, double *step_s,
    struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct exec_options exec = exec_default_options();
    struct trace_planned planned;
    struct exec_result run;
    int *first = ARENA_ARRAY(&arena, int, n);
    enum status status = trace_plan(&planned, ranks, n, options, &arena, diag);
    for (int p = 0; p < n && status == STATUS_OK; p++)
        first[p] = plan_first_rank(&planned.plan, p);
    exec.steps = 1;
    exec.no_memory = true;
    exec.trace_ranks = first;
    exec.n_trace_ranks = n;
    if (status == STATUS_OK) {
        exec_run(&run, &planned.plan, options->hw, &exec, &arena);
        take_ratios(traces, &planned, &run, unsaid);
        *step_s = run.step_time_s;
    }
    plan_release(&planned.plan);
    arena_release(&arena);
    return status;
}

enum status trace_find_alone(struct trace *traces, const struct traced_rank *ranks, int n,
    const struct trace_plan_options *options, struct diag *diag)
{
    struct trace_plan_options as_traced = *options;
    struct hw hw = *options->hw;
    bool **unsaid = xcalloc((size_t)n, sizeof *unsaid);
    enum status status = STATUS_OK;
    double step_s = 0;
    as_traced.gpus = 0;
    if (options->traced) {
        hw.gpu = *options->traced;
        hw_derive(&hw);
        as_traced.hw = &hw;
        as_traced.traced = NULL;
    }
    bool wanted = find_unsaid(unsaid, traces, n) && !options->recorded;
    for (int p = 0; p < PASSES && wanted && status == STATUS_OK; p++) {
        double before_s = step_s;
        status = trace_alone_pass(traces, ranks, n, &as_traced, unsaid, &step_s, diag);
        wanted = fabs(step_s - before_s) > settled * step_s;
    }
    for (int t = 0; t < n; t++)
        free(unsaid[t]);
    free(unsaid);
    return status;
}
