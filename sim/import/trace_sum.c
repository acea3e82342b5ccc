#include "import/trace_sum.h"

#include <stdlib.h>
#include <string.h>

/* ---- intervals ---- */

enum layer { LAYER_KERNEL, LAYER_COLLECTIVE, LAYER_COPY, LAYERS };

static enum layer layer_of(const struct trace_activity *activity)
{
    if (activity->class == TRACE_COLLECTIVE)
        return LAYER_COLLECTIVE;
    return activity->class == KERNEL_HOST_COPY ? LAYER_COPY : LAYER_KERNEL;
}

struct edge {
    ps_t at;
    int8_t layer, step; /* step: +1 begins, -1 ends */
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* One sweep over all beginnings and ends inside the steps. */
static void add_unions(struct trace_sum *out, const struct trace *trace)
{
    ps_t from = trace->steps.at[0].start, to = trace->steps.at[trace->steps.n - 1].end;
    struct edge *edges = xcalloc(2 * (size_t)trace->activities.n + 1, sizeof *edges);
    size_t n = 0;
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        ps_t start = activity->start > from ? activity->start : from, end = activity->end < to ? activity->end : to;
        if (start >= end)
            continue;
        edges[n++] = (struct edge){start, (int8_t)layer_of(activity), 1};
        edges[n++] = (struct edge){end, (int8_t)layer_of(activity), -1};
    }
    qsort(edges, n, sizeof *edges, by_time);
    int running[LAYERS] = {0};
    ps_t at = from, compute = 0, exposed = 0, hidden = 0, copies = 0, idle = 0;
    for (size_t i = 0; i <= n; i++) {
        ps_t next = i < n ? edges[i].at : to, passed = next - at;
        if (running[LAYER_KERNEL] > 0)
            compute += passed;
        else if (running[LAYER_COLLECTIVE] > 0)
            exposed += passed;
        else if (running[LAYER_COPY] > 0)
            copies += passed;
        else
            idle += passed;
        hidden += running[LAYER_KERNEL] > 0 && running[LAYER_COLLECTIVE] > 0 ? passed : 0;
        at = next;
        if (i < n)
            running[edges[i].layer] += edges[i].step;
    }
    free(edges);
    out->compute_s = s_from_ps(compute) / out->steps;
    out->exposed_s = s_from_ps(exposed) / out->steps;
    out->hidden_s = s_from_ps(hidden) / out->steps;
    out->copies_s = s_from_ps(copies) / out->steps;
    out->idle_s = s_from_ps(idle) / out->steps;
}

/* ---- sums ---- */

static void add_to_group(struct trace_sum *out, const struct trace_activity *activity, double time_s)
{
    for (int i = 0; i < out->groups.n; i++) {
        struct trace_group *group = &out->groups.at[i];
        if (group->kind == activity->kind && group->ranks == activity->ranks && group->bytes == activity->bytes) {
            group->count++;
            group->time_s += time_s;
            return;
        }
    }
    vec_push(&out->groups, (struct trace_group){activity->kind, activity->ranks, activity->bytes, 1, time_s});
}

static void add_activities(struct trace_sum *out, const struct trace *trace)
{
    struct trace_kernel *kernels = xcalloc((size_t)trace->names.n + 1, sizeof *kernels);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        double time_s = s_from_ps(activity->end - activity->start);
        if (activity->step == TRACE_NO_STEP)
            continue;
        out->class_s[activity->class] += time_s;
        out->class_count[activity->class]++;
        if (activity->class == TRACE_COLLECTIVE) {
            add_to_group(out, activity, time_s);
            continue;
        }
        struct trace_kernel *kernel = &kernels[activity->name];
        kernel->name = trace->names.at[activity->name];
        kernel->class = activity->class;
        kernel->count++;
        kernel->time_s += time_s;
    }
    for (int i = 0; i < trace->names.n; i++)
        if (kernels[i].count > 0)
            vec_push(&out->kernels, kernels[i]);
    free(kernels);
}

static int longest_group(const void *a, const void *b)
{
    const struct trace_group *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s > y->time_s ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind - y->kind;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static int longest_kernel(const void *a, const void *b)
{
    const struct trace_kernel *x = a, *y = b;
    return x->time_s > y->time_s ? -1 : x->time_s < y->time_s ? 1 : strcmp(x->name, y->name);
}

static void add_steps(struct trace_sum *out, const struct trace *trace)
{
    int n = trace->steps.n;
    out->steps = n;
    out->step_s = s_from_ps(trace->steps.at[n - 1].end - trace->steps.at[0].start) / n;
    for (int i = 0; i < n; i++) {
        double time_s = s_from_ps(trace->steps.at[i].end - trace->steps.at[i].start);
        out->shortest_s = i == 0 || time_s < out->shortest_s ? time_s : out->shortest_s;
        out->longest_s = time_s > out->longest_s ? time_s : out->longest_s;
    }
}

void trace_sum(struct trace_sum *out, const struct trace *trace)
{
    *out = (struct trace_sum){0};
    add_steps(out, trace);
    add_unions(out, trace);
    add_activities(out, trace);
    for (int c = 0; c < TRACE_CLASS_COUNT; c++) {
        out->class_s[c] /= out->steps;
        out->class_count[c] /= out->steps;
    }
    for (int i = 0; i < out->groups.n; i++) {
        out->groups.at[i].count /= out->steps;
        out->groups.at[i].time_s /= out->steps;
    }
    for (int i = 0; i < out->kernels.n; i++) {
        out->kernels.at[i].count /= out->steps;
        out->kernels.at[i].time_s /= out->steps;
    }
    if (out->groups.n > 0)
        qsort(out->groups.at, (size_t)out->groups.n, sizeof *out->groups.at, longest_group);
    if (out->kernels.n > 0)
        qsort(out->kernels.at, (size_t)out->kernels.n, sizeof *out->kernels.at, longest_kernel);
}

void trace_sum_free(struct trace_sum *sum)
{
    vec_free(&sum->groups);
    vec_free(&sum->kernels);
}

double trace_bus_bytes(const struct trace_group *group)
{
    if (group->ranks < 2 || group->kind == TRACE_UNKNOWN_KIND)
        return 0;
    return group->bytes * coll_bus_factor((enum coll_kind)group->kind, group->ranks);
}
