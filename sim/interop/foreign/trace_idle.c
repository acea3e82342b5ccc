/* Where no kernel runs: why not (trace_sum.h).
 *
 * A sweep over time: every activity, wait, loading of data and unlaunched gap is a layer with
 * edges, sorted by time, and between two edges the running layers decide to which part the time
 * belongs (account()). The first of these that holds takes it: a kernel runs; a collective does
 * and the next kernel is launched, or the host is blocked; nothing is launched; a copy runs;
 * nothing is known. So the parts add up to the steps exactly.
 *
 * What is subtle: "nothing is launched" is the time from the end of what the compute stream had
 * to the launch of its next kernel. It counts as blocked by the GPU if the host was in a
 * synchronizing call until shortly before (`soon`), or copied in a way that returns only when it
 * is done. */
#include "foreign/trace_sum.h"

#include <stdlib.h>

static const ps_t soon =
    20 * (PS_PER_S / 1000000); /* between what a host waited for and its going on */

enum layer {
    LAYER_KERNEL,
    LAYER_COLLECTIVE,
    LAYER_COPY,
    LAYER_UNISSUED,
    LAYER_BLOCKED,
    LAYER_SYNC,
    LAYER_LOADER,
    LAYERS
};

struct edge {
    ps_t at;
    int8_t layer, step; /* step: +1 begins, -1 ends */
};

struct sweep {
    const struct trace *trace;
    ps_t from, to;
    VEC(struct edge) edges;
};

static enum layer layer_of(const struct trace_activity *activity)
{
    if (activity->class == TRACE_COLLECTIVE)
        return LAYER_COLLECTIVE;
    return activity->class == KERNEL_HOST_COPY ? LAYER_COPY : LAYER_KERNEL;
}

static void trace_idle_add(struct sweep *sweep, enum layer layer, ps_t start, ps_t end)
{
    start = start > sweep->from ? start : sweep->from;
    end = end < sweep->to ? end : sweep->to;
    if (start >= end)
        return;
    vec_push(&sweep->edges, (struct edge){start, (int8_t)layer, 1});
    vec_push(&sweep->edges, (struct edge){end, (int8_t)layer, -1});
}

static int trace_idle_by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

int32_t trace_compute_stream(const struct trace *trace)
{
    struct stream {
        int32_t number;
        ps_t busy;
    };
    VEC(struct stream) streams = {0};
    int best = 0;
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        int s = 0;
        if (layer_of(activity) != LAYER_KERNEL)
            continue;
        while (s < streams.n && streams.at[s].number != activity->stream)
            s++;
        if (s == streams.n)
            vec_push(&streams, (struct stream){activity->stream, 0});
        streams.at[s].busy += activity->end - activity->start;
        best = streams.at[s].busy > streams.at[best].busy ? s : best;
    }
    int32_t number = streams.n > 0 ? streams.at[best].number : 0;
    vec_free(&streams);
    return number;
}

/* The host is in a call that returns when the GPU has done something. */
static bool blocks(const struct trace_wait *wait)
{
    return wait->stream == TRACE_HOST && wait->on != TRACE_LAUNCH_QUEUE &&
           wait->on != TRACE_SLOW_CALL;
}

static bool blocks_as_copy(const struct trace_activity *activity)
{
    return activity->class == KERNEL_HOST_COPY && activity->launched != PS_NEVER &&
           activity->returned >= activity->end;
}

/* Until when the host is blocked at latest, by all that blocked it from before `at` on. */
struct blocking {
    const struct trace *trace;
    int wait, activity;
    ps_t until;
};

/* Both lists are sorted by their begin, so each is walked once in all. */
static ps_t blocked_until(struct blocking *b, ps_t at)
{
    const struct trace *trace = b->trace;
    for (; b->wait < trace->waits.n && trace->waits.at[b->wait].start <= at; b->wait++)
        if (blocks(&trace->waits.at[b->wait]) && trace->waits.at[b->wait].end > b->until)
            b->until = trace->waits.at[b->wait].end;
    for (; trace->activities.at && b->activity < trace->activities.n &&
           trace->activities.at[b->activity].start <= at;
         b->activity++)
        if (blocks_as_copy(&trace->activities.at[b->activity]) &&
            trace->activities.at[b->activity].returned > b->until)
            b->until = trace->activities.at[b->activity].returned;
    return b->until;
}

