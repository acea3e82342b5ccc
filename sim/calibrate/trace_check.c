#include "calibrate/trace_check.h"

#include "calibrate/nccl_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ms = 1e3;           /* a second */
static const double least_share = 1e-3; /* of the step: a smaller difference is none */

void trace_check_free(struct trace_check *check)
{
    trace_free(&check->trace);
    trace_free(&check->simulation);
    trace_sum_free(&check->measured);
    trace_sum_free(&check->simulated);
    vec_free(&check->pairs);
    vec_free(&check->differences);
    arena_release(&check->arena);
}

/* ---- collectives ---- */

/* How far apart two messages of one collective are; below 0: they are not of one collective. Flat parameters are padded
 * to the number of ranks, which a few bytes more or less come from. */
static double apart(const struct trace_group *measured, const struct trace_group *simulated)
{
    static const double padding = 0.02;
    if (measured->kind != simulated->kind || measured->kind == TRACE_UNKNOWN_KIND || measured->bytes <= 0 ||
        (measured->ranks > 0 && measured->ranks != simulated->ranks))
        return -1;
    double ratio = fabs(log(measured->bytes / simulated->bytes));
    return ratio <= padding ? ratio : -1;
}

/* Each measured one with the nearest that is left, the longest first; without a simulation none has any. */
static void pair_collectives(struct trace_check *check)
{
    const struct trace_sum *measured = &check->measured, *simulated = &check->simulated;
    check->pairs.n = 0;
    bool *taken = xcalloc((size_t)simulated->groups.n + 1, sizeof *taken);
    for (int m = 0; m < measured->groups.n; m++) {
        int best = -1;
        double nearest = HUGE_VAL;
        for (int s = 0; s < simulated->groups.n; s++) {
            double distance = apart(&measured->groups.at[m], &simulated->groups.at[s]);
            if (taken[s] || distance < 0 || distance >= nearest)
                continue;
            nearest = distance;
            best = s;
        }
        if (best >= 0)
            taken[best] = true;
        vec_push(
            &check->pairs, (struct trace_pair){&measured->groups.at[m], best < 0 ? NULL : &simulated->groups.at[best]});
    }
    for (int s = 0; s < simulated->groups.n; s++)
        if (!taken[s])
            vec_push(&check->pairs, (struct trace_pair){NULL, &simulated->groups.at[s]});
    free(taken);
}

enum status trace_check_load(struct trace_check *out, const char *file, int64_t device, struct diag *diag)
{
    *out = (struct trace_check){0};
    enum status status = trace_load(&out->trace, file, device, &out->arena, diag);
    if (status == STATUS_OK) {
        trace_sum(&out->measured, &out->trace);
        pair_collectives(out);
    }
    return status;
}

/* ---- differences ---- */

/* what: "gemm kernels take". */
static void differ(struct trace_check *check, const char *what, double measured_s, double simulated_s, const char *why)
{
    struct arena *arena = &check->arena;
    double by_s = measured_s - simulated_s;
    if (fabs(by_s) < least_share * check->measured.step_s)
        return;
    const char *percent = simulated_s > 0 ? arena_printf(arena, " (%+.0f %%)", 100 * by_s / simulated_s) : "";
    const char *text = arena_printf(arena, "%s %.3g ms a step %s than simulated: %.4g ms, simulated %.4g ms%s%s", what,
        fabs(by_s) * ms, by_s < 0 ? "less" : "more", measured_s * ms, simulated_s * ms, percent, why);
    vec_push(&check->differences, (struct trace_difference){text, by_s});
}

static void differ_by_class(struct trace_check *check)
{
    struct arena *arena = &check->arena;
    const struct trace_sum *measured = &check->measured, *simulated = &check->simulated;
    for (int c = 0; c < TRACE_COLLECTIVE; c++) {
        const char *why = simulated->class_count[c] == 0  ? "; the simulation has no such kernels"
                          : measured->class_count[c] == 0 ? "; the trace has no such kernels"
                                                          : arena_printf(arena, "; %.4g kernels, simulated %.4g",
                                                                measured->class_count[c], simulated->class_count[c]);
        if (c == TRACE_OTHER)
            why = "; no class is known for these kernels, so they are missing elsewhere";
        differ(check, arena_printf(arena, "%s kernels take", trace_class_name(c)), measured->class_s[c],
            simulated->class_s[c], why);
    }
}