/* From the end of what the compute stream had to the launch of its next; of no next one up to
 * the end. A launch time that is not known counts as early enough. */
static void add_unissued(struct sweep *sweep)
{
    const struct trace *trace = sweep->trace;
    int32_t compute = trace_compute_stream(trace);
    struct blocking blocking = {.trace = trace, .until = INT64_MIN};
    ps_t done = INT64_MIN;
    for (int i = 0; i <= trace->activities.n; i++) {
        const struct trace_activity *next =
            i < trace->activities.n ? &trace->activities.at[i] : NULL;
        if (next && next->stream != compute)
            continue;
        ps_t issued = !next                          ? sweep->to
                      : next->returned == PS_NEVER   ? done
                      : next->returned < next->start ? next->returned
                                                     : next->start;
        if (issued > done) {
            ps_t from = done > sweep->from ? done : sweep->from;
            trace_idle_add(sweep, LAYER_UNISSUED, from, issued);
            if (blocked_until(&blocking, from) >= from - soon)
                trace_idle_add(sweep, LAYER_SYNC, from, issued);
        }
        done = next && next->end > done ? next->end : done;
    }
}

static struct sweep edges_of(const struct trace *trace)
{
    struct sweep sweep = {.trace = trace,
        .from = trace->steps.at[0].start,
        .to = trace->steps.at[trace->steps.n - 1].end};
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        trace_idle_add(&sweep, layer_of(activity), activity->start, activity->end);
    }
    for (int i = 0; i < trace->loading.n; i++)
        trace_idle_add(&sweep, LAYER_LOADER, trace->loading.at[i].start, trace->loading.at[i].end);
    for (int i = 0; i < trace->waits.n; i++)
        if (blocks(&trace->waits.at[i]))
            trace_idle_add(&sweep, LAYER_BLOCKED, trace->waits.at[i].start, trace->waits.at[i].end);
    if (trace->has_launches)
        add_unissued(&sweep);
    if (sweep.edges.n > 1)
        qsort(sweep.edges.at, (size_t)sweep.edges.n, sizeof *sweep.edges.at, trace_idle_by_time);
    return sweep;
}

static void account(struct trace_sum *out, const int running[LAYERS], double passed_s)
{
    bool comm = running[LAYER_COLLECTIVE] > 0, unissued = running[LAYER_UNISSUED] > 0;
    if (running[LAYER_KERNEL] > 0) {
        out->compute_s += passed_s;
        out->hidden_s += comm ? passed_s : 0;
    } else if (comm && (!unissued || running[LAYER_BLOCKED] > 0)) {
        out->exposed_s += passed_s;
    } else if (unissued) {
        out->host_s += passed_s;
        if (running[LAYER_LOADER] > 0)
            out->loader_s += passed_s;
        else if (running[LAYER_SYNC] > 0)
            out->sync_s += passed_s;
    } else if (running[LAYER_COPY] > 0) {
        out->copies_s += passed_s;
    } else {
        out->idle_s += passed_s;
    }
}

void trace_sum_unions(struct trace_sum *out, const struct trace *trace)
{
    struct sweep sweep = edges_of(trace);
    int running[LAYERS] = {0};
    ps_t at = sweep.from;
    for (int i = 0; i <= sweep.edges.n; i++) {
        ps_t next = i < sweep.edges.n ? sweep.edges.at[i].at : sweep.to;
        account(out, running, s_from_ps(next - at) / out->steps);
        at = next;
        if (i < sweep.edges.n)
            running[sweep.edges.at[i].layer] += sweep.edges.at[i].step;
    }
    vec_free(&sweep.edges);
}