static void differ_by_collective(struct trace_check *check)
{
    for (int kind = TRACE_UNKNOWN_KIND; kind < COLL_KIND_COUNT; kind++) {
        const struct trace_sum *sides[] = {&check->measured, &check->simulated};
        double time_s[2] = {0}, count[2] = {0};
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < sides[side]->groups.n; i++) {
                const struct trace_group *group = &sides[side]->groups.at[i];
                time_s[side] += group->kind == kind ? group->time_s : 0;
                count[side] += group->kind == kind ? group->count : 0;
            }
        if (count[0] + count[1] == 0)
            continue;
        const char *name = kind == TRACE_UNKNOWN_KIND ? "collectives of no known kind" : coll_kind_names[kind];
        differ(check, arena_printf(&check->arena, "%s kernels take", name), time_s[0], time_s[1],
            arena_printf(
                &check->arena, "; %.4g of them, simulated %.4g, waiting for other ranks included", count[0], count[1]));
    }
}

static int largest_first(const void *a, const void *b)
{
    const struct trace_difference *x = a, *y = b;
    double by = fabs(y->by_s) - fabs(x->by_s);
    return by > 0 ? 1 : by < 0 ? -1 : strcmp(x->text, y->text);
}

static void find_differences(struct trace_check *check)
{
    const struct trace_sum *measured = &check->measured, *simulated = &check->simulated;
    differ_by_class(check);
    differ_by_collective(check);
    differ(check, "exposed communication, where collectives run and no kernel does, takes", measured->exposed_s,
        simulated->exposed_s, "");
    differ(check, "copies from or to the host that nothing hides take", measured->copies_s, simulated->copies_s, "");
    differ(check, "the GPU is idle", measured->idle_s, simulated->idle_s,
        "; nothing runs, mostly because the host has launched nothing yet");
    if (check->differences.n > 0)
        qsort(check->differences.at, (size_t)check->differences.n, sizeof *check->differences.at, largest_first);
}

/* ---- the simulation ---- */

static void warn_of_scenario(const struct trace_check *check, const char *file, struct diag *diag)
{
    const struct scenario_point *point = &check->set.points[0];
    const struct trace *trace = &check->trace;
    struct source_pos at = {.file = file};
    if (trace->about.gpu && !nccl_same_gpu(trace->about.gpu, &point->hw.gpu))
        diag_warn(diag, at, "the trace's GPU is %s, the scenario's %s: is --scenario the right one?", trace->about.gpu,
            point->hw.gpu.name);
    if (trace->world_size > 0 && trace->world_size != point->options.cluster.gpus)
        diag_warn(diag, at, "the trace is of %lld ranks, the scenario of %lld: --set cluster.gpus=%lld",
            (long long)trace->world_size, (long long)point->options.cluster.gpus, (long long)trace->world_size);
}

enum status trace_check_simulate(struct trace_check *check, const char *file, struct diag *diag)
{
    struct scenario_point *point = &check->set.points[0];
    struct trace *trace = &check->trace;
    int64_t gpus = point->options.cluster.gpus;
    int *rank = ARENA_NEW(&check->arena, int);
    *rank = trace->rank >= 0 && trace->rank < gpus ? (int)trace->rank : 0;
    point->options.exec.trace_ranks = rank;
    point->options.exec.n_trace_ranks = 1;
    warn_of_scenario(check, file, diag);
    enum status status = scenario_simulate(&check->result, point, &check->arena, diag);
    if (status != STATUS_OK)
        return status;
    if (check->result.exec.status == EXEC_OOM)
        return diag_input(diag, (struct source_pos){.file = check->set.file},
            "out of memory when it is simulated, at %s; `flopcast run` says what needs how much",
            check->result.exec.memory.oom_op);
    trace_of_run(&check->simulation, &check->result.exec, *rank, &check->arena);
    trace_sum(&check->simulated, &check->simulation);
    pair_collectives(check);
    find_differences(check);
    check->compared = true;
    return STATUS_OK;
}
